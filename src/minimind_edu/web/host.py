"""How a figure without a kernel stands in a page, and what brings it to life there.

The element holds the figure's state as JSON and a fallback for viewers that run no scripts. A page adds the script of
its first figure, which registers the figure's module, and after it the host script, which mounts the modules on the
elements and fetches the scripts of the others when they are needed. Every name that these parts share is spelled here,
and only here; the host gets them as its argument.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

FONTS = Path(__file__).parent / "fonts"  # of the book, that a page outside of it has inside
FIGURE_CLASS = "minimind-figure"
FALLBACK_CLASS = "mm-fallback"
STILL_CLASS = "mm-still"
OPENING_CLASS = "mm-opening"
STATE_TYPE = "application/json"
MODULES = "minimindFigures"  # window's property: name of a figure -> function that gives its module
LIVING = "living"  # what a figure asks for, and the name under which a page has it among the modules
KEEP = "keep"  # the same: what makes a picture of a figure that a reader keeps
LIVING_PAGE = "book/live.html"  # the page, from the root of the book, on which a reader writes a story
ALIVE, FAILED = "alive", "failed"  # data-state of the element once the host is done with it
CHANGED = "minimind-figure-changed"  # event of the element: its state has changed, and is its detail
SET = "minimind-figure-set"  # event to the element: its detail is what to set

_OPENING = '<div class="{}" data-figure="{}">'
_STATE = f'<script type="{STATE_TYPE}">{{}}</script>'
_LIKE = f'<script type="{STATE_TYPE}" data-like="{{}}">{{}}</script>'  # all else is that figure's
_FALLBACK = f'<div class="{FALLBACK_CLASS}">'
_FIGURE = re.compile(_OPENING.format(FIGURE_CLASS, r"(\w+)"))
_WITH_STATE = re.compile(_FIGURE.pattern + _STATE.format("(.*?)") + _FALLBACK, re.DOTALL)


def element(name: str, state: str, fallback: str) -> str:
    """The HTML element of the figure `name`, from its state as JSON and its fallback as HTML."""
    return f"{_OPENING.format(FIGURE_CLASS, name)}{_STATE.format(state)}{_FALLBACK}{fallback}</div></div>"


def figures_in(html: str) -> list[str]:
    """The names of all figures whose elements stand in `html`, in their order."""
    return _FIGURE.findall(html)


def states_in(html: str) -> list[tuple[str, str]]:
    """The name and the state, as JSON, of each figure in `html`."""
    return _WITH_STATE.findall(html)


def still_name(name: str, state: str, language: str = "en") -> str:
    """The file of what the figure `name` draws from `state`."""
    ending = "html" if language == "en" else f"{language}.html"
    return f"{name}-{hashlib.sha256(state.encode()).hexdigest()[:12]}.{ending}"


def complete(html: str, extra: Callable[[str, str], dict[str, str]], opening: bool = False) -> str:
    """`html` with what a page adds to its figures.

    Args:
        html: any HTML with elements of figures in it.
        extra: called with the name and the state of each; gives its `still` as HTML and, if it has them, `id` and
            `number`, the words before its title; `like`, the id of a figure on the same page that has all of the state
            but what `state` then holds.
        opening: whether these figures open a page.
    """

    def completed(found: re.Match[str]) -> str:
        name, state = found.groups()
        parts = extra(name, state)
        classes = f"{FIGURE_CLASS} {OPENING_CLASS}" if opening else FIGURE_CLASS
        place = f' id="{parts["id"]}"' if "id" in parts else ""
        number = f' data-number="{escape(parts["number"])}"' if "number" in parts else ""
        still = f'<div class="{STILL_CLASS}" inert>{parts["still"]}</div>' if parts.get("still") else ""
        begin = f'<div class="{classes}" data-figure="{name}"{place}{number}>'
        given = _LIKE.format(parts["like"], parts["state"]) if "like" in parts else _STATE.format(state)
        return f"{begin}{given}{still}{_FALLBACK}"

    return _WITH_STATE.sub(completed, html)


def registration(name: str, source: str, limits: Mapping[str, Any] | None = None) -> str:
    """A classic script that registers the figure `name`: a page from file:// may load no modules.

    The ES module becomes a function that returns its default export; `source` has no other exports and no imports.
    The function's `limits` say what may be set from outside (`Figure.limits`); without them, nothing.
    """
    body, exported, last = source.rpartition("\nexport default ")
    if not exported:
        raise ValueError(f"the module of the figure {name} has no default export")
    function = f'() => {{\n"use strict";\n{body}\nreturn {last.rstrip()}\n}}'
    registered = f"Object.assign({function}, {{ limits: {json.dumps(limits or {})} }})"
    return f"(window.{MODULES} = window.{MODULES} || {{}})[{json.dumps(name)}] = {registered};\n"


def script(host: str, words: Mapping[str, str] | None = None) -> str:
    """The host script, `book/theme/static/figure_host.js`, with the call that starts it; words: other than English."""
    names = {
        "figureClass": FIGURE_CLASS,
        "fallbackClass": FALLBACK_CLASS,
        "stillClass": STILL_CLASS,
        "openingClass": OPENING_CLASS,
        "stateType": STATE_TYPE,
        "modules": MODULES,
        "alive": ALIVE,
        "failed": FAILED,
        "changed": CHANGED,
        "asked": SET,
        "loaded": [LIVING, KEEP],
    } | ({"words": dict(words)} if words else {})
    return f"{host}\nmountFigures({json.dumps(names, ensure_ascii=False)});\n"
