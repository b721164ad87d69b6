"""Train the model again: `python -m minimind_edu.trained.living`, 16 minutes of one core for each of three seeds.

Each seed is trained and examined; the one nearest to the world is stored as int8 rows, the next nearest as its twin,
with a card that tells all results. `--draft` trains the small model of chapter 12 instead, in a minute or two.

`--seeds 0 1` trains two, `--steps 200` tries the way in a minute. Such a run does not replace the book's models:
`--into FOLDER` says where it goes. One seed alone has no twin.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import torch

from minimind_edu import world
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import (
    BATCH_SIZE,
    CARD,
    CONFIG,
    DRAFT,
    DRAFT_CONFIG,
    DRAFT_RECIPE,
    LENGTH,
    STORED,
    WEIGHTS,
    new_model,
    story_batches,
)
from minimind_edu.trained.living.exam import accuracy, divergence
from minimind_edu.trained.living.heads import answer_reading, lost_without
from minimind_edu.trained.training import Recipe, train
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

# Seeds of what is asked in the exams, far from those of the training, which are the seeds of the runs.
EXAM, GLANCE = 1_000_000, 2_000_000
SEEDS = (0, 1, 2)
QUESTIONS, STORIES = 300, 100  # of the exam: questions of each kind, stories
FEW_QUESTIONS, FEW_STORIES = 60, 10  # of a glance
HEAD_QUESTIONS = 150  # of each kind, for the scores of heads
# steps at which the model is looked at
GLANCES = (0, 125, 250, 500, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000, 10000)
SMOOTH = 25  # losses that make one point of the stored curve
HEADS_OF = ("recall", "who", "translation")  # the kinds of questions for which heads are looked at


def exam(model: MiniMindForCausalLM, seed: int, questions: int, stories: int) -> dict[str, Any]:
    """Accuracy for each kind of question, and the distance from the world in nats a word, over fresh stories."""
    kl, entropy = divergence(model, world.stories(stories, LENGTH, seed))
    asked = {kind: world.questions(kind, questions, seed + 1, LENGTH) for kind in world.QUESTIONS}
    right = {kind: round(accuracy(model, of_kind), 4) for kind, of_kind in asked.items()}
    return {"kl": round(kl, 4), "entropy": round(entropy, 4), "accuracy": right}


def glance(model: MiniMindForCausalLM, step: int) -> dict[str, Any]:
    """A short exam, and how the heads read, in the middle of the training."""
    asked = {kind: world.questions(kind, FEW_QUESTIONS, GLANCE) for kind in HEADS_OF}
    reading = {kind: rows_of(answer_reading(model, of_kind)) for kind, of_kind in asked.items()}
    return {"step": step, **exam(model, GLANCE + 1, FEW_QUESTIONS, FEW_STORIES), "reading": reading}


def rows_of(scores: torch.Tensor) -> list[list[float]]:
    """Scores [R, C] to three digits."""
    return stored.rounded(scores.tolist())


def run(seed: int, recipe: Recipe) -> tuple[MiniMindForCausalLM, dict[str, Any]]:
    """One training with its results."""
    model = new_model(seed)
    glances, looked, begun = [glance(model.eval(), 0)], 0.0, time.process_time()

    def after(step: int, _: float) -> None:
        nonlocal looked
        if step + 1 in GLANCES or step + 1 == recipe.steps:
            start = time.process_time()
            glances.append(glance(model.eval(), step + 1))
            model.train()
            looked += time.process_time() - start

    losses = train(model, story_batches(seed), recipe, after)
    seconds = time.process_time() - begun - looked
    points = [sum(losses[i : i + SMOOTH]) / SMOOTH for i in range(0, len(losses) - SMOOTH + 1, SMOOTH)]
    result = {"seed": seed, "cpu_seconds": round(seconds), **exam(model, EXAM, QUESTIONS, STORIES)}
    return model, {**result, "losses": [round(point, 4) for point in points], "glances": glances}


def make_draft(path: Path, steps: int) -> None:
    """Train the draft model and store it as int8 rows."""
    model = new_model(0, DRAFT_CONFIG)
    train(model, story_batches(0), dataclasses.replace(DRAFT_RECIPE, steps=steps))
    save_checkpoint(model, path, int8=True)
    kl, _ = divergence(model, world.stories(STORIES, LENGTH, EXAM))
    print(f"Stored {model.num_parameters():,} parameters in {path}, {kl:.4f} nats per word from the world.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=stored.whole_number(0), nargs="+")
    parser.add_argument("--steps", type=stored.whole_number(1))
    parser.add_argument("--draft", action="store_true")
    stored.add_into(parser)
    given = parser.parse_args()
    if given.draft and given.seeds:
        parser.error("--draft trains one model, so it takes no --seeds")
    into = stored.place(parser, given.into, WEIGHTS.parent, whole=given.steps is None and given.seeds is None)
    if given.draft:
        return make_draft(into / DRAFT.name, given.steps or DRAFT_RECIPE.steps)
    recipe = Recipe(steps=given.steps or Recipe().steps)
    runs = []
    for seed in given.seeds or SEEDS:
        model, result = run(seed, recipe)
        runs.append((model, result))
        print(f"seed {seed}: {result['kl']:.4f} nats a word from the world, {result['accuracy']}", flush=True)
    card = card_of([result for _, result in runs], recipe)
    nearest = sorted(runs, key=lambda run: run[1]["kl"])
    for (name, file), (model, result) in zip(STORED.items(), nearest, strict=False):
        path = save_checkpoint(model, into / file.name, int8=True)
        known = known_of(path, result["seed"])
        card |= {"twin": known} if name == "twin" else known
        print(f"Stored seed {result['seed']} in {path}, {path.stat().st_size:,} bytes.")
    stored.write(json.dumps(card, indent=1) + "\n", into / CARD.name)


def card_of(results: list[dict[str, Any]], recipe: Recipe) -> dict[str, Any]:
    """What the card tells of all seeds; what it knows of the stored ones comes with `known_of`."""
    return {
        "recipe": {**dataclasses.asdict(recipe), "batch_size": BATCH_SIZE, "length": LENGTH},
        "initializer_range": CONFIG.initializer_range,
        "questions": QUESTIONS,
        "runs": results,
        "twin": {},
    }


def known_of(path: Path, seed: int) -> dict[str, Any]:
    """What the card tells of the weights at a path, as they are stored."""
    model = from_checkpoint(path)
    asked = {kind: world.questions(kind, HEAD_QUESTIONS, EXAM + 2) for kind in HEADS_OF}
    return {
        "parameters": model.num_parameters(),
        "bytes": path.stat().st_size,
        "stored": seed,
        "int8": exam(model, EXAM, QUESTIONS, STORIES),
        "lost_without": {kind: rows_of(lost_without(model, of_kind)) for kind, of_kind in asked.items()},
        "reading": {kind: rows_of(answer_reading(model, of_kind)) for kind, of_kind in asked.items()},
    }


if __name__ == "__main__":
    main()
