"""What a change touches: seen in real histories of git, and told by one table for every file of the repository."""

import os
import subprocess
from pathlib import Path

import pytest
from cases import long_after

from tools import check, touched
from tools.chapters import ROOT
from tools.touched import Look, changed, commands, cut, is_close, looks, looks_at, rule_of

HOUR = 3600


class Repository:
    """A repository of git whose commits are as old as a test says."""

    def __init__(self, folder: Path):
        self.folder, self.now = folder, 1_700_000_000
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        date = f"{self.now} +0000"
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = os.environ | names | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(["git", *arguments], cwd=self.folder, env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def write(self, *names: str) -> None:
        for name in names:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.read_text() + "x" if path.exists() else "x")

    def commit(self, *names: str, after: float = 0) -> str:
        self.now += int(after)
        self.write(*names)
        self.git("add", "--all")
        self.git("commit", "-qm", " ".join(names) or "Move")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.delenv(touched.SINCE, raising=False)
    return Repository(tmp_path)


def base(repository: Repository, since: str | None = None) -> str | None:
    return touched.base(since, repository.folder)[0]


def test_on_main_the_commits_of_a_day_are_the_change(repository):
    repository.commit("a")
    old = repository.commit("b", after=HOUR)
    repository.commit("c", after=20 * HOUR)
    for number in range(50):
        repository.commit(f"d{number}", after=600)
    assert base(repository) == old
    assert set(changed(old, repository.folder)) == {"c", *(f"d{number}" for number in range(50))}


def test_a_young_history_is_changed_as_a_whole(repository):
    repository.commit("a")
    repository.commit("b", after=HOUR)
    assert base(repository) is None
    assert changed(None, repository.folder) == ["b", "a"]


def test_a_shallow_clone_counts_as_changed_as_a_whole(repository, tmp_path_factory):
    repository.commit("a")
    repository.commit("b", after=99 * HOUR)
    shallow = tmp_path_factory.mktemp("shallow")
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.folder}", str(shallow))
    assert touched.base(None, shallow)[0] is None
    assert sorted(changed(None, shallow)) == ["a", "b"]


def test_a_branch_begins_where_it_left_main_however_old_it_is(repository, tmp_path_factory):
    fork = repository.commit("a")
    clone = Repository(tmp_path_factory.mktemp("clone"))
    clone.git("remote", "add", "origin", str(repository.folder))
    clone.git("fetch", "-q", "origin")
    clone.git("reset", "-q", "--hard", "origin/main")
    clone.git("checkout", "-q", "-b", "mine")
    clone.commit("b")
    clone.commit("c", after=200 * HOUR)
    repository.commit("of others", after=300 * HOUR)
    clone.git("fetch", "-q", "origin")
    assert base(clone) == fork
    assert changed(fork, clone.folder) == ["c", "b"]


def test_what_is_named_comes_first_then_the_environment(repository, monkeypatch):
    first, second = repository.commit("a"), repository.commit("b")
    repository.commit("c")
    monkeypatch.setenv(touched.SINCE, second)
    assert base(repository) == second
    assert base(repository, "HEAD~2") == first
    with pytest.raises(LookupError, match="no commit 'nowhere'"):
        base(repository, "nowhere")


@pytest.mark.parametrize("useless", ["", "0" * 40, "f" * 40])
def test_what_a_new_branch_or_a_forced_push_had_before_is_no_base(repository, monkeypatch, useless):
    old = repository.commit("a")
    repository.commit("b", after=99 * HOUR)
    monkeypatch.setenv(touched.SINCE, useless)
    assert base(repository) == old


def test_what_is_not_committed_comes_first_and_what_was_put_back_not_at_all(repository):
    first = repository.commit("a", "b", "章 1", "gone")
    repository.commit("b", "c", after=5)
    repository.commit("d", after=5)
    repository.git("rm", "-q", "d", "gone")
    repository.commit("e", after=5)
    repository.write("a", "章 1", "new")
    found = changed(first, repository.folder)
    assert set(found[:3]) == {"a", "章 1", "new"} and set(found[3:]) == {"e", "gone", "b", "c"}
    assert found.index("e") < found.index("c"), "the newest first"
    assert "d" not in changed(first, repository.folder), "it came and went"


def test_a_renamed_file_is_two(repository):
    first = repository.commit("a")
    repository.git("mv", "a", "b")
    repository.commit(after=5)
    assert sorted(changed(first, repository.folder)) == ["a", "b"]


# The table

TRACKED = (touched.git("ls-files", "-z") or "").split("\0")[:-1]


@pytest.mark.skipif(not TRACKED, reason="this copy of the project has no history of git")
def test_every_file_falls_under_a_rule():
    assert [path for path in TRACKED if not rule_of(path)] == []
    assert {rule_of(path)[0].what for path in TRACKED} == {rule.what for rule in touched.RULES}, "a rule without files"


def test_a_file_without_a_rule_is_told():
    with pytest.raises(LookupError, match="no rule of tools.touched fits 'new/kind.xyz'"):
        list(looks_at("new/kind.xyz"))


@pytest.mark.skipif(not TRACKED, reason="this copy of the project has no history of git")
def test_what_a_rule_names_is_there():
    """Every name of a test in the table is one of a file, once its groups are filled in by some file."""
    for rule in touched.RULES:
        fitting = [path for path in TRACKED if (rule_of(path) or [None])[0] is rule]
        for text in ("tests", "about"):
            for name in (name for name in getattr(rule, text).split() if "{" not in name):
                assert list((ROOT / "tests").rglob(name)), f"{rule.what}: {name}"
        if rule.tests or rule.about:
            assert any(look.kind in ("tests", "about") for path in fitting for look in looks_at(path)), rule.what


@pytest.mark.skipif(not TRACKED, reason="this copy of the project has no history of git")
def test_every_close_look_is_taken_when_something_beside_itself_is_touched():
    """What no push runs always is run by the push that may break it."""
    subjects = [path for path in TRACKED if rule_of(path) and rule_of(path)[0].what != "a test"]
    reached = {look.name for look in looks(subjects) if look.kind in ("tests", "about")}
    close = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if touched.CLOSE.search(path.read_text(encoding="utf-8"))
    }
    assert len(close) > 50
    assert close - reached == set(), "add a rule to tools.touched, or such a name to one"


def test_after_so_many_cases_the_others_are_long_and_none_is_lost():
    first, second, third = long_after(1, iter(["a", "b", ("c", 3)]))
    assert (first, second.values, third.values) == ("a", ("b",), ("c", 3))
    assert [[mark.name for mark in case.marks] for case in (second, third)] == [["long"], ["long"]]


def names(paths: list[str], kind: str) -> list[str]:
    return [look.name for look in looks(paths) if look.kind == kind]


def package_file(name: str) -> str:
    """Where a file of the package lies, from the root."""
    [path] = (ROOT / "src" / "minimind_edu").rglob(name)
    return path.relative_to(ROOT).as_posix()


def test_a_module_is_looked_at_by_its_tests_and_its_mutants():
    found = looks([package_file("rope.py")])
    assert "test_rope.py" in [Path(look.name).name for look in found if look.kind == "tests"]
    [mutants] = [look for look in found if look.kind == "mutants"]
    assert mutants.name.endswith("rope.py") and mutants.seconds > 10


def test_a_figure_is_looked_at_by_its_name():
    folder = "src/minimind_edu/figures/two_tables"
    paths = [f"{folder}/figure.js", f"{folder}/words.js"]
    assert any(name.endswith("test_figure_two_tables.py") for name in names(paths, "tests"))
    about = [look for look in looks(paths) if look.kind == "about"]
    assert {Path(look.name).name for look in about} == {
        "test_every_figure.py", "test_figures_in_the_browser.py", "test_figures_words.py"
    }  # fmt: skip
    assert {look.word for look in about} == {"two_tables"}
    assert names(paths, "translation") == ["two_tables"]


def test_a_chapter_runs_as_on_a_gpu_and_in_chinese_and_so_does_its_translation():
    [chapter] = (ROOT / "chapters").glob("05_*.ipynb")
    for path in (f"chapters/{chapter.name}", f"zh/chapters/{chapter.stem}.md"):
        assert names([path], "cuda") == names([path], "chinese") == names([path], "translation") == [chapter.stem]


def test_a_file_that_is_gone_is_looked_at_by_what_is_left():
    assert names(["chapters/99_gone.ipynb"], "cuda") == []
    assert names(["tests/test_gone.py"], "tests") == []


LOOKS = [Look("cuda", "1", seconds=5), Look("tests", "2", seconds=20), Look("mutants", "3", seconds=4)]
LOOKS += [Look("tests", "4", seconds=3)]


def test_the_cut_takes_what_fits_in_the_order_that_it_states():
    taken, left = cut(LOOKS, 13)
    assert [look.name for look in taken] == ["3", "4", "1"] and [look.name for look in left] == ["2"]
    assert cut(LOOKS, 1000) == (sorted(LOOKS, key=lambda look: touched.ORDER.index(look.kind)), [])
    told = touched.report(taken, left)
    assert "Left for `make everything`" in told and "tests 2" in told.partition("Left")[2]
    assert "Left" not in touched.report(taken, [])


def test_tests_of_which_none_is_long_or_in_a_browser_are_not_run_again():
    assert not is_close(Look("tests", "tests/tools/test_steps.py"))
    assert is_close(Look("tests", "tests/tools/test_contributing.py"))
    assert is_close(Look("about", "tests/figures/test_every_figure.py", "a"))
    assert is_close(Look("mutants", "rope.py")) and is_close(Look("cuda", "05"))


def test_each_kind_of_look_has_its_command():
    found = commands(
        [Look(kind, "name", "word", 7.5) for kind in touched.ORDER] + [Look("mutants", "+", "", 20)], "abc"
    )
    lines = {name: " ".join(command[1:]) for name, command in found.items()}
    assert len(lines) == len(touched.ORDER)
    assert lines["mutants"] == "tests/mutants --seconds 28 --since abc --file name"
    assert lines["close names"] == "-m pytest --all name -k word"
    assert lines["as on a GPU"] == "-m pytest --nbval --pretend cuda chapters/name.ipynb"
    assert "--threads 2 _build/html/zh/notebooks/name.ipynb" in lines["Chinese, two threads"]


def test_mutants_take_no_more_than_what_was_counted_and_new_ones_need_a_commit_before():
    new = Look("mutants", "+", seconds=20)
    assert commands([new], "abc")["mutants"][-4:] == ("--seconds", "20", "--since", "abc")
    assert commands([new]) == {}
    assert commands([new, Look("mutants", "a.py", seconds=3)])["mutants"][-2:] == ("--file", "a.py")


# tools.check


@pytest.fixture
def here(repository, monkeypatch):
    """A project of its own with a chapter, a test and a module, of which check is asked."""
    code = (
        '{"cells": [{"cell_type": "code", "source": "x = 1", "metadata": {}}, {"cell_type": "markdown", "source": ""}]}'
    )
    for name, text in (
        ("chapters/05_a.ipynb", code),
        ("tests/test_a.py", "def test_a(): pass"),
        ("tests/book/test_book.py", ""),
        ("tests/mutants/catalog.txt", "a mutant | a.py | test_a.py\n-a\n+b\n"),
        ("src/minimind_edu/a.py", "a = 1\n"),
    ):
        path = repository.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    repository.git("add", "--all")
    repository.git("commit", "-qm", "All")
    for module in (check, touched):
        monkeypatch.setattr(module, "ROOT", repository.folder)
    yield repository


def own(repository: Repository) -> tuple[list[str], list[str]]:
    found, left = check.own_looks(changed("HEAD", repository.folder), "HEAD", repository.folder)
    return [str(look) for look in found], left


def test_a_chapter_runs_only_if_its_code_has_changed(here):
    path = here.folder / "chapters" / "05_a.ipynb"
    path.write_text(path.read_text().replace('"markdown", "source": ""', '"markdown", "source": "more"'))
    found, left = own(here)
    assert "chapter 05_a" not in found and any("05_a" in line and "built book" in line for line in left)
    assert any(line.startswith("cuda 05_a: no cell") for line in left)
    path.write_text(path.read_text().replace("x = 1", "x = 2"))
    assert "chapter 05_a" in own(here)[0]


def test_a_module_is_checked_by_its_tests_and_mutants_and_its_lines_by_ruff(here):
    (here.folder / "src/minimind_edu/a.py").write_text("a=1\n")
    (here.folder / "new.css").write_text("a{}")
    found, _ = check.own_looks(["src/minimind_edu/a.py"], "HEAD", here.folder)
    assert [str(look) for look in found] == ["tests tests/test_a.py", "mutants a.py"]
    steps = check.lint(["src/minimind_edu/a.py", "new.css", "gone.py"], here.folder)
    assert [step.name for step in steps] == ["ruff check", "ruff format", "oxfmt"]
    assert steps[0].command[-1] == "src/minimind_edu/a.py" and steps[2].command[-1] == "new.css"


def test_tests_come_before_mutants_and_short_ones_before_long_ones(capsys, monkeypatch):
    found = [Look("mutants", "a.py", seconds=15), Look("tests", "long", seconds=70), Look("tests", "short", seconds=8)]
    monkeypatch.setattr(check, "own_looks", lambda paths, since: (found, []))
    assert check.main(["--list", "--since", "HEAD"]) == 0
    taken, _, left = capsys.readouterr().out.partition("Left for `make everything`")
    assert taken.index("tests short") < taken.index("tests long")
    assert "mutants a.py" in left and "All of it" not in left
    assert check.main(["--list", "--since", "HEAD", "--budget", "100"]) == 0
    assert "All of it is run." in capsys.readouterr().out


def test_the_list_says_what_it_would_run_and_runs_nothing(capsys, monkeypatch):
    monkeypatch.setattr(check, "run_all", None)
    assert check.main(["--list", "--since", "HEAD"]) == 0
    assert "Looked at closely" in capsys.readouterr().out
    assert check.main(["--since", "nowhere"]) == 1
    assert "no commit 'nowhere'" in capsys.readouterr().err
