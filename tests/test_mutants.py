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


def test_a_file_runs_once_as_it_is_with_all_that_mutants_ask_of_it(runner):
    def asks(*tests):
        return runner.Mutant("name", "file.py", "old", "new", tests)

    mutants = [asks("b.py::one"), asks("a.py"), asks("a.py::one"), asks("b.py::two", "a.py")]
    assert runner.tests_of_files(mutants) == [("a.py",), ("b.py::one", "b.py::two")]
