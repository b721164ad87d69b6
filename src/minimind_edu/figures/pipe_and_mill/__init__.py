"""PipeAndMill: how long a step waits for its weights, by the number of texts, for three models of very different size.

Nothing is timed here: `python -m minimind_edu.measure.waiting` measured all that the figure shows.
"""

from typing import Any

from traitlets import Dict, Enum, default

from minimind_edu.measure.costs import decode_cost
from minimind_edu.measure.waiting import CONTEXT, MODELS, TEXTS, quartiles, stored_runs
from minimind_edu.web.base import Figure

PLACES = {"memory": "file", "hand": "at hand"}  # of the weights, and the way that was measured


def measured() -> dict[str, Any]:
    """What the figure draws, in milliseconds: quartiles of all runs together, for each number of texts."""
    models = {}
    for name, config in MODELS.items():
        megabytes = decode_cost(config, 1).weight_bytes / 1e6
        steps = {
            place: [[us / 1e3 for us in quartiles("step", name, way, texts, CONTEXT)] for texts in TEXTS]
            for place, way in PLACES.items()
        }
        pipe = quartiles("pipe", name)[1] / 1e3
        models[name] = {"said": f"{megabytes:.0f}" if megabytes >= 1 else f"{megabytes:.1f}", "pipe": pipe, **steps}
    return {"texts": list(TEXTS), "machine": stored_runs()["name"], "models": models}


class PipeAndMill(Figure):
    """Add texts to a step, and see how long the arithmetic waits for the weights.

    Args:
        shows: `texts`, one model; `models`, with a choice of three.
        texts: how many get a word in a step, one of `minimind_edu.measure.waiting.TEXTS`.
        weights: where they are: in `memory`, or at `hand` in the core's own caches.
        model: `large`, `small` or `living`, as `minimind_edu.measure.waiting.MODELS` describes them.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "texts", "weights", "model")

    shows = Enum(("texts", "models"), default_value="texts").tag(sync=True)
    texts = Enum(TEXTS, default_value=1).tag(sync=True)
    weights = Enum(tuple(PLACES), default_value="memory").tag(sync=True)
    model = Enum(tuple(MODELS), default_value="large").tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return measured()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        of_model, rows = self.stored["models"][self.model], []
        for texts, memory, hand in zip(self.stored["texts"], of_model["memory"], of_model["hand"], strict=True):
            rows.append((f"{texts} texts, weights in memory, ms", f"{memory[1]:.3g}"))
            rows.append((f"{texts} texts, weights at hand, ms", f"{hand[1]:.3g}"))
        return (
            f"How long a step takes of a model with {of_model['said']} MB of weights, which memory alone delivers in "
            f"{of_model['pipe']:.3g} ms; measured on {self.stored['machine']}.",
            rows,
        )
