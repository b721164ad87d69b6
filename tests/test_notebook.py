"""Progress shows itself where a reader waits, and nowhere that outputs are stored."""

import re
import sys
import time

import pytest

from minimind_edu.notebook import outputs_are_stored, progress

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
