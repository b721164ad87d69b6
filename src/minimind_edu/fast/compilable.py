"""Whether a step of our own computes what a model computes: whether the model is what its config says, and stays so."""

import functools
import operator
from collections.abc import Iterator
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch
from torch import nn

from minimind_edu.attention import Attention
from minimind_edu.block import MiniMindBlock
from minimind_edu.config import MiniMindConfig
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM, MiniMindModel
from minimind_edu.moe import MoEFeedForward, MoEGate
from minimind_edu.norms import RMSNorm
from minimind_edu.weights.without_storage import without_storage


def why_only_plain(model: MiniMindForCausalLM) -> str | None:
    """What keeps `token_step` and `step.cpp` from reading tokens for this model; None: nothing.

    Raises:
        ValueError: if dropout would be lost, which no warning could make good.
    """
    for name, part in model.named_modules():
        dropout = part.p if isinstance(part, nn.Dropout) else part.dropout if isinstance(part, Attention) else 0.0
        if part.training and dropout:
            raise ValueError(
                "the step for one token has no dropout, but this model is in training mode with dropout="
                f"{dropout} at {name}; call model.eval() first"
            )
    changed = _changed_part(model)
    if changed is not None:
        return f"the step for one token does not know what was changed at {changed}"
    kinds = sorted({f"{parameter.dtype} on {parameter.device}" for parameter in model.parameters()})
    if len(kinds) > 1:
        return f"the step for one token computes in one dtype on one device, and the model is {' and '.join(kinds)}"
    device = model.lm_head.weight.device.type
    if device not in ("cpu", "cuda"):
        return f"the step for one token is made for the CPU and CUDA, and the model is on {device}"
    return None


def _changed_part(model: MiniMindForCausalLM) -> str | None:
    """The name of a part that is not what the config makes of it; a new model with this config is the measure."""
    if torch.nn.modules.module._has_any_global_hook():
        return "all modules, by a global hook"
    if not isinstance(model.config, MiniMindConfig) or getattr(model.model, "config", None) != model.config:
        return "the config"
    new, kinds, parameters = _new_model(replace(model.config, max_position_embeddings=1, rope_scaling=None))
    for kind in kinds:
        if _methods(kind) != _METHODS[kind]:
            return f"the class {kind.__name__}"
    different = _different_part(model, new, "")
    if different is None and len(list(model.parameters())) < parameters:
        return "parameters that several parts share"
    return different


@functools.lru_cache(maxsize=8)
def _new_model(config: MiniMindConfig) -> tuple[MiniMindForCausalLM, set[type], int]:
    """A model without numbers, the classes of its parts and theirs, and how many parameters it has."""
    new = without_storage(config)
    return new, {kind for part in new.modules() for kind in type(part).__mro__}, len(list(new.parameters()))


def _different_part(part: nn.Module | None, new: nn.Module, name: str) -> str | None:
    """The first part of another kind than in a new model, or with other settings, hooks, parts, or an own method."""
    here = name.removeprefix(".") or "the model itself"
    if part is None or type(part) is not type(new):
        return here
    own, given = vars(part), vars(new)
    settings = [setting for setting in given if _matters(setting)]
    if (
        part._forward_hooks
        or part._forward_pre_hooks
        or part._modules.keys() != new._modules.keys()
        or _kinds(part) != _kinds(new)
        or any(type(own.get(it)) is not type(given[it]) or own[it] != given[it] for it in settings)
        or any(hasattr(type(part), attribute) for attribute in own.keys() - given.keys())
    ):
        return here
    pairs = ((_different_part(part._modules[key], it, f"{name}.{key}")) for key, it in new.named_children())
    return next(filter(None, pairs), None)


def _matters(setting: str) -> bool:
    """Whether a part computes with it. Parts, parameters, hooks, dropout and the config are looked at elsewhere."""
    return not setting.startswith("_") and setting not in ("training", "p", "dropout", "config")


def _kinds(part: nn.Module) -> dict[str, Any]:
    """What kind of tensors the parameters are."""
    return {name: it if it is None else (type(it), it.layout, it.shape) for name, it in part._parameters.items()}


def _methods(kind: type) -> dict[str, FunctionType]:
    """What calling a part can lead to. Of torch's own methods that is little, and torch itself replaces others."""
    called = ("__call__", "_call_impl", "_wrapped_call_impl", "forward", "__getattr__")
    return {
        name: value
        for name, value in vars(kind).items()
        if isinstance(value, FunctionType)
        and (name in called or not name.startswith("__") and not kind.__module__.startswith("torch."))
    }


# The classes of all parts, with their methods as they were when this module was imported.
_METHODS = {
    kind: _methods(kind)
    for part in (
        MiniMindForCausalLM, MiniMindModel, MiniMindBlock, Attention, FeedForward, MoEFeedForward, MoEGate, RMSNorm,
        nn.Dropout, nn.Embedding, nn.Identity, nn.Linear, nn.ModuleList,
    )
    for kind in part.__mro__
}  # fmt: skip


class Snapshot:
    """Which parts and parameters a model has, how many hooks and attributes; changes of their values are not seen.

    To ask whether that is still so takes some microseconds, little enough for every token.
    """

    def __init__(self, model: MiniMindForCausalLM) -> None:
        parts = list(model.modules())
        self._parts = [part._modules for part in parts if part._modules]
        self._parts_before = [dict(it) for it in self._parts]
        self._counted = [it for part in parts for it in (vars(part), part._forward_hooks, part._forward_pre_hooks)]
        self._counts = [*map(len, self._counted)]
        self._parameters = [part._parameters for part in parts if part._parameters]
        self._model = model
        self._addresses = [*self._addresses_now()]

    def is_true(self) -> bool:
        if self._parts != self._parts_before or [*map(len, self._counted)] != self._counts:
            return False
        try:
            return [*self._addresses_now()] == self._addresses
        except (KeyError, AttributeError):  # there is no such parameter any more
            return False

    def _addresses_now(self) -> Iterator[int]:
        body = self._model.model
        return map(_address, (*map(_weight, self._parameters), body.freqs_cos, body.freqs_sin))


_weight = operator.itemgetter("weight")  # no part has another parameter
_address = operator.methodcaller("data_ptr")
