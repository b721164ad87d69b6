"""What the book reads is replaced by whole runs only, in one step, and what cannot be written is said beforehand."""

import argparse
import json
import os
import sys

import pytest

from minimind_edu.trained import stored


def told(capsys, *args, **options):
    """The sentence with which the program ends."""
    with pytest.raises(SystemExit) as ended:
        stored.place(argparse.ArgumentParser(prog="it"), *args, **options)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_only_a_whole_run_replaces_what_the_book_has(kind, tmp_path, capsys):
    book = tmp_path if kind == "folder" else tmp_path / "runs.json"
    book.parent.mkdir(exist_ok=True)
    if kind == "file":
        book.write_text("the book's")
    parser = argparse.ArgumentParser()
    assert stored.place(parser, None, book) == book
    assert f"only a whole run replaces what the book has in {book}" in told(capsys, None, book, whole=False)
    assert stored.place(parser, book, book, whole=False) == book, "who names the place wants it"
    elsewhere = tmp_path / "new" / "place"
    assert stored.place(parser, elsewhere, book, whole=False) == elsewhere
    assert elsewhere.is_dir() if kind == "folder" else elsewhere.parent.is_dir()


def test_what_cannot_be_written_is_said_before_the_training(tmp_path, capsys, monkeypatch):
    file, folder = tmp_path / "runs.json", tmp_path / "folder"
    file.write_text("{}")
    folder.mkdir()
    assert f"{folder} is a folder; give another name" in told(capsys, folder, file)
    assert f"{file} is a file; give another name" in told(capsys, file, folder)
    assert f"{file} cannot be made: " in told(capsys, file / "in.json", file)
    monkeypatch.setattr(os, "access", lambda path, how: (path, how) != (folder, os.W_OK))
    assert f"nothing can be written in {folder}" in told(capsys, folder / "runs.json", file)


def test_a_file_is_written_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "runs.json"
    stored.write("größer\n", path)
    assert path.read_text(encoding="utf-8") == "größer\n"

    def fail_halfway(self, text, **_):
        self.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(type(path), "write_text", fail_halfway)
    with pytest.raises(OSError, match="no space left"):
        stored.write("new", path)
    assert path.read_bytes() == "größer\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_whole_numbers_have_a_least():
    number = stored.whole_number(1)
    assert number("200") == 200
    for text in ("0", "-1", "1.5", "x", ""):
        with pytest.raises(argparse.ArgumentTypeError, match=f"must be a whole number of at least 1, got '{text}'"):
            number(text)
    assert stored.whole_number(0)("0") == 0


def test_rounding_reaches_all_floats_and_nothing_else():
    value = {"a": [1.23456, 2, "x", None, True], "b": {"c": [[0.0004]]}}
    assert stored.rounded(value) == {"a": [1.235, 2, "x", None, True], "b": {"c": [[0.0]]}}
    assert stored.rounded(1.23456, 1) == 1.2


def test_of_several_lists_one_is_trained_again_or_all(tmp_path, monkeypatch, capsys):
    book = tmp_path / "runs.json"
    lists = {"short": lambda: iter([{"seed": 0, "loss": 0.12345}, {"seed": 1, "loss": 0.5}]), "long": lambda: iter([])}

    def run(*told):
        monkeypatch.setattr(sys, "argv", ["it", *told])
        stored.lists_of_runs("trains", lists, book, stored.rounded)
        return json.loads(book.read_text(encoding="utf-8"))

    runs = [{"seed": 0, "loss": 0.123}, {"seed": 1, "loss": 0.5}]
    book.write_text('{"long": [{"seed": 7}]}', encoding="utf-8")
    assert run("--only", "short") == {"long": [{"seed": 7}], "short": runs}
    assert "short: {'seed': 0, 'loss': 0.12345}" in capsys.readouterr().out
    assert run() == {"long": [], "short": runs}
    elsewhere = tmp_path / "new.json"
    run("--only", "short", "--into", str(elsewhere))
    assert json.loads(elsewhere.read_text(encoding="utf-8")) == {"short": runs}
