"""Which tests run, in which order, and fixtures that several of their modules share.

What a fixture imports is imported only where it is used.
"""

import contextlib
import functools
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

_running = contextlib.ExitStack()  # the browser of this process, while there is one
_chromium = pytest.StashKey[object]()
_left_out = pytest.StashKey[int]()

# Modules that take 5 s or more, the longest first. Behind everything else, each of them would keep one process busy
# while the others have nothing left to do.
LONGEST = (
    "book book_accessible figures_in_the_browser live_source figure_model_map figure_minimind_live "
    "figure_quantization_grid book_weight figure_norm_geometry figure_minimind_live_train figure_sampler live_model "
    "live_train figure_residual_stream figure_neuron_words live_world "
    "install_cell compiled_steps world beyond_one_machine stills decoding self_contained hf_adapter colab benchmarks "
    "plotting hf_export rounded"
).split()


def pytest_addoption(parser):
    parser.addoption(
        "--all", action="store_true", help="also look closely at every figure and page in the browser, and run programs"
    )


def _order(modules: dict[Path, set[str]]) -> list[Path]:
    """The order of modules, from the fixtures of each.

    The first that reads the built book builds it. The others that do come late, for they would wait for it. Those with
    a browser come together, for it starts once; and among equals first what takes longest.
    """

    def place(path: Path) -> tuple[int, int]:
        name = path.stem.removeprefix("test_")
        length = LONGEST.index(name) if name in LONGEST else len(LONGEST)
        if "html" in modules[path]:
            return 2, length
        return 0 if "browser" in modules[path] else 1 if name in LONGEST else 3, length

    ordered = sorted(modules, key=place)
    builder = [path for path in ordered if "html" in modules[path]][:1]
    return builder + [path for path in ordered if path not in builder]


def _fixtures(item) -> Iterable[str]:
    return getattr(item, "fixturenames", ())  # a cell of a chapter has none


def _is_left_out(item) -> bool:
    if item.get_closest_marker("long"):
        return True
    return "browser" in _fixtures(item) and not item.get_closest_marker("always")


def pytest_collection_modifyitems(config, items):
    """Leave out close looks in the browser and whole programs, unless asked for: with --all, or by file or name."""
    named = any(Path(argument.partition("::")[0]).is_file() for argument in config.args)
    left_out = [] if config.option.all or named else [item for item in items if _is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    kept = set(items).difference(left_out)
    items[:] = filter(kept.__contains__, items)
    modules: dict[Path, set[str]] = {}
    for item in items:
        modules.setdefault(item.path, set()).update(_fixtures(item))
    order = {path: place for place, path in enumerate(_order(modules))}
    items.sort(key=lambda item: order[item.path])
    config.stash[_left_out] = len(left_out)
    if hasattr(config, "workeroutput"):  # a process of pytest-xdist, which alone has collected
        config.workeroutput["left_out"] = len(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter, config):
    if count := config.stash.get(_left_out, 0):
        terminalreporter.write_line(
            f"{count} tests were left out, close looks in the browser and whole programs: `pytest --all` runs them too."
        )


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
    return {item.path for item in session.items if "browser" in _fixtures(item)}


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
def own_loops() -> None:
    """Our own loops for products are compiled and loaded; tests of them are skipped where that is impossible."""
    from minimind_edu.fast.row_products import why_not_loaded

    if reason := why_not_loaded():
        pytest.skip(f"no loops here: {reason}")


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
    from book_builder import served

    with served(html) as address:
        yield address
