"""The curve of a log with what was found on it: SVG, a page of its own, or PNG."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib.font_manager import fontManager
from matplotlib.text import Text

from minimind_edu.measure.plotting import TEXT_WIDTH, Picture, plot_marked
from minimind_edu.verdicts.curve import LN2, VOCABULARY, others
from minimind_edu.verdicts.log import Log, finite
from minimind_edu.verdicts.verdict import Verdict, as_list, in_language
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
    """The losses over the steps; the runs of others; ln V or ln 2; and numbers where a verdict points to a step."""

    def translated(text: str) -> str:
        return in_language(text, language)

    points, marked = finite(log.points), marks(verdicts)
    runs = {f"#{thread} ({size:g}M)": run for (thread, size), run in others(kind).items()}
    findings = "; ".join(f"{number} {translated(verdict.finding)}" for number, verdict in enumerate(marked, 1))
    alt = translated("The loss of a training over its steps, with what was found on it")
    return plot_marked(
        [point.step for point in points],
        [point.loss for point in points],
        translated("step"),
        translated("loss, nats a token"),
        alt=f"{alt}: {findings}" if findings else alt,
        marks=[(verdict.at or 0, verdict.grade == "wrong") for verdict in marked],
        others=runs,
        level=("ln 2", LN2) if kind == "dpo" else ("ln V", math.log(vocab_size or VOCABULARY)),
    )


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
    shown.figure.savefig(target, format="png", dpi=144, facecolor="#fdfbf7")  # light paper


_NARROW = re.compile(r'<svg [^>]*class="narrow".*?</svg>', re.DOTALL)  # the twin for a phone, inside the picture
_STYLE = """.narrow { display: none; }
@media (max-width: 34rem) { .narrow { display: block; } .narrow + svg { display: none; } }
body { font: 16px/1.5 sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222;
 background: #fff; }
li { margin: 0.4rem 0; } b { margin-right: 0.4rem; } .finding, .advice { display: block; }
.advice { color: #555; }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #14161a; } .advice { color: #aaa; } }"""


def _page(shown: Picture, verdicts: Sequence[Verdict], language: str) -> str:
    marked = {id(verdict): number for number, verdict in enumerate(marks(verdicts), 1)}
    [narrow] = _NARROW.findall(shown.svg)
    drawn = narrow.replace(' display="none"', ' role="img"') + shown.svg.replace(narrow, "")
    title = in_language("What the log shows", language)
    code = "zh-CN" if language == "zh" else "en"
    listed = as_list(verdicts, language, marked)
    return (
        f'<!doctype html><html lang="{code}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>{drawn}{listed}</html>\n"
    )
