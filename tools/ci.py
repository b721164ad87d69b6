"""What continuous integration runs, in named steps with their times.

    python -m tools.ci push                       what every push must pass: `.ci/run`
    python -m tools.ci everything                 all there is, each night and before a release: `make everything`
    python -m tools.ci everything live mutants    parts of it, as jobs side by side or to go on after a red one

A push is linted and typed, builds the book, passes what README.md names, and what it touched is looked at closely, as
`tools.touched` says, in what is left of a quarter of an hour; it prints what that leaves out.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator

from tools import touched
from tools.chapters import ROOT
from tools.steps import Done, Step, python, run_all, say

WHOLE = 900  # seconds for a push on two cores
CLOSELY = (90, 400)  # of them for close looks, by tools.durations: at least, also where all is slow, and at most
BUILT = "make book"
TESTED = "make test"
PAGES = {"BOOK_HTML": "_build/html"}  # what has been built is not built again

BOOK = Step(BUILT, ("make", "book"))
PYTEST = python("-m", "pytest")
TWO = "Chinese, two threads"

# All there is. What needs a built book builds it first, unless a part before has: parts are jobs of their own, too.
PARTS: dict[str, tuple[Step, ...]] = {
    "lint": (Step("make lint", ("make", "lint")), Step("make types", ("make", "types"))),
    "test": (BOOK, Step("make test ALL=1", ("make", "test", "ALL=1"), PAGES)),
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


def push(since: str | None, spent: float = 0.0) -> Iterator[list[Step]]:
    """The steps of a push, `spent` seconds of which are over; close looks are chosen when all else has run."""
    begun = time.monotonic() - spent
    before, how = touched.base(since)
    paths = touched.changed(before)
    say(f"{len(paths)} files have changed since {(before or 'the beginning')[:10]}, {how}.")
    known = [path for path in paths if touched.rule_of(path)]  # a file without a rule is what a test complains about
    found = list(filter(touched.is_close, touched.looks(known)))

    def steps() -> Iterator[list[Step]]:
        yield [Step("make lint", ("make", "lint"))]
        yield [Step("make types", ("make", "types")), BOOK]  # types keep one core busy
        yield [Step(TESTED, ("make", "test"), PAGES)]
        least, most = CLOSELY
        seconds = min(most, max(least, WHOLE - (time.monotonic() - begun)))
        say(f"{seconds:.0f} s are left for close looks.")
        taken, left = touched.cut(found, seconds)
        say(touched.report(taken, left))
        for name, command in touched.commands(taken, before).items():
            yield [Step(name, command, PAGES, needs(name))]

    return steps()


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
        rows: Iterable[list[Step]]
        rows = push(options.since, options.environment or 0) if options.kind == "push" else everything(options.parts)
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    before = [Done("environment", options.environment, 0)] if options.environment is not None else []
    return run_all(rows, before, ROOT)


if __name__ == "__main__":
    sys.exit(main())
