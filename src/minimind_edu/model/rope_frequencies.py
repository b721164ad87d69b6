"""How fast each pair of channels rotates, and how YaRN slows the pairs down for a longer context.

    inv_freq[i] = base^(-2i/dim)      radians from one position to the next; Su et al. 2021, arXiv 2104.09864

`rope.py` makes tables of them and rotates by them. MiniMind: `model/model_minimind.py`, precompute_freqs_cis.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from minimind_edu.validation import check_choice, check_count, check_even, check_flag, check_number, with_plain_numbers


@dataclass(frozen=True)
class RopeScaling:
    """How RoPE's frequencies are slowed down to reach beyond the context that was trained.

    `formula` chooses between YaRN (`"yarn"`; arXiv 2309.00071, in the form of its authors' code and of transformers:
    the ramp runs over the pairs' indices, where the paper's text lets it run over their rotations), and the older
    formula of MiniMind2 (`"minimind2"`), which is not YaRN although its source calls it so.

    `attention_factor` multiplies the cos and sin tables, hence the scores by its square. None means the paper's
    value, 0.1 ln(factor) + 1. MiniMind3 sets it to 1.

    MiniMind scales where the tables outgrow the trained context, and its authors' way is the default here. transformers
    scales always, which differs where a config's tables end within that context: `always` says so.
    """

    factor: float = 16.0  # how many times longer than the trained context
    original_max_position_embeddings: int = 2048  # the context that was trained, in positions
    beta_fast: float = 32.0  # pairs that rotate more often than this in that context keep their speed
    beta_slow: float = 1.0  # pairs that rotate less often than this are slowed by the whole factor
    attention_factor: float | None = None
    formula: Literal["yarn", "minimind2"] = "yarn"
    always: bool = False  # also where the tables are no longer than the trained context

    def __post_init__(self) -> None:
        with_plain_numbers(self)
        check_count("original_max_position_embeddings", self.original_max_position_embeddings)
        check_number("factor", self.factor, "at least 1", "it is how many times longer the new context is")
        check_number("beta_slow", self.beta_slow, "above 0")
        check_number("beta_fast", self.beta_fast, f"above {self.beta_slow}", "fast pairs rotate more than slow ones")
        if self.attention_factor is not None:
            check_number("attention_factor", self.attention_factor, "above 0", "it multiplies cos and sin")
        check_choice("formula", self.formula, ("yarn", "minimind2"))
        check_flag("always", self.always)

    def starts_at(self, length: int) -> bool:
        """Whether a table of `length` positions, whatever the text's, is scaled: when it outgrows what was trained."""
        return self.always or length > self.original_max_position_embeddings

    @property
    def table_factor(self) -> float:
        """The factor on the cos and sin tables."""
        if self.attention_factor is not None:
            return self.attention_factor
        return 1.0 if self.formula == "minimind2" else 0.1 * math.log(self.factor) + 1.0


def rope_frequencies(
    dim: int, rope_base: float = 1e6, rope_scaling: RopeScaling | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """inv_freq: the angle, in radians, by which each pair rotates from one position to the next.

    Args:
        dim: channels of one head, even.
        rope_base: the base of the falling frequencies (`rope_theta` in the config).
        rope_scaling: slow pairs down for a longer context; None leaves them as they are.

    Returns `[dim/2]`, falling from 1 (pair 0) to just above 1/rope_base. Raises a ValueError if dim is not an even
    number of at least 2, rope_base is not above 1, or dtype is not of floats.
    """
    check_even("dim", dim)
    check_number("rope_base", rope_base, "above 1", "frequencies fall because it is")
    if not dtype.is_floating_point:
        raise ValueError(f"frequencies are fractions, so dtype must be of floating-point numbers, got {dtype}")
    rope_base = float(rope_base)  # a whole number of many digits would overflow
    inv_freq = 1.0 / (rope_base ** (torch.arange(0, dim, 2).to(dtype) / dim))  # [D/2]
    if rope_scaling is not None:
        inv_freq = inv_freq * scaling_of_each_pair(dim, rope_base, rope_scaling, dtype)
    return inv_freq


def scaling_of_each_pair(
    dim: int,
    rope_base: float,
    rope_scaling: RopeScaling,
    dtype: torch.dtype = torch.float32,
    last_pair: int | None = None,
) -> Tensor:
    """The factor on each pair's frequency: 1 leaves it, 1/factor slows it by the whole factor. `[dim/2]`.

    `last_pair` ends YaRN's ramp there at the latest.
    """
    if rope_scaling.formula == "minimind2":
        return _minimind2_scaling(dim, rope_base, rope_scaling, dtype)
    low, high = yarn_correction_range(dim, rope_base, rope_scaling)
    high = high if last_pair is None else min(high, last_pair)
    # a ramp of no width is a step: pairs have whole numbers, so a width of 1 divides it as any smaller one would
    ramp = ((torch.arange(dim // 2, dtype=dtype) - low) / max(high - low, 1)).clamp(0, 1)
    return 1 - ramp + ramp / rope_scaling.factor


def yarn_correction_range(dim: int, rope_base: float, rope_scaling: RopeScaling) -> tuple[int, int]:
    """Where YaRN's ramp runs: pairs up to `low` keep their speed, pairs from `high` on are slowed by the factor.

    A pair that rotates `beta` times within the trained context of C positions has the (fractional) index
    dim * ln(C / (2 pi beta)) / (2 ln base). Peng et al. 2023, arXiv 2309.00071, section 3.2.
    """
    context = rope_scaling.original_max_position_embeddings

    def pair_rotating(beta: float) -> float:
        return dim * math.log(context / (beta * 2 * math.pi)) / (2 * math.log(rope_base))

    low = max(math.floor(pair_rotating(rope_scaling.beta_fast)), 0)
    # MiniMind3 clamps at dim/2 - 1, transformers at dim - 1. That differs only if the last pair rotates more than
    # beta_slow times within the trained context: with dim 64 and a base of 1,000,000 beyond 4 million positions.
    # A file of MiniMind's for which it does is refused (foreign.check_ramp_of_minimind).
    high = min(math.ceil(pair_rotating(rope_scaling.beta_slow)), dim - 1)
    return low, high


def _minimind2_scaling(dim: int, rope_base: float, rope_scaling: RopeScaling, dtype: torch.dtype) -> Tensor:
    """MiniMind2's formula. Its source names it YaRN; unlike YaRN it slows the fast pairs a little and has a step."""
    periods = 2 * math.pi / rope_frequencies(dim, rope_base, dtype=dtype)  # [D/2], in positions
    never_complete = periods > rope_scaling.original_max_position_embeddings  # from one pair on
    pair, factor = torch.arange(dim // 2, dtype=dtype), rope_scaling.factor
    beta = rope_scaling.beta_slow + (rope_scaling.beta_fast - rope_scaling.beta_slow) * pair / max(dim // 2 - 1, 1)
    return torch.where(never_complete, torch.full_like(pair, 1 / factor), (beta * factor - beta + 1) / (beta * factor))
