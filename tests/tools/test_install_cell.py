"""The first cell of every chapter, run as a reader's kernel runs it: with IPython, where the package is missing."""

import contextlib
import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import venv
from pathlib import Path

import book_builder
import pytest
import yaml

from tools import install_cell, readme, self_contained

ROOT = Path(__file__).resolve().parents[2]

SHELL = """\
import sys
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell().run_cell(open(sys.argv[1], encoding="utf-8").read())
"""
PACKAGE_FOLDER = "import importlib.util as util; print(*util.find_spec('minimind_edu').submodule_search_locations)"
NOTE = "Note: you may need to restart the kernel to use updated packages.\n"  # IPython's, whatever pip did


class Reader:
    """A Python of its own, into which nothing is downloaded; it has what this environment has, but not the package."""

    def __init__(self, folder: Path):
        venv.create(folder / "venv", symlinks=True)
        self.folder = folder
        self.python = next(folder.glob("venv/[bS][ic]*/python*"))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
            "IPYTHONDIR": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        borrowed = folder / "borrowed"  # a folder that a .pth file names counts, but .pth files inside it do not
        borrowed.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if not path.name.startswith("minimind_edu"):
                (borrowed / path.name).symlink_to(path)
        (self.site / "borrowed.pth").write_text(f"{borrowed}\n", encoding="utf-8")

    def runs(self, *arguments: str, **changes: str) -> str:
        """Everything that this Python prints, given the arguments and changes of the environment."""
        command = [str(self.python), *arguments]
        environment = self.environment | changes
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True)
        return done.stdout + done.stderr

    def runs_cell(self, source: str, **changes: str) -> str:
        """Everything that the reader sees below the cell."""
        cell = self.folder / "cell.py"
        cell.write_text(source, encoding="utf-8")
        return re.sub(r"\x1b\[[\d;]*m", "", self.runs("-c", SHELL, str(cell), **changes))

    @functools.cached_property
    def site(self) -> Path:
        """The folder into which this Python installs."""
        return Path(self.runs("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())

    def packages(self) -> set[str]:
        """Everything that it has, with its version and origin."""
        return set(self.runs("-m", "pip", "freeze", "--all").splitlines())


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Reader:
    return Reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def reader(python):
    """Has no package before a test, nor after it."""
    yield python
    for left in python.site.glob("minimind_edu*"):
        shutil.rmtree(left)


@pytest.fixture(scope="module")
def book_address(tmp_path_factory):
    """Where a book is published that has nothing but the package's wheel."""
    folder = tmp_path_factory.mktemp("book")
    (folder / "_static").mkdir()
    wheel = self_contained.build_wheel(folder / "_static")
    assert wheel == folder / install_cell.wheel_path()
    with serving(folder) as address:
        yield address


@contextlib.contextmanager
def serving(folder: Path):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def cell_for(monkeypatch, address: str) -> str:
    monkeypatch.setattr(install_cell, "book_url", lambda: address)
    return install_cell.source()


def test_it_names_the_wheel_of_the_version_in_the_book_of_the_configuration():
    url = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
    [version] = re.findall(r'^version = "(.+?)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert f"%pip install --quiet {url}_static/minimind_edu-{version}-py3-none-any.whl\n" in install_cell.source()
    assert install_cell.source().endswith(f'\nready("{version}")')


def test_the_configuration_is_parsed_once_and_again_where_it_has_changed(monkeypatch, tmp_path):
    parsed, load = [], yaml.safe_load
    monkeypatch.setattr(yaml, "safe_load", lambda text: parsed.append(text) or load(text))
    monkeypatch.setattr(install_cell, "ROOT", tmp_path)
    for name in ("a", "a", "b"):
        (tmp_path / "_config.yml").write_text(f"html: {{baseurl: https://{name}/}}", encoding="utf-8")
        assert install_cell.book_url() == f"https://{name}/"
    assert len(parsed) == 2


def test_the_package_is_told_where_the_book_is(monkeypatch, tmp_path):
    module = tmp_path / "book.py"
    module.write_text('"""Where."""\n\nADDRESS = "https://old.example/"\nFOLDERS = {}\n', encoding="utf-8")
    monkeypatch.setattr(install_cell, "book_url", lambda: "https://new.example/book/")
    install_cell.tell_the_package(module)
    expected = '"""Where."""\n\nADDRESS = "https://new.example/book/"\nFOLDERS = {}\n'
    assert module.read_text(encoding="utf-8") == expected


def test_a_beginner_can_read_it():
    assert len(install_cell.source().splitlines()) <= 8


def test_it_asks_for_what_the_package_depends_on():
    assert {"torch", "anywidget", "safetensors"} <= set(install_cell.requirements())
    assert all(name.isidentifier() for name in install_cell.requirements())


def test_it_does_nothing_where_the_package_is_there(tmp_path):
    cell = tmp_path / "cell.py"
    cell.write_text(install_cell.source(), encoding="utf-8")
    environment = os.environ | {"IPYTHONDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SHELL, cell], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.long
def test_it_installs_the_package_and_nothing_else(reader, book_address, monkeypatch):
    before = reader.packages()
    source = cell_for(monkeypatch, book_address)
    assert reader.runs_cell(source) == NOTE
    [added] = reader.packages() ^ before
    assert added.startswith(f"minimind-edu @ {book_address}_static/")
    package = Path(reader.runs("-c", PACKAGE_FOLDER).strip())
    assert package == reader.site / "minimind_edu" and (package / "web/kit/kit.js").is_file()
    assert reader.runs_cell(source) == "", "the second time nothing is to be done"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:9/", "Connection refused|Failed to establish a new connection"),
        ("{book}another/", "ERROR: HTTP error 404 while getting {book}another/_static/"),
    ],
    ids=["no network", "no such wheel"],
)
@pytest.mark.long
def test_what_fails_is_told_by_pip(reader, book_address, monkeypatch, address, reason):
    told = reader.runs_cell(
        cell_for(monkeypatch, address.format(book=book_address)), PIP_RETRIES="0", PIP_DEFAULT_TIMEOUT="5"
    )
    assert re.search(reason.format(book=book_address), told), told
    assert "No module named 'minimind_edu'" in told.splitlines()[-1], "the cells below are not run"


@pytest.mark.long
def test_a_python_that_is_too_old_is_told_by_pip(reader, tmp_path, monkeypatch):
    """Nothing is installed that could not be imported."""
    project = tmp_path / "project"
    project.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    change(project / "pyproject.toml", 'requires-python = ">=3.', 'requires-python = ">=9.')
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "_static").mkdir()
    monkeypatch.setattr(self_contained, "ROOT", project)
    self_contained.build_wheel(tmp_path / "_static")
    with serving(tmp_path) as address:
        told = reader.runs_cell(cell_for(monkeypatch, address))
    assert "'minimind-edu' requires a different Python: 3." in told and "not in '>=9." in told
    assert not list(reader.site.glob("minimind_edu*"))


@pytest.mark.long
def test_another_version_that_is_installed_is_told_and_left_alone(reader, book_address, monkeypatch):
    reader.runs_cell(cell_for(monkeypatch, book_address))
    before = reader.packages()
    monkeypatch.setattr(install_cell, "version", lambda: "9.8")
    told = "This notebook needs minimind_edu 9.8, but 0.1.0 is installed: run `%pip uninstall --yes minimind-edu` in "
    told += "a new cell, restart the kernel, then run this cell again.\n"
    assert reader.runs_cell(install_cell.source()) == told.replace("0.1.0", install_cell.project()["version"])
    assert reader.packages() == before


def project_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_only_files_that_follow_name_the_repository_or_the_book():
    repository = "/".join(install_cell.repository_url().split("/")[-2:])
    book = install_cell.book_url().removeprefix("https://")
    naming = set()
    for path in project_files():
        text = path.read_bytes().decode("utf-8", errors="replace")
        if path.suffix == ".ipynb":  # the install cell follows; the chapter check compares it
            text = text.replace(install_cell.book_url() + install_cell.wheel_path(), "")
        if repository in text or book in text:
            naming.add(path.relative_to(ROOT).as_posix())
    # what tools.refresh writes into the READMEs and CITATION.cff, and what tell_the_package() tells the package
    written = {path.relative_to(ROOT).as_posix() for path in readme.files()}
    assert naming == {"_config.yml", "src/minimind_edu/web/book.py", *written}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == install_cell.version()


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@pytest.mark.long
def test_cells_buttons_and_the_wheel_follow_when_the_address_and_the_version_change(tmp_path):
    for path in project_files():
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    old, new = install_cell.repository_url(), "https://github.com/somebody/else"
    change(tmp_path / "_config.yml", old, new)
    change(tmp_path / "_config.yml", install_cell.book_url(), "https://somebody.example/book/")
    change(tmp_path / "pyproject.toml", 'version = "', 'version = "7.')
    for moved in ("moved_pages:", "moved_places:"):  # this book lacks the pages that they lead to
        change(tmp_path / "_config.yml", moved, f"no_{moved}")
    chapter = min(tmp_path.glob("chapters/*.ipynb"), key=lambda path: path.stat().st_size)
    (tmp_path / "_toc.yml").write_text(
        f"format: jb-book\nroot: book/notation\nparts:\n  - chapters:\n    - file: chapters/{chapter.stem}\n"
    )
    refresh = (
        "from pathlib import Path; from tools.refresh import canonical, dumps, read;"
        f"path = Path({str(chapter)!r});"
        "path.write_text(dumps(canonical(read(path))), encoding='utf-8')"
    )
    book_builder.run_in(tmp_path, sys.executable, "-c", refresh)
    book = book_builder.build(tmp_path, tmp_path, strict=False)
    html = (book / "chapters" / f"{chapter.stem}.html").read_text(encoding="utf-8")
    wheel = f"_static/minimind_edu-7.{install_cell.version()}-py3-none-any.whl"
    assert f"https://somebody.example/book/{wheel}" in chapter.read_text(encoding="utf-8")
    assert (book / wheel).is_file()
    assert f"/github/somebody/else/blob/main/chapters/{chapter.name}" in html
    assert f'href="{new}/blob/main/chapters/{chapter.name}"' in html
    assert old not in html and old.removeprefix("https://github.com") not in html


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
