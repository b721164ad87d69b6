"""Who writes the lead of one word over another, and what is left of it when a head is silenced.

Mia goes from the kitchen to the hall, and the model must say where she is. The lead of *hall* over *kitchen*, a
difference of two logits, is an exact sum of what the parts of the model wrote (direct logit attribution, Elhage et al.
2021). Silencing a head takes away what it wrote, and changes what all later parts write that read it. In both stored
models one head crosses out the place that was left: a negative mover, as in Wang et al. 2022, arXiv 2211.00593.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import STORED, answering, heads, living_model, moving
from minimind_edu.world.words import IDS, TWIN

FORMS = {
    "en": "<s> {one} is in the {here}. {other} is in the {there}. {one} goes from the {here} to the {third}. "
    "where is {one}? in the",
    "zh": "<s> {one}在{here}。{other}在{there}。{one}从{here}去{third}。{one}在哪里？在",
}
FORM = FORMS["en"]
LEFT, REACHED = 11, 13  # positions in both: the room that was left, where it is told, and the room that was reached
STORY = FORM.format(one="Mia", here="kitchen", other="Tom", there="garden", third="hall")
NEW, OLD = "hall", "kitchen"  # where Mia is now, and the place that she left

# Of each stored model, as indices of block and head: the heads that write the new place, and the one that crosses out
# the old one.
MOVERS: dict[str, tuple[moving.Head, ...]] = {"living": ((3, 1),), "twin": ((2, 0), (2, 1))}
CROSSES: dict[str, moving.Head] = {"living": (3, 0), "twin": (2, 2)}
TELLS = "1.3"  # of the living model, in English: writes at a room whether it was left or reached
SHOWN_WORDS = (13, 3, 11, 7)  # of the story: hall, kitchen twice, garden


def name_of(head: moving.Head) -> str:
    """Block and head as a reader counts them: `4.2` for the indices 3 and 1."""
    return f"{head[0] + 1}.{head[1] + 1}"


def row_of(model: MiniMindForCausalLM, head: moving.Head) -> int:
    """The row of a head in what `heads.written` and `heads.shares` return; H in place of a head is the network."""
    return 1 + head[0] * (model.config.num_attention_heads + 1) + head[1]


@torch.no_grad()
def lead(model: MiniMindForCausalLM, ids: Tensor, new: int, old: int) -> Tensor:
    """What each row of `heads.written` adds to the logit of one word minus that of another, ids [1, S]:
    `[1 + L * (H + 1)]`, in logits. Its sum is the model's own difference."""
    share = heads.shares(model, ids)
    return share[:, new] - share[:, old]


@torch.no_grad()
def by_word(model: MiniMindForCausalLM, ids: Tensor, head: moving.Head, new: int, old: int) -> tuple[Tensor, Tensor]:
    """How much a head reads each word of a text, ids [1, S], from the last one, and what it adds to the lead with what
    it reads there: [S] and [S]; the second sums up to the head's row of `lead`."""
    query, keys, values = heads.query_keys_values(model, *head, ids)
    weights = (keys @ query / len(query) ** 0.5).softmax(-1)  # [S]: the last word sees all
    layer, index = head
    proj = heads.block(model, layer).self_attn.o_proj.weight
    columns = proj.unflatten(1, (model.config.num_attention_heads, -1))[:, index]  # [E, D]
    norm = model.model.norm
    rms = heads.written(model, ids).sum(0).pow(2).mean().add(norm.eps).sqrt()
    direction = model.lm_head.weight[new] - model.lm_head.weight[old]  # [E]
    return weights, weights * (values @ columns.T @ (norm.weight * direction)) / rms


def stories(count: int, form: str = FORM, seed: int = 4, language: str = "en") -> tuple[Tensor, Tensor, Tensor]:
    """Stories of one form, in `en` or `zh`, with other people and rooms: ids [B, S], and of each the new room and the
    old, [B] each."""
    ids, old, _ = moving.stories(count, form, seed, language)
    before = (ids == IDS["to the"] + TWIN * (language == "zh")).nonzero()  # one place in each story
    return ids, ids[before[:, 0], before[:, 1] + 1], old


def groups(name: str) -> dict[str, list[int]]:
    """The five writers that the figure shows of a model, by what they are called, each with its rows of `lead`."""
    model = living_model(name)
    layers, count = model.config.num_hidden_layers, model.config.num_attention_heads
    crosses, moves = [row_of(model, CROSSES[name])], [row_of(model, head) for head in MOVERS[name]]
    all_heads = [row_of(model, (layer, head)) for layer in range(layers) for head in range(count)]
    others = [row for row in all_heads if row not in crosses + moves]
    networks = [row_of(model, (layer, count)) for layer in range(layers)]
    return {
        f"head {name_of(CROSSES[name])}": crosses,
        f"head {' and '.join(map(name_of, MOVERS[name]))}": moves,
        f"network {layers}": networks[-1:],
        f"{len(others)} other heads": others,
        "the rest": [0, *networks[:-1]],
    }


@torch.no_grad()
def silenced_leads(name: str) -> dict[str, dict[str, Any]]:
    """Of the story: what the five writers add to the lead, and the next word with its probability, with no head
    silenced (`none`) and with each one."""
    model, of_group = living_model(name).double(), groups(name)
    ids = torch.from_numpy(world.encode(STORY))[None]
    config = model.config
    every = [(layer, head) for layer in range(config.num_hidden_layers) for head in range(config.num_attention_heads)]

    def looked() -> dict[str, Any]:
        found, chances = lead(model, ids, IDS[NEW], IDS[OLD]), model(ids).logits[0, -1].softmax(-1)
        writes = [round(float(found[rows].sum()), 4) for rows in of_group.values()]
        word = int(chances.argmax())
        return {
            "writes": writes,
            "lead": round(float(found.sum()), 4),
            "word": world.WORDS[word],
            "share": round(float(chances[word]), 4),
            "own": [round(float(found[row_of(model, head)]), 4) for head in every],
        }

    states = {"none": looked()}
    for head in every:
        with heads.silenced(model, *head):
            states[name_of(head)] = looked()
    lead_of = states["none"]["own"]
    for state in states.values():
        del state["own"]
    return {"states": states, "own": dict(zip((name_of(head) for head in every), lead_of, strict=True))}


@cache
@torch.no_grad()
def measured() -> dict[str, Any]:
    """What the figure needs: the story, the leads of both models, and what the two heads of the living one read, as it
    is, and when what `TELLS` wrote at the two rooms is exchanged."""
    model = living_model().double()
    ids = torch.from_numpy(world.encode(STORY))[None]

    def read(head: moving.Head) -> dict[str, Any]:
        weights, adds = by_word(model, ids, head, IDS[NEW], IDS[OLD])
        rest = float(adds.sum() - adds[list(SHOWN_WORDS)].sum())
        return {
            "weights": [round(weight, 4) for weight in weights.tolist()],
            "writes": [round(value, 4) for value in (*adds[list(SHOWN_WORDS)].tolist(), rest)],
            "lead": round(float(adds.sum()), 4),
        }

    shown = (*MOVERS["living"], CROSSES["living"])
    spots, mixed = [LEFT, REACHED], answering.mixed(model, TELLS, ids)
    readers = {"as it is": {name_of(head): read(head) for head in shown}}
    with answering.rewritten(model, TELLS, answering.given(mixed, spots, spots[::-1])):
        readers["exchanged"] = {name_of(head): read(head) for head in shown}
    return {
        "words": [world.WORDS[int(word)] for word in ids[0]],
        "new": NEW,
        "old": OLD,
        "places": list(SHOWN_WORDS),
        "models": {
            name: {
                "crosses": name_of(CROSSES[name]),
                "moves": [name_of(head) for head in MOVERS[name]],
                **silenced_leads(name),
            }
            for name in STORED
        },
        "tells": TELLS,
        "readers": readers,
    }
