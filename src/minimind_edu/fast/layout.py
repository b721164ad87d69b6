"""The same weights, laid out in memory as a step of decoding reads them.

A matrix has a shape, values, and an order in which the values are stored. PyTorch hands `x Wᵀ` to a library that is
made for large matrices. For a single vector it often reads W faster when each column is stored together: one pass over
memory adds x[i] times column i to all outputs, where row by row every output is a sum of its own. Whether it does, and
by how much, depends on the processor and the shape; what a prompt costs hardly changes. A compiled
step has loops of its own, which read row by row.

Matrices that multiply the same vector (queries, keys and values; gate and up) are stored as one, so that a single
product reads all of them. Nothing is copied twice: a model's own parameters become views of the joined storage.

Names, shapes, values, state dict and saved files are the same before and after; so is everything that training does.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from minimind_edu.block import MiniMindBlock
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward, MoEGate
from minimind_edu.norms import RMSNorm


class Network(NamedTuple):
    """A feed-forward network that every token visits."""

    gate_up: Tensor  # [E, 2I]
    down: Tensor  # [I, E]


class Experts(NamedTuple):
    """A router and its experts, which lie row by row, one expert after the other."""

    router: MoEGate
    gate: Tensor  # [N, I, E]
    up: Tensor  # [N, I, E]
    down: Tensor  # [N, E, I]


class Layer(NamedTuple):
    """The weights of one block, as a step reads them."""

    qkv: Tensor  # [E, (H + 2K) * D]
    out: Tensor  # [H * D, E]
    gains: tuple[Tensor, Tensor]  # of the norm of attention and of the feed-forward part, [E] each
    head_gains: tuple[Tensor, Tensor] | None  # QK-norm, [D] each
    networks: list[Network]  # one in a dense block; in a mixture the shared experts
    experts: Experts | None


class Weights(NamedTuple):
    """All weights of a model."""

    embedding: Tensor  # [V, E]
    layers: list[Layer]
    gain: Tensor  # of the last norm, [E]
    output: Tensor  # [E, V]


# What torch makes in inference mode can never be trained again, and weights outlive the mode.
@torch.inference_mode(False)
def lay_out(model: MiniMindForCausalLM, by_columns: bool = True) -> Weights:
    """Lay a model's matrices out for decoding; where they already are, this costs next to nothing.

    A tied embedding is the same matrix as lm_head and is laid out with it. By columns a token's embedding is scattered
    over memory, which costs microseconds; reading all of lm_head faster gains more.

    Args:
        by_columns: store each column together; otherwise each row, as in a new model. Experts always lie by rows.
    """
    output = join([model.lm_head], by_columns)
    layers = [_layer(block, by_columns) for block in cast(Iterable[MiniMindBlock], model.model.layers)]
    return Weights(model.model.embed_tokens.weight.data, layers, model.model.norm.weight.data, output)


def _layer(block: MiniMindBlock, by_columns: bool) -> Layer:
    part, mlp = block.self_attn, block.mlp
    networks = [mlp] if isinstance(mlp, FeedForward) else cast(Sequence[FeedForward], mlp.shared_experts)
    return Layer(
        join([part.q_proj, part.k_proj, part.v_proj], by_columns),
        join([part.o_proj], by_columns),
        (block.input_layernorm.weight.data, block.post_attention_layernorm.weight.data),
        (part.q_norm.weight.data, cast(RMSNorm, part.k_norm).weight.data) if isinstance(part.q_norm, RMSNorm) else None,
        [Network(join([it.gate_proj, it.up_proj], by_columns), join([it.down_proj], by_columns)) for it in networks],
        stack_experts(mlp) if isinstance(mlp, MoEFeedForward) else None,
    )


def join(maps: Sequence[nn.Linear], by_columns: bool) -> Tensor:
    """The matrices of linear maps with the same input as one, so that `x @ joined` is all their outputs: `[in, out]`.

    Each map's own parameter becomes a view of it, in its own shape, so it may go on learning.
    """
    weights = [it.weight for it in maps]
    sizes, width = [len(weight) for weight in weights], weights[0].shape[1]
    if not by_columns:
        shape = (sum(sizes), width)
        joined = _one(weights, lambda: torch.cat([it.data for it in weights]), lambda it: it.split(sizes), shape)
        return joined.t().data  # a compiled step would depend on what a view is a view of; .data is none
    return _one(
        weights,
        lambda: torch.cat([weight.data.t() for weight in weights], dim=1),  # n x [in, out] -> [in, sum of out]
        lambda joined: [piece.t() for piece in joined.split(sizes, dim=1)],
        (width, sum(sizes)),
    )


def stack_experts(mixture: MoEFeedForward) -> Experts:
    """All experts' gate, up and down matrices as three tensors. The experts' own parameters become views of them."""
    experts = cast(Sequence[FeedForward], mixture.experts)
    names = ("gate_proj", "up_proj", "down_proj")
    return Experts(mixture.gate, *(_stack([getattr(expert, name).weight for expert in experts]) for name in names))


def _stack(weights: Sequence[Tensor]) -> Tensor:
    shape = (len(weights), *weights[0].shape)
    return _one(weights, lambda: torch.stack([weight.data for weight in weights]), Tensor.unbind, shape)


def _one(
    weights: Sequence[Tensor],
    make: Callable[[], Tensor],
    cut: Callable[[Tensor], Sequence[Tensor]],
    shape: tuple[int, ...],
) -> Tensor:
    """The tensor of which the weights are the pieces: the one that holds them already, or a new one.

    Args:
        make: joins the weights.
        cut: its inverse, by views.
        shape: of the whole.
    """
    first = weights[0].data
    end = first.storage_offset() + math.prod(shape)
    if end * first.element_size() <= first.untyped_storage().nbytes():
        whole = first.as_strided(shape, torch.empty(shape, device="meta").stride())
        if all(_same_memory(weight, piece) for weight, piece in zip(weights, cut(whole), strict=True)):
            return whole.data  # .data, as in `join`
    whole = make().contiguous()
    for weight, piece in zip(weights, cut(whole), strict=True):
        weight.data = piece
    return whole


def _same_memory(a: Tensor, b: Tensor) -> bool:
    storages = (a.untyped_storage().data_ptr(), b.untyped_storage().data_ptr())
    return storages[0] == storages[1] and a.data_ptr() == b.data_ptr() and a.stride() == b.stride()
