"""Every page arrives soon on a slow line: light, painted at once, still, and with its first figure alive."""

import gzip
import http.server
import mimetypes
import re
import threading
from pathlib import Path

import pytest
from book_builder import CHAPTERS, NARROW, PAGES, WIDE

pytestmark = pytest.mark.timeout(600)

PACKED = {".html", ".js", ".css", ".svg", ".json", ".ipynb"}
LINE = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8}
SLOWER = 4  # times, the processor

MOST_BYTES = 200_000
MOST_SHIFT = 0.02  # cumulative layout shift; more than 0.1 is felt
ALIVE_AFTER_PAINT = 5  # times as late as the first paint, at most: about 1.5 s and 0.4 s where a machine is not busy

# Collected in the page from its beginning: first paint, shifts that no hand has caused, when the first figure is alive.
OBSERVE = """() => {
    const seen = (window.seen = { paint: 0, alive: 0, shifts: [] });
    const observe = (type, callback) => new PerformanceObserver((list) => list.getEntries().forEach(callback))
        .observe({ type, buffered: true });
    observe("paint", (one) => { if (one.name === "first-contentful-paint") seen.paint = one.startTime; });
    observe("layout-shift", (one) => { if (!one.hadRecentInput) seen.shifts.push(one.value); });
    new MutationObserver(() => {
        if (!seen.alive && document.querySelector(".minimind-figure[data-state=alive]")) seen.alive = performance.now();
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-state"] });
}"""


@pytest.fixture(scope="module")
def packing_address(html):
    """The address of the book on a server that packs text, as those do that publish pages."""
    packed: dict[Path, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_GET(self):
            path = html / self.path.split("?")[0].lstrip("/")
            if not path.is_file():
                self.send_error(404)
                return
            text = path.suffix in PACKED
            if path not in packed:
                packed[path] = gzip.compress(path.read_bytes(), 9) if text else path.read_bytes()
            self.send_response(200)
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
            if text:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(packed[path])))
            self.end_headers()
            self.wfile.write(packed[path])

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def load(browser, url: str, viewport: dict[str, int]) -> dict:
    """Open a page on the slow line, scroll through all of it, and tell what it weighed and did."""
    context = browser.new_context(viewport=viewport)
    page = context.new_page()
    session = context.new_cdp_session(page)
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", LINE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    page.add_init_script(f"({OBSERVE})()")
    page.goto(url, wait_until="load")
    if page.locator(".minimind-figure").count():
        page.wait_for_function("window.seen.alive")
    page.wait_for_function("!document.querySelector('.minimind-figure:not([data-state])')")
    seen = page.evaluate("window.seen")
    context.close()
    return seen | {"bytes": sum(sizes)}


def calm(browser, url: str, viewport: dict[str, int]) -> dict:
    """What a load tells, the best of three: a busy machine may drop the frames in which a figure takes its place."""
    seen: list[dict] = []
    while len(seen) < 3:
        seen.append(load(browser, url, viewport))
        if sum(seen[-1]["shifts"]) < MOST_SHIFT and seen[-1]["alive"] < ALIVE_AFTER_PAINT * seen[-1]["paint"]:
            break
    return min(seen, key=lambda one: sum(one["shifts"]))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light_and_stands_still(browser, packing_address, name):
    wide, narrow = (calm(browser, f"{packing_address}/{name}.html", size) for size in (WIDE, NARROW))
    assert wide["bytes"] < MOST_BYTES
    for seen in (wide, narrow):
        assert sum(seen["shifts"]) < MOST_SHIFT
    if name in CHAPTERS:
        assert min(seen["alive"] / seen["paint"] for seen in (wide, narrow)) < ALIVE_AFTER_PAINT


def test_the_measure_sees_a_heavy_page_that_moves(browser, packing_address):
    """A page that grows above its text after a while, and a figure that comes late, are told."""
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    page.add_init_script(f"({OBSERVE})()")
    page.goto(f"{packing_address}/{CHAPTERS[0]}.html")
    page.evaluate("""() => new Promise((done) => setTimeout(() => {
        const banner = document.createElement("div");
        banner.style.height = "300px";
        document.querySelector("article").prepend(banner);
        setTimeout(done, 300);
    }, 600))""")
    assert sum(page.evaluate("window.seen.shifts")) > MOST_SHIFT
    context.close()


def test_fonts_are_few_and_subset(html):
    fonts = {path.name: path.stat().st_size for path in (html / "_static/fonts").glob("*.woff2")}
    assert set(fonts) == {"text.woff2", "text-italic.woff2", "sans.woff2", "math.woff2"}
    assert sum(fonts.values()) < 90_000
    licences = " ".join(path.name for path in (html / "_static/fonts").glob("*.txt"))
    assert re.search("OFL.*Sans", licences) and re.search("OFL.*Serif", licences) and "GUST" in licences
