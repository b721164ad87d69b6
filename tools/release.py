"""Make a release: `make release VERSION=0.2.0`.

The version changes in pyproject.toml, CITATION.cff and CHANGELOG.md, every first cell names the new wheel; wheel and
notebooks for download are built into `_build/release`, and a commit with the tag v0.2.0 holds all of it. Nothing is
pushed. `--dry-run` does the same without commit and tag, and puts every file back.
"""

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

import nbformat
from packaging.version import InvalidVersion, Version

from tools import install_cell, self_contained
from tools.chapters import ROOT, notebooks
from tools.refresh import canonical, dumps, read, write

BUILT = ROOT / "_build" / "release"
UNRELEASED = "## Unreleased"


class ReleaseError(Exception):
    """No release can be made; the message says why and what to do."""


def git(*arguments: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def check(version: str) -> None:
    """Raise a ReleaseError if a release of this version cannot be made here."""
    try:
        newer = Version(version) > Version(install_cell.version())
    except InvalidVersion:
        raise ReleaseError(f"{version!r} is no version; write it as 0.2.0") from None
    if not newer:
        raise ReleaseError(f"{version} is not newer than {install_cell.version()}; choose a higher one")
    if changed := git("status", "--porcelain"):
        raise ReleaseError(f"commit these changes first:\n{changed}")
    if git("tag", "--list", f"v{version}"):
        raise ReleaseError(f"the tag v{version} exists already")
    if not unreleased().strip():
        raise ReleaseError(f"CHANGELOG.md has nothing under {UNRELEASED!r}; say there what is new")


def unreleased() -> str:
    """What the changelog says about the next version."""
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return log.partition(UNRELEASED)[2].partition("\n## ")[0]


def replace(name: str, pattern: str, by: str) -> None:
    """Replace the one place in a file that matches."""
    path = ROOT / name
    text, count = re.subn(pattern, by, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise ReleaseError(f"{name} has {count} places like {pattern!r}, but needs one")
    write(path, text)


def set_version(version: str, date: datetime.date) -> None:
    """Write the version wherever it is named."""
    replace("pyproject.toml", r'^version = "[^"]*"', f'version = "{version}"')
    replace("CITATION.cff", r"^version: .*", f"version: {version}")
    replace("CITATION.cff", r"^date-released: .*", f'date-released: "{date}"')
    replace("CHANGELOG.md", rf"^{UNRELEASED}$", f"{UNRELEASED}\n\n## {version} ({date})")
    for path in notebooks():
        write(path, dumps(canonical(read(path))))  # reading puts the present first cell in


def build() -> list[Path]:
    """The wheel and the notebooks that carry it, in `_build/release`."""
    BUILT.mkdir(parents=True, exist_ok=True)
    for old in [*BUILT.glob("*.whl"), *BUILT.glob("*.ipynb")]:
        old.unlink()
    wheel = self_contained.build_wheel(BUILT)
    return [wheel, *self_contained.write_all(BUILT, notebooks())]


def main(arguments: list[str] | None = None) -> int:
    """Make a release, or try it; return 1 with a sentence if it cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description="Make a release.")
    parser.add_argument("version", help="such as 0.2.0")
    parser.add_argument("--dry-run", action="store_true", help="build everything, then put every file back")
    options = parser.parse_args(arguments)
    try:
        check(options.version)
        try:
            set_version(options.version, datetime.date.today())
            built, changed = build(), git("diff", "--stat")
        finally:
            if options.dry_run:
                git("checkout", "--", ".")  # nothing else was changed: that was checked
        if options.dry_run:
            print(f"{changed}\nThat would be the commit. All of it is put back.")
        else:
            git("commit", "--all", "--message", f"Release {options.version}")
            git("tag", "--annotate", f"v{options.version}", "--message", f"Release {options.version}")
            print(f"To publish: git push --follow-tags, and add the files of {BUILT.relative_to(ROOT)} to the release.")
        print(f"Built {len(built)} files in {BUILT.relative_to(ROOT)}.")
    except (ReleaseError, RuntimeError, nbformat.ValidationError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
