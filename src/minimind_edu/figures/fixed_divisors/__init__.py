"""FixedDivisors: the norms of a trained model divide by fixed numbers, and a reader chooses which.

Every setting was run and stored by `python -m minimind_edu.trained.living.divisors`; the ES module only draws it.
"""

from typing import Any

from traitlets import Bool, Dict, Enum, default

from minimind_edu.trained.living.divisors import PERCENTILES, SWITCHES, measured
from minimind_edu.web.base import Figure

OWN = 0  # the stop of the slider at which each norm divides by the size of what it reads
FIELDS = ("percentile", *SWITCHES, "nats", "first", "others", "divisors")  # of a run, in the order of its values


def _packed(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


class FixedDivisors(Figure):
    """Choose what the norms before the eight sublayers divide by, and see how large the vectors become.

    Args:
        about: what the section speaks of, which names the figure and chooses its switches: `number` or `square`.
        percentile: of the sizes that a norm usually meets, one of `PERCENTILES`; 0: each vector's own size.
        apart: whether `<s>` has a number of its own, the size that it always has.
        proportional: whether the networks answer in proportion to what they read; trained ones answer with the square.
        networks_only: whether only norms before networks divide by fixed numbers, and those before attention measure.
        twin: whether the model is the twin.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("about", "percentile", *SWITCHES, "twin")

    about = Enum(("number", "square"), default_value="number").tag(sync=True)
    percentile = Enum((OWN, *PERCENTILES), default_value=OWN).tag(sync=True)
    apart = Bool(False).tag(sync=True)
    proportional = Bool(False).tag(sync=True)
    networks_only = Bool(False).tag(sync=True)
    twin = Bool(False).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        """The names of the `fields`, once; of each model its `own` run, and of each other run its values, unnamed."""
        return {"fields": list(FIELDS)} | {
            name: {"own": found["own"], "rows": [[_packed(row[field]) for field in FIELDS] for row in found["rows"]]}
            for name, found in measured().items()
        }

    def setting(self) -> dict[str, Any]:
        """The stored run of this setting: nats, and at each norm the size of `<s>` and the median of the others."""
        model = measured()["twin" if self.twin else "living"]
        if self.percentile == OWN:
            return model["own"]
        names = ("percentile", *SWITCHES)
        wanted = [getattr(self, name) for name in names]
        return next(row for row in model["rows"] if [row[name] for name in names] == wanted)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        found = self.setting()
        rows = [("distance from the true probabilities", f"{found['nats']:.2f} nats a word")]
        for name, key in (("<s>", "first"), ("the other words, median", "others")):
            rows.append((f"size at norms 1 to 9: {name}", ", ".join(f"{size:.3g}" for size in found[key])))
        return "Sizes in the stream of a trained model whose norms divide by fixed numbers.", rows
