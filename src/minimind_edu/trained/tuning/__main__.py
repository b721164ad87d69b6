"""Fine-tune the book's model in every way that chapter 17 speaks of, and store what came out:
`python -m minimind_edu.trained.tuning`, half an hour on one core.

`--only masks` trains one of masks, rates, lora and dpo and keeps what is stored of the others; `--into FILE` writes
somewhere else.
"""

import argparse
import copy
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from minimind_edu.model.lora import PROJECTIONS, add_lora
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import STORED
from minimind_edu.trained.tuning import (
    AHEAD,
    BATCH,
    BETA,
    DPO_RECIPE,
    EXAMPLE_LENGTH,
    LOOKS,
    LORA_RECIPE,
    MASKS,
    PAIRS,
    RANKS,
    RECIPE,
    RUNS,
    TASKS,
    WHERE,
    adapt,
    answers,
    beginner,
    chats,
    example,
    grades,
    labels_of,
    pair_batches,
    prefer,
    retold,
    rows,
    sft,
    surprises,
)

SEEDS = (0, 1)
HELD_OUT = 999  # the seed of the chats that no training sees


@cache
def held_out() -> list[Any]:
    """200 chats."""
    return chats(200, HELD_OUT)


def masked(name: str, mask: str, ahead: int, rate: float = RECIPE.learning_rate, seed: int = 0, steps: int = RECIPE.steps):
    """One fine-tuning, with what the model is like after some of its steps."""
    model = beginner(name, seed)
    ids = rows([example()], EXAMPLE_LENGTH)
    every = labels_of(ids, "padding", ahead)
    run: dict[str, Any] = {"model": name, "mask": mask, "ahead": ahead, "rate": rate, "seed": seed}
    run |= {key: [] for key in ("losses", "says", "place", "stop", "both")}

    def after(step: int) -> None:
        if step in LOOKS:
            run["losses"].append(surprises(model, ids, every)[0].tolist())
            run["says"].append(answers(model, [example()])[0])
            for key, share in grades(model, held_out()).items():
                run[key].append(share)

    sft(model, mask, ahead, replace(RECIPE, steps=steps, learning_rate=rate), seed, after)
    return run


@cache
def chatting(name: str, seed: int = 0) -> MiniMindForCausalLM:
    """The model after fine-tuning with the right mask: what LoRA and DPO begin with."""
    model = beginner(name, seed)
    sft(model, seed=seed)
    return model


def adapted(name: str, task: str, where: str, rank: int, rate: float = LORA_RECIPE.learning_rate) -> dict[str, Any]:
    """One task learned by LoRA, or with rank 0 by the matrices themselves."""
    model = copy.deepcopy(chatting(name))
    if rank:
        trained = add_lora(model, rank, WHERE[where])
    else:
        model.requires_grad_(False)
        named = model.named_parameters()
        trained = [weight for key, weight in named if any(key.endswith(f"{end}.weight") for end in WHERE[where])]
        for weight in trained:
            weight.requires_grad_(True)
    adapt(model, task, trained, replace(LORA_RECIPE, learning_rate=rate))
    right = grades(model, retold(held_out(), task))["both"]
    count = sum(weight.numel() for weight in trained)
    return {"model": name, "task": task, "where": where, "rank": rank, "rate": rate, "parameters": count, "right": right}


def preferred(name: str, pairs: str, way: str = "plain", rate: float = DPO_RECIPE.learning_rate, seed: int = 0):
    """One DPO: what moved at each step, and how many of new chats are answered in each of the two ways before and after."""
    model = copy.deepcopy(chatting(name))
    reference = model if way == "same model" else copy.deepcopy(model)
    recipe = replace(DPO_RECIPE, learning_rate=rate)
    told = prefer(
        model,
        reference,
        pair_batches(pairs, recipe.steps, seed),
        recipe,
        BETA,
        lengths=3000 if way == "divided" else None,
    )
    return {"model": name, "pairs": pairs, "way": way, "rate": rate, "seed": seed} | told
