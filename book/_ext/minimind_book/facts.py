"""Numbers about the book itself, counted when it is built: {book}`compared-cells`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from tools.compared import all_code_cells, is_compared, load, text
from tools.refresh import CHAPTERS


def claims_settled() -> int:
    """Claims of the sources that the chapters quote, each followed by the cell that decides it."""
    cells = [cell for path in CHAPTERS.glob("*.ipynb") for cell in load(path)["cells"]]
    return sum(
        len(re.findall(r"^> \*\*The notes say", text(cell), re.MULTILINE))
        for cell in cells
        if cell["cell_type"] == "markdown"
    )


FACTS: dict[str, Callable[[], int]] = {
    "compared-cells": lambda: sum(map(is_compared, all_code_cells())),
    "code-cells": lambda: len(all_code_cells()),
    "claims-settled": claims_settled,
    "chapters": lambda: len(list(Path(CHAPTERS).glob("*.ipynb"))),
}


def fact(name: str, rawtext: str, word: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()) -> Any:
    """The role: a number, with commas."""
    if word not in FACTS:
        message = f"the book knows no number called {word}; there are {', '.join(FACTS)}"
        return [], [inliner.reporter.error(message, line=lineno)]
    return [nodes.Text(f"{FACTS[word]():,}")], []


def setup(app: Sphinx) -> None:
    """Register the role."""
    app.add_role("book", fact)
