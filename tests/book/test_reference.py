"""What the reference tables name is there: places, functions, classes, questions; and no item of the notes is lost."""

import importlib
import json
import re
from typing import Any

import pytest
from minimind_book import reference
from minimind_book.facts import FACTS

from tools.chapters import ROOT
from tools.compared import load, text
from tools.corrections import GRADES, MATTER, MOST_WORDS, corrections, notebooks, that_matter
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
    "January February March April May August November December LayerNorm DeepSeek-V3 Medusa SpecInfer Team The".split()
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
    errata = {f"E{number:02}" for number in range(1, 145)}
    assert len(set(NUMBERS)) == len(NUMBERS)
    # E23: a decorator, which is no error. E107: that the notes mix two sizes; E129: why not the id. Same sections
    told = {"E23": "E12", "E107": "E41", "E129": "E114"}
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


def cells_of_entries() -> list[str]:
    cells = [text(cell) for path in notebooks() for cell in load(path)["cells"]]
    return [cell for cell in cells if cell.startswith("### E")]


def test_every_entry_has_one_grade_and_the_counts_are_of_these():
    """Counted in the cells themselves; what is about MiniMind's own code is no claim of the notes."""
    said = [re.findall(r"\*\*(Wrong|Misleading|Small)\.\*\*", cell) for cell in cells_of_entries()]
    assert [len(words) for words in said] == [1] * len(ENTRIES)
    assert [word.lower() for [word] in said] == [entry.grade for entry in ENTRIES]
    assert [entry.number for entry in ENTRIES if not entry.is_of_the_notes] == ["E78", "E123"]
    of_code = [entry.grade for entry in ENTRIES if not entry.is_of_the_notes]
    for grade in GRADES:
        assert FACTS[f"{grade}-claims"]() == said.count([grade.capitalize()]) - of_code.count(grade)


def test_the_grades_follow_their_rule():
    """A claim whose truth says that it holds is at most misleading; a wrong digit of an example is small."""
    grades = {entry.number: entry.grade for entry in ENTRIES}
    assert {grades[number] for number in "E17 E20 E51 E104 E124 E131 E140".split()} == {"small"}
    assert {grades[number] for number in "E03 E35 E57 E82 E92 E108 E120 E125".split()} == {"misleading"}
    assert {grades[number] for number in "E24 E40 E66 E67 E81 E88 E113 E132".split()} == {"wrong"}


def test_in_each_part_the_wrong_ones_come_first():
    parts: dict[tuple, list[int]] = {}
    for entry in ENTRIES:
        parts.setdefault((entry.path, entry.part), []).append(list(GRADES).index(entry.grade))
    assert len(parts) == 12
    assert all(grades == sorted(grades) for grades in parts.values())


def test_all_heads_say_the_same_of_the_grades():
    heads = [text(load(path)["cells"][0]) for path in notebooks()]
    heads.append((ROOT / "book" / "reference" / "corrections.md").read_text(encoding="utf-8"))
    rules = {tuple(re.findall(r"^- (\*\*.+)|(Where two .+?\.)", head, re.MULTILINE)) for head in heads}
    assert len(rules) == 1 and len(*rules) == len(GRADES) + 1


def test_ten_matter_and_each_head_counts_its_own():
    entries = {entry.number: entry for entry in ENTRIES}
    assert len(that_matter()) == len(set(that_matter())) == 10
    assert {entries[number].grade for number in that_matter()} == {"wrong"}
    for path in notebooks():
        [head] = [text(cell) for cell in load(path)["cells"] if cell["id"] == MATTER]
        own = [number for number in that_matter() if entries[number].path == path]
        count = {1: "one", 4: "four", 5: "five"}[len(own)]
        assert (
            head.startswith(f"## The {count} that matter")
            and f"{count.capitalize()} {'is' if len(own) == 1 else 'are'} on" in head
        )
        assert all(f"- [{number}](#{number.lower()}): *" in head for number in own)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.number)
def test_an_entry_is_short_and_settled(entry):
    """By a cell that prints something, or by a source with its year."""
    assert len(entry.claim.split()) <= MOST_WORDS and len(entry.short.split()) <= MOST_WORDS
    assert entry.settled or re.search(r"\b(?:19|20)\d\d\b|`\w+", entry.truth)
