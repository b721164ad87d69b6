"""RotationDials: one dial a pair, a query arrow and a key arrow on it, and the score that the pairs add up to.

The figure rotates in its own JavaScript (kit/rope.js, compared with torch in the tests); the numbers in its
table come from `minimind_edu.model.rope`, in float64 and in the half-split form.
"""

import torch
from torch import Tensor
from traitlets import Bunch, Int, List, TraitError, validate

from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite, proposed

LAST_POSITION = 63  # the end of the figure's ruler
QUERY = [0.6, 1.1, -0.3, 0.2, 1.1, -0.6, 1.2, 1.1]
KEY = [-1.2, 0.7, -0.9, -0.4, -0.2, 1.2, -0.7, 0.9]


class RotationDials(Figure):
    """Rotate a query and a key for their positions, pair by pair.

    Compact, it is the dials, their score, and one slider that moves both positions.

    Args:
        query, key: the arrows before any rotation, `[D]` each, D even and at most 16; pair i is channels i and i + D/2.
        query_position, key_position: 0 to 63.
        rope_base: the base of the falling frequencies.

    Raises:
        TraitError: if the arrows do not have the same even length, or a position is off the ruler.
    """

    _repr_traits = ("query_position", "key_position", "rope_base")

    query = List(Finite(), default_value=QUERY).tag(sync=True, outside=(-10.0, 10.0))
    key = List(Finite(), default_value=KEY).tag(sync=True, outside=(-10.0, 10.0))
    query_position = Int(8, min=0, max=LAST_POSITION).tag(sync=True)
    key_position = Int(5, min=0, max=LAST_POSITION).tag(sync=True)
    rope_base = Finite(1e4, min=1.0).tag(sync=True, outside=(1.0, 1e7))

    @validate("query", "key")
    def _same_even_length(self, proposal: Bunch) -> list[float]:
        check_vectors(*proposed(self, proposal, "query", "key"))
        return proposal["value"]

    def pair_products(self, query_position: int, key_position: int) -> Tensor:
        """What each pair adds to the score of these two positions. `[D/2]`, float64."""
        dim, end = len(self.query), max(query_position, key_position) + 1
        cos, sin = precompute_freqs_cis(dim, end, self.rope_base, dtype=torch.float64)
        positions = [query_position, key_position]
        both = torch.tensor([self.query, self.key], dtype=torch.float64).view(1, 2, 1, dim)
        turned, _ = apply_rotary_pos_emb(both, both, cos[positions], sin[positions])  # [1, 2, 1, D]
        query, key = turned[0, :, 0]
        return (query * key).view(2, -1).sum(0)  # [D] -> [2, D/2] -> [D/2]

    @property
    def score(self) -> float:
        """The dot product of the rotated query and the rotated key."""
        return float(self.pair_products(self.query_position, self.key_position).sum())

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        m, n = self.query_position, self.key_position
        products = self.pair_products(m, n).tolist()
        rows = [(f"pair {pair} adds", f"{value:.4f}") for pair, value in enumerate(products)]
        # a slide to the ruler's end, a slide far beyond it, and the order swapped
        for a, b in [(m, n), (m + 10, n + 10), (m + 1000, n + 1000), (n, m)]:
            value = float(self.pair_products(a, b).sum())
            rows.append((f"score, query at {a}, key at {b}", f"{value:.4f}"))
        return (
            f"A query at position {m} and a key at position {n}, {len(products)} pairs of channels: sliding both "
            "together leaves the score as it is, exchanging the two positions does not.",
            rows,
        )


def check_vectors(query: list[float], key: list[float]) -> None:
    """Raise TraitError unless both have the same even length from 2 to 16."""
    if len(query) != len(key) or len(query) % 2 or not 2 <= len(query) <= 16:
        raise TraitError(
            "query and key must have the same even length from 2 to 16 (a pair is two channels), "
            f"got {len(query)} and {len(key)}"
        )
