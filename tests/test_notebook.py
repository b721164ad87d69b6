"""Progress shows itself where a reader waits, and nowhere that outputs are stored; what does not fit is told."""

import re
import sys
import time
from types import SimpleNamespace

import pytest

from minimind_edu.notebook import LANGUAGE, NotReady, outputs_are_stored, progress, ready
from tools import install_cell

# A step may come too soon after the last one to be shown; which one that is depends on the machine.
ON_ITS_WAY = re.compile(r"reading:  (25%\|.* 1/4|50%\|.* 2/4|75%\|.* 3/4)")


@pytest.fixture
def reader(monkeypatch):
    """Somebody in a notebook, who is not a tool."""
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.setenv("MINIMIND_EDU_STATIC", "1")


def slowly(items):
    for item in progress(items, "reading"):
        time.sleep(0.06)
        yield item


def test_a_reader_sees_how_far_it_is_and_nothing_afterwards(reader, capsys):
    assert not outputs_are_stored()
    assert list(slowly("abcd")) == list("abcd")
    shown = capsys.readouterr()
    assert ON_ITS_WAY.search(shown.out)
    assert shown.out.split("\r")[-2:] == [" " * len(shown.out.split("\r")[-2]), ""]
    assert shown.err == ""


def test_a_command_keeps_its_output_for_what_it_prints(reader, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert list(slowly("abcd")) == list("abcd")
    shown = capsys.readouterr()
    assert shown.out == "" and ON_ITS_WAY.search(shown.err)


def test_stored_outputs_hold_no_bar(tool, capsys):
    assert outputs_are_stored()
    assert list(slowly("abcd")) == list("abcd")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_items_need_no_known_number(reader, capsys):
    assert list(progress((n for n in range(3)), "counting")) == [0, 1, 2]
    assert "counting" in capsys.readouterr().out


VERSION = install_cell.version()


class Installed:
    """What a Python has installed, of which each test may say otherwise: versions by name, and what the package needs.

    A version of None is not installed; a library in `importable` is there nevertheless.
    """

    def __init__(self, needs: list[str], **versions: str | None):
        self.needs, self.versions, self.importable = needs, versions, set()

    def distributions(self, name: str):
        version = self.versions[name]
        return iter([SimpleNamespace(version=version, requires=self.needs)] if version else [])

    def find_spec(self, name: str):
        return SimpleNamespace() if name in self.importable else None


@pytest.fixture
def installed(monkeypatch):
    """A Python in which everything fits."""
    needs = ["torch>=2.7", "anywidget>=0.9.18,<1", 'transformers>=5 ; extra == "hf"', 'tomli>=2 ; python_version < "3"']
    here = Installed(needs, **{"minimind-edu": VERSION, "torch": "2.11.0+cu128", "anywidget": "0.9.21"})
    monkeypatch.setattr("importlib.metadata.distributions", here.distributions)
    monkeypatch.setattr("importlib.util.find_spec", here.find_spec)
    return here


@pytest.fixture(params=["en", "zh"])
def speaks(request, monkeypatch):
    monkeypatch.setenv(LANGUAGE, request.param)
    return request.param


def told(version: str = VERSION) -> str:
    with pytest.raises(NotReady) as refused:
        ready(version)
    assert refused.value._render_traceback_() == [str(refused.value)]  # what IPython shows
    assert str(refused.value).count("\n") == 0
    return str(refused.value)


def test_a_notebook_is_ready_where_all_versions_fit(installed, speaks, capsys):
    ready(VERSION)
    assert capsys.readouterr() == ("", "")


def test_the_environment_of_the_tests_is_ready():
    ready(VERSION)


def test_another_version_of_the_package_is_told(installed, speaks):
    installed.versions["minimind-edu"] = "9.8"
    command = "`%pip uninstall --yes minimind-edu`"
    wanted = {
        "en": f"This notebook needs minimind_edu {VERSION}, but 9.8 is installed: run {command} in a new cell, "
        "restart the kernel, then run this cell again.",
        "zh": f"这个笔记本需要 minimind_edu {VERSION}，可是装着 9.8：请在一个新单元格里运行 {command}，重启内核，"
        "再运行这个单元格。",
    }
    assert told() == wanted[speaks]


@pytest.mark.parametrize("version", ["2.6.0", "2.6.0+cu124", "2.7.0rc1", "1.13"])
def test_a_library_that_is_too_old_is_told(installed, speaks, version):
    installed.versions["torch"] = version
    command = '`%pip install "torch>=2.7"`'
    wanted = {
        "en": f"This book needs torch>=2.7, but {version} is installed: run {command} in a new cell, restart the "
        "kernel, then run this cell again.",
        "zh": f"本书需要 torch>=2.7，可是装着 {version}：请在一个新单元格里运行 {command}，重启内核，"
        "再运行这个单元格。",
    }
    assert told() == wanted[speaks]


@pytest.mark.parametrize("version", ["2.7", "2.7.0+cpu", "2.12.0a0+git1", "3.0.dev20270101"])
def test_a_library_that_is_newer_or_built_otherwise_fits(installed, version):
    installed.versions["torch"] = version
    ready(VERSION)


def test_a_library_that_is_missing_is_told_and_one_that_nobody_installed_is_not(installed, speaks):
    installed.versions["anywidget"] = None
    need = "anywidget<1,>=0.9.18"
    wanted = {
        "en": f'This book needs {need}, which is missing: run `%pip install "{need}"` in a new cell, restart the '
        "kernel, then run this cell again.",
        "zh": f'本书需要 {need}，这里没有：请在一个新单元格里运行 `%pip install "{need}"`，重启内核，'
        "再运行这个单元格。",
    }
    assert told() == wanted[speaks]
    installed.importable.add("anywidget")
    ready(VERSION)


def test_sources_that_nobody_installed_are_what_they_are(installed):
    installed.versions["minimind-edu"] = None
    installed.versions["torch"] = "1.0"  # which libraries they need is not written down
    ready(VERSION)
