"""README in both languages: short, its table that of the chapters, its addresses those of the configuration."""

import re

import pytest
import yaml
from PIL import Image

from tools import install_cell, moving_picture, readme
from tools.chapters import ROOT, chapters
from tools.translated import README, README_TWIN

NAMES = (README, README_TWIN)
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}


def test_the_stored_files_are_as_the_tool_writes_them():
    for path, text in readme.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python -m tools.readme"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_short_and_begins_with_the_picture_and_the_book(name):
    text = TEXTS[name]
    assert len(text.splitlines()) <= 90
    order = [
        text.index(one) for one in (install_cell.book_url(), "book/hero", "make book", "| 15 |", "minimind_edu open")
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("name", NAMES)
def test_every_chapter_has_its_question_its_page_and_its_notebook(name):
    rows = re.findall(r"^\| (\d+) \| (.+?) \| \[(.+?)\]\((.+?)\) \| \[ipynb\]\((.+?)\) \|$", TEXTS[name], re.MULTILINE)
    assert [number for number, *_ in rows] == [chapter.number for chapter in chapters().values()]
    for (_, question, _, page, notebook), chapter in zip(rows, chapters().values(), strict=True):
        assert question.endswith(("?", "？")) and (ROOT / notebook).is_file()
        assert page == f"{readme.published(name, install_cell.book_url())}{chapter.page}.html"
        assert notebook == f"{chapter.page}.ipynb"


@pytest.mark.parametrize("name", NAMES)
def test_pages_that_it_leads_to_are_in_the_built_book(html, name):
    links = re.findall(rf"\]\({re.escape(install_cell.book_url())}(.*?)\)", TEXTS[name])
    assert len(links) > 15
    assert [
        link for link in links if not (html / link / ("" if link.endswith(".html") else "index.html")).is_file()
    ] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_address_changes_everywhere(name):
    moved = readme.refreshed(name, TEXTS[name], "https://somebody.example/book/")
    assert install_cell.book_url() not in moved
    assert moved.count("https://somebody.example/book/") == TEXTS[name].count(install_cell.book_url()) > 15
    assert readme.refreshed(name, moved, install_cell.book_url()) == TEXTS[name]


def test_a_readme_that_names_no_book_is_refused():
    with pytest.raises(ValueError, match="README.md must begin with a link to the published book"):
        readme.refreshed(README, TEXTS[README].replace("https://", "http://"), install_cell.book_url())


def test_a_chapter_without_a_question_is_named(tmp_path, monkeypatch):
    front = readme.FRONT.read_text(encoding="utf-8").replace("chapters/09_", "chapters/99_")
    monkeypatch.setattr(readme, "FRONT", tmp_path / "index.md")
    readme.FRONT.write_text(front, encoding="utf-8")
    with pytest.raises(ValueError, match="must ask the question of each chapter, and lacks chapters/09_"):
        readme.table(README, install_cell.book_url())


def test_the_citation_follows():
    cited = yaml.safe_load(readme.cited("url: a\nrepository-code: b\n", "https://x.example/y", "https://z.example/"))
    assert cited == {"url": "https://z.example/", "repository-code": "https://x.example/y"}


@pytest.mark.parametrize("language", moving_picture.LANGUAGES)
def test_the_moving_picture_is_small_and_moves(language):
    file = moving_picture.target(language)
    assert file.stat().st_size <= moving_picture.LARGEST == 1_000_000
    with Image.open(file) as picture:
        times = []
        for number in range(picture.n_frames):
            picture.seek(number)
            times.append(picture.info["duration"])
    assert len(times) > 30 and 15_000 < sum(times) < 22_000, "some seconds of a visit, in pictures"
