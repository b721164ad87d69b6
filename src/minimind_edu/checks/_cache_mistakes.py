"""The usual wrong answers to the exercises on the KV cache, each with the hint that leads out of it.

Nearly all of them run without an error and give numbers of the right shape; what is wrong shows only beside a run
without a cache.
"""

from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks._report import Mistake
from minimind_edu.config import MiniMindConfig
from minimind_edu.masks import causal_mask

Pair = tuple[Tensor, Tensor]
Past = list[Pair] | None


def held(past: Past, axis: int = 1) -> int:
    """The size of an axis of the first layer's keys, 0 without a past."""
    return 0 if past is None else past[0][0].shape[axis]


def position_ids(past: Past, input_ids: Tensor) -> Tensor:
    """The positions of the new tokens, `[S]`: the reference of the first exercise."""
    start = held(past)
    return torch.arange(start, start + input_ids.shape[1])


def _from(start: Any, count: Any = lambda past, ids: ids.shape[1]) -> Any:
    def answer(past: Past, input_ids: Tensor) -> Tensor:
        first = start(past, input_ids)
        return torch.arange(first, first + count(past, input_ids))

    return answer


POSITION_MISTAKES = (
    Mistake(
        _from(lambda past, ids: 0),
        "you number every call from 0: a new token would be turned as if it stood at the beginning. The first new "
        "position is the number of positions already in the cache",
    ),
    Mistake(
        _from(lambda past, ids: 0 if past is None else len(past)),
        "len(past_key_values) is the number of layers; the positions are axis 1 of a layer's keys, past[0][0].shape[1]",
    ),
    Mistake(
        _from(lambda past, ids: held(past, 2)),
        "shape[2] is the number of key/value heads in MiniMind's layout [B, T, K, D]; the positions are shape[1] "
        "(transformers' own caches are [B, K, T, D], which is where shape[2] comes from)",
    ),
    Mistake(
        _from(lambda past, ids: held(past, 0)), "shape[0] is the batch; the positions are shape[1] of [B, T, K, D]"
    ),
    Mistake(_from(lambda past, ids: held(past, 3)), "shape[3] is head_dim; the positions are shape[1] of [B, T, K, D]"),
    Mistake(
        _from(lambda past, ids: max(held(past) - 1, 0)),
        "one too early: the cache holds the positions 0 to T - 1, so the next one is T",
    ),
    Mistake(
        _from(lambda past, ids: held(past) + 1),
        "one too late: the cache holds the positions 0 to T - 1, so the next one is T",
    ),
    Mistake(
        _from(lambda past, ids: 0, lambda past, ids: held(past) + ids.shape[1]),
        "these are all positions, old and new; only the new tokens are computed, so only theirs are needed",
    ),
    Mistake(
        lambda past, ids: torch.full((ids.shape[1],), held(past)),
        "every token of a chunk gets the same position; count on from the first one",
    ),
)


def append(past: Pair | None, key: Tensor, value: Tensor) -> Pair:
    """Old and new keys and values, `[B, T + S, K, D]` each: the reference of the second exercise."""
    if past is None:
        return key, value
    return torch.cat([past[0], key], dim=1), torch.cat([past[1], value], dim=1)


def _joined(order: Any, dim: int = 1) -> Any:
    def answer(past: Pair | None, key: Tensor, value: Tensor) -> Pair:
        if past is None:
            return key, value
        first, second = order(past, (key, value))
        return torch.cat(first, dim=dim), torch.cat(second, dim=dim)

    return answer


def _straight(old: Pair, new: Pair) -> tuple[list[Tensor], list[Tensor]]:
    return [old[0], new[0]], [old[1], new[1]]


def _swapped_at_first(past: Pair | None, key: Tensor, value: Tensor) -> Pair:
    return (value, key) if past is None else append(past, key, value)


APPEND_MISTAKES = (
    Mistake(
        lambda past, key, value: (key, value), "you return the new positions only; the old ones belong in front of them"
    ),
    Mistake(
        lambda past, key, value: (key, value) if past is None else past,
        "you return the old positions only; the new ones belong behind them",
    ),
    Mistake(
        _joined(lambda old, new: _straight(new, old)),
        "the new positions stand in front of the old ones; time runs along axis 1, so the old ones come first",
    ),
    Mistake(
        _joined(_straight, dim=0),
        "dim=0 is the batch: the new position has become another sequence; positions are dim=1",
    ),
    Mistake(
        _joined(_straight, dim=2),
        "dim=2 is the heads in [B, T, K, D]: the new position has become another head; positions are dim=1",
    ),
    Mistake(
        _joined(_straight, dim=3), "dim=-1 is head_dim: the new position has become more channels; positions are dim=1"
    ),
    Mistake(
        _joined(lambda old, new: ([old[0], new[1]], [old[1], new[0]])),
        "the new key went to the values and the new value to the keys",
    ),
    Mistake(
        _joined(lambda old, new: ([old[0], new[0]], [old[0], new[0]])),
        "the values are a second copy of the keys: append the new value to past[1]",
    ),
    Mistake(
        lambda past, key, value: append(past, key, value)[::-1],
        "keys and values have changed places: return the keys first",
    ),
    Mistake(_swapped_at_first, "without a past the pair is (key, value), keys first, like all later ones"),
    Mistake(
        lambda past, key, value: append(past, key[:, -1:], value[:, -1:]),
        "only the last new position was appended; a chunk has several, and all of them belong in the cache",
    ),
    Mistake(
        lambda past, key, value: (key, value) if past is None else (past[0] + key, past[1] + value),
        "you add the numbers; the new positions stand behind the old ones, torch.cat(..., dim=1)",
    ),
)


def _square(query_length: int, key_length: int) -> Tensor:
    return torch.ones(query_length, key_length, dtype=torch.bool).tril()


MASK_MISTAKES = (
    Mistake(
        lambda s, t: ~causal_mask(s, t), "it is inverted: True stands where a query may look, not where it may not"
    ),
    Mistake(
        _square,
        "the diagonal begins in the upper left corner, as if the queries were the first positions. They are the last: "
        "shift it by key_length - query_length",
    ),
    Mistake(
        lambda s, t: ~_square(s, t),
        "it is inverted, and its diagonal begins in the upper left corner; the queries are the last S of T positions",
    ),
    Mistake(
        lambda s, t: torch.ones(s, t, dtype=torch.bool).tril(t - s - 1),
        "one too few: a query may look at its own position",
    ),
    Mistake(
        lambda s, t: torch.ones(s, t, dtype=torch.bool).tril(t - s + 1),
        "one too many: a query looks at the position after its own, which is the future",
    ),
    Mistake(
        lambda s, t: torch.ones(s, t, dtype=torch.bool),
        "nothing is hidden; within a chunk the earlier queries must not see the later keys",
    ),
    Mistake(
        lambda s, t: torch.ones(s, t, dtype=torch.bool).triu(t - s),
        "the triangle is upside down: a query sees the future and not the past; tril keeps what is below the diagonal",
    ),
    Mistake(lambda s, t: causal_mask(s, t).T, "rows and columns have changed places: a row for every query, [S, T]"),
    Mistake(
        lambda s, t: _square(t, t),
        "this is the mask of all T positions, [T, T]; only its last S rows belong to the queries of this call",
    ),
    Mistake(
        lambda s, t: _square(t, t)[:s],
        "these are the first S rows of the whole mask; the queries are the last positions, [-query_length:]",
    ),
)


def cache_bytes(config: MiniMindConfig, batch: int, length: int, itemsize: int) -> int:
    """Bytes of the keys and values of `length` positions: the reference of the last exercise."""
    per_layer = 2 * batch * length * config.num_key_value_heads * config.head_dim
    return config.num_hidden_layers * per_layer * itemsize


def _times(factor: Any) -> Any:
    return lambda config, batch, length, itemsize: (
        cache_bytes(config, batch, length, itemsize) * factor(config, batch, length, itemsize)
    )


BYTES_MISTAKES = (
    Mistake(
        _times(lambda config, *_: config.num_attention_heads / config.num_key_value_heads),
        "you count query heads (num_attention_heads, hidden_size); the cache holds key/value heads, before repeat_kv",
    ),
    Mistake(_times(lambda *_: 0.5), "keys and values are both kept: the factor 2 is missing"),
    Mistake(
        _times(lambda config, *_: 1 / config.num_hidden_layers), "that is one layer; every layer has a cache of its own"
    ),
    Mistake(
        _times(lambda config, batch, length, itemsize: 1 / itemsize),
        "you count numbers, not bytes: one number takes itemsize bytes",
    ),
    Mistake(_times(lambda *_: 8), "these are bits; 8 of them are a byte"),
    Mistake(
        _times(lambda config, batch, *_: 1 / batch),
        "the batch is missing: every sequence has keys and values of its own",
    ),
    Mistake(
        _times(lambda config, batch, length, itemsize: 1 / length), "that is one position; there are `length` of them"
    ),
    Mistake(
        _times(lambda config, *_: 1 / config.num_key_value_heads),
        "that is one key/value head; num_key_value_heads counts the heads, it is no divisor",
    ),
    Mistake(
        _times(lambda config, *_: config.queries_per_kv - 1),
        "this is what grouped heads save, the difference to a cache of all query heads, and not what is kept",
    ),
    Mistake(
        _times(lambda config, *_: config.num_key_value_heads / config.num_attention_heads),
        "num_key_value_heads / num_attention_heads came in twice: count the key/value heads once",
    ),
    Mistake(
        _times(lambda config, *_: 1 / config.head_dim),
        "head_dim is missing: every head keeps a key and a value of head_dim numbers",
    ),
    Mistake(
        _times(lambda config, batch, length, itemsize: length),
        "the cache does not grow with the square of the length: the scores do, but they are not kept",
    ),
)
