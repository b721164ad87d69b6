"""What the search looks through: one script with the words of all pages by section, and the names of the glossary.

There is no index. A browser reads a book of a megabyte from its first to its last word in a few milliseconds, so the
search (static/search.js) knows places, counts and neighbors of words, which Sphinx's index of pages does not; and from
a folder, where a browser fetches nothing, it knows the same. No page loads it before somebody types. An index beside
the text would be 59 kB more (Sphinx's) or 240 kB (MiniSearch's), and excerpts need the text in any case.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

from sphinx.application import Sphinx

from minimind_book import chinese, reference

FILE = "search_texts.js"  # at the root of an edition
# Not looked through, by class or element: words inside drawings, for instance, mean nothing without them.
UNSAID = {".minimind-figure", ".mp-strip", ".picture", ".install", ".headerlink", "summary", "script", ".jumps"}
HEADINGS = {"h1", "h2", "h3"}
NOTES = "notes-"  # begins the ids of the rows that name a section of the notes; the rows below it belong to it
BLOCKS = HEADINGS | {"p", "li", "td", "th", "div", "pre", "dt", "dd", "figcaption", "section", "tr"}
VOID = {"br", "col", "hr", "img", "input", "source", "wbr"}  # no end tag follows
MOST_OF_A_NAME = 30  # characters: what is in bold and longer is a sentence, not a name
# Where a name is split: "SiLU, Swish" has two, and "KV 缓存 (KV Cache)" has two.
_NAMES = re.compile(r"[,，、/]|[(（)）]")
_MARKUP = re.compile(r"[*`$\\{}]|\]\([^)]*\)|\[")


class _Section:
    """A heading with what stands below it, up to the next one."""

    def __init__(self, anchor: str) -> None:
        self.anchor = anchor
        self.parts: dict[str, list[str]] = {"heading": [], "text": [], "code": [], "bold": []}

    def written(self) -> list:
        """[anchor, heading, text, code, names in bold]"""
        heading, text, code = (" ".join("".join(self.parts[kind]).split()) for kind in ("heading", "text", "code"))
        bold = [name for name in (" ".join(part.split()).strip(" .。:：,，") for part in self.parts["bold"]) if name]
        return [self.anchor, heading, text, code, [name for name in bold if len(name) <= MOST_OF_A_NAME]]


class _Article(HTMLParser):
    """The sections of a page. Rows of the notes' map are sections too: results lead to them."""

    def __init__(self) -> None:
        super().__init__()
        self.sections = [_Section("")]
        self.open: list[_Section] = []  # the sections around a place
        self.kinds: list[tuple[str, str | None]] = []  # each open element's tag, and the kind of its text; None: unsaid

    def _kind(self) -> str | None:
        return self.kinds[-1][1] if self.kinds else "text"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        kind = self._kind()
        if tag in VOID:
            return self._say(" " if tag == "br" else "")
        given = dict(attributes)
        classes = (given.get("class") or "").split()
        anchor = given.get("id") or ""
        if kind and not UNSAID.isdisjoint({tag, *(f".{name}" for name in classes)}):
            kind = None
        elif kind and (tag in HEADINGS or anchor.startswith(NOTES)):
            kind = "heading"
        elif kind and ("cell" in classes or tag == "pre"):
            kind = "code"
        if tag == "section" or anchor.startswith(NOTES):
            self.sections.append(_Section(anchor))
            self.open[len(self.open) - (tag != "section") :] = [self.sections[-1]]
        if kind == "text" and tag == "strong":
            self._here().parts["bold"].append("")
        if tag in BLOCKS:
            self._say(" ")
        self.kinds.append((tag, kind))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Such as a part of a drawing: nothing stands in it."""

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        self.kinds.pop()
        if tag in BLOCKS:
            self._say(" ")
        if tag == "section":
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self._say(data)
        if any(tag == "strong" for tag, _ in self.kinds) and self._kind() == "text":
            self._here().parts["bold"][-1] += data

    def _here(self) -> _Section:
        return self.open[-1] if self.open else self.sections[0]

    def _say(self, text: str) -> None:
        if kind := self._kind():
            self._here().parts[kind].append(text)


def sections_of(html: str) -> list[list]:
    """The sections of a page as `_Section.written` has them, without empty ones."""
    reader = _Article()
    reader.feed("".join(re.findall("<article.*</article>", html, re.DOTALL)))
    reader.close()
    return [section for section in (part.written() for part in reader.sections) if any(section[1:])]


def names_in(cell: str) -> list[str]:
    """The names that a cell of the glossary lists: whole, and each that a comma or a bracket sets apart."""
    plain = _MARKUP.sub("", cell).strip()
    parts = (part.strip() for part in _NAMES.split(plain))
    whole = [] if re.search("[,，、]", plain) else [plain]
    return [name for name in dict.fromkeys([*whole, *parts]) if len(name) > 1]


def glossary() -> list[list]:
    """For each term [its names and synonyms, what it means, the page and the anchor that explain it]."""
    rows = reference.rows_of("glossary")[1]
    english = reference.terms()
    synonyms: dict[str, list[str]] = {}
    for term, also in reference.rows_of("synonyms")[1]:
        synonyms[term] = names_in(also)
    found = []
    for term, row in zip(english, rows, strict=True):
        *named, meaning, where = row
        cells = [*named[1:], term] if chinese.IS_CHINESE else [term, *named[1:]]
        names = [name for cell in cells if cell != reference.NOTHING for name in names_in(cell)]
        page, _, anchor = reference.address(where, "search")[1].partition("#")
        names = dict.fromkeys([*names, *synonyms.get(term, [])])
        found.append([list(names), _MARKUP.sub("", meaning), page.removesuffix(".html"), anchor])
    return found


def write_texts(app: Sphinx, error: Exception | None) -> None:
    """Write the script, once all pages are there, in the order of the book."""
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    order = {str(name): number for number, name in enumerate(app.env.external_site_map)}
    pages = sorted(app.env.found_docs, key=lambda name: (order.get(name, len(order)), name))
    texts = [[name, sections_of((out / f"{name}.html").read_text(encoding="utf-8"))] for name in pages]
    script = json.dumps({"pages": texts, "terms": glossary()}, ensure_ascii=False, separators=(",", ":"))
    (out / FILE).write_text(f"searchTexts = {script};\n", encoding="utf-8")


def without_an_index(app: Sphinx) -> None:
    """Let Sphinx make no index, and no page for it."""
    if app.builder.format == "html":
        app.builder.search = False


def search_page(app: Sphinx) -> list[tuple[str, dict, str]]:
    """The page of the search: its name, its context, its template."""
    return [("search", {}, "search.html")]


def setup(app: Sphinx) -> None:
    """Write it when the book is built."""
    app.connect("builder-inited", without_an_index)
    app.connect("html-collect-pages", search_page)
    app.connect("build-finished", write_texts)
