"""Pages of models as readers write and open them: from a file, in a real browser, without a network."""

import re
from contextlib import contextmanager

from browser import Watch

from minimind_edu import __main__ as program

COMPARED = re.compile("Checked|differs|已核对|不一致")  # with torch: what a page says when it has
# Every text of a page that a reader sees or hears.
TEXTS = """() => {
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const found = [...document.querySelectorAll("[aria-label]")].map((one) => one.getAttribute("aria-label"));
    found.push(...[...document.querySelectorAll("[title]")].map((one) => one.title));
    while (walker.nextNode()) found.push(walker.currentNode.data);
    return found;
}"""

# In node: `reader`, a tokenizer whose tokens are letters: a is 1.
READER = """() => {
    const bytes = (id) => new TextEncoder().encode(String.fromCharCode(96 + id));
    const encode = (text) => [...text].map((one) => {
        if (one < "a" || one > "z") throw new Error(`${one} is no letter`);
        return one.charCodeAt(0) - 96;
    });
    globalThis.reader = { encode, bytesOf: bytes, isSpecial: () => false, joins: "" };
}"""


def do(node, steps):
    """Runs the steps in node and gives what is `seen` there then."""
    return node.evaluate(f"async () => {{ {steps} ; return seen(); }}")


def write(folder, *arguments):
    """The page that `minimind-edu open` writes with these arguments."""
    target = folder / "page.html"
    program.main(["open", *map(str, arguments), "-o", str(target)])
    return target


def settled(page):
    """Until the text of the field is read, what was asked of it is answered, and what is shown is about it."""
    page.locator('main[data-busy="false"]').wait_for(timeout=60_000)


def assert_quiet(page):
    assert page.watch.problems == []
    assert [url for url in page.watch.requests if not url.startswith(("file:", "blob:", "data:"))] == []


@contextmanager
def windows(browser):
    """Gives open(file, width, theme, address, **of the context): a page that has compared all its models with torch.

    Each has a window of its own, without a network; at the end all of them must have been quiet.
    """
    pages = []

    def opened(file, width=1280, theme="light", address="", **more):
        size = {"width": width, "height": 740 if width < 500 else 900}
        page = browser.new_context(viewport=size, color_scheme=theme, offline=True, **more).new_page()
        pages.append(page)
        page.watch = Watch(page)
        page.goto(file.as_uri() + address)
        page.locator(".in-check").last.filter(has_text=COMPARED).wait_for()
        settled(page)
        return page

    yield opened
    for page in pages:
        assert_quiet(page)
        page.context.close()
