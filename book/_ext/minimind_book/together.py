"""What a browser must not tear apart at the end of a line: a number and its unit, a formula and the sign after it."""

import re

from docutils import nodes
from sphinx.application import Sphinx

_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGT]i?B|ms|µs|nats?)(?!\w))|(?<=×) (?=\d)")
_SIGNS = re.compile(r"[,.;:!?)’”，。；：？！、）》]+")


def _put(text: nodes.Text, words: str) -> None:
    """Words in place of a text; others on the page may be equal to it."""
    at = next(place for place, sibling in enumerate(text.parent) if sibling is text)
    text.parent[at] = nodes.Text(words)


def keep_units_at_numbers(app: Sphinx, doctree: nodes.document) -> None:
    """Bind units to numbers everywhere but in code and formulas."""
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.literal_block | nodes.raw | nodes.literal | nodes.math | nodes.math_block):
            continue
        if (whole := _UNIT.sub("\u00a0", text)) != text:
            _put(text, whole)


def keep_signs_at_formulas(app: Sphinx, doctree: nodes.document) -> None:
    """Bind a sign that closes to the formula before it: a browser would break the line between the two."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        signs = _SIGNS.match(after) if isinstance(after, nodes.Text) else None
        if signs:
            _put(after, after[signs.end() :])
            formula.replace_self(together := nodes.inline(classes=["unbroken"]))
            together += [formula, nodes.Text(signs[0])]


def setup(app: Sphinx) -> None:
    """Bind them once a page is read, and in Chinese once its lines are joined."""
    app.connect("doctree-read", keep_units_at_numbers, priority=401)
    app.connect("doctree-read", keep_signs_at_formulas, priority=402)
