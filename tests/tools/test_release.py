"""A release changes every place that names the version, builds what readers download, commits and tags; or nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = min((ROOT / "chapters").glob("*.ipynb"), key=lambda path: path.stat().st_size)
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "_config.yml", "CITATION.cff", "CHANGELOG.md", ".gitignore")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess:
    who = {
        f"GIT_{role}_{what}": "someone@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = os.environ | who | {"PYTHONPATH": str(folder / "src")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def clone(tmp_path) -> Path:
    """A repository with what a release needs, and one chapter."""
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in (*NEEDED, f"chapters/{CHAPTER.name}"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "All")):
        assert run(tmp_path, "git", *command).returncode == 0
    return tmp_path


def release(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return run(folder, sys.executable, "-m", "tools.release", *arguments)


@pytest.mark.long
def test_a_dry_run_builds_all_and_leaves_the_repository_as_it_was(clone):
    done = release(clone, "9.8.7", "--dry-run")
    assert done.returncode == 0, done.stderr
    built = {path.name for path in (clone / "_build" / "release").iterdir()}
    assert built == {"minimind_edu-9.8.7-py3-none-any.whl", CHAPTER.name}
    assert "9.8.7" in (clone / "_build" / "release" / CHAPTER.name).read_text(encoding="utf-8")
    assert not run(clone, "git", "status", "--porcelain").stdout and not run(clone, "git", "tag").stdout


@pytest.mark.long
def test_a_dry_run_that_fails_puts_every_file_back_too(clone):
    path = clone / "pyproject.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('name = "minimind-edu"', 'name = "minimind edu!"'))
    assert run(clone, "git", "commit", "-qam", "A name that no wheel can have").returncode == 0
    done = release(clone, "9.8.7", "--dry-run")
    assert done.returncode == 1 and "flit_core could not build the wheel" in done.stderr
    assert "Traceback" not in done.stderr
    assert not run(clone, "git", "status", "--porcelain").stdout


@pytest.mark.long
def test_a_release_is_one_tagged_commit_that_names_its_version_everywhere(clone):
    done = release(clone, "9.8.7")
    assert done.returncode == 0, done.stderr
    assert run(clone, "git", "tag", "--points-at", "HEAD").stdout.split() == ["v9.8.7"]
    assert not run(clone, "git", "status", "--porcelain").stdout
    assert 'version = "9.8.7"' in (clone / "pyproject.toml").read_text(encoding="utf-8")
    assert "/minimind_edu-9.8.7-py3-none-any.whl" in (clone / "chapters" / CHAPTER.name).read_text(encoding="utf-8")
    assert yaml.safe_load((clone / "CITATION.cff").read_text(encoding="utf-8"))["version"] == "9.8.7"
    assert re.search(r"## Unreleased\n\n## 9\.8\.7 \(\d{4}-", (clone / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert "nothing under" in release(clone, "9.8.8").stderr


@pytest.mark.parametrize(
    ("version", "reason"),
    [("new", "is no version"), ("0.0.1", "is not newer"), ("9.8.7", "commit these changes first")],
)
@pytest.mark.long
def test_what_cannot_be_released_is_said_in_a_sentence(clone, version, reason):
    (clone / "CHANGELOG.md").write_text((clone / "CHANGELOG.md").read_text(encoding="utf-8") + "\nmore\n")
    done = release(clone, version)
    assert done.returncode == 1 and reason in done.stderr and "Traceback" not in done.stderr


def test_the_workflow_runs_what_ci_runs_and_publishes_what_it_built():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["test"]["steps"]
    assert ".ci/run" in [step.get("run") for step in steps] and os.access(ROOT / ".ci" / "run", os.X_OK)
    assert [step["with"]["path"] for step in steps if "pages" in step.get("uses", "")] == ["_build/html"]
    assert workflow["jobs"]["publish"]["needs"] == "test"
    chinese = workflow["jobs"]["notebooks"]
    assert chinese["needs"] == "test" and chinese["if"] == workflow["jobs"]["publish"]["if"]
    assert chinese["permissions"] == {"contents": "write"} and "tools.chinese_branch" in chinese["steps"][-1]["run"]
