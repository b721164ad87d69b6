"""The colors of the book, each with one meaning: pages, figures and pictures take them from here and from nowhere else.

A hue stands for one thing in every chapter: queries are orange, keys blue, values purple, norms teal, the feed-forward
network gold, and the residual stream, with the embedding that begins it, is the gray line that carries all of them.
Green and red are verdicts only. The sign of a number has a pair of its own, which has no hue to be taken for one of
these. Further categories differ in lightness.

A name has three colors: on light paper, on dark paper, and one of middle lightness for pictures that do not know on
what they stand. Words in any of the first two are legible on their paper (a contrast of 4.5 at least), drawings in the
third on both (3 at least).
"""

from typing import NamedTuple


class Color(NamedTuple):
    """One color as it is on light paper, on dark paper, and on either."""

    light: str
    dark: str
    either: str


PALETTE = {
    # paper and ink
    "bg": Color("#fdfbf7", "#1d1b19", "#808080"),
    "panel": Color("#ffffff", "#262321", "#808080"),
    "soft": Color("#f3ede3", "#2f2b28", "#808080"),
    "line": Color("#ddd4c8", "#433d37", "#a09890"),
    "muted": Color("#6a6057", "#ada398", "#857d75"),
    "ink": Color("#2c2723", "#ece6dd", "#7d7873"),
    # what the model is made of
    "q": Color("#a94b08", "#f2a65e", "#d4742a"),
    "k": Color("#2457a8", "#8fb4f5", "#4f86d6"),
    "v": Color("#7440a3", "#cba6ee", "#9d6dcb"),
    "norm": Color("#0b6b78", "#5fc6d1", "#23939f"),
    "ffn": Color("#756000", "#d6bc55", "#9c8420"),
    "stream": Color("#5b524a", "#c7bcb0", "#8b8178"),
    # the sign of a number
    "plus": Color("#46566b", "#a9bacf", "#73859c"),
    "minus": Color("#80623a", "#c2a173", "#a98856"),
    # verdicts
    "good": Color("#27703a", "#7fcc8d", "#439a57"),
    "bad": Color("#b02a24", "#f4938b", "#d6554d"),
}


def css_variables() -> str:
    """The palette as declarations of CSS: `--mm-q: light-dark(…)`, which follows the element's color-scheme."""
    return " ".join(f"--mm-{name}: light-dark({color.light}, {color.dark});" for name, color in PALETTE.items())
