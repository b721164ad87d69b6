"""PairingLab: lay out the table and the rotation by either convention, and see which pairs of settings give RoPE.

The figure computes its scores in JavaScript (kit/rope.js, compared with torch in the tests); the numbers in its
table come from `minimind_edu.model.rope`, in float64.
"""

import torch
from torch import Tensor
from traitlets import Bool, Bunch, Enum, Int, List, validate

from minimind_edu.figures.rotation_dials import KEY, QUERY, check_vectors
from minimind_edu.model.for_comparison import half_split_permutation, rotate_every_two, rotate_interleaved
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis, rope_angles
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite, proposed

LAYOUTS = ("half-split", "interleaved")
SHIFTS = (0, 10, 100, 1000)


class PairingLab(Figure):
    """Switch the layout of the table and of the rotation independently, and slide query and key together.

    Compact, it is the channels and their partners, and the choice of the rotation.

    Args:
        query, key: what is rotated, `[D]` each, D even and at most 16.
        query_position, key_position: the positions at shift 0.
        rope_base: the base of the falling frequencies.
        table: which channels of the table hold the same angle, `half-split` or `interleaved`.
        rotation: which channels are rotated together, `half-split` or `interleaved`.
        shift: how far both positions are slid, 0 to 1000.
        permuted: whether the channels of both vectors stand in the order of `half_split_permutation`.

    Raises:
        TraitError: if the vectors do not have the same even length, or a position or the shift is out of range.
    """

    _repr_traits = ("table", "rotation", "shift", "permuted")

    query = List(Finite(), default_value=QUERY).tag(sync=True)
    key = List(Finite(), default_value=KEY).tag(sync=True)
    query_position = Int(8, min=0).tag(sync=True)
    key_position = Int(5, min=0).tag(sync=True)
    rope_base = Finite(1e4, min=1.0).tag(sync=True)
    table = Enum(LAYOUTS, default_value="half-split").tag(sync=True)
    rotation = Enum(LAYOUTS, default_value="half-split").tag(sync=True)
    shift = Int(20, min=0, max=SHIFTS[-1]).tag(sync=True)
    permuted = Bool(False).tag(sync=True)

    @validate("query", "key")
    def _same_even_length(self, proposal: Bunch) -> list[float]:
        check_vectors(*proposed(self, proposal, "query", "key"))
        return proposal["value"]

    def scores(self, shifts: tuple[int, ...], table: str, rotation: str, permuted: bool = False) -> Tensor:
        """The score at each shift, with the table and the rotation laid out as named. `[len(shifts)]`, float64."""
        both = torch.tensor([self.query, self.key], dtype=torch.float64)  # [2, D]
        if permuted:
            both = both[:, half_split_permutation(both.shape[1])]
        positions = torch.tensor([[self.query_position], [self.key_position]])
        positions = (positions + torch.tensor(shifts)).flatten()  # [2 * shifts], queries first
        x = both.repeat_interleave(len(shifts), dim=0)[None, :, None]  # [1, 2 * shifts, 1, D]
        query, key = _turn(x, positions, self.rope_base, table, rotation)[0, :, 0].chunk(2)
        return (query * key).sum(-1)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        settings = [(table, rotation, False) for table in LAYOUTS for rotation in LAYOUTS]
        rows = []
        for table, rotation, permuted in [*settings, ("half-split", "half-split", True)]:
            values = self.scores(SHIFTS, table, rotation, permuted).tolist()
            label = f"table {table}, rotation {rotation}" + (", channels permuted" * permuted)
            rows.append((label, ", ".join(f"{value:.4f}" for value in values)))
        return (
            "The score at shifts 0, 10, 100 and 1000: it stays the same where the table and the rotation pair the same "
            "channels, and wanders, with no error, where they do not.",
            rows,
        )


def _turn(x: Tensor, positions: Tensor, base: float, table: str, rotation: str) -> Tensor:
    """Rotate x `[B, S, H, D]`; with unequal layouts the rotation is fed the table of the other one."""
    dim, end = x.shape[-1], int(positions.max()) + 1
    angles = rope_angles(dim, end, base, dtype=torch.float64)[positions]  # [S, D/2]
    if table == rotation == "interleaved":
        return rotate_interleaved(x, x, angles.cos(), angles.sin())[0]
    if table == "half-split":
        cos, sin = (t[positions] for t in precompute_freqs_cis(dim, end, base, dtype=torch.float64))
    else:
        cos, sin = (t.repeat_interleave(2, dim=-1) for t in (angles.cos(), angles.sin()))
    if rotation == "half-split":
        return apply_rotary_pos_emb(x, x, cos, sin)[0]
    # rotate_interleaved refuses a table of this width; the bare formula does not
    return x * cos.unsqueeze(1) + rotate_every_two(x) * sin.unsqueeze(1)
