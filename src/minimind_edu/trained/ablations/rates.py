"""The variants that lose much, at a rate three times as large and three times as small: `python -m
minimind_edu.trained.ablations.rates`, four minutes on one core.

A variant that loses at one learning rate may only need another one. The runs at the recipe's own are in `runs`.
"""

import argparse
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from minimind_edu.trained import stored
from minimind_edu.trained.ablations import RECIPE, batches, new_model
from minimind_edu.trained.ablations.__main__ import ASKED, HELD_OUT
from minimind_edu.trained.ablations.exam import accuracy, loss
from minimind_edu.trained.training import train

RATES = Path(__file__).parent / "rates.json"

FACTORS = (1 / 3, 3)  # of the recipe's rate
LOSERS = ("no attention", "no residual", "no positions", "no feed-forward", "1 layer")
SEED = 0


def run(name: str, factor: float, steps: int = RECIPE.steps) -> dict[str, Any]:
    """One training at another rate, with its loss and the fraction of right answers."""
    model = new_model(name, SEED)
    recipe = replace(RECIPE, steps=steps, learning_rate=factor * RECIPE.learning_rate)
    train(model, batches(name, SEED), recipe)
    result = {"variant": name, "rate": recipe.learning_rate, "held_out": loss(model, HELD_OUT)}
    return stored.rounded(result | {"accuracy": accuracy(model, ASKED)}, 4)


def runs() -> list[dict[str, Any]]:
    """What is stored of every training; see `run`."""
    return json.loads(RATES.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RATES)
    results = []
    for name, factor in itertools.product(("whole", *LOSERS), FACTORS):
        results.append(run(name, factor))
        print(results[-1], flush=True)
    lines = ",\n".join(json.dumps(result) for result in results)
    stored.write(f"[\n{lines}\n]\n", into)


if __name__ == "__main__":
    main()
