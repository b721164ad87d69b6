"""The Chinese of a chapter follows the cells that move to its deeper page."""

import json

import pytest

from tools import chapters, parted, translated


def notebook(path, *ids):
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [{"id": one, "cell_type": "markdown", "source": [one]} for one in ids]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


@pytest.fixture
def pair(tmp_path, monkeypatch):
    monkeypatch.setattr(parted, "translation_of", lambda path: tmp_path / "zh" / f"{path.stem}.md")
    lesson = notebook(tmp_path / "chapters" / "09_a.ipynb", "head", "kept")
    deeper = notebook(tmp_path / "chapters" / "deeper" / "D09_a.ipynb", "top", "second", "first", "kept")
    (tmp_path / "zh").mkdir()
    return lesson, deeper


def test_blocks_follow_their_cells_in_the_order_of_the_page(pair, tmp_path):
    source = "\n\n".join(
        f"<!-- {name} -->\n{name} 中文"
        for name in ("head 00000001", "first 00000002", "kept 00000003", "second", "gone")
    )
    (tmp_path / "zh" / "09_a.md").write_text(f"{source}\n", encoding="utf-8")
    (tmp_path / "zh" / "D09_a.md").write_text("<!-- top 00000004 -->\n开头\n", encoding="utf-8")
    assert parted.part(*pair) == ["first", "second"]
    here, there = (
        translated.blocks_in((tmp_path / "zh" / f"{name}.md").read_text("utf-8")) for name in ("09_a", "D09_a")
    )
    assert list(here) == ["head", "kept", "gone"] and list(there) == ["top", "second", "first"]
    assert there["first"] == ("00000002", "first 00000002 中文") and there["second"].fingerprint is None
    assert parted.part(*pair) == []  # and once more changes nothing


def test_links_lead_on_from_one_folder_deeper():
    text = "[a](02_b.ipynb#c) [d](../book/live.md#story=e) [f](#g) [h](https://i) [j](figure:k?l=1)"
    wanted = "[a](../02_b.ipynb#c) [d](../../book/live.md#story=e) [f](#g) [h](https://i) [j](figure:k?l=1)"
    assert parted.from_deeper(text) == wanted


def test_what_neither_page_has_is_listed(pair, monkeypatch):
    earlier = json.dumps({"cells": [{"id": name} for name in ("head", "lost", "first")]})
    monkeypatch.setattr(parted, "ROOT", pair[0].parents[1])
    monkeypatch.setattr(parted, "git", lambda *asked: earlier if asked[-1].startswith("before:chapters/09_a") else None)
    assert parted.nowhere(pair[0], [pair[1]], "before") == ["lost"]
    with pytest.raises(LookupError, match="other has no chapters.*name a commit before"):
        parted.nowhere(pair[0], [pair[1]], "other")


def test_a_chapter_without_a_deeper_page_is_refused(capsys):
    assert parted.main(["99"]) == 1
    assert "No chapter whose name begins with 99 has a deeper page." in capsys.readouterr().err


def test_a_chapter_may_have_a_second_deeper_page_which_comes_after_its_proofs(monkeypatch, tmp_path):
    lesson = notebook(tmp_path / "01_b.ipynb")
    for name in ("D01_a", "D01_b", "D02_b"):
        notebook(tmp_path / "deeper" / f"{name}.ipynb")
    monkeypatch.setattr(chapters, "CHAPTERS", tmp_path)
    monkeypatch.setattr(chapters, "DEEPER", tmp_path / "deeper")
    assert [path.stem for path in chapters.all_deeper_of(lesson)] == ["D01_b", "D01_a"]
    assert chapters.lesson_of(tmp_path / "deeper" / "D01_a.ipynb") == lesson
    assert chapters.all_deeper_of(tmp_path / "03_c.ipynb") == []
