"""Where pages outside of the book lead: to pages that there are, at the address that the configuration names."""

import re

import pytest

from minimind_edu.web import book
from tools import install_cell
from tools.chapters import ROOT, chapters


def test_the_address_is_that_of_the_configuration():
    """`make refresh` writes it there: see test_install_cell.py."""
    assert book.ADDRESS == install_cell.book_url()


def test_every_page_that_explains_something_is_in_the_book():
    pages = re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert set(book.EXPLAINED.values()) <= set(pages)


@pytest.mark.parametrize(
    ("name", "teaches"),
    [("heads", "attention"), ("cache", "cache"), ("experts", "experts"), ("drawing", "generation"), ("block", "block")],
)
def test_a_view_leads_to_the_chapter_that_teaches_what_it_shows(name, teaches):
    assert teaches in chapters()[book.EXPLAINED[name]].teaches


def test_a_page_in_chinese_leads_to_the_chinese_edition_and_a_built_book_to_itself():
    assert book.links("zh")["heads"] == f"{book.ADDRESS}zh/chapters/03_attention.html"
    assert book.links("en", "../")["heads"] == "../chapters/03_attention.html"
    assert book.links("zh", "../")["heads"] == "../chapters/03_attention.html"
