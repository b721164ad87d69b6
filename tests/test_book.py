"""The built book in a real browser: whole without a network, over http and from a file, with figures that answer."""

import base64
import hashlib
import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from book_builder import CHAPTERS, NARROW, PAGES, WIDE, context_of, settle
from browser import ALIVE, FIGURE, Watch

from minimind_edu.figures import host
from tools import install_cell

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def addresses(html, http_address) -> dict[str, str]:
    return {"http": http_address, "file": html.as_uri()}


@pytest.fixture
def page(browser):
    context = context_of(browser)
    yield context.new_page()
    context.close()


def text_of(html: Path, name: str) -> str:
    return (html / f"{name}.html").read_text(encoding="utf-8")


def look_at_all(page, address: str) -> None:
    """Open every page; none complains, none leaves the book, and every figure is alive."""
    watch = Watch(page)
    for name in PAGES:
        page.goto(f"{address}/{name}.html" + ("?q=rotation" if name == "search" else ""))
        page.locator(f"{FIGURE}:not([data-state])").first.wait_for(state="detached")
        if name == "search":
            page.wait_for_selector("#search-results li a")
        assert not watch.problems, f"{name}: {watch.problems}"
        assert not [url for url in watch.requests if not url.startswith((address, "data:"))], name
        states = page.eval_on_selector_all(FIGURE, "all => all.map(one => one.dataset.state)")
        assert set(states) <= {host.ALIVE}, f"{name}: {states}"


def test_pages_are_whole_and_without_complaint_from_a_folder(page, addresses):
    look_at_all(page, addresses["file"])


def content_security_policy(page: str) -> str:
    """A strict policy: scripts of the book's own files and the one of the head, by its hash; nothing from elsewhere."""
    [script] = re.findall(r"<script>(.*?)</script>", page)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "object-src 'none'; frame-ancestors 'none'"
    )


def test_pages_are_whole_and_without_complaint_under_a_strict_content_security_policy(http_address, page):
    def answer(route):
        response = route.fetch()
        headers = dict(response.headers)
        if "html" in headers.get("content-type", ""):
            headers["content-security-policy"] = content_security_policy(response.text())
        route.fulfill(response=response, headers=headers)

    page.route("**/*", answer)
    look_at_all(page, http_address)
    page.unroute_all(behavior="ignoreErrors")


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


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_opens_with_its_figure_in_the_first_screen(browser, http_address, name):
    """On a desktop and on a phone, before any script has run and after; nothing above it takes many Tab stops."""
    for viewport in (WIDE, NARROW):
        context = context_of(browser, viewport)
        page = context.new_page()
        page.route("**/*.js", lambda route: route.abort())
        page.goto(f"{http_address}/{name}.html")
        seen = [page.locator(".mm-opening .mm-still .mm-fig:visible").bounding_box()]
        page.unroute("**/*.js")
        page.goto(f"{http_address}/{name}.html")
        page.wait_for_selector(f".mm-opening{ALIVE}")
        seen.append(page.locator(".mm-opening .mm-fig").bounding_box())
        for box in seen:
            assert box["y"] + box["height"] <= viewport["height"], (viewport, seen)
        assert abs(seen[0]["height"] - seen[1]["height"]) <= 4, "the living figure takes the place of the still"
        stops = 0
        while not page.evaluate("Boolean(document.activeElement.closest('.mm-opening'))"):
            page.keyboard.press("Tab")
            stops += 1
            assert stops <= 15, "too many Tab stops before the first figure"
        context.close()


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_page_fetches_the_scripts_of_its_own_figures_only(page, http_address, html, name):
    watch = Watch(page)
    page.goto(f"{http_address}/{name}.html")
    settle(page)
    fetched = {Path(urlsplit(url).path).stem for url in watch.requests if "/figures/" in url} - {"figure_host"}
    assert fetched == set(re.findall(r'data-figure="(\w+)"', text_of(html, name)))


def test_pages_without_figures_carry_none_of_their_scripts(html):
    assert "_static/figures/" not in text_of(html, "book/notation")


def test_every_link_inside_the_book_leads_somewhere(html):
    for name in PAGES:
        source = html / f"{name}.html"
        for target in re.findall(r'\b(?:href|src)="([^"]+)"', source.read_text(encoding="utf-8")):
            path, fragment = urldefrag(target)
            if urlsplit(target).scheme or not path:
                continue
            linked = (source.parent / unquote(path.split("?")[0])).resolve()
            assert linked.is_file(), f"{name} links to {target}"
            if fragment and linked.suffix == ".html" and not fragment.startswith("map/"):  # levels of the map
                anchors = re.findall(r'\bid="([^"]+)"', linked.read_text(encoding="utf-8"))
                assert fragment in anchors, f"{name} links to {target}"


def test_first_page_of_the_folder_leads_to_the_book(page, html):
    page.goto((html / "index.html").as_uri())
    page.wait_for_url("**/book/index.html")


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_search_finds_words_of_the_chapters(page, addresses, scheme):
    """Over http with an excerpt; from a file, where a browser fetches nothing, without."""
    watch = Watch(page)
    page.goto(f"{addresses[scheme]}/search.html?q=rotation")
    page.wait_for_selector("#search-results li a")
    found = page.eval_on_selector_all("#search-results li a", "all => all.map(one => one.href)")
    assert "rope_rotation" in " ".join(found)
    if scheme == "http":
        page.wait_for_selector("#search-results p.context")
    assert not watch.problems


def test_a_word_that_was_sought_is_shown_even_in_folded_code(page, http_address):
    name = "chapters/03_rope_rotation"
    page.goto(f"{http_address}/{name}.html")
    settle(page)
    word = page.evaluate(
        """() => {
            const folded = [...document.querySelectorAll("details.code:not([open]) pre")].map((one) => one.textContent);
            const words = folded.join(" ").match(/[a-z_]{9,}/g);
            const shown = document.querySelector("article").innerText;
            return words.find((word) => !shown.includes(word));
        }"""
    )
    assert word
    page.goto(f"{http_address}/search.html?q={word}")
    page.locator(f"#search-results a[href*='{name}']").first.click()
    page.wait_for_url(f"**/{name}.html**")
    page.wait_for_function("getSelection().toString()")
    assert page.evaluate("getSelection().toString()").lower() == word.lower()
    assert page.evaluate("getSelection().anchorNode.parentElement.closest('details').open")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_of_the_system_is_there_before_any_script(browser, http_address, theme):
    """Without scripts the colors are there, too: those of the page, and those of a figure."""
    context = context_of(browser, theme=theme)
    page = context.new_page()
    page.route("**/*.js", lambda route: route.abort())
    page.goto(f"{http_address}/{CHAPTERS[0]}.html")
    page.evaluate("document.documentElement.removeAttribute('data-theme')")  # what the head's script has set
    for place in ("body", ".mm-opening .mm-fig:visible"):
        color = page.locator(place).first.evaluate("one => getComputedStyle(one).backgroundColor")
        red = int(re.findall(r"\d+", color)[0])
        assert red > 200 if theme == "light" else red < 60, (place, color)
    context.close()


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
    assert not all(reading) and len(reading) > 30
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
    page.wait_for_timeout(200)
    before = heading.bounding_box()["y"]
    box = page.get_by_role("button", name="Code", exact=True).bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + 5)  # a locator's own click would scroll to what sticks at the top
    page.wait_for_timeout(200)
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
        page.wait_for_function(
            "([selector, words]) => document.querySelector(selector)?.textContent === words",
            arg=[".sections a[aria-current=true]", heading.inner_text().removesuffix("#")],
        )


def test_copied_formulas_are_their_tex(page, http_address):
    page.goto(f"{http_address}/chapters/05_attention.html")
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
    page.goto(f"{http_address}/chapters/03_rope_rotation.html")
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


def test_a_figure_is_as_it_was_left_and_can_be_handed_on_and_reset(browser, http_address):
    address = f"{http_address}/chapters/06_gqa_shapes.html"
    context = context_of(browser)
    page = context.new_page()
    page.goto(address)
    settle(page)
    figure = page.locator(f'{FIGURE}:not(.{host.OPENING_CLASS}):not([data-figure="quiz"])').first
    shown = "one => one.querySelector('.mm-stage').textContent"
    start = figure.evaluate(shown)
    moved(page, figure, 1)
    left = figure.evaluate(shown)
    assert left != start
    page.wait_for_timeout(500)  # the store is written when the hand rests
    page.goto(address)
    settle(page)
    assert figure.evaluate(shown) == left
    figure.evaluate("one => one.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    figure.get_by_role("button", name="Copy a link to this state").click()
    handed_on = page.url
    figure.get_by_role("button", name="Back to the start").click()
    assert figure.evaluate(shown) == start
    context.close()
    context = context_of(browser)  # somebody else
    page = context.new_page()
    page.goto(handed_on)
    settle(page)
    other = page.locator(f'{FIGURE}:not(.{host.OPENING_CLASS}):not([data-figure="quiz"])').first
    assert other.evaluate(shown) == left
    context.close()


def test_a_number_in_a_sentence_can_be_dragged_and_follows_the_figure(page, http_address):
    page.goto(f"{http_address}/chapters/03_rope_rotation.html")
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
    for figure in page.locator(f'{FIGURE}[data-figure="rotation_dials"]').all():
        assert "17" in figure.inner_text(), "the figure in the text and the one that opens the page are both set"
    for _ in range(60):
        number.press("ArrowRight")
    assert number.inner_text() == "63" == number.get_attribute("aria-valuemax")


def test_an_address_with_nonsense_leaves_a_figure_as_it_is(page, http_address):
    watch = Watch(page)
    address = f"{http_address}/chapters/03_rope_rotation.html"
    page.goto(f"{address}#figure-2?query_position=here&query=[1]&key=%7B&nothing=1")
    settle(page)
    assert "m = 8, n = 5" in page.locator("#figure-2").inner_text() and not watch.problems
    page.evaluate("localStorage.setItem('figures', '{{'); localStorage.setItem('predictions', '7')")
    page.goto(f"{address}?again")
    settle(page)
    assert "m = 8, n = 5" in page.locator("#figure-2").inner_text() and not watch.problems


@pytest.mark.parametrize("name", CHAPTERS)
def test_figures_answer_to_keyboard_mouse_and_touch(browser, http_address, name):
    """Every slider on the page: an arrow key, a click and a tap each move it."""
    context = context_of(browser, NARROW, has_touch=True)
    page = context.new_page()
    watch = Watch(page)
    page.goto(f"{http_address}/{name}.html")
    settle(page)
    page.eval_on_selector_all(f"{FIGURE} details", "all => all.forEach((one) => (one.open = true))")
    sliders = page.locator(f"{FIGURE} input[type=range]:visible")
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
def test_a_prediction_is_chosen_answered_and_remembered(page, http_address, name):
    page.goto(f"{http_address}/{name}.html")
    quote = page.locator("blockquote:has(.guess)").first
    guesses = quote.locator(".guess")
    assert guesses.count() >= 2
    assert quote.locator("details").evaluate("one => one.open") is False
    guesses.first.click()
    assert quote.locator("details").evaluate("one => one.open")
    assert quote.locator(".guess[data-right]").count() == 1, "one of the guesses is the right one"
    verdict = quote.locator(".verdict").inner_text()
    assert verdict
    page.goto(f"{http_address}/{name}.html")
    assert quote.locator(".verdict").inner_text() == verdict
    assert guesses.first.get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("name", CHAPTERS)
def test_an_exercise_shows_no_dead_output(html, name):
    text = text_of(html, name)
    assert "not attempted yet" not in text and text.count('class="not-run"') >= 3


@pytest.mark.parametrize("name", CHAPTERS)
def test_run_leads_to_colab_and_to_the_notebook_with_the_package_inside(browser, http_address, name):
    repository = install_cell.repository_url().removeprefix("https://github.com/")
    context = context_of(browser, NARROW)
    page = context.new_page()
    page.goto(f"{http_address}/{name}.html")
    page.locator(".more > summary").click()
    assert page.get_by_role("link", name="Open in Colab").get_attribute("href") == (
        f"https://colab.research.google.com/github/{repository}/blob/main/{name}.ipynb"
    )
    assert (ROOT / f"{name}.ipynb").is_file()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download: a notebook that needs no network").click()
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
    assert "needs no network" not in text_of(html, "book/notation")


@pytest.mark.parametrize("name", PAGES)
def test_a_shared_link_says_what_the_page_is(html, name):
    text = text_of(html, name)
    tags = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)"', text))
    assert tags["og:title"] and (html / "_static" / tags["og:image"].rsplit("/", 1)[-1]).is_file()
    assert tags["og:image"].startswith("https://")
    assert name == "search" or len(tags["description"]) > 40
