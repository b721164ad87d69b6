"""How a figure without a kernel stands in a page, and what brings it to life there.

The element holds the figure's state as JSON and a fallback for viewers that run no scripts. A page adds one script for
each kind of figure, which registers the source of its ES module, and after them the host script, which mounts the
modules on the elements. Every name that these parts share is spelled here, and only here; the host gets them as its
argument.
"""

import json
import re

FIGURE_CLASS = "minimind-figure"
FALLBACK_CLASS = "mm-fallback"
STATE_TYPE = "application/json"
MODULES = "minimindFigures"  # window's property: name of a figure -> source of its ES module
ALIVE, FAILED = "alive", "failed"  # data-state of the element once the host is done with it

_OPENING = '<div class="{}" data-figure="{}">'
_FIGURE = re.compile(_OPENING.format(FIGURE_CLASS, r"(\w+)"))


def element(name: str, state: str, fallback: str) -> str:
    """The HTML element of the figure `name`, from its state as JSON and its fallback as HTML."""
    return (
        f"{_OPENING.format(FIGURE_CLASS, name)}"
        f'<script type="{STATE_TYPE}">{state}</script>'
        f'<div class="{FALLBACK_CLASS}">{fallback}</div></div>'
    )


def figures_in(html: str) -> set[str]:
    """The names of all figures whose elements stand in `html`."""
    return set(_FIGURE.findall(html))


def registration(name: str, source: str) -> str:
    """A classic script that registers the ES module of the figure `name`: a page from file:// may load no modules."""
    return f"(window.{MODULES} = window.{MODULES} || {{}})[{json.dumps(name)}] = {_inside_script(source)};\n"


def script(host: str) -> str:
    """The host script, `book/_ext/figure_host.js`, with the call that starts it."""
    names = {
        "figureClass": FIGURE_CLASS,
        "fallbackClass": FALLBACK_CLASS,
        "stateType": STATE_TYPE,
        "modules": MODULES,
        "alive": ALIVE,
        "failed": FAILED,
    }
    return f"{host}\nmountFigures({json.dumps(names)});\n"


def _inside_script(text: str) -> str:
    """`text` as a JavaScript string that cannot end the script element around it."""
    return json.dumps(text, ensure_ascii=False).replace("<", "\\u003c")
