"""The catalog of mutants is read as it is written, and a run of tests that could not run has noticed nothing."""

import os
import re
import runpy
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from mutants import catalog

GOOD = "# Norms\n\na name | norms.py |\n    test_a.py test_b.py::test_c\n-old\n-  lines\n-\n+\n"


def test_the_catalog_is_read_as_it_is_written():
    first, second = catalog.read(GOOD + "b | c.js | d.py\n-- x\n++ 1\n")
    assert first == catalog.Mutant("a name", "norms.py", "old\n  lines\n", "", ("test_a.py", "test_b.py::test_c"))
    assert (second.old, second.new) == ("- x", "+ 1")


@pytest.mark.parametrize(
    "text, told",
    [
        (GOOD + GOOD, "line 11: another mutant is called 'a name'"),
        ("a | b.py | c.py\n-old\n", "line 1: write `name | file | tests`"),
        ("a | b.py | c.py\n+new\n", "line 1: write `name | file | tests`"),
        ("\n-old\n+new\n", "line 2: write `name | file | tests`"),
        ("a | b.py | c.py\n-old\n\n-lines\n+new\n", "line 1: write `name | file | tests`"),
        ("a | b.py\n-old\n+new\n", "line 1: 'a' needs a file and tests"),
        ("a | b.py | c.py\n-old \n+new\n", "line 1: a space at the end of a line"),
    ],
)
def test_what_cannot_be_read_says_where_and_what_to_write(text, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        catalog.read(text)


@pytest.mark.parametrize(
    "file, old, new, error, told",
    [
        ("model/norms.py", "no such text", "", LookupError, "stands 0 times in model/norms.py, not once"),
        ("none.py", "class RMSNorm", "", LookupError, "no file none.py"),
        ("model/norms.py", "class RMSNorm(", "a class RMSNorm(", SyntaxError, "invalid syntax"),
    ],
)
def test_a_mutant_whose_text_is_gone_or_that_is_no_python_is_none(file, old, new, error, told):
    with pytest.raises(error, match=told):
        catalog.Mutant("a", file, old, new, ()).changed_text()


MANY = catalog.read(GOOD + "b | c.js | d.py\n-- x\n++ 1\n")


def test_mutants_are_chosen_by_name_and_by_file():
    first, second = MANY
    assert catalog.chosen(MANY) == MANY
    assert catalog.chosen(MANY, words=["name", "none"]) == [first]
    assert catalog.chosen(MANY, files=["c.js"]) == [second]


@pytest.mark.parametrize(
    "changes, is_new",
    [
        ({"new": "+ 2"}, True),
        ({"old": "- 2"}, True),
        ({"name": "another"}, True),
        ({"tests": ("e.py",)}, True),
        ({"file": "folder/c.js"}, False),
        ({"tests": ("folder/d.py",)}, False),
    ],
)
def test_a_mutant_is_new_that_was_another_one_but_not_where_only_files_have_moved(changes, is_new):
    first, second = MANY
    assert catalog.new(MANY, [first]) == [second] and catalog.new(MANY, MANY) == []
    assert catalog.new(MANY, [first, replace(second, **changes)]) == ([second] if is_new else [])


@pytest.mark.parametrize(
    "choice, told", [({"words": ["none"]}, "no mutant has such a name"), ({"files": ["norm.py"]}, "changes norm.py")]
)
def test_a_choice_of_no_mutant_is_told(choice, told):
    with pytest.raises(LookupError, match=told):
        catalog.chosen(MANY, **choice)


def test_a_commit_has_a_catalog_or_says_why_not(tmp_path, monkeypatch):
    file = tmp_path / "catalog.txt"
    file.write_text(GOOD, encoding="utf-8")
    monkeypatch.setattr(catalog, "FILE", file)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "The first"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    file.write_text("", encoding="utf-8")
    assert catalog.of_commit("HEAD") == catalog.read(GOOD)
    with pytest.raises(LookupError, match="'HEAD~1'"):
        catalog.of_commit("HEAD~1")


def test_only_python_must_be_python():
    mutant = catalog.Mutant("a", "web/kit/kit.js", "export function clamp(", "export function kept(", ())
    assert "export function kept(" in mutant.changed_text()


def test_every_mutant_has_its_place():
    stale = {}
    for mutant in catalog.MUTANTS:
        try:
            mutant.changed_text()
        except (LookupError, SyntaxError) as error:
            stale[mutant.name] = str(error)
    assert not stale


@pytest.fixture(scope="module")
def runner():
    return SimpleNamespace(**runpy.run_path(str(Path(catalog.__file__).parent), run_name="runner"))


@pytest.mark.parametrize(
    "changed, status, output, right, told",
    [
        (True, 1, "E\nFAILED tests/test_x.py::test_y[a] - Value", True, "test_x.py::test_y[a]"),
        (True, 1, "E\nERROR tests/test_x.py::test_y - Value", True, "test_x.py::test_y"),
        (True, 0, "", False, "SURVIVED"),
        (True, 4, "no such test", False, "did not run (status 4)\nno such test"),
        (True, -9, "", True, "hung"),
        (False, 0, "", True, ""),
        (False, 1, "FAILED tests/test_x.py::test_y", False, "FAILS"),
        (False, -9, "", False, "hung"),
    ],
)
def test_tests_that_could_not_run_notice_nothing_and_the_model_as_it_is_must_pass(
    runner, tmp_path, changed, status, output, right, told
):
    path = tmp_path / "output"
    path.write_text(output, encoding="utf-8")
    run = runner.Run(catalog.MUTANTS[0] if changed else None, ("test_x.py",), 0, path, time.monotonic())
    ended_right, said = runner.verdict(run, status)
    assert ended_right is right and told in said


def test_what_imports_transformers_is_known_by_its_text_wherever_it_lies(runner):
    assert runner.imports_transformers("hf/test_text.py::test_a") and runner.imports_transformers(
        "weights/test_config_json.py"
    )
    assert not runner.imports_transformers("model/test_norms.py")


@pytest.fixture
def slow_tests(runner, monkeypatch):
    """Every run of tests takes a tenth of a second and notices its mutant."""

    def run_tests(mutant, tests, options):
        time.sleep(0.1)
        return 1 if mutant else 0

    monkeypatch.setitem(runner.main.__globals__, "run_tests", run_tests)
    monkeypatch.setitem(runner.main.__globals__, "warm_up", lambda tests: None)


def asked(runner, monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["mutants", "--jobs", "1", *arguments])
    monkeypatch.setattr("sys.pycache_prefix", None)  # the runner sets both
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return runner.main()


FEW = "model/kv_cache.py"  # has few mutants, each of which is a fork of all that is imported here


def test_when_the_time_is_over_what_is_left_is_told_and_one_has_begun(runner, slow_tests, monkeypatch, capsys):
    of_file = [m.name for m in catalog.MUTANTS if m.file == FEW]
    assert asked(runner, monkeypatch, "--file", FEW, "--seconds", "0") == 0
    told = capsys.readouterr().out
    assert of_file[0] in told and of_file[1] not in told
    left = len(of_file) - 1
    assert f"{left} mutants are left for `make mutants`, for 0 s are over: {left} of {FEW}" in told
    assert f"\n1 of {len(of_file)} noticed in " in told
    assert asked(runner, monkeypatch, "--file", FEW) == 0
    told = capsys.readouterr().out
    assert "are left" not in told and all(name in told for name in of_file)


def test_new_mutants_come_before_those_of_the_files_that_are_named(runner, slow_tests, monkeypatch, capsys):
    monkeypatch.setitem(runner.main.__globals__, "of_commit", lambda commit: runner.MUTANTS[:-1])
    assert asked(runner, monkeypatch, "--since", "abc") == 0
    assert catalog.MUTANTS[-1].name in capsys.readouterr().out.splitlines()[0]
    assert asked(runner, monkeypatch, "--since", "abc", "--file", FEW) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    of_file = next(m.name for m in catalog.MUTANTS if m.file == FEW)
    assert first.startswith(catalog.MUTANTS[-1].name) and second.startswith(of_file)


def test_the_matrix_asks_every_test_of_the_file_that_mirrors_the_mutant_s(runner, tmp_path, monkeypatch, capsys):
    """Each of two mutants is noticed by tests of its own, also after the first failure; another guards a refusal."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/test_norms.py").write_text(
        "import pytest\n"
        "def test_a(): assert False\n"
        "def test_b(): assert False\n"
        "def test_c(): pass\n"
        "def test_d():\n    with pytest.raises(ValueError): int('x')\n",
        encoding="utf-8",
    )
    globals_of_runner = runner.matrix.__globals__
    monkeypatch.setitem(globals_of_runner, "TESTS", tmp_path)
    monkeypatch.setitem(globals_of_runner, "run_tests", lambda mutant, tests, options: _failing(tests, options))
    mutants = [m for m in catalog.MUTANTS if m.file == "model/norms.py"][:2]
    assert runner.matrix(mutants, tmp_path) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if "  test_" in line]
    assert lines == [["2", "test_a"], ["2", "test_b"], ["0", "test_c"], ["0", "test_d  (a refusal)"]]


def _failing(tests, options) -> int:
    """The lines of a run that the runner reads; a fork writes where the runner put its output."""
    failures = ["test_a - assert False", *([] if "-x" in options else ["test_b[case] - assert False"])]
    os.write(1, "".join(f"FAILED tests/{tests[0]}::{failure}\n" for failure in failures).encode())
    return 1


def test_the_matrix_says_where_a_file_of_tests_is_missing(runner, tmp_path, capsys):
    assert runner.matrix([catalog.Mutant("a", "model/none.py", "", "", ())], tmp_path) == 1
    assert "there is no tests/model/test_none.py" in capsys.readouterr().out
