"""Formulas are set when the book is built, as MathML; a page needs a font for them and no script."""

from html import escape

from docutils import nodes
from math_core import LatexToMathML
from sphinx.application import Sphinx

from minimind_book import symbols

_CONVERTER = LatexToMathML()
_SIGN_AFTER_NAME = (
    '<mspace width="0.1667em"/><mo lspace="0" rspace="0">'  # a sign that is no operator between two things
)


def mathml(tex: str, display: bool) -> str:
    """The formula as one <math> element whose alternative text is its TeX.

    Raises:
        ValueError: with the formula, if the converter does not understand the TeX, or TeX takes an operator for a sign.
    """
    tex = " ".join(tex.split())
    try:
        text = _CONVERTER.convert_with_local_state(tex, displaystyle=display)
    except Exception as error:
        raise ValueError(f"the formula ${tex}$ cannot be set: {error}") from error
    if _SIGN_AFTER_NAME in text:
        raise ValueError(
            f"in ${tex}$ an operator follows the name of a function, and TeX sets it like the sign of what comes next: "
            r"end the name with braces, as in \cos{} + x, or put a sign and its number into braces, as in \max{-x}."
        )
    text = text.replace("<mo>′</mo>", '<mo class="prime">′</mo>')
    return text.replace("<math", f'<math alttext="{escape(tex)}"', 1)


def formula(translator, node: nodes.Element, display: bool) -> str:
    """The formula of a node, its letters named as on the page that it stands on."""
    return symbols.mark_formula(translator.builder.current_docname, mathml(node.astext(), display))


def visit_math(translator, node: nodes.math) -> None:
    """A formula in a sentence; one that has a cell of a table to itself is as tall as on a line of its own."""
    if whole := symbols.attribute(translator.builder.current_docname, node.astext()):
        written = f"<span{whole}>{mathml(node.astext(), False)}</span>"
    else:
        fills_cell = isinstance(node.parent.parent, nodes.entry) and len(node.parent) == 1
        written = formula(translator, node, fills_cell).replace('display="block"', 'displaystyle="true"', 1)
    translator.body.append(written)
    raise nodes.SkipNode


def visit_math_block(translator, node: nodes.math_block) -> None:
    """A formula of its own; a wide one scrolls by itself."""
    translator.body.append(f'<div class="math">{formula(translator, node, True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the renderer; Sphinx prefers it to its own, which sets formulas in the browser."""
    app.add_html_math_renderer("mathml", inline_renderers=(visit_math, None), block_renderers=(visit_math_block, None))
