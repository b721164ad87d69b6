"""Exercises on RoPE's frequencies, their table and their scaling (chapter 04).

The references are written out in the few lines that a learner needs; the tests compare them with the package.
"""

import math

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake

_TOLERANCE = 1e-5  # a learner may compute in float32


def periods(dim: int, rope_base: float, exponent: float = 1.0) -> Tensor:
    """Positions that each pair needs for a full turn; the exponents 2i / dim times `exponent`. `[D/2]`"""
    return 2 * math.pi * rope_base ** (exponent * torch.arange(0, dim, 2, dtype=torch.float64) / dim)


PERIODS = Exercise(
    "check_periods",
    answer=periods,
    cases=(
        Case("dim 4, base 50", (4, 50.0)),
        Case("dim 64, base 1,000,000: MiniMind2", (64, 1e6)),
        Case("dim 96, base 10,000", (96, 1e4)),
    ),
    mistakes=(
        Mistake(
            lambda dim, base: 2 * math.pi / periods(dim, base),
            "these are the frequencies, in radians per position; a period is a full turn divided by the frequency",
        ),
        Mistake(
            lambda dim, base: periods(dim, base) / (2 * math.pi),
            "these are positions per radian; a full turn has 2 pi of them, so multiply by 2 * math.pi",
        ),
        Mistake(
            lambda dim, base: periods(dim, base, exponent=1 / 2),
            "your exponent is i / dim: it must be 2i / dim, which torch.arange(0, dim, 2) gives",
        ),
        Mistake(
            lambda dim, base: 2 * math.pi * base ** torch.linspace(0, 1, dim // 2, dtype=torch.float64),
            "your last pair has the exponent 1, a period of 2 pi times the base, but the exponents end at "
            "(dim - 2) / dim; the notes' 6,283,185 is the same slip",
        ),
        Mistake(
            lambda dim, base: periods(dim, base).repeat(2),
            "you return one period per channel; both channels of a pair share one, so return dim // 2 of them",
        ),
    ),
    rtol=_TOLERANCE,
)


def check_periods(attempt: Attempt) -> bool:
    """Does `attempt(dim, rope_base)` give the positions that each pair needs for a full turn, `[D/2]`?"""
    return PERIODS.check(attempt)


def unfinished_pairs(dim: int, rope_base: float, context: float, exponent: float = 1.0) -> int:
    """How many pairs do not complete a turn in `context` positions."""
    return int((periods(dim, rope_base, exponent) > context).sum())


UNFINISHED_PAIRS = Exercise(
    "check_unfinished_pairs",
    answer=unfinished_pairs,
    cases=(
        # In this case no two of the mistakes give the same number.
        Case("dim 128, base 1,000,000, 2,048 positions", (128, 1e6, 2048)),
        Case("dim 96, base 1,000,000: MiniMind3", (96, 1e6, 2048)),
        Case("dim 64, base 10,000, 512 positions", (64, 1e4, 512)),
    ),
    mistakes=(
        Mistake(
            lambda dim, base, context: dim // 2 - unfinished_pairs(dim, base, context),
            "this is how many pairs do complete a turn (and the index of the first that does not); count the others",
        ),
        Mistake(
            lambda dim, base, context: 2 * unfinished_pairs(dim, base, context),
            "you count channels; every pair has two of them. Count the pairs",
        ),
        Mistake(
            lambda dim, base, context: unfinished_pairs(dim, base, 2 * math.pi * context),
            "you count the pairs that rotate by less than one radian; a full turn is 2 pi radians",
        ),
        Mistake(
            lambda dim, base, context: unfinished_pairs(dim, base, context) / (dim // 2),
            "this is the fraction of the pairs; return their number",
        ),
        Mistake(
            lambda dim, base, context: unfinished_pairs(dim, base, context, exponent=1 / 2),
            "your exponent is i / dim: it must be 2i / dim, which torch.arange(0, dim, 2) gives",
        ),
    ),
)


def check_unfinished_pairs(attempt: Attempt) -> bool:
    """Does `attempt(dim, rope_base, context)` count the pairs that complete no turn in `context` positions?"""
    return UNFINISHED_PAIRS.check(attempt)


def table_bytes(hidden_size: int, num_heads: int, end: int, bytes_per_number: int) -> int:
    """Bytes of the cos and the sin table together."""
    return 2 * end * (hidden_size // num_heads) * bytes_per_number


TABLE_BYTES = Exercise(
    "check_table_bytes",
    answer=table_bytes,
    cases=(
        # 5 heads and 8 bytes, so that no two of the mistakes give the same number.
        Case("hidden size 60, 5 heads, 10 rows, float64", (60, 5, 10, 8)),
        Case("hidden size 512, 8 heads, 32,768 rows, float32", (512, 8, 32768, 4)),
        Case("hidden size 768, 8 heads, 2,048 rows, float16", (768, 8, 2048, 2)),
    ),
    mistakes=(
        Mistake(
            lambda hidden, heads, end, size: table_bytes(hidden, heads, end, size) // 2,
            "this is one table (or two of half the width); there are two, each with one column per channel",
        ),
        Mistake(
            lambda hidden, heads, end, size: table_bytes(hidden, heads, end, size) // 4,
            "this is one table with one column per pair; there are two tables, and each holds its columns twice",
        ),
        Mistake(
            lambda hidden, heads, end, size: table_bytes(hidden, 1, end, size),
            "your rows are hidden_size wide; all heads share one table, so a row has hidden_size / num_heads numbers",
        ),
        Mistake(
            lambda hidden, heads, end, size: table_bytes(hidden, heads, end, 1),
            "these are numbers; each takes bytes_per_number bytes",
        ),
        Mistake(
            lambda hidden, heads, end, size: table_bytes(hidden, heads, end, size) / 2**20,
            "this is in MiB; return bytes",
        ),
    ),
)


def check_table_bytes(attempt: Attempt) -> bool:
    """Does `attempt(hidden_size, num_heads, end, bytes_per_number)` give the bytes of both RoPE tables?"""
    return TABLE_BYTES.check(attempt)


def _range_by(low: Attempt, high: Attempt, two_pi: float = 2 * math.pi) -> Attempt:
    """The ends of the ramp, rounded by `low` and `high`."""

    def ends(dim: int, rope_base: float, context: float, beta_fast: float, beta_slow: float) -> tuple:
        def pair_with(beta: float) -> float:
            """The fractional index of the pair that completes beta turns in the context."""
            return dim * math.log(context / (beta * two_pi)) / (2 * math.log(rope_base))

        return low(pair_with(beta_fast)), high(pair_with(beta_slow))

    return ends


def _not_below_zero(rounded: Attempt) -> Attempt:
    return lambda index: max(rounded(index), 0)


yarn_range = _range_by(_not_below_zero(math.floor), math.ceil)

_NEGATIVE = "low is negative here: there is no such pair, so begin at 0, max(low, 0)"

YARN_RANGE = Exercise(
    "check_yarn_range",
    answer=yarn_range,
    cases=(
        # The fractions of the first ramp round to the right pairs, so that other roundings are named before `round`.
        Case("dim 64, base 500,000, 4,096 positions", (64, 5e5, 4096, 32.0, 1.0)),
        Case("dim 96, base 100,000, 2,048 positions", (96, 1e5, 2048, 32.0, 1.0)),
        Case("MiniMind2: dim 64, base 1,000,000", (64, 1e6, 2048, 32.0, 1.0)),
        Case("other betas, 4 and 2", (128, 5e5, 1024, 4.0, 2.0)),
        Case("a context in which no pair turns 32 times", (64, 1e4, 128, 32.0, 1.0)),
    ),
    mistakes=(
        Mistake(
            lambda *arguments: yarn_range(*arguments)[::-1],
            "the two have changed places: low first. It belongs to beta_fast, since fast pairs have small indices",
        ),
        Mistake(
            _range_by(float, float),
            "these are fractions; round low down and high up, so that the ramp is a little wider than needed",
        ),
        Mistake(_range_by(int, int), "you round both down; round high up, math.ceil"),
        Mistake(
            _range_by(_not_below_zero(math.floor), math.ceil, two_pi=1.0),
            "2 pi is missing: a pair of period P completes context / P turns, and P is 2 pi / inv_freq",
        ),
        Mistake(_range_by(math.floor, math.ceil), _NEGATIVE),
        Mistake(_range_by(int, math.ceil), _NEGATIVE),
    ),
)


def check_yarn_range(attempt: Attempt) -> bool:
    """Does `attempt(dim, rope_base, context, beta_fast, beta_slow)` give the ends of YaRN's ramp, (low, high)?"""
    return YARN_RANGE.check(attempt)


def _line(dim: int, low: float, high: float) -> Tensor:
    """A straight line, 0 at pair `low` and 1 at pair `high`. `[D/2]`"""
    return (torch.arange(dim // 2, dtype=torch.float64) - low) / (high - low)


def yarn_scaling(dim: int, low: int, high: int, factor: float) -> Tensor:
    """The factor on each pair's frequency. `[D/2]`"""
    ramp = _line(dim, low, high).clamp(0, 1)
    return 1 - ramp + ramp / factor


def _step_at_high(dim: int, low: int, high: int, factor: float) -> Tensor:
    return torch.where(torch.arange(dim // 2) < high, 1.0, 1 / factor)


YARN_SCALING = Exercise(
    "check_yarn_scaling",
    answer=yarn_scaling,
    cases=(
        Case("8 pairs, ramp from 2 to 6, factor 4", (16, 2, 6, 4.0)),
        Case("32 pairs, ramp from 5 to 14, factor 16", (64, 5, 14, 16.0)),
        Case("48 pairs, ramp from 8 to 21, factor 2", (96, 8, 21, 2.0)),
    ),
    mistakes=(
        Mistake(
            lambda dim, low, high, factor: 1 + 1 / factor - yarn_scaling(dim, low, high, factor),
            "your ramp is inverted: it slows the fast pairs and leaves the slow ones alone",
        ),
        Mistake(
            lambda dim, low, high, factor: 1 - _line(dim, low, high) * (1 - 1 / factor),
            "your line continues below low and above high: keep the ramp between 0 and 1, clamp(0, 1)",
        ),
        Mistake(
            lambda dim, low, high, factor: torch.full((dim // 2,), 1 / factor, dtype=torch.float64),
            "you divide every frequency: that is linear scaling (position interpolation); YaRN leaves fast pairs alone",
        ),
        Mistake(
            lambda dim, low, high, factor: 1 / yarn_scaling(dim, low, high, 1 / factor),
            "you blend the periods; YaRN blends the frequencies, 1 - ramp + ramp / factor",
        ),
        Mistake(
            _step_at_high,
            "you scale in one step at high, as MiniMind2's formula does; between low and high there is a ramp",
        ),
    ),
    rtol=_TOLERANCE,
)


def check_yarn_scaling(attempt: Attempt) -> bool:
    """Does `attempt(dim, low, high, factor)` give YaRN's factor on each pair's frequency, `[D/2]`?"""
    return YARN_SCALING.check(attempt)
