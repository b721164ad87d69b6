"""FiveSwitches: five parts of a model, each initialized large or small, and how its training goes.

Nothing is trained here: `python -m minimind_edu.trained.sweeps --only board` trained all 32 settings with three seeds,
and the figure shows what is stored of them.
"""

from typing import Any

from traitlets import Bool, Dict, Enum, default

from minimind_edu.trained.sweeps import BOARD, EVERY, PARTS, RECIPE, runs
from minimind_edu.web.base import Figure

DIGITS = 2  # of what is drawn: a hundredth of a nat is a pixel
SWITCHES = {"table": "table", "q_k": "q, k", "v_o": "v, o", "feed_forward": "feed-forward", "norm": "norm"}


def board() -> dict[str, Any]:
    """What the figure draws: for each setting the small parts, one letter each, and the distances of its seeds."""
    trainings: dict[str, Any] = {"".join(_letter(part) for part in small): [] for small in BOARD}
    for run in runs()["board"]:
        name = "".join(_letter(part) for part in run["small"])
        trainings[name].append([round(above, DIGITS) for above in run["above"]])
    return {"steps": RECIPE.steps, "every": EVERY, "trainings": trainings}


def _letter(part: str) -> str:
    """How a part is named in a setting: t, q, v, f, n."""
    return part[0]


class FiveSwitches(Figure):
    """Choose which parts of a small model begin with large numbers, and see it learn to translate, or not.

    Args:
        shows: `curve`, how the training of this setting goes; `all`, where those of all settings end.
        table: whether the table of words begins large.
        q_k: whether the matrices of queries and keys do.
        v_o: whether those of values and outputs do.
        feed_forward: whether those of the feed-forward networks do.
        norm: whether the gains of the norms do, at 1, where they begin in every model.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", *SWITCHES)

    shows = Enum(("curve", "all"), default_value="curve").tag(sync=True)
    table = Bool(True).tag(sync=True)
    q_k = Bool(True).tag(sync=True)
    v_o = Bool(True).tag(sync=True)
    feed_forward = Bool(True).tag(sync=True)
    norm = Bool(True).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return board()

    def small(self) -> tuple[str, ...]:
        """The parts that begin small, names of `minimind_edu.trained.sweeps.PARTS`."""
        return tuple(part for switch, part in SWITCHES.items() if not getattr(self, switch))

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for small in dict.fromkeys((self.small(), (), *((part,) for part in PARTS))):
            ends = [seed[-1] for seed in self.stored["trainings"]["".join(map(_letter, small))]]
            rows.append((f"small: {', '.join(small) or 'nothing'}", " ".join(f"{end:.2f}" for end in ends)))
        return (
            f"How far above the floor three trainings of {RECIPE.steps} steps end, in nats per word, by what begins "
            "with small numbers.",
            rows,
        )
