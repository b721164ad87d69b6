"""Old addresses of pages lead to where the pages are now."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from book_builder import ROOT
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
