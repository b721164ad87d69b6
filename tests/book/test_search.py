"""The search: the right place first, the same from a folder as over http, while one types."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from book_builder import CHAPTERS, NARROW, PAGES, context_of, settle, wait_until
from browser import Watch
from cases import long_after
from minimind_book import reference, search_texts

ROOT = Path(__file__).resolve().parents[2]
QUERIES = [
    row.split("\t") for row in (Path(__file__).parent / "search_queries.tsv").read_text("utf-8").splitlines()[1:]
]
SCRIPT = ROOT / "book" / "theme" / "static" / "search.js"

# A search of its own for each edition, made of files: tests/node.mjs imports only modules of the package.
LOAD = """([name, files]) => {
    for (const file of files) (0, eval)(process.getBuiltinModule("fs").readFileSync(file, "utf8"));
    (globalThis.finds ??= {})[name] = bookSearch(searchTexts);
}"""
FIND = "([name, query]) => finds[name](query)"


@pytest.fixture(scope="module")
def find(node, html):
    """What is found for a query, in an edition, as [address, title with heading, excerpt]; the book is `html`."""
    for name, folder in (("en", html), ("zh", html / "zh")):
        node.evaluate(LOAD, [name, [str(folder / search_texts.FILE), str(SCRIPT)]])

    def found(query: str, edition: str = "en") -> list[dict]:
        return node.evaluate(FIND, [edition, query])["results"]

    return found


@pytest.fixture(scope="module")
def little(node):
    """What is found in a book of few words: `pages` and `terms` as search_texts.js has them."""

    def found(query: str, pages: dict[str, list], terms: Sequence = ()) -> dict:
        node.evaluate("(texts) => { globalThis.searchTexts = texts; }", {"pages": list(pages.items()), "terms": terms})
        node.evaluate(LOAD, ["little", [str(SCRIPT)]])
        return node.evaluate(FIND, ["little", query])

    return found


@pytest.fixture(scope="module")
def addresses(html, http_address) -> dict[str, str]:
    return {"http": http_address, "file": html.as_uri()}


def part(heading: str, text: str = "", code: str = "", bold: Sequence[str] = (), anchor: str = "") -> list:
    return [anchor or heading.lower().replace(" ", "-"), heading, text, code, list(bold)]


def addresses_of(found: dict) -> list[str]:
    return [one["address"] for one in found["results"]]


# What comes first


@pytest.mark.parametrize(("edition", "query", "pages"), QUERIES, ids=[" ".join(row[:2]) for row in QUERIES])
def test_the_right_page_comes_first(find, edition, query, pages):
    """Queries of two readers, with the pages that each would call right, written before the search was weighed."""
    first, *_ = find(query, edition)
    assert first["address"].startswith(tuple(pages.split())), [one["address"] for one in find(query, edition)[:4]]


@pytest.mark.parametrize("edition", long_after(1, ["en", "zh"]))
def test_every_name_in_the_glossary_leads_to_the_place_that_explains_it(find, html, edition):
    """First; of terms that share a name but for an s, such as the two heads, each is among the first three."""
    text = (html / ("zh" if edition == "zh" else "") / search_texts.FILE).read_text(encoding="utf-8")
    terms = json.loads(text.partition("= ")[2].rstrip(";\n"))["terms"]
    assert len(terms) == len(reference.terms())
    alike = [(name.lower(), f"{page}.html#{anchor}") for names, _, page, anchor in terms for name in names]
    for name in {name for names, *_ in terms for name in names}:
        same = {place for other, place in alike if other.rstrip("s") == name.lower().rstrip("s")}
        found = [one["address"] for one in find(name, edition)]
        pages = {place.partition("#")[0] for place in same}
        assert found and found[0].partition("#")[0] in pages, (name, found[:3])
        for place in same:  # a page with that title is the place, too
            assert not {place, place.partition("#")[0]}.isdisjoint(found[: 3 * len(same)]), (name, found)


def test_every_synonym_is_of_a_term_of_the_glossary_and_of_one_only():
    rows = reference.rows_of("synonyms")[1]
    assert {term for term, _ in rows} <= set(reference.terms())
    names = [name for _, also in rows for name in search_texts.names_in(also)]
    assert len(names) == len(set(names)) > 100


def test_a_title_comes_before_a_name_in_bold_and_that_before_any_text(little):
    pages = {
        "d": [part("Other"), part("One", "heat heat heat heat heat heat")],
        "c": [part("Knobs"), part("Two", "heat is this", bold=["heat"])],
        "b": [part("Ways"), part("Heat", "some words")],
        "a": [part("Heat", "a page")],
    }
    assert addresses_of(little("heat", pages)) == ["a.html", "b.html#heat", "c.html#two", "d.html#one"]


def test_equals_come_in_the_order_of_the_book_and_not_of_their_names(little):
    pages = {name: [part(f"Page {name}"), part("Part", "nothing but a tie")] for name in ("m", "z", "a")}
    assert addresses_of(little("tie", pages)) == ["m.html#part", "z.html#part", "a.html#part"]


def test_a_word_of_the_glossary_leads_to_its_place_with_what_it_means(little):
    pages = {"a": [part("First"), part("There", "x")], "b": [part("Surprise of a text", "surprise")]}
    terms = [[["perplexity", "surprise"], "How many words it was like.", "a", "there"]]
    [first, *_] = little("Surprise", pages, terms)["results"]
    assert (first["address"], first["term"], first["excerpt"]) == ("a.html#there", "perplexity", terms[0][1])
    assert addresses_of(little("perplex", pages, terms))[0] == "a.html#there"


def test_a_synonym_that_no_page_has_finds_what_the_term_finds(little):
    pages = {"a": [part("First"), part("There", "x")], "b": [part("Other", "perplexity again")]}
    terms = [[["perplexity", "astonishment"], "How many words it was like.", "a", "there"]]
    assert addresses_of(little("astonishment", pages, terms)) == ["a.html#there", "b.html"]


def test_latin_words_are_whole_and_a_hyphen_joins(little):
    pages = {
        "a": [part("One", "the endpoint at the top of a page")],
        "b": [part("Two", "keep top-p words; dpo")],
        "c": [part("Three", "more heads, rotated")],
    }
    assert addresses_of(little("dpo", pages)) == ["b.html"]
    assert addresses_of(little("top-p", pages)) == addresses_of(little("top p", pages))[:1] == ["b.html"]
    assert addresses_of(little("key-value", {"a": [part("One", "the key value store")]})) == ["a.html"]
    assert addresses_of(little("head", pages)) == addresses_of(little("rotation", pages)) == ["c.html"]
    assert addresses_of(little("rot", pages)) == ["c.html"], "what is typed may go on"


def test_words_that_ask_are_not_sought_unless_nothing_else_is(little):
    pages = {"a": [part("One", "how do how do i my my")], "b": [part("Two", "a model opens")]}
    assert addresses_of(little("how do I open my model", pages)) == ["b.html"]
    assert addresses_of(little("how", pages)) == ["a.html"]


@pytest.mark.parametrize(
    ("typed", "meant"), [("atention", "attention"), ("temprature", "temperature"), ("quantizaton", "quantization")]
)
def test_what_is_misspelt_is_found_and_it_is_said(find, node, typed, meant):
    assert [one["address"] for one in find(typed)][:2] == [one["address"] for one in find(meant)][:2]
    assert node.evaluate(FIND, ["en", typed])["instead"] == [[typed, meant]]


@pytest.mark.parametrize("query", ["qqqq", "zzzzzzzz", "(", "[", "*", "  ", "\\", "$^"])
def test_what_is_nowhere_finds_nothing_and_breaks_nothing(find, query):
    assert find(query) == find(query, "zh") == []


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("怎么打开自己的模型", "book/own_model"),
        ("为什么要除以根号D", "chapters/deeper/D03_attention"),
        ("KV缓存", "chapters/07_kv_cache"),
        ("模型的输出层", "chapters/"),
        ("后归一化", "chapters/10_block_and_model"),
    ],
)
def test_a_question_in_chinese_finds_without_a_dictionary(find, query, page):
    assert find(query, "zh")[0]["address"].startswith(page)


@pytest.mark.parametrize("words", ["kv cache", "attention", "rope", "swiglu", "weight tying"])
def test_the_corrections_of_the_notes_come_last_and_a_page_three_times_at_most(find, words):
    found = [one["page"] for one in find(words)]
    kinds = [page.startswith("chapters/C") for page in found]
    assert kinds == sorted(kinds) and max(map(found.count, found)) == 3


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("004 §3.7", "book/reference/notes_map.html#notes-004-3-7"),
        ("000 KV 3.1", "book/reference/notes_map.html#notes-000-kv-3-1"),
        ("004 Q11", "book/reference/notes_map.html#notes-004-q11"),
        ("水压", "book/reference/notes_map.html"),
        ("repeat_kv_simple", "book/reference/sources.html"),
    ],
)
def test_the_notes_are_found_by_section_term_and_name(find, html, words, address):
    found = [one["address"] for one in find(words)][:2]
    assert any(one.startswith(address) for one in found), found
    page, _, anchor = found[0].partition("#")
    assert not anchor or f'id="{anchor}"' in (html / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("term", ["水压", "眼镜", "信噪比", "空间换时间", "零拷贝"])
def test_terms_of_the_notes_are_found_in_the_english_book(find, term):
    assert find(term)


# What is looked through


def test_a_page_is_cut_at_its_headings_into_what_is_said_and_what_is_code():
    page = """<article><section id="a"><h1>A <em>title</em><a class="headerlink" href="#a">#</a></h1>
        <p>Said<br>so.</p><div class="minimind-figure"><b>drawn</b></div>
        <section id="b"><h2>B</h2><p>A <strong>name</strong> &amp; more.</p>
        <div class="cell"><details><summary>fold</summary><pre>x = 1</pre></details></div></section></section>
        </article>"""
    assert search_texts.sections_of(page) == [
        ["a", "A title", "Said so.", "", []],
        ["b", "B", "A name & more.", "x = 1", ["name"]],
    ]


def test_a_row_of_the_notes_is_a_place_up_to_the_next_one():
    page = '<article><section id="m"><h1>Map</h1><table><tr id="notes-1"><td>one</td></tr><tr><td>two</td></tr>'
    page += '<tr id="notes-2"><td>three</td></tr></table><p>after</p></section></article>'
    sections = [section[:3] for section in search_texts.sections_of(page)]
    assert sections == [["m", "Map", ""], ["notes-1", "one", "two"], ["notes-2", "three", "after"]]


def test_names_are_split_at_commas_and_brackets_and_lose_their_markup():
    names = search_texts.names_in("`past_kv` / past, **KV** 缓存（KV Cache）")
    assert names == ["past_kv", "past", "KV 缓存", "KV Cache"]
    assert search_texts.names_in("top-k 采样") == ["top-k 采样"]


def test_every_place_that_can_be_found_is_there(html):
    for folder in (html, html / "zh"):
        texts = json.loads((folder / search_texts.FILE).read_text(encoding="utf-8").partition("= ")[2].rstrip(";\n"))
        assert [page for page, _ in texts["pages"]] == [name for name in PAGES if name != "search"]
        for page, sections in texts["pages"]:
            written = (folder / f"{page}.html").read_text(encoding="utf-8")
            ids = set(re.findall(r'\bid="([^"]+)"', written))
            assert {anchor for anchor, *_ in sections if anchor} <= ids, page


def test_the_cell_that_installs_the_package_is_not_looked_through(find):
    assert find("whl") == []


def test_no_index_is_written_and_no_page_names_what_the_search_looks_through(html):
    assert not list(html.rglob("searchindex.js"))
    named = [path for path in html.rglob("*.html") if search_texts.FILE in path.read_text(encoding="utf-8")]
    assert (html / search_texts.FILE).is_file() and (html / "zh" / search_texts.FILE).is_file() and named == []


# What a reader sees


def found_for(page, address: str, words: str) -> list[tuple[str, str, str]]:
    """What the page of the search shows: the title, the address and the text of each result."""
    page.goto(f"{address}/search.html?q={quote(words)}")
    wait_until(page, "() => document.querySelector('.search-summary')?.textContent")
    return page.eval_on_selector_all(
        "#search-results li",
        "all => all.map((one) => [one.querySelector('a').textContent, one.querySelector('a').href, one.innerText])",
    )


@pytest.mark.always
@pytest.mark.parametrize(
    ("edition", "words"),
    long_after(
        2, [("", "kv cache"), ("zh/", "权重共享"), ("", "repeat_kv_simple"), ("", "004 §3.7"), ("zh/", "LayerNorm")]
    ),
)
def test_from_a_folder_the_search_finds_the_same_with_the_same_excerpts(page, addresses, edition, words):
    watch = Watch(page)
    over_http, from_a_folder = (
        [
            [title, address.removeprefix(addresses[scheme]), text]
            for title, address, text in found_for(page, f"{addresses[scheme]}/{edition}".rstrip("/"), words)
        ]
        for scheme in ("http", "file")
    )
    assert over_http == from_a_folder != []
    assert all(len(text) > len(title) + 8 for title, _, text in over_http)
    assert all((" › " in title) == bool(urlsplit(address).fragment) for title, address, _ in over_http)
    assert ("找到的页面和小节" if edition else "Pages and sections found") in page.inner_text(".search-summary")
    assert not watch.problems


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_results_appear_while_one_types_and_nothing_is_loaded_before(page, addresses, scheme):
    watch = Watch(page)
    page.goto(f"{addresses[scheme]}/search.html")
    settle(page)
    scripts = "[...document.scripts].map((one) => one.src.split('/').at(-1)).filter((name) => name !== 'shell.js')"
    assert page.evaluate(scripts) == [""]
    page.locator("article input[type=search]").press_sequentially("perplexit")
    page.wait_for_selector("#search-results li a")
    assert "12_generation" in page.locator("#search-results a").first.get_attribute("href")
    assert sorted(page.evaluate(scripts)) == ["", "found.js", "search.js", search_texts.FILE]
    assert page.url.endswith("search.html?q=perplexit")
    page.locator("article input[type=search]").fill("")
    assert page.locator("#search-results").inner_text() == ""
    page.locator("article input[type=search]").fill("qqqqq")
    assert "Nothing found" in page.inner_text(".search-summary")
    assert not watch.problems


@pytest.mark.always
def test_over_any_page_results_are_listed_and_reached_with_the_keyboard(page, http_address):
    page.goto(f"{http_address}/{CHAPTERS[6]}.html")
    settle(page)
    page.keyboard.press("/")
    page.keyboard.type("top-p")
    page.wait_for_selector(".found li")
    assert page.locator(".found li").count() == 6 and page.locator(".found .all").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator(".found").is_visible()
    page.keyboard.type("top-p")  # Escape has emptied the field, as it does in every field of this kind
    page.wait_for_selector(".found li")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/12_generation.html#draw-but-reshape-first")
    wait_until(page, "() => getSelection().toString()")
    assert page.evaluate("getSelection().toString()").lower() == "top-p"


def test_a_misspelt_word_is_named_with_the_one_that_was_found(page, http_address):
    found_for(page, http_address, "atention")
    assert "The book has no “atention”. Found is “attention”." in page.inner_text(".search-summary")
    assert page.locator("#search-results mark").first.inner_text().lower() == "attention"


def test_a_page_is_opened_where_the_words_are_and_another_page_at_its_beginning(page, http_address):
    found_for(page, http_address, "kv cache")
    page.goto(f"{http_address}/{CHAPTERS[2]}.html")
    settle(page)
    assert page.evaluate("[scrollY, document.documentElement.dataset.view]") == [0, "read"]
    found_for(page, http_address, "kv cache")
    page.locator("#search-results a").first.click()
    page.wait_for_url("**/07_kv_cache.html")
    wait_until(page, "() => getSelection().toString()")
    assert page.evaluate("getSelection().toString()").lower() == "kv cache"


@pytest.mark.parametrize(("words", "anchor"), [("beam search", "beams-and-length"), ("min-p", "heat-and-cuts")])
def test_a_result_in_a_section_opens_it_with_the_words_in_sight(browser, http_address, words, anchor):
    context = context_of(browser, viewport=NARROW)
    page = context.new_page()
    found_for(page, http_address, words)
    page.locator(f"#search-results a[href$='#{anchor}']").click()
    page.wait_for_url(f"**#{anchor}")
    wait_until(page, "() => getSelection().toString()")
    settle(page)
    inside, top = page.evaluate(
        """(anchor) => [
            document.getElementById(anchor).contains(getSelection().anchorNode),
            getSelection().getRangeAt(0).getBoundingClientRect().top,
        ]""",
        anchor,
    )
    assert inside and 0 < top < NARROW["height"]
    context.close()


def test_a_word_that_was_sought_is_shown_even_in_folded_code(page, http_address):
    name = "chapters/04_rope_rotation"
    page.goto(f"{http_address}/{name}.html")
    settle(page)
    word = page.evaluate(
        """() => {
            const folded = document.querySelectorAll(".cell:not(.install) > .code:not([open]) pre");
            const words = [...folded].map((one) => one.textContent).join(" ").match(/\\b[a-z_]{9,}\\b/g);
            const shown = document.querySelector("article").innerText;
            return words.find((word) => !shown.includes(word));
        }"""
    )
    assert word
    found_for(page, http_address, word)
    page.locator(f"#search-results a[href*='{name}']").first.click()
    page.wait_for_url(f"**/{name}.html**")
    wait_until(page, "() => getSelection().toString()")
    assert page.evaluate("getSelection().toString()").lower() == word.lower()
    assert page.evaluate("getSelection().anchorNode.parentElement.closest('details').open")
