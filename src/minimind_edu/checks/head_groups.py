"""Exercises on grouped query heads (chapter 06).

The sizes in one case are all different, and groups of equal number and size (four heads, two groups) are avoided, so
that a wrong axis or order shows: almost all mistakes give the right shape.
"""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from minimind_edu.attention import attention, repeat_kv, repeat_kv_tiled
from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, each, numbers
from minimind_edu.config import MiniMindConfig
from minimind_edu.masks import causal_mask


def _all_heads(heads: int, kv_heads: int) -> tuple[tuple[int, int, int], ...]:
    return tuple((head, heads, kv_heads) for head in range(heads))


KV_HEAD_OF = Exercise(
    "check_kv_head_of",
    answer=each(lambda query, heads, kv: query // (heads // kv)),
    cases=(
        Case("8 query heads, 2 key/value heads", _all_heads(8, 2)),
        Case("12 query heads, 4 key/value heads", _all_heads(12, 4)),
        Case("MQA: 6 query heads, 1 key/value head", _all_heads(6, 1)),
        Case("MHA: 5 query heads, 5 key/value heads", _all_heads(5, 5)),
    ),
    mistakes=(
        Mistake(
            each(lambda query, heads, kv: query % kv),
            "that is the order of x.repeat, h0 h1 h0 h1: in repeat_kv neighboring queries share a head",
        ),
        Mistake(
            each(lambda query, heads, kv: query // kv),
            "you divide by the number of key/value heads; divide by the group size, num_heads // num_kv_heads",
        ),
        Mistake(
            each(lambda query, heads, kv: query % (heads // kv)),
            "the remainder is the query's place inside its group; the group itself is the quotient, //",
        ),
        Mistake(
            each(lambda query, heads, kv: query),
            "that holds in MHA only: here there are fewer key/value heads than query heads",
        ),
        Mistake(each(lambda query, heads, kv: query / (heads // kv)), "a head is a whole number: use // instead of /"),
    ),
)


def check_kv_head_of(attempt: Attempt) -> bool:
    """Does `attempt(query_head, num_heads, num_kv_heads)` give the key/value head that a query head reads?"""
    return KV_HEAD_OF.check(each(attempt))


REPEAT_KV = Exercise(
    "check_repeat_kv",
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
            "your order is h0 h1 h0 h1, that of x.repeat or of a new axis before the heads; the copies of a head must "
            "be neighbors, h0 h0 h1 h1: insert the new axis after the heads, x[:, :, :, None]",
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
)


class _NoRepeatInterleave(TorchFunctionMode):
    """Refuses the one function that would leave nothing to do."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "repeat_interleave":
            raise ValueError("this exercise is to be solved without repeat_interleave")
        return func(*args, **(kwargs or {}))


def check_repeat_kv(attempt: Attempt) -> bool:
    """Does `attempt(x, n_rep)`, without `repeat_interleave`, turn `[B, T, K, D]` into `[B, T, K * n_rep, D]`?"""

    def watched(x: Tensor, n_rep: int) -> Any:
        with _NoRepeatInterleave():
            return attempt(x, n_rep)

    return REPEAT_KV.check(watched)


def _parameters(config: MiniMindConfig, query_maps: int = 2, kv_maps: int = 2) -> int:
    """Weights of the projections of one layer: `query_maps` as wide as all queries, `kv_maps` as wide as all keys."""
    heads = query_maps * config.num_attention_heads + kv_maps * config.num_key_value_heads
    return config.hidden_size * config.head_dim * heads


ATTENTION_PARAMETERS = Exercise(
    "check_attention_parameters",
    answer=_parameters,
    cases=(
        Case("minimind2: 8 heads, 2 of them kept", (MiniMindConfig.minimind2(),)),
        Case(
            "15 heads of 8 channels in a stream of 90",
            (MiniMindConfig.minimind2(hidden_size=90, num_attention_heads=15, num_key_value_heads=5, head_dim=8),),
        ),
        Case("minimind3: 8 heads, 4 of them kept", (MiniMindConfig.minimind3(),)),
    ),
    mistakes=(
        Mistake(
            lambda c: _parameters(c, query_maps=4, kv_maps=0),
            "this is MHA: k_proj and v_proj have only num_key_value_heads * head_dim outputs",
        ),
        Mistake(
            lambda c: _parameters(c, query_maps=1),
            "o_proj is missing: it maps num_heads * head_dim back to hidden_size",
        ),
        Mistake(lambda c: _parameters(c, kv_maps=1), "keys and values have one projection each"),
        Mistake(
            lambda c: _parameters(replace(c, head_dim=c.hidden_size // c.num_attention_heads)),
            "head_dim need not be hidden_size // num_heads: use config.head_dim",
        ),
        Mistake(lambda c: _parameters(c) * c.num_hidden_layers, "count one layer, not all of them"),
    ),
)


def check_attention_parameters(attempt: Attempt) -> bool:
    """Does `attempt(config)` give the weights of q_proj, k_proj, v_proj and o_proj of one layer?"""
    return ATTENTION_PARAMETERS.check(attempt)


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


class _LargestNew(TorchDispatchMode):
    """Remembers the largest storage that any operation returned, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor):
                self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return result


def _repeats_nothing(attempt: Attempt) -> str | None:
    # Two queries and many channels: the scores are small compared with the keys, so only a repetition is that large.
    q, k, v = _inputs(1, 2, 48, 12, 3, dim=32)
    with _LargestNew() as watch:
        attempt(q, k, v)
    if watch.bytes < k.nbytes * q.shape[2] // k.shape[2]:
        return None
    return (
        "the numbers are right, but somewhere every key was repeated for its queries (repeat_kv, or a product that "
        "broadcasts over the group and copies first): put the group next to the positions of the queries, "
        "[B, K, G*S, D], or use torch.einsum"
    )


GROUPED_ATTENTION = Exercise(
    "check_grouped_attention",
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


def check_grouped_attention(attempt: Attempt) -> bool:
    """Does `attempt(query, key, value)` attend (no mask), `[B, S, H, D]`, without repeating keys and values?"""
    return GROUPED_ATTENTION.check(attempt)


def _pool_heads(weight: Tensor, num_heads: int, num_kv_heads: int) -> Tensor:
    groups = weight.view(num_kv_heads, num_heads // num_kv_heads, -1, weight.shape[1])  # [K, G, D, E]
    return groups.mean(1).flatten(0, 1)


POOL_HEADS = Exercise(
    "check_pool_heads",
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


def check_pool_heads(attempt: Attempt) -> bool:
    """Does `attempt(weight, num_heads, num_kv_heads)` turn `[H*D, E]` into `[K*D, E]`, the mean of each group?"""
    return POOL_HEADS.check(attempt)
