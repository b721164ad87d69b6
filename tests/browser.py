"""The real browser that tests look through: where it is, what it may not say or fetch, and the figures' pages in it."""

import functools
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import pytest

from minimind_edu.figures import (
    Figure,
    asks_for_living,
    keep_script,
    living_script,
    module_source,
    own_stylesheet,
    shared_stylesheet,
)
from minimind_edu.web import host

ORIGIN = "http://figures.test"  # answered by the test itself, never by a network
ELSEWHERE = "http://elsewhere.test"  # so is this
SIZE = {"width": 1280, "height": 720}
EMPTY = "<!doctype html><title>empty</title>"
PATIENCE = 15_000  # milliseconds, for one frame
PACKAGE = Path(__file__).parents[1] / "src/minimind_edu"
HOST = Path(__file__).parents[1] / "book/theme/static/figure_host.js"

FIGURE = f".{host.FIGURE_CLASS}"
FALLBACK = f".{host.FALLBACK_CLASS}"
ALIVE = f'{FIGURE}[data-state="{host.ALIVE}"]'
FAILED = f'{FIGURE}[data-state="{host.FAILED}"]'

# The host starts the figures below the window when the page has an idle moment. A busy machine has none: each figure
# would wait a second for it.
NO_WAITING = "window.requestIdleCallback = (start) => setTimeout(start);"

_QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu")


def chromium_path(playwright) -> str | None:
    """A Chromium of the system, or the one that playwright installed, or None."""
    # the shell is the same browser without windows: a new page takes it a third of the work
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def launch(playwright):
    """Start Chromium, or skip with one sentence; with REQUIRE_BROWSER=1 a missing browser is a failure."""
    path = chromium_path(playwright)
    if path is None:
        missing = pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip
        missing(
            "there is no Chromium on this machine, so nothing was looked at in a browser; install Chromium or Chrome "
            "(on Debian: apt install chromium-headless-shell)"
        )
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium refuses to sandbox what root runs
    return playwright.chromium.launch(executable_path=path, args=[*_QUIET, *sandbox])


class Watch:
    """Everything a page complains about or fetches from then on."""

    def __init__(self, page):
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"uncaught: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")


@functools.cache
def _source(name: str, language: str) -> str:
    return module_source(name, language)


def static_page(
    *figures: Figure, theme: str = "light", source: str | None = None, language: str = "en", keeps: bool = False
) -> str:
    """Figures on a page with everything they need inside; with `source` as the module of the first.

    With `keeps` the page also has what draws the files that a reader keeps.
    """
    modules = {figure._module: _source(figure._module, language) for figure in figures}
    if source is not None:
        modules[figures[0]._module] = source
    styles = shared_stylesheet() + "".join(own_stylesheet(name) for name in modules)
    limits = {figure._module: figure.limits() for figure in figures}
    scripts = [NO_WAITING, *(host.registration(name, text, limits[name]) for name, text in modules.items())]
    if any(map(asks_for_living, modules.values())):
        scripts.append(living_script())
    if keeps:
        scripts.append(keep_script())
    scripts.append(host.script(HOST.read_text(encoding="utf-8")))
    return f"""<!doctype html>
<html lang="{language}" data-theme="{theme}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{figures[0]!r}</title>
<link rel="icon" href="data:,"><style>{styles}</style>
<style>body {{ margin: 8px; }} html[data-theme="dark"] body {{ background: #121212; color: #ddd; }}</style></head>
<body><main><h1>A figure</h1>{"".join(figure.static_html() for figure in figures)}</main>
{"".join(f"<script>{script}</script>" for script in scripts)}</body></html>"""


_documents: WeakKeyDictionary = WeakKeyDictionary()  # page -> what it finds at ORIGIN


def serve(page, html: str = EMPTY) -> None:
    """Answer ORIGIN with `html` and the package's scripts, refuse everything else, and go there."""

    def answer(route):
        path = PACKAGE / urlsplit(route.request.url).path.removeprefix("/")
        if path.suffix == ".js" and path.is_file():
            route.fulfill(path=path, content_type="text/javascript; charset=utf-8")
        else:
            route.fulfill(body=_documents[page], content_type="text/html; charset=utf-8")

    if page not in _documents:
        page.route("http*://**", lambda route: route.abort())
        page.route(f"{ORIGIN}/**", answer)
    _documents[page] = html
    page.goto(f"{ORIGIN}/")


# Another document in the window that is there. Not with document.open(): what is written so never captures a pointer.
_REPLACE = """(html) => {
    const next = new DOMParser().parseFromString(html, "text/html");
    const root = document.documentElement;
    for (const { name, value } of next.documentElement.attributes) root.setAttribute(name, value);
    document.head.replaceChildren(...next.head.childNodes);
    document.body.replaceChildren(...next.body.childNodes);
    scrollTo(0, 0);
    for (const inert of document.querySelectorAll("script:not([type])")) {
        const script = document.createElement("script");
        script.textContent = inert.textContent;
        inert.replaceWith(script);
    }
}"""


def show(page, html: str) -> None:
    """Put `html` into the page at ORIGIN: going there takes three times the work, and is left for what needs it.

    What the window keeps from the page before (its variables and listeners, what is stored) stays.
    """
    if page.url != f"{ORIGIN}/" or page not in _documents:
        return serve(page, html)
    _documents[page] = html
    page.evaluate(_REPLACE, html)


def rest(page) -> None:
    """Take back what the test before wished of a page that it shared: its size, and where the mouse is."""
    if page.viewport_size != SIZE:
        page.set_viewport_size(SIZE)
    page.mouse.move(0, 0)


# What the host has made of all figures, as soon as it is done with the last of them; null if the browser draws no
# frame of this page any more, which figures wait for.
_STATES = """([selector, patience]) => new Promise((done) => {
    const start = performance.now();
    let drawn = false;
    requestAnimationFrame(() => (drawn = true));
    const look = () => {
        const states = [...document.querySelectorAll(selector)].map((figure) => figure.dataset.state);
        const waited = performance.now() - start;
        if (states.every(Boolean) || waited > 60_000) done(states);
        else if (!drawn && waited > patience) done(null);
        else setTimeout(look, 5);
    };
    look();
})"""


def open_figures(page, *figures: Figure, theme: str = "light", language: str = "en") -> None:
    """Show figures on one page and wait until all of them are drawn.

    Once in some ten thousand pages Chromium stops drawing a window for good (twice seen, never on demand); it is left
    for another site's then, whose window is a new one, and no test after it waits in vain.
    """
    html = static_page(*figures, theme=theme, language=language)
    show(page, html)
    states = page.evaluate(_STATES, [FIGURE, PATIENCE])
    if states is None:
        page.route(f"{ELSEWHERE}/**", lambda route: route.fulfill(body=EMPTY, content_type="text/html"))
        page.goto(f"{ELSEWHERE}/")
        serve(page, html)
        states = page.evaluate(_STATES, [FIGURE, PATIENCE])
    assert states == [host.ALIVE] * len(figures), f"the figures are {states}; None: no frame of the page was drawn"


def read_out(page) -> dict[str, str]:
    """The key numbers of the one figure on the page, as a reader sees them."""
    rows = """all => all.map((row) => [...row.children].map((cell) => cell.innerText))"""
    return dict(page.eval_on_selector_all(".mm-readout > div", rows))


def sizes(locator) -> list[dict[str, float]]:
    """Width and height of each that is there, in one journey to the browser."""
    return locator.evaluate_all(
        """all => all.map((one) => one.getBoundingClientRect()).map(({ width, height }) => ({ width, height }))"""
    )


def unfold(page) -> None:
    """Open what the figures on the page keep folded below "more"."""
    page.eval_on_selector_all(".mm-more", "all => all.forEach((one) => (one.open = true))")


def settle(page) -> None:
    """Wait for two frames: one to draw, one to be sure."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def press_when(button, holds: str, begin=None) -> None:
    """Press `begin`, and `button` as soon as a condition holds that JavaScript says.

    In the page itself: what has begun might have ended before an answer from there is here.
    """
    button.evaluate(
        f"""(button, begin) => new Promise((done) => {{
            const look = () => ({holds} ? done(button.click()) : setTimeout(look));
            begin?.click();
            look();
        }})""",
        begin and begin.element_handle(),
    )


# The width of a drawing and the box of each of its words that are shown, in pixels from its upper left corner.
BOXES = """(drawing) => {
    const { x: left, y: top, width } = drawing.getBoundingClientRect();
    const boxes = [...drawing.querySelectorAll("text")].map((text) => {
        const { x, y, right, bottom } = text.getBoundingClientRect();
        return [text.textContent, x - left, y - top, right - left, bottom - top];
    });
    return [width, boxes.filter(([words, x0, , x1]) => words.trim() && x1 > x0)];
}"""


def assert_words_are_apart(drawing) -> None:
    """No two words of an SVG lie on each other, and none leaves it at the sides."""
    limit, boxes = drawing.evaluate(BOXES)
    for i, (words, x0, y0, x1, y1) in enumerate(boxes):
        assert x0 > -1 and x1 < limit + 1, words
        for other, u0, v0, u1, v1 in boxes[:i]:
            assert x1 <= u0 or u1 <= x0 or y1 <= v0 + 3 or v1 <= y0 + 3, (words, other)
