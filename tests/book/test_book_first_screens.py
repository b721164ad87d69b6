"""What a visitor sees without scrolling: a question and all its presses, places to guess from, MiniMind's road."""

import pytest
from book_builder import context_of, settle

EDITIONS = pytest.mark.parametrize("edition", ["", "zh/"], ids=["English", "Chinese"])
LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


@pytest.fixture
def visit(browser, http_address):
    """Open a page of the book in a window of a size."""
    contexts = []

    def opened(name: str, size: dict[str, int]):
        contexts.append(context_of(browser, size))
        page = contexts[-1].new_page()
        page.goto(f"{http_address}/{name}.html")
        settle(page)
        return page

    yield opened
    for one in contexts:
        one.close()


def bottom(page, selector: str) -> float:
    box = page.locator(selector).last.bounding_box()
    return box["y"] + box["height"]


@EDITIONS
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_front_page_asks_answers_and_breaks_in_the_first_screen(visit, edition, size):
    page = visit(f"{edition}book/index", size)
    ends = [bottom(page, ".gf-row")]
    page.locator(".gf-row").nth(2).click()
    for _ in range(4):  # the answer, without its head, in the other language, given back
        page.wait_for_selector(".gf-go:visible")
        ends.append(bottom(page, ".gf-presses :visible"))
        page.locator(".gf-go:visible").click(trial=True)
        if page.locator("button.gf-go:visible").count():
            page.locator("button.gf-go:visible").click()
    assert page.evaluate("scrollY") == 0 and max(ends) <= size["height"]


@EDITIONS
def test_the_front_page_has_its_title_s_size_before_the_rest_of_it_has_come(visit, html, edition):
    """A connection may bring what is below the figure much later: nothing that is read already moves then."""
    page = visit(f"{edition}book/index", PHONE)
    places = [page.locator(one).bounding_box() for one in ("h1", ".lead")]
    first, figure, _ = (html / f"{edition}book/index.html").read_text("utf-8").partition('data-figure="guess_first">')
    page.route("**/index.html", lambda route: route.fulfill(body=first + figure, content_type="text/html"))
    page.reload()
    assert [page.locator(one).bounding_box() for one in ("h1", ".lead")] == places


@EDITIONS
def test_the_live_page_asks_in_the_first_screen(visit, edition):
    page = visit(f"{edition}book/live", LAPTOP)
    places = ".minimind-figure >> nth=0 >> .ml-bar:visible"
    assert page.locator(places).count() == 3
    assert bottom(page, places) <= LAPTOP["height"]


@EDITIONS
def test_minimind_s_road_is_one_screen(visit, edition):
    page = visit(f"{edition}book/road", LAPTOP)
    assert page.locator("table.reference tbody tr").count() == 12
    assert bottom(page, "article p") <= LAPTOP["height"]
