"""AblationLab: what is stored of the runs is what a reader sees, and its sentences are true of them."""

import re

import numpy as np
import pytest
from browser import open_figures, read_out, unfold

from minimind_edu.figures import AblationLab
from minimind_edu.figures.ablation_lab import results
from minimind_edu.trained.ablations import VARIANTS, runs, runs_of
from minimind_edu.trained.ablations.lists import TASKS

MATH = "figures/ablation_lab/math"
NOTICED = [
    "whole",
    "no attention",
    "no residual",
    "no positions",
    "no feed-forward",
    "1 layer",
    "initialization 0.02",
    "300 rows",
]


def excess(name: str) -> list[float]:
    """How far each seed ends above the entropy."""
    return [run["held_out"][-1] - runs()["entropy"] for run in runs_of(name)]


def right(name: str, key: str = "accuracy") -> dict[str, float]:
    """The mean fraction of right answers over both seeds, for each task."""
    return {task: float(np.mean([run[key][task] for run in runs_of(name)])) for task in TASKS}


# The Python side


def test_every_variant_has_two_seeds_and_short_numbers():
    shown = results()
    assert list(shown["variants"]) == list(VARIANTS)
    for name, variant in shown["variants"].items():
        for seed, run in zip(variant["seeds"], runs_of(name), strict=True):
            assert seed["loss"] == [round(value, 2) for value in run["held_out"]]
            assert seed["accuracy"] == [round(run["accuracy"][task], 2) for task in TASKS]
            assert ("training" in seed) == (name == "300 rows")
    assert len(AblationLab().static_html()) < 20_000  # a page holds it twice


def test_the_table_tells_the_variant_and_the_whole_model():
    figure = AblationLab(variant="no attention")
    sentence, rows = figure._summary()
    assert "'no attention'" in sentence
    assert dict(rows)["no attention: sort 2 to 5 digits, right"] == "0.00 and 0.00"
    assert "whole: loss after training" in dict(rows)
    assert len(AblationLab(variant="whole")._summary()[1]) == len(rows) / 2, "the whole model is told once"


# In the browser


@pytest.fixture
def lab(page):
    open_figures(page, AblationLab())
    return page


def test_its_numbers_are_those_of_the_stored_runs(node):
    shown = results()
    calls = [[shown, name] for name in VARIANTS]
    for name, (low, high) in zip(VARIANTS, node.each(MATH, "excessOf", calls), strict=True):
        assert [low, high] == pytest.approx([min(excess(name)), max(excess(name))], abs=0.006)
    for key in ("accuracy", "longer"):
        calls = [[shown, name, key] for name in VARIANTS]
        for name, rows in zip(VARIANTS, node.each(MATH, "accuracyRows", calls), strict=True):
            means = [np.mean(row["seeds"]) for row in rows]
            assert means == pytest.approx(list(right(name, key).values()), abs=0.006)


def test_the_sample_is_a_wrong_answer_where_there_is_one(node):
    shown = results()
    samples = node.each(MATH, "sampleOf", [[shown, name] for name in VARIANTS])
    for name, (prompt, said, answer) in zip(VARIANTS, samples, strict=True):
        asked = range(len(shown["prompts"]) - 1)
        seeds = shown["variants"][name]["seeds"]
        has_wrong = any(seed["said"][i] != shown["answers"][i] for seed in seeds for i in asked)
        assert (said != answer) == has_wrong
        assert shown["answers"][shown["prompts"].index(prompt)] == " ".join(answer)


def test_taking_something_away_changes_curves_bars_sample_and_words(lab):
    drawings, verdicts = set(), set()
    for name in NOTICED:
        lab.get_by_label(name.replace("initialization", "init"), exact=True).check()
        curves, bars = lab.locator(".al-stage svg").all()
        losses = " and ".join(f"{run['held_out'][-1]:.2f}" for run in runs_of(name))
        assert losses in curves.get_attribute("aria-label")
        assert lab.locator(".al-training").count() == (2 if name == "300 rows" else 0)
        shares = [f"{100 * share:.0f} %" for share in right(name).values()]
        written = bars.locator(".mm-strong").all_text_contents()
        assert [abs(float(a[:-2]) - float(b[:-2])) <= 1 for a, b in zip(written, shares, strict=True)] == [True] * 3
        assert read_out(lab)["parameters"] == f"{runs_of(name)[0]['parameters']:,}"
        drawings.add(curves.inner_html())
        verdicts.add(lab.locator(".mm-verdict").inner_text())
    assert len(drawings) == len(verdicts) == len(NOTICED)


def test_wrong_words_are_marked_and_right_ones_are_not(lab):
    lab.get_by_label("no attention", exact=True).check()
    assert lab.locator(".al-sample b").count() > 0
    open_figures(lab, AblationLab(variant="whole"))
    said = [run["said"][:3] for run in runs_of("whole")]
    assert (lab.locator(".al-sample b").count() == 0) == all(words == runs()["answers"][:3] for words in said)


def test_the_folded_changes_write_the_same_trait(lab):
    unfold(lab)
    lab.get_by_label("MQA", exact=True).check()
    assert not lab.get_by_label("no positions", exact=True).is_checked()
    assert "one key/value head" in lab.locator(".mm-verdict").inner_text().lower()
    lab.get_by_label("no positions", exact=True).check()
    assert not lab.get_by_label("MQA", exact=True).is_checked()


# What the figure says of the runs


def test_its_sentences_are_true():
    whole = max(excess("whole"))
    assert whole < 0.05 and min(right("whole").values()) > 0.85
    for name in ("no attention", "no residual", "no positions", "1 layer", "initialization 0.02", "300 rows"):
        assert min(excess(name)) > 2 * whole, name
    blind = right("no positions")
    assert blind["sort"] > 0.2 + max(blind["copy"], blind["reverse"])
    assert max(right("no attention").values()) < 0.05 and max(right("no residual").values()) < 0.2
    for run in runs_of("300 rows"):
        assert run["training"][-1] < runs()["entropy"] < run["held_out"][-1]


def test_what_is_folded_changes_little_but_for_learned_positions():
    """A tenth of a nat is about what two seeds of one variant differ by."""
    for name in set(VARIANTS) - set(NOTICED) - {"learned positions"}:
        assert max(excess(name)) < 0.1, name
    assert min(excess("learned positions")) > 0.2
    order = right("learned positions")
    assert order["sort"] > 0.3 + max(order["copy"], order["reverse"])


def test_the_words_name_every_variant():
    source = AblationLab._esm
    [table] = re.findall(r"variants: \{(.*?)\}", source, re.DOTALL)
    named = [quoted or bare for quoted, bare in re.findall(r'^(?:"([^"]+)"|(\w+)): "', table, re.MULTILINE)]
    assert named == list(VARIANTS)
