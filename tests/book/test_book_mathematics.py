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


@pytest.mark.parametrize("tex", [r"q \odot \cos + r", r"q\cos - r\sin", r"\max -x"])
def test_an_operator_after_the_name_of_a_function_is_refused_with_a_way_to_write_it(tex):
    """TeX itself sets "cos +r": in a notebook, too, so the formula is mended and not what comes of it here."""
    with pytest.raises(ValueError, match=r"like the sign of what comes next: .*\\cos\{\} \+ x"):
        mathml(tex, display=False)


def test_a_function_that_ends_with_braces_is_added_with_room_on_both_sides():
    assert "<mo>+</mo>" in mathml(r"q \odot \cos{} + r", display=False)
    assert "<mo>+</mo>" in mathml(r"\cos x + 1", display=False)


@pytest.fixture(scope="module")
def reader(browser):
    """A page without scripts: formulas need none."""
    context = context_of(browser, java_script_enabled=False)
    yield context.new_page()
    context.close()


# Of the letters that are alike one is enough: the others are drawn with the same font.
MARK_ONE_LETTER_OF_EACH_KIND = """letters => {
    const kinds = new Set();
    for (const one of letters) {
        const { fontFamily, fontStyle, fontWeight } = getComputedStyle(one);
        const kind = [one.tagName, one.textContent, fontFamily, fontStyle, fontWeight].join();
        if (!one.checkVisibility() || kinds.has(kind)) continue;
        kinds.add(kind);
        one.dataset.asked = "";
    }
}"""


def foreign_fonts(page) -> set[tuple[str, str]]:
    """The letters of formulas that are drawn with a font of the system, with its name."""
    page.eval_on_selector_all("math :is(mi, mo, mn)", MARK_ONE_LETTER_OF_EACH_KIND)
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    foreign = set()
    for node in session.send("DOM.querySelectorAll", {"nodeId": root, "selector": "[data-asked]"})["nodeIds"]:
        for font in session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]:
            if not font["isCustomFont"]:
                words = session.send("DOM.getOuterHTML", {"nodeId": node})["outerHTML"]
                foreign.add((font["familyName"], words))
    session.detach()
    return foreign


@pytest.mark.parametrize("name", PAGES)
def test_every_formula_of_a_page_is_set_with_the_fonts_of_the_book(reader, html, http_address, name):
    """No TeX is left in the text, no formula is empty, and none falls back to another font."""
    text = (html / f"{name}.html").read_text(encoding="utf-8")
    prose = re.sub(r"<(pre|code|script|style|math)\b.*?</\1>", "", text, flags=re.DOTALL)
    assert not re.findall(r"\$[^$\n]{1,80}\$|\\\(|\\\[|\\frac|\\sqrt", re.sub(r"<[^>]*>", "", prose)), name
    if "<math" not in text:
        return
    reader.goto(f"{http_address}/{name}.html")
    reader.eval_on_selector_all("details", "all => all.forEach((one) => (one.open = true))")
    reader.evaluate("document.fonts.ready")
    boxes = reader.eval_on_selector_all(
        "math", "all => all.map((one) => [one.getAttribute('alttext'), one.getBoundingClientRect().height])"
    )
    assert [tex for tex, height in boxes if not tex or height < 5] == []
    assert reader.locator("merror, math:has-text('\\\\')").count() == 0
    assert reader.locator("math :is(mi, mo, mn)").count() > 0
    assert not foreign_fonts(reader)
