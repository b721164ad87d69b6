"""routing: a look sees what the router did, and the stored runs keep what the figure claims of them."""

import itertools

import pytest
import torch

from minimind_edu import world
from minimind_edu.living import new_model
from minimind_edu.moe import RouterOutput
from minimind_edu.routing import (
    NUM_BLOCKS,
    NUM_EXPERTS,
    SEEDS,
    STOPS,
    TOP_K,
    balance,
    config,
    expert_loads,
    look,
    run_of,
    runs,
    words,
)
from minimind_edu.routing.__main__ import READ, SHOWN, run
from minimind_edu.training import Recipe

VARIANTS = list(itertools.product(TOP_K, (False, True), SEEDS))


def routed(experts: list[list[int]]) -> RouterOutput:
    """What a router decided that is sure of its choice among 4 experts."""
    chosen = torch.tensor(experts)
    probabilities = torch.nn.functional.one_hot(chosen, 4).float().mean(1)
    return RouterOutput(torch.ones(chosen.shape), chosen, probabilities, torch.tensor(0.0))


def test_loads_are_shares_of_the_assignments():
    assert expert_loads(routed([[0], [2], [2], [2]])).tolist() == [0.25, 0, 0.75, 0]
    assert expert_loads(routed([[0, 1], [0, 3]])).tolist() == [0.5, 0.25, 0, 0.25]


def test_balance_is_one_where_all_is_even_and_n_where_one_expert_has_all():
    assert balance(routed([[0], [1], [2], [3]])) == pytest.approx(1)
    assert balance(routed([[1], [1], [1]])) == pytest.approx(4)


@pytest.mark.parametrize("top_k", TOP_K)
def test_a_variant_differs_in_what_its_name_says(top_k):
    free, even = config(top_k, False), config(top_k, True)
    assert (free.num_experts_per_tok, free.router_aux_loss_coef) == (top_k, 0)
    assert even.router_aux_loss_coef > 0
    ids = torch.from_numpy(world.stories(2, 16, seed=9))
    outputs = [new_model(0, one)(ids, labels=ids) for one in (free, even)]
    assert torch.equal(outputs[0].logits, outputs[1].logits)
    assert float(outputs[0].aux_loss) == 0 < float(outputs[1].aux_loss)
    if top_k == 1:  # a weight that is always 1 would teach the router nothing
        assert (outputs[0].routing[0].weights < 1).all()


def test_a_look_is_what_the_routers_decided():
    model = new_model(0, config(2, False)).eval()
    ids = torch.from_numpy(world.stories(3, 16, seed=9))
    seen = look(model, ids, ids[:1])
    decided = model(ids[:1]).routing
    assert len(seen["blocks"]) == NUM_BLOCKS
    for block, one in zip(seen["blocks"], decided, strict=True):
        assert block["experts"] == one.experts.tolist() and block["weights"] == one.weights.tolist()
        assert sum(block["loads"]) == pytest.approx(1)
    assert seen["loss"] == pytest.approx(float(model(ids, labels=ids).loss))


def check_form(one):
    assert set(one) == {"top_k", "balanced", "seed", "looks"}
    for seen in one["looks"]:
        assert len(seen["blocks"]) == NUM_BLOCKS
        for block in seen["blocks"]:
            assert len(block["loads"]) == NUM_EXPERTS and sum(block["loads"]) == pytest.approx(1, abs=0.003)
            assert 0.9 < block["balance"] <= NUM_EXPERTS
            assert [len(chosen) for chosen in block["experts"]] == [one["top_k"]] * len(SHOWN)
            assert [len(chosen) for chosen in block["weights"]] == [one["top_k"]] * len(SHOWN)
            assert all(0 <= expert < NUM_EXPERTS for chosen in block["experts"] for expert in chosen)
            if one["top_k"] > 1:
                assert all(sum(chosen) == pytest.approx(1, abs=0.002) for chosen in block["weights"])


def test_a_short_run_has_the_form_of_the_stored_ones_and_begins_like_one():
    made, stored = run(1, False, 0, Recipe(steps=STOPS[1], warmup=20)), run_of(1, False, 0)
    check_form(made)
    assert len(made["looks"]) == 2
    assert made["looks"][0]["loss"] == pytest.approx(stored["looks"][0]["loss"], abs=0.002)
    for new, old in zip(made["looks"][0]["blocks"], stored["looks"][0]["blocks"], strict=True):
        assert new["loads"] == pytest.approx(old["loads"], abs=0.005)  # a token on the edge may go elsewhere


def test_every_variant_is_stored_with_three_seeds():
    assert [(one["top_k"], one["balanced"], one["seed"]) for one in runs()] == VARIANTS
    for one in runs():
        check_form(one)
        assert len(one["looks"]) == len(STOPS)
    assert words() == [world.WORDS[i] for i in SHOWN]
    assert READ[0, -len(SHOWN) :].tolist() == SHOWN.tolist()


# What the figure and the chapter say of the runs
