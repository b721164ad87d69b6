"""Small models and inputs that the tests share.

Weights are drawn wide and gains away from 1, so that a part that is skipped or applied twice changes the result: with
fresh weights (gains of 1, standard deviation 0.02) several mistakes change nothing that a test could see.
"""

import itertools
import random
from collections.abc import Iterator
from typing import Any

import torch
from hypothesis import settings
from torch import Tensor

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM

# Properties are tried on the same examples in every run: a failure can be repeated, and no run fails by luck.
PROPERTY = settings(deadline=None, max_examples=20, derandomize=True, database=None)
SLOW_PROPERTY = settings(PROPERTY, max_examples=12)

KINDS = ("minimind2", "minimind2_moe", "minimind3", "minimind3_moe")


def tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers that depend on the seed only."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def decimals(parts: int, most: int = 400) -> Iterator[tuple[Tensor, float, int]]:
    """Logits [1, V] of probabilities that are multiples of 1 / parts, a sum that some reach, and how many those are."""
    rows = [
        row
        for size in (3, 4, 5)
        for row in itertools.combinations_with_replacement(range(1, parts), size)
        if sum(row) == parts
    ]
    for row in random.Random(0).sample(rows, min(most, len(rows))):
        for order in (row, row[::-1], row[1::2] + row[::2]):
            for count in range(1, len(row)):
                reached = sum(sorted(row)[-count:])
                yield torch.tensor([[part / parts for part in order]]).log(), reached / parts, count


# What computes in milliseconds, in the names that we share with transformers.
TINY_SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}


def token_ids(batch: int, length: int, vocab_size: int = 61, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, vocab_size, (batch, length), generator=generator)


def tiny_config(kind: str = "minimind2", **changes: Any) -> MiniMindConfig:
    """A config of one of the `KINDS` that computes in milliseconds."""
    return getattr(MiniMindConfig, kind)(**{**TINY_SIZES, **changes})


def spread_weights(module: torch.nn.Module, seed: int = 0) -> None:
    """Give every parameter values that matter: gains away from 1, matrices that keep activations alive."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5, generator=generator)
            elif name.endswith("embed_tokens.weight"):
                parameter.normal_(generator=generator)
            else:
                parameter.normal_(std=1.5 * parameter.shape[-1] ** -0.5, generator=generator)


def tiny_model(
    kind: str = "minimind2", seed: int = 0, dtype: torch.dtype = torch.float64, **changes: Any
) -> MiniMindForCausalLM:
    """A model of `tiny_config(kind, **changes)` in eval mode; in float64, so that comparisons can be strict."""
    model = MiniMindForCausalLM(tiny_config(kind, **changes))
    spread_weights(model, seed)
    return model.to(dtype).eval()


def talkative_model(kind: str = "minimind2", **changes: Any) -> MiniMindForCausalLM:
    """`tiny_model` in float32 whose greedy continuations vary: with wide tied embeddings each token predicts itself."""
    model = tiny_model(kind, dtype=torch.float32, **changes)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(0.3)
    return model
