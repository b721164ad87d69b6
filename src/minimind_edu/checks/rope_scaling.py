"""Checks for the exercises on RoPE's frequencies, their table and their scaling (chapter 04)."""

from typing import Any

from minimind_edu.checks._report import Attempt, Property, report, same_as
from minimind_edu.checks._rope_scaling_mistakes import (
    PERIOD_MISTAKES,
    TABLE_BYTES_MISTAKES,
    UNFINISHED_MISTAKES,
    YARN_RANGE_MISTAKES,
    YARN_SCALING_MISTAKES,
    periods,
    table_bytes,
    unfinished_pairs,
    yarn_range,
    yarn_scaling,
)

_TOLERANCE = 1e-5  # a learner may compute in float32


def check_periods(attempt: Attempt) -> bool:
    """Does `attempt(dim, rope_base)` give the positions that each pair needs for a full turn, `[D/2]`?"""

    def gives(dim: int, rope_base: float) -> Any:
        return same_as(periods, dim, rope_base, mistakes=PERIOD_MISTAKES, rtol=_TOLERANCE)

    return report(
        "check_periods",
        attempt,
        [
            Property("dim 4, base 50", gives(4, 50.0)),
            Property("dim 64, base 1,000,000: MiniMind2", gives(64, 1e6)),
            Property("dim 96, base 10,000", gives(96, 1e4)),
        ],
    )


def check_unfinished_pairs(attempt: Attempt) -> bool:
    """Does `attempt(dim, rope_base, context)` count the pairs that complete no turn in `context` positions?"""

    def counts(dim: int, rope_base: float, context: int) -> Any:
        return same_as(unfinished_pairs, dim, rope_base, context, mistakes=UNFINISHED_MISTAKES)

    return report(
        "check_unfinished_pairs",
        attempt,
        [
            # in this case no two of the usual mistakes give the same number
            Property("dim 128, base 1,000,000, 2,048 positions", counts(128, 1e6, 2048)),
            Property("dim 96, base 1,000,000: MiniMind3", counts(96, 1e6, 2048)),
            Property("dim 64, base 10,000, 512 positions", counts(64, 1e4, 512)),
        ],
    )


def check_table_bytes(attempt: Attempt) -> bool:
    """Does `attempt(hidden_size, num_heads, end, bytes_per_number)` give the bytes of both RoPE tables?"""

    def gives(*arguments: int) -> Any:
        return same_as(table_bytes, *arguments, mistakes=TABLE_BYTES_MISTAKES)

    return report(
        "check_table_bytes",
        attempt,
        [
            # 5 heads and 8 bytes, so that no two of the usual mistakes give the same number
            Property("hidden size 60, 5 heads, 10 rows, float64", gives(60, 5, 10, 8)),
            Property("hidden size 512, 8 heads, 32,768 rows, float32", gives(512, 8, 32768, 4)),
            Property("hidden size 768, 8 heads, 2,048 rows, float16", gives(768, 8, 2048, 2)),
        ],
    )


def check_yarn_range(attempt: Attempt) -> bool:
    """Does `attempt(dim, rope_base, context, beta_fast, beta_slow)` give the ends of YaRN's ramp, (low, high)?"""

    def gives(*arguments: float) -> Any:
        return same_as(yarn_range, *arguments, mistakes=YARN_RANGE_MISTAKES)

    return report(
        "check_yarn_range",
        attempt,
        [
            # the first ramp's fractions round to the right pairs, so that other roundings are named before `round`
            Property("dim 64, base 500,000, 4,096 positions", gives(64, 5e5, 4096, 32.0, 1.0)),
            Property("dim 96, base 100,000, 2,048 positions", gives(96, 1e5, 2048, 32.0, 1.0)),
            Property("MiniMind2: dim 64, base 1,000,000", gives(64, 1e6, 2048, 32.0, 1.0)),
            Property("other betas, 4 and 2", gives(128, 5e5, 1024, 4.0, 2.0)),
            Property("a context in which no pair turns 32 times", gives(64, 1e4, 128, 32.0, 1.0)),
        ],
    )


def check_yarn_scaling(attempt: Attempt) -> bool:
    """Does `attempt(dim, low, high, factor)` give what YaRN multiplies each pair's frequency by, `[D/2]`?"""

    def gives(dim: int, low: int, high: int, factor: float) -> Any:
        return same_as(yarn_scaling, dim, low, high, factor, mistakes=YARN_SCALING_MISTAKES, rtol=_TOLERANCE)

    return report(
        "check_yarn_scaling",
        attempt,
        [
            Property("8 pairs, ramp from 2 to 6, factor 4", gives(16, 2, 6, 4.0)),
            Property("32 pairs, ramp from 5 to 14, factor 16", gives(64, 5, 14, 16.0)),
            Property("48 pairs, ramp from 8 to 21, factor 2", gives(96, 8, 21, 2.0)),
        ],
    )
