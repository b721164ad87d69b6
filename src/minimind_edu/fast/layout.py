"""The weights of a model, as a step of decoding reads them.

Matrices that multiply the same vector (queries, keys and values; gate and up) lie one after the other in memory, so
that a single product reads all of them as the rows of one. So do the matrices of all experts. Nothing is copied twice:
a model's own parameters become these pieces. Each keeps a shape, a storage and a size of its own, so whoever saves,
exports, flattens, copies or trains the model finds what was there before.

`gather` walks through a model; who calls it says how matrices are joined: here in place, in `rounded.py` rounded.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, cast
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from minimind_edu.block import MiniMindBlock
from minimind_edu.fast.rows import Rows
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward, MoEGate
from minimind_edu.norms import RMSNorm

Matrix = Tensor | Rows  # [in, out], or its transpose as rows


class Network(NamedTuple):
    """A feed-forward network that every token visits."""

    gate_up: Matrix  # [E, 2I]
    down: Matrix  # [I, E]


class Experts(NamedTuple):
    """A router and its experts, one after the other."""

    router: MoEGate
    gate: Matrix  # [N, I, E]
    up: Matrix  # [N, I, E]
    down: Matrix  # [N, E, I]


class Layer(NamedTuple):
    """The weights of one block."""

    qkv: Matrix  # [E, (H + 2K) * D]
    out: Matrix  # [H * D, E]
    gains: tuple[Tensor, Tensor]  # of the norm of attention and of the feed-forward part, [E] each
    head_gains: tuple[Tensor, Tensor] | None  # QK-norm, [D] each
    networks: list[Network]  # one in a dense block; in a mixture the shared experts
    experts: Experts | None


class Weights(NamedTuple):
    """All weights of a model."""

    embedding: Matrix  # [V, E]
    layers: list[Layer]
    gain: Tensor  # of the last norm, [E]
    output: Matrix  # [E, V]


Places = Sequence[tuple[nn.Module, str]]  # modules, and the names of linear maps in them


def gather(model: MiniMindForCausalLM, join: Callable[[Places], Matrix], stack: Callable[[Places], Matrix]) -> Weights:
    """All weights of a model.

    Args:
        join: gives the matrices of linear maps with the same input as one.
        stack: gives those of all experts as one, `[N, out, in]`.
    """

    def network(part: FeedForward) -> Network:
        return Network(join([(part, "gate_proj"), (part, "up_proj")]), join([(part, "down_proj")]))

    def layer(block: MiniMindBlock) -> Layer:
        part, mlp = block.self_attn, block.mlp
        networks = [mlp] if isinstance(mlp, FeedForward) else cast(Iterable[FeedForward], mlp.shared_experts)
        return Layer(
            join([(part, "q_proj"), (part, "k_proj"), (part, "v_proj")]),
            join([(part, "o_proj")]),
            (gain(block.input_layernorm), gain(block.post_attention_layernorm)),
            (gain(part.q_norm), gain(part.k_norm)) if isinstance(part.q_norm, RMSNorm) else None,
            [network(each) for each in networks],
            experts(mlp) if isinstance(mlp, MoEFeedForward) else None,
        )

    def experts(mixture: MoEFeedForward) -> Experts:
        names = ("gate_proj", "up_proj", "down_proj")
        return Experts(mixture.gate, *(stack([(expert, name) for expert in mixture.experts]) for name in names))

    def gain(norm: nn.Module) -> Tensor:
        return cast(RMSNorm, norm).weight.data

    layers = [layer(block) for block in cast(Iterable[MiniMindBlock], model.model.layers)]
    return Weights(model.model.embed_tokens.weight.data, layers, gain(model.model.norm), join([(model, "lm_head")]))


# What torch makes in inference mode can never be trained again, and weights outlive the mode.
@torch.inference_mode(False)
def lay_out(model: MiniMindForCausalLM, loops: bool = False) -> Weights:
    """A model's own weights, joined in place; where they already are, this costs next to nothing.

    Args:
        loops: as the loops of `row_products.py` read them, which know float32 on the CPU.
    """

    def join(places: Places) -> Matrix:
        rows = _together(places)
        if loops:
            return Rows(rows, rows.new_ones(len(rows)))
        return rows.t().data  # a compiled step would depend on what a view is a view of; .data is none

    with _LOCK:
        return gather(model, join, lambda places: _together(places).unflatten(0, (len(places), -1)).data)


_LOCK = threading.Lock()
# joined memory by its address, for as long as a parameter is part of it
_JOINED: WeakValueDictionary[int, torch.UntypedStorage] = WeakValueDictionary()


def _together(places: Places) -> Tensor:
    """The matrices of some linear maps with the same input as one, `[sum of R, C]`. They become pieces of it."""
    matrices = [cast(nn.Linear, getattr(part, name)).weight for part, name in places]
    first = matrices[0]
    if len(matrices) == 1 and first.is_contiguous():
        return first.data
    ends = list(accumulate([matrix.nbytes for matrix in matrices], initial=0))
    memory = _JOINED.get(first.data_ptr())
    if memory is None or any(
        not matrix.is_contiguous() or matrix.data_ptr() != memory.data_ptr() + start
        for matrix, start in zip(matrices, ends, strict=False)
    ):
        memory = torch.cat([matrix.data for matrix in matrices]).contiguous().untyped_storage()
        for matrix, start, end in zip(matrices, ends, ends[1:], strict=False):
            matrix.data = _rows_in(cast(torch.UntypedStorage, memory[start:end]), matrix, len(matrix))
        _JOINED[memory.data_ptr()] = memory
    return _rows_in(memory, first, sum(map(len, matrices)))


def _rows_in(memory: torch.UntypedStorage, like: Tensor, count: int) -> Tensor:
    """`[count, C]`, the rows in this memory, as wide as those of `like`."""
    width = like.shape[1]
    return like.data.new_empty(0).set_(memory, 0, (count, width), (width, 1))
