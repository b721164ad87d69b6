"""The built book in a real browser: whole without a network, over http and from a file, with figures that answer."""

import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from book_builder import CHAPTERS, NARROW, PAGES, context_of, settle
from browser import Watch

from tools import install_cell

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def addresses(html, http_address) -> dict[str, str]:
    return {"http": http_address, "file": html.as_uri()}


def leaves_the_book(url: str, address: str) -> bool:
    return not url.startswith((address, "blob:", "data:"))


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_pages_are_whole_without_a_network_and_without_complaint(browser, addresses, scheme):
    address = addresses[scheme]
    context = context_of(browser)
    page = context.new_page()
    watch = Watch(page)
    for name in PAGES:
        page.goto(f"{address}/{name}.html")
        settle(page)
        assert not watch.problems, f"{name}: {watch.problems}"
        assert not [url for url in watch.requests if leaves_the_book(url, address)], name
        states = page.eval_on_selector_all(".minimind-figure", "all => all.map(one => one.dataset.state)")
        assert set(states) <= {"alive"}, f"{name}: {states}"
        # Formulas keep their TeX in .math until MathJax replaces it.
        assert page.eval_on_selector_all(".math:not(:has(mjx-container))", "all => all.length") == 0, name
        assert page.locator("mjx-merror").count() == 0, name
    context.close()


FIGURES_ARE_ALIVE = """() => document.querySelector(".minimind-figure")
    && !document.querySelector(".minimind-figure:not([data-state=alive])")"""


def page_work(browser) -> float:
    """Seconds of processor time that the pages of this browser have taken so far."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return sum(process["cpuTime"] for process in processes if process["type"] == "renderer")


def work_until(browser, url, ready, refused=()) -> float:
    """What a new page with this address works until `ready(page)` returns, without the scripts that are refused."""
    context = context_of(browser)
    page = context.new_page()
    for pattern in refused:
        page.route(pattern, lambda route: route.abort())
    before = page_work(browser)
    page.goto(url, wait_until="commit")
    ready(page)
    worked = page_work(browser) - before
    context.close()
    return worked


@pytest.mark.parametrize("name", CHAPTERS)
def test_figures_are_alive_soon(browser, http_address, name):
    """A page with its figures alive has worked less than twice what it works to be read at all, without figures.

    No clock decides, since machines differ and are busy; on one that is not, this is about a second.
    """

    def read(page):
        page.wait_for_load_state("domcontentloaded")

    def alive(page):
        page.wait_for_function(FIGURES_ARE_ALIVE, polling=20)
        assert page.locator(".minimind-figure").count() >= 2, "a chapter has a figure and a quiz"

    url, shares = f"{http_address}/{name}.html", []
    for _ in range(3):  # a busy moment may fall on one of the two
        bare = work_until(browser, url, read, refused=["**/_static/figures/**"])
        shares.append(work_until(browser, url, alive) / bare)
        if shares[-1] < 2:
            break
    assert min(shares) < 2, shares


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_page_carries_the_scripts_of_its_own_figures_only(html, name):
    page = (html / f"{name}.html").read_text(encoding="utf-8")
    standing = set(re.findall(r'class="minimind-figure" data-figure="(\w+)"', page))
    loaded = set(re.findall(r'src="[./]*_static/figures/(\w+)\.js', page)) - {"figure_host"}
    assert standing and loaded == standing


def test_pages_without_figures_carry_none_of_their_scripts(html):
    assert "_static/figures/" not in (html / "book/notation.html").read_text(encoding="utf-8")


def test_every_link_inside_the_book_leads_somewhere(html):
    for name in PAGES:
        source = html / f"{name}.html"
        for target in re.findall(r'\b(?:href|src)="([^"]+)"', source.read_text(encoding="utf-8")):
            path, fragment = urldefrag(target)
            if urlsplit(target).scheme or not path:
                continue
            linked = (source.parent / unquote(path.split("?")[0])).resolve()
            assert linked.is_file(), f"{name} links to {target}"
            if fragment and linked.suffix == ".html":
                anchors = re.findall(r'\bid="([^"]+)"', linked.read_text(encoding="utf-8"))
                assert fragment in anchors, f"{name} links to {target}"


def test_first_page_of_the_folder_leads_to_the_book(browser, html):
    context = context_of(browser)
    page = context.new_page()
    page.goto((html / "index.html").as_uri())
    page.wait_for_url("**/book/index.html")
    context.close()


def test_search_finds_words_of_the_chapters(browser, http_address):
    context = context_of(browser)
    page = context.new_page()
    page.goto(f"{http_address}/search.html?q=rotation")
    page.wait_for_selector("#search-results li a")
    assert "rope_rotation" in " ".join(
        page.eval_on_selector_all("#search-results li a", "all => all.map(one => one.href)")
    )
    context.close()


def test_outputs_stand_on_no_light_panel_in_the_dark(browser, http_address):
    context = context_of(browser, theme="dark")
    page = context.new_page()
    page.goto(f"{http_address}/{CHAPTERS[0]}.html")
    settle(page)
    style = "all => all.map(one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).filter].join())"
    seen = page.eval_on_selector_all(".cell_output .text_html, .cell_output img", style)
    assert seen and set(seen) == {"rgba(0, 0, 0, 0),none"}
    context.close()


def test_the_theme_button_reaches_both_themes(browser, http_address):
    context = context_of(browser)
    page = context.new_page()
    page.goto(f"{http_address}/book/notation.html")
    seen = set()
    for _ in range(3):  # automatic, light, dark
        page.locator(".bd-header-article .theme-switch-button").click()
        seen.add(page.evaluate("document.documentElement.dataset.theme"))
    assert seen == {"light", "dark"}
    context.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_figures_answer_to_keyboard_mouse_and_touch(browser, http_address, name):
    """Every slider on the page: an arrow key, a click and a tap each move it."""
    context = context_of(browser, NARROW, has_touch=True)
    page = context.new_page()
    watch = Watch(page)
    page.goto(f"{http_address}/{name}.html")
    settle(page)
    sliders = page.locator(".minimind-figure input[type=range]:visible")
    assert sliders.count() > 0
    for index in range(sliders.count()):
        slider = sliders.nth(index)
        slider.scroll_into_view_if_needed()
        size = slider.bounding_box()
        seen = [slider.input_value()]
        slider.tap(position={"x": size["width"] * 0.2, "y": size["height"] / 2})
        seen.append(slider.input_value())
        slider.click(position={"x": size["width"] * 0.8, "y": size["height"] / 2})
        seen.append(slider.input_value())
        slider.press("ArrowLeft")
        seen.append(slider.input_value())
        assert seen[1] != seen[2] != seen[3], f"slider {index} of {name}: {seen}"
    assert not watch.problems
    context.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_launch_and_download_buttons_lead_to_the_chapter(browser, http_address, html, name):
    repository = install_cell.repository_url().removeprefix("https://github.com/")
    context = context_of(browser, NARROW)
    page = context.new_page()
    page.goto(f"{http_address}/{name}.html")
    page.locator(".dropdown-launch-buttons > button").click()
    colab = page.locator(".dropdown-launch-buttons").get_by_role("link", name="Colab")
    colab.wait_for()  # until it is seen
    assert colab.get_attribute("href") == (
        f"https://colab.research.google.com/github/{repository}/blob/main/{name}.ipynb"
    )
    assert (ROOT / f"{name}.ipynb").is_file()
    page.locator(".dropdown-download-buttons > button").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Notebook, package inside").click()
    stem = name.removeprefix("chapters/")
    assert download.value.suggested_filename == f"{stem}.ipynb"
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    stored = json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))
    [new], [old] = ([cell for cell in one["cells"] if cell["id"] == install_cell.CELL_ID] for one in (saved, stored))
    assert "WHEEL = " in "".join(new["source"])
    new["source"], new["metadata"] = old["source"], old["metadata"]
    assert saved == stored
    context.close()


def test_only_chapters_are_offered_as_notebooks(html):
    written = {path.stem for path in (html / "notebooks").iterdir()}
    assert written == {name.removeprefix("chapters/") for name in CHAPTERS}
    assert "package inside" not in (html / "book/notation.html").read_text(encoding="utf-8")
