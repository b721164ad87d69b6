"""NeuronWords: neurons of the trained model at one word of a story, what they answer to and add, and what comes next
without one of them.

A neuron of the feed-forward network is read as a memory (Geva et al. 2021, arXiv 2012.14913): its rows of gate_proj and
up_proj are a key that some words match, its column of down_proj is a value that is added to the stream and that the
head reads as words. Reading does not show what a neuron is good for, so the model also runs without each of them. All
numbers are computed here, from the stored weights; the ES module chooses among them.
"""

from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from traitlets import Bunch, Dict, TraitError, Unicode, default, observe, validate

from minimind_edu import world
from minimind_edu.device import device_of, one_thread
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import LENGTH, living_model
from minimind_edu.web.base import Figure
from minimind_edu.web.story import OfAStory, ids_of, inputs_of
from minimind_edu.web.traits import proposed
from minimind_edu.world.words import OBJECTS, PEOPLE, PLACES, PRONOUNS

TOP = 2  # neurons of a block that are shown: those whose absence changes most
WORDS = 3  # words that a neuron answers to, and that it pushes up or down
NEXT = 4  # words that may come next whose probabilities are told
STORIES, SEED = 300, 8  # over which it is measured what a neuron answers to
SEEN = 10  # times that a word must occur in them to be counted
DIGITS = 3  # significant ones


class NeuronWords(OfAStory, Figure):
    """Choose a word of a story and switch off a neuron: what it answers to, what it adds, and what comes next then.

    Args:
        story: the words, without `<s>`; 23 at most.
        word: the position that is chosen, 0 (`<s>`) to the last, which is the default.
        off: the neuron that is switched off, block and number as the figure shows them, such as "4.76"; "" for none.

    Raises:
        TraitError: if a word is none of this world's, there are too many, the position is not in the story, or the
            neuron is not one of those shown there.
    """

    _repr_traits = ("story", "word", "off")

    off = Unicode("").tag(sync=True)
    # what the package measured
    sizes = Dict(read_only=True).tag(sync=True)

    @staticmethod
    def _read(story: str) -> dict[str, Any]:
        return reading_of(story)

    @validate("off")
    def _shown_here(self, proposal: Bunch) -> str:
        off, word, story = proposed(self, proposal, "off", "word", "story")
        if off and off not in (shown := _names(reading_of(story)["top"][word])):
            raise TraitError(f"off must be empty or a neuron shown at word {word}, {', '.join(shown)}, got {off!r}")
        return off

    @observe("story", "word")
    def _switch_on(self, _: Bunch) -> None:
        top = reading_of(self.story)["top"]
        if self.off not in _names(top[min(self.word, len(top) - 1)]):
            self.off = ""

    @default("sizes")
    def _sizes(self) -> dict[str, Any]:
        return {"inner": answers().shape[-1], "stories": STORIES, "twins": _twins()}

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        read, rows = self.reading, []
        words, shares = zip(*read["next"][self.word], strict=True)
        for layer, of_layer in enumerate(read["top"][self.word]):
            for (neuron, activation, _, without), name in zip(of_layer, _names([of_layer], layer), strict=True):
                known = read["neurons"][layer][str(neuron)]
                fires, pushed = (", ".join(word for word, _ in known[key]) for key in ("fires", _side(activation)))
                then = max(without)
                rows.append(
                    (
                        f"neuron {name.split('.')[1]} of block {layer + 1}",
                        f"answers to {fires}; here it pushes up {pushed}; without it "
                        f"{words[without.index(then)]} ({100 * then:.0f} %)",
                    )
                )
        return (
            f"Neurons of the trained model at {read['tokens'][self.word]!r}, word {self.word} of a story of "
            f"{len(read['tokens'])}, those whose absence changes most. With all of them the model goes on with "
            f"{words[0]!r} ({100 * shares[0]:.0f} %).",
            rows,
        )


def _names(top: list[list[list[Any]]], first: int = 0) -> list[str]:
    """How the figure names these neurons of blocks, "block.neuron", both from 1."""
    return [f"{layer + 1}.{neuron[0] + 1}" for layer, of_layer in enumerate(top, first) for neuron in of_layer]


def _twins() -> dict[str, str]:
    """What Chinese names, things and places are in English."""
    pairs = (zip(*lists, strict=True) for lists in (PEOPLE, OBJECTS, PLACES, PRONOUNS))
    return {chinese: english for english, chinese in chain.from_iterable(pairs)}


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


def without_each(model: MiniMindForCausalLM, ids: np.ndarray) -> Tensor:
    """Probabilities of the next word, [L, I, S, V], at each of ids [S] with one neuron of one block switched off."""

    def switch_off(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        inner = given[0].shape[-1]
        hidden = given[0].repeat(inner, 1, 1)  # [1, S, I] -> [I, S, I]: up to here one text serves all neurons
        hidden.diagonal(dim1=0, dim2=2).zero_()
        return (hidden,)

    text, found = torch.from_numpy(ids)[None].to(device_of(model)), []
    for mlp in _networks(model):
        hook = mlp.down_proj.register_forward_pre_hook(switch_off)
        try:
            with torch.no_grad():
                found.append(model(text).logits.softmax(-1))
        finally:
            hook.remove()
    return torch.stack(found)


@cache
@one_thread()
def reading_of(story: str) -> dict[str, Any]:
    """What the figure tells of a story.

    Returns:
        tokens: its words. rms: of the final stream at each.
        next: after each word, NEXT words that may follow, [word, probability], the likeliest first.
        top: for each word and block the neurons without which the next word changes most, [index, activation, the part
            of all probability that moves, the probabilities of `next` without the neuron].
        neurons: for each block, by index, the words that a neuron answers to (`fires`), [word, mean of |activation|],
            and those that a unit of its activation pushes most, up and down: [word, change of the logit at RMS 1].
    """
    model = living_model()
    ids = ids_of(story)
    activations, logits, rms = run(model, ids[None])
    columns = torch.stack([mlp.down_proj.weight.norm(dim=0) for mlp in _networks(model)]).detach()  # [L, I]
    strength = activations[:, 0].abs() * columns[:, None]  # [L, S, I]
    usual, without = logits[0].softmax(-1), without_each(model, ids)  # [S, V], [L, I, S, V]
    moved = (without - usual).abs().sum(-1).transpose(1, 2) / 2  # [L, S, I]
    # what moves less than a hundredth is ordered by strength: machines agree about that
    order = (moved.mul(100).round() + strength / (1 + strength)).argsort(-1, descending=True)[..., :TOP]
    shares, top = [], []
    for at in range(len(ids)):
        off = torch.stack([without[layer, order[layer, at], at] for layer in range(len(order))])  # [L, TOP, V]
        words = _may_follow(usual[at], off.flatten(0, 1))
        shares.append([[world.WORDS[i], _share(usual[at, i])] for i in words])
        shown = [(layer, n, i) for layer in range(len(order)) for n, i in enumerate(order[layer, at].tolist())]
        each = [
            [
                i,
                _short(activations[layer, 0, at, i]),
                _share(moved[layer, at, i]),
                [_share(p) for p in off[layer, n, words]],
            ]
            for layer, n, i in shown
        ]
        top.append([each[first : first + TOP] for first in range(0, len(each), TOP)])
    return {
        "tokens": [world.WORDS[i] for i in ids],
        "next": shares,
        "rms": [_short(value) for value in rms[0]],
        "top": top,
        "neurons": [
            _known_of(layer, sorted({neuron[0] for at in top for neuron in at[layer]}), pushes(model)[layer])
            for layer in range(len(columns))
        ],
    }


def _may_follow(usual: Tensor, off: Tensor) -> list[int]:
    """The ids whose bars are worth a look, likeliest first: of usual [V], and the first in each of off [rows, V]."""
    first = {int(usual.argmax()), *off.argmax(-1).tolist()}
    chances = torch.cat([usual[None], off]).amax(0)  # [V]
    chances[list(first)] += 1
    chosen = chances.mul(1000).round().argsort(descending=True, stable=True)[:NEXT].tolist()
    return sorted(chosen, key=lambda i: -_share(usual[i]))


def _share(value: Tensor) -> float:
    """A probability to a thousandth: machines disagree about less."""
    return round(value.item(), 3)


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
