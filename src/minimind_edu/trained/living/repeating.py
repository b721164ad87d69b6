"""Why a text repeats itself: `python -m minimind_edu.trained.living.repeating` counts loops, some ten minutes.

Greedy texts fall into loops. Some of these belong to the rule: an author who knows all exact probabilities of the world
has them, too. Others belong to the model. So the same levers are pulled for that author, for the stored models, for the
small draft, and for drafts and a large model that were trained for fewer steps, which are trained here; a text counts
as a loop if its last words repeat themselves exactly, and as false if it says anything that the world rules out. Poems,
which have no loops that long, are asked how many of their characters have stood in them before.
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.sampling import Sampling
from minimind_edu.trained import stored
from minimind_edu.trained.living import (
    CONFIG,
    DRAFT_CONFIG,
    DRAFT_RECIPE,
    STORED,
    draft_model,
    living_model,
    new_model,
    story_batches,
)
from minimind_edu.trained.living.written import BEGINNING, first_impossible
from minimind_edu.trained.training import train

RESULTS = Path(__file__).parent / "repeating.json"

LEVERS: dict[str, dict[str, Any]] = {  # how a word is chosen, as options of `generate`
    "greedy": {},
    "temperature 0.3": {"do_sample": True, "temperature": 0.3},
    "temperature 1": {"do_sample": True},
    "top-p 0.9": {"do_sample": True, "top_p": 0.9},
    "top-p 0.5": {"do_sample": True, "top_p": 0.5},
    "penalty 1.2": {"repetition_penalty": 1.2},
    "penalty 1.5": {"repetition_penalty": 1.5},
}
STEPS, SEEDS = (250, 1_000), (1, 2)  # of drafts that learned less; the stored one has seed 0
LARGE_STEPS = 1_000  # of models as large as the stored ones
PENALTY, LOWERED = "penalty 1.2", (-10, 0, 10)  # by how much all logits of the author who knows are lowered
BEGUN, NEW = 16, 80  # words of a story that is given, and that are written after it
LAST, LONGEST = 40, 20  # the words at the end that are looked at, and the longest loop among them
SHOWN = 16  # of the end of a greedy text after BEGINNING
POEMS, GIVEN = 15, 6  # poems of a form, and the characters that are given of each


def beginnings() -> Tensor:
    """Sixty stories' first words, ids [60, BEGUN]."""
    return torch.from_numpy(np.concatenate([world.stories(30, BEGUN, seed=seed) for seed in (1, 2)]))


def period(text: Any) -> int | None:
    """After how many words the end of a text repeats itself; None: it does not. text: ids [T]."""
    for count in range(1, LONGEST + 1):
        rounds = np.asarray(text)[-(LAST // count * count) :].reshape(-1, count)
        if (rounds == rounds[0]).all():
            return count
    return None


def continued(model: MiniMindForCausalLM, begun: Tensor, lever: str) -> Tensor:
    """What a model writes after beginnings with a lever of LEVERS, ids [B, BEGUN + NEW] on the CPU."""
    generator = torch.Generator().manual_seed(0)
    ids = begun.to(device_of(model))
    return model.generate(ids, NEW, generator=generator, eos_token_id=None, **LEVERS[lever]).cpu()


def by_the_world(begun: Tensor, lever: str, lowered: float = 0.0) -> Tensor:
    """The same by an author who knows the exact probabilities; a coin chooses among equal ones.

    Args:
        begun: as of `beginnings`.
        lever: one of LEVERS.
        lowered: by so much are all logits below the logarithms of the probabilities; no softmax sees it.
    """
    dice = np.random.default_rng(0)
    return torch.tensor([_told(story, lever, dice, lowered) for story in begun.tolist()])


def _told(story: list[int], lever: str, dice: np.random.Generator, lowered: float) -> list[int]:
    reader, text, sampling = world.Reader(), story[:1], Sampling(**LEVERS[lever])
    for word in story[1:]:
        assert reader.read(word)
        text.append(word)
    for _ in range(NEW):
        row = torch.from_numpy(reader.distribution().round(9)).log()[None] - lowered
        seen = torch.zeros_like(row, dtype=torch.bool)
        seen[0, text] = True
        p = sampling.probabilities(row, seen)[0].double().numpy()
        if not sampling.do_sample:
            p = np.isclose(p, p.max(), atol=1e-6).astype(float)
        word = int(dice.choice(len(p), p=p / p.sum()))
        assert reader.read(word)
        text.append(word)
    return text


def counts(texts: Tensor) -> dict[str, int]:
    """How many texts end in a loop, how many of these say anything false, and how many of all do not."""
    loops = [period(text) is not None for text in texts.tolist()]
    true = [first_impossible(text) is None for text in texts.tolist()]
    return {
        "loops": sum(loops),
        "false_loops": sum(loop and not held for loop, held in zip(loops, true, strict=True)),
        "true": sum(true),
    }


def repeated(poems: Sequence[str]) -> float:
    """The share of Chinese characters in poems that have stood in the same poem before."""
    bare = [[character for character in poem if character.isalpha()] for poem in poems]
    return 1 - sum(len(set(poem)) for poem in bare) / sum(map(len, bare))


def of_verse() -> dict[str, Any]:
    """By model of verse and lever, what it repeats in poems of which it is given the first characters; the poets'."""
    # here, for a notebook that is downloaded reads what is stored, and carries no verse
    from minimind_edu.trained.verse import STORED as VERSE
    from minimind_edu.trained.verse import verse_model
    from minimind_edu.trained.verse.corpus import decode, read_corpus
    from minimind_edu.trained.verse.exam import LONGEST as MOST
    from minimind_edu.trained.verse.exam import WHOLE

    poems = torch.cat([read_corpus().held_out[form][:POEMS, : GIVEN + 1].long() for form in WHOLE])
    found: dict[str, Any] = {name: {} for name in VERSE}
    for name in VERSE:
        model = verse_model(name)
        for lever, choice in LEVERS.items():
            texts = model.generate(poems, MOST, generator=torch.Generator().manual_seed(0), **choice)
            found[name][lever] = round(repeated([decode(text) for text in texts]), 3)
    whole = [poem for form in WHOLE for poem in read_corpus().held_out[form][:POEMS]]
    return found | {"poets": round(repeated([decode(poem) for poem in whole]), 3)}


@cache
def results() -> dict[str, Any]:
    """What is stored: by author and lever the `counts` of `beginnings`; in `text`, how a model's greedy text ends; in
    `lowered`, the counts of PENALTY for the author who knows, by how much his logits are lowered; in `poems`, what
    `of_verse` found.
    """
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def _of_model(model: MiniMindForCausalLM) -> dict[str, Any]:
    begun = torch.from_numpy(world.encode(BEGINNING))[None]
    text = world.decode(continued(model, begun, "greedy")[0, -SHOWN:].tolist())
    return {"text": text} | {lever: counts(continued(model, beginnings(), lever)) for lever in LEVERS}


def _younger(steps: int, seed: int, config: MiniMindConfig = DRAFT_CONFIG) -> MiniMindForCausalLM:
    """A draft, or a model of another size, that was trained by the draft's recipe for fewer steps."""
    model = new_model(seed, config)
    train(model, story_batches(seed), dataclasses.replace(DRAFT_RECIPE, steps=steps))
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    found = {"world": {lever: counts(by_the_world(beginnings(), lever)) for lever in LEVERS}}
    found |= {name: _of_model(living_model(name)) for name in STORED}
    found["draft"] = _of_model(draft_model())
    for steps in STEPS:
        for seed in SEEDS:
            found[f"{steps} steps, seed {seed}"] = _of_model(_younger(steps, seed))
    for seed in SEEDS:
        found[f"large, {LARGE_STEPS} steps, seed {seed}"] = _of_model(_younger(LARGE_STEPS, seed, CONFIG))
    found["lowered"] = {str(by): counts(by_the_world(beginnings(), PENALTY, by)) for by in LOWERED}
    found["poems"] = of_verse()
    lines = ",\n".join(f'"{name}": {json.dumps(of_author)}' for name, of_author in found.items())
    stored.write(f"{{\n{lines}\n}}\n", into)


if __name__ == "__main__":
    main()
