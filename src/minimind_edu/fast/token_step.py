"""The model's forward, written once more for one token: the same numbers, in the form that compiles best.

    token -> embedding -> L times (attend to the buffers, feed forward) -> norm -> logits

What makes it fast, once torch.compile has made one function of it:
    - a product with one vector is a sum over each row of the weight, a plain loop in the order of memory;
    - the weights stay separate, as the model has them: joined matrices would first have to be copied;
    - keys and values are written into buffers in place, and only the part that is filled is read;
    - no Python, no check and no allocation between the operations.

Left out: dropout, labels, hidden states, prompts. `compiled_steps.py` compiles it, and `decoding.py` keeps to the model
where it does not apply. Uncompiled it gives the same numbers, slowly, which is how most tests call it.
"""

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.attention import Attention
from minimind_edu.block import MiniMindBlock
from minimind_edu.fast.rows import Rows
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward
from minimind_edu.rope import apply_rotary_pos_emb

Stack = tuple[Tensor | Rows, Tensor | Rows, Tensor | Rows]  # all experts' gate, up and down matrices
Stacks = Sequence[Stack | None]  # one for each layer, None in a dense one


def linear(weight: Tensor | Rows, x: Tensor) -> Tensor:
    """`[B, 1, in]` -> `[B, 1, out]`.

    On a CPU one row is multiplied as what it is, a sum for each row of the weight: compiled, a loop that reads the
    weight once and in the order of memory. It reads two halves at once, because a processor that waits for memory in
    two places gets more of it. Several rows share what was read, which is what a matrix product is made for, and GPUs
    have a routine of their own for one.
    """
    if isinstance(weight, Rows):
        return weight.times(x)
    if len(x) == 1 and not x.is_cuda:
        halves = [(half * x).sum(-1) for half in weight.chunk(2)]  # [out/2, in] * [1, 1, in]
        return torch.cat(halves, -1)[:, None]  # 2 x [1, out/2] -> [1, 1, out]
    return F.linear(x, weight)


def token_step(
    model: MiniMindForCausalLM,
    stacks: Stacks,
    token: Tensor,
    positions: tuple[Tensor, Tensor],
    end: int | Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    mask: Tensor | None = None,
) -> Tensor:
    """Read one token in each row, write its keys and values into the buffers, return its logits.

    Args:
        model: one with mixtures of experts reads a single row.
        stacks: for each layer its experts as `stack_experts` gives them; None in a dense layer.
        token: `[B, 1]` ids.
        positions: cos and sin of the token's position, `[1, D]` each.
        end: T, the positions held once this token is read; it stands at T - 1. As an integer it cuts the buffers: what
            is not yet filled is never read. As a tensor `[1]` every shape and address stays fixed, which CUDA graphs
            need; the whole buffers are read and what is not yet filled is masked.
        keys, values: for each layer the buffer, `[B, capacity, K, D]`.
        mask: boolean, `[B, 1, 1, T]`, or `[B, 1, 1, capacity]` where end is a tensor; False on padding. None: none.

    Returns:
        `[B, 1, V]`.
    """
    body = model.model
    if isinstance(end, Tensor):
        filled = torch.arange(keys[0].shape[1], device=end.device).view(1, 1, 1, -1) < end
        mask = filled if mask is None else mask & filled
    x = body.embed_tokens(token)  # [B, 1] -> [B, 1, E]
    blocks = cast(Sequence[MiniMindBlock], body.layers)
    for block, stack, key, value in zip(blocks, stacks, keys, values, strict=True):
        if block.pre_norm:
            normed = block.input_layernorm(x)
            x = x + _attend(block.self_attn, normed, positions, end, key, value, mask)
            x = x + _feed(block.mlp, stack, block.post_attention_layernorm(x))
        else:
            attended = _attend(block.self_attn, x, positions, end, key, value, mask)
            x = block.input_layernorm(x + attended)
            x = block.post_attention_layernorm(x + _feed(block.mlp, stack, x))
    return linear(model.lm_head.weight, body.norm(x))  # [B, 1, E] -> [B, 1, V]


def _attend(
    part: Attention,
    x: Tensor,
    positions: tuple[Tensor, Tensor],
    end: int | Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> Tensor:
    batch, heads, kv_heads, head_dim = x.shape[0], part.num_heads, part.num_kv_heads, part.head_dim
    q = linear(part.q_proj.weight, x).view(batch, 1, heads, head_dim)
    k = linear(part.k_proj.weight, x).view(batch, 1, kv_heads, head_dim)
    v = linear(part.v_proj.weight, x).view(batch, 1, kv_heads, head_dim)
    q, k = apply_rotary_pos_emb(part.q_norm(q), part.k_norm(k), *positions)
    k, v = _remember(key, k, end), _remember(value, v, end)  # [B, 1, K, D] -> [B, T, K, D]
    # the query heads of a group stand where several queries would, so each key is read once for the group
    grouped = q.view(batch, kv_heads, heads // kv_heads, head_dim)  # [B, 1, H, D] -> [B, K, G, D]
    output = F.scaled_dot_product_attention(grouped, k.transpose(1, 2), v.transpose(1, 2), mask)
    return linear(part.o_proj.weight, output.reshape(batch, 1, heads * head_dim))


def _remember(buffer: Tensor, new: Tensor, end: int | Tensor) -> Tensor:
    """Write the new position into the buffer; return the part to read."""
    if isinstance(end, Tensor):
        return buffer.index_copy_(1, end - 1, new)
    buffer[:, end - 1 : end] = new
    return buffer[:, :end]


def _feed(part: FeedForward | MoEFeedForward, stack: Stack | None, x: Tensor) -> Tensor:
    if isinstance(part, FeedForward) or stack is None:
        return _swiglu(cast(FeedForward, part), x)
    routed = part.gate(x)
    # Taking the chosen experts out of the stack has the same shape whichever they are, so the graph need not know. It
    # is no copy: compiled, the loops below read the stack at the chosen places.
    gate, up, down = (_chosen(matrices, routed.experts[0]) for matrices in stack)  # [N, ...] -> [k, ...]
    gated = F.silu((gate * x).sum(-1)) * (up * x).sum(-1)  # [k, I, E] * [1, 1, E] -> [k, I]
    outputs = (down * gated[:, None]).sum(-1)  # [k, E, I] * [k, 1, I] -> [k, E]
    output = (routed.weights[0, :, None] * outputs).sum(0).view_as(x)  # [k, E] -> [1, 1, E]
    for expert in cast(Sequence[FeedForward], part.shared_experts):
        output = output + _swiglu(expert, x)
    return output


def _chosen(matrices: Tensor | Rows, experts: Tensor) -> Tensor:
    """`[N, ...]` -> `[k, ...]`."""
    if isinstance(matrices, Rows):
        return Rows(matrices.values[experts], matrices.scales[experts], matrices.compiled).restored()
    return matrices[experts]


def _swiglu(part: FeedForward, x: Tensor) -> Tensor:
    gated = F.silu(linear(part.gate_proj.weight, x)) * linear(part.up_proj.weight, x)
    return linear(part.down_proj.weight, gated)
