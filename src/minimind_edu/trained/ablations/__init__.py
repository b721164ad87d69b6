"""Ablations: take one part away, train as before, and see what is lost.

    lists       the tasks: copy, reverse and sort short lists of digits; their exact entropy
    exam        what a model has learned of them, and how it does beyond what it was trained on
    __main__    `python -m minimind_edu.trained.ablations` trains every variant with two seeds and stores what they did
    tables      the rows of two tables, and of one, while they learn that words are alike; a program of its own

A variant is made of the package's own parts: switches of the config, and modules put in the place of others.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.for_comparison import LayerNorm, PlainFeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.ablations.lists import WORDS, write_rows
from minimind_edu.trained.training import Recipe, initialize

RUNS = Path(__file__).parent / "runs.json"

CONFIG = MiniMindConfig(
    vocab_size=len(WORDS),
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=128,
    max_position_embeddings=256,
    rope_theta=1e4,
    initializer_range=0.12,
    bos_token_id=0,
    eos_token_id=None,
)
RECIPE = Recipe(steps=720, learning_rate=5e-3, warmup=50)
BATCH_SIZE, LENGTH = 16, 48  # rows in a batch, words in a row


class WithoutResidual(MiniMindBlock):
    """A block that replaces the stream instead of adding to it."""

    def forward(self, x, position_embeddings, cache=None, mask=None):
        x, _ = self.self_attn(self.input_layernorm(x), position_embeddings, cache, mask)
        return self._feed(self.post_attention_layernorm(x))


class NoAttention(nn.Module):
    """Adds nothing to the stream, so that no position learns of another."""

    def forward(self, x: Tensor, *_: Any) -> tuple[Tensor, None]:
        return torch.zeros_like(x), None


class NoFeedForward(nn.Module):
    """Adds nothing to the stream."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


class LearnedPositions(nn.Module):
    """Adds a learned vector for each position, as GPT-2 does: `[B, S, E]` in and out, without a cache."""

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        self.table = nn.Embedding(config.max_position_embeddings, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table.weight[: x.shape[1]]


def without_positions(model: MiniMindForCausalLM) -> None:
    """Rotate by no angle, whatever the position: cos 0 = 1 and sin 0 = 0."""
    model.model.freqs_cos.fill_(1.0)
    model.model.freqs_sin.fill_(0.0)


def learned_positions(model: MiniMindForCausalLM) -> None:
    """Positions that are learned and added to the embeddings, in place of RoPE."""
    without_positions(model)
    # the dropout follows the embedding, and is idle otherwise
    model.model.add_module("dropout", LearnedPositions(model.config))


def without_residual(model: MiniMindForCausalLM) -> None:
    """Blocks whose two parts replace the stream."""
    model.model.layers = nn.ModuleList(WithoutResidual(model.config) for _ in model.model.layers)


def with_norms(make: Callable[[int], nn.Module]) -> Callable[[MiniMindForCausalLM], None]:
    """Put `make(hidden_size)` in the place of every norm of the stream."""

    def change(model: MiniMindForCausalLM) -> None:
        width = model.config.hidden_size
        for layer in model.model.layers:
            layer.input_layernorm, layer.post_attention_layernorm = make(width), make(width)
        model.model.add_module("norm", make(width))

    return change


def with_plain_feed_forward(model: MiniMindForCausalLM) -> None:
    """ReLU between two matrices; half as wide again, so that it has as many parameters as the three of SwiGLU."""
    for layer in model.model.layers:
        layer.mlp = PlainFeedForward(model.config.hidden_size, model.config.intermediate_size * 3 // 2)


def without_feed_forward(model: MiniMindForCausalLM) -> None:
    """Attention alone."""
    for layer in model.model.layers:
        layer.mlp = NoFeedForward()


def without_attention(model: MiniMindForCausalLM) -> None:
    """Feed-forward networks alone."""
    for layer in model.model.layers:
        layer.self_attn = NoAttention()


@dataclass(frozen=True)
class Variant:
    """How a model differs from the whole one.

    Args:
        config: fields of the config, and their other values.
        change: what is done to the model before its weights are drawn.
        rows: train on so many fixed rows over and over; None: every row is new.
    """

    config: dict[str, Any] = field(default_factory=dict)
    change: Callable[[MiniMindForCausalLM], None] | None = None
    rows: int | None = None


VARIANTS = {
    "whole": Variant(),
    "no attention": Variant(change=without_attention),
    "no residual": Variant(change=without_residual),
    "no positions": Variant(change=without_positions),
    "learned positions": Variant(change=learned_positions),
    "no feed-forward": Variant(change=without_feed_forward),
    "1 layer": Variant({"num_hidden_layers": 1}),
    "initialization 0.02": Variant({"initializer_range": 0.02}),
    "300 rows": Variant(rows=300),
    "no norm": Variant(change=with_norms(lambda width: nn.Identity())),
    "LayerNorm": Variant(change=with_norms(LayerNorm)),
    "post-norm": Variant({"norm_placement": "post"}),
    "QK-norm": Variant({"use_qk_norm": True}),
    "ReLU": Variant(change=with_plain_feed_forward),
    "MHA": Variant({"num_key_value_heads": 4}),
    "MQA": Variant({"num_key_value_heads": 1}),
    "untied": Variant({"tie_word_embeddings": False}),
}


def new_model(name: str, seed: int) -> MiniMindForCausalLM:
    """The model of a variant before training, the same for a seed on every machine.

    Raises a ValueError for a name that VARIANTS does not have.
    """
    if name not in VARIANTS:
        raise ValueError(f"no variant is called {name!r}; there are {', '.join(VARIANTS)}")
    variant = VARIANTS[name]
    model = MiniMindForCausalLM(replace(CONFIG, **variant.config))
    if variant.change:
        variant.change(model)
    initialize(model, seed)
    for part in model.modules():
        if isinstance(part, LayerNorm):
            nn.init.zeros_(part.bias)
    return model


def batches(name: str, seed: int) -> Iterator[Tensor]:
    """Batches of rows [B, T] for a variant, without end: new rows, or the variant's few over and over."""
    generator = np.random.Generator(np.random.PCG64(seed))
    few = VARIANTS[name].rows or 0
    pool = write_rows(few, LENGTH, generator) if few else None
    while True:
        if pool is None:
            rows = write_rows(BATCH_SIZE, LENGTH, generator)
        else:
            rows = pool[[int(generator.bit_generator.random_raw() % few) for _ in range(BATCH_SIZE)]]
        yield torch.from_numpy(rows)


def runs() -> dict[str, Any]:
    """What every variant did in training, with two seeds: see `__main__`."""
    return json.loads(RUNS.read_text(encoding="utf-8"))


def runs_of(name: str) -> list[dict[str, Any]]:
    """The stored runs of one variant, a seed each."""
    return [run for run in runs()["runs"] if run["variant"] == name]
