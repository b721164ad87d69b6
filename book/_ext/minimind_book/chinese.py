"""The Chinese edition: the same build with BOOK_LANGUAGE=zh puts what stands in zh/ in place of the English words.

Nothing else is built twice: code, outputs and figures come from the same notebooks. Headings keep their English
anchors, so an address that ends in #a-head-on-paper means the same place in both editions. A page that nobody has
translated shows its English and says so.

`python -m tools.editions` builds both, this one in the folder `zh` of the other; then BOOK_LANGUAGE is set for both
builds, and English pages lead to their Chinese twins.
"""

import os
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms import SphinxTransform

from minimind_book.words import words
from minimind_edu.words import Words
from tools import translated

EDITION = os.environ.get("BOOK_LANGUAGE", "")
IS_CHINESE = EDITION == "zh"
HAS_TWIN = EDITION != ""  # whether the book is built in both languages
FOLDER = "zh"  # of the output, inside that of the English book
LANGUAGES = {"en": "en", "zh": "zh-CN"}  # as pages name them

_HAN = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u2018-\u201d\u2026\u2014"
_LINE_END = re.compile(f"(?<=[{_HAN}])\n(?=\\S)|(?<=\\S)\n(?=[{_HAN}])")
_PAUSE = re.compile("[，。；：？！、”）》]")


def original(app: Sphinx, page: str) -> Path:
    """The file of a page."""
    return Path(app.env.doc2path(page))


def is_translated(app: Sphinx, page: str) -> bool:
    """Whether a page of the book has a Chinese version; the search has, being made of words of the shell."""
    if page not in app.env.found_docs:
        return page == "search"
    return translated.is_translated(original(app, page))


def in_language(text: str) -> str:
    """A title as this edition shows it: English stands in where there are no other words."""
    return (Words(translated.shared_words())(text) if IS_CHINESE else None) or text


def speaks(app: Sphinx, page: str) -> bool:
    """Whether a page is in Chinese, with its figures: in this edition, and translated."""
    return IS_CHINESE and is_translated(app, page)


def in_figure(html: str) -> str:
    """The elements of figures in Chinese, as far as there are words for it."""
    return translated.in_figure(html, Words(translated.shared_words()))


def in_markup(html: str) -> str:
    """HTML in Chinese, as far as there are words for it."""
    return translated.in_markup(html, Words(translated.shared_words()))


def take_the_language(app: Sphinx, config: Config) -> None:
    """Set the language; Jupyter Book has no option for it, and Sphinx has chosen its own words before this."""
    config.language = "zh_CN"
    config.html_title = config.project = words("zh")["book"]
    config.author = words("zh")["author"]
    config.numfig_format = {"code-block": words("zh")["listing"]}


def read_in_chinese(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the Chinese in place before the page is parsed."""
    path = original(app, page)
    if translated.is_translated(path):
        app.env.note_dependency(str(translated.translation_of(path)))
        app.env.note_dependency(str(translated.WORDS))
        source[0] = translated.merged(path, source[0])


class EnglishAnchors(SphinxTransform):
    """Give the sections of a Chinese page the anchors of the English ones."""

    default_priority = 5  # before anything looks for targets

    def apply(self, **_: object) -> None:
        path = Path(self.env.doc2path(self.env.docname))
        if not translated.is_translated(path):
            return
        sections = list(self.document.findall(nodes.section))
        names = translated.anchors_of(path)
        if len(sections) != len(names):
            raise RuntimeError(f"{path.name} has {len(names)} headings, its translation {len(sections)}")
        known = self.document.myst_slugs  # what a link may call a heading: its line, its anchor, its words
        called = {anchor: slug for slug, (_, anchor, _) in known.items()}
        for section, name in zip(sections, names, strict=True):
            if slug := called.get(section["ids"][0]):
                known[slug] = (known[slug][0], name, known[slug][2])
                known.setdefault(name, known[slug])  # links of the page itself call it by its English name, too
            section["ids"] = [name]


def join_lines(app: Sphinx, doctree: nodes.document) -> None:
    """Take out spaces that a page in Chinese must not show.

    The end of a line would stand as a space between two characters; MyST makes a text of its own of it. And Markdown
    closes `**bold words.** more` only if a space follows the mark, where the mark itself has room enough.
    """
    if not is_translated(app, app.env.docname):
        return
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.literal_block | nodes.raw | nodes.literal | nodes.math):
            continue
        siblings = text.parent.children
        at = next(place for place, sibling in enumerate(siblings) if sibling is text)
        before = siblings[at - 1].astext()[-1:] if at else ""
        after = siblings[at + 1].astext()[:1] if at + 1 < len(siblings) else ""
        if (joined := joined_text(before, str(text), after)) != str(text):
            text.parent[at] = nodes.Text(joined)


def joined_text(before: str, text: str, after: str) -> str:
    """A text without ends of lines at Han, between the last sign before it and the first one after it."""
    joined = _LINE_END.sub("", f"{before}{text}{after}")[len(before) :]
    joined = joined[: len(joined) - len(after)]
    return joined.lstrip(" ") if _PAUSE.fullmatch(before) else joined


def setup(app: Sphinx) -> None:
    """Connect what the Chinese edition needs, if this is it."""
    if not IS_CHINESE:
        return
    app.connect("config-inited", take_the_language, priority=100)
    app.connect("source-read", read_in_chinese)
    app.connect("doctree-read", join_lines, priority=400)
    app.add_transform(EnglishAnchors)
