"""TwoTables: a page shows the rows that were stored, as far apart as they were."""

import numpy as np
import pytest
from browser import open_figures, read_out, settle, unfold

from minimind_edu.figures import TwoTables
from minimind_edu.figures.two_tables import results
from minimind_edu.trained.ablations.tables import PAIRS, SEEDS, STOPS, courses

MATH = "figures/two_tables/math"


def stored(tied: bool, seed: int = 0) -> dict:
    [one] = [one for one in courses() if (one["tied"], one["seed"]) == (tied, seed)]
    return one["tables"]


def test_the_sentence_compares_the_tables():
    sentence, rows = TwoTables(step=200)._summary()
    assert "after 200 steps" in sentence
    assert dict(rows)["the scoring table"] == "0.75, now 0.17"
    assert [name for name, _ in rows] == ["the reading table", "the scoring table", "the tied table"]
    assert len(TwoTables().static_html()) < 16_000


def test_ways_lead_through_the_stored_points(node):
    shown = results()
    for tied in (False, True):
        for seed in SEEDS:
            run = node.call(MATH, "runOf", [shown, tied, seed])
            assert set(run["tables"]) == ({"scoring"} if tied else {"reading", "scoring"})
            for name, table in run["tables"].items():
                ways = node.call(MATH, "waysOf", [table, len(STOPS) - 1, len(PAIRS)])
                points = np.array(stored(tied, seed)[name]["points"])  # [stop, pair, word, 2]
                assert np.allclose(ways, points.transpose(1, 2, 0, 3), atol=0.006)
    reach = node.call(MATH, "reachOf", [shown])
    every = [abs(x) for one in courses() for t in one["tables"].values() for x in np.ravel(t["points"])]
    assert reach == pytest.approx(max(every), abs=0.006)


@pytest.fixture
def tables(page):
    open_figures(page, TwoTables())
    return page


def lengths_of_pairs(page) -> list[float]:
    """Of the lines that join the pairs, in pixels."""
    return page.locator(".tt-pair").evaluate_all("all => all.map((one) => one.getTotalLength())")


def test_lines_are_as_long_as_the_distances(tables):
    tables.get_by_role("slider").fill("0")
    settle(tables)
    first = np.reshape(lengths_of_pairs(tables), (2, 3)).mean(1)
    scale = first[0] / stored(False)["reading"]["distances"][0]
    for at in (0, 4, len(STOPS) - 1):
        tables.get_by_role("slider").fill(str(at))
        settle(tables)
        for name, shown in zip(
            ("reading", "scoring"), np.reshape(lengths_of_pairs(tables), (2, 3)).mean(1), strict=True
        ):
            distances = stored(False)[name]["distances"]
            assert shown / scale == pytest.approx(distances[at], abs=0.03)
            assert read_out(tables)[f"distance, {name}"] == f"{distances[0]:.2f} → {distances[at]:.2f}"


def test_tied_there_is_one_table(tables):
    tables.get_by_role("slider").fill(str(len(STOPS) - 1))
    tables.get_by_role("switch").check()
    assert tables.locator(".tt-pair").count() == 3
    assert "for free" in tables.locator(".mm-verdict").inner_text()
    assert read_out(tables) == {"distance, one table": "0.81 → 0.17"}


def test_its_sentence_says_what_can_be_seen(tables):
    unfold(tables)
    for seed in SEEDS:
        tables.get_by_role("group", name="seed").get_by_label(str(seed)).check()
        for at, distance in enumerate(stored(False, seed)["scoring"]["distances"]):
            tables.get_by_role("slider").fill(str(at))
            settle(tables)
            told = tables.locator(".mm-verdict").inner_text()
            first = stored(False, seed)["scoring"]["distances"][0]
            assert ("has learned who is alike" in told) == (distance <= 0.45 * first)
            assert ("Before training" in told) == (at == 0)
