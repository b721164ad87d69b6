"""FiveSwitches: every setting of the switches shows the trainings that were stored for it, and its words are true."""

import itertools

import pytest
from browser import open_figures, settle

from minimind_edu.figures import FiveSwitches
from minimind_edu.figures.five_switches import SWITCHES, board
from minimind_edu.trained.sweeps import BOARD, SEEDS, runs
from tools.chapters import chapters

MATH = "figures/five_switches/math"
SETTINGS = [dict(zip(SWITCHES, sizes, strict=True)) for sizes in itertools.product((True, False), repeat=5)]
READ = """() => ({
    pressed: [...document.querySelectorAll(".fs-part")].map((part) => part.getAttribute("aria-pressed") === "true"),
    lines: [...document.querySelectorAll(".fs-line")].map((line) => line.getAttribute("d")),
    label: document.querySelector(".fs-plot").getAttribute("aria-label"),
    verdict: document.querySelector(".fs-verdict")?.textContent })"""


def ends(small: tuple[str, ...]) -> list[float]:
    """Where the three stored trainings end that begin with these parts small."""
    return [run["above"][-1] for run in runs()["board"] if tuple(run["small"]) == small]


def test_a_page_holds_every_training_in_short_numbers():
    shown = board()["trainings"]
    assert len(shown) == len(BOARD) and {len(seeds) for seeds in shown.values()} == {len(SEEDS)}
    assert len(FiveSwitches().static_html()) < 10_000


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "".join("Ls"[not size] for size in setting.values()))
def test_each_combination_of_the_switches_shows_its_trainings(node, setting):
    """The lesson test: what the page takes of the state is what was stored for these parts."""
    figure = FiveSwitches(**setting)
    name = node.call(MATH, "nameOf", [setting])
    stored = [run["above"] for run in runs()["board"] if tuple(run["small"]) == figure.small()]
    assert len(figure.small()) == list(setting.values()).count(False)
    for shown, kept in zip(figure.stored["trainings"][name], stored, strict=True):
        assert shown == pytest.approx(kept, abs=0.0051)
    found = node.call(MATH, "endsOf", [figure.stored, name])
    assert node.call(MATH, "learned", [found]) == sum(round(end, 2) <= 0.1 for end in ends(figure.small()))


def test_all_rows_stand_in_order_the_large_norms_apart(node):
    large, small = node.call(MATH, "inOrder", [board()])
    assert {*large, *small} == set(board()["trainings"]) and len(large) == len(small) == 16
    for names, is_small in ((large, False), (small, True)):
        assert all(("n" in name) == is_small for name in names)
        sums = [sum(node.call(MATH, "endsOf", [board(), name])) for name in names]
        assert sums == sorted(sums)


def test_the_opening_asks_and_answers_nothing_yet(page):
    """A prediction stands below it: what begins small is the reader's choice."""
    name, arguments = chapters()["chapters/13_training_in_minutes"].opening
    assert (name, arguments) == ("FiveSwitches", {"compact": True})
    open_figures(page, FiveSwitches(**arguments))
    settle(page)
    assert page.locator(".mm-title").inner_text().endswith("?")
    assert page.evaluate(READ)["pressed"] == [True] * len(SWITCHES)


def test_a_press_makes_a_part_small_and_shows_other_trainings(page):
    open_figures(page, FiveSwitches())
    settle(page)
    seen, said = set(), set()
    for i, switch in enumerate(SWITCHES):
        button = page.locator(".fs-part").nth(i)
        button.click()
        settle(page)
        read = page.evaluate(READ)
        assert read["pressed"] == [name != switch for name in SWITCHES]
        numbers = ", ".join(f"{end:.2f}" for end in ends((SWITCHES[switch],)))
        assert numbers in read["verdict"] and numbers in read["label"]
        seen.add(tuple(read["lines"]))
        said.add(read["verdict"].split(":")[0])
        button.click()
        settle(page)
    assert len(seen) == len(SWITCHES)
    assert said == {"All three seeds learn", "2 of three seeds learn", "No seed learns"}


def test_the_setting_before_stays_as_thin_lines(page):
    open_figures(page, FiveSwitches())
    settle(page)
    before = page.evaluate(READ)["lines"]
    assert page.locator(".fs-before").count() == 0
    page.locator(".fs-part").last.click()
    settle(page)
    thin = page.locator(".fs-before")
    assert [thin.nth(i).get_attribute("d") for i in range(thin.count())] == before


def test_the_chosen_row_of_all_is_marked(page):
    open_figures(page, FiveSwitches(shows="all"))
    settle(page)
    rows = page.locator(".fs-row")
    assert rows.count() == len(BOARD) and page.locator(".fs-dot").count() == len(BOARD) * len(SEEDS)
    marked = "() => [...document.querySelectorAll('.fs-row')].findIndex((row) => row.dataset.chosen === 'true')"
    first = page.evaluate(marked)
    page.locator(".fs-part").last.click()
    settle(page)
    assert page.locator(".fs-row[data-chosen=true]").count() == 1
    assert first < 16 <= page.evaluate(marked)


# What the figure says of the trainings


def test_its_titles_are_true():
    assert all(end > 0.4 for small in BOARD if "norm" in small for end in ends(small))
    assert max(ends(("q, k",))) < 0.02
    assert min(ends(("norm",))) > 0.4
    for part in ("table", "q, k", "v, o", "feed-forward"):
        assert min(ends((part,))) < 0.1, "one small kind of matrices keeps not all seeds from learning"


def test_the_table_tells_the_setting_and_each_part_alone():
    rows = dict(FiveSwitches(norm=False, table=False)._summary()[1])
    assert rows["small: table, norm"] == " ".join(f"{end:.2f}" for end in ends(("table", "norm")))
    assert {"small: nothing", *(f"small: {part}" for part in SWITCHES.values())} < rows.keys()
