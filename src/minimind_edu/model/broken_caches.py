"""Reading with a cache, right or with one of four bugs that raise no error.

offset     every call numbers its positions from 0
again      cached keys are rotated once more in every call
stale      the cache of an earlier text was not emptied: whoever begins a text passes it on
square     the mask of several new positions forgets the cached ones

The modules of the package would take neither wrong positions nor a wrong mask, so the blocks are written out here.
"""

from collections.abc import Iterable, Sequence
from typing import cast

import torch
from torch import Tensor

from minimind_edu.model.attention import attention
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.layer_cache import KeyValue
from minimind_edu.model.masks import causal_mask
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope import apply_rotary_pos_emb

BUGS = ("none", "offset", "again", "stale", "square")


def square_mask(new: int, total: int) -> Tensor:
    """Boolean `[new, total]`: the triangle begins in the upper left corner. A single token needs no mask."""
    mask = torch.ones(new, total, dtype=torch.bool)
    return mask.tril() if new > 1 else mask


def read(
    model: MiniMindForCausalLM,
    ids: Tensor,
    cache: Sequence[KeyValue] | None = None,
    bug: str = "none",
    weights: list[Tensor] | None = None,
) -> tuple[Tensor, list[KeyValue]]:
    """One call on `[B, S]` new ids, written out: logits `[B, S, V]`, and a pair `[B, T, K, D]` for each layer.

    Args:
        cache: what the call before returned, or None to begin a text. It is not changed.
        bug: one of BUGS. "stale" reads like "none": the bug is what its caller passes as `cache`.
        weights: a list to which each layer adds its attention weights `[B, H, S, T]`.

    Raises:
        ValueError: for another bug.
    """
    if bug not in BUGS:
        raise ValueError(f"bug must be one of {', '.join(BUGS)}, got {bug!r}")
    body, new = model.model, ids.shape[1]
    cached = 0 if cache is None else cache[0][0].shape[1]
    start = 0 if bug == "offset" else cached
    cos, sin = body.freqs_cos, body.freqs_sin
    mask = (square_mask if bug == "square" else causal_mask)(new, cached + new).to(ids.device)
    x, pairs = body.embed_tokens(ids), []  # [B, S] -> [B, S, E]
    for index, layer in enumerate(cast(Iterable[MiniMindBlock], body.layers)):
        rows = slice(start, start + new)
        q, k, v = layer.self_attn.project(layer.input_layernorm(x), cos[rows], sin[rows])
        if cache is not None:
            key, value = cache[index]
            if bug == "again":
                key, _ = apply_rotary_pos_emb(key, key, cos[:cached], sin[:cached])
            k, v = torch.cat([key, k], dim=1), torch.cat([value, v], dim=1)
        output, found = attention(q, k, v, mask)
        if weights is not None:
            weights.append(found)
        pairs.append((k, v))
        x = x + layer.self_attn.o_proj(output.flatten(2))
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return model.lm_head(body.norm(x)), pairs
