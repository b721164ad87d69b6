"""The form in which `refresh` stores a chapter."""

import json

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import install_cell, refresh
from tools.notebook_environment import ENVIRONMENT
from tools.refresh import IGNORED, RefreshError, canonical, dumps, keep_last_digits, keep_measurements

TABLE = "text/html"


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def code(source, outputs=(), name="cell", **metadata):
    return new_code_cell(source, id=name, outputs=list(outputs), metadata=metadata)


def stored(*cells):
    """The cells as `refresh` would store them."""
    return json.loads(dumps(canonical(new_notebook(cells=list(cells)))))["cells"]


def write_notebook(path, *cells):
    nbformat.write(new_notebook(cells=[new_markdown_cell("# Title", id="title"), *cells]), path)
    return path


def test_neighbouring_streams_are_joined_and_others_keep_their_place():
    outputs = [stream("a\n"), stream("b\n"), stream("c\n", "stderr"), stream("d\n")]
    [cell] = stored(code("x", outputs))
    assert [(output["name"], output["text"]) for output in cell["outputs"]] == [
        ("stdout", ["a\n", "b\n"]),
        ("stderr", ["c\n"]),
        ("stdout", ["d\n"]),
    ]


def test_widget_views_and_editors_litter_are_dropped():
    output = new_output("display_data", data={refresh.WIDGET_VIEW: {"model_id": "1f"}, TABLE: "<p>"})
    litter = {"execution": {"iopub.status.busy": "2026"}, "collapsed": True, "id": "colab", "tags": ["hide-input"]}
    [cell] = stored(code("x", [output], **litter))
    assert cell["metadata"] == {"tags": ["hide-input"]}
    assert list(cell["outputs"][0]["data"]) == [TABLE]


def test_counts_start_at_one_and_results_carry_their_cells_count():
    result = new_output("execute_result", data={"text/plain": "2"}, execution_count=41)
    cells = stored(code("first"), new_markdown_cell("words"), code("second", [result], name="second"))
    assert [cell.get("execution_count") for cell in cells] == [1, None, 2]
    assert cells[2]["outputs"][0]["execution_count"] == 2


def test_notebook_metadata_is_fixed():
    """But for what the book needs to know of a chapter."""
    notebook = new_notebook(metadata={"widgets": {"state": {}}, "colab": {}})
    assert canonical(notebook).metadata == refresh.NOTEBOOK_METADATA
    notebook.metadata["minimind"] = {"place": "norm"}
    assert canonical(notebook).metadata == refresh.NOTEBOOK_METADATA | {"minimind": {"place": "norm"}}


def test_a_folded_cell_says_what_it_folds():
    [folded, plain] = stored(
        code("# @title Solution\nx", tags=["hide-cell"]), code("# @title Solution\nx", name="plain")
    )
    assert folded["metadata"]["mystnb"]["code_prompt_show"] == "Solution"
    assert plain["metadata"] == {}


def test_the_form_is_a_fixed_point(tmp_path):
    path = tmp_path / "01_chapter.ipynb"
    write_notebook(path, code("print('é')", [stream("é\n")]))
    path.write_text(dumps(canonical(refresh.read(path))), encoding="utf-8")
    once = path.read_text(encoding="utf-8")
    assert dumps(canonical(refresh.read(path))) == once
    assert "é" in once and once.endswith("}\n") and not once.endswith("\n\n")


def test_cells_without_an_id_get_one_from_their_text(tmp_path):
    path = write_notebook(tmp_path / "01_chapter.ipynb", code("x = 1"), code("x = 1", name="other"))
    raw = json.loads(path.read_text())
    for cell in raw["cells"]:
        del cell["id"]
    path.write_text(json.dumps(raw))
    assert [cell.id for cell in refresh.read(path).cells] == ["title", install_cell.CELL_ID, "x-1", "x-1-2"]


def test_a_second_cell_of_the_same_id_gets_one_of_its_own():
    raw = {"cells": [{"id": "same", "source": ["A b"]}, {"id": "same", "source": ["A b"]}]}
    refresh.give_ids(raw)
    assert [cell["id"] for cell in raw["cells"]] == ["same", "a-b"]


def test_the_install_cell_is_the_first_code_cell_once(tmp_path):
    old = new_code_cell("something older", id=install_cell.CELL_ID)
    path = write_notebook(tmp_path / "01_chapter.ipynb", code("x = 1"), old)
    cells = refresh.read(path).cells
    assert [cell.id for cell in cells] == ["title", install_cell.CELL_ID, "cell"]
    assert cells[1].source == install_cell.source()


def measured(source, text, fingerprint=None):
    metadata = {"tags": [IGNORED]} | ({"measured": fingerprint} if fingerprint else {})
    return code(source, [stream(text)], **metadata)


def test_a_measurement_is_kept_until_its_source_changes():
    first = new_notebook(cells=[measured("time it", "1 s\n")])
    keep_measurements(first, {})
    before = {"cell": first.cells[0]}
    again = new_notebook(cells=[measured("time it", "2 s\n")])
    keep_measurements(again, before)
    assert again.cells[0].outputs[0].text == "1 s\n"
    changed = new_notebook(cells=[measured("time it twice", "3 s\n")])
    keep_measurements(changed, before)
    assert changed.cells[0].outputs[0].text == "3 s\n"


def printing(text, source="print(loss)", name="cell"):
    return code(source, [stream(text)], name=name)


def test_last_digits_are_kept_while_the_source_is_the_same_and_nothing_else_differs():
    earlier = {cell.id: cell for cell in (printing("loss 0.4931, 0.2000\n", name=name) for name in "abcd")}
    computed = [
        printing("loss 0.4932, 0.2001\n", name="a"),
        printing("loss 0.4932, 0.2003\n", name="b"),  # all of it is new: half of one run and half of another is none
        printing("loss 0.4932, 0.2001\n", source="print(cost)", name="c"),
        printing("cost 0.4932, 0.2001\n", name="d"),
        printing("loss 0.4932, 0.2001\n", name="e"),
    ]
    notebook = new_notebook(cells=computed)
    keep_last_digits(notebook, earlier)
    assert [cell.outputs[0].text for cell in notebook.cells] == [
        "loss 0.4931, 0.2000\n",
        "loss 0.4932, 0.2003\n",
        "loss 0.4932, 0.2001\n",
        "cost 0.4932, 0.2001\n",
        "loss 0.4932, 0.2001\n",
    ]


@pytest.mark.parametrize(
    "text", ["<object at 0x7f2a1c3b9d90>", "/home/ada/notes.txt", "/tmp/x", r"C:\Users", "lib/site-packages/torch"]
)
def test_output_of_one_machine_only_is_found(text):
    assert refresh.machine_words(code("x", [stream(text)]))


@pytest.mark.parametrize("text", ["0.5/0.25", "[B, S, H*D]", "and/or", "0x1F", "https://example.org/tmp/x"])
def test_other_output_is_not(text):
    assert not refresh.machine_words(code("x", [stream(text)]))


@pytest.mark.long
def test_a_chapter_is_executed_and_a_second_run_changes_nothing(tmp_path):
    """In the environment that makes figures still and torch, here as in every kernel, compute with one thread."""
    assert torch.get_num_threads() == 1
    path = write_notebook(
        tmp_path / "01_chapter.ipynb", code(f"import os\nprint([os.environ[name] for name in {[*ENVIRONMENT]}])")
    )
    assert ENVIRONMENT["MINIMIND_EDU_STATIC"] == ENVIRONMENT["OMP_NUM_THREADS"] == "1"
    assert refresh.refresh(path)
    assert refresh.read(path).cells[-1].outputs[0].text == f"{[*ENVIRONMENT.values()]}\n"
    assert not refresh.refresh(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.long
def test_another_machine_leaves_the_chapter_as_it_is(tmp_path, monkeypatch):
    """Its last digits differ; asked to measure, it stores them."""
    source = "import os\nprint('loss', os.environ['LOSS'])"
    path = write_notebook(tmp_path / "01_chapter.ipynb", code(source))
    for loss, written in (("0.4931", True), ("0.4932", False), ("0.4934", True)):
        monkeypatch.setenv("LOSS", loss)
        assert refresh.refresh(path) is written
    monkeypatch.setenv("LOSS", "0.4935")
    assert refresh.refresh(path, measure=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "says"),
    [("1 / 0", "cell: ZeroDivisionError: division by zero"), ("print('/home/ada/x')", "prints '/home/ada'")],
)
def test_a_chapter_that_fails_is_left_as_it_was(tmp_path, source, says):
    path = write_notebook(tmp_path / "01_chapter.ipynb", code(source))
    before = path.read_bytes()
    with pytest.raises(RefreshError, match="01_chapter.ipynb") as error:
        refresh.refresh(path)
    assert says in str(error.value)
    assert path.read_bytes() == before


def test_an_unknown_chapter_is_named_with_those_there_are():
    with pytest.raises(RefreshError, match="no chapter begins with '77'; there are .*04_rope_rotation"):
        refresh.chosen(["77"])
