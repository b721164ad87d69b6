"""Matrices as `step.cpp` reads them, and two modules that hold one: a linear map, an embedding.

    float32   the model's own weights
    bfloat16  2 bytes per weight
    int8      1 byte per weight, and one scale for each row, as `weights/int8.py` makes them
    int4      half a byte per weight, and one scale for 32 columns of a row

Vectors are rounded by `step.cpp`: for int8 to 16 bits, which costs a result about 3e-5 of its size, for int4 to 8 bits.
"""

import ctypes
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.fast.library import library
from minimind_edu.model.quantization import BFLOAT16, Grid, quantize

KINDS = ("float32", BFLOAT16, "int8", "int4")  # in the order of step.cpp
GROUP = 32
NUMBERS: Any = {"dtype": torch.float32, "device": "cpu"}  # what step.cpp reads, whatever torch makes by default
PRECISIONS: dict[str, Grid | str] = {BFLOAT16: BFLOAT16, "int8": Grid(8, "row"), "int4": Grid(4, GROUP)}
# So many vectors are multiplied by step.cpp; for more, restoring the matrices is faster. Measured with and without
# AVX-512: the gain is 1.2 to 1.5 at these lengths and 1 at twice as many, but for int4, which gains 1.2 or more here.
MOST = {BFLOAT16: 64, "int8": 256, "int4": 512}


class Matrix(NamedTuple):
    """A matrix [R, C]. int4 values are `[R / 32, C / 4, 16, 4]`, two in a byte; see `step.cpp`."""

    kind: str
    height: int
    width: int
    values: Tensor
    scales: Tensor | None = None  # int8: [R]; int4: [R / 32, C / 32, 32]

    def words(self) -> list[int]:
        """What step.cpp knows of it. The addresses are good for as long as the tensors are held."""
        scales = 0 if self.scales is None else self.scales.data_ptr()
        return [KINDS.index(self.kind), self.height, self.width, self.values.data_ptr(), scales]

    def restored(self) -> Tensor:
        """The float32 matrix that it stands for, `[R, C]`."""
        return self.rows(torch.arange(self.height, device="cpu"))

    def rows(self, ids: Tensor) -> Tensor:
        """Rows of that matrix: ids `[...]` -> `[..., C]`. Raises an IndexError for one that there is not."""
        rows = ids.long().contiguous()
        if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < self.height:
            raise IndexError(f"there are {self.height} rows, asked for {int(rows.min())} to {int(rows.max())}")
        out = torch.empty(*ids.shape, self.width, **NUMBERS)
        library().restore((ctypes.c_size_t * 5)(*self.words()), rows.data_ptr(), rows.numel(), out.data_ptr())
        return out

    def products(self, x: Tensor) -> Tensor:
        """Float32 vectors times the matrix, by step.cpp, which rounds them: `[..., C]` -> `[..., R]`."""
        vectors = x.contiguous()
        count = vectors.numel() // self.width
        room, out = (torch.empty(*sizes, **NUMBERS) for sizes in ((3 * x.numel(),), (*x.shape[:-1], self.height)))
        words = (ctypes.c_size_t * 5)(*self.words())
        library().multiply(words, vectors.data_ptr(), count, room.data_ptr(), out.data_ptr())
        return out


def rounded(matrix: Tensor, to: str) -> Matrix:
    """A matrix [R, C] of any floating dtype, rounded.

    Raises:
        ValueError: if a weight is not finite, or no longer once it is rounded, or groups do not fill the rows.
    """
    rows, columns = matrix.shape
    grid = PRECISIONS[to]
    if not isinstance(grid, Grid):
        short = matrix.to(torch.bfloat16).contiguous()
        if not bool(short.isfinite().all()):
            raise ValueError(f"only finite numbers can be rounded to {to}, but a weight is NaN or too large")
        return Matrix(to, rows, columns, short)
    if to == "int8":
        values, scales = quantize(matrix, grid)
        return Matrix(to, rows, columns, values.contiguous(), scales[:, 0].contiguous())
    if columns % GROUP:
        raise ValueError(
            f"int4 has a scale for {GROUP} columns, which must fill a row, but one has {columns}; use int8"
        )
    padding = matrix.new_zeros(-rows % GROUP, columns)
    values, scales = quantize(torch.cat([matrix, padding]), grid)
    blocks = scales.view(-1, GROUP, columns // GROUP).transpose(1, 2).contiguous()  # [R/32, C/32, 32]
    return Matrix(to, rows, columns, _in_pairs(values), blocks)


def _in_pairs(values: Tensor) -> Tensor:
    """`[R, C]` from -7 to 7 -> `[R / 32, C / 4, 16, 4]` bytes: + 8, of rows l and l + 16 of 32."""
    rows, columns = values.shape
    tiles = (values.int() + 8).view(rows // GROUP, 2, GROUP // 2, columns // 4, 4)  # block, half, l, fours, column
    pairs = tiles[:, 0] | tiles[:, 1] << 4  # [R / 32, 16, C / 4, 4]
    return pairs.transpose(1, 2).to(torch.uint8).contiguous()


class RoundedLinear(nn.Module):
    """A linear map without bias, `[..., C]` -> `[..., R]`.

    Few vectors are multiplied by step.cpp, as in its step; for many, and for gradients, the matrix is restored.
    (torch's product of bfloat16 was 1.3 to 1.6 times slower for 65 to 512 vectors, by instructions of AVX-512 for it.)
    """

    def __init__(self, weight: Matrix):
        super().__init__()
        self.weight = weight

    def forward(self, x: Tensor) -> Tensor:
        few = 0 < x.numel() <= MOST[self.weight.kind] * self.weight.width
        if few and type(x) is Tensor and x.dtype == torch.float32 and not (_has_gradient(x) or _under_autocast()):
            return self.weight.products(x)
        return F.linear(x, self.weight.restored())


class RoundedEmbedding(nn.Module):
    """A table with a row for each token: ids `[...]` -> `[..., E]`."""

    def __init__(self, weight: Matrix):
        super().__init__()
        self.weight = weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.weight.rows(ids)


def _has_gradient(x: Tensor) -> bool:
    return torch.is_grad_enabled() and x.requires_grad


def _under_autocast() -> bool:
    return torch.is_autocast_enabled("cpu")
