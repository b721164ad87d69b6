"""The real browser that tests look through: where it is, what it may not say or fetch, and the figures' pages in it."""

import json
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from minimind_edu.figures import Figure, module_source, stylesheet

ORIGIN = "http://figures.test"  # answered by the test itself, never by a network
STATIC = Path(__file__).parents[1] / "src/minimind_edu/figures/static"
HOST = Path(__file__).parents[1] / "book/_ext/figure_host.js"

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


def static_page(figure: Figure, theme: str = "light", source: str | None = None) -> str:
    """One figure on a page of its own, with everything it needs inside."""
    sources = {figure._module: module_source(figure._module) if source is None else source}
    return f"""<!doctype html>
<html lang="en" data-theme="{theme}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{figure!r}</title>
<link rel="icon" href="data:,"><style>{stylesheet()}</style>
<style>body {{ margin: 8px; }} html[data-theme="dark"] body {{ background: #121212; color: #ddd; }}</style></head>
<body><main><h1>A figure</h1>{figure.static_html()}</main>
<script>window.minimindFigures = {json.dumps(sources).replace("<", chr(92) + "u003c")};</script>
<script>{HOST.read_text(encoding="utf-8")}</script></body></html>"""


def serve(page, html: str = "<!doctype html><title>empty</title>") -> None:
    """Answer ORIGIN with `html` and the files in static/, refuse everything else, and go there."""

    def answer(route):
        path = STATIC / Path(urlsplit(route.request.url).path).name
        if path.suffix == ".js" and path.is_file():
            route.fulfill(path=path, content_type="text/javascript; charset=utf-8")
        else:
            route.fulfill(body=html, content_type="text/html; charset=utf-8")

    page.route("http*://**", lambda route: route.abort())
    page.route(f"{ORIGIN}/**", answer)
    page.goto(f"{ORIGIN}/")


def open_figure(page, figure: Figure, theme: str = "light") -> None:
    """Show one figure over http and wait until it is mounted."""
    serve(page, static_page(figure, theme))
    page.wait_for_selector(".minimind-figure[data-state]", timeout=10_000)
    assert page.get_attribute(".minimind-figure", "data-state") == "alive"


def run_js_module(page, module: str, function: str, args: list):
    """Call `function(...args)` of static/`module`.js in the browser and return its value; typed arrays become lists."""
    if not page.url.startswith(ORIGIN):
        serve(page)
    return page.evaluate(
        """async ([module, name, args]) => {
            const plain = (x) => ArrayBuffer.isView(x) ? Array.from(x) : Array.isArray(x) ? x.map(plain) : x;
            return plain((await import(`/${module}.js`))[name](...args));
        }""",
        [module, function, args],
    )
