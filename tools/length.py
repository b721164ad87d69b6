"""How long the chapters are for someone who reads them: `python -m tools.length [02 03]`.

What a first reader meets counts. Sections under "Going deeper" do not, nor what is folded: answers, solutions, the cell
that installs. Of a lesson, whose proofs have a deeper page, the quiz and what lives where do not count, either.
"""

import argparse
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from tools.chapters import CHAPTERS, deeper_of
from tools.compared import load, tags, text

GOING_DEEPER, LIVES = "Going deeper", "Where this lives in MiniMind"
MOST_WORDS, MOST_CELLS = 3000, 35  # what the house writes
OF_A_LESSON = 1600, 16
AIR = 1.05  # times as much is forbidden: whoever mends a full chapter need not cut another sentence


class Full(UserWarning):
    """More than the house writes, and not yet more than the tests allow."""


def check_length(name: str, amount: int, most: int, of: str) -> None:
    """Warn of more than `most`, and refuse 5 % more.

    Raises:
        ValueError: if there is so much; it says what to cut.
    """
    if amount > AIR * most:
        raise ValueError(f"{name} has {amount:,} {of}, and more than {AIR * most:,.0f} are forbidden: cut or split it")
    if amount > most:
        warnings.warn(f"{name} has {amount:,} {of}, more than the {most:,} that the house writes", Full, stacklevel=2)


def main_path(notebook: dict) -> Iterator[dict | str]:
    """What a first reader meets, in order: code cells, and prose line by line."""
    deeper = False
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            if not deeper and "hide-cell" not in tags(cell):
                yield cell
            continue
        prose = re.sub(r"<details>.*?</details>|<[^>]*>|\]\([^)]*\)", " ", text(cell), flags=re.DOTALL)
        for line in prose.splitlines():
            if line.startswith("## "):
                deeper = line.removeprefix("## ").strip() == GOING_DEEPER
            if not deeper:
                yield line


def of_a_lesson(notebook: dict) -> dict:
    """A lesson without its quiz and without what lives where in MiniMind."""
    cells = [cell for cell in notebook["cells"] if "Quiz(" not in text(cell)]
    return {"cells": [cell for cell in cells if not text(cell).startswith(f"## {LIVES}")]}


def limits(path: Path) -> tuple[int, int]:
    """The most words and code cells for a chapter: fewer for a lesson, whose proofs have a page of their own."""
    return OF_A_LESSON if deeper_of(path) else (MOST_WORDS, MOST_CELLS)


def counted(path: Path) -> tuple[int, int]:
    """The words and code cells of a chapter that count for these limits."""
    notebook = load(path)
    return words_and_cells(of_a_lesson(notebook) if deeper_of(path) else notebook)


def words_and_cells(notebook: dict) -> tuple[int, int]:
    """The words and the code cells of the main path. A word has a letter or a digit."""
    met = list(main_path(notebook))
    words = [word for line in met if isinstance(line, str) for word in line.split() if any(map(str.isalnum, word))]
    return len(words), sum(isinstance(cell, dict) for cell in met)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chapters", nargs="*", metavar="02", help="how a chapter's name begins; default: all")
    wanted = tuple(parser.parse_args(arguments).chapters) or ("",)
    for path in sorted(CHAPTERS.glob("[0-9]*.ipynb")):
        if path.name.startswith(wanted):
            (words, cells), (most_words, most_cells) = counted(path), limits(path)
            print(f"{path.stem}: {words} of {most_words} words, {cells} of {most_cells} code cells", end="")
            full = words > most_words or cells > most_cells
            print(f" (full; the tests forbid {AIR - 1:.0%} more)" if full else "")


if __name__ == "__main__":
    main()
