"""Sphinx extension: the book's pages need no kernel and no network.

It serves MathJax from the book itself, gives each page the scripts of exactly the figures that stand on it, offers each
chapter as a notebook that carries the package, marks the blockquotes that work as callouts, and removes what a book
without a kernel cannot use.
"""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from minimind_edu.figures import figure_names, host, module_source, own_stylesheet, shared_stylesheet

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "book" / "assets"
HOST = Path(__file__).resolve().parent / "figure_host.js"

# What MathJax needs to set TeX in the browser; the package carries ten times as much.
MATHJAX_PARTS = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions")

NOTEBOOKS = "notebooks"  # the folder of the output for them

# Some servers call a notebook JSON, and a browser would show it. From file:// it does so all the same.
SAVE_NOTEBOOK = """document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".btn-download-source-button").download = "";
});"""


def add_static_files(app: Sphinx) -> None:
    """Write MathJax, the figure modules and their host into the output, and add the stylesheet of the book.

    This happens here and not through html_static_path in the configuration, because Jupyter Book would put every script
    of such a folder on every page.
    """
    if app.builder.format != "html":
        return
    app.config.html_static_path.append(str(ASSETS))
    app.add_css_file("book.css", priority=900)
    static = Path(app.outdir) / "_static"
    copy_mathjax(static / "mathjax")
    write_figures(static / "figures")


def copy_mathjax(target: Path) -> None:
    """Copy the needed parts of the PyPI package sphinx-mathjax-offline."""
    package = find_spec("sphinx-mathjax-offline")
    if package is None:
        raise RuntimeError("the package sphinx-mathjax-offline is missing: run `pip install -r requirements.txt`")
    source = Path(package.submodule_search_locations[0]) / "static" / "mathjax"
    for part in MATHJAX_PARTS:
        (target / part).parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part, dirs_exist_ok=True)
        else:
            shutil.copyfile(source / part, target / part)


def write_figures(target: Path) -> None:
    """Write a script and a stylesheet for each figure, the stylesheet that they share, and the host."""
    target.mkdir(parents=True, exist_ok=True)
    for name in figure_names():
        (target / f"{name}.js").write_text(host.registration(name, module_source(name)), encoding="utf-8")
        (target / f"{name}.css").write_text(own_stylesheet(name), encoding="utf-8")
    (target / "figure.css").write_text(shared_stylesheet(), encoding="utf-8")
    (target / HOST.name).write_text(host.script(HOST.read_text(encoding="utf-8")), encoding="utf-8")


def figures_on(doctree: nodes.document | None) -> list[str]:
    """Names of the figures on a page, sorted."""
    if doctree is None:
        return []
    raw = (node.astext() for node in doctree.findall(nodes.raw) if "html" in node.get("format", ""))
    return sorted({name for text in raw for name in host.figures_in(text)})


def add_page_scripts(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Give the page the scripts of its figures, and take the ones of sphinx-thebe away.

    Thebe runs code on a remote server through a CDN; its inline script declares a constant twice, which is an error.
    """
    for name in (figures := figures_on(doctree)):
        app.add_js_file(f"figures/{name}.js", loading_method="defer", priority=300)
        app.add_css_file(f"figures/{name}.css", priority=810)
    if figures:
        # Before MathJax (500), which takes its time: figures are alive while formulas are being set.
        app.add_js_file(f"figures/{HOST.name}", loading_method="defer", priority=310)
        app.add_css_file("figures/figure.css", priority=800)
    for kind in ("script_files", "css_files"):
        context[kind][:] = [file for file in context[kind] if not _belongs_to_thebe(file)]


def _belongs_to_thebe(file) -> bool:
    body = getattr(file, "attributes", {}).get("body") or ""
    return "thebe" in str(getattr(file, "filename", "") or "") or "thebe_selector" in body


def write_notebooks(app: Sphinx, env) -> None:
    """Write every chapter of the table of contents into the output as a notebook that carries the package."""
    paths = (Path(env.doc2path(name)) for name in sorted(env.found_docs))
    chapters = [str(path) for path in paths if path.suffix == ".ipynb"]
    if app.builder.format != "html" or not chapters:
        return
    tool = [sys.executable, "-m", "tools.self_contained", str(Path(app.outdir) / NOTEBOOKS)]
    done = subprocess.run([*tool, *chapters], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the notebooks for download could not be written: {done.stderr}")


def offer_notebook(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Let the download button of a chapter give the notebook that carries the package, instead of the bare one."""
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("label") == "download-source-button" and button["text"] == ".ipynb":
                name = Path(app.env.doc2path(pagename)).name
                button["url"] = context["pathto"](f"{NOTEBOOKS}/{name}", 1)
                button["text"] = "Notebook, package inside"
                button["tooltip"] = "This chapter as one file that runs without a network"
                app.add_js_file(None, body=SAVE_NOTEBOOK)


def mark_callouts(app: Sphinx, doctree: nodes.document) -> None:
    """Give a blockquote that begins with bold words a class made from them.

    Chapters use plain Markdown only, so that they read well anywhere; in the book such a blockquote is a callout.
    """
    for quote in doctree.findall(nodes.block_quote):
        paragraph = next(iter(quote.findall(nodes.paragraph)), None)
        words = [child for child in paragraph or [] if child.astext()]  # the parser may put an empty text first
        if words and isinstance(words[0], nodes.strong):
            quote["classes"] += ["callout", f"callout-{nodes.make_id(words[0].astext())}"]


def remove_thebe_settings(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Take the settings away that sphinx-thebe writes at the end of every notebook page."""
    for node in list(doctree.findall(nodes.raw)):
        if "text/x-thebe-config" in node.astext() or node.astext().startswith("<script>kernelName"):
            node.parent.remove(node)


def setup(app: Sphinx) -> dict:
    """Connect the steps above to the build."""
    app.connect("builder-inited", add_static_files)
    app.connect("doctree-read", mark_callouts)
    app.connect("env-updated", write_notebooks)
    app.connect("doctree-resolved", remove_thebe_settings, priority=900)
    app.connect("html-page-context", add_page_scripts, priority=900)
    app.connect("html-page-context", offer_notebook, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
