"""Roofline: what decoding and prefill can reach at most under the two limits of a machine, memory and arithmetic.

Costs are counted in JavaScript (roofline/math.js, compared with `minimind_edu.measure.costs` in the tests). The limits
are measured: live on the reader's machine, when the figure is made; on a static page they are this book's own, stored
in roofline/machine.json by the command that stands in `minimind_edu.measure.machine`. A static figure measures nothing.
"""

import json
from functools import cached_property
from typing import Any

from traitlets import Bunch, Dict, Enum, Int, List, TraitError, default, validate

from minimind_edu.measure.costs import Machine, decode_cost, prefill_cost
from minimind_edu.measure.machine import description
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.notebook import outputs_are_stored
from minimind_edu.web.base import FOLDER, Figure

STORED = FOLDER / "roofline" / "machine.json"
BATCHES = tuple(2**power for power in range(10))  # 1 to 512
CONTEXTS = tuple(2**power for power in range(16))  # 1 to 32,768


def stored_machine() -> dict[str, Any]:
    """What was measured for the static pages: name, date, dtype, bandwidth, peak, and `runs` of MiniMind2 small."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def this_machine() -> dict[str, Any]:
    """The same, measured now, on the device that `pick_device` chooses; about two seconds on a CPU."""
    return description("this machine", ("plain",))


class Roofline(Figure):
    """Drag model size, key/value heads, batch, context and precision under the roof.

    Args:
        hidden_size: E, a multiple of 128 up to 4096; there are always 8 query heads.
        num_hidden_layers: L, 1 to 48.
        num_key_value_heads: K: 8, 4, 2 or 1.
        batch: B, a power of two up to 512.
        context: positions that a decode step attends to, and tokens of the prefill; a power of two up to 32,768.
        itemsize: bytes of a number in weights and cache: 4, 2 or 1. The roof stays the one that was measured.
        measured: a machine as `minimind_edu.measure.machine.description` gives it; None: this one live, the book's when
        static.

    Raises:
        TraitError: if a size is out of its range.
    """

    _repr_traits = ("hidden_size", "num_hidden_layers", "num_key_value_heads", "batch", "context", "itemsize")

    hidden_size = Int(512, min=128, max=4096).tag(sync=True)
    num_hidden_layers = Int(8, min=1, max=48).tag(sync=True)
    num_attention_heads = Int(8, read_only=True).tag(sync=True)
    num_key_value_heads = Enum((8, 4, 2, 1), default_value=2).tag(sync=True)
    vocab_size = Int(6400, min=1).tag(sync=True)
    batch = Enum(BATCHES, default_value=1).tag(sync=True)
    context = Enum(CONTEXTS, default_value=512).tag(sync=True)
    itemsize = Enum((4, 2, 1), default_value=4).tag(sync=True)
    # what was measured
    machine = Dict(read_only=True).tag(sync=True)
    runs = List(Dict(), read_only=True).tag(sync=True)
    measured_at = Dict(read_only=True).tag(sync=True)  # the sizes that the runs had

    def __init__(self, measured: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self._given = measured
        super().__init__(**kwargs)

    @cached_property
    def _measured(self) -> dict[str, Any]:
        """The machine: it is measured only when the arguments were accepted."""
        if self._given is not None:
            return self._given
        return stored_machine() if outputs_are_stored() else this_machine()

    @default("itemsize")
    def _measured_itemsize(self) -> int:
        return self._measured["measured_at"]["itemsize"]

    @default("machine")
    def _measured_limits(self) -> dict[str, Any]:
        return {name: self._measured[name] for name in ("name", "date", "dtype", "bandwidth", "peak")}

    @default("runs")
    def _measured_runs(self) -> list[dict[str, Any]]:
        return self._measured["runs"]

    @default("measured_at")
    def _measured_sizes(self) -> dict[str, Any]:
        return self._measured["measured_at"]

    @validate("hidden_size")
    def _multiple_of_128(self, proposal: Bunch) -> int:
        if proposal["value"] % 128:
            raise TraitError(f"hidden_size must be a multiple of 128, got {proposal['value']}")
        return proposal["value"]

    def config(self) -> MiniMindConfig:
        """The model that is shown."""
        return MiniMindConfig.minimind2(
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            num_key_value_heads=self.num_key_value_heads,
            vocab_size=self.vocab_size,
        )

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        machine = Machine(self.machine["bandwidth"], self.machine["peak"])
        sizes = self.config(), self.context, self.batch, self.itemsize
        decode, prefill = decode_cost(*sizes), prefill_cost(*sizes)
        rows = [
            ("memory, bytes per second", f"{machine.bandwidth:.3g}"),
            ("arithmetic, operations per second", f"{machine.peak:.3g}"),
            ("ridge, operations per byte", f"{machine.ridge:.1f}"),
        ]
        for name, cost, tokens in [("decode", decode, self.batch), ("prefill", prefill, self.batch * self.context)]:
            rows.append((f"{name}, operations per byte", f"{cost.intensity:.2f}"))
            rows.append((f"{name} is limited by", machine.limited_by(cost)))
            rows.append((f"{name}, tokens per second at most", f"{tokens / machine.seconds(cost):,.0f}"))
        for run in self.runs:
            rows.append((f"512 x 8, batch 1, measured: {run['name']}, ms", f"{1e3 * run['seconds']:.3g}"))
        return (
            f"A MiniMind of {self.hidden_size} x {self.num_hidden_layers} under the roof of "
            f"{self.machine['name']}: what a call can reach is limited by memory on the slope and by arithmetic on "
            "the flat part.",
            rows,
        )
