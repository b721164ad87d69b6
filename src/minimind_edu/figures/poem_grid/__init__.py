"""PoemGrid: an octave as a grid of characters, what a model expects at its rhymes, and what three of its heads read.

Every setting is a run of `minimind_edu.trained.verse.grid`: a stored model, with a head silenced or not, continues the
poem from a first rhyme that can be exchanged. The ES module lays out cells and arcs (math.js).
"""

from typing import Any

from traitlets import Dict, Enum, default

from minimind_edu.web.base import Figure

FIRST = ("秋", "寒", "晴", "阴")
MODELS = ("untrained", "before", "verse")
SILENT = ("none", "3.1", "2.1", "3.2")


def percent(share: float | None) -> str:
    """A share as a reader sees it; a dash for what could not be judged."""
    return "–" if share is None else f"{100 * share:.0f} %"


class PoemGrid(Figure):
    """Exchange the first rhyme of a poem, or silence a head, and see what the model expects at the ends of lines.

    Args:
        shows: `exchange`, one of three models; `heads`, the trained one with a head silenced, and what heads read.
        model: `untrained`, `before` the tails, or `verse`, after them.
        silent: the head that adds nothing, or `none`.
        first: the last character of line 2, the first rhyme.
        line: at the end of which line one looks, 4, 6 or 8.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "model", "silent", "first", "line")

    shows = Enum(("exchange", "heads"), default_value="exchange").tag(sync=True, outside=None)
    model = Enum(MODELS, default_value="before").tag(sync=True)
    silent = Enum(SILENT, default_value="none").tag(sync=True)
    first = Enum(FIRST, default_value=FIRST[0]).tag(sync=True)
    line = Enum((4, 6, 8), default_value=4).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        from minimind_edu.trained.verse import grid  # only notebooks that name it carry the poems

        octaves, poems = grid.results()["octaves"], grid.results()["poems"]
        if self.shows == "heads":
            return {"octaves": octaves["verse"], "poems": poems["verse"]}
        without = {
            name: {
                first: octave | {"lines": {at: {**line, "reads": {}} for at, line in octave["lines"].items()}}
                for first, octave in octaves[name]["none"].items()
            }
            for name in MODELS
        }
        return {"octaves": without, "poems": {name: poems[name]["none"] for name in MODELS}}

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        key = self.silent if self.shows == "heads" else self.model
        line = self.stored["octaves"][key][self.first]["lines"][str(self.line)]
        poems = self.stored["poems"][key]
        rows = [(character, percent(share)) for character, share, *_ in line["likeliest"]]
        rows.append((f"rhymes with {self.first}", percent(line["groups"][FIRST.index(self.first)])))
        rows += [
            ("poems of a right form", percent(poems["form"])),
            ("rhymes in them", percent(poems["rhyme"])),
            ("rhymes by chance", percent(poems["rhyme_chance"])),
        ]
        return "What the model expects at the end of a line that must rhyme, and how its own poems rhyme.", rows
