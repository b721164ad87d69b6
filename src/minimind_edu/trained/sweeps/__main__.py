"""Train every sweep and store what it reached: `python -m minimind_edu.trained.sweeps`, half an hour on one
core.

`--only board` trains one of board, patience, rates, other_rates, norms, scores, wide and sizes and keeps what is
stored of the others; `--into FILE` writes somewhere else.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import BATCH_SIZE, LENGTH, new_model, story_batches
from minimind_edu.trained.sweeps import (
    BOARD,
    CONFIG,
    ENDS,
    EVERY,
    GLANCES,
    LARGE,
    MATRICES,
    NORMS,
    PATIENCE,
    RATES,
    RECIPE,
    RUNS,
    SCORES_LARGER,
    SCORES_RATES,
    SEEDS,
    SIZE_STEPS,
    SMALL,
    WIDE,
    WIDE_SPREADS,
    WIDTHS,
    above_floor,
    batches,
    initialized,
    multiplied,
    sized,
)
from minimind_edu.trained.training import Recipe, train

SIZE_RECIPE = Recipe(steps=1, learning_rate=5e-3, warmup=100, last=1.0)  # a constant rate: every step is an end


def play(small: Iterable[str], seed: int, recipe: Recipe = RECIPE) -> dict[str, Any]:
    """One training from an initialization, with its distance from the floor every few steps, the first before it."""
    model = initialized(small, seed)
    above = [above_floor(model)]

    def after(step: int, _: float) -> None:
        if (step + 1) % EVERY == 0:
            above.append(above_floor(model))

    train(model, batches(seed), recipe, after)
    return {"small": list(small), "seed": seed, "above": above}


def end(small: Iterable[str], seed: int, recipe: Recipe) -> dict[str, Any]:
    """One training, with where it ends above the floor."""
    above = reached(initialized(small, seed), seed, recipe)
    return {"small": list(small), "seed": seed, "rate": recipe.learning_rate, "steps": recipe.steps, "above": above}


def reached(model: MiniMindForCausalLM, seed: int, recipe: Recipe = RECIPE) -> float:
    """Train a model; where it ends above the floor, in nats per word."""
    train(model, batches(seed), recipe)
    return above_floor(model)


def norms(setting: str, seed: int) -> dict[str, Any]:
    """One training of `sweeps.NORMS`."""
    model = multiplied(new_model(seed, CONFIG), NORMS[setting])
    return {"setting": setting, "seed": seed, "above": reached(model, seed)}


def scores(rate: float, seed: int) -> dict[str, Any]:
    """One training with small norms and scores as large as without, at a rate, with where it ends above the floor."""
    model = multiplied(new_model(seed, CONFIG), SCORES_LARGER)
    return {"seed": seed, "rate": rate, "above": reached(model, seed, replace(RECIPE, learning_rate=rate))}


def wide(setting: str, seed: int) -> dict[str, Any]:
    """One training with small norms and twice the width, its matrices as `sweeps.WIDE_SPREADS` has them."""
    config = replace(WIDE, initializer_range=WIDE_SPREADS[setting])
    model = multiplied(new_model(seed, config), {"norm": SMALL / LARGE})
    return {"setting": setting, "seed": seed, "above": reached(model, seed)}


def size(width: int, seed: int, steps: int | None = None) -> dict[str, Any]:
    """One training on stories, with its held-out loss, less the world's own, after some of its steps."""
    model, steps = sized(width, seed), steps or SIZE_STEPS[width]
    stops = sorted({max(1, round(steps / 1.5**back)) for back in range(GLANCES)})
    held_out, distances = torch.from_numpy(world.stories(100, LENGTH, seed=1_000_000)), []
    least = surprise(held_out)

    def after(step: int, _: float) -> None:
        if step + 1 in stops:
            with torch.no_grad():
                distances.append(model(held_out, labels=held_out).loss.item() - least)

    train(model, story_batches(seed), replace(SIZE_RECIPE, steps=steps), after)
    words = [stop * BATCH_SIZE * LENGTH for stop in stops]
    parameters = model.num_parameters()
    return {"width": width, "seed": seed, "parameters": parameters, "words": words, "distance": distances}


def surprise(stories: Tensor) -> float:
    """The loss on stories [B, T] of the world itself, in nats per word: no model's is lower on average."""
    exact = torch.from_numpy(np.stack([world.distributions(story) for story in stories.numpy()]))
    return -exact[:, :-1].gather(-1, stories[:, 1:, None]).log().mean().item()


def at(rates: Iterable[float]) -> list[Recipe]:
    """The recipe, at each of these rates."""
    return [replace(RECIPE, learning_rate=rate) for rate in rates]


# three times as fast; and a third as fast with as much more steps, so that the sum of the rates is what it was
OTHER_RATES = (
    (replace(RECIPE, learning_rate=3 * RECIPE.learning_rate), BOARD),
    (replace(RECIPE, learning_rate=RECIPE.learning_rate / 3, steps=3 * RECIPE.steps), ENDS),
)
SWEEPS = {  # name -> its runs, one after the other
    "board": lambda: (play(*chosen) for chosen in itertools.product(BOARD, SEEDS)),
    "patience": lambda: (
        end(small, seed, replace(RECIPE, steps=n)) for small, steps in PATIENCE.items() for n in steps for seed in SEEDS
    ),
    "rates": lambda: (end(*chosen) for chosen in itertools.product(((), MATRICES), SEEDS, at(RATES))),
    "other_rates": lambda: (end(small, 0, recipe) for recipe, those in OTHER_RATES for small in those),
    "norms": lambda: (norms(*chosen) for chosen in itertools.product(NORMS, SEEDS)),
    "scores": lambda: (scores(*chosen) for chosen in itertools.product(SCORES_RATES, SEEDS)),
    "wide": lambda: (wide(*chosen) for chosen in itertools.product(WIDE_SPREADS, SEEDS)),
    "sizes": lambda: (size(*chosen) for chosen in itertools.product(WIDTHS, SEEDS)),
}


def main() -> None:
    stored.lists_of_runs(__doc__, SWEEPS, RUNS, partial(stored.rounded, digits=4))


if __name__ == "__main__":
    main()
