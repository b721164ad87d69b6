"""Numbers about the book itself, counted when it is built: {book}`compared-cells`."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from minimind_edu.trained import sharing
from tools.chapters import ROOT, chapters
from tools.compared import all_code_cells, is_compared
from tools.corrections import GRADES, corrections

PACKAGE = ROOT / "src" / "minimind_edu"
MUTANTS = ROOT / "tests" / "mutants" / "catalog.txt"


def seeds(stored: Any) -> int:
    """How many results with a seed something holds, as JSON."""
    if isinstance(stored, dict):
        return ("seed" in stored) + seeds(list(stored.values()))
    return sum(map(seeds, stored)) if isinstance(stored, list) else 0


def trainings() -> int:
    """Trainings whose results the package stores: each has its seed, and in `sharing` its place in a list."""
    files = (json.loads(path.read_text(encoding="utf-8")) for path in PACKAGE.glob("trained/*/*.json"))
    shared = (accuracies for steps in sharing.STEPS for accuracies in sharing.runs(steps).values())
    return sum(map(seeds, files)) + sum(map(len, shared))


def claims(grade: str) -> int:
    """How many claims of the notes have a grade."""
    return sum(entry.grade == grade and entry.is_of_the_notes for entry in corrections())


FACTS: dict[str, Callable[[], int]] = {
    "compared-cells": lambda: sum(map(is_compared, all_code_cells())),
    "code-cells": lambda: len(all_code_cells()),
    **{f"{grade}-claims": partial(claims, grade) for grade in GRADES},
    "trainings": trainings,
    "mutants": lambda: len(re.findall(r"^[^-+#\n].*\n(?=-)", MUTANTS.read_text(encoding="utf-8"), re.MULTILINE)),
    "chapters": lambda: len(chapters()),
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
