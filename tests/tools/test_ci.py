"""Continuous integration: lint comes first, a push runs what the guides name, and everything is what there is."""

import re
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
        return ci.push(None)

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
    rows = pushed(Look("cuda", "05", seconds=ci.CLOSELY + 1), Look("mutants", "rope.py", seconds=1))
    assert not any("cuda" in line for line in lines(rows))
    assert "cuda 05" in capsys.readouterr().out.partition("Left for `make everything`")[2]


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


def test_the_script_hands_over_to_the_steps(tmp_path):
    script = ROOT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    # As on a machine that lacks nothing: make and the environment's Python only say what they were asked for.
    for name in ("make", "chromium-headless-shell", "firefox-esr", "WebKitWebDriver", "Xvfb", "wasm-ld"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\n')
        (tmp_path / name).chmod(0o755)
    project = tmp_path / "project"
    for folder in (".ci", ".venv/bin"):
        (project / folder).mkdir(parents=True)
    text = script.read_text(encoding="utf-8").replace("/usr/share/fonts/opentype/noto", "/")
    (project / ".ci" / "run").write_text(text.replace("ensurepip, venv", "sys"))
    (project / ".venv/bin/python").write_text('#!/bin/sh\necho python "$@" "$REQUIRE_BROWSER"\nexit 3\n')
    (project / ".venv/bin/python").chmod(0o755)
    for asked, handed in (([], "push"), (["everything", "live"], "everything")):
        done = subprocess.run(
            ["bash", project / ".ci" / "run", *asked],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 3, done.stderr
        assert re.fullmatch(
            rf"make env\npython -m tools.ci {handed} --environment \d+ {' '.join([*asked[1:], '1'])}\n", done.stdout
        )
