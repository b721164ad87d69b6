"""The card that is shown when somebody shares the book: the size that networks ask for, and the book's own words."""

import struct

from tools import share_card


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height, from the header of a PNG."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def test_the_stored_cards_are_one_picture_of_the_right_size():
    share, readme = (file.read_bytes() for file in share_card.FILES)
    assert share == readme
    assert size_of(share) == (1200, 630)
    assert len(share) < share_card.LARGEST


def test_a_new_card_can_be_drawn(browser):
    card = share_card.draw(browser)
    assert size_of(card) == (1200, 630)
    assert len(card) > 20_000, "the map is on it"


def test_card_and_front_page_ask_the_same_question():
    index = (share_card.ROOT / "book/index.md").read_text(encoding="utf-8")
    assert index.startswith(f"# {share_card.TITLE}\n")
    assert share_card.QUESTION in index
