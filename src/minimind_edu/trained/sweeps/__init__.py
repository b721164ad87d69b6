"""Sweeps: one training, many times over, with one number changed.

    board       a model of five parts, each initialized large or small: 32 trainings, and how each went
    patience    three small initializations, given more steps
    rates       the same training at other learning rates
    other_rates the board at three times the rate, and what its ends need at a third of it
    norms       some norms small, or all of them and what reads them larger, or nothing but what reads them small
    scores      small norms, and queries and keys so much larger that their scores are not small, at two rates
    wide        small norms in a model twice as wide, its matrices as large as the others, or as is usual at its width
    sizes       three widths of the book's model, and the compute that each loss cost
    __main__    `python -m minimind_edu.trained.sweeps` trains them with three seeds each and stores what they reached

The task of all but the sizes is one sentence to translate: it is learned in seconds, and its entropy is known.
"""

import itertools
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import living
from minimind_edu.trained.training import Recipe
from minimind_edu.world.house import say

RUNS = Path(__file__).parent / "runs.json"

SEEDS = (0, 1, 2)
LARGE, SMALL = 0.15, 0.02  # standard deviations of matrices; a small norm's gains are 1 * SMALL / LARGE
CONFIG = replace(
    living.CONFIG,
    hidden_size=32,
    head_dim=8,
    num_hidden_layers=2,
    intermediate_size=64,
    use_qk_norm=False,
    initializer_range=LARGE,
)
RECIPE = Recipe(steps=120, learning_rate=1e-2, warmup=20)
FLOOR = 3 * math.log(8) / 13  # three of 13 words are free, each with 8 equally likely choices

PARTS = {  # what is large or small together, and how its parameters are named
    "table": ("embed_tokens",),
    "q, k": ("q_proj", "k_proj"),
    "v, o": ("v_proj", "o_proj"),
    "feed-forward": ("gate_proj", "up_proj", "down_proj"),
    "norm": ("norm",),
}
MATRICES = ("table", "q, k", "v, o", "feed-forward")
BOARD = tuple(chosen for count in range(6) for chosen in itertools.combinations(PARTS, count))  # what is small
EVERY = 10  # steps between two looks
PATIENCE = {MATRICES: (240, 480), ("norm",): (240, 480), tuple(PARTS): (240, 480, 960, 1920)}  # small -> more steps
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
ENDS = tuple(small for small in BOARD if len(small) in (0, 1, 5) or small == MATRICES)
READERS = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj")  # what reads the output of a block's norms
NORMS: dict[str, dict[str, float]] = {  # what parameters are multiplied by before training, by a part of their names
    "the last norm small": {"model.norm": SMALL / LARGE},
    "the four in the blocks": {"layernorm": SMALL / LARGE},
    "all, and readers larger": {"norm": SMALL / LARGE} | dict.fromkeys(READERS, LARGE / SMALL),
    "all, readers and table": {"norm": SMALL / LARGE} | dict.fromkeys((*READERS, "embed_tokens"), LARGE / SMALL),
    "none, readers and table small": dict.fromkeys((*READERS, "embed_tokens"), SMALL / LARGE),
}
SCORES_LARGER = {"norm": SMALL / LARGE} | dict.fromkeys(("q_proj", "k_proj"), LARGE / SMALL)
SCORES_RATES = (1e-2, 3e-2)
WIDE = replace(CONFIG, hidden_size=64, head_dim=16, intermediate_size=128)
WIDE_SPREADS = {"0.15": LARGE, "0.15/√2": LARGE / math.sqrt(2)}
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


def initialized(small: Iterable[str], seed: int) -> MiniMindForCausalLM:
    """A new model whose parts are large, but for those in `small`, names of PARTS.

    The numbers drawn are the same for all; those of small parts are multiplied by SMALL / LARGE, and gains of 1 too.
    """
    names = [name for part in small for name in PARTS[part]]
    return multiplied(living.new_model(seed, CONFIG), dict.fromkeys(names, SMALL / LARGE))


@torch.no_grad()
def multiplied(model: MiniMindForCausalLM, factors: dict[str, float]) -> MiniMindForCausalLM:
    """The model, each parameter multiplied by the factors whose keys are in its name."""
    for name, weight in model.named_parameters():
        weight.mul_(math.prod(factor for key, factor in factors.items() if key in name))
    return model


@torch.no_grad()
def spread_of_scores(model: MiniMindForCausalLM) -> float:
    """The standard deviation of the scores of the first head of the first block, before they are rotated."""
    rows = translations(32, np.random.default_rng(1)).to(device_of(model))
    layer, config = cast(MiniMindBlock, model.model.layers[0]), model.config
    x = layer.input_layernorm(model.model.embed_tokens(rows))  # [32, 14, E]
    q, k = layer.self_attn.q_proj(x), layer.self_attn.k_proj(x)
    first = slice(config.head_dim)  # [32, 14, D] of each
    return (q[..., first] @ k[..., first].mT / math.sqrt(config.head_dim)).std().item()


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
    """What is stored, a list each for `board`, `patience`, `rates`, `other_rates`, `norms`, `scores`,
    `wide` and `sizes`: see `__main__`."""
    return json.loads(RUNS.read_text(encoding="utf-8"))
