"""Build the book, or a copy of it, as `make book` does."""

import os
import subprocess
import sys
from pathlib import Path

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
