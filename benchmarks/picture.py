"""A stored run as a picture: how fast everybody decodes, and what a longer context costs; or the chart of engines."""

import statistics
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.byte_chart import byte_chart, of_one
from benchmarks.findings import BEFORE, LIMIT, OURS, Result
from benchmarks.timing import Spread, ratios
from minimind_edu.measure.plotting import INK, Picture, curve_styles, style_axes

FONT = 11
ALT = (
    "Two kinds of panels for each size of the model: bars show how many times as fast as transformers each "
    "implementation decodes, and lines how the milliseconds of a step grow with the context."
)


def draw(run: dict[str, Any], path: Path) -> bool:
    """Write the picture of a run as SVG, where it holds something to draw; says whether it does.

    Transparent, in colors of middle lightness: readable on light and on dark pages.
    """
    results = chosen(run["results"])
    if not results and not of_one(run):
        return False
    picture = Picture(figure_of(results), alt=ALT) if results else byte_chart(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture.svg + "\n", encoding="utf-8")
    return True


def figure_of(results: list[Result]) -> Figure:
    """One panel for each result, below each other."""
    heights = [0.9 + 0.3 * len(r["seconds"]) if r["kind"] == "decode" else 3.2 for r in results]
    figure = Figure(figsize=(4.8, sum(heights)), dpi=72, layout="constrained")
    figure.patch.set_alpha(0)
    panels = figure.subplots(len(results), 1, height_ratios=heights, squeeze=False)
    figure.get_layout_engine().set(hspace=0.05)
    for ax, result in zip(panels[:, 0], results, strict=True):
        style_axes(ax)
        PANELS[result["kind"]](result, ax)
        ax.set_title(result["name"], loc="left", color=INK, fontsize=FONT + 1, pad=24 if ax.get_ylabel() else 8)
    return figure


def chosen(results: list[Result]) -> list[Result]:
    """For each size the first decode scenario of the run, and its steps against context."""
    first: dict[tuple[str, str], Result] = {}
    for result in results:
        if result["kind"] in PANELS and "transformers" in result["seconds"]:
            first.setdefault((result["size"], result["kind"]), result)
    sizes = list(dict.fromkeys(size for size, _ in first))
    return sorted(first.values(), key=lambda r: (sizes.index(r["size"]), r["kind"] != "decode"))


def draw_decode(result: Result, ax: Axes) -> None:
    """Bars: times as fast as transformers, with the least and the largest round, and the speed in words."""
    seconds = result["seconds"]
    names = list(seconds)
    for place, name in enumerate(names):
        spread = Spread.of(ratios(seconds["transformers"], seconds[name]))
        strength = 0 if name == LIMIT else 0.6 if name in (*OURS, *BEFORE) else 0.25  # the limit is only an outline
        ax.barh(place, spread.median, 0.62, color=(INK, strength), edgecolor=(INK, strength or 0.6))
        ax.hlines(place, spread.low, spread.high, color=INK, linewidth=1.6)
        rate = result["batch"] / statistics.median(seconds[name])
        words = f"{spread.median:.2f} x, {rate:.0f}/s"
        place_of_words = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        ax.annotate(words, (max(spread.high, 1), place), color=INK, fontsize=FONT, **place_of_words)
    ax.axvline(1, color=INK, linewidth=1, linestyle="--")
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlim(0, 1.75 * ax.dataLim.xmax)  # room for the words
    ax.set_xlabel("times as fast as transformers")
    ax.grid(False, axis="y")


def draw_context(result: Result, ax: Axes) -> None:
    """Lines: milliseconds of a step against the positions before it."""
    styles = curve_styles(result["seconds"])
    for name, rounds in result["seconds"].items():
        middle = [1e3 * statistics.median(at) for at in zip(*rounds, strict=True)]
        ax.plot(result["contexts"], middle, marker="o", markersize=3.5, label=name, **styles[name])
    ax.set(xlabel="context, tokens", ylabel="ms a step", xticks=result["contexts"][-3:])
    ax.set_ylim(0, 1.5 * ax.dataLim.ymax)  # room for the names
    # the slowest first, as they lie
    lines = sorted(ax.lines, key=lambda line: -line.get_ydata()[-1])
    ax.legend(handles=lines, frameon=False, labelcolor=INK, fontsize=FONT, loc="upper left", ncols=2)


PANELS = {"decode": draw_decode, "step against context": draw_context}
