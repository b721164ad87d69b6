"""The pictures of the chapters: numbers in, a described picture out.

Every function returns a `Picture`: a matplotlib figure that shows itself as SVG, and a sentence for those who cannot
see it. Nothing is computed here that a chapter should show, and no model comes in.

The SVG is made to stand inside a page: transparent, as wide as its text, with letters of its size; inside, not shown by
itself, is the same picture drawn for the width of a phone, which a page may show in its place. Words are words, in the
page's font where the page gives one; every color is one of `minimind_edu.web.palette` that reads on light and on dark
paper, written as it is there, so that a page which knows its paper may put a better one in its place. The same numbers
give the same bytes.

Colors have the book's meanings and never stand alone: curves differ in dashes or width too, and are named where they
end. What has no hue of its own is told apart by lightness.
"""

import hashlib
import io
import math
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.ticker import Formatter
from matplotlib.transforms import ScaledTranslation

from minimind_edu.web.palette import PALETTE
from minimind_edu.words import breadth, folded, translated

WIDTH = 330  # units, of a picture on a phone; matplotlib's points, 72 an inch
TEXT_WIDTH = 553.5  # units, of a picture on a page; 738 px
FONT = 12  # units; 16 px
SHORTEST_ALT = 20  # Latin letters, half as many Chinese ones

INK, MUTED, LINE = (PALETTE[name].either for name in ("ink", "muted", "line"))
PLUS, MINUS = PALETTE["plus"].either, PALETTE["minus"].either
HUES = ("q", "k", "v", "norm", "ffn", "stream")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (7, 2, 1.2, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)), (0, (2, 1)))

# The fonts of the machine must not change the layout, nor may the reader's own settings of matplotlib.
fontManager.addfont(pathlib.Path(__file__).with_name("wide.ttf"))
_SETTINGS: Any = {
    "svg.fonttype": "none",  # words stay words
    # The first comes with matplotlib, and is wider than what pages use: no word leaves its place. The second knows how
    # wide Chinese is, and nothing else (tools/wide_font.py).
    "font.family": ["DejaVu Sans", "MiniMind Wide"],
    "font.size": FONT,
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "axes.unicode_minus": True,
    "savefig.bbox": "standard",
}
_AS_EVERYWHERE = matplotlib.rc_context(_SETTINGS)
_LINE_HEIGHT = 1.2 * FONT
_LONGEST_NAME = 13  # Latin letters in a line of a name at the end of a curve
_LEVELS = 10  # of the strength of a color in a table without numbers
_SVG = "http://www.w3.org/2000/svg"
_FILE_NAME = re.compile(r"\S+\.[A-Za-z]{2,5}")


class Picture:
    """A still picture that shows itself as SVG wherever notebooks do, with its description inside.

    Args:
        figure: the matplotlib figure, made with `new_axes` or by yourself, outside of pyplot.
        alt: what is to be seen and what it shows, in a sentence or two, for readers who do not see it.
        fit: called with the width in units before the picture is drawn at it, where the layout does not suit itself.

    Attributes:
        figure, alt: as given.
        axes: the figure's Axes, for changes before it is shown.

    Raises:
        ValueError: if `alt` says nothing: empty, the name of a file, or shorter than 20 characters.
    """

    def __init__(self, figure: Figure, *, alt: str, fit: Callable[[float], None] | None = None):
        self.figure, self.alt = figure, translated(described(alt))
        self._fit = fit or (lambda width: None)
        self._fit(figure.bbox.width)
        for ax in figure.axes:
            _lay_name_of_y(ax)

    @property
    def axes(self) -> list[Axes]:
        return self.figure.axes

    @property
    @_AS_EVERYWHERE
    def svg(self) -> str:
        """The picture as one `<svg>` element, the same for the same numbers and words.

        It brings no style that reaches out of it, no metadata and no references to anything outside; its ids come from
        `alt`. Coordinates have two decimals. The last of its children is the picture as it is on a phone: another
        `<svg>`, of the class "narrow", which is not displayed.
        """
        self._speak()
        name = "mm" + hashlib.sha256(self.alt.encode()).hexdigest()[:8]
        svg, narrow = self._drawn(TEXT_WIDTH, name), self._drawn(WIDTH, f"{name}-n")
        svg.attrib |= {"xmlns": _SVG, "class": "mm-picture", "role": "img", "aria-labelledby": name}
        title = ElementTree.Element("title", {"id": name})
        title.text = self.alt
        svg.insert(0, title)
        narrow.attrib |= {"class": "narrow", "display": "none"}
        svg.append(narrow)
        ElementTree.indent(svg, space="")
        return ElementTree.tostring(svg, encoding="unicode")

    def _speak(self) -> None:
        """Say all in the language of the notebook (see minimind_edu.words), in letters that are measured."""
        for ax in (ax for ax in self.axes if ax.axison):
            for axis in (ax.xaxis, ax.yaxis):  # names of places, which an axis writes anew
                names = [label.get_text() for label in axis.get_majorticklabels()]
                if (new := [translated(name) for name in names]) != names:
                    axis.set_ticks(axis.get_majorticklocs(), new)
        for text in self.figure.findobj(Text):
            if (new := translated(name := text.get_text().replace("\n", " "))) != name:
                text.set_text(folded(new, _LONGEST_NAME) if "\n" in text.get_text() else new)
            text.set_fontfamily(_SETTINGS["font.family"])

    @_AS_EVERYWHERE
    def lay_out(self, width: float) -> None:
        """Give everything its place in a picture so wide, in units."""
        self.figure.set_figwidth(width / 72)
        self._fit(width)
        self.figure.draw_without_rendering()
        self.figure.draw_without_rendering()  # a layout begins at the one before, and the second hardly moves any more

    def _drawn(self, width: float, name: str) -> ElementTree.Element:
        """The picture so wide, in units, as an `<svg>` element whose ids begin with `name`."""
        self.lay_out(width)
        layout, written = self.figure.get_layout_engine(), io.StringIO()
        self.figure.set_layout_engine("none")  # or to save the picture would move it again
        self.figure.savefig(written, format="svg", metadata={"Date": None})
        self.figure.set_layout_engine(layout)
        return _shortened(ElementTree.fromstring(written.getvalue()), name)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"


def described(alt: str) -> str:
    """`alt` as one line; raises ValueError if it describes nothing."""
    words = " ".join(alt.split()) if isinstance(alt, str) else ""
    if breadth(words) < SHORTEST_ALT or _FILE_NAME.fullmatch(words):
        raise ValueError(
            f"a picture needs a description of {SHORTEST_ALT} characters or more, and alt is {alt!r}: write what is to "
            "be seen and what it shows, in a sentence or two."
        )
    return words


def picture(ax: Axes, *, alt: str) -> Picture:
    """The picture of the figure that `ax`, from `new_axes`, belongs to: for what no function here draws."""
    return Picture(_figure(ax), alt=alt)


# Drawing


def _figure(ax: Axes) -> Figure:
    """The whole figure of `ax`."""
    figure = ax.figure
    if not isinstance(figure, Figure):
        raise ValueError("pictures are made of plain figures, and these Axes belong to a part of one: use new_axes.")
    return figure


@_AS_EVERYWHERE
def new_axes(height: float = 2.9, columns: int = 1) -> list[Axes]:
    """Axes side by side in a new transparent figure as wide as a phone's page and `height` inches high."""
    layout = ConstrainedLayoutEngine(w_pad=1 / 72, h_pad=1 / 72, wspace=0.04)
    figure = Figure(figsize=(WIDTH / 72, height), dpi=72, layout=layout)
    axes = list(figure.subplots(1, columns, squeeze=False)[0])
    figure.patch.set_alpha(0)
    for ax in axes:
        style_axes(ax)
    return axes


def style_axes(ax: Axes) -> None:
    """The look of every picture: no box, light rules across, words and the axis in ink."""
    ax.patch.set_alpha(0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set(color=INK, linewidth=1)
    ax.tick_params(which="both", length=0, labelcolor=INK, labelsize=FONT, pad=4)
    for text in (ax.xaxis.label, ax.title):
        text.set(color=INK, fontsize=FONT)
    ax.grid(axis="y", color=LINE, alpha=0.5, linewidth=0.8, clip_on=False)
    ax.set_axisbelow(True)


def _shifted(ax: Axes, right: float, up: float) -> Any:
    """The coordinates of `ax`, moved by units."""
    return ax.transAxes + ScaledTranslation(right / 72, up / 72, _figure(ax).dpi_scale_trans)


@_AS_EVERYWHERE
def _lay_out(ax: Axes) -> Any:
    """The place of `ax` in the laid out figure, in units."""
    _figure(ax).draw_without_rendering()
    return ax.get_window_extent()


@_AS_EVERYWHERE
def _lay_name_of_y(ax: Axes) -> None:
    """Write the name of the y axis above the axis, from the left edge of the picture on, if there is one."""
    if name := ax.get_ylabel():
        ax.set_ylabel("")
        text = ax.annotate(name, (0, 1), (0, 8), "axes fraction", "offset points", color=INK, fontsize=FONT)
        if len(_figure(ax).axes) == 1:
            text.xyann = (1 - _lay_out(ax).x0, 8)


def curve_styles(names: Iterable[str], colors: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """How to draw each of some named curves.

    A curve that is a query, a key, a value, a norm, the feed-forward network or the stream has that hue and is solid;
    the stream is broad, as in every figure of the book. The others are ink and gray by turns, each with its dashes.

    Args:
        names: of the curves.
        colors: name -> "q", "k", "v", "norm", "ffn" or "stream", for those that are one.

    Raises:
        ValueError: if `colors` speaks of an unknown curve or hue.
    """
    names, colors = list(names), dict(colors or {})
    if unknown := [name for name in colors if name not in names]:
        raise ValueError(f"colors are for the curves {names}, and {unknown[0]!r} is none of them.")
    if unknown := [hue for hue in colors.values() if hue not in HUES]:
        raise ValueError(f"the hues are {', '.join(HUES)}, and {unknown[0]!r} is none: leave that curve out.")
    styles = {}
    for number, name in enumerate(names):
        hue = colors.get(name)
        alike = [colors.get(other) for other in names[:number]].count(hue) if hue else number
        color = PALETTE[hue].either if hue else (INK, MUTED)[number % 2]
        width = 4.0 if hue == "stream" else 2.8 if hue else 2.0
        styles[name] = {"color": color, "linestyle": DASHES[alike % len(DASHES)], "linewidth": width}
    return styles


@_AS_EVERYWHERE
def plot_lines(
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    *,
    alt: str,
    colors: Mapping[str, str] | None = None,
    log: bool = False,
) -> Picture:
    """A few named curves over the same places.

    Args:
        x: N places.
        curves: name -> N values.
        xlabel, ylabel: what the axes show, with units.
        alt: the description (see Picture).
        colors: the curves that have a hue of their own (see curve_styles).
        log: make the x axis logarithmic.
    """
    alt, styles = described(alt), curve_styles(curves, colors)
    [ax] = new_axes()
    for name, values in curves.items():
        ax.plot(_numbers(x), _numbers(values), label=name, clip_on=False, **styles[name])
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale="log" if log else "linear")
    ax.margins(x=0)
    if log:
        ax.xaxis.set_major_formatter(_Powers())
        ax.set_xticks([], minor=True)
    else:
        ax.xaxis.set_major_formatter(_Thousands())
        whole = all(place.is_integer() for place in _numbers(x))
        ax.locator_params(axis="x", nbins=7 if abs(float(x[-1])) < 1e4 else 4, integer=whole)
    ax.locator_params(axis="y", nbins=6)
    _name_lines(ax)
    return Picture(_figure(ax), alt=alt)


@_AS_EVERYWHERE
def plot_marked(
    x: Sequence[float],
    y: Sequence[float],
    xlabel: str,
    ylabel: str,
    *,
    alt: str,
    marks: Sequence[tuple[float, bool]] = (),
    others: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
    level: tuple[str, float] | None = None,
) -> Picture:
    """One curve with numbers at places of it, other runs behind it, and a level that means something.

    Args:
        x, y: N places, and the curve's values there.
        xlabel, ylabel: what the axes show, with units.
        alt: the description (see Picture).
        marks: places that are numbered from 1 on, each with whether it is a fault.
        others: name -> places and values of other runs.
        level: its name and its value; drawn where it is near the curve.
    """
    alt = described(alt)
    [ax] = new_axes(height=3.4)
    for name, (places, values) in (others or {}).items():
        ax.plot(_numbers(places), _numbers(values), color=MUTED, linewidth=1, marker=".", markersize=5, alpha=0.8)
        ax.annotate(name, (places[-1], values[-1]), (5, 6), textcoords="offset points", color=MUTED)
    ax.plot(_numbers(x), _numbers(y), color=INK, linewidth=2)
    lowest, highest = (min(y), max(y)) if len(y) else (0.0, 1.0)
    reach = 0.3 * (highest - lowest) + 0.01
    if level and lowest - reach < level[1] < highest + reach:
        ax.axhline(level[1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        place, name = ("axes fraction", "data"), f"{level[0]} = {level[1]:.3g}"
        ax.annotate(name, (1, level[1]), (-2, 4), place, "offset points", color=MUTED, ha="right")
    for number, (place, is_fault) in enumerate(marks, 1):
        height = float(np.interp(place, x, y)) if len(y) else 0.0
        color = PALETTE["bad"].either if is_fault else INK
        ax.plot([place], [height], "o", color=color, markersize=6, clip_on=False)
        aside = (-13 if is_fault else 7, 5)  # what follows a fault is high or nothing
        ax.annotate(str(number), (place, height), aside, textcoords="offset points", color=color)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.margins(x=0.02, y=0.08)
    ax.xaxis.set_major_formatter(_Thousands())
    ax.locator_params(axis="x", nbins=5, integer=True)
    return Picture(_figure(ax), alt=alt)


@_AS_EVERYWHERE
def plot_by_depth(
    curves: Mapping[str, Sequence[float]],
    ylabel: str,
    *,
    alt: str,
    colors: Mapping[str, str] | None = None,
    limits: tuple[float, float] = (1e-8, 1e8),
    xlabel: str = "layer",
    first: int = 0,
) -> Picture:
    """One curve for every network: a size (logarithmic) against the layer it was measured after.

    Args:
        curves: name -> value at layer 0, 1, 2, ..., or from `first` on.
        ylabel: what was measured.
        alt: the description (see Picture).
        colors: the curves that have a hue of their own (see curve_styles).
        limits: the sizes shown; a curve that leaves them is named where it leaves.
        xlabel, first: what is counted from left to right, and its first number.
    """
    alt, styles = described(alt), curve_styles(curves, colors)
    [ax] = new_axes(height=3.9)
    low, high = limits
    for name, values in curves.items():
        ax.plot(range(first, first + len(values)), _numbers(values), label=name, **styles[name])
    ax.set(yscale="log", ylim=limits, xlabel=xlabel, ylabel=ylabel)
    ax.margins(x=0)
    ax.locator_params(axis="x", integer=True)
    powers = 4 if high / low > 1e8 else 1  # between two ticks
    ax.set_yticks([10.0**n for n in range(-100, 101, powers) if low <= 10.0**n <= high])
    ax.set_yticks([], minor=True)
    ax.yaxis.set_major_formatter(_Powers())
    _name_lines(ax)
    return Picture(_figure(ax), alt=alt)


@_AS_EVERYWHERE
def plot_vectors(
    vectors: Mapping[str, Sequence[float]],
    xlabel: str = "channel",
    ylabel: str = "value",
    *,
    alt: str,
    colors: Mapping[str, str] | None = None,
) -> Picture:
    """Bars side by side: the channels of a few vectors of the same length.

    Args:
        vectors: name -> numbers.
        xlabel, ylabel: what the axes show, with units.
        alt: the description (see Picture).
        colors: the vectors that have a hue of their own (see curve_styles); of two with one hue the first is hollow.
    """
    alt, styles = described(alt), curve_styles(vectors, colors)
    [ax] = new_axes()
    width, hues = 0.8 / len(vectors), [style["color"] for style in styles.values()]
    for number, (name, values) in enumerate(vectors.items()):
        places = [i + (number - (len(vectors) - 1) / 2) * width for i in range(len(values))]
        color = styles[name]["color"]
        bars = ax.bar(places, _numbers(values), width * 0.86, color=color, edgecolor=color, linewidth=1.5, label=name)
        if color in hues[number + 1 :]:
            for bar in bars:
                bar.set_facecolor("none")
    ax.axhline(0, color=INK, linewidth=1)
    ax.spines["bottom"].set_visible(False)
    count = range(len(values))
    ax.set(xlabel=xlabel, ylabel=ylabel, xticks=count, xticklabels=[place + 1 for place in count])
    ax.locator_params(axis="y", integer=np.ptp(ax.get_ylim()) > 2)  # shares need more ticks
    _legend(ax)
    return Picture(_figure(ax), alt=alt)


@_AS_EVERYWHERE
def plot_tables(
    tables: Mapping[str, Sequence[Sequence[float]]],
    row_labels: Sequence[Sequence[str]],
    *,
    column_labels: Sequence[str] | None = None,
    alt: str,
) -> Picture:
    """Small square tables, every entry written into its cell above a bar of its size: as many side by side as fit.

    The bar begins at the left of the cell; the largest entry of all tables fills it. Its color is the sign.

    Args:
        tables: title -> square table of numbers.
        row_labels: for each table, the names of its rows, which are also those of its columns,
        column_labels: unless these are given, for the columns of all tables.
        alt: the description (see Picture).
    """
    alt = described(alt)
    every = {
        title: [[round(value, 2) + 0.0 for value in _numbers(row)] for row in table]  # the sum turns -0.0 into 0.0
        for title, table in tables.items()
    }
    largest = max(abs(value) for rows in every.values() for row in rows for value in row) or 1.0
    axes = new_axes(height=WIDTH / 72 / max(len(tables), 2) + 0.4, columns=len(tables))
    for ax, (title, rows), labels in zip(axes, every.items(), row_labels, strict=True):
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                look = {"color": PLUS if value > 0 else MINUS if value < 0 else LINE, "linewidth": 0, "clip_on": False}
                ax.add_patch(Rectangle((j - 0.47, i - 0.47), 0.94, 0.94, alpha=0.14, **look))
                if value:
                    ax.add_patch(Rectangle((j - 0.47, i + 0.31), 0.94 * abs(value) / largest, 0.16, **look))
                text = f"{value:.2f}".replace("-", "−")
                ax.text(j, i - 0.08, text, ha="center", va="center", fontsize=FONT, color=INK)
        ax.set(xlim=(-0.5, len(rows) - 0.5), ylim=(len(rows) - 0.5, -0.5), aspect="equal", title=title)
        ax.set(xticks=range(len(labels)), yticks=range(len(labels)))
        ax.set_xticklabels(column_labels or labels)
        ax.set_yticklabels(labels)
        ax.grid(False)
        ax.spines["bottom"].set_visible(False)
    _figure(axes[0]).set_layout_engine("none")
    is_named_once = [labels == row_labels[0] for labels in row_labels]
    return Picture(_figure(axes[0]), alt=alt, fit=partial(_place_tables, axes, is_named_once))


def _place_tables(axes: Sequence[Axes], is_named_once: Sequence[bool], across: float) -> None:
    """Put square tables into rows and columns of a figure of the right height: as many side by side as can be read.

    Where its rows have the names of the first table's, a table shows them only at the beginning of a row.
    """
    figure, gap, over, under = _figure(axes[0]), 12, 22, 21  # units
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    _lay_out(axes[0])
    widest = max(text.get_window_extent().width for ax in axes for text in ax.texts)
    needed = max((widest + 2) * len(ax.get_xticks()) for ax in axes)
    for columns in range(len(axes), 0, -1):
        for i, ax in enumerate(axes):
            if is_named_once[i]:
                ax.set_yticklabels([] if i % columns else names)
        _lay_out(axes[0])
        words = [max(label.get_window_extent().width for label in ax.get_yticklabels()) for ax in axes]
        left_of = [max(words[column::columns]) for column in range(columns)]
        side = min((across - sum(left_of) - gap * columns) / columns, max(150, needed))
        if side >= needed:
            break
    step = over + side + under
    height = step * math.ceil(len(axes) / columns)
    figure.set_figheight(height / 72)
    start = (across - sum(left_of) - (gap + side) * columns) / 2
    for i, ax in enumerate(axes):
        row, column = divmod(i, columns)
        left = start + sum(left_of[: column + 1]) + (gap + side) * column + 6
        bottom = height - step * (row + 1) + under
        ax.set_position((left / across, bottom / height, side / across, side / height))


@_AS_EVERYWHERE
def plot_arrows(arrows: Sequence[Sequence[float]], labels: Sequence[str], *, alt: str) -> Picture:
    """Arrows from the origin on a circle, each named at its tip: one vector, rotated further and further.

    Args:
        arrows: `[points, 2]`, all of about length 1.
        labels: N names.
        alt: the description (see Picture).
    """
    alt = described(alt)
    [ax] = new_axes(height=2.7)
    ax.add_patch(Circle((0, 0), 1, fill=False, color=LINE, linewidth=1))
    for number, (arrow, label) in enumerate(zip(arrows, labels, strict=True)):
        x, y = _numbers(arrow)
        look = {"arrowstyle": "-|>,head_width=0.28,head_length=0.55", "shrinkA": 0, "shrinkB": 0}
        look |= {"color": INK if number else MUTED, "linewidth": 2, "linestyle": "-" if number else "--"}
        ax.annotate("", (x, y), (0, 0), arrowprops=look)
        beside = "left" if x > 0.1 else "center" if x > -0.1 else "right"
        ax.text(x * 1.08, y * 1.13, label, color=INK, fontsize=FONT, ha=beside, va="center")
    ax.set(xlim=(-1.1, 2.0), ylim=(-0.35, 1.3), aspect="equal", xlabel="x₀", ylabel="x₁")
    ax.set(xticks=[-1, 0, 1], yticks=[0, 1])
    return Picture(_figure(ax), alt=alt)


@_AS_EVERYWHERE
def plot_block(halves: Sequence[tuple[str, str, str]], *, alt: str) -> Picture:
    """A block: one straight line for the residual stream, and a branch for each half that leaves it and is added to it.

    Args:
        halves: for each branch from left to right the norm on it, its sublayer, and the sublayer's hue.
        alt: the description (see Picture).
    """
    alt = described(alt)
    [ax] = new_axes(height=1.8)
    stream, norm = PALETTE["stream"].either, PALETTE["norm"].either
    ax.plot([-0.3, 5 * len(halves) - 0.3], [0, 0], color=stream, linewidth=5)
    for number, (name, sublayer, hue) in enumerate(halves):
        x, color = 5 * number, PALETTE[hue].either
        ax.plot([x, x, x + 4.3, x + 4.3], [0, 2, 2, 0.4], color=color, linewidth=2)
        ax.plot(x + 4.3, 0.4, "v", color=color)
        ax.plot(x, 1, "o", color=norm)
        lines = "_\n".join(name.rsplit("_", 1))  # a long name on one line would run into the arrow
        ax.text(x + 0.2, 1, lines, color=norm, fontsize=FONT, va="center")
        ax.text(x + 0.2, 2.2, sublayer, color=color, fontsize=FONT)
        ax.text(x + 4.3, -0.3, "+", color=color, fontsize=FONT, ha="center", va="top")
    ax.set(xlim=(-0.3, 5 * len(halves) - 0.3), ylim=(-0.9, 2.9))
    ax.axis("off")
    return Picture(_figure(ax), alt=alt)


@_AS_EVERYWHERE
def plot_cells(maps: Mapping[str, Sequence[str]], kinds: Mapping[str, str], *, alt: str) -> Picture:
    """Maps of memory one below the other: rows of cells, each as dark as its kind says.

    Args:
        maps: title -> rows, a letter for each cell; where there is no cell, a space.
        kinds: letter -> what such a cell is, from empty to darkest.
        alt: the description (see Picture).
    """
    alt = described(alt)
    [ax] = new_axes(height=(sum(len(rows) + 2.3 for rows in maps.values()) + 1.2 * len(kinds)) * 13 / 72)
    darkness = {letter: number / max(len(kinds) - 1, 1) for number, letter in enumerate(kinds)}
    blue = PALETTE["k"].either

    def cell(letter: str, x: float, y: float) -> None:
        box = (x + 0.06, y + 0.08), 0.88, 0.84
        if alpha := darkness[letter]:
            ax.add_patch(Rectangle(*box, linewidth=0, facecolor=blue, alpha=alpha))
        ax.add_patch(Rectangle(*box, fill=False, edgecolor=MUTED, linewidth=0.8))

    y = 0.0
    for title, rows in maps.items():
        ax.text(0, y + 0.7, title, color=INK, fontsize=FONT, va="center")
        for number, row in enumerate(rows, start=1):
            for x, letter in enumerate(row):
                if letter != " ":
                    cell(letter, x, y + number + 0.3)
        y += len(rows) + 2.3
    for letter, meaning in kinds.items():
        cell(letter, 0, y)
        ax.text(1.4, y + 0.5, meaning, color=INK, fontsize=FONT, va="center")
        y += 1.2
    widest = max(len(row) for rows in maps.values() for row in rows)
    ax.set(xlim=(0, widest), ylim=(y, 0))
    ax.axis("off")
    return Picture(_figure(ax), alt=alt)


@_AS_EVERYWHERE
def plot_rope_table(table: Sequence[Sequence[float]], *, alt: str) -> Picture:
    """A cos or sin table, `[positions, D]`, one row per position, with the seam between its two halves.

    Paper is 0. The strength of a color has 10 steps, and neighbors in a column that have the same are one stripe.
    """
    alt = described(alt)
    rows = np.array([_numbers(row) for row in table])
    positions, channels = rows.shape
    down = max(round(200 / positions), 1)  # whole units: sharp, and short to write
    height = positions * down + 60
    [ax] = new_axes(height=height / 72)
    _figure(ax).set_layout_engine("none")

    def fit(width: float) -> None:
        across = max(int(width - 30) // channels, 1)
        ax.set_position((25 / width, 36 / height, channels * across / width, positions * down / height))

    for level in [*range(-_LEVELS, 0), *range(1, _LEVELS + 1)]:
        stripes = _stripes(np.rint(rows * _LEVELS) == level)
        if stripes:
            color = PLUS if level > 0 else MINUS
            shape = PathPatch(Path.make_compound_path(*stripes), color=color, alpha=abs(level) / _LEVELS, linewidth=0)
            shape.set(gid="crisp", clip_on=False)  # neighbors touch without a seam
            ax.add_patch(shape)
    ax.axvline(channels / 2 - 0.5, color=INK, linewidth=2.4, clip_on=False)
    ax.set(xlim=(-0.5, channels - 0.5), ylim=(positions - 0.5, -0.5), xlabel="channel", ylabel="position")
    shown = range(0, channels, max(channels // 8, 1))
    ax.set_xticks(shown, [str(channel + 1) for channel in shown])  # a reader counts from 1
    ax.grid(False)
    ax.spines["bottom"].set_visible(False)
    _scale(ax)
    return Picture(_figure(ax), alt=alt, fit=fit)


def _stripes(cells: np.ndarray) -> list[Path]:
    """Rectangles that cover the cells that are true, one for each run down a column."""
    stripes = []
    for channel, column in enumerate(cells.T):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], column, [False]]).astype(int)))
        for top, end in edges.reshape(-1, 2):
            left, right = channel - 0.5, channel + 0.5
            corners = [(left, top - 0.5), (right, top - 0.5), (right, end - 0.5), (left, end - 0.5)]
            stripes.append(Path(corners, [Path.MOVETO, *[Path.LINETO] * 3]))
    return stripes


def _scale(ax: Axes) -> None:
    """What the colors of a table mean, at the right above it: minus one, zero, one."""
    for right, value, face, edge in [(-100, "−1", MINUS, MINUS), (-58, "0", "none", LINE), (-24, "1", PLUS, PLUS)]:
        look = {"marker": "s", "markersize": 9, "markerfacecolor": face, "markeredgecolor": edge}
        ax.add_line(Line2D([1], [1], linestyle="none", transform=_shifted(ax, right, 12), clip_on=False, **look))
        ax.text(1, 1, value, transform=_shifted(ax, right + 9, 12), color=INK, fontsize=FONT, va="center_baseline")


def _numbers(values: Iterable[float]) -> list[float]:
    """Numbers of Python, from whatever holds them."""
    return [float(value) for value in values]


class _Powers(Formatter):
    """Ticks of a logarithmic axis: 1, 10, 100 while that is short, 10⁻⁴ otherwise; as words, which a page can set."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        axis: Any = self.axis
        low, high = sorted(axis.get_view_interval())
        if 1 <= low and high < 1e6:
            return f"{x:,.0f}"
        return "10" + str(round(np.log10(x))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


class _Thousands(Formatter):
    """Numbers as the book writes them: 32,768, and a minus that is one."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{round(x, 6) + 0.0:,g}".replace("-", "−") if abs(x) < 1e4 else f"{x:,.0f}".replace("-", "−")


# Names


def _name_lines(ax: Axes) -> None:
    """Name each curve where it ends or leaves the picture; or all of them above it, if the ends are too close."""
    _lay_name_of_y(ax)
    box = _lay_out(ax)
    ends, leaving = [], []
    for line in ax.lines:
        points = ax.transData.transform(np.column_stack(line.get_data()))  # units
        (ends if box.y0 - 1 <= points[-1, 1] <= box.y1 + 1 else leaving).append((line, points))
    ends.sort(key=lambda end: end[1][-1, 1])
    names = [folded(str(line.get_label()), _LONGEST_NAME) for line, _ in ends]
    heights = np.array([float(points[-1, 1]) for _, points in ends])
    gaps = [_LINE_HEIGHT * (a.count("\n") + b.count("\n") + 2) / 2 for a, b in zip(names, names[1:], strict=False)]
    places = spread(heights, gaps)
    too_close = bool((np.diff(heights) < 3).any() or (abs(places - heights) > 0.8 * _LINE_HEIGHT).any())
    if too_close or any(breadth(part) > _LONGEST_NAME for name in names for part in name.split("\n")):
        return _legend(ax)
    for (line, _), name, place in zip(ends, names, places, strict=True):
        height = (place - box.y0) / box.height
        text = ax.text(1, height, name, transform=_shifted(ax, 7, 0), va="center", linespacing=1.1)
        text.set(color=line.get_color(), fontsize=FONT)
    for line, points in leaving:
        _name_at_edge(ax, line, points)


def spread(places: np.ndarray, gaps: Sequence[float]) -> np.ndarray:
    """Move rising `places` as little as it takes (least squares) to have `gaps[i]` between i and i + 1."""
    offsets = np.concatenate([[0.0], np.cumsum(gaps)])
    blocks: list[list[float]] = []  # [mean, size] of what moves together
    for value in places - offsets:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (mean, size), (low, below) = blocks.pop(), blocks.pop()
            blocks.append([(mean * size + low * below) / (size + below), size + below])
    return np.concatenate([np.full(int(size), mean) for mean, size in blocks] or [[]]) + offsets[: len(places)]


def _name_at_edge(ax: Axes, line: Line2D, points: np.ndarray) -> None:
    """The name of a curve that leaves the picture, inside at the edge, clear of the curve.

    Args:
        points: `[points, 2]`, the curve in units, of which the last lies outside.
    """
    box, name = ax.get_window_extent(), folded(str(line.get_label()), _LONGEST_NAME)
    above = points[-1, 1] > box.y1
    edge, depth = (box.y1 if above else box.y0), (name.count("\n") + 1) * _LINE_HEIGHT
    dense = np.linspace(0, len(points) - 1, 50 * len(points))
    x, y = (np.interp(dense, range(len(points)), values) for values in points.T)
    near = abs(y - edge)
    beside = x[near <= max(depth, near.min())]  # the curve next to its name
    right = beside.mean() < (box.x0 + box.x1) / 2
    place = beside.max() + 8 if right else beside.min() - 8
    look = {"ha": "left" if right else "right", "va": "top" if above else "bottom", "linespacing": 1.1}
    move = _shifted(ax, 0, -2 if above else 3)
    text = ax.text((place - box.x0) / box.width, float(above), name, transform=move, **look)
    text.set(color=line.get_color(), fontsize=FONT)


def _legend(ax: Axes) -> None:
    """Names above the picture, where they hide nothing."""
    names = ax.get_legend_handles_labels()[1]
    _lay_name_of_y(ax)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        bbox_transform=_shifted(ax, 1 - _lay_out(ax).x0, 7 + _LINE_HEIGHT + 5),
        ncols=3 if len(names) == 3 and sum(map(breadth, names)) < 22 else 2,
        frameon=False,
        labelcolor=INK,
        fontsize=FONT,
        borderaxespad=0,
        borderpad=0,
        handlelength=2.4,
        handletextpad=0.6,
        columnspacing=1.6,
        labelspacing=0.35,
    )


# SVG


def _shortened(root: ElementTree.Element, name: str) -> ElementTree.Element:
    """What matplotlib has written, without what says nothing; ids begin with `name`."""
    names = {old: f"{name}-{number}" for number, old in enumerate(_referenced(root))}
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    svg = ElementTree.Element(
        "svg",
        {
            "viewBox": f"0 0 {width:g} {height:g}",
            "width": f"{width * 4 / 3:.0f}",  # px: the letters are then 16 high
            "height": f"{height * 4 / 3:.0f}",
            "font-family": "sans-serif",  # a page's own rule for the class is stronger
            "font-size": str(FONT),
            "stroke-linejoin": "round",
            "style": "max-width: 100%; height: auto",
        },
    )
    svg.extend(child for element in root for child in _cleaned(element, names))
    return svg


def _referenced(root: ElementTree.Element) -> list[str]:
    """The ids that something else in the picture points at, in order."""
    values = (value for element in root.iter() for value in element.attrib.values())
    return list(dict.fromkeys(found for value in values for found in re.findall(r"^#(\S+)$|url\(#([^)]+)\)", value)
                              for found in found if found))  # fmt: skip


def _cleaned(element: ElementTree.Element, names: Mapping[str, str], crisp: bool = False) -> list[ElementTree.Element]:
    """What an element of matplotlib's is worth: nothing, itself in short, or its children."""
    tag = element.tag.rpartition("}")[2]
    crisp = crisp or element.get("id") == "crisp"
    if tag in ("metadata", "style"):
        return []
    children = [child for old in element for child in _cleaned(old, names, crisp)]
    attributes = {}
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]  # xlink:href is href
        if key == "id":
            value = names.get(value, "")
        elif key == "style":
            value = _short_style(value)
        elif key == "d":
            value = _short_path(value)
        else:
            value = re.sub(r"#(\S+?)(?=\)|$)", lambda found: "#" + names.get(found[1], found[1]), value)
            value = _rounded(value)
        if value and not re.fullmatch(r"rotate\(-?0( .*)?\)", value):
            attributes[key] = value
    if tag == "path" and re.search(r"fill: none(?!.*stroke: )|(?<!-)opacity: 0(;|$)", attributes.get("style", "")):
        return []
    if tag in ("g", "defs", "clipPath") and not children:
        return []
    if (tag == "g" and not attributes) or (tag == "clipPath" and "id" not in attributes):
        return children if tag == "g" else []
    if crisp and tag == "path":
        attributes["shape-rendering"] = "crispEdges"
    new = ElementTree.Element(tag, attributes)
    new.text = (element.text or "").strip() or None
    new.extend(children)
    return [new]


def _short_style(style: str) -> str:
    """Declarations with short numbers, and without the font, which is the whole picture's, but for another size."""
    kept = []
    for declaration in filter(None, map(str.strip, style.split(";"))):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        size = re.search(r"([\d.]+)px", value) if key in ("font", "font-size") else None
        if size and float(size[1]) != FONT:
            kept.append(f"font-size: {_rounded(size[1])}px")
        elif not key.startswith("font"):
            kept.append(f"{key}: {_rounded(value)}")
    return "; ".join(kept)


def _rounded(text: str) -> str:
    """Numbers with two decimals at most, and paths on one line."""
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda found: f"{round(float(found[0]), 2) + 0.0:.10g}", text)


def _short_path(path: str) -> str:
    """A path with short numbers, without spaces that say nothing and corners that come again."""
    parts = re.findall(r"([A-Za-z])([^A-Za-z]*)", _rounded(path))
    short, here, start = [], ["", ""], ["", ""]
    for letter, numbers in parts:
        place = numbers.split()[-2:]
        if letter == "L" and place[0] == here[0]:
            short.append(f"V{place[1]}")
        elif letter == "L" and place[1] == here[1]:
            short.append(f"H{place[0]}")
        else:
            short.append(letter + " ".join(numbers.split()))
        if letter in "zZ":
            here = start
        else:
            start, here = (place if letter == "M" else start), place
    return "".join(short)
