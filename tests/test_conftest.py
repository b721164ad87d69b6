"""What a bare `pytest` leaves out, and what brings it back; asked of a small folder with the same conftest.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import LONGEST, _order

HERE = Path(__file__).parent
TESTS = """\
import pytest

@pytest.fixture
def browser():
    pass

def test_without():
    pass

def test_closely(browser):
    pass

@pytest.mark.always
def test_briefly(browser):
    pass

@pytest.mark.long
def test_program():
    pass

@pytest.mark.always
@pytest.mark.long
def test_once_more(browser):
    pass
"""
SUMMARY = "{} tests were left out, close looks in the browser and whole programs: `pytest --all` runs them too.\n"
EVERY = {"test_without", "test_closely", "test_briefly", "test_program", "test_once_more"}
SHORT = {"test_without", "test_briefly"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    shutil.copy(HERE / "conftest.py", folder / "tests")
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers = always\n    long\n", encoding="utf-8")
    for name in ("test_one.py", "test_world.py"):
        (folder / "tests" / name).write_text(TESTS, encoding="utf-8")
    return folder


def printed(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ran(text):
    return {line.split("::")[1].split()[0] for line in text.splitlines() if "PASSED" in line}


@pytest.mark.parametrize("arguments", [(), ("tests",), ("-k", "test")], ids=" ".join)
def test_without_all_only_marked_tests_use_the_browser_and_none_takes_long(folder, arguments):
    text = printed(folder, *arguments)
    assert ran(text) == SHORT
    assert SUMMARY.format(6) in text


@pytest.mark.parametrize("arguments", [("--all",), ("tests/test_one.py",), ("tests/test_one.py::test_closely",)])
def test_what_is_asked_for_runs(folder, arguments):
    text = printed(folder, *arguments)
    assert ran(text) == ({"test_closely"} if "::" in arguments[0] else EVERY)
    assert "left out" not in text


def test_several_processes_say_it_once(folder):
    text = printed(folder, "-p", "xdist", "-n", "2")
    assert text.count("PASSED") == 4
    assert text.count(SUMMARY.format(6)) == 1


def test_the_longest_modules_come_first(folder):
    text = printed(folder)
    assert text.index("test_world.py::") < text.index("test_one.py::")


def test_one_module_builds_the_book_while_others_have_something_to_do():
    fixtures = {
        "test_rope.py": set(),
        "test_book_reference.py": {"html"},
        "test_world.py": set(),
        "test_book_weight.py": {"html", "browser"},
        "test_figure_sampler.py": {"browser"},
        "test_book.py": {"html", "browser"},
        "test_live_world.py": {"browser"},
    }
    order = _order({Path(name): names for name, names in fixtures.items()})
    names = "book figure_sampler live_world world book_weight book_reference rope"
    assert [path.stem.removeprefix("test_") for path in order] == names.split()


def test_the_longest_modules_are_there():
    missing = [name for name in LONGEST if not (HERE / f"test_{name}.py").is_file()]
    assert not missing, "conftest.LONGEST names modules that do not exist"
