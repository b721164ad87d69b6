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
from collections.abc import Callable
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]

CELL_ID = "install"

# Where a repository is missing git asks for a name and a password, and a kernel would wait forever for an answer.
_INSTALL = """\
# @title Install the book's package, if it is missing
import importlib.metadata
import importlib.util
import os
import subprocess
import sys

VERSION = "{version}"
SOURCE = "git+{url}@{tag}"
{checks}
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
if (found := installed_version()) != VERSION:
    raise InstallError(
        f"This notebook needs minimind_edu {{VERSION}}, but {{found}} is installed: run "
        f"`%pip install --no-deps {{SOURCE}}` in a new cell, then restart the kernel."
    )

{needs}"""

# The folder goes with the kernel and not with a variable, which a reader may overwrite or `%reset`: what has been
# imported from it still reads its files. The checksum in its name tells it from another notebook's.
_SELF_CONTAINED = """\
# @title Unpack the book's package, which stands in this cell: no network is needed
import atexit
import base64
import hashlib
import importlib.metadata
import importlib.util
import io
import lzma
import os
import shutil
import sys
import tempfile
import zipfile

VERSION = "{version}"
WHEEL = "{wheel}"
SHA256 = "{sha256}"
{checks}
if hashlib.sha256(WHEEL.encode()).hexdigest() != SHA256:
    raise InstallError(
        "The package in this cell is damaged (its checksum differs): download the notebook again "
        "from this chapter's page in the book."
    )
if "minimind_edu" in sys.modules and (found := installed_version()) != VERSION:
    raise InstallError(
        f"This notebook has minimind_edu {{VERSION}} inside, but {{found}} is imported already: "
        "restart the kernel, then run this cell first."
    )
prefix = f"minimind_edu-{{SHA256[:12]}}-"
if not any(os.path.basename(path).startswith(prefix) for path in sys.path):
    folder = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    wheel = io.BytesIO(lzma.decompress(base64.b85decode(WHEEL)))
    zipfile.ZipFile(wheel).extractall(folder)
    sys.path.insert(0, folder)
    paths = [folder, os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for processes started here

{needs}"""

_CHECKS = """

class InstallError(Exception):
    def _render_traceback_(self):  # one sentence and no traceback
        return [str(self)]


def installed_version():  # sources that nobody installed count as the right version
    distributions = importlib.metadata.distributions(name="minimind-edu")
    return next((distribution.version for distribution in distributions), VERSION)


if sys.version_info < {python}:
    version = ".".join(map(str, sys.version_info[:2]))
    raise InstallError(f"This book needs Python {oldest} or newer, and this kernel runs {{version}}.")"""

_NEEDS = """\
needed = {needed}
if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
    missing = " ".join(missing)
    raise InstallError(f"Run `%pip install {{missing}}` in a new cell, then this cell again.")"""


# What the cell of a Chinese notebook says, which always carries the package: strings of these templates, in Chinese.
_IN_CHINESE = {
    """(
        "The package in this cell is damaged (its checksum differs): download the notebook again "
        "from this chapter's page in the book."
    )""": '("这个单元格里的包损坏了（校验和不对）：请从书里本章的页面重新下载这个笔记本。")',
    """(
        f"This notebook has minimind_edu {{VERSION}} inside, but {{found}} is imported already: "
        "restart the kernel, then run this cell first."
    )""": '(f"这个笔记本自带 minimind_edu {{VERSION}}，可是已经导入了 {{found}}：请重启内核，先运行这个单元格。")',
    '"This book needs Python {oldest} or newer, and this kernel runs {{version}}."': (
        '"本书需要 Python {oldest} 或更新的版本，这个内核是 {{version}}。"'
    ),
    '"Run `%pip install {{missing}}` in a new cell, then this cell again."': (
        '"请在一个新单元格里运行 `%pip install {{missing}}`，然后再运行这个单元格。"'
    ),
}


def _chinese(template: str) -> str:
    for english, chinese in _IN_CHINESE.items():
        template = template.replace(english, chinese)
    return template


def project() -> dict:
    """The [project] table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def repository_url() -> str:
    """The address of the project, from the one place that names it."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return config["repository"]["url"].rstrip("/")


def book_url() -> str:
    """The address where the built book is published, with a slash at its end."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return config["html"]["baseurl"]


def version() -> str:
    """The version of the package."""
    return project()["version"]


def tag() -> str:
    """The tag under which this version stands in the repository."""
    return f"v{version()}"


def oldest_python() -> str:
    """The first version of Python that the package runs on, such as 3.11."""
    return project()["requires-python"].removeprefix(">=")


def requirements() -> list[str]:
    """What the package cannot do without, by the names under which pip and Python both know them."""
    return [re.match(r"[\w-]+", line)[0] for line in project()["dependencies"]]


def _shared(in_language: Callable[[str], str] = str) -> dict[str, str]:
    quoted = ", ".join(f'"{name}"' for name in requirements())
    oldest = oldest_python()
    python = f"({oldest.replace('.', ', ')})"
    return {
        "version": version(),
        "checks": in_language(_CHECKS).format(python=python, oldest=oldest),
        "needs": in_language(_NEEDS).format(needed=f"[{quoted}]"),
    }


def source() -> str:
    """The text of the cell that installs the package from the repository."""
    return _INSTALL.format(url=repository_url(), tag=tag(), **_shared())


def self_contained_source(wheel: bytes, chinese: bool = False) -> str:
    """The text of the cell that carries the package: its wheel, xz-compressed, as base85 in one line.

    In Chinese, what it tells readers is Chinese, but for its title, which the translation of the notebook gives.
    """
    in_language = _chinese if chinese else str
    text = base64.b85encode(lzma.compress(wheel, preset=9 | lzma.PRESET_EXTREME)).decode()
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return in_language(_SELF_CONTAINED).format(wheel=text, sha256=sha256, **_shared(in_language))


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
