"""The first code cell of every chapter, in its two forms; both are silent when all is well.

`source()` lets pip install the package where it is missing, from the wheel that is published with the book;
`tools.refresh` puts it into the chapters and the chapter check compares them with it. `self_contained_source()` carries
the package itself; `tools.self_contained` puts it into the notebooks that the book offers for download. Whether
versions fit is for `minimind_edu.notebook.ready` to say, as soon as it is there. What fails before is told in one
sentence, shown without a traceback, and the cells below are not run.
"""

import base64
import hashlib
import json
import lzma
import re
import tomllib
from functools import lru_cache
from pathlib import Path

import yaml

from minimind_edu import notebook

ROOT = Path(__file__).resolve().parents[1]

CELL_ID = "install"

_INSTALL = """\
# @title Install the book's package, if it is missing
import importlib.util

if importlib.util.find_spec("minimind_edu") is None:
    %pip install --quiet {address}
"""
_READY = """\
from minimind_edu.notebook import ready

ready("{version}")"""

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


class NotReady(Exception):
    def _render_traceback_(self):  # one sentence and no traceback
        return [str(self)]


here = ".".join(map(str, sys.version_info[:2]))
packages = importlib.metadata.distributions(name="minimind-edu")
found = next((package.version for package in packages), VERSION)
missing = " ".join(name for name in {needed} if importlib.util.find_spec(name) is None)
if sys.version_info < ({python}):
    raise NotReady(f"This book needs Python {oldest} or newer, and this kernel runs {{here}}.")
if hashlib.sha256(WHEEL.encode()).hexdigest() != SHA256:
    raise NotReady("The package in this cell is damaged (its checksum differs): download the notebook again from \
this chapter's page in the book.")
if "minimind_edu" in sys.modules and found != VERSION:
    raise NotReady(f"This notebook has minimind_edu {{VERSION}} inside, but {{found}} is imported already: \
restart the kernel, then run this cell first.")
if missing:
    raise NotReady(f"Run `%pip install {{missing}}` in a new cell, then this cell again.")
prefix = f"minimind_edu-{{SHA256[:12]}}-"
if not any(os.path.basename(path).startswith(prefix) for path in sys.path):
    folder = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    wheel = io.BytesIO(lzma.decompress(base64.b85decode(WHEEL)))
    zipfile.ZipFile(wheel).extractall(folder)
    sys.path.insert(0, folder)
    paths = [folder, os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for processes started here
"""

_SENTENCE = re.compile(r'"([A-Z][^"\n]+[.])"')  # that the cell tells


def project() -> dict:
    """The [project] table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _configuration() -> dict:
    return _parsed((ROOT / "_config.yml").read_text(encoding="utf-8"))


@lru_cache(1)
def _parsed(configuration: str) -> dict:
    """Each link of each notebook asks where the book is, and to parse the configuration takes 40 ms."""
    return yaml.safe_load(configuration)


def repository_url() -> str:
    """The address of the project, from the one place that names it."""
    return _configuration()["repository"]["url"].rstrip("/")


def book_url() -> str:
    """The address where the built book is published, with a slash at its end."""
    return _configuration()["html"]["baseurl"]


def tell_the_package(module: Path = ROOT / "src/minimind_edu/web/book.py") -> None:
    """Write into the package where the book is published: once it is installed, it has no other way to know."""
    text = module.read_text(encoding="utf-8")
    updated = re.sub(r'^ADDRESS = ".*"$', f'ADDRESS = "{book_url()}"', text, count=1, flags=re.MULTILINE)
    if updated != text:
        module.write_text(updated, encoding="utf-8", newline="\n")


def version() -> str:
    """The version of the package."""
    return project()["version"]


def wheel_path() -> str:
    """Where the built book has the package's wheel."""
    return f"_static/minimind_edu-{version()}-py3-none-any.whl"


def requirements() -> list[str]:
    """What the package cannot do without, by the names under which pip and Python both know them."""
    return [re.match(r"[\w-]+", line)[0] for line in project()["dependencies"]]


def ready() -> str:
    """The lines that end a first cell: whether the package and its libraries are the ones that are needed."""
    return _READY.format(version=version())


def source() -> str:
    """The text of the cell that installs the package from the published book."""
    return _INSTALL.format(address=book_url() + wheel_path()) + ready()


_TEXT = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "pb": 0}  # most of it is text


@lru_cache(2)  # what is shared, and one besides
def _compressed(part: bytes) -> bytes:
    return lzma.compress(part, filters=[_TEXT]) if part else b""


def self_contained_source(wheel: bytes, chinese: bool = False, shared: int = 0) -> str:
    """The text of the cell that carries the package: its wheel, xz-compressed, as base85 in one line.

    In Chinese, what it tells readers is Chinese, but for its title, which the translation of the notebook gives. It
    ends before the lines of `ready()`: a Chinese notebook sets its language first.

    Args:
        wheel: the package.
        chinese: what it tells is Chinese.
        shared: so many first bytes are a stream of their own, compressed once for all wheels that begin with them.
    """
    text = base64.b85encode(_compressed(wheel[:shared]) + _compressed(wheel[shared:])).decode()
    oldest = project()["requires-python"].removeprefix(">=")
    code = _SELF_CONTAINED.format(
        version=version(),
        wheel="{wheel}",
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        oldest=oldest,
        python=oldest.replace(".", ", "),
        needed=json.dumps(requirements()),
    )
    if chinese:
        code = _SENTENCE.sub(lambda found: f'"{notebook.in_chinese(found[1])}"', code)
    return code.replace("{wheel}", text)


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
