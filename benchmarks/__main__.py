"""Run the benchmarks: `python -m benchmarks [--quick]`, or `make bench`. What is measured stands in suites.py."""

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks.bench import MODELS, Bench
from benchmarks.engines.client import PYTHON
from benchmarks.findings import Result
from benchmarks.picture import draw
from benchmarks.report import RESULTS, describe, load, save, table, tell
from benchmarks.scenarios import Scenario
from benchmarks.suites import FULL, QUICK, QUICK_WITH_ENGINES, QUICK_WITH_THREADS, WITH_ENGINES, WITH_THREADS
from minimind_edu.device import pick_device
from minimind_edu.model.config import MiniMindConfig


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure this package beside its peers, in turns. A full run takes about twenty minutes; "
        "Ctrl-C ends it and keeps the scenarios that are finished.",
    )
    parser.add_argument("--quick", action="store_true", help="short texts, few rounds: below two minutes")
    parser.add_argument("--peers", action="store_true", help="with the engines of .venv-peers: 25 minutes more")
    parser.add_argument("--only", metavar="WORDS", help='scenarios whose name holds this, as "decode, small"')
    parser.add_argument("--rounds", type=_positive, help="rounds of every scenario, all of them, however long it takes")
    parser.add_argument("--threads", type=_positive, default=1, help="CPU threads (default: 1)")
    parser.add_argument("--device", type=torch.device, default=pick_device(), help="default: a GPU if there is one")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--output", type=Path, metavar="STEM", help="where the .json and .svg go (default: "
                        "benchmarks/results/latest, or quick)")  # fmt: skip
    parser.add_argument("--show", type=Path, metavar="JSON", help="measure nothing: print and draw a stored run again")
    return parser.parse_args(given)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def main(
    given: Sequence[str] | None = None, models: Mapping[str, MiniMindConfig] = MODELS, quick: Sequence[Scenario] = QUICK
) -> int:
    """Run what the command line asks for; `models` and `quick` are there for tests."""
    options = arguments(given)
    if options.show:
        try:
            run, stem = load(options.show), str(options.show).removesuffix(".json")
        except (OSError, ValueError) as error:
            raise SystemExit(f"{options.show} cannot be shown: {error}") from error
    else:
        run = measure(options, models, scenarios_of(options, quick))
        stem = options.output or RESULTS / ("quick" if options.quick else "latest")
        if not run["results"]:
            tell("Nothing was finished, so nothing is stored.")
            return 1
        save(run, Path(f"{stem}.json"))
    tell("\n" + table(run))
    drawn = draw(run, Path(f"{stem}.svg"))
    tell(f"All rounds: {stem}.json." + (f" Picture: {stem}.svg." if drawn else ""))
    return 0


def scenarios_of(options: argparse.Namespace, quick: Sequence[Scenario]) -> Sequence[Scenario]:
    """Those of a full or a quick run, with or without engines."""
    if not options.peers:
        return quick if options.quick else FULL
    if not PYTHON.exists():
        raise SystemExit("the engines are missing: `make bench PEERS=1` installs them into .venv-peers and goes on")
    several = options.threads > 1
    if options.quick:
        return (*quick, *QUICK_WITH_ENGINES, *(QUICK_WITH_THREADS if several else ()))
    return (*FULL, *WITH_ENGINES, *(WITH_THREADS if several else ()))


def measure(
    options: argparse.Namespace, models: Mapping[str, MiniMindConfig], scenarios: Sequence[Scenario]
) -> dict[str, Any]:
    bench = Bench(options.device, getattr(torch, options.dtype), options.threads, options.rounds, models)
    chosen = [s for s in scenarios if not options.only or options.only in s.name]
    if not chosen:
        names = "\n  ".join(s.name for s in scenarios)
        raise SystemExit(f"no scenario's name holds {options.only!r}; there are\n  {names}")
    with _nothing_compiled_before(), closing(bench):
        return describe(bench, options.quick, _finished(bench, chosen))


@contextmanager
def _nothing_compiled_before() -> Iterator[None]:
    """An empty folder for torch.compile: what compiling costs a reader the first time is measured every time."""
    name = "TORCHINDUCTOR_CACHE_DIR"
    before = os.environ.get(name)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[name] = folder
        try:
            yield
        finally:
            del os.environ[name]
            if before is not None:
                os.environ[name] = before


def _finished(bench: Bench, scenarios: Sequence[Scenario]) -> list[Result]:
    """The results of all scenarios, or of those that were finished when Ctrl-C came."""
    results: list[Result] = []
    try:
        for number, scenario in enumerate(scenarios, 1):
            tell(f"{number} of {len(scenarios)}: {scenario.name}")
            results.append(scenario.run(bench))
    except KeyboardInterrupt:
        tell(f"\nStopped. {len(results)} of {len(scenarios)} scenarios are finished and kept.")
    return results


if __name__ == "__main__":
    raise SystemExit(main())
