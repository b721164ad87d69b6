"""step.wasm is what step.cpp compiles to, small enough for a page."""

import pytest

from minimind_edu.inside.page import STEP
from tools import step_wasm


def test_it_is_what_the_source_compiles_to():
    """Red after a change of step.cpp: `python -m tools.step_wasm` writes it anew."""
    stored, here = STEP.read_bytes(), step_wasm.compiler()
    written_by = stored.rpartition(step_wasm.SECTION)[2].decode()
    if here != written_by:
        pytest.skip(f"step.wasm was written by {written_by}, and here is {here or 'no clang'}: other bytes")
    assert step_wasm.compiled() == stored, "step.cpp has changed: python -m tools.step_wasm"


def test_it_is_small():
    assert STEP.stat().st_size <= 40_000
