"""One finding about a reader's own file, in plain words; and the screen or the part of a page that shows many.

The code has the English sentences. Their Chinese stands in `words.zh.md` as pairs (see minimind_edu.words).
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Literal

from minimind_edu.words import WIDE, Words, breadth, pairs_in

Grade = Literal["fine", "look", "wrong", "open"]
GRADES: dict[Grade, str] = {  # in the order in which they are counted
    "wrong": "wrong",
    "look": "look here",
    "fine": "fine",
    "open": "not known",
}
_WIDTH = 80  # Latin letters of a line
_GRADE, _ABOUT = 11, 14  # of its first two columns
_CLOSING, _OPENING = frozenset("，。；：？！、”’）》"), frozenset("（“《")


@dataclass(frozen=True)
class Verdict:
    """What was found.

    Attributes:
        about: the question in a word or two, such as "NaN".
        grade: "fine", "look" (may be meant), "wrong", or "open": could not be told, and why.
        finding: a sentence with its number.
        advice: what to do; empty if there is nothing to do.
        at: the step of a log where it shows, if there is one.
    """

    about: str
    grade: Grade
    finding: str
    advice: str = ""
    at: float | None = None


@cache
def _chinese() -> Words:
    return Words(pairs_in(Path(__file__).with_name("words.zh.md").read_text(encoding="utf-8")))


def in_language(text: str, language: str) -> str:
    """What a verdict says, in "en" or "zh"; what has no Chinese, such as an error of a library, stays English."""
    return (_chinese()(text) or text) if language == "zh" and text else text


def screen(groups: Mapping[str, Sequence[Verdict]], language: str = "en") -> str:
    """All verdicts below the names of what they are about, and a last line that counts them."""
    lines = []
    for title, verdicts in groups.items():
        lines.append(in_language(title, language))
        for verdict in verdicts:
            head = [in_language(part, language) for part in (GRADES[verdict.grade], verdict.about)]
            first = "  " + "".join(_padded(part, room) for part, room in zip(head, (_GRADE, _ABOUT), strict=True))
            lines += _wrapped(in_language(verdict.finding, language), first)
            if verdict.advice:
                lines += _wrapped("→ " + in_language(verdict.advice, language), "")
        lines.append("")
    return "\n".join([*lines, counted(groups, language)])


def counted(groups: Mapping[str, Iterable[Verdict]], language: str = "en") -> str:
    """How many verdicts of each grade there are, in words."""
    counts = Counter(verdict.grade for verdicts in groups.values() for verdict in verdicts)
    phrases = [f"{in_language(name, language)} {counts[grade]}" for grade, name in GRADES.items() if counts[grade]]
    return ("，" if language == "zh" else ", ").join(phrases)


def as_html(groups: Mapping[str, Sequence[Verdict]], language: str = "en") -> str:
    """What `screen` says, as a part of a page: there lines end where the page does, and no letters hold columns."""
    titled = [
        f"<p>{escape(in_language(title, language))}</p>\n{as_list(verdicts, language)}"
        for title, verdicts in groups.items()
    ]
    return "\n".join(['<div class="verdicts">', *titled, f"<p>{counted(groups, language)}</p>", "</div>\n"])


def as_list(verdicts: Iterable[Verdict], language: str = "en", numbers: Mapping[int, int] | None = None) -> str:
    """Verdicts as a list of HTML; `numbers`: of those that stand on a picture, by their id."""
    rows = []
    for verdict in verdicts:
        texts = (GRADES[verdict.grade], verdict.about, verdict.finding, verdict.advice)
        grade, about, finding, advice = (_breakable(in_language(part, language)) for part in texts)
        number = f"{numbers[id(verdict)]} · " if numbers and id(verdict) in numbers else ""
        below = f' <span class="advice">→ {advice}</span>' if advice else ""
        rows.append(
            f'<li class="{verdict.grade}"><b>{number}{grade}</b> <span>{about}</span> '
            f'<span class="finding">{finding}{below}</span></li>'
        )
    return "\n".join(["<ul>", *rows, "</ul>"])


def _breakable(text: str) -> str:
    """A text in HTML, whose long names may be cut where their parts end."""
    return re.sub(r"(?<=\w\.)(?=[a-z])", "<wbr>", escape(text))


def is_any_wrong(groups: Mapping[str, Iterable[Verdict]]) -> bool:
    return any(verdict.grade == "wrong" for verdicts in groups.values() for verdict in verdicts)


def _padded(text: str, room: int) -> str:
    return text + " " * max(1, room - breadth(text))


def _wrapped(text: str, first: str) -> list[str]:
    """A sentence on lines of the screen, below where it began."""
    indent = " " * (2 + _GRADE + _ABOUT)
    first = first or indent
    room = _WIDTH - len(indent)
    lines = _cut(text, room) if WIDE.search(text) else textwrap.wrap(text, room, break_on_hyphens=False)
    return [(indent if number else first) + line for number, line in enumerate(lines or [""])]


def _cut(text: str, room: int) -> list[str]:
    """Chinese may be cut between any two letters, but not before a closing sign, nor inside a Latin word."""
    lines, line = [], ""
    for part in _pieces(text):
        if breadth(line + part) > room and part not in _CLOSING:
            lines.append(line.rstrip())
            line = part.lstrip()
        else:
            line += part
    return [*lines, line.rstrip()]


def _pieces(text: str) -> list[str]:
    """Where a line may end: after any Chinese letter, and after a space; not within a Latin word."""
    pieces: list[str] = []
    for letter in text:
        last = pieces[-1] if pieces else ""
        within = last and last != " " and letter != " " and not WIDE.match(letter) and not WIDE.match(last[-1])
        if within or last[-1:] in _OPENING:
            pieces[-1] += letter
        else:
            pieces.append(letter)
    return pieces
