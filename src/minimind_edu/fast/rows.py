"""Matrices whose rows take fewer bytes than float32, and the two modules that hold one: a linear map, an embedding.

    int8      1 byte a weight and one scale for each row, as `weights/int8.py` makes them
    bfloat16  2 bytes a weight; its scales are 1

What is rounded is what is stored. Sums are float32 (or exact, see `row_products.py`).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.weights.int8 import quantize

PRECISIONS = {"int8": torch.int8, "bfloat16": torch.bfloat16}
FEW = 8  # so many vectors are multiplied row by row; for more the matrix is restored, and multiplied as a whole


class Rows(NamedTuple):
    """One matrix, or several of the same shape."""

    values: Tensor  # [..., R, C], int8 or bfloat16
    scales: Tensor  # [..., R], float32
    compiled: bool  # whether row_products is there to multiply them

    def restored(self) -> Tensor:
        """The float32 matrix that they stand for."""
        return self.values.float() * self.scales[..., None]

    def times(self, x: Tensor) -> Tensor:
        """`[B, 1, C]` -> `[B, 1, R]`, for few vectors."""
        if self.compiled:
            return torch.ops.minimind_edu.row_products(self.values, self.scales, x[:, 0])[:, None]
        if len(x) > 1 or x.is_cuda:
            return F.linear(x, self.values.to(x.dtype)) * self.scales
        quarters = [(part.float() * x).sum(-1) for part in self.values.chunk(4)]  # [R/4, C] * [1, 1, C]
        return torch.cat(quarters, -1)[:, None] * self.scales  # 4 x [1, R/4] -> [1, 1, R]


def rounded(matrix: Tensor, to: str, compiled: bool) -> Rows:
    """The rows of a matrix `[R, C]`."""
    if to == "int8":
        return Rows(*quantize(matrix), compiled)
    return Rows(matrix.to(torch.bfloat16).contiguous(), matrix.new_ones(len(matrix), dtype=torch.float32), compiled)


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for it; without them torch widens every number first."""
    return torch.cpu._is_avx512_bf16_supported()


class RoundedLinear(nn.Module):
    """A linear map without bias, `[..., C]` -> `[..., R]`."""

    def __init__(self, weight: Rows):
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        vectors = x.flatten(0, -2)  # [..., C] -> [n, C]
        if self.weight.compiled and len(vectors) <= FEW:
            return self.weight.times(vectors[:, None]).view(*x.shape[:-1], -1)
        values = self.weight.values
        if values.dtype == torch.bfloat16 and multiplies_bfloat16():
            return F.linear(x.to(torch.bfloat16), values).float()
        return F.linear(x, self.weight.restored())


class RoundedEmbedding(nn.Module):
    """A table with a row for each token: ids `[B, S]` -> `[B, S, E]`."""

    def __init__(self, weight: Rows):
        super().__init__()
        self.weight = weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.values[ids].float() * self.weight.scales[ids][..., None]
