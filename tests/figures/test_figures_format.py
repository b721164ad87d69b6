"""Scripts and styles are formatted as the Python is: by a tool, at 120 columns."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = [
    *(f"src/minimind_edu/{roof}" for roof in ("figures/*", "web/*", "inside", "inside/*")),
    "book/theme",
    "book/theme/static",
    "tests",
]
FILES = sorted(file for folder in FOLDERS for kind in ("js", "mjs", "css") for file in ROOT.glob(f"{folder}/*.{kind}"))


def test_scripts_and_styles_are_formatted():
    oxfmt = shutil.which("oxfmt", path=sysconfig.get_path("scripts"))
    assert oxfmt, "the formatter is missing: run `make env`"
    done = subprocess.run([oxfmt, "--list-different", *FILES], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"run `make format`; it would change\n{done.stdout}{done.stderr}"


def test_no_line_is_longer_than_120_columns():
    """The formatter leaves comments and strings as they are."""
    lines = [(file, line) for file in FILES for line in file.read_text(encoding="utf-8").splitlines()]
    assert [f"{file.relative_to(ROOT)}: {line}" for file, line in lines if len(line) > 120] == []
