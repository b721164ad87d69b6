"""The curve of a log with what was found on it: SVG, a page of its own, or PNG."""

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.font_manager import fontManager
from matplotlib.text import Text

from minimind_edu.measure.plotting import FONT, INK, MINUS, MUTED, PLUS, TEXT_WIDTH, Picture, new_axes, picture
from minimind_edu.verdicts.curve import LN2, VOCABULARY, band_at
from minimind_edu.verdicts.log import Log, finite
from minimind_edu.verdicts.verdict import GRADES, Verdict, in_language
from minimind_edu.weights.writing import replacing
from minimind_edu.words import WIDE

SUFFIXES = (".png", ".svg", ".html")
_FONTS = (  # with Chinese letters, as systems have them
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Microsoft YaHei", "PingFang SC", "Hiragino Sans GB",
    "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",
)  # fmt: skip
_MOST_MARKS = 9


def draw(
    log: Log, verdicts: Sequence[Verdict], kind: str, vocab_size: int | None = None, language: str = "en"
) -> Picture:
    """The losses over the steps; the band of others; ln V or ln 2; and numbers where a verdict points to a step."""

    def said(text: str) -> str:
        return in_language(text, language)

    points, marked = finite(log.points), marks(verdicts)
    [ax] = new_axes(height=3.4)
    steps, losses = [p.step for p in points], [p.loss for p in points]
    ax.plot(steps, losses, color=INK, linewidth=1.4)
    known = [(step, band_at(kind, step)) for step in np.unique(np.geomspace(1, max([2, *steps]), 60).astype(int))]
    band = [(step, *found[:2]) for step, found in known if found]
    if band:
        places, lows, highs = zip(*band, strict=True)
        ax.fill_between(places, lows, highs, color=MUTED, alpha=0.25, linewidth=0)
        ax.annotate(said("others' band"), (band[-1][0], band[-1][2]), (4, 4), textcoords="offset points", color=MUTED)
    level, name = (LN2, "ln 2") if kind == "dpo" else (math.log(vocab_size or VOCABULARY), "ln V")
    if losses and min(losses) - 1 < level < max(losses) + 1:
        ax.axhline(level, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        ax.annotate(f"{name} = {level:.2f}", (1, level), (-2, 3), ("axes fraction", "data"),
                    "offset points", color=MUTED, ha="right")  # fmt: skip
    for number, verdict in enumerate(marked, 1):
        step = verdict.at or 0
        height = float(np.interp(step, steps, losses)) if steps else level
        color = {"wrong": MINUS, "look": PLUS}.get(verdict.grade, INK)
        ax.plot([step], [height], "o", color=color, markersize=5, clip_on=False)
        ax.annotate(str(number), (step, height), (0, 8), textcoords="offset points", color=color, ha="center",
                    fontweight="bold", fontsize=FONT)  # fmt: skip
    ax.set(xlabel=said("step"), ylabel=said("loss, nats a token"))
    ax.margins(x=0.02)
    told = "; ".join(f"{number} {said(verdict.finding)}" for number, verdict in enumerate(marked, 1))
    alt = said("The loss of a training over its steps, with what was found on it")
    return picture(ax, alt=f"{alt}: {told}" if told else alt)


def marks(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that have a place on the curve, in its order."""
    return sorted((v for v in verdicts if v.at is not None), key=lambda verdict: verdict.at or 0)[:_MOST_MARKS]


def write(shown: Picture, verdicts: Sequence[Verdict], target: Path, language: str = "en") -> Path:
    """Write the picture in the form that the name of the file asks for; a page has the verdicts below it.

    Raises:
        ValueError: for another name, and for Chinese in a PNG where no font of this machine has it.
    """
    if target.suffix not in SUFFIXES:
        raise ValueError(f"a picture's name must end in {', '.join(SUFFIXES)}, got {target.name!r}")
    with replacing(target) as partial:
        if target.suffix == ".png":
            _write_png(shown, partial)
        else:
            content = shown.svg if target.suffix == ".svg" else _page(shown, verdicts, language)
            partial.write_text(content, encoding="utf-8")
    return target


def _write_png(shown: Picture, target: Path) -> None:
    shown.lay_out(TEXT_WIDTH)
    texts = shown.figure.findobj(Text)
    if any(WIDE.search(text.get_text()) for text in texts):
        installed = {font.name for font in fontManager.ttflist}
        found = [name for name in _FONTS if name in installed]
        if not found:
            raise ValueError("no font of this machine has Chinese letters for a .png; .svg and .html need none here")
        for text in texts:
            text.set_fontfamily(["DejaVu Sans", found[0]])
    shown.figure.savefig(target, format="png", dpi=144, facecolor="white")


_STYLE = """body { font: 16px/1.5 sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222;
 background: #fff; }
li { margin: 0.4rem 0; } b { margin-right: 0.4rem; } .advice { color: #555; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #14161a; } .advice { color: #aaa; } }"""


def _page(shown: Picture, verdicts: Sequence[Verdict], language: str) -> str:
    marked = {id(verdict): number for number, verdict in enumerate(marks(verdicts), 1)}
    rows = []
    for verdict in verdicts:
        number = f"{marked[id(verdict)]} · " if id(verdict) in marked else ""
        told = [in_language(part, language) for part in (GRADES[verdict.grade], verdict.about, verdict.finding)]
        advice = (
            f'<br><span class="advice">→ {escape(in_language(verdict.advice, language))}</span>'
            if verdict.advice
            else ""
        )
        rows.append(f"<li><b>{number}{escape(told[0])}</b>{escape(told[1])}: {escape(told[2])}{advice}</li>")
    title = in_language("What the log shows", language)
    code = "zh-CN" if language == "zh" else "en"
    return (
        f'<!doctype html><html lang="{code}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>{shown.svg}<ul>{''.join(rows)}</ul></html>\n"
    )
