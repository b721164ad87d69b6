"""CacheStepper: its runs are the package's, its bugs part where they must, and the browser counts as Python does."""

import re
from itertools import groupby, pairwise

import pytest
import torch
from browser import BOXES, SIZE, open_figures, read_out, serve, settle
from figure_examples import state_in
from story_reader import read_story, show_story

from minimind_edu.figures import CacheStepper, module_source
from minimind_edu.figures import cache_stepper as module
from minimind_edu.figures.cache_stepper import (
    CUTS,
    WORDS,
    _ids,
    cached_logits,
    call_sizes,
    tiny_model,
    token_passes,
    uncached_logits,
)
from minimind_edu.model.broken_caches import BUGS
from minimind_edu.model.masks import causal_mask

MATH = "figures/cache_stepper/math"


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
    from minimind_edu.model.generation import generate

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


def test_the_table_tells_the_numbers():
    sentence, rows = CacheStepper()._summary()
    table = dict(rows)
    assert table["token passes without a cache"] == "20,700"
    assert table["token passes with a cache"] == "203"
    assert table["no bug"] == "the same logits in every call"
    assert table["bug: square"].startswith("first in call 2")
    assert "4 tokens" in sentence


# ---- the same in JavaScript


def test_passes_agree_with_python(node):
    pairs = [(4, 200), (1, 1), (8, 500), (6, 33)]
    assert node.each(MATH, "tokenPasses", pairs) == [list(token_passes(*pair)) for pair in pairs]


def test_cuts_agree_with_python(node):
    arguments = [(*cut, len(WORDS)) for cut in CUTS]
    assert node.each(MATH, "callSizes", arguments) == [call_sizes(*one) for one in arguments]


def test_calls_know_their_rows_and_positions(node):
    call = node.call(MATH, "cacheCall", [[3, 3, 1], 1, 0, False])
    assert call == {"past": 3, "size": 3, "held": 6, "positions": [3, 4, 5]}
    stale = node.call(MATH, "cacheCall", [[3, 3, 1], 2, 3, False])
    assert stale == {"past": 9, "size": 1, "held": 10, "positions": [9]}
    forgotten = node.call(MATH, "cacheCall", [[3, 3, 1], 1, 0, True])
    assert forgotten["positions"] == [0, 1, 2]


@pytest.mark.parametrize(("size", "held"), [(1, 1), (1, 9), (3, 3), (3, 8)])
def test_masks_agree_with_the_package(node, size, held):
    right = causal_mask(size, held)
    assert node.call(MATH, "visibleKeys", [size, held, False]) == right.tolist()
    square = right if size == 1 else torch.ones_like(right).tril()
    assert node.call(MATH, "visibleKeys", [size, held, True]) == square.tolist()


def test_bytes_and_parting_agree_with_python(node):
    figure = CacheStepper()
    expected = tiny_model()(_ids(WORDS[:7]), use_cache=True).past_key_values.num_bytes()
    arguments = [7, figure.num_layers, figure.layer_row_bytes]
    assert node.call(MATH, "cacheBytes", arguments) == expected
    for bug in BUGS:
        parted = figure.parting(bug)
        index = node.call(MATH, "firstParting", [figure._run(bug)])
        assert index == (-1 if parted is None else parted[0] - 1)


# ---- a life in the page


def pressed(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def opened(page):
    page.locator(".mm-more summary").click()


def size_of(page):
    """Of the rows in the cache and their bytes, as a reader sees them."""
    label, value = next(iter(read_out(page).items()))
    return label, value


def test_stepping_fills_the_cache_row_by_row(page):
    open_figures(page, CacheStepper(calls=0, prompt_length=5, chunk_size=2))
    assert size_of(page) == ("bytes in 0 rows", "0")
    for rows in (2, 4, 5, 6):
        pressed(page, "Step")
        assert size_of(page) == (f"bytes in {rows} rows", f"{512 * rows:,}")
    assert read_out(page)["rows computed"] == "6"
    assert read_out(page)["without a cache"] == "17"  # 2 + 4 + 5 + 6
    pressed(page, "Back")
    assert size_of(page) == ("bytes in 5 rows", "2,560")
    pressed(page, "Start over")
    assert size_of(page) == ("bytes in 0 rows", "0")
    assert page.get_by_role("button", name="Back").is_disabled()


def test_every_column_names_its_call(page):
    open_figures(page, CacheStepper(calls=0))
    assert page.locator("text.mm-strong:not([data-sym])").all_text_contents() == ["no call yet"]
    for number, kind in enumerate(["prefill", "prefill", "decode"], start=1):
        pressed(page, "Step")
        assert page.locator("text.mm-strong:not([data-sym])").first.text_content() == f"call {number} ({kind})"
        assert page.locator("rect.mm-ink").count() == 1 + number + min(number, 2)  # one in the legend
    assert page.locator("circle.cs-read").count() == 1 + 2 + 4


def test_rotated_again_the_key_of_row_0_is_unharmed(page):
    open_figures(page, CacheStepper(calls=12, bug="again"))
    cells = page.locator("rect.cs-cell[data-sym=k]")
    classes = cells.evaluate_all("all => all.map((one) => one.classList.contains('cs-wrong'))")
    layers = [classes[: len(WORDS)], classes[len(WORDS) :]]
    assert layers == [[False] + [True] * (len(WORDS) - 2) + [False]] * 2  # the last key is new


def test_numbers_on_one_line_keep_apart(page):
    for width, calls in [(928, 14), (328, 3), (328, 10), (328, 14)]:
        page.set_viewport_size({"width": width + 16, "height": 900})
        open_figures(page, CacheStepper(calls=calls, prompt_length=1))
        _, drawn = page.locator(".mm-stage svg").first.evaluate(BOXES)
        boxes = sorted((round(y), x, end - x) for text, x, y, end, _ in drawn if re.fullmatch(r"\d+", text))
        lines = [list(line) for _, line in groupby(boxes, key=lambda box: box[0])]
        assert len(max(lines, key=len)) >= 6  # the calls
        for line in lines:
            assert all(left[1] + left[2] + 3 < right[1] for left, right in pairwise(line))


@pytest.fixture
def timed(browser):
    """A page of its own, whose time a test may stop: a window keeps the clock that was put into it."""
    context = browser.new_context(viewport=SIZE)
    yield context.new_page()
    context.close()


def test_play_runs_to_the_end_and_pauses(timed):
    page = timed
    open_figures(page, CacheStepper(calls=0))
    page.clock.install(time=0)
    page.clock.pause_at(60)
    pressed(page, "Play")
    assert size_of(page)[0] == "bytes in 2 rows"  # the first call waits for nothing
    page.clock.run_for(1000)
    assert size_of(page)[0] == "bytes in 4 rows"
    pressed(page, "Pause")
    page.clock.run_for(5000)
    assert size_of(page)[0] == "bytes in 4 rows"
    pressed(page, "Play")
    page.clock.run_for(20_000)
    assert size_of(page)[0] == f"bytes in {len(WORDS)} rows"
    assert page.get_by_role("button", name="Step").is_disabled()
    pressed(page, "Play")  # again, from the beginning
    assert size_of(page)[0] == "bytes in 0 rows"
    page.clock.run_for(1000)
    assert size_of(page)[0] == "bytes in 2 rows"
    pressed(page, "Step")  # a hand stops it
    page.clock.run_for(5000)
    assert size_of(page)[0] == "bytes in 4 rows"


def test_the_verdict_is_that_of_the_run(page):
    figure = CacheStepper(prompt_length=6, chunk_size=3, calls=4)
    open_figures(page, figure)
    opened(page)
    for bug, radio in zip(BUGS, page.locator(".mm-choice:not(.mm-source *) input").all(), strict=True):
        radio.check()
        verdict = page.locator(".mm-verdict").inner_text()
        parted = figure.parting(bug)
        if parted is None:
            assert verdict.startswith("✓")
        else:
            assert f"first in call {parted[0]}," in verdict
            assert f"{parted[1]:.2f}" in verdict
        for drawing in (".mm-stage", ".cs-more"):  # below the calls, and in the chart of the distances
            wrong = page.locator(f"{drawing} g[data-sym=logits] .cs-apart, {drawing} svg:has(.mm-faint) .cs-apart")
            assert wrong.count() == sum(d > 0 for d in figure._run(bug)[:4])


def test_passes_are_counted_for_the_readers_own_number(page):
    open_figures(page, CacheStepper())
    opened(page)
    numbers = page.locator(".mm-more .mm-readout dd")
    assert numbers.all_inner_texts()[:2] == ["20,700", "203"]
    page.get_by_label("new tokens").fill("10")
    assert numbers.all_inner_texts()[:2] == [f"{n:,}" for n in token_passes(4, 10)]


def test_the_keyboard_alone_gets_from_prompt_to_end(page):
    open_figures(page, CacheStepper(calls=0))
    page.get_by_role("button", name="Step").focus()
    for _ in range(len(call_sizes(4, 2, len(WORDS)))):
        page.keyboard.press("Enter")
    assert size_of(page)[0] == f"bytes in {len(WORDS)} rows"
    page.wait_for_function("document.activeElement.textContent === 'Play'")


def test_a_chunk_longer_than_the_prompt_is_the_whole_prompt(page):
    open_figures(page, CacheStepper(prompt_length=3, chunk_size=8, calls=1))
    assert size_of(page)[0] == "bytes in 3 rows"


def test_nothing_moves_for_those_who_want_no_motion(browser):
    for motion, arriving in (("reduce", 0), ("no-preference", 8)):
        context = browser.new_context(reduced_motion=motion)
        page = context.new_page()
        open_figures(page, CacheStepper(calls=0))
        for name in ("Step", "Play"):  # counted in the moment of the press: a beat later another row arrives
            button = page.get_by_role("button", name=name, exact=True)
            count = "(one) => { one.click(); return document.querySelectorAll('.cs-arrive').length; }"
            assert button.evaluate(count) == arriving
        context.close()


def test_compact_it_plays_and_steps_and_counts(page):
    open_figures(page, CacheStepper(compact=True, calls=0))
    assert page.locator(".mm-fig :is(button, input)").all_inner_texts() == ["Play", "Step"]
    before = page.locator(".mm-stage").inner_html()
    for _ in range(3):
        pressed(page, "Step")
    assert page.locator(".mm-stage").inner_html() != before
    assert page.locator(".cs-legend").inner_text().split("\n") == ["computed: 5", "read from the cache: 6"]


def test_a_figure_that_goes_stops_playing(timed):
    page = timed
    serve(page)
    page.clock.install()
    made = page.evaluate(
        """async ([source, state]) => {
            const model = { get: (key) => state[key], save_changes() {}, on() {}, off() {} };
            model.set = (name, value) => (state[name] = value);
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const el = document.body.appendChild(document.createElement("div"));
            const cleanup = await (await import(url)).default.render({ model, el });
            el.querySelector(".mm-play").click();
            cleanup();
            window.state = state;
            return state.calls;
        }""",
        [module_source("cache_stepper"), state_in(CacheStepper(calls=0).static_html())],
    )
    page.clock.run_for(5000)
    assert made == page.evaluate("state.calls") == 1


# The reader's story


def test_the_storys_words_enter_the_cache_with_the_living_models_bytes(page):
    open_figures(page, CacheStepper())
    show_story(page)
    reading = read_story()
    held = reading.model(torch.zeros(1, 1, dtype=torch.long), use_cache=True).past_key_values
    a_position = held.num_bytes()
    assert f"= {a_position:,} bytes" in page.inner_text(".cs-told")
    names = page.eval_on_selector_all(".cs-word", "all => all.map((one) => one.textContent)")
    assert names == reading.words[:20]
    assert page.locator("text[data-sym]").count() == 2 * len(held)
    page.get_by_role("button", name="Start over").click()
    for rows in (2, 4, 5, 6):
        page.get_by_role("button", name="Step").click()
        assert read_out(page)[f"bytes in {rows} rows"] == f"{rows * a_position:,}"


def test_a_long_story_is_cut_and_says_so(page):
    open_figures(page, CacheStepper())
    show_story(page)
    text = "Mia is in the hall. Tom is in the attic. Zoe is in the hall. Mia goes from the hall to the attic. " * 2
    page.evaluate("(text) => dispatchEvent(new CustomEvent('minimind-story-changed', { detail: text }))", text)
    settle(page)
    assert page.locator(".cs-word").count() == 20
    assert "the first 20 of 37 tokens" in page.inner_text(".cs-told")
