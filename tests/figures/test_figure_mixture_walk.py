"""MixtureWalk: every switch shows a training that was stored, and its rows come back in order."""

from itertools import product

import pytest
import torch
from browser import open_figures, read_out, settle

from minimind_edu.figures import MixtureWalk
from minimind_edu.trained.routing import STOPS
from minimind_edu.trained.routing.walk import variant_of, walks

MATH = "figures/mixture_walk/math"
WORDS = walks()["words"]
HEAD = {"top_k": 1, "renormalize": False, "balanced": True}  # as chapter 9 opens


def look_at(top_k: int = 2, renormalize: bool = True, balanced: bool = False, step: int = STOPS[-1]) -> dict:
    return variant_of(top_k, renormalize, balanced)["looks"][STOPS.index(step)]


def rows_told(look: dict) -> list[str]:
    """What the figure says above its boxes."""
    counts = [look["experts"].count(str(i)) for i in range(4)]
    return ["1 row" if count == 1 else f"{count} rows" for count in counts]


def sentence(page) -> str:
    settle(page)
    return page.locator(".mw-verdict").inner_text().replace("\u00a0", " ")


def words_of(page) -> list[str]:
    settle(page)
    return page.locator(".mm-stage text").all_text_contents()


def rows_shown(page) -> list[str]:
    return [text for text in words_of(page) if text.endswith((" row", " rows"))]


def press(page, name: str, times: int = 1) -> None:
    for _ in range(times):
        page.get_by_role("button", name=name, exact=True).click()


def switch(page, name: str, is_on: bool) -> None:
    page.get_by_role("switch", name=name).set_checked(is_on)


def experts_per_word(page, count: int) -> None:
    page.get_by_role("group", name="experts per word").get_by_label(str(count), exact=True).check()


# The Python side


def test_the_page_holds_what_is_stored_once_and_little():
    assert MixtureWalk().stored == walks()
    assert len(MixtureWalk().static_html()) < 26_000


def test_the_table_says_what_the_picture_shows():
    told, rows = MixtureWalk(about="word", view="word")._summary()
    assert "“hall” visits 2 of four experts, after 400 steps" in told
    assert dict(rows)["rows per expert, of the whole text"] == "2, 10, 6, 10"
    assert dict(rows)["added to its row"] == "0.62 × expert 2 + 0.38 × expert 4"
    assert dict(rows)["router probabilities"] == "0.06, 0.50, 0.14, 0.31"
    of_load = dict(MixtureWalk(about="load", step=1, trained=50, top_k=1, renormalize=False)._summary()[1])
    assert of_load["load in new stories"] == "7 %, 92 %, 1 %, 0 %" and "router probabilities" not in of_load


# What it computes


def test_rows_of_an_expert_come_in_the_order_of_the_text(node):
    routes = [[[1, 0.7], [0, 0.3]], [[1, 0.6], [2, 0.4]], [[0, 0.5], [1, 0.5]]]
    found = node.call(MATH, "placesOf", [routes, 3])
    assert found["rows"] == [2, 3, 1]
    assert [[place["seat"] for place in pair] for pair in found["places"]] == [[0, 0], [1, 0], [1, 2]]


def test_answers_lie_beside_each_other_as_wide_as_their_weights(node):
    assert node.call(MATH, "sharesOf", [[[3, 0.5], [0, 0.25]]]) == [[0, 0.5], [0.5, 0.25]]


def test_a_strip_is_darkest_where_its_vector_is_largest(node):
    assert node.call(MATH, "shadesOfStrip", [[0.5, -1.0, 0.01, 0.25], 6]) == [3, -6, 0, 2]


def test_routes_are_the_stored_choices(node):
    for variant in product((1, 2), (True, False), (True, False)):
        look = look_at(*variant)
        routes = node.call(MATH, "routesOf", [look, variant[0]])
        assert "".join(str(expert) for route in routes for expert, _ in route) == look["experts"]
        assert [100 * weight for route in routes for _, weight in route] == pytest.approx(look["weights"])


# In the browser: each combination of switches, section by section


def test_at_the_head_the_first_press_moves_the_words_and_the_second_brings_them_back(page):
    open_figures(page, MixtureWalk(compact=True, **HEAD))
    copies = page.locator(".mw-copy")
    assert rows_shown(page) == [] and set(copies.evaluate_all("all => all.map((one) => one.style.opacity)")) == {"0"}
    press(page, "Step")
    assert rows_shown(page) == rows_told(look_at(**HEAD))
    assert copies.evaluate_all("all => all.map((one) => one.style.opacity)").count("1") == len(WORDS)
    press(page, "Step")
    assert page.locator(".mw-back").count() == len(WORDS)
    assert page.get_by_role("button", name="Step", exact=True).is_disabled()


def test_step_by_step_a_word_gets_the_weights_that_torch_computes(page):
    open_figures(page, MixtureWalk(about="word", view="word"))
    logits = torch.tensor(variant_of(2, True, False)["portrait"]["logits"][2])
    kept, chosen = logits.softmax(-1).topk(2)
    weights = [f"{weight:.2f}" for weight in kept / kept.sum()]
    press(page, "Step")
    assert f"the largest, {logits.max():.2f}." in sentence(page)
    press(page, "Step")
    assert f"what are {100 * kept[0]:.0f} and {100 * kept[1]:.0f}, each divided by their sum?" in sentence(page)
    press(page, "Step")
    assert " + ".join(weights) in sentence(page) and [f"× {weight}" for weight in weights] == [
        text for text in words_of(page) if text.startswith("× ") and "row" not in text
    ]
    press(page, "Step", 3)
    named = " + ".join(f"{weight} × expert {i + 1}" for weight, i in zip(weights, chosen.tolist(), strict=True))
    assert named in sentence(page)
    assert page.locator("input").count() == 0  # the section speaks of no switch


def test_the_answers_of_a_text_fill_its_words_as_far_as_their_weights(page):
    open_figures(page, *(MixtureWalk(about="text", step=2, top_k=k, renormalize=r) for k, r in product((2, 1), (1, 0))))
    settle(page)
    for figure, (k, renormalize) in zip(page.locator(".mm-fig").all(), product((2, 1), (True, False)), strict=True):
        widths = figure.locator(".mw-back rect").evaluate_all("all => all.map((one) => parseFloat(one.style.width))")
        whole = figure.locator(".mw-slot rect").evaluate_all("all => all.map((one) => one.width.baseVal.value - 4)")
        look = look_at(k, renormalize)
        expected = [whole[i // k] * weight / 100 for i, weight in enumerate(look["weights"])]
        assert sorted(widths) == pytest.approx(sorted(expected), abs=0.15)
        assert [text for text in figure.locator(".mm-stage text").all_text_contents() if "row" in text] == rows_told(
            look
        )


def test_weights_each_switch_is_a_training_of_its_own(page):
    open_figures(page, MixtureWalk(about="weights", view="word", step=3, top_k=1))
    for view, k, renormalize in product(("one word", "the whole text"), (1, 2), (True, False)):
        page.get_by_role("group", name="show").get_by_label(view).check()
        experts_per_word(page, k)
        switch(page, "renormalize", renormalize)
        look = look_at(k, renormalize)
        settle(page)
        shown = read_out(page)
        assert shown["training moved the router by"] == f"{look['moved']} %"
        assert float(shown["loss, nats per word"]) == look["loss"]
        weights = [f"× {weight / 100:.2f}" for weight in look["weights"][2 * k : 2 * k + k]]
        assert sorted(text for text in words_of(page) if text.startswith("× 0.") or text == "× 1.00") == sorted(weights)
        if k == 1 and renormalize:  # the claim of its title
            assert set(look["weights"]) == {100} and look["moved"] == 0


def test_load_each_switch_shows_the_stored_rows_and_loads(page):
    open_figures(page, MixtureWalk(about="load", step=1, trained=0, top_k=1, renormalize=False))
    drawings = set()
    for k, balanced in product((1, 2), (False, True)):
        experts_per_word(page, k)
        switch(page, "auxiliary loss", balanced)
        for stop, step in enumerate(STOPS):
            page.get_by_role("slider").fill(str(stop))
            look = look_at(k, False, balanced, step)
            assert rows_shown(page) == rows_told(look)
            assert [text for text in words_of(page) if text.endswith(" %")] == [f"{load} %" for load in look["loads"]]
            most = max(range(4), key=lambda i: look["experts"].count(str(i)))
            assert sentence(page).startswith(f"Expert {most + 1} has {rows_told(look)[most]} of 14")
            assert f"{look['loads'][most]} % of new stories’ words." in sentence(page)
            drawings.add(page.locator(".mm-stage svg").inner_html())
    assert len(drawings) >= 4 * len(STOPS) - 2  # before training the auxiliary loss makes no difference


def test_a_word_that_is_pressed_is_followed_and_keeps_the_focus(page):
    open_figures(page, MixtureWalk(about="text", step=1))
    page.get_by_role("button", name="follow “garden”").press("Enter")
    settle(page)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "follow “garden”"
    experts = sorted(int(i) + 1 for i in look_at()["experts"][12:14])
    assert f"“garden” is with experts {experts[0]} and {experts[1]}" in sentence(page)
    assert page.locator(".mw-way").count() == 2
