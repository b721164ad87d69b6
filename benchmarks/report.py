"""What remains of a run: the machine it ran on, a JSON file with everything measured, and the table."""

import datetime
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from benchmarks.findings import Finding, Result, findings

if TYPE_CHECKING:  # reading a stored run needs neither peers nor models
    from benchmarks.bench import Bench

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("torch", "transformers", "numpy", "minimind-edu")


def machine(bench: "Bench") -> dict[str, Any]:
    """What a reader must know to place the numbers, and nothing that names the machine or its owner."""
    facts = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "last_level_cache": _cache_size(),
        "system": platform.system(),
    }
    if bench.device.type == "cuda":
        facts["accelerator"] = torch.cuda.get_device_name(bench.device)
    return facts


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cache_size() -> str | None:
    """Of the first core's largest cache, as Linux tells it, for example 32768K."""
    sizes = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    return sizes[-1].read_text().strip() if sizes else None


def describe(bench: "Bench", quick: bool, results: Sequence[Result]) -> dict[str, Any]:
    """Everything about a run, in a form that JSON can hold."""
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine(bench),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "settings": {
            "quick": quick,
            "device": bench.device.type,
            "dtype": str(bench.dtype).removeprefix("torch."),
            "threads": bench.threads,
            "clock": bench.clock.kind,
            "load_average": [round(load, 2) for load in os.getloadavg()],
        },
        "results": list(results),
        "findings": [summary(line) for line in findings(results)],
    }  # fmt: skip


def summary(line: Finding) -> dict[str, Any]:
    """A line of the table for other programs: median, least and largest instead of all rounds."""
    facts = asdict(line)
    del facts["rounds"]
    return facts | {"spread": line.spread and asdict(line.spread), "reached": line.reached}


def save(run: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """A stored run.

    Raises:
        ValueError: if the file holds none.
    """
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        run["results"], run["machine"], run["settings"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is not a run that this program has stored") from error
    return run


WORTH_TELLING = 1.0  # seconds; shorter ones are noise between two calls
HEADER = ("", "measured", "median", "least .. largest", "", "target", "")


def table(run: dict[str, Any]) -> str:
    """The machine, every finding, and what compiled when."""
    rows: list[tuple[str, ...]] = [HEADER]
    scenario = None
    for line in findings(run["results"]):
        if line.scenario != scenario:
            scenario = line.scenario
            rows.append((scenario,))
        rows.append(_row(line))
    widths = [max(len(row[i]) for row in rows if len(row) > 1) for i in range(len(HEADER))]
    text = [_head(run)]
    for row in rows:
        if len(row) == 1:
            text += ["", row[0]]
        else:
            text.append(_aligned(row, widths))
    return "\n".join([*text, "", *_remarks(run)])


def _row(line: Finding) -> tuple[str, ...]:
    spread = line.spread
    middle = between = target = ""
    if spread is not None:
        middle = number(spread.median)
        if len(line.rounds) > 1:
            between = f"{number(spread.low)} .. {number(spread.high)}"
    if line.target is not None:
        target = f"{line.relation} {number(line.target)}"
    return ("  " + line.what, line.value, middle, between, line.against, target, line.verdict)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    left = (0, 4, 6)  # names and words; numbers are aligned on the right
    cells = [
        cell.ljust(width) if i in left else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def number(value: float) -> str:
    """Two decimals, or a power of ten for what is small."""
    if value == 0:
        return "0"
    return f"{value:.2f}" if abs(value) >= 0.01 else f"{value:.1e}"


def _head(run: dict[str, Any]) -> str:
    machine, settings = run["machine"], run["settings"]
    where = machine.get("accelerator") or f"{machine['processor']}, {machine['cores']} cores"
    threads = "1 thread" if settings["threads"] == 1 else f"{settings['threads']} threads"
    kind = "quick run" if settings["quick"] else "full run"
    return (
        f"{kind} of {run['date']} on {where}\n"
        f"{threads}, {settings['dtype']}, {settings['clock']}, torch {run['versions']['torch']}, "
        f"transformers {run['versions']['transformers']}\n"
        "ratios compare within a round; above 1 is faster, unless it says otherwise"
    )


def _remarks(run: dict[str, Any]) -> list[str]:
    """Compile times, warnings, and how many targets were reached."""
    lines = [
        f"{result['name']}: compiling {name} took {seconds:.1f} s, which is not counted"
        for result in run["results"]
        for name, seconds in result.get("compiling", {}).items()
        if seconds > WORTH_TELLING
    ]
    lines += sorted({text for result in run["results"] for text in result.get("warned", [])})
    lines += sorted({f"left out: {text}" for result in run["results"] for text in result.get("missing", {}).values()})
    judged = [line.reached for line in findings(run["results"]) if line.reached is not None]
    if judged:
        lines.append(f"{sum(judged)} of {len(judged)} targets reached")
    if run["settings"]["quick"]:
        lines.append("A quick run has few rounds and short texts: its verdicts are hints.")
    return lines


def tell(text: str) -> None:
    """Print, also while progress bars are about."""
    sys.stderr.flush()
    print(text, flush=True)
