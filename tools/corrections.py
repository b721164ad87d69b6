"""The corrections of the source notes, read from their notebooks `chapters/C*.ipynb`.

An entry is a Markdown cell, and the code cells after it settle it:

    ### E71 · The claim, in a few words

    *"The claim as the source says it, translated"* (004 §1.3)

    **In fact:** what is true, where the claim is wrong, incomplete or unclear.

    **In short:** the truth, in a few words.

Where a claim holds, but not everywhere, `**Right, with a limit:**` stands in place of `**In fact:**`. In Chinese the
three are `**其实**：`, `**没错，但有限制**：` and `**小结**：`, and the claim is the source's own sentence.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.chapters import CHAPTERS
from tools.compared import load, text
from tools.translated import blocks_of

MOST_WORDS = 8  # of a claim or a truth in short

_BEGIN = r"### (?P<number>E\d{2,3}[a-z]?) · (?P<claim>[^\n]+)\n\n"
_ENTRY = {
    "en": re.compile(
        _BEGIN + r'(?P<quotes>\*"[^\n]+)\n\n'
        r"\*\*(?P<verdict>In fact|Right, with a limit):\*\* (?P<truth>.+?)\n\n"
        r"\*\*In short:\*\* (?P<short>[^\n]+)",
        re.DOTALL,
    ),
    "zh": re.compile(
        _BEGIN + r"(?P<quotes>[^\n]*“[^\n]+)\n\n"
        r"\*\*(?P<verdict>其实|没错，但有限制)\*\*：(?P<truth>.+?)\n\n"
        r"\*\*小结\*\*：(?P<short>[^\n]+)",
        re.DOTALL,
    ),
}
_PLACE = {
    "en": re.compile(r"\(((?:[^()]|\([^()]*\))*)\)$"),
    "zh": re.compile("（((?:[^（）]|（[^（）]*）)*)）$"),
}
_LIMITED = {"Right, with a limit", "没错，但有限制"}


@dataclass(frozen=True)
class Correction:
    """One entry: where it is, what the source claims there, and what is true."""

    number: str
    claim: str
    place: str  # documents and sections, as in "004 §1.3"
    verdict: str  # "wrong" (incomplete and unclear, too), "limited"; "code" of MiniMind's own, which is no note
    truth: str
    short: str
    path: Path
    settled: tuple[str, ...]  # ids of the code cells


def notebooks() -> list[Path]:
    """The notebooks that hold corrections, one for each part of the book."""
    return sorted(CHAPTERS.glob("C[0-9]_*.ipynb"))


def corrections(language: str = "en") -> list[Correction]:
    """All entries in their order; raises a ValueError for one that has another form."""
    return [entry for path in notebooks() for entry in _of(path, language)]


def _of(path: Path, language: str) -> list[Correction]:
    found: list[Correction] = []
    told = blocks_of(path) if language == "zh" else {}
    for cell in load(path)["cells"]:
        words = told[cell["id"]].text if cell["id"] in told else text(cell)
        if cell["cell_type"] == "code":
            if found:
                found[-1] = Correction(**{**vars(found[-1]), "settled": (*found[-1].settled, cell["id"])})
        elif words.startswith("### "):
            entry = _ENTRY[language].fullmatch(words.strip())
            place = _PLACE[language].search(entry["quotes"]) if entry else None
            if entry is None or place is None:
                raise ValueError(f"{path.name}, cell {cell['id']}: not of the form that tools.corrections describes")
            verdict = "limited" if entry["verdict"] in _LIMITED else "wrong"
            verdict = verdict if re.match(r"00\d\b", place[1]) else "code"
            truth = entry.group("truth", "short")
            found.append(Correction(entry["number"], entry["claim"], place[1], verdict, *truth, path, ()))
    return found
