"""Exercises on RoPE's frequencies and their scaling.

The references are written out in the few lines that a learner needs; the tests compare them with the package.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Case, Exercise, Mistake

_TOLERANCE = 1e-5  # a learner may compute in float32


def unfinished_pairs(dim: int, rope_base: float, context: float, exponent: float = 1.0) -> int:
    """How many pairs complete no rotation in `context` positions; the exponents are 2i / dim times `exponent`."""
    periods = 2 * math.pi * rope_base ** (exponent * torch.arange(0, dim, 2, dtype=torch.float64) / dim)  # [D/2]
    return int((periods > context).sum())


check_unfinished_pairs = Exercise(
    "Does `attempt(dim, rope_base, context)` count the pairs that complete no rotation in `context` positions?",
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
            "this is how many pairs do complete a rotation (and the index of the first that does not); count the rest",
        ),
        Mistake(
            lambda dim, base, context: 2 * unfinished_pairs(dim, base, context),
            "you count channels; every pair has two of them. Count the pairs",
        ),
        Mistake(
            lambda dim, base, context: unfinished_pairs(dim, base, 2 * math.pi * context),
            "you count the pairs that rotate by less than one radian; a full rotation has 2 pi radians",
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


def largest_base(dim: int, context: float) -> float:
    """The base whose slowest pair completes exactly one rotation in `context` positions."""
    return (context / (2 * math.pi)) ** (dim / (dim - 2))


check_largest_base = Exercise(
    "Does `attempt(dim, context)` give the largest base for which no pair stays unfinished in `context` positions?",
    answer=largest_base,
    cases=(
        Case("dim 4, 100 positions", (4, 100)),
        Case("dim 64, 32,768 positions", (64, 32768)),
        Case("dim 128, 2,048 positions", (128, 2048)),
    ),
    mistakes=(
        Mistake(
            lambda dim, context: context / (2 * math.pi),
            "with this base an exponent of 1 would just fit, but the last exponent is (dim - 2) / dim: "
            "the base may be larger",
        ),
        Mistake(
            lambda dim, context: (context / (2 * math.pi)) ** ((dim - 2) / dim),
            "you raised to the last exponent; the base is raised to it already, so undo that with dim / (dim - 2)",
        ),
        Mistake(
            lambda dim, context: context ** (dim / (dim - 2)),
            "2 pi is missing: the slowest period is 2 pi * base ** ((dim - 2) / dim)",
        ),
        Mistake(
            lambda dim, context: (context / 360) ** (dim / (dim - 2)),
            "angles are in radians here: a full rotation has 2 pi of them, not 360",
        ),
        *(
            Mistake(
                lambda dim, context, whole=whole: whole(largest_base(dim, context)),
                "a base need not be a whole number: return it as a float",
            )
            for whole in (math.floor, round, math.ceil)
        ),
        Mistake(
            lambda dim, context: math.log(context / (2 * math.pi)) * dim / (dim - 2),
            "this is the logarithm of the base",
        ),
        Mistake(
            lambda dim, context: (context / (2 * math.pi)) ** (dim / (dim - 1)),
            "i ends at dim / 2 - 1, so the last exponent, 2i / dim, is (dim - 2) / dim and not (dim - 1) / dim",
        ),
    ),
    rtol=_TOLERANCE,
)


def _ramp(
    dim: int,
    rope_base: float,
    context: float,
    rotation: float = 2 * math.pi,
    last: Callable[[float], float] = math.ceil,
    lowest: float = 0,
) -> Tensor:
    """YaRN's ramp before it is cut off: 0 at the pair of 32 rotations, 1 at that of one. `[D/2]`"""

    def pair_with(rotations: float) -> float:
        return dim * math.log(context / (rotation * rotations)) / (2 * math.log(rope_base))

    low = max(math.floor(pair_with(32)), lowest)
    return (torch.arange(dim // 2, dtype=torch.float64) - low) / (last(pair_with(1)) - low)


def _blend(ramp: Tensor, factor: float) -> Tensor:
    return 1 - ramp + ramp / factor


def yarn_scaling(dim: int, rope_base: float, context: float, factor: float) -> Tensor:
    """What YaRN multiplies each pair's frequency by, for betas of 32 and 1. `[D/2]`"""
    return _blend(_ramp(dim, rope_base, context).clamp(0, 1), factor)


def _by_rotations(dim: int, rope_base: float, context: float, factor: float) -> Tensor:
    """The ramp of YaRN's paper, which rises with the number of rotations and not with the pair's index."""
    periods = 2 * math.pi * rope_base ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return _blend(1 - ((context / periods - 1) / (32 - 1)).clamp(0, 1), factor)


def _broken(dim: int, rope_base: float, context: float, factor: float) -> Tensor:
    """What the exercise hands out."""
    return _blend(1 - _ramp(dim, rope_base, context, rotation=1.0, last=math.floor).clamp(0, 1), factor)


check_yarn_scaling = Exercise(
    "Does `attempt(dim, rope_base, context, factor)` give YaRN's factor on each pair's frequency, `[D/2]`?",
    answer=yarn_scaling,
    cases=(
        Case("dim 64, base 500,000, 4,096 positions, factor 4", (64, 5e5, 4096, 4.0)),
        Case("MiniMind2: dim 64, base 1,000,000, 2,048 positions, factor 16", (64, 1e6, 2048, 16.0)),
        Case("dim 96, base 100,000, 2,048 positions, factor 2", (96, 1e5, 2048, 2.0)),
        Case("a context in which no pair completes 32 rotations", (64, 1e4, 128, 8.0)),
    ),
    mistakes=(
        Mistake(_broken, "this is still what the broken function gives: three things are wrong with it"),
        Mistake(
            lambda dim, base, context, factor: 1 + 1 / factor - yarn_scaling(dim, base, context, factor),
            "your ramp is inverted: it slows the fast pairs and leaves the slow ones alone",
        ),
        Mistake(
            lambda dim, base, context, factor: _blend(_ramp(dim, base, context, rotation=1.0).clamp(0, 1), factor),
            "2 pi is missing: a pair completes context / P rotations, and P is 2 pi / inv_freq",
        ),
        Mistake(
            lambda dim, base, context, factor: _blend(_ramp(dim, base, context, last=math.floor).clamp(0, 1), factor),
            "your ramp ends too early: round its end up, so that it is a little wider than needed",
        ),
        Mistake(
            lambda dim, base, context, factor: _blend(_ramp(dim, base, context, last=float).clamp(0, 1), factor),
            "round the ramp's ends to whole pairs: low down, high up",
        ),
        Mistake(
            _by_rotations,
            "your ramp rises with the number of rotations, as in YaRN's paper; the authors' code, and this exercise, "
            "let it rise with the pair's index, from low to high",
        ),
        Mistake(
            lambda dim, base, context, factor: _blend(_ramp(dim, base, context), factor),
            "your line continues below low and above high: keep the ramp between 0 and 1, clamp(0, 1)",
        ),
        Mistake(
            lambda dim, base, context, factor: 1 / yarn_scaling(dim, base, context, 1 / factor),
            "you blend the periods; YaRN blends the frequencies, 1 - ramp + ramp / factor",
        ),
        Mistake(
            lambda dim, base, context, factor: yarn_scaling(dim, base, context, factor).repeat(2),
            "you return one scale per channel; both channels of a pair share one, so return dim // 2 of them",
        ),
        Mistake(
            lambda dim, base, context, factor: _blend(_ramp(dim, base, context, lowest=-math.inf).clamp(0, 1), factor),
            "low is negative here, and there is no such pair: begin at 0, max(low, 0)",
        ),
    ),
    rtol=_TOLERANCE,
)


def first_lost_position(dtype: torch.dtype) -> int:
    """The smallest position that `dtype` rounds to the same number as the one after it."""
    return round(2 / torch.finfo(dtype).eps)


check_first_lost_position = Exercise(
    "Does `attempt(dtype)` give the smallest position that is the same number as the position after it?",
    answer=first_lost_position,
    cases=(
        Case("bfloat16, 8 binary digits", (torch.bfloat16,)),
        Case("float16, 11 binary digits", (torch.float16,)),
        Case("float32, 24 binary digits", (torch.float32,)),
    ),
    mistakes=(
        Mistake(
            lambda dtype: first_lost_position(dtype) // 2,
            "this number and the next are still different in this dtype; go on to the next power of 2",
        ),
        Mistake(
            lambda dtype: first_lost_position(dtype) + 1,
            "this is the position that is rounded away; return the one before it, which it is taken for",
        ),
        Mistake(
            lambda dtype: first_lost_position(dtype) - 1,
            "this is the last position without a double; return the one after it",
        ),
        Mistake(
            lambda dtype: first_lost_position(dtype) * 2,
            "from here on even numbers two apart become equal; neighbors did so before",
        ),
        Mistake(
            lambda dtype: torch.finfo(dtype).max,
            "this is the largest number of the dtype; long before it, neighboring whole numbers become equal",
        ),
    ),
)
