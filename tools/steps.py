"""Named steps, one after the other or side by side: each with its time, and what is red is told at the end.

One red step hides no other: what does not need it still runs.
"""

import os
import re
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAST = 40  # lines of a red step that are told again
_CLOSING = re.compile(r"^(?:=+ )?((?:\d+ \w+, )*\d+ \w+ in [\d.]+s(?: \([\d:]+\))?)(?: =+)?$")
_COUNTS = re.compile(r"(\d+) (\w+?)s?\b(?=,| in)")
_KINDS = (
    "failed",
    "passed",
    "skipped",
    "deselected",
    "xfailed",
    "xpassed",
    "warning",
    "error",
)  # as pytest orders them


@dataclass(frozen=True)
class Step:
    """A command with a name."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    needs: str = ""  # the step without which this one says nothing


@dataclass
class Done:
    """A step that has ended, or that could not begin."""

    name: str
    seconds: float
    status: int | None  # None: what it needs is red
    last: Sequence[str] = ()
    closing: Sequence[str] = ()  # how its runs of pytest ended

    @property
    def verdict(self) -> str:
        return {0: "green", None: "not run"}.get(self.status, "RED")


def say(line: str = "") -> None:
    print(line, flush=True)


def run(step: Step, root: Path = ROOT) -> Done:
    """Run it and show its lines as they come, each behind the step's name."""
    begun, last, closing = time.monotonic(), deque(maxlen=LAST), []
    say(f"{step.name} | $ {' '.join(step.command)}")
    try:
        process = subprocess.Popen(
            step.command,
            cwd=root,
            env=os.environ | step.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        return Done(step.name, time.monotonic() - begun, 127, [str(error)])
    with process:
        for line in process.stdout or ():
            line = line.rstrip("\n").rpartition("\r")[2]  # what a progress bar shows in the end
            last.append(line)
            if found := _CLOSING.match(line):
                closing.append(found[1])
            say(f"{step.name} | {line}")
    return Done(step.name, time.monotonic() - begun, process.returncode, list(last), closing)


def run_all(rows: Iterable[Sequence[Step]], before: Sequence[Done] = (), root: Path = ROOT) -> int:
    """Run the rows one after the other, the steps of a row side by side; tell all at the end, return 1 if one is red.

    Args:
        rows: the steps; of a generator, each row is asked for when those before have run.
        before: what has run already, for the table.
        root: the folder in which they run.
    """
    begun = time.monotonic()
    done: list[Done] = list(before)
    for row in rows:
        green = {step.name for step in done if step.status == 0}
        able = [step for step in row if not step.needs or step.needs in green]
        done += [Done(step.name, 0.0, None, [f"it needs {step.needs}"]) for step in row if step not in able]
        with ThreadPoolExecutor(max(1, len(able))) as pool:
            done += pool.map(partial(run, root=root), able)
    tell(done, time.monotonic() - begun + sum(step.seconds for step in before))
    return int(any(step.status != 0 for step in done))


def tell(done: Sequence[Done], seconds: float) -> None:
    """What is red with its last lines, a table of all steps, and what all runs of pytest together say."""
    for step in done:
        if step.status:
            say(f"\n{step.name} is red (exit status {step.status}). It ended with:")
            say("\n".join(f"    {line}" for line in step.last))
    width = max([len(step.name) for step in done] + [5])
    say(f"\n{'step':{width}}   time")
    for step in done:
        reasons = step.last[-1:] if step.status is None else ()
        say(f"{step.name:{width}} {clock(step.seconds):>6}  {'; '.join([step.verdict, *step.closing, *reasons])}")
    say(f"{'all':{width}} {clock(seconds):>6}")
    say(closing_line(done, seconds))


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def closing_line(done: Sequence[Done], seconds: float) -> str:
    """The closing lines of all runs of pytest as one, in the same form; a red step without tests that failed counts."""
    counts = Counter({kind: 0 for kind in _KINDS})
    for step in done:
        of_run = Counter()
        for line in step.closing:
            of_run.update({kind: int(number) for number, kind in _COUNTS.findall(line)})
        if step.status != 0 and not of_run["failed"] + of_run["error"]:
            of_run["error"] += 1
        counts.update(of_run)
    errors = counts.pop("error")
    counts["error" if errors == 1 else "errors"] = errors
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no tests ran"
    return f"==== {summary} in {seconds:.2f}s ({timedelta(seconds=int(seconds))}) ===="


def python(*arguments: str) -> tuple[str, ...]:
    """The command of this Python with these arguments."""
    return (sys.executable, *arguments)
