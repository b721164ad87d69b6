"""ablations.tables: what is watched, and what the stored runs show of the two tables."""

import sys

import pytest
import torch

from minimind_edu.trained.ablations import tables
from minimind_edu.trained.ablations.tables import (
    DECAY,
    ELSEWHERE,
    KINDS,
    LEARNING_RATE,
    OTHERS,
    PAIRS,
    ROWS,
    SEEDS,
    SMALL,
    STOPS,
    common_and_apart,
    cosines,
    course,
    courses,
    distance,
    doubled,
    given,
    main,
    sentences,
    trained,
    watch,
)


def test_a_sentence_takes_one_word_of_each_pair():
    text = next(sentences(0))
    assert text.shape == (ROWS, 24)
    for place, pair in enumerate(PAIRS):
        assert set(text[:, place::3].flatten().tolist()) == set(pair)
    assert torch.equal(text, next(sentences(0))) and not torch.equal(text, next(sentences(1)))


def test_rows_are_what_they_have_in_common_and_what_tells_them_apart():
    rows = torch.zeros(8, 2)
    for first, second in PAIRS:
        rows[first], rows[second] = torch.tensor([3.0, 1.0]), torch.tensor([3.0, -1.0])
    assert common_and_apart(rows) == (3.0, 1.0)
    assert common_and_apart(5 * rows) == (15.0, 5.0)


def test_what_scoring_has_is_given_to_the_table_that_reads():
    """Common 1 and apart 1 make a cosine of 0; three times the common part and half the difference are given."""
    rows = {name: torch.zeros(8, 2) for name in ("reading", "scoring")}
    for name, (common, apart) in {"reading": (1.0, 1.0), "scoring": (3.0, 1.0)}.items():
        for first, second in PAIRS:
            rows[name][first], rows[name][second] = torch.tensor([common, apart]), torch.tensor([common, -apart])
    begin = {"reading": rows["reading"], "scoring": 2 * rows["scoring"]}
    wanted = {"apart": (1 - 0.25) / (1 + 0.25), "common": (9 - 1) / (9 + 1), "both": (9 - 0.25) / (9 + 0.25)}
    assert given(begin, rows) == pytest.approx(wanted)


def test_a_difference_is_doubled_in_one_table_and_the_model_is_left_as_it_was():
    *_, (_, model, live) = trained(0, steps=2)
    rows = {name: table.detach().clone() for name, table in live.items()}
    half = {name: table / 2 for name, table in rows.items()}
    assert doubled(model, live, half, seed=5) == {name: pytest.approx(0) for name in rows}  # twice a half
    further = doubled(model, live, {name: 50 * table for name, table in rows.items()}, seed=5)
    assert min(further.values()) > 0.1
    assert all(torch.equal(table, rows[name]) for name, table in live.items())


@pytest.mark.long
def test_scoring_ends_with_more_in_common_and_less_apart():
    """What chapter 11 says of two tables, in another seed than the one that it trains."""
    *_, (_, ends) = watch(seed=3)
    (common, apart), (more, less) = (common_and_apart(ends[name]) for name in ("reading", "scoring"))
    assert more > 1.5 * common and less < 0.8 * apart


def test_others_are_all_couples_that_are_no_pair():
    words = {word for pair in PAIRS for word in pair}
    couples = {frozenset((a, b)) for a in words for b in words if a != b}
    assert {frozenset(couple) for couple in OTHERS} == couples - {frozenset(pair) for pair in PAIRS}
    assert len(OTHERS) == 12


def test_the_rows_are_those_of_the_tables_before_and_after_a_step():
    looks = list(watch(0, tied=True, steps=20))
    assert [step for step, _ in looks] == [0, 20]
    assert all(list(look) == ["scoring"] for _, look in looks)
    assert looks[0][1]["scoring"].shape == (8, 32)
    assert not torch.equal(looks[0][1]["scoring"], looks[1][1]["scoring"])
    apart = next(watch(0))[1]
    assert torch.equal(apart["reading"], looks[0][1]["scoring"])  # the same seed begins with the same table
    assert not torch.equal(apart["reading"], apart["scoring"])


def test_a_swap_changes_one_thing():
    usual, small = next(watch(0))[1], next(watch(0, small=SMALL))[1]
    assert torch.allclose(small["reading"], SMALL * usual["reading"])
    assert torch.equal(small["scoring"], usual["scoring"])
    with_decay, without = (list(watch(0, decay=decay, steps=20))[-1][1] for decay in (DECAY, 0.0))
    for name, rows in without.items():
        shrunk = (1 - LEARNING_RATE * DECAY) ** 20 * rows  # what is left of it, but for the steps in between
        assert with_decay[name].norm().item() == pytest.approx(shrunk.norm().item(), rel=0.03)


def test_cosines_and_distances_are_those_of_couples():
    rows = torch.zeros(2, 8, 3, dtype=torch.float64)
    rows[:, :, 0] = 1
    rows[1, [7, 6, 5], 0] = -2  # the second word of each pair
    assert cosines(rows, PAIRS).tolist() == [[1, 1, 1], [-1, -1, -1]]
    assert cosines(rows, ((0, 1), (0, 6))).tolist() == [[1, 1], [1, -1]]
    assert distance(rows).tolist() == [0, 3]


def stored_one(kind: str, seed: int) -> dict:
    [stored] = [one for one in courses() if (one["kind"], one["seed"]) == (kind, seed)]
    return stored


@pytest.mark.parametrize("kind", KINDS | ELSEWHERE)
def test_a_short_run_begins_like_the_stored_one(kind):
    stored, made = stored_one(kind, 1), course(1, kind, steps=20)
    assert set(made) == set(stored) and list(made["tables"]) == list(stored["tables"])
    for name, table in made["tables"].items():
        assert set(table) == set(stored["tables"][name])
        for key in ("pairs", "others", "distance"):
            assert torch.allclose(torch.tensor(table[key]), torch.tensor(stored["tables"][name][key][:2]), atol=0.006)


def test_a_whole_run_ends_like_the_stored_one():
    stored, made = stored_one("no block", 1), course(1, "no block")
    assert made["given"] == pytest.approx(stored["given"], abs=0.02)
    assert made["doubled"] == pytest.approx(stored["doubled"], abs=0.02)
    for name, table in made["tables"].items():
        for key, values in table.items():
            assert torch.allclose(torch.tensor(values), torch.tensor(stored["tables"][name][key]), atol=0.02), key


def test_the_last_step_is_looked_at_and_other_settings_change_the_training():
    assert [step for step, _ in watch(0, steps=30)] == [0, 20, 30]
    usual, *others = (
        list(watch(0, steps=2, **how))[-1][1]["reading"] for how in ({}, {"rate": 0.3}, {"blocks": 0}, {"adam": True})
    )
    assert all(not torch.allclose(rows, usual, atol=1e-4) for rows in others)


def test_the_program_writes_what_the_book_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "course", lambda seed, kind: {"kind": kind, "seed": seed, "tables": {}})
    monkeypatch.setattr(sys, "argv", ["tables", "--into", str(tmp_path / "new.json")])
    main()
    monkeypatch.setattr(tables, "COURSES", tmp_path / "new.json")
    assert [(one["kind"], one["seed"]) for one in courses()] == [
        (kind, seed) for kind in KINDS | ELSEWHERE for seed in SEEDS
    ]


# What the figure and the chapter say of the stored runs


def at_the_end(kind: str, name: str) -> tuple[list[float], list[float], list[float]]:
    """Of each seed: the mean cosine of pairs, that of others, and what became of the distance."""
    runs = [one["tables"][name] for one in courses() if one["kind"] == kind]
    assert kind not in KINDS or all(len(run["distance"]) == len(STOPS) for run in runs)
    assert len(runs) == len(SEEDS)
    pairs, others = ([sum(run[key][-1]) / len(run[key][-1]) for run in runs] for key in ("pairs", "others"))
    return pairs, others, [run["distance"][-1] / run["distance"][0] for run in runs]


@pytest.mark.parametrize("kind", KINDS | ELSEWHERE)
def test_both_tables_learn_who_is_alike(kind):
    margin = 0.25 if kind in KINDS else 0
    for name in ("scoring",) if kind == "one" else ("reading", "scoring"):
        pairs, others, _ = at_the_end(kind, name)
        assert all(alike > other + margin for alike, other in zip(pairs, others, strict=True)), (kind, name)


def test_only_scoring_removes_the_difference_unless_something_else_does():
    reading, scoring = (at_the_end("two", name) for name in ("reading", "scoring"))
    assert max(scoring[2]) < 0.7 < 0.75 < min(reading[2])
    for swap in ("small", "decay"):
        assert min(at_the_end(swap, "reading")[0]) > max(reading[0]) + 0.15
    assert max(at_the_end("decay", "reading")[2]) < 0.7


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_scoring_removes_more_of_the_difference_elsewhere_too(kind):
    reading, scoring = (sum(at_the_end(kind, name)[2]) for name in ("reading", "scoring"))
    assert scoring < reading


@pytest.mark.parametrize("kind", ("two", *ELSEWHERE))
def test_twice_the_difference_costs_more_where_it_is_scored(kind):
    costs = [one["doubled"] for one in courses() if one["kind"] == kind]
    scoring, reading = (sum(cost[name] for cost in costs) / len(SEEDS) for name in ("scoring", "reading"))
    assert scoring > {"two": 10, "Adam, decay": 1}.get(kind, 2) * reading
