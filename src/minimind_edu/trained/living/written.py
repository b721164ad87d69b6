"""What a rounded model writes: `python -m minimind_edu.trained.living.written` draws stories and reads them.

An answer is one word, and a model that was rounded to three bits still finds nearly all of them. A story is a hundred
words in a row, and each of them may be one that cannot stand there. So all matrices are rounded to each grid, stories
are drawn word by word as the model's probabilities say, and the world reads each of them up to its first *impossible*
word: one whose exact probability is 0, after what the story itself has told. Is this word of another language than its
sentence, does no sentence go on like this, or is it false?
Besides the counts three stories with one beginning are stored for each grid, drawn with the same three seeds: the first
with which the model as it is stored writes a story in English that holds. The program takes minutes of one core and
writes `written.json`; `--into FILE` writes somewhere else than where the book looks.
"""

import argparse
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.quantization import Grid, rounded_model
from minimind_edu.trained import stored
from minimind_edu.trained.drawing import drawn
from minimind_edu.trained.living import LENGTH, STORED, living_model
from minimind_edu.world.words import IDS, LANGUAGES, OBJECTS, PEOPLE, PLACES, TRANSLATE, TWIN

RESULTS = Path(__file__).parent / "written.json"

BITS = range(2, 9)
PER: dict[str, str | int] = {"tensor": "tensor", "row": "row", "group": 16}  # weights that share a scale
STORIES, SEED = 200, 5
SHOWN, NEW = 3, 36  # stories with one beginning, and their words after it
BEGINNING = "<s> Mia is in the hall. Tom is in the kitchen."
TRUE = 2000  # stories whose sentences say how sentences go on
MISTAKES = ("holds", "false", "other language", "malformed")


def write(
    model: MiniMindForCausalLM, count: int = STORIES, seed: int = SEED, length: int = LENGTH, beginning: str = "<s>"
) -> Tensor:
    """Stories drawn word by word, ids `[count, length]` with their beginning."""
    begun = torch.from_numpy(world.encode(beginning)).repeat(count, 1)
    return drawn(model, begun, length - begun.shape[1], seed, eos_token_id=None)


def first_impossible(story: Iterable[int]) -> int | None:
    """The index of the first word that cannot follow those before it; None: the story holds to its end."""
    reader = world.Reader()
    words = enumerate(int(word) for word in story)
    next(words)  # <s>
    return next((at for at, word in words if not reader.read(word)), None)


def mistake(story: Sequence[int]) -> str:
    """What the first impossible word of a story is, one of MISTAKES.

    "holds": there is none. "other language": it is not in the language of its sentence. "malformed": no sentence goes
    on like this, whoever is where. "false": a sentence might, but not in this story.
    """
    at = first_impossible(story)
    if at is None:
        return "holds"
    begun = max((i + 1 for i in range(at) if story[i] in _ENDS), default=1)
    sentence = [int(word) for word in story[begun : at + 1]]
    languages = [word >= TWIN + TRANSLATE + 1 for word in sentence if word != TRANSLATE]
    if languages and languages[-1] not in languages[:-1] and len(languages) > 1:
        return "other language"
    return "false" if _shape(sentence) in _shapes() else "malformed"


def counts(stories: Tensor) -> dict[str, int]:
    """How many stories make which first mistake."""
    found = Counter(mistake(story) for story in stories.tolist())
    return {kind: found[kind] for kind in MISTAKES}


def results() -> dict[str, Any]:
    """What is stored: by model, `per` and bits the `counts` of STORIES, and of the living model SHOWN `stories`."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def shown_seeds(model: MiniMindForCausalLM) -> list[int]:
    """The first SHOWN seeds with which this model's story holds, in English."""

    def is_fit(seed: int) -> bool:
        story = shown(model, seed)
        return first_impossible(story) is None and world.decode(story).isascii()

    return list(itertools.islice(filter(is_fit, itertools.count()), SHOWN))


def shown(model: MiniMindForCausalLM, seed: int) -> list[int]:
    """A story of NEW words after BEGINNING, ids."""
    return write(model, 1, seed, len(world.encode(BEGINNING)) + NEW, BEGINNING)[0].tolist()


def _kinds() -> dict[int, str]:
    """The kind of each word that stands for others: a name for a name."""
    named = {"person": PEOPLE, "object": OBJECTS, "place": PLACES}
    return {
        IDS[word]: f"{kind} {language}"
        for kind, words in named.items()
        for language in range(len(LANGUAGES))
        for word in words[language]
    }


_KINDS = _kinds()
_ENDS = {IDS["."], IDS["。"]}


def _shape(sentence: Iterable[int]) -> tuple[str | int, ...]:
    """The words of a sentence, names and things as their kinds."""
    return tuple(_KINDS.get(word, word) for word in sentence)


@cache
def _shapes() -> frozenset[tuple[str | int, ...]]:
    """The shapes of all beginnings of sentences in TRUE stories."""
    shapes = set()
    for story in world.stories(TRUE, LENGTH, SEED).tolist():
        begun = 1
        for at in range(1, len(story)):
            shapes.add(_shape(story[begun : at + 1]))
            begun = at + 1 if story[at] in _ENDS else begun
    return frozenset(shapes)


def _of_grid(model: MiniMindForCausalLM, bits: int, per: str | int) -> tuple[MiniMindForCausalLM, dict[str, int]]:
    rounded = rounded_model(model, Grid(bits, per)).eval()
    return rounded, counts(write(rounded))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    found: dict[str, Any] = {}
    seeds = shown_seeds(living_model())
    for name in STORED:
        model = living_model(name)
        for per, grid in PER.items():
            for bits in BITS:
                rounded, counted = _of_grid(model, bits, grid)
                print(f"{name}, {bits} bits, a scale for each {per}: {counted}", flush=True)
                found.setdefault(name, {}).setdefault(per, {})[str(bits)] = counted
                if name == "living":
                    found[name][per][str(bits)] |= {"stories": [shown(rounded, seed) for seed in seeds]}
    stored.write(json.dumps(found, separators=(",", ":")).replace('"stories"', '\n"stories"') + "\n", into)


if __name__ == "__main__":
    main()
