"""GuessAhead: what is checked follows the rule, the text that comes out is the large model's, and a page tells all."""

from collections import Counter

import numpy as np
import pytest
from browser import open_figures, read_out, settle

from minimind_edu import world
from minimind_edu.figures import GuessAhead
from minimind_edu.figures.guess_ahead import AHEAD, LOOKS, SEEDS, SHOWN, START, checked, drawn, runs, speculate

MATH = "figures/guess_ahead/math"
LARGE, SMALL = np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.6, 0.1])  # the chapter's three words


# The Python side


def test_a_dart_draws_each_word_with_its_share():
    assert [drawn(np.array([2.0, 0.0, 6.0]), dart) for dart in (0.0, 0.24, 0.26, 0.999)] == [0, 0, 2, 2]


def test_a_guess_is_kept_within_p_and_replaced_from_the_leftovers():
    assert checked(LARGE, SMALL, 0, 0.99, 0.5)["kind"] == "kept"  # the draft says it too seldom
    assert checked(LARGE, SMALL, 1, 0.49, 0.5) == {"kind": "kept", "word": 1, "dart": pytest.approx(0.294), "said": 1}
    assert checked(LARGE, SMALL, 1, 0.51, 0.5)["said"] == 0  # only the first word has too little
    assert checked(LARGE, SMALL, 1, 0.51, 0.5)["kind"] == "rejected"


def test_what_is_said_follows_the_large_model_whatever_the_draft_says():
    chance = np.random.default_rng(0)
    for draft in (SMALL, np.array([0.05, 0.05, 0.9])):
        said = [checked(LARGE, draft, chance.choice(3, p=draft), *chance.random(2))["said"] for _ in range(20_000)]
        assert np.array([said.count(word) for word in range(3)]) / 20_000 == pytest.approx(LARGE, abs=0.012)


def test_rounds_are_guesses_until_one_is_rejected_or_a_word_comes_for_free():
    for seed in SEEDS:
        looks = speculate(seed)
        assert len(looks) == LOOKS
        rounds = Counter(look["pass"] for look in looks)
        for number in range(1, looks[-1]["pass"]):  # the last one is cut off
            kinds = [look["kind"] for look in looks if look["pass"] == number]
            assert set(kinds[:-1]) <= {"kept"}
            assert kinds[-1] == "rejected" or (kinds[-1] == "free" and rounds[number] == AHEAD + 1)
        waits = [len(look["waiting"]) for look in looks if look["pass"] == 1]
        assert waits == [3, 2, 1, 0, 0][: len(waits)]
        assert sum(look["kind"] == "rejected" for look in looks) == 3


def test_rows_hold_the_words_of_a_look_and_the_likeliest_others():
    for looks in runs().values():
        for look in looks:
            rows = {word: (p, q) for word, p, q in look["rows"]}
            assert len(rows) == SHOWN and {look["word"], look["said"]} <= set(rows)
            p, q = rows[look["word"]]
            if look["kind"] == "free":
                assert not any(q for _, q in rows.values())
            else:
                assert 0 <= look["dart"] <= q + 0.6
                assert (look["dart"] <= p + 0.6) if look["kind"] == "kept" else (look["dart"] >= p - 0.6)
    assert len(GuessAhead().static_html()) < 16_000


def test_the_sentence_tells_what_became_of_the_word():
    sentence, rows = GuessAhead(step=6)._summary()
    assert f"Word 6 after “{START}”" in sentence and "“hall” is rejected, and “kitchen” drawn" in sentence
    assert rows[0] == ("kitchen", "large model 100 %, draft 46 %, both 46 %")


# In the page


def test_a_bar_has_three_parts(node):
    parts = node.each(MATH, "partsOf", [[[7, 600, 300]], [[7, 300, 600]]])
    assert parts[0] == {"word": 7, "p": 600, "q": 300, "both": 300, "tooOften": 0, "leftover": 300}
    assert parts[1] == {"word": 7, "p": 300, "q": 600, "both": 300, "tooOften": 300, "leftover": 0}


def test_the_text_grows_by_what_was_said_and_shows_what_was_thrown_away(node):
    start = world.encode(START).tolist()
    for looks in runs().values():
        for step in range(1, LOOKS + 1):
            text = node.call(MATH, "textAfter", [start, looks, step])
            kept = [word for word, kind in text if kind not in ("thrown", "waiting")]
            assert kept == start + [look["said"] for look in looks[:step]]
            look = looks[step - 1]
            thrown = [word for word, kind in text if kind == "thrown"]
            assert thrown == ([look["word"], *look["waiting"]] if look["kind"] == "rejected" else [])


@pytest.fixture
def guess(page):
    open_figures(page, GuessAhead())
    return page


def test_every_step_tells_the_fate_of_its_word(guess):
    for step, look in enumerate(runs()[str(SEEDS[0])], 1):
        guess.get_by_role("slider").fill(str(step))
        settle(guess)
        told, name = guess.locator(".mm-verdict").inner_text(), world.WORDS[look["said"]]
        assert {"kept": "is kept", "rejected": "is rejected", "free": "for free"}[look["kind"]] in told
        assert f"“{name}”" in told
        assert guess.locator(".ga-dart:not([hidden])").count() == (look["kind"] != "free")
        assert read_out(guess) == {"words written": str(step), "passes of the large model": str(look["pass"])}


def test_the_dart_lies_in_the_solid_part_if_and_only_if_the_word_is_kept(guess):
    for step, look in enumerate(runs()[str(SEEDS[0])], 1):
        if look["kind"] == "free":
            continue
        guess.get_by_role("slider").fill(str(step))
        settle(guess)
        track = guess.locator(".mm-track", has=guess.locator(".ga-dart:not([hidden])"))
        dart, solid = track.locator(".ga-dart:not([hidden])").bounding_box(), track.locator(".ga-both").bounding_box()
        middle, end = (
            dart["x"] + dart["width"] / 2,
            (solid["x"] + solid["width"]) if solid else track.bounding_box()["x"],
        )
        assert (middle <= end + 1) is (look["kind"] == "kept")
