"""One query of a trained model, rotated as if its word stood some words earlier, and what the model then says.

In the stories below one head of each stored model reads who goes: the last word's query finds the person just before
it. Rotated as if it stood four words earlier it finds the other person, and the model names the other's room. Nothing
else is changed: not the word, not a key, no other head.
"""

import random
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope import rotate_half
from minimind_edu.trained.living import heads, living_model
from minimind_edu.world.words import IDS, OBJECTS, PEOPLE, PLACES, TWIN

Head = tuple[int, int]  # indices of block and head

READERS: dict[str, Head] = {"living": (2, 3), "twin": (1, 1)}  # of each stored model: the head that reads who goes
FARTHEST = 12  # words back
FORM = (
    "<s> {other} is in the {there}. {one} is in the {here}. the {thing} is picked up by {one} in the {here}. "
    "the {things} is picked up by {other} in the {there}. {one} goes from the"
)
STORY = FORM.format(other="Tom", there="garden", one="Mia", here="kitchen", thing="ball", things="hat")


@contextmanager
def moved(
    model: MiniMindForCausalLM, back: int, which: Iterable[Head], pairs: Collection[int] | None = None
) -> Iterator[None]:
    """Inside the block the last position's queries of these heads are rotated as if they stood `back` words earlier.

    Args:
        which: the heads, as indices of block and head.
        pairs: those of their pairs that are rotated, 0 to D/2 - 1; None: all.
    """
    cos, sin = model.model.freqs_cos[back].clone(), model.model.freqs_sin[back].clone()  # [D]
    if pairs is not None:
        stays = torch.tensor([channel % (len(cos) // 2) not in pairs for channel in range(len(cos))])
        cos[stays], sin[stays] = 1, 0
    of_layer: dict[int, list[int]] = {}
    for layer, head in which:
        of_layer.setdefault(layer, []).append(head)

    def project_of(moved_heads: list[int], project):
        def projected(*inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            q, k, v = project(*inputs)
            q, last = q.clone(), q[:, -1, moved_heads]  # [B, S, H, D], [B, heads, D]
            q[:, -1, moved_heads] = last * cos - rotate_half(last) * sin  # back by so many angles
            return q, k, v

        return projected

    attends = {layer: heads.block(model, layer).self_attn for layer in of_layer}
    for layer, attend in attends.items():
        attend.project = project_of(of_layer[layer], attend.project)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for attend in attends.values():
            del attend.project


@contextmanager
def reading(model: MiniMindForCausalLM, which: Head, places: Tensor) -> Iterator[None]:
    """Inside the block this head's last position reads one word only: its output is that word's value, weight 1.

    Args:
        which: the head, as indices of block and head.
        places: the position of the word in each text, [B].
    """
    layer, head = which
    attend = heads.block(model, layer).self_attn
    project, values = attend.project, []

    def projected(*inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = project(*inputs)
        values.append(v[torch.arange(len(v)), places, head // (q.shape[2] // v.shape[2])])  # [B, D]
        return q, k, v

    def replaced(_, inputs: tuple[Tensor]) -> Tensor:
        outputs = inputs[0].unflatten(-1, (attend.num_heads, -1)).clone()  # [B, S, H, D]
        outputs[:, -1, head] = values.pop()
        return outputs.flatten(2)

    attend.project = projected  # type: ignore[method-assign]
    hook = attend.o_proj.register_forward_pre_hook(replaced)
    try:
        yield
    finally:
        hook.remove()
        del attend.project


@torch.no_grad()
def unrotated(model: MiniMindForCausalLM, ids: Tensor, reader: Head = READERS["living"]) -> tuple[Tensor, Tensor]:
    """The last word's query [D] in this head and all its keys [S, D], before any rotation; ids [1, S]."""
    query, keys, _ = heads.query_keys_values(model, *reader, ids, is_rotated=False)
    return query, keys


def stories(count: int, form: str = FORM, seed: int = 4, language: str = "en") -> tuple[Tensor, Tensor, Tensor]:
    """Stories of one form with other people, rooms and things, all as long: ids [B, S], and of each story the room of
    the one who goes and the other's room, [B] each.

    Args:
        form: names `{one}`, who goes, `{here}`, `{other}` and `{there}`, and may name `{thing}`, `{things}` and a third
            room, `{third}`.
        language: of the form, `en` or `zh`: its people, rooms and things bear their names in it.
    """
    draw, texts, rooms, left = random.Random(seed), [], [], []
    for _ in range(count):
        other, walker = draw.sample(list(PEOPLE[0][:8]), 2)
        there, here, third = draw.sample(list(PLACES[0]), 3)
        thing, things = draw.sample(list(OBJECTS[0]), 2)
        words = {"other": other, "one": walker, "there": there, "here": here, "third": third}
        words |= {"thing": thing, "things": things}
        ids = {name: IDS[word] + TWIN * (language == "zh") for name, word in words.items()}
        texts.append(torch.from_numpy(world.encode(form.format(**{name: world.WORDS[i] for name, i in ids.items()}))))
        rooms.append(ids["here"])
        left.append(ids["there"])
    return torch.stack(texts), torch.tensor(rooms), torch.tensor(left)


def names(ids: Tensor) -> tuple[Tensor, Tensor]:
    """In each of these stories the last place of the one who goes, and the last of the other: [B] each; ids [B, S]."""
    people = torch.isin(ids, ids.new_tensor(world.encode(" ".join(PEOPLE[0]))))
    positions = torch.arange(ids.shape[1], device=ids.device)
    last = torch.where(people, positions, -1).amax(1)  # nobody is named after the one who goes
    is_last = ids == ids.gather(1, last[:, None])
    return last, torch.where(people & ~is_last, positions, -1).amax(1)


@cache
@torch.no_grad()
def measured() -> dict[str, Any]:
    """What the figure needs: the story, the vectors of the reader, and the model's next word for each move."""
    model = living_model().double()
    ids = torch.from_numpy(world.encode(STORY))[None]
    query, keys = unrotated(model, ids)
    rooms, following = [IDS["kitchen"], IDS["garden"]], []
    for back in range(FARTHEST + 1):
        with moved(model, back, [READERS["living"]]):
            logits = model(ids).logits[0, -1]
        lead = logits[rooms[0]] - logits[rooms[1]]
        answer = [logits.softmax(-1)[rooms].tolist(), float(lead), world.WORDS[int(logits.argmax())]]
        following.append(dict(zip(("shares", "lead", "word"), answer, strict=True)))
    words = [world.WORDS[int(word)] for word in ids[0]]
    return {"words": words, "query": query.tolist(), "keys": keys.tolist(), "following": following, "base": 1e4}
