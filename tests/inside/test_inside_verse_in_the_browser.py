"""The page that writes verse in real browsers, from a file and without a network, and from a server."""

import functools
import http.server
import re
import threading

import pytest
from accessible import axe_problems
from axe_playwright_python.sync_playwright import Axe
from own_pages import settled, windows
from web_engines import Firefox, WebKit, start

from minimind_edu.inside.verse import write_verse_page

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

LINK = "#begin=远上寒山石径斜&form=4x7&seed=3"
POEM = "远上寒山石径斜，轻烟笼里对山家。青山路远无人识，便似春光到晓花。"  # of book/verse.md
READ = """() => [...document.querySelectorAll(".vs-line")].map((line) =>
    [...line.querySelectorAll(".vs-char b, .vs-mark")].map((one) => one.textContent).join("")).join("")"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verse")
    for language in ("en", "zh"):
        write_verse_page(folder / f"{language}.html", language)
    return folder


@pytest.fixture
def visit(browser, files):
    with windows(browser) as opened:

        def visited(address="", language="en", width=1280, theme="light", motion="reduce"):
            return opened(files / f"{language}.html", width, theme, address, reduced_motion=motion)

        yield visited


def begin(page, text):
    page.get_by_role("textbox", name="It begins").fill(text)


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()
    settled(page)


def test_a_link_shows_its_poem_with_tones_and_rhymes(visit):
    page = visit(LINK)
    assert page.evaluate(READ) == POEM
    assert page.locator(".in-check").inner_text() == "Checked: the same logits as PyTorch."
    assert page.locator('.vs-char[data-rhyme="rhyme"]').inner_text() == "花\n○"
    assert page.locator('.vs-char[data-rhyme="first"] b').all_inner_texts() == ["斜", "家"]
    tones = page.locator(".vs-char i").all_inner_texts()
    assert tones[:7] == ["●", "●", "○", "○", "●", "●", "○"] and len(tones) == 28
    assert page.locator(".vs-kept dd").all_inner_texts() == ["1 of 1", "6 of 6", "3 of 3", "5 of 5"]
    assert "麻, má" in page.locator(".vs-kept dt").first.inner_text()


def test_what_is_wrong_is_red_and_what_was_given_is_underlined(visit):
    """Colors as drawn: marks that no rule of the style meets would be there and be seen by nobody."""
    page = visit("#form=8x5&silent=2.0,1.1,1.3&seed=5")
    color = "(one) => getComputedStyle(one).color"
    wrong, right = (page.locator(f'.vs-char[data-wrong="{state}"] i') for state in ("true", "false"))
    assert wrong.count() and wrong.first.evaluate(color) != right.first.evaluate(color)
    page.locator(".vs-char").first.click()
    assert page.locator('.vs-char[aria-pressed="true"]').count() == 1
    page = visit(LINK)
    underlined = "(all) => all.map((one) => getComputedStyle(one).textDecorationLine === 'underline')"
    given = page.locator(".vs-char b").evaluate_all(underlined)
    assert given == [True] * 7 + [False] * 21


def test_a_poem_is_written_again_drawn_and_passed_on(visit):
    page = visit()
    assert page.locator(".vs-blank").count() == 20 and page.url.endswith(".html")
    begin(page, "春风")
    press(page, "Write")
    first = page.evaluate(READ)
    assert re.fullmatch(r"春风.{3}，.{5}。.{5}，.{5}。", first)
    press(page, "Again")
    second = page.evaluate(READ)
    assert second != first and second.startswith("春风")
    address = page.url
    page.reload()
    page.locator(".in-check", has_text="Checked").wait_for()
    settled(page)
    assert page.evaluate(READ) == second and page.url == address
    press(page, "Copy the link")
    shown = page.get_by_role("textbox", name="The link to this poem:")
    told = page.locator(".vs-copied").inner_text()
    assert told.startswith("Copied") or shown.input_value().endswith(address.partition("#")[2])
    page.go_back()


def test_what_the_model_does_not_know_is_named_and_nothing_is_lost(visit):
    page = visit(LINK)
    begin(page, "遠上寒山")
    told = page.locator(".in-complaint")
    assert re.fullmatch("“遠” is none of the 3,511 characters .*: put another in its place.", told.inner_text())
    assert page.get_by_role("button", name="Write", exact=True).is_disabled()
    assert page.evaluate(READ) == POEM
    assert page.get_by_role("textbox", name="It begins").input_value() == "遠上寒山"
    begin(page, "远上寒山")
    assert told.inner_text() == ""
    press(page, "Write")
    assert page.evaluate(READ).startswith("远上寒山")


def test_a_rhyme_ends_the_second_line(visit):
    page = visit()
    page.get_by_role("textbox", name="Line 2 ends with").fill("花")
    page.get_by_role("textbox", name="Line 2 ends with").press("Enter")
    page.locator(".vs-kept dd").first.wait_for()
    settled(page)
    assert page.evaluate(READ)[10] == "花"


def test_a_head_falls_silent_and_poems_are_counted(visit):
    page = visit("#form=8x5&seed=1")
    whole = page.evaluate(READ)
    assert page.locator(".vs-kept dd").first.inner_text() == "3 of 3"
    press(page, "head 1 of block 3")
    assert page.evaluate(READ) != whole and page.url.endswith("silent=2.0")
    assert page.locator(".vs-kept dd").first.inner_text() == "1 of 3"
    assert page.get_by_text("without head 1 of block 3").first.is_visible()
    page.get_by_role("button", name="Count over 10 more poems").click()
    settled(page)
    assert page.locator(".vs-tally tbody td").first.inner_text() == "10"
    press(page, "Bring all back")
    assert page.evaluate(READ) == whole
    page.get_by_role("button", name="Count over 10 more poems").click()
    settled(page)
    rates = [
        int(row.locator("td").nth(1).inner_text().rstrip(" %\u00a0"))
        for row in page.locator(".vs-tally tbody tr").all()
    ]
    assert len(rates) == 2 and rates[0] < rates[1]


def test_another_character_is_chosen_by_the_keyboard(visit):
    page = visit(LINK)
    page.locator(".vs-char").nth(9).focus()
    page.keyboard.press("Enter")
    other = page.locator("button.vs-other").nth(1)
    name = other.locator("b").inner_text()
    other.focus()
    page.keyboard.press("Enter")
    settled(page)
    poem = page.evaluate(READ)
    assert poem[: 8 + 2] == POEM[:10] and poem[10] == name
    assert page.get_by_role("textbox", name="It begins").input_value() == f"{POEM[:10]}{name}"


def test_characters_appear_one_after_the_other_where_motion_is_welcome(visit):
    page = visit(motion="no-preference")
    press(page, "Write")
    counts = []
    while not counts or counts[-1] < 20:
        counts.append(page.locator(".vs-char").count())
    assert counts[0] < 12 and counts == sorted(counts)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_and_can_be_reached_by_everybody(visit, width, language, theme):
    page = visit("#form=8x7&seed=2&silent=2.0", language, width, theme)
    page.locator(".vs-char").nth(3).click()
    page.locator(".vs-tally").evaluate("(one) => one.previousSibling.lastChild.click()")
    page.locator(".vs-tally tbody td").first.wait_for()
    settled(page)
    page.get_by_text("How a character is drawn" if language == "en" else "怎样选字").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(Axe().axe_script)
    assert axe_problems(page) == []


def test_on_a_phone_a_quatrain_and_what_writes_it_are_in_one_window(visit):
    page = visit(LINK, width=360)
    boxes = [page.locator(one).last.bounding_box() for one in (".mm-primary", ".vs-line")]
    assert all(box["y"] + box["height"] <= 740 for box in boxes)


@pytest.mark.parametrize("place", ["file", "http"])
@pytest.mark.parametrize("kind", [Firefox, WebKit], ids=lambda kind: kind.name)
def test_other_engines_write_the_same_poem_from_a_link(files, kind, place):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(files))
    handler.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = files.as_uri() if place == "file" else f"http://127.0.0.1:{server.server_address[1]}"
        engine = start(kind)
        try:
            engine.resize(360, 740)
            engine.open(f"{root}/zh.html{LINK}")
            engine.wait_until("/已核对|不一致/.test(document.querySelector('.in-check')?.textContent)")
            engine.wait_until("document.querySelector('.vs-char') && document.querySelector('[data-busy=false]')")
            assert engine.evaluate(f"return ({READ})()") == POEM
            assert engine.evaluate("return document.querySelector('.in-check').textContent").startswith("已核对")
            assert engine.evaluate("return document.documentElement.scrollWidth") <= 360
            engine.evaluate("document.querySelector('.vs-head').click()")
            engine.wait_until("location.hash.includes('silent=0.0')")
        finally:
            engine.close()
            server.shutdown()
