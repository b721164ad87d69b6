"""minimind_edu.words: pairs are looked up, names are folded, and a Chinese notebook's pictures say theirs."""

import pytest

from minimind_edu.words import Words, breadth, folded, in_state, learn, pairs_in, translated


@pytest.fixture(autouse=True)
def nothing_is_learned():
    yield
    learn({})


def test_pairs_are_a_line_and_the_one_below():
    assert pairs_in("Text.\n\n- a\n  - 一\n- b `c`\n  - 二\n- alone\n") == {"a": "一", "b `c`": "二"}


def test_words_are_found_by_what_they_say_or_by_their_pattern():
    found = Words({"own": "自己的"}, {"own": "别人的", "{} of {} steps": "{} 步中的第 {} 步"})
    assert found(" own ") == " 自己的 " and found("2 of 3 steps") == "2 步中的第 3 步" and found("other") is None


def test_what_stands_in_a_place_is_translated_too_and_its_order_may_change():
    found = Words({"{} of {} in {}": "{2} 里 {1} 个中的 {0} 个", "five": "五"})
    assert found("five of 6 in x") == "x 里 6 个中的 五 个"


def test_the_first_table_counts_in_patterns_too():
    assert Words({"seed {}": "第 {} 个种子"}, {"{} 1": "{} 一", "seed {}": "种子 {}"})("seed 1") == "第 1 个种子"


def test_a_chinese_letter_is_as_broad_as_two():
    assert breadth("QK 归一化") == 9 and breadth("（甲）") == 6


@pytest.mark.parametrize(
    "name, lines",
    [
        ("short", "short"),
        ("without a cache", "without\na cache"),
        ("unbreakablename", "unbreakablename"),
        ("不用缓存", "不用缓存"),
        ("完全不用缓存的时候", "完全不用\n缓存的时候"),
        ("用 grouped heads 时", "用 grouped\nheads 时"),
        ("前面这五个字，后面", "前面这五\n个字，后面"),
        ("前面这三个，后面", "前面这三\n个，后面"),
    ],
)
def test_a_broad_name_is_cut_as_evenly_as_its_words_allow(name, lines):
    assert folded(name, 13) == lines


def test_a_notebook_says_english_until_it_has_learned_other_words():
    assert translated("layer 3") == "layer 3"
    learn({"layer {}": "第 {} 层"})
    assert translated("layer 3") == "第 3 层" and translated("step") == "step"


def test_of_a_state_only_sentences_are_translated():
    words = Words({"none": "无", "Head": "头"})
    assert in_state({"rope": "none", "links": {"head": {"label": "Head"}}}, words) == {
        "rope": "none",
        "links": {"head": {"label": "头"}},
    }
