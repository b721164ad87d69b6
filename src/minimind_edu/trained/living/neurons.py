"""Two neurons of the last block, and the word that follows when they are held at other activations.

After *goes from the* and a place, the model says *to the*; after 从 and a place it says 去, which means the same. In
the last block one neuron writes the first word and another the second: exchange the activations of these two alone, and
each model says the word of the other language. Which two they are, training settles: other ones in the twin. They are
not the only ones that know the language: with both at 0, the twin mostly goes on in English.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import LENGTH, living_model
from minimind_edu.trained.living.heads import block
from minimind_edu.world.words import IDS, OBJECTS, PEOPLE, PLACES, PRONOUNS, TWIN

LEAVING = {"en": "goes from the", "zh": "从"}  # the word before the place that somebody leaves
THEN = {"en": "to the", "zh": "去"}  # the word after it
PAIRS = {
    "living": {"en": 75, "zh": 108},
    "twin": {"en": 43, "zh": 10},
}  # who writes it: indices in the last block
TOLD = {
    "en": "<s> Mia is in the kitchen. Tom is in the garden. Mia goes from the kitchen",
    "zh": "<s> 米娅在厨房。汤姆在花园。米娅从厨房",
}
PHRASES_ALIKE = [
    *(("is in the", "在"), ("goes from the", "从"), ("to the", "去"), ("where is", "在哪里"), ("everybody", "大家")),
    *(
        ("is picked up by", "拿起了"),
        ("is put down by", "放下了"),
        ("is given by", "交给了"),
        ("who has the", "谁拿着"),
    ),
    *((".", "。"), ("?", "？"), (":", "："), (",", "，")),
]
STORIES, SEED = 100, 5
ELSEWHERE = 4  # of so many other places of a word, the figure shows one
LOWEST, HIGHEST = -200, 60  # activations among which it is looked for where the next word changes


class Read(NamedTuple):
    """What the network of a block computes at some places, and how the model ends there."""

    gate: Tensor  # [places, I], before SiLU
    up: Tensor  # [places, I]
    active: Tensor  # [places, I], SiLU(gate) times up: the activations
    stream: Tensor  # [places, E], after the last block: what the last norm gets
    given: Tensor  # [places, E], what gate and up read


def network(model: MiniMindForCausalLM, layer: int = -1) -> FeedForward:
    """The feed-forward network of a block, by its index."""
    return cast(FeedForward, block(model, layer).mlp)


def stories(seed: int = SEED) -> Tensor:
    """The ids [100, 96] of the stories over which is counted."""
    return torch.from_numpy(world.stories(STORIES, LENGTH, seed=seed))


def after(ids: Tensor, word: str) -> Tensor:
    """Where a word has just been said, [B, S]: True at the position that follows it."""
    follows = torch.zeros_like(ids, dtype=torch.bool)
    follows[:, 1:] = ids[:, :-1] == IDS[word]
    return follows


@torch.no_grad()
def read(model: MiniMindForCausalLM, ids: Tensor, where: Tensor, layer: int = -1) -> Read:
    """What the network of a block computes while a model reads ids [B, S], at the places of `where`, [B, S]."""
    mlp, seen = network(model, layer), {}
    results = {"gate": mlp.gate_proj, "up": mlp.up_proj}
    inputs = {"active": mlp.down_proj, "stream": model.model.norm, "given": mlp.gate_proj}
    hooks = [
        part.register_forward_hook(lambda _, given, out, name=name: seen.update({name: out}))
        for name, part in results.items()
    ]
    for name, part in inputs.items():
        hooks.append(part.register_forward_pre_hook(lambda _, given, name=name: seen.update({name: given[0]})))
    device = device_of(model)
    try:
        model(ids.to(device))
    finally:
        for hook in hooks:
            hook.remove()
    return Read(**{name: values[where.to(device)] for name, values in seen.items()})


def leaving(model: MiniMindForCausalLM, ids: Tensor) -> dict[str, Read]:
    """By language, what the last block computes where somebody leaves a place in ids [B, S]."""
    return {language: read(model, ids, after(ids, word)) for language, word in LEAVING.items()}


@torch.no_grad()
def logits_held(model: MiniMindForCausalLM, last: Read, held: Mapping[int, Tensor | float]) -> Tensor:
    """The logits [settings, V] after these positions if neurons, by index, are held at other activations, or at one.

    Nothing follows the network of the last block but a norm and the head, so nothing else has to run again.
    """
    stream, down = last.stream, network(model).down_proj.weight  # [places, E], [E, I]
    for i, active in held.items():
        stream = stream + (active - last.active[:, i])[:, None] * down[:, i]
    return model.lm_head(model.model.norm(stream))


def next_words(model: MiniMindForCausalLM, last: Read, held: Mapping[int, Tensor | float]) -> list[str]:
    """The likeliest next word after each of these positions, with neurons held as in `logits_held`."""
    return [world.WORDS[i] for i in logits_held(model, last, held).argmax(-1).tolist()]


def flips(model: MiniMindForCausalLM, last: Read, neuron: int) -> list[int]:
    """For each position the highest whole activation of this neuron at which *to the* follows; LOWEST if none does."""
    found = torch.full((len(last.stream),), LOWEST)
    for active in range(LOWEST, HIGHEST + 1):
        words = logits_held(model, last, {neuron: float(active)}).argmax(-1).cpu()
        found[words == IDS[THEN["en"]]] = active
    return found.tolist()


@torch.no_grad()
def active_at_random(model: MiniMindForCausalLM, seen: Read, layer: int = -1, seed: int = 0) -> Tensor:
    """The activations [places, I] if a block's rows of gate and up were random ones as large as its own, on the CPU.

    They read what the trained ones read: a control of what the stream alone makes a neuron respond to.
    """
    mlp, random = network(model, layer), torch.Generator().manual_seed(seed)
    gate, up = (
        seen.given.cpu() @ (torch.randn(part.weight.shape, generator=random) * part.weight.std().cpu()).T
        for part in (mlp.gate_proj, mlp.up_proj)
    )
    return F.silu(gate) * up


def meanings() -> Tensor:
    """For each word an id [V], which it shares with the word of the same meaning in the other language, if any."""
    ids = torch.arange(len(world.WORDS))
    for english, chinese in PEOPLE, OBJECTS, PLACES, PRONOUNS, tuple(zip(*PHRASES_ALIKE, strict=True)):
        ids[[IDS[word] for word in chinese]] = ids[[IDS[word] for word in english]]
    return ids


def kinds() -> Tensor:
    """Ids [V] as of `meanings`, but one for all people, one for all things, all places and all pronouns."""
    found = meanings()
    for (first, *_, last), _ in (PEOPLE, OBJECTS, PLACES, PRONOUNS):
        found[(found >= IDS[first]) & (found <= IDS[last])] = IDS[first]
    return found


def alike(active: Tensor, *labels: Tensor, most: int = 50) -> Tensor:
    """At how many of the `most` places where a neuron is most active the same label stands, for each neuron, [I].

    Args:
        active: activations [places, I].
        labels: what stands at each place, [places]; of several the most frequent label counts.
    """
    strongest = active.abs().topk(most, dim=0).indices.cpu()
    found = [each.flatten()[strongest] for each in labels]
    return torch.stack([(each == each.mode(dim=0).values).sum(dim=0) for each in found]).amax(dim=0)


@cache
@torch.no_grad()
def measured() -> dict[str, Any]:
    """What the figure needs to compute every next word by itself, of the model in float64.

    Returns:
        words: all V. pair: the indices of the two neurons. columns: for each, what one unit of it adds to every logit
        before the last norm divides, [2][V]. products: of the two columns with themselves and each other. eps, size.
        told: by language, tokens, the logits of the rest of the stream [V], and its products with itself and the two
        columns; gate, up and activation of both neurons there.
        places: by language, for every place that somebody leaves in the stories, gate and up of the first neuron and
        the activations of both; in English also where the first's makes the next word *to the*; `else` has other words.
    """
    model = living_model().double()
    mlp, norm = network(model), model.model.norm
    pair = [PAIRS["living"][language] for language in ("en", "zh")]
    columns = mlp.down_proj.weight[:, pair]  # [E, 2]
    rows = model.lm_head.weight * norm.weight  # [V, E]
    of_language = {}
    for language, text in TOLD.items():
        ids = torch.from_numpy(world.encode(text))[None]
        end = torch.zeros_like(ids, dtype=torch.bool)
        end[0, -1] = True
        last = read(model, ids, end)
        rest = last.stream[0] - columns @ last.active[0, pair]
        of_language[language] = {
            "tokens": [world.WORDS[i] for i in ids[0].tolist()],
            "rest": (rows @ rest).tolist(),
            "products": [float(rest @ rest), *(rest @ columns).tolist()],
            **{name: getattr(last, name)[0, pair].tolist() for name in ("gate", "up", "active")},
        }
    ids = stories()
    left = leaving(model, ids)
    places = {language: _rounded(last, pair) for language, last in left.items()}
    places["en"] = [[*row, end] for row, end in zip(places["en"], flips(model, left["en"], pair[0]), strict=True)]
    spots = after(ids, "in the") | after(ids, "在")
    spots &= ~after(ids, LEAVING["en"]) & ~after(ids, LEAVING["zh"])
    places["else"] = _rounded(read(model, ids, spots), pair)[:: 2 * ELSEWHERE]
    return {
        "words": list(world.WORDS),
        "pair": pair,
        "columns": (rows @ columns).T.tolist(),
        "products": [float(columns[:, a] @ columns[:, b]) for a, b in ((0, 0), (0, 1), (1, 1))],
        "eps": norm.eps,
        "size": len(columns),
        "told": of_language,
        "places": places,
        "glosses": {world.WORDS[i + TWIN]: world.WORDS[i] for i in world.encode("Mia Tom kitchen garden").tolist()},
    }


def _rounded(last: Read, pair: list[int]) -> list[list[float]]:
    """Of each setting, gate and up of the first neuron to a tenth, and both activations to a whole number."""
    columns = (last.gate[:, pair[0]], last.up[:, pair[0]], *(last.active[:, i] for i in pair))
    rows = torch.stack(columns, dim=1).tolist()
    return [[round(gate, 1), round(up, 1), round(first), round(second)] for gate, up, first, second in rows]
