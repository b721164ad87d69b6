"""NeuronWords: what it tells of neurons is what the stored model does, whichever neurons these are."""

import numpy as np
import pytest
import torch
from browser import open_figures, settle, unfold
from cases import long_after
from traitlets import TraitError

from minimind_edu import world
from minimind_edu.figures import NeuronWords
from minimind_edu.figures.neuron_words import (
    SEED,
    SEEN,
    STORIES,
    TOP,
    WORDS,
    answers,
    pushes,
    reading_of,
    run,
    without_each,
)
from minimind_edu.trained.living import LENGTH, living_model
from minimind_edu.web.story import LONGEST, ids_of

STORY = NeuronWords.story.default_value
OTHER = "Zoe is in the barn. where is Zoe? in the"


@pytest.fixture(scope="module")
def model():
    return living_model().requires_grad_(False)


def without(block: int, index: int):
    """The model whose column of down_proj is empty for one neuron."""
    patient = living_model().requires_grad_(False)
    patient.model.layers[block].mlp.down_proj.weight[:, index] = 0
    return patient


def probabilities(model, ids: np.ndarray) -> torch.Tensor:
    return model(torch.from_numpy(ids)[None]).logits[0].softmax(-1)  # [S, V]


# What is measured


@pytest.mark.parametrize("story", long_after(1, [STORY, OTHER]))
def test_without_a_neuron_the_next_word_is_what_the_model_without_its_column_says(model, story):
    read, ids = reading_of(story), ids_of(story)
    usual = probabilities(model, ids)
    for at, told in enumerate(read["next"]):
        words = [world.WORDS.index(word) for word, _ in told]
        assert [share for _, share in told] == pytest.approx(usual[at, words].tolist(), abs=6e-4)
        assert words[0] == usual[at].argmax() or told[0][1] == pytest.approx(told[1][1], abs=1e-3)
    for block in range(model.config.num_hidden_layers):
        for index in {one[0] for at in read["top"] for one in at[block]}:
            then = probabilities(without(block, index), ids)
            for at, top in enumerate(read["top"]):
                for _, activation, moved, shares in (one for one in top[block] if one[0] == index):
                    words = [world.WORDS.index(word) for word, _ in read["next"][at]]
                    assert shares == pytest.approx(then[at, words].tolist(), abs=6e-4)
                    assert moved == pytest.approx(((then - usual)[at].abs().sum() / 2).item(), abs=6e-4)
                    assert world.WORDS[then[at].argmax()] in [word for word, _ in read["next"][at]]
                    assert activation == pytest.approx(run(model, ids[None])[0][block, 0, at, index].item(), rel=0.006)


def test_no_neuron_that_is_left_out_moves_more(model):
    ids = ids_of(OTHER)
    usual, each = probabilities(model, ids), without_each(model, ids)
    moved = (each - usual).abs().sum(-1) / 2  # [L, I, S]
    for at, top in enumerate(reading_of(OTHER)["top"]):
        for block, shown in enumerate(top):
            others = np.setdiff1d(np.arange(moved.shape[1]), [one[0] for one in shown])
            assert len(shown) == TOP
            assert moved[block, others, at].max() <= min(one[2] for one in shown) + 0.01


def test_one_neuron_holds_a_language():
    """What the chapter tells: without it the model goes on in Chinese, with a word of the same meaning."""
    figure = NeuronWords(word=11, off="4.76")
    words = [word for word, _ in figure.reading["next"][11]]
    [told] = [one for one in figure.reading["top"][11][3] if one[0] == 75]
    assert words[0] == "to the" and told[3][words.index("to the")] < 0.01 and told[3][words.index("去")] > 0.99


def test_pushes_and_the_stream_before_the_last_network_add_up_to_the_logits(model):
    ids = ids_of(STORY)[None]
    activations, logits, rms = run(model, ids)
    before: list[torch.Tensor] = []
    last = model.model.layers[-1]
    hook = last.post_attention_layernorm.register_forward_pre_hook(lambda _, given: before.append(given[0]))
    model(torch.from_numpy(ids))
    hook.remove()
    rest = before[0] @ (model.lm_head.weight * model.model.norm.weight).T  # [1, S, V]
    network = activations[-1] @ pushes(model)[-1].T
    centered = [x - x.mean(-1, keepdim=True) for x in (logits, rest)]
    assert torch.allclose((network + centered[1]) / rms[..., None], centered[0], atol=1e-2)


def test_words_that_a_neuron_answers_to_are_its_loudest_over_many_stories(model):
    ids = world.stories(STORIES, LENGTH, np.random.Generator(np.random.PCG64(SEED)))
    loud = run(model, ids[:20])[0].abs()  # [L, 20, S, I]
    assert STORIES * LENGTH > 20 * len(world.WORDS)
    some = {}
    for block, known in enumerate(reading_of(STORY)["neurons"]):
        index, one = next(iter(known.items()))
        expected = answers()[block, :, int(index)].sort(descending=True).values[:WORDS]
        assert [mean for _, mean in one["fires"]] == pytest.approx(expected.tolist(), rel=0.006)
        word = world.WORDS.index(one["fires"][0][0])
        some[block] = loud[block, ..., int(index)][torch.from_numpy(ids[:20]) == word], loud[block, ..., int(index)]
    for at_word, everywhere in some.values():
        if len(at_word) >= SEEN:
            assert at_word.mean() > everywhere.mean()


def test_the_mean_of_a_word_is_its_mean(model):
    ids = world.stories(STORIES, LENGTH, np.random.Generator(np.random.PCG64(SEED)))
    word = world.WORDS.index("in the")
    total, times = torch.zeros(answers().shape[-1]), 0
    for part in np.array_split(ids, 6):
        chosen = run(model, part)[0][1][torch.from_numpy(part) == word].abs()  # block 2
        total += chosen.sum(0)
        times += len(chosen)
    assert torch.allclose(answers()[1, word], total / times, rtol=1e-3, atol=1e-4)


def test_pushed_words_are_the_largest_and_the_smallest_logits(model):
    each = pushes(model)
    for block, known in enumerate(reading_of(OTHER)["neurons"]):
        for index, one in known.items():
            column = model.model.layers[block].mlp.down_proj.weight[:, int(index)]
            logits = model.lm_head(model.model.norm.weight * column)
            logits = logits - logits.mean()
            assert torch.allclose(each[block, :, int(index)], logits, atol=1e-4)
            assert [push for _, push in one["up"]] == pytest.approx(logits.topk(WORDS).values.tolist(), rel=0.006)
            assert [push for _, push in one["down"]] == pytest.approx((-logits).topk(WORDS).values.tolist(), rel=0.006)


def test_the_state_is_small():
    longest = world.stories(1, LONGEST, np.random.Generator(np.random.PCG64(2)))[0]
    for figure in (NeuronWords(), NeuronWords(story=world.decode(longest[1:]))):
        assert len(figure.static_html().encode()) < 40_000
    assert all(number == float(f"{number:.3g}") for number in figure.reading["rms"])


def test_another_story_is_read_anew():
    figure = NeuronWords()
    assert figure.word == len(figure.reading["tokens"]) - 1
    figure.story = OTHER
    assert figure.reading == reading_of(OTHER)
    assert figure.word == len(ids_of(OTHER)) - 1
    assert NeuronWords(story=OTHER, word=2).word == 2


def test_a_neuron_is_on_again_at_another_word_and_in_another_story():
    figure = NeuronWords(word=11, off="4.76")
    figure.word = 5
    assert figure.off == ""
    figure.word, figure.off = 11, "4.76"
    figure.story = OTHER
    assert figure.off == ""
    with pytest.raises(TraitError, match="off must be empty or a neuron shown at word 8, 1"):
        figure.off = "4.200"


def test_the_table_tells_every_block():
    sentence, rows = NeuronWords(word=11)._summary()
    assert "'kitchen', word 11 of a story of 19" in sentence and sentence.endswith("goes on with 'to the' (100 %).")
    assert len(rows) == TOP * living_model().config.num_hidden_layers
    told = dict(rows)["neuron 76 of block 4"]
    assert "here it pushes up to the" in told and told.endswith("without it 去 (100 %)")


# In the browser


@pytest.fixture
def neurons(page):
    page.set_viewport_size({"width": 944, "height": 1200})
    open_figures(page, NeuronWords())
    return page


def texts(page, selector: str) -> list[str]:
    return page.locator(selector).all_text_contents()


def percent(text: str) -> float:
    return float(text.removesuffix(" %"))


def bars(page) -> list[tuple[str, float]]:
    """Each bar: its word with what it means, and how long it is in percent."""
    width = 'parseFloat(bar.querySelector(".mm-said").style.width)'
    found = f"all => all.map((bar) => [bar.firstChild.textContent, {width}])"
    return page.eval_on_selector_all(".nw-bar", found)


def test_each_press_shows_what_the_package_computed(neurons):
    read = reading_of(STORY)
    for at in (3, 9, 11, 18):
        neurons.locator(".mm-word").nth(at).click()
        shown = [one for block in read["top"][at] for one in block]
        words, usual = zip(*read["next"][at], strict=True)
        assert [percent(one.removeprefix("moves")) for one in texts(neurons, ".nw-moved")] == pytest.approx(
            [100 * one[2] for one in shown], abs=0.51
        )
        assert [width for _, width in bars(neurons)] == pytest.approx([100 * share for share in usual], abs=6e-4)
        for place, (_, _, _, shares) in enumerate(shown):
            switch = neurons.locator(".nw-switch").nth(place)
            switch.click()
            told = bars(neurons)
            assert all(text.startswith(word) for (text, _), word in zip(told, words, strict=True))
            assert [width for _, width in told] == pytest.approx([100 * share for share in shares], abs=6e-4)
            ticks = neurons.eval_on_selector_all(".mm-tick", "all => all.map((one) => parseFloat(one.style.left))")
            assert ticks == pytest.approx([100 * share for share in usual], abs=6e-4)
            assert neurons.locator(".nw-switch[aria-pressed=true]").count() == 1
            switch.click()  # and on again
            assert neurons.locator(".nw-switch[aria-pressed=true], .mm-tick:not([hidden])").count() == 0


def test_chinese_words_have_their_meaning(neurons):
    neurons.locator(".mm-word").nth(11).click()
    glossed = [text for text in texts(neurons, ".nw-stage .nw-word") if not text.isascii()]
    assert "去 goes to" in glossed and all(any(letter.isascii() for letter in text) for text in glossed)


def test_the_sentence_tells_whether_the_word_stays(neurons):
    verdict = neurons.locator(".mm-verdict")
    neurons.locator(".mm-word").nth(11).click()
    assert verdict.inner_text() == "Press a neuron to switch it off."
    neurons.get_by_role("button", name="block 4, neuron 76").click()
    assert verdict.inner_text() == "“to the” is gone: “去” (goes to) comes next, at 100\u00a0%."
    neurons.get_by_role("button", name="block 1, neuron 121").click()
    assert verdict.inner_text().startswith("“to the” still comes next, at 100\u00a0%: the other neurons")


def test_a_switch_keeps_the_focus(neurons):
    neurons.locator(".nw-switch").nth(3).focus()
    neurons.keyboard.press("Enter")
    assert neurons.locator(".nw-switch:focus").get_attribute("aria-pressed") == "true"


def test_arrow_keys_go_from_word_to_word(neurons):
    before = texts(neurons, ".nw-row")
    neurons.locator(".mm-word[aria-pressed=true]").focus()
    neurons.keyboard.press("ArrowLeft")
    assert neurons.locator(".mm-word[aria-pressed=true]").text_content() == reading_of(STORY)["tokens"][-2]
    assert texts(neurons, ".nw-row") != before


def test_more_tells_pushes_in_logits(neurons):
    unfold(neurons)
    read, at = reading_of(STORY), len(ids_of(STORY)) - 1
    rows = neurons.locator(".nw-table tbody tr")
    shown = [(block, one) for block, two in enumerate(read["top"][at]) for one in two]
    assert rows.count() == len(shown)
    for row, (block, (index, activation, _, _)) in zip(rows.all(), shown, strict=True):
        known, here = read["neurons"][block][str(index)], abs(activation) / read["rms"][at]
        raised, lowered = ("up", "down") if activation > 0 else ("down", "up")
        for column, side, sign in ((1, raised, 1), (2, lowered, -1)):
            smalls = (
                row.locator("td")
                .nth(column)
                .locator(".nw-word")
                .evaluate_all("all => all.map((one) => one.lastChild.textContent)")
            )
            numbers = [float(text.replace("−", "-")) for text in smalls]
            assert numbers == pytest.approx([sign * push * here for _, push in known[side]], abs=0.051)


@pytest.mark.parametrize("width, count", [(944, TOP), (344, 1)])
def test_a_phone_has_one_neuron_of_each_block(neurons, width, count):
    neurons.set_viewport_size({"width": width, "height": 1200})
    settle(neurons)
    assert neurons.locator(".nw-row").count() == count * living_model().config.num_hidden_layers


def test_compact_is_the_story_one_neuron_of_each_block_and_the_bars(page):
    open_figures(page, NeuronWords(word=11, compact=True))
    assert page.locator(".nw-switch").count() == living_model().config.num_hidden_layers
    assert page.locator(".mm-fig :is(input, summary)").count() == 0
    page.get_by_role("button", name="block 4, neuron 76").click()
    assert ["去 goes to", pytest.approx(99.6, abs=0.2)] in bars(page)
