"""LongerText: a text four times as long as those of the training, and what a trained model loses in each quarter of it
when its unfinished pairs are slowed; below, how the last word of a quarter sees the words before it.

Every setting was measured: `minimind_edu.trained.living.stretching` has the losses, of two models. The ES module moves
distances and angles as that module says (math.js).
"""

from functools import cache
from typing import Any

from traitlets import Bool, Dict, Enum, Int, default

from minimind_edu.trained.living import LENGTH, STORED
from minimind_edu.trained.living.stretching import LONGER, NEAR, STRETCHES, results, rotations, scales
from minimind_edu.trained.stored import rounded
from minimind_edu.web.base import Figure

SHOWN = ("pairs", "far")
LAST_WORDS = tuple(range(LENGTH, LONGER + 1, LENGTH))  # of the quarters


@cache
def losses() -> dict[str, Any]:
    """For each model and way, by stretch and quarter: the mean of ten draws and their spread, in nats a word."""
    found: dict[str, Any] = {}
    for name, ways in results().items():
        shown = {way: ways[way] for way in SHOWN}
        found[name] = {way: {"mean": x.mean(1).tolist(), "spread": x.std(1).tolist()} for way, x in shown.items()}
    return rounded(found)


class LongerText(Figure):
    """Stretch a trained model to a text of 384 words, and see what it loses where.

    Args:
        shows: `stretch`, all words are stretched; `far`, a switch stretches those far away only.
        stretch: by how much the unfinished pairs are slowed, 1 to 8; 1 leaves them alone.
        far: slow them for words more than 48 words away only.
        model: `living`, the model of all pages, or `twin`, trained alike from another seed.
        word: the one that looks back, the last of a quarter: 96, 192, 288 or 384.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "stretch", "far", "model", "word")

    shows = Enum(("stretch", "far"), default_value="stretch").tag(sync=True)
    stretch = Int(1, min=STRETCHES[0], max=STRETCHES[-1]).tag(sync=True)
    far = Bool(False).tag(sync=True)
    model = Enum(tuple(STORED), default_value="living").tag(sync=True)
    word = Enum(LAST_WORDS, default_value=LAST_WORDS[-1]).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return {
            "losses": losses(),
            "rotations": rounded(rotations().tolist(), 6),
            "context": LENGTH,
            "near": NEAR,
            "length": LONGER,
        }

    def seen(self, distance: float) -> float:
        """How many words away the unfinished pairs see a word that is `distance` words away."""
        scale, near = scales(self.stretch, "far" if self.far else "pairs")
        return min(distance, near) + max(0, distance - near) * float(scale[-1])

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        way = losses()[self.model]["far" if self.far else "pairs"]
        rows = []
        for stretch in sorted({1, 2, 3, 4, 8, self.stretch}):
            quarters = ", ".join(f"{loss:.2f}" for loss in way["mean"][STRETCHES.index(stretch)])
            rows.append((f"stretch {stretch}: nats above the least, by quarter", quarters))
        return (
            f"A text of {LONGER} words, read by a model whose training had {LENGTH}; its unfinished pairs slowed.",
            rows,
        )
