"""The living model: the MiniMind that this book has trained on its small world, and what is known about it.

    exam        how much of the world a model has learned: questions, and the distance from the exact probabilities
    steps       one token on its way through a block: every tensor, and the letters of its shape
    heads       what single heads read, what they write, and what is lost without them
    answering   which heads answer where somebody is, what each of them does, and what happens without the others
    moving      one query of a head, rotated as if it stood earlier, and the word that follows
    writers     who writes the lead of one word over another, and what is left of it without a head
    neurons     two neurons, a word of one language each, and the word that follows when they are exchanged
    divisors    the norms of its stream divide by fixed numbers, and what that does
    broken      what it still answers and writes when its cache has a bug
    copying     a smaller model that has learned to go on with what repeats itself, and how its heads do it
    rounding    what it loses when its weights take fewer bits
    written     the stories that it writes then, and their first impossible words
    repeating   how often what it writes goes round in circles, and what helps against it
    __main__    `python -m minimind_edu.trained.living` trains the model again, with three seeds, and stores two;
                with `--draft` it trains the small model that guesses ahead

The stored weights are int8 rows. Python and the pages of the book read the same file, so that both compute the same.
The **twin** has the same recipe and another seed: other drawn weights, other stories. What holds in both models is
more than an accident of one; it is no proof for a third.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.training import Recipe, initialize
from minimind_edu.validation import check_choice
from minimind_edu.weights.checkpoints import from_checkpoint

WEIGHTS = Path(__file__).parent / "weights.safetensors"
DRAFT = Path(__file__).parent / "draft.safetensors"
CARD = Path(__file__).parent / "card.json"

# initializer_range: 0.02 at this width leaves the model on a plateau for most of its training; 1/sqrt(E) is 0.125
CONFIG = MiniMindConfig(
    vocab_size=len(world.WORDS),
    hidden_size=64,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=128,
    head_dim=32,
    max_position_embeddings=1024,
    rope_theta=1e4,
    initializer_range=0.1,
    use_qk_norm=True,
    bos_token_id=world.BOS,
    eos_token_id=None,  # stories are cut, they do not end
)
# the draft: a seventh of the weights and half the layers, for guessing what the living model will say
DRAFT_CONFIG = dataclasses.replace(
    CONFIG, hidden_size=32, num_hidden_layers=2, head_dim=16, intermediate_size=64, initializer_range=0.15
)
DRAFT_RECIPE = Recipe(steps=4_000, learning_rate=1e-2)
BATCH_SIZE, LENGTH = 16, 96  # stories in a batch, words in a story
# of the seeds that were trained, the nearest to the world, and the next
STORED = {"living": WEIGHTS, "twin": WEIGHTS.with_name("twin.safetensors")}


def living_model(name: str = "living") -> MiniMindForCausalLM:
    """The trained model, in eval mode, on the CPU; a new object each time, so that a reader may change it.

    Args:
        name: `living`, the model of all pages, or `twin`, which learned by the same recipe from another seed.

    Raises:
        ValueError: for another name.
        FileNotFoundError: for the twin in a downloaded notebook that does not use it, and so does not carry it.
    """
    check_choice("name", name, tuple(STORED))
    if not STORED[name].exists():
        raise FileNotFoundError(
            f"the weights of {name!r} are not in the package that this notebook carries; "
            "install the whole package as README.md tells, or download a notebook that uses them"
        )
    return from_checkpoint(STORED[name])


def draft_model() -> MiniMindForCausalLM:
    """A much smaller model of the same world, to guess ahead for the living one; in eval mode, on the CPU."""
    return from_checkpoint(DRAFT)


def card(name: str = "living") -> dict[str, Any]:
    """What is known about a model: sizes, recipe, the exams of all seeds, the heads that it cannot do without.

    Args:
        name: `living` or `twin`; the recipe and the exams of all seeds are the same.

    Raises:
        ValueError: for another name.
    """
    check_choice("name", name, tuple(STORED))
    known = json.loads(CARD.read_text(encoding="utf-8"))
    twin = known.pop("twin")
    return known | twin if name == "twin" else known


def new_model(seed: int, config: MiniMindConfig = CONFIG) -> MiniMindForCausalLM:
    """A model that has learned nothing yet; the same for a seed on every machine."""
    return initialize(MiniMindForCausalLM(config), seed)


def story_batches(seed: int, batch_size: int = BATCH_SIZE, length: int = LENGTH) -> Iterator[Tensor]:
    """Batches of new stories, ids [B, T], without end."""
    generator = np.random.Generator(np.random.PCG64(seed))
    while True:
        yield torch.from_numpy(world.stories(batch_size, length, generator))
