"""routing: a look sees what the router did, and the stored runs keep what the chapter claims of them."""

import itertools
import sys
from dataclasses import replace

import pytest
import torch

from minimind_edu import world
from minimind_edu.model.moe import RouterOutput
from minimind_edu.trained import routing
from minimind_edu.trained.living import new_model, story_batches
from minimind_edu.trained.routing import (
    BATCH_SIZE,
    LENGTH,
    NUM_BLOCKS,
    NUM_EXPERTS,
    RECIPE,
    SEEDS,
    STOPS,
    TOP_K,
    __main__,
    balance,
    busiest,
    config,
    expert_loads,
    held_out,
    look,
    run_of,
    runs,
)
from minimind_edu.trained.routing.__main__ import run
from minimind_edu.trained.training import train

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
    assert outputs[0].aux_loss.item() == 0 < outputs[1].aux_loss.item()
    if top_k == 1:  # a weight that is always 1 would teach the router nothing
        assert (outputs[0].routing[0].weights < 1).all()


def test_a_look_is_what_the_routers_decided():
    model = new_model(0, config(2, False)).eval()
    ids = torch.from_numpy(world.stories(3, 16, seed=9))
    seen = look(model, ids)
    with torch.no_grad():
        decided = model(ids).routing
    assert len(seen["blocks"]) == NUM_BLOCKS
    for block, one in zip(seen["blocks"], decided, strict=True):
        counts = one.experts.flatten().bincount(minlength=NUM_EXPERTS)
        assert block["loads"] == pytest.approx((counts / counts.sum()).tolist())
        assert block["balance"] == pytest.approx(balance(one))
    assert seen["loss"] == pytest.approx(model(ids, labels=ids).loss.item())


def check_form(one):
    assert set(one) == {"top_k", "balanced", "seed", "looks"}
    for seen in one["looks"]:
        assert len(seen["blocks"]) == NUM_BLOCKS
        for block in seen["blocks"]:
            assert len(block["loads"]) == NUM_EXPERTS and sum(block["loads"]) == pytest.approx(1, abs=0.003)
            assert 0.9 < block["balance"] <= NUM_EXPERTS


def test_a_short_run_has_the_form_of_the_stored_ones_and_begins_like_one():
    made, stored = run(1, False, 0, replace(RECIPE, steps=STOPS[1])), run_of(1, False, 0)
    check_form(made)
    assert len(made["looks"]) == 2
    assert made["looks"][0]["loss"] == pytest.approx(stored["looks"][0]["loss"], abs=0.002)
    for new, old in zip(made["looks"][0]["blocks"], stored["looks"][0]["blocks"], strict=True):
        assert new["loads"] == pytest.approx(old["loads"], abs=0.005)  # a token on the edge may go elsewhere


def test_the_program_writes_what_the_book_reads(tmp_path, monkeypatch, capsys):
    made = runs()[0]
    monkeypatch.setattr(
        __main__, "run", lambda top_k, balanced, seed: made | {"top_k": top_k, "balanced": balanced, "seed": seed}
    )
    monkeypatch.setattr(sys, "argv", ["routing", "--into", str(tmp_path / "new" / "runs.json")])
    __main__.main()
    monkeypatch.setattr(routing, "RUNS", tmp_path / "new" / "runs.json")
    assert [(one["top_k"], one["balanced"], one["seed"]) for one in runs()] == VARIANTS
    monkeypatch.setattr(sys, "argv", ["routing", "--into", str(tmp_path)])
    with pytest.raises(SystemExit):
        __main__.main()
    assert f"{tmp_path} is a folder; give another name" in capsys.readouterr().err


def test_every_variant_is_stored_with_three_seeds():
    assert [(one["top_k"], one["balanced"], one["seed"]) for one in runs()] == VARIANTS
    for one in runs():
        check_form(one)
        assert len(one["looks"]) == len(STOPS)


# What the chapter says of the runs: of block 2 with one expert for each token, of all seeds


def courses(balanced: bool, top_k: int = 1) -> torch.Tensor:
    """Loads of the busiest expert of block 2, [seeds, stops]."""
    return torch.tensor([busiest(run_of(top_k, balanced, seed), 1) for seed in SEEDS])


def test_without_the_auxiliary_loss_one_expert_takes_nearly_all_and_stays_the_favorite():
    free = courses(False)
    assert (free[:, 0] < 0.4).all()
    assert (free[:, 1] > 0.95).all() and (free[:, 2] > 0.85).all()
    assert (free[:, -1] > 0.5).all()


def test_with_it_the_load_is_soon_even():
    even = courses(True)
    assert (even[:, 1] < 0.45).all() and (even[:, 2:] < 0.33).all()
    for seed in SEEDS:
        for seen in run_of(1, True, seed)["looks"][2:]:
            assert min(seen["blocks"][1]["loads"]) > 0.15
            assert seen["blocks"][1]["balance"] == pytest.approx(1, abs=0.02)


def test_with_two_experts_for_each_token_the_favorites_are_weaker():
    assert (courses(False, 2)[:, -1] < 0.4).all()


def test_in_the_first_block_favorites_are_weaker():
    for seed in SEEDS:
        assert busiest(run_of(1, False, seed), 0)[-1] < busiest(run_of(1, False, seed), 1)[-1] - 0.05


def test_balance_changes_the_loss_little():
    for seed in SEEDS:
        free, even = (run_of(1, balanced, seed)["looks"][-1]["loss"] for balanced in (False, True))
        assert free == pytest.approx(even, abs=0.05)


def early_load(model) -> float:
    """The share of the busiest expert of block 2 after the first steps of a training."""
    train(model, story_batches(1, BATCH_SIZE, LENGTH), replace(RECIPE, steps=STOPS[1], last=1.0))
    with torch.no_grad():
        return expert_loads(model(held_out()).routing[1]).max().item()


def test_a_favorite_needs_no_expert_that_learns_faster():
    model = new_model(1, config(1, False)).eval()
    for block in model.model.layers:
        block.mlp.experts = torch.nn.ModuleList([block.mlp.experts[0]] * NUM_EXPERTS)
    assert early_load(model) > 0.95


def test_a_favorite_needs_what_all_tokens_have_in_common():
    model = new_model(1, config(1, False)).eval()
    for block in model.model.layers:
        block.mlp.gate.register_forward_pre_hook(lambda _, given: given[0] - given[0].mean((0, 1)))
    assert early_load(model) < 0.5


@torch.no_grad()
def cosine(model) -> float:
    """The mean cosine between what tokens bring to the router of block 2."""
    seen = []
    hook = model.model.layers[1].mlp.gate.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(held_out()[:8])
    hook.remove()
    x = torch.nn.functional.normalize(seen[0].flatten(0, 1), dim=-1)
    return float((x @ x.T).mean())


def test_the_first_steps_give_all_tokens_nearly_one_direction():
    model = new_model(0, config(1, False)).eval()
    assert cosine(model) < 0.2
    train(model, story_batches(0, BATCH_SIZE, LENGTH), replace(RECIPE, steps=STOPS[1]))
    assert cosine(model) > 0.7
