"""TickTock: two words that take turns, and the rows with which a model without or with a block reads and scores them.

Nothing is trained here: the figure multiplies the rows that a reader chooses (math.js).
"""

import math

import torch
from torch import Tensor
from traitlets import Enum, List

from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

WORDS = ("tick", "tock")
EDGE = 3.0  # a coordinate of a row is at most so large
TICK, TOCK = [2.0, 0.0], [1.0, 2.0]


def _row(default: list[float]) -> List:
    return List(Finite(min=-EDGE, max=EDGE), default_value=default, minlen=2, maxlen=2).tag(
        sync=True, outside=(-EDGE, EDGE)
    )


class TickTock(Figure):
    """Drag the rows of two words until tock follows tick, and tick follows tock.

    Args:
        model: `one`, a table for reading and scoring; `two`, a table for each; `block`, one table, and between reading
            and scoring a block that rotates the vector.
        tick: the row of tick, two channels from -3 to 3; of two tables the one that scores.
        tock: that of tock.
        reads_tick: of two tables, the row with which tick is read.
        reads_tock: that of tock.
        angle: how far the block rotates, 0 to 360 degrees, counter-clockwise.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("model", "tick", "tock")

    model = Enum(("one", "two", "block"), default_value="one").tag(sync=True)
    tick = _row(TICK)
    tock = _row(TOCK)
    reads_tick = _row(TICK)
    reads_tock = _row(TOCK)
    angle = Finite(0, min=0, max=360).tag(sync=True)

    def leads(self) -> Tensor:
        """By how much the logit of the right word is above that of the other, after tick and after tock, [2]."""
        rows = torch.tensor([self.tick, self.tock], dtype=torch.float64)
        hidden = rows
        if self.model == "two":
            hidden = torch.tensor([self.reads_tick, self.reads_tock], dtype=torch.float64)
        if self.model == "block":
            angle = math.radians(self.angle)
            rotation = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
            hidden = rows @ torch.tensor(rotation, dtype=torch.float64).T
        logits = hidden @ rows.T  # [word read, word scored]
        return torch.stack([logits[0, 1] - logits[0, 0], logits[1, 0] - logits[1, 1]])

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        leads = self.leads()
        rows = [
            (f"after {read}, {right} leads by", f"{lead:z.1f}")
            for read, right, lead in zip(WORDS, reversed(WORDS), leads, strict=True)
        ]
        tables = {"one": "one table", "two": "two tables", "block": "one table and a block"}[self.model]
        return f"Tick and tock take turns: by how much the right word leads with {tables}.", [
            *rows,
            ("both together", f"{leads.sum():z.1f}"),
        ]
