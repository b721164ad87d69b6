"""MixtureWalk: one word goes through a mixture of experts, step by step; then all rows of a text, while it learns.

Nothing is trained here: every setting is a training that `python -m minimind_edu.trained.routing.walk` ran and stored.
The ES module makes the softmax of the stored logits, and moves the rows.
"""

from typing import Any

import torch
from traitlets import Bool, Bunch, Dict, Enum, Int, TraitError, default, validate

from minimind_edu.trained.routing import NUM_EXPERTS, STOPS, TOP_K
from minimind_edu.trained.routing.walk import PORTRAYED, variant_of, walks
from minimind_edu.web.base import Figure

LAST_STEP = {"word": 6, "text": 2}
NUM_TOKENS = 14


class MixtureWalk(Figure):
    """Play it or go step by step; press a word to follow another one.

    Args:
        about: what the section speaks of, which names the figure and chooses its switches: `word`, `text`, `weights`
            or `load`.
        view: `word`, one row from its vector to what is added to it, or `text`, all rows to four experts and back.
        step: 0 to 6 of a word, 0 to 2 of the text.
        token: the word that is followed, from 0.
        trained: steps of training, one of `minimind_edu.trained.routing.STOPS`; a word is seen after the last of them.
        top_k: experts that a token visits, 1 or 2, in training and here.
        renormalize: whether the kept probabilities are divided by their sum, in training and here.
        balanced: trained with the auxiliary loss; a word is seen without it.

    Raises:
        TraitError: for another value, a step that the view does not have, or a word in a training that is not shown.
    """

    _repr_traits = ("about", "view", "step")

    about = Enum(("word", "text", "weights", "load"), default_value="text").tag(sync=True)
    view = Enum(tuple(LAST_STEP), default_value="text").tag(sync=True)
    step = Int(0, min=0, max=max(LAST_STEP.values())).tag(sync=True)
    token = Int(2, min=0, max=NUM_TOKENS - 1).tag(sync=True)
    trained = Enum(STOPS, default_value=PORTRAYED).tag(sync=True)
    top_k = Enum(TOP_K, default_value=2).tag(sync=True)
    renormalize = Bool(True).tag(sync=True)
    balanced = Bool(False).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @validate("step")
    def _of_the_view(self, proposal: Bunch) -> int:
        last = LAST_STEP[self.view]
        if proposal["value"] > last:
            raise TraitError(f"this view has the steps 0 to {last}, got step={proposal['value']}")
        return proposal["value"]

    @validate("trained", "balanced")
    def _portrayed(self, proposal: Bunch) -> Any:
        given, shown = proposal["value"], {"trained": PORTRAYED, "balanced": False}[proposal["trait"].name]
        if self.view == "word" and given != shown:
            raise TraitError(f"a word is seen with {proposal['trait'].name}={shown}, got {given}; set view='text'")
        return given

    @default("stored")
    def _stored_walks(self) -> dict[str, Any]:
        return walks()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        variant = variant_of(self.top_k, self.renormalize, self.balanced)
        look = variant["looks"][STOPS.index(self.trained)]
        mine = slice(self.token * self.top_k, (self.token + 1) * self.top_k)
        pairs = zip(look["weights"][mine], look["experts"][mine], strict=True)
        rows = [
            ("added to its row", " + ".join(f"{weight / 100:.2f} × expert {int(i) + 1}" for weight, i in pairs)),
            (
                "rows per expert, of the whole text",
                ", ".join(str(look["experts"].count(str(i))) for i in range(NUM_EXPERTS)),
            ),
            ("load in new stories", ", ".join(f"{load} %" for load in look["loads"])),
            ("the router has moved by", f"{look['moved']} %"),
        ]
        if self.view == "word":
            probabilities = torch.tensor(variant["portrait"]["logits"][self.token]).softmax(-1)
            rows.insert(0, ("router probabilities", ", ".join(f"{p:.2f}" for p in probabilities.tolist())))
        word = walks()["words"][self.token]
        return f"The word “{word}” visits {self.top_k} of four experts, after {self.trained} steps of training.", rows
