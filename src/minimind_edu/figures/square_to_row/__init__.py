"""SquareToRow: the same call without and with a cache: the square of attention weights, and its one new row.

Every weight and word is the living model's, in float64: once without a cache, and for each bug and each way to cut the
prompt with one. The text is given, so that all runs read the same words and only the cache differs.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from traitlets import Bunch, Dict, Enum, Int, TraitError, default, validate

from minimind_edu import world
from minimind_edu.device import one_thread
from minimind_edu.figures.cache_stepper import IDENTICAL, call_sizes
from minimind_edu.model.broken_caches import BUGS, read
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.broken import EARLIER
from minimind_edu.web.base import Figure

STORY = "<s> Mia is in the garden. Leo is in the attic."  # the prompt; the living model goes on with the words below
WRITTEN = "the map is picked up by Leo in the"
PROMPT, READ = 9, 14  # words of the prompt, and words that are read in all
CHUNKS = (9, 3, 1)  # words of the prompt in a call
LAYER, HEAD = 3, 1  # indices: head 4.2, whose last row reads the attic


class SquareToRow(Figure):
    """Make the calls one by one, without and with a cache side by side.

    Args:
        shows: `saved`, what a cache saves, or `broken`, what a bug does to the rows.
        calls: how many calls have been made.
        chunk: words of the prompt that go into a call, 9, 3 or 1.
        bug: one of `minimind_edu.model.broken_caches.BUGS`.

    Raises:
        TraitError: for another value, or if there are not so many calls when `calls` is set.
    """

    _repr_traits = ("shows", "calls", "chunk", "bug")

    shows = Enum(("saved", "broken"), default_value="saved").tag(sync=True)
    chunk = Enum(CHUNKS, default_value=PROMPT).tag(sync=True)
    bug = Enum(BUGS, default_value="none").tag(sync=True)
    calls = Int(0, min=0).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @validate("calls")
    def _as_many_as_the_run_has(self, proposal: Bunch) -> int:
        number = len(call_sizes(PROMPT, self.chunk, READ))
        if proposal["value"] > number:
            raise TraitError(f"this run has {number} calls, got calls={proposal['value']}")
        return proposal["value"]

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return measured()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        sizes = call_sizes(PROMPT, self.chunk, READ)
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        run = self.stored["runs"][self.bug][str(self.chunk)]
        rows = [
            ("rows computed without a cache", f"{sum(ends)}"),
            ("rows computed with a cache", f"{READ}"),
            ("the last call says", run["said"][-1]),
        ]
        return f"A prompt of {PROMPT} words is read, then {READ - PROMPT} that the model wrote, call by call.", rows


def _ids(text: str) -> Tensor:
    return torch.from_numpy(world.encode(text))[None]  # [1, S]


def _run(sizes: list[int], bug: str, right: Tensor | None) -> dict[str, Any]:
    """Rows of weights as percent; of each call the likeliest word, and how far its logits are from the right ones."""
    model = living_model().double().requires_grad_(False)
    cache_ = read(model, _ids(EARLIER))[1] if bug == "stale" else None
    rows, logits = [], []
    for ids in _ids(f"{STORY} {WRITTEN}").split(sizes, dim=1):
        weights: list[Tensor] = []
        out, cache_ = read(model, ids, cache_, bug, weights)
        rows += (100 * weights[LAYER][0, HEAD]).round().int().tolist()  # S rows of T
        logits.append(out[0])
    ends = torch.tensor(sizes).cumsum(0) - 1
    found = torch.cat(logits)
    gaps = (found - (found if right is None else right)).abs().amax(-1).split(sizes)
    return {
        "rows": rows,
        "said": [world.WORDS[i] for i in found[ends].argmax(-1).tolist()],
        "apart": [float(f"{gap.max():.3g}") if gap.max() > IDENTICAL else 0.0 for gap in gaps],
        "logits": found,
    }


@cache
@one_thread()
@torch.no_grad()
def measured() -> dict[str, Any]:
    """The words, the square of a run without a cache, and the runs of every bug and chunk."""
    whole = _run([READ], "none", None)
    right = whole["logits"]
    runs = {bug: {str(chunk): _run(call_sizes(PROMPT, chunk, READ), bug, right) for chunk in CHUNKS} for bug in BUGS}
    for run in (run for of_bug in runs.values() for run in of_bug.values()):
        del run["logits"]
    words = [world.WORDS[i] for i in _ids(f"{STORY} {WRITTEN}")[0].tolist()]
    return {
        "words": words,
        "earlier": [world.WORDS[i] for i in _ids(EARLIER)[0].tolist()],
        "prompt": PROMPT,
        "head": f"{LAYER + 1}.{HEAD + 1}",
        "rows": whole["rows"],
        "next": [world.WORDS[i] for i in right.argmax(-1).tolist()],
        "runs": runs,
    }
