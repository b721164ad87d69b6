"""The first code cell of every chapter, in its two forms; both are silent when all is well.

`source()` installs the package where it is missing, from the project's repository at the tag of this version;
`tools.refresh` puts it into the chapters and the chapter check compares them with it. `self_contained_source()` carries
the package itself; `tools.self_contained` puts it into the notebooks that the book offers for download. What fails is
told in one sentence, shown without a traceback, and the cells below are not run.
"""

import base64
import hashlib
import lzma
import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]

CELL_ID = "install"

# Where a repository is missing git asks for a name and a password, and a kernel would wait forever for an answer.
_INSTALL = """\
# @title Install the book's package, if it is missing
import importlib.util
import os
import subprocess
import sys

SOURCE = "git+{url}@{tag}"
{error}
if importlib.util.find_spec("minimind_edu") is None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", SOURCE]
    asks_nothing = {{**os.environ, "GIT_TERMINAL_PROMPT": "0"}}
    done = subprocess.run(pip, env=asks_nothing, capture_output=True, text=True)
    importlib.invalidate_caches()
    if importlib.util.find_spec("minimind_edu") is None:
        said = done.stderr.splitlines() or ["restart the kernel"]
        errors = [line for line in said if "rror: " in line and "exited" not in line]
        errors += [line for line in said if "fatal: " in line]  # git's own, where there is one
        raise InstallError(
            f"Could not install {{SOURCE}} ({{(errors or said)[-1].strip()}}): run this cell again with "
            "git and a network, or download the notebook from this chapter's page in the book, "
            "which has the package inside."
        )

{needs}"""

_SELF_CONTAINED = """\
# @title Unpack the book's package, which stands in this cell: no network is needed
import base64
import hashlib
import importlib.util
import io
import lzma
import os
import sys
import tempfile
import zipfile

WHEEL = "{wheel}"
SHA256 = "{sha256}"
{error}
if hashlib.sha256(WHEEL.encode()).hexdigest() != SHA256:
    raise InstallError(
        "The package in this cell is damaged (its checksum differs): download the notebook again "
        "from this chapter's page in the book."
    )
if "package_folder" not in globals():
    package_folder = tempfile.TemporaryDirectory(prefix="minimind_edu-")  # goes with the kernel
    wheel = io.BytesIO(lzma.decompress(base64.b64decode(WHEEL)))
    zipfile.ZipFile(wheel).extractall(package_folder.name)
    sys.path.insert(0, package_folder.name)
    paths = [package_folder.name, os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for processes started here

{needs}"""

_ERROR = """

class InstallError(Exception):
    def _render_traceback_(self):  # one sentence and no traceback
        return [str(self)]

"""

_NEEDS = """\
needed = {needed}
if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
    missing = " ".join(missing)
    raise InstallError(f"Run `%pip install {{missing}}` in a new cell, then this cell again.")"""


def project() -> dict:
    """The [project] table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def repository_url() -> str:
    """The address of the project, from the one place that names it."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return config["repository"]["url"].rstrip("/")


def tag() -> str:
    """The tag under which this version stands in the repository: v and the version of pyproject.toml."""
    return f"v{project()['version']}"


def requirements() -> list[str]:
    """What the package cannot do without, by the names under which pip and Python both know them."""
    return [re.match(r"[\w-]+", line)[0] for line in project()["dependencies"]]


def _shared() -> dict[str, str]:
    quoted = ", ".join(f'"{name}"' for name in requirements())
    return {"error": _ERROR, "needs": _NEEDS.format(needed=f"[{quoted}]")}


def source() -> str:
    """The text of the cell that installs the package from the repository."""
    return _INSTALL.format(url=repository_url(), tag=tag(), **_shared())


def self_contained_source(wheel: bytes) -> str:
    """The text of the cell that carries the package: its wheel, xz-compressed, as base64 in one line."""
    text = base64.b64encode(lzma.compress(wheel, preset=9 | lzma.PRESET_EXTREME)).decode()
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return _SELF_CONTAINED.format(wheel=text, sha256=sha256, **_shared())


def cell(text: str | None = None) -> dict:
    """The first code cell as notebook JSON, not yet executed; `text` is `source()` if it is not given."""
    return {
        "cell_type": "code",
        "id": CELL_ID,
        "metadata": {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-cell"]},
        "execution_count": None,
        "outputs": [],
        "source": source() if text is None else text,
    }
