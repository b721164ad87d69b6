"""A trained model on texts four times as long as any of its training, with its slow pairs slowed further.

A text of the training has 96 words. Pairs of channels that complete no rotation in 96 words, the *unfinished* ones, get
to angles in a longer text that no training has shown them. `seen_from` lets a model see words at other distances than
they are, pair by pair: as far away as in a shorter text, all of them or the far ones only. The judge is the world,
whose exact probability of every next word is known.

`python -m minimind_edu.trained.living.stretching` measures both stored models and writes `stretching.json`, in some
fifteen minutes of one core. `--into FILE` writes somewhere else than where the book looks.
"""

import argparse
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.attention import repeat_kv
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope import rotate_half
from minimind_edu.model.rope_frequencies import RopeScaling, rope_frequencies, scaling_of_each_pair
from minimind_edu.trained import stored
from minimind_edu.trained.living import CONFIG, LENGTH, STORED, heads, living_model
from minimind_edu.trained.living.exam import log_probabilities

RESULTS = Path(__file__).parent / "stretching.json"

QUARTERS = 4  # a text is so many times as long as those of the training
LONGER = QUARTERS * LENGTH  # words, 384
NEAR = LENGTH // 2  # up to here, 48 words, the far way leaves distances as they are
STRETCHES = tuple(range(1, 9))
WAYS = ("pairs", "far", "yarn")
SEEDS = range(11, 21)  # ten draws
STORIES = 12  # in each draw,
ROWS = 48  # of a table of scores at a time: what a word cannot see is not computed, and the rest stays in the cache
LONGEST = 2 * LONGER  # words, 768: a second length at which the lesson's rule is tried,
LONGEST_STRETCHES = tuple(range(1, 11))  # with stretches beyond the 8 that it needs
LONGEST_SEEDS = range(11, 16)  # in five draws
AT_ONCE = 4  # so many of them at a time: their scores fit into a processor's cache, and it takes half the time
BETA_FAST = 4  # with YaRN's own 32 only pair 0 would keep its speed


def frequencies() -> Tensor:
    """Radians by which each pair of these models rotates from word to word, [D/2], float64."""
    return rope_frequencies(CONFIG.head_dim, CONFIG.rope_theta, dtype=torch.float64)


def rotations() -> Tensor:
    """How often each pair rotates in a text of the training, [D/2], float64."""
    return LENGTH * frequencies() / (2 * math.pi)


def scales(stretch: float, way: str = "pairs") -> tuple[Tensor, int]:
    """What a stretch makes of each pair, so that `stretch` times 96 words rotate no pair further than 96 did.

    Returns:
        by what the frequency of each pair is multiplied, [D/2], float64, and up to how many words away it is not.
        `pairs` slows the unfinished pairs; `far` slows them for words more than 48 words away; `yarn` slows as YaRN
        does.
    """
    if way == "yarn":
        scaling = RopeScaling(stretch, LENGTH, BETA_FAST)
        return scaling_of_each_pair(CONFIG.head_dim, CONFIG.rope_theta, scaling, torch.float64), 0
    # far: the words from 48 to 96 * stretch go where those from 48 to 96 were
    near = NEAR if way == "far" else 0
    scale = torch.ones_like(rotations())
    scale[rotations() < 1] = (LENGTH - near) / (stretch * LENGTH - near)
    return scale, near


@contextmanager
def seen_from(model: MiniMindForCausalLM, scale: Tensor, near: int = 0) -> Iterator[None]:
    """Inside the block pair i sees a word d words away as if it were near + (d - near) * scale[i] words away.

    Words up to `near` words away are where they are. Scores of near words are computed from the positions, all others
    from the slowed ones, whose queries stand so much further on that both agree at `near`.

    Args:
        model: is read whole texts, without a cache.
        scale: of each pair, [D/2].
        near: in words, at least 0.
    """
    where = model.model.freqs_cos
    speed, scale = frequencies().to(scale), scale.to(torch.float64).cpu()
    positions = torch.arange(LONGEST, dtype=torch.float64)

    def tables(angles: Tensor) -> tuple[Tensor, Tensor]:  # [S, D/2] -> [S, 1, D] each
        doubled = angles.repeat(1, 2)[:, None]
        return doubled.cos().to(where), doubled.sin().to(where)

    angles = torch.outer(positions, speed)
    plain, keys = tables(angles), tables(angles * scale)
    queries = tables(angles * scale + near * (1 - scale) * speed)

    def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # [B, S, H, D] -> [B, H, S, D]
        length = x.shape[1]
        return (x * cos[:length] + rotate_half(x) * sin[:length]).transpose(1, 2)

    def forward(self, x: Tensor, position_embeddings: tuple[Tensor, Tensor], *_: Any, **__: Any) -> tuple[Tensor, None]:
        length, ones = x.shape[1], torch.ones_like(position_embeddings[0])  # cosine 1, sine 0: no rotation
        q, k, v = self.project(x, ones, 0 * ones)
        q = q / math.sqrt(self.head_dim)
        k, v = (repeat_kv(each, self.num_heads // self.num_kv_heads) for each in (k, v))
        v = v.transpose(1, 2)  # [B, H, S, D]
        q_here, k_here = rotated(q, *plain), rotated(k, *plain)
        q_there, k_there = rotated(q, *queries), rotated(k, *keys)
        at, output = torch.arange(length, device=x.device), []
        for begin in range(0, length, ROWS):
            end = min(begin + ROWS, length)
            first = max(begin - near, 0)  # words before it are far away for all of these rows
            away = at[begin:end, None] - at[:end]
            scores = q_there[:, :, begin:end] @ k_there[:, :, :end].mT  # [B, H, rows, end]
            here = q_here[:, :, begin:end] @ k_here[:, :, first:end].mT
            scores[..., first:] = torch.where(away[:, first:] <= near, here, scores[..., first:])
            weights = scores.masked_fill_(away < 0, -torch.inf).softmax(-1)
            output.append(weights @ v[:, :, :end])
        output = torch.cat(output, 2).transpose(1, 2)  # [B, S, H, D]
        return self.o_proj(output.flatten(2)), None

    attends = [heads.block(model, layer).self_attn for layer in range(len(model.model.layers))]
    for attend in attends:
        attend.forward = MethodType(forward, attend)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for attend in attends:
            del attend.forward


def drawn(seeds: Any = SEEDS, length: int = LONGER) -> tuple[Tensor, Tensor]:
    """Draws of 12 stories each: ids [draws, 12, S], and each next word's probabilities [draws, 12, S, V]."""
    ids = np.stack([world.stories(STORIES, length, seed) for seed in seeds])
    exact = np.stack([[world.distributions(story) for story in draw] for draw in ids])
    return torch.from_numpy(ids), torch.from_numpy(exact)


def above_least(model: MiniMindForCausalLM, ids: Tensor, exact: Tensor, parts: int = QUARTERS) -> Tensor:
    """How far the expected loss is above the least that is possible, in nats a word: `[draws, parts]`.

    Args:
        ids, exact: [draws, B, S] and [draws, B, S, V] of `drawn`.
        parts: into how many equal parts each text is cut, the first words in the first.
    """
    found = []
    for texts, p in zip(ids, exact, strict=True):
        log_p = torch.cat([log_probabilities(model, part) for part in texts.split(AT_ONCE)])
        loss = torch.special.xlogy(p, p) - p * log_p  # [B, S, V]
        found.append(loss.sum(-1).mean(0).unflatten(0, (parts, -1)).mean(1))
    return torch.stack(found)


@torch.no_grad()
def measured(name: str, ways: Any = WAYS, stretches: Any = STRETCHES, seeds: Any = SEEDS) -> dict[str, Any]:
    """What a stored model loses: by way and stretch `[draws, quarters]`, in nats a word above the least."""
    model, (ids, exact) = living_model(name), drawn(seeds)
    losses: dict[str, Any] = {way: [] for way in ways}
    for way in ways:
        for stretch in stretches:
            scale, near = scales(stretch, way)
            with seen_from(model, scale, near):
                losses[way].append(above_least(model, ids, exact).tolist())
            print(name, way, stretch, flush=True)
    return losses


@torch.no_grad()
def measured_in_the_longest(name: str, stretches: Any = LONGEST_STRETCHES, seeds: Any = LONGEST_SEEDS) -> list[Any]:
    """What a model loses in texts of 768 words: by stretch `[draws, eighths]`, in nats a word above the least."""
    model, (ids, exact), losses = living_model(name), drawn(seeds, LONGEST), []
    for stretch in stretches:
        with seen_from(model, *scales(stretch)):
            losses.append(above_least(model, ids, exact, LONGEST // LENGTH).tolist())
        print(name, "longest", stretch, flush=True)
    return losses


@cache
def results() -> dict[str, dict[str, Tensor]]:
    """What is stored, in nats a word above the least, float64: by model and way `[stretches, draws, quarters]`.

    `longest` has what texts of 768 words lose, `[stretches, draws, eighths]`.
    """
    losses = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {
        name: {way: torch.tensor(rows, dtype=torch.float64) for way, rows in ways.items()}
        for name, ways in losses.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    found = stored.rounded({name: measured(name) | {"longest": measured_in_the_longest(name)} for name in STORED})
    stored.write(json.dumps(found) + "\n", into)


if __name__ == "__main__":
    main()
