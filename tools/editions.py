"""Build the whole book: in English, and in Chinese in its folder zh. `make book` calls it.

    python -m tools.editions                     into _build/html
    python -m tools.editions --path-output DIR   into DIR/_build/html

`jupyter-book build .` builds the English edition alone. The two share nothing, so they are built side by side.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.chapters import ROOT

_COMMAND = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", "."]
_OPTIONS = ["--all", "-W", "-n", "--keep-going", "--quiet"]  # warnings are errors


def _begun(language: str, target: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [*_COMMAND, *_OPTIONS, "--path-output", str(target)], cwd=ROOT, env=os.environ | {"BOOK_LANGUAGE": language}
    )


def build(target: Path) -> Path:
    """Build both below `target`, and return the folder of the pages.

    Raises:
        RuntimeError: naming the edition that could not be built; what is wrong stands on stderr before.
    """
    html, apart = target / "_build" / "html", target / "_build" / "zh"
    builds = {"English": _begun("en", target), "Chinese": _begun("zh", apart)}
    if failed := [name for name, process in builds.items() if process.wait()]:
        raise RuntimeError(f"could not build the {' and the '.join(failed)} edition")
    shutil.rmtree(html / "zh", ignore_errors=True)
    shutil.move(apart / "_build" / "html", html / "zh")
    shutil.rmtree(apart)
    return html


def main(arguments: list[str] | None = None) -> int:
    """Build both editions."""
    parser = argparse.ArgumentParser(prog="python -m tools.editions", description="Build the book in both languages.")
    parser.add_argument("--path-output", type=Path, default=ROOT, help="the folder that gets _build/html")
    options = parser.parse_args(arguments)
    try:
        build(options.path_output)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
