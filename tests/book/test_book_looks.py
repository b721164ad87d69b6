"""How the pages look: one grid, colors of the theme, signs where something goes on, paper that stays white."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from book_builder import CHAPTERS, NARROW, WIDE, context_of, settle
from PIL import Image

pytestmark = pytest.mark.timeout(300)

LARGE = {"width": 1920, "height": 1000}
ATTENTION = "chapters/03_attention"
ROPE = "chapters/04_rope_rotation"
DIALS = "chapters/deeper/D04_rope_rotation"  # a page with numbers that can be dragged
SPEED = "chapters/14_speed"


@pytest.fixture(scope="module")
def reader(browser):
    context = context_of(browser)
    yield context.new_page()
    context.close()


def visit(page, address: str, name: str, size: dict[str, int] = WIDE, theme: str = "light") -> None:
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=theme, media="screen")
    page.goto(f"{address}/{name}.html")
    settle(page)


def seen(page, **clip: float) -> np.ndarray:
    """What is painted in a part of the window: `[height, width, 3]`."""
    return np.asarray(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")).astype(int)


def edges(page, selector: str) -> tuple[float, float]:
    """Where the first of its kind begins and ends, from the left of the window."""
    box = page.locator(selector).first.bounding_box()
    return box["x"], box["x"] + box["width"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_scrollbars_have_a_color_of_the_theme_and_no_track(reader, http_address, theme):
    """Firefox paints a white track otherwise, on dark paper, too."""
    visit(reader, http_address, ATTENTION, theme=theme)
    colors = "one => getComputedStyle(one).scrollbarColor"
    for place in ("html", ".contents", "pre", ".math", ".scroll"):
        thumb, track = re.findall(r"\w+\([^)]*\)", reader.locator(place).first.evaluate(colors))
        assert track == "rgba(0, 0, 0, 0)" and float(re.findall(r"[\d.]+", thumb)[-1]) > 0.3, place
    assert reader.locator(".contents").evaluate("one => getComputedStyle(one).scrollbarWidth") == "thin"


@pytest.mark.parametrize("width", [1280, 1600, 1920])
def test_the_bar_stands_on_the_grid_of_the_page(reader, http_address, width):
    visit(reader, http_address, ATTENTION, LARGE | {"width": width})
    assert edges(reader, ".bar .home")[0] == pytest.approx(edges(reader, ".contents h2")[0], abs=2)
    icon = edges(reader, ".theme-switch .icon:visible")[1]
    wide = edges(reader, ".minimind-figure:not(.mm-opening)")[1]
    assert icon == pytest.approx(wide, abs=3)


def test_the_page_stands_in_the_middle_of_a_large_window(reader, http_address):
    visit(reader, http_address, ATTENTION, LARGE)
    left, right = edges(reader, ".contents h2")[0], edges(reader, ".minimind-figure:not(.mm-opening)")[1]
    assert left == pytest.approx(LARGE["width"] - right, abs=50)


@pytest.mark.parametrize("width", [1280, 1350, 1920])
def test_folded_code_stands_beside_the_text_and_inside_the_window(reader, http_address, width):
    visit(reader, http_address, SPEED, LARGE | {"width": width})
    text = edges(reader, "article > section > p")[1]
    beside = ".cell:not(.whole, .keep, .install, :has(.minimind-figure)) > details.code:not([open]) > summary"
    for summary in reader.locator(beside).all():
        box = summary.bounding_box()
        assert text < box["x"] and box["x"] + box["width"] <= width
    assert reader.evaluate("document.documentElement.scrollWidth") <= width


def test_two_pieces_of_folded_code_in_a_row_share_a_line(reader, http_address):
    """Where there is no room beside the text."""
    visit(reader, http_address, ATTENTION, LARGE | {"width": 1000})
    pairs = reader.locator(".cell.silent:has(> .code:not([open])) + .cell > .code > summary")
    assert pairs.count()
    for second in pairs.all():
        first = second.locator("xpath=../../preceding-sibling::*[1]/details/summary").bounding_box()
        assert first["y"] == pytest.approx(second.bounding_box()["y"], abs=2)
        assert first["x"] + first["width"] < second.bounding_box()["x"]


@pytest.mark.parametrize("kind", [".math", ".cell_output pre", ".code[open] pre", ".scroll"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_goes_on_has_a_shadow_at_that_side(reader, http_address, kind, theme):
    visit(reader, http_address, SPEED, NARROW, theme)
    scroller = reader.locator(f"article {kind}").first
    scroller.evaluate("one => { one.innerHTML = '<div style=\"width: 1000px; height: 6rem\"></div>'; }")
    scroller.evaluate("one => one.scrollIntoView({ block: 'center' })")
    box = scroller.bounding_box()

    def shaded() -> tuple[bool, bool]:
        """Whether the left and the right edge are darker, or lighter on dark paper, than the middle."""
        row = seen(reader, x=box["x"], y=box["y"] + 3, width=box["width"], height=4).sum(axis=2).mean(axis=0)
        return tuple(abs(side - row[len(row) // 2]) > 12 for side in (row[2], row[-3]))

    assert shaded() == (False, True)
    scroller.evaluate("one => one.scrollTo(one.scrollWidth, 0)")
    assert shaded() == (True, False)


def test_what_fits_has_no_shadow(reader, http_address):
    visit(reader, http_address, ATTENTION)
    formula = reader.locator(".math").first
    formula.scroll_into_view_if_needed()
    assert formula.evaluate("one => one.scrollWidth <= one.clientWidth")
    box = formula.bounding_box()
    row = seen(reader, x=box["x"], y=box["y"] + 1, width=box["width"], height=1)
    assert np.ptp(row.reshape(-1, 3), axis=0).max() <= 2


def test_a_fraction_that_has_a_line_to_itself_is_as_large_as_the_formula(reader, http_address):
    visit(reader, http_address, "book/reference/formulas")
    fractions = reader.locator(".reference-formulas math > mfrac")
    assert fractions.count() > 10
    size = "one => [one.closest('math'), one.firstElementChild].map((it) => getComputedStyle(it).fontSize)"
    for fraction in fractions.all():
        whole, part = fraction.evaluate(size)
        assert whole == part


def test_paper_stays_white(reader, http_address):
    visit(reader, http_address, ATTENTION, theme="dark")
    reader.emulate_media(media="print")
    grounds = "one => getComputedStyle(one).backgroundColor"
    for place in ("body", ".mm-fig"):
        assert reader.locator(place).first.evaluate(grounds) == "rgb(255, 255, 255)", place
    for place in ("pre", ".math", ".scroll", ".guess"):
        assert reader.locator(place).first.evaluate("one => getComputedStyle(one).boxShadow") == "none", place
    text = edges(reader, "article > section > p")
    assert max(edges(reader, ".minimind-figure:not(.mm-opening)")[1], text[1]) == pytest.approx(text[1], abs=2)


def test_a_number_to_drag_stands_between_two_arrows_in_the_color_of_its_letter(reader, http_address):
    visit(reader, http_address, DIALS)
    number = reader.get_by_role("spinbutton", name="query position")
    color = "one => getComputedStyle(one).color"
    letter = number.locator("xpath=preceding-sibling::*[1]")
    assert letter.get_attribute("data-sym") == "m" and number.evaluate(color) == letter.evaluate(color)
    for side in ("::before", "::after"):
        width, content = number.evaluate(
            f"one => ['width', 'content'].map((it) => getComputedStyle(one, '{side}')[it])"
        )
        assert float(width.removesuffix("px")) > 3 and content == '""'
    below = number.evaluate(
        "one => [getComputedStyle(one).borderBottomWidth, getComputedStyle(one).textDecorationLine]"
    )
    assert below == ["0px", "underline"], "the line is a link's, not six pixels below"


def test_a_cell_has_one_blank_line_where_its_notebook_has_two(html):
    for name in CHAPTERS:
        cells = re.findall(r"<pre>(.*?)</pre>", (Path(html) / f"{name}.html").read_text("utf-8"), re.DOTALL)
        assert not [cell for cell in cells if re.search(r"\n\n\n+\S", re.sub("<[^>]*>", "", cell))], name


def test_without_scripts_pages_with_figures_say_that_nothing_moves(browser, http_address):
    context = context_of(browser, java_script_enabled=False)
    page = context.new_page()
    for name, told in [("book/live", 1), ("book/index", 1), (ROPE, 1), ("book/notation", 0)]:
        page.goto(f"{http_address}/{name}.html")
        assert page.locator("noscript p").count() == told, name
    context.close()
