"""A deep and narrow model that is to learn sums: whether it does, with norms before or after what its sublayers add.

Each number is the sum of the two before it, modulo 16. Nothing is stored: a training takes seconds. Chapter 10 trains
with `o_proj`, `down_proj` or both multiplied before the first step.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import new_model
from minimind_edu.trained.training import Recipe, train

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


def batches(seed: int) -> Iterator[Tensor]:
    """Texts of numbers without end, `[24, 10]` each: two at random, then sums."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        rows = list(torch.randint(0, MODULUS, (2, TEXTS), generator=generator))
        while len(rows) < LENGTH:
            rows.append((rows[-1] + rows[-2]) % MODULUS)
        yield torch.stack(rows, dim=1)


def model(
    placement: Literal["pre", "post"], seed: int, attention: float = 1.0, networks: float = 1.0
) -> MiniMindForCausalLM:
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
    cosines = F.cosine_similarity(outputs[:, 1:], outputs[:, :1], dim=-1)
    return cosines.clamp(-1, 1).acos().rad2deg().mean().item()
