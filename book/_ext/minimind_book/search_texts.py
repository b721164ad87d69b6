"""The words of all pages in one script, of which the search makes excerpts where it cannot fetch pages: from a folder.

No other page loads it, and the search does so only once it has found something. Of a page it has what an excerpt needs
(see search_setup.js): its article, without what no excerpt says; headings, code and places that results lead to are
elements, everything else is text.
"""

import json
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from sphinx.application import Sphinx

FILE = "search_texts.js"  # beside searchindex.js
SETUP = Path(__file__).resolve().parents[2] / "theme" / "static" / "search_setup.js"
# Selectors of a class or an element each.
UNSAID = set(re.search('const unsaid = "(.+)"', SETUP.read_text(encoding="utf-8"))[1].split(", "))
VOID = {"br", "col", "hr", "img", "input", "source", "wbr"}  # no end tag follows


class _Article(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.closing: list[str | None] = []  # for each open element what ends it here; None: it is not said

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        given = dict(attributes)
        classes = (given.get("class") or "").split()
        opening = ""
        if None in self.closing[-1:] or not UNSAID.isdisjoint({tag, *(f".{name}" for name in classes)}):
            self.closing.append(None)
            return
        if tag in ("article", "h1", "h2", "h3"):
            opening = f"<{tag}>"
        elif "cell" in classes:
            opening, tag = "<div class=cell>", "div"
        elif tag == "section" or (given.get("id") or "").startswith("notes-"):
            opening, tag = f"<div id={given['id']}>", "div"
        self.parts.append(opening)
        self.closing.append(f"</{tag}>" * bool(opening))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Such as a part of a drawing: nothing stands in it."""

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            self.parts.append(self.closing.pop() or "")

    def handle_data(self, data: str) -> None:
        if None not in self.closing[-1:]:
            self.parts.append(escape(data, quote=False))


def text_of(html: str) -> str:
    """The article of a page as excerpts need it; "" if the page has none."""
    reader = _Article()
    reader.feed("".join(re.findall("<article.*</article>", html, re.DOTALL)))
    reader.close()
    return re.sub(r"\s+", " ", "".join(reader.parts))


def write_texts(app: Sphinx, error: Exception | None) -> None:
    """Write the script, once all pages are there."""
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    texts = {name: text_of((out / f"{name}.html").read_text(encoding="utf-8")) for name in sorted(app.env.found_docs)}
    script = f"searchTexts = {json.dumps(texts, ensure_ascii=False, separators=(',', ':'))};\n"
    (out / FILE).write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Write it when the book is built."""
    app.connect("build-finished", write_texts)
