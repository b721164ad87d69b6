"""MovedQuery: one query of a trained head, rotated as if it stood some words earlier, and the word that follows.

The vectors and the next words are those of `minimind_edu.trained.living.moving`, computed by the living model; the ES
module rotates, adds up scores and takes the softmax (math.js).
"""

from typing import Any

import torch
from traitlets import Dict, Enum, Int, default

from minimind_edu.model.rope import precompute_freqs_cis, rotate_half
from minimind_edu.trained.living.moving import FARTHEST, measured
from minimind_edu.web.base import Figure

LAST, LATEST = 24, 100  # the query's position; how far the story may be moved
MIA, TOM = 23, 19  # the words before the query: who goes, and the other


class MovedQuery(Figure):
    """Move the query back and see whom it reads, and which word follows.

    Args:
        shows: `key`, the query and the key of the last Mia; `keys`, a second key, too, and the next word.
        back: how many words earlier the query is rotated as if it stood, 0 to 12.
        start: how many words later the whole story stands, 0 to 100.
        word: the second word whose key is drawn, 1 to 22.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "back", "start")

    shows = Enum(("key", "keys"), default_value="keys").tag(sync=True)
    back = Int(0, min=0, max=FARTHEST).tag(sync=True)
    start = Int(0, min=0, max=LATEST).tag(sync=True)
    word = Int(TOM, min=1, max=LAST - 2).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return measured()

    def scores(self, back: int, start: int = 0) -> torch.Tensor:
        """The scores `[S]` of all words, divided by the root of D, float64."""
        query, keys = (torch.tensor(self.stored[name], dtype=torch.float64) for name in ("query", "keys"))
        size, end = len(query), start + len(keys)
        cos, sin = precompute_freqs_cis(size, end, self.stored["base"], dtype=torch.float64)
        at = start + LAST - back
        rotated = query * cos[at] + rotate_half(query) * sin[at]
        rows = slice(start, end)
        return (keys * cos[rows] + rotate_half(keys) * sin[rows]) @ rotated / size**0.5

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for back in sorted({0, 3, 4, self.back}):
            weights = self.scores(back).softmax(-1)
            rows.append((f"moved back by {back}: weight of Mia, of Tom", f"{weights[MIA]:.2f}, {weights[TOM]:.2f}"))
            lead = self.stored["following"][back]["lead"]
            rows.append((f"moved back by {back}: kitchen − garden, logits", f"{lead:.2f}"))
        return "A query of head 3.4, moved back word by word, comes to read Tom in place of Mia.", rows
