"""sweeps: a swap changes one part and nothing else, and what is stored comes from these programs."""

import json
import math
import sys

import numpy as np
import pytest
import torch

from minimind_edu import world
from minimind_edu.trained.sweeps import (
    CONFIG,
    FLOOR,
    LARGE,
    PARTS,
    PATIENCE,
    RATES,
    RECIPE,
    SEEDS,
    SIZE_STEPS,
    SMALL,
    SWAPS,
    WIDTHS,
    __main__,
    above_floor,
    at_budget,
    batches,
    runs,
    sized,
    swapped,
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


@pytest.mark.parametrize("base, other", [(LARGE, SMALL), (SMALL, LARGE)])
@pytest.mark.parametrize("part", PARTS)
def test_a_swap_multiplies_one_part_and_leaves_all_else(part, base, other):
    plain, changed = swapped(base, (), 0), swapped(base, (part,), 0)
    assert plain.config.initializer_range == base
    touched = set()
    for (name, weight), new in zip(plain.named_parameters(), changed.parameters(), strict=True):
        if any(key in name for key in PARTS[part]):
            torch.testing.assert_close(new, weight * (other / base))
            touched.add(name)
        else:
            assert torch.equal(new, weight)
    assert touched


def test_the_parts_are_all_matrices_each_once():
    for name, weight in swapped(LARGE, (), 0).named_parameters():
        owners = [part for part, keys in PARTS.items() if any(key in name for key in keys)]
        assert len(owners) == (weight.dim() == 2)


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
    every = [(base, parts, seed) for base in (LARGE, SMALL) for parts in SWAPS for seed in SEEDS]
    assert [(one["base"], tuple(one["parts"]), one["seed"]) for one in stored["swaps"]] == every
    assert [(one["steps"], one["seed"]) for one in stored["patience"]] == [(n, s) for n in PATIENCE for s in SEEDS]
    assert {(one["base"], one["rate"]) for one in stored["rates"]} == {(b, r) for b in (LARGE, SMALL) for r in RATES}
    assert {(one["width"], one["seed"]) for one in stored["sizes"]} == {(w, s) for w in WIDTHS for s in SEEDS}
    for one in stored["sizes"]:
        assert one["words"][-1] == SIZE_STEPS[one["width"]] * 16 * 96
        assert one["parameters"] == sized(one["width"], 0).num_parameters()
        assert len(one["words"]) == len(one["distance"])
    for one in stored["swaps"]:
        assert one["steps"] == RECIPE.steps and -0.01 < one["above"] < 1


def test_a_stored_swap_is_what_is_trained_now():
    made = __main__.swap(LARGE, ("q, k",), 0)
    [stored] = [one for one in runs()["swaps"] if (one["base"], one["parts"], one["seed"]) == (LARGE, ["q, k"], 0)]
    assert made["above"] == pytest.approx(stored["above"], abs=0.005)


def test_an_untrained_model_is_far_above_the_floor():
    assert above_floor(swapped(SMALL, (), 0)) == pytest.approx(math.log(CONFIG.vocab_size) - FLOOR, abs=0.05)


def test_the_surprise_of_the_world_is_below_that_of_any_model():
    stories = torch.from_numpy(world.stories(5, 48, seed=3))
    model = sized(16, 0)
    with torch.no_grad():
        assert 0.3 < __main__.surprise(stories) < model(stories, labels=stories).loss.item()


def test_the_program_trains_one_sweep_and_keeps_the_others(tmp_path, monkeypatch, capsys):
    short = {"swaps": lambda: iter([__main__.swap(LARGE, (), 0, Recipe(steps=2))])}
    monkeypatch.setattr(__main__, "SWEEPS", short)
    (tmp_path / "runs.json").write_text('{"rates": [1]}')
    monkeypatch.setattr(sys, "argv", ["sweeps", "--only", "swaps", "--into", str(tmp_path / "runs.json")])
    __main__.main()
    written = json.loads((tmp_path / "runs.json").read_text())
    assert written["rates"] == [1] and written["swaps"][0]["steps"] == 2
    assert capsys.readouterr().out.startswith("swaps {")


def test_a_size_is_looked_at_more_and_more_rarely():
    run = __main__.size(16, 0, steps=30)
    assert run["words"][-1] == 30 * 16 * 96 and run["words"] == sorted(set(run["words"]))
    assert len(run["words"]) == len(run["distance"]) and run["distance"][-1] < run["distance"][0]
