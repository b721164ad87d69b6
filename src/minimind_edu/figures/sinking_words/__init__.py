"""SinkingWords: what becomes of 16 words in 32 blocks, with norms before or after what the blocks add.

Every setting is a run of the small new MiniMind of `residual_stream`, whose attention, feed-forward networks or both
add more or less than a new model's. Shown are the sizes of the stream of both sequences, the angle of each word of the
first one to its first word, and what is left of a word: by how much the last output moves if it is replaced. The ES
module chooses among these runs and draws them.
"""

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
    ResidualStream,
    run_forward,
    text,
)
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

SIDES = ("pre", "post")
REPLACED = {"first": 0, "sixth": 5}  # words of the first sequence, each once replaced by another


class SinkingWords(Figure):
    """Choose where the norms stand, and how much the sublayers add.

    Args:
        about: what the section speaks of, which names the figure and chooses its switches: `words`, or `causes` with
            a switch for `louder`.
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
    runs = Dict(read_only=True).tag(sync=True)  # louder -> placement -> what `words_in` measures -> [loudness]

    @default("embedding")
    def _size_of_the_embedding(self) -> float:
        return ResidualStream().embedding

    @default("runs")
    def _measured(self) -> dict[str, Any]:
        shown = LOUDER if self.about == "causes" else (self.louder,)
        return {louder: {placement: words_in(placement, louder) for placement in SIDES} for louder in shown}

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
    angles = torch.stack([angles_to_first(_first_sequence(stream)) for stream in streams], dim=1)
    last = _last_output(streams)
    moved = {}
    for name, place in REPLACED.items():
        ids = text()[0]
        ids[0, place] = (ids[0, place] + 1) % VOCABULARY
        other = _last_output(run_forward(placement, seed=seed, louder=louder, ids=ids)[1])
        moved[name] = (other - last).norm(dim=-1)
    sizes = {"added": run.added, "total": run.total, **moved}
    if not all(values.amax() <= LARGEST for values in sizes.values()):
        raise ValueError(f"a run with norms must stay below {LARGEST}, where float16 ends; {placement}, {louder}")
    numbers = {name: [_short(row) for row in values.tolist()] for name, values in sizes.items()}
    return {**numbers, "angles": angles.round().int().tolist()}


def angles_to_first(x: Tensor) -> Tensor:
    """Degrees from the first position's vector to each later one's: `[..., S, E]` -> `[..., S - 1]`."""
    cosines = F.cosine_similarity(x[..., 1:, :], x[..., :1, :], dim=-1)
    return cosines.clamp(-1, 1).acos().rad2deg()


def _first_sequence(stream: Tensor) -> Tensor:
    """Of every loudness: `[6 * SEQUENCES, S, E]` -> `[6, S, E]`."""
    return stream.unflatten(0, (len(LOUDNESS), SEQUENCES))[:, 0]


def _last_output(streams: list[Tensor]) -> Tensor:
    """The last word's vector at the end, at size 1 as a final norm makes it: `[6, E]`."""
    return F.normalize(_first_sequence(streams[-1])[:, -1], dim=-1)


def _short(values: Any) -> Any:
    """With three digits, and no more than four decimals."""
    return [_short(value) for value in values] if isinstance(values, list) else float(f"{round(values, 4):.3g}")
