"""A reference table on a page: each row leads to the place that its last cell names, which is there, and fits."""

import re

import pytest
from book_builder import CHAPTERS, NARROW, WIDE, context_of
from minimind_book import reference

from tools.chapters import ROOT

PAGES = sorted((ROOT / "book" / "reference").glob("*.md"))
LINK = re.compile(r'<a class="reference[^"]*" href="([^"]+)" title="[^"]+"')


def test_a_place_has_a_name_and_an_address():
    page, chapter = "book/reference/glossary", "../../chapters/03_attention.html"
    named = reference.address("attention#2. What the paper head lacks", page)
    assert named == ("3 · 2. What the paper head lacks", f"{chapter}#what-the-paper-head-lacks")
    assert reference.address("attention", page) == ("3 · Attention", f"{chapter}#attention")
    assert reference.address("book/notation.md#Letters", page) == ("notation · Letters", "../notation.html#letters")
    name, where = reference.address("E71", "book/reference/corrections")
    assert name.startswith("C2 · E71 ") and where.startswith("../../chapters/C2_attention_and_cache.html#e71-")
    with pytest.raises(ValueError, match="'E999' is neither a chapter nor file#heading nor the number of a correction"):
        reference.address("E999", "book/index")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_row_leads_to_a_section_of_the_built_book(html, page):
    built = html / "book" / "reference" / f"{page.stem}.html"
    found = LINK.findall(built.read_text(encoding="utf-8"))
    assert len(found) >= 19 or page.stem == "sources"
    for target in found:
        file, anchor = target.split("#")
        there = (built.parent / file).resolve()
        assert f'id="{anchor}"' in there.read_text(encoding="utf-8"), target


@pytest.mark.parametrize("folder", ["", "zh"], ids=["en", "zh"])
def test_on_a_phone_a_table_is_no_wider_than_the_page_and_empty_cells_take_no_line(browser, html, folder):
    context = context_of(browser, NARROW)
    page = context.new_page()
    for stem in (path.stem for path in PAGES):
        page.goto((html / folder / "book" / "reference" / f"{stem}.html").as_uri())
        page.evaluate("document.fonts.ready")
        wide = """all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText)"""
        assert page.eval_on_selector_all(".scroll:has(.reference)", wide) == [], stem
        seen = page.eval_on_selector_all(
            "td", "all => all.filter((one) => one.checkVisibility()).map((one) => one.innerText.trim())"
        )
        assert reference.NOTHING not in seen, stem
    context.close()


@pytest.mark.parametrize("folder", ["", "zh"], ids=["en", "zh"])
@pytest.mark.parametrize(("stem", "says"), [("glossary", "A"), ("papers", "Z"), ("notes_map", "Q1–Q19")])
def test_links_above_a_long_table_lead_to_its_rows(html, folder, stem, says):
    page = (html / folder / "book" / "reference" / f"{stem}.html").read_text(encoding="utf-8")
    above = " ".join(re.findall(r'<p class="jumps">.+?</p>', page, re.DOTALL))
    links = re.findall(r'href="#([^"]+)"[^>]*>([^<]+)</a>', above)
    assert says in [text for _, text in links] and len(links) > 20
    for target, _ in links:
        assert len(re.findall(rf'<tr class="[^"]*" id="{target}"', page)) == 1, target


@pytest.mark.parametrize("folder", ["", "zh"], ids=["en", "zh"])
@pytest.mark.parametrize("name", ["book/index", "book/reference/papers", CHAPTERS[0]])
def test_the_bar_leads_to_what_is_looked_up(html, folder, name):
    page = html / folder / f"{name}.html"
    menus = re.findall(r'<details class="more[^"]*">.*?</details>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(menus) == 1 + (name in CHAPTERS)
    for menu in menus:  # that of a notebook has them for a phone
        links = [(page.parent / link).resolve() for link in re.findall(r'href="([^"#]+\.html)"', menu)]
        assert {link.stem for link in links} >= {"glossary", "formulas", "notation"}
        assert all(link.is_file() and (html / folder).resolve() in link.parents for link in links)


@pytest.mark.parametrize("folder", ["", "zh"], ids=["en", "zh"])
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_notebook_says_in_one_line_where_it_runs(html, folder, name):
    page = html / folder / f"{name}.html"
    [line] = re.findall(r'<p class="runs">(.*?)</p>', page.read_text(encoding="utf-8"))
    colab, notebook = re.findall(r'href="([^"]+)"', line)
    assert colab.startswith("https://colab.research.google.com/github/") and colab.endswith(f"{name[9:]}.ipynb")
    assert (page.parent / notebook).is_file() and "<code>make lab</code>" in line


def test_the_chinese_glossary_begins_with_the_chinese_word_in_the_order_of_its_sounds(html):
    page = (html / "zh" / "book" / "reference" / "glossary.html").read_text(encoding="utf-8")
    cells = [re.sub("<[^>]+>", "", row) for row in re.findall(r"<tr[^>]*><td>(.*?)</td>", page, re.DOTALL)]
    words = [" ".join(cell.split()) for cell in cells]
    assert len(words) > 200 and sum(bool(re.match("[\u4e00-\u9fff]", word)) for word in words) > 150
    assert [reference.sounds(word) for word in words] == sorted(map(reference.sounds, words))
    at = {word.partition("（")[0]: place for place, word in enumerate(words)}
    assert at["编码器"] < at["残差连接"] < at["重复惩罚"] < at["困惑度"] < at["KV 缓存"] < at["熵"]


# The two characters at which each line of a name in a cell is broken.
BROKEN = """() => [...document.querySelectorAll("table.reference code")].flatMap((code) => {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    const letters = [];
    while (walker.nextNode())
        for (let at = 0; at < walker.currentNode.length; at++) {
            const range = document.createRange();
            range.setStart(walker.currentNode, at);
            range.setEnd(walker.currentNode, at + 1);
            letters.push([range.toString(), range.getBoundingClientRect().top]);
        }
    return letters.slice(1).flatMap(([letter, top], i) => (top > letters[i][1] + 2 ? [letters[i][0] + letter] : []));
})"""


@pytest.mark.parametrize("folder", ["", "zh"], ids=["en", "zh"])
def test_a_long_name_is_broken_between_its_parts(browser, html, folder):
    context = context_of(browser, WIDE)
    page = context.new_page()
    page.goto((html / folder / "book" / "reference" / "sources.html").as_uri())
    page.evaluate("document.fonts.ready")
    broken = page.evaluate(BROKEN)
    assert len(broken) > 20
    assert [pair for pair in broken if not re.fullmatch(r".[._/ ]|[ ,].|[a-z0-9][A-Z]", pair)] == []
    context.close()


def test_on_a_phone_what_lives_where_does_not_scroll(browser, html):
    context = context_of(browser, NARROW)
    page = context.new_page()
    for name in CHAPTERS:
        page.goto((html / f"{name}.html").as_uri())
        page.evaluate("document.fonts.ready")
        wide = "all => all.map((one) => one.scrollWidth - one.clientWidth)"
        assert set(page.eval_on_selector_all("#where-this-lives-in-minimind .scroll", wide)) == {0}, name
    context.close()
