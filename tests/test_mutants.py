"""What the mutant runner says of a run is what became of it."""

import importlib.util
import sys
import time
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "mutants"


@pytest.fixture(scope="module")
def runner():
    """The runner as a module; it is a program in a folder of its own."""
    spec = importlib.util.spec_from_file_location("mutant_runner", FOLDER / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FOLDER))
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(FOLDER))
    del sys.modules[spec.name]


def run_of(runner, path, text="", mutant=True):
    path.write_text(text, encoding="utf-8")
    return runner.Run(runner.MUTANTS[0] if mutant else None, ("test_x.py",), 0, path, time.monotonic())


@pytest.mark.parametrize("word", ["FAILED", "ERROR"])
def test_the_test_that_failed_is_named_also_if_a_fixture_failed(runner, tmp_path, word):
    run = run_of(
        runner, tmp_path / "out", f"E\n=== short test summary info ===\n{word} tests/test_x.py::test_y[a] - Value"
    )
    assert runner.verdict(run, 1) == (True, "test_x.py::test_y[a]")


def test_only_a_run_that_was_ended_hung(runner, tmp_path):
    assert runner.verdict(run_of(runner, tmp_path / "out"), runner.HUNG) == (True, "hung for 300 s")
    assert runner.verdict(run_of(runner, tmp_path / "out", mutant=False), runner.HUNG)[0] is False


def test_a_mutant_that_no_test_notices_survived(runner, tmp_path):
    assert runner.verdict(run_of(runner, tmp_path / "out"), 0) == (False, "SURVIVED: no test noticed")


def test_tests_that_could_not_run_notice_nothing(runner, tmp_path):
    right, told = runner.verdict(run_of(runner, tmp_path / "out", "no such test"), 4)
    assert not right and "did not run (status 4)" in told and "no such test" in told


def test_the_model_as_it_is_must_pass(runner, tmp_path):
    run = run_of(runner, tmp_path / "out", "FAILED tests/test_x.py::test_y", mutant=False)
    assert runner.verdict(run, 0)[0] and not runner.verdict(run, 1)[0]


def test_a_run_that_takes_too_long_is_ended(runner, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", 0.2)
    monkeypatch.setattr(runner, "run_tests", lambda mutant, tests: time.sleep(60))
    run = runner.start(None, ("test_x.py",), tmp_path)
    while (status := runner.finished(run)) is None:
        time.sleep(0.02)
    assert status == runner.HUNG


def test_what_noticed_runs_once_as_it_is_with_all_its_cases_and_each_file_in_one_process(runner):
    noticing = {"b.py::one[1-2]", "a.py", "a.py::one", "b.py::two", "b.py::one[a b]"}
    assert runner.by_file(noticing) == [("a.py",), ("b.py::one", "b.py::two")]


def test_the_tests_that_noticed_are_kept_and_of_a_mutant_that_hung_all(runner, tmp_path, monkeypatch, capsys):
    failing = "FAILED tests/test_x.py::test_y - Value"
    ends = {"noticed": (1, failing), "hung": (runner.HUNG, ""), "survived": (0, ""), "broken": (4, failing)}

    def start(mutant, tests, folder):
        path = tmp_path / mutant.name
        path.write_text(ends[mutant.name][1], encoding="utf-8")
        return runner.Run(mutant, tests, 0, path, time.monotonic())

    monkeypatch.setattr(runner, "start", start)
    monkeypatch.setattr(runner, "finished", lambda run: ends[run.name][0])
    tests = ("test_x.py", "test_z.py::test_1")
    waiting = [(runner.Mutant(name, "file.py", "old", "new", tests), tests) for name in ends]
    wrong, noticing = runner.run_all(waiting, 2, tmp_path)
    assert wrong == 2 and noticing == {"test_x.py::test_y", *tests}
    assert len(capsys.readouterr().out.splitlines()) >= len(ends)
