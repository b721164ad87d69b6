"""RotationDials: its JavaScript rotates as torch does, its numbers are the package's, its handles do what they say."""

import itertools
import math
import random

import pytest
import torch
from browser import open_figures, press_when, read_out, settle, unfold
from story_reader import read_story, show_story, telling_head

from minimind_edu.figures import RotationDials
from minimind_edu.model.for_comparison import half_split_permutation, rotate_interleaved
from minimind_edu.model.rope import apply_rotary_pos_emb, rope_angles
from minimind_edu.model.rope_frequencies import rope_frequencies

MATH = "web/kit/rope"
LAYOUTS = ("half-split", "interleaved")
DIMS = (2, 8, 64, 96)
BASES = (100.0, 1e4, 1e6)
POSITIONS = (0, 1, 7, 63, 1000, 32767, 32768)


def vector(dim: int, salt: int) -> list[float]:
    """Numbers between -2 and 2 made from integers, the same on every machine."""
    return [((37 * channel + 101 * salt + channel * channel) % 401 - 200) / 100 for channel in range(dim)]


def turned(values: list[float], position: int, base: float, layout: str) -> torch.Tensor:
    """The package's rotation of one vector for one position."""
    x = torch.tensor(values, dtype=torch.float64)[None, None, None]
    angles = rope_angles(len(values), position + 1, base, dtype=torch.float64)[-1:]
    if layout == "interleaved":
        return rotate_interleaved(x, x, angles.cos(), angles.sin())[0].flatten()
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
    return apply_rotary_pos_emb(x, x, cos, sin)[0].flatten()


def close(actual, expected, tolerance: float = 1e-9) -> bool:
    actual = torch.tensor(actual, dtype=torch.float64)
    return torch.allclose(actual, torch.as_tensor(expected, dtype=torch.float64), 0, tolerance)


# The mathematics, against torch


def test_frequencies_are_the_packages(node):
    cases = list(itertools.product(DIMS, BASES))
    for case, actual in zip(cases, node.each(MATH, "ropeFrequencies", cases), strict=True):
        assert close(actual, rope_frequencies(*case, dtype=torch.float64), 1e-15), case


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotation_is_the_packages_up_to_the_last_position(node, layout):
    cases = [(vector(dim, at), at, base) for dim, base, at in itertools.product(DIMS, BASES, POSITIONS)]
    arguments = [[*case, layout, layout] for case in cases]
    for case, actual in zip(cases, node.each(MATH, "turnForPosition", arguments), strict=True):
        assert close(actual, turned(*case, layout)), case


@pytest.mark.parametrize("layout", LAYOUTS)
def test_score_depends_on_the_distance_only(node, layout):
    rng = random.Random(0)
    cases, shifts = [], []
    for _ in range(40):
        dim, base = rng.choice(DIMS), rng.choice(BASES)
        m, n, shift = (rng.randrange(16384) for _ in range(3))
        cases.append([vector(dim, m), vector(dim, n + 1), m, n, base, layout, layout])
        shifts.append([*cases[-1][:2], m + shift, n + shift, *cases[-1][4:]])
    scores, shifted = (node.each(MATH, "ropeScore", arguments) for arguments in (cases, shifts))
    for (query, key, m, n, base, *_), here, there in zip(cases, scores, shifted, strict=True):
        expected = turned(query, m, base, layout) @ turned(key, n, base, layout)
        assert abs(here - there) < 1e-6
        assert abs(here - expected) < 1e-8


def test_the_scores_at_many_distances_are_those_at_each(node):
    a, b, distances = vector(8, 1), vector(8, 4), [-63, -7.25, 0, 3, 62.5]
    for layout in LAYOUTS:
        each = node.each(MATH, "ropeScore", [[a, b, d, 0, 1e4, layout, layout] for d in distances])
        assert node.call(MATH, "scoresAt", [a, b, distances, 1e4, layout]) == pytest.approx(each, abs=1e-9)


def test_permutation_is_the_packages(node):
    for dim in DIMS:
        actual = node.call(MATH, "halfSplitPermutation", [dim])
        assert actual == half_split_permutation(dim).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_pair_products_add_up_to_the_dot_product(node, layout):
    query, key = vector(8, 1), vector(8, 2)
    products = node.call(MATH, "pairProducts", [query, key, layout])
    pairs = (
        torch.tensor([query, key]).view(2, 2, 4)
        if layout == "half-split"
        else torch.tensor([query, key]).view(2, 4, 2).transpose(1, 2)
    )
    assert close(products, pairs.prod(0).sum(0).double(), 1e-6)


def test_cosine_alone_is_the_score_only_for_parallel_arrows(node):
    """A.B.cos forgets the cross term: sin 3t of the angle that lay between the arrows before any turn."""
    a, b, distance = vector(8, 1), vector(8, 4), 3
    angles = distance * rope_frequencies(8, 1e4, dtype=torch.float64)
    (a1, a2), (b1, b2) = torch.tensor([a, b], dtype=torch.float64).view(2, 2, 4)
    cosine = float(((a1 * b1 + a2 * b2) * angles.cos()).sum())
    crossed = float(((a2 * b1 - a1 * b2) * angles.sin()).sum())
    args = [a, b, distance, 1e4, "half-split"]
    assert close(node.call(MATH, "cosineOnlyScore", args), cosine)
    score_args = [a, b, distance, 0, 1e4, "half-split", "half-split"]
    score = node.call(MATH, "ropeScore", score_args)
    assert abs(crossed) > 0.1
    assert close(score, cosine - crossed)
    args[1] = [2 * x for x in a]
    score_args[1] = args[1]
    parallel = node.call(MATH, "ropeScore", score_args)
    assert close(node.call(MATH, "cosineOnlyScore", args), parallel)


def test_angle_between_is_counter_clockwise(node):
    for degrees in (-170, -90, -1, 0, 1, 45, 179):
        angle = math.radians(degrees)
        args = [[0.0, 2.0], [-3 * math.sin(angle), 3 * math.cos(angle)]]
        assert close(node.call(MATH, "angleBetween", args), angle)


# The Python side


def test_numbers_on_the_page_are_the_packages():
    figure = RotationDials()
    expected = turned(figure.query, 8, 1e4, "half-split") @ turned(figure.key, 5, 1e4, "half-split")
    assert figure.score == pytest.approx(float(expected), abs=1e-12)
    rows = dict(figure._summary()[1])
    scores = [value for label, value in rows.items() if label.startswith("score")]
    assert scores[0] == scores[1] == scores[2] == f"{figure.score:.4f}"
    assert scores[3] != scores[0]
    pairs = [float(value) for label, value in rows.items() if label.startswith("pair")]
    assert sum(pairs) == pytest.approx(figure.score, abs=2e-4)


def test_both_vectors_can_change_their_length_together():
    dials = RotationDials()
    with dials.hold_trait_notifications():
        dials.query, dials.key = [1.0, 2.0], [3.0, 4.0]
    assert dials.pair_products(0, 0).tolist() == [11.0]


# The figure in the browser


def numbers(page) -> dict[str, float]:
    """The read-out as a reader sees it."""
    return {label: float(value.replace("−", "-")) for label, value in read_out(page).items()}


def arrows(page) -> list[str]:
    return page.eval_on_selector_all(".rd-head", "nodes => nodes.map((n) => n.getAttribute('transform'))")


def wedges(page) -> list[str]:
    """What stands under each dial: the angle between its arrows, and what it adds."""
    return page.locator(":is(.rd-between, .rd-adds)").all_inner_texts()


@pytest.fixture
def dials(page):
    page.set_viewport_size({"width": 800, "height": 1300})
    open_figures(page, RotationDials())
    unfold(page)
    return page


def test_first_frame_shows_the_packages_score(dials):
    assert numbers(dials)["score at m = 8, n = 5"] == round(RotationDials().score, 6)
    assert numbers(dials)["score"] == round(RotationDials().score, 4)


def test_sliding_both_turns_every_arrow_and_changes_no_sum(dials):
    before = (wedges(dials), numbers(dials)["score at m = 8, n = 5"])
    for first in (0, 1, 30, 60):
        pointed = arrows(dials)
        dials.locator("input").and_(dials.get_by_label("slide both")).fill(str(first))
        assert all(a != b for a, b in zip(arrows(dials), pointed, strict=True))
        assert wedges(dials) == before[0]
        assert numbers(dials)["score"] == round(RotationDials().score, 4)
        assert numbers(dials)[f"score at m = {first + 3}, n = {first}"] == before[1]


def test_both_slides_stop_together_at_the_end(dials):
    dials.locator("input").and_(dials.get_by_label("slide both")).fill("63")
    assert "score at m = 63, n = 60" in numbers(dials)


def test_order_matters(dials):
    dials.get_by_role("button", name="Swap m and n").click()
    swapped = RotationDials(query_position=5, key_position=8).score
    assert numbers(dials)["score at m = 5, n = 8"] == round(swapped, 6)
    assert abs(swapped - RotationDials().score) > 1


def test_another_base_gives_the_packages_score(dials):
    for base in (100.0, 1e6):
        dials.get_by_label(f"{base:,.0f}", exact=True).check()
        expected = RotationDials(rope_base=base).score
        assert numbers(dials)["score at m = 8, n = 5"] == round(expected, 6)


def test_slow_pairs_move_less(dials):
    def angles() -> list[float]:
        values = dials.eval_on_selector_all(
            ".rd-hit[aria-label^='query']", "n => n.map((x) => x.getAttribute('aria-valuenow'))"
        )
        return [float(value) for value in values]

    before = angles()
    dials.locator("input").and_(dials.get_by_label("query position m")).fill("9")
    moved = [abs((b - a + 180) % 360 - 180) for a, b in zip(before, angles(), strict=True)]
    assert moved[0] == pytest.approx(57.3, abs=1)
    assert moved[1] == pytest.approx(5.7, abs=1)
    assert moved[2] <= 1 and moved[3] <= 1


def drag(page, locator, dx: float, dy: float) -> None:
    box = locator.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y + dy, steps=4)
    page.mouse.up()


def test_dragging_both_along_the_ruler_keeps_the_distance(dials):
    before = numbers(dials)["score at m = 8, n = 5"]
    drag(dials, dials.get_by_role("slider", name="slide both along the ruler"), 220, 0)
    [label] = [name for name in numbers(dials) if name.startswith("score at")]
    assert label not in ("score at m = 8, n = 5",)
    assert numbers(dials)[label] == before
    assert dials.locator("text.rd-both").text_content() == "‹ m − n = 3 ›"


def test_dragging_a_tip_changes_that_pair_only(dials):
    before = wedges(dials)
    drag(dials, dials.get_by_role("slider", name="query arrow of pair 2"), -20, 25)
    after = wedges(dials)
    assert after[4:6] != before[4:6]
    assert after[:4] + after[6:] == before[:4] + before[6:]


def test_a_tip_cannot_leave_its_dial_or_vanish(dials):
    tip = dials.get_by_role("slider", name="key arrow of pair 0")
    drag(dials, tip, 300, 200)
    assert "length 1.50" in tip.get_attribute("aria-valuetext")


def test_ruler_and_strip_answer_to_arrow_keys(dials):
    dials.get_by_role("slider", name="query position m").first.focus()
    dials.keyboard.press("ArrowRight")
    assert "score at m = 9, n = 5" in numbers(dials)
    dials.get_by_role("slider", name="distance m − n").focus()
    dials.keyboard.press("Shift+ArrowLeft")
    assert "score at m = 4, n = 5" in numbers(dials)


def test_comparing_shows_what_cosine_alone_would_say(dials):
    dials.get_by_label("Compare with A·B·cos").check()
    assert numbers(dials)["A·B·cos would give"] != numbers(dials)["score at m = 8, n = 5"]


def test_playing_ends_with_the_same_score_and_can_be_paused(dials):
    dials.get_by_role("button", name="Play").click()
    is_far = "document.querySelector('.rd-token[data-tone=q]').getAttribute('aria-valuenow') >= 10"
    press_when(dials.get_by_role("button", name="Pause"), is_far)
    [label] = [name for name in numbers(dials) if name.startswith("score at")]
    assert label != "score at m = 8, n = 5"
    assert numbers(dials)[label] == round(RotationDials().score, 6)


def test_with_reduced_motion_the_button_jumps(page):
    page.emulate_media(reduced_motion="reduce")
    open_figures(page, RotationDials())
    unfold(page)
    page.get_by_role("button", name="Play").click()
    assert "score at m = 16, n = 13" in numbers(page)
    page.emulate_media(reduced_motion="null")


def test_dials_widen_for_arrows_that_start_longer(page):
    open_figures(page, RotationDials(query=[3.0, 0.6, -4.0, 0.9], key=[0.4, 1.2, 0.8, 0.7]))
    tip = page.get_by_role("slider", name="query arrow of pair 0")
    assert "length 5.00" in tip.get_attribute("aria-valuetext")
    rim, handle = page.locator(".rd-face").first.bounding_box(), tip.bounding_box()
    middle = handle["x"] + handle["width"] / 2
    assert rim["x"] - 1 <= middle <= rim["x"] + rim["width"] + 1


BARS = """all => all.map((bar) => {
    const [box, around] = [bar.getBoundingClientRect(), bar.parentElement.getBoundingClientRect()];
    const middle = around.left + around.width / 2;
    return [bar.className, (box.left < middle - 0.1 ? -1 : 1) * box.width / around.width];
})"""


def test_bars_show_what_each_pair_adds_with_its_sign(dials):
    products = RotationDials().pair_products(8, 5).tolist()
    bars = dials.eval_on_selector_all(".rd-bar > div", BARS)
    query, key = torch.tensor([RotationDials().query, RotationDials().key]).view(2, 2, 4)
    most = float((query.norm(dim=0) * key.norm(dim=0)).max())
    assert [cls for cls, _ in bars] == ["rd-minus" if product < 0 else "rd-plus" for product in products]
    assert [share for _, share in bars] == pytest.approx([p / most / 2 for p in products], abs=0.01)


def test_a_hand_on_the_slider_rotates_the_arrows_between_two_positions(dials):
    slider = dials.locator("input").and_(dials.get_by_label("slide both"))
    slider.evaluate("node => { node.value = 20.4; node.dispatchEvent(new Event('input')); }")
    dials.evaluate("null")  # the drawing follows in the same moment
    between = arrows(dials)
    assert numbers(dials)["score while both slide"] == round(RotationDials().score, 6)
    slider.evaluate("node => node.dispatchEvent(new Event('change'))")
    assert "score at m = 23, n = 20" in numbers(dials)
    assert arrows(dials)[0] != between[0]


@pytest.mark.parametrize("width", [738, 328])
def test_compact_is_the_dials_and_the_one_slider(page, width):
    page.set_viewport_size({"width": width + 16, "height": 740})
    open_figures(page, RotationDials(compact=True))
    assert page.get_by_role("button").all_inner_texts() == ["▶ Play"]
    before, score = arrows(page), read_out(page)
    said = page.get_by_role("img").first.get_attribute("aria-label")
    assert said == "pair 0: from k to q +43.8 degrees, adds +1.100 to the score"
    page.get_by_role("slider", name="slide both").fill("40")
    assert all(a != b for a, b in zip(arrows(page), before, strict=True))
    assert read_out(page) == score == {"score": "2.0427"}
    assert page.get_by_role("img").first.get_attribute("aria-label") == said


# The reader's story


def test_the_story_shows_the_trained_heads_score_of_two_words(page):
    open_figures(page, RotationDials())
    show_story(page)
    reading, (layer, head) = read_story(), telling_head()
    block, last = reading.blocks[layer], len(reading.words) - 1

    def score_shown():
        return float(page.inner_text(".rd-score dd").replace("−", "-"))

    most = int(block.weights[head, -1].argmax())
    assert score_shown() == pytest.approx(float(block.scores[head, last, most]), abs=2e-3)
    assert page.locator(".rd-dial").count() == block.query.shape[-1] // 2
    page.get_by_label("pick key").check()
    page.locator(".mm-word").nth(3).click()
    settle(page)
    assert score_shown() == pytest.approx(float(block.scores[head, last, 3]), abs=2e-3)
    page.get_by_label("pick query").check()
    page.locator(".mm-word").nth(11).click()
    settle(page)
    most = int(block.weights[head, 11].argmax())
    assert score_shown() == pytest.approx(float(block.scores[head, 11, most]), abs=2e-3)


def test_in_the_story_both_words_slide_and_the_score_stays(page):
    open_figures(page, RotationDials())
    show_story(page)
    state = "() => document.querySelector('.minimind-figure > script').textContent"
    before, stored = page.inner_text(".rd-score dd"), page.evaluate(state)
    page.get_by_label("slide both", exact=True).fill("40")
    settle(page)
    after = page.inner_text(".rd-score dd")
    assert float(after) == pytest.approx(float(before), abs=2e-4)
    assert "m = 4" in page.inner_text(".rd-player output")
    assert page.evaluate(state) == stored
