"""A deep and narrow model that is to learn sums: whether it does, with norms before or after what its sublayers add.

Each number is the sum of the two before it, modulo 16. `o_proj`, `down_proj` or both may be multiplied before the first
step. `python -m minimind_edu.trained.deep_sums` trains every setting with three seeds, three minutes of one core, and
writes `deep_sums.json`; `--into FILE` writes somewhere else than where the book looks.
"""

import argparse
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import new_model
from minimind_edu.trained.training import Recipe, train

RESULTS = Path(__file__).parent / "deep_sums.json"

MODULUS = 16
TEXTS, LENGTH = 24, 10
NEW = 99  # seed of the texts that no training sees first
SHAPE = MiniMindConfig(
    vocab_size=MODULUS,
    hidden_size=32,
    num_hidden_layers=12,
    num_attention_heads=2,
    num_key_value_heads=2,
    initializer_range=0.1,
    tie_word_embeddings=False,
)
Placement = Literal["pre", "post"]
Case = tuple[Placement, float, float]  # where the norms stand, and the factors on attention and on the networks
PLACEMENTS: tuple[Placement, ...] = ("pre", "post")
SEEDS = (0, 1, 2)
USUAL = {"steps": 40, "rate": 3e-3, "warmup": 0, "clip": 1e9}  # the options of `end`
DROWNED: Case = ("post", 4, 1)
AT_RATES: tuple[Case, ...] = (("pre", 1, 1), ("post", 1, 1), ("post", 1, 4), DROWNED)
SETTINGS: list[tuple[Case, dict[str, Any]]] = [
    *(((placement, *factors), {}) for placement in PLACEMENTS for factors in itertools.product((1, 4), (1, 4))),
    *((case, {"rate": rate}) for case in AT_RATES for rate in (1.5e-3, 6e-3)),
    (DROWNED, {"warmup": 20, "clip": 1.0}),
    (DROWNED, {"rate": 1e-3, "steps": 120}),
    (DROWNED, {"rate": 3e-4, "steps": 400}),
    *(((placement, 1, 1), {"steps": 160}) for placement in PLACEMENTS),
]


def batches(seed: int) -> Iterator[Tensor]:
    """Texts of numbers without end, `[24, 10]` each: two at random, then sums."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        rows = list(torch.randint(0, MODULUS, (2, TEXTS), generator=generator))
        while len(rows) < LENGTH:
            rows.append((rows[-1] + rows[-2]) % MODULUS)
        yield torch.stack(rows, dim=1)


def model(placement: Placement, seed: int, attention: float = 1.0, networks: float = 1.0) -> MiniMindForCausalLM:
    """A new model of 12 blocks, 32 wide, untied, in float32.

    Args:
        placement: of its norms, `pre` or `post`.
        seed: of its weights, whose standard deviation is 0.1.
        attention: factor on every `o_proj`.
        networks: factor on every `down_proj`.
    """
    new = new_model(seed, replace(SHAPE, norm_placement=placement)).float()
    with torch.no_grad():
        for layer in cast(Iterable[MiniMindBlock], new.model.layers):
            layer.self_attn.o_proj.weight.mul_(attention)
            cast(FeedForward, layer.mlp).down_proj.weight.mul_(networks)
    return new


@torch.enable_grad()
def end(
    model: MiniMindForCausalLM, seed: int, steps: int = 40, rate: float = 3e-3, warmup: int = 0, clip: float = 1e9
) -> float:
    """Train it, and return the mean of its last five losses, in nats; a blind guess has ln 16 = 2.77.

    Args:
        model: is changed.
        seed: of the texts.
        steps: of training.
        rate: the highest learning rate.
        warmup: steps until then.
        clip: the largest norm of all gradients together.
    """
    recipe = Recipe(steps, rate, warmup, last=1.0, weight_decay=0.0, clip=clip)
    losses = train(model, batches(seed), recipe)
    return sum(losses[-5:]) / 5


@torch.no_grad()
def mean_angle(model: MiniMindForCausalLM) -> float:
    """Degrees between the outputs at the first and at each later position of a text, on average over 24 texts."""
    outputs = model.model(next(batches(NEW)).to(device_of(model)))[0]  # [24, 10, E]
    return angles_to_first(outputs).mean().item()


def angles_to_first(x: Tensor) -> Tensor:
    """Degrees from the first position's vector to each later one's: `[..., S, E]` -> `[..., S - 1]`."""
    cosines = F.cosine_similarity(x[..., 1:, :], x[..., :1, :], dim=-1)
    return cosines.clamp(-1, 1).acos().rad2deg()


@torch.no_grad()
def sizes_added(model: MiniMindForCausalLM) -> Tensor:
    """The RMS of what attention and of what the networks add, on average over the blocks, `[2]`; over 24 texts."""
    found: list[Tensor] = []
    halves = [
        half for layer in cast(Iterable[MiniMindBlock], model.model.layers) for half in (layer.self_attn, layer.mlp)
    ]
    hooks = [
        half.register_forward_hook(
            lambda _, given, out: found.append((out[0] if isinstance(out, tuple) else out).pow(2).mean().sqrt())
        )
        for half in halves
    ]
    try:
        model.model(next(batches(NEW)).to(device_of(model)))
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(found).view(-1, 2).mean(0)


def run(case: Case, seed: int, **options: Any) -> dict[str, Any]:
    """One training: its setting, `angle` before, `end`, and `grown`, how many times as much attention and networks
    add after it.

    Args:
        case: where the norms stand, and the factors on attention and on the networks.
        seed: of the weights and of the texts.
        **options: of `end`, where they are not USUAL.
    """
    placement, attention, networks = case
    new = model(placement, seed, attention, networks)
    angle, before = mean_angle(new), sizes_added(new)
    reached = end(new, seed, **(USUAL | options))
    measured = {"angle": angle, "end": reached, "grown": (sizes_added(new) / before).tolist()}
    return _setting(case, seed, options) | stored.rounded(measured, 4)


def _setting(case: Case, seed: int, options: dict[str, Any]) -> dict[str, Any]:
    return {"placement": case[0], "attention": case[1], "networks": case[2], "seed": seed, **USUAL, **options}


@cache
def runs() -> list[dict[str, Any]]:
    """What is stored of every training; see `run`."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def run_of(case: Case, seed: int, **options: Any) -> dict[str, Any]:
    """The stored training of this setting; the arguments are those of `run`.

    Raises:
        ValueError: if it is not one of SETTINGS, or its seed not one of SEEDS.
    """
    setting = _setting(case, seed, options)
    for each in runs():
        if setting.items() <= each.items():
            return each
    raise ValueError(f"only the trainings of SETTINGS and SEEDS are stored, got {setting}; `run` trains any other")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    results = []
    for (case, options), seed in itertools.product(SETTINGS, SEEDS):
        results.append(run(case, seed, **options))
        print(results[-1], flush=True)
    lines = ",\n".join(json.dumps(result) for result in results)
    stored.write(f"[\n{lines}\n]\n", into)


if __name__ == "__main__":
    main()
