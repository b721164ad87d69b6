"""Sphinx extension: the book's pages, with a theme of their own, need no kernel and no network.

It gives each page the scripts of the figures that stand on it, sets formulas when the book is built, folds code, offers
each chapter as a notebook that carries the package, and marks the blockquotes that work as callouts.
"""

import gc
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from minimind_edu import __main__ as program
from minimind_edu.inside import verse
from minimind_edu.web import host

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT))  # jupyter-book does not look there for the tools

from minimind_book import (  # noqa: E402
    card,
    chinese,
    facts,
    figures,
    folding,
    grades,
    mathematics,
    moved,
    notes,
    pages,
    reference,
    search_texts,
    serving,
    shapes,
    together,
)
from minimind_book.words import CALLOUTS  # noqa: E402
from tools import install_cell, self_contained, translated  # noqa: E402

ASSETS = ROOT / "book" / "assets"
NOTEBOOKS = "notebooks"  # the folder of the output for them
OWN = {  # pages in which a model runs -> the command of the package that writes each
    "inside/living.html": "open",
    verse.PAGE: "verse",
}


def write_static_files(app: Sphinx) -> None:
    """Write the figures, the card that is shown where a link is shared, and the pages of the book's own models.

    And the package's wheel, which the first cell of an English notebook installs; a Chinese one has it inside.
    """
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    figures.write_figures(static / "figures")
    shutil.copytree(host.FONTS, static / "fonts", dirs_exist_ok=True)
    shutil.copyfile(ASSETS / f"share{'.zh' * chinese.IS_CHINESE}.png", static / "share.png")
    if not chinese.IS_CHINESE:
        with tempfile.TemporaryDirectory() as folder:
            wheel = self_contained.build_wheel(Path(folder))
            shutil.copyfile(wheel, Path(app.outdir) / install_cell.wheel_path())
    for page, command in OWN.items():
        target = Path(app.outdir) / page
        target.parent.mkdir(exist_ok=True)
        program.main([command, "-o", str(target), "--language", "zh" if chinese.IS_CHINESE else "en", "--book", "../"])


def write_notebooks(app: Sphinx, env) -> None:
    """Write every chapter of the table of contents into the output as a notebook that carries the package.

    The Chinese edition writes those that are translated, in Chinese; for others its pages lead to the English ones.
    """
    paths = (Path(env.doc2path(name)) for name in sorted(env.found_docs))
    chapters = [str(path) for path in paths if path.suffix == ".ipynb"]
    if chinese.IS_CHINESE:
        chapters = [path for path in chapters if translated.is_translated(Path(path))]
    if app.builder.format != "html" or not chapters:
        return
    tool = [sys.executable, "-m", "tools.self_contained", *(["--chinese"] * chinese.IS_CHINESE)]
    tool += [str(Path(app.outdir) / NOTEBOOKS)]
    done = subprocess.run([*tool, *chapters], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the notebooks for download could not be written: {done.stderr}")


def mark_callouts(app: Sphinx, doctree: nodes.document) -> None:
    """Give a blockquote that begins with bold words a class made from them.

    Chapters use plain Markdown only, so that they read well anywhere; in the book such a blockquote is a callout.
    """
    for quote in doctree.findall(nodes.block_quote):
        paragraph = next(iter(quote.findall(nodes.paragraph)), None)
        words = [child for child in paragraph or [] if child.astext()]  # the parser may put an empty text first
        if words and isinstance(words[0], nodes.strong):
            first = words[0].astext()
            quote["classes"] += ["callout", f"callout-{CALLOUTS.get(first) or nodes.make_id(first)}"]


def setup(app: Sphinx) -> dict:
    """Connect the steps above to the build."""
    gc.disable()  # a sixth of the build would be looking for garbage: all it makes is kept until its process ends
    for part in (
        chinese,
        pages,
        mathematics,
        folding,
        figures,
        facts,
        card,
        serving,
        reference,
        notes,
        grades,
        shapes,
        moved,
        together,
        search_texts,
    ):
        part.setup(app)
    app.connect("builder-inited", write_static_files)
    app.connect("doctree-read", mark_callouts)
    app.connect("env-updated", write_notebooks)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
