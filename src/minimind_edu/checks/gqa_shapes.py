"""Exercises on grouped query heads.

The sizes in one case are all different, and groups of equal number and size (four heads, two groups) are avoided, so
that a wrong axis or order shows: almost all mistakes give the right shape.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, each, numbers, without
from minimind_edu.measure.costs import cache_bytes_per_position
from minimind_edu.measure.traffic import Traffic
from minimind_edu.model.attention import attention, repeat_kv
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.for_comparison import repeat_kv_tiled
from minimind_edu.model.masks import causal_mask

check_repeat_kv = Exercise(
    "Does `attempt(x, n_rep)`, without `repeat_interleave`, turn `[B, T, K, D]` into `[B, T, K * n_rep, D]`?",
    answer=repeat_kv,
    cases=(
        Case("two heads, four copies each", (numbers(1, 3, 2, 5), 4)),
        Case("a batch of two, three heads, two copies each", (numbers(2, 5, 3, 4), 2)),
        Case("MQA: one head for seven queries", (numbers(2, 3, 1, 4), 7)),
        Case("MHA: one copy, nothing to do", (numbers(2, 3, 4, 5), 1)),
        Case("a transposed view as input", (numbers(2, 3, 5, 4).transpose(1, 2), 2)),  # [B, T=5, K=3, D]
    ),
    mistakes=(
        Mistake(
            repeat_kv_tiled,
            "your order is h1 h2 h1 h2, that of x.repeat or of a new axis before the heads; the copies of a head must "
            "be neighbors, h1 h1 h2 h2: insert the new axis after the heads, x[:, :, :, None]",
        ),
        Mistake(
            lambda x, n: x.repeat_interleave(n, dim=1),
            "you repeat positions (dim 1): the heads are dim 2 of [B, T, K, D]",
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
    ),
    through=without("repeat_interleave"),
)


def _kept_bytes(config: MiniMindConfig, heads: int, batch: int = 1, length: int = 1, itemsize: int = 2) -> int:
    """The bytes of a cache; `heads` need not divide the query heads."""
    return heads * batch * length * cache_bytes_per_position(replace(config, num_key_value_heads=1), itemsize)


def _largest(fits: Callable[[int], bool], counts: Iterable[int]) -> int:
    return max(filter(fits, counts), default=0)


def _divisors(config: MiniMindConfig) -> list[int]:
    heads = config.num_attention_heads
    return [count for count in range(1, heads + 1) if heads % count == 0]


def _heads_that_fit(
    config: MiniMindConfig, batch: int, length: int, budget: int, itemsize: int = 2, factor: float = 1
) -> int:
    """The largest number of key/value heads; a wrong count of bytes is the right one times `factor`."""
    bytes_of = partial(_kept_bytes, config, batch=batch, length=length, itemsize=itemsize)
    return _largest(lambda heads: factor * bytes_of(heads) <= budget, _divisors(config))


_MIB = 2**20
_TWELVE = MiniMindConfig(hidden_size=96, num_attention_heads=12, num_hidden_layers=3)  # 96 bytes per head and position

check_heads_that_fit = Exercise(
    "Is `attempt(config, batch, length, budget)` the most key/value heads whose float16 cache fits, in bytes, or 0?",
    answer=each(_heads_that_fit),
    cases=(
        Case(
            "MiniMind2 small: one text of 4,096 positions",
            tuple((MiniMindConfig(), 1, 4096, mib * _MIB) for mib in (64, 40, 20, 10)),
        ),
        Case("not enough for a single head: 0", ((MiniMindConfig(), 1, 4096, 7 * _MIB),)),
        Case("exactly enough", ((MiniMindConfig(), 1, 4096, 16 * _MIB),)),
        Case(
            "five texts of 512 positions",
            tuple((MiniMindConfig(), 5, 512, kib * 1024) for kib in (41_000, 11_000, 6_000)),
        ),
        Case("12 query heads, and room for five: 4", ((_TWELVE, 1, 100, 100 * 96 * 5),)),
        Case("MiniMind3, whose heads have 96 channels", ((MiniMindConfig.minimind3(), 1, 4096, 40 * _MIB),)),
    ),
    mistakes=(
        Mistake(
            each(
                lambda c, b, t, m: _largest(lambda n: _kept_bytes(c, n, b, t) <= m, range(1, c.num_attention_heads + 1))
            ),
            "as many heads would fit, but they must divide num_attention_heads",
        ),
        Mistake(
            each(partial(_heads_that_fit, factor=1 / 2)), "a number has two bytes, and there are keys *and* values"
        ),
        Mistake(each(partial(_heads_that_fit, itemsize=4)), "float16 takes two bytes for a number, not four"),
        Mistake(each(lambda c, b, t, m: _heads_that_fit(c, 1, t, m)), "every text of the batch has its own keys"),
        Mistake(
            each(lambda c, b, t, m: _heads_that_fit(c, b, t, m, factor=1 / c.num_hidden_layers)),
            "that is one layer: every layer keeps its own keys and values",
        ),
        Mistake(
            each(lambda c, b, t, m: _heads_that_fit(replace(c, head_dim=64), b, t, m)),
            "your heads always have 64 channels, as in MiniMind2: use config.head_dim",
        ),
        Mistake(
            each(lambda c, b, t, m: _heads_that_fit(replace(c, num_hidden_layers=8), b, t, m)),
            "you always count 8 layers, as in MiniMind2 small: use config.num_hidden_layers",
        ),
        Mistake(
            each(lambda c, b, t, m: _largest(lambda n: _kept_bytes(c, n, b, t) < m, _divisors(c))),
            "a cache that fills the budget to the last byte fits: <=, not <",
        ),
    ),
    through=each,
)


def _by_einsum(softmax: int = -1, scaled: bool = True, tiled: bool = False) -> Attempt:
    """Attention over groups of queries, with the softmax on this axis of the scores [B, K, G, S, T]."""

    def answer(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        sizes, order = ((-1, key.shape[2]), "bsgkd") if tiled else ((key.shape[2], -1), "bskgd")
        groups = query.unflatten(2, sizes)
        scores = torch.einsum(f"{order},btkd->bkgst", groups, key) / (math.sqrt(query.shape[-1]) if scaled else 1)
        return torch.einsum(f"bkgst,btkd->{order}", scores.softmax(softmax), value).flatten(2, 3)

    return answer


grouped_attention = _by_einsum()


def _read_back_in_wrong_order(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Rows [B, K, G*S, D] of a right result, taken apart as [B, K, S, G, D]."""
    rows = grouped_attention(query, key, value).unflatten(2, (key.shape[2], -1)).permute(0, 2, 3, 1, 4).flatten(2, 3)
    return rows.unflatten(2, (query.shape[1], -1)).transpose(1, 2).flatten(2, 3)


def _inputs(batch: int, queries: int, keys: int, heads: int, kv_heads: int, dim: int = 4) -> tuple[Tensor, ...]:
    """Query, key and value; the scores are large enough that softmax and scaling matter."""
    k = 2 * numbers(batch, keys, kv_heads, dim).cos()
    return 2 * numbers(batch, queries, heads, dim), k, numbers(batch, keys, kv_heads, dim).roll(1, dims=1)


def _repeats_nothing(attempt: Attempt) -> str | None:
    # Two queries and many channels: the scores are small compared with the keys, so only a repetition is that large.
    q, k, v = _inputs(1, 2, 48, 12, 3, dim=32)
    with Traffic() as traffic:
        attempt(q, k, v)
    if traffic.written < k.nbytes * q.shape[2] // k.shape[2]:
        return None
    return (
        "the numbers are right, but somewhere every key was repeated for its queries (repeat_kv, or a product that "
        "broadcasts over the group and copies first): put the group next to the positions of the queries, "
        "[B, K, G*S, D], or use torch.einsum"
    )


check_grouped_attention = Exercise(
    "Does `attempt(query, key, value)` attend (no mask), `[B, S, H, D]`, without repeating keys and values?",
    answer=grouped_attention,
    cases=(
        Case("six query heads, two key/value heads", _inputs(1, 3, 5, 6, 2)),
        Case("a batch of two, twelve heads and three", _inputs(2, 4, 7, 12, 3)),
        Case("MQA: one key/value head", _inputs(2, 3, 4, 5, 1)),
        Case("one new query, as in a decode step", _inputs(2, 1, 9, 8, 2)),
        Property("nothing as large as repeated keys is written", _repeats_nothing),
    ),
    mistakes=(
        Mistake(
            _by_einsum(tiled=True),
            "you split the heads as [G, K]: neighboring queries share a head, so the heads' axis splits into [K, G]",
        ),
        Mistake(_by_einsum(scaled=False), "the scores are not divided by sqrt(D)"),
        Mistake(
            _by_einsum(softmax=-2),
            "the softmax runs over the queries: every query distributes its weights over the keys, the last axis",
        ),
        Mistake(
            lambda q, k, v: attention(q, k, v, causal_mask(q.shape[1], k.shape[1]))[0],
            "you apply a causal mask; in this exercise every query sees all keys",
        ),
        Mistake(
            _read_back_in_wrong_order,
            "your rows are [G*S], the queries of a group one after the other, but you take them apart as [S, G]",
        ),
    ),
)


def _for_repeat_kv(weight: Tensor, num_kv_heads: int, head_dim: int) -> Tensor:
    tiled = weight.unflatten(0, (-1, num_kv_heads, head_dim))  # [G, K, D, E]: query g * K + k reads head k
    return tiled.transpose(0, 1).flatten(0, 2)  # [K, G, D, E] -> [H*D, E]


check_reordered = Exercise(
    "Does `attempt(weight, num_kv_heads, head_dim)` sort q_proj's rows `[H*D, E]` from x.repeat's to repeat_kv's?",
    answer=_for_repeat_kv,
    cases=(
        Case("6 query heads, 2 key/value heads", (numbers(24, 5), 2, 4)),
        Case("8 query heads, 4 key/value heads", (numbers(24, 7), 4, 3)),
        Case("MQA: nothing to do", (numbers(20, 3), 1, 4)),
        Case("MHA: nothing to do", (numbers(20, 3), 5, 4)),
    ),
    mistakes=(
        Mistake(lambda w, kv, d: w, "nothing has moved: with x.repeat query i reads head i % K, not i // G"),
        Mistake(
            lambda w, kv, d: w.unflatten(0, (kv, -1, d)).transpose(0, 1).flatten(0, 2),
            "that leads from repeat_kv's order to that of x.repeat: here the old heads split into [G, K]",
        ),
        Mistake(
            lambda w, kv, d: w.unflatten(0, (-1, kv)).transpose(0, 1).flatten(0, 1),
            "you sort single rows: the D rows of a head stay together, weight.unflatten(0, (G, K, D))",
        ),
        Mistake(
            lambda w, kv, d: w.unflatten(0, (-1, kv, d)).transpose(0, 1).flip(0).flatten(0, 2),
            "the groups are right, but the first must be the one that reads head 0",
        ),
        Mistake(
            lambda w, kv, d: w.unflatten(0, (-1, kv, d))[:, 0].repeat(kv, 1, 1).flatten(0, 1),
            "some query heads are lost and others are there twice: every head moves to one new place",
        ),
    ),
)


def _pool_heads(weight: Tensor, num_heads: int, num_kv_heads: int) -> Tensor:
    groups = weight.view(num_kv_heads, num_heads // num_kv_heads, -1, weight.shape[1])  # [K, G, D, E]
    return groups.mean(1).flatten(0, 1)


check_pool_heads = Exercise(
    "Does `attempt(weight, num_heads, num_kv_heads)` turn `[H*D, E]` into `[K*D, E]`, the mean of each group?",
    answer=_pool_heads,
    cases=(
        Case("8 heads of 5 channels to 2", (numbers(40, 3), 8, 2)),
        Case("6 heads of 4 channels to 3", (numbers(24, 7), 6, 3)),
        Case("MQA: 5 heads of 3 channels to 1", (numbers(15, 4), 5, 1)),
        Case("MHA: 4 heads stay 4", (numbers(12, 5), 4, 4)),
    ),
    mistakes=(
        Mistake(
            lambda w, heads, kv: w.view(heads // kv, kv, -1, w.shape[1]).mean(0).flatten(0, 1),
            "you average heads that are num_kv_heads apart: neighbors form a group, so split the heads into [K, G]",
        ),
        Mistake(
            lambda w, heads, kv: _pool_heads(w, heads, kv) * (heads // kv),
            "that is the sum of each group; the mean keeps the size of the keys",
        ),
        Mistake(
            lambda w, heads, kv: w.view(heads, -1, w.shape[1])[:: heads // kv].flatten(0, 1),
            "you keep the first head of every group: average the whole group",
        ),
        Mistake(
            lambda w, heads, kv: w.view(-1, heads // kv, w.shape[1]).mean(1),
            "you average neighboring rows, which are channels of one head: weight.view(K, G, D, E) first",
        ),
        Mistake(
            lambda w, heads, kv: _pool_heads(w, heads, 1).repeat(kv, 1),
            "you average all heads together, which is MQA; every group has its own mean",
        ),
    ),
)
