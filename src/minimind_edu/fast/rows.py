"""Matrices for the loops of `row_products.cpp`, and two modules that hold one: a linear map, an embedding.

    int8      1 byte per weight and one scale for each row, as `weights/int8.py` makes them
    bfloat16  2 bytes per weight; the scales are 1
    float32   the model's own weights; the scales are 1

What is stored is what was rounded; sums are float32, or exact (`row_products.py`).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.fast.row_products import why_not_loaded
from minimind_edu.weights.int8 import quantize

PRECISIONS = ("int8", "bfloat16")
FEW = 16  # so many vectors are multiplied row by row; for more, restoring the matrix first is faster


class Rows(NamedTuple):
    """One matrix, or several of the same shape."""

    values: Tensor  # [..., R, C], int8, bfloat16 or float32
    scales: Tensor  # [..., R], float32

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        return self.scales.dtype

    @property
    def device(self) -> torch.device:
        return self.scales.device

    def at(self, index: Tensor | int | slice) -> "Rows":
        """The rows, or matrices, at these places of the first axis."""
        return Rows(self.values[index], self.scales[index])

    def restored(self) -> Tensor:
        """The float32 matrix that they stand for."""
        if self.values.dtype == torch.float32:
            return self.values
        return self.values.float() * self.scales[..., None]

    def times(self, x: Tensor, added: Tensor | None = None) -> Tensor:
        """`[n, C]` -> `[n, R]`, added to another `[n, R]` if there is one."""
        compiling = torch.compiler.is_compiling()
        # int8 products gain so much that a short prompt, too, is read faster than its matrices are restored
        few = 4 * FEW if self.values.dtype == torch.int8 and not compiling else FEW
        # a compiled step asks before it is compiled
        if x.shape[0] <= few and not x.is_cuda and (compiling or not why_not_loaded()):
            return torch.ops.minimind_edu.row_products.default(self.values, self.scales, x, added)
        if self.values.dtype == torch.bfloat16 and multiplies_bfloat16():
            product = F.linear(x.to(torch.bfloat16), self.values).float()
        else:
            product = F.linear(x, self.restored())
        return product if added is None else added + product


def rounded(matrix: Tensor, to: str) -> Rows:
    """The rows of a matrix `[R, C]`.

    Raises:
        ValueError: if one of its weights is not finite, or no longer once it is rounded.
    """
    rows = (
        Rows(*quantize(matrix))
        if to == "int8"
        else Rows(matrix.to(torch.bfloat16), matrix.new_ones(len(matrix)).float())
    )
    if not bool(rows.restored().isfinite().all()):
        raise ValueError(f"only finite numbers can be rounded to {to}, but a weight is NaN or too large")
    return rows


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for it; without them torch would widen every number."""
    return torch.cpu._is_avx512_bf16_supported()


class RoundedLinear(nn.Module):
    """A linear map without bias, `[..., C]` -> `[..., R]`."""

    def __init__(self, weight: Rows):
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        product = self.weight.times(x.flatten(0, -2).float())  # torch.autocast may have shortened it
        return product.view(*x.shape[:-1], product.shape[-1])


class RoundedEmbedding(nn.Module):
    """A table with a row for each token: ids `[...]` -> `[..., E]`."""

    def __init__(self, weight: Rows):
        super().__init__()
        self.weight = weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.at(ids).restored()
