"""WhoWrites: what five writers add to the lead of *hall* over *kitchen*, and what they add when a head is silenced.

Every setting is a run of `minimind_edu.trained.living.writers` with that head's columns at zero; the ES module stacks
the ribbons (math.js).
"""

from typing import Any

from traitlets import Bool, Dict, Enum, default

from minimind_edu.trained.living import STORED
from minimind_edu.trained.living.writers import measured
from minimind_edu.web.base import Figure

HEADS = tuple(f"{block}.{head}" for block in range(1, 5) for head in range(1, 5))
ROWS = ("head that crosses out", "heads that write the new place", "network 4", "other heads", "word, other networks")


class WhoWrites(Figure):
    """Silence a head: all ribbons are drawn anew, as the model then writes.

    Args:
        shows: `writers`, five writers of the book's model; `models`, those of either model; `words`, the words that a
            head of block 4 reads, and what it adds with each of them.
        model: `living` or `twin`.
        silent: the head that adds nothing, `1.1` to `4.4`, or `none`.
        reader: the head whose words are shown, `4.1` or `4.2`.
        exchanged: whether what head 1.3 wrote at the room that was left and at the one that was reached is exchanged,
            where words are shown.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "model", "silent")

    shows = Enum(("writers", "models", "words"), default_value="writers").tag(sync=True)
    model = Enum(tuple(STORED), default_value="living").tag(sync=True)
    silent = Enum(("none", *HEADS), default_value="none").tag(sync=True)
    reader = Enum(("4.1", "4.2"), default_value="4.2").tag(sync=True)
    exchanged = Bool(False).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return measured()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        states = self.stored["models"][self.model]["states"]
        shown = states[self.silent]
        rows = [(str(name), f"{value:.2f}") for name, value in zip(ROWS, shown["writes"], strict=True)]
        rows.append(("hall − kitchen, logits", f"{shown['lead']:.2f}"))
        rows.append(("with no head silenced", f"{states['none']['lead']:.2f}"))
        rows.append(("next word", f"{shown['word']}, {100 * shown['share']:.0f} %"))
        return "Who writes the lead of hall over kitchen, and what is left of it when a head is silenced.", rows
