"""Tables to look things up in: the rows of `book/reference/*.tsv`, and the corrections, with links to where each is.

    ```{reference} glossary
    ```

The first line of a file names its columns. Cells are Markdown. The last column, called "Where", is no column of the
page: the first cell of a row leads there. It holds a chapter by its name and one of its headings,
`attention#Two heads`, or the chapter alone, `attention`; a page and a heading, `book/notation.md#Letters`; or the
number of a correction, `E71`.
"""

import os
import re
from collections.abc import Iterable
from functools import cache
from math import sqrt
from pathlib import Path
from statistics import fmean

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from minimind_book import chinese
from minimind_book.card import table
from minimind_book.grades import choice, class_of
from tools.chapters import ROOT, all_deeper_of, chapters, page_of
from tools.corrections import GRADES, MATTER, Correction, corrections, notebooks, that_matter
from tools.places import headings, plain
from tools.translated import blocks_of, is_translated, merged_rows, translation_of

FOLDER = ROOT / "book" / "reference"
WHERE = "Where"
BY_LETTER = {"glossary", "papers"}  # long, and in the order of the alphabet
OF_CORRECTIONS = ("corrections", MATTER)  # tables made from the notebooks
NOTHING = "-"  # what a cell says that has nothing to say
_HAN = re.compile("[\u3000-\u9fff\uff00-\uffef]")
_WORD = re.compile(f"{_HAN.pattern}|(?:(?!{_HAN.pattern})\\S)+")  # Chinese breaks between any two characters
LINE = 98  # characters of a table that stand beside each other on a wide page


def rows_of(name: str) -> tuple[list[str], list[list[str]]]:
    """The titles of the columns and the rows of a stored table, as this edition has them."""
    path = FOLDER / f"{name}.tsv"
    titles, *rows = merged_rows(path.read_text(encoding="utf-8"), blocks_of(path) if chinese.IS_CHINESE else {})
    return titles, rows


def terms() -> list[str]:
    """The English terms of the glossary, in the order in which rows_of() has its rows."""
    rows = (FOLDER / "glossary.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [row.partition("\t")[0] for row in rows]


CORRECTIONS = {  # titles of the columns
    "en": ["", "In the notes", "The claim", "It is", "The truth", WHERE],
    "zh": ["", "在笔记里", "说法", "判定", "事实", WHERE],
}


def called(grade: str, language: str) -> str:
    """What a grade is called within a sentence or a table."""
    return GRADES[grade][language].lower()


def corrections_in_words() -> tuple[str, list[Correction]]:
    """The language in which this edition has the corrections, and all of them."""
    language = "zh" if chinese.IS_CHINESE and all(map(is_translated, notebooks())) else "en"
    return language, corrections(language)


def corrections_rows(chosen: Iterable[str] | None = None) -> tuple[list[str], list[list[str]]]:
    """A row for each correction, or each chosen one: which, where in the notes, the claim, its grade, the truth."""
    language, entries = corrections_in_words()
    rows = [
        [entry.number, entry.place, entry.claim, called(entry.grade, language), entry.short.rstrip(".。"), entry.number]
        for entry in entries
        if chosen is None or entry.number in chosen
    ]
    return CORRECTIONS[language], rows


@cache
def corrections_by_number() -> dict[str, Correction]:
    """All corrections, read once: hundreds of cells name one."""
    return {entry.number: entry for entry in corrections()}


def place(where: str) -> tuple[str, str, str]:
    """The file that a last cell means, the heading there, and a name for both.

    Raises:
        ValueError: if there is no such chapter, page or correction.
    """
    name, _, heading = where.partition("#")
    if entry := corrections_by_number().get(where):
        heading = f"{entry.number} · {entry.claim}"
        return entry.path.relative_to(ROOT).as_posix(), heading, f"{entry.path.stem[:2]} · {plain(heading)}"
    if chapter := next((candidate for candidate in chapters().values() if candidate.name == name), None):
        file = f"{chapter.page}.ipynb"
        title = headings(file)[0]
        if heading and heading not in headings(file):  # what a lesson leaves out stands on a deeper page
            deeper = [f"{page_of(page)}.ipynb" for page in all_deeper_of(chapter.page)]
            file = next((page for page in deeper if heading in headings(page)), (deeper or [file])[0])
        return file, heading or title, f"{chapter.number} · {plain(heading)}" if heading else title
    if not heading:
        raise ValueError(f"{where!r} is neither a chapter nor file#heading nor the number of a correction")
    return name, heading, f"{Path(name).stem.replace('_', ' ')} · {plain(heading)}"


def address(where: str, page: str) -> tuple[str, str]:
    """The name of a place, and the address of it as seen from a page."""
    file, heading, name = place(where)
    target = f"{Path(file).with_suffix('.html')}#{nodes.make_id(plain(heading))}"
    return name, os.path.relpath(target, Path(page).parent)


def in_language(file: str, heading: str) -> str:
    """A heading of a page as this edition has it; nothing if that page is not translated."""
    path = ROOT / file
    if not chinese.IS_CHINESE or not is_translated(path) or heading not in headings(file):
        return ""
    translated = headings(translation_of(path).relative_to(ROOT).as_posix())
    return plain(translated[headings(file).index(heading)])


def spelled(where: str) -> tuple[str, str]:
    """The title of the chapter that a last cell means, or nothing, and what the link to it says."""
    file, heading, _ = place(where)
    section = in_language(file, heading) or plain(heading)
    if "#" not in where or where.startswith("book/"):
        return "", section
    chapter = next(candidate for candidate in chapters().values() if candidate.name == where.partition("#")[0])
    return chinese.in_language(chapter.title), section


def length(text: str) -> int:
    """How wide a text is, in Latin letters: a Chinese character is as wide as two."""
    return len(text) + len(_HAN.findall(text))


def widths(written: nodes.table) -> list[int]:
    """The share of each column, in characters: room for its words first, then by the usual length of its cells.

    A browser that had to find them would move the columns with every part of a long table that arrives.
    """
    cells = [[entry.astext() for entry in row.findall(nodes.entry)] for row in written.findall(nodes.row)]
    least, more = [], []
    for column in zip(*cells, strict=True):
        longest = 3 + min(16, max(length(word) for text in column for word in _WORD.findall(text)))  # a path breaks
        usual = sqrt(fmean(length(text) ** 2 for text in column))  # an empty cell here and there counts little
        least.append(longest)
        more.append(max(min(usual, 60) - longest, 1))
    left = max(LINE - sum(least), 0) / sum(more)
    return [round(words + left * rest) for words, rest in zip(least, more, strict=True)]


def sounds(text: str) -> list[str]:
    """A text as it is looked up: Chinese by the sounds of its characters, all else by its letters."""
    if not _HAN.search(text):
        return [text.lower()]
    from pypinyin import lazy_pinyin  # only the Chinese edition needs it

    return [sound.lower() for sound in lazy_pinyin(text)]


def by_sound(titles: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The glossary as a Chinese reader looks into it: the Chinese word first, in the order of its sounds."""
    turned = [[chinese_word, english, *others] for english, chinese_word, *others in rows]
    return [titles[1], titles[0], *titles[2:]], sorted(turned, key=lambda row: sounds(row[0]))


def letters(written: nodes.table) -> dict[str, str]:
    """The first letters of a table in the order of the alphabet, and for each the id of its first row."""
    found: dict[str, str] = {}
    for row in next(iter(written.findall(nodes.tbody))).findall(nodes.row):
        letter = sounds(row.children[0].astext())[0][0].upper()
        if letter not in found:
            found[letter] = f"letter-{letter.lower()}"
            row["ids"] += [found[letter]]
    return found


def jumps(targets: dict[str, str]) -> nodes.paragraph:
    """Links into a long table, above it: what each says, and the id of the row to which it leads."""
    written = nodes.paragraph(classes=["jumps"])
    for text, target in targets.items():
        written += nodes.reference("", text, refuri=f"#{target}", internal=True)
        written += nodes.Text(" ")
    return written


class Table(SphinxDirective):
    """What a table needs to write its cells."""

    def cell(self, text: str) -> list[nodes.Node]:
        """The Markdown of a cell."""
        parsed, messages = self.parse_inline(text)
        return [*parsed, *messages]


class Reference(Table):
    """`{reference} NAME`: the table of `book/reference/NAME.tsv`.

    `corrections` is made from their notebooks, with buttons for one grade; `matter` has those that matter most.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        name = self.arguments[0]
        if name in OF_CORRECTIONS:
            titles, rows = corrections_rows(that_matter() if name == MATTER else None)
            for path in notebooks():
                self.env.note_dependency(str(path))
        else:
            titles, rows = rows_of(name)
            if name == "glossary" and chinese.IS_CHINESE:
                titles, rows = by_sound(titles, rows)
            self.env.note_dependency(str(FOLDER / f"{name}.tsv"))
        if titles[-1] == WHERE:
            written = table(titles[:-1], [self.linked([self.cell(text) for text in row[:-1]], row[-1]) for row in rows])
        else:
            written = table(titles, [[self.cell(text) for text in row] for row in rows])
        written["classes"] += ["reference", f"reference-{name}", "colwidths-given"]
        for column, width in zip(written.findall(nodes.colspec), widths(written), strict=True):
            column["colwidth"] = width
        for entry in written.findall(nodes.entry):
            if entry.astext() == NOTHING:
                entry["classes"] += ["nothing"]  # on a phone, where a row is a block, it would be a line of its own
        if name == "corrections":
            return [self.by_grade(written), written]
        return [jumps(letters(written)), written] if name in BY_LETTER else [written]

    def by_grade(self, written: nodes.table) -> nodes.raw:
        """Give the rows of all corrections the classes of their grades; return the buttons for one grade."""
        language, entries = corrections_in_words()
        body = next(iter(written.findall(nodes.tbody)))
        for row, entry in zip(body.findall(nodes.row), entries, strict=True):
            row["classes"].append(class_of(entry.grade))
        return choice([entry.grade for entry in entries], language)

    def linked(self, cells: list[list[nodes.Node]], where: str) -> list[list[nodes.Node]]:
        """A row whose first cell leads to a place."""
        name, target = address(where, self.env.docname)
        file, heading, _ = place(where)
        name = in_language(file, heading) or name
        link = nodes.reference("", "", *cells[0], refuri=target, internal=True, reftitle=name)
        return [[link], *cells[1:]]


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("reference", Reference)
