"""The page about MiniMind's scripts: what it calls opened up is in a chapter, what it calls left out is in none."""

import json
import re
from pathlib import Path

import pytest

from tools.chapters import ROOT, notebooks

PAGE = (ROOT / "book" / "road.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`.+?`) \| (?:.+?) \| \*\*(.+?)\*\*(.*) \|$", PAGE, re.MULTILINE)
SAID = {
    path.name: "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"])
    for path in notebooks()
}


def scripts(cell: str) -> list[str]:
    return [Path(name).name for name in re.findall(r"`([\w/]+\.py)`", cell)]


def test_every_script_has_a_verdict_and_each_stands_once():
    named = [name for cell, _, _ in ROWS for name in scripts(cell)]
    assert len(named) == len(set(named)) == len(re.findall(r"`[\w/]+\.py`", PAGE.partition("|---")[2]))
    assert {verdict for _, verdict, _ in ROWS} == {"Whole", "In part", "Not here"}


@pytest.mark.parametrize(("cell", "verdict", "where"), ROWS, ids=[scripts(row[0])[0] for row in ROWS])
def test_a_chapter_names_what_is_opened_up_and_none_what_is_left_out(cell, verdict, where):
    linked = re.findall(r"\((?:\.\./chapters/)(\w+\.ipynb)", where)
    for name in scripts(cell):
        if verdict == "Not here":
            assert [file for file, text in SAID.items() if re.search(rf"\b{name}", text)] == []
        elif verdict == "Whole":
            assert [file for file in linked if re.search(rf"\b{name}", SAID[file])], f"no chapter there names {name}"


def test_the_model_is_opened_up_in_every_chapter_that_names_it():
    """Chapters 1 and 14 look at the whole of it: what it is, and what its steps cost."""
    [(_, _, where)] = [row for row in ROWS if "model_minimind" in row[0]]
    linked = set(re.findall(r"chapters/(\w+\.ipynb)", where))
    naming = {file for file, text in SAID.items() if "model_minimind.py" in text and re.match(r"\d", file)}
    assert naming - linked == {"01_whole_model.ipynb", "14_speed.ipynb"}
