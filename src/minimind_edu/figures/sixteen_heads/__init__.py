"""SixteenHeads: a story, a switch for each head of the living model, and the word that it says without some.

The story and what the whole model says are those of `minimind_edu.trained.living.answering`; every other answer is
computed by the page, with the living model itself (math.js).
"""

from typing import Any

from traitlets import Dict, Enum, Int, default

from minimind_edu.trained.living.answering import ALL, FORMS, but, measured, reading
from minimind_edu.web.base import Figure


class SixteenHeads(Figure):
    """Silence any of the sixteen heads, and see what the model says.

    Args:
        shows: `heads`, the switches and the answer; `chain`, what the heads that it needs hand on, too.
        silent: which heads are silenced, as a sum: 1 for head 1.1, 2 for 1.2, 4 for 1.3, and so on to 32768 for 4.4.
        story: `en`, a story in English; `zh`, the same in Chinese.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "silent", "story")

    shows = Enum(("heads", "chain"), default_value="heads").tag(sync=True)
    silent = Int(0, min=0, max=2 ** len(ALL) - 1).tag(sync=True)
    story = Enum(tuple(FORMS), default_value="en").tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return measured()

    def silenced(self) -> tuple[str, ...]:
        """The names of the heads that are silenced."""
        return tuple(name for bit, name in enumerate(ALL) if self.silent >> bit & 1)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        words = self.stored["told"][self.story]["words"]
        needed = self.stored["needed"]
        sets = {"with all heads": (), "without all heads but " + ", ".join(needed): but(*needed)}
        sets |= {f"without head {name}": (name,) for name in needed}
        if self.silenced() not in sets.values():
            sets["without " + ", ".join(self.silenced())] = self.silenced()
        rows = [
            (name, _said(reading(silent, self.story), self.stored["told"][self.story])) for name, silent in sets.items()
        ]
        return f"What follows {' '.join(words[1:])!r} when heads of the model are silenced.", rows


def _said(read: dict[str, Any], story: dict[str, Any]) -> str:
    """The likeliest word and its share."""
    spots = dict(zip(story["ids"], story["words"], strict=True))
    shares = [(spots[place], share) for place, share in zip(story["places"], read["shares"], strict=True)]
    word, share = max([*shares, tuple(read["other"])], key=lambda pair: pair[1])
    return f"{word}, {100 * share:.0f} %"
