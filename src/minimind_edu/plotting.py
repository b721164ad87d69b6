"""The pictures of the chapters: numbers in, matplotlib Axes out.

Every function draws into `ax`, or into a new figure that is narrow enough for a phone, and returns the Axes. Nothing
is computed here that a chapter should show, and no model comes in. Backgrounds are transparent and colors of middle
lightness, so that a picture reads on a light page and on a dark one; labels are ASCII or mathematics, which every
machine's fonts have. Colors never stand alone: lines differ in dashes too, and are named where they end.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Circle

INK = "#7a808a"  # axes and text: the same contrast on white as on a dark page
COLORS = ("#d9772a", "#3f8fd0", "#2a9d7f", "#c94f7c", "#8f6fd1", "#8a8f3c")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_ON_TABLE = "#14171c"  # text in the cells of a table, which are light or middle on both themes
_TWO_SIDED = LinearSegmentedColormap.from_list("two_sided", [COLORS[1], "#f1f1ee", COLORS[0]])
_FONT = 11.5  # points, 12 px when the figure is 330 px wide


def new_axes(width: float = 4.6, height: float = 3.1) -> Axes:
    """Axes in a new transparent figure, in inches; text and lines in the ink of the book."""
    figure, ax = plt.subplots(figsize=(width, height), dpi=120, layout="constrained")
    figure.patch.set_alpha(0)
    style_axes(ax)
    return ax


def style_axes(ax: Axes) -> None:
    """The look of every picture: no box, a light grid, text that reads on both themes."""
    ax.patch.set_alpha(0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(INK)
    ax.tick_params(which="both", colors=INK, labelsize=_FONT)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_color(INK)
        text.set_fontsize(_FONT)
    ax.grid(color=INK, alpha=0.2, linewidth=0.8)
    ax.set_axisbelow(True)


def plot_by_depth(
    curves: Mapping[str, Sequence[float]],
    ylabel: str,
    limits: tuple[float, float] = (1e-8, 1e8),
    ax: Axes | None = None,
) -> Axes:
    """One line for every network: a size (logarithmic) against the layer it was measured after.

    Args:
        curves: name -> value at layer 0, 1, 2, ...
        ylabel: what was measured.
        limits: the sizes shown; a line that leaves them is named where it leaves.
    """
    ax = new_axes(height=4.0) if ax is None else ax
    low, high = limits
    for number, (name, values) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        ax.plot(values, color=color, linestyle=DASHES[number % len(DASHES)], linewidth=2, label=name)
    ax.set(yscale="log", ylim=limits, xlabel="layer", ylabel=ylabel)
    ax.set_yticks([10.0**n for n in range(-100, 101, 4) if low <= 10.0**n <= high])
    ax.set_yticks([], minor=True)
    _legend(ax)
    return ax


def plot_vectors(vectors: Mapping[str, Sequence[float]], ax: Axes | None = None) -> Axes:
    """Bars side by side: the channels of a few vectors of the same length, the first (the input) in gray."""
    ax = new_axes() if ax is None else ax
    width, colors = 0.8 / len(vectors), (INK, COLORS[1], COLORS[0], *COLORS[2:])
    for number, (name, values) in enumerate(vectors.items()):
        places = [i + (number - (len(vectors) - 1) / 2) * width for i in range(len(values))]
        ax.bar(places, values, width * 0.92, color=colors[number % len(colors)], label=name)
    ax.axhline(0, color=INK, linewidth=1)
    ax.set(xlabel="channel", ylabel="value", xticks=range(len(values)))
    _legend(ax)
    return ax


def plot_lines(
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    xlabel: str,
    ylabel: str,
    log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """A few named lines over the same places `x`; `log` makes the x axis logarithmic."""
    ax = new_axes() if ax is None else ax
    for number, (name, values) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        ax.plot(x, values, color=color, linestyle=DASHES[number % len(DASHES)], linewidth=2, label=name)
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale="log" if log else "linear")
    _legend(ax)
    return ax


def _legend(ax: Axes) -> None:
    """Names above the picture, where they hide nothing."""
    names = ax.get_legend_handles_labels()[1]
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(-0.08, 1.0),
        ncols=3 if len(names) == 3 and sum(map(len, names)) < 24 else 2,
        frameon=False,
        labelcolor=INK,
        fontsize=_FONT,
        borderaxespad=0.2,
        handlelength=2.0,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def plot_tables(tables: Mapping[str, Sequence[Sequence[float]]], row_labels: Sequence[Sequence[str]]) -> list[Axes]:
    """Small square tables side by side, on one color scale, every entry written into its cell.

    Args:
        tables: title -> square table of numbers.
        row_labels: for each table, the names of its rows, which are also those of its columns.

    Returns:
        the Axes of each table.
    """
    size = (2.3 * len(tables), 2.5)
    figure, [axes] = plt.subplots(1, len(tables), figsize=size, dpi=120, layout="constrained", squeeze=False)
    figure.patch.set_alpha(0)
    largest = max(abs(float(value)) for table in tables.values() for row in table for value in row)
    for ax, (title, table), labels in zip(axes, tables.items(), row_labels, strict=True):
        style_axes(ax)
        rows = [[float(value) for value in row] for row in table]
        ax.imshow(rows, cmap=_TWO_SIDED, vmin=-largest, vmax=largest)
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                text = f"{round(value, 2) + 0.0:.2f}"  # the sum turns -0.0 into 0.0
                ax.text(j, i, text, ha="center", va="center", fontsize=_FONT, color=_ON_TABLE)
        ax.set(xticks=range(len(labels)), yticks=range(len(labels)), title=title)
        ax.set_xticklabels(labels)
        ax.set_yticklabels(labels)
        ax.grid(False)
        ax.tick_params(length=0)
    return list(axes)


def plot_arrows(arrows: Sequence[Sequence[float]], labels: Sequence[str], ax: Axes | None = None) -> Axes:
    """Arrows from the origin on a circle, each named at its tip: one vector, turned further and further.

    Args:
        arrows: `[N, 2]`, all of about length 1.
        labels: N names.
    """
    ax = new_axes(3.6, 2.9) if ax is None else ax
    ax.add_patch(Circle((0, 0), 1, fill=False, color=INK, alpha=0.5, linewidth=1))
    for number, ((x, y), label) in enumerate(zip(arrows, labels, strict=True)):
        x, y = float(x), float(y)
        color = COLORS[number % len(COLORS)]
        ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 2})
        beside = "left" if x > 0.1 else "center" if x > -0.1 else "right"
        ax.text(x * 1.08, y * 1.14, label, color=INK, fontsize=_FONT, ha=beside, va="center")
    ax.set(xlim=(-1.1, 2.0), ylim=(-0.35, 1.3), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    return ax


def plot_rope_table(table: Sequence[Sequence[float]], ax: Axes | None = None) -> Axes:
    """A cos or sin table as stripes, `[positions, D]`: one row a position, with the seam between its two halves."""
    ax = new_axes(4.6, 3.4) if ax is None else ax
    rows = [[float(value) for value in row] for row in table]
    channels = len(rows[0])
    image = ax.imshow(rows, cmap=_TWO_SIDED, vmin=-1, vmax=1, aspect="auto", interpolation="none")
    ax.axvline(channels / 2 - 0.5, color=INK, linewidth=2)
    ax.set(xlabel="channel", ylabel="position", xticks=range(0, channels, 2))
    ax.grid(False)
    bar = ax.figure.colorbar(image, ax=ax, ticks=[-1, 0, 1])
    bar.ax.tick_params(which="both", colors=INK, labelsize=_FONT)
    bar.outline.set_edgecolor(INK)
    return ax
