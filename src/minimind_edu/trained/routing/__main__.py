"""Train every variant and store where its tokens went: `python -m minimind_edu.trained.routing`, a minute or two on one
core.

`--into FILE` writes somewhere else than where the book looks.
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import torch

from minimind_edu import world
from minimind_edu.trained import stored
from minimind_edu.trained.living import new_model, story_batches
from minimind_edu.trained.routing import (
    BATCH_SIZE,
    LENGTH,
    RECIPE,
    RUNS,
    SEEDS,
    SENTENCES,
    STOPS,
    TOLD,
    TOP_K,
    config,
    look,
)
from minimind_edu.trained.training import Recipe, train

HELD_OUT = torch.from_numpy(world.stories(40, LENGTH, seed=1_000_000))
SHOWN = torch.from_numpy(world.encode(SENTENCES))
READ = torch.cat([torch.tensor([world.BOS]), torch.from_numpy(world.encode(TOLD)), SHOWN])[None]


def run(top_k: int, balanced: bool, seed: int, recipe: Recipe = RECIPE) -> dict[str, Any]:
    """One training, looked at before it and after each of STOPS."""
    model = new_model(seed, config(top_k, balanced)).eval()
    looks = [look_now(model)]

    def after(step: int, _: float) -> None:
        if step + 1 in STOPS:
            model.eval()
            looks.append(look_now(model))
            model.train()

    train(model, story_batches(seed, BATCH_SIZE, LENGTH), recipe, after)
    return {"top_k": top_k, "balanced": balanced, "seed": seed, "looks": looks}


def look_now(model: Any) -> dict[str, Any]:
    """`look`, of the sentences' own tokens alone, and rounded."""
    seen = look(model, HELD_OUT, READ)
    for block in seen["blocks"]:
        for name in ("experts", "weights"):
            block[name] = block[name][-len(SHOWN) :]
    return stored.rounded(seen)


def write(results: list[dict[str, Any]], path: Path) -> None:
    """Store the runs, a line each, with the words whose ways are told."""
    lines = ",\n".join(json.dumps(result, separators=(",", ":")) for result in results)
    words = json.dumps([world.WORDS[i] for i in SHOWN], ensure_ascii=False)
    stored.write(f'{{"words": {words}, "runs": [\n{lines}\n]}}\n', path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into, results = stored.place(parser, parser.parse_args().into, RUNS), []
    for top_k, balanced, seed in itertools.product(TOP_K, (False, True), SEEDS):
        results.append(run(top_k, balanced, seed))
        name = f"top {top_k}, {'with' if balanced else 'without'} the auxiliary loss, seed {seed}"
        loads = [block["loads"] for block in results[-1]["looks"][-1]["blocks"]]
        print(f"{name}: {loads}", flush=True)
    write(results, into)


if __name__ == "__main__":
    main()
