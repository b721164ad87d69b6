"""What every test run shares. `pytest` and `pytest --nbval` work as typed, here or below, without further options."""

import gc
import os
from pathlib import Path

import pytest
from nbformat import from_dict

from tools import durations, notebook_environment
from tools.printed import settled_outputs

NBVAL_DEFAULT_TIMEOUT = 2000

MOST_WORKERS = 8  # each of them imports torch
CPU_SECONDS = pytest.StashKey[float]()  # of this process and its children, at the last report

notebook_environment.apply()


def pytest_addoption(parser):
    parser.addoption("--pretend", choices=["cuda", "mps"], help="a GPU that is not there: tests/pretended_device.py")
    parser.addoption("--store-durations", action="store_true", help="what each file takes, for tools.durations")
    parser.addoption("--threads", type=int, help="with so many threads, where otherwise one computes")


def pytest_configure(config):
    """Give nbval what it needs: a chapter for each process, the kernel of this environment, patience that ends."""
    option = config.option
    if option.threads:
        os.environ.update(dict.fromkeys(notebook_environment.ONE_THREAD, str(option.threads)))
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # a thread that waits leaves its core to other work
    if not getattr(option, "nbval", False):
        if option.pretend:
            raise pytest.UsageError("--pretend is for chapters: pytest --nbval --pretend cuda chapters/")
        return
    os.environ.update(notebook_environment.COMPARED)
    if option.pretend:
        os.environ["PYTHONSTARTUP"] = str(config.rootpath / "tests" / "pretended_kernel.py")
        os.environ["PRETENDED_DEVICE"] = option.pretend
    if option.dist == "worksteal":  # unless there is one process only
        option.dist = "loadfile"  # the cells of a chapter need one kernel
        option.loadscopereorder = False  # those that take longest come first, see below
    if not option.nbval_kernel_name:
        option.nbval_current_env = True
    if option.nbval_cell_timeout == NBVAL_DEFAULT_TIMEOUT:
        option.nbval_cell_timeout = notebook_environment.CELL_TIMEOUT


def pytest_ignore_collect(collection_path, config):
    """Built pages contain copies of the chapters, which are not the chapters; Chinese ones are asked for by name."""
    if collection_path == config.rootpath / "_build" and not any("_build" in arg for arg in config.args):
        return True
    return None


def pytest_collectstart(collector):
    """Let nbval compare what a picture is, in words, and not its drawing.

    The last decimal of a coordinate depends on the machine's arithmetic and on the version of matplotlib.
    """
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("image/svg+xml",)


def pytest_itemcollected(item):
    """Let nbval compare numbers as numbers: what it complains about then is what really differs."""
    if hasattr(item, "compare_outputs"):  # a cell
        plain = item.compare_outputs
        item.compare_outputs = lambda computed, stored: plain(from_dict(settled_outputs(computed, stored)), stored)


def pytest_collection_modifyitems(items):
    """Begin with the chapters that take longest."""
    items.sort(key=lambda item: durations.longest_first(item.path))


def pytest_collection_finish(session):
    """What the imports left is no garbage: nobody need look through torch and transformers for it again and again."""
    gc.collect()
    gc.freeze()
    session.config.stash[CPU_SECONDS] = durations.cpu_seconds()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One process for each core, and no more than there are files; a single file is tested in this process."""
    cores = min(os.cpu_count() or 1, MOST_WORKERS)
    files = {arg.partition("::")[0] for arg in config.args}
    workers = min(cores, len(files)) if all(Path(file).is_file() for file in files) else cores
    return 0 if workers == 1 else workers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Take down the CPU time since the report before, if it is to be stored."""
    report = yield
    if item.config.option.store_durations:
        now = durations.cpu_seconds()
        # what a browser took is gone with its processes, for their parents do not wait: no test gives it back
        report.cpu_seconds = max(0.0, now - item.config.stash[CPU_SECONDS])
        item.config.stash[CPU_SECONDS] = now
    return report


def pytest_terminal_summary(terminalreporter):
    """Print what tests have to tell beside that they passed; a process that tests for another one cannot print."""
    # A process that tests for another one has seen only a part.
    if terminalreporter.config.option.store_durations and not hasattr(terminalreporter.config, "workerinput"):
        every = [one for reports in terminalreporter.stats.values() for one in reports if hasattr(one, "cpu_seconds")]
        durations.store((one.nodeid, one.cpu_seconds) for one in every)
    for report in terminalreporter.getreports("passed"):
        for name, text in report.user_properties:
            if name == "told":
                terminalreporter.write_line(text)
