"""What the figure PoemGrid shows: an octave whose first rhyme is exchanged, read and continued by every stored model.

Lines 1 to 4 are Wang Wei's, 8th century, up to the last character of line 4; the model goes on from there. Only one
character differs: the last of line 2, the poet's own or one of three others that make sense there and rhyme otherwise.

    python -m minimind_edu.trained.verse.grid       two minutes

`grid.json` holds for each model, each silenced head and each first rhyme what `read` finds, and for each model and head
how many of so many poems written from nothing keep the rules.
"""

import argparse
import json
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor

from minimind_edu.device import one_thread
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import heads
from minimind_edu.trained.verse import exam, new_model, rhymes, verse_model
from minimind_edu.trained.verse.corpus import COMMA, EOS, FOLDER, STOP, characters, decode, encode, line_end

RESULTS = FOLDER / "grid.json"
FIRST = ("秋", "寒", "晴", "阴")  # the poet's own, then the others
GIVEN = "空山新雨后，天气晚来{}。明月松间照，清泉石上"
LINES = (4, 6, 8)  # a rhyme is due at their ends
SIZE = 8 * 6  # characters and marks of an octave of 5
MODELS = ("untrained", "before", "verse")
# heads as readers count them, and as indices of block and head: who reads the rhyme, who is missed for the tones, whom
# nobody misses
SILENT = {"none": None, "3.1": (2, 0), "2.1": (1, 0), "3.2": (2, 1)}
READERS = {"3.1": (2, 0), "2.1": (1, 0), "2.4": (1, 3)}  # whose weights are told
LEAST = 0.05  # a weight that is told
LIKELIEST = 5
POEMS = 256
SPELLED = {"iou": "iu", "uei": "ui", "uen": "un", "-i": "i"}  # finals, as pinyin writes them after a consonant
MARKS = {1: "○", -1: "●"}  # level, oblique
BOTH, IN_NO_LIST, NO_CHARACTER = "◐", "·", " "


def settings() -> list[tuple[str, str]]:
    """The model and the silenced head of everything that is stored: heads are silenced where there is a rhyme."""
    return [(name, silent) for name in MODELS for silent in SILENT if name == "verse" or silent == "none"]


def model_of(name: str) -> MiniMindForCausalLM:
    """One of MODELS."""
    return new_model(0).eval() if name == "untrained" else verse_model(name)


def silencing(model: MiniMindForCausalLM, silent: str) -> Any:
    """A context in which this head, one of SILENT, adds nothing."""
    head = SILENT[silent]
    return nullcontext() if head is None else heads.silenced(model, *head)


def groups(chances: Tensor) -> list[float]:
    """The probability of all characters that rhyme with each of FIRST, of probabilities [V]."""
    return [float(chances[rhymes.sharing(first)].sum()) for first in FIRST]


def spelled(final: str) -> str:
    """A final of today as readers know it."""
    return SPELLED.get(final, final).replace("v", "ü")


def tone_marks(ids: Tensor) -> str:
    """A sign for each of these ids, [S]: of MARKS; BOTH, where the lists have it level and oblique; or IN_NO_LIST."""
    tones, level = rhymes.tones(), rhymes.in_level().any(1)

    def sign(index: int) -> str:
        if characters()[index] in (COMMA, STOP):
            return NO_CHARACTER
        return MARKS.get(int(tones[index]), BOTH if level[index] else IN_NO_LIST)

    return "".join(map(sign, ids.tolist()))


@torch.no_grad()
def continued(model: MiniMindForCausalLM, first: str) -> str:
    """The octave of SIZE characters that a model makes of these lines: the first draw that does not end before."""
    start = torch.tensor([encode(GIVEN.format(first))])
    for seed in range(1000):
        generator = torch.Generator().manual_seed(seed)
        new = SIZE + 1 - start.shape[1]
        ids = model.generate(start, new, do_sample=True, temperature=0.8, top_p=0.9, generator=generator)[0]
        if len(ids) == SIZE + 1 and EOS not in ids:
            return decode(ids)
    raise RuntimeError(f"{first}: no draw of a thousand has {SIZE} characters")


@torch.no_grad()
def read(model: MiniMindForCausalLM, text: str) -> dict[str, Any]:
    """What a model expects at the ends of LINES of a text of SIZE characters, and where its heads read from there.

    Returns:
        text: as given.
        tones: of each character, as `tone_marks`.
        lines: of each of LINES: rhymes, whether its last character does, with that of line 2; likeliest, of the
            likeliest characters each with its probability, whether it rhymes, and its final of today; groups; reads,
            for each of READERS the places in the text with a weight of LEAST or more, and these weights.
    """
    ids = torch.tensor([encode(text)])
    chances, weights = model(ids).logits[0].softmax(-1), heads.attention_weights(model, ids)
    today = rhymes.final_of()
    fits = rhymes.sharing(characters()[int(ids[0, line_end(1, 5)])])
    lines = {}
    for line in LINES:
        at = line_end(line - 1, 5) - 1  # the place before the last character
        top = chances[at].topk(LIKELIEST).indices.tolist()
        rows = {name: weights[layer, head, at] for name, (layer, head) in READERS.items()}
        lines[str(line)] = {
            "rhymes": bool(fits[ids[0, at + 1]]),
            "likeliest": [
                [characters()[i], float(chances[at, i]), bool(fits[i]), spelled(today.get(characters()[i], ""))]
                for i in top
            ],
            "groups": groups(chances[at]),
            "reads": {
                # places of the text, which begins after <s>
                name: [[place - 1, float(row[place])] for place in (row >= LEAST).nonzero()[:, 0].tolist() if place]
                for name, row in rows.items()
            },
        }
    return {"text": text, "tones": tone_marks(ids[0, 1:]), "lines": lines}


@one_thread()
def measured() -> dict[str, Any]:
    """All that is stored: `octaves` by model, silenced head and first rhyme, and `poems` by model and head."""
    octaves: dict[str, Any] = {}
    poems: dict[str, Any] = {}
    for name, silent in settings():
        model = model_of(name)
        with silencing(model, silent):
            of = {first: read(model, continued(model, first)) for first in FIRST}
            octaves.setdefault(name, {})[silent] = of
            poems.setdefault(name, {})[silent] = exam.judged(exam.write(model, POEMS, seed=1))
    return {"octaves": octaves, "poems": poems}


@cache
def results() -> dict[str, Any]:
    """What is stored."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    stored.write(json.dumps(stored.rounded(measured(), 4), ensure_ascii=False) + "\n", into)


if __name__ == "__main__":
    main()
