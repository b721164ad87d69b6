"""CacheStepper: its runs are the package's, its bugs part where they must, and the browser counts as Python does."""

import pytest
import torch
from browser import open_figures, run_js_each, run_js_module
from figure_examples import assert_refused

from minimind_edu.figures import CacheStepper
from minimind_edu.figures import cache_stepper as module
from minimind_edu.figures.cache_stepper import (
    BUGS,
    CUTS,
    WORDS,
    _ids,
    cached_logits,
    call_sizes,
    tiny_model,
    token_passes,
    uncached_logits,
)
from minimind_edu.masks import causal_mask

MATH = "cache_stepper_math"


class Counted(torch.nn.Module):
    """A model that counts the tokens it reads."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config, self.read = model, model.config, 0

    def forward(self, input_ids, *arguments, **named):
        self.read += input_ids.shape[1]
        return self.model(input_ids, *arguments, **named)


# ---- the numbers on the page


def test_four_and_two_hundred():
    assert token_passes(4, 200) == (20_700, 203)


@pytest.mark.parametrize(("prompt", "new"), [(1, 1), (4, 9), (7, 2)])
def test_passes_are_what_generation_really_reads(prompt, new):
    from minimind_edu.generation import generate

    read = []
    for use_cache in (False, True):
        counted = Counted(tiny_model())
        generate(counted, _ids(WORDS[:prompt]), max_new_tokens=new, use_cache=use_cache, eos_token_id=None)
        read.append(counted.read)
    assert tuple(read) == token_passes(prompt, new)


@pytest.mark.parametrize(("prompt", "new"), [(0, 5), (5, 0)])
def test_passes_of_nothing_are_refused(prompt, new):
    with pytest.raises(ValueError, match=f"at least 1 token each, got {prompt} and {new}"):
        token_passes(prompt, new)


@pytest.mark.parametrize(("prompt", "chunk"), CUTS)
def test_calls_cover_the_text_once(prompt, chunk):
    sizes = call_sizes(prompt, chunk, len(WORDS))
    assert sum(sizes) == len(WORDS)
    assert max(sizes) <= chunk
    assert sizes[-(len(WORDS) - prompt) :] == [1] * (len(WORDS) - prompt)


# ---- the runs


def test_every_way_to_cut_a_prompt_is_run():
    assert set(CUTS) == {(prompt, chunk) for prompt in range(1, 9) for chunk in range(1, prompt + 1)}
    assert all(set(cached_logits(bug)) == set(CUTS) for bug in BUGS)


@pytest.mark.parametrize("cut", CUTS)
def test_without_a_bug_every_cut_gives_the_uncached_logits(cut):
    torch.testing.assert_close(cached_logits("none")[cut], uncached_logits())


@pytest.mark.parametrize("bug", BUGS)
def test_cuts_that_run_together_give_what_each_gives_alone(bug, monkeypatch):
    together = cached_logits(bug)
    for cut in [(1, 1), (5, 2), (8, 3)]:
        monkeypatch.setattr(module, "CUTS", [cut])
        torch.testing.assert_close(module.cached_logits.__wrapped__(bug)[cut], together[cut])


def test_the_sound_run_is_the_packages_own():
    out = tiny_model()(_ids(WORDS[:5]), use_cache=True)
    logits = [out.logits[0]]
    for word in WORDS[5:]:
        out = tiny_model()(_ids([word]), past_key_values=out.past_key_values, use_cache=True)
        logits.append(out.logits[0])
    torch.testing.assert_close(torch.cat(logits), cached_logits("none")[5, 5])


def first_call(prompt, chunk, bug):
    parted = CacheStepper(prompt_length=prompt, chunk_size=chunk, calls=0).parting(bug)
    return None if parted is None else parted[0]


@pytest.mark.parametrize(("prompt", "chunk"), CUTS)
def test_every_bug_parts_where_it_must(prompt, chunk):
    assert first_call(prompt, chunk, "none") is None
    assert first_call(prompt, chunk, "stale") == 1
    assert first_call(prompt, chunk, "offset") == 2
    # position 0 is turned by an angle of 0 however often: a first call of one word has nothing to turn again
    assert first_call(prompt, chunk, "again") == (3 if chunk == 1 else 2)
    later_pieces = call_sizes(prompt, chunk, len(WORDS))[1:]
    wide = [number for number, size in enumerate(later_pieces, start=2) if size > 1]
    assert first_call(prompt, chunk, "square") == (wide[0] if wide else None)


def test_a_square_mask_hides_until_the_prompt_is_cut():
    whole, cut = (CacheStepper(prompt_length=8, chunk_size=c, calls=0) for c in (8, 4))
    assert whole.parting("square") is None
    assert cut.parting("square")[1] > 0.5 * cut.logit_spread


def test_bytes_are_those_of_the_tensors():
    figure = CacheStepper()
    out = tiny_model()(_ids(WORDS[:5]), use_cache=True)
    assert out.past_key_values.num_bytes() == 5 * figure.num_layers * figure.layer_row_bytes


def test_building_one_leaves_the_random_numbers_alone():
    tiny_model.cache_clear()
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    CacheStepper()
    tiny_model()
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt_length": 99}, "'prompt_length' .* should not be greater than 8, but a value of 99"),
        ({"chunk_size": 0}, "'chunk_size' .* should not be less than 1, but a value of 0"),
        ({"new_tokens": 501}, "'new_tokens' .* should not be greater than 500, but a value of 501"),
        ({"calls": 13}, "this run has 12 calls, got calls=13"),
        ({"differences": {}}, '"differences" trait is read-only'),
        ({"bug": "off"}, "'bug' .* expected any of"),
    ],
)
def test_impossible_values_are_refused(changes, message):
    assert_refused(CacheStepper, changes, message)


def test_the_table_tells_the_numbers():
    sentence, rows = CacheStepper()._summary()
    table = dict(rows)
    assert table["token passes without a cache"] == "20,700"
    assert table["token passes with a cache"] == "203"
    assert table["no bug"] == "the same logits in every call"
    assert table["bug: square"].startswith("parts in call 2")
    assert "4 tokens" in sentence


# ---- the same in the browser


def test_passes_agree_with_python(page):
    pairs = [(4, 200), (1, 1), (8, 500), (6, 33)]
    assert run_js_each(page, MATH, "tokenPasses", pairs) == [list(token_passes(*pair)) for pair in pairs]


def test_cuts_agree_with_python(page):
    arguments = [(*cut, len(WORDS)) for cut in CUTS]
    assert run_js_each(page, MATH, "callSizes", arguments) == [call_sizes(*one) for one in arguments]


def test_calls_know_their_rows_and_positions(page):
    call = run_js_module(page, MATH, "cacheCall", [[3, 3, 1], 1, 0, False])
    assert call == {"past": 3, "size": 3, "held": 6, "positions": [3, 4, 5]}
    stale = run_js_module(page, MATH, "cacheCall", [[3, 3, 1], 2, 3, False])
    assert stale == {"past": 9, "size": 1, "held": 10, "positions": [9]}
    forgotten = run_js_module(page, MATH, "cacheCall", [[3, 3, 1], 1, 0, True])
    assert forgotten["positions"] == [0, 1, 2]


@pytest.mark.parametrize(("size", "held"), [(1, 1), (1, 9), (3, 3), (3, 8)])
def test_masks_agree_with_the_package(page, size, held):
    right = causal_mask(size, held)
    assert run_js_module(page, MATH, "visibleKeys", [size, held, False]) == right.tolist()
    square = right if size == 1 else torch.ones_like(right).tril()
    assert run_js_module(page, MATH, "visibleKeys", [size, held, True]) == square.tolist()


def test_bytes_and_parting_agree_with_python(page):
    figure = CacheStepper()
    expected = tiny_model()(_ids(WORDS[:7]), use_cache=True).past_key_values.num_bytes()
    arguments = [7, figure.num_layers, figure.layer_row_bytes]
    assert run_js_module(page, MATH, "cacheBytes", arguments) == expected
    for bug in BUGS:
        parted = figure.parting(bug)
        index = run_js_module(page, MATH, "firstParting", [figure._run(bug)])
        assert index == (-1 if parted is None else parted[0] - 1)


# ---- a life in the page


def pressed(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def test_stepping_fills_the_cache_row_by_row(page):
    open_figures(page, CacheStepper(calls=0, prompt_length=5, chunk_size=2))
    held = page.locator(".mm-readout dd").first
    assert held.inner_text() == "0 rows, 0 bytes"
    for rows in (2, 4, 5):
        pressed(page, "Prefill a chunk")
        assert held.inner_text() == f"{rows} rows, {512 * rows:,} bytes"
    assert page.get_by_role("button", name="Prefill a chunk").is_disabled()
    pressed(page, "Decode one")
    assert held.inner_text() == "6 rows, 3,072 bytes"
    pressed(page, "One call back")
    assert held.inner_text() == "5 rows, 2,560 bytes"
    pressed(page, "Reset")
    assert held.inner_text() == "0 rows, 0 bytes"


def test_the_verdict_is_that_of_the_run(page):
    figure = CacheStepper(prompt_length=6, chunk_size=3, calls=4)
    open_figures(page, figure)
    for bug, radio in zip(BUGS, page.get_by_role("radio").all(), strict=True):
        radio.check()
        verdict = page.locator(".cs-verdict").inner_text()
        parted = figure.parting(bug)
        if parted is None:
            assert verdict.startswith("✓")
        else:
            assert f"Call {parted[0]} is the first" in verdict
            assert f"{parted[1]:.2f}" in verdict
        assert page.locator(".cs-apart").count() == sum(d > 0 for d in figure._run(bug)[:4])


def test_the_keyboard_alone_gets_from_prompt_to_end(page):
    open_figures(page, CacheStepper(calls=0))
    page.get_by_role("button", name="Prefill a chunk").focus()
    for _ in range(12):  # the focus moves to the other button when the prompt is read
        page.keyboard.press("Enter")
    assert page.locator(".mm-readout dd").first.inner_text().startswith(f"{len(WORDS)} rows")
    assert page.evaluate("document.activeElement.textContent") == "Reset"


def test_a_chunk_longer_than_the_prompt_is_the_whole_prompt(page):
    open_figures(page, CacheStepper(prompt_length=3, chunk_size=8, calls=1))
    assert page.locator(".mm-readout dd").first.inner_text().startswith("3 rows")


def test_nothing_moves_for_those_who_want_no_motion(browser):
    for motion, arriving in (("reduce", 0), ("no-preference", 8)):
        context = browser.new_context(reduced_motion=motion)
        page = context.new_page()
        open_figures(page, CacheStepper(calls=0))
        pressed(page, "Prefill a chunk")
        assert page.locator(".cs-arrive").count() == arriving
        context.close()
