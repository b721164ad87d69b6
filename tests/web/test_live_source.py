"""The switch between a figure's example and the reader's story: what it fetches, shows, remembers and follows."""

import pytest
from browser import ALIVE, ORIGIN, open_figures, serve, settle, static_page, unfold
from figure_examples import example

from minimind_edu.figures import living_script
from minimind_edu.trained.living import card
from minimind_edu.web import host

pytestmark = pytest.mark.usefixtures("forgetful")

FIGURES = (
    *("attention_xray", "cache_stepper", "residual_stream", "rotation_dials"),
    *("head_wiring", "norm_geometry", "parameter_ledger", "roofline", "sampler"),
)
EACH = pytest.mark.parametrize("name", FIGURES)
OTHER_STORY = "Zoe is in the barn. where is Zoe? in the"

# All that a reader sees of a figure, without the names that are drawn anew for every control.
SEEN = """() => document.querySelector(".mm-fig").outerHTML.replace(/mm-[a-z0-9]{8}"/g, '"')"""
STATE = """() => document.querySelector(".minimind-figure > script").textContent"""
TOLD = ".mm-source .mm-note"


def switch(page, label="This story"):
    """Choose in the switch, and wait until the figure has done it."""
    page.get_by_label(label, exact=True).check()
    on = label == "This story"
    page.wait_for_function(
        f"(document.querySelector('.mm-source .mm-note').textContent.length > 60) === {str(on).lower()}"
    )
    settle(page)


def show(page, name):
    open_figures(page, example(name))
    unfold(page)
    settle(page)  # some draw what was folded when it opens


def chosen(page):
    """The layer and the head that are chosen, as people count, where the figure has these choices."""
    return page.eval_on_selector_all(
        ".mm-source .mm-choice input:checked + span", "all => all.slice(1).map((one) => Number(one.innerText))"
    )


@EACH
def test_the_example_comes_back_as_it_was(page, name):
    show(page, name)
    before, state = page.evaluate(SEEN), page.evaluate(STATE)
    switch(page)
    assert page.evaluate(SEEN) != before
    switch(page, "Example")
    parts = [page.evaluate(SEEN), before]
    for at, seen in enumerate(parts):  # what is hidden now keeps its last words
        parts[at] = page.evaluate(
            """(html) => {
                const one = new DOMParser().parseFromString(html, "text/html");
                one.querySelectorAll("[hidden]").forEach((node) => node.remove());
                one.querySelectorAll("[class=''], [style='']").forEach((node) => {
                    for (const name of ["class", "style"]) if (!node.getAttribute(name)) node.removeAttribute(name);
                });
                return one.body.innerHTML;
            }""",
            seen,
        )
    assert parts[0] == parts[1]
    assert page.evaluate(STATE) == state


@EACH
def test_nothing_is_opened_before_the_reader_asks(page, name):
    html = static_page(example(name))
    assert living_script() in html
    begun = '"living"] = Object.assign(() => {'
    assert living_script().count(begun) == 1
    counted = living_script().replace(begun, begun + " window.opened = true;")
    serve(page, html.replace(living_script(), counted))
    page.wait_for_selector(ALIVE)
    page.wait_for_timeout(100)
    assert page.evaluate("window.opened") is None
    unfold(page)
    switch(page)
    assert page.evaluate("window.opened") is True


@EACH
def test_without_the_script_it_says_so_and_keeps_the_example(page, name):
    serve(page, static_page(example(name)).replace(living_script(), ""))
    page.wait_for_selector(ALIVE)
    unfold(page)
    page.get_by_label("This story").click()
    page.wait_for_function(f"document.querySelector('{TOLD}').textContent.includes('not within reach')")
    assert page.get_by_label("Example", exact=True).is_checked()


@EACH
def test_the_wish_is_remembered_and_can_be_taken_back(page, name):
    show(page, name)
    switch(page)
    show(page, name)
    page.wait_for_function(f"document.querySelector('{TOLD}').textContent.includes('19 tokens')")
    settle(page)
    assert page.get_by_label("This story").is_checked()
    switch(page, "Example")
    show(page, name)
    page.wait_for_timeout(200)
    assert page.get_by_label("Example", exact=True).is_checked() and page.text_content(TOLD) == ""


@EACH
def test_a_figure_follows_the_story(page, name):
    show(page, name)
    switch(page)
    page.evaluate("(text) => dispatchEvent(new CustomEvent('minimind-story-changed', { detail: text }))", OTHER_STORY)
    page.wait_for_function(f"document.querySelector('{TOLD}').textContent.includes(': 9 tokens')")
    settle(page)  # some draw in the frame after the words
    # the bars of the sampler hold words that may come next
    shown = page.inner_text(".sp-text" if name == "sampler" else ".mm-fig")
    if name == "roofline":  # which shows no words, but how many there are
        assert "prefill, 9 tokens" in page.text_content(".ro-labels")
    else:
        assert "barn" in shown and "kitchen" not in shown


def test_a_story_that_was_kept_is_read(page):
    page.evaluate("(text) => localStorage.setItem('minimind-story', text)", OTHER_STORY)
    show(page, "attention_xray")
    switch(page)
    assert page.eval_on_selector_all(".mm-word", "all => all.map((one) => one.firstChild.data)") == [
        *("<s>", "Zoe", "is in the", "barn", ".", "where is", "Zoe", "?", "in the")
    ]


@pytest.mark.parametrize("name", ["attention_xray", "rotation_dials"])
def test_the_telling_head_is_chosen_by_its_score(page, name):
    show(page, name)
    switch(page)
    lost, reading = (card()[part]["recall"] for part in ("lost_without", "reading"))
    places = [(layer, head) for layer, row in enumerate(lost) for head in range(len(row))]
    layer, head = max(places, key=lambda place: lost[place[0]][place[1]] * reading[place[0]][place[1]])
    assert chosen(page) == [layer + 1, head + 1]


def test_another_head_is_another_picture(page):
    show(page, "attention_xray")
    switch(page)
    before = page.inner_text(".mm-verdict")
    layers = page.locator(".mm-source .mm-choice").nth(1)
    layers.locator("input").nth(2).check()
    settle(page)
    assert page.inner_text(".mm-verdict") != before


def test_the_link_leads_to_the_page_of_the_story(page):
    html = static_page(example("attention_xray")).replace('<html lang="en"', '<html lang="en" data-content_root="../"')
    serve(page, html)
    page.wait_for_selector(ALIVE)
    unfold(page)
    assert page.locator(".mm-change").is_hidden()
    switch(page)
    href = page.locator(".mm-change").get_attribute("href")
    assert href.startswith(f"../{host.LIVING_PAGE}#story=Mia_is_in_the_kitchen.")


def test_no_page_of_the_book_no_link(page):
    show(page, "attention_xray")
    switch(page)
    assert page.locator(".mm-change").is_hidden()
    assert page.url.startswith(ORIGIN)


def test_arrow_keys_choose_among_the_words(page):
    show(page, "attention_xray")
    switch(page)
    words = page.locator(".mm-word")
    words.last.focus()
    page.keyboard.press("ArrowLeft")
    settle(page)
    pressed = page.eval_on_selector_all(".mm-word", "all => all.map((one) => one.getAttribute('aria-pressed'))")
    assert pressed.index("true") == words.count() - 2
    assert page.eval_on_selector_all(".mm-word[tabindex='0']", "all => all.length") == 1
