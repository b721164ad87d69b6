"""Which tests run, and fixtures that several of their modules share.

What a fixture imports is imported only where it is used.
"""

import contextlib
import os
from pathlib import Path

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--all",
        action="store_true",
        help="also look closely: at every figure and page in the browser, at whole programs and trainings",
    )


def pytest_runtest_setup(item):
    """Leave out what looks closely, unless asked for: with --all, or by file or name.

    That is what opens a browser, and what is marked as long: trainings, whole programs, more cases that take the same
    way as those that run always. tools.touched runs both for what a change has touched.
    """
    if item.config.option.all or any(Path(argument.partition("::")[0]).is_file() for argument in item.config.args):
        return
    if item.get_closest_marker("long") or "browser" in item.fixturenames and not item.get_closest_marker("always"):
        pytest.skip("a close look, in the browser or a long one: `pytest --all` runs it too")


@pytest.fixture(scope="session")
def browser():
    """Chromium, one for all tests of this process."""
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


@pytest.fixture
def forgetful(request):
    """The page of the module, which remembers nothing of another test, and nothing of this one afterwards.

    A whole file may use it: a test without a page needs no browser for it.
    """
    if "page" not in request.fixturenames:
        yield
        return
    from browser import serve

    page = request.getfixturevalue("page")
    serve(page)
    page.evaluate("localStorage.clear()")
    yield
    serve(page)
    page.evaluate("localStorage.clear()")


@pytest.fixture(scope="module")
def node():
    """One process of node for each test module: JavaScript that needs no page."""
    from node import Node

    with contextlib.closing(Node()) as process:
        yield process


@pytest.fixture(scope="session")
def own_step() -> None:
    """step.cpp is compiled and loaded; tests of it are skipped where that is impossible."""
    from minimind_edu.fast.library import why_no_library

    if reason := why_no_library():
        pytest.skip(f"no C++ here: {reason}")


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
            book_builder.build_editions(folder / "book")
            finished.touch()
    return folder / "book" / "_build" / "html"


@pytest.fixture(scope="session")
def http_address(html):
    """The address of the book on a server of this process, which sends a strict content security policy."""
    from book_builder import served

    with served(html) as address:
        yield address
