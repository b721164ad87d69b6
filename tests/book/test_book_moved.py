"""Old addresses of pages lead to where the pages are now."""

import json
import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest
from book_builder import LESSONS, ROOT
from minimind_book import moved
from sphinx.errors import ConfigError
from yaml import safe_load

MOVED = safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]["moved_pages"]


def app_with(folder: Path, table: dict[str, str], pages: set[str]) -> SimpleNamespace:
    (folder / "_static").mkdir()
    names = SimpleNamespace(found_docs=pages)
    return SimpleNamespace(
        outdir=folder, env=names, config=SimpleNamespace(moved_pages=table), builder=SimpleNamespace(format="html")
    )


def test_what_stands_at_the_old_address_names_the_new_one(tmp_path):
    moved.write_signposts(app_with(tmp_path, {"old/page": "new"}, {"new"}), None)
    assert 'href="../new.html"' in (tmp_path / "old" / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("pages", [{"old", "new"}, set()], ids=["a page stands there", "leads nowhere"])
def test_a_table_that_cannot_be_is_refused(tmp_path, pages):
    with pytest.raises(ConfigError, match="old must not be a page, and new must be one"):
        moved.write_signposts(app_with(tmp_path, {"old": "new"}, pages), None)


@pytest.mark.parametrize("old", sorted(MOVED))
@pytest.mark.parametrize("over", ["http", "file"])
def test_a_link_to_a_section_arrives_at_it(page, html, http_address, over, old):
    page.goto(f"{http_address if over == 'http' else html.as_uri()}/{old}.html#exercises")
    page.wait_for_url(f"**/{MOVED[old]}.html#exercises")
    assert page.locator("#exercises").count() == 1


# The places of all chapters before the first of them became a lesson: readers may have kept addresses, and others link.
OLD_PLACES = [line.split("#") for line in (ROOT / "tests/book/old_places.txt").read_text("utf-8").split()]


@pytest.mark.parametrize("name", sorted({name for name, _ in OLD_PLACES}))
def test_every_old_place_is_on_its_page_or_leads_to_where_it_is_now(html, name):
    text = (html / f"{name}.html").read_text(encoding="utf-8")
    moved_to = json.loads(unescape((re.findall(r'<article[^>]* data-moved="([^"]*)"', text) or ["{}"])[0]))
    for anchor in (anchor for page, anchor in OLD_PLACES if page == name):
        page, _, now = moved_to.get(anchor, f"{Path(name).name}.html#{anchor}").partition("#")
        target = (html / name).parent / (page or f"{Path(name).name}.html")  # of the page itself
        assert f'id="{now}"' in target.read_text(encoding="utf-8"), f"{anchor}: tell `moved_places` in _config.yml"


@pytest.mark.parametrize("name", LESSONS)
@pytest.mark.parametrize("over", ["http", "file"])
def test_an_old_address_of_a_proof_arrives_on_the_deeper_page(page, html, http_address, over, name):
    text = (html / f"{name}.html").read_text(encoding="utf-8")
    places = json.loads(unescape(re.findall(r'<article[^>]* data-moved="([^"]*)"', text)[0]))
    anchor, now = next((anchor, now) for anchor, now in places.items() if "deeper/" in now)
    page.goto(f"{http_address if over == 'http' else html.as_uri()}/{name}.html#{anchor}")
    page.wait_for_url(f"**/{now}")


def places_app(tmp_path, table: dict[str, str]) -> SimpleNamespace:
    for name, headings in {"old": "# One\n\n## Kept\n", "new": "# Two\n\n## There\n"}.items():
        (tmp_path / f"{name}.md").write_text(headings, encoding="utf-8")
    env = SimpleNamespace(found_docs={"old", "new"}, doc2path=lambda page: str(tmp_path / f"{page}.md"))
    builder = SimpleNamespace(get_relative_uri=lambda _, page: f"{page}.html")
    return SimpleNamespace(env=env, builder=builder, config=SimpleNamespace(moved_places=table))


def test_a_place_that_has_another_name_now_is_told_to_its_page(tmp_path):
    app = places_app(tmp_path, {"old#gone": "new#there"})
    assert json.loads(moved.places_from(app, "old")) == {"gone": "new.html#there"}
    assert moved.places_from(app, "new") == moved.places_from(app, "search") == ""


@pytest.mark.parametrize("table", [{"old#kept": "new#there"}, {"old#gone": "new#nowhere"}], ids=["stands", "nowhere"])
def test_a_table_of_places_that_cannot_be_is_refused(tmp_path, table):
    with pytest.raises(ConfigError, match=r"old#\w+ must not be a place, and new#\w+ must be one"):
        moved.places_from(places_app(tmp_path, table), "old")
