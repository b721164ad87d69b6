"""The figures of the pages: their scripts, the one that opens each chapter, and how each looks before scripts run.

A figure's element holds its state. The build adds a number and a still: what the figure's own module drew from this
state in a browser (`python -m tools.stills` stores it). It is there at first paint, without scripts too, and the host
script puts the living figure in its place.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from minimind_book import chinese
from minimind_book.words import SCRIPT_WORDS, words
from minimind_edu.figures import (
    class_of,
    figure_names,
    keep_script,
    living_script,
    model_map,
    module_source,
    own_stylesheet,
    shared_stylesheet,
)
from minimind_edu.web import host
from minimind_edu.web.base import to_json
from tools.chapters import chapters

ROOT = Path(__file__).resolve().parents[3]
STATIC = ROOT / "book" / "theme" / "static"
STILLS = ROOT / "book" / "stills"
HOST = "figure_host.js"

# Pages whose figure asks for the living model as soon as it is there: all of it comes with the page.
AT_ONCE = {"book/live": ("minimind_live", host.LIVING), "book/index": ("guess_first",)}
MAP = "model_map"
UNNUMBERED = {"quiz", MAP, "guess_first"}


def strip_file(part: str) -> str:
    """The file of the strip of the map in which `part` is lit; the map of the front page is a step away."""
    return f"strip-{part}.html"


def write_figures(target: Path) -> None:
    """Write a script for each figure, those that figures may ask for, and the host."""
    target.mkdir(parents=True, exist_ok=True)
    for name in figure_names():
        script = host.registration(name, module_source(name, chinese.EDITION or "en"), class_of(name).limits())
        (target / f"{name}.js").write_text(script, encoding="utf-8")
    (target / f"{host.LIVING}.js").write_text(living_script(), encoding="utf-8")
    (target / f"{host.KEEP}.js").write_text(keep_script(), encoding="utf-8")
    (target / HOST).write_text(host_script(), encoding="utf-8")


def arguments_of(lines: Iterable[str]) -> dict[str, Any]:
    """The arguments that the content of a `live-figure` gives, a line each: `name: JSON value`."""
    pairs = (line.split(":", 1) for line in lines if line.strip())
    return {name.strip(): json.loads(value) for name, value in pairs}


def host_script() -> str:
    """The script that mounts the figures of a page."""
    words = SCRIPT_WORDS["host"] if chinese.IS_CHINESE else None
    return host.script((STATIC / HOST).read_text(encoding="utf-8"), words)


def element_file(name: str, arguments: dict[str, Any]) -> str:
    """The file of the element of a figure that stands in no notebook.

    The element is stored, not made anew: its numbers come from computations that differ in their last digits between
    machines, and a still belongs to the state from which it was drawn.
    """
    asked = json.dumps([name, arguments], sort_keys=True)
    return f"{name}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}.element.html"


def raw(name: str, arguments: dict[str, Any]) -> nodes.raw:
    """A figure as a node of a page."""
    return nodes.raw("", read(element_file(name, arguments)), format="html")


def read(file: str) -> str:
    """What `python -m tools.stills` has stored.

    Raises:
        RuntimeError: if it was never drawn.
    """
    path = STILLS / file
    if not path.is_file():
        raise RuntimeError(f"book/stills/{file} is missing, so a figure was never drawn: run `python -m tools.stills`")
    return path.read_text(encoding="utf-8").rstrip("\n")


def read_in_strip(place: str) -> str:
    """The part of the strip that fills when a chapter is read: its own, or the stream for what is about all."""
    part = model_map.lit_in_strip(place)
    return {"model": "stream", "experts": "ffn"}.get(part, part)


def face() -> str:
    """The strip of all chapters, which fills as they are read and is seen from the first on: how many of each part."""
    of_parts = Counter(read_in_strip(chapter.place) for chapter in chapters().values())
    counts = escape(json.dumps(of_parts))
    drawing = model_map.strip_drawing("")
    note = '<p class="read-so-far"></p>'
    return f'<div class="mm-fig mp-strip mp-face" hidden data-chapters="{counts}">{drawing}{note}</div>'


def open_with_figure(app: Sphinx, doctree: nodes.document) -> None:
    """Put the place of a chapter in the model, and its compact figure, right below its title.

    The front page opens with the figure that it names first, and has the strip of all chapters above its questions.
    """
    chapter = chapters().get(app.env.docname)
    if chapter is None and app.env.docname != app.config.root_doc:
        return
    title = next(doctree.findall(nodes.title))
    if chapter is None:
        for figure in [html for html in doctree.findall(nodes.raw) if host.figures_in(html.astext())][:1]:
            figure["opening"] = True
        for questions in [*doctree.findall(nodes.enumerated_list)][:1]:  # the strip fills as they are answered
            questions.parent.insert(questions.parent.index(questions), nodes.raw("", face(), format="html"))
        return
    node = raw(*chapter.opening)
    node["opening"] = True
    strip = read(strip_file(chapter.place))
    if chinese.speaks(app, app.env.docname):
        strip = chinese.in_markup(strip)
    place = nodes.raw("", strip, format="html")
    title.parent.insert(title.parent.index(title) + 1, [place, node])


class Numbering:
    """Numbers the figures of a page in the order in which they stand on it.

    The second one of a kind holds only that part of its state in which it differs from the first: what both show comes
    over the line once.
    """

    def __init__(self, language: str | None):
        self.words = words(language)
        self.count = 0
        self.first: dict[str, tuple[str, dict[str, Any]]] = {}  # name -> id and state

    def complete(self, html: str, opening: bool = False, language: str = "en") -> str:
        """The elements of figures in `html` with their numbers and stills; the rest of it as it is.

        A still in `language` is taken where there is one.
        """

        def completed(name: str, state: str) -> dict[str, str]:
            still, english = (host.still_name(name, state, edition) for edition in (language, "en"))
            extra = {"still": "" if name == "quiz" else read(still if (STILLS / still).is_file() else english)}
            if name not in UNNUMBERED:
                self.count += 1
                extra["id"] = f"figure-{self.count}"
                extra["number"] = self.words["figure"].format(self.count)
                like, shared = self.first.setdefault(name, (extra["id"], json.loads(state)))
                if like != extra["id"]:
                    whole = json.loads(state)
                    differing = {key: value for key, value in whole.items() if shared.get(key, ...) != value}
                    differing |= dict.fromkeys(shared.keys() - whole.keys())  # null: a whole figure is not compact
                    extra |= {"like": like, "state": to_json(differing)}
            return extra

        return host.complete(html, completed, opening)


def figures_on(doctree: nodes.document | None) -> list[str]:
    """Names of the figures on a page, in the order in which they stand on it."""
    if doctree is None:
        return []
    found = (host.figures_in(node.astext()) for node in doctree.findall(nodes.raw) if "html" in node.get("format", ""))
    return list(dict.fromkeys(name for names in found for name in names))


def styles_of(page: str, names: list[str]) -> str:
    """The styles of the figures of a page, and those that all share."""
    used = sorted({*names, MAP} if page in chapters() else set(names))
    return shared_stylesheet() + "".join(map(own_stylesheet, used)) if used else ""


class LiveFigure(SphinxDirective):
    """A figure of the package on a page that is no notebook; each line of the content is `argument: JSON value`."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        return [raw(self.arguments[0], arguments_of(self.content))]


def setup(app: Sphinx) -> None:
    """Register the directive, and the figures that open chapters."""
    app.add_directive("live-figure", LiveFigure)
    app.connect("doctree-read", open_with_figure, priority=600)
