"""Train every variant and store the loads of its experts: `python -m minimind_edu.trained.routing`, a minute or two.

`--into FILE` writes somewhere else than where the book looks.
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from minimind_edu.trained import stored
from minimind_edu.trained.living import new_model, story_batches
from minimind_edu.trained.routing import BATCH_SIZE, LENGTH, RECIPE, RUNS, SEEDS, STOPS, TOP_K, config, held_out, look
from minimind_edu.trained.training import Recipe, train


def run(top_k: int, balanced: bool, seed: int, recipe: Recipe = RECIPE) -> dict[str, Any]:
    """One training, looked at before it and after each of STOPS."""
    model = new_model(seed, config(top_k, balanced)).eval()
    looks = [look(model, held_out())]

    def after(step: int, _: float) -> None:
        if step + 1 in STOPS:
            model.eval()
            looks.append(look(model, held_out()))
            model.train()

    train(model, story_batches(seed, BATCH_SIZE, LENGTH), recipe, after)
    return {"top_k": top_k, "balanced": balanced, "seed": seed, "looks": stored.rounded(looks)}


def write(results: list[dict[str, Any]], path: Path) -> None:
    """Store the runs, a line each."""
    stored.write("[\n" + ",\n".join(json.dumps(run, separators=(",", ":")) for run in results) + "\n]\n", path)


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
