"""What a reader keeps of a figure: a picture that stands alone and is what the page shows, and an address."""

import io
import json
import xml.etree.ElementTree as ET
from base64 import b64decode, b64encode

import pytest
from browser import ALIVE, Watch, serve, settle, show, static_page
from figure_examples import Probe, example
from kept import SVG, far_apart, halved, pixels_of
from PIL import Image

from minimind_edu.figures import Figure, figure_names, keep_script, module_source
from minimind_edu.web import host
from minimind_edu.web.keep import message as keep_message

PICTURES = pytest.mark.parametrize("name", [name for name in figure_names() if name != "quiz"])
# Nothing but the figure, at a whole pixel, with square corners: what lies around it is no part of the picture.
ALONE = """h1, .mm-keep { display: none } body, .minimind-figure { margin: 0 !important }
.mm-fig { border-radius: 0 !important }"""
DRAWN = """async ([source, strip]) => {
    const keep = minimindFigures.keep();
    const root = document.querySelector(".mm-fig");
    const drawn = keep.picture(root, source);
    const blob = await keep.pixelsOf({ ...drawn, svg: drawn.svg.replace(RegExp(strip), "") });
    const reader = new FileReader();
    const read = new Promise((done) => (reader.onload = () => done(reader.result)));
    reader.readAsDataURL(blob);
    return [drawn.svg, await read];
}"""
# Every word that is to be seen, those on drawings too, but for what is folded, and the fold's own words.
WORDS = """() => {
    const found = [];
    const walker = document.createTreeWalker(document.querySelector(".mm-fig"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const [node, at] = [walker.currentNode, walker.currentNode.parentElement];
        const { width } = at.getBoundingClientRect();
        const isSeen = at.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && width > 1;
        if (isSeen && !at.closest(".mm-more, .mm-hidden, title, desc")) found.push(...node.data.split(/\\s+/));
    }
    return found.filter(Boolean);
}"""


def opened(page, figure, width=944, **options):
    page.set_viewport_size({"width": width, "height": 900})
    show(page, static_page(figure, keeps=True, **options))
    page.wait_for_selector(ALIVE)
    settle(page)


def drawn(page, source="", strip=""):
    """The picture as XML and as pixels; strip: a pattern of what the pixels are drawn without."""
    svg, png = page.evaluate(DRAWN, [source, strip])
    return ET.fromstring(svg), pixels_of(b64decode(png.partition(",")[2]))


def far_from_page(page, image):
    """Of the pixels of a picture, the share that differs from the page's; and the sizes of both."""
    there = pixels_of(page.locator(".mm-fig").screenshot(animations="disabled"))
    here = halved(image)
    return far_apart(here, there), (here.size, there.size)


def assert_kept(page, least=0.015):
    page.add_style_tag(content=ALONE)
    settle(page)
    picture, image = drawn(page, "http://book.test/page.html#figure-1?a=1&b=2")
    assert picture.find(f"{SVG}desc").text == "http://book.test/page.html#figure-1?a=1&b=2"
    tags = {one.tag.removeprefix(SVG) for one in picture.iter()}
    assert tags <= {
        *"svg title desc defs g rect circle ellipse line path polyline polygon text tspan image".split()
    } | {*"pattern clipPath linearGradient radialGradient stop".split()}
    assert not any(name in one.attrib for one in picture.iter() for name in ("class", "tabindex", "role"))
    families = {one.attrib["font-family"] for one in picture.iter() if "font-family" in one.attrib}
    assert families and [one for one in families if not one.endswith((", sans-serif", ", monospace"))] == []
    assert all("oklab" not in value and "light-dark" not in value and "var(" not in value
               for one in picture.iter() for value in one.attrib.values())  # fmt: skip
    words = "".join(text for one in picture.iter(f"{SVG}text") for text in one.itertext())
    missing = [word for word in page.evaluate(WORDS) if word not in words]
    assert missing == []
    share, (here, there) = far_from_page(page, image)
    assert here[0] == there[0] and there[1] - 60 < here[1] <= there[1] + 1
    assert share < least, share


@PICTURES
def test_the_picture_is_what_the_page_shows(page, name):
    opened(page, example(name))
    assert_kept(page)


@pytest.mark.parametrize("name", ["memory_bars", "attention_xray", "roofline"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_so_it_is_in_the_dark_on_a_phone_and_in_chinese(page, name, language):
    opened(page, example(name), width=344, theme="dark", language=language)
    assert_kept(page)


def test_a_font_that_the_page_brings_is_in_the_picture(page):
    """An image loads no fonts: without its own, its words would be those of another font, squeezed."""
    opened(page, example("memory_bars"))
    font = b64encode((host.FONTS / "sans.woff2").read_bytes()).decode()
    face = f"font-family: 'Book Sans'; src: url(data:font/woff2;base64,{font}); font-weight: 400 700"
    page.add_style_tag(content=f"@font-face {{ {face} }} .mm-fig {{ --mm-font: 'Book Sans', monospace }} {ALONE}")
    page.evaluate("document.fonts.load('16px Book Sans')")
    settle(page)
    picture, image = drawn(page)
    [style] = picture.iter(f"{SVG}style")
    assert font in style.text
    _, without = drawn(page, strip="<style>.*</style>")
    assert far_from_page(page, image)[0] < 0.004 < far_from_page(page, without)[0]


def test_it_is_the_state_that_is_shown_not_the_first(page):
    opened(page, example("memory_bars"))
    before, _ = drawn(page)
    page.get_by_role("radio", name="DPO").click()
    after, _ = drawn(page)
    first, then = ["".join(one.itertext()) for one in (before, after)]
    assert "9.47 GB" in first and "9.59 GB" in then and "9.59 GB" not in first


# ---- the button


def keeper(page):
    return page.locator(".mm-keep")


def test_a_press_hands_over_a_file(page):
    opened(page, example("memory_bars"))
    watch = Watch(page)
    summary = keeper(page).locator("summary")
    assert summary.get_attribute("aria-label") == "Keep this picture as it is now"
    summary.focus()
    page.keyboard.press("Enter")
    keeper(page).get_by_role("button", name="PNG").wait_for()
    for kind in ("SVG", "PNG"):
        button = keeper(page).get_by_role("button", name=kind)
        page.keyboard.press("Tab")
        assert button.evaluate("one => one === document.activeElement")
        with page.expect_download() as found:
            page.keyboard.press("Enter")
        assert found.value.suggested_filename == f"minimind-memory-bars.{kind.lower()}"
        content = found.value.path().read_bytes()
        if kind == "SVG":
            assert ET.fromstring(content).tag == f"{SVG}svg"
        else:
            width = page.locator(".mm-fig").bounding_box()["width"]
            assert Image.open(io.BytesIO(content)).width == 2 * width
        page.wait_for_function("() => document.querySelector('.mm-keep').textContent.includes('Saved')")
    page.keyboard.press("Escape")
    assert not keeper(page).evaluate("one => one.open") and summary.evaluate("one => one === document.activeElement")
    assert watch.problems == []


def test_it_lies_on_the_edge_and_takes_no_room(page):
    for width in (944, 344):
        opened(page, example("memory_bars"), width=width)
        figure, button = page.locator(".mm-fig").bounding_box(), keeper(page).locator("summary").bounding_box()
        edge = figure["y"] + figure["height"]
        assert button["y"] < edge < button["y"] + button["height"]
        assert button["height"] >= 24 and button["width"] >= 44
        keeper(page).locator("summary").click()
        keeper(page).get_by_role("button", name="PNG").wait_for()
        boxes = [one.bounding_box() for one in keeper(page).locator("button, summary").all()]
        assert len({box["y"] for box in boxes}) == 1  # the menu, too, and hides nothing of the figure
        assert all(box["x"] > figure["x"] for box in boxes)
        with_it = page.locator("[data-figure]").bounding_box()
        page.add_style_tag(content=".mm-keep { display: none }")
        assert page.locator("[data-figure]").bounding_box() == with_it
        assert page.evaluate("document.documentElement.scrollWidth") <= width + 16


def test_a_quiz_is_no_picture(page):
    opened(page, example("quiz"))
    assert keeper(page).count() == 0


def test_without_an_address_there_is_no_link(page):
    opened(page, example("memory_bars"))
    keeper(page).locator("summary").click()
    keeper(page).get_by_role("button", name="PNG").wait_for()
    assert keeper(page).locator("button").all_text_contents() == ["SVG", "PNG"]


# A figure with an address, on a page whose browser has this clipboard: what its menu says after a press on the link.
LINKED = """async (clipboard) => {
    const kinds = {
        works: { writeText: async (text) => (window.written = text) },
        none: undefined, // a page from an address that is not secure
        refuses: { writeText: () => Promise.reject(new Error("not allowed")) },
        asks: { writeText: () => new Promise(() => {}) },
    };
    Object.defineProperty(navigator, "clipboard", { value: kinds[clipboard], configurable: true });
    const { h, frame, mount } = await import("/web/kit/kit.js");
    const { default: keep } = await import("/web/kit/keep.js");
    const heard = [];
    const model = { get: () => null, on: (_, call) => heard.push(call), off: () => {} };
    model.send = () => setTimeout(() => heard.forEach((call) => call({ asked: "keep", value: keep() })));
    const root = frame({ title: "A title", caption: "" }, { stage: h("p", {}, "words") });
    const unmount = mount(document.body, root, { model, traits: [], draw: () => {}, address: () => "#state" });
    document.querySelector(".mm-keep").open = true;
    while (!document.querySelector(".mm-keep button")) await new Promise((done) => setTimeout(done));
    const link = [...document.querySelectorAll(".mm-keep button")].at(-1);
    link.click();
    while (["Link", "…"].includes(link.textContent)) await new Promise((done) => setTimeout(done));
    const found = [link.textContent, location.hash, window.written ?? null];
    unmount();
    return found;
}"""


@pytest.mark.parametrize("clipboard", ["works", "none", "refuses", "asks"])
def test_a_link_is_copied_or_stands_in_the_address_bar_and_the_button_says_which(page, clipboard):
    serve(page)
    is_copied = clipboard == "works"
    said = "Copied" if is_copied else "In the address bar"
    assert page.evaluate(LINKED, clipboard) == [said, "#state", "#state" if is_copied else None]


# A kernel that computes when the menu is opened, and answers when the menu has said that nothing came.
BUSY = """async () => {
    const { h, frame, mount } = await import("/web/kit/kit.js");
    const { default: keep } = await import("/web/kit/keep.js");
    const wait = window.setTimeout;
    window.setTimeout = (call, milliseconds) => wait(call, milliseconds / 1000);
    const heard = [];
    const model = { get: () => null, on: (_, call) => heard.push(call), off: () => {}, send: () => {} };
    const root = frame({ title: "A title", caption: "" }, { stage: h("p", {}, "words") });
    const unmount = mount(document.body, root, { model, traits: [], draw: () => {} });
    const keeper = document.querySelector(".mm-keep");
    keeper.open = true;
    while (keeper.lastChild.textContent === "…") await new Promise((done) => wait(done));
    const said = keeper.lastChild.textContent;
    heard.forEach((call) => call({ asked: "keep", value: keep() }));
    await new Promise((done) => wait(done));
    const labels = [...keeper.querySelectorAll("button")].map((one) => one.textContent);
    window.setTimeout = wait;
    unmount();
    return [said, labels];
}"""


def test_a_kernel_that_was_busy_is_heard_later(page):
    serve(page)
    assert page.evaluate(BUSY) == ["Not here", ["SVG", "PNG"]]


def test_a_page_that_lacks_the_code_says_so(page):
    show(page, static_page(example("memory_bars")))
    page.wait_for_selector(ALIVE)
    page.add_script_tag(content="delete minimindFigures.keep")
    keeper(page).locator("summary").click()
    page.wait_for_function("() => document.querySelector('.mm-keep').textContent.includes('Not here')")


# ---- what brings it


def test_the_code_is_in_no_figure_and_travels_when_it_is_asked_for(monkeypatch):
    assert "XMLSerializer" in keep_script()
    assert not any("XMLSerializer" in module_source(name) for name in figure_names())
    assert "</script" not in keep_script() and "<!--" not in keep_script()
    assert host.KEEP not in figure_names()
    sent = []
    monkeypatch.setattr(Figure, "send", lambda self, content, buffers=None: sent.append(content))
    Probe()._handle_custom_msg({"ask": host.KEEP}, [])
    [message] = sent
    assert message["asked"] == "keep" and "XMLSerializer" in message["value"]["code"]


# As anywidget's model with a kernel: what Python sends is heard as a message.
WITH_KERNEL = """async (answer) => {
    const { h, frame, mount } = await import("/web/kit/kit.js");
    const heard = new Map();
    const model = {
        get: () => null,
        on: (name, callback) => heard.set(name, callback),
        off: (name) => heard.delete(name),
        send: ({ ask }) => setTimeout(() => heard.get("msg:custom")?.({ asked: ask, value: answer })),
    };
    const root = frame({ title: "A title & more", caption: "" }, { stage: h("p", {}, "words") });
    const unmount = mount(document.body, root, { model, traits: [], draw: () => {} });
    document.querySelector(".mm-keep").open = true;
    while (!document.querySelector(".mm-keep button")) await new Promise((done) => setTimeout(done));
    const buttons = [...document.querySelectorAll(".mm-keep button")];
    const labels = buttons.map((one) => one.textContent);
    const saved = new Promise((done) => {
        document.addEventListener("click", ({ target }) => target.download && done(target.download));
    });
    buttons[0].click();
    const name = await saved;
    unmount();
    return [labels, name, document.querySelectorAll(".mm-keep").length];
}"""


def test_a_notebook_has_the_pictures_and_no_link(page):
    """There the kernel answers; a cell's output has no address."""
    serve(page)
    code = {"code": keep_message()["code"]}
    assert page.evaluate(WITH_KERNEL, json.loads(json.dumps(code))) == [["SVG", "PNG"], "minimind-figure.svg", 0]
