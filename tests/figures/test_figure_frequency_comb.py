"""FrequencyComb: its numbers are the package's, and the browser says the same for every setting."""

import itertools
import math

import pytest
import torch
from browser import open_figures, read_out, unfold

from minimind_edu.figures import FrequencyComb
from minimind_edu.figures.frequency_comb import FORMULAS
from minimind_edu.model.rope import precompute_freqs_cis
from minimind_edu.model.rope_frequencies import RopeScaling, rope_frequencies, yarn_correction_range

BASES = (1e4, 31622.8, 1e6, 1e7)
DIMS = (64, 96, 128)
CONTEXTS = (512, 2048, 32768)
FACTORS = (1.0, 16.0, 64.0)
BETAS = ((32.0, 1.0), (4.0, 3.5), (64.0, 0.5), (7.0, 2.0))


MATH = "figures/frequency_comb/math"
NAMES = ("head_dim", "rope_base", "context", "factor", "beta_fast", "beta_slow")


# The Python side


def test_most_pairs_of_minimind3_never_complete_a_rotation():
    comb = FrequencyComb()
    assert (comb.unfinished(2048), comb.unfinished(32768)) == (27, 18)
    assert FrequencyComb(rope_base=1e4).unfinished(2048) == 17
    small = FrequencyComb(head_dim=64)
    assert (small.unfinished(2048), small.unfinished(32768)) == (18, 12)


def test_yarn_leaves_eight_pairs_alone_and_divides_from_pair_21():
    scale = FrequencyComb().scaling("yarn")
    assert scale[:9].tolist() == [1.0] * 9
    assert scale[21:].tolist() == [1 / 16] * 27
    assert ((scale[9:21] < 1) & (scale[9:21] > 1 / 16)).all()


def test_the_older_formula_slows_fast_pairs_and_drops_in_one_step():
    scale = FrequencyComb().scaling("minimind2")
    assert 0.024 < 1 - scale[1] < 0.025 and 0.058 < 1 - scale[20] < 0.0585
    assert scale[20] > 0.94 and scale[21] == 1 / 16


def test_only_unscaled_pairs_meet_new_angles():
    comb = FrequencyComb()
    assert {formula: comb.new_angles(formula) for formula in FORMULAS} == {
        "none": 27,
        "linear": 0,
        "yarn": 0,
        "minimind2": 0,
    }
    # a ramp that ends late leaves pairs between that are slowed too little
    assert FrequencyComb(beta_slow=0.5).new_angles("yarn") > 0


def test_change_of_scores_is_what_random_vectors_measure():
    comb, distance, many = FrequencyComb(head_dim=64), 3, 50_000
    random = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, many, 64, generator=random, dtype=torch.float64)
    plain, _ = precompute_freqs_cis(64, distance + 1, dtype=torch.float64)
    angles = distance * rope_frequencies(64, dtype=torch.float64)

    def scores(angles):
        cos, sin = angles.cos().repeat(2), angles.sin().repeat(2)
        return (q * (k * cos + torch.cat([-k[:, 32:], k[:, :32]], 1) * sin)).sum(1) / 8

    assert torch.allclose(plain[distance], angles.cos().repeat(2))
    for formula in ("linear", "yarn", "minimind2"):
        change = scores(angles) - scores(angles * comb.scaling(formula))
        expected = comb.score_change(formula, distance)
        assert float(change.square().mean().sqrt()) == pytest.approx(expected, rel=0.02)


def test_table_on_the_page_holds_the_key_numbers():
    rows = dict(FrequencyComb()._summary()[1])
    assert rows["period of pair 0"] == "6.3"
    assert rows["period of pair 47"] == "4,711,724"
    assert rows["pairs without a full rotation in 2,048"] == "27"
    assert rows["pairs without a full rotation in 32,768"] == "18"
    assert rows["YaRN's ramp"] == "from pair 8 to pair 21"
    assert rows["YaRN's attention factor"] == f"{0.1 * math.log(16) + 1:.4f}"
    assert rows["no scaling: pairs that meet new angles"] == "27"


# The mathematics, against torch


def test_the_ramp_runs_where_the_package_says(node):
    settings = [(96, 1e6, 2048, 32.0, 1.0), (64, 1e6, 2048, 32.0, 1.0)]
    settings += [(*rest, *betas) for *rest, betas in itertools.product(DIMS, BASES, CONTEXTS, BETAS)]
    ranges = node.each(MATH, "yarnRange", settings)
    assert ranges[:2] == [[8, 21], [5, 14]]
    for actual, (dim, base, context, fast, slow) in zip(ranges, settings, strict=True):
        scaling = RopeScaling(16.0, context, fast, slow)
        assert tuple(actual) == yarn_correction_range(dim, base, scaling)


@pytest.mark.parametrize("formula", FORMULAS)
def test_scaling_and_its_effects_are_the_packages(node, formula):
    betas = BETAS if formula in ("yarn", "minimind2") else BETAS[:1]  # the others have none
    settings = [(*rest, *two) for *rest, two in itertools.product(DIMS, BASES, CONTEXTS, FACTORS, betas)]
    combs = [FrequencyComb(**dict(zip(NAMES, setting, strict=True))) for setting in settings]
    scales = node.each(MATH, "pairScaling", [(formula, *setting) for setting in settings])
    starts = [(*s[:4], scale) for s, scale in zip(settings, scales, strict=True)]
    new = node.each(MATH, "meetsNewAngles", starts)
    changes = node.each(MATH, "scoreChange", [(*s[:2], s[4], 7) for s in starts])
    shares = node.each(MATH, "reachedShares", starts)
    for comb, scale, pairs, change, share in zip(combs, scales, new, changes, shares, strict=True):
        for name, expected in zip(("trained", "reached"), comb.reached(formula), strict=True):
            assert share[name] == pytest.approx(expected.tolist(), abs=1e-12)
        assert scale == pytest.approx(comb.scaling(formula).tolist(), abs=1e-12)
        assert sum(pairs) == comb.new_angles(formula)
        assert change == pytest.approx(comb.score_change(formula, 7), abs=1e-9)


def test_periods_and_counts_are_the_packages(node):
    settings = list(itertools.product(DIMS, BASES, (10, 512, 2048, 32768, 10**6)))
    combs = [FrequencyComb(head_dim=dim, rope_base=base) for dim, base, _ in settings]
    periods = node.each(MATH, "ropePeriods", [setting[:2] for setting in settings])
    assert periods == [pytest.approx(comb.periods().tolist()) for comb in combs]
    counts = [comb.unfinished(length) for comb, (*_, length) in zip(combs, settings, strict=True)]
    assert node.each(MATH, "unfinishedPairs", settings) == counts


# The figure in the browser


@pytest.fixture
def comb(page):
    page.set_viewport_size({"width": 800, "height": 1200})
    open_figures(page, FrequencyComb())
    unfold(page)
    return page


def choose(page, group: str, label: str) -> None:
    page.get_by_role("group", name=group).get_by_label(label, exact=True).check()


def test_first_frame_shows_what_yarn_does(comb):
    shown = read_out(comb)
    assert shown["no full rotation in 2,048"] == "27 of 48"
    assert shown["no full rotation in 32,768"] == "18 of 48"
    assert shown["new angles in 32,768"] == "0 of 48"
    assert (shown["pairs left alone"], shown["slowed a little"]) == ("0–8", "9–20")
    assert shown["slowed 16 times"] == "21–47"
    assert shown["attention factor (paper)"] == "1.2773"


def test_every_formula_shows_the_packages_read_out(comb):
    labels = {"none": "none", "linear": "linear", "yarn": "YaRN", "minimind2": "early MiniMind2"}
    for formula in FORMULAS:
        choose(comb, "context extension", labels[formula])
        figure, shown = FrequencyComb(), read_out(comb)
        assert shown["new angles in 32,768"] == f"{figure.new_angles(formula)} of 48"
        change = shown.get("score change at distance 1", "0.0000")
        assert change == f"{figure.score_change(formula, 1):.4f}"
        assert comb.locator(".fc-new .fc-point").count() == figure.new_angles(formula)


def test_dials_show_the_angles_of_training_and_the_new_ones(comb):
    """Six pairs: the first, both sides of the edge, two on the way, the last; the numbers are the package's."""
    choose(comb, "head_dim", "64")
    choose(comb, "context extension", "none")
    figure = FrequencyComb(head_dim=64)
    trained, reached = (360 * share for share in figure.reached("none"))
    dials = comb.locator(".fc-dial")
    names = [name.split(": ")[0] for name in dials.evaluate_all("all => all.map((one) => one.ariaLabel)")]
    assert names == [f"pair {pair}" for pair in (0, 13, 14, 20, 25, 31)]
    angles = dials.locator("text:last-child").all_text_contents()
    assert angles[2:4] == [f"{trained[pair]:.0f}° → {reached[pair]:.0f}°" for pair in (14, 20)]
    assert angles[:2] == ["360°"] * 2 and comb.locator(".fc-unmet").count() == 4
    choose(comb, "context extension", "YaRN")
    assert comb.locator(".fc-unmet").count() == 0
    assert dials.locator("text:last-child").all_text_contents()[2] == f"{trained[14]:.0f}°"


def test_sliders_that_mean_nothing_are_hidden(comb):
    assert comb.get_by_label("beta_fast").is_visible()
    choose(comb, "context extension", "linear")
    assert not comb.get_by_label("beta_fast").is_visible()
    assert comb.get_by_label("factor s").is_visible()


def test_the_grips_answer_to_arrow_keys(comb):
    grip = comb.get_by_role("slider", name="trained length").first
    grip.focus()
    comb.keyboard.press("ArrowRight")
    assert grip.get_attribute("aria-valuenow") == "4096"
    base = comb.get_by_role("slider", name="rope_base, at")
    base.focus()
    comb.keyboard.press("ArrowLeft")
    assert float(base.get_attribute("aria-valuenow")) == pytest.approx(10**5.9, rel=1e-5)
    assert read_out(comb)["no full rotation in 4,096"].endswith("of 48")


def test_a_smaller_head_has_fewer_teeth_and_another_ramp(comb):
    choose(comb, "head_dim", "64")
    shown = read_out(comb)
    assert shown["no full rotation in 2,048"] == "18 of 32"
    assert (shown["pairs left alone"], shown["slowed 16 times"]) == ("0–5", "14–31")


INSIDE = """all => all.every((text) => {
    const [box, around] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
    return box.left >= around.left - 1 && box.right <= around.right + 1;
})"""


@pytest.mark.parametrize("context", [512, 32768])
def test_no_word_is_cut_off(page, context):
    page.set_viewport_size({"width": 344, "height": 740})
    open_figures(page, FrequencyComb(context=context, factor=64.0))
    unfold(page)
    assert page.eval_on_selector_all(".fc-fig svg text", INSIDE)
