"""What a trained model loses when its matrices are rounded: `python -m minimind_edu.trained.living.rounding` measures
it.

The stored weights of the living model are int8 rows already, so rounding them to int8 rows again changes nothing. They
are therefore trained a little further first, from where they are, which takes every weight off its grid and leaves the
model as good as it was. The draft model is trained anew. Both are float32 then, measured, and thrown away; what stays
is `rounding.json`. It takes some minutes of one core. `--into FILE` writes somewhere else than where the book looks.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.quantization import BFLOAT16, Grid, bytes_of_model, matrices, rounded_model
from minimind_edu.trained import stored
from minimind_edu.trained.living import DRAFT_CONFIG, DRAFT_RECIPE, LENGTH, living_model, new_model, story_batches
from minimind_edu.trained.living.exam import BATCH, accuracy, divergence, log_probabilities
from minimind_edu.trained.training import Recipe, train

RESULTS = Path(__file__).parent / "rounding.json"

BITS = (8, 6, 5, 4, 3, 2)
WAYS: dict[str, Grid | str] = {BFLOAT16: BFLOAT16} | {
    f"int{bits} {name}": Grid(bits, per)
    for bits in BITS
    for name, per in {"per tensor": "tensor", "per row": "row", "in 32s": 32}.items()
}
SENSITIVE = Grid(3, "row")  # of one matrix at a time
FURTHER = Recipe(steps=200, learning_rate=5e-4, warmup=20)
FURTHER_SEED, EXAM = 3_000_000, 1_000_000  # of new stories, far from those of the training
STORIES, QUESTIONS = 100, 150  # of the exam: stories, questions of each kind


def taken_off_its_grid(recipe: Recipe) -> MiniMindForCausalLM:
    """The living model with float32 weights that are on no grid: trained a little further."""
    model = living_model()
    train(model, story_batches(FURTHER_SEED), recipe)
    return model


@torch.no_grad()
def difference(model: MiniMindForCausalLM, reference: MiniMindForCausalLM, ids: Tensor) -> tuple[float, float]:
    """How a model differs from another on texts [B, T]: KL(reference, model) in nats a word, and greedy agreement.

    The agreement is the share of the positions after which both find the same word most probable.
    """
    kl = same = 0.0
    for part in ids.split(BATCH):
        here, there = (log_probabilities(reader, part)[:, :-1] for reader in (model, reference))
        kl += float((there.exp() * (there - here)).sum())
        same += float((here.argmax(-1) == there.argmax(-1)).sum())
    words = ids.shape[0] * (ids.shape[1] - 1)
    return kl / words, same / words


def measure(
    model: MiniMindForCausalLM, reference: MiniMindForCausalLM, stories: int = STORIES, questions: int = QUESTIONS
) -> dict[str, Any]:
    """How far a model is from its unrounded self and from the world, and the share of questions it answers right.

    Returns:
        kl and agreement: `difference` from the reference; world and loss: KL(world, model) and the expected loss, all
        in nats a word; right: the share for each kind of question.
    """
    texts = world.stories(stories, LENGTH, EXAM)
    kl, agreement = difference(model, reference, torch.from_numpy(texts))
    distance, entropy = divergence(model, texts)
    asked = {kind: world.questions(kind, questions, EXAM + 1, LENGTH) for kind in world.QUESTIONS}
    return {
        "kl": kl,
        "agreement": agreement,
        "world": distance,
        "loss": entropy + distance,
        "right": {kind: accuracy(model, of_kind) for kind, of_kind in asked.items()},
    }


def sensitivities(model: MiniMindForCausalLM, to: Grid | str = SENSITIVE, stories: int = STORIES) -> dict[str, float]:
    """KL in nats a word for each matrix, when it alone is rounded."""
    texts = torch.from_numpy(world.stories(stories, LENGTH, EXAM))
    names = [name for name, _ in matrices(model)]
    return {name: difference(rounded_model(model, to, only=name.__eq__), model, texts)[0] for name in names}


def results() -> dict[str, Any]:
    """What is stored: for `living` and `draft` the unrounded model and all WAYS, with the bytes of their matrices."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def mean_right(measured: dict[str, Any]) -> float:
    """The share of all questions answered right; of each kind there are as many."""
    return sum(measured["right"].values()) / len(measured["right"])


def _of_model(model: MiniMindForCausalLM) -> dict[str, Any]:
    weights = sum(matrix.numel() for _, matrix in matrices(model))
    rows = {"float32": {"bytes": 4 * weights, **measure(model, model)}}
    for name, to in WAYS.items():
        rows[name] = {"bytes": bytes_of_model(model, to), **measure(rounded_model(model, to), model)}
        print(f"{name}: {rows[name]['kl']:.5f} nats, {mean_right(rows[name]):.1%} right", flush=True)
    return {"weights": weights, "rounded": rows, "alone": sensitivities(model)}


def _short(value: Any) -> Any:
    """Floats to four significant digits, wherever they are; whole ones as whole numbers."""
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() else float(f"{value:.4g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    draft = new_model(0, DRAFT_CONFIG)
    train(draft, story_batches(0), DRAFT_RECIPE)
    measured = {"living": _of_model(taken_off_its_grid(FURTHER)), "draft": _of_model(draft)}
    stored.write(json.dumps(_short(measured), indent=1) + "\n", into)


if __name__ == "__main__":
    main()
