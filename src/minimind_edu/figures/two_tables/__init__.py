"""TwoTables: how alike the rows of words are that are used alike, and of others, while a model learns: in the table
that reads, and in the one that scores.

Nothing is trained here: `python -m minimind_edu.trained.ablations.tables` stored every setting, with five seeds each.
"""

from functools import cache
from typing import Any

from traitlets import Dict, Enum, default

from minimind_edu.trained.ablations.tables import KINDS, STOPS, courses
from minimind_edu.web.base import Figure

TABLES = ("reading", "scoring")


@cache
def results() -> dict[str, Any]:
    """Stops, and for each kind and table: mean cosines `[stop, seed]`, and the distance `[stop]`."""
    stops, kinds = range(len(STOPS)), {}
    for kind in KINDS:
        runs = [course["tables"] for course in courses() if course["kind"] == kind]
        kinds[kind] = {}
        for name in (name for name in TABLES if name in runs[0]):
            tables = [run[name] for run in runs]
            distances = [[table["distance"][at] for table in tables] for at in stops]
            kinds[kind][name] = {"distance": [round(_mean(seeds), 3) for seeds in distances]} | {
                couples: [[round(_mean(each[couples][at]), 3) for each in tables] for at in stops]
                for couples in ("pairs", "others")
            }
    return {"stops": list(STOPS), "kinds": kinds}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


class TwoTables(Figure):
    """Train by a slider, and see in which table the rows of words become alike.

    Args:
        kind: `two` tables; `small`, two, of which the one that reads began ten times smaller; `decay`, two, with weight
            decay; `one` table for both jobs.
        step: steps of training, one of `minimind_edu.trained.ablations.tables.STOPS`.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("kind", "step")

    kind = Enum(tuple(KINDS), default_value="two").tag(sync=True)
    step = Enum(STOPS, default_value=0).tag(sync=True)
    results = Dict(read_only=True).tag(sync=True)

    @default("results")
    def _stored_results(self) -> dict[str, Any]:
        return results()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        at, rows = STOPS.index(self.step), []
        for name, table in self.results["kinds"][self.kind].items():
            pairs, others = (_mean(table[couples][at]) for couples in ("pairs", "others"))
            table_name = "the one table" if self.kind == "one" else f"the {name} table"
            rows.append((table_name, f"used alike {pairs:z.2f}, others {others:z.2f}"))
        return f"Mean cosine of the rows of two words after {self.step} steps, five seeds.", rows
