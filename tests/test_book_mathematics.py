"""Formulas are set when the book is built: all of them, in the book's own font, with their TeX at hand."""

import re

import pytest
from book_builder import PAGES, context_of
from minimind_book.mathematics import mathml

pytestmark = pytest.mark.timeout(300)


def test_a_formula_is_one_element_with_its_tex():
    text = mathml(r"\frac{q}{\sqrt{D}}", display=False)
    assert text.startswith("<math") and r'alttext="\frac{q}{\sqrt{D}}"' in text
    assert "<mfrac>" in text and "<msqrt>" in text


def test_what_cannot_be_set_is_refused_with_the_formula():
    with pytest.raises(ValueError, match=r"the formula .*\\frac\{q.* cannot be set"):
        mathml(r"\frac{q", display=True)
    with pytest.raises(ValueError, match="unknowncommand"):
        mathml(r"\unknowncommand x", display=True)


@pytest.mark.parametrize("name", PAGES)
def test_every_formula_of_a_page_is_set_with_the_fonts_of_the_book(browser, html, http_address, name):
    """No TeX is left in the text, no formula is empty, and none falls back to another font."""
    text = (html / f"{name}.html").read_text(encoding="utf-8")
    prose = re.sub(r"<(pre|code|script|style|math)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.findall(r"\$[^$\n]{1,80}\$|\\\(|\\\[|\\frac|\\sqrt", re.sub(r"<[^>]*>", "", prose)), name
    if "<math" not in text:
        return
    context = context_of(browser)
    page = context.new_page()
    page.goto(f"{http_address}/{name}.html")
    page.evaluate("document.fonts.ready")
    page.eval_on_selector_all("details", "all => all.forEach((one) => (one.open = true))")
    boxes = page.eval_on_selector_all(
        "math", "all => all.map((one) => [one.getAttribute('alttext'), one.getBoundingClientRect().height])"
    )
    assert [tex for tex, height in boxes if not tex or height < 5] == []
    assert page.locator("merror, math:has-text('\\\\')").count() == 0
    session = context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument", {"depth": -1})["root"]["nodeId"]
    ids = session.send("DOM.querySelectorAll", {"nodeId": root, "selector": "math :is(mi, mo, mn)"})["nodeIds"]
    foreign = set()
    for node in ids:
        for font in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]:
            if not font["isCustomFont"]:
                words = session.send("DOM.getOuterHTML", {"nodeId": node})["outerHTML"]
                foreign.add((font["familyName"], words))
    assert not foreign
    context.close()
