"""The corrections of the source notes, read from their notebooks `chapters/C*.ipynb`.

An entry is a Markdown cell, and the code cells after it settle it:

    ### E71 · The claim, in a few words

    *"The claim as the source says it, translated"* (004 §1.3)

    **Wrong.** What is true.

    **In short:** the truth, in a few words.

The word before the truth is the grade, and nothing else says it: pages, tables and counts take it from here. What the
grades mean stands at the head of each notebook. In each part of one, the entries stand in the order of their grades. In
Chinese the words are those of GRADES, then `**小结**：`, and the claim is the source's own sentence.

The cell called `matter` at the head of each notebook links to those of its entries that matter most.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from tools.chapters import CHAPTERS
from tools.compared import load, text
from tools.translated import blocks_of

MOST_WORDS = 8  # of a claim or a truth in short
GRADES = {  # from the worst, with the word that an entry in either language has for it
    "wrong": {"en": "Wrong", "zh": "说错了"},
    "misleading": {"en": "Misleading", "zh": "会误导"},
    "small": {"en": "Small", "zh": "小问题"},
}
MATTER = "matter"  # the cell with the links to what matters most


def _words(language: str) -> str:
    return "|".join(words[language] for words in GRADES.values())


_BEGIN = r"### (?P<number>E\d{2,3}[a-z]?) · (?P<claim>[^\n]+)\n\n"
_ENTRY = {
    "en": re.compile(
        _BEGIN + r'(?P<quotes>\*"[^\n]+)\n\n'
        rf"\*\*(?P<grade>{_words('en')})\.\*\* (?P<truth>.+?)\n\n"
        r"\*\*In short:\*\* (?P<short>[^\n]+)",
        re.DOTALL,
    ),
    "zh": re.compile(
        _BEGIN + r"(?P<quotes>[^\n]*“[^\n]+)\n\n"
        rf"\*\*(?P<grade>{_words('zh')})\*\*。(?P<truth>.+?)\n\n"
        r"\*\*小结\*\*：(?P<short>[^\n]+)",
        re.DOTALL,
    ),
}
_PLACE = {
    "en": re.compile(r"\(((?:[^()]|\([^()]*\))*)\)$"),
    "zh": re.compile("（((?:[^（）]|（[^（）]*）)*)）$"),
}


@dataclass(frozen=True)
class Correction:
    """One entry: where it is, what the source claims there, how bad that is, and what is true."""

    number: str
    claim: str
    place: str  # documents and sections, as in "004 §1.3"
    grade: str  # a key of GRADES
    truth: str
    short: str
    path: Path
    part: str  # the heading of its part of the notebook
    settled: tuple[str, ...]  # ids of the code cells

    @property
    def is_of_the_notes(self) -> bool:
        """Whether the notes claim it, and not MiniMind's own code."""
        return re.match(r"00\d\b", self.place) is not None


def notebooks() -> list[Path]:
    """The notebooks that hold corrections, one for each part of the book."""
    return sorted(CHAPTERS.glob("C[0-9]_*.ipynb"))


def corrections(language: str = "en") -> list[Correction]:
    """All entries in their order; raises a ValueError for one that has another form."""
    return [entry for path in notebooks() for entry in _of(path, language)]


def that_matter() -> list[str]:
    """The numbers of the entries that matter most, in their order."""
    heads = [text(cell) for path in notebooks() for cell in load(path)["cells"] if cell["id"] == MATTER]
    return [number.upper() for head in heads for number in re.findall(r"^- \[\w+\]\(#(e\d+)\)", head, re.MULTILINE)]


def _of(path: Path, language: str) -> list[Correction]:
    found: list[Correction] = []
    blocks = blocks_of(path) if language == "zh" else {}
    part = ""
    for cell in load(path)["cells"]:
        words = blocks[cell["id"]].text if cell["id"] in blocks else text(cell)
        if cell["cell_type"] == "code":
            if part and found and found[-1].part == part:
                found[-1] = replace(found[-1], settled=(*found[-1].settled, cell["id"]))
        elif words.startswith("## "):
            part = words.partition("\n")[0].removeprefix("## ")
        elif words.startswith("### "):
            entry = _ENTRY[language].fullmatch(words.strip())
            place = _PLACE[language].search(entry["quotes"]) if entry else None
            if entry is None or place is None:
                raise ValueError(f"{path.name}, cell {cell['id']}: not of the form that tools.corrections describes")
            [grade] = [grade for grade, named in GRADES.items() if named[language] == entry["grade"]]
            short = entry["short"]
            found.append(
                Correction(entry["number"], entry["claim"], place[1], grade, entry["truth"], short, path, part, ())
            )
    return found
