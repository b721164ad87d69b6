"""Exercises on speed (chapter 14).

The sizes in one case are all different, so that no forgotten factor hides another. Left out on purpose: measured times,
which differ on every machine.
"""

from dataclasses import replace

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, each
from minimind_edu.config import MiniMindConfig
from minimind_edu.costs import cache_bytes_per_position, decode_cost, weights_read

_SMALL, _NEWER = MiniMindConfig.minimind2(), MiniMindConfig.minimind3()
_ODD = MiniMindConfig.minimind2(
    vocab_size=97,
    hidden_size=60,
    num_hidden_layers=3,
    num_attention_heads=15,
    num_key_value_heads=5,
    head_dim=8,
    intermediate_size=110,
)


def _step_bytes(config: MiniMindConfig, context: int, batch: int, itemsize: int) -> int:
    return decode_cost(config, context, batch, itemsize).bytes


def _cache(config: MiniMindConfig, context: int, batch: int, itemsize: int) -> int:
    return batch * context * cache_bytes_per_position(config, itemsize)


STEP_BYTES = Exercise(
    "check_step_bytes",
    answer=_step_bytes,
    cases=(
        Case("3 layers, 5 of 15 heads, 7 sequences of 41", (_ODD, 41, 7, 4)),
        Case("minimind2, 11 sequences of 512, float32", (_SMALL, 512, 11, 4)),
        Case("minimind2, the whole table of positions", (_SMALL, 32768, 1, 4)),
        Case("minimind3, two bytes a number", (_NEWER, 1000, 3, 2)),
    ),
    mistakes=(
        Mistake(
            lambda c, t, b, i: _step_bytes(c, t, b, i) + (b - 1) * i * weights_read(c),
            "you read the weights once for every sequence: all sequences of a batch share one reading",
        ),
        Mistake(
            lambda c, t, b, i: i * weights_read(c) + _cache(c, t, 1, i),
            "every sequence of the batch has its own cache: multiply the cache by the batch",
        ),
        Mistake(
            lambda c, t, b, i: i * weights_read(c),
            "the cache is missing: each step reads the keys and values of the whole context",
        ),
        Mistake(
            lambda c, t, b, i: i * weights_read(c) + _cache(c, t, b, i) * c.queries_per_kv,
            "you count the cache with query heads: only num_key_value_heads are kept and read",
        ),
        Mistake(
            lambda c, t, b, i: _step_bytes(c, t, b, i) - i * c.vocab_size * c.hidden_size,
            "the output layer is missing: every step computes the logits, so it reads that matrix too",
        ),
    ),
)


def check_step_bytes(attempt: Attempt) -> bool:
    """Does `attempt(config, context, batch, itemsize)` give the bytes that one decode step moves?"""
    return STEP_BYTES.check(attempt)


def _step_operations(config: MiniMindConfig, context: int, batch: int) -> int:
    return decode_cost(config, context, batch).operations


def _attention_operations(config: MiniMindConfig, context: int, batch: int) -> int:
    """Scores and mixture of values, over all layers."""
    return 4 * batch * context * config.num_hidden_layers * config.num_attention_heads * config.head_dim


STEP_OPERATIONS = Exercise(
    "check_step_operations",
    answer=_step_operations,
    cases=(
        Case("3 layers, 15 heads, 7 sequences of 41", (_ODD, 41, 7)),
        Case("minimind2, one sequence of 512", (_SMALL, 512, 1)),
        Case("minimind2, the whole table of positions", (_SMALL, 32768, 1)),
        Case("minimind3, 5 sequences of 100", (_NEWER, 100, 5)),
    ),
    mistakes=(
        Mistake(
            lambda c, t, b: _step_operations(c, t, b) // 2,
            "those are multiply-adds: each is two operations, a multiplication and an addition",
        ),
        Mistake(
            lambda c, t, b: _step_operations(c, t, b) - _attention_operations(c, t, b),
            "attention is missing: every query meets all positions of the context, in every layer",
        ),
        Mistake(
            lambda c, t, b: _step_operations(c, t, b) - 2 * b * c.vocab_size * c.hidden_size,
            "the logits are missing: a product with vocab_size rows for every sequence",
        ),
        Mistake(
            lambda c, t, b: _step_operations(c, t, 1),
            "that is one sequence: the batch shares the reading of the weights, not the computing",
        ),
        Mistake(
            lambda c, t, b: _step_operations(replace(c, head_dim=c.hidden_size // c.num_attention_heads), t, b),
            "the projections are num_heads * head_dim wide, which need not be hidden_size: use config.head_dim",
        ),
    ),
)


def check_step_operations(attempt: Attempt) -> bool:
    """Does `attempt(config, context, batch)` give the operations of the matrix products of one decode step?"""
    return STEP_OPERATIONS.check(attempt)


_DECODE, _PREFILL = (5e7, 1e8, 2e10, 1e11), (3e10, 1.1e8, 2e10, 1e11)  # operations, bytes, bandwidth, peak

LEAST_SECONDS = Exercise(
    "check_least_seconds",
    answer=each(lambda operations, moved, bandwidth, peak: max(moved / bandwidth, operations / peak)),
    cases=(
        # Two calls in one case: from one alone, the shorter time cannot be told from the wrong choice.
        Case("a decode step and a prefill on one machine", (_DECODE, _PREFILL)),
        Case("exactly at the ridge", ((6e9, 1.2e9, 2e10, 1e11),)),
        Case("a machine that computes slowly", ((5e7, 1e8, 2e10, 1e9),)),
    ),
    mistakes=(
        Mistake(
            each(lambda o, m, w, p: m / w + o / p),
            "a processor moves and computes at the same time: the longer of the two counts, not their sum",
        ),
        Mistake(
            each(lambda o, m, w, p: min(m / w, o / p)),
            "that is the shorter of the two: the call is done when both are done",
        ),
        Mistake(each(lambda o, m, w, p: m / w), "that is memory alone: computing may take longer"),
        Mistake(each(lambda o, m, w, p: o / p), "that is arithmetic alone: moving may take longer"),
        Mistake(
            each(lambda o, m, w, p: min(p, o / m * w)),
            "that is the roof, in operations per second; return the time that the operations take at that speed",
        ),
    ),
)


def check_least_seconds(attempt: Attempt) -> bool:
    """Does `attempt(operations, moved, bandwidth, peak)` give the least time of a call, in seconds?"""
    return LEAST_SECONDS.check(each(attempt))


def _attention_pairs(prompt: int, new_tokens: int, use_cache: bool) -> int:
    """S * T summed over all calls: one call for the prompt, then new_tokens - 1 more."""
    lengths = range(prompt + 1, prompt + new_tokens)
    return prompt**2 + sum(length if use_cache else length**2 for length in lengths)


def _unmasked_pairs(prompt: int, new_tokens: int, use_cache: bool) -> int:
    """Only the pairs that the causal mask leaves visible."""
    lengths = range(prompt + 1, prompt + new_tokens)
    return prompt * (prompt + 1) // 2 + sum(t if use_cache else t * (t + 1) // 2 for t in lengths)


ATTENTION_PAIRS = Exercise(
    "check_attention_pairs",
    answer=_attention_pairs,
    cases=(
        Case("a prompt of 4, 3 new tokens, with a cache", (4, 3, True)),
        Case("the same without", (4, 3, False)),
        Case("one new token: the prompt's call is all", (5, 1, True)),
        Case("a prompt of 10, 500 new tokens, with a cache", (10, 500, True)),
        Case("the same without", (10, 500, False)),
    ),
    mistakes=(
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new + 1, cached),
            "one call too many: the prompt's own call gives the first new token, and the last one is never read",
        ),
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new, cached) - prompt**2 + prompt,
            "the prompt's call computes prompt x prompt pairs, with a cache too: nothing is cached before it",
        ),
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new, True),
            "that is with a cache; without one each call computes all queries again, length x length",
        ),
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new, False),
            "that is without a cache; with one a call has a single query, and as many pairs as keys",
        ),
        Mistake(
            _unmasked_pairs,
            "you leave out what the causal mask hides: count the pairs computed, queries x keys, before any mask",
        ),
    ),
)


def check_attention_pairs(attempt: Attempt) -> bool:
    """Does `attempt(prompt, new_tokens, use_cache)` give all pairs of a query and a key that attention computes?"""
    return ATTENTION_PAIRS.check(attempt)


def _pack(weight: Tensor) -> Tensor:
    """The same matrix, its columns contiguous: `[out, in]` with strides (1, out)."""
    return weight.t().contiguous().t()


def _matrix(rows: int, columns: int) -> Tensor:
    return torch.arange(rows * columns, dtype=torch.float64).view(rows, columns)


def _share_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _columns_together(attempt: Attempt) -> str | None:
    weight = _matrix(4, 7)
    answer = attempt(weight)
    if isinstance(answer, list):
        return "return a tensor: a list has no order in memory"
    packed = torch.as_tensor(answer)
    if packed.stride() == _pack(weight).stride():
        return None
    if _share_memory(packed, weight):
        return (
            "the result is the given matrix in its own memory (two transpositions in a row cancel out): make the "
            "transposed matrix contiguous in between"
        )
    return (
        "the numbers are right, but the rows are still contiguous in memory (strides (in, 1)): copy between two "
        "transpositions"
    )


def _leaves_the_weight(attempt: Attempt) -> str | None:
    weight = _matrix(4, 7)
    packed = torch.as_tensor(attempt(weight))
    if not _share_memory(packed, weight) and weight.is_contiguous() and torch.equal(weight, _matrix(4, 7)):
        return None
    return "the result shares the memory of the given weight: make a copy in the new order, and leave the old one alone"


def _packs_twice(attempt: Attempt) -> str | None:
    once = torch.as_tensor(attempt(_matrix(4, 7)))
    twice = torch.as_tensor(attempt(once))
    if torch.equal(once, twice) and once.stride() == twice.stride():
        return None
    return (
        "a packed matrix comes out in another order again: .t() of a packed matrix is contiguous already, so nothing "
        "should happen"
    )


PACK = Exercise(
    "check_pack",
    answer=_pack,
    cases=(
        Case("the same numbers in the same places, [3, 5]", (_matrix(3, 5),)),
        Case("the same for a square matrix", (_matrix(3, 3),)),
        Property("down a column, memory goes on by one", _columns_together),
        Property("the weight that was given is left as it was", _leaves_the_weight),
        Property("packed once more, nothing changes", _packs_twice),
    ),
    mistakes=(
        Mistake(
            lambda w: w.t().contiguous(),
            "that is the transposed matrix: transpose it back with .t(), which changes strides only",
        ),
        Mistake(
            lambda w: w.reshape(w.shape[1], w.shape[0]).t(),
            "you read the old memory with new strides (reshape, view and as_strided move nothing), so the numbers are "
            "in other places: copy the transposed matrix",
        ),
    ),
)


def check_pack(attempt: Attempt) -> bool:
    """Does `attempt(weight)` give the same `[out, in]` matrix with its columns contiguous in memory?"""
    return PACK.check(attempt)
