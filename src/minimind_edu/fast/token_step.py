"""The model's forward, written once more for one token: the same numbers with as few calls as possible.

    token -> embedding -> L times (attend to the buffers, feed forward) -> norm -> logits

What makes it faster than the model: RoPE rotates all query and key heads at once, the residual is added inside the
product that ends a part, keys and values are written into buffers in place, and nothing is checked. It is what there is
where `step.cpp` cannot be: without a compiler, on a GPU, in other dtypes.

Left out: dropout, labels, hidden states, prompts. `decoding.py` keeps to the model where it does not apply.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.attention import Attention
from minimind_edu.block import MiniMindBlock
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward
from minimind_edu.norms import RMSNorm


def token_step(
    model: MiniMindForCausalLM,
    token: Tensor,
    end: int,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    mask: Tensor | None = None,
) -> Tensor:
    """Read one token in each row, write its keys and values into the buffers, return its logits.

    Args:
        model: with mixtures of experts the step reads a single row.
        token: `[B, 1]` ids.
        end: T, the positions held once this token is read; it stands at T - 1. What lies behind it in the buffers is
            never read.
        keys, values: for each layer the buffer, `[B, capacity, K, D]`.
        mask: boolean, `[B, T]`; False on padding. None: none.

    Returns:
        `[B, 1, V]`.
    """
    config, body = model.config, model.model
    eps, pre_norm = config.rms_norm_eps, config.norm_placement == "pre"
    cos, sin = body.freqs_cos[end - 1 : end], body.freqs_sin[end - 1 : end]  # [1, D] each
    half = config.head_dim // 2
    turn = cos, torch.cat([-sin[:, :half], sin[:, half:]], dim=-1)  # the sign of rotate_half, on the table
    mask = None if mask is None else mask[:, None, None]  # [B, T] -> [B, 1, 1, T]
    x = F.embedding(token[:, 0], body.embed_tokens.weight)  # [B] -> [B, E]
    layers = cast(Iterable[MiniMindBlock], body.layers)
    for layer, key, value in zip(layers, keys, values, strict=True):
        before_attention, before_feeding = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
        normed = _norm(x, before_attention, eps) if pre_norm else x
        attended = _attend(layer.self_attn, normed, turn, end, key, value, mask)
        x = _add_product(x, attended, layer.self_attn.o_proj)  # [B, H*D] -> [B, E]
        x = x if pre_norm else _norm(x, before_attention, eps)
        x = _feed(layer.mlp, x, _norm(x, before_feeding, eps) if pre_norm else x)
        x = x if pre_norm else _norm(x, before_feeding, eps)
    return F.linear(_norm(x, body.norm.weight, eps), model.lm_head.weight)[:, None]  # [B, E] -> [B, 1, V]


def _norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return F.rms_norm(x, gain.shape, gain, eps)


def _add_product(residual: Tensor, x: Tensor, part: nn.Linear) -> Tensor:
    return torch.addmm(residual, x, part.weight.t())


def _attend(
    part: Attention,
    x: Tensor,
    turn: tuple[Tensor, Tensor],
    end: int,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> Tensor:
    """`[B, E]` -> `[B, H*D]`, the heads' outputs side by side."""
    heads, kv_heads, head_dim = part.num_heads, part.num_kv_heads, part.head_dim
    q, k, v = (
        F.linear(x, it.weight).view(-1, count, head_dim)
        for it, count in ((part.q_proj, heads), (part.k_proj, kv_heads), (part.v_proj, kv_heads))
    )
    if isinstance(part.q_norm, RMSNorm) and isinstance(part.k_norm, RMSNorm):
        q, k = _norm(q, part.q_norm.weight, part.q_norm.eps), _norm(k, part.k_norm.weight, part.k_norm.eps)
    cos, sin = turn
    qk = torch.cat([q, k], dim=1)  # [B, H + K, D]
    qk = (qk * cos + qk.roll(head_dim // 2, -1) * sin).to(x.dtype)
    key[:, end - 1], value[:, end - 1] = qk[:, heads:], v
    k, v = key[:, :end], value[:, :end]  # [B, T, K, D]
    # the query heads of a group stand where several queries would, so each key is read once for the group
    grouped = qk[:, :heads].view(-1, kv_heads, heads // kv_heads, head_dim)  # [B, H, D] -> [B, K, G, D]
    output = F.scaled_dot_product_attention(grouped, k.transpose(1, 2), v.transpose(1, 2), mask)
    return output.reshape(len(x), heads * head_dim)


def _feed(part: nn.Module, x: Tensor, normed: Tensor) -> Tensor:
    """x and what the feed-forward part adds to it, `[B, E]`."""
    if isinstance(part, FeedForward):
        return _add_product(x, _gated(part, normed), part.down_proj)  # [B, I] -> [B, E]
    part = cast(MoEFeedForward, part)
    routed = part.gate(normed[:, None])  # of the single row
    for index, weight in zip(routed.experts[0].tolist(), routed.weights[0], strict=True):
        expert = cast(FeedForward, part.experts[index])
        x = _add_product(x, weight * _gated(expert, normed), expert.down_proj)
    for expert in cast(Iterable[FeedForward], part.shared_experts):
        x = _add_product(x, _gated(expert, normed), expert.down_proj)
    return x


def _gated(part: FeedForward, x: Tensor) -> Tensor:
    """`[B, E]` -> `[B, I]`."""
    return F.silu(F.linear(x, part.gate_proj.weight)) * F.linear(x, part.up_proj.weight)
