"""A file is written in one step: what reads it finds the older one or the whole new one."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def file_to_write(path: Path) -> Path:
    """The file that a path means, where one can be written: a link leads to it, and stays.

    Raises:
        FileNotFoundError, IsADirectoryError: if its folder does not exist, or it is a folder.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to save {target.name} in; make it first")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder, so no file can be saved there; give another name")
    return target


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write a file that appears only when it is complete: an interruption leaves an older one as it was."""
    target = file_to_write(path)
    # on the same disk as the file, so that moving it into place is one step
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=target.parent) as scratch:
        partial = Path(scratch, target.name)
        yield partial
        partial.replace(target)
