"""routing.walk: what is stored is what the trained routers decided, and each setting was trained as it says."""

import sys
from dataclasses import replace

import pytest
import torch

from minimind_edu import world
from minimind_edu.trained.living import new_model
from minimind_edu.trained.routing import NUM_EXPERTS, RECIPE, STOPS, config, walk
from minimind_edu.trained.routing.walk import LEVELS, SENTENCES, VARIANTS, arrives, looks_at, variant_of, walks
from minimind_edu.trained.stored import rounded

WORDS = [world.WORDS[i] for i in world.encode(SENTENCES)]


def test_what_arrives_is_what_the_second_router_reads():
    model = new_model(0, config(2, False)).eval()
    tokens, mixture = arrives(model)
    ids = torch.tensor([[world.BOS, *world.encode(SENTENCES)]])
    assert tokens.shape == (len(WORDS), 48) and mixture is model.model.layers[1].mlp
    assert torch.equal(mixture.gate(tokens[None]).experts, model(ids).routing[1].experts[1:])


def test_every_variant_is_stored_as_it_was_trained():
    stored = walks()
    assert stored["words"] == WORDS and tuple(stored["stops"]) == STOPS
    assert [(one["top_k"], one["renormalize"], one["balanced"]) for one in stored["variants"]] == list(VARIANTS)
    for one in stored["variants"]:
        assert len(one["looks"]) == len(STOPS) and ("portrait" in one) is not one["balanced"]
        for look in one["looks"]:
            weights = torch.tensor(look["weights"]).view(-1, one["top_k"])
            assert len(look["experts"]) == look["experts"].count("0") + sum(map(look["experts"].count, "123"))
            assert weights.shape == (len(WORDS), one["top_k"]) and sum(look["loads"]) == pytest.approx(100, abs=2)
            total = weights.sum(-1)
            assert ((total - 100).abs() <= 1).all() if one["renormalize"] else (total < 101).all()


@pytest.mark.parametrize("variant", [(1, True, False), (2, False, True)])
def test_a_short_training_begins_like_the_stored_one(variant):
    made = list(looks_at(variant, replace(RECIPE, steps=STOPS[1], last=0.99)))
    stored = variant_of(*variant)["looks"]
    assert len(made) == 2 + (not variant[2]) and made[0]["moved"] == 0
    assert made[0]["loss"] == pytest.approx(stored[0]["loss"], abs=0.02)
    assert made[0]["loads"] == pytest.approx(stored[0]["loads"], abs=2)  # a word on the edge may go elsewhere
    assert set(made[1]) == set(stored[1])
    total = torch.tensor(made[1]["weights"]).view(-1, variant[0]).sum(-1)
    assert bool(((total - 100).abs() <= 1).all()) is variant[1], "the weights of a word add up to 1 if renormalized"


@pytest.mark.parametrize("variant", [one for one in VARIANTS if not one[2]])
def test_a_portrait_fits_what_is_seen_of_the_last_stop(variant):
    one = variant_of(*variant)
    portrait, look = one["portrait"], one["looks"][-1]
    k = one["top_k"]
    probabilities = torch.tensor(portrait["logits"]).softmax(-1)
    experts = torch.tensor([int(digit) for digit in look["experts"]]).view(-1, k)
    kept = probabilities.gather(-1, experts)
    assert (kept.sum(-1) + 0.01 >= probabilities.topk(k).values.sum(-1)).all()  # logits have two decimals
    weights = kept / kept.sum(-1, keepdim=True) if one["renormalize"] else kept
    assert torch.allclose(100 * weights, torch.tensor(look["weights"]).view(-1, k).float(), atol=1.0)
    lengths = {len(row) for name in ("rows", "vectors", "answers") for row in portrait[name]}
    assert lengths == {48} and len(portrait["answers"]) == k * len(WORDS)
    numbers = {
        name: torch.tensor([[ord(c) - ord("m") for c in row] for row in portrait[name]]) for name in ("rows", "vectors")
    }
    assert all(int(one.abs().max()) == LEVELS for one in numbers.values())
    products = (numbers["vectors"] @ numbers["rows"].T).float().flatten()  # what the strips show, up to a scale
    together = torch.stack([products, torch.tensor(portrait["logits"]).flatten()])
    assert torch.corrcoef(together)[0, 1] > 0.98


def test_the_program_writes_what_the_figure_reads(tmp_path, monkeypatch):
    made = walks()["variants"]
    stored = {(one["top_k"], one["renormalize"], one["balanced"]): one for one in made}

    def seen(variant):
        one = stored[variant]
        return [*one["looks"], *([one["portrait"]] if "portrait" in one else [])]

    monkeypatch.setattr(walk, "looks_at", seen)
    monkeypatch.setattr(sys, "argv", ["walk", "--into", str(tmp_path / "walk.json")])
    before = walk.WALK.read_text(encoding="utf-8")
    walk.main()
    assert (tmp_path / "walk.json").read_text(encoding="utf-8") == before


# What the chapter says of the stored trainings


def test_only_a_weight_that_is_always_one_teaches_the_router_nothing():
    for top_k, renormalize, balanced in VARIANTS:
        moved = variant_of(top_k, renormalize, balanced)["looks"][-1]["moved"]
        taught = top_k == 2 or not renormalize or balanced
        assert moved >= 25 if taught else moved == 0
    assert variant_of(1, False, False)["looks"][-1]["moved"] == pytest.approx(360, abs=2)


def test_it_costs_the_small_model_next_to_nothing():
    taught, idle = (variant_of(1, renormalize, False)["looks"][-1]["loss"] for renormalize in (False, True))
    assert taught == pytest.approx(1.5, abs=0.05) and idle == pytest.approx(1.5, abs=0.05)


def test_left_alone_the_router_has_a_favorite_and_with_the_auxiliary_loss_new_stories_are_shared():
    alone, balanced = (variant_of(1, False, on)["looks"] for on in (False, True))
    assert alone[1]["experts"] == len(WORDS) * alone[1]["experts"][0] and max(alone[1]["loads"]) >= 99
    assert 50 < max(alone[-1]["loads"]) < 65
    assert all(max(look["loads"]) <= 31 for look in balanced[3:])


def test_letters_keep_order_and_sign():
    rows = torch.tensor([[1.0, -0.5, 0.0], [0.25, 0.5, -1.0]])
    assert walk.letters(rows) == ["ygm", "psa"]
    assert rounded([0.126], 2) == [0.13] and NUM_EXPERTS == 4
