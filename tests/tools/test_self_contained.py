"""Chapters that carry the package: the same bytes wherever they are written, and no network to run them."""

import base64
import csv
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import book_builder
import nbformat
import pytest
from cases import long_after
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

from minimind_edu.notebook import LANGUAGE, language
from minimind_edu.words import learn, translated
from tools import install_cell, self_contained

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = min((ROOT / "chapters").glob("*.ipynb"))

SHELL = """\
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
for path in sys.argv[1:]:
    shell.run_cell(open(path, encoding="utf-8").read())
"""


@pytest.fixture(scope="module")
def wheel() -> bytes:
    return self_contained.wheel_bytes()


@pytest.fixture(scope="module")
def entries(wheel) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed_text(source: str) -> str:
    return re.search('^WHEEL = "(.+)"$', source, re.MULTILINE)[1]


def copy_of_the_project(folder: Path, mode: int) -> Path:
    """What the notebooks are made from, with other times and modes than here."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", "tools", "chapters"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored, copy_function=shutil.copyfile)
    for name in ("pyproject.toml", "README.md", "LICENSE", "_config.yml"):
        shutil.copyfile(ROOT / name, folder / name)
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
            os.utime(path, (mode * 1e6, mode * 1e6))
    return folder


@pytest.mark.long
def test_two_copies_of_the_project_give_the_same_bytes(tmp_path):
    written = []
    for name, mode in (("here", 0o644), ("somewhere/quite else", 0o600)):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        copy_of_the_project(folder, mode)
        command = [sys.executable, "-m", "tools.self_contained", "out"]
        book_builder.run_in(folder, *command, f"chapters/{CHAPTER.name}")
        written.append((folder / "out" / CHAPTER.name).read_bytes())
    assert written[0] == written[1]
    assert b"WHEEL" in written[0]


def test_the_wheel_is_the_same_each_time_and_stored_without_times_or_modes(wheel):
    assert self_contained.wheel_bytes() == wheel
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        for entry in archive.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert (entry.external_attr >> 16) & 0o777 == 0o644
            assert entry.create_system == 3
            assert entry.compress_type == zipfile.ZIP_STORED


def test_the_wheel_holds_the_package_as_it_is(entries):
    package = ROOT / "src"
    there = {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and not {"__pycache__"} & set(path.parts) and "egg-info" not in str(path)
    }
    assert {name: text for name, text in entries.items() if "dist-info" not in name} == there
    assert any(name.endswith("web/kit/kit.js") for name in there)


def test_the_wheel_says_what_it_is(entries, tmp_path):
    name, version, _, [tag] = parse_wheel_filename(self_contained.build_wheel(tmp_path).name)
    assert (name, str(version), str(tag)) == ("minimind-edu", install_cell.version(), "py3-none-any")
    folder = f"minimind_edu-{version}.dist-info"
    metadata = Metadata.from_email(entries[f"{folder}/METADATA"], validate=True)
    project = install_cell.project()
    assert metadata.summary == project["description"]
    assert str(metadata.requires_python) == project["requires-python"]
    assert metadata.license_expression == project["license"]
    assert set(metadata.provides_extra) == set(project["optional-dependencies"])
    always = {str(one) for one in metadata.requires_dist if one.marker is None}
    assert always == {str(Requirement(line)) for line in project["dependencies"]}
    assert message_from_bytes(entries[f"{folder}/WHEEL"])["Root-Is-Purelib"] == "true"
    rows = list(csv.reader(io.StringIO(entries[f"{folder}/RECORD"].decode())))
    assert {row[0] for row in rows} == set(entries)


@pytest.mark.long
def test_pip_accepts_the_wheel(tmp_path):
    path = self_contained.build_wheel(tmp_path)
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(tmp_path / "site")]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *options]
    done = subprocess.run([*pip, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "site/minimind_edu/web/kit/kit.js").is_file()


@pytest.fixture(scope="module")
def cell(wheel) -> str:
    """The first cell of a notebook that carries the package."""
    return install_cell.self_contained_source(self_contained.carried(wheel))


def test_chapters_carry_all_but_the_page_of_a_readers_own_model(wheel, entries):
    with zipfile.ZipFile(io.BytesIO(self_contained.carried(wheel))) as archive:
        found = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    left_out = entries.keys() - found.keys()
    assert {"minimind_edu/__main__.py", "minimind_edu/inside/page.js"} <= left_out
    named = re.compile(r"/inside/|/verdicts/|/web/fonts/|edu/__main__\.py$|gguf_reader|\.zh\.|/RECORD$")
    asked_for = tuple(self_contained.ASKED_FOR)
    assert [name for name in left_out if not named.search(name) and not name.startswith(asked_for)] == []
    assert found == {name: content for name, content in entries.items() if name not in left_out}


def test_only_who_asks_for_another_trained_model_carries_it(wheel, tmp_path):
    twin, draft, copies, verse, *_ = self_contained.ASKED_FOR
    with zipfile.ZipFile(io.BytesIO(self_contained.carried(wheel))) as archive:
        least = set(archive.namelist())
    for files in ([twin], [draft, copies]):
        with zipfile.ZipFile(io.BytesIO(self_contained.carried(wheel, asked_for=files))) as archive:
            assert set(archive.namelist()) - least == set(files)
    with zipfile.ZipFile(io.BytesIO(self_contained.carried(wheel, asked_for=[verse]))) as archive:
        added = {name.removeprefix(verse) for name in set(archive.namelist()) - least}
    assert {"corpus.py", "small.txt.xz", "weights.safetensors", "LICENSE.poems"} <= added
    chapter = tmp_path / "chapter.ipynb"
    tables = [(f"for name in {table}:\n    pass", {twin}) for table in ("moving.READERS", "neurons.PAIRS.items()")]
    named = [("GuessAhead()", {draft}), ("small = draft_model()", {draft}), ("copying.copying_model()", {copies})]
    named += [("from minimind_edu.trained.verse import verse_model", {verse}), ("verses = 2", set())]
    named += [('WhoWrites(shows="words")', {twin})]  # its other model is the twin
    for source, files in (*tables, *named, ('living_model("twin")', {twin}), ("living_model()", set())):
        cells = [nbformat.v4.new_markdown_cell('its "twin", GuessAhead, copying.'), nbformat.v4.new_code_cell(source)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), chapter)
        assert self_contained.asked_for(chapter) == files
    carried, common = self_contained.carried(wheel, asked_for=[twin]), self_contained.shared(wheel)
    packed = len(install_cell.self_contained_source(carried, shared=common))
    assert packed < 1_220_000  # what a download weighs that has both models


def test_what_chapters_carry_has_all_figures_and_says_what_it_lacks(wheel, tmp_path):
    with zipfile.ZipFile(io.BytesIO(self_contained.carried(wheel))) as archive:
        archive.extractall(tmp_path)
    told = "from minimind_edu import figures; print(figures.__file__, figures.Quiz.__name__); figures.Inside"
    done = subprocess.run(
        [sys.executable, "-c", told], env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(tmp_path / "minimind_edu/figures/__init__.py"), "Quiz"]
    assert "AttributeError: Inside needs the whole package: install it as README.md tells" in done.stderr


def test_the_notebook_is_the_chapter_but_for_its_first_cell_and_its_links(cell):
    text = self_contained.self_contained(CHAPTER, cell)
    notebook = json.loads(text)
    nbformat.validate(notebook)
    chapter = json.loads(CHAPTER.read_text(encoding="utf-8"))
    for one in chapter["cells"]:
        if one["cell_type"] == "markdown":
            one["source"] = self_contained.with_addresses("".join(one["source"])).splitlines(keepends=True)
    differing = [new["id"] for new, old in zip(notebook.pop("cells"), chapter.pop("cells"), strict=True) if new != old]
    assert differing == [install_cell.CELL_ID]
    assert notebook == chapter
    assert len(text) - CHAPTER.stat().st_size < 960_000  # the package: half of it trained weights and stored runs


@pytest.mark.parametrize(("edition", "chinese"), [("", False), ("zh/", True)])
def test_every_link_of_a_notebook_leads_into_the_published_book(edition, chinese):
    """To a page that is there, in the same language: a notebook that was downloaded has no neighbors."""
    book = f"{install_cell.book_url()}{edition}"
    for chapter in self_contained.CHAPTERS.glob("*.ipynb"):
        cells = json.loads(self_contained.self_contained(chapter, "import os", chinese))["cells"]
        text = "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")
        found = re.findall(r"\]\(([^\s)#]+)(?:#[^\s)]*)?\)", re.sub("`[^`]*`", "", text))
        links = [link for link in found if not re.match("figure:|https?:(?!//minimind-edu)", link)]
        assert links, chapter
        for link in links:
            assert link.startswith(book) and link.endswith(".html"), f"{chapter.name}: {link}"
            page = ROOT / link.removeprefix(book).removesuffix(".html")
            assert any(page.with_suffix(ending).is_file() for ending in (".md", ".ipynb")), f"{chapter.name}: {link}"


def test_an_address_in_a_notebook_keeps_its_place_on_the_page():
    text = "[it](../book/live.md#story=Mia&part=ffn-2), [that](03_attention.ipynb), [far](https://a.b/c.md), `q[0](x)`"
    assert self_contained.with_addresses(text, chinese=True).replace(install_cell.book_url(), "BOOK/") == (
        "[it](BOOK/zh/book/live.html#story=Mia&part=ffn-2), [that](BOOK/zh/chapters/03_attention.html), "
        "[far](https://a.b/c.md), `q[0](x)`"
    )


def test_a_chinese_notebook_tells_all_in_chinese():
    """Every sentence of the cell that carries the package is replaced, and nothing else in it."""
    cells = [install_cell.self_contained_source(b"a wheel", chinese) for chinese in (False, True)]
    told = [re.findall(r'NotReady\(f?"(.+)"\)', cell) for cell in cells]
    assert [len(sentences) for sentences in told] == [4, 4]
    for english, chinese in zip(*told, strict=True):
        assert re.search("[a-z] [a-z]{2,} ", english) and "。" in chinese
        assert not re.search("[a-z] [a-z]", re.sub("`.+?`", "", chinese)), "but for what is typed"
        assert sorted(re.findall("{.+?}", english)) == sorted(re.findall("{.+?}", chinese))
        cells[0] = cells[0].replace(english, chinese)
    assert cells[0] == cells[1]


def test_a_chinese_notebook_sets_its_language_and_learns_its_words(monkeypatch):
    monkeypatch.setattr(self_contained, "words_to_learn", lambda raw, blocks: {"a 'step'": "一步"})
    text = self_contained.self_contained(CHAPTER, "# @title The package\nimport os", chinese=True)
    [first] = [cell for cell in json.loads(text)["cells"] if cell["id"] == install_cell.CELL_ID]
    source = "".join(first["source"])
    try:
        exec(source, {})
        assert os.environ[LANGUAGE] == language() == "zh" and translated("a 'step'") == "一步"
    finally:
        del os.environ[LANGUAGE]
        learn({})


def test_only_chinese_notebooks_carry_chinese(wheel):
    def chinese_in(archive: bytes) -> set[str]:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            return {Path(name).name for name in files.namelist() if ".zh." in name}

    assert not chinese_in(self_contained.carried(wheel))
    assert {"words.zh.js", "exercise.zh.md", "whole_model.zh.md"} <= chinese_in(self_contained.carried(wheel, True))


def test_a_chapter_without_an_install_cell_is_refused(tmp_path):
    bare = tmp_path / "01_bare.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), bare)
    with pytest.raises(ValueError, match="01_bare.ipynb has 0 install cells.*make refresh"):
        self_contained.self_contained(bare, "")


def test_the_chapters_themselves_are_never_replaced(monkeypatch, tmp_path):
    (tmp_path / "link").symlink_to(self_contained.CHAPTERS)
    monkeypatch.setattr(self_contained, "write", lambda *_: pytest.fail("something was written"))
    for folder in (self_contained.CHAPTERS, tmp_path / "link"):
        with pytest.raises(ValueError, match="holds the chapters themselves, which would be replaced"):
            self_contained.write_all(folder, sorted(self_contained.CHAPTERS.glob("C*.ipynb")))


def test_the_package_is_compressed_once_for_all_chapters_that_carry_the_same(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(install_cell, "self_contained_source", lambda wheel, *_: calls.append(wheel) or "pass")
    monkeypatch.setattr(self_contained, "asked_for", lambda chapter: frozenset({"one file"} & {chapter.stem}))
    chapters = sorted(self_contained.CHAPTERS.glob("C*.ipynb"))
    assert len(self_contained.write_all(tmp_path, chapters)) == len(chapters) > 1
    assert len(calls) == 1
    monkeypatch.setattr(self_contained, "asked_for", lambda chapter: frozenset(self_contained.ASKED_FOR))
    self_contained.write_all(tmp_path, chapters)
    assert len(calls) == 2 and len(calls[0]) < len(calls[1])


@pytest.mark.parametrize("chinese", long_after(1, [False, True]))
def test_what_chapters_share_is_compressed_once_and_all_of_them_unpack(wheel, chinese, monkeypatch):
    install_cell._compressed.cache_clear()
    compressed, compress = [], lzma.compress
    monkeypatch.setattr(lzma, "compress", lambda part, **how: compressed.append(len(part)) or compress(part, **how))
    common = self_contained.shared(wheel, chinese)
    for files in ([], ["minimind_edu/measure/waiting.json"], ["minimind_edu/trained/sweeps/runs.json"]):
        carried = self_contained.carried(wheel, chinese, files)
        text = packed_text(install_cell.self_contained_source(carried, chinese, common))
        assert lzma.decompress(base64.b85decode(text)) == carried
    assert [size for size in compressed if size == common] == [common], "once, for all three"
    assert len(compressed) == 4 and sum(compressed[1:]) < common / 5


def test_a_build_that_fails_says_what_helps(monkeypatch, tmp_path):
    monkeypatch.setattr(self_contained, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="could not build the wheel .FileNotFoundError.*make env"):
        self_contained.build_wheel(tmp_path)


def seen_below(tmp_path, *cells: str, **changes: str) -> str:
    """Everything that a reader sees when IPython runs these cells in an empty folder."""
    paths = [tmp_path / f"{number}.py" for number in range(len(cells))]
    for path, cell in zip(paths, cells, strict=True):
        path.write_text(cell, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment |= {"IPYTHONDIR": str(tmp_path), **changes}
    command = [sys.executable, "-c", SHELL, *map(str, paths)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


LOOK = """\
import importlib.util, pathlib, subprocess, sys
found = pathlib.Path(importlib.util.find_spec("minimind_edu").origin)
own = found.parents[1]
child = "import importlib.util; print(importlib.util.find_spec('minimind_edu').origin)"
print(own.name.startswith("minimind_edu-"), (found.parent / "web/kit/kit.js").is_file())
print(subprocess.check_output([sys.executable, "-c", child], text=True).strip() == str(found))
print(sum(entry == str(own) for entry in sys.path))"""


def test_its_own_package_is_found_also_by_other_processes_and_when_run_twice(cell, tmp_path):
    seen = seen_below(tmp_path, cell, cell, LOOK, TMPDIR=str(tmp_path))
    assert seen == "True True\nTrue\n1\n"
    assert not list(tmp_path.glob("minimind_edu-*")), "the folder goes with the kernel"


@pytest.mark.long
def test_no_variable_of_the_readers_keeps_it_from_unpacking(cell, tmp_path):
    mine = "package_folder = folder = prefix = wheel = paths = needed = 'mine'"
    assert seen_below(tmp_path, mine, cell, LOOK) == "True True\nTrue\n1\n"


@pytest.mark.long
def test_after_a_reset_what_was_imported_still_finds_its_files(cell, tmp_path):
    """The folder stays, and stays the one: what was imported from it reads its files from there when they are used."""
    before, after = "import sys; sys.before = list(sys.path)", "import sys; print(sys.path == sys.before)"
    assert seen_below(tmp_path, cell, before, "%reset -f", cell, LOOK, after) == "True True\nTrue\n1\nTrue\n"


OLDER = """\
import pathlib, sys
(pathlib.Path("old") / "minimind_edu").mkdir(parents=True)
(pathlib.Path("old") / "minimind_edu" / "__init__.py").touch()
metadata = pathlib.Path("old") / "minimind_edu-0.0.9.dist-info"
metadata.mkdir()
(metadata / "METADATA").write_text("Metadata-Version: 2.1\\nName: minimind-edu\\nVersion: 0.0.9\\n")
sys.path.insert(0, "old")
"""


@pytest.mark.long
def test_it_wins_over_another_version_that_is_installed(cell, tmp_path):
    assert seen_below(tmp_path, OLDER, cell, LOOK) == "True True\nTrue\n1\n"


@pytest.mark.long
def test_another_version_that_is_imported_already_is_told(cell, tmp_path):
    assert seen_below(tmp_path, OLDER + "import minimind_edu", cell) == (
        f"This notebook has minimind_edu {install_cell.version()} inside, but 0.0.9 is imported already: restart the "
        "kernel, then run this cell first.\n"
    )


def test_it_names_the_command_for_what_else_is_missing(cell, tmp_path):
    lacking = cell.replace('["torch"', '["no_such_thing", "torch", "nor_this"')
    assert seen_below(tmp_path, lacking) == (
        "Run `%pip install no_such_thing nor_this` in a new cell, then this cell again.\n"
    )


@pytest.mark.long
def test_what_a_notebook_carries_ends_with_what_its_package_says_of_versions(cell, tmp_path, monkeypatch):
    """Here the package asks for another version, as it would of a library."""
    monkeypatch.setattr(install_cell, "version", lambda: "9.8")
    assert seen_below(tmp_path, f"{cell}\n{install_cell.ready()}").startswith("This notebook needs minimind_edu 9.8, ")


def test_a_python_that_is_too_old_is_told_before_anything_is_unpacked(cell, tmp_path):
    old = cell.replace("sys.version_info < (3, 11)", "sys.version_info < (9, 9)")
    seen = seen_below(tmp_path, old, "import sys; print(any('minimind_edu-' in path for path in sys.path))")
    here = ".".join(map(str, sys.version_info[:2]))
    assert seen == f"This book needs Python 3.11 or newer, and this kernel runs {here}.\nFalse\n"


@pytest.mark.parametrize("place, wrong", long_after(1, [(0.5, "-"), (0.0, "A"), (0.99, "é")]))
def test_a_damaged_package_is_told_in_one_sentence_and_not_unpacked(cell, tmp_path, place, wrong):
    packed = packed_text(cell)
    at = int(place * len(packed))
    at += packed[at] == wrong  # the next one, if nothing would change
    broken = cell.replace(packed, packed[:at] + wrong + packed[at + 1 :])
    seen = seen_below(tmp_path, broken, "import sys; print(any('minimind_edu-' in path for path in sys.path))")
    assert seen == (
        "The package in this cell is damaged (its checksum differs): download the notebook again from "
        "this chapter's page in the book.\nFalse\n"
    )
