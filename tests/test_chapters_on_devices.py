"""Chapters on a machine with a GPU: what measures on `devices_here()` runs there, with nothing left on the CPU.

No GPU is needed: it is pretended, and refuses what a real one would refuse. Of each chapter only those cells run that
the measuring cell needs.
"""

import ast
import json

import pytest
import torch
from pretended_device import pretended
from test_chapters import PATHS, code_cells, load, tags, text

from minimind_edu import MiniMindForCausalLM, machine, timing
from tools.refresh import IGNORED

MEASURING = [
    pytest.param(path, cell["id"], id=f"{path.stem}-{cell['id']}")
    for path in PATHS
    for cell in code_cells(load(path))
    if "devices_here()" in text(cell)
]


def defined(tree: ast.AST) -> set[str]:
    """Names that a cell gives a meaning to."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add((other or name).split(".")[0])
    return names


def used(tree: ast.AST) -> set[str]:
    """Names that a cell takes from those before it."""
    own = defined(tree) | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - own


def needed(path, cell_id: str) -> list[str]:
    """The sources of a cell and of those before it that it stands on, in order."""
    cells = code_cells(load(path))
    [last] = [i for i, cell in enumerate(cells) if cell["id"] == cell_id]
    chosen, wanted = [text(cells[last])], used(ast.parse(text(cells[last])))
    for cell in reversed(cells[1:last]):
        tree = ast.parse(text(cell))
        sets_up = "set_default_dtype" in text(cell)
        if sets_up or (defined(tree) & wanted and IGNORED not in tags(cell)):
            chosen.append(text(cell))
            wanted = (wanted - defined(tree)) | used(tree)
    return chosen[::-1]


@pytest.fixture
def chapter_state():
    """Chapters change PyTorch's defaults for their own process."""
    dtype = torch.get_default_dtype()
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(dtype)
    torch.set_printoptions(profile="default")


@pytest.fixture
def once(monkeypatch):
    """Measure each call once, a small one, and on the GPU alone: here it matters where it runs, not how long."""

    def run_once(calls, device, rounds=25):
        if torch.device(device).type != "cpu":
            for call in calls.values():
                call()
        return dict.fromkeys(calls, 1.0)

    for module in (timing, machine):
        monkeypatch.setattr(module, "best_seconds", run_once)
    generate = MiniMindForCausalLM.generate

    def generate_few(model, ids, new, **options):
        return generate(model, ids, min(new, 4), **options)

    monkeypatch.setattr(MiniMindForCausalLM, "generate", generate_few)
    monkeypatch.setattr(machine, "READ_BYTES", {"cpu": 2**20, "gpu": 2**20})
    monkeypatch.setattr(machine, "SIDE", {"cpu": 16, "gpu": 16})


def test_chapters_measure_on_devices():
    assert MEASURING


def test_every_measurement_of_time_is_one_of_those():
    for path in PATHS:
        for cell in code_cells(load(path)):
            clocks = {"perf_counter", "process_time", "Timer", "monotonic"}
            assert not clocks & set(ast.dump(ast.parse(text(cell))).split("'")), (
                f"{path.stem}: {cell['id']} reads a clock; minimind_edu.timing measures alike on every device"
            )


@pytest.mark.parametrize("path, cell_id", MEASURING)
@pytest.mark.long
def test_a_measuring_cell_runs_on_a_gpu_too(path, cell_id, monkeypatch, capsys, once, chapter_state):
    """On MPS, which refuses what CUDA refuses, and float64 besides."""
    sources = needed(path, cell_id)
    namespace = {"__name__": "__main__"}
    with pretended("mps", monkeypatch) as device:
        for source in sources:
            capsys.readouterr()
            assert device.arrived == 0, "a compared cell computes elsewhere than on the CPU"
            exec(source, namespace)
    assert device.arrived, "nothing was moved to the device"
    shown = capsys.readouterr().out
    assert "mps" in shown
    assert "cpu" in shown or "devices_here()[-1]" in sources[-1], "where it measures on one device it says which"


@pytest.mark.parametrize("path, cell_id", MEASURING)
def test_without_a_gpu_it_shows_the_cpu_alone(path, cell_id):
    [cell] = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["id"] == cell_id]
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
    assert "cpu" in printed
    assert "cuda" not in printed
    assert "mps" not in printed
