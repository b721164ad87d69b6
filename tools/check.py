"""Look at what you have changed, in about two minutes: `python -m tools.check`.

    python -m tools.check                    what is not committed, or else the branch, or else the last commit
    python -m tools.check --since COMMIT     what has changed since then
    python -m tools.check --list             say what it would run, and run nothing

It formats nothing: `make format` does. It says what it leaves out; a push runs that, or `make everything`.
"""

import argparse
import sys
from pathlib import Path

from tools import touched
from tools.chapters import ROOT
from tools.compared import code_differs
from tools.steps import Step, python, run_all
from tools.touched import Look

SECONDS = 90  # of looks, by tools.durations; beginning and linting is the rest of two minutes
# A contributor has run no test yet, so these come before the mutants, and of each kind first what takes least.
ORDER = ("translation", "tests", "about", "chapter", "mutants")
BUILT = "needs a built book: `make test` runs it"


def before(since: str | None) -> tuple[str | None, str]:
    """The commit with which a contributor compares, and in words which one that is."""
    found, how = touched.base(since)
    if since or "branch" in how:
        return found, how
    if touched.uncommitted():
        return touched.commit_of("HEAD", ROOT), "the last commit"
    return touched.commit_of("HEAD~1", ROOT), "the commit before the last"


def own_looks(paths: list[str], since: str | None, root: Path = ROOT) -> tuple[list[Look], list[str]]:
    """What is to be run here, and in words what never is.

    A chapter runs once, as it is, and only if a cell of code has changed. Tests of built pages would build the book.
    """
    found, left = [], []
    for look in touched.looks(paths, root):
        if Path(look.name).name.startswith("test_book"):
            left.append(f"{look}: {BUILT}")
        elif look.kind == "chinese":
            left.append(f"{look}: {BUILT}")
        elif look.kind != "cuda":
            found.append(look)
        else:
            path = touched.notebook(look.name)
            earlier = touched.git("show", f"{since}:{path}", root=root) if since else None
            if path in paths and code_differs(earlier, (root / path).read_text(encoding="utf-8")):
                found.append(Look("chapter", look.name, seconds=look.seconds))
                left.append(f"{look}: a push runs it")
            else:
                left.append(f"{look}: no cell of code has changed; a push runs it")
    return found, left


def lint(paths: list[str], root: Path = ROOT) -> list[Step]:
    """ruff and oxfmt for the files that are there."""
    here = [path for path in paths if (root / path).is_file()]
    sources = [path for path in here if path.endswith((".py", ".ipynb"))]
    front = [path for path in here if path.endswith((".js", ".css", ".mjs"))]
    steps = []
    if sources:
        ruff = python("-m", "ruff")
        steps += [
            Step("ruff check", (*ruff, "check", *sources)),
            Step("ruff format", (*ruff, "format", "--check", *sources)),
        ]
    if front:
        steps.append(Step("oxfmt", (str(Path(sys.executable).with_name("oxfmt")), "--check", *front)))
    return steps


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 1 if something is red."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--since", metavar="COMMIT", help="compare with this commit")
    parser.add_argument("--budget", type=float, default=SECONDS, metavar="SECONDS", help="leave out what is beyond")
    parser.add_argument("--list", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    try:
        since, how = before(options.since)
        paths = touched.changed(since)
        found, left = own_looks(paths, since)
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    taken, beyond = touched.cut(sorted(found, key=lambda look: look.seconds), options.budget, ORDER)
    print(f"{len(paths)} files differ from {how} ({(since or 'nothing')[:10]}).")
    print(touched.report(taken, beyond))
    if left:
        print("\n".join(["Never run here:", *(f"  {line}" for line in left)]))
    elif not beyond:
        print("All of it is run.")
    if options.list:
        return 0
    rows = [[step] for step in lint(paths)]
    rows += [[Step(name, command)] for name, command in touched.commands(taken, since).items()]
    return run_all(rows)


if __name__ == "__main__":
    sys.exit(main())
