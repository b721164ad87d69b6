"""Our own loops against the same products in torch: equal to the last bit where sums are whole numbers."""

import math
import os
import subprocess
import sys
from pathlib import Path

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


def own_products(weights, scales, x, added=None):
    return torch.ops.minimind_edu.row_products(weights, scales, x, added)


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
@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float32])
def test_what_is_to_be_added_is_added(dtype):
    weights, scales, x = operands(9, 20, 3)
    case, added = (weights.to(dtype), scales, x), tensor(9, 3, dtype=torch.float32).t()
    before = added.clone()
    torch.testing.assert_close(own_products(*case, added), own_products(*case) + added)
    assert torch.equal(added, before)


NAN, INF = math.nan, math.inf


@needs_loops
@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("bad", [NAN, INF, -INF, 3e38], ids=str)
def test_what_is_not_finite_is_nowhere_lost(dtype, bad):
    """In x, in a weight, in a scale, in what is added; the sum of sizes of many 3e38 is infinite, too."""
    for place in ("x", "weights", "scales", "added"):
        for column in (0, 1, 18):  # first, within and at the end of what is read at once
            weights, scales, x = operands(7, 19, 3)
            weights, added = weights.to(dtype), torch.zeros(3, 7)
            where = {"x": x[1], "weights": weights[5], "scales": scales, "added": added[1]}[place]
            if place == "weights" and dtype == torch.int8:
                continue
            where[: len(where) if bad == 3e38 else 0] = bad
            where[min(column, len(where) - 1)] = bad
            expected = plain_row_products(weights, scales, x) + added
            result = own_products(weights, scales, x, added)
            assert not bool(expected.isfinite().all()) or bad == 3e38
            lost = result.isfinite() & ~expected.isfinite()
            assert not bool(lost.any()), (place, column)
            same = ~(result.isnan() | expected.isnan() | lost)
            torch.testing.assert_close(result[same], expected[same])


@needs_loops
@pytest.mark.parametrize("dtype", [torch.int8, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("batch, height, width", [(0, 3, 8), (2, 3, 0), (2, 0, 8), (0, 0, 0)])
def test_nothing_to_multiply_gives_zeros(dtype, batch, height, width):
    """The number of vectors and of columns once divided something: that ended the process."""
    weights = torch.ones(height, width, dtype=dtype)
    result = own_products(weights, torch.ones(height), torch.ones(batch, width))
    assert result.shape == (batch, height) and bool(result.eq(0).all())


ROWS_OF_8, SCALES, VECTOR = torch.ones(3, 8, dtype=torch.int8), torch.ones(3), torch.ones(1, 8)
UNFIT = {
    "a longer vector": (ROWS_OF_8, SCALES, torch.ones(1, 9)),
    "a shorter vector": (ROWS_OF_8, SCALES, torch.ones(1, 7)),
    "a vector without a batch": (ROWS_OF_8, SCALES, torch.ones(8)),
    "a stack of rows": (ROWS_OF_8[None], SCALES, VECTOR),
    "a scale for all": (ROWS_OF_8, torch.ones(1), VECTOR),
    "scales as a column": (ROWS_OF_8, SCALES[:, None], VECTOR),
    "rows that are too wide": (torch.ones(1, 2**23, dtype=torch.int8), torch.ones(1), torch.ones(1, 2**23)),
    "scales of float64": (ROWS_OF_8, SCALES.double(), VECTOR),
    "a vector of float64": (ROWS_OF_8, SCALES, VECTOR.double()),
    "a vector of bfloat16": (ROWS_OF_8, SCALES, VECTOR.bfloat16()),
    "a vector of whole numbers": (ROWS_OF_8, SCALES, VECTOR.int()),
    "rows of float64": (ROWS_OF_8.double(), SCALES, VECTOR),
    "rows of float16": (ROWS_OF_8.half(), SCALES, VECTOR),
    "rows of uint8": (ROWS_OF_8.to(torch.uint8), SCALES, VECTOR),
    "another shape to add": (ROWS_OF_8, SCALES, VECTOR, torch.ones(3)),
    "another dtype to add": (ROWS_OF_8, SCALES, VECTOR, torch.ones(1, 3).double()),
    "rows by columns": (torch.ones(8, 3, dtype=torch.int8).t(), SCALES, VECTOR),
    "every second scale": (ROWS_OF_8, torch.ones(6)[::2], VECTOR),
}


@needs_loops
@pytest.mark.parametrize("case", UNFIT.values(), ids=UNFIT)
def test_what_would_be_read_wrongly_is_refused(case):
    with pytest.raises((RuntimeError, NotImplementedError)):
        own_products(*case)


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
    """All weights are -128 and all numbers equal: in 32 bits a larger step would overflow."""
    weights, x = torch.full((5, width), -128, dtype=torch.int8), torch.full((1, width), 3.0)
    expected = torch.full((1, 5), -128 * 3.0 * width)
    torch.testing.assert_close(own_products(weights, torch.ones(5), x), expected, rtol=1e-3, atol=0)
    numbers, _ = rounded_vectors(x)
    assert 0.99 * 2**31 < 128 * numbers.long().sum() < 2**31 or int(numbers.max()) == 32767


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


# Compiling and keeping


load = why_not_loaded.__wrapped__  # which remembers nothing


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A folder in which nothing has been kept yet."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    return tmp_path / "hub" / "minimind_edu"


def test_without_a_compiler_it_is_told_what_to_install(kept, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert load() == f"FileNotFoundError, no C++ compiler is found; {row_products.INSTALL}"
    monkeypatch.setenv("CXX", "my-compiler -O1")
    assert load().startswith("FileNotFoundError, no C++ compiler is found as my-compiler; ")


def compiler(path, says, status):
    """A compiler that knows its macros and compiles nothing."""
    path.write_text(f"#!/bin/sh\ncase \"$*\" in *-dM*) echo '#define X'; exit 0;; esac\n{says}\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_a_compiler_that_fails_is_told_with_what_it_said_and_nothing_is_kept(kept, monkeypatch, tmp_path):
    says = "echo 'x.cpp:1: fatal error: no such header' >&2; echo >&2; printf 'more\\377\\nand\\nmore\\n' >&2"
    monkeypatch.setenv("CXX", compiler(tmp_path / "says", says, 3))
    assert load() == (
        "CalledProcessError, x.cpp:1: fatal error: no such header more\ufffd and; " + row_products.INSTALL
    )
    monkeypatch.setenv("CXX", compiler(tmp_path / "silent", "", 3))
    assert "exit status 3" in load()
    monkeypatch.setenv("CXX", compiler(tmp_path / "lazy", "", 0))
    assert load().startswith("OSError, ") and not list(kept.iterdir())


def test_an_error_without_words_has_a_sentence_too():
    assert row_products.in_words(RuntimeError()) == "RuntimeError, no message"
    assert row_products.in_words(RuntimeError("\n")) == "RuntimeError, no message"


def test_compiled_once_and_again_only_for_another_source_or_processor(kept, monkeypatch):
    ran, loaded, instructions = [], [], []

    def watched(command):
        ran.append(command)
        if "-o" in command:
            Path(command[-1]).write_text("a library")
        return instructions[-1]

    monkeypatch.setattr(row_products, "_run", watched)
    monkeypatch.setattr(torch.ops, "load_library", loaded.append)
    for macros in ("#define __AVX2__ 1", "#define __AVX2__ 1", "#define __AVX512F__ 1"):
        instructions.append(macros)
        row_products._load()
    assert sum("-o" in command for command in ran) == 2 == len(list(kept.iterdir()))
    assert loaded[1] in map(str, kept.iterdir())
    Path(loaded[1]).write_text("a lib")
    instructions.append("#define __AVX2__ 1")
    row_products._load()
    assert loaded[1] not in loaded[2:], "one that was cut off is compiled anew"
    assert len(list(kept.iterdir())) == 2 and Path(loaded[1]).read_text() == "a library"


def test_apples_compiler_is_not_asked_for_openmp():
    assert "-fopenmp" in row_products.flags("linux") and "-fopenmp" not in row_products.flags("darwin")
    assert len(row_products.flags("linux")) == len(row_products.flags("darwin")) + 1


PROGRAM = """
import torch
from minimind_edu.fast.row_products import why_not_loaded
print(why_not_loaded() or torch.ops.minimind_edu.row_products(torch.ones(3, 8), torch.ones(3), torch.ones(1, 8)).sum())
"""


def loading(home, **environment):
    """A process that loads the loops and multiplies; in this one they are loaded already."""
    environment = {**os.environ, "TORCH_HOME": str(home), **environment}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)


def multiplies(process):
    return (process.communicate()[0].strip(), process.returncode) == ("tensor(24.)", 0)


@needs_loops
@pytest.mark.long
def test_what_is_kept_disturbs_nobody(kept, tmp_path):
    """Two processes that compile at once, files that were cut off (which end a process that loads them), no folder."""
    assert multiplies(loading(tmp_path))
    [library] = kept.iterdir()
    whole = library.read_bytes()
    (tmp_path / "whole").write_bytes(whole)
    library.unlink()
    copies = tmp_path / "copies"  # a compiler that need not compile: it takes a second, in which the other one begins
    copies.write_text(
        f'#!/bin/sh\ncase "$*" in *-dM*) exec {row_products.cpp_compiler()[0]} "$@";; esac\n'
        f"sleep 1; for last; do :; done; exec cp {tmp_path}/whole $last\n"
    )
    copies.chmod(0o755)
    for process in [loading(tmp_path, CXX=str(copies)) for _ in range(2)]:
        assert multiplies(process)
    for spoiled in (whole[: len(whole) // 2], b"", b"junk"):
        library.write_bytes(spoiled)
        assert multiplies(loading(tmp_path, CXX=str(copies)))
        assert list(kept.iterdir()) == [library] and library.read_bytes() == whole
    assert multiplies(loading(tmp_path / "whole", CXX=str(copies))), "where nothing can be kept"
