"""RMSNorm: keep the scale of every position's vector under control.

    y = gain * x / sqrt(mean(x²) + eps)      Zhang, Sennrich 2019, arXiv 1910.07467

The mean runs over the last axis only: every position of every sequence is normalized by itself. Left out on purpose:
statistics over the batch, running averages, anything that differs between training and inference.
MiniMind: `model/model_minimind.py`, class RMSNorm. LayerNorm, which also subtracts the mean: `for_comparison.py`.
"""

import torch
from torch import Tensor, nn

from minimind_edu.validation import check_number


def in_float32(x: Tensor) -> Tensor:
    """Half precision is widened: 300² overflows float16, and every step in bfloat16 would round to 8 binary digits."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def check_input(name: str, x: Tensor, dim: int) -> None:
    """Raise a ValueError unless the norm of that name can normalize x over `dim` channels."""
    if x.shape[-1] != dim:
        raise ValueError(
            f"{name}({dim}) normalizes the last axis, which must have {dim} channels, got a tensor of shape "
            f"{list(x.shape)}; move the channels to the end, or build the norm with dim={x.shape[-1]}"
        )
    if not x.is_floating_point():
        raise ValueError(f"{name} divides, so it needs floating-point numbers, got {x.dtype}; x.float() converts them")


class RMSNorm(nn.Module):
    """Divide every vector by its root mean square, then multiply channel by channel with a learned gain.

    The result has the dtype of the input, as in torch.nn.RMSNorm and in MiniMind3; MiniMind2 returned float32 for
    half-precision input.

    `[..., dim]` in, the same out. `eps` is added to the mean square, inside the root, so that a vector of zeros stays
    finite. Raises a ValueError for another number of channels, or for integers.
    """

    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        check_number("eps", eps, "at least 0")
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def norm(self, x: Tensor) -> Tensor:
        """The normalization alone, without the gain, in the dtype of `x`."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)  # [..., dim] * [..., 1]

    def forward(self, x: Tensor) -> Tensor:
        check_input("RMSNorm", x, self.weight.shape[0])
        # The gain is applied before the cast back: casting first rounds twice (1.41 times the rms error in float16).
        return (self.weight * self.norm(in_float32(x))).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"
