"""ablations.rates: every variant at two other rates, and what is stored comes from this program."""

import json
import sys

import pytest

from minimind_edu.trained.ablations import RECIPE, VARIANTS, runs, runs_of
from minimind_edu.trained.ablations import rates as program
from minimind_edu.trained.ablations.lists import TASKS


def test_the_losers_are_stored_at_both_rates():
    stored = [(run["variant"], run["rate"]) for run in program.runs()]
    rates = [round(factor * RECIPE.learning_rate, 4) for factor in program.FACTORS]
    assert stored == [(name, rate) for name in ("whole", *program.LOSERS) for rate in rates]
    assert set(program.LOSERS) < set(VARIANTS)
    for run in program.runs():
        assert run["held_out"] > runs()["entropy"] - 0.02 and list(run["accuracy"]) == list(TASKS)


@pytest.mark.long
def test_a_run_is_that_of_the_lab_but_for_the_rate():
    """At the recipe's own rate its first steps are those of the stored run of the same seed."""
    made = program.run("1 layer", 1, steps=RECIPE.steps)
    [stored] = [run for run in runs_of("1 layer") if run["seed"] == program.SEED]
    assert made["rate"] == RECIPE.learning_rate
    assert made["held_out"] == pytest.approx(stored["held_out"][-1], abs=0.03)


def test_the_program_stores_a_line_for_each_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "LOSERS", ())
    monkeypatch.setattr(program, "run", lambda name, factor: {"variant": name, "factor": factor})
    monkeypatch.setattr(sys, "argv", ["rates", "--into", str(tmp_path / "rates.json")])
    program.main()
    written = json.loads((tmp_path / "rates.json").read_text())
    assert [run["factor"] for run in written] == list(program.FACTORS)
    assert len(capsys.readouterr().out.splitlines()) == 2
