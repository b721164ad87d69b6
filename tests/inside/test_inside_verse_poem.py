"""What the page of verse makes of what is typed, and what it counts of the rules: as the package's exam counts."""

import random
from collections import Counter

import pytest

from minimind_edu.inside.verse import sounds
from minimind_edu.trained.verse import exam, rhymes
from minimind_edu.trained.verse.corpus import EOS, characters, ids_of, read_corpus
from minimind_edu.trained.verse.exam import WHOLE, lines_of

KNOWN = characters()[4:]
START = """async ([sounds, known]) => {
    Object.assign(globalThis, await import("/inside/verse/poem.js"));
    globalThis.soundOf = soundsOf(sounds);
    globalThis.known = new Map([...known].map((one, i) => [one, i + 4]));
}"""
JUDGE = """(poems) => poems.map(([poem, lines, width]) => {
    const judged = judge(poem, { lines, width }, soundOf);
    return [judged, countsOf(judged), groupsOf(judged, poem, soundOf)];
})"""


@pytest.fixture(scope="module")
def poem(node):
    node.evaluate(START, [sounds(), "".join(KNOWN)])
    return node


@pytest.fixture(scope="module")
def held_out():
    """Texts of held-out poems of each form."""
    held = read_corpus().held_out
    return {name: ["".join(characters()[id] for id in row if id > EOS) for row in held[name][:60]] for name in WHOLE}


def judged(poem, texts):
    lines = [lines_of(text) for text in texts]
    return poem.evaluate(JUDGE, [[list("".join(one)), len(one), len(one[0])] for one in lines])


def test_tones_and_groups_are_those_of_the_package(poem):
    found = poem.evaluate(
        "(all) => all.map((one) => [soundOf(one).tone, [...soundOf(one).groups].sort()])", list(KNOWN)
    )
    listed = rhymes.in_level().any(1) | rhymes.in_oblique()
    tones, groups = rhymes.tones().tolist(), rhymes.groups_of()
    for one, (tone, names) in zip(KNOWN, found, strict=True):
        assert tone == (tones[ids_of()[one]] if listed[ids_of()[one]] else None), one
        assert names == sorted(name[3:] for name in groups.get(one, ())), one
    assert Counter(tone for tone, _ in found).keys() == {1, 0, -1, None}


@pytest.mark.parametrize("kind", ["held out", "of a bag of characters"])
def test_what_is_counted_is_what_the_exam_counts(poem, held_out, kind):
    for texts in held_out.values():
        if kind != "held out":  # most rules are broken
            source = random.Random(1)
            texts = ["".join(one if one in "，。" else source.choice(KNOWN[:400]) for one in text) for text in texts]
            texts[0] = texts[0][:-2] + texts[0][-len(texts[0]) // 2 - 2] + "。"  # the same character twice
        expected, found = exam.judged(texts), judged(poem, texts)
        all_rhymes = [one["found"] for each, _, _ in found for one in each["rhymes"]]
        assert len(all_rhymes) == expected["pairs"]
        assert all_rhymes.count("rhyme") / len(all_rhymes) == pytest.approx(expected["rhyme"])
        assert all_rhymes.count("same") / len(all_rhymes) == pytest.approx(expected["same"])
        width = len(lines_of(texts[0])[0])
        for place, share in zip((1, 3), expected["opposite"], strict=True):
            rights = [one["isRight"] for each, _, _ in found for one in each["tones"] if one["at"] % width == place]
            assert sum(rights) / len(rights) == pytest.approx(share)
        for parity, name in ((1, "even_level"), (0, "odd_oblique")):
            ends = [one for each, _, _ in found for one in each["ends"] if one["at"] // width % 2 == parity]
            assert sum(one["isRight"] for one in ends) / len(ends) == pytest.approx(expected[name])
        sums = [sum(counts["rhymes"][i] for _, counts, _ in found) for i in (0, 1)]
        assert sums == [all_rhymes.count("rhyme"), len(all_rhymes)]


def test_the_sixth_place_counts_in_lines_of_seven_and_the_last_place_never(poem, held_out):
    for name, places in (("4x5", {1, 3}), ("4x7", {1, 3, 5})):
        width = WHOLE[name][1]
        found = {one["at"] % width for each, _, _ in judged(poem, held_out[name]) for one in each["tones"]}
        assert found == places


def test_a_first_line_that_rhymes_belongs_to_the_rhyme_and_the_group_is_named(poem):
    [[found, _, groups]] = judged(poem, ["远上寒山石径斜，白云生处有人家。停车坐爱枫林晚，霜叶红于二月花。"])
    assert found["first"] == [13, 6] and groups == ["六麻"]
    assert found["rhymes"] == [{"at": 27, "by": 13, "found": "rhyme"}]
    [[found, _, groups]] = judged(poem, ["空山新雨后，天气晚来秋。明月松间照，清泉石上流。"])
    assert found["first"] == [9] and groups == ["十一尤"]


def test_of_a_poem_that_is_being_written_only_what_is_there_is_judged(poem):
    script = "(poem) => judge(poem, { lines: 4, width: 5 }, soundOf)"
    text = "空山新雨后天气晚来秋明月松间照清泉石上流"
    for length in range(21):
        found = poem.evaluate(script, [*text[:length], *[None] * (20 - length)])
        assert len(found["rhymes"]) == (length == 20)
        assert all(one["at"] < length for kind in ("tones", "ends") for one in found[kind])


def laid(poem, begin="", rhyme="", lines=4, width=5):
    typed = {"begin": begin, "rhyme": rhyme, "lines": lines, "width": width}
    return poem.evaluate("(typed) => layOut(typed, known)", typed)


@pytest.mark.parametrize(
    "begin, wanted, form, given",
    [
        ("", {}, (4, 5), 0),
        ("春", {"width": 7, "lines": 8}, (8, 7), 1),
        ("春眠不觉晓", {}, (4, 5), 5),
        ("春眠不觉晓", {"width": 7}, (4, 7), 5),  # it may go on
        ("春眠不觉晓，", {"width": 7}, (4, 5), 5),  # it does not
        ("远上寒山石径", {}, (4, 7), 6),
        ("远上寒山石径斜", {}, (4, 7), 7),
        ("空山新雨后，天气晚来秋。明月", {"width": 7}, (4, 5), 12),
        ("空山新雨后\n天气晚来秋  明月松间照,清泉石上流.竹喧", {}, (8, 5), 22),
    ],
)
def test_the_form_follows_what_is_typed(poem, begin, wanted, form, given):
    found = laid(poem, begin, **wanted)
    assert found["problem"] is None and (found["lines"], found["width"]) == form and len(found["given"]) == given


@pytest.mark.parametrize(
    "typed, problem",
    [
        ({"begin": "春眠不覺曉"}, {"name": "strange", "character": "覺"}),
        ({"begin": "春", "rhyme": "x"}, {"name": "strange", "character": "x"}),
        ({"begin": "😀"}, {"name": "strange", "character": "😀"}),
        ({"begin": "春眠，不觉晓"}, {"name": "length", "line": "春眠", "count": 2, "width": 5}),
        ({"begin": "春眠不觉晓，处处闻啼鸟夜"}, {"name": "length", "line": "处处闻啼鸟夜", "count": 6, "width": 5}),
        (
            {"begin": "春眠不觉晓处处闻啼鸟"},
            {"name": "length", "line": "春眠不觉晓处处闻啼鸟", "count": 10, "width": 7},
        ),
        ({"begin": "春眠不。"}, {"name": "length", "line": "春眠不", "count": 3, "width": 5}),
        ({"begin": "春眠不觉晓，" * 9}, {"name": "long", "count": 9}),
        ({"rhyme": "花家"}, {"name": "rhymes", "count": 2}),
        ({"begin": "春眠不觉晓，春眠不觉晓", "rhyme": "花"}, {"name": "taken", "character": "晓"}),
    ],
)
def test_what_cannot_be_laid_out_is_refused_by_name(poem, typed, problem):
    assert laid(poem, **typed)["problem"] == problem


def test_a_rhyme_is_asked_for_until_the_second_line_is_typed(poem):
    assert laid(poem, "春眠不觉晓，春眠不觉", "花")["rhyme"] == "花"
    assert laid(poem, "春眠不觉晓，春眠不觉花", "花") == {
        "problem": None, "given": list("春眠不觉晓春眠不觉花"), "rhyme": None, "lines": 4, "width": 5,
    }  # fmt: skip


def test_a_poem_is_written_with_its_marks(poem):
    text = "空山新雨后，天气晚来秋。明月松间照，清泉石上流。"
    assert poem.evaluate("(poem) => textOfPoem(poem, 5)", [one for one in text if one in KNOWN]) == text
