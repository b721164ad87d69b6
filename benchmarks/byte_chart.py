"""Tokens a second of each implementation, and the limit of reading its bytes: one column for each size of the model."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.engines import ENGINES
from benchmarks.findings import BEFORE, OURS, ROUNDED, Result
from minimind_edu.measure.plotting import INK, LINE, WIDTH, Picture, style_axes

TITLES = {"small": "Small, 26 M", "base": "Base, 104 M"}  # parameters
MINE = (*OURS, *BEFORE, *ROUNDED)
GROUPS = ((3, 9), (1.5, 3), (0.8, 1.5), (0, 0.8))  # bytes, more than the first and at most the second
ROW = 16  # units from one name to the next
NAMES = 132  # units, the column in which they stand
FONT = 11
TICKS = [digit * 10**power for power in range(5) for digit in (1, 2, 5)]
FEW_TICKS = 3  # of a column on a phone
SHORT = {name: name.split()[0] for name in ENGINES}  # the bytes say which precision


class Row(NamedTuple):
    """A line of the chart: an implementation, or the bytes of those that follow."""

    words: str
    name: str | None = None


def byte_chart(run: dict[str, Any]) -> Picture:
    """The run's texts of one, one panel for each size.

    Raises:
        ValueError: if the run has none.
    """
    results = of_one(run)
    if not results:
        raise ValueError("this run was measured without engines: make bench PEERS=1 stores one with them")
    return Picture(figure_of(results), alt=described(results))


def of_one(run: dict[str, Any]) -> list[Result]:
    """The works of one text, with engines."""
    return [result for result in run["results"] if result["kind"] == "engines" and result["batch"] == 1]


def described(results: Sequence[Result]) -> str:
    """What the chart shows, for those who do not see it."""
    panels = []
    for result in results:
        rates = sorted(rates_of(result).items(), key=lambda item: -item[1])
        speeds = "; ".join(f"{name} ({result['bytes_per_weight'][name]:g}), {rate:.0f}" for name, rate in rates)
        panels.append(f"{result['size']}: {speeds}")
    title = "Tokens per second of each implementation, its bytes per weight in brackets, fastest first. "
    return title + ". ".join(panels)


def rates_of(result: Result) -> dict[str, float]:
    """Tokens a second of each, the median of the rounds."""
    return {name: result["batch"] / statistics.median(each) for name, each in result["seconds"].items()}


def rows_of(results: Sequence[Result]) -> list[Row]:
    """Groups of equal bytes, or nearly, the most bytes first; in each the fastest with the last size first."""
    sizes = {name: size for result in results for name, size in result["bytes_per_weight"].items()}
    rates = rates_of(results[-1])
    rows = []
    for least, most in GROUPS:
        names = [name for name in sizes if least < sizes[name] <= most]
        if names:
            ends = sorted({min(sizes[name] for name in names), max(sizes[name] for name in names)})
            rows.append(Row(f"{' to '.join(f'{end:g}' for end in ends)} bytes per weight"))
        rows += [Row(SHORT.get(name, name), name) for name in sorted(names, key=lambda name: -rates.get(name, 0))]
    return rows


def figure_of(results: Sequence[Result]) -> Figure:
    """The sizes side by side, their rows in common."""
    rows = rows_of(results)
    figure = Figure(figsize=(WIDTH / 72, (ROW * len(rows) + 84) / 72), dpi=72, layout="constrained")
    figure.patch.set_alpha(0)
    columns = figure.subplots(1, len(results), squeeze=False)[0]
    for ax, result in zip(columns, results, strict=True):
        style_axes(ax)
        _draw_scale(ax, result, rows)
        _draw_points(ax, result, rows)
    for place, row in enumerate(rows):
        beside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "color": INK}
        columns[0].annotate(row.words, (0, place), (-NAMES + 10 * bool(row.name), 0), fontsize=FONT, **beside)
    figure.supxlabel("tokens per second", color=INK, fontsize=FONT)
    marks = {"this book": _mark("o", INK), "others": _mark("o", "none"), "reading limit": _mark("|", INK)}
    keys = [Line2D([], [], label=words, linestyle="none", **mark) for words, mark in marks.items()]
    look = {"frameon": False, "labelcolor": INK, "fontsize": FONT, "handletextpad": 0.2, "columnspacing": 1.4}
    figure.legend(handles=keys, loc="outside upper left", ncols=len(keys), borderpad=0, borderaxespad=0, **look)
    return figure


def _mark(shape: str, fill: str) -> dict[str, Any]:
    size = 12 if shape == "|" else 6
    return {"marker": shape, "markersize": size, "color": INK, "markerfacecolor": fill, "markeredgewidth": 1.3}


def _draw_scale(ax: Axes, result: Result, rows: Sequence[Row]) -> None:
    """Logarithmic: twice the tokens is a step of the same kind everywhere."""
    low, high = (
        min(rates_of(result).values()) / 1.3,
        max(*rates_of(result).values(), *limits_of(result).values()) * 1.15,
    )
    ticks = [tick for tick in TICKS if low <= tick <= high]
    few = ticks[:: -(-len(ticks) // FEW_TICKS)]
    ax.set(xscale="log", xlim=(low, high), ylim=(len(rows) - 0.4, -0.6))
    ax.xaxis.set(major_locator=FixedLocator(few), major_formatter=FuncFormatter(lambda x, _: f"{x:,g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_yticks([place for place, row in enumerate(rows) if row.name], [])
    ax.grid(axis="x", color=LINE, alpha=0.5, linewidth=0.8)
    title = TITLES.get(result["size"], result["size"])
    ax.set_title(title, loc="left", color=INK, fontsize=FONT, pad=6)


def limits_of(result: Result) -> dict[float, float]:
    """Tokens a second that reading alone allows, by bytes of a weight."""
    return {
        float(name.split()[0]): result["batch"] / statistics.median(each) for name, each in result["limits"].items()
    }


def _draw_points(ax: Axes, result: Result, rows: Sequence[Row]) -> None:
    """For each a dot at its tokens, filled if it is this package's, and how far it is from the limit of its bytes."""
    rates, limits = rates_of(result), limits_of(result)
    for place, row in enumerate(rows):
        if row.name not in rates:
            continue
        rate, limit = rates[row.name], limits[result["bytes_per_weight"][row.name]]
        ax.plot([rate, limit], [place, place], color=INK, alpha=0.3, linewidth=1.2, zorder=1)
        ax.plot(limit, place, **_mark("|", INK))
        ax.plot(rate, place, **_mark("o", INK if row.name in MINE else "none"))
