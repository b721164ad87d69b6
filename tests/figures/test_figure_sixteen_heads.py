"""SixteenHeads: whatever is silenced, the page says what the stored model says, and shows what two heads read."""

import random

import pytest
from browser import open_figures, settle
from cases import long_after

from minimind_edu.figures import SixteenHeads
from minimind_edu.trained.living import answering
from minimind_edu.web import living_model

MATH = "figures/sixteen_heads/math"
STORED = answering.measured()
CHOSEN = random.Random(1).sample(range(2**16), 24)
SINGLE = [1 << bit for bit in range(16)]
ELEVEN = sum(bit for bit, name in zip(SINGLE, answering.ALL, strict=True) if name not in answering.NEEDED["living"])


def names(silent: int) -> list[str]:
    return list(SixteenHeads(silent=silent).silenced())


def test_each_head_has_its_own_bit():
    assert [names(bit) for bit in SINGLE] == [[name] for name in answering.ALL]
    assert names(ELEVEN) == list(answering.but(*answering.NEEDED["living"]))
    assert names(0) == [] and names(2**16 - 1) == list(answering.ALL)


def test_the_page_finds_the_same_heads_and_adds_and_takes_one(node):
    for silent in CHOSEN:
        heads = node.call(MATH, "headsIn", [silent, 16])
        assert [answering.ALL[i] for i in heads] == names(silent)
        for i in (0, 11, 15):
            assert node.call(MATH, "toggled", [silent, i]) == silent ^ SINGLE[i]


READINGS = """async ([payload, told, heads, sets]) => {
    const { bytesOf, createLiveModel, unpackWeights } = await import("/web/live/model.js");
    const { softmax } = await import("/web/live/sampling.js");
    const { readingOf } = await import("/figures/sixteen_heads/math.js");
    const model = createLiveModel(unpackWeights(bytesOf(payload.weights)));
    const living = { model, softmax, world: { words: payload.world.words } };
    return sets.map((silent) => readingOf(living, told, heads, silent));
}"""


@pytest.mark.parametrize("story", long_after(1, answering.FORMS))
def test_every_set_that_is_tried_says_what_the_model_says(node, story):
    """The lesson test: no head, each alone, each alone left, the eleven and the five, and sets at random."""
    sets = [0, *SINGLE, *(2**16 - 1 - bit for bit in SINGLE), ELEVEN, 2**16 - 1 - ELEVEN, 2**16 - 1, *CHOSEN]
    payload = living_model.payload()
    heads = {"whose": STORED["whose"], "fetches": STORED["fetches"]}
    found = node.evaluate(READINGS, [payload, STORED["told"][story], heads, [names(silent) for silent in sets]])
    for silent, read in zip(sets, found, strict=True):
        wanted = answering.reading(names(silent), story)
        assert read["shares"] == pytest.approx(wanted["shares"], abs=2e-4), names(silent)
        assert read["other"][1] == pytest.approx(wanted["other"][1], abs=2e-4)
        assert read["fetched"] == pytest.approx(wanted["fetched"], abs=1e-3)
        weights = [[weight for _, weight in one["whose"]] for one in (read, wanted)]
        assert weights[0] == pytest.approx(weights[1], abs=1e-3)


READ = """() => ({
    said: document.querySelector(".mm-next-word").innerText.trim(),
    verdict: document.querySelector(".mm-verdict").innerText,
    bars: [...document.querySelectorAll(".mm-word-bar .mm-bar-number")].map((bar) => bar.innerText) })"""


def said(page, sentence: str) -> dict:
    page.wait_for_function("(text) => document.querySelector('.mm-verdict').innerText.includes(text)", arg=sentence)
    settle(page)
    return page.evaluate(READ)


@pytest.mark.parametrize("story", answering.FORMS)
def test_a_press_silences_a_head_and_another_press_brings_it_back(page, story):
    open_figures(page, SixteenHeads(story=story))
    whole = said(page, "With all sixteen heads")
    for name in answering.NEEDED["living"]:
        button = page.locator(".sx-head", has_text=name)
        button.click()
        read = said(page, f"Without {name}")
        wanted = answering.reading([name], story)
        assert [int(bar.split()[0].rstrip("%\u00a0")) for bar in read["bars"][:3]] == [
            round(100 * share) for share in wanted["shares"]
        ]
        assert button.get_attribute("aria-pressed") == "true"
        changes = max(wanted["shares"][1:] + wanted["other"][1:]) > wanted["shares"][0]
        assert (not read["said"].startswith(whole["said"])) == changes
        assert changes or story == "zh"
        button.click()
        assert said(page, "With all sixteen heads") == whole


def test_the_eleven_go_at_one_press_and_the_answer_stays(page):
    open_figures(page, SixteenHeads(shows="chain"))
    before = said(page, "With all sixteen heads")
    page.get_by_role("button", name="silence the other eleven").click()
    assert said(page, "With 11 of 16 silenced")["said"] == before["said"] == "hall"
    assert page.locator('.sx-head[aria-pressed="true"]').count() == 11
    page.locator(".sx-head", has_text="3.4").click()
    assert said(page, "With 12 of 16 silenced")["said"] != "hall"
    assert page.locator('.sx-link[data-off="true"]').count() == 3  # to it, twice, and from it
    page.get_by_role("button", name="all on").click()
    assert said(page, "With all sixteen heads") == before


def test_the_chain_shows_whom_a_place_belongs_to_and_which_is_fetched(page):
    open_figures(page, SixteenHeads(shows="chain"))
    settle(page)
    tags = page.locator(".sx-tag").all_inner_texts()
    told, first = STORED["told"]["en"], STORED["told"]["en"]["first"]
    assert tags == [f"{told['words'][most]} {weight:.2f}" for most, weight in first["whose"]]
    page.locator(".sx-head", has_text="3.4").click()
    said(page, "Without 3.4")
    assert not page.locator(".sx-tag:visible").count()


def test_the_opening_does_not_tell_which_heads_are_needed(page):
    figure = SixteenHeads()
    figure.compact = True
    open_figures(page, figure)
    settle(page)
    looks = page.locator(".sx-head").evaluate_all("(all) => all.map((one) => getComputedStyle(one).background)")
    assert len(looks) == 16 and len(set(looks)) == 1
    assert not page.locator(".sx-link").count()


def test_the_table_tells_of_the_five_and_of_what_was_asked():
    _, rows = SixteenHeads(silent=1)._summary()
    told = dict(rows)
    assert told["with all heads"] == "hall, 99 %" and told["without 1.1"].startswith("hall")
    assert told["without head 3.4"] == "garden, 98 %"
    assert told["without all heads but 1.2, 1.3, 1.4, 3.4, 4.2"].startswith("hall")
