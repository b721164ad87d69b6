"""The notes' way of decoding, kept to be compared with: torch.cat for the cache, repeat_kv before attention.

Both copy the whole past at every step, first once, then once for every query head. All else (weights, norms, RoPE,
feed-forward, fused attention, logits of the last position only) is as in the package, so that a difference in speed
has no other cause.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.model.attention import Attention, repeat_kv
from minimind_edu.model.for_comparison import CatCache
from minimind_edu.model.model import MiniMindForCausalLM


def attend(layer: Attention, x: Tensor, positions: tuple[Tensor, Tensor], cache: CatCache) -> Tensor:
    """One layer's attention, `[B, S, E]` in and out; several positions only while the cache is empty."""
    query, key, value = layer.project(x, *positions)
    key, value = cache.append(key, value)  # [B, S, K, D] -> [B, T, K, D]
    n_rep = layer.num_heads // layer.num_kv_heads
    q, k, v = (
        heads.transpose(1, 2)  # [B, T, H, D] -> [B, H, T, D]
        for heads in (query, repeat_kv(key, n_rep), repeat_kv(value, n_rep))
    )
    output = F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
    return layer.o_proj(output.transpose(1, 2).flatten(2))  # [B, H, S, D] -> [B, S, E]


@torch.no_grad()
def next_logits(model: MiniMindForCausalLM, ids: Tensor, caches: list[CatCache]) -> Tensor:
    """Logits of the last position, `[B, V]`, after reading `ids` `[B, S]`; the caches, one a layer, take them in."""
    decoder = model.model
    start, end = caches[0].length, caches[0].length + ids.shape[1]
    positions = decoder.freqs_cos[start:end], decoder.freqs_sin[start:end]
    x = decoder.embed_tokens(ids)
    for block, cache in zip(decoder.layers, caches, strict=True):
        x = x + attend(block.self_attn, block.input_layernorm(x), positions, cache)
        x = x + block.mlp(block.post_attention_layernorm(x))
    return model.lm_head(decoder.norm(x[:, -1]))


def stream(model: MiniMindForCausalLM, ids: Tensor, new_tokens: int) -> Iterator[Tensor]:
    """Continue greedily, `[B]` token ids at a time."""
    caches = [CatCache() for _ in model.model.layers]
    for _ in range(new_tokens):
        token = next_logits(model, ids, caches).argmax(-1)
        yield token
        ids = token[:, None]
