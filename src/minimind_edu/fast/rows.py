"""Matrices for the loops of `row_products.cpp`, and two modules that hold one: a linear map, an embedding.

    int8      1 byte a weight and one scale for each row, as `weights/int8.py` makes them
    bfloat16  2 bytes a weight; the scales are 1
    float32   the model's own weights; the scales are 1

What is stored is what was rounded; sums are float32, or exact (`row_products.py`).
"""

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.fast.layout import Network, Weights
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

    def times(self, x: Tensor) -> Tensor:
        """`[n, C]` -> `[n, R]`."""
        compiling = torch.compiler.is_compiling()
        # int8 products gain so much that a short prompt, too, is read faster than its matrices are restored
        few = 4 * FEW if self.values.dtype == torch.int8 and not compiling else FEW
        # a compiled step asks before it is compiled
        if x.shape[0] <= few and not x.is_cuda and (compiling or not why_not_loaded()):
            return torch.ops.minimind_edu.row_products(self.values, self.scales, x)
        if self.values.dtype == torch.bfloat16 and multiplies_bfloat16():
            return F.linear(x.to(torch.bfloat16), self.values).float()
        return F.linear(x, self.restored())


def rounded(matrix: Tensor, to: str) -> Rows:
    """The rows of a matrix `[R, C]`."""
    if to == "int8":
        return Rows(*quantize(matrix))
    return Rows(matrix.to(torch.bfloat16), torch.ones(len(matrix), device=matrix.device))


def in_rows(weights: Weights) -> Weights:
    """The same float32 weights, which lie by rows, for the loops. Nothing is copied; experts stay as they are."""

    def rows(matrix: Tensor) -> Tensor:
        # a step takes rows where it takes tensors
        return cast(Tensor, Rows(matrix.t().data, matrix.new_ones(matrix.shape[1])))  # [in, out] -> [out, in]

    layers = [
        layer._replace(
            qkv=rows(layer.qkv), out=rows(layer.out), networks=[Network(*map(rows, each)) for each in layer.networks]
        )
        for layer in weights.layers
    ]
    return weights._replace(layers=layers, output=rows(weights.output))


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for it; without them torch would widen every number."""
    return torch.cpu._is_avx512_bf16_supported()


class RoundedLinear(nn.Module):
    """A linear map without bias, `[..., C]` -> `[..., R]`."""

    def __init__(self, weight: Rows):
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        return self.weight.times(x.flatten(0, -2)).view(*x.shape[:-1], -1)


class RoundedEmbedding(nn.Module):
    """A table with a row for each token: ids `[...]` -> `[..., E]`."""

    def __init__(self, weight: Rows):
        super().__init__()
        self.weight = weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.at(ids).restored()
