"""A reference table on a page: each row leads to the place that its last cell names, and that place is there."""

import re

import pytest
from minimind_book import reference

from tools.chapters import ROOT

PAGES = sorted((ROOT / "book" / "reference").glob("*.md"))
LINK = re.compile(r'<a class="reference[^"]*" href="([^"]+)" title="[^"]+"')


def test_a_place_has_a_name_and_an_address():
    page, chapter = "book/reference/glossary", "../../chapters/03_attention.html"
    named = reference.address("attention#6. From many heads to one vector", page)
    assert named == ("3 · 6. From many heads to one vector", f"{chapter}#from-many-heads-to-one-vector")
    assert reference.address("attention", page) == ("3 · Attention", f"{chapter}#attention")
    assert reference.address("book/notation.md#Letters", page) == ("notation · Letters", "../notation.html#letters")
    name, where = reference.address("E71", "book/reference/corrections")
    assert name.startswith("C2 · E71 ") and where.startswith("../../chapters/C2_attention_and_cache.html#e71-")
    with pytest.raises(ValueError, match="'E999' is neither a chapter nor file#heading nor the number of a correction"):
        reference.address("E999", "book/index")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_row_leads_to_a_section_of_the_built_book(html, page):
    built = html / "book" / "reference" / f"{page.stem}.html"
    found = LINK.findall(built.read_text(encoding="utf-8"))
    assert len(found) >= 19 or page.stem == "sources"
    for target in found:
        file, anchor = target.split("#")
        there = (built.parent / file).resolve()
        assert f'id="{anchor}"' in there.read_text(encoding="utf-8"), target
