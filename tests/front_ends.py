"""Jupyter as a reader uses it: a server of our own, and a notebook that is opened and run in the real browser."""

import ast
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client import BlockingKernelClient
from playwright.sync_api import Locator, Page

from tools import notebook_environment

ROOT = Path(__file__).parents[1]
STARTS_WITHIN = 120  # seconds
RUNS_WITHIN = 600  # seconds, all cells of a chapter

_STATES = """__import__("json").dumps({
    number: value.state() for number, value in Out.items() if hasattr(value, "static_html")
})"""


class JupyterLab:
    """JupyterLab 4."""

    command = ("jupyterlab", "--ServerApp.token=")
    path = "lab/tree/{}?reset"  # without the tabs of the last time
    code_cell = ".jp-CodeCell"
    prompt = ".jp-InputPrompt"
    output = ".jp-OutputArea"
    error = ".jp-OutputArea [data-mime-type$='.stderr'], .jp-OutputArea [data-mime-type$='.error']"
    idle = "#jp-main-statusbar :text('| Idle')"

    @staticmethod
    def run_all(page: Page) -> None:
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


class ClassicNotebook:
    """Notebook 6, the generation of widgets that Colab has."""

    command = ("notebook", "--NotebookApp.token=")
    path = "notebooks/{}"
    code_cell = ".code_cell"
    prompt = ".input_prompt"
    output = ".output_wrapper"
    error = ".output_stderr, .output_error"
    idle = "#kernel_indicator_icon.kernel_idle_icon"

    @staticmethod
    def run_all(page: Page) -> None:
        page.click("#celllink")
        page.click("#run_all_cells")


FRONT_ENDS = {"lab": JupyterLab, "classic": ClassicNotebook}


class Server:
    """A Jupyter server over a folder of its own, with nothing of the user's: settings, trust, kernels."""

    def __init__(self, python: str, front_end: type, folder: Path):
        self.folder, self.runtime, self.port = (folder / "notebooks", folder / "runtime", _free_port())
        self.folder.mkdir()
        ours = notebook_environment.ENVIRONMENT  # what chapters are stored in; a reader has none of it
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        environment |= notebook_environment.ONE_THREAD | {
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.runtime),
            "PYTHONPATH": str(ROOT / "src"),
        }
        options = ["--no-browser", "--allow-root", f"--port={self.port}"]
        self.log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            [python, "-m", *front_end.command, *options],
            cwd=self.folder,
            env=environment,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def get(self, path: str):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=10) as answer:
            return json.load(answer)

    def wait(self) -> None:
        """Return when the server answers, or raise with what it said."""
        end = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < end and self._process.poll() is None:
            try:
                self.get("api")
                return
            except OSError:
                time.sleep(0.3)
        raise RuntimeError(f"the server does not answer: {Path(self.log.name).read_text()[-2000:]}")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self.log.close()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def serving(python: str, front_end: type, folder: Path) -> Iterator[Server]:
    server = Server(python, front_end, folder)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


class OpenNotebook:
    """A copy of a chapter, opened in a page."""

    def __init__(self, server: Server, front_end: type, page: Page, chapter: Path):
        self.server, self.front_end, self.page, self.name = server, front_end, page, chapter.name
        shutil.copy(chapter, server.folder)
        code = [c for c in json.loads(chapter.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]  # fmt: skip
        page.goto(f"http://127.0.0.1:{server.port}/{front_end.path.format(chapter.name)}")
        page.wait_for_function(
            "([cell, count]) => document.querySelectorAll(cell).length === count",
            arg=[front_end.code_cell, len(code)],
            timeout=STARTS_WITHIN * 1000,
        )
        page.wait_for_selector(front_end.idle, timeout=STARTS_WITHIN * 1000)
        self._client: BlockingKernelClient | None = None

    def output(self, index: int) -> Locator:
        """What the code cell of this number shows."""
        cell = self.page.locator(self.front_end.code_cell).nth(index)
        return cell.locator(self.front_end.output).first

    def number(self, index: int) -> str:
        """What stands between the brackets of `In [ ]`."""
        cell = self.page.locator(self.front_end.code_cell).nth(index)
        prompt = cell.locator(self.front_end.prompt).first.text_content()
        return prompt.partition("[")[2].partition("]")[0].strip()

    def run_all(self) -> None:
        """Run every cell, from the menu, and wait for the last one."""
        self.front_end.run_all(self.page)
        self.page.wait_for_timeout(500)
        self.page.wait_for_function(
            "([prompt]) => ![...document.querySelectorAll(prompt)].some((one) => one.textContent.includes('[*]'))",
            arg=[self.front_end.prompt],
            timeout=RUNS_WITHIN * 1000,
        )
        self.page.wait_for_timeout(500)

    def errors(self) -> list[str]:
        return self.page.locator(self.front_end.error).all_text_contents()

    def states(self) -> dict[str, dict]:
        """The traits of every figure that the kernel holds as a cell's result, by the cell's number."""
        return json.loads(ast.literal_eval(self.ask(_STATES)))

    def ask(self, expression: str) -> str:
        """The repr of an expression in the notebook's own kernel."""
        if self._client is None:
            [session] = [s for s in self.server.get("api/sessions") if s["path"] == self.name]
            file = self.server.runtime / f"kernel-{session['kernel']['id']}.json"
            self._client = BlockingKernelClient(connection_file=str(file))
            self._client.load_connection_file()
            self._client.start_channels()
            self._client.wait_for_ready(timeout=STARTS_WITHIN)
        reply = self._client.execute("", silent=True, user_expressions={"it": expression}, reply=True, timeout=60)
        answer = reply["content"]["user_expressions"]["it"]
        if answer["status"] != "ok":
            raise RuntimeError(f"{expression}: {answer['ename']}: {answer['evalue']}")
        return answer["data"]["text/plain"]

    def close(self) -> None:
        if self._client is not None:
            self._client.shutdown()
            self._client.stop_channels()
        self.page.context.close()
