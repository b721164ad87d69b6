"""PipeAndMill: every setting shows what was measured for it, the wheel turns for its share, and its words are true."""

import itertools

import pytest
from browser import open_figures, read_out, settle

from minimind_edu.figures import PipeAndMill
from minimind_edu.figures.pipe_and_mill import PLACES, measured
from minimind_edu.measure.waiting import CONTEXT, MODELS, TEXTS, quartiles
from tools.chapters import chapters

HIDDEN = "one => one.style.display === 'none'"
MATH = "figures/pipe_and_mill/math"
SETTINGS = [
    {"model": model, "texts": texts, "weights": place}
    for model, texts, place in itertools.product(MODELS, TEXTS, PLACES)
]
WIDTHS = """() => [...document.querySelectorAll(".pm-bytes, .pm-waits, .pm-grinds")].map(
    (bar) => [bar.getAttribute("class"), Number(bar.getAttribute("width"))])"""


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: " ".join(map(str, setting.values())))
def test_each_combination_of_the_switches_shows_what_was_measured(node, setting):
    """The lesson test."""
    model, texts, place = setting.values()
    low, middle, high = (us / 1e3 for us in quartiles("step", model, PLACES[place], texts, CONTEXT))
    hand = quartiles("step", model, "at hand", texts, CONTEXT)[1] / 1e3
    times = node.call(MATH, "timesOf", [measured(), setting])
    expected = {"step": middle, "low": low, "high": high, "mill": min(hand, middle)}
    expected["pipe"] = quartiles("pipe", model)[1] / 1e3 if place == "memory" else 0
    expected["one"] = quartiles("step", model, "file", 1, CONTEXT)[1] / 1e3
    assert times == pytest.approx(expected)
    assert node.call(MATH, "shareOf", [times]) == pytest.approx(min(hand, middle) / middle)
    assert max(high, times["pipe"], 3 * times["one"]) <= node.call(MATH, "roomFor", [times])


@pytest.mark.parametrize("share", [0.2, 0.65, 1])
def test_the_wheel_turns_for_its_share_of_each_bite_and_stands_for_the_rest(node, share):
    places = [i / 240 for i in range(241)]
    done = [node.call(MATH, "turned", [place, share, 12]) for place in places]
    assert done[0] == 0 and done[-1] == pytest.approx(1)
    turns = [b > a for a, b in itertools.pairwise(done)]
    assert all(b >= a for a, b in itertools.pairwise(done))
    assert sum(turns) / len(turns) == pytest.approx(share, abs=0.06)


def test_the_opening_asks_and_shows_one_text(page):
    name, arguments = chapters()["chapters/14_speed"].opening
    assert (name, arguments) == ("PipeAndMill", {"compact": True})
    open_figures(page, PipeAndMill(**arguments))
    settle(page)
    assert page.locator(".mm-title").inner_text().endswith("?")
    assert page.locator(".pm-text").count() == 1


def test_the_slider_adds_texts_and_the_bars_keep_their_proportion(page):
    open_figures(page, PipeAndMill())
    slider = page.locator("input[type=range]")
    for i, texts in enumerate(TEXTS):
        slider.fill(str(i))
        settle(page)
        assert page.locator(".pm-text").count() == texts
        widths = page.evaluate(WIDTHS)
        step = next(width for kind, width in widths if kind == "pm-waits")
        pipe = next(width for kind, width in widths if kind == "pm-bytes")
        mill, *bites = (width for kind, width in widths if kind == "pm-grinds")
        real = measured()["models"]["large"]
        assert pipe / step == pytest.approx(real["pipe"] / real["memory"][i][1], abs=0.02)
        assert mill / step == pytest.approx(min(1, real["hand"][i][1] / real["memory"][i][1]), abs=0.02)
        assert len(bites) == 12 and sum(bites) == pytest.approx(mill, abs=12)


def test_at_hand_shuts_the_pipe_and_says_both_times(page):
    open_figures(page, PipeAndMill(texts=2))
    settle(page)
    before = read_out(page)
    assert page.locator(".pm-pipe").count() == page.locator(".pm-bytes").count() == 1
    page.get_by_label("at hand").check()
    settle(page)
    assert page.locator(".pm-pipe").count() == page.locator(".pm-bytes").count() == 0
    after, said = read_out(page), page.locator(".pm-verdict").inner_text()
    assert before["a step"] in said and after["a step"] in said
    assert after["the mill turns"] == "100\N{NO-BREAK SPACE}%" != before["the mill turns"]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"texts": 1}, "The mill waits for 79\N{NO-BREAK SPACE}% of the step."),
        ({"texts": 8}, "2.1 times as long as that of one text"),
        ({"shows": "texts", "texts": 64}, "turns nearly all the time"),
        ({"model": "living", "weights": "hand"}, "it never waited for them"),
        ({"model": "living"}, "Hardly any of this step waits for bytes."),
    ],
)
def test_the_verdict_is_true(page, setting, sentence):
    open_figures(page, PipeAndMill(**{"shows": "models"} | setting))
    settle(page)
    assert sentence in page.locator(".pm-verdict").inner_text()


def test_a_play_moves_the_wheel_once_and_ends(page):
    open_figures(page, PipeAndMill(texts=1, compact=True))
    settle(page)
    marker, play = page.locator(".pm-place"), page.locator(".mm-play")
    assert marker.evaluate(HIDDEN)
    play.click()
    page.wait_for_timeout(300)
    assert not marker.evaluate(HIDDEN) and play.inner_text() == "Stop"
    play.click()
    assert marker.evaluate(HIDDEN) and play.inner_text() == "Play a step"


def test_with_reduced_motion_a_play_jumps_to_the_end(page):
    page.emulate_media(reduced_motion="reduce")
    try:
        open_figures(page, PipeAndMill())
        settle(page)
        page.locator(".mm-play").click()
        assert not page.locator(".pm-place").evaluate(HIDDEN)
        assert page.locator(".mm-play").inner_text() == "Play a step"
    finally:
        page.emulate_media(reduced_motion="no-preference")


def test_the_table_tells_the_model_that_is_shown():
    text, rows = PipeAndMill(model="small")._summary()
    assert "103 MB" in text and dict(rows)["1 texts, weights at hand, ms"] == "1.32"
    assert len(rows) == 2 * len(TEXTS)
