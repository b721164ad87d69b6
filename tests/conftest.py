"""Fixtures that several test modules share. What they import is imported only where they are used."""

import contextlib
import functools
import http.server
import os
import threading
from pathlib import Path

import pytest

_running = contextlib.ExitStack()  # the browser of this process, while there is one
_chromium = pytest.StashKey[object]()


@pytest.fixture(scope="module")
def browser(request):
    """Chromium, one for all modules that use it: they come one after the other, see pytest_runtest_setup."""
    from browser import launch
    from playwright.sync_api import sync_playwright

    stash = request.session.stash
    if _chromium not in stash:
        stash[_chromium] = launch(_running.enter_context(sync_playwright()))
        _running.callback(stash.__delitem__, _chromium)
        _running.callback(stash[_chromium].close)
    return stash[_chromium]


@functools.cache
def _modules_with_a_browser(session) -> set[Path]:
    return {item.path for item in session.items if "browser" in item.fixturenames}


def pytest_runtest_setup(item):
    """End the browser before a module without one: playwright's event loop would hinder the kernels of notebooks."""
    if item.path not in _modules_with_a_browser(item.session):
        _running.close()


def pytest_sessionfinish():
    _running.close()


@pytest.fixture(scope="module")
def module_page(browser):
    """One page for each test module: a page of its own would be twice the work of what most tests do on it."""
    from browser import SIZE

    context = browser.new_context(viewport=SIZE)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(module_page):
    """The page of the module, without the wishes of the test before; `serve` puts another document on it."""
    from browser import rest

    rest(module_page)
    return module_page


@pytest.fixture(scope="session")
def html(tmp_path_factory) -> Path:
    """The built book: the one that BOOK_HTML names (`make test` has just built it), or one built now, once."""
    import book_builder
    from filelock import FileLock

    if named := os.environ.get("BOOK_HTML"):
        return (book_builder.ROOT / named).resolve()
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all processes of this run: one builds, the others wait for it
    finished = folder / "the_book_is_built"
    with FileLock(folder / "book.lock"):
        if not finished.exists():
            book_builder.build(book_builder.ROOT, folder / "book")
            finished.touch()
    return folder / "book" / "_build" / "html"


@pytest.fixture(scope="session")
def http_address(html):
    """The address of the book on a server of this process, which sends a strict content security policy."""
    from book_builder import content_security_policy

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def end_headers(self):
            page = Path(self.translate_path(self.path))
            if page.suffix == ".html" and page.is_file():
                self.send_header("Content-Security-Policy", content_security_policy(page.read_text("utf-8")))
            super().end_headers()

    handler = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
