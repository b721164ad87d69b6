"""TwoNeurons: two neurons of the last block, and the word that follows when a reader moves them.

Their columns, the rest of the stream and the places of the stories are those of `minimind_edu.trained.living.neurons`,
computed by the living model; the ES module adds them up, divides as the last norm does and takes the softmax (math.js).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from traitlets import Bunch, Dict, Enum, TraitError, default, validate

from minimind_edu.trained.living.neurons import TOLD, measured
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

ACTIVE = (-160.0, 20.0)  # the ends of activations
GATE, UP = (-4.0, 17.0), (-12.0, 6.0)
TRIED = (0, -40, -60)  # activations of the first neuron that are told in words


class TwoNeurons(Figure):
    """Move a neuron's activation, or what it is made of, and see which word follows.

    Args:
        shows: `one`, the activation of the first neuron; `two`, those of both; `inside`, gate and up of the first.
        story: `en`, a story in English; `zh`, the same in Chinese, where the second neuron writes: not with `one`.
        first: the activation of the first neuron, -160 to 20; without one what it is in this story.
        second: that of the second.
        gate: what the first neuron's row of gate makes of the input, -4 to 17.
        up: what its row of up makes of it, -12 to 6.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "story")

    shows = Enum(("one", "two", "inside"), default_value="one").tag(sync=True)
    story = Enum(tuple(TOLD), default_value="en").tag(sync=True)
    first = Finite(min=ACTIVE[0], max=ACTIVE[1]).tag(sync=True)
    second = Finite(min=ACTIVE[0], max=ACTIVE[1]).tag(sync=True)
    gate = Finite(min=GATE[0], max=GATE[1]).tag(sync=True)
    up = Finite(min=UP[0], max=UP[1]).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @validate("story")
    def _written_by_the_first(self, proposal: Bunch) -> str:
        if self.shows == "one" and proposal["value"] != "en":
            raise TraitError(f"one neuron is seen with story='en', got {proposal['value']!r}; set shows='two'")
        return proposal["value"]

    @default("first")
    def _own_first(self) -> float:
        return float(round(self._told("active")[0]))

    @default("second")
    def _own_second(self) -> float:
        return float(round(self._told("active")[1]))

    @default("gate")
    def _own_gate(self) -> float:
        return round(self._told("gate")[0], 1)

    @default("up")
    def _own_up(self) -> float:
        return round(self._told("up")[0], 1)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        return measured()

    def _told(self, name: str) -> Any:
        return self.stored["told"][self.story][name]

    def active(self) -> tuple[float, float]:
        """The activations of both neurons as the figure stands; gate and up make the first one `inside`."""
        if self.shows != "inside":
            return self.first, self.second if self.shows == "two" else self._told("active")[1]
        return (F.silu(torch.tensor(self.gate, dtype=torch.float64)) * self.up).item(), self._told("active")[1]

    def logits(self, first: float, second: float) -> Tensor:
        """The logits [V] of the next word with both neurons held at these activations, float64."""
        stored = self.stored
        rest, *columns = (torch.tensor(row, dtype=torch.float64) for row in (self._told("rest"), *stored["columns"]))
        rest_squared, rest_first, rest_second = self._told("products")
        both = [first * first, 2 * first * second, second * second]
        square = rest_squared + 2 * (first * rest_first + second * rest_second)
        square += sum(part * product for part, product in zip(both, stored["products"], strict=True))
        return (rest + first * columns[0] + second * columns[1]) / (square / stored["size"] + stored["eps"]) ** 0.5

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        _, second = self.active()
        rows = []
        for first in (*TRIED, round(self._told("active")[0])):
            chances = self.logits(first, second).softmax(-1)
            word = self.stored["words"][int(chances.argmax())]
            rows.append((f"activation {first}: next word", f"{word}, {100 * chances.max():.0f} %"))
        number = self.stored["pair"][0] + 1
        text = " ".join(self._told("tokens")[1:])
        return f"What follows {text!r} when neuron {number} of the last block is held at other activations.", rows
