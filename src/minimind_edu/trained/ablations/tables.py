"""Two tables while they learn that words are alike: `python -m minimind_edu.trained.ablations.tables`, three minutes on
one core.

A sentence has three words: 0 or 7, then 1 or 6, then 2 or 5, at random, so the two words of a pair can replace each
other everywhere. A model of one block reads such sentences, once for each of KINDS and each seed. The program stores
how alike the rows of pairs and of all other words are after each of STOPS.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minimind_edu.device import one_thread
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.training import initialize

COURSES = Path(__file__).parent / "tables.json"

PAIRS = ((0, 7), (1, 6), (2, 5))
OTHERS = tuple(  # words that are no pair
    (a, b) for i, pair in enumerate(PAIRS) for later in PAIRS[i + 1 :] for a in pair for b in later
)
STOPS = (0, 20, 40, 80, 120, 180, 240, 300, 450, 600)  # steps after which the rows are looked at
SEEDS = (0, 1, 2, 3, 4)
LEARNING_RATE = 0.1
SMALL = 0.1  # times the usual rows that read, before training
DECAY = 0.05  # of both tables: in each step they lose so much of themselves, times the learning rate
KINDS: dict[str, dict[str, Any]] = {  # what is done to a model of two tables, or of one
    "two": {},
    "small": {"small": SMALL},
    "decay": {"decay": DECAY},
    "one": {"tied": True},
}
SENTENCES, ROWS = 64, 8  # in a batch, of which each text has as many: [8, 24]
CONFIG = MiniMindConfig(
    vocab_size=8,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    initializer_range=0.1,
    max_position_embeddings=32,
    bos_token_id=None,
    eos_token_id=None,
)


def sentences(seed: int) -> Iterator[Tensor]:
    """Batches of texts, ids [ROWS, 24], without end."""
    generator = np.random.Generator(np.random.PCG64(seed))
    while True:
        chosen = generator.integers(0, 2, (SENTENCES, len(PAIRS)))
        yield torch.from_numpy(np.array(PAIRS)[np.arange(len(PAIRS)), chosen].reshape(ROWS, -1))


@one_thread()
def watch(
    seed: int, tied: bool = False, small: float = 1.0, decay: float = 0.0, steps: int = STOPS[-1]
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Train by plain gradient descent; at each of STOPS, the step and for each table its rows `[V, E]`.

    Args:
        seed: of the weights and of the sentences.
        tied: one table for both jobs.
        small: what the rows that read are multiplied by before training.
        decay: what every table loses of itself in a step, divided by the learning rate.
        steps: how many.
    """
    config = CONFIG if tied else replace(CONFIG, tie_word_embeddings=False)
    model = initialize(MiniMindForCausalLM(config), seed).double()
    tables = {"scoring": model.lm_head.weight}
    if not tied:
        tables["reading"] = model.model.embed_tokens.weight
        tables["reading"].data.mul_(small)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    for step, batch in zip(range(steps + 1), sentences(seed), strict=False):
        if step in STOPS:
            yield step, {name: table.detach().clone() for name, table in tables.items()}
        optimizer.zero_grad()
        loss = model(batch, labels=batch).loss
        assert loss is not None  # there were labels
        loss.backward()
        optimizer.step()
        for table in tables.values():
            table.data.mul_(1 - LEARNING_RATE * decay)


def cosines(rows: Tensor, couples: tuple[tuple[int, int], ...]) -> Tensor:
    """How alike the rows of these couples of words are: `[..., V, E]` -> `[..., couples]`."""
    first, second = torch.tensor(couples).unbind(1)
    return torch.cosine_similarity(rows[..., first, :], rows[..., second, :], dim=-1)


def distance(rows: Tensor) -> Tensor:
    """How far the two words of a pair are from each other, mean of the pairs: `[..., V, E]` -> `[...]`."""
    first, second = torch.tensor(PAIRS).unbind(1)
    return (rows[..., first, :] - rows[..., second, :]).norm(dim=-1).mean(-1)


def common_and_apart(rows: Tensor) -> tuple[float, float]:
    """How long the mean of a pair's rows is, and half their difference, mean of the pairs: `[V, E]` -> two lengths."""
    first, second = torch.tensor(PAIRS).unbind(1)
    halves = (rows[first] + rows[second]) / 2, (rows[first] - rows[second]) / 2
    common, apart = (half.norm(dim=-1).mean().item() for half in halves)
    return common, apart


def course(seed: int, kind: str, steps: int = STOPS[-1]) -> dict[str, Any]:
    """One training: for each table the cosines `[stop, couple]` of pairs and others, and the distance `[stop]`."""
    looks = [rows for _, rows in watch(seed, **KINDS[kind], steps=steps)]
    tables = {}
    for name in looks[0]:
        rows = torch.stack([look[name] for look in looks])  # [stop, V, E]
        tables[name] = {
            "pairs": cosines(rows, PAIRS).tolist(),
            "others": cosines(rows, OTHERS).tolist(),
            "distance": distance(rows).tolist(),
        }
    return {"kind": kind, "seed": seed, "tables": tables}


def courses() -> list[dict[str, Any]]:
    """What is stored of every training; see `course`."""
    return json.loads(COURSES.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, COURSES)
    results = [stored.rounded(course(seed, kind), 2) for kind in KINDS for seed in SEEDS]
    lines = ",\n".join(json.dumps(result, separators=(",", ":")) for result in results)
    stored.write(f"[\n{lines}\n]\n", into)


if __name__ == "__main__":
    main()
