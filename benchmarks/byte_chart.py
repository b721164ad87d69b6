"""Tokens a second against bytes for each weight, with the limit of reading them: one panel for each size."""

import statistics
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.engines import ENGINES
from benchmarks.findings import OURS, ROUNDED, Result
from minimind_edu.plotting import INK, Picture, spread, style_axes

TITLES = {"small": "Small, 26 million weights", "base": "Base, 104 million weights"}
MINE = (*OURS, *ROUNDED)
GROUPS = ((0, 0.8), (0.8, 1.5), (1.5, 3), (3, 9))  # bytes; the first is named on its right, the others on their left
LINE = 12.5  # units from one name to the next
FONT = 11
GAP = 14  # units between a group of dots and their names
TICKS = [digit * 10**power for power in range(5) for digit in (1, 2, 5)]
SHORT = {name: name.split()[0] for name in ENGINES}  # the bytes say which precision


def byte_chart(run: dict[str, Any]) -> Picture:
    """The run's texts of one, one panel for each size.

    Raises:
        ValueError: if the run has none.
    """
    results = [r for r in run["results"] if r["kind"] == "engines" and r["batch"] == 1]
    if not results:
        raise ValueError("this run was measured without engines: make bench PEERS=1 stores one with them")
    return Picture(figure_of(results), alt=described(results))


def described(results: Sequence[Result]) -> str:
    """What the chart shows, for those who do not see it."""
    panels = []
    for result in results:
        rates = sorted(rates_of(result).items(), key=lambda item: -item[1])
        said = "; ".join(f"{name} {result['bytes_per_weight'][name]:g} bytes, {rate:.0f}" for name, rate in rates)
        panels.append(f"{result['size']}: {said}")
    return "Tokens per second of each implementation, with its bytes per weight, fastest first. " + ". ".join(panels)


def rates_of(result: Result) -> dict[str, float]:
    """Tokens a second of each, the median of the rounds."""
    return {name: result["batch"] / statistics.median(each) for name, each in result["seconds"].items()}


def figure_of(results: Sequence[Result]) -> Figure:
    """The panels below each other."""
    figure = Figure(figsize=(330 / 72, 3.9 * len(results)), dpi=72, layout="constrained")
    figure.patch.set_alpha(0)
    panels = figure.subplots(len(results), 1, squeeze=False)[:, 0]
    for ax, result in zip(panels, results, strict=True):
        style_axes(ax)
        _draw_scales(ax, result)
        figure.draw_without_rendering()  # names are placed in units of the picture, so it must be laid out
        _draw_limit(ax, result)
        _draw_points(ax, result)
    return figure


def _draw_scales(ax: Axes, result: Result) -> None:
    """Both logarithmic: half the bytes and twice the tokens are steps of the same kind."""
    rates = rates_of(result)
    low, high = min(rates.values()), max(*rates.values(), *limits_of(result).values())
    ax.set(xscale="log", yscale="log", xlim=(0.36, 4.4), ylim=(low / 1.35, high * 1.2))
    ax.xaxis.set(major_locator=FixedLocator([0.5, 1, 2, 4]), major_formatter=FuncFormatter(lambda x, _: f"{x:g}"))
    ticks = [tick for tick in TICKS if low / 1.35 <= tick <= high * 1.2]
    ax.yaxis.set(major_locator=FixedLocator(ticks), major_formatter=FuncFormatter(lambda y, _: f"{y:g}"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    title = f"{TITLES.get(result['size'], result['size'])}: tokens per second"
    ax.set_title(title, loc="left", color=INK, fontsize=FONT + 1, pad=8)
    ax.set_xlabel("bytes per weight", color=INK, fontsize=FONT)


def limits_of(result: Result) -> dict[float, float]:
    """Tokens a second that reading alone allows, by bytes of a weight."""
    return {
        float(name.split()[0]): result["batch"] / statistics.median(each) for name, each in result["limits"].items()
    }


def _draw_limit(ax: Axes, result: Result) -> None:
    limits = dict(sorted(limits_of(result).items()))
    ax.plot(list(limits), list(limits.values()), color=INK, alpha=0.45, linewidth=2, zorder=1)
    place, rate = next(iter(limits.items()))
    beside = {"textcoords": "offset points", "color": INK, "fontsize": FONT}
    ax.annotate("reading limit", (place, rate), (6, 0), **beside)


def _draw_points(ax: Axes, result: Result) -> None:
    """Filled dots are this package's; names stand in a column for each group, in the order of the dots."""
    sizes, rates = result["bytes_per_weight"], rates_of(result)
    for name, rate in rates.items():
        fill = INK if name in MINE else "none"
        ax.plot(sizes[name], rate, "o", markersize=6, color=INK, markerfacecolor=fill, markeredgewidth=1.3)
    for above, most in GROUPS:
        group = sorted((n for n in rates if above < sizes[n] <= most), key=rates.__getitem__)
        _draw_names(ax, group, sizes, rates)


def _draw_names(ax: Axes, names: Sequence[str], sizes: dict[str, float], rates: dict[str, float]) -> None:
    """Beside a group of dots, each name with a line to its dot."""
    if not names:
        return
    dots = ax.transData.transform([(sizes[name], rates[name]) for name in names])  # [N, 2], in units
    rows = spread(dots[:, 1], [LINE] * (len(names) - 1))
    rows += min(0, ax.bbox.y1 - rows[-1] - LINE / 2) + max(0, ax.bbox.y0 + LINE / 2 - rows[0])
    left = sizes[names[0]] > GROUPS[0][1]
    column = dots[:, 0].min() - GAP if left else dots[:, 0].max() + GAP
    for name, dot, row in zip(names, dots, rows, strict=True):
        ends = ax.transData.inverted().transform([dot, (column, row)])
        ax.plot(*ends.T, color=INK, linewidth=0.7, alpha=0.6, zorder=1)
        ax.annotate(
            SHORT.get(name, name), ends[1], (-2 if left else 2, 0), textcoords="offset points", color=INK,
            fontsize=FONT, va="center", ha="right" if left else "left",
        )  # fmt: skip
