"""Headings of pages and notebooks: places that tables and links name."""

import re
from functools import cache

from tools.chapters import ROOT
from tools.compared import load, text


@cache
def headings(file: str) -> tuple[str, ...]:
    """All headings of a page or a notebook, named from the project's root; raises a FileNotFoundError without one."""
    path = ROOT / file
    if path.suffix == ".ipynb":
        source = "\n".join(text(cell) for cell in load(path)["cells"] if cell["cell_type"] == "markdown")
    else:
        source = path.read_text(encoding="utf-8")
    source = re.sub(r"^```.*?^```", "", source, flags=re.DOTALL | re.MULTILINE)
    return tuple(found.strip() for found in re.findall(r"^#+ (.+)$", source, re.MULTILINE))


def plain(heading: str) -> str:
    """A heading without Markdown's marks."""
    return re.sub(r"[`*$]", "", heading)
