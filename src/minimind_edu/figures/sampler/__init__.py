"""Sampler: what the knobs of generation make of the trained model's next word, and draws that follow it.

The knobs are computed in JavaScript (live/sampling.js, compared with minimind_edu.model.sampling in the tests). The
logits after three texts are computed here; the text grows with the living model, which arrives when it is needed.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from traitlets import Dict, Enum, Int, List, default

from minimind_edu import world
from minimind_edu.model.sampling import Sampling
from minimind_edu.trained.living import living_model
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

# Texts that many, a few, and one word can follow.
STARTS = {
    "broad": "Mia is in the kitchen. Tom is in the garden.",
    "medium": "Mia is in the kitchen. Tom is in the garden. Mia goes from the kitchen to the",
    "sharp": "Mia is in the kitchen. Tom is in the garden. Mia goes from the kitchen to the hall. where is Mia? in the",
}
WORDS = len(world.WORDS)
DIGITS = 3  # of a logit: a thousandth changes a probability by less than a pixel
ROWS = 6  # of the table


@cache
def starts() -> dict[str, dict[str, list[Any]]]:
    """The ids of each text of STARTS, and the logits [V] of the word after it."""
    model, found = living_model(), {}
    for name, text in STARTS.items():
        ids = world.encode(f"<s> {text}")
        with torch.no_grad():
            logits = model(torch.from_numpy(ids)[None]).logits[0, -1]
        found[name] = {"ids": ids.tolist(), "logits": [round(logit, DIGITS) for logit in logits.tolist()]}
    return found


class Sampler(Figure):
    """The next word of the trained model: its distribution before and after the knobs, and seeded draws from it.

    Args:
        start: the text: `broad`, `medium` or `sharp`, by how many words can follow it.
        repetition_penalty: 1 to 2; 1 changes nothing.
        temperature: 0.1 to 2; 1 changes nothing.
        top_k: from 1; the number of words of the world, 88, keeps all.
        top_p: 0.05 to 1; 1 keeps all.
        min_p: 0 to 1; 0 keeps all.
        seed: of the draws.

    Raises:
        TraitError: if a value is out of its range.
    """

    _repr_traits = ("start", "repetition_penalty", "temperature", "top_k", "top_p", "min_p")

    start = Enum(tuple(STARTS), default_value="medium").tag(sync=True)
    repetition_penalty = Finite(1.0, min=1.0, max=2.0).tag(sync=True)
    temperature = Finite(1.0, min=0.1, max=2.0).tag(sync=True)
    top_k = Int(WORDS, min=1, max=WORDS).tag(sync=True)
    top_p = Finite(1.0, min=0.05, max=1.0).tag(sync=True)
    min_p = Finite(0.0, min=0.0, max=1.0).tag(sync=True)
    seed = Int(0, min=0, max=2**31 - 1).tag(sync=True)
    # what follows from the weights and the world
    words = List(read_only=True).tag(sync=True)
    starts = Dict(read_only=True).tag(sync=True)

    @default("words")
    def _words_of_the_world(self) -> list[str]:
        return list(world.WORDS)

    @default("starts")
    def _stored_starts(self) -> dict[str, dict[str, list[Any]]]:
        return starts()

    def sampling(self) -> Sampling:
        """The knobs, as the package takes them."""
        return Sampling(
            do_sample=True,
            repetition_penalty=self.repetition_penalty,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
        )

    def probabilities(self) -> tuple[Tensor, Tensor]:
        """The distributions [V] of the word after the text of `start`: of the model, and after the knobs."""
        start = self.starts[self.start]
        logits = torch.tensor([start["logits"]])
        seen = torch.zeros_like(logits, dtype=torch.bool)
        seen[0, start["ids"]] = True
        return logits[0].softmax(-1), self.sampling().probabilities(logits, seen)[0]

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        before, after = self.probabilities()
        likeliest = before.argsort(descending=True, stable=True)[:ROWS].tolist()
        rows = [(world.WORDS[word], f"{_percent(before[word])}, {_percent(after[word])}") for word in likeliest]
        rows.append(("entropy", f"{_nats(before)}, {_nats(after)}"))
        return (
            f"The word after “{STARTS[self.start]}”: its probability by the model, and after the knobs, which leave "
            f"{int((after > 0).sum())} of {WORDS} words.",
            rows,
        )


def _percent(probability: Tensor) -> str:
    return f"{100 * probability.item():.1f} %"


def _nats(probabilities: Tensor) -> str:
    return f"{torch.special.entr(probabilities).sum().item():.2f} nats"
