"""Fine-tune the book's model in every way that chapter 17 speaks of, and store what came out:
`python -m minimind_edu.trained.tuning`, ten minutes of one core.

`--only masks` trains one of masks, rates, answers, lora and dpo and keeps what is stored of the others; `--into FILE`
writes somewhere else.
"""

import copy
from dataclasses import replace
from functools import cache
from typing import Any

from minimind_edu.model.lora import add_lora
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import STORED
from minimind_edu.trained.tuning import (
    DPO_RECIPE,
    EXAMPLE_LENGTH,
    LOOKS,
    LORA_RECIPE,
    MASKS,
    RANKS,
    RECIPE,
    ROW,
    RUNS,
    SHIFTED,
    WHERE,
    Chat,
    adapt,
    answer_counts,
    answers,
    beginner,
    chats,
    english,
    example,
    grades,
    in_chinese,
    labels_of,
    pair_batches,
    prefer,
    rows,
    sft,
    surprises,
)

HELD_OUT, LATER = 999, 400  # the seed of the chats that no training sees; steps for the twin, which learns later
MORE_SEEDS = (2, 3, 4, 5)  # for the book's model at the rate as it is
FASTER, SLOWER = 3 * RECIPE.learning_rate, RECIPE.learning_rate / 3


@cache
def held_out() -> list[Chat]:
    """200 chats."""
    return chats(200, HELD_OUT)


def masked(
    name: str, mask: str, ahead: int = 1, rate: float = RECIPE.learning_rate, seed: int = 0, steps: int = RECIPE.steps
) -> dict[str, Any]:
    """One fine-tuning, with what the model is like after each hundredth of its steps in LOOKS."""
    model = beginner(name, seed)
    ids = rows([example()], EXAMPLE_LENGTH)
    every = labels_of(ids, "padding", ahead)
    run: dict[str, Any] = {"model": name, "mask": mask, "ahead": ahead, "rate": rate, "steps": steps, "seed": seed}
    run |= {key: [] for key in ("losses", "says", "place", "stop", "both")}
    looks = {percent * steps // 100 for percent in LOOKS}

    def after(step: int) -> None:
        if step in looks:
            run["losses"].append(surprises(model, ids, every)[0].tolist())
            run["says"].append(answers(model, [example()])[0])
            for key, share in grades(model, held_out()).items():
                run[key].append(share)

    sft(model, mask, ahead, replace(RECIPE, steps=steps, learning_rate=rate), seed, after)
    return run


def spoken(mask: str, seed: int = 0, name: str = "living") -> dict[str, Any]:
    """How a model answers after one fine-tuning."""
    model = beginner(name, seed)
    sft(model, mask, seed=seed)
    return {"model": name, "mask": mask, "seed": seed} | answer_counts(model, held_out())


@cache
def chatting(seed: int = 0, name: str = "living") -> MiniMindForCausalLM:
    """A model after fine-tuning with the right mask: what LoRA and DPO begin with."""
    model = beginner(name, seed)
    sft(model, recipe=replace(RECIPE, steps=RECIPE.steps if name == "living" else LATER), seed=seed)
    return model


def adapted(
    where: str,
    rank: int,
    seed: int = 0,
    rate: float = LORA_RECIPE.learning_rate,
    steps: int = LORA_RECIPE.steps,
    name: str = "living",
) -> dict[str, Any]:
    """Chinese answers learned by LoRA, with the share of English questions that get one."""
    model = copy.deepcopy(chatting(seed, name))
    trained = add_lora(model, rank, WHERE[where])
    adapt(model, trained, replace(LORA_RECIPE, learning_rate=rate, steps=steps), seed)
    right = grades(model, in_chinese(english(held_out())))["both"]
    count = sum(weight.numel() for weight in trained)
    setting = {"model": name, "where": where, "rank": rank, "rate": rate, "steps": steps, "seed": seed}
    return setting | {"parameters": count, "right": right}


def preferred(
    pairs: str, way: str = "dpo", rate: float = DPO_RECIPE.learning_rate, seed: int = 0, name: str = "living"
) -> dict[str, Any]:
    """One DPO: what moved in each step, and how English questions are answered afterwards."""
    model = copy.deepcopy(chatting(seed, name))
    reference = model if way == "same model" else copy.deepcopy(model)
    recipe = replace(DPO_RECIPE, learning_rate=rate)
    ids = pair_batches(pairs, recipe.steps, seed)
    moved = prefer(model, reference, ids, recipe, divided_by=ROW if way == "divided" else 1)
    asked = english(held_out())
    shares = {"right": grades(model, asked)["both"], "in_chinese": grades(model, in_chinese(asked))["both"]}
    return {"model": name, "pairs": pairs, "way": way, "rate": rate, "seed": seed} | shares | moved


_RATE, _STEPS, _DPO = LORA_RECIPE.learning_rate, LORA_RECIPE.steps, DPO_RECIPE.learning_rate
SEEDS = (0, 1)
ANSWERS: list[tuple[str, int, str]] = [  # mask, seed, model
    *(("late", seed, "living") for seed in (0, 1, 3, 4, 7)),
    *(("late", seed, "twin") for seed in (0, 2, 4)),
    ("early", 0, "living"),
    ("early", 3, "living"),
    ("all", 0, "living"),
    ("answer", 0, "twin"),
    ("halves", 0, "living"),
    ("halves", 2, "living"),
]
LORAS: list[tuple[str, int, float, int, str]] = [  # where, rank, rate, steps, model
    *(("last", rank, _RATE, _STEPS, "living") for rank in RANKS),
    ("last", 1, 3 * _RATE, _STEPS, "living"),
    ("last", 1, _RATE, 4 * _STEPS, "living"),
    ("first", 1, _RATE, _STEPS, "living"),
    ("all", 1, _RATE, _STEPS, "living"),
    ("last", 1, _RATE, _STEPS, "twin"),
    ("last", 4, _RATE, _STEPS, "twin"),
    ("last", 1, 3 * _RATE, _STEPS, "twin"),
]
DPOS: list[tuple[str, str, float, int, str]] = [  # pairs, way, rate, seed, model
    ("right", "dpo", _DPO, 0, "living"),
    ("right", "dpo", _DPO, 1, "living"),
    ("right", "dpo", _DPO, 0, "twin"),
    ("right", "dpo", 3 * _DPO, 0, "living"),
    ("right", "dpo", _DPO / 3, 0, "living"),
    ("right", "same model", _DPO, 0, "living"),
    ("right", "divided", _DPO, 0, "living"),
    ("chinese", "dpo", _DPO, 0, "living"),
    ("chinese", "dpo", _DPO, 0, "twin"),
]
KINDS = {  # name -> its runs, one after the other
    "masks": lambda: (
        masked(name, mask, ahead)
        for name in STORED
        for ahead in (1, 0, 2)
        for mask in (MASKS if ahead == 1 else SHIFTED)
    ),
    "rates": lambda: (
        masked(name, mask, 1, rate, seed, steps)
        for name in STORED
        for rate, seed, steps in (
            (FASTER, 0, RECIPE.steps),
            (SLOWER, 0, RECIPE.steps),
            (RECIPE.learning_rate, 1, RECIPE.steps),
            *[(RECIPE.learning_rate, seed, RECIPE.steps) for seed in MORE_SEEDS if name == "living"],
            *([(RECIPE.learning_rate, 0, LATER)] if name == "twin" else []),
        )
        for mask in SHIFTED
    ),
    "answers": lambda: (spoken(*setting) for setting in ANSWERS),
    "lora": lambda: (
        adapted(where, rank, seed, rate, steps, name) for where, rank, rate, steps, name in LORAS for seed in SEEDS
    ),
    "dpo": lambda: (preferred(*setting) for setting in DPOS),
}


def kept(run: dict[str, Any]) -> dict[str, Any]:
    """What is stored of a run: three digits after the point, and two of a rate, however small it is."""
    return stored.rounded(run) | ({"rate": float(f"{run['rate']:.2g}")} if "rate" in run else {})


def main() -> None:
    stored.lists_of_runs(__doc__, KINDS, RUNS, kept)


if __name__ == "__main__":
    main()
