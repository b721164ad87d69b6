"""What chapters need of the notebook that they run in."""

import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from packaging.requirements import Requirement
from tqdm import tqdm

from minimind_edu.words import Words, pairs_in

T = TypeVar("T")

LANGUAGE = "MINIMIND_EDU_LANGUAGE"  # the variable that the first cell of a Chinese notebook sets to "zh"


def language() -> str:
    """The language in which figures speak to the reader of this notebook."""
    return os.environ.get(LANGUAGE, "en")


class NotReady(Exception):
    """A notebook cannot run here: one sentence, which IPython shows without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def in_chinese(sentence: str) -> str:
    """What a first cell tells, in Chinese; the pairs of words stand beside this file."""
    words = Words(pairs_in(Path(__file__).with_suffix(".zh.md").read_text(encoding="utf-8")))
    return words(sentence) or sentence


def _installed(name: str) -> importlib.metadata.Distribution | None:
    return next(iter(importlib.metadata.distributions(name=name)), None)  # the one that Python imports


def _why_not_ready(version: str) -> str | None:
    package = _installed("minimind-edu")
    if package is None:
        return None
    if package.version != version:
        return (
            f"This notebook needs minimind_edu {version}, but {package.version} is installed: run `%pip uninstall "
            "--yes minimind-edu` in a new cell, restart the kernel, then run this cell again."
        )
    for need in map(Requirement, package.requires or []):
        if need.marker and not need.marker.evaluate({"extra": ""}):
            continue
        found = _installed(need.name)
        if found is None and not importlib.util.find_spec(need.name):
            state = "which is missing"
        elif found and not need.specifier.contains(found.version, prereleases=True):
            state = f"but {found.version} is installed"
        else:
            continue
        return (
            f'This book needs {need}, {state}: run `%pip install "{need}"` in a new cell, restart the kernel, '
            "then run this cell again."
        )
    return None


def ready(version: str) -> None:
    """Refuse to go on where the package, or a library that it stands on, is of a version that does not fit.

    What is there without having been installed, such as a folder of sources, counts as the version that is needed.

    Args:
        version: of the package, as the first cell of a notebook names it.

    Raises:
        NotReady: with one sentence, in the language of the notebook.
    """
    if reason := _why_not_ready(version):
        raise NotReady(in_chinese(reason) if language() == "zh" else reason)


def outputs_are_stored() -> bool:
    """Whether a tool is at work that stores outputs or compares them, rather than a reader."""
    return os.environ.get("MINIMIND_EDU_STATIC") == "1"


def progress(items: Iterable[T], description: str) -> Iterator[T]:
    """Yield the items, with a bar that shows how far they are and that leaves nothing behind.

    The bar is text: one made of widgets would be saved with the notebook and come back dead. In a notebook it is on
    stdout, for notebooks paint stderr as if something had failed; elsewhere on stderr, so that what a command prints
    can be piped. Print after the loop, not in it. Where outputs are stored there is no bar.
    """
    return iter(
        tqdm(
            items,
            desc=description,
            disable=outputs_are_stored(),
            file=sys.stdout if "ipykernel" in sys.modules else sys.stderr,
            leave=False,
            ncols=60,
        )
    )
