"""Every page of the built book fits the screen and is accessible, in both themes and at both widths."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from book_builder import NARROW, PAGES, WIDE, context_of, settle, wait_until
from browser import NO_WAITING
from browser import settle as draw

COLORS = "color-contrast"  # the one rule about colors, and as much work as all others together

# A page has thousands of words in a few dozen colors, and one of each kind is enough: of the words whose element, its
# parent, size and colors are alike, the first one that can be seen and has more than the one letter that axe does not
# judge. In a figure, where words lie on shapes, each is looked at.
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
# All are looked at before the first one is changed, else the page would be laid out anew for each.
FEW_COLORED_WORDS_OF_CODE = f"""() => {{
    const isFirst = ({FIRST_OF_ITS_KIND})();
    const words = [...document.querySelectorAll(".highlight span[class]")];
    for (const word of words.filter((one) => !isFirst(one))) word.replaceWith(...word.childNodes);
}}"""

# The colors of these words are judged.
ONE_WORD_OF_EACH_KIND = f"""() => {{
    const isFirst = ({FIRST_OF_ITS_KIND})();
    const hasWords = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const words = [...document.body.querySelectorAll("*")].filter(hasWords).filter(isFirst);
    document.querySelectorAll("[data-judged]").forEach((one) => delete one.dataset.judged);
    words.forEach((word) => (word.dataset.judged = ""));
    axe.configure({{ rules: [{{ id: "{COLORS}", selector: "[data-judged]" }}] }});
    return words.length;
}}"""

# Serious and critical findings of axe-core, one line each. Other rules are not run, and it loads nothing: pages have
# their styles inside, and neither sound nor film.
PROBLEMS = """async (names) => {
    const isGrave = ({ impact, enabled, tags }) =>
        ["serious", "critical"].includes(impact) && enabled && !tags.includes("experimental");
    const grave = axe._audit.rules.filter(isGrave).map((rule) => rule.id);
    const runOnly = names.only ?? grave.filter((id) => !names.without?.includes(id));
    const { violations } = await axe.run({ resultTypes: ["violations"], preload: false, runOnly });
    return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 150)} ${failureSummary.slice(0, 300)}`));
}"""


def axe_problems(page, **names: list[str]) -> list[str]:
    """What axe-core finds: with `only` these rules, or with all that are grave `without` these."""
    return page.evaluate(PROBLEMS, names)


def turn(page, theme: str) -> None:
    """Give the reader's system another theme and wait until the page has followed."""
    page.emulate_media(color_scheme=theme)
    wait_until(page, "theme => document.documentElement.dataset.theme === theme", theme)


def too_wide(page) -> int:
    """Pixels by which the page is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.fixture(scope="module")
def reader(browser):
    """The page of a reader who likes it dark, with axe-core on all that it opens."""
    context = context_of(browser, WIDE, "dark")
    context.add_init_script(NO_WAITING)
    yield context.new_page()
    context.close()


def open_page(page, address: str, name: str) -> None:
    """Open a page of the book, with few words of its code in color."""
    page.goto(f"{address}/{name}.html")
    settle(page)
    page.evaluate(FEW_COLORED_WORDS_OF_CODE)
    page.evaluate(Axe().axe_script)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_in_both_themes_and_at_both_widths(reader, http_address, name):
    """Colors are the same at every width, everything else is the same in every theme."""
    reader.set_viewport_size(WIDE)
    reader.emulate_media(color_scheme="dark")
    open_page(reader, http_address, name)
    least = 5 if name == "search" else 10  # a search that nobody has typed yet has few kinds of words
    assert reader.evaluate(ONE_WORD_OF_EACH_KIND) > least
    assert not axe_problems(reader)
    assert too_wide(reader) <= 0
    turn(reader, "light")
    assert reader.evaluate(ONE_WORD_OF_EACH_KIND) > least
    assert not axe_problems(reader, only=[COLORS])
    assert too_wide(reader) <= 0
    reader.set_viewport_size(NARROW)
    draw(reader)  # what scrolls only now is made known to the keyboard a frame later
    assert not axe_problems(reader, without=[COLORS])
    assert too_wide(reader) <= 0


@pytest.fixture(scope="module")
def with_colors(reader, http_address):
    """A page whose colors are judged."""
    reader.set_viewport_size(WIDE)
    reader.emulate_media(color_scheme="light")
    open_page(reader, http_address, "chapters/04_rope_rotation")
    return reader


@pytest.mark.parametrize(
    "place",
    [".highlight .mi", "article p code", ".mm-fig button"],
    ids=["code", "inline", "figure"],
)
def test_a_bad_color_is_found_among_thousands_of_words(with_colors, place):
    style = with_colors.add_style_tag(content=f"html[data-theme] :is({place}) {{ color: #999 !important }}")
    with_colors.evaluate(ONE_WORD_OF_EACH_KIND)
    problems = axe_problems(with_colors, only=[COLORS])
    assert 1 <= len(problems) < 50
    style.evaluate("one => one.remove()")
