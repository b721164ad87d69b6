"""Two neurons of the last block carry the language of a step: in both models, by a swap and its control."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from cases import long_after

from minimind_edu import world
from minimind_edu.trained.living import living_model, neurons
from minimind_edu.world.words import IDS


@pytest.fixture(scope="module", params=long_after(1, neurons.PAIRS))
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return living_model(name).requires_grad_(False)


@pytest.fixture(scope="module")
def left(model):
    """What the last block computes where somebody leaves a place, by language."""
    return neurons.leaving(model, neurons.stories())


def test_places_follow_the_word_that_is_named():
    ids = torch.from_numpy(world.encode("<s> Mia goes from the hall to the barn"))[None]
    assert neurons.after(ids, "goes from the").tolist() == [[False, False, False, True, False, False]]


def test_by_language_is_read_where_its_word_was_said(model, left):
    ids = neurons.stories()
    for language, word in neurons.LEAVING.items():
        torch.testing.assert_close(left[language], neurons.read(model, ids, neurons.after(ids, word)))


@pytest.mark.parametrize("layer", [0, -1])
def test_what_is_read_is_what_the_network_computes(model, layer):
    ids = neurons.stories()[:3]
    mlp, everywhere = neurons.network(model, layer), torch.ones_like(ids, dtype=torch.bool)
    seen = neurons.read(model, ids, everywhere, layer)
    torch.testing.assert_close((seen.gate, seen.up), (mlp.gate_proj(seen.given), mlp.up_proj(seen.given)))
    torch.testing.assert_close(seen.active, F.silu(seen.gate) * seen.up)
    logits = model.lm_head(model.model.norm(seen.stream))
    torch.testing.assert_close(logits, model(ids).logits.flatten(0, 1))


def test_random_rows_are_as_large_as_the_trained_ones_and_read_the_same(model):
    """Their products with what is read spread as those of rows of this size do, and not as the trained ones do."""
    ids = neurons.stories()[:20]
    for layer in (0, -1):
        seen = neurons.read(model, ids, torch.ones_like(ids, dtype=torch.bool), layer)
        active = neurons.active_at_random(model, seen, layer)
        assert active.shape == seen.active.shape
        assert not torch.equal(active, neurons.active_at_random(model, seen, layer, seed=1))
        mlp = neurons.network(model, layer)
        length = seen.given.pow(2).sum(-1)
        sizes = [length * part.weight.var() for part in (mlp.gate_proj, mlp.up_proj)]  # variances of both factors
        normal = torch.randn(2, 1_000, generator=torch.Generator().manual_seed(5))
        a, b = (size.sqrt()[:, None] * row for size, row in zip(sizes, normal, strict=True))
        wanted = (F.silu(a) * b).pow(2).mean()
        assert active.pow(2).mean() == pytest.approx(wanted, rel=0.25)


def test_a_kind_holds_both_languages_of_one_kind():
    def alike(labels, *words):
        return len({int(labels[IDS[word]]) for word in words}) == 1

    meanings, kinds = neurons.meanings(), neurons.kinds()
    for labels in (meanings, kinds):
        assert alike(labels, "to the", "去") and alike(labels, "hall", "大厅")
        assert not alike(labels, "to the", "the") and not alike(labels, "<s>", "⇒")
    assert not alike(meanings, "Mia", "Tom") and not alike(meanings, "hall", "barn")
    groups = [("Mia", "nobody", "利奥"), ("ball", "drum", "鼓"), ("garden", "garage", "车库"), ("she", "he", "他")]
    for group in groups:
        assert alike(kinds, *group)
    assert len({int(kinds[IDS[group[0]]]) for group in groups}) == len(groups)
    assert alike(meanings, ".", "。") and alike(meanings, "is put down by", "放下了")
    assert len(set(meanings.tolist())) == 88 - 27 - 13 and len(set(kinds.tolist())) == 88 - 2 * 27 + 4 - 13


def test_alike_counts_the_most_frequent_label_where_a_neuron_is_strongest():
    active = torch.tensor([[9.0, 0], [-8, 1], [7, 2], [1, 3], [0, 4]])
    here, then = torch.tensor([5, 5, 6, 7, 7]), torch.tensor([[1], [2], [3], [4], [4]])
    assert neurons.alike(active, here, most=3).tolist() == [2, 2]
    assert neurons.alike(active, then, most=3).tolist() == [1, 2]
    assert neurons.alike(active, here, then, most=3).tolist() == [2, 2]


def test_with_both_at_zero_the_twin_goes_on_in_english(name, model, left):
    """The pair are not the only ones that know the language."""
    held = dict.fromkeys(neurons.PAIRS[name].values(), 0)
    kept = neurons.next_words(model, left["en"], held).count("to the")
    assert kept == {"living": 30, "twin": 72}[name]


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
