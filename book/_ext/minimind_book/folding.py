"""Code that a reader can leave folded: one line says what it defines and how long it is.

Notebooks stay as they are. A cell tagged `keep` stays open, in reading too; one tagged `hide-cell` folds with its
outputs. Without scripts the folds are what they are: details that open when they are pressed.
"""

import re
from html import escape

from docutils import nodes
from sphinx.application import Sphinx

from minimind_book.words import words
from minimind_edu.checks.exercise import NOT_ATTEMPTED
from minimind_edu.checks.language import SHARED, in_chinese

KEEP = "keep"
INSTALLS = "from minimind_edu.notebook import ready"  # stands in the cell that installs the package, and in no other
# What minimind_edu.checks prints before there is an answer
UNANSWERED = (NOT_ATTEMPTED, in_chinese(NOT_ATTEMPTED, SHARED))


class Fold(nodes.Element):
    """Code behind one line."""


def visit_fold(translator, node: Fold) -> None:
    """Open the details; their line is `what` and the number of lines."""
    translator.body.append(
        f'<details class="code"{" open" if node["open"] else ""}><summary>'
        f'<span class="what">{escape(node["what"])}</span>'
        f'<span class="lines">{escape(node["lines"])}</span></summary>\n'
    )


def depart_fold(translator, node: Fold) -> None:
    """Close the details."""
    translator.body.append("</details>\n")


class Unsought(nodes.Element):
    """What is on the page and in no search: its content is an attribute, and the index asks for children only."""


def visit_unsought(translator, node: Unsought) -> None:
    """Write the content."""
    node["content"].walkabout(translator)
    raise nodes.SkipNode


def label_of(source: str) -> str:
    """What a cell is called: its title, or the functions and classes that it defines."""
    title = re.search(r"^# @title (.*)", source, re.MULTILINE)
    names = re.findall(r"^(?:def|class) (\w+)", source, re.MULTILINE)
    return title[1] if title else ", ".join(names)


def fold_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Put the code of every cell behind its line."""
    w = words(app.config.language)
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") == "cell_code" and cell.children:
            fold_cell(cell, w)


def shown(source: nodes.container) -> str:
    """The code of a cell, after a function and everywhere else with one blank line: two are for modules.

    The cell of the notebook keeps what its formatter wants.
    """
    [block] = source.findall(nodes.literal_block)
    text = re.sub(r"\n{3,}", "\n\n", block.astext()).rstrip()
    block.rawsource, block.children = text, []
    block += nodes.Text(text)
    return text


def fold_cell(cell: nodes.container, w: dict[str, str]) -> None:
    """Fold the source of one cell, or all of it; take out what an unanswered exercise prints."""
    source, *outputs = cell.children
    if source.get("nb_element") != "cell_code_source":
        return
    tags = cell.get("cell_metadata", {}).get("tags", [])
    cell.attributes.pop("hide_mode", None)  # myst-nb's own folds
    text = shown(source)
    count = text.count("\n") + 1
    fold = Fold(
        open=KEEP in tags,
        what=label_of(text),
        lines=w["one_line"] if count == 1 else w["lines"].format(count),
    )
    if any(sign in output.astext() for output in outputs for sign in UNANSWERED):
        fold["open"] = True
        outputs = [nodes.paragraph("", w["not_run"], classes=["not-run"])]
    if INSTALLS in text:
        cell["classes"].append("install")  # a reader of the page needs it only in the code
        source = Unsought(content=source)
    whole = "hide-cell" in tags
    fold += [source, *outputs] if whole else source
    cell.children = []
    cell += fold
    if not whole:
        cell += outputs
    cell["classes"].append("whole" if whole else "printed" if outputs else "silent")
    if KEEP in tags:
        cell["classes"].append(KEEP)


def setup(app: Sphinx) -> None:
    """Register the nodes, and fold what is read."""
    app.add_node(Fold, html=(visit_fold, depart_fold))
    app.add_node(Unsought, html=(visit_unsought, None))
    app.connect("doctree-read", fold_cells)
