"""The usual wrong answers to the exercises on RoPE's frequencies and their scaling, each with its hint.

The references are written here once more, in the few lines that a learner needs; the tests compare them with
`minimind_edu.rope`.
"""

import math

import torch
from torch import Tensor

from minimind_edu.checks._report import Attempt, Mistake


def _exponents(dim: int) -> Tensor:
    return torch.arange(0, dim, 2, dtype=torch.float64) / dim  # [D/2]


def periods(dim: int, rope_base: float) -> Tensor:
    """Positions from one full turn of each pair to the next. `[D/2]`"""
    return 2 * math.pi * rope_base ** _exponents(dim)


def _with_both_ends(dim: int, rope_base: float) -> Tensor:
    return 2 * math.pi * rope_base ** torch.linspace(0, 1, dim // 2, dtype=torch.float64)


PERIOD_MISTAKES = (
    Mistake(
        lambda dim, base: base ** -_exponents(dim),
        "these are the frequencies, radians for each position; a period is a full turn divided by the frequency",
    ),
    Mistake(
        lambda dim, base: base ** _exponents(dim),
        "these are positions for one radian; a full turn has 2 pi of them, so multiply by 2 * math.pi",
    ),
    Mistake(
        lambda dim, base: 360 * base ** _exponents(dim),
        "you count a turn as 360 degrees, but the frequencies are in radians: a turn is 2 * math.pi",
    ),
    Mistake(
        lambda dim, base: math.pi * base ** _exponents(dim), "this is half a turn: a full one has 2 * math.pi radians"
    ),
    Mistake(
        lambda dim, base: 2 * math.pi * base ** (_exponents(dim) / 2),
        "your exponent is i / dim: it must be 2i / dim, which torch.arange(0, dim, 2) gives",
    ),
    Mistake(
        lambda dim, base: 2 * math.pi * base ** (_exponents(dim) + 2 / dim),
        "your first pair has i = 1; it is i = 0, so that its period is 2 pi whatever the base",
    ),
    Mistake(
        _with_both_ends,
        "your last pair has the exponent 1, a period of 2 pi times the base. The exponents end at (dim - 2) / dim; the "
        "notes' 6,283,185 is the same slip",
    ),
    Mistake(
        lambda dim, base: periods(dim, base).flip(0),
        "your pairs stand in reverse: pair 0 is the fastest and has the shortest period",
    ),
    Mistake(lambda dim, base: periods(dim, 1e6), "your base is always 1,000,000: use the argument rope_base"),
)


def unfinished_pairs(dim: int, rope_base: float, context: int) -> int:
    """How many pairs do not complete a turn in `context` positions."""
    return int((periods(dim, rope_base) > context).sum())


UNFINISHED_MISTAKES = (
    Mistake(
        lambda dim, base, context: dim // 2 - unfinished_pairs(dim, base, context),
        "this is how many pairs do complete a turn (and the index of the first that does not); count the others",
    ),
    Mistake(
        lambda dim, base, context: 2 * unfinished_pairs(dim, base, context),
        "you count channels; every pair has two of them, and pairs are asked for",
    ),
    Mistake(
        lambda dim, base, context: int((base ** _exponents(dim) > context).sum()),
        "you count pairs that do not get one radian far; a full turn is 2 pi radians",
    ),
    Mistake(
        lambda dim, base, context: int((periods(dim, base) > 2 * context).sum()),
        "you count pairs that do not get half a turn far; a full turn is 2 pi radians",
    ),
    Mistake(
        lambda dim, base, context: unfinished_pairs(dim, base, context) / (dim // 2),
        "this is a share of the pairs; their number is asked for",
    ),
    Mistake(
        lambda dim, base, context: int((2 * math.pi * base ** (_exponents(dim) / 2) > context).sum()),
        "your exponent is i / dim: it must be 2i / dim, which torch.arange(0, dim, 2) gives",
    ),
    Mistake(
        lambda dim, base, context: int((periods(dim, 1e6) > context).sum()),
        "your base is always 1,000,000: use the argument rope_base",
    ),
)


def table_bytes(hidden_size: int, num_heads: int, end: int, bytes_per_number: int) -> int:
    """Bytes of the cos and the sin table together."""
    return 2 * end * (hidden_size // num_heads) * bytes_per_number


TABLE_BYTES_MISTAKES = (
    Mistake(
        lambda hidden, heads, end, size: end * (hidden // heads) * size,
        "this is one table (or two of half the width); there are two, cos and sin, and both have one column a channel",
    ),
    Mistake(
        lambda hidden, heads, end, size: end * (hidden // heads // 2) * size,
        "this is one table with one column a pair; there are two tables, and each holds its columns twice",
    ),
    Mistake(
        lambda hidden, heads, end, size: 2 * end * hidden * size,
        "your rows are hidden_size wide; all heads share one table, so a row has hidden_size / num_heads numbers",
    ),
    Mistake(
        lambda hidden, heads, end, size: 2 * end * (hidden // heads),
        "these are numbers; each takes bytes_per_number bytes",
    ),
    Mistake(
        lambda hidden, heads, end, size: 16 * end * (hidden // heads) * size, "these are bits; a byte has eight of them"
    ),
    Mistake(
        lambda hidden, heads, end, size: 2 * end * (hidden // heads) * size / 2**20,
        "this is in MiB; bytes are asked for",
    ),
    Mistake(
        lambda hidden, heads, end, size: 2 * (hidden // heads) * size,
        "this is one row of both tables; there is a row for each of the `end` positions",
    ),
    Mistake(
        lambda hidden, heads, end, size: 2 * end * heads * size,
        "your rows have one number a head; they have one a channel of a head, hidden_size / num_heads",
    ),
)


def _pair_turning(beta: float, dim: int, rope_base: float, context: float, two_pi: float = 2 * math.pi) -> float:
    """The fractional index of the pair that turns beta times in the context."""
    return dim * math.log(context / (beta * two_pi)) / (2 * math.log(rope_base))


def yarn_range(dim: int, rope_base: float, context: int, beta_fast: float, beta_slow: float) -> tuple[int, int]:
    """The pair at which YaRN's ramp begins and the one at which it ends."""
    low, high = (_pair_turning(beta, dim, rope_base, context) for beta in (beta_fast, beta_slow))
    return max(math.floor(low), 0), math.ceil(high)


def _range_by(low: Attempt, high: Attempt, **changes: float) -> Attempt:
    """yarn_range with other roundings, or with another constant in its logarithm."""

    def wrong(dim: int, base: float, context: int, fast: float, slow: float) -> tuple:
        ends = [_pair_turning(beta, dim, base, context, **changes) for beta in (fast, slow)]
        return max(low(ends[0]), 0), high(ends[1])

    return wrong


def _same(index: float) -> float:
    return index


YARN_RANGE_MISTAKES = (
    Mistake(
        lambda dim, base, context, fast, slow: yarn_range(dim, base, context, fast, slow)[::-1],
        "the two have changed places: low first. It belongs to beta_fast, since fast pairs have small indices",
    ),
    Mistake(
        lambda dim, base, context, fast, slow: yarn_range(dim, base, context, slow, fast),
        "the betas have changed places: low is where a pair still turns beta_fast times",
    ),
    Mistake(
        _range_by(_same, _same),
        "these are fractions; round low down and high up, so that the ramp is a little wider than needed",
    ),
    Mistake(_range_by(round, round), "you round to the nearest; low is rounded down and high up"),
    Mistake(_range_by(math.floor, math.floor), "you round both down; high is rounded up, math.ceil"),
    Mistake(_range_by(math.ceil, math.ceil), "you round both up; low is rounded down, math.floor"),
    Mistake(_range_by(math.ceil, math.floor), "the roundings have changed places: low down, high up"),
    Mistake(
        _range_by(math.floor, math.ceil, two_pi=1.0),
        "2 pi is missing: a pair of period P turns context / P times, and P is 2 pi / inv_freq",
    ),
    Mistake(
        lambda dim, base, context, fast, slow: yarn_range(2 * dim, base, context, fast, slow),
        "your indices are those of channels, not of pairs: the exponent is 2i / dim, so a 2 belongs below the line",
    ),
    Mistake(
        lambda dim, base, context, fast, slow: (
            math.floor(_pair_turning(fast, dim, base, context)),
            math.ceil(_pair_turning(slow, dim, base, context)),
        ),
        "low is negative here: there is no such pair, so begin at 0, max(low, 0)",
    ),
)


def yarn_scaling(dim: int, low: int, high: int, factor: float) -> Tensor:
    """By what YaRN multiplies each pair's frequency. `[D/2]`"""
    ramp = _ramp(dim, low, high)
    return 1 - ramp + ramp / factor


def _ramp(dim: int, low: float, high: float) -> Tensor:
    """0 up to pair `low`, 1 from pair `high` on, a straight line between. `[D/2]`"""
    return _line(dim, low, high).clamp(0, 1)


def _line(dim: int, low: float, high: float) -> Tensor:
    return (torch.arange(dim // 2, dtype=torch.float64) - low) / (high - low)


def _step_at(dim: int, corner: int, factor: float) -> Tensor:
    ones = torch.ones(dim // 2, dtype=torch.float64)
    return torch.where(torch.arange(dim // 2) < corner, ones, ones / factor)


YARN_SCALING_MISTAKES = (
    Mistake(
        lambda dim, low, high, factor: _ramp(dim, low, high) + (1 - _ramp(dim, low, high)) / factor,
        "your ramp is inverted: it slows the fast pairs, which know all their angles, and leaves the slow ones alone",
    ),
    Mistake(
        lambda dim, low, high, factor: (
            1 - _line(dim, low, high) + _line(dim, low, high) / factor
        ),
        "your line runs on below low and beyond high: keep the ramp between 0 and 1, clamp(0, 1)",
    ),
    Mistake(
        lambda dim, low, high, factor: torch.full((dim // 2,), 1 / factor, dtype=torch.float64),
        "you divide every frequency: that is linear scaling (position interpolation); fast pairs stay as they are",
    ),
    Mistake(
        lambda dim, low, high, factor: 1 - _ramp(dim, low, high) + _ramp(dim, low, high) * factor,
        "your slow pairs turn faster, not slower: frequencies are divided by the factor, periods grow with it",
    ),
    Mistake(
        lambda dim, low, high, factor: 1 / (1 - _ramp(dim, low, high) + _ramp(dim, low, high) * factor),
        "you blend the periods; YaRN blends the frequencies, 1 - ramp + ramp / factor",
    ),
    Mistake(
        lambda dim, low, high, factor: _step_at(dim, high, factor),
        "you drop in one step at high, as MiniMind2's formula does; between low and high there is a ramp",
    ),
    Mistake(
        lambda dim, low, high, factor: _step_at(dim, low + 1, factor),
        "you drop in one step at low; between low and high there is a ramp",
    ),
    Mistake(
        lambda dim, low, high, factor: yarn_scaling(dim, 0, dim // 2 - 1, factor),
        "your ramp runs over all pairs; it begins at low and ends at high",
    ),
    Mistake(
        lambda dim, low, high, factor: _ramp(dim, low, high),
        "this is the ramp itself; the frequency is multiplied by 1 - ramp + ramp / factor",
    ),
    Mistake(
        lambda dim, low, high, factor: yarn_scaling(2 * dim, low, high, factor),
        "one number a pair is asked for, dim // 2 of them; you return one a channel",
    ),
)  # fmt: skip
