"""The map of the source notes: all their sections in their order, all that they teach, all their corrections."""

import re

import pytest
from minimind_book import notes, reference

SECTIONS = notes.sections()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("004 §1.3, Q4", ["004 §1.3", "004 Q4"]),
        ("000 RMS §1, 5.1, 7", ["000 RMS §1", "000 RMS §5.1", "000 RMS §7"]),
        ("004 §3.8; 000 RoPE §6, GQA §3.2; Q14 has no slice", ["004 §3.8", "000 RoPE §6", "000 GQA §3.2", "004 Q14"]),
        ("000 RoPE 3.1", ["000 RoPE §3.1"]),
        ("000 KV §3.1, step 7; likewise 000 GQA §6, item 1", ["000 KV §3.1", "000 GQA §6"]),
        ("004 §5.4-5.6", ["004 §5.4", "004 §5.5", "004 §5.6"]),
        ("004 §3.5; likewise 3.10 and 000 GQA §4.6", ["004 §3.5", "004 §3.10", "000 GQA §4.6"]),
        ("003, attention with a mask", ["003 mask"]),
        ("004 §5.6; 562 is the last word in §5.4", ["004 §5.6", "004 §5.4"]),
        ("001 §8.3; 1e-5 in 000, 003", ["001 §8.3", "000 ", "003 "]),
        ("MiniMind3's `model/model_minimind.py`", []),
    ],
)
def test_a_place_in_the_notes_is_read_as_sections(text, named):
    assert [" ".join(place) for place in notes.sections_in(text)] == named


def test_all_that_the_notes_teach_and_all_corrections_are_under_a_section_that_there_is():
    taught, corrected = notes.taught(), notes.corrected()
    named = {place for place in [*taught, *corrected] if place[1]}
    assert named <= set(SECTIONS)
    assert {row[0] for rows in taught.values() for row in rows} == {f"I{number:03}" for number in range(1, 255)}
    unplaced = set(reference.corrections_by_number()) - {number for found in corrected.values() for number in found}
    assert unplaced == {"E78", "E123"}  # of MiniMind's own code


def test_no_section_of_the_notes_is_without_a_row():
    covered = {*notes.taught(), *notes.corrected()}
    for document, section in SECTIONS:
        whole = (document, section.partition(".")[0])
        within = [place for place in covered if place[0] == document and re.match(rf"{section}[. ]", place[1])]
        assert (document, section) in covered or whole in covered or within, (document, section)


def test_the_map_shows_the_chapters_by_name_under_the_headings_of_the_notes(html):
    page = (html / "book" / "reference" / "notes_map.html").read_text(encoding="utf-8")
    row = r'<tr class="[^"]*section[^"]*" id="notes-{}">.*?{}.*?(?=<tr class="[^"]*section)'
    part = re.search(row.format("004-3-7", "Multi-Head 的实现"), page, re.DOTALL)[0]
    assert "3 · Attention" in part and "Splitting channels into heads" in part
    for number in ("E56", "E73", "E74"):  # which no row leads to, and the reader of this section wants
        assert f"{number} · " in part
    told = re.findall(r"(E\d+) · .*?</a> \((\w+)\)", part)
    assert told == [("E56", "wrong"), ("E73", "wrong"), ("E106", "wrong"), ("E74", "misleading")], (
        "the wrong ones first"
    )
    documents = re.findall(r'<tr [^>]*id="notes-(00\d)', page)
    assert documents == sorted(documents) and set(documents) == {"000", "001", "003", "004"}


def test_the_map_in_chinese_names_chapters_in_chinese_and_says_no_term_twice(html):
    """A lesson that is told in the notes' own terms needs none behind it."""
    page = (html / "zh" / "book" / "reference" / "notes_map.html").read_text(encoding="utf-8")
    assert '<span class="chapter">3 · 注意力</span>' in page and "3 · Attention" not in page
    assert "勘误：" in page and "整份文档" in page and "E02 · RMSNorm 实测快 7.7 倍" in page
    assert 'class="chinese"' not in page and len(re.findall("水压", page)) == 1
