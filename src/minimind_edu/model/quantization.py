"""Quantization: weights as whole numbers of few bits, and a scale that restores their size.

    largest = 2^(b-1) - 1,   scale = max |w| / largest,   value = round(w / scale),   w ≈ value * scale

Symmetric round-to-nearest: a weight is off by at most half a scale. The scale serves a whole matrix, one row, or a
group of columns within a row; the fewer weights share it, the less one large weight spoils, and the more bytes go into
scales. bfloat16 is the other kind of rounding: each number keeps an exponent of its own and 8 significant bits, so the
error is a share of the weight itself.

Left out: zero points, and everything that looks at data. Vectors as they pass through decide what gets more bits in
LLM.int8() (Dettmers et al. 2022) and AWQ (Lin et al. 2023), and let GPTQ (Frantar et al. 2022) correct the weights that
are not rounded yet; the k-quants of llama.cpp also round the scales. `weights/int8.py` stores files, `fast/` reads
rounded weights. MiniMind has no such file.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.validation import check_count

BFLOAT16 = "bfloat16"
FEWEST, MOST = 2, 8  # bits: one would leave 0 alone, more than eight do not fit into int8
SCALE_BITS = 32


class Quantized(NamedTuple):
    """A matrix [R, C] as int8 values [R, C] and float32 scales: [1, 1], [R, 1] or [R, C / group]."""

    values: Tensor
    scales: Tensor


@dataclass(frozen=True)
class Grid:
    """How finely, and together with which others, a weight is rounded: `Grid(4, per=32)`.

    Args:
        bits: of a value, from 2 to 8.
        per: which weights share a scale: "tensor", "row", or this many neighboring columns of a row.

    Raises:
        ValueError: for other bits, or a `per` that is none of these.
    """

    bits: int = 8
    per: str | int = "row"

    def __post_init__(self) -> None:
        check_count("bits", self.bits, at_least=FEWEST)
        if self.bits > MOST:
            raise ValueError(f"bits must be at most {MOST}, got {self.bits}: values are kept as int8")
        if isinstance(self.per, str):
            if self.per not in ("tensor", "row"):
                raise ValueError(f"per must be 'tensor', 'row' or a number of columns, got {self.per!r}")
        else:
            check_count("per", self.per)

    @property
    def largest(self) -> int:
        """The largest value; the grid has 2 * largest + 1 levels, with 0 in the middle."""
        return 2 ** (self.bits - 1) - 1

    def num_scales(self, rows: int, columns: int) -> int:
        """How many scales a matrix of this shape needs.

        Raises:
            ValueError: if groups do not fill the row.
        """
        if isinstance(self.per, str):
            return 1 if self.per == "tensor" else rows
        if columns % self.per:
            raise ValueError(f"groups of {self.per} columns must fill the row, but it has {columns}; choose a divisor")
        return rows * columns // self.per

    def __str__(self) -> str:
        shared = f"a {self.per}" if isinstance(self.per, str) else f"{self.per} columns"
        return f"{self.bits} bits, a scale for {shared}"


def quantize(matrix: Tensor, grid: Grid) -> Quantized:
    """The values and scales of a matrix [R, C] of any floating dtype, computed in float32; where all is 0, scale 1.

    Raises:
        ValueError: if it is no matrix of floating-point numbers, one of them is not finite in float32, or groups do not
            fill its rows.
    """
    _check_matrix(matrix)
    rows, columns = matrix.shape
    shape = (1, 1) if grid.per == "tensor" else (rows, grid.num_scales(rows, columns) // rows)
    sharing = matrix.float().reshape(*shape, -1)  # the last axis shares a scale
    scales = sharing.abs().amax(-1) / grid.largest
    scales = scales.masked_fill(scales == 0, 1.0)
    values = (sharing / scales[..., None]).round().clamp(-grid.largest, grid.largest)
    return Quantized(values.view_as(matrix).to(torch.int8), scales)


def dequantize(values: Tensor, scales: Tensor) -> Tensor:
    """The float32 matrix [R, C] that values [R, C] and scales [1, 1] or [R, groups] stand for."""
    sharing = values.float().unflatten(1, (scales.shape[1], -1))  # [R, groups, columns of a group]
    return (sharing * scales[..., None]).flatten(1)


def rounded(matrix: Tensor, to: Grid | str) -> Tensor:
    """A matrix [R, C] rounded to a grid or to "bfloat16", and restored: same dtype and device, other numbers.

    Raises:
        ValueError: as `quantize` does, if a weight is too large for what it is rounded to, or if `to` is neither.
    """
    if isinstance(to, Grid):
        result = dequantize(*quantize(matrix, to)).to(matrix.dtype)
    else:
        _check_named(to)
        _check_matrix(matrix)
        result = matrix.bfloat16().to(matrix.dtype)
    if not bool(result.isfinite().all()):
        raise ValueError(f"rounded to {to}, a weight would be infinite: the largest is {float(matrix.abs().max()):.4g}")
    return result


def bytes_of(rows: int, columns: int, to: Grid | str) -> float:
    """What a matrix of this shape takes when it is stored: its values without gaps, and its scales."""
    if not isinstance(to, Grid):
        _check_named(to)
        return 2.0 * rows * columns
    return (to.bits * rows * columns + SCALE_BITS * to.num_scales(rows, columns)) / 8


def rounded_model(
    model: MiniMindForCausalLM, to: Grid | str, only: Callable[[str], bool] | None = None
) -> MiniMindForCausalLM:
    """A copy of a model whose matrices are rounded and restored. It is as large as before: it shows quality.

    Args:
        model: is left as it is.
        to: a grid, or "bfloat16".
        only: called with a parameter's name, which a tied matrix has once; True rounds it. All matrices by default.
    """
    changed = copy.deepcopy(model)
    for name, matrix in matrices(changed):
        if only is None or only(name):
            matrix.data = rounded(matrix.data, to)
    return changed


def bytes_of_model(model: MiniMindForCausalLM, to: Grid | str) -> float:
    """What all matrices of a model take when they are stored, each counted once."""
    return sum(bytes_of(matrix.shape[0], matrix.shape[1], to) for _, matrix in matrices(model))


def matrices(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Names and parameters of all matrices, a shared one once; the gains of norms are vectors and stay as they are."""
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.dim() == 2]


def _check_matrix(matrix: Tensor) -> None:
    if matrix.dim() != 2 or matrix.numel() == 0 or not matrix.is_floating_point():
        raise ValueError(
            f"only a matrix of floating-point numbers can be rounded, got {matrix.dtype} and the shape "
            f"{list(matrix.shape)}"
        )
    if not bool(matrix.float().isfinite().all()):
        raise ValueError("only a matrix of finite numbers can be rounded; some weight is NaN, or infinite in float32")


def _check_named(to: object) -> None:
    if to != BFLOAT16:
        raise ValueError(f"weights are rounded to a Grid or to {BFLOAT16!r}, got {to!r}")
