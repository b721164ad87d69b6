"""The proof that chapters run on Colab would notice if they did not."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools import colab, refresh, run_unaided

# Stand-ins that cost no time: the package is an empty file near the notebook, and a figure is what a front end gets.
FIRST = """\
import os, sys
folder = os.path.abspath("minimind_edu-0")
sys.path.insert(0, folder)
os.environ["PYTHONPATH"] = folder"""
FIGURE = f"""\
from IPython.display import display
display({{{run_unaided.WIDGET_VIEW!r}: {{}}}}, raw=True)"""
STORED_FIGURE = new_output("display_data", {"text/html": "<div></div>", "text/plain": "Figure()"})


def notebook(tmp_path, *cells: str, stored: dict[int, list] | None = None, tags: dict[int, str] | None = None) -> Path:
    """A notebook of these cells; the last one is stored as a figure, unless `stored` says otherwise."""
    for folder in ("minimind_edu-0", "another"):
        (tmp_path / folder / "minimind_edu").mkdir(parents=True)
        (tmp_path / folder / "minimind_edu" / "__init__.py").touch()
    path = tmp_path / "chapter.ipynb"
    written = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    for place, outputs in ({len(cells) - 1: [STORED_FIGURE]} if stored is None else stored).items():
        written.cells[place].outputs = outputs
    for place, tag in (tags or {}).items():
        written.cells[place].metadata["tags"] = [tag]
    nbformat.write(written, path)
    return path


@pytest.mark.long
def test_a_notebook_that_runs_with_a_live_figure_is_told_so(tmp_path):
    told = run_unaided.run(notebook(tmp_path, FIRST, FIGURE))
    assert re.fullmatch(r"2 cells ran in \d+ s, 2 compared, live figures: 1", told)


@pytest.mark.long
def test_what_is_printed_and_shown_is_compared_but_for_pictures_and_measurements(tmp_path):
    cells = [FIRST, "print('a'); print('b', 0.4931)\n{'image/svg+xml'}", "print(0.5)", FIGURE]
    stored = {
        1: [new_output("stream", text="a\n"), new_output("stream", text="b 0.4932\n")],
        2: [new_output("stream", text="0.7\n")],
        3: [STORED_FIGURE],
    }
    stored[1].append(new_output("execute_result", {"text/plain": "{'image/svg+xml'}", "image/svg+xml": "<svg/>"}))
    path = notebook(tmp_path, *cells, stored=stored, tags={2: run_unaided.IGNORED})
    assert "3 compared, live figures: 1" in run_unaided.run(path)


@pytest.mark.parametrize(
    "cells, error, message",
    [
        ([FIRST, FIGURE, "1 / 0"], CellExecutionError, "ZeroDivisionError"),
        ([FIRST, FIGURE, "import warnings; warnings.warn('old')"], AssertionError, "old"),
        ([FIRST, "None"], AssertionError, "0 figures of 1 are alive"),
        ([FIRST, "print(0.5)"], AssertionError, r"says '0.5\\n', not ''"),
        ([FIRST, "0.5"], AssertionError, r"says '0.5\\n', not ''"),
        ([FIRST + "; print('loud')", FIGURE], AssertionError, "first cell is not silent"),
        ([FIRST.replace("minimind_edu-0", "another"), FIGURE], CellExecutionError, "AssertionError"),
        ([FIRST + "; os.environ['PYTHONPATH'] = 'another'", FIGURE], CellExecutionError, "AssertionError"),
    ],
    ids=["error", "warning", "no figure", "prints", "says", "loud", "another package", "another package in processes"],
)
@pytest.mark.long
def test_a_notebook_that_a_reader_would_not_like_fails(tmp_path, cells, error, message):
    with pytest.raises(error, match=message):
        run_unaided.run(notebook(tmp_path, *cells))


@pytest.mark.long
def test_a_progress_bar_that_was_there_is_nothing_to_read(tmp_path):
    bar = r"""
for text in ("\r 0%", "\r 100%", "\r      \r", "a\nb\n"):
    print(text, end="", flush=True)  # each an output of its own"""
    path = notebook(tmp_path, FIRST, bar, FIGURE, stored={1: [new_output("stream", text="a\nb\n")], 2: [STORED_FIGURE]})
    assert "3 compared" in run_unaided.run(path)


def test_the_tag_of_what_is_not_compared_is_the_one_of_nbval():
    assert run_unaided.IGNORED == refresh.IGNORED


@pytest.mark.long
def test_what_failed_is_told_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_unaided, "network_is_gone", lambda: True)
    path = notebook(tmp_path, FIRST, "raise ValueError('the reason')")
    assert run_unaided.main([str(path)]) == 1
    assert capsys.readouterr().out == f"  {path}: ValueError: the reason\n"


def test_a_notebook_that_is_missing_or_none_is_told_and_the_others_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_unaided, "network_is_gone", lambda: True)
    (tmp_path / "none.ipynb").write_text("no notebook")
    assert run_unaided.main([str(tmp_path / name) for name in ("missing.ipynb", "none.ipynb")]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"  {tmp_path}/missing.ipynb: FileNotFoundError: ")
    assert second.startswith(f"  {tmp_path}/none.ipynb: NotJSONError: ")


def test_where_a_network_answers_nothing_is_proven(monkeypatch, capsys):
    def nobody_answers(*arguments, **options):
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", nobody_answers)
    assert run_unaided.main(["missing.ipynb"]) == 1
    assert capsys.readouterr().out.startswith("There is a network here")


@pytest.mark.parametrize("means", ["unshare", "a Python that refuses"])
def test_the_network_is_really_taken_away(tmp_path, monkeypatch, means):
    if means != "unshare":
        monkeypatch.setattr(colab, "UNSHARE", ["no-such-command"])
    prefix, environment, name = colab.without_network(tmp_path)
    if name != means:
        pytest.skip("this system has no unshare")
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"import socket; socket.create_connection({server.getsockname()}, timeout=5)"
        assert colab.run(sys.executable, "-c", connect).returncode == 0, "it is there"
        without = [*prefix, sys.executable, "-c", connect]
        done = colab.run(*without, env=environment, capture_output=True, text=True)
    assert "OSError" in done.stderr
    check = "from tools import run_unaided; print(run_unaided.network_is_gone())"
    command = [*prefix, sys.executable, "-c", check]
    done = colab.run(*command, env=environment, stdout=subprocess.PIPE)
    assert done.stdout == b"True\n"


def fake_python(path: Path, status: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_colabs_python_comes_first_where_it_works(tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert colab.pythons(None) == [sys.executable]
    broken = fake_python(tmp_path / "bin" / colab.COLABS_PYTHON, 127)
    theirs = fake_python(tmp_path / "pyenv/versions/3.13.9/bin" / colab.COLABS_PYTHON, 0)
    assert colab.pythons(None) == [str(theirs), sys.executable]
    fake_python(broken, 0)
    assert colab.pythons(None) == [colab.COLABS_PYTHON, sys.executable]
    assert colab.pythons("python9") == ["python9"]


def test_an_environment_is_made_again_only_when_its_pins_change(tmp_path, monkeypatch):
    pins = tmp_path / "pins.txt"
    pins.write_text("numpy==2.1.3\n", encoding="utf-8")
    monkeypatch.setattr(colab, "PINS", pins)
    monkeypatch.setattr(colab, "ENVIRONMENT", tmp_path / "environment")
    made = []

    def run(*command, **options):
        if command[0] == "sh":
            colab.ENVIRONMENT.mkdir()
            (colab.ENVIRONMENT / "made_from").write_text("Python 3.13.0\n" + pins.read_text("utf-8"), encoding="utf-8")
            made.append(command)
        return subprocess.CompletedProcess(command, 0, stdout="Python 3.13.0\n")

    monkeypatch.setattr(colab, "run", run)
    assert colab.make_environment("python") and colab.make_environment("python")
    assert len(made) == 1
    pins.write_text("numpy==2.1.4\n", encoding="utf-8")
    assert colab.make_environment("python") and len(made) == 2


def test_a_changed_version_and_a_broken_requirement_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr(colab, "build_wheel", lambda folder: tmp_path)
    states = iter([{"numpy==2.1.3", "six==1"}, {"numpy==2.4.6", "six==1"}])
    monkeypatch.setattr(colab, "versions", lambda: next(states))
    monkeypatch.setattr(colab, "pip", lambda *words, **options: subprocess.CompletedProcess(words, 0, stdout=""))
    with pytest.raises(colab.ColabError, match=r"changed numpy==2\.1\.3, numpy==2\.4\.6\.$"):
        colab.install_package()
    answers = iter(["", "", "minimind-edu requires torch, which is not installed."])
    monkeypatch.setattr(colab, "versions", lambda: {"six==1"})
    monkeypatch.setattr(
        colab, "pip", lambda *words, **options: subprocess.CompletedProcess(words, 0, stdout=next(answers))
    )
    with pytest.raises(colab.ColabError, match="requires torch"):
        colab.install_package()
