"""References for the exercises on speed, and the usual wrong answers with the hint that leads out of each.

Most of them are a forgotten factor: the answer is a plausible number, and nothing raises.
"""

from torch import Tensor

from minimind_edu.checks._report import Mistake
from minimind_edu.config import MiniMindConfig
from minimind_edu.costs import cache_bytes_per_position, decode_cost, weights_read

# ---- bytes of a decode step


def step_bytes(config: MiniMindConfig, context: int, batch: int, itemsize: int) -> int:
    """Weights once, and every cached position of every sequence."""
    return decode_cost(config, context, batch, itemsize).bytes


def _cache(config: MiniMindConfig, context: int, batch: int, itemsize: int) -> int:
    return batch * context * cache_bytes_per_position(config, itemsize)


BYTES_MISTAKES = (
    Mistake(
        lambda c, t, b, i: b * i * weights_read(c) + _cache(c, t, b, i),
        "you read the weights once for every sequence: all sequences of a batch share one reading",
    ),
    Mistake(
        lambda c, t, b, i: i * weights_read(c) + _cache(c, t, 1, i),
        "every sequence of the batch has a cache of its own: multiply the cache by the batch",
    ),
    Mistake(
        lambda c, t, b, i: i * weights_read(c),
        "the cache is missing: each step reads the keys and values of the whole context",
    ),
    Mistake(
        lambda c, t, b, i: i * weights_read(c) + _cache(c, t, b, i) // 2,
        "keys and values: the cache needs a factor of 2",
    ),
    Mistake(
        lambda c, t, b, i: i * weights_read(c) + _cache(c, t, b, i) * c.queries_per_kv,
        "you counted the cache with query heads: only num_key_value_heads are kept and read",
    ),
    Mistake(
        lambda c, t, b, i: i * weights_read(c) + _cache(c, t, b, i) // c.num_hidden_layers,
        "that is the cache of one layer: every layer keeps its own",
    ),
    Mistake(
        lambda c, t, b, i: i * (weights_read(c) + c.vocab_size * c.hidden_size) + _cache(c, t, b, i),
        "you counted the embedding table beside the output layer: they are one tensor, and the step reads it once",
    ),
    Mistake(
        lambda c, t, b, i: i * (weights_read(c) - c.vocab_size * c.hidden_size) + _cache(c, t, b, i),
        "the output layer is missing: every step computes the logits, so it reads that matrix too",
    ),
    Mistake(
        lambda c, t, b, i: weights_read(c) + _cache(c, t, b, 1),
        "you counted numbers: multiply by itemsize, the bytes of one",
    ),
    Mistake(
        lambda c, t, b, i: weights_read(c) + _cache(c, t, b, i),
        "weights have bytes too: multiply their number by itemsize",
    ),
)

# ---- operations of a decode step


def step_operations(config: MiniMindConfig, context: int, batch: int) -> int:
    """Two operations for each multiply-add of the matrix products."""
    return decode_cost(config, context, batch).operations


def _attention(config: MiniMindConfig, context: int, batch: int, heads: int) -> int:
    """Operations of scores and mixture over all layers."""
    return 4 * batch * context * config.num_hidden_layers * heads * config.head_dim


def _with_attention(config: MiniMindConfig, context: int, batch: int, attention: int) -> int:
    usual = _attention(config, context, batch, config.num_attention_heads)
    return step_operations(config, context, batch) - usual + attention


OPERATIONS_MISTAKES = (
    Mistake(
        lambda c, t, b: step_operations(c, t, b) // 2,
        "those are multiply-adds: each is two operations, a multiplication and an addition",
    ),
    Mistake(
        lambda c, t, b: _with_attention(c, t, b, 0),
        "attention is missing: every query meets all positions of the context, in every layer",
    ),
    Mistake(
        lambda c, t, b: _with_attention(c, t, b, _attention(c, t, b, c.num_attention_heads) // 2),
        "attention multiplies twice for every position: once for the score, once for the mixture of values",
    ),
    Mistake(
        lambda c, t, b: _with_attention(c, t, b, _attention(c, t, b, c.num_key_value_heads)),
        "you counted attention with key/value heads: all query heads compute scores, shared keys or not",
    ),
    Mistake(
        lambda c, t, b: step_operations(c, t, b) - 2 * b * c.vocab_size * c.hidden_size,
        "the logits are missing: one product with vocab_size rows for every sequence",
    ),
    Mistake(
        lambda c, t, b: step_operations(c, t, 1),
        "that is one sequence: the batch shares the reading of the weights, not the computing",
    ),
    Mistake(
        lambda c, t, b: 2 * b * weights_read(c),
        "two operations for every weight is nearly right, but norms are no matrix products, and attention is missing",
    ),
    Mistake(
        lambda c, t, b: step_operations(c, t, b) - 2 * b * c.num_hidden_layers * c.hidden_size * c.intermediate_size,
        "the feed-forward network has three matrices: gate, up and down",
    ),
)

# ---- the least time


def least_seconds(operations: float, moved: float, bandwidth: float, peak: float) -> float:
    """Moving and computing at the same time: the longer one decides."""
    return max(moved / bandwidth, operations / peak)


SECONDS_MISTAKES = (
    Mistake(
        lambda o, m, w, p: m / w + o / p,
        "a processor moves and computes at the same time: the longer of the two decides, not their sum",
    ),
    Mistake(lambda o, m, w, p: min(m / w, o / p), "that is the shorter of the two: the call is done when both are"),
    Mistake(lambda o, m, w, p: m / w, "that is memory alone: computing may take longer"),
    Mistake(lambda o, m, w, p: o / p, "that is arithmetic alone: moving may take longer"),
    Mistake(
        lambda o, m, w, p: max(m / p, o / w), "bytes belong to the bandwidth, operations to the peak: you swapped them"
    ),
    Mistake(
        lambda o, m, w, p: max(w / m, p / o),
        "that is how many such calls fit in a second; asked is the time of one, the other way up",
    ),
    Mistake(lambda o, m, w, p: o / m, "that is the intensity; asked is a time, in seconds"),
    Mistake(
        lambda o, m, w, p: min(p, o / m * w),
        "that is the roof, in operations a second; asked is the time that the operations take at that speed",
    ),
)

# ---- pairs of queries and keys


def attention_pairs(prompt: int, new_tokens: int, use_cache: bool) -> int:
    """S * T summed over all calls: one call of the prompt, then new_tokens - 1 more."""
    lengths = range(prompt + 1, prompt + new_tokens)
    return prompt**2 + sum(length if use_cache else length**2 for length in lengths)


def _one_call_more(prompt: int, new_tokens: int, use_cache: bool) -> int:
    return attention_pairs(prompt, new_tokens + 1, use_cache)


PAIRS_MISTAKES = (
    Mistake(
        _one_call_more,
        "one call too many: the prompt's own call gives the first new token, and the last one is never read",
    ),
    Mistake(
        lambda p, n, cached: sum(p + i if cached else (p + i) ** 2 for i in range(n)),
        "the prompt's call computes prompt x prompt pairs, with a cache too: nothing is cached before it",
    ),
    Mistake(
        lambda p, n, cached: attention_pairs(p, n, True),
        "that is with a cache; without one each call computes all queries again, length x length",
    ),
    Mistake(
        lambda p, n, cached: attention_pairs(p, n, False),
        "that is without a cache; with one a call has a single query, and as many pairs as keys",
    ),
    Mistake(
        lambda p, n, cached: p + n - 1 if cached else n * p + n * (n - 1) // 2,
        "those are token passes: a pass at length T has T pairs, one for every key",
    ),
    Mistake(lambda p, n, cached: attention_pairs(p, n, cached) - p**2, "the prompt's own call is missing"),
    Mistake(
        lambda p, n, cached: p * (p + 1) // 2 + sum(t if cached else t * (t + 1) // 2 for t in range(p + 1, p + n)),
        "you left out what the causal mask hides: counted are the pairs computed, queries x keys, before any mask",
    ),
)

# ---- column-major


def pack(weight: Tensor) -> Tensor:
    """The same matrix, its columns lying together: `[out, in]` with strides (1, out)."""
    return weight.t().contiguous().t()


PACK_MISTAKES = (
    Mistake(
        lambda w: w.t().contiguous(),
        "that is the transposed matrix: turn it back with .t(), which changes strides only",
    ),
    Mistake(
        lambda w: w.reshape(w.shape[1], w.shape[0]).t(),
        "reshape reads the numbers in their old order and lays them into other places: transpose instead",
    ),
)
LAYOUT_HINTS = {
    "unchanged": "the numbers are right, but the rows still lie together in memory (strides (in, 1)): something must "
    "be copied into another order between two transpositions",
    "view": "the result is the given matrix in its own memory: two transpositions in a row undo each other, so make "
    "the transposed matrix contiguous in between",
    "alias": "the result shares the memory of the weight that was given: make a copy in the new order, and leave the "
    "old one as it was",
    "turned": "a packed matrix comes out in another order again: .t() of a packed matrix is contiguous already, so "
    "nothing should happen",
}
