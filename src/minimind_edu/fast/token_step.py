"""The model's forward, written once more for one token: the same numbers with as few calls as possible.

    token -> embedding -> L times (attend to the buffers, feed forward) -> norm -> logits

What makes it fast:
    - queries, keys and values are one product, gate and up another, and each matrix is read as it lies in memory;
    - RoPE rotates all query and key heads at once;
    - keys and values are written into buffers in place, and only the part that is filled is read;
    - nothing is checked;
    - called as it is, the residual is added inside the product that ends a part;
    - compiled, products have loops of their own: those of `row_products.cpp`, or what torch.compile makes of a sum.

Left out: dropout, labels, hidden states, prompts. `decoding.py` calls it as it is or compiled, and keeps to the model
where it does not apply.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.config import MiniMindConfig
from minimind_edu.fast.layout import Experts, Layer, Matrix, Weights
from minimind_edu.fast.rows import Rows
from minimind_edu.model import MiniMindForCausalLM


def token_step(
    model: MiniMindForCausalLM,
    weights: Weights,
    token: Tensor,
    positions: tuple[Tensor, Tensor],
    end: int,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    mask: Tensor | None = None,
) -> Tensor:
    """Read one token in each row, write its keys and values into the buffers, return its logits.

    Args:
        model: gives its sizes; with mixtures of experts the step reads a single row.
        weights: the model's, as `lay_out` gives them.
        token: `[B, 1]` ids.
        positions: cos and sin of the token's position, `[1, D]` each.
        end: T, the positions held once this token is read; it stands at T - 1. What lies behind it in the buffers is
            never read.
        keys, values: for each layer the buffer, `[B, capacity, K, D]`.
        mask: boolean, `[B, 1, 1, T]`; False on padding. None: none.

    Returns:
        `[B, 1, V]`.
    """
    config = model.config
    eps, pre_norm = config.rms_norm_eps, config.norm_placement == "pre"
    cos, sin = positions
    half = config.head_dim // 2
    turn = cos, torch.cat([-sin[:, :half], sin[:, half:]], dim=-1)  # the sign of rotate_half, on the table
    x = _look_up(weights.embedding, token[:, 0])  # [B] -> [B, E]
    for layer, key, value in zip(weights.layers, keys, values, strict=True):
        before_attention, before_feeding = layer.gains
        normed = _norm(x, before_attention, eps) if pre_norm else x
        attended = _attend(config, layer, normed, turn, end, key, value, mask)
        x = _add_product(x, attended, layer.out)  # [B, H*D] -> [B, E]
        x = x if pre_norm else _norm(x, before_attention, eps)
        x = _feed(layer, x, _norm(x, before_feeding, eps) if pre_norm else x)
        x = x if pre_norm else _norm(x, before_feeding, eps)
    return _product(_norm(x, weights.gain, eps), weights.output)[:, None]  # [B, E] -> [B, 1, V]


def _look_up(embedding: Matrix, ids: Tensor) -> Tensor:
    return embedding.at(ids).restored() if isinstance(embedding, Rows) else F.embedding(ids, embedding)


def _has_own_loops(x: Tensor) -> bool:
    """Whether torch.compile makes loops of a product. Several rows share what was read, which is what the library's
    matrix product is made for, and GPUs have a routine of their own for one."""
    return torch.compiler.is_compiling() and len(x) == 1 and not x.is_cuda


def _halves(x: Tensor, weight: Matrix) -> Sequence[Tensor]:
    """`[B, in]` x `[in, out]` -> 2 x `[B, out/2]`.

    Compiled, one row is multiplied as what it is, a sum for each row of the weight as stored: a loop that reads the
    weight once and in the order of memory. It reads both halves at once, because a processor that waits for memory in
    two places gets more of it.
    """
    if isinstance(weight, Rows):
        return weight.times(x).chunk(2, dim=-1)
    if _has_own_loops(x):
        return [(half * x).sum(-1)[None] for half in weight.t().chunk(2)]  # [out/2, in] * [1, in]
    return torch.mm(x, weight).chunk(2, dim=-1)


def _product(x: Tensor, weight: Matrix) -> Tensor:
    """`[B, in]` x `[in, out]` -> `[B, out]`."""
    if isinstance(weight, Rows):
        return weight.times(x)
    return torch.cat(list(_halves(x, weight)), dim=-1) if _has_own_loops(x) else torch.mm(x, weight)


def _add_product(residual: Tensor, x: Tensor, weight: Matrix) -> Tensor:
    """`residual + x @ weight`, `[B, out]`."""
    if isinstance(weight, Rows):
        return weight.times(x, residual)
    return residual + _product(x, weight) if _has_own_loops(x) else torch.addmm(residual, x, weight)


def _norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x, gain.shape, gain, eps)


def _attend(
    config: MiniMindConfig,
    layer: Layer,
    x: Tensor,
    turn: tuple[Tensor, Tensor],
    end: int,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> Tensor:
    """`[B, E]` -> `[B, H*D]`, the heads' outputs side by side."""
    heads, kv_heads, head_dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    qkv = _product(x, layer.qkv).view(-1, heads + 2 * kv_heads, head_dim)  # [B, E] -> [B, H + 2K, D]
    qk, v = qkv[:, : heads + kv_heads], qkv[:, heads + kv_heads :]
    if layer.head_gains is not None:
        q_gain, k_gain = layer.head_gains
        normed = _norm(qk[:, :heads], q_gain, config.rms_norm_eps), _norm(qk[:, heads:], k_gain, config.rms_norm_eps)
        qk = torch.cat(normed, dim=1)
    cos, sin = turn
    qk = (qk * cos + qk.roll(head_dim // 2, -1) * sin).to(x.dtype)
    k, v = _remember(key, qk[:, heads:], end), _remember(value, v, end)  # [B, K, D] -> [B, T, K, D]
    # the query heads of a group stand where several queries would, so each key is read once for the group
    grouped = qk[:, :heads].view(-1, kv_heads, heads // kv_heads, head_dim)  # [B, H, D] -> [B, K, G, D]
    output = F.scaled_dot_product_attention(grouped, k.transpose(1, 2), v.transpose(1, 2), mask)
    return output.reshape(len(x), heads * head_dim)


def _remember(buffer: Tensor, new: Tensor, end: int) -> Tensor:
    """Write the new position into the buffer; return the part to read."""
    buffer[:, end - 1 : end] = new[:, None]  # a slice, for a compiler takes an index to be constant
    return buffer[:, :end]


def _feed(layer: Layer, x: Tensor, normed: Tensor) -> Tensor:
    """x and what the feed-forward part adds to it, `[B, E]`."""
    for gate_up, down in layer.networks:
        gate, up = _halves(normed, gate_up)  # [B, E] -> 2 x [B, I]
        x = _add_product(x, F.silu(gate) * up, down)  # [B, I] -> [B, E]
    return x if layer.experts is None else x + _mixed(layer.experts, normed)


def _mixed(experts: Experts, x: Tensor) -> Tensor:
    """The weighted outputs of the chosen experts, for a single row `[1, E]`."""
    routed = experts.router(x[:, None])
    chosen = routed.experts[0]  # [k]
    gated = F.silu(_products(experts.gate, chosen, x)) * _products(experts.up, chosen, x)  # [1, E] -> [k, I]
    return routed.weights @ _products(experts.down, chosen, gated)  # [1, k] x [k, E] -> [1, E]


def _products(stack: Matrix, chosen: Tensor, x: Tensor) -> Tensor:
    """The chosen of the matrices `[N, out, in]`, each times its vector of `[k, in]`, or all times `[1, in]`."""
    if torch.compiler.is_compiling():
        # The same shapes whichever are chosen, so the graph need not know. It is no copy: compiled, the loops of the
        # sum read the stack at the chosen places.
        if isinstance(stack, Rows):
            rows = stack.at(chosen)
            return (rows.values.float() * x[:, None]).sum(-1) * rows.scales
        return (stack[chosen] * x[:, None]).sum(-1)
    pairs = list(zip(chosen.tolist(), x.expand(len(chosen), -1), strict=True))
    if isinstance(stack, Rows):
        return torch.cat([stack.at(index).times(own[None]) for index, own in pairs])
    return torch.stack([torch.mv(stack[index], own) for index, own in pairs])
