"""Decoding with rounded weights: fewer bytes to wait for, and not quite the same model.

    fast.rounded_decoder(model, to="int8").generate(ids, 100)

Every matrix is rounded, once, and prompts and single tokens are read with the same rounded matrices: the text is that
of the model which `weights/int8.py` would store and restore, within float32's own rounding. Its tokens may differ from
those of the model that was rounded, so this is no way of `fast.decoder`.

    weights   int8: a byte each and one scale for each row; bfloat16: two bytes each. Norms' gains stay float32.
    prompts   matrix by matrix, each restored to float32 for as long as it is multiplied; with bfloat16, on processors
              that have the instructions, multiplied in bfloat16 instead
    tokens    by the compiled step, with `row_products.cpp` for the products, or loops of torch.compile's where that
              cannot be compiled, or a mixture of experts
"""

import copy
import warnings
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import nn

from minimind_edu.block import MiniMindBlock
from minimind_edu.fast.compilable import why_not_compiled
from minimind_edu.fast.decoding import CompiledDecoder
from minimind_edu.fast.row_products import why_not_loaded
from minimind_edu.fast.rows import PRECISIONS, RoundedEmbedding, RoundedLinear, Rows, rounded
from minimind_edu.fast.token_step import Stack
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward, MoEGate


def rounded_decoder(model: MiniMindForCausalLM, to: str = "int8") -> "RoundedDecoder":
    """What to generate with: `rounded_decoder(model, "int8").generate(ids, 100)`.

    It keeps rounded copies of the matrices, and nothing of the model: what changes there later is not followed.

    Args:
        to: "int8" or "bfloat16".

    Raises:
        ValueError: if there is no such precision, a weight is not finite, or a model in training mode would lose its
            dropout.
    """
    if to not in PRECISIONS:
        raise ValueError(f"weights can be rounded to {', '.join(map(repr, PRECISIONS))}, got {to!r}")
    return RoundedDecoder(model, to)


class RoundedDecoder(CompiledDecoder):
    """Called like the model; `self.model` is the rounded one."""

    def __init__(self, model: MiniMindForCausalLM, to: str):
        reason = why_not_compiled(model)
        missing = reason or ("" if model.lm_head.weight.is_cuda else why_not_loaded())
        if missing and not reason:
            warnings.warn(f"the products are left to torch.compile, and slower: {missing}", stacklevel=3)
        super().__init__(rounded_model(model, to, compiled=not missing))
        if reason:
            self._give_up(reason)

    def _lay_out(self) -> list[Stack | None]:
        """The experts, as the step reads them."""
        parts = (layer.mlp for layer in cast(Iterable[MiniMindBlock], self.model.model.layers))
        return [
            stack_rows(cast(Sequence[FeedForward], part.experts)) if isinstance(part, MoEFeedForward) else None
            for part in parts
        ]

    def _begin(self) -> None:
        """Nobody else has this model, so it is as it was."""


def rounded_model(model: MiniMindForCausalLM, to: str, compiled: bool) -> MiniMindForCausalLM:
    """A model of the same structure whose matrices are rounded; all else is computed in float32.

    Args:
        to: as in rounded_decoder.
        compiled: whether row_products is loaded.
    """
    matrices = {id(it): it for it in model.parameters() if it.dim() == 2}
    own = copy.deepcopy(model, dict(matrices)).eval()  # deepcopy leaves those as they are
    known = {key: rounded(it.detach(), to, compiled) for key, it in matrices.items()}  # a tied one is rounded once
    for part in list(own.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Linear):
                setattr(part, name, RoundedLinear(known[id(child.weight)]))
            elif isinstance(child, nn.Embedding):
                setattr(part, name, RoundedEmbedding(known[id(child.weight)]))
            elif isinstance(child, MoEGate):  # a few rows, which the router reads as any other model's
                child.weight = nn.Parameter(known[id(child.weight)].restored())
    return own.float()


def stack_rows(experts: Sequence[FeedForward]) -> Stack:
    """All experts' gate, up and down rows as three, of which the experts' own become views; see stack_experts."""
    stacks = []
    for name in ("gate_proj", "up_proj", "down_proj"):
        maps = [cast(RoundedLinear, getattr(expert, name)) for expert in experts]
        compiled = maps[0].weight.compiled
        values, scales = (torch.stack(list(parts)) for parts in zip(*(it.weight[:2] for it in maps), strict=True))
        for index, it in enumerate(maps):
            it.weight = Rows(values[index], scales[index], compiled)
        stacks.append(Rows(values, scales, compiled))
    return tuple(stacks)
