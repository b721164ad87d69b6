"""What continuous integration runs, in named steps with their times.

    python -m tools.ci push                       what every push must pass: `.ci/run`
    python -m tools.ci everything                 all there is, each night and before a release: `make everything`
    python -m tools.ci everything live mutants    parts of it, as jobs side by side or to go on after a red one

A push is linted and typed, builds the book, passes what README.md names, and what it touched is looked at closely, as
`tools.touched` says, within its seconds; it prints what that leaves out.
"""

import argparse
import sys

from tools import touched
from tools.chapters import ROOT
from tools.steps import Done, Step, python, run_all, say

CLOSELY = 240  # seconds, by tools/durations.json, on two cores: with the rest a quarter of an hour
BUILT = "make book"
TESTED = "make test"

BOOK = Step(BUILT, ("make", "book"))
PYTEST = python("-m", "pytest")
TWO = "Chinese, two threads"

# All there is. What needs a built book builds it first, unless a part before has: parts are jobs of their own, too.
PARTS: dict[str, tuple[Step, ...]] = {
    "lint": (Step("make lint", ("make", "lint")), Step("make types", ("make", "types"))),
    "test": (BOOK, Step("make test ALL=1", ("make", "test", "ALL=1"))),
    "cuda": (Step("chapters as on a GPU", (*PYTEST, "--nbval", "--pretend", "cuda", "chapters/")),),
    # What Chinese pages hand over, with its package inside; and with two threads, on which no number may depend.
    "chinese": (
        BOOK,
        Step(TWO, (*PYTEST, "-n", "0", "--nbval", "--threads", "2", "_build/html/zh/notebooks/"), needs=BUILT),
    ),
    "colab": (Step("make colab", ("make", "colab", f"PYTHON={sys.executable}")),),
    "figures": (Step("make live FEW=1", ("make", "live", "FEW=1")),),  # each figure with a kernel behind it
    "live": (Step("make live", ("make", "live")),),
    "mutants": (Step("make mutants", ("make", "mutants")),),
}


def everything(parts: list[str]) -> list[list[Step]]:
    """The steps of these parts (none: of all), one after the other, each once."""
    return [[step] for step in dict.fromkeys(step for part in parts or PARTS for step in PARTS[part])]


def push(since: str | None) -> list[list[Step]]:
    """The steps of a push."""
    before, how = touched.base(since)
    paths = touched.changed(before)
    say(f"{len(paths)} files have changed since {(before or 'the beginning')[:10]}, {how}.")
    known = [path for path in paths if touched.rule_of(path)]  # a file without a rule is what a test complains about
    taken, left = touched.cut(filter(touched.is_close, touched.looks(known)), CLOSELY)
    say(touched.told(taken, left))
    closely = touched.commands(taken, before).items()
    return [
        [Step("make lint", ("make", "lint"))],
        [Step("make types", ("make", "types")), BOOK],  # types keep one core busy
        [Step(TESTED, ("make", "test"))],
        *([Step(name, command, {"BOOK_HTML": "_build/html"}, needs(name))] for name, command in closely),
    ]


def needs(name: str) -> str:
    """What must be green for a close look to say anything: a built book, for those at pages."""
    return BUILT if name in ("close tests", "close names", TWO) else ""


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 1 if a step is red."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.ci", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    for_push = kinds.add_parser("push", help="what every push must pass")
    for_push.add_argument("--since", metavar="COMMIT", help="the commit before what is pushed")
    for_all = kinds.add_parser("everything", help="all there is")
    for_all.add_argument("parts", nargs="*", metavar="PART", help=f"one of: {', '.join(PARTS)}")
    for kind in (for_push, for_all):
        kind.add_argument(
            "--environment", type=float, metavar="SECONDS", help="what it took to get here, for the table"
        )
    options = parser.parse_args(arguments)
    if unknown := sorted(set(getattr(options, "parts", [])) - set(PARTS)):
        parser.error(f"there is no part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    try:
        rows = push(options.since) if options.kind == "push" else everything(options.parts)
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    before = [Done("environment", options.environment, 0)] if options.environment is not None else []
    return run_all(rows, before, ROOT)


if __name__ == "__main__":
    sys.exit(main())
