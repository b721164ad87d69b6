"""LongerText: at every setting the stored losses, the distances of the package and its angles."""

import itertools
import re

import pytest
import torch
from browser import open_figures, settle

from minimind_edu.figures import LongerText
from minimind_edu.figures.longer_text import LAST_WORDS, losses
from minimind_edu.trained.living import STORED
from minimind_edu.trained.living.stretching import LONGER, STRETCHES, results, rotations, scales

MATH = "figures/longer_text/math"
SETTINGS = [*itertools.product(STRETCHES, (False, True))]


def way(is_far: bool) -> str:
    return "far" if is_far else "pairs"


@pytest.fixture(scope="module")
def stored():
    return LongerText().stored


def test_the_figure_has_the_means_of_what_was_measured():
    for name, of in itertools.product(STORED, ("pairs", "far")):
        measured = results()[name][of]
        for shown, wanted in (("mean", measured.mean(1)), ("spread", measured.std(1))):
            torch.testing.assert_close(torch.tensor(losses()[name][of][shown]).double(), wanted, atol=6e-4, rtol=0)


def test_words_are_seen_where_the_package_says(node, stored):
    for stretch, is_far in SETTINGS:
        scale, near = scales(stretch, way(is_far))
        figure = LongerText(stretch=stretch, far=is_far)
        distances = [0, 10, 48, 49, 96, 200, LONGER]
        seen = node.each(MATH, "seenAt", [[stored, distance, stretch, is_far] for distance in distances])
        wanted = [min(d, near) + max(0, d - near) * scale[-1].item() for d in distances]
        assert seen == pytest.approx(wanted)
        assert [figure.seen(d) for d in distances] == pytest.approx(wanted)


def test_dials_show_the_angles_of_training_and_the_new_ones(node, stored):
    for (stretch, is_far), word in itertools.product(SETTINGS, LAST_WORDS):
        scale, near = scales(stretch, way(is_far))
        known = rotations().clamp(max=1)
        farthest = (near + (word - near) * scale) / 96 * rotations()
        shares = torch.tensor(node.call(MATH, "sharesOf", [stored, stretch, is_far, word]), dtype=torch.float64)
        torch.testing.assert_close(shares[:, 0], known, atol=1e-5, rtol=0)
        torch.testing.assert_close(shares[:, 1], farthest.clamp(max=1).maximum(known), atol=1e-4, rtol=0)


def test_the_best_stretch_of_each_quarter_is_the_least_of_its_column(node):
    for name, of in itertools.product(STORED, ("pairs", "far")):
        best = node.call(MATH, "bestOf", [losses()[name][of]["mean"]])
        least = results()[name][of].mean(1).amin(0)
        chosen = results()[name][of].mean(1)[[at - 1 for at in best], range(4)]
        torch.testing.assert_close(chosen, least, atol=1e-3, rtol=0)


def test_the_table_tells_the_losses_by_stretch():
    _, rows = LongerText(stretch=6, model="twin")._summary()
    told = {int(re.search(r"\d", label)[0]): [float(x) for x in value.split(", ")] for label, value in rows}
    assert list(told) == [1, 2, 3, 4, 6, 8]
    for stretch, quarters in told.items():
        wanted = results()["twin"]["pairs"][stretch - 1].mean(0).tolist()
        assert quarters == pytest.approx(wanted, abs=0.006)


# In the browser

READ = """() => ({
    bars: [...document.querySelectorAll("svg text")].map((one) => one.textContent)
        .filter((one) => /^\\d\\.\\d\\d$/.test(one)),
    heights: [...document.querySelectorAll(".lt-bar")].map((one) => Number(one.getAttribute("height"))),
    strong: [...document.querySelectorAll("text.mm-strong")].map((one) => one.textContent),
    lines: document.querySelectorAll(".lt-line").length,
    beyond: document.querySelectorAll(".lt-line.lt-new").length,
    red: document.querySelectorAll(".lt-beyond").length,
    tops: [...document.querySelectorAll(".lt-line")].map((one) => Number(/^M([\\d.]+)/.exec(one.getAttribute("d"))[1])),
    reads: [...document.querySelectorAll(".lt-bar")].map((one) => one.classList.contains("lt-reads")),
    verdict: document.querySelector(".lt-verdict")?.innerText,
})"""


def shown(page) -> dict:
    settle(page)
    return page.evaluate(READ)


def check(read: dict, name: str, stretch: int, is_far: bool, word: int = LONGER) -> None:
    """The bars and lines of a setting are those that were measured, as far apart as they were."""
    means = losses()[name][way(is_far)]["mean"]
    quarters = means[stretch - 1]
    assert [float(text) for text in read["bars"]] == pytest.approx(quarters, abs=0.0051)
    unit = read["heights"][3] / quarters[3]
    assert read["heights"] == pytest.approx([unit * loss for loss in quarters], abs=0.1)
    columns = zip(*means, strict=True)  # of each quarter; of stretches that are equal, the first is its best
    best = [column.index(min(column)) == stretch - 1 for column in columns]
    assert len(read["strong"]) == sum(best)
    figure = LongerText(stretch=stretch, far=is_far)
    beyond = sum(figure.seen(distance) > 96 + 1e-6 for distance in range(24, word + 1, 24))
    assert (read["lines"], read["beyond"]) == (word // 24, beyond)
    assert read["reads"] == [last == word for last in LAST_WORDS]


@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("is_far", [False, True])
def test_each_combination_of_the_switches_shows_what_was_measured(page, name, is_far):
    """The lesson test, by the controls themselves."""
    open_figures(page, LongerText(shows="far"))
    page.get_by_role("group", name="model").get_by_label({"living": "the book's", "twin": "its twin"}[name]).check()
    page.get_by_role("switch").set_checked(is_far)
    means = losses()[name]
    for stretch in STRETCHES:
        page.get_by_role("slider").fill(str(stretch))
        read = shown(page)
        check(read, name, stretch, is_far)
        assert read["red"] == (11 if stretch < 4 else 0)
        quarters = means[way(is_far)]["mean"][stretch - 1]
        if is_far:
            assert (
                f"{quarters[3]:.2f}" in read["verdict"]
                and f"{means['pairs']['mean'][stretch - 1][3]:.2f}" in read["verdict"]
            )
        elif stretch <= 4:
            assert f"words {96 * stretch - 95} to {96 * stretch}: {quarters[stretch - 1]:.2f}" in read["verdict"]
        else:
            assert "more than this text needs" in read["verdict"]


def test_at_the_head_of_the_chapter_each_stretch_shows_the_same(page):
    open_figures(page, LongerText(compact=True))
    assert page.get_by_role("switch").count() == 0
    for stretch in STRETCHES:
        page.get_by_role("slider").fill(str(stretch))
        check(shown(page), "living", stretch, False)


def test_a_word_looks_back_at_the_words_before_it_where_they_stand(page):
    """The fan is on the axis of the bars, and red where the stretch is less than the number of the quarter."""
    open_figures(page, LongerText())
    before = None
    for word, stretch in itertools.product(LAST_WORDS, (1, 2, 3, 4)):
        page.get_by_role("group", name="looks back from word").get_by_label(str(word), exact=True).check()
        page.get_by_role("slider").fill(str(stretch))
        read = shown(page)
        check(read, "living", stretch, False, word)
        assert (read["beyond"] == 0) == (96 * stretch >= word)
        assert (read["red"] == 0) == (96 * stretch >= word)
        before = before or sorted(read["tops"])
        assert min(read["tops"]) == before[0]  # the first word of the text stays in its place


def test_the_switch_for_far_words_is_there_where_the_section_speaks_of_it(page):
    open_figures(page, LongerText())
    assert page.get_by_role("switch").count() == 0
    open_figures(page, LongerText(shows="far"))
    assert page.get_by_role("switch").count() == 1
