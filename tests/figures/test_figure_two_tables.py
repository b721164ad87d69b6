"""TwoTables: a page shows the cosines that were stored, of pairs and of others."""

import numpy as np
import pytest
from browser import open_figures, read_out, settle

from minimind_edu.figures import TwoTables
from minimind_edu.figures.two_tables import results
from minimind_edu.trained.ablations.tables import KINDS, SEEDS, STOPS, courses

MATH = "figures/two_tables/math"
LAST = STOPS[-1]


def stored(kind: str, table: str, name: str, at: int) -> np.ndarray:
    """Of all seeds, the numbers `name` of a table at a stop."""
    return np.array([one["tables"][table][name][at] for one in courses() if one["kind"] == kind])


def names_of(kind: str) -> list[str]:
    return ["scoring"] if kind == "one" else ["reading", "scoring"]


def test_the_sentence_compares_the_tables():
    sentence, rows = TwoTables(step=LAST)._summary()
    assert f"after {LAST} steps" in sentence
    assert [name for name, _ in rows] == ["the reading table", "the scoring table"]
    assert [name for name, _ in TwoTables(kind="one")._summary()[1]] == ["the one table"]
    assert len(TwoTables().static_html()) < 12_000


@pytest.mark.parametrize("kind", KINDS)
def test_dots_means_and_distances_are_the_stored_ones(node, kind):
    for at in range(len(STOPS)):
        drawn = node.call(MATH, "tablesOf", [results(), kind, at])
        assert [table["name"] for table in drawn] == names_of(kind)
        for table in drawn:
            for couples in ("pairs", "others"):
                wanted = stored(kind, table["name"], couples, at).mean(1)  # of each seed
                assert np.allclose(table["dots"][couples], wanted, atol=0.0051)
                assert table["means"][couples] == pytest.approx(wanted.mean(), abs=0.0051)
            first, now = (stored(kind, table["name"], "distance", i).mean() for i in (0, at))
            assert table["grown"] == pytest.approx(now / first, abs=0.01)


READ = """() => ({
    pairs: document.querySelectorAll('.tt-dot[data-couples="pairs"]').length,
    others: document.querySelectorAll('.tt-dot[data-couples="others"]').length,
    verdict: document.querySelector(".tt-verdict").innerText })"""


@pytest.mark.parametrize("kind", KINDS)
def test_each_combination_of_the_switches_says_what_is_stored(page, kind):
    open_figures(page, TwoTables(kind=kind))
    settle(page)
    for at in (0, 4, len(STOPS) - 1):
        page.get_by_role("slider").fill(str(at))
        settle(page)
        read = page.evaluate(READ)
        tables = names_of(kind)
        assert read["pairs"] == len(tables) * len(SEEDS)
        assert read["others"] == len(tables) * len(SEEDS)
        said = read["verdict"].replace("−", "-").rstrip(".").split(". ")
        for sentence, table in zip(said, tables, strict=True):
            alike, others = (float(part.split()[-1]) for part in sentence.split(", "))
            assert alike == pytest.approx(stored(kind, table, "pairs", at).mean(), abs=0.011)
            assert others == pytest.approx(stored(kind, table, "others", at).mean(), abs=0.011)
        grown = [float(number.removeprefix("× ")) for number in read_out(page).values()]
        for number, table in zip(grown, tables, strict=True):
            first, now = (stored(kind, table, "distance", i).mean() for i in (0, at))
            assert number == pytest.approx(now / first, abs=0.011)


def test_a_dot_lies_at_its_cosine(page):
    open_figures(page, TwoTables(step=LAST))
    settle(page)
    at = page.locator(".tt-dot").evaluate_all("all => all.map((dot) => Number(dot.getAttribute('cx')))")
    ends = page.locator(".mm-level").first.evaluate("one => ['x1', 'x2'].map((end) => Number(one.getAttribute(end)))")
    wanted = stored("two", "reading", "pairs", len(STOPS) - 1).mean(1)
    places = [ends[0] + (cosine + 1) / 2 * (ends[1] - ends[0]) for cosine in wanted]
    assert np.allclose(at[: len(places)], places, atol=0.01 * (ends[1] - ends[0]))


def test_the_kinds_are_chosen(page):
    open_figures(page, TwoTables(step=LAST))
    settle(page)
    page.get_by_role("group", name="model").get_by_label("one table").check()
    settle(page)
    assert list(read_out(page)) == ["distance, one table"]
