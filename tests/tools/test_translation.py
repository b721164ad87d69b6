"""The Chinese edition fits the English; whatever does not is told with its place."""

import json
from types import SimpleNamespace

import pytest

from tools import translated, translation
from tools.translated import Block, Part, fingerprint
from tools.translation import complaints, differences, misprints, of_block, of_cell, shown_by

ENGLISH = "The *score* of `q` is $q \\cdot k$, 1,024 times, [see](a.md)."
CHINESE = "`q` 的**分数**是 $q \\cdot k$，共 1,024 次，[见这里](a.md)。"


def test_the_chinese_edition_fits(capsys):
    """Red: `python -m tools.translation` says which Chinese block an English change concerns."""
    assert translation.main([]) == 0, capsys.readouterr().out


def wrong(english: str, chinese: str, seen: str | None = None) -> list[str]:
    return list(of_block(english, Block(seen or fingerprint(english), chinese)))


def test_a_fitting_block_is_not_complained_about():
    assert wrong(ENGLISH, CHINESE) == []


def test_a_changed_sentence_makes_its_block_stale_and_says_the_new_fingerprint():
    changed = ENGLISH.replace("times", "places")
    assert wrong(changed, CHINESE, fingerprint(ENGLISH)) == [f"is stale, its English is {fingerprint(changed)} now"]


@pytest.mark.parametrize(
    "before, after, told",
    [
        ("$q \\cdot k$", "$k \\cdot q$", "lacks formulas: $q \\cdot k$"),
        ("`q`", "`k`", "lacks code: `q`"),
        ("(a.md)", "(b.md)", "lacks links: a.md"),
        ("1,024", "1,025", "lacks numbers: 1024"),
    ],
)
def test_what_differs_is_told(before, after, told):
    assert told in wrong(ENGLISH, CHINESE.replace(before, after))


@pytest.mark.parametrize(
    "english, chinese, feature",
    [
        ("| a |\n|---|\n| b |", "| 甲 |\n|---|", "rows of tables"),
        ("- a\n- b", "- 甲", "items of lists"),
        ("## A\n\ntext", "文", "headings"),
        ("```bash\nmake\n```", "```bash\nmake it\n```", "fences"),
        ("<details><summary>Answer</summary>x</details>", "<details>答</details>", "tags"),
    ],
)
def test_what_is_built_differently_is_told(english, chinese, feature):
    assert any(feature in one for one in differences(english, chinese))


def test_numbers_count_by_their_value_and_may_be_spelled():
    assert not list(differences("0.5 million of 26 million", "2600 万中的 50 万"))
    assert not list(differences("eight heads, a twentieth of 4", "8 个头，四的二十分之一"))
    assert list(differences("seven heads", "8 个头")) == ["has other numbers: 8"]


def test_the_caption_of_a_block_is_words_and_its_code_is_not():
    english, chinese = (f"```{{code-block}} bash\n:caption: {words}\nmake\n```" for words in ("Not run", "没有运行"))
    assert not list(differences(english, chinese))
    assert list(differences(english, chinese.replace("make", "make it")))


def test_a_link_may_lead_to_the_translation_of_what_the_english_one_leads_to():
    assert not list(differences("[a](book/live.md), [b](README.zh.md)", "[甲](zh/book/live.md)，[乙](README.md)"))
    assert not list(differences("![a](a.png)", "![甲](a.zh.png)"))
    assert list(differences("[a](book/live.md)", "[甲](zh/book/index.md)")) == [
        "lacks links: book/live.md",
        "has other links: book/index.md",
    ]


def test_the_months_are_numbers_in_chinese():
    assert not list(differences("on 24 March 2026", "2026 年 3 月 24 日"))


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_both_readmes_lead_to_files_that_are_there(name):
    text = (translation.ROOT / name).read_text(encoding="utf-8")
    links = [link for link in translation._LINK.findall(text) if "://" not in link]
    assert len(links) > 5 and all((translation.ROOT / link.split("#")[0]).exists() for link in links)


@pytest.mark.parametrize(
    "chinese, told",
    [
        ("一个head", "no space between Han and Latin"),
        ("96维", "no space between Han and Latin"),
        ("这是头,那是键", "a half-width sign after Han"),
        ("这是头， 那是键", "a space beside a full-width sign"),
        ('这是"头"', "straight quotation marks at Han"),
        ("**先猜一猜。**查询是什么", "bold words do not end"),
        ("这是*斜体*字", "italics on Han"),
    ],
)
def test_chinese_that_is_set_wrong_is_told(chinese, told):
    assert any(one.startswith(told) for one in misprints(chinese))


def test_chinese_that_is_set_well_is_not():
    text = "**其实**：每头 96 维，`q_proj` 是 $E$ 的（见图）。**“错了。”** 对。\n\n> - *猜错*：因为 *Mia* 在那里。"
    assert list(misprints(text)) == []


def test_an_untranslated_text_in_a_block_is_told():
    assert "is still English" in wrong("Four words of English", "Four words of English")


QUIZ = 'data-figure="quiz"><script type="application/json">{"questions":[{"question":"Why so?"}]}</script>'
CELL = {
    "source": 'plot(x, "scores")',
    "outputs": [
        {"data": {"image/svg+xml": "<svg><style>a b</style><text>scores</text><text>Mia</text></svg>"}},
        {"data": {"text/html": QUIZ}},
        {"text": "printed words"},
    ],
}


def test_words_that_a_cell_shows_need_chinese_and_chinese_needs_words_that_are_shown():
    assert shown_by(CELL) == {"scores": True, "Mia": True, "Why so?": True}
    block = Block(None, "- scores\n  - 分数\n- gone\n  - 没了")
    assert list(of_cell(CELL, block)) == ["shows words without Chinese: 'Why so?'", "shows no more: 'gone'"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of one page and its translation."""
    for module in (translated, translation):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(translated, "FOLDER", tmp_path / "zh")
    (tmp_path / "book").mkdir()
    (tmp_path / "zh" / "book").mkdir(parents=True)
    (tmp_path / "book" / "page.md").write_text("# Page\n\nOne line.\n\n## Part\n", encoding="utf-8")
    (tmp_path / "zh" / "book" / "page.md").write_text("<!-- top -->\n# 页\n\n一行。\n\n<!-- old -->\n旧\n", "utf-8")
    return tmp_path


def test_missing_parts_and_parts_that_are_gone_are_told(project):
    found = [*complaints(project / "book" / "page.md")]
    assert [one.split(": ", 1)[1].split(",")[0] for one in found] == [
        "there is no part called old any more",
        "top is stale",
        "part is missing",
    ]


def test_a_row_with_other_cells_than_its_original_is_told(project):
    (project / "book" / "terms.tsv").write_text("Term\tMeaning\nhead\tit reads\n", "utf-8")
    (project / "zh" / "book" / "terms.tsv.md").write_text(
        "<!-- titles -->\n词\n意思\n\n<!-- head -->\n它会读\n", "utf-8"
    )
    assert "zh/book/terms.tsv.md: head has 1 lines, and its row 2 cells: a line for each" in [
        *complaints(project / "book" / "terms.tsv")
    ]


def test_accepting_writes_the_fingerprints_and_nothing_else(project):
    path = project / "zh" / "book" / "page.md"
    before = path.read_text(encoding="utf-8")
    translation.accept(project / "book" / "page.md")
    assert path.read_text(encoding="utf-8") == before.replace(
        "<!-- top -->", f"<!-- top {fingerprint('# Page One line.')} -->"
    )


def test_a_code_cell_is_no_part_that_goes_stale(project):
    assert (
        list(translation.of_part(Part("x = 1", is_code=True), None, json.loads('{"source": "", "outputs": []}'))) == []
    )


def test_words_of_figures_go_stale_with_their_english(project, monkeypatch):
    folder = project / "dial"
    folder.mkdir()
    monkeypatch.setattr(translation, "PACKAGE", project)
    (folder / "words.js").write_text('export const dialWords = { en: "angle" };', encoding="utf-8")
    twin = folder / "words.zh.js"
    twin.write_text('// The Chinese words of words.js as of 00000000.\n{ zh: "角度" }', encoding="utf-8")
    [told] = translation.of_scripts()
    assert told.startswith("dial/words.zh.js: is stale, words.js is ")
    translation.accept_scripts(("di",))
    assert list(translation.of_scripts()) == [] and twin.read_text(encoding="utf-8").endswith('{ zh: "角度" }')


def test_a_figure_without_chinese_words_is_told(project, monkeypatch):
    folder = project / "dial"
    folder.mkdir()
    monkeypatch.setattr(translation, "PACKAGE", project)
    (folder / "words.js").write_text('export const dialWords = { en: "angle" };', encoding="utf-8")
    [told] = translation.of_scripts()
    assert told.startswith("dial/words.zh.js: is missing")
    assert list(translation.of_scripts({"dial"})) == [told] and list(translation.of_scripts({"other"})) == []


@pytest.fixture
def shown(project, monkeypatch):
    """A chapter that shows one figure at its head and another in a cell, both with stale words."""
    monkeypatch.setattr(translation, "PACKAGE", project / "figures")
    for name in ("small_dial", "comb", "third"):
        folder = project / "figures" / name
        folder.mkdir(parents=True)
        (folder / "words.js").write_text("", encoding="utf-8")
        (folder / "words.zh.js").write_text("// as of 00000000", encoding="utf-8")
    outputs = [{"output_type": "display_data", "data": {"text/html": '<div data-figure="comb"></div>'}, "metadata": {}}]
    cells = [
        {"cell_type": "code", "id": "a", "source": "", "metadata": {}, "outputs": outputs, "execution_count": 1},
        {"cell_type": "code", "id": "b", "source": "", "metadata": {}, "outputs": [], "execution_count": None},
    ]
    notebook = {"cells": cells, "metadata": {"minimind": {"opening": ["SmallDial", {}]}}}
    path = project / "page_dials.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_a_chapter_is_looked_at_with_its_figures_and_says_what_was_not(shown, project, monkeypatch, capsys):
    twin = project / "page_dials.md"
    twin.write_text("", encoding="utf-8")
    monkeypatch.setattr(translation, "translations", lambda: [twin])
    monkeypatch.setattr(translation, "original_of", lambda path: shown)
    monkeypatch.setattr(translation, "complaints", lambda original: [])
    monkeypatch.setattr(translation, "answers", SimpleNamespace(of_checks=lambda: []))
    assert translation.main(["page"]) == 1
    told = capsys.readouterr().out
    assert "small_dial/words.zh.js: is stale" in told and "comb/words.zh.js: is stale" in told
    assert "third" not in told, "the page does not show it"
    assert "not looked at before `python -m tools.refresh` runs them: b\n" in told
    assert "Looked at: page_dials.ipynb, the words of comb, small_dial. Not looked at: all else" in told
    assert translation.main(["thi"]) == 1 and "third/words.zh.js: is stale" in capsys.readouterr().out
    assert translation.main(["none"]) == 1 and "Nothing that is translated" in capsys.readouterr().out


SHAPE = """async (files) => {
    const shape = (word) => {
        if (Array.isArray(word)) return word.map(shape);
        if (typeof word !== "object") return typeof word;
        return Object.fromEntries(Object.entries(word).map(([key, inner]) => [key, shape(inner)]));
    };
    const tables = await Promise.all(files.map((file) => import(file)));
    const words = (table) => shape(Object.values(table)[0]);
    return tables.map((module) => Object.entries(module).map(([name, table]) => [name, words(table)]));
}"""


@pytest.mark.parametrize("twin", translation.twins(), ids=lambda path: path.parent.name)
def test_the_chinese_words_of_a_figure_are_as_many_and_of_the_same_kind(node, twin):
    """But for glosses of Chinese words, which need none."""
    files = [f"/{path.relative_to(translation.PACKAGE).as_posix()}" for path in (translation.english_of(twin), twin)]
    english, chinese = (dict(table) for table in node.evaluate(SHAPE, files))
    if twin.name.startswith("glosses"):
        english = {name: {word: words[word] for word in chinese[name]} for name, words in english.items()}
    assert chinese == english
