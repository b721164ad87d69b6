"""Every page of the built book fits the screen and is accessible, in both themes and at both widths."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from book_builder import NARROW, PAGES, WIDE, context_of, settle

pytestmark = pytest.mark.timeout(600)

COLORS = "color-contrast"  # the one rule about colors, and as much work as all others together

# Thousands of words of code stand on a page in a dozen colors: one of each color and place is enough, if it can be seen
# and has more than the one letter that axe does not judge. All words are looked at before the first one is changed,
# else the page would be laid out anew for each.
ONE_WORD_OF_EACH_COLOR = """() => {
    const seen = new Set();
    const judged = (word) => {
        if (!word.checkVisibility() || word.textContent.trim().length < 2) return false;
        const background = getComputedStyle(word.closest("pre")).backgroundColor;
        const kind = [word.className, background, word.closest(".highlight").parentElement.className].join();
        return !seen.has(kind) && seen.add(kind);
    };
    const words = [...document.querySelectorAll(".highlight span[class]")];
    for (const word of words.filter((one) => !judged(one))) word.replaceWith(...word.childNodes);
}"""


def axe_problems(page, **options) -> list[str]:
    """Serious and critical findings of axe-core, one line each."""
    response = Axe().run(page, options={"resultTypes": ["violations"], **options}).response
    grave = [one for one in response["violations"] if one["impact"] in ("serious", "critical")]
    return [
        f"{one['id']}: {node['html'][:150]} {node['failureSummary'][:300]}" for one in grave for node in one["nodes"]
    ]


def turn(page, theme: str) -> None:
    """Give the reader's system another theme and wait until the page has followed."""
    page.emulate_media(color_scheme=theme)
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)


def too_wide(page) -> int:
    """Pixels by which the page is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_in_both_themes(browser, http_address, name):
    context = context_of(browser, WIDE, "light")
    page = context.new_page()
    page.goto(f"{http_address}/{name}.html")
    settle(page)
    page.evaluate(ONE_WORD_OF_EACH_COLOR)
    for theme, options in {"light": {}, "dark": {"runOnly": [COLORS]}}.items():
        turn(page, theme)
        assert too_wide(page) <= 0
        assert not axe_problems(page, **options)
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_on_a_phone(browser, http_address, name):
    """Colors are the same at every width."""
    context = context_of(browser, NARROW, "dark")
    page = context.new_page()
    page.goto(f"{http_address}/{name}.html")
    settle(page)
    page.evaluate(ONE_WORD_OF_EACH_COLOR)
    assert not axe_problems(page, rules={COLORS: {"enabled": False}})
    for theme in ("dark", "light"):
        turn(page, theme)
        assert too_wide(page) <= 0
    context.close()


def test_a_word_of_code_in_a_bad_color_is_found_among_thousands(browser, http_address):
    context = context_of(browser, WIDE, "light")
    page = context.new_page()
    page.goto(f"{http_address}/chapters/02_rmsnorm_vs_layernorm.html")
    settle(page)
    page.add_style_tag(content="html[data-theme] .highlight .mi { color: #888 !important }")  # numbers
    page.evaluate(ONE_WORD_OF_EACH_COLOR)
    [problem] = axe_problems(page, runOnly=[COLORS])
    assert 'class="mi"' in problem
    context.close()
