"""tools.chinese_branch: the notebooks, and nothing else, on a branch of one commit; the working tree stays."""

import subprocess

import pytest

from tools.chinese_branch import BRANCH, BranchError, make


@pytest.fixture
def repository(tmp_path):
    """A repository with one file, on the branch main."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b", *arguments],
            cwd=tmp_path / "project",
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "README.md").write_text("hello", encoding="utf-8")
    git("init", "--quiet", "--initial-branch=main")
    git("add", ".")
    git("commit", "--quiet", "-m", "Begin")
    return tmp_path / "project", git


@pytest.fixture
def built(tmp_path):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name, text in {"01_a.ipynb": "一\r\n", "02_b.ipynb": "二\n", "left.txt": "x"}.items():
        (folder / name).write_bytes(text.encode())
    return folder


def test_the_branch_holds_the_notebooks_byte_for_byte_and_the_working_tree_stays(repository, built):
    project, git = repository
    before = git("rev-parse", "HEAD"), git("status", "--porcelain")
    make(built, project)
    assert git("ls-tree", "--name-only", BRANCH).split() == ["01_a.ipynb", "02_b.ipynb"]
    blobs = [git("show", f"{BRANCH}:{name}") for name in ("01_a.ipynb", "02_b.ipynb")]
    assert blobs == ["一", "二"] and git("cat-file", "-s", f"{BRANCH}:01_a.ipynb") == "5"
    assert (git("rev-parse", "HEAD"), git("status", "--porcelain")) == before
    assert git("rev-list", "--count", BRANCH) == "1"


def test_the_same_notebooks_are_the_same_commit_and_others_replace_it(repository, built):
    project, git = repository
    first = make(built, project)
    assert make(built, project) == first
    (built / "01_a.ipynb").unlink()
    assert make(built, project) != first
    assert git("ls-tree", "--name-only", BRANCH) == "02_b.ipynb" and git("rev-list", "--count", BRANCH) == "1"


def test_without_notebooks_it_says_what_helps(repository, tmp_path):
    with pytest.raises(BranchError, match="has no notebooks: build the book first, with `make book`"):
        make(tmp_path / "nothing", repository[0])
