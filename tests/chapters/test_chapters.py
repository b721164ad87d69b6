"""The chapter check: every chapter was executed, is compared, reads well anywhere, and stands on no one machine."""

import re
import unicodedata
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docutils.nodes import make_id
from minimind_book import symbols
from nbval.plugin import comment_markers

from minimind_edu import figures
from minimind_edu.figures.minimind_live import LINKED
from minimind_edu.figures.model_map import PARTS
from minimind_edu.measure import plotting
from tools import install_cell, length
from tools.chapters import (
    CHAPTERS,
    ROOT,
    chapter_of,
    chapters,
    contents,
    deeper_of,
    lesson_of,
    links,
    notebooks,
    numbered,
)
from tools.compared import all_code_cells, code_cells, commanding_comments, is_compared, load, tags, text
from tools.places import plain
from tools.refresh import IGNORED, WIDGET_VIEW, canonical, dumps, machine_words, read

PATHS = notebooks()  # chapters, corrections of the notes, deeper pages
LESSONS = sorted(CHAPTERS.glob("[0-9]*.ipynb"))  # those with a deeper page, and chapters that have all on one
DEEPER = [path for path in PATHS if path.name.startswith("D")]
TEXTS = [*sorted((CHAPTERS.parent / "book").glob("**/*.md")), CHAPTERS.parent / "README.md"]
HIDDEN_TAGS = {"hide-input", "hide-cell", "hide-output"}
KEPT = "keep"  # stays open on the page of someone who reads
KNOWN_TAGS = HIDDEN_TAGS | {IGNORED, KEPT}
COMPARED_SHARE = 0.97
MOST_VERDICTS = 4  # lines of a main path
LONGEST_CELL = 30  # lines
WIDEST_LINE = 80  # columns of what a cell prints, of which a letter of Chinese takes two: no evidence is cut off
SECTIONS = [
    "Going deeper",
    "Common mistakes",
    "Exercises",
    "Quiz",
    "In short",
    "Where this lives in MiniMind",
    "Next",
]  # after the numbered ones
OF_A_LESSON = ["Exercises", "Quiz", "In short", "Where this lives in MiniMind", "Next"]
MOST_NUMBERED = 6  # sections of a lesson
MOST_MISTAKES = 6  # on a deeper page

# MyST's own syntax: only the book would understand it.
MYST = re.compile(r"^(?:```|:::+)\{|\{[a-z][\w:-]*\}`|^\([\w-]+\)=$|^%|^\+\+\+", re.MULTILINE)
TAG = re.compile(r"</?(?!details>|summary>)[a-zA-Z][^>\n]*>")
IMAGE = re.compile(r"!\[([^\]]*)\]\(|<img\b([^>]*)>")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def outside_code(markdown: str) -> str:
    """The text without fenced blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```\w*$.*?^```$", "", markdown, flags=re.DOTALL | re.MULTILINE))


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


@pytest.fixture
def notebook(path) -> dict:
    return load(path)


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson_path(request) -> Path:
    return request.param


@pytest.fixture
def lesson(lesson_path) -> dict:
    return load(lesson_path)


def test_there_are_chapters():
    assert LESSONS and len(PATHS) > len(LESSONS)


def test_every_code_cell_was_executed_in_order_and_without_an_error(notebook):
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert text(cell).strip(), f"cell {cell['id']} is empty"
        kinds = [output["output_type"] for output in cell["outputs"]]
        assert "error" not in kinds, f"cell {cell['id']} stores an error"
        loud = [output for output in cell["outputs"] if output.get("name") == "stderr"]
        assert not loud or IGNORED in tags(cell), f"cell {cell['id']} writes to stderr"


def test_no_widget_state_and_no_view_is_stored(notebook):
    assert "widgets" not in notebook["metadata"]
    for cell in code_cells(notebook):
        for output in cell["outputs"]:
            assert WIDGET_VIEW not in output.get("data", {}), f"cell {cell['id']} stores a widget view"


def test_nothing_names_a_machine(path):
    for cell in read(path).cells:
        if cell.cell_type == "code":
            assert not machine_words(cell), f"cell {cell.id}"


def test_stored_as_refresh_stores_it(path):
    assert dumps(canonical(read(path))) == path.read_text(encoding="utf-8"), (
        f"{path.name} was not written by `make refresh`"
    )


def shown_lines(cell: dict) -> list[str]:
    """The lines of text that a cell shows: no tables, and not the names of pictures and figures."""
    shown = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        lines = data.get("text/plain", "") if data.keys() == {"text/plain"} else output.get("text", "")
        shown += "".join(lines).splitlines()
    return shown


def columns(line: str) -> int:
    """How many columns a line takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def test_no_line_that_a_cell_prints_is_wider_than_the_page(notebook):
    lines = [line for cell in code_cells(notebook) for line in shown_lines(cell)]
    assert [line for line in lines if columns(line) > WIDEST_LINE] == []


def test_markdown_is_plain(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            found = MYST.search(outside_code(text(cell))) or re.search(r"^```\{", text(cell), re.MULTILINE)
            assert not found, f"cell {cell['id']} uses {found[0]!r}, which only the book understands"


def test_a_text_writes_no_tag_but_what_folds():
    """A `<s>` that is no code would strike out all that follows it, on the Chinese page, too."""
    texts = {path: [text(cell) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"] for path in PATHS}
    chinese = sorted((ROOT / "zh" / "chapters").rglob("*.md"))
    texts |= {path: [re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"))] for path in chinese}
    for path, parts in texts.items():
        for part in parts:
            tag = TAG.search(outside_code(part))
            assert not tag, f"{path.name} has {tag[0]!r}, which a page takes for HTML: write it as code"


def test_links_between_pages_lead_to_files(path, notebook):
    for cell in notebook["cells"]:
        for target in LINK.findall(outside_code(text(cell)) if cell["cell_type"] == "markdown" else ""):
            if not target.startswith(("http://", "https://", "figure:", "#")):
                assert (path.parent / target.split("#")[0]).is_file(), f"cell {cell['id']} links to {target}"


def test_a_picture_is_svg_with_a_sentence_inside(notebook):
    """A photograph is soft on a phone, and its name is all that a reader who does not see it would hear."""
    for cell in code_cells(notebook):
        for data in (output.get("data", {}) for output in cell["outputs"]):
            kinds = {kind for kind in data if kind.startswith("image/")}
            assert kinds <= {"image/svg+xml"}, f"cell {cell['id']} stores {kinds}"
            if kinds:
                root = ElementTree.fromstring("".join(data["image/svg+xml"]))
                titles = [child.text for child in root if child.tag.endswith("title")]
                assert len(titles) == 1 and len(titles[0]) >= plotting.SHORTEST_ALT, f"cell {cell['id']}"
                assert "".join(data["text/plain"]) == f"Picture: {titles[0]}", f"cell {cell['id']}"


def test_no_two_pictures_have_the_same_description():
    """It names the picture, and the ids inside are made from it."""
    titles = re.findall(r"Picture: [^\n]*", "\n".join(path.read_text(encoding="utf-8") for path in PATHS))
    assert titles and len(titles) == len(set(titles))


@pytest.mark.parametrize("path", [*PATHS, *TEXTS], ids=lambda path: path.name)
def test_an_image_in_a_text_has_a_sentence(path):
    if path.suffix == ".md":
        texts = [path.read_text(encoding="utf-8")]
    else:
        texts = [text(cell) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"]
    for found in (found for words in texts for found in IMAGE.finditer(outside_code(words))):
        alt = found[1] or "".join(re.findall(r'\balt="([^"]*)"', found[2] or ""))
        assert len(alt) >= plotting.SHORTEST_ALT, f"{found[0]} says too little"


def test_code_can_be_compared_everywhere(notebook):
    for cell in code_cells(notebook):
        lines = text(cell).splitlines()
        assert not lines[-1].rstrip().endswith(";"), f"cell {cell['id']} ends with a semicolon"
        magics = [line for line in lines if re.match(r"\s*[!%]", line)]
        assert not magics or cell["id"] == install_cell.CELL_ID, f"cell {cell['id']} uses a shell or a magic"
        assert "clear_output" not in text(cell), f"cell {cell['id']} clears its output"
        assert not commanding_comments(cell), f"cell {cell['id']} commands nbval in a comment; use a tag, with a reason"
        assert tags(cell) <= KNOWN_TAGS, f"cell {cell['id']} has the tags {tags(cell) - KNOWN_TAGS}"
        if cell["id"] not in (install_cell.CELL_ID, "quiz"):  # a quiz is text for the most part
            assert len(lines) <= LONGEST_CELL, f"cell {cell['id']} is longer than {LONGEST_CELL} lines"


@pytest.mark.parametrize("comment", comment_markers)
def test_a_comment_that_commands_nbval_is_seen(comment):
    cell = {"source": [f"  # {comment}\n", "print(1)"], "metadata": {}, "outputs": [], "id": "cell"}
    assert commanding_comments(cell) and not is_compared(cell)
    with pytest.raises(AssertionError, match="cell commands nbval in a comment"):
        test_code_can_be_compared_everywhere({"cells": [cell | {"cell_type": "code"}]})


def test_an_ignored_cell_says_why_and_the_next_cell_checks_what_must_hold(notebook):
    cells = code_cells(notebook)
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if IGNORED in tags(cell):
            assert cell["metadata"].get("reason"), f"cell {cell['id']} is ignored without a reason"
            assert following and IGNORED not in tags(following), f"no compared cell follows {cell['id']}"


def test_more_than_97_percent_of_the_code_cells_are_compared(record_property):
    cells = all_code_cells()
    compared = sum(map(is_compared, cells))
    record_property("told", f"{compared} of {len(cells)} code cells are compared: {compared / len(cells):.1%}")
    assert compared / len(cells) > COMPARED_SHARE


def test_first_code_cell_installs_the_package(notebook):
    first = code_cells(notebook)[0]
    assert (first["id"], text(first)) == (install_cell.CELL_ID, install_cell.source())
    assert "hide-cell" in tags(first)
    assert first["outputs"] == []


def headings_of(notebook: dict) -> list[str]:
    cells = [text(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    return [line for words in cells for line in outside_code(words).splitlines() if re.match("#+ ", line)]


def test_shape_of_a_notebook(notebook):
    assert notebook["cells"][0]["cell_type"] == "markdown"
    assert text(notebook["cells"][0]).startswith("# ")
    assert sum(line.startswith("# ") for line in headings_of(notebook)) == 1


def sections_of(notebook: dict) -> list[str]:
    return [line.removeprefix("## ") for line in headings_of(notebook) if line.startswith("## ")]


def test_chapters_have_the_same_sections_in_the_same_order(lesson, lesson_path):
    last = OF_A_LESSON if deeper_of(lesson_path) else SECTIONS
    sections = sections_of(lesson)
    first = sections[: -len(last)]
    assert sections[-len(last) :] == last
    assert [name.split(".")[0] for name in first] == [str(number + 1) for number in range(len(first))]
    assert len(first) <= MOST_NUMBERED or last == SECTIONS
    opening = " ".join(text(cell) for cell in lesson["cells"][:4])
    assert "After this chapter you can" in opening and "You need" in opening and "**Predict.**" in opening


@pytest.mark.filterwarnings("default::tools.length.Full")
def test_a_chapter_can_be_finished_in_an_hour_and_a_lesson_in_forty_minutes(lesson_path):
    """What a first reader meets: `python -m tools.length` shows all chapters. A full one is only warned of."""
    counted, most = length.counted(lesson_path), length.limits(lesson_path)
    for amount, limit, of in zip(counted, most, ("words", "code cells"), strict=True):
        length.check_length("the chapter", amount, limit, of)


@pytest.mark.parametrize("path", list(filter(deeper_of, LESSONS)), ids=lambda path: path.stem)
def test_a_lesson_folds_the_exceptions_of_its_claims_once_and_says_where_they_are_proven(path):
    """The thread keeps the one telling second setting; all others stand in one box, with links to the deeper page."""
    written = "\n".join(text(cell) for cell in load(path)["cells"] if cell["cell_type"] == "markdown")
    [box] = re.findall(r"<summary>Where this holds, and where not</summary>(.*?)</details>", written, re.DOTALL)
    exceptions = re.findall(r"^- ", box, re.MULTILINE)
    assert 2 <= len(exceptions) <= 7 and len(re.findall(r"\]\(deeper/\w+\.ipynb#", box)) >= len(exceptions) // 2


def test_a_lesson_is_shorter_and_its_quiz_and_table_are_not_counted():
    first = [path for path in LESSONS if deeper_of(path)][:1]
    assert [length.limits(path) for path in first] == [length.OF_A_LESSON] * len(first)
    cells = [("markdown", "# A 1"), ("code", "quiz = Quiz(1)"), ("markdown", "## Where this lives in MiniMind\n\na b")]
    notebook = {"cells": [{"cell_type": kind, "source": [words], "metadata": {}} for kind, words in cells]}
    assert length.words_and_cells(length.of_a_lesson(notebook)) == (2, 0)


@pytest.fixture(params=DEEPER, ids=lambda path: path.stem)
def deeper_path(request) -> Path:
    return request.param


def test_a_deeper_page_belongs_to_a_lesson_and_each_leads_to_the_other(deeper_path):
    lesson = lesson_of(deeper_path)
    there, back = (" ".join(map(text, load(path)["cells"])) for path in (lesson, deeper_path))
    assert f"](deeper/{deeper_path.name}#" in there and f"](../{lesson.name})" in back


def test_a_deeper_page_begins_with_which_section_answers_what(deeper_path):
    """Its own cells compute what it shows, in sections with names: the lesson may number its own anew."""
    notebook = load(deeper_path)
    sections = sections_of(notebook)
    top = " ".join(text(cell) for cell in notebook["cells"][:4] if cell["cell_type"] == "markdown")
    named = {make_id(plain(section)) for section in sections} - {"common-mistakes", "exercises"}
    assert named <= set(re.findall(r"\]\(#([\w-]+)\)", top)), "the list at its head leads to every section"
    assert not [section for section in sections if section[0].isdigit()]
    assert length.GOING_DEEPER not in sections


def test_a_deeper_page_settles_at_most_six_mistakes(deeper_path):
    mistakes = [
        line
        for cell in load(deeper_path)["cells"]
        if cell["cell_type"] == "markdown" and "## Common mistakes" in text(cell)
        for line in re.findall("[*][*]In fact[.:,]", text(cell))
    ]
    assert len(mistakes) <= MOST_MISTAKES


def test_a_limit_warns_before_it_forbids():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        length.check_length("a", 3000, 3000, "words")
    for amount in (3001, 3150):
        with pytest.warns(length.Full, match=f"a has {amount:,} words, more than the 3,000"):
            length.check_length("a", amount, 3000, "words")
    with pytest.raises(ValueError, match="a has 3,151 words, and more than 3,150 are forbidden"):
        length.check_length("a", 3151, 3000, "words")


def test_what_lies_deeper_and_what_is_folded_is_not_counted():
    cells = [("markdown", "# A 1\n\ntwo [words](link.md)"), ("code", "x = 1"), ("markdown", "## Going deeper\n\nmore")]
    cells += [("code", "y = 1"), ("markdown", "## Quiz\n\n<details>no</details> yes"), ("code", "# @title Solution")]
    notebook = {"cells": [{"cell_type": kind, "source": [words], "metadata": {}} for kind, words in cells]}
    notebook["cells"][-1]["metadata"]["tags"] = ["hide-cell"]
    assert length.words_and_cells(notebook) == (6, 1)


def verdicts(notebook: dict) -> list[str]:
    """Lines of the main path that say True or False where a number could stand. An exercise's check may judge."""
    lines = []
    for cell in length.main_path(notebook):
        if isinstance(cell, dict) and not re.search(r"\bcheck_\w+\(", text(cell)):
            lines += shown_lines(cell)
    return [line for line in lines if re.search(r"\b(True|False)\b", line)]


def test_a_chapter_shows_numbers_and_certifies_little(lesson):
    """Printed numbers are compared as numbers, so that the reader can see what the test sees."""
    assert len(verdicts(lesson)) <= MOST_VERDICTS


def test_a_verdict_is_a_line_that_a_cell_of_the_main_path_prints():
    def cell(source, output):
        return {"cell_type": "code", "source": [source], "metadata": {}, "outputs": [output]}

    cells = [
        cell("print(a)", {"text": ["same: True\n", "apart: 0.3\n", "learned: False True, late\n"]}),
        cell("a == b", {"data": {"text/plain": ["True"]}}),
        cell("Figure()", {"data": {"text/plain": ["Figure(balanced=False)"], "text/html": ["<p>"]}}),
        cell("check_route(route)", {"text": ["ok a sum: True\n"]}),
        {"cell_type": "markdown", "source": ["## Going deeper"]},
        cell("print(a)", {"text": ["same: True"]}),
    ]
    assert verdicts({"cells": cells}) == ["same: True", "learned: False True, late", "True"]


def test_three_to_six_cells_stay_open_for_someone_who_reads(lesson):
    kept = [cell for cell in code_cells(lesson) if KEPT in tags(cell)]
    assert 3 <= len(kept) <= 6
    assert not [cell["id"] for cell in kept if tags(cell) & HIDDEN_TAGS]


def test_a_chapter_opens_with_a_prediction_whose_answer_is_one_of_its_guesses(lesson):
    """What the page turns into buttons is plain Markdown anywhere else: a quotation, a list, a folded answer."""
    [opening] = [text(cell) for cell in lesson["cells"][:4] if "**Predict.**" in text(cell)]
    quoted = "\n".join(line.removeprefix(">").strip() for line in opening.splitlines() if line.startswith(">"))
    guesses = re.findall(r"^- (.*)", quoted, re.MULTILINE)
    [right] = re.findall(r"<summary>Answer</summary>\n\n\*\*(.*?)\.?\*\*", quoted)
    assert len(guesses) >= 2 and guesses.count(right) == 1
    told = re.findall(r"^- \*([^*]+)\*: \S", quoted, re.MULTILINE)
    asked = [guess for guess in guesses if not guess.startswith("*")]
    assert len(asked) >= 2
    assert told == [guess for guess in asked if guess != right], "a sentence for each wrong guess"


def test_a_chapter_has_four_checked_exercises_with_folded_solutions_and_a_quiz(lesson, lesson_path):
    """Two of a lesson's are close to its text; the others stand on the deeper page."""
    deeper = deeper_of(lesson_path)
    cells = code_cells(lesson)
    both = cells + (code_cells(load(deeper)) if deeper else [])

    def solutions_in(cells: list[dict]) -> list[dict]:
        return [cell for cell in cells if "hide-cell" in tags(cell) and text(cell).startswith("# @title Solution")]

    solutions = solutions_in(both)
    assert len(solutions) >= 4 and len(solutions_in(cells)) >= 2
    for cell in solutions:
        assert re.search(r"^(?:checks\.)?check_\w+\(", text(cell), re.MULTILINE), f"cell {cell['id']} runs no check"
        printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
        assert "ok" in printed and "not yet" not in printed, f"the solution {cell['id']} does not pass its check"
    assert sum("Quiz(" in text(cell) for cell in cells) == 1


def test_every_chapter_is_in_the_table_of_contents_with_its_number():
    """Texts speak of chapter 6; the sidebar is where a reader looks for it."""
    listed = {Path(page).name: title for page, title in contents().items() if page.startswith("chapters/")}
    assert [page for page in listed if page[0].isdigit()] == [path.stem for path in LESSONS]
    assert sorted(listed) == sorted(path.stem for path in PATHS)
    assert {Path(page) for page in contents() if Path(page).name[0] == "D"} == {
        path.relative_to(ROOT).with_suffix("") for path in DEEPER
    }
    assert {lesson_of(path) for path in DEEPER} <= set(LESSONS)
    for path in PATHS:
        heading = text(load(path)["cells"][0]).splitlines()[0].removeprefix("# ")
        number = numbered(path.stem)
        assert all(title.startswith(f"{number} · ") for title in (heading, listed[path.stem] or heading))
        assert listed[path.stem] != heading, f"_toc.yml repeats the title of {path.name}: leave it out there"
    assert [chapter.number for chapter in chapters().values()] == [str(n + 1) for n in range(len(LESSONS))]


def test_every_chapter_says_what_the_book_needs_to_know_of_it():
    assert list(chapters()) == [f"chapters/{path.stem}" for path in LESSONS]
    taught = [topic for chapter in chapters().values() for topic in chapter.teaches]
    assert sorted(taught) == sorted(LINKED), "each part of the model is taught by one chapter"
    for chapter in chapters().values():
        assert issubclass(getattr(figures, chapter.opening[0]), figures.Figure) and chapter.opening[1]["compact"]
        assert chapter.place in PARTS and chapter.symbols <= symbols.NAMES
    assert links(("pair",)) == {"pair": {"href": "../chapters/04_rope_rotation.html", "label": "4 · RoPE: rotations"}}
    assert set(links(PARTS)) == set(PARTS)


@pytest.mark.parametrize("said", [{}, {"opening": ["Quiz", {}]}, {"opening": ["Quiz", {}], "plase": "norm"}])
def test_a_chapter_that_says_it_in_other_words_is_refused(said):
    stored = {"cells": [{"source": ["# One"]}], "metadata": {"minimind": said}}
    with pytest.raises(ValueError, match=r"one.ipynb: metadata.minimind does not fit \(.*(opening|teaches|plase)"):
        chapter_of("one", None, stored)
