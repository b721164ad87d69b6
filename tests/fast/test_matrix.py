"""Matrices of fewer bytes stand for what `quantization` makes of them, to the last bit."""

import pytest
import torch
from model_builders import tensor

from minimind_edu.fast.matrix import PRECISIONS, RoundedEmbedding, RoundedLinear, rounded
from minimind_edu.model import quantization

pytestmark = pytest.mark.usefixtures("own_step")
every_precision = pytest.mark.parametrize("to", PRECISIONS)


@every_precision
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 32), (31, 96), (64, 64), (70, 160)])
def test_a_matrix_is_restored_to_what_it_was_rounded_to(to, dtype, shape):
    matrix = tensor(*shape, dtype=dtype)
    held = rounded(matrix, to)
    assert (held.height, held.width) == shape
    assert torch.equal(held.restored(), quantization.rounded(matrix.float(), PRECISIONS[to]))


@every_precision
def test_a_slice_of_a_larger_matrix_is_rounded_as_what_it_is(to):
    matrix = tensor(80, 96, dtype=torch.float32)[5:69:2, 32:64]
    assert torch.equal(rounded(matrix, to).restored(), quantization.rounded(matrix.contiguous(), PRECISIONS[to]))


@pytest.mark.parametrize("to, bits", [("bfloat16", 16), ("int8", 8 + 32 / 512), ("int4", 4 + 32 / 32)])
def test_it_takes_as_many_bits_as_it_says(to, bits):
    held = rounded(tensor(64, 512, dtype=torch.float32), to)
    nbytes = sum(it.nbytes for it in (held.values, held.scales) if it is not None)
    assert 8 * nbytes == bits * 64 * 512
    assert all(it.data_ptr() % 32 == 0 for it in (held.values, held.scales) if it is not None), "as step.cpp reads it"


def test_int4_is_the_grid_of_32_columns():
    held = rounded(torch.ones(1, 32).mul(torch.arange(-16, 16)), "int4")
    assert held.restored().unique().tolist() == pytest.approx([-16 + 16 / 7 * i for i in range(15)], abs=1e-5)


@every_precision
def test_the_modules_are_those_of_the_restored_matrix(to):
    matrix, x, ids = tensor(50, 64, dtype=torch.float32), tensor(2, 3, 64, dtype=torch.float32), torch.tensor([[3, 49]])
    held = rounded(matrix, to)
    expected = torch.nn.functional.linear(x, held.restored())
    close = {"bfloat16": 1e-5, "int8": 2e-4, "int4": 2e-2}[to] * expected.abs().max().item()
    torch.testing.assert_close(RoundedLinear(held)(x), expected, rtol=0, atol=close)
    for many in (x.expand(300, *x.shape), x.clone().requires_grad_()):  # restored
        exact = torch.nn.functional.linear(many, held.restored())
        assert torch.equal(RoundedLinear(held)(many), exact) and exact.requires_grad == many.requires_grad
    assert torch.equal(RoundedEmbedding(held)(ids), held.restored()[ids])


@every_precision
def test_a_row_that_there_is_not_is_refused(to):
    table = RoundedEmbedding(rounded(tensor(50, 64, dtype=torch.float32), to))
    for row in (-1, 50):
        with pytest.raises(IndexError, match="there are 50 rows"):
            table(torch.tensor([[3, row]]))


@every_precision
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_not_rounded(to, bad):
    matrix = tensor(50, 64, dtype=torch.float32)
    matrix[3, 4] = bad
    with pytest.raises(ValueError, match="only .*finite numbers can be rounded"):
        rounded(matrix, to)
