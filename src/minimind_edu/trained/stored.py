"""What programs train or measure for the book: where they write it, and how.

The package reads a few stored files. A program replaces them after a whole run; after any other, a short one to try it,
say, it writes where `--into` says.
"""

import argparse
import json
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from minimind_edu.weights.writing import replacing

SEEN = 160  # characters of a run that are printed as it ends


def whole_number(at_least: int) -> Any:
    """For `type=` of an argument: a whole number of at least so many."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < at_least:
            raise argparse.ArgumentTypeError(f"it must be a whole number of at least {at_least}, got {text!r}")
        return int(text)

    return number


def add_into(parser: argparse.ArgumentParser) -> None:
    """The argument that says where to write."""
    parser.add_argument("--into", type=Path, metavar="PATH")


def place(parser: argparse.ArgumentParser, into: Path | None, stored: Path, whole: bool = True) -> Path:
    """Where to write, looked at before hours of training: `into`, or what the book has if the run is a whole one.

    Ends the program with a sentence where nothing can be written.

    Args:
        parser: tells what is wrong.
        into: what the reader named.
        stored: the book's own folder or file.
        whole: whether this run may replace it.
    """
    if into is None and not whole:
        parser.error(f"--into PATH must say where this goes: only a whole run replaces what the book has in {stored}")
    target = into or stored
    if target.exists() and target.is_dir() != stored.is_dir():
        parser.error(f"{target} is a {'folder' if target.is_dir() else 'file'}; give another name")
    folder = target if stored.is_dir() else target.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{folder} cannot be made: {error.strerror}")
    if not os.access(folder, os.W_OK):
        parser.error(f"nothing can be written in {folder}; name another place with --into")
    return target


def steps_and_place(description: str | None, stored: Path) -> tuple[int | None, Path]:
    """What a program that trains is told: `--steps`, None for a whole run, and where to write, as `place` says.

    Args:
        description: of the program, for its `--help`.
        stored: the book's own folder or file, which a run with `--steps` may not replace.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=whole_number(1))
    add_into(parser)
    given = parser.parse_args()
    return given.steps, place(parser, given.into, stored, whole=given.steps is None)


def lists_of_runs(
    description: str | None,
    lists: Mapping[str, Callable[[], Iterable[dict[str, Any]]]],
    stored: Path,
    kept: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """The whole program of trainings in several lists; `--only NAME` leaves the other lists as they are stored.

    Args:
        description: of the program, for its `--help`.
        lists: name -> its runs, one after the other.
        stored: the book's own file.
        kept: what is stored of a run.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=lists)
    add_into(parser)
    given = parser.parse_args()
    path = place(parser, given.into, stored)
    found = json.loads(path.read_text(encoding="utf-8")) if given.only and path.exists() else {}
    for name in [given.only] if given.only else lists:
        found[name] = []
        for run in lists[name]():
            print(textwrap.shorten(f"{name}: {run}", SEEN), flush=True)
            found[name].append(kept(run))
    lines = (f'"{name}": [\n' + ",\n".join(map(json.dumps, runs)) + "\n]" for name, runs in found.items())
    write("{" + ",\n".join(lines) + "}\n", path)


def write(text: str, path: Path) -> None:
    """Write a text file, as `replacing` does."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def rounded(value: Any, digits: int = 3) -> Any:
    """Floats to so many digits after the point, wherever they are in lists and dictionaries."""
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    return round(value, digits) if isinstance(value, float) else value
