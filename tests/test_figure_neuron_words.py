"""NeuronWords: what it tells of neurons is what the stored model does, whichever neurons these are."""

import numpy as np
import pytest
import torch
from browser import open_figures, read_out, settle, unfold

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
)
from minimind_edu.figures.story import LONGEST, ids_of
from minimind_edu.living import LENGTH, living_model

STORY = NeuronWords.story.default_value
OTHER = "Zoe is in the barn. where is Zoe? in the"


@pytest.fixture(scope="module")
def model():
    return living_model().requires_grad_(False)


def strength_of(model, ids: np.ndarray, block: int) -> torch.Tensor:
    """|activation| times the norm of the column, [S, I], from what gate_proj and up_proj give."""
    given: dict[str, torch.Tensor] = {}
    mlp = model.model.layers[block].mlp
    hooks = [
        getattr(mlp, name).register_forward_hook(lambda _, __, out, name=name: given.update({name: out[0]}))
        for name in ("gate_proj", "up_proj")
    ]
    model(torch.from_numpy(ids)[None])
    for hook in hooks:
        hook.remove()
    activation = torch.nn.functional.silu(given["gate_proj"]) * given["up_proj"]
    return activation.abs() * mlp.down_proj.weight.pow(2).sum(0).sqrt()


# What is measured


@pytest.mark.parametrize("story", [STORY, OTHER])
def test_the_strongest_neurons_are_told_with_their_part(model, story):
    read, ids = reading_of(story), ids_of(story)
    for block in range(model.config.num_hidden_layers):
        strength = strength_of(model, ids, block)
        part = strength / strength.sum(-1, keepdim=True)
        for at in range(len(ids)):
            neurons = [index for index, _, _ in read["top"][at][block]]
            assert len(neurons) == TOP
            told = [share for _, _, share in read["top"][at][block]]
            assert told == pytest.approx(part[at].topk(TOP).values.tolist(), rel=0.006)
            assert part[at, neurons].tolist() == pytest.approx(told, rel=0.006)
            count = read["half"][at][block]
            most = part[at].sort(descending=True).values
            assert most[:count].sum() > 0.499 and most[: count - 1].sum() < 0.501


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


def test_the_table_tells_every_block():
    sentence, rows = NeuronWords(story=OTHER, word=3)._summary()
    assert "'barn', word 3 of a story of 9" in sentence
    assert len(rows) == TOP * living_model().config.num_hidden_layers
    assert "here it pushes up" in rows[0][1]


# In the browser


@pytest.fixture
def neurons(page):
    page.set_viewport_size({"width": 944, "height": 1200})
    open_figures(page, NeuronWords())
    return page


def told(page) -> list[list[str]]:
    """Each row on the picture: its neuron, activation, words it answers to and words it pushes up."""
    cells = """all => all.map((row) => {
        const words = (list) => [...list.querySelectorAll(".nw-word")].map((one) => one.textContent).join("|");
        const [name, strength, fires, up] = row.children;
        return [name.textContent, strength.textContent, words(fires), words(up)];
    })"""
    return page.eval_on_selector_all(".nw-stage .nw-row", cells)


def test_each_word_shows_its_own_neurons_and_what_they_push(neurons):
    read, signs = reading_of(STORY), set()
    for at in range(len(read["tokens"])):
        neurons.locator(".mm-word").nth(at).click()
        rows = told(neurons)
        expected = [(block, one) for block, three in enumerate(read["top"][at]) for one in three]
        assert len(rows) == len(expected)
        for (name, activation, fires, up), (block, (index, value, _)) in zip(rows, expected, strict=True):
            known = read["neurons"][block][str(index)]
            assert name == f"block {block + 1}neuron {index}"
            assert float(activation.replace("−", "-")) == pytest.approx(value, abs=0.051)
            assert fires.split("|") == [word for word, _ in known["fires"]]
            side = known["up"] if value > 0 else known["down"]  # what a negative activation adds points the other way
            raised = [(word, push * abs(value) / read["rms"][at]) for word, push in side]
            for text, (word, push) in zip(up.split("|"), raised, strict=True):
                assert text.startswith(word)
                assert float(text.removeprefix(word).replace("−", "-")) == pytest.approx(push, abs=0.051)
            signs.add(value > 0)
    assert signs == {True, False}


@pytest.mark.parametrize("width, count", [(944, TOP), (344, 1)])
def test_the_sentence_is_true_of_the_rows(neurons, width, count):
    neurons.set_viewport_size({"width": width, "height": 1200})
    settle(neurons)
    read = reading_of(STORY)
    for at in range(len(read["tokens"])):
        neurons.locator(".mm-word").nth(at).click()
        next_word, share = read["next"][at]
        rows = neurons.locator(".nw-stage .nw-row")
        with_it = [
            f"{i // count + 1}"
            for i in range(rows.count())
            if next_word in rows.nth(i).locator(".nw-words").last.locator(".nw-marked").all_text_contents()
        ]
        verdict = neurons.locator(".mm-verdict").inner_text()
        assert verdict.startswith(f"“{next_word}” comes next")
        assert ("push it up" in verdict) == bool(with_it)
        assert all(block in verdict for block in with_it)
        word, percent = read_out(neurons)["the next word"].removesuffix("\u00a0%").rsplit(", ", 1)
        assert word == next_word and float(percent) == pytest.approx(100 * share, abs=0.51)


def test_arrow_keys_go_from_word_to_word(neurons):
    before = told(neurons)
    neurons.locator(".mm-word[aria-pressed=true]").focus()
    neurons.keyboard.press("ArrowLeft")
    assert neurons.locator(".mm-word[aria-pressed=true]").text_content() == reading_of(STORY)["tokens"][-2]
    assert told(neurons) != before


def test_words_pushed_down_are_folded(neurons):
    unfold(neurons)
    last = neurons.locator(".mm-more .nw-row").last
    assert last.locator(".nw-words").count() == 3
    assert all("−" in text for text in last.locator(".nw-words").last.locator(".nw-word").all_text_contents())


def test_compact_is_the_story_and_one_neuron_of_each_block(page):
    open_figures(page, NeuronWords(compact=True))
    assert page.locator(".nw-row").count() == living_model().config.num_hidden_layers
    assert page.locator(".mm-fig :is(input, summary)").count() == 0
