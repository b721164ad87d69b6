"""The built Chinese edition: its pages are the twins of the English ones, and a reader moves between both."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from book_builder import NARROW, PAGES, TRANSLATED, context_of, settle
from browser import Watch
from cases import long_after
from docutils import nodes
from docutils.utils import new_document
from minimind_book.together import keep_signs_at_formulas

from tools import install_cell
from tools.chapters import ROOT

pytestmark = pytest.mark.always

BASE = install_cell.book_url()
HAN = re.compile("[\u3400-\u9fff]")
FORMULA = re.compile('<math alttext="([^"]*)"')


ENGLISH = [name for name in PAGES if name not in TRANSLATED and name != "search"]


@pytest.fixture(scope="module")
def both(html) -> dict[str, Path]:
    """The folders of both editions."""
    if not (html / "zh").is_dir():
        pytest.fail(f"{html} has no Chinese edition: build the book with `make book`")
    return {"en": html, "zh": html / "zh"}


@pytest.fixture(scope="module")
def addresses(html, http_address) -> dict[str, str]:
    return {"http": http_address, "file": html.as_uri()}


@pytest.fixture
def reader(browser):
    """A fresh browser for each language that a reader's browser may speak."""
    contexts = []

    def open_page(language: str = "en-US", **options):
        contexts.append(context_of(browser, locale=language, **options))
        return contexts[-1].new_page()

    yield open_page
    for context in contexts:
        context.close()


def source(both, language: str, name: str) -> str:
    return (both[language] / f"{name}.html").read_text(encoding="utf-8")


def anchors(page: str) -> list[str]:
    return re.findall(r'<section id="([^"]+)"', page)


def alternates(page: str) -> dict[str, str]:
    return dict(re.findall(r'<link rel="alternate" hreflang="([^"]+)" href="([^"]+)">', page))


def test_there_is_something_to_read():
    assert {"book/live", "chapters/C3_whole_model"} <= set(TRANSLATED)


@pytest.mark.parametrize("name", TRANSLATED)
def test_both_have_the_same_sections(both, name):
    assert anchors(source(both, "zh", name)) == anchors(source(both, "en", name))


@pytest.mark.parametrize("name", [*TRANSLATED, "search"])
def test_a_translated_page_and_its_original_name_each_other(both, name):
    english, translated = f"{BASE}{name}.html", f"{BASE}zh/{name}.html"
    for language, tag, own in (("en", "en", english), ("zh", "zh-CN", translated)):
        page = source(both, language, name)
        assert f'<html lang="{tag}"' in page and f'<link rel="canonical" href="{own}">' in page
        assert alternates(page) == {"en": english, "zh-CN": translated, "x-default": english}
    up = "../" * name.count("/") or "./"
    assert f'class="other-language" href="{up}zh/{name}.html" lang="zh-CN"' in source(both, "en", name)
    assert f'class="other-language" href="{up}../{name}.html" lang="en"' in source(both, "zh", name)


@pytest.mark.parametrize("name", ENGLISH)
def test_a_page_that_nobody_has_translated_is_english_and_says_so(both, name):
    """It leads back; its original does not lead here, and search engines are told to take that one."""
    page, text = source(both, "zh", name), source(both, "en", name)
    assert re.search('<article[^>]* lang="en">', page) and "这一页还没有中文" in page
    assert f'<link rel="canonical" href="{BASE}{name}.html">' in page
    assert not alternates(page) and not alternates(text) and "other-language" not in text.split("</head>")[1]
    article = page.split("<article")[1].split("</article>")[0]
    assert len(re.findall(r"[A-Za-z]{2,}", article)) > len(HAN.findall(article))


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translated_page_is_chinese(both, name):
    """Title, contents, description and text; code, outputs and the words of the book's world are what they are."""
    page = source(both, "zh", name)
    [title] = re.findall(r"<title>(.*?)</title>", page)
    [description] = re.findall(r'<meta name="description" content="(.*?)">', page)
    [contents] = re.findall(r'<nav id="contents".*?</nav>', page, re.DOTALL)
    assert HAN.search(title) and len(HAN.findall(description)) > 10 and len(HAN.findall(contents)) > 100
    article = page.split("<article")[1].split("</article>")[0]
    bare = re.sub(r"<(pre|code|math|svg|script|table|em)\b.*?</\1>", "", article, flags=re.DOTALL)
    for paragraph in re.findall(r"<p>(.*?)</p>", bare, re.DOTALL):
        text = re.sub(r"<[^>]+>", "", paragraph)
        assert HAN.search(text) or text.startswith(("“", "…")) or len(re.findall(r"[A-Za-z]{2,}", text)) < 8, text


def test_blocks_of_code_are_numbered_in_chinese(both):
    page = source(both, "zh", "book/beyond_one_machine")
    assert "代码 1" in page and "由测试运行" in page and "Listing" not in page and "Run by the tests" not in page


@pytest.mark.parametrize("name", TRANSLATED)
def test_an_english_page_has_no_chinese_words_of_the_shell(both, name):
    page = source(both, "en", name)
    shell = re.sub(r"<article.*</article>", "", page, flags=re.DOTALL).replace("中文", "").replace("本页的版", "")
    assert not HAN.search(shell) and "Zh Marks" not in page
    assert not HAN.search(
        (both["en"] / "_static" / "shell.js").read_text(encoding="utf-8").replace("[.。]", "").replace("：", "")
    )


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_the_switch_leads_to_the_section_in_sight_and_back(reader, addresses, scheme):
    page = reader()
    page.goto(f"{addresses[scheme]}/chapters/C3_whole_model.html#{chinese_anchor(page, addresses[scheme])}")
    here = page.url.split("#")[1]
    for language in ("zh-CN", "en"):
        page.eval_on_selector(".other-language", "(one) => one.click()")
        page.wait_for_url(re.compile("/zh/" if language == "zh-CN" else "/html/chapters/|:[0-9]+/chapters/"))
        assert page.url.endswith(f"C3_whole_model.html#{here}")
        assert page.get_attribute("html", "lang") == language


def chinese_anchor(page, address: str) -> str:
    """A section in the middle of the page of corrections."""
    page.goto(f"{address}/chapters/C3_whole_model.html")
    return page.eval_on_selector_all("article section section[id]", "all => all[Math.floor(all.length / 2)].id")


def test_without_scripts_the_switch_leads_to_the_page(reader, addresses):
    page = reader(java_script_enabled=False)
    page.goto(f"{addresses['http']}/chapters/C3_whole_model.html")
    page.click(".other-language")
    assert page.url.endswith("/zh/chapters/C3_whole_model.html")
    page.click(".other-language")
    assert page.url == f"{addresses['http']}/chapters/C3_whole_model.html"


def test_a_browser_that_speaks_chinese_is_led_to_the_chinese_page_once(reader, addresses):
    """With what follows the `#`, and never again: what was chosen last counts."""
    page, there = reader("zh-CN"), f"{addresses['http']}/zh/book/live.html"
    page.goto(f"{addresses['http']}/book/live.html#story=Mia")
    page.wait_for_url(f"{there}#story=Mia")
    page.click(".other-language")
    page.wait_for_url(f"{addresses['http']}/book/live.html*")
    page.goto(f"{addresses['http']}/book/live.html")
    settle(page)
    assert page.url == f"{addresses['http']}/book/live.html"


@pytest.mark.parametrize("name", ["book/live", *ENGLISH[:1]])
def test_other_browsers_stay_where_they_are(reader, addresses, name):
    page = reader("de-DE")
    page.goto(f"{addresses['http']}/{name}.html")
    settle(page)
    assert page.url == f"{addresses['http']}/{name}.html"
    assert page.evaluate("localStorage.getItem('language')") is None


@pytest.mark.parametrize("name", [TRANSLATED[0], *ENGLISH[:1]])
def test_pages_are_whole_on_a_phone_in_both_languages(reader, addresses, name):
    """Nothing is wider than the screen, no file is missing, and the words of the bar stay in their line."""
    page = reader("zh-CN", viewport=NARROW)
    watch = Watch(page)
    page.goto(f"{addresses['http']}/zh/{name}.html")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    heights = page.eval_on_selector_all(".bar :is(a, button, summary)", "all => all.map((one) => one.offsetHeight)")
    assert max(heights) <= 40
    assert not watch.problems


@pytest.mark.parametrize("name", long_after(2, TRANSLATED))
def test_no_line_begins_with_a_sign_that_closes(reader, addresses, name):
    page = reader("zh-CN", viewport=NARROW)
    page.goto(f"{addresses['http']}/zh/{name}.html")
    settle(page)
    begun = page.eval_on_selector_all(
        "article :is(p, li, h1, h2, h3, .mm-title)",
        """(all) => all.flatMap((one) => {
            const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), found = [];
            const range = document.createRange();
            let last = null;
            while (walker.nextNode()) {
                const { data, parentElement } = walker.currentNode;
                if (!parentElement.checkVisibility()) continue;
                for (let i = 0; i < data.length; i++) {
                    range.setStart(walker.currentNode, i);
                    range.setEnd(walker.currentNode, i + 1);
                    const { top, bottom, width } = range.getBoundingClientRect();
                    if (!width) continue;
                    if (last !== null && top >= last - 2 && "，。；：？！、”）》".includes(data[i]))
                        found.push(data.slice(Math.max(0, i - 6), i + 2));
                    last = bottom;
                }
            }
            return found;
        })""",
    )
    assert begun == []


@pytest.mark.parametrize("name", TRANSLATED)
def test_formulas_are_the_same_in_both_languages(both, name):
    english, chinese = (sorted(FORMULA.findall(source(both, language, name))) for language in both)
    assert chinese == english


def test_a_sign_that_closes_stays_with_the_formula_before_it():
    page, line = new_document("C1"), nodes.paragraph()
    line += [nodes.Text("若 "), nodes.math("", "a^2"), nodes.Text("），则 "), nodes.math("", "b"), nodes.Text(" 也是")]
    page += line
    keep_signs_at_formulas(SimpleNamespace(), page)
    _, together, then, formula, _ = line
    assert together["classes"] == ["unbroken"] and together.astext() == "a^2），"
    assert isinstance(together[0], nodes.math) and then.astext() == "则 " and formula.astext() == "b"


@pytest.mark.parametrize("name", [name for name in TRANSLATED if name.startswith("chapters/")])
def test_the_cell_that_installs_the_package_is_out_of_sight_in_chinese_too(both, name):
    assert source(both, "zh", name).count('class="cell install') == source(both, "en", name).count(
        'class="cell install'
    )


@pytest.mark.parametrize(("language", "folder", "card"), [("en", "", "share.png"), ("zh", "zh/", "share.zh.png")])
def test_a_shared_link_shows_the_card_of_its_edition(both, language, folder, card):
    assert f'<meta property="og:image" content="{BASE}{folder}_static/share.png">' in source(
        both, language, "book/live"
    )
    shown = both[language] / "_static" / "share.png"
    assert shown.read_bytes() == (ROOT / "book" / "assets" / card).read_bytes()


def test_the_page_of_the_books_own_model_speaks_the_language_of_its_edition(both):
    for language, tag, title in (("en", "en", "Inside the book&#x27;s own model"), ("zh", "zh-CN", "内部：本书的模型")):
        page = source(both, language, "inside/living")
        assert f'<html lang="{tag}">' in page and f"<title>{title}</title>" in page


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translated_page_leads_colab_to_a_chinese_notebook(both, name):
    page = source(both, "zh", name)
    colab = re.findall(r'href="https://colab[^"]*/blob/([^"]*)"', page)  # in the bar, and in the page's last line
    assert colab == ([f"notebooks-zh/{Path(name).name}.ipynb"] * 2 if name.startswith("chapters/") else [])


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_page_names_the_fonts_in_which_it_sets_something(both, name):
    for language, text_font in (("en", {"text.woff2"}), ("zh", set())):
        page = source(both, language, name)
        some = {file for file, tag in (("math.woff2", "<math"), ("text-italic.woff2", "<em")) if tag in page}
        assert set(re.findall(r"fonts/([\w-]+\.woff2)", page)) == {"sans.woff2"} | text_font | some


def test_chinese_notebooks_are_chinese_and_carry_the_package(both):
    written = sorted(path.stem for path in (both["zh"] / "notebooks").glob("*.ipynb"))
    assert written == sorted(Path(name).name for name in TRANSLATED if name.startswith("chapters/"))
    text = (both["zh"] / "notebooks" / "C3_whole_model.ipynb").read_text(encoding="utf-8")
    assert "# C3 · 勘误：整个模型" in text and "# @title 解开本书的包" in text and "WHEEL = " in text
    assert 'os.environ[\\"MINIMIND_EDU_LANGUAGE\\"] = \\"zh\\"' in text and "learn({" in text
