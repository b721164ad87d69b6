"""Execute chapters and store their outputs in one canonical form.

    python -m tools.refresh            every chapter
    python -m tools.refresh 02 03      the chapters whose names begin so

A chapter is written only when all of its cells ran; running twice changes nothing, on another machine either: a cell
keeps what it has if it prints the same but for last digits (see `tools.printed`), and if its output differs from run to
run (tag `nbval-ignore-output`), until its source changes or `--measure` asks for what this machine says.
"""

import argparse
import copy
import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager
from tqdm import tqdm
from traitlets import default

from tools import install_cell, notebook_environment
from tools.chapters import METADATA, notebooks
from tools.printed import settled_outputs

IGNORED = "nbval-ignore-output"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
CELL_METADATA = ("cellView", "jupyter", "measured", "reason", "tags")  # everything else is an editor's litter

_MACHINE = re.compile(
    r"\b0x[0-9a-f]{8,}\b|(?<![\w.])/(?:home|root|tmp|usr|opt|Users|private)/\w+|\b[A-Z]:\\\w+|site-packages"
)


class RefreshError(Exception):
    """A chapter could not be refreshed; the message names the chapter, the cell and what is wrong there."""


def printed(outputs: list[NotebookNode]) -> list[str]:
    """All text in the outputs of a cell; pictures are none."""
    texts = []
    for output in outputs:
        texts.append(output.get("text", ""))
        texts += [value for kind, value in output.get("data", {}).items() if kind.startswith("text/")]
    return texts


def machine_words(cell: NotebookNode) -> list[str]:
    """Paths and memory addresses in a code cell's textual outputs: they differ on every machine."""
    return [found[0] for text in printed(cell.outputs) for found in _MACHINE.finditer(text)]


def merge_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring outputs of one stream: where a stream is cut depends on the kernel's timing."""
    merged: list[NotebookNode] = []
    for output in outputs:
        last = merged[-1] if merged else None
        if output.output_type == "stream" and last and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def fold_title(cell: NotebookNode) -> str | None:
    """The title of a folded cell, from its first line `# @title The title`."""
    found = re.match(r"#\s*(?:@title\s+)?(.+)", cell.source)
    return found[1].strip() if found and "hide-cell" in cell.metadata.get("tags", []) else None


def canonical_metadata(cell: NotebookNode) -> NotebookNode:
    """Keep the metadata that means something, and let a folded cell say what it folds."""
    metadata = NotebookNode({key: value for key, value in cell.metadata.items() if key in CELL_METADATA})
    if title := fold_title(cell):
        metadata["mystnb"] = {"code_prompt_show": title, "code_prompt_hide": title}
    return metadata


def canonical_outputs(cell: NotebookNode) -> list[NotebookNode]:
    """Outputs without widget views, with whole streams, numbered like their cell."""
    outputs = []
    for output in merge_streams(cell.outputs):
        output.pop("transient", None)
        if "data" in output:
            output.data.pop(WIDGET_VIEW, None)
        if output.output_type == "execute_result":
            output.execution_count = cell.execution_count
        outputs.append(output)
    return outputs


def give_ids(raw: dict) -> None:
    """Give every cell whose id is missing or taken one made from its text: nbformat would invent a random one."""
    taken: set[str] = set()
    for cell in raw["cells"]:
        if not cell.get("id") or cell["id"] in taken:
            slug = re.sub(r"[^a-z0-9]+", "-", "".join(cell["source"]).lower())[:40].strip("-") or "cell"
            numbered = (f"{slug}-{number}" for number in range(2, len(raw["cells"]) + 2))
            everywhere = taken | {other.get("id") for other in raw["cells"]}
            cell["id"] = next(name for name in (slug, *numbered) if name not in everywhere)
        taken.add(cell["id"])


def put_install_cell(raw: dict) -> None:
    """Make the install cell the first code cell, whatever stood there under its id."""
    raw["cells"] = [cell for cell in raw["cells"] if cell.get("id") != install_cell.CELL_ID]
    first = next((i for i, cell in enumerate(raw["cells"]) if cell["cell_type"] == "code"), len(raw["cells"]))
    raw["cells"].insert(first, install_cell.cell())


def read(path: Path) -> NotebookNode:
    """Read a chapter, complete it with ids and the install cell, and return it in the current format."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    if raw.get("nbformat") != 4:
        raise RefreshError(f"{path.name} is not a notebook of format 4; open it in Jupyter and save it once.")
    give_ids(raw)
    put_install_cell(raw)
    raw["nbformat_minor"] = 5
    return nbformat.reads(json.dumps(raw), as_version=4)


def canonical(notebook: NotebookNode) -> NotebookNode:
    """The one form in which a chapter with these cells and outputs is stored."""
    kept = {key: value for key, value in notebook.metadata.items() if key == METADATA}
    notebook.metadata = NotebookNode(NOTEBOOK_METADATA | kept)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, start=1):
        cell.execution_count = count
        cell.outputs = canonical_outputs(cell)
    for cell in notebook.cells:
        cell.metadata = canonical_metadata(cell)
        cell.source = cell.source.rstrip()
    return notebook


def dumps(notebook: NotebookNode) -> str:
    """The text of a canonical chapter: sorted keys, one space of indent, one final newline."""
    return nbformat.writes(notebook, version=4, indent=1, ensure_ascii=False).rstrip("\n") + "\n"


def _fingerprint(source: str) -> str:
    return hashlib.sha256(source.rstrip().encode()).hexdigest()[:12]


def keep_measurements(notebook: NotebookNode, earlier: dict[str, NotebookNode]) -> None:
    """Give ignored cells their earlier outputs back, as long as their source is the one that was measured."""
    for cell in notebook.cells:
        if cell.cell_type != "code" or IGNORED not in cell.metadata.get("tags", []):
            cell.metadata.pop("measured", None)
            continue
        fingerprint = _fingerprint(cell.source)
        before = earlier.get(cell.id)
        if before is not None and before.metadata.get("measured") == fingerprint:
            cell.outputs = before.outputs
        cell.metadata["measured"] = fingerprint


def keep_last_digits(notebook: NotebookNode, earlier: dict[str, NotebookNode]) -> None:
    """Give cells their earlier outputs back where they differ by what machines differ in, and by nothing else."""
    for cell in notebook.cells:
        before = earlier.get(cell.id)
        if cell.cell_type == "code" and before is not None and before.source == cell.source:
            kept = nbformat.from_dict(settled_outputs(cell.outputs, before.outputs))
            if printed(kept) == printed(before.outputs):
                cell.outputs = kept


class _ThisEnvironmentsKernel(AsyncKernelManager):
    """Starts the Python that runs this tool, as nbval does, whatever kernels the machine has registered."""

    @default("kernel_spec_manager")
    def _kernel_spec_manager_default(self) -> NbvalKernelspecManager:
        return NbvalKernelspecManager(parent=self)


def execute(notebook: NotebookNode, path: Path) -> None:
    """Run every code cell in a fresh kernel, next to the chapter."""
    client = NotebookClient(
        notebook,
        kernel_manager_class=_ThisEnvironmentsKernel,
        kernel_name=CURRENT_ENV_KERNEL_NAME,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        timeout=notebook_environment.CELL_TIMEOUT,
        resources={"metadata": {"path": str(path.parent)}},
        store_widget_state=False,
        record_timing=False,
    )
    with tqdm(total=len(notebook.cells), desc=path.stem, unit=" cells", leave=True) as progress:
        running = {}

        def start(cell, cell_index):
            running["cell"] = cell
            progress.update(cell_index - progress.n)

        client.on_cell_start = start
        try:
            client.execute()
        except CellExecutionError as error:
            raise RefreshError(f"{path.name}, cell {running['cell'].id}: {error.ename}: {error.evalue}") from error
        except CellTimeoutError as error:
            raise RefreshError(f"{path.name}, cell {running['cell'].id} ran longer than {client.timeout} s.") from error
        except DeadKernelError as error:
            raise RefreshError(f"{path.name}, cell {running['cell'].id}: the kernel died.") from error
        progress.update(len(notebook.cells) - progress.n)


def refuse_machine_words(notebook: NotebookNode, path: Path) -> None:
    """Raise if an output holds something that no other machine would print."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and (words := machine_words(cell)):
            raise RefreshError(f"{path.name}, cell {cell.id} prints {words[0]!r}, which differs on every machine.")


def write(path: Path, text: str) -> bool:
    """Replace the file in one step, if its text changes; return whether it did."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n", dir=path.parent, delete=False) as temporary:
        temporary.write(text)
    os.chmod(temporary.name, path.stat().st_mode if path.exists() else 0o644)
    os.replace(temporary.name, path)
    return True


def refresh(path: Path, measure: bool = False) -> bool:
    """Execute the chapter at `path` and store it; return whether the file changed.

    Raises:
        RefreshError: if a cell fails or prints what no other machine would; the file is then left as it was.
    """
    notebook = read(path)
    earlier = {} if measure else {cell.id: copy.deepcopy(cell) for cell in notebook.cells}
    execute(notebook, path)
    keep_measurements(notebook, earlier)
    refuse_machine_words(notebook, path)
    notebook = canonical(notebook)
    keep_last_digits(notebook, earlier)
    return write(path, dumps(notebook))


def chosen(names: list[str]) -> list[Path]:
    """The chapters whose file names begin with one of `names` (all of them if there are none)."""
    chapters = notebooks()
    if not names:
        return chapters
    starts = [Path(name).name for name in names]
    for start in starts:
        if not any(chapter.name.startswith(start) for chapter in chapters):
            raise RefreshError(f"no chapter begins with {start!r}; there are {', '.join(c.stem for c in chapters)}.")
    return [chapter for chapter in chapters if chapter.name.startswith(tuple(starts))]


def main(arguments: list[str] | None = None) -> int:
    """Refresh the named chapters and say what became of each; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.refresh", description="Execute chapters and store their outputs."
    )
    parser.add_argument("chapters", nargs="*", help="beginnings of file names, such as 02 (default: all)")
    parser.add_argument(
        "--measure", action="store_true", help="replace stored timings, other ignored outputs and last digits too"
    )
    options = parser.parse_args(arguments)
    notebook_environment.apply()
    install_cell.tell_the_package()
    failed = False
    try:
        for path in chosen(options.chapters):
            try:
                print(f"{path.name}: {'written' if refresh(path, options.measure) else 'unchanged'}")
            except RefreshError as error:
                failed = True
                print(f"{error} The file is left as it was.", file=sys.stderr)
    except RefreshError as error:
        failed = True
        print(error, file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
