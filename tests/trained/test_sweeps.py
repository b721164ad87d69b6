"""sweeps: a small part is small and nothing else is and nothing else, and what is stored comes from these programs."""

import json
import math
import sys

import numpy as np
import pytest
import torch
from cases import long_after

from minimind_edu import world
from minimind_edu.trained.sweeps import (
    BOARD,
    CONFIG,
    ENDS,
    EVERY,
    FLOOR,
    LARGE,
    MATRICES,
    NORMS,
    PARTS,
    PATIENCE,
    RATES,
    RECIPE,
    SCORES_LARGER,
    SCORES_RATES,
    SEEDS,
    SIZE_STEPS,
    SMALL,
    WIDE_SPREADS,
    WIDTHS,
    __main__,
    above_floor,
    at_budget,
    batches,
    initialized,
    multiplied,
    runs,
    sized,
    spread_of_scores,
    translations,
)
from minimind_edu.trained.training import Recipe


def test_the_floor_is_the_worlds_own_entropy():
    rows = translations(2_000, np.random.default_rng(1))
    kinds = [len(rows[:, column].unique()) for column in range(1, rows.shape[1])]
    assert kinds.count(8) == 6 and kinds.count(1) == len(kinds) - 6  # three free words, said twice
    assert pytest.approx(3 * math.log(8) / len(kinds)) == FLOOR


def test_batches_are_the_same_for_a_seed_and_others_for_another():
    first, again, other = (next(batches(seed)) for seed in (0, 0, 1))
    assert first.shape == (32, 14)
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize("part", PARTS)
def test_a_small_part_is_multiplied_and_all_else_left_alone(part):
    plain, changed = initialized((), 0), initialized((part,), 0)
    touched = set()
    for (name, weight), new in zip(plain.named_parameters(), changed.parameters(), strict=True):
        if any(key in name for key in PARTS[part]):
            torch.testing.assert_close(new, weight * (SMALL / LARGE))
            touched.add(name)
        else:
            assert torch.equal(new, weight)
    assert touched


def test_large_is_the_configs_spread_and_a_gain_of_one():
    for name, weight in initialized((), 0).named_parameters():
        if weight.dim() == 2:
            assert weight.std().item() == pytest.approx(LARGE, rel=0.05), name
        else:
            assert torch.equal(weight, torch.ones_like(weight)), name


def test_the_parts_are_all_parameters_each_once():
    for name, weight in initialized((), 0).named_parameters():
        [owner] = [part for part, keys in PARTS.items() if any(key in name for key in keys)]
        assert (owner in MATRICES) == (weight.dim() == 2)


def test_the_board_has_every_set_of_parts_once():
    assert len(set(map(frozenset, BOARD))) == len(BOARD) == 2 ** len(PARTS)
    assert set(ENDS) <= set(BOARD) and len(ENDS) == len(PARTS) + 3


def test_scores_are_those_of_the_first_head():
    model, small = initialized((), 0), initialized(("q, k",), 0)
    layer = model.model.layers[0]
    ids = translations(32, np.random.default_rng(1))
    x = layer.input_layernorm(model.model.embed_tokens(ids))
    q, k = (part(x).unflatten(-1, (-1, 8))[:, :, 0] for part in (layer.self_attn.q_proj, layer.self_attn.k_proj))
    assert spread_of_scores(model) == pytest.approx((q @ k.mT / 8**0.5).std().item(), rel=1e-4)
    assert spread_of_scores(small) == pytest.approx(spread_of_scores(model) * (SMALL / LARGE) ** 2, rel=1e-3)


def test_sizes_are_the_books_model_at_other_widths():
    counts = [sized(width, 0).num_parameters() for width in WIDTHS]
    assert counts == sorted(counts) and counts[-1] == 203_072  # the book's own


def test_a_budget_is_spent_on_weights_times_words():
    run = {"parameters": 100, "words": [10, 1_000], "distance": [3.0, 1.0]}
    assert at_budget(run, 6_000) == 3.0 and at_budget(run, 600_000) == 1.0
    assert at_budget(run, 60_000) == pytest.approx(2.0)  # half way, in factors
    assert math.isnan(at_budget(run, 5_000)) and math.isnan(at_budget(run, 700_000))


def test_stored_runs_are_of_these_sweeps():
    stored = runs()
    every = [(small, seed) for small in BOARD for seed in SEEDS]
    assert [(tuple(one["small"]), one["seed"]) for one in stored["board"]] == every
    for one in stored["board"]:
        assert len(one["above"]) == RECIPE.steps // EVERY + 1 and -0.01 < one["above"][-1] < 1
    for name, made in {
        "patience": [(small, n, RECIPE.learning_rate) for small, steps in PATIENCE.items() for n in steps],
        "rates": [(small, RECIPE.steps, rate) for small in ((), MATRICES) for rate in RATES],
    }.items():
        kept = {(tuple(one["small"]), one["steps"], one["rate"], one["seed"]) for one in stored[name]}
        assert kept == {(*each, seed) for each in made for seed in SEEDS}, name
    others = [(tuple(one["small"]), one["steps"]) for one in stored["other_rates"]]
    assert others == [(small, recipe.steps) for recipe, those in __main__.OTHER_RATES for small in those]
    for name, settings in {"norms": NORMS, "wide": WIDE_SPREADS}.items():
        kept = [(one["setting"], one["seed"]) for one in stored[name]]
        assert kept == [(setting, seed) for setting in settings for seed in SEEDS]
    kept = [(one["rate"], one["seed"]) for one in stored["scores"]]
    assert kept == [(rate, seed) for rate in SCORES_RATES for seed in SEEDS]
    assert {(one["width"], one["seed"]) for one in stored["sizes"]} == {(w, s) for w in WIDTHS for s in SEEDS}
    for one in stored["sizes"]:
        assert one["words"][-1] == SIZE_STEPS[one["width"]] * 16 * 96
        assert one["parameters"] == sized(one["width"], 0).num_parameters()
        assert len(one["words"]) == len(one["distance"])


def test_a_stored_training_is_what_is_trained_now():
    made = __main__.play(("q, k",), 0)["above"]
    [stored] = [one["above"] for one in runs()["board"] if (one["small"], one["seed"]) == (["q, k"], 0)]
    assert made == pytest.approx(stored, abs=0.02)
    assert made[-1] == pytest.approx(stored[-1], abs=0.005)


@pytest.mark.parametrize(("name", "setting"), long_after(1, [("norms", "the four in the blocks"), ("wide", "0.15/√2")]))
def test_a_stored_swap_is_what_is_trained_now(name, setting):
    [stored] = [one for one in runs()[name] if (one["setting"], one["seed"]) == (setting, 1)]
    assert getattr(__main__, name)(setting, 1)["above"] == pytest.approx(stored["above"], abs=0.02)


def test_a_stored_training_with_larger_scores_is_what_is_trained_now():
    [stored] = [one for one in runs()["scores"] if (one["rate"], one["seed"]) == (SCORES_RATES[0], 1)]
    assert __main__.scores(SCORES_RATES[0], 1)["above"] == pytest.approx(stored["above"], abs=0.02)


def test_larger_queries_and_keys_give_small_norms_the_scores_of_large_ones():
    plain, made = initialized((), 0), multiplied(initialized((), 0), SCORES_LARGER)
    assert spread_of_scores(made) == pytest.approx(spread_of_scores(plain), rel=1e-3)
    assert spread_of_scores(initialized(("norm",), 0)) < 0.02


def test_every_parameter_is_multiplied_by_all_factors_in_its_name():
    plain, changed = initialized((), 0), multiplied(initialized((), 0), {"norm": 0.5, "model.norm": 0.5, "q_proj": 3})
    for (name, weight), new in zip(plain.named_parameters(), changed.parameters(), strict=True):
        factor = 0.25 if name == "model.norm.weight" else 0.5 if "norm" in name else 3 if "q_proj" in name else 1
        torch.testing.assert_close(new, factor * weight)


def test_an_untrained_model_is_far_above_the_floor():
    assert above_floor(initialized(MATRICES, 0)) == pytest.approx(math.log(CONFIG.vocab_size) - FLOOR, abs=0.05)


def test_the_surprise_of_the_world_is_below_that_of_any_model():
    stories = torch.from_numpy(world.stories(5, 48, seed=3))
    model = sized(16, 0)
    with torch.no_grad():
        assert 0.3 < __main__.surprise(stories) < model(stories, labels=stories).loss.item()


def test_the_program_stores_its_sweeps(tmp_path, monkeypatch):
    short = {"patience": lambda: iter([__main__.end((), 0, Recipe(steps=2))])}
    monkeypatch.setattr(__main__, "SWEEPS", short)
    monkeypatch.setattr(sys, "argv", ["sweeps", "--into", str(tmp_path / "runs.json")])
    __main__.main()
    [run] = json.loads((tmp_path / "runs.json").read_text())["patience"]
    assert run["steps"] == 2 and run["above"] == round(run["above"], 4)


@pytest.mark.long
def test_a_size_is_looked_at_more_and_more_rarely():
    run = __main__.size(16, 0, steps=30)
    assert run["words"][-1] == 30 * 16 * 96 and run["words"] == sorted(set(run["words"]))
    assert len(run["words"]) == len(run["distance"]) and run["distance"][-1] < run["distance"][0]
