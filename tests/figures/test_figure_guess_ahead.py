"""GuessAhead: rounds follow the rule, what comes out in the long run is the large model's, and a page tells all."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from browser import open_figures, read_out, settle

from minimind_edu import world
from minimind_edu.figures import GuessAhead
from minimind_edu.figures.guess_ahead import FIRST, MOST, OTHERS, SECOND, START, comes_out, tree
from minimind_edu.trained.living import draft_model, living_model
from minimind_edu.world.words import IDS, PLACES

MATH = "figures/guess_ahead/math"
LARGE, SMALL = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.6, 0.1])  # the chapter's three words
KITCHEN, STOP = IDS["kitchen"], IDS["."]


def ids(*words):
    return [IDS[word] for word in words]


# The Python side


def test_what_comes_out_is_the_large_models_only_with_the_leftovers():
    for draft in (SMALL, np.array([0.05, 0.05, 0.9]), np.array([0.0, 1.0, 0.0]), LARGE):
        assert comes_out(LARGE, draft) == pytest.approx(LARGE)
    assert comes_out(LARGE, np.array([0.0, 1.0, 0.0]), "all") == pytest.approx([0.42, 0.51, 0.07])  # 0.3 + 0.7 * 0.3


def test_the_tree_holds_what_both_models_say():
    assert set(tree()) == {"", *(str(IDS[place]) for place in PLACES[0])} | {
        f"{IDS[place]} {IDS[mark]}" for place, mark in product(PLACES[0], SECOND)
    }
    start = world.encode(f"<s> {START}").tolist()
    with torch.no_grad():
        after = torch.tensor([[*start, KITCHEN, STOP]])
        p, q = (model(after).logits[0, -1].softmax(-1).tolist() for model in (living_model(), draft_model()))
    for word, large, small in tree()[f"{KITCHEN} {STOP}"][:-1]:
        assert (large, small) == (pytest.approx(1000 * p[word], abs=0.6), pytest.approx(1000 * q[word], abs=0.6))
    for rows in tree().values():
        assert rows[-1][0] == OTHERS
        assert all(996 <= sum(row[i] for row in rows) <= 1004 for i in (1, 2))
    assert len(GuessAhead().static_html()) < 12_000


def test_in_the_long_run_no_guess_leaves_a_trace_and_a_bad_one_costs_rounds():
    lead = {name: p for name, p, _, _ in GuessAhead().long_run()}
    assert lead["kitchen"] == pytest.approx(0.45, abs=0.005) and lead["hall"] < 0.002
    for settings in [*({"first": word} for word in FIRST), {"shows": "draft"}]:
        assert {name: out for name, _, _, out in GuessAhead(**settings).long_run()} == pytest.approx(lead)
    wrong = {name: out for name, _, _, out in GuessAhead(rule="all").long_run()}
    assert wrong["kitchen"] == pytest.approx(0.70, abs=0.005)
    spoiled = {name: out for name, _, _, out in GuessAhead(shows="draft", rule="all").long_run()}
    assert spoiled["kitchen"] == pytest.approx(0.28, abs=0.005)
    assert GuessAhead().words_per_round() == pytest.approx(1 + 0.453 * (1 + 1 + 0.314), abs=0.01)
    assert GuessAhead(first="hall").words_per_round() == pytest.approx(1, abs=0.01)
    assert GuessAhead(second="?").words_per_round() == pytest.approx(1.453, abs=0.01)


def test_the_sentence_tells_the_long_run():
    sentence, rows = GuessAhead(first="hall", rule="all")._summary()
    assert "“hall . the” is guessed; a rejected word is replaced from all" in sentence
    assert rows[0] == ("kitchen", "large model 45 %, comes out 45 %")
    assert rows[-1] == ("words per round", "1.00")
    assert "what the draft draws is guessed" in GuessAhead(shows="draft")._summary()[0]


# The rounds, in node


def test_a_round_keeps_replaces_and_throws_away(node):
    nodes = {"": [[7, 600, 300], [8, 400, 700]], "7": [[9, 1000, 1000]], "7 9": [[7, 0, 500], [8, 1000, 500]]}
    darts = lambda *numbers: [*numbers, *[0.0] * (9 - len(numbers))]  # noqa: E731
    # the draft draws 8 (0.9), whose bar is solid up to 400 of 700; a dart at 0.6 misses: 7 is left over
    lost = node.call(MATH, "roundOf", [nodes, None, "leftovers", darts(0.9, 0, 0, 0.6)])
    assert lost == {"guessed": [8], "kept": 0, "said": 7, "dart": pytest.approx(420)}
    kept = node.call(MATH, "roundOf", [nodes, None, "leftovers", darts(0.9, 0, 0, 0.5)])
    assert (kept["kept"], kept["said"]) == (1, None)  # the tree ends there
    # the reader's 7 stays with 600 of 1000; then 9; then 7, which the large model never says
    sure = node.call(MATH, "roundOf", [nodes, [7, 9, 7], "leftovers", darts(0, 0, 0, 0.59)])
    assert sure == {"guessed": [7, 9, 7], "kept": 2, "said": 8, "dart": pytest.approx(590)}
    never = node.call(MATH, "roundOf", [nodes, [7, 9, 7], "leftovers", darts(0, 0, 0, 0.61)])
    assert (never["kept"], never["said"]) == (0, 8)
    again = node.call(MATH, "roundOf", [nodes, [7, 9, 7], "all", darts(0, 0, 0, 0.61)])
    assert (again["kept"], again["said"]) == (0, 7)  # rejected, and drawn again


@pytest.mark.parametrize("rule", ["leftovers", "all"])
@pytest.mark.parametrize("settings", [*({"first": word} for word in FIRST), {"shows": "draft"}], ids=str)
def test_many_rounds_come_out_as_the_long_run_says(node, settings, rule):
    """Each combination of the switches, within four standard deviations of what was computed."""
    figure = GuessAhead(**settings, rule=rule)
    guess = None if figure.shows == "draft" else ids(figure.first, figure.second, figure.third)
    arguments = {"guess": guess, "rule": rule, "rounds": MOST, "seed": 3}
    played = node.call(MATH, "roundsOf", [figure.state()["tree"], arguments])
    for name, _, _, share in figure.long_run():
        word = str(OTHERS if name == "others" else IDS[name])
        deviation = math.sqrt(share * (1 - share) / MOST)
        assert played["came"][0].get(word, 0) / MOST == pytest.approx(share, abs=4 * deviation + 1e-9)
    assert played["written"] / MOST == pytest.approx(figure.words_per_round(), abs=0.07)


def test_the_same_darts_meet_another_guess(node):
    arguments = {"guess": ids("kitchen", ".", "the"), "rule": "leftovers", "rounds": 60, "seed": 0}
    first = node.call(MATH, "roundsOf", [tree(), arguments])
    assert first == node.call(MATH, "roundsOf", [tree(), arguments])
    longer = node.call(MATH, "roundsOf", [tree(), arguments | {"rounds": 61}])
    assert sum(longer["came"][0].values()) == 61
    assert all(count - first["came"][0].get(word, 0) in (0, 1) for word, count in longer["came"][0].items())
    assert node.call(MATH, "roundsOf", [tree(), arguments | {"seed": 1}])["came"] != first["came"]


def test_a_list_has_the_named_words_and_one_row_for_all_others(node):
    rows = node.call(MATH, "listedRows", [[[5, 600, 1], [6, 300, 2], [7, 100, 3]], [6, 9]])
    assert rows == [[6, 300, 2], [9, 0, 0], [OTHERS, 700, 4]]
    assert node.call(MATH, "gapOf", [[[5, 500, 0], [6, 500, 0]], {"5": 3, "6": 1}]) == pytest.approx(0.25)
    assert node.call(MATH, "gapOf", [[[5, 1000, 0]], {}]) is None


# In the page


@pytest.fixture
def guess(page):
    page.emulate_media(reduced_motion="reduce")
    open_figures(page, GuessAhead())
    return page


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()
    settle(page)


def test_rounds_are_counted_and_another_guess_meets_as_many(guess, node):
    press(guess, "20 rounds")
    for word in ("kitchen", "hall"):
        guess.get_by_role("button", name=f"{word}:").click()
        settle(guess)
        arguments = {"guess": ids(word, ".", "the"), "rule": "leftovers", "rounds": 20, "seed": 0}
        played = node.call(MATH, "roundsOf", [tree(), arguments])
        count = played["came"][0].get(str(IDS[word]), 0)
        assert f"“{word}”: {count} of 20" in guess.locator(".mm-verdict").inner_text()
        numbers = read_out(guess)
        assert (numbers["rounds"], numbers["words per round"]) == ("20", f"{played['written'] / 20:.2f}")
        assert guess.locator(f'[aria-pressed="true"][aria-label^="{word}:"]').count() == 1
    press(guess, "1,000")
    assert read_out(guess)["rounds"] == "1,020"
    assert int(read_out(guess)["gap to the large model"].removesuffix(" %")) <= 4


def test_the_other_rule_leaves_the_guess_in_what_comes_out(guess):
    press(guess, "1,000")
    guess.get_by_role("radio", name="all words").check()
    settle(guess)
    assert int(read_out(guess)["gap to the large model"].removesuffix(" %")) > 20
    assert "leaves its trace" in guess.locator(".mm-title").inner_text()


def test_one_round_shows_what_became_of_each_word(guess, node):
    arguments = {"guess": ids("kitchen", ".", "the"), "rule": "leftovers", "seed": 0}
    for rounds in range(1, 9):
        press(guess, "1 round")
        last = node.call(MATH, "roundsOf", [tree(), arguments | {"rounds": rounds}])["last"]
        kinds = guess.locator(".ga-text [data-kind]").evaluate_all("all => all.map((one) => one.dataset.kind)")
        ends = ["free"] if last["said"] is None else ["rejected", *["thrown"] * (3 - last["kept"])]
        assert kinds == ["kept"] * last["kept"] + ends
        told = guess.locator(".mm-verdict").inner_text()
        assert "All three" in told if last["said"] is None else "is rejected" in told


def test_the_drafts_dart_lies_in_the_solid_part_if_and_only_if_the_word_is_kept(page):
    page.emulate_media(reduced_motion="reduce")
    open_figures(page, GuessAhead(shows="draft"))
    fates = set()
    for _ in range(12):
        press(page, "1 round")
        track = page.locator(".mm-track", has=page.locator(".ga-dart:not([hidden])"))
        dart, solid = track.locator(".ga-dart").bounding_box(), track.locator(".ga-both").bounding_box()
        end = solid["x"] + solid["width"] if solid else track.bounding_box()["x"]
        is_kept = page.locator(".ga-text [data-kind]").first.get_attribute("data-kind") == "kept"
        assert (dart["x"] + dart["width"] / 2 <= end + 1) is is_kept
        fates.add(is_kept)
    assert fates == {True, False}


def test_rounds_arrive_one_after_the_other_unless_motion_is_reduced(page):
    page.emulate_media(reduced_motion="no-preference")
    open_figures(page, GuessAhead())
    counted = "() => Number(document.querySelector('.mm-readout dd').textContent.replace(',', ''))"
    page.evaluate(
        f"window.seen = []; window.look = () => (seen.push(({counted})()), requestAnimationFrame(look)); look()"
    )
    page.get_by_role("button", name="1,000", exact=True).click()
    page.wait_for_function(f"({counted})() === 1000")
    assert any(0 < rounds < 1000 for rounds in page.evaluate("seen"))
