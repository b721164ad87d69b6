"""Train every variant and store what it did: `python -m minimind_edu.trained.ablations`, about ten minutes on one core.

`--variants "no norm" ReLU` trains some and keeps the stored runs of the others; `--missing` trains what is not stored
yet; `--into FILE` writes somewhere else.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.trained import stored
from minimind_edu.trained.ablations import BATCH_SIZE, LENGTH, RECIPE, RUNS, VARIANTS, batches, new_model
from minimind_edu.trained.ablations.exam import accuracy, accuracy_along, greedy_answer, loss, with_yarn
from minimind_edu.trained.ablations.lists import TASKS, entropy, write_rows
from minimind_edu.trained.training import train

HELD_OUT = write_rows(40, LENGTH, seed=1_000_000)
ASKED = write_rows(150, LENGTH, seed=1_000_001)
LONGER = write_rows(150, LENGTH, seed=1_000_002, digits=(6, 8))
FARTHER = write_rows(60, 3 * LENGTH, seed=1_000_003)
PROMPTS = ("copy 3 1 4 1 5 =", "reverse 3 1 4 1 5 =", "sort 3 1 4 1 5 =", "sort 9 3 6 0 8 2 5 =")
EVERY = 40  # steps between two looks at the loss
YARN = RopeScaling(
    factor=3.0, original_max_position_embeddings=LENGTH, beta_fast=4.0, beta_slow=1.0, attention_factor=1.0
)
WITHOUT_ROPE = ("no positions", "learned positions", "no attention")
SEEDS = (0, 1)


def run(name: str, seed: int) -> dict[str, Any]:
    """One training with its results."""
    model, curve, begun, looked = new_model(name, seed), [], time.process_time(), 0.0
    curve.append(loss(model, HELD_OUT))

    def after(step: int, _: float) -> None:
        nonlocal looked
        if (step + 1) % EVERY == 0:
            start = time.process_time()
            curve.append(loss(model, HELD_OUT))
            looked += time.process_time() - start

    losses = train(model, batches(name, seed), RECIPE, after)
    seconds = time.process_time() - begun - looked
    points = [sum(losses[i : i + EVERY]) / EVERY for i in range(0, len(losses), EVERY)]
    result = {
        "variant": name,
        "seed": seed,
        "parameters": model.num_parameters(),
        "cpu_seconds": round(seconds, 1),
        "held_out": curve,
        "training": points,
        "accuracy": accuracy(model, ASKED),
        "longer": accuracy(model, LONGER),
        "farther": accuracy_along(model, FARTHER, LENGTH),
        "said": [greedy_answer(model, prompt) for prompt in PROMPTS],
    }
    if name not in WITHOUT_ROPE:
        result["yarn"] = yarn(model)
    return stored.rounded(result)


def yarn(model: MiniMindForCausalLM) -> dict[str, Any]:
    """The two exams beyond the training, with RoPE stretched by 3 after it; the model is changed."""
    with_yarn(model, YARN)
    return {"longer": accuracy(model, LONGER), "farther": accuracy_along(model, FARTHER, LENGTH)}


def right_answer(prompt: str) -> str:
    """ "sort 3 1 2 =" -> "1 2 3 ;"."""
    task, *digits, _ = prompt.split()
    return " ".join([*map(str, TASKS[task]([int(digit) for digit in digits])), ";"])


def write(results: list[dict[str, Any]], path: Path) -> None:
    """Store the runs, a line each, with what holds for all of them."""
    general = {
        "steps": RECIPE.steps,
        "every": EVERY,
        "batch_size": BATCH_SIZE,
        "length": LENGTH,
        "entropy": round(entropy(HELD_OUT), 4),
        "prompts": PROMPTS,
        "answers": [right_answer(prompt) for prompt in PROMPTS],
    }
    lines = ",\n".join(json.dumps(result) for result in results)
    stored.write(json.dumps(general)[:-1] + f', "runs": [\n{lines}\n]}}\n', path)


def read(parser: argparse.ArgumentParser, path: Path) -> list[dict[str, Any]]:
    """The runs in a file, none if there is no such file; anything else is somebody's, and ends the program."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    except (ValueError, KeyError, TypeError):
        parser.error(f"{path} holds something else than runs, which would be lost; give another name")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), metavar="NAME")
    parser.add_argument("--missing", action="store_true")
    stored.add_into(parser)
    given = parser.parse_args()
    into = stored.place(parser, given.into, RUNS)
    results = {(run["variant"], run["seed"]): run for run in read(parser, into)}
    variants: list[str] = given.variants
    for seed, name in itertools.product(SEEDS, variants):
        if given.missing and (name, seed) in results:
            continue
        result = results[name, seed] = run(name, seed)
        print(f"{name}, seed {seed}: {result['held_out'][-1]:.3f}, {result['accuracy']}", flush=True)
        write([results[key] for key in itertools.product(VARIANTS, SEEDS) if key in results], into)


if __name__ == "__main__":
    main()
