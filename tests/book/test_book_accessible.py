"""Every page of the built book fits the screen and is accessible, in both themes and at both widths."""

import pytest
from accessible import COLORS, FEW_COLORED_WORDS_OF_CODE, ONE_WORD_OF_EACH_KIND, axe_problems
from axe_playwright_python.sync_playwright import Axe
from book_builder import NARROW, PAGES, WIDE, context_of, settle, wait_until
from browser import NO_WAITING
from browser import settle as draw


def turn(page, theme: str) -> None:
    """Give the reader's system another theme and wait until the page has followed."""
    page.emulate_media(color_scheme=theme)
    wait_until(page, "theme => document.documentElement.dataset.theme === theme", theme)


def too_wide(page) -> int:
    """Pixels by which the page is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.fixture(scope="module")
def reader(browser):
    """The page of a reader who likes it dark, with axe-core on all that it opens."""
    context = context_of(browser, WIDE, "dark")
    context.add_init_script(NO_WAITING)
    yield context.new_page()
    context.close()


def open_page(page, address: str, name: str) -> None:
    """Open a page of the book, with few words of its code in color."""
    page.goto(f"{address}/{name}.html")
    settle(page)
    page.evaluate(FEW_COLORED_WORDS_OF_CODE)
    page.evaluate(Axe().axe_script)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_in_both_themes_and_at_both_widths(reader, http_address, name):
    """Colors are the same at every width, everything else is the same in every theme."""
    reader.set_viewport_size(WIDE)
    reader.emulate_media(color_scheme="dark")
    open_page(reader, http_address, name)
    least = 5 if name == "search" else 10  # a search that nobody has typed yet has few kinds of words
    assert reader.evaluate(ONE_WORD_OF_EACH_KIND) > least
    assert not axe_problems(reader)
    assert too_wide(reader) <= 0
    turn(reader, "light")
    assert reader.evaluate(ONE_WORD_OF_EACH_KIND) > least
    assert not axe_problems(reader, only=[COLORS])
    assert too_wide(reader) <= 0
    reader.set_viewport_size(NARROW)
    draw(reader)  # what scrolls only now is made known to the keyboard a frame later
    assert not axe_problems(reader, without=[COLORS])
    assert too_wide(reader) <= 0


@pytest.fixture(scope="module")
def with_colors(reader, http_address):
    """A page whose colors are judged."""
    reader.set_viewport_size(WIDE)
    reader.emulate_media(color_scheme="light")
    open_page(reader, http_address, "chapters/04_rope_rotation")
    return reader


@pytest.mark.parametrize(
    "place",
    [".highlight .mi", "article p code", ".mm-fig button"],
    ids=["code", "inline", "figure"],
)
def test_a_bad_color_is_found_among_thousands_of_words(with_colors, place):
    style = with_colors.add_style_tag(content=f"html[data-theme] :is({place}) {{ color: #999 !important }}")
    with_colors.evaluate(ONE_WORD_OF_EACH_KIND)
    problems = axe_problems(with_colors, only=[COLORS])
    assert 1 <= len(problems) < 50
    style.evaluate("one => one.remove()")
