"""How an engine keeps the texts of several readers in memory, step by step: in rooms for the longest, or in pages.

    ```{serving}
    ```

draws both for the same texts. Nothing is drawn by hand: the steps are counted by the two functions below.
"""

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from sphinx.application import Sphinx

from minimind_book import chinese
from minimind_book.pictures import inline
from minimind_edu.measure.plotting import FONT, INK, MUTED, Picture, new_axes, picture
from minimind_edu.web.palette import PALETTE


class Text(NamedTuple):
    """What a reader asks for."""

    prompt: int  # words that are there
    words: int  # words to be written


class Part(NamedTuple):
    """A room or a page that belongs to a text."""

    text: str
    filled: int  # positions
    waits: bool = False  # its text has ended


Memory = list[Part | None]

TEXTS = {"A": Text(4, 3), "B": Text(3, 5), "C": Text(2, 1), "D": Text(1, 4), "E": Text(2, 2)}
POSITIONS, ROOM, PAGE, MOST = 24, 8, 4, 4
ROW, GAP = 15, 1 / 8  # units from one step to the next; between two parts, for each of their positions


def in_rooms(texts: Mapping[str, Text], rooms: int) -> list[Memory]:
    """The memory before the first step and after each: as many texts as there are rooms, all until the last has ended.

    The prompts of the next ones are read in their first step.
    """
    moments: list[Memory] = []
    waiting = iter(texts.items())
    while batch := list(islice(waiting, rooms)):
        for step in range(bool(moments), 1 + max(text.words for _, text in batch)):
            parts = [Part(name, prompt + min(step, words), step > words) for name, (prompt, words) in batch]
            moments.append(parts + [None] * (rooms - len(parts)))
    return moments


def in_pages(texts: Mapping[str, Text], pages: int, size: int, most: int) -> list[Memory]:
    """The same with pages of so many positions: a text takes the first free one when it needs it.

    Its pages are free once it has ended; then the next text joins, at most so many at a time.

    Raises:
        ValueError: if no page is left; an engine would send a text back and read it again later.
    """
    held: dict[str, list[int]] = {}
    lengths: dict[str, int] = {}
    waiting, moments = list(texts), []

    def grow(name: str, length: int) -> None:
        lengths[name] = length
        while len(held.setdefault(name, [])) * size < length:
            free = [page for page in range(pages) if page not in sum(held.values(), [])]
            if not free:
                raise ValueError(f"text {name} needs a page and all {pages} are taken: give more pages or fewer texts")
            held[name].append(free[0])

    def memory() -> Memory:
        parts: Memory = [None] * pages
        for name, taken in held.items():
            for number, page in enumerate(taken):
                parts[page] = Part(name, min(lengths[name] - number * size, size))
        return parts

    while waiting or held:
        while waiting and len(held) < most:
            grow(waiting[0], texts[waiting.pop(0)].prompt)
        if not moments:
            moments.append(memory())
        for name in held:
            grow(name, lengths[name] + 1)
        moments.append(memory())
        for name in [name for name in held if lengths[name] == sum(texts[name])]:
            del held[name]
    return moments


def both_ways() -> dict[str, tuple[int, list[Memory]]]:
    """What is drawn: title -> the positions of a part, and the memory step by step."""
    return {
        "Rooms of 8, after each step": (ROOM, in_rooms(TEXTS, POSITIONS // ROOM)),
        "Pages of 4, after each step": (PAGE, in_pages(TEXTS, POSITIONS // PAGE, PAGE, MOST)),
    }


def spelled(memory: Memory, size: int) -> str:
    """A memory as text: `AAAA.... bbb.....`, in small letters what has ended."""
    parts = (("", 0, False) if part is None else part for part in memory)
    return " ".join((text.lower() if waits else text) * filled + "." * (size - filled) for text, filled, waits in parts)


def serving() -> Picture:
    """Both ways, one below the other."""
    ways = both_ways()
    rows = sum(len(moments) + 2 for _, moments in ways.values())
    [ax] = new_axes(height=rows * ROW / 72)
    y, sentences = 0.0, []
    for title, (size, moments) in ways.items():
        ax.text(0, y + 0.6, title, color=INK, fontsize=FONT, va="center")
        for step, memory in enumerate(moments):
            y += 1
            ax.text(0.6, y + 0.6, str(step), color=INK, fontsize=FONT - 2, ha="right", va="center")
            for number, part in enumerate(memory):
                draw(ax, 1.5 + number * size * (1 + GAP), y, size, part)
        sentences.append(f"{title}: {', '.join(spelled(memory, size) for memory in moments)}.")
        y += 2
    ax.set(xlim=(0, 1.5 + POSITIONS * (1 + GAP)), ylim=(y, 0))
    ax.axis("off")
    return picture(ax, alt=" ".join(sentences))


def draw(ax: Axes, x: float, y: float, size: int, part: Part | None) -> None:
    """A room or a page: as much of it as is filled, and the name of its text; hollow if that has ended."""
    ax.add_patch(Rectangle((x, y + 0.15), size, 0.9, fill=False, edgecolor=MUTED, linewidth=0.8))
    if part:
        alpha = 0 if part.waits else 0.5 - 0.08 * sorted(TEXTS).index(part.text)
        blue = PALETTE["k"].either  # keys and values are what is kept
        ax.add_patch(Rectangle((x, y + 0.15), part.filled, 0.9, linewidth=0, facecolor=blue, alpha=alpha))
        ax.text(x + 0.2, y + 0.6, part.text, color=MUTED if part.waits else INK, fontsize=FONT - 2, va="center")


class Serving(Directive):
    """`{serving}`"""

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        drawn = inline(serving().svg, "")
        return [nodes.raw("", chinese.in_markup(drawn) if chinese.IS_CHINESE else drawn, format="html")]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("serving", Serving)
