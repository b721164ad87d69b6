"""ablations.tables: what is watched, how it is drawn flat, and what the stored runs show of the two tables."""

import sys

import pytest
import torch

from minimind_edu.trained.ablations import tables
from minimind_edu.trained.ablations.tables import (
    PAIRS,
    ROWS,
    SEEDS,
    STOPS,
    course,
    courses,
    distances,
    in_plane,
    main,
    sentences,
    watch,
)


def test_a_sentence_takes_one_word_of_each_pair():
    text = next(sentences(0))
    assert text.shape == (ROWS, 24)
    for place, pair in enumerate(PAIRS):
        assert set(text[:, place::3].flatten().tolist()) == set(pair)
    assert torch.equal(text, next(sentences(0))) and not torch.equal(text, next(sentences(1)))


def test_the_rows_are_those_of_the_tables_before_and_after_a_step():
    looks = list(watch(0, tied=True, steps=10))
    assert [step for step, _ in looks] == [0, 10]
    for _, look in looks:
        assert look["reading"].shape == (3, 2, 32) and torch.equal(look["reading"], look["scoring"])
    assert not torch.equal(looks[0][1]["reading"], looks[1][1]["reading"])
    apart = list(watch(0, tied=False, steps=0))[0][1]
    assert torch.equal(apart["reading"], looks[0][1]["reading"])  # the same seed begins with the same table
    assert not torch.equal(apart["reading"], apart["scoring"])


def test_the_flat_picture_keeps_the_distance_within_each_pair():
    rows = torch.randn(4, 3, 2, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    flat = in_plane(rows)
    assert torch.allclose(distances(flat), distances(rows))
    middles, places = rows.mean(2), flat.mean(2)
    shown = (places - places.mean((0, 1))).square().sum()
    all_of_it = (middles - middles.mean((0, 1))).square().sum()
    chosen = [(middles - middles.mean((0, 1)))[..., i : i + 2].square().sum() for i in range(31)]
    assert max(chosen) < shown < all_of_it  # no two channels show as much as the two directions


def test_a_short_run_begins_like_the_stored_one():
    made, stored = course(1, tied=False, steps=10), courses()[1]
    assert set(made) == set(stored) and (stored["seed"], stored["tied"]) == (1, False)
    for name, table in made["tables"].items():
        assert len(table["points"]) == len(table["distances"]) == 2
        assert table["distances"] == pytest.approx(stored["tables"][name]["distances"][:2], abs=0.006)


def test_the_program_writes_what_the_book_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "course", lambda seed, tied: {"seed": seed, "tied": tied, "tables": {}})
    monkeypatch.setattr(sys, "argv", ["tables", "--into", str(tmp_path / "new.json")])
    main()
    monkeypatch.setattr(tables, "COURSES", tmp_path / "new.json")
    assert [(one["tied"], one["seed"]) for one in courses()] == [(tied, s) for tied in (False, True) for s in SEEDS]


# What the figure and the chapter say of the stored runs


def test_scoring_rows_fall_together_reading_rows_stay_apart_and_a_tied_table_falls_together_too():
    for one in courses():
        reading, scoring = (one["tables"][name]["distances"] for name in ("reading", "scoring"))
        assert len(reading) == len(scoring) == len(STOPS)
        if one["tied"]:
            assert reading == scoring and scoring[-1] < 0.75 * scoring[0]
        else:
            assert scoring[-1] < 0.3 * scoring[0]
            assert 0.95 * reading[0] < min(reading) and max(reading) < 1.35 * reading[0]
