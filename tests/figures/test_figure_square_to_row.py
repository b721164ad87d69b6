"""SquareToRow: each setting shows the weights, words and keys of the living model, run as its label says."""

import itertools

import pytest
import torch
from browser import open_figures

from minimind_edu import world
from minimind_edu.figures import SquareToRow
from minimind_edu.figures.cache_stepper import call_sizes, token_passes
from minimind_edu.figures.square_to_row import CHUNKS, HEAD, LAYER, PROMPT, READ, STORY, WRITTEN, measured
from minimind_edu.model.broken_caches import BUGS, read
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.broken import EARLIER
from minimind_edu.trained.living.heads import attention_weights

MATH = "figures/square_to_row/math"
RUNS = [*itertools.product(BUGS, CHUNKS)]
EACH = pytest.mark.parametrize(("bug", "chunk"), RUNS)


def ids(text):
    return torch.from_numpy(world.encode(text))[None]


@pytest.fixture(scope="module")
def model():
    return living_model().double().requires_grad_(False)


def test_the_model_writes_the_words_that_it_reads(model):
    written = model.generate(ids(STORY), READ - PROMPT + 1, eos_token_id=None)[0].tolist()
    words = [world.WORDS[i] for i in written]
    assert words[:READ] == measured()["words"]
    assert words[READ] == measured()["next"][-1] == "attic"
    assert ids(STORY).shape[1] == PROMPT and ids(f"{STORY} {WRITTEN}").shape[1] == READ


def test_the_square_is_the_models(model):
    weights = attention_weights(model, ids(f"{STORY} {WRITTEN}"))[LAYER, HEAD]
    assert torch.equal(torch.tensor(measured()["rows"]), (100 * weights).round().int())


@pytest.mark.parametrize("chunk", CHUNKS)
def test_without_a_bug_the_rows_are_those_of_the_square(chunk):
    run = measured()["runs"]["none"][str(chunk)]
    assert all(gap == 0 for gap in run["apart"])
    for row, whole in zip(run["rows"], measured()["rows"], strict=True):
        assert row == whole[: len(row)]


@EACH
def test_every_run_is_the_models_with_that_bug(model, bug, chunk):
    cache = read(model, ids(EARLIER))[1] if bug == "stale" else None
    sizes, rows = call_sizes(PROMPT, chunk, READ), []
    run, right = measured()["runs"][bug][str(chunk)], model(ids(f"{STORY} {WRITTEN}")).logits[0]
    start = 0
    for call, piece in enumerate(ids(f"{STORY} {WRITTEN}").split(sizes, dim=1)):
        weights = []
        logits, cache = read(model, piece, cache, bug, weights)
        rows += (100 * weights[LAYER][0, HEAD]).round().int().tolist()
        gap = (logits[0] - right[start : start + sizes[call]]).abs().max().item()
        assert run["apart"][call] == pytest.approx(gap, rel=0.01, abs=1e-8)
        assert run["said"][call] == world.WORDS[int(logits[0, -1].argmax())]
        start += sizes[call]
    assert run["rows"] == rows


def test_what_the_lesson_says_of_the_bugs():
    said = {bug: measured()["runs"][bug]["3"]["said"][-2:] for bug in BUGS}
    assert said["none"] == said["offset"] == said["stale"] == ["in the", "attic"]
    assert said["again"] == ["is in the", "attic"]
    assert said["square"] == ["in the", "garden"]
    assert not any(measured()["runs"]["square"]["9"]["apart"])  # the whole prompt in one call: silent
    assert measured()["runs"]["stale"]["9"]["apart"][0] > 0


# ---- the same in JavaScript


@pytest.mark.parametrize("chunk", CHUNKS)
def test_rows_are_counted_as_passes_are(node, chunk):
    sizes = call_sizes(PROMPT, chunk, READ)
    for calls in range(len(sizes) + 1):
        found = node.call(MATH, "callsSoFar", [PROMPT, chunk, READ, calls])
        ends = list(itertools.accumulate(sizes[:calls]))
        assert (found["without"], found["withCache"]) == (sum(ends), sum(sizes[:calls]))
        assert found["held"] - found["past"] == (sizes[calls - 1] if calls else 0)
        assert found["last"] == len(sizes)
    whole = node.call(MATH, "callsSoFar", [PROMPT, PROMPT, READ, 6])
    assert (whole["without"], whole["withCache"]) == token_passes(PROMPT, 6)


@EACH
def test_red_keys_are_those_that_are_wrong_in_the_cache(model, node, bug, chunk):
    right = read(model, ids(f"{STORY} {WRITTEN}"))[1][0][0][0]  # keys of the first layer [T, K, D]
    cache, sizes = None, call_sizes(PROMPT, chunk, READ)
    for call, piece in enumerate(ids(f"{STORY} {WRITTEN}").split(sizes, dim=1), start=1):
        _, cache = read(model, piece, cache, "none" if bug == "stale" else bug)
        keys = cache[0][0][0]
        given = {"prompt": PROMPT, "chunk": chunk, "total": READ, "calls": call, "bug": bug}
        told = node.each(MATH, "isWrongKey", [(position, given) for position in range(len(keys))])
        assert told == [(keys[i] - right[i]).abs().max().item() > 1e-9 for i in range(len(keys))]


def test_again_rotates_each_key_once_in_every_call_that_holds_it(node):
    counts = node.each(MATH, "rotationsOf", [(i, PROMPT, 3, READ, 8, "again") for i in range(READ)])
    assert counts == [8, 8, 8, 7, 7, 7, 6, 6, 6, 5, 4, 3, 2, 1]
    assert node.each(MATH, "rotationsOf", [(i, PROMPT, 3, READ, 8, "none") for i in (0, 13)]) == [1, 1]


@pytest.mark.parametrize(("bug", "places"), [("none", [0, 8, 13]), ("offset", [0, 2, 0]), ("stale", [5, 13, 18])])
def test_places_by_which_keys_are_rotated(node, bug, places):
    assert node.each(MATH, "placeOf", [(i, PROMPT, 3, READ, bug, 5) for i in (0, 8, 13)]) == places


# ---- a life in the page

READ_OUT = """() => ({
    old: document.querySelectorAll(".sr-old").length, fresh: document.querySelectorAll(".sr-new:not(.sr-past)").length,
    said: document.querySelector(".sr-said")?.textContent,
    crosses: document.querySelectorAll(".sr-tables .sr-wrong").length,
    red: [...document.querySelectorAll("rect[data-sym=k]")].map((one) => one.classList.contains("sr-bad")),
    verdict: document.querySelector(".sr-verdict")?.innerText })"""


def test_step_by_step_a_square_becomes_a_row(page):
    open_figures(page, SquareToRow())
    for old, fresh, said, counts in (
        (0, 18, "the", "9 rows now, 9 in all"),
        (9, 2, "map", "10 rows now, 19 in all"),
        (10, 2, "is picked up by", "11 rows now, 30 in all"),
    ):
        page.get_by_role("button", name="Step", exact=True).click()
        seen = page.evaluate(READ_OUT)
        assert (seen["old"], seen["fresh"], seen["said"]) == (old, fresh, said)
        assert page.get_by_text(counts, exact=True).count() == (2 if old == 0 else 1)
    assert page.get_by_text("1 row now, 11 in all", exact=True).count() == 1
    page.get_by_role("button", name="Back", exact=True).click()
    assert page.evaluate(READ_OUT)["old"] == 9


def test_each_combination_of_the_switches_says_what_the_model_says(page):
    """The lesson test: every bug and chunk, at the last call and in the middle."""
    open_figures(page, SquareToRow(shows="broken"))
    for bug, chunk in RUNS:
        sizes = call_sizes(PROMPT, chunk, READ)
        run = measured()["runs"][bug][str(chunk)]
        for calls in (len(sizes), len(sizes) // 2 + 1):
            open_figures(page, SquareToRow(shows="broken", bug=bug, chunk=chunk, calls=calls))
            seen, held = page.evaluate(READ_OUT), sum(sizes[:calls])
            assert f"“{run['said'][calls - 1]}”" in seen["verdict"]
            wrong = [i for i, gap in enumerate(run["apart"][:calls]) if gap]
            assert seen["verdict"].startswith("≠" if run["apart"][calls - 1] else "✓")
            if wrong:
                assert f"call {wrong[0] + 1}." in seen["verdict"]
            earlier = len(measured()["earlier"]) if bug == "stale" else 0
            whole = [[0] * earlier + row for row in measured()["rows"]]
            apart = [abs(a - b) >= 5 for mine, row in zip(run["rows"][:held], whole, strict=False)
                     for a, b in zip(mine, row, strict=False)]  # fmt: skip
            assert seen["crosses"] == sum(apart)
            assert not any(seen["red"]) or bug in ("offset", "again", "stale")
            if bug == "again":
                assert not seen["red"][0], "a rotation by position 0 is none"
                assert any(seen["red"])


def test_the_switches_are_those_of_the_section(page):
    open_figures(page, SquareToRow())
    assert page.locator(".mm-fig input").count() == 0
    open_figures(page, SquareToRow(shows="broken", calls=6))
    page.get_by_label("1", exact=True).check()  # more calls
    page.get_by_label("square", exact=True).check()
    assert page.locator(".sr-verdict").inner_text().startswith("✓")
    page.get_by_label("3", exact=True).check()
    assert page.locator(".sr-verdict").inner_text().startswith("≠")
