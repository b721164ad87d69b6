"""verdicts.verdict: the screen, in both languages. That every sentence has its Chinese, conftest.py asks of each."""

import re
from html import unescape
from pathlib import Path

import pytest

import minimind_edu.verdicts
from minimind_edu.verdicts.verdict import Verdict, as_html, in_language, is_any_wrong, screen
from minimind_edu.words import breadth, pairs_in

FOLDER = Path(minimind_edu.verdicts.__file__).parent
PAIRS = pairs_in((FOLDER / "words.zh.md").read_text(encoding="utf-8"))
BROKEN = "from step 300 on the loss is no number: the first one already"
GROUPS = {
    "train.log": [
        Verdict("start", "fine", "it begins at 8.86, and ln 6,400 = 8.76 is a blind guess: a new model", at=0),
        Verdict("NaN", "wrong", BROKEN, "begin again with 5e-4: what is NaN stays NaN"),
    ],
    "a.jsonl": [Verdict("rows", "look", "every line is a row of this form")],
}


def test_the_screen_says_all_and_counts_it():
    lines = screen(GROUPS).splitlines()
    assert lines[0] == "train.log" and lines[-1] == "wrong 1, look here 1, fine 1"
    told = " ".join(" ".join(lines).split())
    assert told.startswith(f"train.log fine start {GROUPS['train.log'][0].finding} wrong NaN ")
    assert any(line.strip() == "→ begin again with 5e-4: what is NaN stays NaN" for line in lines)
    assert is_any_wrong(GROUPS) and not is_any_wrong({"a.jsonl": GROUPS["a.jsonl"]})


def test_the_screen_in_chinese_has_its_columns_below_each_other():
    lines = screen(GROUPS, "zh").splitlines()
    assert lines[-1] == "有误 1，留意 1，正常 1"
    assert lines[1].split() == ["正常", "起点", "从", "8.86", "开始，瞎猜是", "ln", "6,400", "=", "8.76：是个新模型"]
    begins = ((lines[1], "从"), (lines[2], "从"), (lines[3], "→"))
    columns = [breadth(line[: line.index(word)]) for line, word in begins]
    assert len(set(columns)) == 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_is_too_broad_and_none_begins_with_a_closing_sign(language):
    sizes = "two models of different sizes: " + "; ".join(f"name_{n} 1 ≠ 2" for n in range(40))
    long = Verdict("resume", "wrong", sizes, "a few experts take all: raise its coefficient, or lower the rate")
    for line in screen({"x": [long]}, language).splitlines():
        assert breadth(line) <= 80 and not re.match(r"\s*[，。；：？！、）]", line)


def test_what_has_no_chinese_stays_english():
    assert in_language("ValueError: no", "zh") == "ValueError: no"
    assert in_language("fine", "en") == "fine" and in_language("", "zh") == ""
    assert in_language("no model fits: its head is missing", "zh") == "没有模型对得上：its head is missing"


@pytest.mark.parametrize("english", PAIRS)
def test_a_pair_fills_in_the_same_fields(english):
    chinese = PAIRS[english]
    fields = english.count("{}")
    numbered = sorted(re.findall(r"\{(\d)\}", chinese))
    assert chinese.count("{}") == fields or numbered == [str(n) for n in range(fields)], chinese
    filled = in_language(english.replace("{}", "§"), "zh")
    assert filled.count("§") == fields and "{" not in filled


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_says_what_the_screen_says(language):
    def letters(text):
        return re.sub(r"\s", "", text)

    shown = unescape(re.sub(r"<[^>]*>", " ", re.sub("<wbr>", "", as_html(GROUPS, language))))
    assert letters(shown) == letters(screen(GROUPS, language))
    grades = re.findall(r'<li class="(\w+)">', as_html(GROUPS, language))
    assert grades == [verdict.grade for verdicts in GROUPS.values() for verdict in verdicts]


def test_a_file_can_put_no_markup_into_a_page():
    markup = '<img src=x onerror="x()"> in model.layers.0'
    told = Verdict("marks", "look", f"special tokens of another tokenizer stand in texts as plain letters: {markup}")
    shown = as_html({"<script>.jsonl": [told]})
    assert set(re.findall(r"<(\w+)", shown)) == {"div", "p", "ul", "li", "b", "span", "wbr"}
    assert "model.<wbr>layers." in shown
