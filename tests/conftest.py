"""Fixtures that several test modules share. What they import is imported only where they are used."""

import functools
import http.server
import os
import threading
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def browser():
    """Chromium, one for each test module: left running, playwright's event loop would hinder the notebooks' kernels."""
    from browser import launch
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


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
    """The address of the book on a server of this process."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
