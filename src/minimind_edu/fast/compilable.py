"""Whether `token_step` would compute what a model computes, and whether it can be compiled here."""

import warnings
from types import FunctionType, MethodType

import torch
from torch import nn

from minimind_edu.attention import Attention
from minimind_edu.block import MiniMindBlock
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM, MiniMindModel
from minimind_edu.moe import MoEFeedForward, MoEGate
from minimind_edu.norms import RMSNorm


def why_only_plain(model: MiniMindForCausalLM) -> str | None:
    """What keeps `token_step` from reading tokens for this model; None: nothing.

    Raises:
        ValueError: if dropout would be lost, which no warning could make good.
    """
    if model.training and model.config.dropout:
        raise ValueError(
            "the step for one token has no dropout, but this model is in training mode with dropout="
            f"{model.config.dropout}; call model.eval() first"
        )
    device = model.lm_head.weight.device.type
    if device not in ("cpu", "cuda"):
        return f"the step for one token is made for the CPU and CUDA, and the model is on {device}"
    unsupported = _unsupported_module(model)
    if unsupported is not None:
        return f"the step for one token does not know what was changed at {unsupported}"
    return None


def _methods(part: type) -> dict[str, FunctionType]:
    return {name: value for name, value in vars(part).items() if isinstance(value, FunctionType)}


# The classes that `token_step` writes out, with their methods as they were when this module was imported.
_SUPPORTED = {
    part: _methods(part)
    for part in (
        MiniMindForCausalLM, MiniMindModel, MiniMindBlock, Attention, FeedForward, MoEFeedForward, MoEGate, RMSNorm,
        nn.Dropout, nn.Embedding, nn.Identity, nn.Linear, nn.ModuleList,
    )
}  # fmt: skip


def _unsupported_module(model: MiniMindForCausalLM) -> str | None:
    """The name of a part that is not what `token_step` takes it for: another class or method, a bias, a hook."""
    if torch.nn.modules.module._has_any_global_hook():
        return "all modules, by a global hook"
    for name, part in model.named_modules():
        replaced = any(isinstance(value, FunctionType | MethodType) for value in vars(part).values())
        has_bias = isinstance(part, nn.Linear) and part.bias is not None
        has_hooks = part._forward_hooks or part._forward_pre_hooks
        if _SUPPORTED.get(type(part)) != _methods(type(part)) or replaced or has_bias or has_hooks:
            return name or "the model itself"
    return None


def has_cpp_compiler() -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # when imported, torch warns of its own old parts
        from torch._inductor.cpp_builder import get_cpp_compiler
    try:
        get_cpp_compiler()
    except RuntimeError:
        return False
    return True
