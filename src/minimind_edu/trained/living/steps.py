"""One token on its way through the living model: every tensor that a block makes of it, with the letters of its shape.

It is a decode step: the token is the last of its story, S = 1, and the keys and values of those before it are kept.
"""

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.attention import attention, repeat_kv
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.layer_cache import LayerCache
from minimind_edu.trained.living import heads, living_model


class Step(NamedTuple):
    """One tensor: what it is, the letters of its axes, and its numbers."""

    name: str
    letters: str  # a letter for each axis, as in "BSHD"
    numbers: Tensor


def sizes(config: MiniMindConfig, cached: int) -> dict[str, int]:
    """What the letters of the shapes are at a decode step of one text, with so many positions in the cache."""
    return {
        "B": 1,
        "S": 1,
        "T": cached + 1,
        "H": config.num_attention_heads,
        "K": config.num_key_value_heads,
        "D": config.head_dim,
        "E": config.hidden_size,
        "I": config.intermediate_size,
        "V": config.vocab_size,
    }


@torch.no_grad()
def last_token(story: str, layer: int) -> list[Step]:
    """The last token of a story in one block (0 is the first), and the logits with which the model ends."""
    model = living_model()
    core, ids = model.model, torch.from_numpy(world.encode(story))[None].long()  # [B, T]
    past = model(ids[:, :-1], use_cache=True).past_key_values
    assert past is not None
    start = past.length
    tables = core.freqs_cos[start : start + 1], core.freqs_sin[start : start + 1]  # [S, D] each
    x, steps = core.embed_tokens(ids[:, -1:]), []
    for index in range(len(core.layers)):
        inside = in_block(heads.block(model, index), x, tables, past.layers[index])
        x = inside[-1].numbers
        steps += inside if index == layer else []
    return [*steps, Step("logits", "BSV", model.lm_head(core.norm(x)))]


def in_block(block: MiniMindBlock, x: Tensor, tables: tuple[Tensor, Tensor], cache: LayerCache) -> list[Step]:
    """Every step of one block for one new token, x `[B, 1, E]`; its keys and values join the cache."""
    attend, feed = block.self_attn, cast(FeedForward, block.mlp)  # the living model is dense
    normed = block.input_layernorm(x)
    q, k, v = attend.project(normed, *tables)
    keys, values = cache.append(k, v)  # [B, S, K, D] -> [B, T, K, D]
    every = repeat_kv(keys, q.shape[2] // keys.shape[2])  # [B, T, K, D] -> [B, T, H, D]
    scores = torch.einsum("bshd,bthd->bhst", q, every) / q.shape[-1] ** 0.5
    mixed, weights = attention(q, keys, values, None)  # one new token: it sees all
    attended = attend.o_proj(mixed.flatten(2))  # [B, S, H, D] -> [B, S, H*D] -> [B, S, E]
    between = x + attended
    again = block.post_attention_layernorm(between)
    inner = F.silu(feed.gate_proj(again)) * feed.up_proj(again)  # [B, S, E] -> [B, S, I]
    fed = feed.down_proj(inner)
    steps = {
        "stream": ("BSE", x),
        "norm": ("BSE", normed),
        "q": ("BSHD", q),
        "k": ("BSKD", k),
        "v": ("BSKD", v),
        "cache": ("BTKD", keys),
        "scores": ("BHST", scores),
        "weights": ("BHST", weights),
        "mixed": ("BSHD", mixed),
        "attended": ("BSE", attended),
        "between": ("BSE", between),
        "norm again": ("BSE", again),
        "inner": ("BSI", inner),
        "fed": ("BSE", fed),
        "stream again": ("BSE", between + fed),
    }
    return [Step(name, *step) for name, step in steps.items()]
