"""CountedTokens: every mask and shift shows its stored training, and the rows are what the package says."""

import pytest
import torch
from browser import open_figures, settle

from minimind_edu.figures import CountedTokens
from minimind_edu.figures.counted_tokens import PROMPT, STAGES, TENTHS, pictured
from minimind_edu.model.chat import IGNORED
from minimind_edu.trained.tuning import (
    AHEAD,
    EXAMPLE_LENGTH,
    LOOKS,
    MASKS,
    PAD,
    SHIFTED,
    WORDS,
    example,
    labels_of,
    rows,
    runs,
)
from tools.chapters import chapters

MATH = "figures/counted_tokens/math"
IDS = rows([example()], EXAMPLE_LENGTH)
REAL = int((IDS != PAD).sum())
CHAT = {"first": PROMPT, "last": REAL - 1, "real": REAL, "total": EXAMPLE_LENGTH}
SETTINGS = [(mask, ahead) for ahead in AHEAD for mask in (MASKS if ahead == 1 else SHIFTED)]
READ = """() => ({
    bars: [...document.querySelectorAll(".ct-bar")].map((bar) => Number(bar.dataset.loss)),
    strong: [...document.querySelectorAll(".ct-bar")].map((bar) => bar.classList.contains("ct-strong")),
    said: document.querySelector(".ct-said")?.textContent, tone: document.querySelector(".ct-said")?.dataset.tone,
    numbers: [...document.querySelectorAll(".mm-readout dd")].map((number) => number.textContent),
    label: document.querySelector(".ct-row").getAttribute("aria-label") })"""

MESSAGES = ["user", "Mia is in the hall.", "Tom is in the attic.", "where is Mia?", "assistant", "hall"]


def stored(mask: str, ahead: int) -> dict:
    [run] = [run for run in runs()["masks"] if (run["model"], run["mask"], run["ahead"]) == ("living", mask, ahead)]
    return run


@pytest.mark.parametrize(("mask", "ahead"), SETTINGS)
def test_what_counts_is_what_the_training_counted(node, mask, ahead):
    """labels_of hands its labels to a loss that shifts them by one; the figure names what each position must say."""
    labels = labels_of(IDS, mask, ahead)[0, 1:].tolist()
    found = node.call(MATH, "labelsOf", [mask, ahead, CHAT])
    assert len(found) == len(labels)
    for label, one in zip(labels, found, strict=True):
        assert one["counts"] == (label != IGNORED)
        if one["counts"]:
            assert IDS[0, one["token"]] == label


def test_who_may_look_at_whom_is_causal_and_leaves_padding_out(node):
    looks = [[node.call(MATH, "reads", [s, t, CHAT]) for t in range(EXAMPLE_LENGTH)] for s in (0, PROMPT, 19)]
    for reader, row in zip((0, PROMPT, 19), looks, strict=True):
        assert row == [t <= reader and t < REAL for t in range(EXAMPLE_LENGTH)]


def test_a_page_holds_every_training_in_short_numbers():
    shown = pictured()
    assert {(mask, int(ahead)) for mask, of in shown["runs"].items() for ahead in of} == set(SETTINGS)
    assert len(CountedTokens().static_html()) < 25_000


@pytest.mark.parametrize(("mask", "ahead"), SETTINGS)
def test_each_combination_of_the_switches_shows_its_training(page, mask, ahead):
    """The lesson test: mask, shift and step, each with the stored losses, answer and shares."""
    seen, shows = set(), "masks" if ahead == 1 else "shift"
    for step in (LOOKS[0], LOOKS[3], LOOKS[-1]):
        open_figures(page, CountedTokens(shows=shows, mask=mask, ahead=ahead, trained=step))
        settle(page)
        run, at, read = stored(mask, ahead), LOOKS.index(step), page.evaluate(READ)
        assert read["bars"] == [round(TENTHS * loss) for loss in run["losses"][at]]
        counted = labels_of(IDS, mask, ahead)[0, 1:] != IGNORED
        assert read["strong"] == counted.tolist()
        assert read["said"] == " ".join(WORDS[i] for i in run["says"][at])
        right = run["says"][at] == IDS[0, PROMPT:REAL].tolist()
        assert read["tone"] == ("good" if right else "bad")
        assert read["numbers"] == [f"{run[name][at]:.0%}".replace("%", " %") for name in ("place", "stop")]
        seen.add(tuple(read["bars"]))
    assert len(seen) == 3, "no two steps look alike"


def test_the_opening_asks_before_anything_is_trained(page):
    name, arguments = chapters()["chapters/17_which_tokens_count"].opening
    assert (name, arguments) == ("CountedTokens", {"compact": True})
    open_figures(page, CountedTokens(**arguments))
    settle(page)
    assert page.locator(".mm-title").inner_text().endswith("?")
    assert page.evaluate(READ)["bars"] == [round(TENTHS * loss) for loss in stored("answer", 1)["losses"][0]]


def test_the_row_is_built_stage_by_stage(page):
    open_figures(page, CountedTokens(shows="row"))
    settle(page)
    shown = []
    for stage in range(len(STAGES)):
        words = page.locator("text.ct-word:not(.ct-away), text.ct-counts").all_inner_texts()
        parts = page.locator("g.ct-part:not(.ct-away)").count()
        shown.append((len(words), parts))
        said = page.locator(".ct-chat text").all_text_contents()
        assert said == ([] if stage else MESSAGES)
        if stage < len(STAGES) - 1:
            page.get_by_role("button", name="Step").click()
            settle(page)
    assert shown[0][0] < shown[1][0], "the template comes"
    assert [parts for _, parts in shown] == [0, 0, 1, 2, 2, 2, 3]
    assert page.get_by_role("button", name="Step").is_disabled()


def test_the_reader_is_moved_in_the_last_stage_alone(page):
    for stage in (0, len(STAGES) - 1):
        open_figures(page, CountedTokens(shows="row", stage=stage, reader=5))
        settle(page)
        assert page.get_by_role("slider").is_visible() == (stage > 0)
    assert page.locator(".ct-look").count() == 6
    page.get_by_role("slider").press("ArrowRight")
    settle(page)
    assert page.locator(".ct-look").count() == 7


def test_its_sentence_says_what_was_learned():
    sentence, lines = CountedTokens(mask="late", trained=100)._summary()
    assert "100 steps" in sentence
    run = stored("late", 1)
    assert dict(lines)["stops after it"] == f"{run['stop'][-1]:.0%}".replace("%", " %")
    assert torch.tensor(run["losses"]).shape == (len(LOOKS), EXAMPLE_LENGTH - 1)
