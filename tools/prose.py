"""Turns of phrase that read translated, each with what to write: `python -m tools.prose`.

A regular expression finds only what is always wrong; whether a sentence is good, a reader judges.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from tools.chapters import ROOT, that_teach
from tools.compared import load, text

_COUNT = r"(?:one|two|three|four|six|eight|a|\d[\d,.]*)"
_THING = r"(?:bytes?|floats?|numbers?|vectors?|rows?|radians?|turns?|angles?|steps?|entries|entry|multiply-adds?)"
_UNIT = r"(?:position|token|layer|head|row|step|byte|block|weight|word|channel|pair|number)"

ADVICE = {
    r"\bthe way back\b": "the backward pass",
    r"\bthe notes(?: say| claim| call| write)\b": "a common mistake, or a correction in C1 to C3",
    rf"\b{_COUNT} {_THING} an? {_UNIT}\b": "per: one row per position",
    r"\b(?:Xavier|Kaiming|He|Glorot|Linear|model|upstream|MiniMind|Llama)'s start\b": "initialization",
    r"\b(?:a|the|this) start that\b": "an initialization that",
    r"\bbehind (?:the|each|every|a) (?:block|norm|attention|softmax|layer|branch|sublayer)s?\b": "after",
    r"\bdearer\b|\bas dear\b|\btoo dear\b|\bis dear\b": "expensive",
    r"\b(?:is|are) (?:another|others|other) than\b": "differs from",
    r"\bare others\b": "differ, change",
    r"\bas (?:large|many|much|long|wide) again\b": "say the factor: twice, 1.5 times",
    r"\b(?:get|gets|got) round\b": "completes a turn",
    r"\broot of (?:D|d|E|n)\b": "√D",
    r"\bfor ever\b": "forever",
    r"\b[Tt]he (?:more|less|\w+er)(?: [\w' ]+)?, the (?:more|less|\w+er)\b": "say it plainly: it grows with …",
    r"\bmust not be missed\b": "say what happens if it is missing",
    r"\b(?:can|may|must|could) be (?:spared|done without)\b": "is not needed",
    r"\bstands? (?:behind|in front of|beside|at the head of)\b": "is, comes after, comes before",
    r"\bnone (?:in|of) \d": "turn the list around: what has none, then how many",
    r"\d%": "a space before the sign: 11 %",
    r"(?<=[\s(\[])-(?=\d)": "a minus sign: −1",
    r"\b(?:Simple|Cheap|Easy|Small|Fast|True|Exact) (?:it|they|that) (?:is|are)\b": "the subject first",
}
_FOUND = {re.compile(pattern): advice for pattern, advice in ADVICE.items()}

# code, formulas, targets of links and quotations in italics: other people's words
_OTHER = re.compile(r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|\]\([^)]*\)|<[^>]*>|\*\"[^*]*\"\*", re.DOTALL)


def faults(prose: str) -> Iterator[tuple[str, str]]:
    """The phrases in a Markdown text that should not be there, with some words around them, and what to write."""
    prose = _OTHER.sub(lambda other: " " if "\n" not in other[0] else "\n", prose)
    for pattern, advice in _FOUND.items():
        for found in pattern.finditer(prose):
            around = prose[max(0, found.start() - 30) : found.end() + 30]
            yield " ".join(around.split()), advice


def texts() -> Iterator[tuple[str, str]]:
    """All Markdown that readers see: where it is, and what it says. The corrections quote what they correct."""
    for path in that_teach():
        for cell in load(path)["cells"]:
            if cell["cell_type"] == "markdown":
                yield f"{path.name}, cell {cell['id']}", text(cell)
    pages = [path for path in sorted((ROOT / "book").rglob("*.md")) if "_ext" not in path.parts]
    for path in [ROOT / "README.md", *pages]:
        yield str(path.relative_to(ROOT)), Path(path).read_text(encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    for where, prose in texts():
        for phrase, advice in faults(prose):
            print(f"{where}: … {phrase} … ({advice})")


if __name__ == "__main__":
    main()
