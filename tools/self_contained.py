"""Write chapters that carry the package: the same notebooks, with its wheel inside their first cell.

    python -m tools.self_contained FOLDER                 every chapter
    python -m tools.self_contained FOLDER chapters/02...  the ones named
    python -m tools.self_contained --chinese FOLDER ...   in Chinese, as far as they are translated

Where a chapter leads to another one or to a page, they lead to the published book: alone in a reader's folder, or on a
branch that has nothing else, a notebook has no neighbors.

Nothing but the sources decides a byte of them: not the time, the folder, the file modes or the machine's zlib.
"""

import argparse
import io
import json
import os
import posixpath
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection
from functools import cache
from pathlib import Path

import nbformat

from minimind_edu.notebook import LANGUAGE
from tools import install_cell
from tools.chapters import CHAPTERS, DEEPER, ROOT, notebooks
from tools.refresh import canonical, dumps, write
from tools.translated import blocks_of, merged_notebook, words_to_learn

# What no chapter uses: the program that opens or checks a reader's own model, its page, and its verdicts.
LEFT_OUT = (
    "minimind_edu/__main__.py",
    "minimind_edu/inside/",
    "minimind_edu/verdicts/",
    "minimind_edu/hf/gguf_reader.py",
    "minimind_edu/web/fonts/",  # of pages: a notebook has those of its machine
)
# Hashes of all files, for what installs and uninstalls: nobody does that with what a notebook unpacks.
_RECORD = ".dist-info/RECORD"
# What only those carry whose code names it, or a table of both models, or a figure of it: a third of a megabyte, and
# with the poems some four.
ASKED_FOR = {
    "minimind_edu/trained/living/twin.safetensors": re.compile(
        r'"twin"|\b(?:WhoWrites|answering\.(?:WHOSE|LANGUAGE)|moving\.READERS|neurons\.PAIRS)\b'
    ),
    "minimind_edu/trained/living/draft.safetensors": re.compile(r"\b(?:draft_model|GuessAhead)\b"),
    "minimind_edu/trained/living/copying.safetensors": re.compile(r"\bcopying\."),
    "minimind_edu/trained/verse/": re.compile(r"\b(?:verse|PoemGrid)\b"),
    "minimind_edu/trained/living/divisors.json": re.compile(r"\bdivisors\b|\bFixedDivisors\b"),
    "minimind_edu/trained/ablations/tables.json": re.compile(r"\bTwoTables\b|\bablations(?:\.| import )tables\b"),
    "minimind_edu/trained/routing/walk.json": re.compile(r"\brouting\b|\bMixtureWalk\b"),
    "minimind_edu/trained/ablations/runs.json": re.compile(r"\b(?:ablations|AblationLab|TwoTables)\b"),
    "minimind_edu/trained/living/rounding.json": re.compile(r"\brounding\b"),
    "minimind_edu/trained/living/stretching.json": re.compile(r"\bstretching\b|\bLongerText\b"),
    "minimind_edu/trained/sharing/circles.json": re.compile(r"\bcircles\b|\bKeyCircles\b"),
    "minimind_edu/trained/sweeps/runs.json": re.compile(r"\bsweeps\b|\bFiveSwitches\b"),
    "minimind_edu/measure/waiting.json": re.compile(r"\bwaiting\b|\bPipeAndMill\b"),
    "minimind_edu/trained/deep_sums.json": re.compile(r"\bdeep_sums\b"),
    "minimind_edu/trained/tuning/runs.json": re.compile(r"\btuning\b|\bCountedTokens\b"),
}
_CHINESE = f"""
os.environ["{LANGUAGE}"] = "zh"

from minimind_edu.words import learn

learn({{}})  # what pictures and figures say
"""
_LINK = re.compile(r"\]\(([\w./-]+)\.(?:md|ipynb)(#[^)\s]*)?\)")  # to a file of this project
FIXED_DATE = "0"  # seconds; flit raises it to 1980, where the time of zip archives begins


def build_wheel(folder: Path) -> Path:
    """Build the package's wheel into `folder` and return its path.

    flit_core builds what `pip install` builds, but without pip, which would want a network for an isolated build.
    """
    build = [sys.executable, "-m", "flit_core.wheel", str(ROOT), "--outdir", str(folder)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": FIXED_DATE}
    done = subprocess.run(build, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(
            f"flit_core could not build the wheel ({done.stderr.strip().splitlines()[-1]}); "
            "if it is missing, run `make env`"
        )
    [wheel] = folder.glob("*.whl")
    return wheel


def stored(archive: bytes) -> bytes:
    """The same zip archive without compression.

    One xz over all files is a third smaller than one deflate for each, and no zlib's version shows in it.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            entry.compress_type = zipfile.ZIP_STORED
            entry.create_system = 3  # Unix, wherever it was built
            new.writestr(entry, content)
    return target.getvalue()


def wheel_bytes() -> bytes:
    """The package's wheel, without compression."""
    with tempfile.TemporaryDirectory() as folder:
        return stored(build_wheel(Path(folder)).read_bytes())


def carried(wheel: bytes, chinese: bool = False, asked_for: Collection[str] = ()) -> bytes:
    """What chapters carry of a wheel: all but LEFT_OUT and what of ASKED_FOR nobody asks for, and the Chinese of
    figures and checks only in Chinese. What is asked for comes last, so all begin with the same bytes: `shared`."""
    left_out = (*LEFT_OUT, *(name for name in ASKED_FOR if name not in asked_for))
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(wheel)) as whole, zipfile.ZipFile(target, "w") as new:
        for entry in sorted(whole.infolist(), key=lambda entry: entry.filename.startswith(tuple(ASKED_FOR))):
            is_left_out = entry.filename.startswith(left_out) or entry.filename.endswith(_RECORD)
            if not is_left_out and (chinese or ".zh." not in entry.filename):
                new.writestr(entry, whole.read(entry))
    return target.getvalue()


def shared(wheel: bytes, chinese: bool = False) -> int:
    """How many bytes of what is carried are the same, whatever is asked for: all files, but not the list of them."""
    with zipfile.ZipFile(io.BytesIO(carried(wheel, chinese))) as archive:
        return archive.start_dir


def asked_for(chapter: Path) -> frozenset[str]:
    """The files and folders of ASKED_FOR that the code of a chapter names."""
    cells = json.loads(chapter.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return frozenset(file for file, named in ASKED_FOR.items() if named.search(code))


def with_addresses(text: str, chinese: bool = False, folder: str = CHAPTERS.name) -> str:
    """The Markdown of a notebook in `folder`, its links to files as addresses of the book, in the same edition."""
    edition = install_cell.book_url() + "zh/" * chinese

    def led(link: re.Match[str]) -> str:
        page = posixpath.normpath(posixpath.join(folder, link[1]))
        return f"]({edition}{page}.html{link[2] or ''})"

    return _LINK.sub(led, text)


def self_contained(chapter: Path, first_cell: str, chinese: bool = False) -> str:
    """The text of the chapter's notebook with `first_cell` as its first code cell, and links that lead into the book.

    In Chinese, its texts are those of the translation, and its figures speak Chinese.
    """
    raw = json.loads(chapter.read_text(encoding="utf-8"))
    places = [i for i, cell in enumerate(raw["cells"]) if cell.get("id") == install_cell.CELL_ID]
    if len(places) != 1:
        raise ValueError(f"{chapter.name} has {len(places)} install cells, but needs one: run `make refresh`")
    blocks = blocks_of(chapter.resolve()) if chinese else {}
    if chinese:
        first_cell += _CHINESE.format(words_to_learn(raw, blocks))
    raw["cells"][places[0]] = install_cell.cell(f"{first_cell}\n{install_cell.ready()}")
    if chinese:
        raw = merged_notebook(raw, blocks)
    folder = chapter.resolve().parent.relative_to(ROOT).as_posix()
    for cell in raw["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = with_addresses("".join(cell["source"]), chinese, folder)
    notebook = nbformat.reads(json.dumps(raw), as_version=4)
    nbformat.validate(notebook)
    return dumps(canonical(notebook))


def write_all(folder: Path, chapters: list[Path], chinese: bool = False) -> list[Path]:
    """Write each chapter, with the package inside, into `folder`; return the paths.

    Raises a ValueError for the folder of the chapters.
    """
    if folder.resolve() in (CHAPTERS.resolve(), DEEPER.resolve()):
        raise ValueError(f"{folder} holds the chapters themselves, which would be replaced; name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    wheel = wheel_bytes()
    common = shared(wheel, chinese)

    @cache
    def first_cell(files: frozenset[str]) -> str:
        return install_cell.self_contained_source(carried(wheel, chinese, files), chinese, common)

    paths = [folder / chapter.name for chapter in chapters]
    for chapter, path in zip(chapters, paths, strict=True):
        write(path, self_contained(chapter, first_cell(asked_for(chapter)), chinese))
    return paths


def main(arguments: list[str] | None = None) -> int:
    """Write the self-contained notebooks and say where they are."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.self_contained", description="Write chapters that carry the package."
    )
    parser.add_argument("folder", type=Path, help="where to write them")
    parser.add_argument("chapters", nargs="*", type=Path, help="notebooks (default: all chapters)")
    parser.add_argument("--chinese", action="store_true", help="with the translations in zh/ in place of the English")
    options = parser.parse_args(arguments)
    chapters = options.chapters or notebooks()
    for path in write_all(options.folder, chapters, options.chinese):
        print(f"{path}: {path.stat().st_size / 1024:.0f} KB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
