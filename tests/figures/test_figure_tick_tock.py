"""TickTock: every setting shows the leads that the rows make, and with one table both are never right."""

import itertools

import pytest
import torch
from browser import open_figures, settle

from minimind_edu.figures import TickTock
from minimind_edu.figures.tick_tock import EDGE

MATH = "figures/tick_tock/math"
ROWS = [[2.0, 0.0], [1.0, 2.0], [-1.5, 0.3], [0.0, -3.0]]
MODELS = ("one", "two", "block")


def state_of(figure: TickTock) -> dict:
    return {name: getattr(figure, name) for name in ("model", "tick", "tock", "reads_tick", "reads_tock", "angle")}


@pytest.mark.parametrize("model", MODELS)
def test_leads_are_differences_of_products(node, model):
    for tick, tock in itertools.permutations(ROWS, 2):
        figure = TickTock(model=model, tick=tick, tock=tock, reads_tick=tock, reads_tock=[1.0, 1.0], angle=90)
        a, b = torch.tensor(tick), torch.tensor(tock)
        turned = [torch.stack([-row[1], row[0]]) for row in (a, b)]
        read = {"one": [a, b], "two": [b, torch.ones(2)], "block": turned}[model]
        wanted = [float(read[0] @ b - read[0] @ a), float(read[1] @ a - read[1] @ b)]
        assert figure.leads().tolist() == pytest.approx(wanted, abs=1e-5)
        assert node.call(MATH, "leadsOf", [state_of(figure)]) == pytest.approx(wanted, abs=1e-5)


def test_one_table_is_never_right_twice():
    points = torch.linspace(-EDGE, EDGE, 13).tolist()
    all_rows = [list(row) for row in itertools.product(points, points)]
    random = torch.Generator().manual_seed(0)
    for pick in torch.randint(0, len(all_rows), (500, 2), generator=random).tolist():
        tick, tock = (all_rows[i] for i in pick)
        leads = TickTock(tick=tick, tock=tock).leads()
        apart = (torch.tensor(tick) - torch.tensor(tock)).square().sum()
        assert leads.sum().item() == pytest.approx(-float(apart), abs=1e-4)
        assert leads.min() <= 0


def test_two_tables_and_one_block_are_right_twice():
    assert TickTock(model="two", reads_tick=[1, 2], reads_tock=[2, 0]).leads().tolist() == [3, 2]
    assert TickTock(model="block", angle=180).leads().tolist() == pytest.approx([2, 3])
    assert TickTock(model="two").leads().tolist() == TickTock().leads().tolist() == [-2, -3]


def test_a_chance_is_that_of_the_softmax(node):
    for lead in (-3.0, 0.0, 1.5):
        assert node.call(MATH, "chanceOf", [lead]) == pytest.approx(torch.tensor([lead, 0.0]).softmax(0)[0].item())


def test_an_area_lies_beyond_the_tip(node):
    assert sorted(node.call(MATH, "beyond", [[2, 0], [1, 0], 3])) == [[2, -3], [2, 3], [3, -3], [3, 3]]
    assert sorted(node.call(MATH, "beyond", [[2, 0], [-1, 0], 3])) == [[-3, -3], [-3, 3], [2, -3], [2, 3]]
    assert node.call(MATH, "beyond", [[2, 2], [1, 1], 1]) == []


READ = """() => ({
    bars: [...document.querySelectorAll(".tk-bar")].map((bar) => bar.querySelector(".mm-bar-number").innerText),
    sum: document.querySelector(".tk-sum b").innerText,
    verdict: document.querySelector(".tk-verdict").innerText,
    areas: [...document.querySelectorAll(".tk-place")].map((area) => area.dataset.tone) })"""


@pytest.mark.parametrize("model", MODELS)
def test_each_combination_of_the_switches_says_what_the_rows_make(page, model):
    """The lesson test: every model, with rows of which none, one and both predictions are right where they can be."""
    seen = set()
    for tick, tock, angle in itertools.product(ROWS[:2], [ROWS[1], [2.6, 1.2], ROWS[2]], (0, 180)):
        figure = TickTock(model=model, tick=tick, tock=tock, reads_tick=tock, reads_tock=tick, angle=angle)
        open_figures(page, figure)
        settle(page)
        read, leads = page.evaluate(READ), figure.leads()
        right = (leads > 1e-9).tolist()
        signs = [f"{lead + 0.0:z.1f} {'✓' if one else '✗'}" for lead, one in zip(leads.tolist(), right, strict=True)]
        assert [bar.replace("−", "-") for bar in read["bars"]] == signs
        assert read["sum"].replace("−", "-") == f"{leads.sum().item():z.1f}"
        assert read["areas"] == ["good" if one else "bad" for one in right]
        said = {0: "Neither is right.", 1: "and wrong after the other.", 2: "Both are right."}[sum(right)]
        assert said in read["verdict"]
        seen.add(sum(right))
    assert seen >= ({0, 1} if model == "one" else {0, 2}) and (2 in seen) == (model != "one")


def test_tips_are_dragged_and_moved_by_keys(page):
    open_figures(page, TickTock())
    settle(page)
    tip = page.get_by_role("slider", name="row of tock", exact=True)
    box, plane = tip.bounding_box(), page.locator(".tk-paper").bounding_box()
    unit = plane["width"] / (2 * EDGE)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 2 * unit, y + unit, steps=4)
    page.mouse.up()
    settle(page)
    read = page.evaluate(READ)
    assert read["bars"] == ["2.0 ✓", "−4.0 ✗"] and read["sum"] == "−2.0"
    tip.press("ArrowUp")
    tip.press("Shift+ArrowLeft")
    assert tip.get_attribute("aria-valuetext") == "(2.5, 1.1)"


def test_only_what_a_model_has_can_be_moved(page):
    shown = {}
    for model in MODELS:
        open_figures(page, TickTock(model=model))
        settle(page)
        shown[model] = page.get_by_role("slider").count()
    assert shown == {"one": 2, "two": 4, "block": 3}


def test_its_sentence_says_the_leads():
    sentence, rows = TickTock(model="block", angle=180)._summary()
    assert "one table and a block" in sentence
    assert dict(rows) == {
        "after tick, tock leads by": "2.0",
        "after tock, tick leads by": "3.0",
        "both together": "5.0",
    }
