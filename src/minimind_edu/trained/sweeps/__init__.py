"""Sweeps: one training, many times over, with one number changed.

    swaps       the same task with one part's initialization large or small, all others left alone
    patience    the plateau of a small initialization, given more steps
    rates       the same training at other learning rates
    sizes       three widths of the book's model, and the compute that each loss cost
    __main__    `python -m minimind_edu.trained.sweeps` trains them with three seeds each and stores what they reached

The task of swaps and rates is one sentence to translate: it is learned in seconds, and its entropy is known.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import living
from minimind_edu.trained.training import Recipe
from minimind_edu.world.house import say

RUNS = Path(__file__).parent / "runs.json"

SEEDS = (0, 1, 2)
CONFIG = replace(
    living.CONFIG,
    hidden_size=32,
    head_dim=8,
    num_hidden_layers=2,
    intermediate_size=64,
    use_qk_norm=False,
    initializer_range=0.15,
)
RECIPE = Recipe(steps=120, learning_rate=1e-2, warmup=20)
FLOOR = 3 * math.log(8) / 13  # three of 13 words are free, each with 8 equally likely choices

LARGE, SMALL = 0.15, 0.02  # standard deviations
PARTS = {  # what is swapped together, and how its matrices are named
    "q, k": ("q_proj", "k_proj"),
    "v, o": ("v_proj", "o_proj"),
    "table": ("embed_tokens",),
    "feed-forward": ("gate_proj", "up_proj", "down_proj"),
}
SWAPS = ((), *((part,) for part in PARTS), ("v, o", "table"))  # the parts that differ from all others
PATIENCE = (240, 480)  # more steps, from SMALL everywhere
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
WIDTHS = (16, 32, 64)
SIZE_STEPS = {16: 3_700, 32: 1_000, 64: 500}
GLANCES = 12  # looks at each of the three sizes, each after 1.5 times the steps of the one before


def translations(count: int, generator: np.random.Generator) -> Tensor:
    """ids [count, 14]: somebody goes from one place to another, in English, and after the arrow in Chinese."""
    rows = []
    for person, start, goal in generator.integers(0, 8, (count, 3)):
        slots = {"P": person, "A": start, "B": goal}
        english, chinese = (say("go", language, slots) for language in (0, 1))
        rows.append([world.BOS, *english, *world.encode("⇒"), *chinese])
    return torch.tensor(rows)


def batches(seed: int) -> Iterator[Tensor]:
    """Batches [32, 14] of new sentences, without end."""
    generator = np.random.default_rng(seed)
    while True:
        yield translations(32, generator)


@torch.no_grad()
def above_floor(model: MiniMindForCausalLM) -> float:
    """How many nats per word the model's loss is above the entropy, on 200 sentences drawn anew (there are 512)."""
    rows = translations(200, np.random.default_rng(99)).to(device_of(model))
    return model(rows, labels=rows).loss.item() - FLOOR


def swapped(base: float, parts: tuple[str, ...], seed: int) -> MiniMindForCausalLM:
    """A new model with initialization `base`, and the other of LARGE and SMALL in `parts`, names of PARTS.

    The numbers drawn are the same for all; the swap multiplies some of them.
    """
    model = living.new_model(seed, replace(CONFIG, initializer_range=base))
    other = SMALL if base == LARGE else LARGE
    names = [name for part in parts for name in PARTS[part]]
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if any(name in key for name in names):
                weight.mul_(other / base)
    return model


def sized(width: int, seed: int) -> MiniMindForCausalLM:
    """The book's model before training, with another width; heads and feed-forward networks scale along."""
    config = replace(
        living.CONFIG,
        hidden_size=width,
        head_dim=width // 2,
        intermediate_size=2 * width,
        initializer_range=0.8 / math.sqrt(width),
    )
    return living.new_model(seed, config)


def at_budget(run: dict[str, Any], operations: float) -> float:
    """The distance of a run of `sizes` after so many operations, 6 for each weight and word; nan where it was not."""
    spent = 6.0 * run["parameters"] * np.array(run["words"])
    return float(np.interp(math.log(operations), np.log(spent), run["distance"], math.nan, math.nan))


def runs() -> dict[str, Any]:
    """What is stored, a list each for `swaps`, `patience`, `rates` and `sizes`: see `__main__`."""
    return json.loads(RUNS.read_text(encoding="utf-8"))
