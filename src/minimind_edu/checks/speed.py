"""Checks for the exercises on speed (chapter 14).

Sizes in one check are all different, so that no forgotten factor hides behind another. Left out on purpose: measured
times, of which nothing can be demanded.
"""

from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks._report import Attempt, Property, given, report, same_as
from minimind_edu.checks._speed_mistakes import (
    BYTES_MISTAKES,
    LAYOUT_HINTS,
    OPERATIONS_MISTAKES,
    PACK_MISTAKES,
    PAIRS_MISTAKES,
    SECONDS_MISTAKES,
    attention_pairs,
    least_seconds,
    pack,
    step_bytes,
    step_operations,
)
from minimind_edu.config import MiniMindConfig

SMALL, NEWER = MiniMindConfig.minimind2(), MiniMindConfig.minimind3()
ODD = MiniMindConfig.minimind2(
    vocab_size=97,
    hidden_size=60,
    num_hidden_layers=3,
    num_attention_heads=15,
    num_key_value_heads=5,
    head_dim=8,
    intermediate_size=110,
)


def check_step_bytes(attempt: Attempt) -> bool:
    """Does `attempt(config, context, batch, itemsize)` give the bytes that one decode step moves?"""

    def moves(*arguments: Any) -> Any:
        return same_as(step_bytes, *arguments, mistakes=BYTES_MISTAKES, rtol=0, atol=0)

    return report(
        "check_step_bytes",
        attempt,
        [
            Property("3 layers, 5 of 15 heads, 7 sequences of 41", moves(ODD, 41, 7, 4)),
            Property("minimind2, 11 sequences of 512, float32", moves(SMALL, 512, 11, 4)),
            Property("minimind2, the whole table of positions", moves(SMALL, 32768, 1, 4)),
            Property("minimind3, two bytes a number", moves(NEWER, 1000, 3, 2)),
        ],
    )


def check_step_operations(attempt: Attempt) -> bool:
    """Does `attempt(config, context, batch)` give the operations of the matrix products of one decode step?"""

    def does(*arguments: Any) -> Any:
        return same_as(step_operations, *arguments, mistakes=OPERATIONS_MISTAKES, rtol=0, atol=0)

    return report(
        "check_step_operations",
        attempt,
        [
            Property("3 layers, 15 heads, 7 sequences of 41", does(ODD, 41, 7)),
            Property("minimind2, one sequence of 512", does(SMALL, 512, 1)),
            Property("minimind2, the whole table of positions", does(SMALL, 32768, 1)),
            Property("minimind3, 5 sequences of 100", does(NEWER, 100, 5)),
        ],
    )


def check_least_seconds(attempt: Attempt) -> bool:
    """Does `attempt(operations, moved, bandwidth, peak)` give the least time of a call, in seconds?"""

    def take(*calls: tuple[float, float, float, float]) -> Any:
        """Several calls in one property: a shorter time cannot be told from a wrong choice by one call alone."""

        def each(function: Attempt) -> Attempt:
            return lambda: [given(function(*call)) for call in calls]

        mistakes = [mistake._replace(answer=each(mistake.answer)) for mistake in SECONDS_MISTAKES]

        def question(function: Attempt) -> str | None:
            return same_as(each(least_seconds), mistakes=mistakes)(each(function))

        return question

    decode, prefill = (5e7, 1e8, 2e10, 1e11), (3e10, 1.1e8, 2e10, 1e11)
    return report(
        "check_least_seconds",
        attempt,
        [
            Property("a decode step and a prefill on one machine", take(decode, prefill)),
            Property("exactly at the ridge", take((6e9, 1.2e9, 2e10, 1e11))),
            Property("a machine that computes slowly", take((5e7, 1e8, 2e10, 1e9))),
        ],
    )


def check_attention_pairs(attempt: Attempt) -> bool:
    """Does `attempt(prompt, new_tokens, use_cache)` give all pairs of a query and a key that attention computes?"""

    def pairs(*arguments: Any) -> Any:
        return same_as(attention_pairs, *arguments, mistakes=PAIRS_MISTAKES, rtol=0, atol=0)

    return report(
        "check_attention_pairs",
        attempt,
        [
            Property("a prompt of 4, 3 new tokens, with a cache", pairs(4, 3, True)),
            Property("the same without", pairs(4, 3, False)),
            Property("one new token: the prompt's call is all", pairs(5, 1, True)),
            Property("a prompt of 10, 500 new tokens, with a cache", pairs(10, 500, True)),
            Property("the same without", pairs(10, 500, False)),
        ],
    )


def check_pack(attempt: Attempt) -> bool:
    """Does `attempt(weight)` give the same `[out, in]` matrix with its columns lying together in memory?"""
    weight = torch.sin(torch.arange(15, dtype=torch.float64) ** 2).view(3, 5)
    square = weight[:, :3].contiguous()

    def packs(matrix: Tensor) -> Any:
        return same_as(pack, matrix, mistakes=PACK_MISTAKES)

    return report(
        "check_pack",
        attempt,
        [
            Property("the same numbers in the same places, [3, 5]", packs(weight)),
            Property("the same for a square matrix", packs(square)),
            Property("down a column, memory goes on by one", _columns_together),
            Property("the weight that was given is left as it was", _leaves_the_weight),
            Property("packed once more, nothing changes", _packs_twice),
        ],
    )


def _matrix() -> Tensor:
    return torch.arange(28, dtype=torch.float64).view(4, 7)


def _columns_together(attempt: Attempt) -> str | None:
    weight = _matrix()
    packed = attempt(weight)
    if packed.stride() == pack(weight).stride():
        return None
    shared = packed.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()
    return LAYOUT_HINTS["view" if shared else "unchanged"]


def _leaves_the_weight(attempt: Attempt) -> str | None:
    weight = _matrix()
    before, strides = weight.clone(), weight.stride()
    packed = attempt(weight)
    shared = packed.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr()
    if shared or weight.stride() != strides or not torch.equal(weight, before):
        return LAYOUT_HINTS["alias"]
    return None


def _packs_twice(attempt: Attempt) -> str | None:
    once = attempt(_matrix())
    twice = given(attempt(once))
    if torch.equal(once, twice) and once.stride() == twice.stride():
        return None
    return LAYOUT_HINTS["turned"]
