"""Two tables while they learn that words are alike: `python -m minimind_edu.trained.ablations.tables`, three minutes on
one core.

A sentence has three words: 0 or 7, then 1 or 6, then 2 or 5, at random, so the two words of a pair can replace each
other everywhere. A model of one block reads such sentences, once for each of KINDS and ELSEWHERE and each seed. The
program stores how alike the rows of pairs and of all other words are after each of STOPS, what a pair shares, and what
it costs in each table to tell the words of a pair further apart.
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
FAST: dict[str, Any] = {"rate": 0.3, "steps": 200}
WITH_ADAM: dict[str, Any] = {"adam": True, "rate": 0.003, "steps": 200}
ELSEWHERE: dict[str, dict[str, Any]] = {  # two tables at other settings; no figure shows these
    "rate × 3": FAST,
    "no block": FAST | {"blocks": 0},
    "Adam": WITH_ADAM,
    "Adam, decay": WITH_ADAM | {"decay": 3.0},
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


def watch(seed: int, **how: Any) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """At each of STOPS and at the end of a training: the step, and for each table its rows `[V, E]`.

    Args: as those of `trained`.
    """
    for step, _, tables in trained(seed, **how):
        yield step, _copies(tables)


@one_thread()
def trained(
    seed: int,
    tied: bool = False,
    small: float = 1.0,
    decay: float = 0.0,
    steps: int = STOPS[-1],
    rate: float = LEARNING_RATE,
    blocks: int = 1,
    adam: bool = False,
) -> Iterator[tuple[int, MiniMindForCausalLM, dict[str, Tensor]]]:
    """Train by plain gradient descent; at each of STOPS and at the end, the step, the model as it is then, and its
    tables, no copies. After the last look the model is trained no further.

    Args:
        seed: of the weights and of the sentences.
        tied: one table for both jobs.
        small: what the rows that read are multiplied by before training.
        decay: what every table loses of itself in a step, divided by the learning rate.
        steps: how many.
        rate: the learning rate.
        blocks: between reading and scoring.
        adam: Adam in place of plain gradient descent.
    """
    config = CONFIG if tied else replace(CONFIG, tie_word_embeddings=False)
    model = initialize(MiniMindForCausalLM(config), seed).double()
    model.model.layers = model.model.layers[:blocks]
    tables = {"scoring": model.lm_head.weight}
    if not tied:
        tables["reading"] = model.model.embed_tokens.weight
        tables["reading"].data.mul_(small)
    optimizer = (torch.optim.Adam if adam else torch.optim.SGD)(model.parameters(), lr=rate)
    for step, batch in zip(range(steps + 1), sentences(seed), strict=False):
        if step in (*STOPS, steps):
            yield step, model, tables
        if step == steps:
            return
        optimizer.zero_grad()
        loss = model(batch, labels=batch).loss
        assert loss is not None  # there were labels
        loss.backward()
        optimizer.step()
        for table in tables.values():
            table.data.mul_(1 - rate * decay)


def _copies(tables: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: table.detach().clone() for name, table in tables.items()}


def cosines(rows: Tensor, couples: tuple[tuple[int, int], ...]) -> Tensor:
    """How alike the rows of these couples of words are: `[..., V, E]` -> `[..., couples]`."""
    first, second = torch.tensor(couples).unbind(1)
    return torch.cosine_similarity(rows[..., first, :], rows[..., second, :], dim=-1)


def distance(rows: Tensor) -> Tensor:
    """How far the two words of a pair are from each other, mean of the pairs: `[..., V, E]` -> `[...]`."""
    first, second = torch.tensor(PAIRS).unbind(1)
    return (rows[..., first, :] - rows[..., second, :]).norm(dim=-1).mean(-1)


def parts(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of the rows of each pair, and half their difference: `[V, E]` -> two of `[pairs, E]`."""
    first, second = torch.tensor(PAIRS).unbind(1)
    return (rows[first] + rows[second]) / 2, (rows[first] - rows[second]) / 2


def common_and_apart(rows: Tensor) -> tuple[float, float]:
    """How long the two `parts` are, mean of the pairs: `[V, E]` -> two lengths."""
    common, apart = (part.norm(dim=-1).mean().item() for part in parts(rows))
    return common, apart


def given(begin: dict[str, Tensor], end: dict[str, Tensor]) -> dict[str, float]:
    """The mean cosine of pairs in the trained table that reads, if it had what scoring has: of the common part the
    length (`common`), or of what tells rows apart the share that is left (`apart`), or both.

    Args:
        begin: the rows `[V, E]` of both tables before training.
        end: those after it.
    """
    common, apart = parts(end["reading"])
    (more, less), (shared, kept) = (common_and_apart(end[name]) for name in ("scoring", "reading"))
    before = {name: common_and_apart(rows)[1] for name, rows in begin.items()}
    grown = more / shared
    shrunk = less / before["scoring"] / (kept / before["reading"])
    changed = {"apart": (1.0, shrunk), "common": (grown, 1.0), "both": (grown, shrunk)}
    return {
        name: torch.cosine_similarity(c * common + a * apart, c * common - a * apart, dim=-1).mean().item()
        for name, (c, a) in changed.items()
    }


@torch.no_grad()
def doubled(
    model: MiniMindForCausalLM, tables: dict[str, Tensor], begin: dict[str, Tensor], seed: int
) -> dict[str, float]:
    """How much the loss on ten fresh batches rises, if in one table the words of each pair are twice as far apart as
    before training, and in the same directions. What they have in common stays; afterwards the model is as it was.

    Args:
        model: after training.
        tables: its tables, the model's own tensors.
        begin: their rows `[V, E]` before training.
        seed: of the fresh batches.
    """
    first, second = torch.tensor(PAIRS).unbind(1)
    fresh = [batch for batch, _ in zip(sentences(seed), range(10), strict=False)]

    def loss() -> float:
        return sum(model(batch, labels=batch).loss.item() for batch in fresh) / len(fresh)

    usual, risen = loss(), {}
    for name, table in tables.items():
        kept, common, apart = table.clone(), parts(table)[0], 2 * parts(begin[name])[1]
        table[first], table[second] = common + apart, common - apart
        risen[name] = loss() - usual
        table.copy_(kept)
    return risen


def course(seed: int, kind: str, steps: int | None = None) -> dict[str, Any]:
    """One training: for each table the cosines `[stop, couple]` of pairs and others, the distance `[stop]`, and at the
    end the two lengths of `common_and_apart`; where there are two tables, also what is `given`, and what the difference
    of before training costs when it is `doubled`."""
    how = dict((KINDS | ELSEWHERE)[kind])
    if steps:
        how["steps"] = steps
    seen = [(_copies(live), model, live) for _, model, live in trained(seed, **how)]
    looks = [rows for rows, _, _ in seen]
    tables = {}
    for name in looks[0]:
        rows = torch.stack([look[name] for look in looks])  # [stop, V, E]
        tables[name] = {
            "pairs": cosines(rows, PAIRS).tolist(),
            "others": cosines(rows, OTHERS).tolist(),
            "distance": distance(rows).tolist(),
            "common": common_and_apart(rows[-1])[0],
            "apart": common_and_apart(rows[-1])[1],
        }
    result = {"kind": kind, "seed": seed, "tables": tables}
    if len(tables) == 1:
        return result
    _, model, live = seen[-1]
    costs = doubled(model, live, looks[0], 1000 + seed)
    return result | {"given": given(looks[0], looks[-1]), "doubled": costs}


def courses() -> list[dict[str, Any]]:
    """What is stored of every training; see `course`."""
    return json.loads(COURSES.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, COURSES)
    results = [stored.rounded(course(seed, kind), 2) for kind in KINDS | ELSEWHERE for seed in SEEDS]
    lines = ",\n".join(json.dumps(result, separators=(",", ":")) for result in results)
    stored.write(f"[\n{lines}\n]\n", into)


if __name__ == "__main__":
    main()
