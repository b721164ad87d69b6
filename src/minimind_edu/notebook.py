"""What chapters need of the notebook that they run in."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")

LANGUAGE = "MINIMIND_EDU_LANGUAGE"  # the variable that the first cell of a Chinese notebook sets to "zh"


def language() -> str:
    """The language in which figures speak to the reader of this notebook."""
    return os.environ.get(LANGUAGE, "en")


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
