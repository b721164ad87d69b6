"""checks.fewer_bytes: right answers in other words pass, and what overflows is told so."""

import torch
from judged_answers import judged

from minimind_edu import checks
from minimind_edu.model.quantization import Grid, bytes_of, rounded


def row_with_python(row, bits):
    scale = max(abs(weight) for weight in row.tolist()) / (2 ** (bits - 1) - 1)
    return torch.tensor([round(weight / scale) for weight in row.tolist()]), scale


def row_as_integers(row, bits):
    largest = (1 << bits - 1) - 1
    scale = torch.linalg.vector_norm(row, torch.inf) / largest
    return torch.round(row / scale).to(torch.int8), scale


def bytes_per_group(rows, columns, bits, group):
    return rows * (columns // group) * (group * bits / 8 + 4)


def product_in_int32(values, scales, x, x_scale):
    return (values.int() * x.int()).sum(-1) * (scales * x_scale)


def product_in_float64(values, scales, x, x_scale):
    """Every whole number that can occur here is exact in it."""
    return values.double() @ x.double() * scales * x_scale


def bits_from_above(matrix, limit):
    bits = 8
    while bits > 2 and all(float(row.abs().max()) / (2 ** (bits - 2) - 1) / 2 <= limit for row in matrix):
        bits -= 1
    return bits


RIGHT = [
    (checks.check_quantize_row, row_with_python),
    (checks.check_quantize_row, row_as_integers),
    (checks.check_stored_bytes, bytes_per_group),
    (checks.check_stored_bytes, lambda rows, columns, bits, group: bytes_of(rows, columns, Grid(bits, group))),
    (checks.check_integer_product, product_in_int32),
    (checks.check_integer_product, product_in_float64),
    (checks.check_fewest_bits, bits_from_above),
]


def product_cast_in_the_end(*given):
    return product_in_float64(*given).float()


def product_cast_before_the_scales(values, scales, x, x_scale):
    """The sum is exact, and rounded only then: the scales make float64 of it again."""
    return (values.double() @ x.double()).float() * scales * x_scale


def product_in_float32(values, scales, x, x_scale):
    return (values.float() @ x.float()).double() * scales * x_scale


def product_summed_in_float32(values, scales, x, x_scale):
    return (values.float() * x.float()).sum(-1).double() * scales * x_scale


def bits_by_measuring(matrix, limit):
    return next((bits for bits in range(2, 8) if (rounded(matrix, Grid(bits)) - matrix).abs().max() <= limit), 8)


def bits_with_a_level_too_many(matrix, limit):
    return next((bits for bits in range(2, 8) if matrix.abs().max() / 2 ** (bits - 1) / 2 <= limit), 8)


WRONG = [
    (checks.check_integer_product, product_in_float32, "add up in int32"),
    (checks.check_integer_product, product_cast_in_the_end, "your sum was turned into float32"),
    (checks.check_integer_product, product_cast_before_the_scales, "your sum was turned into float32"),
    (checks.check_integer_product, product_summed_in_float32, "add up in int32"),
    (checks.check_integer_product, lambda *given: product_summed_in_float32(*given).float(), "add up in int32"),
    (checks.check_integer_product, lambda v, s, x, y: (v * x).sum(-1) * s * y, "computed in int8"),
    (checks.check_quantize_row, lambda row, bits: row, "return 2 tensors (values, scale)"),
    (checks.check_stored_bytes, lambda rows, columns, bits, group: rows * columns * bits / 8, "scales are missing"),
    (checks.check_fewest_bits, lambda matrix, limit: 8, "it is 8, expected"),
    (checks.check_fewest_bits, bits_by_measuring, "you measured the errors"),
    (checks.check_fewest_bits, bits_with_a_level_too_many, "one too large"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)
