"""What files of tests and chapters take on two cores, in durations.json: `pytest --all --store-durations` writes it.

It is half of the CPU seconds of a test and of all processes that it starts, for how long something waits depends on
what else the machine does. Chapters run in this order, and `tools.touched` chooses by it.
"""

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).with_suffix(".json")
CORES = 2
UNKNOWN, CHAPTER = 8.0, 25.0  # seconds of a file of tests or of a chapter that the file lacks


@cache
def stored() -> dict[str, float]:
    """Seconds by file, from the root of the repository."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def of(path: Path | str) -> float:
    """The seconds of a file; a new one takes as long as such files often do."""
    name = path if isinstance(path, str) else path.relative_to(ROOT).as_posix()
    return stored().get(name, CHAPTER if name.endswith(".ipynb") else UNKNOWN)


def longest_first(path: Path) -> float:
    """The key of an order in which chapters that take longest come first, and what is no chapter last."""
    return -of(path) if path.suffix == ".ipynb" and path.is_relative_to(ROOT) else 0.0


def cpu_seconds() -> float:
    """The CPU time of this process and of all that it has started, whether they still run or not."""
    here = psutil.Process()
    total = 0.0
    for process in (here, *here.children(recursive=True)):
        with contextlib.suppress(psutil.Error):  # it has just ended
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def store(taken: Iterable[tuple[str, float]], root: Path = ROOT) -> None:
    """Write down what the files of these tests take, from their ids and CPU seconds; others stay, if they exist."""
    new: dict[str, float] = defaultdict(float)
    for test, seconds in taken:
        new[test.partition("::")[0]] += seconds / CORES
    found = json.loads(FILE.read_text(encoding="utf-8")) | {name: round(seconds, 1) for name, seconds in new.items()}
    kept = {name: seconds for name, seconds in sorted(found.items()) if (root / name).is_file()}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
