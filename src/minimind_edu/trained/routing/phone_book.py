"""A phone book: numbers drawn at random, which can only be remembered. A mixture learns them in fewer steps.

    python -m minimind_edu.trained.routing.phone_book    trains every kind on every book with three seeds, some 25
    minutes; with `--longer`, some kinds on the largest book with more steps, over an hour

An entry is three words: a first name, a last name, a number. Neither name alone tells the number, and nothing that was
learned of one entry helps with another. After the same steps a mixture recalls more than a dense model of its active
size; with more steps the dense model recalls the whole book, too, so its room was never too small. The loss is that of
the numbers; the names are given.
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import CausalLMOutput, MiniMindForCausalLM
from minimind_edu.model.moe import MoEFeedForward, MoEGate, RouterOutput
from minimind_edu.trained import stored
from minimind_edu.trained.training import Recipe, initialize, train

RECALLED = Path(__file__).parent / "phone_book.json"
LONGER = Path(__file__).parent / "phone_book_longer.json"  # the largest book, with more steps

FIRST, LAST, NUMBERS = 64, 64, 64  # words of each kind; ids in this order
ENTRIES = (2048, 3072, 4096)
SEEDS = (0, 1, 2)
RECIPE = Recipe(steps=1_500, learning_rate=1e-2, warmup=50)
BATCH_SIZE = 256  # entries

DENSE = MiniMindConfig(
    vocab_size=FIRST + LAST + NUMBERS,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=4,
    num_key_value_heads=4,
    intermediate_size=18,  # 2 more than an expert, for which the mixture has its router
    max_position_embeddings=3,
    rope_theta=1e4,
    initializer_range=0.15,
    bos_token_id=None,
    eos_token_id=None,
)
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 1, "num_shared_experts": 0, "norm_topk_prob": False}
MIXTURE = replace(DENSE, use_moe=True, moe_intermediate_size=16, seq_aux=False, router_aux_loss_coef=0.02, **_EXPERTS)
_UNEVEN = replace(MIXTURE, router_aux_loss_coef=0.0)
KINDS = {
    "dense": DENSE,
    "mixture": MIXTURE,
    "trained, not evened": _UNEVEN,
    "evened, not trained": _UNEVEN,  # by a bias
    "untrained router": _UNEVEN,  # the experts learn, the choice stays random
    "dense, all active": replace(DENSE, intermediate_size=4 * 16),
}
# Two kinds tell what training a router and evening its load give: only the largest book leaves something to gain.
RUNS = [
    (entries, kind, seed)
    for entries, kind, seed in itertools.product(ENTRIES, KINDS, SEEDS)
    if entries == ENTRIES[-1] or kind not in ("trained, not evened", "evened, not trained")
]
RATES = (0.25, 0.5, 2.0, 4.0)  # times the learning rate of RECIPE
# The largest book, with the recipe stretched over more steps or at other rates: kind, steps, rate, seed.
LONGER_RUNS = [
    *itertools.product(("dense", "mixture", "untrained router"), (3_000, 6_000), (1.0,), SEEDS),
    *itertools.product(("dense",), (18_000,), (1.0,), SEEDS[:2]),
    *itertools.product(("dense", "mixture", "untrained router"), (RECIPE.steps,), RATES, SEEDS[:1]),
]


class PhoneBookModel(MiniMindForCausalLM):
    """A model whose loss is that of the last word of each row."""

    def forward(self, input_ids: Tensor, *given: Any, labels: Tensor | None = None, **named: Any) -> CausalLMOutput:
        if labels is not None:
            labels = labels.index_fill(1, torch.arange(labels.shape[1] - 1, device=labels.device), -100)
        return super().forward(input_ids, *given, labels=labels, **named)


class EvenedGate(MoEGate):
    """A router that chooses one expert by its probability plus a bias, which evens the load in training.

    Args:
        router: the weight is its own.
    """

    STEP = 1e-3  # of the bias, after each batch
    bias: Tensor  # [N]

    def __init__(self, config: MiniMindConfig, router: MoEGate):
        super().__init__(config)
        self.weight = router.weight
        self.register_buffer("bias", torch.zeros(config.num_experts))

    def forward(self, x: Tensor) -> RouterOutput:
        probabilities = F.linear(x, self.weight).softmax(-1).flatten(0, 1)  # [T, N]
        experts = (probabilities + self.bias).topk(1).indices
        if self.training:
            load = F.one_hot(experts, len(self.bias)).float().mean((0, 1))
            self.bias += self.STEP * (1 / len(load) - load).sign()
        return RouterOutput(probabilities.gather(-1, experts), experts, probabilities, probabilities.new_zeros(()))


def new_model(kind: str, seed: int) -> PhoneBookModel:
    """A model of one of KINDS before training, the same for a seed on every machine."""
    model = PhoneBookModel(KINDS[kind])
    initialize(model, seed)
    network = cast(MoEFeedForward, model.model.layers[0].mlp)  # or a dense one, which is left as it is
    if kind in ("evened, not trained", "untrained router"):
        network.gate.weight.requires_grad_(False)
    if kind == "evened, not trained":
        network.gate = EvenedGate(model.config, network.gate)
    return model


def active_weights(kind: str) -> int:
    """How many weights a token meets in a model of this kind."""
    model = new_model(kind, 0)
    config = model.config
    idle = config.num_experts - config.num_experts_per_tok if config.use_moe else 0
    return sum(p.numel() for p in model.parameters()) - idle * 3 * config.hidden_size * config.moe_intermediate_size


def phone_book(entries: int, seed: int) -> Tensor:
    """So many different people, and a number for each: ids `[entries, 3]`."""
    generator = np.random.Generator(np.random.PCG64(1_000 + seed))
    first, last = np.divmod(generator.permutation(FIRST * LAST)[:entries], LAST)
    numbers = FIRST + LAST + generator.integers(0, NUMBERS, entries)
    return torch.from_numpy(np.stack([first, FIRST + last, numbers], axis=1))


def pages(book: Tensor, seed: int) -> Iterator[Tensor]:
    """Batches of entries drawn from a book, ids [B, 3], without end."""
    generator = np.random.Generator(np.random.PCG64(seed))
    while True:
        yield book[generator.integers(0, len(book), BATCH_SIZE)]


@torch.no_grad()
def share_recalled(model: MiniMindForCausalLM, book: Tensor) -> float:
    """How many of a book's numbers are the model's most probable word; by chance it would be 1 / NUMBERS."""
    book = book.to(device_of(model))
    return float((model(book).logits[:, -2].argmax(-1) == book[:, -1]).double().mean())


def run(kind: str, entries: int, seed: int, recipe: Recipe = RECIPE) -> dict[str, Any]:
    """Train one model on one book, and ask it for every number."""
    model, book = new_model(kind, seed), phone_book(entries, seed)
    train(model, pages(book, seed), recipe)
    return {"kind": kind, "entries": entries, "seed": seed, "recalled": round(share_recalled(model, book), 3)}


def longer(kind: str, steps: int, rate: float, seed: int) -> dict[str, Any]:
    """Train one model on the largest book for so many steps at `rate` times the rate, and ask it for every number."""
    recipe = replace(RECIPE, steps=steps, learning_rate=rate * RECIPE.learning_rate)
    asked = {"kind": kind, "steps": steps, "rate": rate, "seed": seed}
    return asked | {"recalled": run(kind, ENTRIES[-1], seed, recipe)["recalled"]}


def recalled(kind: str, entries: int) -> list[float]:
    """The stored shares of numbers that models of a kind recall, one for each of SEEDS; none if it was not asked."""
    runs = json.loads(RECALLED.read_text(encoding="utf-8"))
    return [run["recalled"] for run in runs if (run["kind"], run["entries"]) == (kind, entries)]


def recalled_by(kind: str, steps: int, seed: int, rate: float = 1.0) -> float | None:
    """The share of the largest book that one model recalls after so many steps, None if that was not measured."""
    runs = json.loads(RECALLED.read_text(encoding="utf-8"))
    found = [run | {"steps": RECIPE.steps, "rate": 1.0} for run in runs if run["entries"] == ENTRIES[-1]]
    found += json.loads(LONGER.read_text(encoding="utf-8"))
    wanted = {"kind": kind, "steps": steps, "rate": rate, "seed": seed}
    return next((run["recalled"] for run in found if run | wanted == run), None)


def recalled_after(kind: str, steps: int) -> list[float]:
    """What models of a kind recall of the largest book after so many steps, of those of SEEDS that were asked."""
    shares = [recalled_by(kind, steps, seed) for seed in SEEDS]
    return [share for share in shares if share is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    parser.add_argument("--longer", action="store_true", help="the largest book, more steps and other rates")
    given = parser.parse_args()
    into, results = stored.place(parser, given.into, LONGER if given.longer else RECALLED), []
    if given.longer:
        runs = itertools.starmap(longer, LONGER_RUNS)
    else:
        runs = (run(kind, entries, seed) for entries, kind, seed in RUNS)
    for result in runs:
        results.append(result)
        print(result, flush=True)
    stored.write("[\n" + ",\n".join(map(json.dumps, results)) + "\n]\n", into)


if __name__ == "__main__":
    main()
