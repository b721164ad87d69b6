"""The grades of the corrections on their pages: a reader may see those of one grade alone.

Entries and rows of their table have the class of their grade. Above them stands a row of buttons for one choice, and
the styles (book/theme/grades.css) hide what was not chosen: this needs no script, and a browser that does not know the
rule, a printed page and a notebook show all.
"""

from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from minimind_book import chinese
from tools.corrections import GRADES, corrections, notebooks

WORDS = {"en": ("Show", "All"), "zh": ("只看", "全部")}


def class_of(grade: str) -> str:
    """The class of an entry or a row."""
    return f"grade-{grade}"


def choice(grades: Iterable[str], language: str) -> nodes.raw:
    """The row of buttons: all, or one grade, each with how many entries it has."""
    show, every = WORDS[language]
    count = Counter(grades)
    offered = [
        ("all", every, count.total()),
        *((grade, named[language], count[grade]) for grade, named in GRADES.items()),
    ]
    buttons = "".join(
        f'<label><input type="radio" name="grade" value="{name}" autocomplete="off"{" checked" * (name == "all")}>'
        f"{escape(words)} <span>{many}</span></label>"
        for name, words, many in offered
    )
    html = f'<fieldset class="grades"><legend>{escape(show)}</legend>{buttons}</fieldset>'
    return nodes.raw("", html, format="html")


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Give the entries of a page their classes, and put the buttons above the first part that has entries."""
    if Path(app.env.doc2path(app.env.docname)) not in notebooks():
        return
    graded = {entry.number: entry.grade for entry in corrections()}
    found: list[str] = []
    parts: list[nodes.Element] = []
    for section in doctree.findall(nodes.section):
        number = section[0].astext().partition(" · ")[0]
        if grade := graded.get(number):
            section["classes"].append(class_of(grade))
            found.append(grade)
            if section.parent not in parts:
                parts.append(section.parent)
    for part in parts:
        part["classes"].append("graded")
    page = parts[0].parent
    page.insert(page.index(parts[0]), choice(found, "zh" if chinese.speaks(app, app.env.docname) else "en"))


def setup(app: Sphinx) -> None:
    """Mark the entries of every page as it is read."""
    app.connect("doctree-read", mark)
