"""Every page of the built book fits the screen and is accessible, in both themes and at both widths."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from book_builder import NARROW, PAGES, WIDE, context_of, settle

pytestmark = pytest.mark.timeout(600)

COLORS = "color-contrast"  # the one rule about colors, and as much work as all others together

# A page has thousands of words in a few dozen colors, and one of each kind is enough: of the words whose element, its
# parent, size and colors are alike, the first one that can be seen and has more than the one letter that axe does not
# judge. In a figure, where words lie on shapes, each is looked at. All are looked at before the first one is changed,
# else the page would be laid out anew for each.
FIRST_OF_ITS_KIND = """() => {
    const kinds = new Set();
    const background = (one) => {
        const color = one ? getComputedStyle(one).backgroundColor : "";
        return color === "rgba(0, 0, 0, 0)" ? background(one.parentElement) : color;
    };
    return (word) => {
        if (!word.checkVisibility() || word.textContent.trim().length < 2) return false;
        if (word.closest(".minimind-figure")) return true;
        const { color, fontSize, fontWeight } = getComputedStyle(word);
        const names = [word, word.parentElement].flatMap((one) => [one.tagName, one.className]);
        const kind = [...names, color, fontSize, fontWeight, background(word)].join();
        return !kinds.has(kind) && Boolean(kinds.add(kind));
    };
}"""

# Words of code are spans for their color only: without it they are plain text, and axe has a tenth to look through.
FEW_COLORED_WORDS_OF_CODE = f"""() => {{
    const isFirst = ({FIRST_OF_ITS_KIND})();
    const words = [...document.querySelectorAll(".highlight span[class]")];
    for (const word of words.filter((one) => !isFirst(one))) word.replaceWith(...word.childNodes);
}}"""

# What is hidden keeps its place, and axe does not judge its colors.
ONE_WORD_OF_EACH_KIND = f"""() => {{
    const isFirst = ({FIRST_OF_ITS_KIND})();
    const hasWords = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const words = [...document.body.querySelectorAll("*")].filter(hasWords);
    const visible = words.map(isFirst);
    words.forEach((word, index) => (word.style.visibility = visible[index] ? "visible" : "hidden"));
}}"""


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


def opened(context, address: str, name: str):
    """A page of the book in a new tab, with few words of its code in color."""
    page = context.new_page()
    page.goto(f"{address}/{name}.html")
    settle(page)
    page.evaluate(FEW_COLORED_WORDS_OF_CODE)
    return page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_in_both_themes_and_at_both_widths(browser, http_address, name):
    """Colors are the same at every width, everything else is the same in every theme."""
    context = context_of(browser, NARROW, "dark")
    page = opened(context, http_address, name)
    for viewport in (NARROW, WIDE):
        page.set_viewport_size(viewport)
        assert not axe_problems(page, rules={COLORS: {"enabled": False}})
        assert too_wide(page) <= 0
    page.evaluate(ONE_WORD_OF_EACH_KIND)
    for theme in ("dark", "light"):
        turn(page, theme)
        assert too_wide(page) <= 0
        assert not axe_problems(page, runOnly=[COLORS])
    context.close()


@pytest.mark.parametrize(
    "place",
    [".highlight .mi", "article p code", ".mm-fig button"],
    ids=["code", "inline", "figure"],
)
def test_a_bad_color_is_found_among_thousands_of_words(browser, http_address, place):
    context = context_of(browser, WIDE, "light")
    page = opened(context, http_address, "chapters/03_rope_rotation")
    page.add_style_tag(content=f"html[data-theme] :is({place}) {{ color: #999 !important }}")
    page.evaluate(ONE_WORD_OF_EACH_KIND)
    problems = axe_problems(page, runOnly=[COLORS])
    assert 1 <= len(problems) < 50
    context.close()
