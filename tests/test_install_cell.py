"""The first cell of every chapter, run as a reader's kernel runs it: with IPython, where the package is missing."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import book_builder
import pytest
import yaml

from tools import install_cell

ROOT = Path(__file__).resolve().parents[1]

SHELL = """\
import sys
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell().run_cell(open(sys.argv[1], encoding="utf-8").read())
"""
PACKAGE_FOLDER = "import importlib.util as util; print(*util.find_spec('minimind_edu').submodule_search_locations)"

needs_git = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


class Reader:
    """A Python of its own, into which nothing is downloaded."""

    def __init__(self, folder: Path):
        venv.create(folder / "venv", symlinks=True)
        self.folder = folder
        self.python = next(folder.glob("venv/[bS][ic]*/python*"))
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {
            "IPYTHONDIR": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this 0 as `--no-build-isolation`
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

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
        return self.runs("-c", SHELL, str(cell), **changes)

    @property
    def site(self) -> Path:
        """The folder into which this Python installs."""
        return Path(self.runs("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())

    def packages(self) -> set[str]:
        """Everything in that folder, with its version and origin."""
        return set(self.runs("-m", "pip", "freeze", "--all", "--path", str(self.site)).splitlines())


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    """Has all that the package needs, as this environment has it, but not the package."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    # A folder that is named in a .pth file counts, but the .pth files inside it do not: those of editable installs.
    flit_core = Path(importlib.util.find_spec("flit_core").origin).parents[1]
    borrowed = f"{sysconfig.get_path('purelib')}\n{flit_core}\n"
    (reader.site / "borrowed.pth").write_text(borrowed, encoding="utf-8")
    if (ROOT / "src").as_posix() in reader.runs("-c", PACKAGE_FOLDER):
        pytest.skip("this environment finds the package by other means than its editable install")
    return reader


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """A repository with the package at its tag, and nothing after it."""
    folder = tmp_path_factory.mktemp("repository")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "All"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run([*git, "tag", install_cell.tag()], check=True)
    return folder


def cell_for(monkeypatch, url: str, tag: str | None = None) -> str:
    monkeypatch.setattr(install_cell, "repository_url", lambda: url)
    if tag:
        monkeypatch.setattr(install_cell, "tag", lambda: tag)
    return install_cell.source()


def test_it_names_the_repository_of_the_configuration_at_the_tag_of_the_version():
    url = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
    [version] = re.findall(r'^version = "(.+?)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert f'SOURCE = "git+{url}@v{version}"\n' in install_cell.source()


def test_it_is_short_enough_to_be_read():
    assert len(install_cell.source().splitlines()) <= 48


def test_it_asks_for_what_the_package_depends_on():
    assert {"torch", "anywidget", "safetensors"} <= set(install_cell.requirements())
    assert all(name.isidentifier() for name in install_cell.requirements())


def test_a_chinese_notebook_tells_all_in_chinese():
    """Every sentence is replaced: no string of English words is left in the cell that carries the package."""
    trees = [ast.parse(install_cell.self_contained_source(b"a wheel", chinese)) for chinese in (False, True)]
    strings = [
        [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        for tree in trees
    ]
    english, chinese = (
        [one for one in found if re.search("[a-z] [a-z]{2,} ", one) and "请" not in one] for found in strings
    )
    assert len(english) >= 5 and chinese == []
    assert sum("请" in one or "本书需要" in one for one in strings[1]) == 4
    assert [type(node) for node in trees[0].body] == [type(node) for node in trees[1].body]


def test_it_is_silent_when_the_package_is_there(capsys):
    exec(install_cell.source(), {})
    assert capsys.readouterr() == ("", "")


@needs_git
@pytest.mark.long
def test_it_installs_the_package_and_nothing_else(reader, repository, monkeypatch):
    before = reader.packages()
    source = cell_for(monkeypatch, repository.as_uri())
    assert reader.runs_cell(source) == ""
    [added] = reader.packages() ^ before
    assert added.startswith("minimind-edu @ git+file:")
    package = Path(reader.runs("-c", PACKAGE_FOLDER).strip())
    assert package == reader.site / "minimind_edu" and (package / "figures/kit/kit.js").is_file()
    assert reader.runs_cell(source, PATH="") == "", "the second time nothing is to be done"
    for left in reader.site.glob("minimind_edu*"):
        shutil.rmtree(left)


@needs_git
@pytest.mark.parametrize(
    "url, tag, changes, reason",
    [
        ("{repository}", "v99", {}, "pathspec 'v99' did not match"),
        ("{repository}/missing", "v1", {}, "Could not read from remote repository"),
        ("https://127.0.0.1:9/nobody/nothing", "v1", {}, "unable to access"),
        ("{repository}", "v1", {"PATH": ""}, "Cannot find command 'git'"),
        ("{repository}", "v1", {"PYTHONPATH": "{broken}"}, "No module named pip"),
    ],
    ids=["wrong tag", "wrong address", "no network", "no git", "no pip"],
)
@pytest.mark.long
def test_it_says_in_one_sentence_what_failed_and_what_helps(
    reader, repository, monkeypatch, tmp_path, url, tag, changes, reason
):
    (tmp_path / "pip").mkdir()  # in front of the real one, with nothing that could be run
    (tmp_path / "pip" / "__init__.py").touch()
    url = url.format(repository=repository.as_uri())
    changes = {name: value.format(broken=tmp_path) for name, value in changes.items()}
    said = reader.runs_cell(cell_for(monkeypatch, url, tag), LC_ALL="C", **changes)
    assert said.count("\n") == 1, said
    assert f"Could not install git+{url}@{tag} (" in said
    assert reason in said
    assert "run this cell again with git and a network, or download the notebook" in said


def test_it_names_the_command_for_what_else_is_missing(reader):
    source = install_cell.source().replace('"torch"', '"no_such_thing", "torch", "nor_this"')
    source = source.replace('find_spec("minimind_edu")', 'find_spec("torch")')
    assert reader.runs_cell(source) == (
        "Run `%pip install no_such_thing nor_this` in a new cell, then this cell again.\n"
    )


def test_a_python_that_is_too_old_is_told_in_one_sentence(reader):
    [oldest] = re.findall(
        r'^requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE
    )
    asked = f"sys.version_info < (3, {oldest})"
    assert asked in install_cell.source()
    here = ".".join(map(str, sys.version_info[:2]))
    assert reader.runs_cell(install_cell.source().replace(asked, "sys.version_info < (9, 9)")) == (
        f"This book needs Python 3.{oldest} or newer, and this kernel runs {here}.\n"
    )


@pytest.mark.long
def test_another_version_that_is_installed_is_told_and_left_alone(reader):
    (reader.site / "minimind_edu").mkdir()
    (reader.site / "minimind_edu" / "__init__.py").touch()
    metadata = reader.site / "minimind_edu-9.8.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: minimind-edu\nVersion: 9.8\n", encoding="utf-8")
    before = reader.packages()
    assert reader.runs_cell(install_cell.source()) == (
        f"This notebook needs minimind_edu {install_cell.version()}, but 9.8 is installed: run `%pip install --no-deps "
        f"git+{install_cell.repository_url()}@{install_cell.tag()}` in a new cell, then restart the kernel.\n"
    )
    assert reader.packages() == before
    for left in reader.site.glob("minimind_edu*"):
        shutil.rmtree(left)


def project_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@needs_git
def test_no_other_file_names_the_repository():
    place = "/".join(install_cell.repository_url().split("/")[-2:])
    naming = set()
    for path in project_files():
        text = path.read_bytes().decode("utf-8", errors="replace")
        if path.suffix == ".ipynb":  # the install cell follows; the chapter check compares it
            text = text.replace(f'SOURCE = \\"git+{install_cell.repository_url()}@', "")
        if place in text:
            naming.add(path.relative_to(ROOT).as_posix())
    assert naming == {"_config.yml", "CITATION.cff"}  # which is no place for a variable
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == install_cell.repository_url()
    assert citation["version"] == install_cell.version()


@needs_git
@pytest.mark.long
def test_cells_and_buttons_follow_when_the_address_and_the_version_change(tmp_path):
    for path in project_files():
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    old, new = install_cell.repository_url(), "https://github.com/somebody/else"
    change(tmp_path / "_config.yml", old, new)
    change(tmp_path / "pyproject.toml", 'version = "', 'version = "7.')
    change(tmp_path / "_config.yml", "moved_pages:", "nothing_moved:")  # this book lacks the pages that they lead to
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
    page = book_builder.build(tmp_path, tmp_path, strict=False) / "chapters" / f"{chapter.stem}.html"
    html = page.read_text(encoding="utf-8")
    assert f"{new}@v7.0" in chapter.read_text(encoding="utf-8")
    assert f"/github/somebody/else/blob/main/chapters/{chapter.name}" in html
    assert f'href="{new}/blob/main/chapters/{chapter.name}"' in html
    assert old not in html and old.removeprefix("https://github.com") not in html


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
