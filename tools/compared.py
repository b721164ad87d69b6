"""Which cells of the chapters `pytest --nbval` compares with what is stored."""

import json
from pathlib import Path

from nbval.plugin import find_comment_markers

from tools.chapters import notebooks
from tools.refresh import IGNORED


def load(path: Path) -> dict:
    """A notebook as it is stored."""
    return json.loads(path.read_text(encoding="utf-8"))


def text(cell: dict) -> str:
    """The source of a cell."""
    return "".join(cell["source"])


def tags(cell: dict) -> set[str]:
    """The tags of a cell."""
    return set(cell["metadata"].get("tags", []))


def code_cells(notebook: dict) -> list[dict]:
    """The cells that run."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def code_differs(before: str | None, after: str) -> bool:
    """Whether two texts of a notebook differ in a cell that runs; None is a notebook that was not there."""
    if before is None:
        return True
    sources = [[text(cell) for cell in code_cells(json.loads(notebook))] for notebook in (before, after)]
    return sources[0] != sources[1]


def commanding_comments(cell: dict) -> list:
    """What comments in the code tell nbval, such as not to compare what the cell shows."""
    return list(find_comment_markers(text(cell)))


def is_compared(cell: dict) -> bool:
    """Whether nbval compares what the cell shows: it compares text and tables, and no pictures.

    A tag can tell it not to, and so can a comment in the code.
    """
    seen = [output for output in cell["outputs"] if output["output_type"] == "stream"]
    for output in cell["outputs"]:
        seen += [kind for kind in output.get("data", {}) if not kind.startswith("image/")]
    commands = tags(cell) & {IGNORED, "nbval-skip"} or commanding_comments(cell)
    return not commands and (bool(seen) or not cell["outputs"])


def all_code_cells() -> list[dict]:
    """The code cells of all notebooks."""
    return [cell for path in notebooks() for cell in code_cells(load(path))]
