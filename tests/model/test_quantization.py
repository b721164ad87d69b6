"""Quantization: a weight is off by at most half a scale, scales serve those they should, bytes are counted whole."""

import dataclasses
from fractions import Fraction

import pytest
import torch
from model_builders import KINDS, tensor, tiny_model, token_ids

from minimind_edu.model.quantization import (
    Grid,
    bytes_of,
    bytes_of_model,
    dequantize,
    matrices,
    quantize,
    rounded,
    rounded_model,
)

GRIDS = [Grid(bits, per) for bits in range(2, 9) for per in ("tensor", "row", 4, 12)]
ROWS, COLUMNS = 10, 24


def spread() -> torch.Tensor:
    """A matrix whose rows and groups differ in size, so that a scale of the wrong one shows."""
    sizes = torch.logspace(-2, 2, ROWS)[:, None] * torch.linspace(1, 3, COLUMNS // 4).repeat_interleave(4)
    return tensor(ROWS, COLUMNS, dtype=torch.float32) * sizes


def by_hand(matrix: torch.Tensor, grid: Grid) -> list[list[tuple[int, float]]]:
    """Value and scale of every weight, one at a time."""
    wide = matrix.tolist()
    columns = grid.per if isinstance(grid.per, int) else {"tensor": None, "row": len(wide[0])}[grid.per]
    result = []
    for row in wide:
        pairs = []
        for place, weight in enumerate(row):
            begin = 0 if columns is None else place // columns * columns
            sharing = sum(wide, []) if columns is None else row[begin : begin + columns]
            scale = max(map(abs, sharing)) / (2 ** (grid.bits - 1) - 1)
            pairs.append((round(Fraction(weight) / Fraction(scale)), scale))  # halves to even, as torch does
        result.append(pairs)
    return result


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_every_value_and_scale_is_the_one_by_hand(grid):
    values, scales = quantize(spread(), grid)
    expected = by_hand(spread(), grid)
    assert values.dtype == torch.int8 and scales.dtype == torch.float32
    assert values.tolist() == [[value for value, _ in row] for row in expected]
    assert scales.numel() == grid.num_scales(ROWS, COLUMNS)
    restored = torch.tensor([[value * scale for value, scale in row] for row in expected])
    torch.testing.assert_close(dequantize(values, scales), restored)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_a_weight_is_off_by_at_most_half_a_scale(grid):
    values, scales = quantize(spread(), grid)
    steps = dequantize(torch.ones_like(values), scales)
    off = (dequantize(values, scales) - spread()).abs() / steps
    assert 0.4 < off.max() <= 0.5 + 1e-4


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_all_levels_are_used_and_none_beyond(grid):
    even = 2 * torch.rand(400, 24, generator=torch.Generator().manual_seed(0)) - 1
    values = quantize(even, grid).values
    assert set(values.unique().tolist()) == set(range(-grid.largest, grid.largest + 1))


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_what_was_rounded_once_stays_as_it_is(grid):
    once = rounded(spread(), grid)
    torch.testing.assert_close(rounded(once, grid), once, rtol=1e-5, atol=0)


def test_one_large_weight_spoils_only_those_that_share_its_scale():
    matrix = torch.full((2, 8), 0.3)
    matrix[0, 0] = 100.0
    survivors = {per: (rounded(matrix, Grid(8, per)) != 0).tolist() for per in ("tensor", "row", 4)}
    assert survivors["tensor"] == [[True] + [False] * 7, [False] * 8]
    assert survivors["row"] == [[True] + [False] * 7, [True] * 8]
    assert survivors[4] == [[True] + [False] * 3 + [True] * 4, [True] * 8]


def test_zeros_stay_zeros_with_a_scale_of_one():
    values, scales = quantize(torch.tensor([[0.0, 0.0, 1.0, 2.0], [0.0] * 4]), Grid(8, 2))
    assert scales[:, 0].tolist() == [1, 1] and values[1].tolist() == [0] * 4
    assert dequantize(values, scales)[0, :2].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_dtype_stays_and_the_rounding_is_that_of_float32(dtype):
    matrix = tensor(4, 6, dtype=dtype)
    for to in (Grid(4), "bfloat16"):
        assert rounded(matrix, to).dtype == dtype
    assert torch.equal(quantize(matrix, Grid(4)).values, quantize(matrix.float(), Grid(4)).values)


def test_bfloat16_is_off_by_a_share_of_the_weight_itself():
    matrix = torch.logspace(-20, 20, 400).view(20, 20)
    off = ((rounded(matrix, "bfloat16") - matrix) / matrix).abs()
    assert 2**-9 * 0.9 < off.max() <= 2**-8, "half a step of 8 significant bits"


def test_a_matrix_may_be_a_view():
    """Columns and slices have other strides than a fresh matrix."""
    matrix = spread()
    for view in (matrix.t()[:, :8], matrix[:, ::2]):
        for per in ("tensor", "row", 4):
            assert torch.equal(rounded(view, Grid(5, per)), rounded(view.contiguous(), Grid(5, per)))


REFUSED_GRIDS = {
    "one bit": ({"bits": 1}, "bits must be a whole number of at least 2, got 1"),
    "nine bits": ({"bits": 9}, "bits must be at most 8, got 9"),
    "half a bit": ({"bits": 2.5}, "bits must be a whole number"),
    "a column": ({"per": "column"}, "per must be 'tensor', 'row' or a number of columns, got 'column'"),
    "no column": ({"per": 0}, "per must be a whole number of at least 1, got 0"),
}


@pytest.mark.parametrize("fields, message", REFUSED_GRIDS.values(), ids=REFUSED_GRIDS)
def test_what_is_no_grid_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Grid(**fields)


REFUSED = {
    "a vector": (torch.ones(3), Grid(), r"the shape \[3\]"),
    "three axes": (torch.ones(2, 3, 4), Grid(), r"the shape \[2, 3, 4\]"),
    "nothing": (torch.ones(0, 3), Grid(), r"the shape \[0, 3\]"),
    "NaN": (torch.tensor([[1.0, float("nan")]]), Grid(), "finite numbers"),
    "infinity": (torch.tensor([[float("inf"), 1.0]]), Grid(), "finite numbers"),
    "infinity in bfloat16": (torch.tensor([[1.0, float("inf")]]), "bfloat16", "finite numbers"),
    "beyond float32": (torch.full((2, 2), 1e300, dtype=torch.float64), Grid(), "infinite in float32"),
    "beyond float32, in bfloat16": (torch.full((2, 2), 1e300, dtype=torch.float64), "bfloat16", "infinite in float32"),
    "beyond bfloat16": (torch.full((2, 2), 3.4e38), "bfloat16", "rounded to bfloat16, .* infinite: .* is 3.4e"),
    "beyond float16, once rounded": (torch.full((2, 2), 65504.0).half(), "bfloat16", "infinite: the largest is 6.55e"),
    "whole numbers": (torch.ones(2, 2, dtype=torch.int64), Grid(), "floating-point numbers .* torch.int64"),
    "whole numbers, in bfloat16": (torch.ones(2, 2, dtype=torch.int8), "bfloat16", "floating-point .* torch.int8"),
    "complex numbers": (torch.ones(2, 2, dtype=torch.complex64), Grid(), "floating-point numbers .* torch.complex64"),
    "a vector in bfloat16": (torch.ones(3), "bfloat16", r"the shape \[3\]"),
    "a group that leaves a rest": (torch.ones(2, 10), Grid(4, 4), "groups of 4 columns must fill the row, .* has 10"),
    "another name": (torch.ones(2, 2), "float8", "to a Grid or to 'bfloat16', got 'float8'"),
}


@pytest.mark.parametrize("matrix, to, message", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_rounded_is_refused(matrix, to, message):
    with pytest.raises(ValueError, match=message):
        rounded(matrix, to)


# Bytes


def test_bytes_count_values_and_scales():
    assert bytes_of(6, 64, Grid(8, "row")) == 6 * 64 + 6 * 4
    assert bytes_of(6, 64, Grid(8, "tensor")) == 6 * 64 + 4
    assert bytes_of(6, 64, Grid(4, 32)) == 6 * 32 + 6 * 2 * 4
    assert bytes_of(6, 64, Grid(3, "row")) == 6 * 24 + 6 * 4
    assert bytes_of(6, 64, "bfloat16") == 6 * 64 * 2
    with pytest.raises(ValueError, match="Grid"):
        bytes_of(6, 64, "int8")


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_as_many_scales_are_made_as_counted(grid):
    assert quantize(spread(), grid).scales.numel() == grid.num_scales(ROWS, COLUMNS)


@pytest.mark.parametrize("tied", [True, False])
def test_a_shared_matrix_is_counted_once(tied):
    model = tiny_model(dtype=torch.float32, tie_word_embeddings=tied)
    table = model.lm_head.weight
    one = bytes_of(len(table), table.shape[1], Grid())
    rest = sum(
        bytes_of(len(parameter), parameter.shape[1], Grid())
        for name, parameter in model.named_parameters()
        if parameter.dim() == 2 and "lm_head" not in name and "embed" not in name
    )
    assert bytes_of_model(model, Grid()) == rest + one * (1 if tied else 2)


# Models


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_rounded_model_has_rounded_matrices_and_the_gains_of_before(kind, tied):
    model = tiny_model(kind, dtype=torch.float32, tie_word_embeddings=tied)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    changed = rounded_model(model, Grid(4))
    assert (changed.lm_head.weight is changed.model.embed_tokens.weight) == tied
    for name, value in changed.state_dict().items():
        assert torch.equal(value, rounded(before[name], Grid(4)) if value.dim() == 2 else before[name]), name
        assert torch.equal(model.state_dict()[name], before[name]), f"{name} of the given model was changed"
    assert changed.config == model.config and changed.training == model.training


def test_only_the_matrices_asked_for_are_rounded():
    model = tiny_model(dtype=torch.float32)
    name = "model.layers.1.mlp.down_proj.weight"
    changed = rounded_model(model, Grid(2), only=lambda one: one == name).state_dict()
    different = [one for one, value in model.state_dict().items() if not torch.equal(value, changed[one])]
    assert different == [name]


def test_names_of_matrices_name_a_tied_one_once():
    names = [name for name, _ in matrices(tiny_model())]
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    assert not [name for name in names if "norm" in name]


def test_fewer_bits_move_the_logits_further():
    model, ids = tiny_model(dtype=torch.float32), token_ids(2, 12)
    with torch.no_grad():
        exact = model(ids).logits
        off = [float((rounded_model(model, Grid(bits))(ids).logits - exact).abs().mean()) for bits in (2, 4, 6, 8)]
    assert off == sorted(off, reverse=True) and off[-1] < off[0] / 20


def test_a_grid_is_a_value():
    assert Grid(4, 32) == Grid(bits=4, per=32) and len({Grid(), Grid(8, "row")}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(Grid(), "bits", 4)  # noqa: B010  type checkers know that it is frozen
    assert (str(Grid(4, 32)), str(Grid())) == ("4 bits, a scale for 32 columns", "8 bits, a scale for a row")
