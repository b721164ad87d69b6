"""What the book's Sphinx extension makes of a page: folds, pictures, letters, figures, facts and descriptions."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from book_builder import CHAPTERS
from docutils import nodes
from docutils.utils import new_document
from minimind_book import card, chinese, facts, figures, folding, pictures, symbols
from minimind_book.figures import STATIC
from minimind_book.pages import compressed, description_of, lighter
from minimind_book.words import SCRIPT_WORDS, WORDS, words

from minimind_edu import living, plotting, world
from minimind_edu.checks.exercise import NOT_ATTEMPTED
from minimind_edu.figures import host
from minimind_edu.figures.minimind_live import next_words
from minimind_edu.palette import PALETTE
from tools import install_cell
from tools.chapters import ROOT


def cell(source: str, *printed: str, tags: tuple[str, ...] = ()) -> nodes.container:
    """A code cell as myst-nb gives it to the extension."""
    code = nodes.container(nb_element="cell_code_source")
    code += nodes.literal_block(source, source)
    whole = nodes.container(nb_element="cell_code", cell_metadata={"tags": list(tags)}, classes=["cell"])
    whole += code
    if printed:
        out = nodes.container(nb_element="cell_code_output")
        out += [nodes.literal_block(text, text) for text in printed]
        whole += out
    folding.fold_cell(whole, words("en"))
    return whole


def test_a_cell_folds_behind_the_names_that_it_defines_and_its_length():
    """One blank line is shown of the two between functions."""
    fold, output = cell("def one():\n    pass\n\n\nclass Two:\n    pass", "printed").children
    assert (fold["what"], fold["lines"], fold["open"]) == ("one, Two", "code, 5 lines", False)
    assert output.astext() == "printed"


def test_a_title_names_the_fold_and_one_line_is_one_line():
    [fold] = cell("# @title Solution 1").children
    assert (fold["what"], fold["lines"]) == ("Solution 1", "code, 1 line")


def test_what_a_reader_must_see_stays_open_and_a_hidden_cell_folds_with_its_outputs():
    assert cell("x = 1", tags=("keep",)).children[0]["open"]
    hidden = cell("x = 1", "printed", tags=("hide-cell",))
    [fold] = hidden.children
    assert "printed" in fold.astext() and not fold["open"] and "whole" in hidden["classes"]


def test_the_cell_that_installs_the_package_is_named_for_the_styles():
    """It is hidden while one reads, and stands first among the code."""
    title = next(line for line in install_cell.source().splitlines() if line.strip())
    assert "install" in cell(install_cell.source(), tags=("hide-cell",))["classes"], title
    assert "install" not in cell("x = 1")["classes"]


def test_an_exercise_says_where_to_solve_it_instead_of_what_it_printed():
    fold, note = cell("def mine(): ...", f"check_mine\n  {NOT_ATTEMPTED}").children
    assert fold["open"] and note.astext() == WORDS["en"]["not_run"]


def test_a_picture_takes_the_colors_of_the_page_and_says_what_it_shows():
    drawn = f'<?xml version="1.0"?><!-- by a tool --><svg width="1pt"><path stroke="{PALETTE["q"].either}"/></svg>'
    written = pictures.inline(drawn, "A line that rises from 0 to 1")
    assert 'stroke="var(--mm-q)"' in written and written.startswith('<div class="picture"><svg role="img"')
    assert 'aria-label="A line that rises from 0 to 1"' in written and "<?xml" not in written and "tool" not in written


def test_a_picture_stands_beside_its_twin_for_phones_and_both_are_named():
    [ax] = plotting.new_axes()
    ax.plot([0, 1])
    written = pictures.inline(plotting.picture(ax, alt='A line that rises from "a" to <b>').svg, "")
    whole = ElementTree.fromstring(written.replace(' xmlns="http://www.w3.org/2000/svg"', ""))
    wide, narrow = whole
    assert (wide.find("title").text, wide.find("svg")) == ('A line that rises from "a" to <b>', None)
    assert (narrow.get("class"), narrow.get("aria-label"), narrow.get("display")) == (
        "narrow",
        'A line that rises from "a" to <b>',
        None,
    )


@pytest.mark.parametrize("alt", ["", "picture.svg", "_images/a.svg"])
def test_a_picture_without_a_sentence_is_refused(alt):
    with pytest.raises(ValueError, match="no description"):
        pictures.inline("<svg></svg>", alt)


def test_letters_are_named_only_where_they_stand_for_something():
    rope, norms = "chapters/04_rope_rotation", "chapters/02_rmsnorm_vs_layernorm"
    assert symbols.attribute(rope, "m - n") == ' data-sym="m-n"' and symbols.attribute(norms, "m - n") == ""
    assert symbols.attribute(rope, "q + k") == ""
    formula = "<math><mi>q</mi><mo>+</mo><mi>x</mi></math>"
    assert symbols.mark_formula(rope, formula) == '<math><mi data-sym="q">q</mi><mo>+</mo><mi>x</mi></math>'
    assert symbols.mark_formula(norms, formula) == formula


def test_figures_are_numbered_in_their_order_but_for_quizzes(monkeypatch):
    monkeypatch.setattr(figures, "read", lambda file: f"<b>{file.partition('-')[0]}</b>")
    html = "".join(host.element(name, "{}", "<p>numbers</p>") for name in ("rotation_dials", "quiz", "roofline"))
    done = figures.Numbering("en").complete(html, opening=True)
    assert re.findall(r'data-figure="(\w+)" id="(figure-\d)" data-number="(.*?)"', done) == [
        ("rotation_dials", "figure-1", "Figure 1. "),
        ("roofline", "figure-2", "Figure 2. "),
    ]
    assert done.count(host.OPENING_CLASS) == 3 and done.count("inert") == 2 and "<b>rotation_dials</b>" in done


def test_a_figure_that_was_never_drawn_stops_the_build():
    with pytest.raises(RuntimeError, match=r"nothing-\w+\.html is missing.*tools\.stills"):
        figures.read(host.still_name("nothing", "{}"))


def test_numbers_about_the_book_are_counted():
    assert 0 < facts.FACTS["compared-cells"]() < facts.FACTS["code-cells"]()
    assert facts.FACTS["chapters"]() == len(CHAPTERS)


def test_a_page_is_described_by_its_first_paragraph_cut_at_a_word():
    page = nodes.document("", "")
    page += [nodes.paragraph("", "Short."), nodes.paragraph("", "One word after the other. " * 20)]
    text = description_of(page)
    assert len(text) <= 162 and text.endswith(" …") and text.startswith("One word")
    assert description_of(None) == ""


def test_styles_lose_comments_and_space_and_nothing_else():
    assert compressed("/* why */\na > b {\n  color: red;\n}\n") == "a>b{color: red;}"


def test_a_body_loses_what_no_rule_asks_for():
    assert lighter('<div class="scroll docutils container"><p class="">') == '<div class="scroll"><p>'


def test_words_follow_the_language_and_fall_back_to_english():
    assert words("zh-CN") == words("zh_CN") == WORDS["zh"] and words(None) == words("fr") == WORDS["en"]


def test_the_shell_says_everything_in_chinese_too():
    """A page in Chinese also has names of book and authors, a word of Sphinx, and what an untranslated one says."""
    assert WORDS["zh"].keys() - WORDS["en"].keys() == {"book", "author", "listing", "untranslated"}
    assert WORDS["en"].keys() <= WORDS["zh"].keys()
    script = (STATIC / "shell.js").read_text(encoding="utf-8")
    own = re.search(r"\?\.shell \?\? \{(.*?)\n  \};", script, re.DOTALL)[1]
    assert re.findall(r"^    (\w+):", own, re.MULTILINE) == list(SCRIPT_WORDS["shell"])


def test_the_answers_told_on_the_card_are_the_models():
    page = (ROOT / "book" / "living_card.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (\S+), (\d+)\s% \| (\S+) \|$", page, re.MULTILINE)
    assert len(rows) == 6 and sum(said != right for _, said, _, right in rows) == 1
    for story, said, share, right in rows:
        (first, probability, _), *_ = next_words(story)
        assert (first, f"{100 * probability:.0f}") == (said, share), story
        assert max(next_words(story), key=lambda word: word[2])[0] == right, story
    cellar = [dict(word[:2] for word in next_words(row[0])) for row in rows[3:]]
    shares = [100 * (one.get("cellar") or one.get("地窖")) for one in cellar]
    assert re.findall(r"gets (\d+) %", page) == [f"{share:.0f}" for share in shares]


def test_the_card_of_the_living_model_shows_its_exams():
    """Every kind of question has a row, and the numbers are those of the stored card."""
    known = living.card()
    exam, recipe = card.exam_rows(known), card.recipe_rows(known)
    assert len(exam) == len(world.QUESTIONS) + 1 and set(card.words()["asks"]) == set(world.QUESTIONS)
    for kind, row in zip(card.words()["asks"], exam, strict=False):
        assert row[1] == f"{100 * known['int8']['accuracy'][kind]:.1f} %"
        assert row[2:] == [f"{100 * run['accuracy'][kind]:.1f} %" for run in known["runs"]]
    assert card.exam_titles(known)[2:] == ["Seed 0", "Seed 1", "Seed 2"]
    assert exam[-1][1] == f"{known['int8']['kl']:.3f}"
    text = " ".join(" ".join(row) for row in recipe)
    assert f"{known['parameters']:,}" in text and f"{known['bytes']:,} bytes" in text
    assert card.spread([0.25, 0.5], card.percent) == "25.0 % to 50.0 %"


def test_the_chinese_card_has_the_same_numbers(monkeypatch):
    known = living.card()

    def numbers() -> list[list[str]]:
        rows = card.exam_rows(known) + card.recipe_rows(known)
        return [sorted(re.findall(r"\d[\d,.]*\d|\d", " ".join(row))) for row in rows]

    english = numbers()
    monkeypatch.setattr(card.chinese, "IS_CHINESE", True)
    assert numbers() == english and card.words()["asks"].keys() == card.WORDS["en"]["asks"].keys()
    assert card.spread([0.25, 0.5], card.percent) == "25.0% 到 50.0%"
    rows = [card.exam_titles(known), *card.exam_rows(known), *card.recipe_rows(known)]
    assert all(re.search("[\u3400-\u9fff]", row[0]) for row in rows)


def test_a_sign_stays_with_the_formula_before_it_even_where_another_stands_earlier(monkeypatch):
    monkeypatch.setattr(chinese, "is_translated", lambda *_: True)
    document = new_document("page")
    code, first, second = nodes.literal(text="q"), nodes.math(text="k"), nodes.math(text="v")
    document += nodes.paragraph("", "", code, nodes.Text("，"), first, nodes.Text("，"), second, nodes.Text("。"))
    chinese.keep_signs_at_formulas(SimpleNamespace(env=SimpleNamespace(docname="page")), document)
    assert document.astext() == "q，k，v。"
    assert [one.astext() for one in document.findall(nodes.inline)] == ["k，", "v。"]
