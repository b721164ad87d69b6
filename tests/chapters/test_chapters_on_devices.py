"""Chapters on a machine with a GPU: each computes on the device that it picks, and measures alike on every device.

What a GPU would refuse shows `pytest --nbval --pretend cuda`, which runs all of them.
"""

import ast
import json
import re

import pytest
from test_chapters import PATHS, code_cells, load, tags, text

from tools.refresh import IGNORED

MEASURING = [
    pytest.param(path, cell["id"], id=f"{path.stem}-{cell['id']}")
    for path in PATHS
    for cell in code_cells(load(path))
    if "devices_here()" in text(cell)
]


def test_chapters_measure_on_devices():
    assert MEASURING


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_chapter_picks_its_device_first_and_what_it_draws_and_trains_goes_there(path):
    """Numbers are drawn on the CPU, so they are the same everywhere."""
    first, *cells = [text(cell) for cell in code_cells(load(path))[1:]]
    assert re.search(r"^device = pick_device\((torch\.float64)?\)", first, re.MULTILINE)
    assert ".to(device)" in "".join(cells) or "device=device" in "".join(cells)
    for cell in cells:
        assert not re.search(r"^\s*(?:for )?device\b(?: =| in)", cell, re.MULTILINE), "the device is picked once"
        assert not re.search(r"torch\.rand\w*\([^\n]*device=", cell), "draw on the CPU, then move"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_whoever_says_cpu_says_why_in_a_comment(path):
    for cell in code_cells(load(path)):
        if '"cpu"' in text(cell):
            assert re.search(r"#.*(CPU|GPU)", text(cell)), cell["id"]


def test_every_measurement_of_time_is_one_of_the_package():
    for path in PATHS:
        for cell in code_cells(load(path))[1:]:  # the first one installs the package
            clocks = {"perf_counter", "process_time", "Timer", "monotonic"}
            assert not clocks & set(ast.dump(ast.parse(text(cell))).split("'")), (
                f"{path.stem}: {cell['id']} reads a clock; minimind_edu.measure.timing measures alike on every device"
            )


@pytest.mark.parametrize("path, cell_id", MEASURING)
def test_without_a_gpu_it_shows_the_cpu_alone(path, cell_id):
    [cell] = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["id"] == cell_id]
    assert IGNORED in tags(cell), "no device has its name in a compared output"
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
    assert "cpu" in printed
    assert "cuda" not in printed
    assert "mps" not in printed
