"""Decoding with rounded weights: fewer bytes to wait for, and no longer quite the same model.

    fast.rounded_decoder(model, to="int8").generate(ids, 100)

Every matrix is rounded once, and prompts and single tokens are read with the same rounded matrices. So a text is
continued by one model, the one that `weights/int8.py` would store and restore, up to what its products round. Its
tokens may differ from those of the model that was rounded, so this is no way of `fast.decoder`.

    weights   int8: a byte each, and one scale for each row; bfloat16: two bytes. The gains of norms stay float32.
    prompts   one matrix after the other is restored to float32 for as long as it is multiplied. With bfloat16, on
              processors that have the instructions, prompts are multiplied in bfloat16 instead.
    tokens    by the compiled `token_step`, with the loops of `row_products.cpp` for its products

Those loops are compiled once on a machine, the step once for a decoder. Where the loops cannot be compiled, and on a
GPU, the rounded model reads everything by itself, which saves memory and no time; a warning says so.
"""

import copy
import warnings
from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from minimind_edu.block import MiniMindBlock
from minimind_edu.fast.compilable import why_only_plain
from minimind_edu.fast.decoding import CompiledDecoder, LeanDecoder
from minimind_edu.fast.layout import Experts, Layer, Network, Weights
from minimind_edu.fast.row_products import why_not_loaded
from minimind_edu.fast.rows import PRECISIONS, RoundedEmbedding, RoundedLinear, Rows, rounded
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward
from minimind_edu.norms import RMSNorm


def rounded_decoder(model: MiniMindForCausalLM, to: str = "int8") -> "RoundedDecoder":
    """What to generate with: `rounded_decoder(model, "int8").generate(ids, 100)`.

    It keeps rounded copies of the matrices and nothing of the model, so later changes of the model are not followed.

    Args:
        to: "int8" or "bfloat16".

    Raises:
        ValueError: if there is no such precision, a part of the model is not what this package made it, a weight is
            not finite, or a model in training mode would lose its dropout.
    """
    if to not in PRECISIONS:
        raise ValueError(f"weights can be rounded to {' or '.join(map(repr, PRECISIONS))}, got {to!r}")
    changed = why_only_plain(model)
    if changed is not None:
        raise ValueError(f"only an unchanged model can be rounded: {changed}; undo that, or round its weights by hand")
    return RoundedDecoder(model, to)


class RoundedDecoder(CompiledDecoder):
    """Called like the model; `self.model` is the rounded one, and `self.weights` are the same rows.

    Args:
        to: as in rounded_decoder.
    """

    way = "rounded"

    def __init__(self, model: MiniMindForCausalLM, to: str):
        matrices = {id(it): it for it in model.parameters() if it.dim() == 2}
        own = copy.deepcopy(model, matrices).eval()  # its gains are copies; its matrices are read here, and replaced
        self.weights = round_weights(own, to)
        super().__init__(own)
        reason = "it is made for the CPU" if own.model.norm.weight.is_cuda else why_not_loaded()
        if reason:
            self._give_up(reason, own)

    def _begin(self) -> None:
        """Nobody else has this model: it is as it was."""

    def _stay_lean(self, reason: str) -> None:
        """The same rows, read by the step as it is."""
        warnings.warn(f"the step cannot be compiled here, so rounded decoding is lean: {reason}", stacklevel=5)
        self._step = partial(LeanDecoder._step, self)


@torch.inference_mode(False)
@torch.no_grad()
def round_weights(model: MiniMindForCausalLM, to: str) -> Weights:
    """Round the matrices of a model in place, and give them as a step reads them; all else becomes float32."""
    tied = model.lm_head.weight is model.model.embed_tokens.weight
    output = _join([(model, "lm_head")], to)
    embedding = output if tied else rounded(model.model.embed_tokens.weight, to)
    model.model.embed_tokens = cast(nn.Embedding, RoundedEmbedding(embedding))
    layers = [_round_block(block, to) for block in cast(Iterable[MiniMindBlock], model.model.layers)]
    model.float()  # in place: the gains that were taken above are float32 now
    # a step takes rows where it takes tensors
    return Weights(cast(Tensor, embedding), layers, model.model.norm.weight, cast(Tensor, output))


def _round_block(block: MiniMindBlock, to: str) -> Layer:
    part, mlp = block.self_attn, block.mlp
    networks = [mlp] if isinstance(mlp, FeedForward) else cast(Sequence[FeedForward], mlp.shared_experts)
    rows = _join([(part, "q_proj"), (part, "k_proj"), (part, "v_proj")], to), _join([(part, "o_proj")], to)
    return Layer(
        *cast(tuple[Tensor, Tensor], rows),
        (block.input_layernorm.weight, block.post_attention_layernorm.weight),
        (part.q_norm.weight, cast(RMSNorm, part.k_norm).weight) if isinstance(part.q_norm, RMSNorm) else None,
        [_round_network(network, to) for network in networks],
        _round_experts(mlp, to) if isinstance(mlp, MoEFeedForward) else None,
    )


def _round_network(part: FeedForward, to: str) -> Network:
    rows = _join([(part, "gate_proj"), (part, "up_proj")], to), _join([(part, "down_proj")], to)
    return Network(*cast(tuple[Tensor, Tensor], rows))


def _round_experts(mixture: MoEFeedForward, to: str) -> Experts:
    experts, router = list(mixture.experts), mixture.gate
    router.weight = nn.Parameter(rounded(router.weight, to).restored())  # a row for each expert: not worth more
    joined = [_join([(expert, name) for expert in experts], to) for name in ("gate_proj", "up_proj", "down_proj")]
    # [N*R, C] and [N*R] -> [N, R, C] and [N, R]
    stacks = [Rows(*(part.unflatten(0, (len(experts), -1)) for part in rows)) for rows in joined]
    return Experts(router, *cast(tuple[Tensor, Tensor, Tensor], stacks))


Places = Sequence[tuple[nn.Module, str]]  # modules, and the names of linear maps in them


def _join(places: Places, to: str) -> Rows:
    """The rows of linear maps with the same input, one map after the other. The maps become views of them."""
    matrices = [cast(nn.Linear, getattr(part, name)).weight for part, name in places]
    sizes = [len(matrix) for matrix in matrices]
    rows = rounded(torch.cat(list(matrices)), to)
    pieces = map(Rows, rows.values.split(sizes), rows.scales.split(sizes))
    for (part, name), piece in zip(places, pieces, strict=True):
        setattr(part, name, RoundedLinear(piece))
    return rows
