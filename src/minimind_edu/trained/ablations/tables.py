"""Two tables while they learn that words are alike: `python -m minimind_edu.trained.ablations.tables`, a minute on one
core.

A sentence has three words: 0 or 7, then 1 or 6, then 2 or 5, at random, so the two words of a pair can replace each
other everywhere. A model of one block reads such sentences, once with a table for reading and another for scoring,
once with one table for both. The program stores where the rows of the six words are after each of STOPS.
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
STOPS = (0, 10, 20, 30, 40, 60, 80, 100, 150, 200)  # steps after which the rows are looked at
SEEDS = (0, 1, 2)
LEARNING_RATE = 0.3
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
def watch(seed: int, tied: bool, steps: int = STOPS[-1]) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Train by plain gradient descent; at each of STOPS, the step and for each table its rows `[pair, word, E]`."""
    config = CONFIG if tied else replace(CONFIG, tie_word_embeddings=False)
    model = initialize(MiniMindForCausalLM(config), seed).double()
    tables = {"reading": model.model.embed_tokens.weight, "scoring": model.lm_head.weight}
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    for step, batch in zip(range(steps + 1), sentences(seed), strict=False):
        if step in STOPS:
            yield step, {name: table.detach()[torch.tensor(PAIRS)].clone() for name, table in tables.items()}
        optimizer.zero_grad()
        loss = model(batch, labels=batch).loss
        assert loss is not None  # there were labels
        loss.backward()
        optimizer.step()


def distances(rows: Tensor) -> Tensor:
    """How far the two words of each pair are from each other: rows `[stop, pair, word, E]` -> `[stop, pair]`."""
    return (rows[:, :, 0] - rows[:, :, 1]).norm(dim=-1)


def in_plane(rows: Tensor) -> Tensor:
    """A flat picture of rows `[stop, pair, word, E]` that keeps the distances of `distances`: `[stop, pair, word, 2]`.

    The middle of a pair is shown in the two directions in which the middles vary most, over all stops. Its two words
    are as far apart as they are in all channels, across the direction in which the pair ends.
    """
    middles = rows.mean(2)  # [stop, pair, E]
    flat = middles.flatten(0, 1) - middles.mean((0, 1))
    axes = torch.linalg.svd(flat, full_matrices=False).Vh[:2]  # [2, E]
    axes = axes * axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()  # a direction has two signs: choose one
    places = (flat @ axes.T).view(*middles.shape[:2], 2)
    outward = torch.nn.functional.normalize(places[-1] - places[-1].mean(0), dim=-1)  # [pair, 2]
    across = torch.stack([-outward[:, 1], outward[:, 0]], dim=-1)
    half = across * distances(rows)[..., None] / 2  # [stop, pair, 2]
    return torch.stack([places - half, places + half], dim=2)


def course(seed: int, tied: bool, steps: int = STOPS[-1]) -> dict[str, Any]:
    """One training: for each table the points [stop, pair, word, 2] and the mean distance within a pair [stop]."""
    looks = [rows for _, rows in watch(seed, tied, steps)]
    tables = {}
    for name in ("reading", "scoring"):
        rows = torch.stack([look[name] for look in looks])
        tables[name] = {"points": in_plane(rows).tolist(), "distances": distances(rows).mean(1).tolist()}
    return {"seed": seed, "tied": tied, "tables": tables}


def courses() -> list[dict[str, Any]]:
    """What is stored of every training; see `course`."""
    return json.loads(COURSES.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, COURSES)
    results = [stored.rounded(course(seed, tied), 2) for tied in (False, True) for seed in SEEDS]
    lines = ",\n".join(json.dumps(result, separators=(",", ":")) for result in results)
    stored.write(f"[\n{lines}\n]\n", into)


if __name__ == "__main__":
    main()
