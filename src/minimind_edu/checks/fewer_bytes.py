"""Exercises on quantization.

Numbers are chosen so that no value is half-way between two levels, where a last digit would choose the side.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, difference, numbers
from minimind_edu.model import quantization
from minimind_edu.model.quantization import Grid

_ROW = torch.tensor([0.65, -1.4, 0.2, 0.85], dtype=torch.float64)


def _symmetric(row: Tensor, bits: int, largest: int | None = None, size: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Values and scale, with another largest value or another size of the row if given."""
    largest = (1 << bits - 1) - 1 if largest is None else largest
    scale = (row.abs().amax() if size is None else size) / largest
    return (row / scale).round(), scale


def _cut(row: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    _, scale = _symmetric(row, bits)
    return (row / scale).trunc(), scale


check_quantize_row = Exercise(
    "Does `attempt(row, bits)` return whole-number values [C] and the scale of a symmetric grid?",
    answer=_symmetric,
    cases=(
        Case("the row of section 1, 4 bits", (_ROW, 4)),
        Case("its largest weight may be negative or positive", (-_ROW, 4)),
        Case("3 bits: values from -3 to 3", (numbers(20), 3)),
        Case("8 bits, tiny weights", (1e-6 * numbers(50, shift=2.0), 8)),
    ),
    mistakes=(
        Mistake(
            lambda row, bits: _symmetric(row, bits, 2 ** (bits - 1)),
            "your largest value is 2^(bits - 1), which is one too large for this many bits: subtract 1",
        ),
        Mistake(
            lambda row, bits: _symmetric(row, bits, 2**bits - 1),
            "one of the bits is for the sign: values reach 2^(bits - 1) - 1, not 2^bits - 1",
        ),
        Mistake(
            lambda row, bits: _symmetric(row, bits, size=row.amax()),
            "you take the largest weight, and the largest in size may be negative: use abs()",
        ),
        Mistake(
            lambda row, bits: _symmetric(row, bits, size=(row.amax() - row.amin()) / 2),
            "half the distance from the smallest to the largest weight fits only a grid that is not centered at 0",
        ),
        Mistake(_cut, "you cut the digits after the point off: round to the nearest level instead"),
        Mistake(
            lambda row, bits: (_symmetric(row, bits)[0] * _symmetric(row, bits)[1], _symmetric(row, bits)[1]),
            "those are restored weights: return the whole numbers, before they are multiplied by the scale",
        ),
    ),
    parts=("values", "scale"),
)


def _bytes(rows: int, columns: int, bits: int, group: int) -> float:
    return quantization.bytes_of(rows, columns, Grid(bits, group))


check_stored_bytes = Exercise(
    "Does `attempt(rows, columns, bits, group)` give the bytes of a quantized matrix with its float32 scales?",
    answer=_bytes,
    cases=(
        Case("4 bits in groups of 32, a matrix of 512 × 1,408", (512, 1408, 4, 32)),
        Case("8 bits, a group as wide as the row", (6400, 512, 8, 512)),
        Case("3 bits in groups of 8", (5, 24, 3, 8)),
    ),
    mistakes=(
        Mistake(
            lambda rows, columns, bits, group: rows * columns * bits / 8,
            "the scales are missing: four bytes for each group of each row",
        ),
        Mistake(
            lambda rows, columns, bits, group: 8 * _bytes(rows, columns, bits, group),
            "those are bits: eight of them make a byte",
        ),
        Mistake(
            lambda rows, columns, bits, group: rows * columns * bits / 8 + rows * columns // group,
            "you give a scale one byte, but it is a float32 number",
        ),
        Mistake(
            lambda rows, columns, bits, group: rows * columns * bits / 8 + 4 * rows,
            "you count one scale for each row: a row has columns / group of them",
        ),
        Mistake(
            lambda rows, columns, bits, group: rows * columns * bits / 8 + 4 * columns // group,
            "you count the scales of one row: every row has its own",
        ),
        Mistake(
            lambda rows, columns, bits, group: rows * columns + 4 * rows * columns // group,
            "you give every value a whole byte: values of fewer bits are stored without gaps",
        ),
    ),
)


def _whole(*shape: int, shift: float = 0.0) -> Tensor:
    """int8 numbers up to 127 in size, both signs."""
    return (115 * numbers(*shape, shift=shift)).round().clamp(-127, 127).to(torch.int8)


def _product(values: Tensor, scales: Tensor, x: Tensor, x_scale: Tensor) -> Tensor:
    return (values.long() @ x.long()) * scales * x_scale


def _wrapped(dtype: torch.dtype) -> Attempt:
    """The sum kept in a type that is too small for it."""
    return lambda values, scales, x, x_scale: (values.long() @ x.long()).to(dtype) * scales * x_scale


def _products_wrapped(values: Tensor, scales: Tensor, x: Tensor, x_scale: Tensor) -> Tensor:
    return (values * x).sum(-1) * scales * x_scale


def _weights(rows: int, columns: int, shift: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    scales = 0.01 + numbers(rows, shift=shift).abs()
    return _whole(rows, columns, shift=shift), scales, _whole(columns, shift=shift + 1), torch.tensor(0.03).double()


def _same_for_long_rows(attempt: Attempt) -> str | None:
    """Sums that int32 holds and float32 cannot: an exact sum is rounded once, one that adds up in float32 many times.

    In one row both may end at the same number, in 32 they do not.
    """
    values, x = _whole(32, 20_001).abs(), _whole(20_001, shift=1.0).abs()
    exact, scale = (values.long() @ x.long()).double(), torch.ones(32, dtype=torch.float64)
    got = attempt(values, scale, x, scale[0])
    if isinstance(got, list):
        return "return a tensor: a list has no dtype"
    problem = difference(got, exact, rtol=1e-12)
    if problem and torch.equal(torch.as_tensor(got).float(), exact.float()):
        return f"{problem}: your sum was turned into float32, which holds 24 binary digits; let it be, or use float64"
    return problem and f"{problem}: add up in int32, which is exact here; float32 holds 24 binary digits"


check_integer_product = Exercise(
    "Does `attempt(values, scales, x_values, x_scale)` give the product [R] of an int8 matrix and an int8 vector?",
    answer=_product,
    cases=(
        Case("4 rows of 4 columns", _weights(4, 4, 0.0)),
        Case("40 rows of 3", _weights(40, 3, 3.0)),
        Case("rows of 1,408", _weights(7, 1408, 5.0)),
        Property("a sum with more digits than float32 holds", _same_for_long_rows),
    ),
    mistakes=(
        Mistake(
            _products_wrapped,
            "the products were computed in int8, where 100 · 2 is -56: widen the values to int32 first",
        ),
        Mistake(_wrapped(torch.int8), "the sum was kept in int8, and wraps around at 127: use int32"),
        Mistake(_wrapped(torch.int16), "the sum was kept in int16, and wraps around at 32,767: use int32"),
        Mistake(
            lambda values, scales, x, x_scale: (values.long() @ x.long()) * scales,
            "the vector's own scale is missing",
        ),
        Mistake(
            lambda values, scales, x, x_scale: (values.long() @ x.long()) * x_scale,
            "the scales of the rows are missing",
        ),
        Mistake(
            lambda values, scales, x, x_scale: (values.long() @ x.long()) * scales * x_scale**2,
            "the vector's scale belongs to the sum once",
        ),
        Mistake(
            lambda values, scales, x, x_scale: (values.double() * scales).double() @ x.double() * x_scale,
            "your scales run along the columns; each belongs to a row, to one number of the result",
        ),
    ),
)


def _fewest(bound: Callable[[Tensor, int], Tensor]) -> Attempt:
    """The fewest bits whose bound for a matrix is within the limit; 8 if none is."""
    return lambda matrix, limit: next((bits for bits in range(2, 8) if bound(matrix, bits) <= limit), 8)


def _half_scales(matrix: Tensor, bits: int) -> Tensor:
    """Half a scale of each row, [R]."""
    return matrix.abs().amax(1) / (2 ** (bits - 1) - 1) / 2


_UNEVEN = numbers(6, 32) * torch.tensor([[0.1], [1.0], [0.3], [4.0], [0.2], [2.0]], dtype=torch.float64)

check_fewest_bits = Exercise(
    "Does `attempt(matrix, limit)` give the fewest bits, 2 to 8, with a scale per row and no error above the limit?",
    answer=_fewest(lambda matrix, bits: _half_scales(matrix, bits).amax()),
    cases=(
        Case("the row of section 1, at most 0.12", (_ROW[None], 0.12)),
        Case("the same, at most 0.055", (_ROW[None], 0.055)),
        Case("with the signs changed, at most 0.2", (-_ROW[None], 0.2)),
        Case("the row of section 1, at most 0.2", (_ROW[None], 0.2)),
        Case("rows of different sizes, at most 0.1", (_UNEVEN, 0.1)),
        Case("these rows, at most 0.02", (_UNEVEN, 0.02)),
        Case("these rows, at most 1", (_UNEVEN, 1.0)),
        Case("more than eight bits would be needed: eight", (100 * _UNEVEN, 1e-3)),
    ),
    mistakes=(
        Mistake(
            _fewest(lambda matrix, bits: 2 * _half_scales(matrix, bits).amax()),
            "that is a whole scale: the nearest level is never further away than half of one",
        ),
        Mistake(
            _fewest(lambda matrix, bits: _half_scales(matrix, bits).mean()),
            "you took the mean over the rows: the promise must hold for the worst row",
        ),
        Mistake(
            _fewest(lambda matrix, bits: _half_scales(matrix, bits).amin()),
            "you took the row with the smallest weights: the promise must hold for the worst row",
        ),
        Mistake(
            _fewest(lambda matrix, bits: matrix.amax() / (2 ** (bits - 1) - 1) / 2),
            "you take the largest weight, and the largest in size may be negative: use abs()",
        ),
        Mistake(
            _fewest(lambda matrix, bits: matrix.abs().amax() / 2 ** (bits - 1) / 2),
            "your largest value is 2^(bits - 1), which is one too large for this many bits: subtract 1",
        ),
        Mistake(
            _fewest(lambda matrix, bits: (quantization.rounded(matrix, Grid(bits)) - matrix).abs().amax()),
            "you measured the errors of these weights: the bound, half a scale, holds for whatever lies between levels",
        ),
        Mistake(
            _fewest(lambda matrix, bits: matrix.abs().amax() / (2**bits - 1) / 2),
            "one of the bits is for the sign: the largest value is 2^(bits - 1) - 1",
        ),
    ),
)
