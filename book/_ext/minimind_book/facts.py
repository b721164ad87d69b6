"""Numbers about the book itself, counted when it is built: {book}`compared-cells`."""

from collections.abc import Callable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from tools.chapters import CHAPTERS
from tools.compared import all_code_cells, is_compared
from tools.corrections import corrections

FACTS: dict[str, Callable[[], int]] = {
    "compared-cells": lambda: sum(map(is_compared, all_code_cells())),
    "code-cells": lambda: len(all_code_cells()),
    "wrong-claims": lambda: sum(entry.verdict == "wrong" for entry in corrections()),
    "limited-claims": lambda: sum(entry.verdict == "limited" for entry in corrections()),
    "chapters": lambda: len(list(CHAPTERS.glob("[0-9]*.ipynb"))),
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
