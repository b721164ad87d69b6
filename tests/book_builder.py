"""Build the book, or a copy of it, as `make book` does, and open its pages."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ["book/index", *re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))]
PAGES += ["search"]
CHAPTERS = [page for page in PAGES if page.startswith("chapters/")]

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 360, "height": 740}

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


def context_of(browser, viewport=WIDE, theme="light", **options):
    """A browser's context with this size and the reader's theme, in which nothing moves by itself."""
    return browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce", **options)


def settle(page) -> None:
    """Wait until all figures have started, or failed to."""
    page.wait_for_function("!document.querySelector('.minimind-figure:not([data-state])')", timeout=30_000)
