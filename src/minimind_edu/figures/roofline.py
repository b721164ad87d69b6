"""Roofline: what decoding and prefill can reach at most under the two limits of a machine, memory and arithmetic.

Costs are counted in JavaScript (static/roofline_math.js, compared with `minimind_edu.costs` in the tests). The limits
are measured: live on the reader's machine, when the figure is made; on a static page they are this book's own, stored
in static/roofline_machine.json by the command that stands in `minimind_edu.machine`. A static figure measures nothing.
"""

import json
import os
from typing import Any

from traitlets import Dict, Enum, Int, List

from minimind_edu.config import MiniMindConfig
from minimind_edu.costs import Machine, decode_cost, prefill_cost
from minimind_edu.figures._base import STATIC, Figure
from minimind_edu.machine import description

STORED = STATIC / "roofline_machine.json"
LARGEST_BATCH, LONGEST = 512, 32768


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
        measured: a machine as `minimind_edu.machine.description` gives it; None: this one live, the book's when static.

    Raises:
        ValueError: if a size is out of its range.
    """

    _module = "roofline"
    _repr_traits = ("hidden_size", "num_hidden_layers", "num_key_value_heads", "batch", "context", "itemsize")

    hidden_size = Int(512).tag(sync=True)
    num_hidden_layers = Int(8).tag(sync=True)
    num_attention_heads = Int(8).tag(sync=True)
    num_key_value_heads = Enum((8, 4, 2, 1), default_value=2).tag(sync=True)
    vocab_size = Int(6400).tag(sync=True)
    batch = Int(1).tag(sync=True)
    context = Int(512).tag(sync=True)
    itemsize = Enum((4, 2, 1), default_value=4).tag(sync=True)
    # what was measured; not meant to be set
    machine = Dict().tag(sync=True)
    runs = List(Dict()).tag(sync=True)
    measured_at = Dict().tag(sync=True)  # the sizes that the runs had

    def __init__(self, measured: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if measured is None:
            static = os.environ.get("MINIMIND_EDU_STATIC") == "1"
            measured = stored_machine() if static else this_machine()
        machine = {name: measured[name] for name in ("name", "date", "dtype", "bandwidth", "peak")}
        runs, measured_at = measured["runs"], measured["measured_at"]
        kwargs = {"itemsize": measured_at["itemsize"], **kwargs}
        super().__init__(machine=machine, runs=runs, measured_at=measured_at, **kwargs)
        self._check()

    def _check(self) -> None:
        if self.hidden_size % 128 or not 128 <= self.hidden_size <= 4096:
            raise ValueError(f"hidden_size must be a multiple of 128 up to 4096, got {self.hidden_size}")
        if not 1 <= self.num_hidden_layers <= 48:
            raise ValueError(f"num_hidden_layers must be from 1 to 48, got {self.num_hidden_layers}")
        for name, most in {"batch": LARGEST_BATCH, "context": LONGEST}.items():
            value = getattr(self, name)
            if value not in [2**i for i in range(most.bit_length())]:
                raise ValueError(f"{name} must be a power of two up to {most}, got {value}")

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
            ("memory, bytes a second", f"{machine.bandwidth:.3g}"),
            ("arithmetic, operations a second", f"{machine.peak:.3g}"),
            ("ridge, operations a byte", f"{machine.ridge:.1f}"),
        ]
        for name, cost, tokens in [("decode", decode, self.batch), ("prefill", prefill, self.batch * self.context)]:
            rows.append((f"{name}, operations a byte", f"{cost.intensity:.2f}"))
            rows.append((f"{name} is limited by", machine.limited_by(cost)))
            rows.append((f"{name}, tokens a second at most", f"{tokens / machine.seconds(cost):,.0f}"))
        for run in self.runs:
            rows.append((f"512 x 8, batch 1, measured: {run['name']}, ms", f"{1e3 * run['seconds']:.3g}"))
        return (
            f"A MiniMind of {self.hidden_size} x {self.num_hidden_layers} under the roof of "
            f"{self.machine['name']}: what a call can reach is limited by memory on the slope and by arithmetic on "
            "the flat part.",
            rows,
        )
