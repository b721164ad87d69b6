"""What a change touches, and what looks at it closely: `python -m tools.touched [--since COMMIT]` prints it.

RULES is the one table of it. `tools.check` runs it for a contributor and `.ci/run` for a push, each within its seconds;
what does not fit is told, and `make everything` runs it.
"""

import argparse
import fnmatch
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools import durations
from tools.chapters import ROOT

SINCE = "TOUCHED_SINCE"  # the environment may name the commit before the change
HOURS = 12  # of the last commits on the main branch that count as one change: a day's work
LEAST, SHARE = 2.0, 20  # the tests of one name take so many seconds at least, and such a share of their file
NEW = 40.0  # seconds for mutants that are new, whatever their number
CLOSE = re.compile(r"\bmark\.long\b|\blong_after\b|\bpage\b|\bbrowser\b")  # in a file of which --all runs more


@dataclass(frozen=True)
class Rule:
    """Files, and what looks at them; each text may have groups of the pattern in braces, and parts between spaces."""

    what: str
    pattern: str  # of a whole path
    tests: str = ""  # files of tests/, as patterns of names: whole
    about: str = ""  # and those of which only the tests whose names contain `word`
    word: str = ""
    mutants: str = ""  # files below src/minimind_edu, as the catalog names them
    chapter: str = ""  # a notebook that runs as on a GPU, in Chinese too
    translation: str = ""  # names for tools.translation; * is all


_FIGURE = "test_every_figure.py test_figures_in_the_browser.py test_figures_words.py"
_PAGE = "test_book.py test_book_accessible.py test_book_chinese.py test_book_looks.py test_book_mathematics.py"
_IN = "src/minimind_edu/"
_FILE = r"(?P<file>(?:[\w/]+/)?(?P<stem>\w+)(?:\.zh)?\.\w+)"

# The first one that fits a path counts. Whatever is touched, `make test` runs: this is what comes on top.
RULES = (
    Rule("a chapter", r"chapters/(?:deeper/)?(?P<name>(?P<number>[CD]?\d+)_(?P<stem>\w+))\.ipynb",
         tests="test_checks_{stem}.py", about=f"test_chapters.py test_translation.py {_PAGE}", word="{name}",
         chapter="{name}", translation="{name}"),
    Rule("the Chinese of a chapter", r"zh/chapters/(?:deeper/)?(?P<name>\w+)\.md",
         about="test_book_chinese.py", word="{name}", chapter="{name}", translation="{name}"),
    Rule("a page about what was trained", r"book/(?P<name>live|living_card|verse)\.md",
         tests="test_book_parts.py", about=_PAGE, word="{name}", translation="{name}"),
    Rule("a page", r"book/(?P<name>\w+)\.md",
         tests="test_{name}.py", about=_PAGE, word="{name}", translation="{name}"),
    Rule("the Chinese of a page", r"zh/book/(?P<name>\w+)\.md",
         about="test_book_chinese.py", word="{name}", translation="{name}"),
    Rule("a reference table", r"(?:zh/)?book/reference/(?P<name>\w+)\..+|tools/corrections\.py",
         tests="test_reference.py test_book_reference.py test_book_corrections.py test_search.py", translation="*"),
    Rule("words of all pages", r"zh/\w+\.\w+|README(?:\.zh)?\.md|book/\w+(?:\.zh)?\.(?:png|gif)|_toc\.yml|_config\.yml",
         tests="test_translation.py test_translated.py", translation="*"),
    Rule("a screen of the check", r"book/screens/.+", tests="test_page.py"),
    Rule("a still", r"book/stills/.+", tests="test_stills.py test_stored.py"),
    Rule("the theme", r"book/(?:theme|assets|scripts)/.+|src/minimind_edu/web/fonts/.+",
         tests="test_book_looks.py test_book_accessible.py test_book_weight.py test_book_fonts.py test_search.py "
               "test_book_first_screens.py test_book_in_other_engines.py test_book.py test_book_chinese.py"),
    Rule("the extension of Sphinx", r"book/_ext/.+",
         tests="test_book_parts.py test_book_shapes.py test_book_notes.py test_book_reference.py "
               "test_book_mathematics.py test_book_serving.py test_book_weight.py test_book_moved.py test_notation.py "
               "test_search.py test_book.py test_book_chinese.py"),
    Rule("what figures share", rf"{_IN}(?:web/|figures/)(?P<file>(?P<room>kit|stage|live)/(?P<stem>\w+)\..+)",
         tests="test_{stem}.py test_figures_kit.py test_{room}*.py test_figures_living.py test_handles.py "
               "test_labels.py test_figures_styles.py test_figures_in_the_browser.py test_every_figure.py",
         mutants="figures/{file} web/{file}", translation="*"),
    Rule("the page that writes verse", rf"{_IN}(?P<file>inside/verse/.+)",
         tests="test_inside_verse*.py", mutants="{file}", translation="verse"),
    Rule("the page of two models", rf"{_IN}(?P<file>inside/beside/.+)",
         tests="test_inside_beside*.py", mutants="{file}", translation="beside"),
    Rule("the page of a reader's own model", rf"{_IN}(?:figures/)?(?P<file>inside/(?:\w+/)*(?P<stem>\w+)\..+)",
         tests="test_inside_{stem}.py test_inside_in_the_browser.py test_inside_keep_in_the_browser.py "
               "test_inside_page.py test_main.py",
         mutants="figures/{file} {file}", translation="*"),
    Rule("a figure", rf"{_IN}figures/(?P<file>(?P<figure>\w+)/.+)",
         tests="test_figure_{figure}*.py test_figures_{figure}.py test_figures_format.py", about=_FIGURE,
         word="{figure}", mutants="figures/{file}", translation="{figure}"),
    Rule("what all figures stand on", rf"{_IN}(?:figures|web)/(?P<stem>\w+)\.\w+",
         tests="test_{stem}.py test_figures_{stem}.py test_figures_base.py test_figures_from_outside.py "
               "test_figures_in_the_browser.py",
         mutants="figures/{stem}.py figures/{stem}.js web/{stem}.py web/{stem}.js"),
    Rule("exercises", rf"{_IN}checks/(?P<stem>\w+?)(?:\.zh)?\.(?:py|md)",
         tests="test_checks_{stem}.py test_checks_exercise.py test_answers.py", mutants="checks/{stem}.py",
         translation="*"),
    Rule("poems", rf"{_IN}trained/verse/\w+\.txt\.xz", tests="test_verse.py"),
    Rule("what was trained", rf"{_IN}trained/(?P<stem>\w+)/(?:\w+\.safetensors|card\.json)",
         tests="test_{stem}.py test_{stem}_*.py test_book_parts.py"),
    Rule("the program", rf"{_IN}(?P<file>__main__\.py)", tests="test_main.py", mutants="{file}"),
    Rule("what transformers reads", rf"{_IN}(?P<file>hf/(?P<stem>\w+)\.\w+)",
         tests="test_{stem}.py test_{stem}_*.py test_hf_{stem}.py test_hf.py test_text.py", mutants="{file}"),
    Rule("a module", rf"{_IN}{_FILE}",
         tests="test_{stem}.py test_{stem}_*.py test_{folder}_{stem}.py test_{folder}.py test_{folder}_stored.py",
         mutants="{file}"),
    Rule("the catalog of mutants", r"tests/mutants/.+", tests="test_mutants.py", mutants="+"),
    Rule("a test", r"tests/(?:\w+/)*(?P<test>test_\w+\.py)", tests="{test}"),
    Rule("what tests share", r"(?:tests/.+|conftest\.py)",
         tests="test_pretended_device.py test_node.py test_durations.py"),
    Rule("what a notebook carries", r"tools/(?:install_cell|self_contained)\.py",
         tests="test_install_cell.py test_self_contained.py"),
    Rule("a tool", r"tools/(?P<stem>\w+)\.\w+", tests="test_{stem}.py test_{stem}_*.py test_tools.py"),
    Rule("the guide", r"CONTRIBUTING\.md", tests="test_contributing.py"),
    Rule("what runs the tests", r"\.ci/run|Makefile|\.github/.+", tests="test_ci.py test_release.py"),
    Rule("benchmarks", r"benchmarks/.+", tests="test_benchmarks.py test_benchmark_engines.py test_stored_benchmark.py"),
    Rule("the changelog", r"CHANGELOG\.md", tests="test_release.py"),
    Rule("settings of the project", r"pyproject\.toml|requirements\.txt|tsconfig\.json|chapters/ruff\.toml|"
         r"\.oxfmtrc\.json|\.gitignore|LICENSE|CITATION\.cff",
         tests="test_release.py test_self_contained.py test_install_cell.py"),
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """One thing to run, small enough to be left out by itself."""

    kind: str  # one of ORDER; `commands` says what is run
    name: str
    word: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{f' -k {self.word}' if self.word else ''}"


def rule_of(path: str) -> tuple[Rule, re.Match[str]] | None:
    """The rule for a path from the root, if there is one."""
    found = ((rule, re.fullmatch(rule.pattern, path)) for rule in RULES)
    return next(((rule, match) for rule, match in found if match), None)


@cache
def mutants_by_file(root: Path = ROOT) -> dict[str, int]:
    """How many mutants each file of the package has."""
    text = (root / "tests" / "mutants" / "catalog.txt").read_text(encoding="utf-8")
    files = re.findall(r"^[^-+#\n][^|\n]*\| *([^|\n]+?) *\|", text, re.MULTILINE)
    return {file: files.count(file) for file in files}


@cache
def test_files(root: Path = ROOT) -> list[str]:
    """All files of tests, from the root."""
    return sorted(path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py"))


def looks_at(path: str, root: Path = ROOT) -> Iterator[Look]:
    """What looks at one file closely, the nearest first."""
    if not (found := rule_of(path)):
        raise LookupError(f"no rule of tools.touched fits {path!r}: write one, or add it to a rule there")
    rule, match = found
    groups = {name: text or "" for name, text in match.groupdict().items()}
    groups["folder"] = Path(path).parent.name
    if groups.get("stem") == "__init__":
        groups["stem"] = groups["folder"]

    def parts(text: str) -> list[str]:
        return [re.sub(r"\{(\w+)\}", lambda name: groups.get(name[1], ""), part) for part in text.split()]

    def files(text: str) -> list[str]:
        """The files that there are: not everything has tests of its own."""
        wanted = [re.compile(fnmatch.translate(pattern)) for pattern in parts(text)]
        return [file for file in test_files(root) if any(name.match(file.rpartition("/")[2]) for name in wanted)]

    [word] = parts(rule.word) or [""]
    for name in parts(rule.translation):
        yield Look("translation", name, seconds=10)
    for file in files(rule.tests):
        yield Look("tests", file, seconds=durations.of(file))
    for file in files(rule.about):
        yield Look("about", file, word, max(LEAST, durations.of(file) / SHARE))
    for file in parts(rule.mutants):
        if file == "+":
            yield Look("mutants", file, seconds=NEW)
        elif count := mutants_by_file(root).get(file):
            yield Look("mutants", file, seconds=count + 3)
    for name in parts(rule.chapter):
        if (root / (path := notebook(name))).is_file():
            seconds = durations.of(path)
            yield Look("cuda", name, seconds=seconds)
            yield Look("chinese", name, seconds=seconds)


def notebook(name: str) -> str:
    """The file of a notebook, from the root."""
    return f"chapters/{'deeper/' * name.startswith('D')}{name}.ipynb"


def looks(paths: Iterable[str], root: Path = ROOT) -> list[Look]:
    """What looks at these files closely, each thing once, in the order of the files."""
    found = dict.fromkeys(look for path in paths for look in looks_at(path, root))
    whole = {look.name for look in found if look.kind == "tests"}
    everything = any(look == Look("translation", "*", seconds=10) for look in found)
    return [
        look
        for look in found
        if not (look.kind == "about" and look.name in whole)
        and not (look.kind == "translation" and everything and look.name != "*")
    ]


ORDER = ("translation", "mutants", "tests", "about", "chapter", "cuda", "chinese")


def cut(found: Iterable[Look], budget: float, order: tuple[str, ...] = ORDER) -> tuple[list[Look], list[Look]]:
    """What fits into so many seconds, and what is left for `make everything`.

    The kinds come in an order, by itself ORDER: those first that say most in a second beside `make test`. Within a kind
    what was touched last comes first.
    """
    taken, left = [], []
    for look in sorted(found, key=lambda look: order.index(look.kind)):
        fits = look.seconds <= budget
        (taken if fits else left).append(look)
        budget -= look.seconds * fits
    return taken, left


def is_close(look: Look, root: Path = ROOT) -> bool:
    """Whether a look sees anything that `make test` does not: it runs all tests that are neither long nor in a browser,
    and compares the translation."""
    if look.kind not in ("tests", "about"):
        return look.kind != "translation"
    return bool(CLOSE.search((root / look.name).read_text(encoding="utf-8")))


# What has changed


def git(*arguments: str, root: Path = ROOT) -> str | None:
    """What git prints, or None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, encoding="utf-8")
    return done.stdout if done.returncode == 0 else None


def split(text: str | None) -> list[str]:
    """The names in what git prints with -z."""
    return [name.strip("\n") for name in (text or "").split("\0") if name.strip("\n")]


def uncommitted(root: Path = ROOT) -> list[str]:
    """Files that differ from the last commit, and new ones."""
    new = split(git("ls-files", "-z", "--others", "--exclude-standard", root=root))
    return [*split(git("diff", "-z", "--name-only", "--no-renames", "HEAD", root=root)), *new]


def commit_of(name: str, root: Path) -> str | None:
    found = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", root=root)
    return found.strip() if found else None


def base(since: str | None = None, root: Path = ROOT) -> tuple[str | None, str]:
    """The commit before the change, and in words how it was found; None if all of the history is the change.

    What is named comes first, then the environment's TOUCHED_SINCE, which the workflow sets. A branch begins where it
    left origin/main. On the main branch itself a clone does not know what was pushed together: whatever was committed
    in the 12 hours before the last commit counts, rather too much than too little, for the newest comes first.
    """
    for name, where in ((since, "as named"), (os.environ.get(SINCE), f"from {SINCE}")):
        if name and name.strip("0"):  # a new branch has nothing before it, which GitHub writes as zeros
            if found := commit_of(name, root):
                return found, where
            if name is since:
                raise LookupError(f"git knows no commit {name!r} here; name one that `git log` shows")
    head, fork = commit_of("HEAD", root), git("merge-base", "HEAD", "origin/main", root=root)
    if fork and fork.strip() != head:
        return fork.strip(), "where the branch left origin/main"
    dated = [line.split() for line in (git("log", "--first-parent", "--format=%H %ct", root=root) or "").splitlines()]
    for commit, seconds in dated[1:]:
        if int(seconds) < int(dated[0][1]) - HOURS * 3600:
            return commit, f"the last commit that is {HOURS} hours older than this one"
    return None, f"all of the history here is younger than {HOURS} hours"


def changed(before: str | None, root: Path = ROOT) -> list[str]:
    """The files that differ from a commit (None: all files): those not committed first, then by their last commits."""
    if before is None:
        differing = split(git("ls-files", "-z", root=root))
    else:
        differing = split(git("diff", "-z", "--name-only", "--no-renames", before, root=root))
    edited = uncommitted(root)
    span = f"{before}..HEAD" if before else "HEAD"
    order = split(git("log", "-z", "--name-only", "--no-renames", "--format=", span, root=root))
    known = {*differing, *edited}
    return [name for name in dict.fromkeys([*edited, *order, *differing]) if name in known]


# How it is run


def report(taken: list[Look], left: list[Look]) -> str:
    """What is looked at closely and what is not."""
    lines = [f"  {look} (about {look.seconds:.0f} s)" for look in taken] or ["  nothing"]
    lines = ["Looked at closely, beside what runs always:", *lines]
    if left:
        lines += ["Left for `make everything`, for it takes too long here:", *(f"  {look}" for look in left)]
    return "\n".join(lines)


def commands(taken: list[Look], before: str | None = None) -> dict[str, tuple[str, ...]]:
    """The commands for these looks, each with a name for its step."""
    by_kind: dict[str, list[Look]] = {}
    for look in taken:
        by_kind.setdefault(look.kind, []).append(look)

    def names(kind: str) -> list[str]:
        return [look.name for look in by_kind.get(kind, ())]

    run = (sys.executable, "-m")
    found: dict[str, tuple[str, ...]] = {}
    if asked := names("translation"):
        found["translation"] = (*run, "tools.translation", *(() if "*" in asked else asked))
    if files := names("tests"):
        found["close tests"] = (*run, "pytest", "--all", *files)
    if some := by_kind.get("about"):
        words = " or ".join(dict.fromkeys(look.word for look in some))
        found["close names"] = (*run, "pytest", "--all", *dict.fromkeys(names("about")), "-k", words)
    mutants = names("mutants")
    since = ("--since", before) if "+" in mutants and before else ()
    if chosen := (*since, *(part for file in mutants if file != "+" for part in ("--file", file))):
        seconds = math.ceil(sum(look.seconds for look in by_kind["mutants"]))
        found["mutants"] = (sys.executable, "tests/mutants", "--seconds", str(seconds), *chosen)
    if chapters := names("chapter"):
        found["chapters"] = (*run, "pytest", "--nbval", *map(notebook, chapters))
    if chapters := names("cuda"):
        cells = map(notebook, chapters)
        found["as on a GPU"] = (*run, "pytest", "--nbval", "--pretend", "cuda", *cells)
    if chapters := names("chinese"):
        cells = (f"_build/html/zh/notebooks/{name}.ipynb" for name in chapters)
        found["Chinese, two threads"] = (*run, "pytest", "-n", "0", "--nbval", "--threads", "2", *cells)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print what a change touches."""
    parser = argparse.ArgumentParser(prog="python -m tools.touched", description="What a change touches.")
    parser.add_argument("--since", metavar="COMMIT", help="the commit before the change")
    parser.add_argument("--budget", type=float, default=math.inf, metavar="SECONDS", help="leave out what is beyond")
    options = parser.parse_args(arguments)
    try:
        before, how = base(options.since)
        paths = changed(before)
        print(f"{len(paths)} files have changed since {(before or 'the beginning')[:10]}, {how}.")
        print(report(*cut(looks(paths), options.budget)))
    except LookupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
