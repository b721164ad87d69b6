"""Show that the tests notice wrong models: inject each mutant of the catalog, and demand that a test fails.

    python tests/mutants                     all of them
    python tests/mutants rope yarn           those whose name contains a word
    python tests/mutants --jobs 1            one at a time

One process imports torch and forks once for each mutant. The fork finds the changed source through an import hook; the
files themselves are never touched. Tests run until the first one fails. Before, all of these tests run once on the
model as it is, and must pass.

The exit status is 0 when every mutant was noticed. It is 1 when one survived, when its old text is not found exactly
once, or when the tests could not run at all: a mutant that merely breaks the import is no mutant.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from catalog import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "minimind_edu"
TESTS = ROOT / "tests"
PATIENCE = 300  # seconds; a mutant may make a loop endless
NOTICED, SURVIVED = 1, 0  # pytest: 1 says that tests ran and some failed; anything above, that they did not run


class ChangedSource(importlib.machinery.SourceFileLoader):
    """Loads a module from the given text instead of its file; no bytecode is read or written."""

    def __init__(self, name: str, path: str, text: str):
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str):
        return compile(self.text, self.path, "exec", dont_inherit=True)


class ChangedImport(importlib.abc.MetaPathFinder):
    """Finds one module of the package in its changed form."""

    def __init__(self, mutant: Mutant):
        path = PACKAGE / mutant.file
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        self.name = ".".join((PACKAGE.name, *parts))
        self.loader = ChangedSource(self.name, str(path), changed_text(mutant))

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.loader.path, loader=self.loader)


def changed_text(mutant: Mutant) -> str:
    text = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    found = text.count(mutant.old)
    if found != 1:
        raise LookupError(f"its old text stands {found} times in {mutant.file}, not once")
    changed = text.replace(mutant.old, mutant.new)
    compile(changed, mutant.file, "exec")
    return changed


@dataclass
class Run:
    """One forked run of pytest."""

    mutant: Mutant | None
    pid: int
    output: Path
    started: float
    limit: float

    def report(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def first_failure(self) -> str:
        for line in self.report().splitlines():
            if line.startswith("FAILED "):
                return line.removeprefix("FAILED tests/").split(" - ")[0]
        return ""


def start(mutant: Mutant | None, tests: list[str], folder: Path) -> Run:
    """Fork a process that runs these tests, with the mutant in place of its module."""
    output = folder / f"{time.monotonic_ns()}.txt"
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            with output.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            status = run_tests(mutant, tests)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return Run(mutant, pid, output, time.monotonic(), PATIENCE)


def run_tests(mutant: Mutant | None, tests: list[str]) -> int:
    import pytest

    if mutant is not None:
        sys.meta_path.insert(0, ChangedImport(mutant))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # half a second each time
    options = ["-x", "-q", "--tb=line", "--noconftest", "-p", "no:cacheprovider"]
    options += ["-p", "_hypothesis_pytestplugin"]
    options += ["--rootdir", str(ROOT), "--hypothesis-profile", "mutants"]
    options += ["-W", "ignore:Module already imported"]  # hypothesis: it was, for all forks at once
    return int(pytest.main([*options, *(str(TESTS / test) for test in tests)]))


def finished(run: Run, block: bool) -> tuple[int, float] | None:
    """The exit status and the seconds of a run, or None while it goes on."""
    while True:
        pid, status = os.waitpid(run.pid, os.WNOHANG)
        seconds = time.monotonic() - run.started
        if pid:
            return os.waitstatus_to_exitcode(status), seconds
        if seconds > run.limit:
            os.kill(run.pid, 9)
            os.waitpid(run.pid, 0)
            return NOTICED, seconds  # it hung, where the model as it is does not
        if not block:
            return None
        time.sleep(0.02)


def warm_up(tests: list[str]) -> None:
    """Import what every fork needs, also what comes late and slowly, but nothing of the package."""
    import hypothesis
    import pytest  # noqa: F401
    import safetensors.torch  # noqa: F401
    import torch._dynamo
    import torch.testing

    if any(test.startswith("test_hf") for test in tests):
        from transformers import LlamaForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM  # noqa: F401

    torch.set_num_threads(1)
    # a failure need not be shrunk to be a failure
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, database=None)
    assert "minimind_edu" not in sys.modules


def verdict(run: Run, status: int) -> tuple[bool, str]:
    if status == NOTICED:
        return True, run.first_failure() or f"hung for {PATIENCE} s"
    if status == SURVIVED:
        return False, "SURVIVED: no test noticed"
    return False, f"ERROR: the tests did not run (status {status})\n{run.report()[-2000:]}"


def check_all(mutants: list[Mutant], jobs: int, folder: Path) -> int:
    """Run the mutants, `jobs` at a time, print a line for each, and return how many were not noticed."""
    waiting, running, failures = list(mutants), [], 0
    width = max(len(mutant.name) for mutant in mutants)
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop(0)
            running.append(start(mutant, list(mutant.tests), folder))
        time.sleep(0.02)
        for run in list(running):
            result = finished(run, block=False)
            if result is None:
                continue
            running.remove(run)
            status, seconds = result
            noticed, text = verdict(run, status)
            failures += not noticed
            print(f"{run.mutant.name:{width}}  {seconds:5.1f} s  {text}", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description="Demand that a test fails for every wrong model.")
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if not arguments.words or any(w in m.name for w in arguments.words)]
    names = [mutant.name for mutant in MUTANTS]
    if not chosen or len(set(names)) != len(names):
        print("no mutant has such a name, or two have the same")
        return 1

    stale = 0
    for mutant in chosen:
        try:
            changed_text(mutant)
        except (LookupError, SyntaxError) as error:
            stale += 1
            print(f"{mutant.name}: {error}; mend tests/mutants/catalog.py")
    if stale:
        return 1

    begun = time.monotonic()
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    warm_up(tests)
    with tempfile.TemporaryDirectory() as folder:
        run = start(None, tests, Path(folder))
        status, seconds = finished(run, block=True)
        print(f"the model as it is: {'passes' if status == 0 else 'FAILS'} ({seconds:.0f} s)")
        if status != 0:
            print(run.report()[-4000:])
            return 1
        failures = check_all(chosen, arguments.jobs, Path(folder))
    print(f"{len(chosen) - failures} of {len(chosen)} mutants noticed in {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
