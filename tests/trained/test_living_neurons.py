"""Two neurons of the last block carry the language of a step: in both models, by a swap and its control."""

from collections import Counter

import pytest
import torch

from minimind_edu import world
from minimind_edu.trained.living import living_model, neurons


@pytest.fixture(scope="module", params=neurons.PAIRS)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return living_model(name).requires_grad_(False)


@pytest.fixture(scope="module")
def left(model):
    """What the last block computes where somebody leaves a place, by language."""
    ids = neurons.stories()
    return {name: neurons.read(model, ids, neurons.after(ids, word)) for name, word in neurons.LEAVING.items()}


def test_places_follow_the_word_that_is_named():
    ids = torch.from_numpy(world.encode("<s> Mia goes from the hall to the barn"))[None]
    assert neurons.after(ids, "goes from the").tolist() == [[False, False, False, True, False, False]]


def test_held_as_in_a_hook_on_the_whole_model(model, left):
    """Nothing after the network of the last block but norm and head: what is computed anew is the model's own."""
    ids = neurons.stories()
    where = neurons.after(ids, neurons.LEAVING["en"])

    def hold(_, given):
        active = given[0].clone()
        active[..., 75] = -12.5
        return (active,)

    hook = neurons.network(model).down_proj.register_forward_pre_hook(hold)
    wanted = model(ids).logits[where]
    hook.remove()
    torch.testing.assert_close(neurons.logits_held(model, left["en"], {75: -12.5}), wanted, atol=1e-3, rtol=1e-4)


def test_exchanging_the_pair_exchanges_the_language_and_the_others_change_no_word(name, model, left):
    pair = set(neurons.PAIRS[name].values())
    rest = set(range(left["en"].active.shape[1])) - pair
    for own, other in (("en", "zh"), ("zh", "en")):
        count = len(left[own].stream)
        for which, word in ((pair, neurons.THEN[other]), (rest, neurons.THEN[own])):
            means = {i: left[other].active[:, i].mean() for i in which}
            assert Counter(neurons.next_words(model, left[own], means)) == {word: count}


def test_the_word_changes_once_where_flips_says(name, model, left):
    """Above it another word follows, and from it down to the lowest shown activation the neuron's own."""
    i = neurons.PAIRS[name]["en"]
    for language in ("en", "zh"):
        ends = torch.tensor(neurons.flips(model, left[language], i))
        for active in range(-160, 21, 20):
            said = neurons.next_words(model, left[language], {i: float(active)})
            assert [word == neurons.THEN["en"] for word in said] == (active <= ends).tolist()


def test_what_the_figure_stores_adds_up_to_the_models_logits():
    model = living_model().double().requires_grad_(False)
    stored = neurons.measured()
    for language, text in neurons.TOLD.items():
        told = stored["told"][language]
        ids = torch.from_numpy(world.encode(text))[None]
        assert told["tokens"] == [world.WORDS[i] for i in ids[0].tolist()]
        first, second = told["active"]
        parts = [torch.tensor(row, dtype=torch.float64) for row in (told["rest"], *stored["columns"])]
        a, b, c = stored["products"]
        own, one, two = told["products"]
        square = own + 2 * (first * one + second * two) + first**2 * a + 2 * first * second * b + second**2 * c
        logits = (parts[0] + first * parts[1] + second * parts[2]) / (square / stored["size"] + stored["eps"]) ** 0.5
        torch.testing.assert_close(logits, model(ids).logits[0, -1], atol=1e-8, rtol=1e-8)
