"""What the reference tables name is there: places, functions, classes, questions; and no item of the notes is lost."""

import importlib
import json
import re
from typing import Any

import pytest
from minimind_book import reference
from minimind_book.facts import FACTS

from tools.chapters import ROOT
from tools.corrections import MOST_WORDS, corrections, notebooks
from tools.places import headings

TABLES = sorted(path.stem for path in reference.FOLDER.glob("*.tsv"))
ENTRIES = corrections()
NUMBERS = [entry.number for entry in ENTRIES]


def column(table: str, title: str) -> list[str]:
    titles, rows = reference.rows_of(table)
    return [row[titles.index(title)] for row in rows]


def found(name: str) -> Any:
    """What a dotted path leads to: `package.module.Class.method`."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_whole_and_what_it_names_is_where_it_says(table):
    titles, rows = reference.rows_of(table)
    assert rows and all(len(row) == len(titles) and all(cell.strip() for cell in row) for row in rows)
    assert len({tuple(row) for row in rows}) == len(rows)
    for where in column(table, reference.WHERE) if reference.WHERE in titles else ():
        file, heading, _ = reference.place(where)
        assert heading in headings(file), f"{file} has no heading {heading!r}"


def test_every_item_of_the_notes_has_its_place():
    assert column("inventory", "") == [f"I{number:03}" for number in range(1, 255)]


def test_every_question_of_the_notes_has_its_answer():
    assert column("questions", "") == [f"Q{number}" for number in range(1, 20)]
    assert all(len(answer.split()) <= 45 for answer in column("questions", "Answer"))


def test_every_formula_is_computed_by_a_function_a_class_or_a_property():
    for code in column("formulas", "Computed by"):
        computes = found(code.strip("`"))
        assert callable(computes) or isinstance(computes, property), code


@pytest.mark.parametrize(
    ("table", "title"), [("sources", "transformers"), ("sources", "This package"), ("names", "This package")]
)
def test_the_source_map_names_what_there_is(table, title):
    named = [name for cell in column(table, title) for name in re.findall(r"`([\w.]+)`", cell)]
    assert len(named) > 15
    for name in named:
        assert found(name) is not None


def test_an_idea_has_one_row_in_the_source_map():
    ideas = column("sources", "Idea")
    assert len(set(ideas)) == len(ideas)


def test_what_the_notes_teach_leads_to_a_chapter_unless_only_a_correction_has_it():
    """The 11 others are numbers of an example or lists of code that no chapter repeats."""
    only_corrected = [where for where in column("inventory", reference.WHERE) if where in NUMBERS]
    assert sorted(only_corrected) == sorted("E20 E20 E21 E124 E124 E13 E24 E08 E29 E75 E121".split())


def test_the_names_of_the_notes_lead_somewhere():
    listed = " ".join(column("names", "Name in the notes"))
    for name in (
        "apply_rope",
        "repeat_kv_simple",
        "SimpleFeedForward",
        "SwiGLU",
        "CustomRMSNorm",
        "SimpleTransformerLayer",
    ):
        assert f"`{name}`" in listed


CITED = re.compile(r"\b([A-Z][a-z][\w’'-]*(?:(?:, (?:and )?| and )[A-Z][\w’'-]+)*)(?: et al\.)?,? \(?((?:19|20)\d\d)\b")
NO_PEOPLE = set(
    "January March April May August November December LayerNorm DeepSeek-V3 Medusa SpecInfer Team The".split()
)


def without_row(text: str) -> set[str]:
    """The papers that a text names by people and year, and for which the table of papers has no row."""
    rows = [re.match(r"(.+?) \((\d{4})\)", paper).groups() for paper in column("papers", "Paper")]
    known = {(re.split(",? |, ", people)[0], year) for people, year in rows}
    named = [(re.split(", | and ", people)[0], year) for people, year in CITED.findall(text)]
    return {" ".join(one) for one in named if one not in known and one[0] not in NO_PEOPLE}


def test_every_paper_that_the_book_names_has_a_row():
    pages = [path for path in (ROOT / "book").rglob("*") if path.suffix in (".md", ".tsv") and path.stem != "papers"]
    for path in pages:
        assert without_row(path.read_text(encoding="utf-8")) == set(), path
    for path in (ROOT / "chapters").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        assert without_row(text) == set(), path


def test_a_paper_without_a_row_is_found():
    assert without_row("so it is (Kornell, Hays and Bjork 2009; Nobody et al. 2021), since May 2026") == {"Nobody 2021"}


def test_a_wrong_name_is_not_found():
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        found("minimind_edu.model.attention.Atention")
    with pytest.raises(FileNotFoundError):
        headings("chapters/99_nothing.ipynb")


def test_every_erratum_has_one_entry():
    errata = {f"E{number:02}" for number in range(1, 141)}
    assert len(set(NUMBERS)) == len(NUMBERS)
    told = {"E107": "E41", "E129": "E114"}  # E107: that the notes mix two sizes; E129: why not the id. Same sections
    assert errata - set(NUMBERS) == set(told) and set(told.values()) <= set(NUMBERS)


def test_no_sentence_of_the_notes_has_two_corrections():
    """A phrase of seven words; E105, E105a and E105b are about three lines of one listing."""
    quoted: dict[tuple[str, ...], set[str]] = {}
    for path in notebooks():
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if entry := re.match(r'### (E\w+) · .+\n\n(\*".+)', "".join(cell["source"])):
                words = re.findall(r"\w+", entry[2].partition('"* (')[0])
                for start in range(len(words) - 6):
                    quoted.setdefault(tuple(words[start : start + 7]), set()).add(entry[1].rstrip("abc"))
    assert len(quoted) > 500
    assert {frozenset(numbers) for numbers in quoted.values() if len(numbers) > 1} == set()


def test_what_holds_with_a_limit_is_not_counted_as_wrong():
    _, verdicts = reference.CORRECTIONS["en"]
    kinds = {kind: [entry.number for entry in ENTRIES if entry.verdict == kind] for kind in verdicts}
    assert kinds["code"] == ["E78", "E123"]
    assert {"E17", "E41", "E82", "E104", "E140"} <= set(kinds["limited"])  # whose truth says that the claim holds
    assert {"E40", "E67", "E113", "E132"} <= set(kinds["wrong"])
    assert [FACTS["wrong-claims"](), FACTS["limited-claims"]()] == [len(kinds["wrong"]), len(kinds["limited"])]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.number)
def test_an_entry_is_short_and_settled(entry):
    """By a cell that prints something, or by a source with its year."""
    assert len(entry.claim.split()) <= MOST_WORDS and len(entry.short.split()) <= MOST_WORDS
    assert entry.settled or re.search(r"\b(?:19|20)\d\d\b|`\w+", entry.truth)
