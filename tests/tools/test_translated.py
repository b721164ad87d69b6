"""tools.translated: a translation is taken apart, and put in place of the English and of nothing else."""

import json
import re

import nbformat
import pytest

from minimind_edu.figures import Quiz, choice
from minimind_edu.measure import plotting
from minimind_edu.web.base import Figure
from minimind_edu.words import Words, learn, pairs_in
from tools import translated
from tools.chapters import ROOT
from tools.corrections import corrections
from tools.translated import (
    Block,
    blocks_in,
    fingerprint,
    in_code,
    in_figure,
    in_markup,
    in_picture,
    merged_notebook,
    merged_page,
    merged_rows,
    original_of,
    said_in_code,
    sections_in,
    texts_of_picture,
    translation_of,
    words_to_learn,
)

PAGE = """# The page

A lead.

## One *part*

```bash
# no heading
```

## Another
"""


def test_a_file_is_blocks_with_the_name_and_the_fingerprint_of_their_english():
    found = blocks_in("前言\n<!-- one 0123abcd -->\n甲\n\n乙\n\n<!-- two -->\n- a\n  - 一\n")
    assert found == {"one": Block("0123abcd", "甲\n\n乙"), "two": Block(None, "- a\n  - 一")}
    assert pairs_in(found["two"].text) == {"a": "一"}


def test_a_fingerprint_knows_words_and_not_ends_of_lines():
    assert fingerprint("one\ntwo") == fingerprint("one two") != fingerprint("one three")


def test_a_page_is_cut_at_its_headings_and_not_in_its_code():
    parts = sections_in(PAGE)
    assert list(parts) == ["top", "one-part", "another"] and "# no heading" in parts["one-part"]


def test_a_page_takes_the_sections_that_are_translated():
    page = merged_page(PAGE, {"top": Block(None, "# 页\n\n引子。"), "another": Block(None, "## 另一节")})
    assert page.startswith("# 页\n\n引子。\n\n## One *part*") and page.endswith("## 另一节\n")


def test_a_table_takes_rows_and_keeps_where_they_lead():
    table = "Term\tMeaning\tWhere\nthe head\tIt reads.\tattention#Heads\nother\tx\ty\n"
    block = Block(None, "头\n它会读。")
    assert merged_rows(table, {"the-head": block})[1:] == [["头", "它会读。", "attention#Heads"], ["other", "x", "y"]]


def test_an_empty_first_cell_has_no_line_and_any_other_one_has():
    table = "\tQuestion\tWhere\nQ1\tWhy?\tattention\n"
    blocks = {"titles": Block(None, "问题"), "q1": Block(None, "Q1\n为什么？")}
    assert merged_rows(table, blocks) == [["", "问题", "Where"], ["Q1", "为什么？", "attention"]]
    with pytest.raises(ValueError, match="q1 has 1 lines, and its row 2 cells: a line for each"):
        merged_rows(table, {"q1": Block(None, "为什么？")})


def test_no_row_of_a_table_is_lost_though_first_cells_repeat():
    rows = [["a", "b"], ["000", "x"], ["000", "y"], ["绝对", "z"], ["000", "x"]]
    assert merged_rows("\n".join("\t".join(row) for row in rows), {}) == rows


def test_every_translation_belongs_to_an_original_and_leads_back_to_it():
    for path in translated.translations():
        assert translation_of(original_of(path)) == path
    assert ROOT / "README.zh.md" in translated.translations()  # beside README.md, where readers look for it
    with pytest.raises(ValueError, match="zh/book/gone.md translates nothing"):
        original_of(ROOT / "zh" / "book" / "gone.md")


def test_markup_is_translated_in_texts_and_labels_and_nowhere_else():
    words = Words({"scores": "分数", "a picture": "一张图"})
    svg = '<svg aria-label="a picture" class="scores"><style>scores</style><text>scores</text><text>x</text></svg>'
    assert in_markup(svg, words) == (
        '<svg aria-label="一张图" class="scores"><style>scores</style><text>分数</text><text>x</text></svg>'
    )


def drawn(*names: str) -> str:
    """A picture with curves so named, which end far from each other."""
    curves = {name: [0, number] for number, name in enumerate(names)}
    return plotting.plot_lines([0, 1], curves, "step", "loss", alt="Some curves, drawn for a test.").svg


def test_a_name_on_two_lines_is_one_in_a_picture():
    svg = drawn("without a cache", "with one & more", "short")
    assert {"without a cache", "with one & more", "short", "step"} <= set(texts_of_picture(svg))
    short = in_picture(svg, Words({"without a cache": "不用缓存", "short": "短"}))
    long = in_picture(svg, Words({"with one & more": "用上缓存 <和别的>"}))
    assert ">不用缓存<" in short and ">短<" in short and ">without<" not in short and ">with one<" in short
    assert ">用上缓存<" in long and ">&lt;和别的&gt;<" in long
    height = re.compile(r"translate\(\S+ (\S+)\)\">(\w+)")
    before, after = ({name: float(y) for y, name in height.findall(one)} for one in (svg, short))
    assert before["without"] < after["不用缓存"] < before["a"]


def test_a_quiz_is_translated_with_its_table():
    asked = [choice("Why?", ("A", "no"), ("B", "yes", True), ("C", "no"))]
    words = Words({"Why?": "为什么？", "A": "甲", "B": "乙", "C": "丙", "no": "不", "yes": "对"})
    html = in_figure(Quiz(asked).static_html(), words)
    assert "<p>为什么？</p>" in html and "<summary>答案</summary><p>乙。对</p>" in html and "Why" not in html


def test_code_keeps_all_but_the_words_that_a_reader_sees():
    source = '# @title The plot\n名 = "米娅"; plot(x, "scores", note=f"{x} scores", alt=("two " "words"))  # scores\n'
    own = {"scores": "分数", "two words": "两个词", "The plot": "图"}
    assert in_code(source, own, Words(own)) == (
        '# @title 图\n名 = "米娅"; plot(x, "分数", note=f"{x} scores", alt=("两个词"))  # scores\n'
    )
    assert in_code("%pip install x", {"x": "y"}, Words({})) == "%pip install x"


def test_keys_and_what_is_compared_are_names_in_code():
    source = 'plot({"a": runs["a"]}, name="a") if kind == "a" else show("a")\n'
    assert in_code(source, {"a": "甲"}, Words({})) == (
        'plot({"a": runs["a"]}, name="甲") if kind == "a" else show("甲")\n'
    )


def test_what_a_loop_goes_through_may_be_a_key():
    source = '{per: runs[f"int8 {per}"] for per in ("row", "tensor")}; plot("row")\n'
    assert in_code(source, {"row": "行"}, Words({})) == source.replace('plot("row")', 'plot("行")')


def test_a_label_that_is_also_a_name_is_said_only_where_it_is_handed_to_a_call():
    source = 'shown = {"form": "form", "rhyme": "written"}; plot([x[name] for name in shown.values()], "form")\n'
    assert in_code(source, {"form": "形式"}, Words({})) == source.replace(', "form")', ', "形式")')


def test_what_a_cell_also_prints_stays_english_in_its_code():
    source = 'for name in ("with", "without"):\n    print(name)\nplot(curves, "step")'
    cell = {"source": source, "outputs": [{"text": "with\nwithout\n"}]}
    own = {"with": "用", "without": "不用", "step": "步", "gone": "没了"}
    assert said_in_code(cell, own) == {"step": "步"}


def test_a_stored_figure_is_what_a_chinese_notebook_shows():
    """The same sentences from the translation of what is stored, and from the figure that has learned the words."""
    pairs = {"{} neurons at '{}'": "'{1}' 处的 {0} 个神经元 & <更多>", "the first": "第一个"}

    class Told(Figure):
        _module = "neuron_words"

        def _summary(self):
            return "2 neurons at 'kitchen'", [("the first", "61 %")]

    english = Told().static_html()
    learn(pairs)
    try:
        assert Told().static_html() == in_figure(english, Words(pairs)) != english
    finally:
        learn({})


def test_a_notebook_learns_what_it_shows_and_its_code_does_not_say():
    source = 'plot({"without a cache": x, f"seed {n}": y}, "step", "loss")'
    show = {
        "id": "show",
        "source": source,
        "outputs": [{"data": {"image/svg+xml": drawn("without a cache", "seed 2")}}],
    }
    pairs = "- without a cache\n  - 不用缓存\n- step\n  - 步"
    blocks = {"show": Block(None, pairs), "other": Block(None, "- loss\n  - 损失")}
    assert words_to_learn({"cells": [show, {"id": "other"}]}, blocks) == {
        "without a cache": "不用缓存",
        "seed 2": "种子 2",
    }


def test_a_pattern_of_the_cell_goes_before_a_shared_one_that_fits(monkeypatch):
    monkeypatch.setattr(translated, "shared_words", lambda: {"{}, {} %": "{}，{}%", "seed {}": "种子 {}"})
    picture = {"data": {"image/svg+xml": drawn("large 100 %, draft 46 %", "seed 2")}}
    own = {"large {} %, draft {} %": "大 {}%，草稿 {}%"}
    pairs = "".join(f"- {english}\n  - {chinese}\n" for english, chinese in own.items())
    cell = {"id": "show", "source": "plot()", "outputs": [picture]}
    assert words_to_learn({"cells": [cell]}, {"show": Block(None, pairs)}) == own | {"seed 2": "种子 2"}


def test_a_notebook_takes_its_blocks_and_stays_what_it_was_elsewhere():
    path = ROOT / "chapters" / "01_whole_model.ipynb"
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert merged_notebook(raw, {})["cells"][0] == raw["cells"][0]
    merged = merged_notebook(raw, {"title": Block(None, "# 一")})
    assert merged["cells"][0]["source"] == "# 一" != raw["cells"][0]["source"]
    assert [cell["id"] for cell in merged["cells"]] == [cell["id"] for cell in raw["cells"]]
    nbformat.validate(nbformat.reads(json.dumps(merged), as_version=4))
    printed, told = (
        ["".join("".join(one.get("text", [])) for one in cell.get("outputs", [])) for cell in notebook["cells"]]
        for notebook in (raw, merged)
    )
    others = [text for text, other in zip(printed, told, strict=True) if text != other]
    assert others and all(text.startswith("check_") for text in others), "what checks answer, and nothing else"


def test_every_correction_is_told_in_both_languages_with_the_same_grade():
    english, chinese = corrections(), corrections("zh")
    assert [(one.number, one.grade, one.settled) for one in chinese] == [
        (one.number, one.grade, one.settled) for one in english
    ]
    places = [[sorted(re.findall(r"\d+", one.place)) for one in entries] for entries in (english, chinese)]
    assert places[0] == places[1]
    assert all(len(one.short) <= 45 for one in chinese)
