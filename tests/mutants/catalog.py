"""The wrong variants that catalog.txt lists, in its order."""

import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

FILE = Path(__file__).with_name("catalog.txt")
PACKAGE = Path(__file__).resolve().parents[2] / "src" / "minimind_edu"


@dataclass(frozen=True)
class Mutant:
    """One piece of text in one file of the package, replaced."""

    name: str
    file: str  # below src/minimind_edu
    old: str  # found exactly once in the file
    new: str
    tests: tuple[str, ...]  # below tests/: files, or single tests as file::name

    def changed_text(self) -> str:
        """The file with the mutant in it. LookupError: its old text is not there once; SyntaxError: it is no Python."""
        path = PACKAGE / self.file
        if not path.is_file():
            raise LookupError(f"there is no file {self.file} in the package")
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise LookupError(f"its old text stands {found} times in {self.file}, not once")
        changed = text.replace(self.old, self.new)
        if path.suffix == ".py":
            compile(changed, self.file, "exec")
        return changed


_UNREAD = re.compile(r"(?:#.*)?\n")
_ENTRY = re.compile(r"(?P<head>(?:[^-+#\n].*\n)+)(?P<old>(?:-.*\n)+)(?P<new>(?:\+.*\n)+)")


def read(text: str) -> list[Mutant]:
    """The mutants of a catalog. ValueError: an entry is not as the head of catalog.txt says."""
    mutants: dict[str, Mutant] = {}
    position = 0
    while position < len(text):
        if unread := _UNREAD.match(text, position):
            position = unread.end()
            continue
        line = text.count("\n", 0, position) + 1
        where = f"catalog.txt, line {line}:"
        entry = _ENTRY.match(text, position)
        if not entry:
            raise ValueError(f"{where} write `name | file | tests`, then lines that begin with -, then lines with +")
        if re.search(r"[ \t]$", entry[0], re.MULTILINE):
            raise ValueError(f"{where} a space at the end of a line is easily lost: go on to the next word")
        name, *rest = (part.strip() for part in entry["head"].split("|"))
        if len(rest) != 2 or not all(rest):
            raise ValueError(f"{where} {name!r} needs a file and tests: name | file | tests")
        if name in mutants:
            raise ValueError(f"{where} another mutant is called {name!r}: give this one a name of its own")
        old, new = ("\n".join(line[1:] for line in entry[part][:-1].split("\n")) for part in ("old", "new"))
        mutants[name] = Mutant(name, rest[0], old, new, tuple(rest[1].split()))
        position = entry.end()
    return list(mutants.values())


MUTANTS = read(FILE.read_text(encoding="utf-8"))


def chosen(mutants: list[Mutant], words: Collection[str] = (), files: Collection[str] = ()) -> list[Mutant]:
    """The mutants whose name contains one of the words, of one of these files.

    Raises:
        LookupError: if a file has none, or no name contains a word.
    """
    if missing := sorted(set(files) - {mutant.file for mutant in mutants}):
        raise LookupError(f"no mutant changes {', '.join(missing)}; name files below src/minimind_edu, such as rope.py")
    named = [m for m in mutants if not words or any(word in m.name for word in words)]
    found = [m for m in named if not files or m.file in files]
    if not found:
        raise LookupError("no mutant has such a name")
    return found


def new(mutants: list[Mutant], known: Collection[Mutant]) -> list[Mutant]:
    """Those that are not known: one whose file or tests have only moved to another folder is."""

    def without_folders(mutant: Mutant) -> Mutant:
        tests = tuple(test.rpartition("/")[2] for test in mutant.tests)
        return replace(mutant, file=mutant.file.rpartition("/")[2], tests=tests)

    seen = set(map(without_folders, known))
    return [mutant for mutant in mutants if without_folders(mutant) not in seen]


def of_commit(commit: str) -> list[Mutant]:
    """The mutants in the catalog of a commit. LookupError: git knows no such commit, or it has no catalog."""
    command = ["git", "show", f"{commit}:./{FILE.name}"]
    done = subprocess.run(command, cwd=FILE.parent, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise LookupError(f"there is no catalog of mutants in {commit!r}: {done.stderr.strip()}")
    return read(done.stdout)
