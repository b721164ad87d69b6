"""RouterFlow: what is stored of the runs is what a reader sees, wherever the slider and the switches are."""

import itertools

import numpy as np
import pytest
from browser import open_figures, read_out, settle, unfold

from minimind_edu.figures import RouterFlow
from minimind_edu.figures.router_flow import results
from minimind_edu.trained.routing import SEEDS, STOPS, TOP_K, busiest, run_of, words

MATH = "figures/router_flow/math"
FIRST = 50  # the step that it shows first


def block_at(step: int, balanced: bool, top_k: int = 1, block: int = 2, seed: int = 0) -> dict:
    """What is stored of one block at one moment."""
    return run_of(top_k, balanced, seed)["looks"][STOPS.index(step)]["blocks"][block - 1]


# The Python side


def test_what_is_drawn_is_what_is_stored():
    shown = results()
    assert shown["words"] == words() and shown["stops"] == list(STOPS)
    for short in shown["runs"]:
        run = run_of(short["top_k"], short["balanced"], short["seed"])
        for drawn, stored in zip(short["looks"], run["looks"], strict=True):
            assert drawn["loss"] == pytest.approx(stored["loss"], abs=0.006)
            for one, block in zip(drawn["blocks"], stored["blocks"], strict=True):
                assert one["loads"] == pytest.approx([100 * load for load in block["loads"]], abs=0.51)
                assert [int(digit) for digit in one["experts"]] == np.ravel(block["experts"]).tolist()
                assert one["weights"] == pytest.approx(100 * np.ravel(block["weights"]), abs=0.51)
    assert len(RouterFlow().static_html()) < 24_000  # a page holds it twice


def test_the_table_compares_both_trainings():
    sentence, rows = RouterFlow(step=25, block=2)._summary()
    assert "After 25 steps" in sentence and "block 2" in sentence
    for name, balanced in (("without the auxiliary loss", False), ("with it", True)):
        block = block_at(25, balanced)
        told = ", ".join(f"{100 * load:.0f} %" for load in block["loads"])
        assert dict(rows)[f"{name}: loads of the four experts"] == told
        assert dict(rows)[f"{name}: N Σ f P"] == f"{block['balance']:.2f}"


# In the browser


@pytest.fixture
def flow(page):
    open_figures(page, RouterFlow())
    return page


def go_to(page, step: int) -> None:
    """Put the slider at a step."""
    page.get_by_role("slider").fill(str(STOPS.index(step)))
    settle(page)


def loads_shown(page) -> list[float]:
    return [float(text[:-2]) for text in page.locator(".mm-strong").all_text_contents()]


def test_every_word_goes_where_the_stored_router_sent_it(node):
    shown = results()
    calls = [[shown, run, 3, 1] for run in shown["runs"]]
    for run, ways in zip(shown["runs"], node.each(MATH, "waysOf", calls), strict=True):
        block = block_at(STOPS[3], run["balanced"], run["top_k"], 2, run["seed"])
        assert [way[:2] for way in ways] == [[i, e] for i, chosen in enumerate(block["experts"]) for e in chosen]
        assert [way[2] for way in ways] == pytest.approx(100 * np.ravel(block["weights"]), abs=0.51)


def test_the_course_of_the_busiest_expert_is_that_of_the_runs(node):
    shown = results()
    variants = list(itertools.product(TOP_K, (False, True), (0, 1)))
    drawn = node.each(MATH, "busiestAlong", [[shown, *variant] for variant in variants])
    for (top_k, balanced, block), courses in zip(variants, drawn, strict=True):
        stored = [[100 * load for load in busiest(run_of(top_k, balanced, seed), block)] for seed in SEEDS]
        assert np.allclose(courses, stored, atol=0.51)


def test_dragging_uncovers_the_courses_on_the_axis_of_the_whole_training(flow):
    path = "all => all.map((one) => one.getAttribute('d').slice(1).split('L').map((at) => at.split(' ').map(Number)))"
    chart, courses = flow.locator(".rf-along svg"), flow.locator("path.rf-course")
    go_to(flow, STOPS[-1])
    whole = courses.evaluate_all(path)
    assert len(whole) == 2 * len(SEEDS) and {len(course) for course in whole} == {len(STOPS)}
    for stop, step in enumerate(STOPS):
        go_to(flow, step)
        assert courses.evaluate_all(path) == [course[: stop + 1] for course in whole]  # nothing later
        ends = flow.locator(".rf-end").evaluate_all(
            "all => all.map((one) => [one.cx.baseVal.value, one.cy.baseVal.value])"
        )
        assert np.allclose(ends, [course[stop] for course in whole], atol=0.06)
        names = chart.locator("text").all_text_contents()
        assert chart.locator(".rf-step").text_content() == str(step) and names.count(str(step)) == 1
        told = chart.get_attribute("aria-label")
        for balanced in (False, True):
            loads = [100 * busiest(run_of(1, balanced, seed), 1)[stop] for seed in SEEDS]
            assert ", ".join(f"{load:.0f} %" for load in loads) in told


def test_slider_and_switch_show_the_stored_loads(flow):
    drawings = set()
    for balanced in (False, True):
        flow.get_by_role("switch").set_checked(balanced)
        for step in STOPS:
            go_to(flow, step)
            block = block_at(step, balanced)
            assert loads_shown(flow) == pytest.approx([100 * load for load in block["loads"]], abs=0.51)
            assert float(read_out(flow)["N Σ f P (even:\u00a01)"]) == pytest.approx(block["balance"], abs=0.006)
            assert flow.locator(".rf-way").count() == len(words())
            drawings.add(flow.locator(".mm-stage svg").first.inner_html())
    assert len(drawings) == 2 * len(STOPS) - 1  # before training there is no difference yet


def test_lines_are_as_thick_as_the_weights_and_bars_as_long_as_the_loads(flow):
    thick = flow.locator(".rf-way").evaluate_all("all => all.map((one) => Number(one.getAttribute('stroke-width')))")
    weights = np.ravel(block_at(FIRST, False)["weights"])
    assert np.array(thick) / thick[0] == pytest.approx(weights / weights[0], rel=0.05)
    lengths = flow.locator(".rf-bar").evaluate_all("all => all.map((one) => parseFloat(one.style.width))")
    rail = float(flow.locator(".mm-soft").first.get_attribute("width"))
    assert np.array(lengths) / rail == pytest.approx(block_at(FIRST, False)["loads"], abs=0.006)


def test_what_is_folded_changes_the_picture(flow):
    unfold(flow)
    flow.get_by_role("group", name="experts per token").get_by_label("2").check()
    assert flow.locator(".rf-way").count() == 2 * len(words())
    assert "of the choices" in flow.locator(".mm-verdict").inner_text()
    for block, seed in ((1, 0), (2, 2)):
        flow.get_by_role("group", name="block").get_by_label(str(block)).check()
        flow.get_by_role("group", name="seed").get_by_label(str(seed)).check()
        stored = block_at(FIRST, False, 2, block, seed)["loads"]
        assert loads_shown(flow) == pytest.approx([100 * load for load in stored], abs=0.51)


def test_its_sentence_names_the_busiest_expert_and_those_without_work(flow):
    for balanced in (False, True):
        flow.get_by_role("switch").set_checked(balanced)
        for step in STOPS:
            go_to(flow, step)
            told, loads = flow.locator(".mm-verdict").inner_text(), loads_shown(flow)
            assert f"{max(loads):.0f}\N{NO-BREAK SPACE}%" in told
            if max(loads) > 37.5:
                assert told.startswith(f"Expert {loads.index(max(loads)) + 1} gets")
                idle = sum(load < 5 for load in loads)
                assert (["choices", "another", "two others", "the others"][idle] in told) == bool(idle)
            else:
                assert told.startswith("Everybody has work") and min(loads) >= 5


def test_compact_the_switch_spreads_the_loads(page):
    open_figures(page, RouterFlow(compact=True))
    page.get_by_role("switch").check()
    assert loads_shown(page) == pytest.approx([100 * load for load in block_at(FIRST, True)["loads"]], abs=0.51)
