"""Put the Chinese notebooks of a built book on a branch of their own, from which Colab opens them.

    python -m tools.chinese_branch                the notebooks in _build/html/zh/notebooks
    python -m tools.chinese_branch --push origin  and push the branch

The English ones are those of the main branch. The Chinese ones are made, so they stand on a branch of one commit that
is replaced: it has nothing else, and no history to keep. The working tree is left alone.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BRANCH = "notebooks-zh"
BUILT = ROOT / "_build" / "html" / "zh" / "notebooks"
WHO = {"name": "MiniMind book", "email": "book@users.noreply.github.com"}
WHEN = "@0 +0000"  # the same notebooks are the same commit


class BranchError(Exception):
    """The branch cannot be made; the message says why and what to do."""


def _git(root: Path, *arguments: str, **options: str) -> str:
    about = {f"GIT_{role}_{key.upper()}": value for role in ("AUTHOR", "COMMITTER") for key, value in WHO.items()}
    about |= {"GIT_AUTHOR_DATE": WHEN, "GIT_COMMITTER_DATE": WHEN}
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env=os.environ | about,
        input=options.get("given"),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BranchError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def make(built: Path, root: Path = ROOT) -> str:
    """Let the branch hold the notebooks in `built` and nothing else; return its commit.

    Raises:
        BranchError: if there are none.
    """
    notebooks = sorted(built.glob("*.ipynb"))
    if not notebooks:
        raise BranchError(f"{built} has no notebooks: build the book first, with `make book`")
    blobs = [_git(root, "hash-object", "-w", "--no-filters", str(notebook.resolve())) for notebook in notebooks]
    listed = "".join(f"100644 blob {blob}\t{path.name}\n" for blob, path in zip(blobs, notebooks, strict=True))
    tree = _git(root, "mktree", given=listed)
    commit = _git(root, "commit-tree", tree, "-m", "The notebooks of the Chinese edition")
    _git(root, "branch", "--force", BRANCH, commit)
    return commit


def main(arguments: list[str] | None = None) -> int:
    """Make the branch, and push it if that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tools.chinese_branch", description="Put them on a branch.")
    parser.add_argument("--push", metavar="REMOTE", help="push the branch there, in place of the one it has")
    parser.add_argument("--built", type=Path, default=BUILT, help="the folder of the notebooks")
    options = parser.parse_args(arguments)
    try:
        commit = make(options.built)
        if options.push:
            _git(ROOT, "push", "--force", options.push, f"{BRANCH}:{BRANCH}")
    except BranchError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{BRANCH} is {commit[:12]}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
