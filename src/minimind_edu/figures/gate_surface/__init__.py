"""GateSurface: what one neuron of a feed-forward network makes of two numbers, with a gate and without.

The figure computes in JavaScript (gate_surface/math.js, compared with the package in the tests); the numbers in
its table are those of PyTorch.
"""

import torch
import torch.nn.functional as F
from traitlets import Bool, Enum

from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

LIMIT = 3.0  # of the plane: far enough for every activation to be nearly straight
ACTIVATIONS = {"silu": F.silu, "gelu": F.gelu, "relu": F.relu}


class GateSurface(Figure):
    """Drag a point in the plane of gate g and value u: the output, and the two cross-sections through the point.

    Args:
        gate: g = w·x, -3 to 3.
        value: u = v·x, -3 to 3.
        activation: of the gate: `silu` (as in MiniMind), `gelu` or `relu`.
        gated: whether the neuron told of has a gate, activation(g)·u, or is a plain one, activation(g).

    Raises:
        TraitError: if g or u is out of its range, or there is no such activation.
    """

    _repr_traits = ("gate", "value", "activation", "gated")

    gate = Finite(1.5, min=-LIMIT, max=LIMIT).tag(sync=True)
    value = Finite(-1.2, min=-LIMIT, max=LIMIT).tag(sync=True)
    activation = Enum(tuple(ACTIVATIONS), default_value="silu").tag(sync=True)
    gated = Bool(True).tag(sync=True)

    def opening(self, activation: str) -> float:
        """activation(g), what the output multiplies u by."""
        return ACTIVATIONS[activation](torch.tensor(self.gate, dtype=torch.float64)).item()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for name in ACTIVATIONS:
            factor = self.opening(name)
            rows.append((f"{name}: with a gate, {name}(g)·u", f"{factor * self.value:.2f}, u times {factor:.2f}"))
            rows.append((f"{name}: without, {name}(g)", f"{factor:.2f}, whatever u is"))
        return (
            f"One neuron at gate g = {self.gate:g} and value u = {self.value:g}: with a gate its output is u "
            "times a factor that the gate sets; without one u has no say.",
            rows,
        )
