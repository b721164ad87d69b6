"""CONTRIBUTING.md walked through: a new figure and a new chapter need the places that it names, and no others."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import book_builder
import newcomer
import pytest

from tools import length
from tools.chapters import ROOT, chapters

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "_build", "__pycache__", "*.egg-info", ".hypothesis")
# The files whose tests hold every figure or chapter, and which of their tests hold the new ones.
HOLD = "figure_square checks_squares checks_exercise chapters figures_base figures_format figures_words".split()
HOLD += ["figures_in_the_browser", "every_figure", "figure_minimind_live"]
NEW = "square or check_area or every_chapter or every_folder or formatted"


def places(section: str) -> list[str]:
    """The files and folders that a section of the guide lists, one for each step that begins with one."""
    text = GUIDE.split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"^\d\. `([^`]+)`", text, re.MULTILINE)


def test_few_places_have_to_be_written_by_hand():
    assert 1 <= len(places("To make a figure")) <= 4
    assert 1 <= len(places("To add a chapter")) <= 5


MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMMANDS = [command for command in re.findall(r"`([^`\n]+)`", GUIDE) if re.match(r"(make|pytest|python) ", command)]


def wrong_in(command: str) -> list[str]:
    """What a command of the guide names that is not there: a target, a module, a file, an option."""
    wrong, words = [], command.split()
    if words[0] == "make":
        wrong += [word for word in words[1:2] if not re.search(rf"^{word}:", MAKEFILE, re.MULTILINE)]
    if words[:2] == ["python", "-m"]:
        wrong += [words[2]] if importlib.util.find_spec(words[2]) is None else []
    sources = [Path(importlib.util.find_spec(words[2]).origin)] if words[:2] == ["python", "-m"] and not wrong else []
    sources += [ROOT / "conftest.py", ROOT / "tests" / "conftest.py", ROOT / "tests" / "mutants" / "__main__.py"]
    known = "".join(path.read_text(encoding="utf-8") for path in sources) + "--nbval"
    wrong += [word for word in words if word.startswith("--") and word not in known]
    named = [word for word in words if word.startswith(("tests/", "chapters/")) and "_name" not in word]
    return wrong + [word for word in named if not list(ROOT.glob(word.rstrip("/")))]


@pytest.mark.parametrize("command", dict.fromkeys(COMMANDS))
def test_what_a_command_of_the_guide_names_exists(command):
    assert wrong_in(command) == []


@pytest.mark.parametrize(
    "command, missing",
    [
        ("make moon", "moon"),
        ("python -m tools.moon 05", "tools.moon"),
        ("python -m tools.translation --admit", "--admit"),
        ("pytest --moon tests/model/test_rope.py", "--moon"),
        ("pytest tests/test_moon.py", "tests/test_moon.py"),
        ("python tests/mutants --moon", "--moon"),
    ],
)
def test_a_command_that_names_what_is_not_there_is_found(command, missing):
    assert wrong_in(command) == [missing]


def test_the_guide_is_short_and_names_what_a_contributor_runs():
    assert len(GUIDE.splitlines()) <= 120
    assert len(COMMANDS) > 20
    assert {"make book", "make test", "make check", "make everything", "make lint", "make format"} <= set(COMMANDS)
    for limit in (length.MOST_WORDS, length.MOST_CELLS):
        assert str(limit) in GUIDE


def test_the_pull_request_asks_four_things():
    template = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")
    asked = re.findall(r"^- \[ \] (.+)", template, re.MULTILINE)
    assert len(asked) == 4 and all(wrong_in(one) == [] for line in asked for one in re.findall(r"`([^`]+)`", line))
    assert "make lint" in asked[0] and "tools.translation" in asked[1] and "tools.check" in asked[2]


def files(project: Path) -> dict[str, bytes]:
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in project.rglob("*") if path.is_file()}


def changed(project: Path, before: dict[str, bytes]) -> set[str]:
    return {name for name, content in files(project).items() if before.get(name) != content}


def is_at(name: str, place: str) -> bool:
    """Whether a file is at a place such as chapters/NN_name.ipynb or in a folder such as src/minimind_edu/checks/."""
    pattern = re.sub("NN|MM|name|before", r"\\w+", re.escape(place))
    return re.match(pattern if place.endswith("/") else f"{pattern}$", name) is not None


def run(project: Path, *command: str) -> None:
    book_builder.run_in(project, sys.executable, *command)


@pytest.mark.long
def test_a_figure_and_a_chapter_made_as_it_says_build_and_pass(browser, tmp_path):
    project = tmp_path / "book"
    shutil.copytree(ROOT, project, ignore=LEFT_OUT, symlinks=True)
    before = files(project)
    newcomer.write_a_figure(project)
    made = changed(project, before)
    name = newcomer.write_a_chapter(project, list(chapters())[-1])
    written = changed(project, before) - made
    for section, by_hand in (("To make a figure", made), ("To add a chapter", written)):
        assert [one for one in by_hand if not any(is_at(one, place) for place in places(section))] == []
        assert [place for place in places(section) if not any(is_at(one, place) for one in made | written)] == []
    assert len(written) == len(places("To add a chapter"))

    run(project, "-m", "ruff", "check", *sorted(one for one in made | written if one.endswith((".py", ".ipynb"))))
    run(project, "-m", "tools.refresh", name)
    run(project, "-m", "tools.stills", "--missing")
    run(
        project,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        *(str(path.relative_to(project)) for held in HOLD for path in project.glob(f"tests/*/test_{held}.py")),
        "-k",
        NEW,
    )
    html = book_builder.build(project, tmp_path / "built")
    page = (html / "chapters" / f"{name}.html").read_text(encoding="utf-8")
    assert page.count('data-figure="square"') == 2 and 'data-figure="quiz"' in page
    assert ".square-area{" in page and (html / "_static" / "figures" / "square.js").is_file()
    assert page.count("mm-still") >= 2 and "#map/model" in page and '<span data-sym="n"><math' in page
    assert f"{name}.html" in (html / f"{list(chapters())[-1]}.html").read_text(encoding="utf-8")
    assert (html / "notebooks" / f"{name}.ipynb").is_file()
