"""Our own loops against the same products in torch: equal to the last bit where sums are whole numbers."""

import subprocess

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, tensor

from minimind_edu.fast import row_products
from minimind_edu.fast.row_products import plain_row_products, rounded_vectors, why_not_loaded

needs_loops = pytest.mark.usefixtures("own_loops")


def operands(height, width, batch, seed=0):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randint(-127, 128, (height, width), dtype=torch.int8, generator=generator)
    scales = torch.rand(height, generator=generator) + 0.01
    return weights, scales, tensor(batch, width, seed=seed, dtype=torch.float32)


def own_products(weights, scales, x):
    return torch.ops.minimind_edu.row_products(weights, scales, x)


@needs_loops
@PROPERTY
@given(height=st.integers(1, 70), width=st.integers(1, 150), batch=st.integers(1, 5), seed=st.integers(0, 99))
def test_int8_products_are_the_plain_ones_to_the_last_bit(height, width, batch, seed):
    case = operands(height, width, batch, seed)
    assert torch.equal(own_products(*case), plain_row_products(*case))


@needs_loops
@PROPERTY
@given(height=st.integers(1, 70), width=st.integers(1, 150), batch=st.integers(1, 5), seed=st.integers(0, 99))
def test_products_in_float32_are_the_plain_ones(height, width, batch, seed):
    _, scales, x = operands(height, width, batch, seed)
    for dtype in (torch.bfloat16, torch.float32):
        weights = tensor(height, width, seed=seed).to(dtype)
        torch.testing.assert_close(own_products(weights, scales, x), plain_row_products(weights, scales, x))


@needs_loops
def test_what_does_not_lie_by_rows_is_refused():
    weights, scales, x = operands(6, 4, 1)
    with pytest.raises(RuntimeError, match="in the order of memory"):
        own_products(weights.t().contiguous().t(), scales, x)


@needs_loops
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same(threads):
    """Sizes for which every thread gets rows, and the last quarter is shorter than the others."""
    case, before = operands(1021, 300, 3), torch.get_num_threads()
    expected = plain_row_products(*case)
    torch.set_num_threads(threads)
    try:
        assert torch.equal(own_products(*case), expected)
    finally:
        torch.set_num_threads(before)


@needs_loops
@pytest.mark.parametrize("width", [512, 4096, 30_000])
def test_the_largest_sum_there_can_be_has_room(width):
    """All weights are 127 and all numbers equal: in 32 bits a larger step would overflow."""
    weights, x = torch.full((5, width), 127, dtype=torch.int8), torch.full((1, width), 3.0)
    expected = torch.full((1, 5), 127 * 3.0 * width)
    torch.testing.assert_close(own_products(weights, torch.ones(5), x), expected, rtol=1e-3, atol=0)
    numbers, _ = rounded_vectors(x)
    assert 0.99 * 2**31 < 127 * numbers.long().sum() < 2**31 or int(numbers.max()) == 32767


def test_a_vector_is_off_by_at_most_half_a_step():
    x = tensor(6, 200, dtype=torch.float32) * torch.logspace(-9, 9, 6)[:, None]
    numbers, steps = rounded_vectors(x)
    off = (numbers * steps[:, None] - x).abs() / steps[:, None]
    assert 0.45 < off.max() <= 0.51
    assert numbers.abs().amax(1).tolist() == [32767] * 6, "all 16 bits are used"


def test_rounding_the_vector_costs_far_less_than_rounding_the_weights():
    weights, scales, x = operands(64, 512, 8)
    exact = x.double() @ (weights.double() * scales[:, None].double()).t()
    off = (plain_row_products(weights, scales, x) - exact).abs().max() / exact.abs().max()
    assert off < 5e-5
    steps = x.abs().amax(1, keepdim=True) / 127  # what 8 bits would cost
    coarse = ((x / steps).round() * steps).double() @ (weights.double() * scales[:, None].double()).t()
    assert (coarse - exact).abs().max() / exact.abs().max() > 50 * off


@needs_loops
def test_a_vector_of_zeros_gives_zeros():
    weights, scales, _ = operands(9, 16, 1)
    assert own_products(weights, scales, torch.zeros(2, 16)).tolist() == [[0.0] * 9] * 2


@needs_loops
def test_a_slice_of_a_larger_tensor_is_read_as_what_it_is():
    weights, scales, x = operands(12, 20, 6)
    assert torch.equal(
        own_products(weights[4:9], scales[4:9], x[::2]), plain_row_products(weights, scales, x)[::2, 4:9]
    )


@needs_loops
def test_torch_compile_keeps_them_in_one_graph():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(it) for it in operands(7, 5, 3)]
        assert own_products(*fake).shape == (3, 7)


# Where there is no compiler


load = why_not_loaded.__wrapped__  # which remembers nothing


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A folder in which nothing has been compiled yet."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_a_missing_compiler_is_told(fresh, monkeypatch):
    def missing():
        raise RuntimeError("no C++ compiler\nand more")

    monkeypatch.setattr("torch._inductor.cpp_builder.get_cpp_compiler", missing)
    assert load() == "RuntimeError, no C++ compiler"


def test_a_compiler_that_fails_is_told_and_leaves_no_library(fresh, monkeypatch):
    monkeypatch.setattr(row_products, "FLAGS", ("--no-such-flag",))
    assert load().startswith("CalledProcessError, ")
    assert not list(fresh.glob("*.so"))


@needs_loops
def test_compiled_once_and_again_only_for_another_source_or_processor(fresh, monkeypatch):
    ran, instructions = [], []

    def watched(command, **_):
        ran.append(command)
        if "-o" in command:
            open(command[-1], "w").close()
        return subprocess.CompletedProcess(command, 0, stdout=instructions[-1])

    monkeypatch.setattr(subprocess, "run", watched)
    paths = set()
    for macros in (b"#define __AVX2__ 1", b"#define __AVX2__ 1", b"#define __AVX512F__ 1"):
        instructions.append(macros)
        paths.add(row_products._library())
    assert len(paths) == 2 == sum("-o" in command for command in ran)
