"""What the living model does with a story, by the package: what figures must say when they show the reader's story."""

from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
from browser import settle
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope import apply_rotary_pos_emb
from minimind_edu.trained.living import card, living_model
from minimind_edu.web.living_model import payload


class Block(NamedTuple):
    """One block at all positions of a story of T words."""

    query: Tensor  # [T, H, D], before rotation
    key: Tensor  # [T, K, D]
    weights: Tensor  # [H, T, T]
    scores: Tensor  # [H, T, T], of rotated q and k, before the mask and the division
    normed: Tensor  # [T, E]
    attended: Tensor  # [T, E], what attention adds
    fed: Tensor  # [T, E], what the feed-forward network adds
    output: Tensor  # [T, E]


class Reading(NamedTuple):
    """A story and all blocks."""

    words: list[str]
    embedding: Tensor  # [T, E]
    blocks: list[Block]
    model: MiniMindForCausalLM


@torch.no_grad()
def read_story() -> Reading:
    """The story that figures show to a reader without one."""
    model, ids = living_model(), world.encode("<s> " + payload()["story"])
    body, count = model.model, len(ids)
    x = start = body.embed_tokens(torch.from_numpy(ids)[None])
    tables = body.freqs_cos[:count], body.freqs_sin[:count]
    identity = torch.ones_like(tables[0]), torch.zeros_like(tables[1])
    blocks = []
    for layer in cast(Iterable[MiniMindBlock], body.layers):
        normed, attention = layer.input_layernorm(x), layer.self_attn
        q, k, _ = attention.project(normed, *identity)
        turned_q, turned_k = apply_rotary_pos_emb(q, k, *tables)
        shared = turned_k.repeat_interleave(q.shape[2] // k.shape[2], dim=2)
        scores = torch.einsum("bshd,bthd->bhst", turned_q, shared)[0]
        weights = (scores / q.shape[-1] ** 0.5).masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf)
        attended = attention(normed, tables)[0]
        fed = layer.mlp(layer.post_attention_layernorm(x + attended))
        x = x + attended + fed
        parts = (normed, attended, fed, x)
        blocks.append(Block(q[0], k[0], weights.softmax(-1), scores, *(part[0] for part in parts)))
    return Reading([world.WORDS[i] for i in ids], start[0], blocks, model)


def telling_head() -> tuple[int, int]:
    """The layer and the head, from 0, that look at answers and are missed most."""
    lost, reading = (torch.tensor(card()[part]["recall"]) for part in ("lost_without", "reading"))
    return divmod(int((lost * reading).argmax()), lost.shape[1])


def show_story(page) -> None:
    """Switch the one figure on the page to the story, and wait until it shows it."""
    page.eval_on_selector_all(".mm-more", "all => all.forEach((one) => (one.open = true))")
    page.get_by_label("This story").check()
    page.wait_for_function("document.querySelector('.mm-source .mm-note').textContent.includes('tokens')")
    settle(page)
    page.evaluate("localStorage.clear()")
