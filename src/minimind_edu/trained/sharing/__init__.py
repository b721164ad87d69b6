"""Sharing: what query heads lose that share keys and values, on a task that needs four different keys at once.

    __main__    `python -m minimind_edu.trained.sharing` trains every variant with five seeds and stores how it answers
    circles     what the keys of a single head look like, 2, 4, 6 or 8 channels wide, and at other settings

A text tells of six people: of each the name and one value of each of four properties. A question names four values,
one of each property, and the answer is four names, of whoever has the first value, the second, and so on. One layer of
attention with four query heads reads the people, so a head can look for one value. Keys and values may have different
numbers of heads here, to tell which of the two matters; in a model they have the same.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.device import device_of, one_thread
from minimind_edu.model.attention import attention, repeat_kv

RUNS = Path(__file__).parent / "runs.json"

PROPERTIES, VALUES, PEOPLE = 4, 8, 6  # as many values of a property, and names, to choose from
CHANNELS, QUERY_HEADS = 64, 4
SEEDS = (0, 1, 2, 3, 4)
STEPS = 2_000, 8_000  # of a short and of a long training
BATCH_SIZE, RATE = 128, 1e-2
HELD_OUT, TEXTS = 1_000_000, 1_000  # seed, and texts of the exam


@dataclass(frozen=True)
class Variant:
    """How many heads make the keys and the values, and how many channels a head has."""

    key_heads: int
    value_heads: int
    head_dim: int = 4

    @property
    def kept(self) -> int:
        """Numbers that are kept of each position, its keys and its values."""
        return (self.key_heads + self.value_heads) * self.head_dim


VARIANTS = {
    "K = 4": Variant(4, 4),
    "K = 2": Variant(2, 2),
    "K = 1": Variant(1, 1),
    "K = 1, but four key heads": Variant(4, 1),
    "K = 1, but four value heads": Variant(1, 4),
    "K = 1, twice as wide": Variant(1, 1, 8),
    "K = 1, four times as wide": Variant(1, 1, 16),
}


@dataclass(frozen=True)
class Texts:
    """People and questions: values [B, people, properties], names [B, people], asked and answer [B, properties]."""

    values: Tensor
    names: Tensor
    asked: Tensor
    answer: Tensor


def texts(count: int, dice: np.random.Generator, choices: int = VALUES, people: int = PEOPLE) -> Texts:
    """New texts. No two people of a text share a name, or a value of a property.

    Args:
        count: how many.
        dice: where they come from.
        choices: how many values a property has, and how many names there are.
        people: of a text, at most as many as there are choices.
    """

    def different(*shape: int) -> np.ndarray:
        return dice.random((*shape, choices)).argsort(-1)[..., :people]

    values = different(count, PROPERTIES).swapaxes(1, 2)  # [B, people, properties]
    names = different(count)
    who = dice.integers(people, size=(count, PROPERTIES))
    asked = np.take_along_axis(values, who[:, None], 1)[:, 0]
    answer = np.take_along_axis(names, who, 1)
    return Texts(*map(torch.from_numpy, (values, names, asked, answer)))


class Reader(nn.Module):
    """Embeddings, one layer of attention without positions, and a row of logits for each property."""

    first: Tensor  # [properties], the row of each property's first value in the embeddings

    def __init__(self, variant: Variant, choices: int = VALUES):
        super().__init__()
        dim = variant.head_dim
        self.head_dim, self.choices = dim, choices
        self.values = nn.Embedding(PROPERTIES * choices, CHANNELS)
        self.names = nn.Embedding(choices, CHANNELS)
        self.asked = nn.Embedding(PROPERTIES * choices, CHANNELS)
        self.q_proj = nn.Linear(CHANNELS, QUERY_HEADS * dim, bias=False)
        self.k_proj = nn.Linear(CHANNELS, variant.key_heads * dim, bias=False)
        self.v_proj = nn.Linear(CHANNELS, variant.value_heads * dim, bias=False)
        self.o_proj = nn.Linear(QUERY_HEADS * dim, CHANNELS, bias=False)
        self.head = nn.Linear(CHANNELS, PROPERTIES * choices, bias=False)
        self.register_buffer("first", choices * torch.arange(PROPERTIES), persistent=False)

    def forward(self, values: Tensor, names: Tensor, asked: Tensor) -> Tensor:
        """Values [B, people, properties], names [B, people], asked [B, properties] -> logits [B, properties, names]."""
        people = self.values(values + self.first).sum(-2) + self.names(names)  # [B, T, E]
        question = self.asked(asked + self.first).sum(-2, keepdim=True)  # [B, 1, E]
        query = self.q_proj(question).unflatten(-1, (-1, self.head_dim))  # [B, 1, H, D]
        key, value = (
            repeat_kv(heads, QUERY_HEADS // heads.shape[2])
            for heads in (proj(people).unflatten(-1, (-1, self.head_dim)) for proj in (self.k_proj, self.v_proj))
        )
        output, _ = attention(query, key, value, None)  # one question: it sees all
        return self.head(self.o_proj(output.flatten(2))[:, 0]).unflatten(-1, (PROPERTIES, self.choices))


def new_reader(variant: Variant, seed: int, choices: int = VALUES) -> Reader:
    """A reader that has learned nothing yet, the same for a seed on every machine."""
    reader, dice = Reader(variant, choices), np.random.Generator(np.random.PCG64(seed))
    with torch.no_grad():
        for weight in reader.parameters():
            drawn = dice.standard_normal(tuple(weight.shape)) / math.sqrt(weight.shape[1])
            weight.copy_(torch.from_numpy(drawn))
    return reader


@one_thread()
def trained(
    variant: Variant, seed: int, steps: int, rate: float = RATE, choices: int = VALUES, people: int = PEOPLE
) -> Reader:
    """A reader after so many steps, at a learning rate whose highest is `rate`."""
    reader, dice = new_reader(variant, seed, choices), np.random.Generator(np.random.PCG64(seed))
    optimizer = torch.optim.AdamW(reader.parameters(), lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    with torch.enable_grad():
        for _ in range(steps):
            given = texts(BATCH_SIZE, dice, choices, people)
            logits = reader(given.values, given.names, given.asked)
            loss = F.cross_entropy(logits.flatten(0, 1), given.answer.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return reader


def exam(choices: int = VALUES, people: int = PEOPLE) -> Texts:
    """Texts that no reader has seen."""
    return texts(TEXTS, np.random.Generator(np.random.PCG64(HELD_OUT)), choices, people)


@torch.no_grad()
def right(reader: Reader, given: Texts) -> Tensor:
    """The share of the names that a reader gets right, for each property, [properties]."""
    values, names, asked, answer = (part.to(device_of(reader)) for part in vars(given).values())
    return (reader(values, names, asked).argmax(-1) == answer).float().mean(0)


def accuracy(reader: Reader, given: Texts) -> float:
    """The share of all names that a reader gets right."""
    return float(right(reader, given).mean())


def run(variant: Variant, seed: int, steps: int) -> float:
    """Train a reader, and return its accuracy on texts that it has not seen."""
    return accuracy(trained(variant, seed, steps), exam())


def runs(steps: int) -> dict[str, list[float]]:
    """The stored accuracies of each variant after one of STEPS, one for each of SEEDS."""
    return cast(dict[str, list[float]], json.loads(RUNS.read_text(encoding="utf-8"))[str(steps)])
