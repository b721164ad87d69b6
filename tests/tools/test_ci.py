"""Continuous integration: lint comes first, a push runs what the guides name, and everything is what there is."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

from tools import ci, touched
from tools.chapters import ROOT
from tools.touched import Look

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8"))
# What found something once and takes too long for every push: none of it may be lost.
FOUND_SOMETHING = [
    "make lint",
    "make types",
    "make book",
    "make test ALL=1",
    "-m pytest -n 0 --nbval --threads 2 _build/html/zh/notebooks/",
    "-m pytest --nbval --pretend cuda chapters/",
    "make live FEW=1",
    "make live",
    "make mutants",
    "make colab PYTHON=",
]


def lines(rows) -> list[str]:
    return [" ".join(step.command) for row in rows for step in row]


@pytest.fixture
def pushed(monkeypatch):
    """The steps of a push in which these looks fit."""

    def rows(*looks: Look):
        monkeypatch.setattr(touched, "base", lambda since: ("abc", "as named"))
        monkeypatch.setattr(touched, "changed", lambda before: ["a file without a rule"])
        monkeypatch.setattr(touched, "looks", lambda paths: list(looks))
        return list(ci.push(None))

    return rows


def test_everything_is_what_there_is():
    every = lines(ci.everything([]))
    assert [part for part in FOUND_SOMETHING if not any(part in line for line in every)] == []
    assert len(every) == len(set(every)), "the book is built once"
    assert lines(ci.everything(["mutants"])) == ["make mutants"]


@pytest.mark.parametrize("part", ci.PARTS)
def test_a_part_runs_by_itself(part):
    names = []
    for row in ci.everything([part]):
        assert all(not step.needs or step.needs in names for step in row)
        names += [step.name for step in row]


def test_a_push_is_linted_first_and_runs_what_the_guides_name(pushed):
    rows = pushed(Look("cuda", "05"), Look("mutants", "rope.py"))
    assert lines(rows)[0] == "make lint"
    assert {"make types", "make book", "make test"} <= set(lines(rows))
    assert lines(rows).index("make test") < min(
        i for i, line in enumerate(lines(rows)) if "cuda" in line or "--file" in line
    )
    named = re.findall(r"^make \w+", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(named) <= set(lines(rows)) and len(named) == 2


def test_what_a_push_leaves_out_is_told(pushed, capsys):
    rows = pushed(Look("cuda", "05", seconds=ci.CLOSELY[1] + 1), Look("mutants", "rope.py", seconds=1))
    assert not any("cuda" in line for line in lines(rows))
    assert "cuda 05" in capsys.readouterr().out.partition("Left for `make everything`")[2]


@pytest.mark.parametrize("spent, seconds", [(0, 400), (700, 200), (860, 90), (5000, 90)])
def test_close_looks_get_what_is_left_of_a_quarter_of_an_hour(spent, seconds, monkeypatch, capsys):
    monkeypatch.setattr(touched, "base", lambda since: ("abc", "as named"))
    monkeypatch.setattr(touched, "changed", lambda before: [])
    fitting = [Look("mutants", "fits.py", seconds=seconds - 5), Look("mutants", "no.py", seconds=seconds + 5)]
    for look in fitting:
        monkeypatch.setattr(touched, "looks", lambda paths, look=look: [look])
        assert any("tests/mutants" in line for line in lines(ci.push(None, spent))) == (look.name == "fits.py")
    assert f"{seconds} s are left for close looks" in capsys.readouterr().out


def test_close_looks_are_chosen_when_all_else_has_run(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(ci.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(touched, "base", lambda since: ("abc", "as named"))
    monkeypatch.setattr(touched, "changed", lambda before: [])
    monkeypatch.setattr(touched, "looks", lambda paths: [Look("mutants", "a.py", seconds=300)])
    rows = ci.push(None, 60)
    for _ in range(3):  # lint, the book, the tests
        next(rows)
    clock[0] = 700.0
    assert list(rows) == []


@pytest.mark.parametrize("built, builds", [({}, True), ({"BOOK_HTML": "elsewhere"}, False)])
def test_a_book_that_has_been_built_is_not_built_again(built, builds):
    env = {key: value for key, value in os.environ.items() if key != "BOOK_HTML"} | built
    asked = subprocess.run(["make", "-n", "test"], cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    assert ("-m tools.editions" in asked) == builds
    assert f"BOOK_HTML={built.get('BOOK_HTML', '_build/html')} " in asked
    for part in ci.PARTS.values():
        for step in part:
            assert "make test" not in step.name or step.env == ci.PAGES


def test_close_looks_see_the_book_that_was_built(pushed):
    steps = {step.name: step for row in pushed(Look("tests", "tests/figures/test_every_figure.py")) for step in row}
    assert steps["close tests"].env == {"BOOK_HTML": "_build/html"} and steps["close tests"].needs == "make book"
    assert steps["close tests"].needs in steps


def test_every_target_is_one_of_the_makefile():
    commands = {line.split()[1] for line in FOUND_SOMETHING if line.startswith("make ")}
    assert [target for target in commands if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)] == []
    assert "tools.ci everything $(PARTS)" in MAKEFILE


def test_a_part_that_is_not_there_is_told(capsys):
    with pytest.raises(SystemExit):
        ci.main(["everything", "mutants", "moon"])
    assert "there is no part moon; choose from lint, test" in capsys.readouterr().err


def test_the_workflow_has_a_job_for_each_part_and_each_occasion():
    jobs = WORKFLOW["jobs"]
    assert jobs["everything"]["strategy"]["matrix"]["part"] == list(ci.PARTS)
    assert not jobs["everything"]["strategy"]["fail-fast"]
    assert ".ci/run everything ${{ matrix.part }}" in [step.get("run") for step in jobs["everything"]["steps"]]
    occasions = WORKFLOW[True]  # YAML reads `on` as true
    assert {"push", "pull_request", "schedule", "workflow_dispatch"} <= set(occasions)
    assert occasions["push"] == {"branches": ["main"], "tags": ["v*"]}
    assert jobs["test"]["env"].keys() == {touched.SINCE}
    [checkout] = [step for step in jobs["test"]["steps"] if "checkout" in step.get("uses", "")]
    assert checkout["with"]["fetch-depth"] == 0, "what is touched is seen in the history"


@pytest.fixture
def script(tmp_path):
    """Runs .ci/run in a project whose commands only say what they were asked for, where some of them are missing."""
    project, commands = tmp_path / "project", tmp_path / "bin"
    for folder in (commands, project / ".ci", project / ".venv/bin"):
        folder.mkdir(parents=True)
    for name in ("bash", "dirname", "env", "id", "sh", "sleep"):
        (commands / name).symlink_to(shutil.which(name))
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace("/usr/share/fonts/opentype/noto", "/")
    (project / ".ci" / "run").write_text(text)

    def write(path, line):
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def run(*asked: str, without=(), make="echo make $@", apt="echo apt-get $@"):
        for name in ("chromium-headless-shell", "firefox-esr", "WebKitWebDriver", "Xvfb", "wasm-ld"):
            if name not in without:
                write(commands / name, f"echo {name} $@")
        write(commands / "make", make)
        write(commands / "apt-get", apt)
        write(commands / "sudo", '"$@"')
        write(commands / "python3", "exit 0")
        write(project / ".venv/bin/python", 'echo python "$@" "$REQUIRE_BROWSER"\nexit 3')
        command = ["bash", project / ".ci" / "run", *asked]
        return subprocess.run(command, env={"PATH": str(commands)}, capture_output=True, text=True)

    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"]).returncode == 0
    return run


@pytest.mark.parametrize("asked, handed", [([], "push"), (["everything", "live"], "everything")])
def test_the_script_hands_over_to_the_steps(script, asked, handed):
    done = script(*asked)
    assert done.returncode == 3, done.stderr
    last = " ".join([*asked[1:], "1"])
    assert re.fullmatch(rf"make env\npython -m tools.ci {handed} --environment \d+ {last}\n", done.stdout)


def test_browsers_are_installed_beside_the_environment(script, tmp_path):
    """Each of the two waits until the other has begun: one after the other, both would wait in vain."""
    begin = "echo {0} $@\ncase $* in *update*) exit 0;; esac\n: >{2}/{0}\ni=0\n"
    begin += "until [ -e {2}/{1} ]; do sleep 0.05; i=$((i + 1)); [ $i -lt 400 ] || exit 9; done"
    make, apt = begin.format("make", "apt-get", tmp_path), begin.format("apt-get", "make", tmp_path)
    done = script(without=["firefox-esr", "wasm-ld"], make=make, apt=apt)
    assert done.returncode == 3, done.stderr
    assert "apt-get install" in done.stdout and "firefox-esr clang lld\n" in done.stdout


def test_what_cannot_be_installed_ends_the_script(script):
    done = script(without=["firefox-esr"], apt="case $* in *update*) exit 0;; esac; echo no network >&2; exit 100")
    assert done.returncode == 100 and "python" not in done.stdout
