"""Steps: each has its time and its verdict, a red one is told with its last lines and hides no other."""

import re
import sys
import time

import pytest

from tools.steps import Done, Step, closing_line, run_all


def step(name: str, code: str, **options) -> Step:
    return Step(name, (sys.executable, "-c", code), **options)


GREEN = step("green", "print('all well')")


def test_every_step_is_told_with_its_time_and_its_lines(capsys, tmp_path):
    slow = step("slow", "import os, time; time.sleep(1); print(os.environ['HELLO'])", env={"HELLO": "you"})
    assert run_all([[GREEN], [slow]], [Done("environment", 61.0, 0)], tmp_path) == 0
    told = capsys.readouterr().out
    assert "green | all well" in told and "slow | you" in told
    assert re.search(r"^environment +1:01  green$", told, re.MULTILINE)
    assert re.search(r"^slow +0:0[1-9]  green$", told, re.MULTILINE)
    assert re.search(r"^all +1:0[2-9]$", told, re.MULTILINE)


def test_a_red_step_is_told_with_its_last_lines_and_hides_no_other(capsys, tmp_path):
    red = step("red", "print(*range(1000), sep='\\n'); raise SystemExit(3)")
    rows = [[red], [step("built on it", "print('never')", needs="red")], [GREEN]]
    assert run_all(rows, root=tmp_path) == 1
    told = capsys.readouterr().out
    assert "never" not in told and "green | all well" in told
    end = told.partition("red is red (exit status 3). It ended with:\n")[2]
    assert end.split()[0] == "960" and "    999\n" in end
    assert re.search(r"^built on it +0:00  not run; it needs red$", end, re.MULTILINE)
    assert re.search(r"^red +\d:\d\d  RED$", end, re.MULTILINE)


def test_steps_of_a_row_run_side_by_side(tmp_path):
    begun = time.monotonic()
    waits = "import pathlib, time\npathlib.Path({!r}).touch()\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.01)"
    pair = [step("a", waits.format("a", "b")), step("b", waits.format("b", "a"))]
    assert run_all([pair], root=tmp_path) == 0
    assert time.monotonic() - begun < 60


def test_a_command_that_is_not_there_is_red(capsys, tmp_path):
    assert run_all([[Step("none", ("no-such-command",))], [GREEN]], root=tmp_path) == 1
    assert "no-such-command" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "=========== 1 failed, 2 passed, 3 skipped in 4.56s ===========",
        "======= 1 failed, 2 passed, 3 skipped in 83.45s (0:01:23) =======",
        "1 failed, 2 passed, 3 skipped in 4.56s",
    ],
)
def test_what_all_runs_of_pytest_say_is_the_last_line_and_in_its_form(line, capsys, tmp_path):
    red = step("red", f"print({line!r}); raise SystemExit(1)")
    green = step("green", "print('===== 10 passed, 1 warning in 0.20s =====')")
    assert run_all([[red], [green]], root=tmp_path) == 1
    told = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"=+ 1 failed, 12 passed, 3 skipped, 1 warning in [\d.]+s \(0:00:\d\d\) =+", told[-1])
    assert line.strip("= ") in next(row for row in told if re.match(r"red +\d:\d\d", row))


def test_a_red_step_without_tests_is_an_error_in_the_last_line():
    done = [Done("lint", 1.0, 1), Done("types", 1.0, None), Done("test", 1.0, 0, (), ("5 passed in 1.00s",))]
    assert closing_line(done, 3.0) == "==== 5 passed, 2 errors in 3.00s (0:00:03) ===="
    assert closing_line(done[:1], 3661.0) == "==== 1 error in 3661.00s (1:01:01) ===="
    assert closing_line([Done("lint", 1.0, 0)], 1.0) == "==== no tests ran in 1.00s (0:00:01) ===="
