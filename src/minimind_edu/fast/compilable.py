"""What a step of our own cannot compute whatever its numbers say, and whether a model is still what was compared.

Whether a step computes what the model computes is not looked for in objects: `decoding.py` compares logits.
"""

import operator
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as modules

from minimind_edu.model.attention import Attention
from minimind_edu.model.model import MiniMindForCausalLM

PACKAGE = "minimind_edu."


def why_only_plain(model: MiniMindForCausalLM) -> str | None:
    """What a step of our own would leave out without changing a logit, or only at some calls; None: nothing.

    Hooks may only look on, so no number shows whether they are called. Methods that somebody gave to a single part may
    do the same.

    Raises:
        ValueError: if dropout would be lost, which no warning could make good.
    """
    if modules._has_any_global_hook():
        return "a global hook would not be called"
    for name, part in model.named_modules():
        dropout = part.p if isinstance(part, nn.Dropout) else part.dropout if isinstance(part, Attention) else 0.0
        if part.training and dropout:
            raise ValueError(
                "the step for one token has no dropout, but this model is in training mode with dropout="
                f"{dropout} at {name}; call model.eval() first"
            )
        if part._forward_hooks or part._forward_pre_hooks:
            return f"a hook of {name or 'the model itself'} would not be called"
        replaced = [attribute for attribute, value in vars(part).items() if callable(value)]
        for attribute in replaced:
            if hasattr(type(part), attribute):
                return f"the {attribute} that somebody gave {name or 'the model itself'} would not be called"
    return None


class Snapshot:
    """What a model is made of: its parts, hooks, attributes and tensors, and the classes and functions that compute it.

    Values are not looked at: of tensors that change in place, nor what a function does that stays the same. To ask
    whether all is as it was takes some tens of microseconds, little enough for every token.
    """

    def __init__(self, model: MiniMindForCausalLM) -> None:
        self._model, self._parts = model, list(model.modules())
        kinds = {kind for part in self._parts for kind in type(part).__mro__ if kind is not object}
        named = [names for part in self._parts for names in (part._modules, part._parameters) if names]
        named += [*map(vars, kinds), *_namespaces(kind.__module__ for kind in kinds)]
        self._named = [(names, dict(names)) for names in named]
        hooks = [
            entries for part in self._parts for entries in (vars(part), part._forward_hooks, part._forward_pre_hooks)
        ]
        self._counted = [*hooks, modules._global_forward_hooks, modules._global_forward_pre_hooks]
        self._tensors = [tensor for part in self._parts for tensor in part._parameters.values() if tensor is not None]
        self._before = self._now()

    def is_true(self) -> bool:
        """Whether all is as it was."""
        try:
            return all(now == before for now, before in self._named) and self._now() == self._before
        except (AttributeError, RuntimeError, ValueError):  # a part is gone, or what stands there is no number
            return False

    def _now(self) -> list[Any]:
        config, body = self._model.config, self._model.model
        tables = body.freqs_cos, body.freqs_sin
        places = [*map(_place, self._tensors), *map(_place, tables), *map(_order, self._tensors)]
        return [id(config), id(body.config), *map(len, self._counted), *map(_trains, self._parts), *places]


_place = operator.methodcaller("data_ptr")
_order = operator.methodcaller("stride")
_trains = operator.attrgetter("training")


def _namespaces(names: Iterable[str]) -> list[dict[str, Any]]:
    """The names of these modules of the package, of those whose functions stand in them, and of torch's functions."""
    found, left = {torch.nn.functional.__name__}, set(names)
    while left:
        found |= left
        values = [value for name in left for value in vars(sys.modules[name]).values()]
        left = {name for value in values if (name := str(getattr(value, "__module__", ""))).startswith(PACKAGE)} - found
    return [vars(sys.modules[name]) for name in found if name.startswith((PACKAGE, torch.nn.functional.__name__))]
