"""The map of the source notes: what each of their sections teaches, where this book does, and what is corrected there.

    ```{notes} 004
    ```

The sections of a document are in `reference/notes.tsv`, in their order and under the notes' own headings; what they
teach is in `reference/inventory.tsv`, whose column "In the notes" names every section that teaches it. Corrections
say in their quotes where a claim is made; both are read by `sections_in`.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

from minimind_book import chinese
from minimind_book.card import table
from minimind_book.reference import FOLDER, Table, address, called, corrections_by_number, jumps, rows_of, spelled
from tools.corrections import GRADES, notebooks

_PLACES = re.compile(
    r"\b(?P<document>00[0-4])\b"
    r"|\b(?P<note>RoPE|GQA|KV|RMS|mask|MoE)\b"
    r"|(?P<question>\bQ\d+|\bsummary\b)"
    r"|(?P<first>(?:(?<=§)|(?<=, ))\d(?![\d.])|(?<![\w.])\d\.\d{1,2}\b)(?:[-–](?P<last>\d\.\d+))?"
)
_NAMES = {"attention with a mask": "mask", "grouped-query attention": "GQA"}

# Titles of the columns, what stands for a heading, what is before corrections, between them, and around a grade.
WORDS = {
    "en": (["What the notes teach", "In this book"], "The document as a whole", "Corrected: ", "; ", " ({})"),
    "zh": (["笔记讲什么", "在本书里"], "整份文档", "勘误：", "；", "（{}）"),
}


def sections() -> dict[tuple[str, str], str]:
    """All sections of the notes in their order, by document and number, with their headings."""
    _, rows = rows_of("notes")
    return {(document, section): title for document, section, title in rows}


def sections_in(text: str) -> list[tuple[str, str]]:
    """The sections that a text names, as in "004 §1.3, Q4; 000 RMS §5.1, 7": documents and numbers.

    A document without a section is the document as a whole, with an empty number.
    """
    for name, short in _NAMES.items():
        text = text.replace(name, short)
    found: list[tuple[str, str]] = []
    document = note = ""
    for match in _PLACES.finditer(text):
        if match["document"]:
            document, note = match["document"], ""
            found.append((document, ""))
        elif match["note"]:
            note = match["note"]
            found.append((document, note if document == "003" else ""))
        elif match["question"]:
            found.append(("004", match["question"]))
        else:
            found += _from(document, note, match["first"], match["last"] or match["first"])
    exact = {place for place, section in found if section}
    return list(dict.fromkeys((place, section) for place, section in found if section or place not in exact))


def _from(document: str, note: str, first: str, last: str) -> Iterator[tuple[str, str]]:
    """All subsections from one to another of the same section."""
    chapter, _, begin = first.partition(".")
    numbers = [""] if not begin else range(int(begin), int(last.partition(".")[2]) + 1)
    for number in numbers:
        yield document, f"{note} §{chapter}{number and f'.{number}'}".strip()


def taught() -> dict[tuple[str, str], list[list[str]]]:
    """What each section teaches: rows of the inventory."""
    _, rows = rows_of("inventory")
    return _by_section((row, row[3]) for row in rows)


def corrected() -> dict[tuple[str, str], list[str]]:
    """The numbers of the corrections of each section, the wrong claims first."""
    worst_first = sorted(corrections_by_number().values(), key=lambda entry: list(GRADES).index(entry.grade))
    return _by_section((entry.number, entry.place) for entry in worst_first)


def _top(section: str, parts: dict[str, str]) -> str:
    """What the link to a section's chapter says: a part of a document by its name, a chapter by number and heading."""
    if section.startswith("Q"):
        return "Q1–Q19"
    if section == "summary":
        return parts[section]
    if section.startswith("§"):
        number = section.partition(".")[0]
        return f"{number} {parts[number]}"
    return section.partition(" ")[0]


def _by_section(named: Iterator[tuple]) -> dict:
    found: dict = {}
    for name, text in named:
        for place in sections_in(text):
            found.setdefault(place, []).append(name)
    return found


class NotesMap(Table):
    """`{notes} 004`: one document of the notes, section by section."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        document = self.arguments[0]
        for path in [FOLDER / "notes.tsv", FOLDER / "inventory.tsv", *notebooks()]:
            self.env.note_dependency(str(path))
        lessons, errors = taught(), corrected()
        titles, whole, before, *_ = WORDS["zh" if chinese.IS_CHINESE else "en"]
        written = table(titles, [])
        body = next(iter(written.findall(nodes.tbody)))
        tops: dict[str, str] = {}
        parts = {section: title for (named, section), title in sections().items() if named == document}
        for section, title in {**parts, "": whole}.items():
            rows, numbers = lessons.get((document, section), []), errors.get((document, section), [])
            if not (rows or numbers or section.isalpha()):
                continue  # what it says is in its subsections
            label = nodes.strong("", f"{document} {section}".strip())
            target = nodes.make_id(f"notes-{document}-{section.replace('§', '')}")
            if section:
                tops.setdefault(_top(section, parts), target)
            body += self.wide("section", [label, nodes.Text(" "), *self.cell(title)], ids=[target])
            for _, lesson, terms, _, where in rows:
                text = self.cell(lesson)
                if other := " ".join(term for term in terms.split() if term not in lesson):
                    text += [nodes.Text(" "), nodes.inline("", other, classes=["chinese"])]
                body += nodes.row("", entry(text), entry(self.links([where])))
            settled = {row[-1] for row in rows}
            if left := [number for number in numbers if number not in settled]:
                body += self.wide("corrected", [nodes.Text(before), *self.links(left)])
        written["classes"] += ["reference", "reference-notes", "colwidths-given"]
        for column, width in zip(written.findall(nodes.colspec), (3, 2), strict=True):
            column["colwidth"] = width
        return [jumps(tops), written]

    def wide(self, kind: str, content: list[nodes.Node], **attributes: list[str]) -> nodes.row:
        """A row of one cell."""
        cell = nodes.entry("", nodes.paragraph("", "", *content), morecols=1)
        return nodes.row("", cell, classes=[kind], **attributes)

    def links(self, places: list[str]) -> list[nodes.Node]:
        """Links that show where they lead: a chapter's name and the section, or a correction."""
        found: list[nodes.Node] = []
        language = "zh" if chinese.IS_CHINESE else "en"
        *_, between, brackets = WORDS[language]
        for where in places:
            name, target = address(where, self.env.docname)
            chapter, section = spelled(where)
            found += [nodes.Text(between)] if found else []
            found += [nodes.inline("", chapter, classes=["chapter"]), nodes.Text(" ")] if chapter else []
            found.append(nodes.reference("", section, refuri=target, internal=True, reftitle=name))
            if correction := corrections_by_number().get(where):
                found.append(nodes.Text(brackets.format(called(correction.grade, language))))
        return found


def entry(content: list[nodes.Node]) -> nodes.entry:
    """A cell."""
    return nodes.entry("", nodes.paragraph("", "", *content))


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("notes", NotesMap)
