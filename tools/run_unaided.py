"""Run notebooks as a reader would who has nothing but the files: `python -m tools.run_unaided A.ipynb B.ipynb`.

`tools.colab` copies this file and `tools.printed` next to them and starts it where there is neither a network nor a
checkout, so it imports nothing else of the project. Prints one line a notebook; returns 1 if one of them failed.
"""

import argparse
import os
import re
import socket
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

from tools.printed import settled

IGNORED = "nbval-ignore-output"  # the tag of a cell whose output differs from run to run
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
NO_CUDA = "No CUDA runtime is found"  # torch built for CUDA says so where there is none
NOBODY = ("192.0.2.1", 9)  # an address for documentation: packets to it vanish

# Appended to each notebook: the package is the one that it carries, also for a process that it starts.
LAST_CELL = """\
import pathlib, subprocess, sys, minimind_edu
carried = pathlib.Path(minimind_edu.__file__).parents[1]
assert carried.name.startswith("minimind_edu-"), carried
find = [sys.executable, "-c", "import minimind_edu; print(minimind_edu.__file__)"]
assert subprocess.check_output(find, text=True).strip() == minimind_edu.__file__
"""


class FileKernelManager(AsyncKernelManager):
    """Reaches its kernel through files: without a network, a machine may not even be able to talk to itself."""

    transport = "ipc"


def network_is_gone() -> bool:
    """Whether packets are refused at once; where there is a network, they leave and nobody answers."""
    try:
        socket.create_connection(NOBODY, timeout=2).close()
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


def execute(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Run every cell in a kernel of this Python's environment, in the notebook's folder."""
    with tempfile.TemporaryDirectory() as sockets:
        NotebookClient(
            notebook,
            kernel_manager_class=FileKernelManager,
            kernel_name="python3",
            config=Config(FileKernelManager={"ip": f"{sockets}/kernel"}),
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
            timeout=600,
            resources={"metadata": {"path": str(path.parent)}},
        ).execute()


def is_figure(output: nbformat.NotebookNode) -> bool:
    """Whether it is an interactive figure: alive, or as it is stored."""
    return not {WIDGET_VIEW, "text/html"}.isdisjoint(output.get("data", {}))


def words(cell: nbformat.NotebookNode) -> str:
    """What there is to read below a cell, but for warnings and figures: all that it prints, then its values.

    A progress bar goes back to the beginning of its line for what comes next, and is not there in the end.
    """
    printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
    shown = [output.data for output in cell.outputs if "data" in output and not is_figure(output)]
    values = "".join(data["text/plain"] + "\n" for data in shown if "text/plain" in data)
    return re.sub(r"[^\n]*\r", "", printed) + values


def run(path: Path) -> str:
    """Run the notebook and return what there is to tell.

    Raises:
        CellExecutionError: if a cell fails.
        AssertionError: if a reader would see a warning, or else than what is stored: other words below a cell (but
            where they differ from run to run), or a figure that is not alive.
    """
    started = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    stored = [words(cell) for cell in code]
    figures = sum(is_figure(output) for cell in code for output in cell.outputs)
    notebook.cells.append(nbformat.v4.new_code_cell(LAST_CELL))
    execute(notebook, path)
    for cell in code:
        warnings = [output.text for output in cell.outputs if output.get("name") == "stderr"]
        warnings = [text for text in warnings if NO_CUDA not in text]
        assert not warnings, f"cell {cell.id} warns: {warnings}"
    assert not code[0].outputs, f"the first cell is not silent: {code[0].outputs}"
    compared = [pair for pair in zip(stored, code, strict=True) if IGNORED not in pair[1].metadata.get("tags", [])]
    for before, cell in compared:
        printed = settled(words(cell), before)
        assert printed == before, f"cell {cell.id} says {printed!r}, not {before!r}"
    alive = sum(WIDGET_VIEW in output.get("data", {}) for cell in code for output in cell.outputs)
    assert alive == figures, f"{alive} figures of {figures} are alive"
    seconds = time.perf_counter() - started
    return f"{len(code)} cells ran in {seconds:.0f} s, {len(compared)} compared, live figures: {alive}"


def outcome(name: str) -> tuple[bool, str]:
    """Whether the notebook ran as it should, and what there is to tell."""
    try:
        return True, run(Path(name).resolve())
    except CellExecutionError as error:  # as text it holds the whole cell, maybe the one with the package
        return False, f"{error.ename}: {error.evalue}"
    except AssertionError as error:
        return False, str(error)
    except Exception as error:  # there is no such file, or no notebook in it
        return False, f"{type(error).__name__}: {error}"


def main(arguments: list[str] | None = None) -> int:
    """Run all notebooks, as many at a time as there are cores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NOTEBOOK")
    names: list[str] = parser.parse_args(arguments).names
    if not network_is_gone():
        print("There is a network here, so nothing would be proven.")
        return 1
    failed = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, (well, message) in zip(names, pool.map(outcome, names), strict=True):
            print(f"  {name}: {message}", flush=True)
            failed |= not well
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
