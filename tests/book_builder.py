"""Build the book, or a copy of it, as `make book` does, and open its pages."""

import base64
import contextlib
import functools
import hashlib
import http.server
import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["book/index", *re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))]
TRANSLATED = [page for page in PAGES if (ROOT / "zh" / f"{page}.md").is_file()]
PAGES += ["search"]
NOTEBOOKS = [page for page in PAGES if page.startswith("chapters/")]
CHAPTERS = [page for page in NOTEBOOKS if page.removeprefix("chapters/")[0].isdigit()]
LESSONS = [page for page in CHAPTERS if f"chapters/deeper/D{Path(page).name}" in NOTEBOOKS]

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 360, "height": 740}

MOST_SHIFT = 0.01  # cumulative layout shift; more than 0.1 is felt

# Collected in the page from its beginning: first paint, shifts that no hand has caused, when the first figure is alive.
OBSERVE = """(() => {
    const seen = (window.seen = { paint: 0, alive: 0, shifts: [] });
    const observe = (type, callback) => new PerformanceObserver((list) => list.getEntries().forEach(callback))
        .observe({ type, buffered: true });
    observe("paint", (one) => { if (one.name === "first-contentful-paint") seen.paint = one.startTime; });
    observe("layout-shift", (one) => { if (!one.hadRecentInput) seen.shifts.push(one.value); });
    new MutationObserver(() => {
        if (!seen.alive && document.querySelector(".minimind-figure[data-state=alive]")) seen.alive = performance.now();
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-state"] });
})()"""

COMMAND = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", "."]
OPTIONS = ["--all", "--keep-going", "--quiet"]
STRICT = ["-W", "-n"]


def run_in(folder: Path, *command: str) -> None:
    """Run a command in another copy of the project, with that copy's package."""
    paths = [str(folder / "src"), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def build(project: Path, target: Path, strict: bool = True) -> Path:
    """Build the book of `project` below `target` and return the folder of its pages; strict: warnings are errors."""
    strictness = STRICT if strict else []
    run_in(project, *COMMAND, *OPTIONS, *strictness, "--path-output", str(target))
    return target / "_build" / "html"


def build_editions(target: Path) -> None:
    """Build the book below `target` as `make book` does, in both languages."""
    run_in(ROOT, sys.executable, "-m", "tools.editions", "--path-output", str(target))


def content_security_policy(page: str) -> str:
    """A strict policy: scripts of the book's own files and the one of the head, by its hash; nothing from elsewhere."""
    scripts = re.findall(r"<script>(.*?)</script>", page)  # none where a page has moved
    assert len(scripts) <= 1
    hashes = "".join(f" 'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    return (
        f"default-src 'none'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        "object-src 'none'; frame-ancestors 'none'"
    )


class _Pages(http.server.SimpleHTTPRequestHandler):
    """A folder's files; its pages with a strict content security policy, or with a script that is added to them."""

    def __init__(self, *args, script: str, fonts: threading.Event | None, **options):
        self.script, self.fonts = script, fonts
        super().__init__(*args, **options)

    def log_message(self, *args):
        pass

    def _page(self) -> Path | None:
        path = Path(self.translate_path(self.path))
        return path if path.suffix == ".html" and path.is_file() else None

    def send_head(self):
        if self.path.endswith(".woff2") and self.fonts:
            self.fonts.wait(60)
        page = self._page() if self.script else None
        if page is None:
            return super().send_head()
        content = page.read_text("utf-8").replace("<head>", f"<head><script>{self.script}</script>", 1).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)

    def end_headers(self):
        if not self.script and (page := self._page()):
            self.send_header("Content-Security-Policy", content_security_policy(page.read_text("utf-8")))
        super().end_headers()


@contextlib.contextmanager
def served(html: Path, script: str = "", fonts: threading.Event | None = None) -> Iterator[str]:
    """The address of the book on a server of this process, which sends fonts when `fonts` is set.

    It sends a strict content security policy, which forbids a `script`: with one, it is in the head of each page, and
    there is no policy.
    """
    handler = functools.partial(_Pages, directory=str(html), script=script, fonts=fonts)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def files_of(html: Path, name: str) -> set[Path]:
    """The page `name` and all files that it names for the browser to fetch: scripts, pictures, fonts, figures."""
    page = html / f"{name}.html"
    text = page.read_text(encoding="utf-8")
    named = re.findall(r'<(?:script|img)\b[^>]*? src="([^"#?]+)|<link rel="icon" href="([^"#?]+)', text)
    named += re.findall(r"url\(()[\"']?([^)\"'#?]+)", text)
    paths = ["".join(one) for one in named if not "".join(one).startswith("data:")]
    figures = re.findall(r'<div [^>]*data-figure="(\w+)"', text)
    paths += [os.path.relpath(html / f"_static/figures/{figure}.js", page.parent) for figure in figures]
    return {page, *((page.parent / path).resolve() for path in paths)}


def context_of(browser, viewport=WIDE, theme="light", **options):
    """A browser's context with this size and the reader's theme, in which nothing moves by itself."""
    return browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce", **options)


def wait_until(page, condition: str, arg=None) -> None:
    """Wait for a function in JavaScript to be true; playwright's own way is forbidden by a strict policy.

    It is asked only once there is a body: a page that has been committed may still be reading its head.
    """
    page.evaluate(
        f"""(arg) => new Promise((done, fail) => {{
            const end = performance.now() + 30_000;
            const look = () => {{
                if (document.body && ({condition})(arg)) done();
                else if (performance.now() < end) setTimeout(look, 20);
                else fail(new Error("in vain, for 30 s"));
            }};
            look();
        }})""",
        arg,
    )


def settle(page) -> None:
    """Wait until all figures have started, or failed to."""
    wait_until(page, "() => !document.querySelector('.minimind-figure:not([data-state])')")
