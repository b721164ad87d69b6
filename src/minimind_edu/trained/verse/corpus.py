"""Poems as ids: the four forms, the vocabulary of single characters, and batches of one form each.

    <s> 空 山 新 雨 后 ， 天 气 晚 来 秋 。 ... </s>

A poem of 8 lines of 5 characters is cut to its *tails* for a while: of each line the last character or the last three,
with the punctuation after it. The rhymes then stand two places apart in place of twelve.
"""

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from minimind_edu.validation import check_choice

FOLDER = Path(__file__).parent
SMALL = FOLDER / "small.txt.xz"
# lines and characters in a line, by how many characters a poem has
FORMS = {4 * 5: (4, 5), 4 * 7: (4, 7), 8 * 5: (8, 5), 8 * 7: (8, 7)}
BOS, EOS = 0, 1
COMMA, STOP = "，", "。"
TAILS = {"8x1": 1, "8x3": 3}  # of octaves: how many last characters of each line


@cache
def characters() -> tuple[str, ...]:
    """What each id stands for: two signs, two marks, then characters from the most frequent to the least."""
    stored = json.loads((FOLDER / "characters.json").read_text(encoding="utf-8"))
    return ("<s>", "</s>", COMMA, STOP, *stored["characters"])


@cache
def ids_of() -> dict[str, int]:
    """The id of each character."""
    return {character: index for index, character in enumerate(characters())}


def encode(text: str) -> list[int]:
    """The ids of a text, `<s>` before it.

    Raises:
        ValueError: for a character that is none of the vocabulary.
    """
    known = ids_of()
    if strange := next((character for character in text if character not in known), None):
        raise ValueError(
            f"each character must be one of the {len(known):,} of the vocabulary, got {strange!r}; try another"
        )
    return [BOS, *(known[character] for character in text)]


def decode(ids: Tensor) -> str:
    """The text of ids [S], without the two signs."""
    return "".join(characters()[index] for index in ids.tolist() if index > EOS)


def punctuated(poem: str) -> str:
    """A poem of bare characters with a comma after odd lines, and a full stop after even ones."""
    width = FORMS[len(poem)][1]
    lines = [poem[i : i + width] for i in range(0, len(poem), width)]
    return "".join(line + (STOP if number % 2 else COMMA) for number, line in enumerate(lines))


def line_end(line: int, width: int) -> int:
    """Where the last character of a line, counted from 0, stands in ids of a poem with lines of `width` characters."""
    return line * (width + 1) + width


@dataclass(frozen=True)
class Corpus:
    """Poems as ids by form, [B, S] of int16: `8x5` are 8 lines of 5, `8x1` and `8x3` their tails."""

    training: Mapping[str, Tensor]
    held_out: Mapping[str, Tensor]


def tails(poems: Tensor, width: int, kept: int) -> Tensor:
    """Octaves [B, S] of lines of `width` characters, each line cut to its last `kept`: [B, 2 + 8 * (kept + 1)]."""
    columns = [0]
    for line in range(8):
        end = line_end(line, width)
        columns += range(end - kept + 1, end + 2)
    return poems[:, [*columns, poems.shape[1] - 1]]


def read_corpus(path: Path = SMALL, unfiltered: bool = False) -> Corpus:
    """The poems of a file that `sources` has written.

    Args:
        path: the default is the small corpus of the package.
        unfiltered: train also on poems whose even lines share no level rhyme group.
    """
    table = np.zeros(0x10000, np.int16)
    for character, index in ids_of().items():
        if index > EOS:
            table[ord(character)] = index
    rows: dict[tuple[str, int], list[str]] = {}
    for line in lzma.decompress(path.read_bytes()).decode("utf-16-le").split():
        rows.setdefault((line[0], len(line) - 1), []).append(line[1:])

    def form(marks: str, size: int) -> Tensor:
        poems = [punctuated(poem) for mark in marks for poem in rows.get((mark, size), [])]
        codes = np.frombuffer("".join(poems).encode("utf-16-le"), np.uint16).reshape(len(poems), -1)
        ids = np.full((len(poems), codes.shape[1] + 2 if poems else 2), EOS, np.int16)
        ids[:, 0], ids[:, 1:-1] = BOS, table[codes]
        return torch.from_numpy(ids)

    def forms(marks: str) -> dict[str, Tensor]:
        whole = {f"{lines}x{width}": form(marks, size) for size, (lines, width) in FORMS.items()}
        short = {
            name: torch.cat([tails(whole[f"8x{width}"], width, kept) for width in (5, 7) if len(whole[f"8x{width}"])])
            for name, kept in TAILS.items()
        }
        return {name: ids for name, ids in (whole | short).items() if len(ids)}

    return Corpus(forms("tu" if unfiltered else "t"), forms("h"))


@dataclass(frozen=True)
class Phase:
    """So many steps on one mixture of forms.

    Args:
        steps: batches.
        tokens: in a batch, about; all poems of a batch have one form.
        shares: how often a batch is of a form; whole poems by their share of the corpus where a name is `whole`.
    """

    steps: int
    tokens: int
    shares: Mapping[str, float]


def batches(corpus: Corpus, phases: list[Phase], seed: int) -> Iterator[Tensor]:
    """Batches of ids [B, S], phase by phase; each form goes through its poems in a new order each time."""
    generator = np.random.Generator(np.random.PCG64(seed))
    whole = {name: ids.numel() for name, ids in corpus.training.items() if name not in TAILS}
    orders: dict[str, np.ndarray] = {}
    for phase in phases:
        for name in phase.shares:
            check_choice("a form", name, ("whole", *corpus.training))
        chances = {name: share for name, share in phase.shares.items() if name != "whole"}
        for name, tokens in whole.items():
            chances[name] = chances.get(name, 0) + phase.shares.get("whole", 0) * tokens / sum(whole.values())
        names, weights = list(chances), np.array(list(chances.values()))
        for _ in range(phase.steps):
            name = names[generator.choice(len(names), p=weights / weights.sum())]
            poems = corpus.training[name]
            count = min(len(poems), max(1, phase.tokens // poems.shape[1]))
            if len(orders.get(name, ())) < count:
                orders[name] = generator.permutation(len(poems))
            chosen, orders[name] = orders[name][:count], orders[name][count:]
            yield poems[torch.from_numpy(chosen)].long()
