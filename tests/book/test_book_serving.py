"""The picture of rooms and pages is counted, and the page about more than one machine says what it shows."""

import re

import pytest
from minimind_book import serving
from minimind_book.serving import MOST, PAGE, POSITIONS, ROOM, TEXTS, Part, Text, in_pages, in_rooms, spelled

from tools.chapters import ROOT

WAYS = {
    "rooms": (ROOM, in_rooms(TEXTS, POSITIONS // ROOM)),
    "pages": (PAGE, in_pages(TEXTS, POSITIONS // PAGE, PAGE, MOST)),
}


def test_rooms_wait_for_the_longest_text_of_three():
    assert [spelled(memory, 4) for memory in in_rooms({"A": Text(1, 3), "B": Text(2, 1), "C": Text(1, 1)}, 2)] == [
        "A... BB..",
        "AA.. BBB.",
        "AAA. bbb.",
        "AAAA bbb.",
        "CC.. ....",
    ]


def test_a_text_takes_the_first_free_page_when_it_needs_one_and_the_next_joins_when_it_has_ended():
    texts = {"A": Text(2, 2), "B": Text(2, 1), "C": Text(1, 1)}
    assert [spelled(memory, 2) for memory in in_pages(texts, 4, 2, most=2)] == [
        "AA BB .. ..",
        "AA BB A. B.",
        "AA CC AA ..",
    ]


def test_without_a_page_left_it_says_so():
    with pytest.raises(ValueError, match="text B needs a page and all 3 are taken: give more pages or fewer texts"):
        in_pages({"A": Text(2, 2), "B": Text(2, 2)}, 3, 2, most=2)


@pytest.mark.parametrize("way", WAYS)
def test_either_way_every_text_is_written_whole_and_nowhere_are_two(way):
    size, moments = WAYS[way]
    for name, (prompt, words) in TEXTS.items():
        held = [sum(part.filled for part in memory if part and part.text == name) for memory in moments]
        lengths = [length for length, memory in zip(held, moments, strict=True) if any_of(memory, name)]
        assert lengths == sorted(lengths) and lengths[-1] == prompt + words
        growing = [length for length in dict.fromkeys(lengths) if length > prompt]
        assert growing == list(range(prompt + 1, prompt + words + 1)), "one word per step"
    assert all(len(memory) * size == POSITIONS for memory in moments)
    assert all(0 < part.filled <= size for memory in moments for part in memory if part)


def any_of(memory: list[Part | None], name: str) -> bool:
    return any(part and part.text == name and not part.waits for part in memory)


def test_the_page_says_what_the_picture_shows():
    page = (ROOT / "book" / "beyond_one_machine.md").read_text(encoding="utf-8")
    number = {5: "five", 9: "nine"}
    rooms, pages = (number[len(moments) - 1] for _, moments in WAYS.values())
    assert f"may begin: {rooms} steps." in page and f"texts fit: {pages} steps." in page
    wanted = [str(text.words) for text in TEXTS.values()]
    readers = f"Five readers, {min(TEXTS)} to {max(TEXTS)}, want"
    assert f"{readers} {', '.join(wanted[:-1])} and {wanted[-1]} words" in page
    assert max(map(sum, TEXTS.values())) == ROOM and f"longer than {ROOM}." in page and f"{POSITIONS} positions" in page
    where = {
        name: [i for i, part in enumerate(memory) if part and part.text == name]
        for name, memory in (("A", WAYS["pages"][1][0]), ("C", WAYS["pages"][1][0]), ("E", WAYS["pages"][1][2]))
    }
    assert where["C"] == where["E"], "E takes C's page"
    assert WAYS["pages"][1][4][where["A"][0]].text == "D", "D ends in the page where A began"


def test_the_picture_is_described_and_names_all_texts():
    svg = serving.serving().svg
    assert set(TEXTS) <= set(re.findall(r">([A-E])<", svg)) and "AAAA BBB. CC.. D... .... ...." in svg
