"""SinkingWords: what becomes of 16 words in 32 blocks, with norms before or after what the blocks add.

Every setting is a run of the small new MiniMind of `residual_stream`, whose attention, feed-forward networks or both
add more or less than a new model's. Shown are the sizes of the stream of both sequences, the angle of each word of the
first one to its first word, and what is left of a word: by how much the last output moves if it is replaced. The ES
module chooses among these runs and draws them. Angles travel as letters, a word after the other: the first says how far
it is from RIGHT degrees, the others by how many degrees every EVERY blocks change it.
"""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from traitlets import Dict, Enum, default

from minimind_edu.device import one_thread
from minimind_edu.figures.residual_stream import (
    LARGEST,
    LENGTH,
    LOUDER,
    LOUDNESS,
    SEQUENCES,
    VOCABULARY,
    embedding_size,
    run_forward,
    text,
)
from minimind_edu.trained.deep_sums import angles_to_first
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

SIDES = ("pre", "post")
REPLACED = {"first": 0, "sixth": 5}  # words of the first sequence, each once replaced by another
RIGHT = 90  # degrees, near which all words begin
UNCHANGED = ord("P")  # the letter of no change
EVERY = 2  # blocks between two angles that are sent: half the weight of a page, and no line looks different


class SinkingWords(Figure):
    """Choose where the norms stand, and how much the sublayers add.

    Args:
        about: what the section speaks of, which names the figure and chooses what it shows: `words`, the stream and
            its words; `causes`, the words alone, with a switch for `louder`.
        placement: norms on what a sublayer reads (`pre`) or on the sum (`post`).
        loudness: 1/4, 1/2, 1, 2, 4 or 8 times what the sublayers of a new MiniMind add.
        louder: which sublayers add so much: `attention`, `networks` or `both`; the others add as new ones do.
    """

    _repr_traits = ("about", "placement", "loudness", "louder")

    about = Enum(("words", "causes"), default_value="words").tag(sync=True)
    placement = Enum(SIDES, default_value="pre").tag(sync=True)
    loudness = Enum(LOUDNESS, default_value=1.0).tag(sync=True)
    louder = Enum(LOUDER, default_value="both").tag(sync=True)
    embedding = Finite(read_only=True).tag(sync=True)  # RMS of the stream before the first block
    angles = Dict(read_only=True).tag(sync=True)  # louder -> placement -> letters of each loudness
    moved = Dict(read_only=True).tag(sync=True)  # louder -> placement -> name of REPLACED -> [loudness]
    sizes = Dict(read_only=True).tag(sync=True)  # placement -> `added` and `total` as in `words_in`; {} about causes

    @default("embedding")
    def _size_of_the_embedding(self) -> float:
        return embedding_size()

    @default("angles")
    def _angles_as_letters(self) -> dict[str, Any]:
        return _of_all(lambda run: [_letters(of_loudness) for of_loudness in run["angles"]])

    @default("moved")
    def _moved_by_a_word(self) -> dict[str, Any]:
        return _of_all(lambda run: {name: run[name] for name in REPLACED})

    @default("sizes")
    def _sizes_of_the_stream(self) -> dict[str, Any]:
        if self.about == "causes":
            return {}
        runs = {placement: words_in(placement, self.louder) for placement in SIDES}
        return {placement: {name: _drawn(run[name]) for name in ("added", "total")} for placement, run in runs.items()}

    def chosen(self, placement: str) -> dict[str, Any]:
        """The numbers of one placement, with all else as it is chosen, under the names of `words_in`."""
        at = LOUDNESS.index(self.loudness)
        return {name: values[at] for name, values in words_in(placement, self.louder).items()}

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for placement in SIDES:
            run = self.chosen(placement)
            for name, value in [
                ("mean angle to the first word", f"{sum(run['angles'][-1]) / (LENGTH - 1):.0f}°"),
                ("first word replaced, the last output moves by", f"{100 * run['first']:.1f} %"),
                ("sixth word replaced, the last output moves by", f"{100 * run['sixth']:.1f} %"),
            ]:
                rows.append((f"{placement}: {name}", value))
        who = {"both": "sublayers add", "attention": "attention adds", "networks": "feed-forward networks add"}
        return f"16 words in 32 blocks. Their {who[self.louder]} {self.loudness:g} times what new ones do.", rows


@cache
@one_thread()
@torch.no_grad()
def words_in(placement: str, louder: str, seed: int = 0) -> dict[str, Any]:
    """One placement's run, all factors at once, as numbers that JSON can hold: a leading axis of len(LOUDNESS).

    Args:
        placement: `pre` or `post`.
        louder: which sublayers get the factor, one of LOUDER.
        seed: of the weights.

    Returns:
        `added` and `total`, as in `residual_stream.Forward`; `angles`, `[6, L+1, S-1]`, whole degrees from the first
        word to each other one, at the start and after each block; `first` and `sixth`, `[6]`, by how much the last
        word's output moves, relative to its size, if that word is replaced.
    """
    run, streams = run_forward(placement, seed=seed, louder=louder)
    angles = torch.stack([angles_to_first(_sequence(stream)) for stream in streams], dim=1)
    ids = text()[0][:1].repeat(len(REPLACED), 1)  # the first sequence, once for each word that is replaced
    for sequence, place in enumerate(REPLACED.values()):
        ids[sequence, place] = (ids[sequence, place] + 1) % VOCABULARY
    others = run_forward(placement, seed=seed, louder=louder, ids=ids)[1]
    last = _last_output(streams)
    moved = {name: (_last_output(others, i) - last).norm(dim=-1) for i, name in enumerate(REPLACED)}
    sizes = {"added": run.added, "total": run.total, **moved}
    if not all(values.amax() <= LARGEST for values in sizes.values()):
        raise ValueError(f"a run with norms must stay below {LARGEST}, where float16 ends; {placement}, {louder}")
    numbers = {name: [_short(row) for row in values.tolist()] for name, values in sizes.items()}
    return {**numbers, "angles": angles.round().int().tolist()}


def _drawn(sizes: list[list[float]]) -> list[list[float]]:
    """Sizes of each loudness with the two digits that a picture shows; the last one is told, and keeps its three."""
    return [[*(float(f"{size:.2g}") for size in of_loudness[:-1]), of_loudness[-1]] for of_loudness in sizes]


def _of_all(numbers: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """What `numbers` takes of each run: louder -> placement -> numbers."""
    return {louder: {placement: numbers(words_in(placement, louder)) for placement in SIDES} for louder in LOUDER}


def _letters(angles: list[list[int]]) -> str:
    """Whole degrees `[L+1][words]` as letters, word after word, after every EVERY blocks."""
    of_words = [[RIGHT, *of_word] for of_word in zip(*angles[::EVERY], strict=True)]
    return "".join(chr(UNCHANGED + b - a) for of_word in of_words for a, b in itertools.pairwise(of_word))


def _sequence(stream: Tensor, number: int = 0) -> Tensor:
    """One sequence in every loudness: `[6 * SEQUENCES, S, E]` -> `[6, S, E]`."""
    return stream.unflatten(0, (len(LOUDNESS), SEQUENCES))[:, number]


def _last_output(streams: list[Tensor], number: int = 0) -> Tensor:
    """The last word's vector of one sequence at the end, at size 1 as a final norm makes it: `[6, E]`."""
    return F.normalize(_sequence(streams[-1], number)[:, -1], dim=-1)


def _short(values: Any) -> Any:
    """With three digits, and no more than four decimals."""
    return [_short(value) for value in values] if isinstance(values, list) else float(f"{round(values, 4):.3g}")
