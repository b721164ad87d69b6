"""What counts as the same print: words exactly, whole numbers exactly, decimals to one unit of their last place."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.notebook_environment import ENVIRONMENT
from tools.printed import settled, settled_outputs

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    "stored, computed",
    [
        ("loss 0.4931", "loss 0.4932"),
        ("loss 0.4931", "loss 0.4930"),
        ("9.99", "10.00"),
        ("  9.99 s", " 10.00 s"),  # a column gives way
        ("a  0.50   b", "a -0.50 b".replace("-0.50", "0.49")),
        ("tensor([0.0000, 0.5000])", "tensor([-0.0000,  0.5001])"),  # torch pads all of them for one minus sign
        ("tensor([[1., 2.],\n        [3., 4.]])", "tensor([[1.0000, 2.0000],\n        [3.0001, 4.0000]])"),
        ("[0.25, 0.5, 1e-05]", "[0.25, 0.4, 1e-05]"),
        ("6,283.2 positions", "6,283.3 positions"),
        ("999.9", "1,000.0"),
        ("1,999,999.9", "2,000,000.0"),
        ("61.0 %, 39.0%", "61.1 %, 38.9%"),
        ("−0.5", "−0.6"),
        ("+0.01", "-0.00"),
        ("1.2e-07", "1.3e-07"),
        ("1.0e-07", "9.9e-08"),
        ("9.99e+02x", "1.00e+03x"),
        ("0.1-0.2", "0.1-0.3"),
        ("≈58.1", "≈61.0"),
        ("≈61 % of 8", "≈51 % of 8"),
        ("≈ -1,200", "≈ -1,001"),
        ("≈0.03", "≈0.02"),
        ("≈1e-07", "≈2e-07"),
        ("≈3 of them", "≈4 of them"),
    ],
)
def test_these_are_the_same(stored, computed):
    assert settled(computed, stored) == stored
    assert settled(stored, computed) == computed


@pytest.mark.parametrize(
    "stored, computed",
    [
        ("loss 0.4931", "loss 0.4933"),
        ("loss 0.4931", "cost 0.4931"),
        ("loss 0.4931", "loss 0.493"),
        ("loss 0.49", "loss 0.49 nats"),
        ("12 heads", "13 heads"),
        ("12 heads", " 12 heads"),
        ("1,024", "1,025"),
        ("61 %", "60 %"),
        ("1e-05", "2e-05"),
        ("1.2e-07", "1.4e-07"),
        ("1.2e-07", "1.2e-06"),
        ("1.0e-07", "9.8e-08"),
        ("0.5", "5.0e-01"),
        ("0.5", "-0.5"),
        ("−0.5", "-0.5"),
        ("6,283.2", "6283.2"),
        ("6,283.2", "6,293.2"),
        ("tensor([1., 2.])", "tensor([1., 3.])"),
        ("tensor([1., 2.])", "tensor([1.0000, 2.0002])"),
        ("it ends at 5.", "it ends at 6."),
        ("nan", "0.0"),
        ("-inf", "inf"),
        ("True", "False"),
        ("torch 2.13.0", "torch 2.14.0"),
        ("v1.5", "v1.6"),
        ("layer.0.weight", "layer.1.weight"),
        ("≈58.1", "≈40.0"),
        ("≈58.1", "58.1"),
        ("≈12 of 12", "≈12 of 11"),
        ("≈3", "≈5"),
        ("a 0.5 b", "a  b 0.5"),
        ("0.5", "0.5\n"),
    ],
)
def test_these_are_not(stored, computed):
    assert settled(computed, stored) != stored
    assert settled(stored, computed) != computed


@pytest.mark.parametrize(
    "stored, computed",
    [
        ("tensor([1., 2.])", "tensor([1., 2.], device='cuda:0')"),
        ("tensor(0.1500, grad_fn=<X>)", "tensor(0.1501, device='mps:0', grad_fn=<X>)"),
        ("tensor([[1],\n        [2]])", "tensor([[1],\n        [2]],\n       device='cuda:0')"),
    ],
)
def test_a_gpu_says_so_behind_a_tensor_and_that_is_left_out(stored, computed):
    assert settled(computed, stored) == stored
    assert settled(computed.replace("1", "7"), stored) != stored
    assert settled("x on device='cuda:0'", "x") != "x"


def test_a_difference_shows_what_is_wrong_and_nothing_else():
    stored = "step 1 0.4931 ≈58.1\nstep 2 0.3000 12\nsum 0.7931"
    computed = "step 1 0.4932 ≈61.0\nstep 2 0.3005 12\ntotal 0.7932"
    assert settled(computed, stored) == "step 1 0.4931 ≈58.1\nstep 2 0.3005 12\ntotal 0.7932"


def picture(path: str, word: str = "loss", width: str = "2"):
    svg = f'<svg viewBox="0 0 50 20"><path d="{path}" style="stroke: #7d7873; stroke-width: {width}" />{word}</svg>'
    return [new_output("display_data", {"image/svg+xml": svg, "text/plain": "Picture: 0.51"})]


@pytest.mark.parametrize(
    "computed, same",
    [
        (picture("M1 2L3.02 2.01L3 4.5z"), True),
        (picture("M1 2H3V4.51z"), True),
        (picture("M1 2H3V4.6z"), False),
        (picture("M1 2H3V4.5L1 2z"), False),
        (picture("M1 2H3V4.5z", word="cost"), False),
        (picture("M1 2H3V4.5z", width="3"), False),
    ],
)
def test_a_picture_is_the_same_if_nothing_in_it_moved_that_one_can_see(computed, same):
    stored = picture("M1 2H3V4.5z")
    assert (settled_outputs(computed, stored) == stored) is same


def test_all_that_a_cell_shows_is_settled_in_its_place():
    stored = [
        new_output("stream", text="loss 0.50\n"),
        new_output("execute_result", {"text/plain": "0.25", "text/html": "<td>0.7</td>", "application/json": {"a": 1}}),
    ]
    computed = [
        new_output("stream", text="loss 0.51\n"),
        new_output("execute_result", {"text/plain": "0.24", "text/html": "<td>0.6</td>", "application/json": {"a": 2}}),
    ]
    first, second = settled_outputs(computed, stored)
    assert first["text"] == "loss 0.50\n"
    assert second["data"] == {"text/plain": "0.25", "text/html": "<td>0.7</td>", "application/json": {"a": 2}}
    assert computed[0].text == "loss 0.51\n", "what was computed is left as it was"
    assert settled_outputs(computed[:1], stored) == computed[:1]


@pytest.mark.long
def test_nbval_compares_so_and_its_diff_shows_what_is_wrong_alone(pytester, request, monkeypatch):
    """In a run of its own, with the conftest of this project."""
    cells = [
        new_code_cell("print('loss', 0.4932); print('heads', 12)", execution_count=1),
        new_code_cell("print('loss', 0.4932); print('heads', 12)", execution_count=2),
    ]
    cells[0].outputs = [new_output("stream", text="loss 0.4931\nheads 12\n")]
    cells[1].outputs = [new_output("stream", text="loss 0.4931\nheads 13\n")]
    nbformat.write(new_notebook(cells=cells), pytester.path / "chapter.ipynb")
    root = request.config.rootpath
    pytester.makeconftest((root / "conftest.py").read_text(encoding="utf-8"))
    for name, value in ({"PYTHONPATH": str(root)} | ENVIRONMENT).items():
        monkeypatch.setenv(name, value)
    result = pytester.runpytest_subprocess("--nbval", "-n", "0", "chapter.ipynb", "--color=no")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*heads 13*", "*heads 12*"])
    result.stdout.no_fnmatch_line("*loss 0.4931\\n*0.4932*")
    shown = result.stdout.str().partition("Traceback:")[2].partition("short test summary")[0]  # which repeats the cell
    assert "0.4932" not in shown
