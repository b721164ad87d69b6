"""NormGeometry: LayerNorm and RMSNorm as moves in space, for three channels and then for sixty-four.

Every number that the page stores comes from `minimind_edu.model.norms` in float64. The ES module repeats the two
formulas, so that the picture follows the hand without a kernel; a test compares it with torch.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from traitlets import Bunch, Dict, Enum, List, TraitError, default, observe, validate

from minimind_edu.model.for_comparison import LayerNorm
from minimind_edu.model.norms import RMSNorm
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

CURVE_EPS = 1e-5  # of the curves over 64 channels, which do not follow the eps slider
_NORMS = {"layer": LayerNorm, "rms": RMSNorm}


def example_values(count: int = 64, seed: int = 2599) -> list[float]:
    """Values like the channels of one token; two decimals, so that no machine's last bit can show on a page."""
    values = torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return [round(value, 2) for value in values.tolist()]


def channel_stats(y: Tensor) -> dict[str, Tensor]:
    """Mean, standard deviation (over all channels, not one less) and RMS of the last axis: rms² = mean² + std².

    Shapes: `[..., dim]` in, `[...]` out, three times.
    """
    return {"mean": y.mean(-1), "std": y.std(-1, correction=0), "rms": y.pow(2).mean(-1).sqrt()}


def offset_curve(values: list[float]) -> dict[str, Any]:
    """Statistics of both norms' outputs when c = 0, 0.1 ... 5 is added to every channel of `values`."""
    offsets = torch.arange(51, dtype=torch.float64) / 10
    x = torch.tensor(values, dtype=torch.float64) + offsets[:, None]  # [51, dim]
    curve: dict[str, Any] = {"c": offsets.tolist()}
    for name, norm in _NORMS.items():
        stats = channel_stats(norm(len(values), eps=CURVE_EPS).norm(x))
        # More digits than a reader can tell apart, fewer than machines disagree about: zero stays zero.
        curve[name] = {key: stat.round(decimals=5).tolist() for key, stat in stats.items()}
    return curve


def _normed(norm: str, x: Tensor, gain: Tensor, eps: float) -> Tensor:
    module = _NORMS[norm](len(x), eps=eps).double()
    with torch.no_grad():
        module.weight.copy_(gain)
        return module(x)


def _numbers(values: Iterable[Tensor | float]) -> str:
    return ", ".join(f"{float(value) + 0.0:z.4f}" for value in values)


def _degrees(a: Tensor, b: Tensor) -> str:
    if not (a.any() and b.any()):
        return "none: a vector of length 0 has no direction"
    cosine = torch.dot(a, b) / (a.norm() * b.norm())
    return f"{torch.rad2deg(torch.acos(cosine.clamp(-1, 1))).item():.2f} degrees"


class NormGeometry(Figure):
    """A vector of three channels that can be dragged, and what each norm makes of it.

    Args:
        x: the three channels.
        offset: c, added to all channels before the norm.
        gain: the learned factor of each channel, applied after the norm.
        eps: added inside the root.
        norm: "both", "layer" or "rms": what is drawn.
        values: a longer vector for the second panel.

    Raises:
        TraitError: if `x` or `gain` does not have three numbers, or eps is not positive.
    """

    _repr_traits = ("x", "offset", "gain", "eps")

    x = List(Finite(), default_value=[2.1, -1.2, 1.5]).tag(sync=True, outside=(-8.0, 8.0))
    offset = Finite(0.0).tag(sync=True, outside=(0.0, 5.0))
    gain = List(Finite(), default_value=[1.0, 1.0, 1.0]).tag(sync=True, outside=(0.1, 3.0))
    eps = Finite(1e-5).tag(sync=True, outside=(1e-7, 1.0))
    norm = Enum(["both", "layer", "rms"], default_value="both").tag(sync=True)
    values = List(Finite(), default_value=example_values(), minlen=1).tag(sync=True)
    curve = Dict(read_only=True).tag(sync=True)  # of `values`

    @validate("x", "gain")
    def _three_channels(self, proposal: Bunch) -> list[float]:
        if len(proposal["value"]) != 3:
            name, value = proposal["trait"].name, proposal["value"]
            raise TraitError(
                f"{name} must have 3 channels, as many as can be drawn, got {len(value)}; longer vectors go into values"
            )
        return proposal["value"]

    @validate("eps")
    def _positive(self, proposal: Bunch) -> float:
        if not proposal["value"] > 0:
            raise TraitError(
                f"eps must be positive, got {proposal['value']}; it keeps a vector of zeros from being divided by zero"
            )
        return proposal["value"]

    @default("curve")
    def _curve_of_the_values(self) -> dict[str, Any]:
        return offset_curve(self.values)

    @observe("values")
    def _update_curve(self, _: Bunch) -> None:
        self.set_trait("curve", offset_curve(self.values))

    def outputs(self) -> dict[str, Tensor]:
        """The input with its offset and what each norm makes of it, float64, `[3]` each."""
        x = torch.tensor(self.x, dtype=torch.float64) + self.offset
        gain = torch.tensor(self.gain, dtype=torch.float64)
        return {"input": x} | {name: _normed(name, x, gain, self.eps) for name in _NORMS}

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        outputs = self.outputs()
        rows = []
        labels = {"input": "Input x + c", "layer": "LayerNorm", "rms": "RMSNorm"}
        for name, label in labels.items():
            y = outputs[name]
            rows.append((f"{label}: channels", _numbers(y)))
            rows.append((f"{label}: mean, std, RMS", _numbers(channel_stats(y).values())))
            if name != "input":
                rows.append((f"{label}: angle to the input", _degrees(outputs["input"], y)))
        for name in _NORMS:
            for at in (0, 10, 50):
                stats = [self.curve[name][key][at] for key in ("mean", "std", "rms")]
                label = f"{len(self.values)} channels, {labels[name]}, c = {self.curve['c'][at]:g}"
                rows.append((f"{label}: mean, std, RMS", _numbers(stats)))
        sentence = (
            "LayerNorm drops a vector onto the plane of mean zero and then scales it to the sphere of RMS 1; "
            "RMSNorm only scales it, so a common offset c stays visible."
        )
        return sentence, rows
