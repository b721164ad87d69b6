"""FrequencyComb: the period of every pair on a logarithmic axis, and what context extension does to each.

The figure computes in its own JavaScript (frequency_comb/math.js, compared with torch in the tests); the numbers
in its table come from `minimind_edu.model.rope`, in float64.
"""

import math
from typing import Literal, cast

import torch
from torch import Tensor
from traitlets import Enum, Int

from minimind_edu.model.rope_frequencies import (
    RopeScaling,
    rope_frequencies,
    scaling_of_each_pair,
    yarn_correction_range,
)
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

FORMULAS = ("none", "linear", "yarn", "minimind2")
_NAMES = {"none": "no scaling", "linear": "linear", "yarn": "YaRN", "minimind2": "early MiniMind2"}


class FrequencyComb(Figure):
    """Stretch the comb of periods by base and head_dim, and choose how a longer context slows its pairs.

    Compact, it has one slider, the distance of two tokens, and shows how far each pair has rotated at it.

    Args:
        rope_base: the base of the falling frequencies, 1e4 to 1e7.
        head_dim: channels of one head, 64, 96 or 128; half as many pairs.
        context: the context that was trained, in positions, 512 to 32768.
        factor: how many times longer the extended context is, 1 to 64.
        beta_fast, beta_slow: rotations in the trained context between which YaRN's ramp runs.
        formula: `none`, `linear` (position interpolation), `yarn` or `minimind2`.

    Raises:
        TraitError: if a number is outside its range.
    """

    _repr_traits = ("formula", "rope_base", "head_dim", "context", "factor")

    rope_base = Finite(1e6, min=1e4, max=1e7).tag(sync=True)
    head_dim = Enum((64, 96, 128), default_value=96).tag(sync=True)
    context = Int(2048, min=512, max=32768).tag(sync=True)
    factor = Finite(16.0, min=1.0, max=64.0).tag(sync=True)
    beta_fast = Finite(32.0, min=4.0, max=64.0).tag(sync=True)
    beta_slow = Finite(1.0, min=0.5, max=3.5).tag(sync=True)
    formula = Enum(FORMULAS, default_value="yarn").tag(sync=True)

    def periods(self) -> Tensor:
        """Positions from one full rotation to the next, before any scaling. `[D/2]`, float64."""
        inv_freq = rope_frequencies(self.head_dim, self.rope_base, dtype=torch.float64)
        return 2 * math.pi / inv_freq

    def unfinished(self, length: float) -> int:
        """How many pairs do not complete a rotation in `length` positions."""
        return int((self.periods() > length).sum())

    def scaling(self, formula: str) -> Tensor:
        """By what each pair's frequency is multiplied. `[D/2]`, float64."""
        half = self.head_dim // 2
        if formula in ("none", "linear"):
            scale = 1.0 if formula == "none" else 1 / self.factor
            return torch.full((half,), scale, dtype=torch.float64)
        return scaling_of_each_pair(self.head_dim, self.rope_base, self._rope_scaling(formula), torch.float64)

    def new_angles(self, formula: str) -> int:
        """How many pairs meet angles in the extended context that never occurred in the trained one."""
        # 1e-9: a pair that is slowed by exactly the factor ends at exactly its trained angle
        beyond = self.scaling(formula) * self.factor > 1 + 1e-9
        return int(((self.periods() > self.context) & beyond).sum())

    def reached(self, formula: str) -> tuple[Tensor, Tensor]:
        """How far each pair rotates in the trained and in the extended context: rotations `[D/2]`, at most 1."""
        trained = self.context / self.periods()
        return trained.clamp(max=1), (trained * self.factor * self.scaling(formula)).clamp(max=1)

    def score_change(self, formula: str, distance: int) -> float:
        """The root mean square of what the scaling changes in the score of random q and k at this distance."""
        slip = distance * (2 * math.pi / self.periods()) * (1 - self.scaling(formula))  # radians
        return float((2 - 2 * slip.cos()).mean().sqrt())

    def _rope_scaling(self, formula: str) -> RopeScaling:
        named = cast(Literal["yarn", "minimind2"], formula)
        return RopeScaling(self.factor, self.context, self.beta_fast, self.beta_slow, formula=named)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        extended = self.context * self.factor
        periods, yarn = self.periods(), self._rope_scaling("yarn")
        low, high = yarn_correction_range(self.head_dim, self.rope_base, yarn)
        pairs = len(periods)
        rows = [
            ("period of pair 0", f"{periods[0]:.1f}"),
            (f"period of pair {pairs - 1}", f"{periods[-1]:,.0f}"),
            (f"pairs without a full rotation in {self.context:,}", f"{self.unfinished(self.context)}"),
            (f"pairs without a full rotation in {extended:,.0f}", f"{self.unfinished(extended)}"),
            ("YaRN's ramp", f"from pair {low} to pair {high}"),
            ("YaRN's attention factor", f"{yarn.table_factor:.4f}"),
        ]
        for formula in FORMULAS:
            scale = self.scaling(formula)
            rows += [
                (f"{_NAMES[formula]}: scale of pairs 1 and {pairs - 1}", f"{scale[1]:.4f}, {scale[-1]:.4f}"),
                (f"{_NAMES[formula]}: pairs that meet new angles", f"{self.new_angles(formula)}"),
                (f"{_NAMES[formula]}: change of scores at distance 1", f"{self.score_change(formula, 1):.4f}"),
            ]  # fmt: skip
        return (
            f"{pairs} pairs, base {self.rope_base:,.0f}, trained on {self.context:,} positions and extended to "
            f"{extended:,.0f}: which periods fit, and what each way of scaling does to them.",
            rows,
        )
