"""References for the exercises on grouped heads, and the usual wrong answers with the hint that leads out of each.

Almost all of them give the right shape; a repeated head in the wrong place raises no error anywhere.
"""

import math

import torch
from torch import Tensor

from minimind_edu.attention import attention, repeat_kv, repeat_kv_tiled
from minimind_edu.checks._report import Mistake
from minimind_edu.config import MiniMindConfig

# ---- which key/value head does a query head read?


def kv_head_of(query_head: int, num_heads: int, num_kv_heads: int) -> int:
    """The key/value head of a query head: neighbors share."""
    return query_head // (num_heads // num_kv_heads)


KV_HEAD_MISTAKES = (
    Mistake(
        lambda query, heads, kv: query % kv,
        "that is the order of x.repeat, h0 h1 h0 h1: in repeat_kv neighboring queries share a head",
    ),
    Mistake(
        lambda query, heads, kv: query // kv,
        "you divided by the number of key/value heads; what counts is how many queries share one, the group size "
        "num_heads // num_kv_heads",
    ),
    Mistake(
        lambda query, heads, kv: query % (heads // kv),
        "the remainder is the query's place inside its group; the group itself is the quotient, //",
    ),
    Mistake(
        lambda query, heads, kv: query, "that holds in MHA only: here fewer key/value heads than query heads are kept"
    ),
    Mistake(lambda query, heads, kv: query / (heads // kv), "a head has a whole number: use // instead of /"),
    Mistake(
        lambda query, heads, kv: kv - 1 - query // (heads // kv),
        "you count the key/value heads backwards: query 0 reads head 0",
    ),
    Mistake(lambda query, heads, kv: query // (heads // kv) + 1, "heads are counted from 0"),
)

# ---- repeat_kv

REPEAT_MISTAKES = (
    Mistake(
        repeat_kv_tiled,
        "your order is h0 h1 h0 h1, that of x.repeat or of a new axis before the heads; every head's copies must stand "
        "side by side, h0 h0 h1 h1: put the new axis behind the heads, x[:, :, :, None]",
    ),
    Mistake(
        lambda x, n: x.repeat_interleave(n, dim=1), "you repeat positions (dim 1): the heads are dim 2 of [B, T, K, D]"
    ),
    Mistake(
        lambda x, n: x.repeat_interleave(n, dim=-1),
        "you repeat channels (the last dim): the heads are dim 2 of [B, T, K, D]",
    ),
    Mistake(
        lambda x, n: x[:, :, :, None].expand(-1, -1, -1, n, -1),
        "the fifth axis is still there: merge heads and copies with reshape",
    ),
    Mistake(
        lambda x, n: repeat_kv(x, n).transpose(1, 2),
        "the result is [B, T, K * n_rep, D]: leave the transpose to attention",
    ),
    Mistake(
        lambda x, n: x.repeat_interleave(x.shape[2], dim=2),
        "n_rep is how many copies each head gets, not how many heads there are",
    ),
)

# ---- how many weights does an attention layer have?


def attention_parameters(config: MiniMindConfig) -> int:
    """Weights of the four projections of one layer, without the norms of queries and keys."""
    heads = 2 * config.num_attention_heads + 2 * config.num_key_value_heads
    return config.hidden_size * config.head_dim * heads


PARAMETER_MISTAKES = (
    Mistake(
        lambda c: c.hidden_size * c.head_dim * 4 * c.num_attention_heads,
        "this is MHA: k_proj and v_proj have only num_key_value_heads * head_dim outputs",
    ),
    Mistake(
        lambda c: c.head_dim * (2 * c.num_attention_heads + 2 * c.num_key_value_heads),
        "these are widths: every output of a projection has hidden_size weights (for o_proj, every input)",
    ),
    Mistake(
        lambda c: c.hidden_size * c.head_dim * (c.num_attention_heads + 2 * c.num_key_value_heads),
        "o_proj is missing: it leads from num_heads * head_dim back to hidden_size",
    ),
    Mistake(
        lambda c: c.hidden_size * c.head_dim * (2 * c.num_attention_heads + c.num_key_value_heads),
        "keys and values have a projection each",
    ),
    Mistake(
        lambda c: (
            attention_parameters(c) + c.head_dim * (c.num_attention_heads + 2 * c.num_key_value_heads) + c.hidden_size
        ),
        "you count biases: MiniMind's projections have bias=False",
    ),
    Mistake(
        lambda c: (
            c.hidden_size * c.head_dim * 2 * (c.num_attention_heads + c.num_attention_heads // c.num_key_value_heads)
        ),
        "n_rep is how many queries share a key/value head; k_proj and v_proj make num_key_value_heads heads",
    ),
    Mistake(
        lambda c: (
            c.hidden_size
            * (c.hidden_size // c.num_attention_heads)
            * 2
            * (c.num_attention_heads + c.num_key_value_heads)
        ),
        "head_dim need not be hidden_size // num_heads: take config.head_dim",
    ),
    Mistake(lambda c: attention_parameters(c) * c.num_hidden_layers, "one layer is asked for, you counted all of them"),
)

# ---- attention on grouped queries


def grouped_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The reference, which does repeat: what an attempt must equal. `[B, S, H, D]`."""
    return attention(query, key, value)[0]


def _grouped(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None, softmax: str = "btkgs", tiled: bool = False
) -> Tensor:
    batch, length, heads, dim = query.shape
    kv_heads = key.shape[2]
    if tiled:
        groups = query.view(batch, length, heads // kv_heads, kv_heads, dim).transpose(2, 3)
    else:
        groups = query.view(batch, length, kv_heads, heads // kv_heads, dim)
    scores = torch.einsum("bskgd,btkd->bkgst", groups, key) * (scale or 1 / math.sqrt(dim))
    weights = {"keys": scores.softmax(-1), "queries": scores.softmax(-2), "group": scores.softmax(2), "none": scores}[
        softmax
    ]
    output = torch.einsum("bkgst,btkd->bskgd", weights, value)
    if tiled:
        output = output.transpose(2, 3)
    return output.reshape(batch, length, heads, dim)


GROUPED_MISTAKES = (
    Mistake(
        lambda q, k, v: _grouped(q, k, v, softmax="keys", tiled=True),
        "the groups are cut as [G, K]: neighboring queries share a head, so the heads' axis splits into [K, G]",
    ),
    Mistake(
        lambda q, k, v: _grouped(q, k, v, softmax="none"),
        "the softmax between scores and values is missing (as in the notes' line output = scores @ xv)",
    ),
    Mistake(lambda q, k, v: _grouped(q, k, v, scale=1.0, softmax="keys"), "the scores are not divided by sqrt(D)"),
    Mistake(
        lambda q, k, v: _grouped(q, k, v, scale=(q.shape[2] * q.shape[3]) ** -0.5, softmax="keys"),
        "the scores are divided by the root of the whole width; it is sqrt(D), of one head",
    ),
    Mistake(
        lambda q, k, v: _grouped(q, k, v, softmax="queries"),
        "the softmax runs over the queries: every query shares out its weights over the keys, the last axis",
    ),
    Mistake(
        lambda q, k, v: _grouped(q, k, v, softmax="group"),
        "the softmax runs over the queries of a group: it belongs on the axis of the keys",
    ),
    Mistake(
        lambda q, k, v: grouped_attention(q, k, v).transpose(1, 2),
        "the result must stand as [B, S, H, D]: turn heads and positions back",
    ),
)

# ---- from many key/value heads to few


def pool_heads(weight: Tensor, num_heads: int, num_kv_heads: int) -> Tensor:
    """`[H*D, E]` -> `[K*D, E]`: the mean of each group of neighboring heads, channel by channel."""
    groups = weight.view(num_kv_heads, num_heads // num_kv_heads, -1, weight.shape[1])
    return groups.mean(1).flatten(0, 1)


def _head_blocks(weight: Tensor, heads: int) -> Tensor:
    return weight.view(heads, -1, weight.shape[1])  # [H, D, E]


POOL_MISTAKES = (
    Mistake(
        lambda w, heads, kv: w.view(heads // kv, kv, -1, w.shape[1]).mean(0).reshape(-1, w.shape[1]),
        "you average heads that lie num_kv_heads apart: a group is neighbors, so split the heads' axis into [K, G]",
    ),
    Mistake(
        lambda w, heads, kv: w.view(kv, heads // kv, -1, w.shape[1]).sum(1).flatten(0, 1),
        "that is the sum of each group; the mean keeps the size of the keys",
    ),
    Mistake(
        lambda w, heads, kv: w[: w.shape[0] // heads * kv],
        "you keep the first heads and drop the others: every head of a group must count",
    ),
    Mistake(
        lambda w, heads, kv: _head_blocks(w, heads)[:: heads // kv].flatten(0, 1),
        "you keep the first head of every group: average all of the group",
    ),
    Mistake(
        lambda w, heads, kv: w.view(-1, heads // kv, w.shape[1]).mean(1),
        "you average neighboring rows, which are channels of one head: separate heads and channels first, "
        "weight.view(K, G, D, E)",
    ),
    Mistake(
        lambda w, heads, kv: _head_blocks(w, heads).mean(0).repeat(kv, 1),
        "you average all heads together: that is MQA; every group has a mean of its own",
    ),
)
