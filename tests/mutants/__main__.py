"""Show that the tests notice wrong models: inject each mutant of catalog.txt, and demand that a test fails.

    python tests/mutants                     all of them
    python tests/mutants rope yarn           those whose name contains a word
    python tests/mutants --file rope.py      those of a file of the package
    python tests/mutants --since COMMIT      those that the catalog of that commit did not have, or had otherwise;
                                             with --file or a word, first those, and then the others
    python tests/mutants --seconds 120       begin none when so much time is over, and say which are left
    python tests/mutants --jobs 1            one at a time
    python tests/mutants --matrix ...        which mutants each test notices, and which tests notice none

One process imports torch and forks once for each mutant. The fork finds the changed source through an import hook of
Python or of node, or compiles it, for C++; the files themselves are never touched. Tests run until the first one
fails. Each test that failed then runs once on the model as it is, one fork for each file, and must pass.

The exit status is 0 when every mutant was noticed. It is 1 when one survived, when its old text is not found exactly
once, or when the tests could not run at all: a mutant that merely breaks the import is no mutant.

The matrix asks every test of the file that mirrors the mutant's, and stops at no failure. A test that notices nothing,
and guards no refusal, holds what nobody breaks, or what another test holds: it gets a mutant, or it goes.
"""

import argparse
import ast
import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from catalog import MUTANTS, PACKAGE, Mutant, chosen, new, of_commit

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PATIENCE = 300  # seconds; a mutant may make a loop endless
NOTICED, SURVIVED = 1, 0  # pytest: 1 says that tests ran and some failed; anything above, that they did not run
HUNG = -signal.SIGKILL
PASSES = "the model as it is:"


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
        folder = parts[:-1] if parts[-1] == "__init__" else parts  # a package is called after its folder
        self.name = ".".join((PACKAGE.name, *folder))
        self.loader = ChangedSource(self.name, str(path), mutant.changed_text())

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name:
            return None
        folder = [str(Path(self.loader.path).parent)] if self.loader.path.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            fullname, self.loader.path, loader=self.loader, submodule_search_locations=folder
        )


def inject(mutant: Mutant) -> None:
    """Let this process find the mutant in place of its file; what node cannot even load is an error."""
    if mutant.file.endswith(".py"):
        sys.meta_path.insert(0, ChangedImport(mutant))
        return
    if mutant.file.endswith(".cpp"):
        from minimind_edu.fast import library

        own = Path(tempfile.mkdtemp())
        library.SOURCE = own / "step.cpp"
        library.SOURCE.write_text(mutant.changed_text(), encoding="utf-8")
        library.flags = lambda: ("-O1", "-std=c++20", "-pthread", "-shared", "-fPIC")  # compiled in a second
        os.environ["TORCH_HOME"] = str(own)  # nothing of it is kept
        library.library()  # what cannot even be compiled is an error
        return
    sys.path.insert(0, str(TESTS))
    import node

    address = (PACKAGE / mutant.file).as_uri()
    node.CHANGED[address] = mutant.changed_text()
    with contextlib.closing(node.Node()) as process:
        process.evaluate(f"import({address!r})")


@dataclass
class Run:
    """One forked run of pytest."""

    mutant: Mutant | None  # None: the model as it is
    tests: tuple[str, ...]
    pid: int
    output: Path
    started: float

    @property
    def name(self) -> str:
        return self.mutant.name if self.mutant else f"{PASSES} {' '.join(self.tests)}"

    def report(self) -> str:
        return self.output.read_text(encoding="utf-8", errors="replace")

    def failures(self) -> list[str]:
        """The tests that failed, or whose fixtures did, in their order."""
        return re.findall(r"^(?:FAILED|ERROR) tests/(\S+)", self.report(), re.MULTILINE)

    def first_failure(self) -> str:
        return next(iter(self.failures()), "")


def start(mutant: Mutant | None, tests: tuple[str, ...], folder: Path, *options: str) -> Run:
    """Fork a process that runs these tests, with the mutant in place of its module; pytest gets the options."""
    output = folder / f"{time.monotonic_ns()}.txt"
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 70
        os.setpgid(0, 0)  # a node that it starts is ended with it
        try:
            with output.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            status = run_tests(mutant, tests, options or ("-x",))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return Run(mutant, tests, pid, output, time.monotonic())


def run_tests(mutant: Mutant | None, tests: tuple[str, ...], options: tuple[str, ...]) -> int:
    import pytest

    if mutant is not None:
        inject(mutant)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # half a second each time
    options = [*options, "-q", "--tb=line", "-o", "addopts=", "-p", "no:cacheprovider"]
    options += ["-p", "no:unraisableexception"]  # a test that fails, as it should, may leave a file open
    options += ["-p", "_hypothesis_pytestplugin", "-p", "pytest_timeout"]  # the settings of the project name both
    options += ["--rootdir", str(ROOT), "--hypothesis-profile", "mutants"]
    options += ["-W", "ignore:Module already imported"]  # hypothesis: it was, for all forks at once
    return int(pytest.main([*options, *(str(TESTS / test) for test in tests)]))


def finished(run: Run) -> int | None:
    """The exit status of a run, or None while it goes on; one that takes too long is ended."""
    pid, status = os.waitpid(run.pid, os.WNOHANG)
    if not pid and time.monotonic() - run.started > PATIENCE:
        os.killpg(run.pid, signal.SIGKILL)
        pid, status = os.waitpid(run.pid, 0)
    return os.waitstatus_to_exitcode(status) if pid else None


def imports_transformers(test: str) -> bool:
    """Whether the file of a test does, which takes longer than most tests."""
    return "from transformers import" in (TESTS / test.partition("::")[0]).read_text(encoding="utf-8")


def warm_up(tests: Iterable[str]) -> None:
    """Import what every fork needs, also what comes late and slowly, but nothing of the package."""
    import hypothesis
    import pytest  # noqa: F401
    import safetensors.torch  # noqa: F401
    import torch._dynamo
    import torch.testing

    if any(map(imports_transformers, tests)):
        from transformers import LlamaForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM  # noqa: F401

    torch.set_num_threads(1)
    # a failure need not be shrunk to be a failure
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, database=None)
    assert "minimind_edu" not in sys.modules
    gc.collect()
    gc.freeze()  # pytest collects garbage ten times a run: not through all of torch, and not in copied memory


def share_bytecode(folder: Path) -> None:
    """Let every fork use what another has compiled, tests with pytest's assertions too, also where none may be kept."""
    sys.pycache_prefix = str(folder)
    sys.dont_write_bytecode = False


def verdict(run: Run, status: int) -> tuple[bool, str]:
    """Whether the run ended as it must, and what there is to tell of it."""
    if status == HUNG:  # a mutant that hangs where the model as it is does not has been noticed
        return run.mutant is not None, f"hung for {PATIENCE} s"
    if status not in (NOTICED, SURVIVED):
        return False, f"ERROR: the tests did not run (status {status})\n{run.report()[-2000:]}"
    if run.mutant is None:
        return status == SURVIVED, "" if status == SURVIVED else f"FAILS\n{run.report()[-4000:]}"
    return status == NOTICED, run.first_failure() if status == NOTICED else "SURVIVED: no test noticed"


def by_file(tests: Iterable[str]) -> list[tuple[str, ...]]:
    """The tests, each once and with all of its cases, those of a file together."""
    files: dict[str, list[str]] = {}
    for test in sorted({test.partition("[")[0] for test in tests}):  # a file comes before its tests
        asked = files.setdefault(test.partition("::")[0], [])
        if asked[:1] != [test.partition("::")[0]]:
            asked.append(test)
    return [tuple(tests) for tests in files.values()]


def run_all(
    waiting: list[tuple[Mutant | None, tuple[str, ...]]], jobs: int, folder: Path, until: float = math.inf
) -> tuple[int, set[str]]:
    """Run `jobs` at a time, with a line for each; return how many went wrong, and the tests that noticed a mutant.

    Those that have not begun when time.monotonic() is `until` stay in `waiting`; the first one always begins.
    """
    running: list[Run] = []
    wrong, noticing, begun = 0, set(), False
    width = max(len(mutant.name) for mutant in MUTANTS)
    try:
        while True:
            while waiting and len(running) < jobs and (not begun or time.monotonic() < until):
                running.append(start(*waiting.pop(0), folder))
                begun = True
            if not running:
                break
            time.sleep(0.01)
            for run in list(running):
                status = finished(run)
                if status is None:
                    continue
                running.remove(run)
                right, text = verdict(run, status)
                wrong += not right
                if right and run.mutant:
                    noticing.update([run.first_failure()] if status == NOTICED else run.tests)
                print(f"{run.name:{width}}  {time.monotonic() - run.started:5.1f} s  {text}".rstrip(), flush=True)
    finally:
        for run in running:  # somebody has interrupted
            os.killpg(run.pid, signal.SIGKILL)
    return wrong, noticing


def mirror(mutant: Mutant) -> str:
    """The file of tests that mirrors the mutant's file: model/test_rope.py of model/rope.py."""
    path = Path(mutant.file)
    return str(path.with_name(f"test_{path.stem}.py"))


def functions(test_file: str) -> dict[str, bool]:
    """The test functions of a file, and whether each asks for a refusal."""
    tree = ast.parse((TESTS / test_file).read_text(encoding="utf-8"))
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[:5] == "test_"}
    return {name: "pytest.raises" in ast.unparse(node) for name, node in found.items()}


def matrix(mutants: list[Mutant], folder: Path) -> int:
    """Print how many mutants each test of the mirroring files notices; 0 if there are such files."""
    by_test: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_test.setdefault(mirror(mutant), []).append(mutant)
    if missing := sorted(test for test in by_test if not (TESTS / test).is_file()):
        print(f"there is no tests/{', tests/'.join(missing)}; the matrix asks the file that mirrors the mutant's")
        return 1
    for test, asked in by_test.items():
        noticed: dict[str, list[str]] = {name: [] for name in functions(test)}
        for mutant in asked:
            run = start(mutant, (test,), folder, "--maxfail=0")
            while finished(run) is None:
                time.sleep(0.01)
            names = {failure.partition("::")[2].partition("[")[0] for failure in run.failures()}
            for name in names & noticed.keys():
                noticed[name].append(mutant.name)
            print(f"{mutant.name}: {len(names)} of {len(noticed)} tests notice", flush=True)
        print(f"\n{test}, {len(asked)} mutants")
        for name, guards in functions(test).items():
            print(f"{len(noticed[name]):4}  {name}{'' if noticed[name] or not guards else '  (a refusal)'}")
        print(flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Demand that a test fails for every wrong model.")
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--file", action="append", default=[], help="only those of this file below src/minimind_edu")
    parser.add_argument("--since", metavar="COMMIT", help="first those that the catalog of this commit does not have")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none when so much time is over")
    parser.add_argument("--matrix", action="store_true", help="ask all tests of the mirroring files, and count")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    arguments = parser.parse_args()
    try:
        mutants = new(MUTANTS, of_commit(arguments.since)) if arguments.since else []
        if arguments.words or arguments.file or not arguments.since:
            mutants = list(dict.fromkeys([*mutants, *chosen(MUTANTS, arguments.words, arguments.file)]))
    except LookupError as error:
        print(error)
        return 1

    if not mutants:
        print(f"the catalog has no mutant that {arguments.since} did not have")
        return 0
    stale = 0
    for mutant in mutants:
        try:
            mutant.changed_text()
        except (LookupError, SyntaxError) as error:
            stale += 1
            print(f"{mutant.name}: {error}; mend tests/mutants/catalog.txt")
    if stale:
        return 1

    begun = time.monotonic()
    warm_up({test for mutant in mutants for test in mutant.tests})
    with tempfile.TemporaryDirectory() as folder:
        share_bytecode(Path(folder) / "bytecode")
        if arguments.matrix:
            return matrix(mutants, Path(folder))
        waiting = [(mutant, mutant.tests) for mutant in mutants]
        failures, noticing = run_all(waiting, arguments.jobs, Path(folder), begun + arguments.seconds)
        failures += run_all([(None, tests) for tests in by_file(noticing)], arguments.jobs, Path(folder))[0]
    if waiting:
        files = ", ".join(f"{count} of {file}" for file, count in Counter(m.file for m, _ in waiting).items())
        print(f"{len(waiting)} mutants are left for `make mutants`, for {arguments.seconds:.0f} s are over: {files}")
    told = f"{failures} runs went wrong" if failures else f"{len(mutants) - len(waiting)} of {len(mutants)} noticed"
    print(f"{told} in {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
