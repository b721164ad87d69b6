"""What a browser must not tear apart at the end of a line: a number and its unit, a formula and the sign after it."""

import re

from docutils import nodes
from sphinx.application import Sphinx

_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGT]i?B|ms|µs|GB/s|nats?)(?!\w))|(?<=×) (?=\d)")
_SIGNS = re.compile(r"[,.;:!?)’”，。；：？！、）》]+")


def bound(text: str) -> str:
    """A text in which no unit stands at the beginning of a line without its number."""
    return _UNIT.sub("\u00a0", text)


def keep_units_at_numbers(app: Sphinx, doctree: nodes.document) -> None:
    """Bind units to numbers everywhere but in code and formulas."""
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.literal_block | nodes.raw | nodes.literal | nodes.math | nodes.math_block):
            continue
        if (whole := bound(text)) != text:
            at = next(place for place, one in enumerate(text.parent) if one is text)
            text.parent[at] = nodes.Text(whole)


def keep_signs_at_formulas(app: Sphinx, doctree: nodes.document) -> None:
    """Bind a sign that closes to the formula before it: a browser would break the line between the two."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        signs = _SIGNS.match(after) if isinstance(after, nodes.Text) else None
        if signs:
            at = next(place for place, one in enumerate(after.parent) if one is after)  # others may be equal
            after.parent[at] = nodes.Text(after[signs.end() :])
            formula.replace_self(together := nodes.inline(classes=["unbroken"]))
            together += [formula, nodes.Text(signs[0])]


def setup(app: Sphinx) -> None:
    """Bind them once a page is read, and in Chinese once its lines are joined."""
    app.connect("doctree-read", keep_units_at_numbers, priority=401)
    app.connect("doctree-read", keep_signs_at_formulas, priority=402)
