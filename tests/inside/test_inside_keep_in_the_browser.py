"""What a reader keeps of the pages of models: each part as the picture that is seen, and a link that leads back."""

import re

import pytest
from kept import MARGIN, address_in, alone, far_apart, halved, handed_over, open_menu, pixels_of, words_in
from own_pages import settled, windows, write

from minimind_edu import save_checkpoint
from minimind_edu.inside.verse import write_verse_page
from minimind_edu.trained.living import living_model

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

# Of each page its parts, and the name of their files.
PARTS = {
    "inside": {
        ".in-tokens": "inside-text",
        ".in-left > section:not(.in-who)": "inside-next",
        ".in-who": "inside-who",
        ".in-blocks": "inside-heads",
        ".st-open": "inside-part",
    },
    "beside": {".in-tokens": "beside-text", ".in-left > section": "beside-next", ".bs-inside": "beside-apart"},
    "verse": {".vs-left": "verse-poem", ".vs-right": "verse-rules"},
}
LEAST = 0.015  # of the pixels: what differs more has lost something
EVERYTHING = 2600  # pixels of height: nothing is out of sight
WORDS = """(root) => {
    const found = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const at = walker.currentNode.parentElement;
        const isSeen = at.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
        const { width } = at.getBoundingClientRect();
        if (isSeen && width > 1 && !at.closest(".mm-keep, .st-close"))
            found.push(...walker.currentNode.data.split(/\\s+/));
    }
    return found.filter(Boolean);
}"""
SHOW_KEEPERS = """(isShown) => document.querySelectorAll(".mm-keep, .st-close").forEach((one) =>
    (one.style.visibility = isShown ? "" : "hidden"))"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Writes each page once: files(kind, language)."""
    written = {}

    def file(kind, language):
        if (kind, language) in written:
            return written[kind, language]
        folder = tmp_path_factory.mktemp(f"{kind}_{language}")
        if kind == "verse":
            target = folder / "page.html"
            write_verse_page(target, language)
        elif kind == "inside":
            target = write(folder, "--language", language)
        else:
            save_checkpoint(living_model("twin"), folder / "twin.safetensors")
            target = write(folder, "--beside", folder / "twin.safetensors", "--language", language)
        return written.setdefault((kind, language), target)

    return file


@pytest.fixture
def visit(browser):
    with windows(browser) as opened:
        yield opened


def choose_inside(page):
    """A position, an open head, a silent one, and another temperature."""
    page.locator(".in-write input[type=range]").first.evaluate("(one) => one.closest('details').open = true")
    page.locator(".in-write input[type=range]").first.fill("0.3")
    page.locator(".in-line button").nth(9).click()
    page.locator(".st-head").nth(6).click()
    page.locator(".st-open input").check()
    settled(page)
    page.locator(".st-head").nth(3).click()


def choose_beside(page):
    """Two drawn answers, a token of the second, an open head, and another bound."""
    page.locator(".in-write .mm-more summary").first.click()
    sliders = page.locator(".in-write input[type=range]")
    sliders.first.fill("0.9")
    sliders.last.fill("7")
    page.locator(".in-write .mm-more summary").first.click()
    page.locator(".mm-primary").click()
    page.locator(".in-token[data-parts]").first.wait_for()
    settled(page)
    page.locator(".bs-answer").nth(1).locator(".in-token").nth(4).click()
    page.locator(".bs-beyond input").fill("-0.1")
    page.locator(".bs-head").nth(6).click()
    page.locator(".bs-side li").first.wait_for()


def choose_verse(page):
    """A poem as it is without one head."""
    page.locator(".vs-field").first.fill("远上寒山石径斜")
    page.locator(".mm-primary").click()
    page.locator(".vs-kept dd").first.wait_for()
    settled(page)
    page.locator(".vs-head").nth(5).click()


CHOOSE = {"inside": choose_inside, "beside": choose_beside, "verse": choose_verse}


def chosen(visit, files, kind, language="en", width=1280, theme="light"):
    page = visit(files(kind, language), width, theme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": EVERYTHING})
    CHOOSE[kind](page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    settled(page)
    return page


def least_apart(here, there):
    """As far_apart has it; on the page a part may begin between two pixels, and its picture begins at one."""
    shifts = [(x, y) for x in (0, 1) for y in (0, 1)]
    return min(far_apart(here, there.crop((*shift, *there.size))) for shift in shifts)


def keeper_of(page, part):
    return page.locator(f"{part} > .mm-keep")


@pytest.mark.parametrize(("language", "width", "theme"), [("en", 1280, "light"), ("zh", 360, "dark")])
@pytest.mark.parametrize("kind", PARTS)
def test_each_part_is_handed_over_as_it_is_seen(visit, files, browser, tmp_path, kind, language, width, theme):
    page = chosen(visit, files, kind, language, width, theme)
    assert page.locator(".mm-keep").count() == len(PARTS[kind])
    for part, name in PARTS[kind].items():
        root, keeper = page.locator(part), keeper_of(page, part)
        open_menu(keeper)
        found = {kind: handed_over(page, keeper, kind) for kind in ("SVG", "PNG")}
        page.keyboard.press("Escape")
        assert [named for named, _ in found.values()] == [f"minimind-{name}.svg", f"minimind-{name}.png"]
        svg, png = (content for _, content in found.values())
        words = words_in(svg)
        assert [word for word in root.evaluate(WORDS) if word not in words] == [] and "×" not in words, name
        picture = halved(pixels_of(png))
        (tmp_path / "kept.svg").write_bytes(svg)
        assert far_apart(alone(browser, tmp_path / "kept.svg", picture.size), picture) < LEAST, name
        page.evaluate(SHOW_KEEPERS, False)
        seen = pixels_of(root.screenshot(animations="disabled"))
        page.evaluate(SHOW_KEEPERS, True)
        own = MARGIN if picture.width > seen.width + 2 else 0
        inner = picture.crop((own, own, picture.width - own, picture.height - own))
        assert abs(inner.width - seen.width) <= 2 and abs(inner.height - seen.height) <= 2
        assert least_apart(inner, seen) < LEAST, name
        ground = [image.getpixel((3, image.height - 3)) for image in (picture, seen)]
        assert not own or ground[0] == ground[1], name


# What a reader sees of a state: the words of all parts, without what only a trial or a glance has put there.
STATE = """([parts, left]) => parts.map((part) => {
    const copy = document.querySelector(part).cloneNode(true);
    copy.querySelectorAll(`.mm-keep, ${left}`).forEach((one) => one.remove());
    return copy.textContent;
})"""
MARKED = """() => [...document.querySelectorAll(
    "[aria-current=true], [aria-expanded=true], [aria-pressed=true], [data-silent=true]")].map((one) =>
    [one.className, one.textContent, [...one.parentElement.children].indexOf(one)])"""


@pytest.mark.parametrize("kind", PARTS)
def test_its_link_sets_the_state_again(visit, files, kind):
    page = chosen(visit, files, kind)
    part = next(iter(PARTS[kind]))
    keeper = keeper_of(page, part)
    open_menu(keeper)
    keeper.get_by_role("button", name="Link").click()
    keeper.get_by_role("button", name=re.compile("^(Copied|In the address bar)$")).wait_for()
    _, svg = handed_over(page, keeper, "SVG")
    hash = address_in(svg).partition("#")[2]
    assert hash == page.url.partition("#")[2], "the picture says it, too, and so does the address"
    again = visit(files(kind, "en"), address=f"#{hash}", reduced_motion="reduce")
    again.set_viewport_size({"width": 1280, "height": EVERYTHING})
    settled(again)
    if kind != "verse":
        again.locator(".st-open li").first.wait_for()
    asked = [["section", *PARTS[kind]], ".in-complaint"]
    assert again.evaluate(STATE, asked) == page.evaluate(STATE, asked)
    assert again.evaluate(MARKED) == page.evaluate(MARKED)
    plain = visit(files(kind, "en"), reduced_motion="reduce")
    assert plain.evaluate(MARKED) != page.evaluate(MARKED), "of itself the page shows something else"


def test_before_there_is_a_poem_there_is_no_link_and_then_there_is(visit, files):
    page = visit(files("verse", "en"), reduced_motion="reduce")
    keeper = keeper_of(page, ".vs-left")
    open_menu(keeper)
    assert keeper.locator("button").all_text_contents() == ["SVG", "PNG"]
    page.keyboard.press("Escape")
    page.locator(".mm-primary").click()
    page.locator(".vs-kept dd").first.wait_for()
    open_menu(keeper)
    keeper.get_by_role("button", name="Link").wait_for()
