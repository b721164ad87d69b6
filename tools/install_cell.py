"""The first code cell of every chapter: it installs the package where it is missing, and is silent where it is not.

The text stands here once. `tools.refresh` puts it into the chapters and the chapter check compares them with it.
"""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]

CELL_ID = "install"

_TEMPLATE = """\
# @title Install the book's package, if it is missing
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("minimind_edu") is None:
    source = "git+{url}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", source]
    if subprocess.run(pip, capture_output=True).returncode != 0:
        print(f"No minimind_edu from {{source}}: check the network, then run this cell again.")
    importlib.invalidate_caches()"""


def repository_url() -> str:
    """The address of the project, from the one place that names it."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return config["repository"]["url"].rstrip("/")


def source() -> str:
    """The text of the install cell."""
    return _TEMPLATE.format(url=repository_url())


def cell() -> dict:
    """The install cell as notebook JSON, not yet executed."""
    return {
        "cell_type": "code",
        "id": CELL_ID,
        "metadata": {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-cell"]},
        "execution_count": None,
        "outputs": [],
        "source": source(),
    }
