"""The built book in a real browser: whole without a network, over http and from a file, with figures that answer."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from book_builder import (
    CHAPTERS,
    LESSONS,
    MOST_SHIFT,
    NARROW,
    NOTEBOOKS,
    OBSERVE,
    PAGES,
    context_of,
    files_of,
    settle,
    wait_until,
)
from browser import ALIVE, FIGURE, Watch
from cases import long_after
from playwright.sync_api import Page, Route

from minimind_edu.web import host
from tools import install_cell
from tools.chapters import chapters
from tools.length import check_length
from tools.self_contained import with_addresses

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.always


# Chapters first: what is asked of chapters only and of all pages is then asked of the same visit.
DIALS = "chapters/deeper/D04_rope_rotation"  # a page with numbers that can be dragged
MOST_HEIGHT = 12_000  # pixels of a lesson, 1280 wide
OTHERS = sorted((name for name in PAGES if name not in CHAPTERS), key=lambda name: "/deeper/" in name)
VISITED = [*CHAPTERS, *OTHERS]
DEEPER = sum("/deeper/" in name for name in OTHERS)  # the last ones: with figures of their lessons, so long


STILL = ".mm-opening .mm-still .mm-fig:visible"


@dataclass
class Visit:
    """A page of the book that a reader has opened: tests ask it one after the other, and leave its figures changed."""

    name: str
    address: str
    page: Page
    watch: Watch
    headers: dict[str, str]
    still: dict[str, float]  # where the figure of the opening was before any script ran; {} where none is

    @classmethod
    def to(cls, name: str, address: str, page: Page, watch: Watch) -> "Visit":
        """Open the page `name`, but hold its scripts back until it is painted, and the still measured."""
        page.goto("about:blank")  # what the page before still asks for is not this one's
        watch.problems.clear()
        watch.requests.clear()
        held: list[Route] = []
        page.route("**/*.js", lambda route: held.append(route))
        question = "?q=rotation" if name == "search" else ""
        response = page.goto(f"{address}/{name}.html{question}", wait_until="commit")
        if name != "search":  # whose scripts stand before its text
            page.wait_for_selector("footer.foot")
            page.evaluate("document.fonts.ready")
            wait_until(page, "() => window.seen.paint")
        still = {}
        if name in CHAPTERS:
            page.wait_for_selector(STILL)
            still = page.locator(STILL).bounding_box()
        for route in held:
            route.continue_()
        page.unroute("**/*.js")
        page.wait_for_load_state("load")
        settle(page)
        return cls(name, address, page, watch, response.all_headers() if response else {}, still)

    def assert_whole(self, html: Path) -> None:
        """No complaint, nothing fetched but the files that the page names, every figure alive, and nothing moved.

        A search looks into the pages that it finds, and what it finds pushes the foot of the page down.
        """
        fetched = {url for url in self.watch.requests if not url.startswith("data:")}
        if self.name == "search":
            self.page.wait_for_selector("#search-results li a")
            assert all(url.startswith(self.address) for url in fetched)
        else:
            named = {f"{self.address}/{path.relative_to(html)}" for path in files_of(html, self.name)}
            # not how many: a script that the page before had too may come from memory, which nobody tells
            assert {f"{self.address}/{self.name}.html"} <= fetched <= named
            assert sum(self.page.evaluate("window.seen.shifts")) < MOST_SHIFT
        assert not self.watch.problems
        states = self.page.eval_on_selector_all(FIGURE, "all => all.map(one => one.dataset.state)")
        assert set(states) <= {host.ALIVE}

    def assert_begins_with_its_figure(self) -> None:
        """In the first screen, the living figure where its still was, after few Tab stops."""
        living = self.page.locator(f".mm-opening{ALIVE} .mm-fig").bounding_box()
        for box in (self.still, living):
            assert box["y"] + box["height"] <= self.page.viewport_size["height"]
        assert abs(self.still["height"] - living["height"]) <= 4
        stops = 0
        while not self.page.evaluate("Boolean(document.activeElement.closest('.mm-opening'))"):
            self.page.keyboard.press("Tab")
            stops += 1
            assert stops <= 16, "too many Tab stops before the first figure"


def on_a_page(browser, *args, **options) -> Iterator[tuple[Page, Watch]]:
    context = context_of(browser, *args, **options)
    context.add_init_script(OBSERVE)
    page = context.new_page()
    yield page, Watch(page)
    context.close()


@pytest.fixture(scope="module")
def desktop(browser):
    yield from on_a_page(browser)


@pytest.fixture(scope="module")
def phone(browser):
    yield from on_a_page(browser, NARROW, has_touch=True)


@pytest.fixture(scope="module", params=long_after(len(VISITED) - DEEPER, VISITED))
def on_desktop(request, desktop, html) -> Visit:
    """A page from a folder."""
    return Visit.to(request.param, html.as_uri(), *desktop)


@pytest.fixture(scope="module", params=long_after(0, VISITED))
def on_phone(request, phone, http_address) -> Visit:
    """A page from a server with a strict content security policy."""
    return Visit.to(request.param, http_address, *phone)


CHAPTERS_ON_DESKTOP = pytest.mark.parametrize("on_desktop", CHAPTERS, indirect=True)
WITHOUT_SLIDERS = {
    "chapters/01_whole_model",
    "chapters/03_attention",
    "chapters/07_kv_cache",
    "chapters/12_generation",
    "chapters/13_training_in_minutes",
    "chapters/16_a_real_text",
}  # their figures have buttons and choices
CHAPTERS_ON_PHONE = pytest.mark.parametrize("on_phone", long_after(0, CHAPTERS), indirect=True)


@pytest.fixture
def addresses(html, http_address) -> dict[str, str]:
    return {"http": http_address, "file": html.as_uri()}


@pytest.fixture
def page(desktop, http_address):
    """The page of a reader who comes for the first time."""
    page, _ = desktop
    page.goto(f"{http_address}/_static/logo.svg")  # the light way to what is remembered for the address
    page.evaluate("localStorage.clear()")
    return page


def text_of(html: Path, name: str) -> str:
    return (html / f"{name}.html").read_text(encoding="utf-8")


def test_a_page_is_whole_and_without_complaint_from_a_folder(on_desktop, html):
    on_desktop.assert_whole(html)


@pytest.mark.filterwarnings("default::tools.length.Full")
@pytest.mark.parametrize("on_desktop", LESSONS, indirect=True)
def test_a_lesson_is_a_page_that_one_finishes(on_desktop):
    """With its code folded, as a reader meets it."""
    height = on_desktop.page.evaluate("document.documentElement.scrollHeight")
    check_length(on_desktop.name, height, MOST_HEIGHT, "pixels from top to bottom")


@CHAPTERS_ON_DESKTOP
def test_a_chapter_opens_with_its_figure_in_the_first_screen(on_desktop):
    on_desktop.assert_begins_with_its_figure()


def test_a_page_is_whole_and_without_complaint_under_a_strict_content_security_policy(on_phone, html):
    assert "default-src 'none'" in on_phone.headers["content-security-policy"]
    on_phone.assert_whole(html)


@CHAPTERS_ON_PHONE
def test_a_chapter_opens_with_its_figure_in_the_first_screen_of_a_phone(on_phone):
    on_phone.assert_begins_with_its_figure()


@CHAPTERS_ON_PHONE
def test_links_flow_with_their_sentences_on_a_phone(on_phone):
    flows = "all => all.map((one) => getComputedStyle(one).display)"
    numbers_to_drag = {"inline-block"}
    assert set(on_phone.page.eval_on_selector_all("article p a.reference", flows)) <= {"inline"} | numbers_to_drag


@CHAPTERS_ON_PHONE
def test_a_page_fetches_the_scripts_of_its_own_figures_only(on_phone, html):
    fetched = {Path(urlsplit(url).path).stem for url in on_phone.watch.requests if "/figures/" in url}
    assert fetched - {"figure_host"} == set(re.findall(r'<[^<>]* data-figure="(\w+)"', text_of(html, on_phone.name)))


@CHAPTERS_ON_PHONE
def test_figures_answer_to_keyboard_mouse_and_touch(on_phone):
    """Every slider on the page: an arrow key, a click and a tap each move it."""
    page = on_phone.page
    page.eval_on_selector_all(f"{FIGURE} details", "all => all.forEach((one) => (one.open = true))")
    sliders = page.query_selector_all(f"{FIGURE} input[type=range]:visible")
    assert sliders or on_phone.name in WITHOUT_SLIDERS
    for index, slider in enumerate(sliders):
        slider.evaluate("one => one.scrollIntoView({ block: 'center' })")
        box = slider.bounding_box()
        y = box["y"] + box["height"] / 2
        seen = []
        for act, *args in (
            (page.touchscreen.tap, box["x"] + box["width"] * 0.2, y),
            (page.mouse.click, box["x"] + box["width"] * 0.8, y),
            (page.keyboard.press, "ArrowLeft"),
        ):
            act(*args)
            seen.append(slider.input_value())
        assert seen[0] != seen[1] != seen[2], f"slider {index}: {seen}"
    assert not on_phone.watch.problems


@CHAPTERS_ON_PHONE
def test_a_prediction_is_chosen_answered_and_remembered(on_phone):
    page = on_phone.page
    quote = page.locator("blockquote:has(.guess)").first
    guesses = quote.locator(".guess")
    assert guesses.count() >= 2
    assert quote.locator("details").evaluate("one => one.open") is False
    guesses.first.click()
    assert quote.locator("details").evaluate("one => one.open")
    assert quote.locator(".guess[data-right]").count() == 1, "one of the guesses is the right one"
    verdict = quote.locator(".verdict").inner_text()
    assert verdict
    page.reload()
    assert quote.locator(".verdict").inner_text() == verdict
    assert guesses.first.get_attribute("aria-pressed") == "true"


def test_a_wrong_guess_gets_its_own_sentence(page, http_address):
    page.goto(f"{http_address}/chapters/01_whole_model.html")
    quote = page.locator("blockquote:has(.guess)").first
    said = []
    for guess in quote.locator(".guess").all():
        guess.click()
        said.append(quote.locator(".verdict").inner_text())
    assert len(set(said)) == len(said), "each guess is answered in its own words"
    told = [one for one in said if one.startswith("Not quite. ")]
    assert len(told) == len(said) - 1
    assert quote.locator("details li").count() == 0


@CHAPTERS_ON_PHONE
def test_run_leads_to_colab_and_to_the_notebook_with_the_package_inside(on_phone):
    page, name = on_phone.page, on_phone.name
    repository = install_cell.repository_url().removeprefix("https://github.com/")
    page.locator(".run > summary").click()
    assert page.get_by_role("link", name="Open in Colab").get_attribute("href") == (
        f"https://colab.research.google.com/github/{repository}/blob/main/{name}.ipynb"
    )
    assert (ROOT / f"{name}.ipynb").is_file()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download: a notebook that needs no network").click()
    stem = Path(name).name
    assert download.value.suggested_filename == f"{stem}.ipynb"
    saved = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    stored = json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))
    [new], [old] = ([cell for cell in one["cells"] if cell["id"] == install_cell.CELL_ID] for one in (saved, stored))
    assert "WHEEL = " in "".join(new["source"])
    new["source"], new["metadata"] = old["source"], old["metadata"]
    for cell in stored["cells"]:  # alone, it leads into the published book
        if cell["cell_type"] == "markdown":
            cell["source"] = with_addresses("".join(cell["source"])).splitlines(keepends=True)
    assert saved == stored


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_leads_to_the_living_page_with_its_story(html, name):
    """That each story opens there is seen in test_figure_minimind_live.py."""
    place = text_of(html, name).split('id="where-this-lives-in-minimind"')[1].split("</section>")[0]
    [address] = re.findall(r'href="(\.\./book/live\.html#story=[^"]+)"', place)
    stored = (ROOT / f"{name}.ipynb").read_text(encoding="utf-8").split("## Where this lives in MiniMind")[-1]
    [link] = re.findall(r"\]\(\.\./book/live\.md(#story=.+?)\)", stored)
    assert unquote(unescape(urlsplit(address).fragment)) == link.removeprefix("#")


def test_no_page_loads_what_the_shell_replaced(html):
    """No icon font, no formula script, no style framework: a page has its own script and those of its figures."""
    for name in PAGES:
        text = text_of(html, name)
        scripts = [Path(urlsplit(source).path) for source in re.findall(r'<script[^>]*src="([^"]+)"', text)]
        foreign = [path.name for path in scripts if path.name != "shell.js" and path.parent.name != "figures"]
        assert foreign == [] or name == "search", (name, foreign)
        assert "<link rel=" in text and 'rel="stylesheet"' not in text, name
    written = {path.name for path in (html / "_static").iterdir()}
    assert not [name for name in written if re.search("mathjax|fontawesome|bootstrap|pydata|sphinx-book", name)]


def test_pages_without_figures_carry_none_of_their_scripts(html):
    assert "_static/figures/" not in text_of(html, "book/notation")


@cache
def anchors_of(page):
    return set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


def test_every_link_inside_the_book_leads_somewhere(html):
    for name in [*PAGES, *(f"zh/{page}" for page in PAGES)]:
        source = html / f"{name}.html"
        for target in re.findall(r'\b(?:href|src)="([^"]+)"', source.read_text(encoding="utf-8")):
            path, fragment = urldefrag(target)
            if urlsplit(target).scheme or not path:
                continue
            linked = (source.parent / unquote(path.split("?")[0])).resolve()
            assert linked.is_file(), f"{name} links to {target}"
            # levels of the map, stories, texts of an own model and poems: test_inside_address.py and its like read them
            written = fragment.startswith(("map/", "story=", "ids=", "begin=", "rhyme=", "form="))
            if fragment and linked.suffix == ".html" and not written:
                assert fragment in anchors_of(linked), f"{name} links to {target}"


def test_the_word_that_begins_every_text_strikes_nothing_out(html):
    """In a text without backticks `<s>` is HTML, and whatever follows it on the page would be crossed out."""
    for name in [*PAGES, *(f"zh/{page}" for page in PAGES)]:
        assert "<s>" not in text_of(html, name), name


def test_first_page_of_the_folder_leads_to_the_book(page, html):
    page.goto((html / "index.html").as_uri())
    page.wait_for_url("**/book/index.html")


def test_the_wheel_that_the_first_cells_install_is_published_with_the_pages(html):
    """Once, in the folder of the English edition: a Chinese notebook carries it."""
    wheels = [path.relative_to(html).as_posix() for path in html.rglob("*.whl")]
    assert wheels == [install_cell.wheel_path()]
    for chapter in NOTEBOOKS:
        cells = json.loads((ROOT / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
        [first] = ["".join(cell["source"]) for cell in cells if cell["id"] == install_cell.CELL_ID]
        [address] = re.findall(r"%pip install --quiet (\S+)", first)
        assert address == f"{install_cell.book_url()}{wheels[0]}"


def test_the_strip_of_the_front_page_fills_as_chapters_are_read(page, http_address):
    """Kept in this browser; a chapter counts when its summary has been in sight, and only once."""
    read = "() => [document.querySelector('.read-so-far').textContent, " + (
        "document.querySelector('.mp-face [data-part=attention]').style.getPropertyValue('--read')]"
    )
    page.goto(f"{http_address}/book/index.html")
    assert not page.locator(".mp-face").is_visible(), "nobody has read anything yet"
    for visit in (1, 2):
        page.goto(f"{http_address}/chapters/03_attention.html")
        assert "03_attention" not in (page.evaluate("() => localStorage.getItem('chapters')") or "") or visit == 2
        page.evaluate("() => document.getElementById('in-short').scrollIntoView()")
        wait_until(page, "() => localStorage.getItem('chapters')?.includes('03_attention')")
    page.goto(f"{http_address}/book/index.html")
    assert page.evaluate(read) == [f"1 of {len(chapters())} chapters read; only this browser knows.", "20%"]
    assert page.locator(".mp-face").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_of_the_system_is_there_before_any_script(page, http_address, theme):
    """Without scripts the colors are there, too: those of the page, and those of a figure."""
    page.emulate_media(color_scheme=theme)
    page.route("**/*.js", lambda route: route.abort())
    page.goto(f"{http_address}/{CHAPTERS[0]}.html")
    page.evaluate("document.documentElement.removeAttribute('data-theme')")  # what the head's script has set
    for place in ("body", ".mm-opening .mm-fig:visible"):
        color = page.locator(place).first.evaluate("one => getComputedStyle(one).backgroundColor")
        red = int(re.findall(r"\d+", color)[0])
        assert red > 200 if theme == "light" else red < 60, (place, color)
    page.unroute("**/*.js")
    page.emulate_media(color_scheme="light")


def test_the_theme_button_reaches_all_modes_and_the_choice_is_kept(page, http_address):
    page.goto(f"{http_address}/book/notation.html")
    seen = []
    for _ in range(3):
        page.locator(".theme-switch").click()
        seen.append(page.evaluate("[document.documentElement.dataset.mode, document.documentElement.dataset.theme]"))
    assert {mode for mode, _ in seen} == {"auto", "light", "dark"} and {theme for _, theme in seen} == {"light", "dark"}
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        page.locator(".theme-switch").click()
    page.goto(f"{http_address}/book/how_to_read.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def open_code(page) -> list[bool]:
    return page.eval_on_selector_all("details.code", "all => all.map(one => one.open)")


def test_reading_folds_code_and_the_switch_opens_all_of_it_and_is_remembered(page, http_address):
    page.goto(f"{http_address}/{CHAPTERS[0]}.html")
    reading = open_code(page)
    assert not all(reading) and len(reading) > 15
    page.get_by_role("button", name="Code", exact=True).click()
    assert all(open_code(page))
    page.goto(f"{http_address}/{CHAPTERS[1]}.html")
    assert all(open_code(page))
    page.get_by_role("button", name="Read", exact=True).click()
    assert not all(open_code(page))
    page.goto(f"{http_address}/{CHAPTERS[0]}.html")
    assert open_code(page) == reading


def test_the_switch_keeps_what_is_being_read_where_it_is(page, http_address):
    page.goto(f"{http_address}/{CHAPTERS[1]}.html")
    settle(page)
    heading = page.locator("article h2").nth(4)
    heading.evaluate("one => scrollTo(0, one.getBoundingClientRect().top + scrollY - 200)")
    before = heading.bounding_box()["y"]
    box = page.get_by_role("button", name="Code", exact=True).bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + 5)  # a locator's own click would scroll to what sticks at the top
    wait_until(page, "() => document.documentElement.style.overflowAnchor === ''")  # the folds have opened
    assert abs(heading.bounding_box()["y"] - before) < 40


def test_without_scripts_folds_open_and_figures_are_drawn(browser, http_address):
    context = context_of(browser, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{http_address}/{CHAPTERS[1]}.html")
    fold = page.locator("details.code:not([open])").nth(3).element_handle()
    fold.query_selector("summary").click()
    assert fold.query_selector("pre").is_visible()
    stills = page.locator(f'{FIGURE}:not([data-figure="quiz"]) .mm-still')
    assert stills.count() >= 2
    assert all(stills.nth(i).locator(".mm-fig:visible svg").count() for i in range(stills.count()))
    assert page.locator(".theme-switch, .view").first.is_hidden()
    context.close()


def test_the_contents_follow_the_reader(page, http_address):
    page.goto(f"{http_address}/{CHAPTERS[0]}.html")
    settle(page)
    for index in (1, 3):
        heading = page.locator("article h2").nth(index)
        heading.evaluate("one => scrollTo(0, one.getBoundingClientRect().top + scrollY - 180)")
        current = page.locator(".sections a[aria-current=true]")
        current.wait_for()
        wait_until(
            page,
            "([selector, words]) => document.querySelector(selector)?.textContent === words",
            [".sections a[aria-current=true]", heading.inner_text().removesuffix("#").strip()],
        )


def test_copied_formulas_are_their_tex(page, http_address):
    page.goto(f"{http_address}/chapters/03_attention.html")
    copied = page.evaluate(
        """() => {
            const formula = document.querySelector("article p math[alttext]");
            const range = document.createRange();
            range.selectNode(formula.closest("p"));
            getSelection().removeAllRanges();
            getSelection().addRange(range);
            const data = new DataTransfer();
            const event = new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true });
            formula.dispatchEvent(event);
            return [data.getData("text/plain"), formula.getAttribute("alttext")];
        }"""
    )
    assert copied[1] and f"${copied[1]}$" in copied[0]


def test_letters_that_stand_for_the_same_light_up_in_text_and_figure(page, http_address):
    page.goto(f"{http_address}/chapters/04_rope_rotation.html")
    settle(page)
    letter = page.locator('article p [data-sym="q"]').first
    letter.hover()
    lit = page.eval_on_selector_all(".mm-lit", "all => all.map(one => [one.dataset.sym, !!one.closest('.mm-fig')])")
    assert {name for name, _ in lit} == {"q"} and {inside for _, inside in lit} == {True, False}
    page.mouse.move(0, 0)
    assert page.locator(".mm-lit").count() == 0
    in_figure = page.locator('.mm-opening .mm-fig [data-sym="k"]').first
    in_figure.dispatch_event("pointerover")
    assert page.locator('article p [data-sym="k"].mm-lit').count() > 0


def moved(page, figure, by: int) -> None:
    slider = figure.locator("input[type=range]:visible").first
    slider.focus()
    for _ in range(by):
        slider.press("ArrowRight")


def keep_link(figure) -> None:
    """Press what puts the address of a figure's state where it can be copied."""
    keeper = figure.locator(".mm-keep")
    keeper.locator("summary").click()
    keeper.get_by_role("button", name=re.compile("Link|链接")).click()
    assert keeper.locator("button").all_text_contents()[:2] == ["SVG", "PNG"]
    fonts = [
        part.evaluate("(node) => getComputedStyle(node).fontFamily") for part in (keeper, figure.locator(".mm-fig"))
    ]
    assert fonts[0] == fonts[1]


# What is drawn and said, without the names that are made anew each time.
SHOWN = """(figure) => {
    const copy = figure.querySelector(".mm-fig").cloneNode(true);
    copy.querySelector(".mm-more")?.remove();
    return copy.innerHTML.replace(/mm-\\w{8}/g, "");
}"""


@pytest.mark.parametrize("over", long_after(1, ["http", "file"]))
@pytest.mark.parametrize(
    ("name", "place", "values", "left"),
    [
        (
            "book/beyond_one_machine",
            "#figure-1",
            {"kind": "dpo", "batch": 64, "half": True, "card": 24},
            {"length": 64},
        ),
        ("zh/book/beyond_one_machine", "#figure-1", {"kind": "serve", "length": 2048}, {"batch": 1}),
        ("chapters/04_rope_rotation", ".mm-opening", {"back": 3}, {"back": 5}),
        ("chapters/deeper/D06_gqa_shapes", "[data-figure=head_wiring]", {"num_kv_heads": 1}, {"order": "tiled"}),
    ],
)
def test_the_link_of_a_figure_leads_back_to_its_state(browser, html, http_address, name, place, values, left, over):
    """Whatever somebody has left there: what the address leaves out is as the page has it."""
    address = f"{http_address}/{name}.html" if over == "http" else (html / f"{name}.html").as_uri()
    context = context_of(browser)
    page = context.new_page()
    page.goto(address)
    settle(page)
    figure = page.locator(place).first
    other = figure.evaluate(SHOWN)
    figure.evaluate(
        "(one, [event, detail]) => one.dispatchEvent(new CustomEvent(event, { detail }))", [host.SET, values]
    )
    shown = figure.evaluate(SHOWN)
    assert shown != other
    keep_link(figure)
    link = page.evaluate("location.href")
    assert link.startswith(f"{address}#{figure.get_attribute('id')}?") and len(link.split("&")) == len(values)
    figure.evaluate("(one, [event, detail]) => one.dispatchEvent(new CustomEvent(event, { detail }))", [host.SET, left])
    [name_left] = left
    wait_until(page, f"() => localStorage.getItem('figures')?.includes('{name_left}')")
    page.goto("about:blank")
    page.goto(link)
    settle(page)
    assert page.locator(place).first.evaluate(SHOWN) == shown
    context.close()


def test_the_map_and_the_living_page_hand_on_the_address_that_they_keep(page, http_address):
    page.goto(f"{http_address}/book/index.html")
    settle(page)
    level_map = page.locator('[data-figure="model_map"]')
    set_level = "(one, event) => one.dispatchEvent(new CustomEvent(event, { detail: { level: 2 } }))"
    start = level_map.inner_text()
    level_map.evaluate(set_level, host.SET)
    keep_link(level_map)
    level = level_map.locator(".mp-steps").inner_html()
    found = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(found)
    settle(page)
    assert level_map.locator(".mp-steps").inner_html() == level and level_map.inner_text() != start
    page.goto(f"{http_address}/book/live.html")
    settle(page)
    live = page.locator('[data-figure="minimind_live"]').first
    live.get_by_role("button", name="Who has the ball?").click()
    keep_link(live)
    found = page.evaluate("location.href")
    story = live.locator(".mm-fig").inner_text()
    assert "#story=" in found and "ball" in found
    page.goto("about:blank")
    page.goto(found)
    settle(page)
    told = [text.split("block 1")[0] for text in (story, live.locator(".mm-fig").inner_text())]
    assert told[0] == told[1] and "ball" in told[0]


def test_a_figure_is_as_it_was_left_and_can_be_handed_on_and_reset(browser, page, http_address):
    address = f"{http_address}/chapters/deeper/D06_gqa_shapes.html"
    page.goto(address)
    settle(page)
    figure = page.locator(f"{FIGURE}:has(.mm-more)").first
    shown = "one => one.querySelector('.mm-stage').textContent"
    start = figure.evaluate(shown)
    moved(page, figure, 1)
    left = figure.evaluate(shown)
    assert left != start
    wait_until(page, "() => localStorage.getItem('figures')")  # it is written when the hand rests
    page.goto(address)
    settle(page)
    assert figure.evaluate(shown) == left
    figure.evaluate("one => one.querySelectorAll('.mm-more').forEach((fold) => (fold.open = true))")
    keep_link(figure)
    handed_on = page.evaluate("location.href")
    figure.get_by_role("button", name="Back to the start").click()
    assert figure.evaluate(shown) == start
    context = context_of(browser)  # somebody else
    page = context.new_page()
    page.goto(handed_on)
    settle(page)
    other = page.locator(f"{FIGURE}:has(.mm-more)").first
    assert other.evaluate(shown) == left
    context.close()


def test_a_number_in_a_sentence_can_be_dragged_and_follows_the_figure(page, http_address):
    page.goto(f"{http_address}/{DIALS}.html")
    settle(page)
    number = page.get_by_role("spinbutton", name="query position")
    number.scroll_into_view_if_needed()
    box = number.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 84, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert number.inner_text() == "18"
    number.press("ArrowLeft")
    assert number.inner_text() == "17"
    figures = page.locator(f'{FIGURE}[data-figure="rotation_dials"]').all()
    assert sum("17" in figure.inner_text() for figure in figures) == 1, "only the nearest one is set"
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    assert number.inner_text() == "63" == number.get_attribute("aria-valuemax")


def test_an_address_with_nonsense_leaves_a_figure_as_it_is(page, http_address):
    watch = Watch(page)
    address = f"{http_address}/{DIALS}.html"
    page.goto(address)
    place = page.locator('[data-figure="rotation_dials"]').first.get_attribute("id")
    page.goto("about:blank")
    page.goto(f"{address}#{place}?query_position=here&query=[1]&key=%7B&nothing=1")
    settle(page)
    assert "m = 8, n = 5" in page.locator(f"#{place}").inner_text() and not watch.problems
    page.evaluate("localStorage.setItem('figures', '{{'); localStorage.setItem('predictions', '7')")
    page.goto(f"{address}?again")
    settle(page)
    assert "m = 8, n = 5" in page.locator(f"#{place}").inner_text() and not watch.problems


BROKEN = ["#story=%E0%A4%A", "#%", "#figure-1?silent=1e9&model=-5", "#figure-1?stored={}&shows=[9,9]&reader=%E0%A4"]


@pytest.mark.parametrize("rest", BROKEN)
def test_an_address_that_was_cut_or_made_up_leaves_the_page_alive(page, http_address, rest):
    watch = Watch(page)
    page.goto(f"{http_address}/chapters/03_attention.html{rest}")
    settle(page)
    page.locator(".guess").first.click()
    assert page.locator(".guess[aria-pressed=true]").count() == 1
    assert not watch.problems


def test_what_another_page_has_stored_leaves_the_page_alive(page, http_address):
    """Pages of one address share their store, and may use the same names."""
    address = f"{http_address}/chapters/03_attention.html"
    page.goto(address)
    page.evaluate(
        """() => {
            const here = location.pathname.split("/").slice(-2).join("/");
            const wild = { silent: 1e9, model: -5, shows: "no", stored: {}, __proto__: null, map_href: "javascript:0" };
            localStorage.setItem("figures", JSON.stringify({ [`${here}#figure-1`]: wild, [`${here}#figure-2`]: 3 }));
            localStorage.setItem("predictions", JSON.stringify({ [`${here}#0`]: "length" }));
            localStorage.setItem("view", "nonsense");
            localStorage.setItem("mode", "{}");
            localStorage.setItem("minimind-story", "[]");
        }"""
    )
    watch = Watch(page)
    page.goto(f"{address}?again")
    settle(page)
    page.locator(".guess").first.click()
    assert page.locator(".guess[aria-pressed=true]").count() == 1
    assert not watch.problems


@pytest.mark.parametrize("over", ["http", "file"])
def test_a_page_runs_no_script_but_its_own(browser, addresses, over):
    """Not even one that got into it: its policy stands in the page, so it holds on any server, and from a folder."""
    context = context_of(browser)
    page = context.new_page()
    page.goto(f"{addresses[over]}/chapters/03_attention.html")
    settle(page)
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            const link = Object.assign(document.createElement("a"), { href: "javascript:void(window.ran = true)" });
            document.body.append(script, link);
            link.click();
        }"""
    )
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_what_it_may_run_and_fetch(html, name):
    """Its own files, and one script in it, by its hash; nothing from elsewhere."""
    text = text_of(html, name)
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    [script] = re.findall(r"<script>(.*?)</script>", text)
    assert text.index(policy) < text.index(script)
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    sources = {source for rule in policy.split(";") for source in rule.split()[1:] if not source.startswith("'sha256-")}
    assert sources == {"'none'", "'self'", "file:", "data:", "blob:", "'unsafe-inline'"}


@pytest.mark.parametrize("name", CHAPTERS)
def test_an_exercise_shows_no_dead_output(html, name):
    text = text_of(html, name)
    assert "not attempted yet" not in text and text.count('class="not-run"') >= (2 if name in LESSONS else 3)


def test_only_chapters_are_offered_as_notebooks(html):
    written = {path.stem for path in (html / "notebooks").iterdir()}
    assert written == {Path(name).name for name in NOTEBOOKS}
    assert "needs no network" not in text_of(html, "book/notation")


@pytest.mark.parametrize("name", PAGES)
def test_a_shared_link_says_what_the_page_is(html, name):
    text = text_of(html, name)
    tags = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', text))
    assert tags["og:title"] and (html / "_static" / tags["og:image"].rsplit("/", 1)[-1]).is_file()
    assert tags["og:image"].startswith("https://")
    assert name == "search" or len(tags["description"]) > 40
