"""The fonts of the pages: there when the page is shown, and where they are late, others are as wide until they come."""

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
from book_builder import CHAPTERS, NARROW, OBSERVE, WIDE, context_of, served, settle, wait_until
from minimind_book import fonts
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[2]
OF_MATPLOTLIB = Path(matplotlib.get_data_path()) / "fonts" / "ttf"

pytestmark = pytest.mark.timeout(300)


def prose() -> str:
    """The sentences of the chapters, without tables, formulas, code and the addresses of links, in plain letters.

    No space is left where one of these stood, and none doubled, as a page has none: DejaVu's is a quarter wider.
    """
    cells = [cell for name in CHAPTERS for cell in json.loads((ROOT / f"{name}.ipynb").read_text("utf-8"))["cells"]]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    text = re.sub(r"^ *\|.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\s*(\$\$[^$]*\$\$|\$[^$]*\$|```.*?```|`[^`]*`)|(?<=\])\([^)]*\)", "", text, flags=re.DOTALL)
    return re.sub(r" +", " ", re.sub(r"[^ -~]|[#>*\[\]]", "", text.replace("\n", " ")))


WIDTH = """async ([font, text]) => {
    await document.fonts.load(font, text);
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.font = font;
    return text.match(/.{1,500}/g).reduce((sum, part) => sum + canvas.measureText(part).width, 0);
}"""


@pytest.mark.parametrize("family", ["Text DejaVu Serif", "Sans DejaVu Sans"])
def test_a_font_of_the_system_is_as_wide_as_the_book_s_own(browser, http_address, family):
    """Those that matplotlib brings along; the others were measured in the same way."""
    context = context_of(browser)
    page = context.new_page()
    page.route("**/*.ttf", lambda route: route.fulfill(path=OF_MATPLOTLIB / Path(route.request.url).name))
    page.goto(f"{http_address}/book/notation.html")
    rules = [rule for rule in fonts.faces() if family in rule]
    files = {
        'local("DejaVu Serif")': "DejaVuSerif.ttf", 'local("DejaVu Serif Bold")': "DejaVuSerif-Bold.ttf",
        'local("DejaVu Serif Italic")': "DejaVuSerif-Italic.ttf", 'local("DejaVu Sans")': "DejaVuSans.ttf",
        'local("DejaVu Sans Bold")': "DejaVuSans-Bold.ttf",
    }  # fmt: skip
    page.add_style_tag(content=re.sub(r"local\([^)]*\)", lambda found: f"url(/{files[found[0]]})", "".join(rules)))
    text, own = prose(), "Book " + family.split()[0]
    for cut in ("400", "700", "italic 400")[: len(rules)]:
        ours, theirs = (page.evaluate(WIDTH, [f'{cut} 1000px "{name}"', text]) for name in (own, family))
        assert theirs == pytest.approx(ours, rel=0.002), cut
    context.close()


def font_of(page, selector: str) -> set[tuple[str, bool]]:
    """The name of each font in which the words of the first of its kind are set, and whether it is the page's."""
    session = page.context.new_cdp_session(page)
    for domain in ("DOM", "CSS"):
        session.send(f"{domain}.enable")
    root = session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    found = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    return {(font["familyName"], font["isCustomFont"]) for font in found}


# A reader who waits for the fonts as long as it takes: the page's own half second would be a race with this machine.
PATIENT = """const patience = new CSSStyleSheet();
patience.replaceSync(".waiting body { animation-duration: 60s !important; }");
document.adoptedStyleSheets = [patience];"""


@contextlib.contextmanager
def first_visit(
    browser, html: Path, name: str, size: dict[str, int], script: str = ""
) -> Iterator[tuple[Page, threading.Event]]:
    """A page that nobody has opened before, and what lets its fonts come."""
    context = context_of(browser, size)
    page = context.new_page()
    for one in filter(None, (OBSERVE, script)):
        page.add_init_script(one)
    come = threading.Event()
    with served(html, fonts=come) as address:
        page.goto(f"{address}/{name}.html", wait_until="commit")
        yield page, come
        come.set()
    context.close()


def assert_own_fonts(page) -> None:
    for selector in ("h1", "section > p:not(:has(*))", "section > p em", "math mi"):
        if page.locator(selector).count():
            assert {own for _, own in font_of(page, selector)} == {True}, selector


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("name", ["book/index", "book/reference/formulas", CHAPTERS[2], CHAPTERS[4]])
def test_a_page_waits_a_moment_for_its_fonts_and_nothing_moves(browser, html, name, size):
    with first_visit(browser, html, name, size, PATIENT) as (page, come):
        wait_until(page, "() => document.readyState !== 'loading'")
        assert page.evaluate("getComputedStyle(document.body).visibility") == "hidden"
        assert not page.evaluate("window.seen.paint")
        come.set()
        page.wait_for_load_state()
        settle(page)
        page.evaluate("document.fonts.ready")
        assert_own_fonts(page)
        assert sum(page.evaluate("window.seen.shifts")) < 0.01


def test_a_page_is_read_without_its_fonts_if_they_take_long_and_with_them_when_they_come(browser, html):
    with first_visit(browser, html, CHAPTERS[4], WIDE) as (page, come):
        wait_until(page, "() => getComputedStyle(document.body).visibility === 'visible' && window.seen.paint")
        assert page.evaluate("getComputedStyle(document.body).animationDuration") == "0.5s", "so long it waited"
        assert {own for _, own in font_of(page, "h1")} == {False}
        come.set()
        page.evaluate("document.fonts.ready")
        assert_own_fonts(page)
        assert sum(page.evaluate("window.seen.shifts")) < 0.1, "some lines are broken elsewhere"


def test_a_page_whose_fonts_are_lost_is_shown(browser, http_address):
    context = context_of(browser)
    page = context.new_page()
    page.route("**/*.woff2", lambda route: route.abort())
    page.goto(f"{http_address}/book/notation.html")
    wait_until(page, "() => getComputedStyle(document.body).visibility === 'visible'")
    assert {own for _, own in font_of(page, "h1")} == {False}
    context.close()
