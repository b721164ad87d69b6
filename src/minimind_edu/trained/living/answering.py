"""Where is Mia? The heads that a trained model needs to answer, what each of them does, and what happens without.

In the stories below somebody stays where she is, somebody else goes on, and the one who stayed is asked for. Each
stored model answers with a few of its sixteen heads: all others can be silenced at once. One of the few writes at every
place whose place it is, another fetches the place of the one who was asked for, and one says in which language to
answer. Training settles which heads these are: they have other numbers in the twin.

Heads have the names that readers see: `3.4` is the fourth head of the third block.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.attention import attention
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.masks import causal_mask
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import CONFIG, heads, living_model
from minimind_edu.validation import check_choice
from minimind_edu.world.words import IDS, PEOPLE, PLACES, TWIN

BLOCKS, OF_A_BLOCK = CONFIG.num_hidden_layers, CONFIG.num_attention_heads
ALL = tuple(f"{layer + 1}.{head + 1}" for layer in range(BLOCKS) for head in range(OF_A_BLOCK))
# of each stored model: the heads with which it answers in both languages when all others are silenced
NEEDED = {"living": ("1.2", "1.3", "1.4", "3.4", "4.2"), "twin": ("1.1", "1.2", "1.3", "1.4", "2.2", "3.1")}
WHOSE = {"living": "3.4", "twin": "2.2"}  # writes at a place whose it is, and at the end who was asked for
FETCHES = {"living": "4.2", "twin": "3.1"}  # reads the place of the one who was asked for
LANGUAGE = {"living": "1.3", "twin": "1.1"}  # says at the end in which language to answer
FORMS = {
    "en": "<s> {stays} is in the {place}. {goes} is in the {left}. {goes} goes from the {left} to the {new}. ",
    "zh": "<s> {stays}在{place}。{goes}在{left}。{goes}从{left}去{new}。",
}
QUESTIONS = {"en": "where is {who}? in the", "zh": "{who}在哪里？在"}
STAYS, PLACE, GOES, LEFT, NEW = 1, 3, 5, 7, 13  # positions in both forms: who and where, who goes, from where, to where
LEFT_AGAIN = 11
ASKED = {"en": 16, "zh": 15}  # the position of the one who is asked for
SPOTS = (PLACE, LEFT, LEFT_AGAIN, NEW)  # every place that a story names


class Told(NamedTuple):
    """Stories, all as long, and what is right and what is likeliest wrong."""

    ids: Tensor  # [B, S], each ends where the place is due
    place: Tensor  # [B], of the one who is asked for
    other: Tensor  # [B], of the other one


def at(name: str) -> tuple[int, int]:
    """The indices of block and head.

    Raises:
        ValueError: if there is no such head.
    """
    if name not in ALL:
        raise ValueError(f"heads are named {ALL[0]} to {ALL[-1]}, block and head, got {name!r}")
    layer, head = name.split(".")
    return int(layer) - 1, int(head) - 1


@contextmanager
def silenced(model: MiniMindForCausalLM, *names: str) -> Iterator[None]:
    """Inside the block none of these heads adds anything to the stream."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(heads.silenced(model, *at(name)))
        yield


def but(*names: str) -> tuple[str, ...]:
    """The names of all heads but these."""
    return tuple(name for name in ALL if name not in names)


def story(language: str, asked: str, who: str = "stays", **words: str) -> str:
    """A story in a language, en or zh, and its question in one, for who `stays` or who `goes`. Words are English:
    stays, place, goes, left, new."""
    named = {"en": words, "zh": {name: world.WORDS[IDS[word] + TWIN] for name, word in words.items()}}
    return FORMS[language].format(**named[language]) + QUESTIONS[asked].format(who=named[asked][who])


def stories(count: int, language: str = "en", asked: str | None = None, seed: int = 0, who: str = "stays") -> Told:
    """Stories with other people and places, told in a language, en or zh, and asked about in the same or another: where
    is who `stays`, or who `goes`?

    Raises:
        ValueError: for another `who`.
    """
    check_choice("who", who, ("stays", "goes"))
    draw, rows, places, news = random.Random(seed), [], [], []
    asked = asked or language
    for _ in range(count):
        stays, goes = draw.sample(list(PEOPLE[0][:8]), 2)
        place, left, new = draw.sample(list(PLACES[0]), 3)
        text = story(language, asked, who, stays=stays, place=place, goes=goes, left=left, new=new)
        rows.append(torch.from_numpy(world.encode(text)))
        shift = TWIN * (asked == "zh")
        places.append(IDS[place] + shift)
        news.append(IDS[new] + shift)
    ends = places, news
    right, wrong = ends if who == "stays" else ends[::-1]
    return Told(torch.stack(rows), torch.tensor(right), torch.tensor(wrong))


def renamed(ids: Tensor) -> Tensor:
    """The same stories, ids [B, S], with the names of the two people exchanged, told and asked in one language."""
    stays, goes = ids[:, STAYS, None], ids[:, GOES, None]
    return torch.where(ids == stays, goes, torch.where(ids == goes, stays, ids))


@torch.no_grad()
def shares(model: MiniMindForCausalLM, stories: Told, past: KVCache | None = None) -> tuple[float, float]:
    """How often the likeliest word is the right place, and how often the place of the other one.

    Args:
        model: the model.
        stories: what it reads.
        past: of `read`, where it has read all but the last word already.
    """
    ids = stories.ids.to(device_of(model))
    says = model(ids if past is None else ids[:, -1:], past_key_values=past).logits[:, -1].argmax(-1).cpu()
    return (says == stories.place).float().mean().item(), (says == stories.other).float().mean().item()


@torch.no_grad()
def read(model: MiniMindForCausalLM, stories: Told) -> KVCache | None:
    """The cache of all words but the last, for `shares`: what changes only at the last word leaves it as it is."""
    return model(stories.ids[:, :-1].to(device_of(model)), use_cache=True).past_key_values


@contextmanager
def rewritten(model: MiniMindForCausalLM, name: str, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Inside the block what a head has mixed, [B, S, D], is led back into the stream as `change` makes it."""
    layer, head = at(name)
    size = model.config.head_dim
    columns = slice(head * size, (head + 1) * size)

    def changed(_, given: tuple[Tensor]) -> tuple[Tensor]:
        joined = given[0].clone()  # [B, S, H * D]
        joined[..., columns] = change(given[0][..., columns])
        return (joined,)

    hook = heads.block(model, layer).self_attn.o_proj.register_forward_pre_hook(changed)
    try:
        yield
    finally:
        hook.remove()


@torch.no_grad()
def mixtures(model: MiniMindForCausalLM, ids: Tensor) -> dict[str, Tensor]:
    """What each head of ALL mixes at every position of texts, ids [B, S], in one pass: by its name [B, S, D]."""
    joined: list[Tensor] = []  # of each block, [B, S, H * D]
    with ExitStack() as stack:
        for layer in range(BLOCKS):
            projection = heads.block(model, layer).self_attn.o_proj
            hook = projection.register_forward_pre_hook(lambda _, given: joined.append(given[0]))
            stack.callback(hook.remove)
        model(ids.to(device_of(model)))
    return dict(zip(ALL, torch.cat(joined, -1).split(model.config.head_dim, -1), strict=True))


def mixed(model: MiniMindForCausalLM, name: str, ids: Tensor) -> Tensor:
    """What a head mixes at every position of texts, ids [B, S]: [B, S, D]."""
    return mixtures(model, ids)[name]


@torch.no_grad()
def means(model: MiniMindForCausalLM, ids: Tensor) -> dict[str, Callable[[Tensor], Tensor]]:
    """For each head a change for `rewritten`: every position gets the mean over these texts of what it mixes there."""
    usual = {name: mixture.mean(0) for name, mixture in mixtures(model, ids).items()}
    return {name: lambda x, mean=mean: mean.expand_as(x) for name, mean in usual.items()}


def given(mixtures: Tensor, places: Sequence[int], taken: Sequence[int] | None = None) -> Callable[[Tensor], Tensor]:
    """A change for `rewritten`: these places get what stands in `mixtures`, [B, S, D], at the same or at others.

    Args:
        mixtures: of `mixed`, from as many texts.
        places: positions; negative ones count from the end.
        taken: the positions in `mixtures`, as many; None: the same.
    """

    def change(x: Tensor) -> Tensor:
        x = x.clone()
        x[:, list(places)] = mixtures[:, list(taken or places)]
        return x

    return change


@torch.no_grad()
def every_set(model: MiniMindForCausalLM, ids: Tensor, names: Iterable[str]) -> Tensor:
    """The likeliest next words of a text, ids [1, S], for every set of these heads silenced: `[2 ** names]`.

    Bit i of an index says whether head i of them, in the order of ALL, is silenced.
    """
    names, device = sorted(names), device_of(model)
    body, length = model.model, ids.shape[1]
    positions = body.freqs_cos[:length], body.freqs_sin[:length]
    mask = causal_mask(length, length, device)
    streams = body.embed_tokens(ids.to(device))  # [sets, S, E], of the sets of the heads so far
    for layer in range(BLOCKS):
        block = heads.block(model, layer)
        silent = [at(name)[1] for name in names if at(name)[0] == layer]
        keeps = torch.ones(2 ** len(silent), OF_A_BLOCK, device=device)
        for bit, head in enumerate(silent):
            keeps[[chosen for chosen in range(len(keeps)) if chosen >> bit & 1], head] = 0
        query_key_value = block.self_attn.project(block.input_layernorm(streams), *positions)
        mixtures, _ = attention(*query_key_value, mask)  # [sets, S, H, D]
        columns = block.self_attn.o_proj.weight.unflatten(1, mixtures.shape[-2:])  # [E, H, D]
        written = torch.einsum("nshd,ehd->nshe", mixtures, columns)
        # later heads are the higher bits: sets of this block, times those of the blocks before
        streams = (streams + torch.einsum("nshe,ch->cnse", written, keeps)).flatten(0, 1)
        streams = streams + block.mlp(block.post_attention_layernorm(streams))
    return model.lm_head(body.norm(streams[:, -1])).argmax(-1)


STORY = {"stays": "Mia", "place": "hall", "goes": "Tom", "left": "kitchen", "new": "garden"}


@torch.no_grad()
def reading(silent: Iterable[str], language: str, model: MiniMindForCausalLM | None = None) -> dict[str, Any]:
    """What the living model says at the end of the book's story without some heads, and what two of them read.

    Returns:
        shares: of the three places, in the order of `place`, `new` and `left`. other: the likeliest other word and its
        share. whose: for each place and the last position, the position that head 3.4 reads most, and its weight.
        fetched: the weight that head 4.2 gives each place at the last position. The last two are of heads that are
        silenced, too: such a head reads, and adds nothing.
    """
    model = model or living_model()
    ids = torch.from_numpy(world.encode(story(language, language, **STORY)))[None]
    with silenced(model, *silent):
        chances = model(ids).logits[0, -1].softmax(-1)
        weights = heads.attention_weights(model, ids)  # [L, H, S, S]
    places = [int(ids[0, spot]) for spot in (PLACE, NEW, LEFT)]
    others = chances.clone()
    others[places] = 0
    rows = [*SPOTS, ids.shape[1] - 1]
    tags = weights[at(WHOSE["living"])][rows]  # [spots, S]
    fetched = weights[at(FETCHES["living"])][-1, list(SPOTS)]
    best = tags.max(-1)
    return {
        "shares": chances[places].tolist(),
        "other": [world.WORDS[int(others.argmax())], float(others.max())],
        "whose": [[int(position), float(weight)] for position, weight in zip(best.indices, best.values, strict=True)],
        "fetched": fetched.tolist(),
    }


@cache
def measured() -> dict[str, Any]:
    """What the figure needs to open: of each story ids, words, spots, and `reading` with all heads."""
    tellings = {}
    for language in FORMS:
        ids = world.encode(story(language, language, **STORY)).tolist()
        tellings[language] = {
            "ids": ids,
            "words": [world.WORDS[i] for i in ids],
            "spots": list(SPOTS),
            "places": [ids[spot] for spot in (PLACE, NEW, LEFT)],
            "first": reading((), language),
        }
    names = [IDS[word] for word in (*PEOPLE[0][:8], *PLACES[0])]
    return {
        "told": tellings,
        "names": list(ALL),
        "needed": list(NEEDED["living"]),
        "whose": WHOSE["living"],
        "fetches": FETCHES["living"],
        "glosses": {world.WORDS[i + TWIN]: world.WORDS[i] for i in names},
    }
