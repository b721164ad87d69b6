"""NeuronWords: the strongest neurons of the trained model at one word of a story, what they answer to, what they add.

A neuron of the feed-forward network is read as a memory (Geva et al. 2021, arXiv 2012.14913): its rows of gate_proj and
up_proj are a key that some words match, its column of down_proj is a value that is added to the stream and that the
head reads as words. All numbers are computed here, from the stored weights; the ES module chooses among them.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from traitlets import Dict, default

from minimind_edu import world
from minimind_edu.block import MiniMindBlock
from minimind_edu.device import device_of, one_thread
from minimind_edu.feed_forward import FeedForward
from minimind_edu.figures.base import Figure
from minimind_edu.figures.story import OfAStory, ids_of, inputs_of
from minimind_edu.living import LENGTH, living_model
from minimind_edu.model import MiniMindForCausalLM

TOP = 3  # neurons of a block that are shown
WORDS = 3  # words that a neuron answers to, and that it pushes up or down
STORIES, SEED = 300, 8  # over which it is measured what a neuron answers to
SEEN = 10  # times that a word must occur in them to be counted
DIGITS = 3  # significant ones


class NeuronWords(OfAStory, Figure):
    """Choose a word of a story: the strongest neurons of each block there, their words, and the words they push.

    Args:
        story: the words, without `<s>`; 23 at most.
        word: the position that is chosen, 0 (`<s>`) to the last, which is the default.

    Raises:
        TraitError: if a word is none of this world's, there are too many, or the position is not in the story.
    """

    _repr_traits = ("story", "word")

    # what the package measured
    sizes = Dict(read_only=True).tag(sync=True)

    @staticmethod
    def _read(story: str) -> dict[str, Any]:
        return reading_of(story)

    @default("sizes")
    def _sizes(self) -> dict[str, int]:
        return {"inner": answers().shape[-1], "stories": STORIES}

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        read = self.reading
        rows = []
        for layer, of_layer in enumerate(read["top"][self.word]):
            for neuron, activation, _ in of_layer:
                known = read["neurons"][layer][str(neuron)]
                fires, pushed = (", ".join(word for word, _ in known[key]) for key in ("fires", _side(activation)))
                rows.append(
                    (
                        f"block {layer + 1}, neuron {neuron}",
                        f"activation {activation:.2f}; answers to {fires}; here it pushes up {pushed}",
                    )
                )
        word, share = read["next"][self.word]
        return (
            f"The strongest neurons of the trained model at {read['tokens'][self.word]!r}, word {self.word} of a story "
            f"of {len(read['tokens'])}. The model goes on with {word!r} ({100 * share:.0f} %).",
            rows,
        )


def _side(activation: float) -> str:
    """The words that a neuron raises: a negative activation turns what it adds around."""
    return "up" if activation > 0 else "down"


def _networks(model: MiniMindForCausalLM) -> list[FeedForward]:
    """The feed-forward network of each block."""
    return [cast(FeedForward, layer.mlp) for layer in cast(Iterable[MiniMindBlock], model.model.layers)]


def run(model: MiniMindForCausalLM, ids: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """One pass over ids [B, S].

    Returns:
        activations of the neurons [L, B, S, I], logits [B, S, V], RMS of the stream before the final norm [B, S].
    """
    with torch.no_grad(), inputs_of([*(mlp.down_proj for mlp in _networks(model)), model.model.norm]) as seen:
        logits = model(torch.from_numpy(ids).to(device_of(model))).logits
    *activations, stream = seen
    return torch.stack(activations), logits, stream.pow(2).mean(-1).sqrt()


def pushes(model: MiniMindForCausalLM) -> Tensor:
    """What each neuron does to the logits through norm and head, [L, V, I]: per unit of activation, in a final stream
    of RMS 1, and compared with the mean over all words, for equal changes of all logits change no probability.
    """
    head = model.lm_head.weight * model.model.norm.weight  # [V, E]
    with torch.no_grad():
        each = torch.stack([head @ mlp.down_proj.weight for mlp in _networks(model)])
    return each - each.mean(1, keepdim=True)


@cache
@one_thread()
def answers() -> Tensor:
    """The mean of |activation| of each neuron at each word over many stories, [L, V, I]; 0 for a word hardly seen."""
    model = living_model()
    ids = world.stories(STORIES, LENGTH, np.random.Generator(np.random.PCG64(SEED)))
    total, times = torch.zeros_like(pushes(model)), torch.zeros(len(world.WORDS))
    for part in np.array_split(ids, 10):
        activations = run(model, part)[0].abs().flatten(1, 2)  # [L, B * S, I]
        flat = torch.from_numpy(part).flatten()
        total.index_add_(1, flat, activations)
        times.index_add_(0, flat, torch.ones(len(flat)))
    return total / times.clamp(min=1)[:, None] * (times >= SEEN)[:, None]


@cache
def reading_of(story: str) -> dict[str, Any]:
    """What the figure tells of a story.

    Returns:
        tokens: its words. next: [likeliest next word, its probability] after each. rms: of the final stream at each.
        top: for each word and block the strongest neurons, [index, activation, fraction of the block's strength],
            where strength is |activation| times the norm of the neuron's column of down_proj.
        half: for each word and block, how many neurons have half of the block's strength.
        neurons: for each block, by index, the words that a neuron answers to (`fires`), [word, mean of |activation|],
            and those that a unit of its activation pushes most, up and down: [word, change of the logit at RMS 1].
    """
    model = living_model()
    ids = ids_of(story)
    activations, logits, rms = run(model, ids[None])
    columns = torch.stack([mlp.down_proj.weight.norm(dim=0) for mlp in _networks(model)])  # [L, I]
    strength = (activations[:, 0].abs() * columns[:, None]).detach()  # [L, S, I]
    shares = strength / strength.sum(-1, keepdim=True)
    ordered = shares.sort(dim=-1, descending=True, stable=True)
    likeliest = logits[0].softmax(-1).max(-1)
    top = [
        [
            [[i, _short(activations[layer, 0, at, i]), _short(shares[layer, at, i])] for i in of_word[:TOP].tolist()]
            for layer, of_word in enumerate(ordered.indices[:, at])
        ]
        for at in range(len(ids))
    ]
    return {
        "tokens": [world.WORDS[i] for i in ids],
        "next": [[world.WORDS[i], _short(p)] for i, p in zip(likeliest.indices, likeliest.values, strict=True)],
        "rms": [_short(value) for value in rms[0]],
        "top": top,
        "half": (1 + (ordered.values.cumsum(-1) < 0.5).sum(-1)).T.tolist(),
        "neurons": [
            _known_of(layer, sorted({i for at in top for i, _, _ in at[layer]}), pushes(model)[layer])
            for layer in range(len(columns))
        ],
    }


def _known_of(layer: int, neurons: list[int], pushed: Tensor) -> dict[str, Any]:
    """What is known about these neurons of a block, whatever the story."""
    fires = answers()[layer]
    return {
        str(i): {
            "fires": _first_words(fires[:, i]),
            "up": _first_words(pushed[:, i]),
            "down": _first_words(-pushed[:, i]),
        }
        for i in neurons
    }


def _first_words(values: Tensor) -> list[list[Any]]:
    """The words with the largest of values [V], [word, value] each."""
    order = values.argsort(descending=True, stable=True)[:WORDS].tolist()
    return [[world.WORDS[i], _short(values[i])] for i in order]


def _short(value: Tensor) -> float:
    return float(f"{value.item():.{DIGITS}g}")
