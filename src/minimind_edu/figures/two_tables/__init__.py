"""TwoTables: the rows of six words while a model learns that they are alike in pairs, in the table that reads and in
the one that scores.

Nothing is trained here: `python -m minimind_edu.trained.ablations.tables` stored where the rows went.
"""

from functools import cache
from typing import Any

from traitlets import Bool, Dict, Enum, default

from minimind_edu.trained.ablations.tables import PAIRS, SEEDS, STOPS, courses
from minimind_edu.web.base import Figure


@cache
def results() -> dict[str, Any]:
    """Pairs, stops, and each training; points as whole hundredths, all coordinates of a table in one list."""
    runs = []
    for course in courses():
        names = ("scoring",) if course["tied"] else ("reading", "scoring")
        tables = {name: course["tables"][name] for name in names}
        short = {
            name: {"points": [round(100 * x) for x in _flat(table["points"])], "distances": table["distances"]}
            for name, table in tables.items()
        }
        runs.append({"seed": course["seed"], "tied": course["tied"], "tables": short})
    return {"pairs": [list(pair) for pair in PAIRS], "stops": list(STOPS), "runs": runs}


def _flat(values: Any) -> list[float]:
    """Numbers of nested lists, in their order."""
    return [x for value in values for x in _flat(value)] if isinstance(values, list) else [values]


class TwoTables(Figure):
    """Train by a slider, and see which table learns that words are alike.

    Args:
        step: steps of training, one of `minimind_edu.trained.ablations.tables.STOPS`.
        tied: one table for both jobs.
        seed: of the weights and the sentences.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("step", "tied")

    step = Enum(STOPS, default_value=0).tag(sync=True)
    tied = Bool(False).tag(sync=True)
    seed = Enum(SEEDS, default_value=0).tag(sync=True)
    results = Dict(read_only=True).tag(sync=True)

    @default("results")
    def _stored_results(self) -> dict[str, Any]:
        return results()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        at, rows = STOPS.index(self.step), []
        for course in courses():
            if course["seed"] != self.seed:
                continue
            for name in ("scoring",) if course["tied"] else ("reading", "scoring"):
                first, now = (course["tables"][name]["distances"][i] for i in (0, at))
                rows.append(
                    ("the tied table" if course["tied"] else f"the {name} table", f"{first:.2f}, now {now:.2f}")
                )
        return (
            f"Distance of two words that are used alike, before training and after {self.step} steps, mean of "
            f"{len(PAIRS)} pairs, seed {self.seed}.",
            rows,
        )
