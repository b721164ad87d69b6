"""PairingLab: matched settings are flat, mixed ones are not, and the browser says the same as the package."""

import itertools

import pytest
import torch
from browser import open_figures, unfold

from minimind_edu.figures import PairingLab
from minimind_edu.figures.pairing_lab import LAYOUTS, SHIFTS
from minimind_edu.model.for_comparison import rotate_interleaved
from minimind_edu.model.rope import precompute_freqs_cis

SETTINGS = list(itertools.product(LAYOUTS, LAYOUTS))
MATCHED = [setting for setting in SETTINGS if setting[0] == setting[1]]
MIXED = [setting for setting in SETTINGS if setting[0] != setting[1]]
MANY = tuple(range(0, 1001, 37))


# The Python side


@pytest.mark.parametrize("table, rotation", MATCHED)
@pytest.mark.parametrize("permuted", [False, True])
def test_matched_settings_ignore_the_shift(table, rotation, permuted):
    scores = PairingLab().scores(MANY, table, rotation, permuted)
    assert torch.allclose(scores, scores[:1].expand_as(scores), 0, 1e-9)


@pytest.mark.parametrize("table, rotation", MIXED)
def test_mixed_settings_wander_without_an_error(table, rotation):
    scores = PairingLab().scores(SHIFTS, table, rotation)
    assert scores.max() - scores.min() > 1
    assert scores.unique().numel() == len(SHIFTS)


def test_permuted_channels_give_half_split_the_interleaved_score():
    lab = PairingLab()
    interleaved = lab.scores(MANY, "interleaved", "interleaved")
    assert torch.allclose(lab.scores(MANY, "half-split", "half-split", True), interleaved, 0, 1e-9)
    assert (lab.scores((0,), "half-split", "half-split") - interleaved[0]).abs() > 1


def test_permuting_does_not_mend_a_mixed_setting():
    for table, rotation in MIXED:
        scores = PairingLab().scores(SHIFTS, table, rotation, permuted=True)
        assert scores.max() - scores.min() > 0.5


def test_the_package_itself_refuses_the_wider_table():
    x = torch.ones(1, 4, 1, 8)
    with pytest.raises(ValueError, match="need 4 columns"):
        rotate_interleaved(x, x, *precompute_freqs_cis(8, 4))


def test_table_on_the_page_holds_the_scores_of_every_setting():
    lab = PairingLab()
    rows = dict(lab._summary()[1])
    assert len(rows) == 5
    for table, rotation in SETTINGS:
        shown = [float(v) for v in rows[f"table {table}, rotation {rotation}"].split(", ")]
        assert shown == pytest.approx(lab.scores(SHIFTS, table, rotation).tolist(), abs=5e-5)
    assert (
        rows["table interleaved, rotation interleaved"]
        == (rows["table half-split, rotation half-split, channels permuted"])
    )


# The mathematics, against torch


@pytest.mark.parametrize("table, rotation", SETTINGS)
def test_scores_are_the_packages_for_every_setting(node, table, rotation):
    heads = [(2, 1e4), (8, 100.0), (8, 1e4), (16, 1e6)]
    for (dim, base), (m, n) in itertools.product(heads, [(8, 5), (0, 31000), (31768, 12)]):
        query = [((37 * channel) % 23 - 11) / 8 for channel in range(dim)]
        key = [((29 * channel + 5) % 19 - 9) / 8 for channel in range(dim)]
        lab = PairingLab(query=query, key=key, query_position=m, key_position=n, rope_base=base)
        arguments = [[query, key, m + shift, n + shift, base, table, rotation] for shift in SHIFTS]
        actual = node.each("web/kit/rope", "ropeScore", arguments)
        assert actual == pytest.approx(lab.scores(SHIFTS, table, rotation).tolist(), abs=1e-8), (dim, base, m, n)


@pytest.mark.parametrize("layout, columns", [("half-split", "01230123"), ("interleaved", "00112233")])
def test_table_columns_are_as_the_package_lays_them(node, layout, columns):
    actual = node.call("web/kit/rope", "tableColumns", [8, layout])
    assert "".join(map(str, actual)) == columns


# The figure in the browser


def numbers(page) -> list[float]:
    """The four scores and the current one, as a reader sees them."""
    return [float(text.replace("−", "-")) for text in page.locator(".mm-readout dd").all_inner_texts()]


def settle(page, table: str, rotation: str) -> None:
    page.get_by_role("group", name="table layout").get_by_label(table).check()
    page.get_by_role("group", name="rotation").get_by_label(rotation).check()


@pytest.fixture
def lab(page):
    page.set_viewport_size({"width": 800, "height": 1200})
    open_figures(page, PairingLab())
    unfold(page)
    return page


def test_every_setting_shows_the_packages_scores_and_marks_unequal_partners(lab):
    for table, rotation in SETTINGS:
        settle(lab, table, rotation)
        expected = PairingLab().scores((*SHIFTS, 20), table, rotation).tolist()
        assert numbers(lab) == pytest.approx(expected, abs=6e-7)
        signs = lab.locator(".pl-sign").all_text_contents()
        assert signs == (["✓"] * 4 if table == rotation else ["≠"] * 4)
        verdict = lab.locator(".mm-verdict").inner_text()
        assert verdict.startswith("✓ Matched" if table == rotation else "≠ Mixed: the score drifts")


def test_partners_are_named_for_those_who_do_not_see_them(lab):
    settle(lab, "half-split", "interleaved")
    label = lab.get_by_role("img").first.get_attribute("aria-label")
    assert label.startswith("Partners: channel 0 with angle 0 and channel 1 with angle 1; ")


def test_permuting_moves_the_cells_and_lands_on_the_interleaved_score(lab):
    lab.get_by_role("button", name="Permute channels").click()
    expected = PairingLab().scores((0,), "interleaved", "interleaved").item()
    assert numbers(lab) == pytest.approx([expected] * 5, abs=6e-7)
    label = lab.get_by_role("img").first.get_attribute("aria-label")
    assert label.startswith("Partners: channel 0 with angle 0 and channel 1 with angle 0; ")
    lab.get_by_role("button", name="Undo the permutation").click()
    assert numbers(lab)[0] != pytest.approx(expected)


def test_sliding_turns_the_hands_and_moves_a_mixed_score(lab):
    settle(lab, "interleaved", "half-split")
    hands = "nodes => nodes.map((n) => n.getAttribute('x2'))"
    for shift in (0, 1, 137, 1000):
        before = lab.eval_on_selector_all(".pl-hand", hands)
        lab.get_by_label("slide both positions by").fill(str(shift))
        assert lab.eval_on_selector_all(".pl-hand", hands) != before
        expected = PairingLab().scores((shift,), "interleaved", "half-split").item()
        assert numbers(lab)[-1] == pytest.approx(expected, abs=6e-7)


def test_the_point_on_the_line_answers_to_arrow_keys(lab):
    point = lab.get_by_role("slider", name="common shift")
    point.focus()
    lab.keyboard.press("ArrowRight")
    lab.keyboard.press("Shift+ArrowRight")
    assert point.get_attribute("aria-valuenow") == "26"


def test_green_and_red_are_verdicts_only(lab):
    colors = """() => {
        const paint = (selector) => [...document.querySelectorAll(selector)].flatMap((node) => {
            const style = getComputedStyle(node);
            return [style.fill, style.stroke];
        });
        const mark = (name) => getComputedStyle(document.querySelector(name)).fill;
        return [paint(".pl-cell, .pl-face, .pl-hand, .pl-name, .pl-arc"), mark(".pl-sign")];
    }"""
    drawn, good = lab.evaluate(colors)
    assert good not in drawn
    settle(lab, "half-split", "interleaved")
    assert lab.evaluate(colors)[1] != good


def test_compact_is_the_wiring_and_the_choice_of_rotation(page):
    open_figures(page, PairingLab(compact=True))
    assert page.locator(".mm-fig :is(fieldset, button, summary, [tabindex], [type=range])").count() == 1
    before = page.get_by_role("img").get_attribute("aria-label")
    page.get_by_label("interleaved").check()
    assert page.get_by_role("img").get_attribute("aria-label") != before
    assert page.locator(".pl-sign").all_text_contents() == ["≠"] * 4
    assert page.locator(".mm-verdict").inner_text() == "≠ Mixed: the score drifts."
