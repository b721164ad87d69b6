"""Attention with grouped key/value heads: every position reads from the positions before it.

    scores  = Q Kᵀ / sqrt(D)          before softmax, [B, H, S, T]
    weights = softmax(scores)         after softmax, rows sum to 1
    output  = weights V               [B, S, H, D], joined and projected

Shapes: B batch, S query positions, T key positions (past + S), H query heads, K key/value heads, G = H / K query heads
for each key/value head, D head_dim, E hidden_size. Tensors are `[B, S, H, D]` between the parts, as in MiniMind.

`attention` is written out and returns its weights; `fast_attention` is PyTorch's fused one on grouped queries, without
repeating keys and values. Both give the same numbers, and what a mask means is the same for both: True where a query
may look, "causal" for the keys up to its own position, None for all. Vaswani et al. 2017, arXiv 1706.03762; grouped
heads: Ainslie et al. 2023, arXiv 2305.13245. MiniMind: `model/model_minimind.py`, repeat_kv and class Attention.
"""

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.layer_cache import LayerCache
from minimind_edu.model.masks import causal_mask
from minimind_edu.model.norms import RMSNorm, in_float32
from minimind_edu.model.rope import apply_rotary_pos_emb
from minimind_edu.validation import values_are_known

Mask = Tensor | Literal["causal"] | None


def repeat_kv(x: Tensor, n_rep: int) -> Tensor:
    """Give every key/value head to its `n_rep` query heads: h1 h1 h1 h1 h2 h2 h2 h2.

    `[B, T, K, D]` -> `[B, T, K * n_rep, D]`. `expand` copies nothing, but the reshape after it cannot be a view (unless
    there is one head only): the result is n_rep times the memory.
    """
    if n_rep == 1:
        return x
    batch, length, heads, head_dim = x.shape
    x = x[:, :, :, None, :]  # [B, T, K, 1, D]
    x = x.expand(batch, length, heads, n_rep, head_dim)  # a view, stride 0 on the new axis
    return x.reshape(batch, length, heads * n_rep, head_dim)  # [B, T, K * n_rep, D]


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> None:
    """Broadcasting and fused kernels would accept some of what is wrong here, and compute something else."""
    fits = query.dim() == key.dim() == 4 and key.shape[:3] == value.shape[:3]
    same_batch = fits and query.shape[0] == key.shape[0]
    same_head_dim = fits and query.shape[3] == key.shape[3]
    if not (same_batch and same_head_dim) or key.shape[2] == 0 or query.shape[2] % key.shape[2]:
        raise ValueError(
            "attention needs queries [B, S, H, D], and keys and values [B, T, K, D] with H a multiple of K, got "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    if isinstance(mask, Tensor) and mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, True where a query may look, got {mask.dtype}; try `mask == 1`")
    if not isinstance(mask, Tensor | None) and mask != "causal":
        raise ValueError(f"mask must be a boolean tensor, 'causal', or None for every key, got {mask!r}")


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """Attention written out.

    Args:
        query: `[B, S, H, D]`.
        key, value: `[B, T, K, D]`; K must divide H.
        mask: boolean, True where a query may look, broadcastable to `[B, H, S, T]`; "causal": at the keys up to its own
            position, the queries being the last S of T; None: everywhere.

    Returns output `[B, S, H, D]` and weights `[B, H, S, T]`. A query that may look nowhere gets zeros, not NaN. Raises
    a ValueError if the shapes do not fit, or the mask is not boolean.
    """
    _check_shapes(query, key, value, mask)
    n_rep = query.shape[2] // key.shape[2]
    q = query.transpose(1, 2)  # [B, S, H, D] -> [B, H, S, D]
    k = repeat_kv(key, n_rep).transpose(1, 2)  # [B, T, K, D] -> [B, H, T, D]
    v = repeat_kv(value, n_rep).transpose(1, 2)
    # scaled before the product: in float16 large queries and keys would overflow before the scaling came
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # [B, H, S, T]
    # softmax of half-precision scores is computed in float32: its sum runs over many small terms
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if isinstance(mask, str):
        mask = causal_mask(query.shape[1], key.shape[1], query.device)
    if mask is None:
        weights = scores.softmax(-1)
    else:
        # a row of -inf has no softmax (0/0); zeros say what is meant: nothing was read
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).masked_fill(~mask, 0.0)
    weights = weights.to(query.dtype)
    return (weights @ v).transpose(1, 2), weights  # [B, H, S, D] -> [B, S, H, D]


def fast_attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask, dropout: float = 0.0) -> Tensor:
    """The same output by PyTorch's fused attention.

    With a single query there is nothing to mask, and the G query heads of a key/value head can stand where the query
    positions stand: one batched product reads each key once instead of G times.

    Arguments, shapes and errors as in `attention`; returns the output only.
    """
    _check_shapes(query, key, value, mask)
    batch, length, heads, head_dim = query.shape
    kv_heads = key.shape[2]
    k, v = key.transpose(1, 2), value.transpose(1, 2)  # [B, T, K, D] -> [B, K, T, D]
    # is_causal draws its diagonal from the upper left corner: with a past it would hide the past's end
    is_causal = isinstance(mask, str) and length == key.shape[1]
    if isinstance(mask, str):
        mask = None if is_causal or length == 1 else causal_mask(length, key.shape[1], query.device)
    if length == 1:
        q = query.view(batch, kv_heads, heads // kv_heads, head_dim)  # [B, 1, H, D] -> [B, K, G, D]
        if mask is not None and mask.dim() > 2 and mask.shape[-3] > 1:  # of each head by itself
            mask = mask.unflatten(-3, (kv_heads, -1)).squeeze(-2)  # [B, H, 1, T] -> [B, K, G, T]
        output = F.scaled_dot_product_attention(q, k, v, mask, dropout)  # [B, K, G, D]
        return _showing_nan(output.reshape(batch, 1, heads, -1), query, key)
    q = query.transpose(1, 2)  # [B, H, S, D]
    grouped = heads != kv_heads
    output = F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=is_causal, enable_gqa=grouped)
    return _showing_nan(output.transpose(1, 2), query, key)  # [B, H, S, D] -> [B, S, H, D]


def _showing_nan(output: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The output, NaN where a query's score with the key of its own position is, as in `attention`.

    Where all scores of a query are NaN, torch's kernel for the CPU gives zeros, as to one that may look nowhere. By the
    causal rule and by `visible_keys` every position looks at itself, so its own score tells. An output without a zero
    hides nothing, and to ask for one is what every step can afford.
    """
    length, kv_heads = query.shape[1], key.shape[2]
    if query.device.type != "cpu" or length > key.shape[1] or (values_are_known(output) and bool(output.all())):
        return output
    own_key = key[:, -length:, :, None]  # [B, S, K, 1, D]
    products = in_float32(query).unflatten(2, (kv_heads, -1)) * own_key  # in half precision they might overflow
    return output.masked_fill(products.sum(-1).isnan().flatten(2)[..., None], math.nan)  # [B, S, K, G] -> [B, S, H, 1]


class Attention(nn.Module):
    """Project to queries, keys and values, rotate queries and keys, attend, join the heads, project back.

    QK-norm, where the config has it (MiniMind3), normalizes each head's query and key before RoPE.

    State-dict keys: q_proj, k_proj, v_proj, o_proj, and q_norm, k_norm with QK-norm. No biases.
    """

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim, self.dropout, hidden_size = config.head_dim, config.dropout, config.hidden_size
        self.q_proj = nn.Linear(hidden_size, self.num_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, self.num_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, self.num_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.num_heads * self.head_dim, hidden_size, bias=False)
        if config.use_qk_norm:
            self.q_norm = RMSNorm(self.head_dim, config.rms_norm_eps)
            self.k_norm = RMSNorm(self.head_dim, config.rms_norm_eps)
        else:
            self.q_norm = self.k_norm = nn.Identity()
        self.resid_dropout = nn.Dropout(config.dropout)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries `[B, S, H, D]`, keys and values `[B, S, K, D]`; queries and keys rotated for their positions."""
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.num_heads, self.head_dim)  # [B, S, H*D] -> [B, S, H, D]
        k = self.k_proj(x).view(batch, length, self.num_kv_heads, self.head_dim)  # -> [B, S, K, D]
        v = self.v_proj(x).view(batch, length, self.num_kv_heads, self.head_dim)
        q, k = apply_rotary_pos_emb(self.q_norm(q), self.k_norm(k), cos, sin)
        return q, k, v

    def forward(
        self,
        x: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        cache: LayerCache | None = None,
        mask: Tensor | None = None,
        return_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend: `[B, S, E]` in, the same out, and the weights `[B, H, S, T]` or None.

        Args:
            position_embeddings: cos and sin, `[S, D]` each, for exactly these S positions.
            cache: where this layer's keys and values are kept; None: there is no past and none is wanted.
            mask: boolean `[B, 1, S, T]`, True where a query may look, the causal rule included; None: causal only.
            return_weights: also return the attention weights; takes the slow, written-out way, without dropout.
        """
        q, k, v = self.project(x, *position_embeddings)
        if cache is not None:
            k, v = cache.append(k, v)  # [B, S, K, D] -> [B, T, K, D]
        visible = "causal" if mask is None else mask
        if return_weights:
            output, weights = attention(q, k, v, visible)
        else:
            output, weights = fast_attention(q, k, v, visible, self.dropout if self.training else 0.0), None
        output = self.o_proj(output.flatten(2))  # [B, S, H, D] -> [B, S, H*D] -> [B, S, E]
        return self.resid_dropout(output), weights
