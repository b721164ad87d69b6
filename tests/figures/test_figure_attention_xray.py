"""AttentionXRay: the package's stages, in Python and in JavaScript, and what the reader sees of them."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from browser import open_figures, settle
from story_reader import read_story, show_story, telling_head

from minimind_edu.figures import AttentionXRay
from minimind_edu.figures.attention_xray import HEAD_DIMS, ORDER, TOKENS

SWITCHES = list(itertools.product([False, True], repeat=4))  # scaled, causal, rope, qk_norm
NAMES = ("scaled", "causal", "rope", "qk_norm")


# The Python side


@pytest.mark.parametrize("dim", HEAD_DIMS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_stages_are_pytorchs_attention(dim, causal, scaled):
    figure = AttentionXRay()
    q, k, v = (
        torch.tensor(rows, dtype=torch.float64)[None, :, :dim] for rows in (figure.query, figure.key, figure.value)
    )
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=None if scaled else 1.0)
    stages = figure.stages(head_dim=dim, causal=causal, scaled=scaled)
    assert torch.allclose(stages.output, expected[0], 0, 1e-9)
    visible = torch.ones(5, 5, dtype=torch.bool).tril() if causal else torch.ones(5, 5).bool()
    scores = stages.scores.masked_fill(~visible, -math.inf)
    assert torch.allclose(scores.softmax(-1), stages.weights, 0, 1e-9)


@pytest.mark.parametrize("switches", SWITCHES)
def test_rows_sum_to_one_and_the_future_weighs_nothing(switches):
    settings = dict(zip(NAMES, switches, strict=True))
    weights = AttentionXRay(**settings).stages().weights
    assert torch.allclose(weights.sum(-1), torch.ones(5, dtype=torch.float64))
    if settings["causal"]:
        assert weights.triu(1).abs().max() == 0


@pytest.mark.parametrize("qk_norm", [False, True])
def test_outputs_are_permuted_likewise_only_without_mask_and_rope(qk_norm):
    for causal, rope in itertools.product([False, True], repeat=2):
        figure = AttentionXRay(causal=causal, rope=rope, qk_norm=qk_norm)
        before, after = figure.stages().output, figure.stages(permuted=True).output
        same = torch.allclose(after, before[ORDER], 0, 1e-9)
        assert same == (not causal and not rope)


def test_scaling_prevents_saturation():
    figure = AttentionXRay(causal=False)
    bare = [figure.stages(head_dim=d, scaled=False).weights.amax(-1).mean() for d in HEAD_DIMS]
    scaled = [figure.stages(head_dim=d).weights.amax(-1).mean() for d in HEAD_DIMS]
    assert bare[-1] > 0.9 and bare[0] < 0.6
    assert max(scaled) < 0.6


def test_qk_norm_takes_out_the_loud_key():
    figure = AttentionXRay(causal=False, head_dim=128)
    loud = [figure.stages(qk_norm=on).scores[:, 2].std() for on in (False, True)]
    assert loud[0] / loud[1] == pytest.approx(2, rel=0.2)


def test_table_on_the_page_holds_the_packages_numbers():
    rows = dict(AttentionXRay()._summary()[1])
    assert len(rows) == 5
    shown = rows["largest weight in the last row, not scaled"].split(", ")
    expected = AttentionXRay().stages(head_dim=4, scaled=False).weights[-1].max()
    assert shown[0] == f"{expected:.3f}" and len(shown) == len(HEAD_DIMS)
    assert rows["tokens permuted, neither mask nor RoPE: largest change of an output"] == "0.000"


# The mathematics, against torch


def settings_of(figure, **changes):
    s = {name: changes.get(name, getattr(figure, name)) for name in (*NAMES, "head_dim")}
    return {"dim": s["head_dim"], "scaled": s["scaled"], "causal": s["causal"], "rope": s["rope"],
            "qkNorm": s["qk_norm"], "base": figure.rope_base, "eps": figure.qk_norm_eps}  # fmt: skip


@pytest.mark.parametrize("dim", [4, 32, 128])
def test_the_page_computes_what_the_package_computes(node, dim):
    figure = AttentionXRay()
    settings = [dict(zip(NAMES, switches, strict=True)) | {"head_dim": dim} for switches in SWITCHES]
    vectors = [figure.query, figure.key, figure.value]
    arguments = [[*vectors, settings_of(figure, **changes)] for changes in settings]
    found = node.each("figures/attention_xray/math", "attentionStages", arguments)
    for changes, actual in zip(settings, found, strict=True):
        expected = figure.stages(**changes)
        for name, tensor in (("scores", expected.scores), ("weights", expected.weights), ("outputs", expected.output)):
            got = torch.tensor(actual[name], dtype=torch.float64)
            assert torch.allclose(got, tensor, 1e-9, 1e-9), (name, changes)


@pytest.mark.parametrize("row", [[0.0], [1.0, 2.0], [1000.0, 1001.0, -1000.0], [-5.0] * 7])
def test_softmax_does_not_overflow(node, row):
    actual = node.call("figures/attention_xray/math", "softmaxRow", [row])
    assert actual == pytest.approx(torch.tensor(row, dtype=torch.float64).softmax(0).tolist())


def test_largest_change_compares_token_by_token(node):
    before, after = [[1.0, 2.0], [3.0, 4.0]], [[3.0, 4.5], [1.0, 2.0]]
    args = [before, after, [1, 0]]
    assert node.call("figures/attention_xray/math", "largestChange", args) == 0.5


# The figure in the browser


@pytest.fixture
def xray(page):
    page.set_viewport_size({"width": 900, "height": 1500})
    open_figures(page, AttentionXRay())
    page.locator(".mm-more summary").click()
    return page


@pytest.mark.parametrize("width", [900, 344])
def test_the_sums_fold_where_they_have_no_room_and_come_back(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_figures(page, AttentionXRay())
    sums = page.locator(".ax-sums")
    assert sums.is_visible() == (width == 900)
    page.locator(".mm-more summary").click()
    assert sums.is_visible()
    page.set_viewport_size({"width": 900, "height": 900})
    settle(page)
    assert page.locator(".ax-stage .ax-sums").is_visible()


@pytest.mark.parametrize("width", [928, 700, 328])
def test_choosing_another_cell_moves_nothing(page, width):
    page.set_viewport_size({"width": width + 16, "height": 900})
    open_figures(page, AttentionXRay(causal=False))
    page.locator(".mm-more summary").click()
    height = page.locator(".mm-fig").bounding_box()["height"]
    cells = page.get_by_role("table", name="Weights").get_by_role("button")
    for i in range(cells.count()):
        cells.nth(i).focus()
        assert page.locator(".mm-fig").bounding_box()["height"] == height


def test_compact_the_chosen_token_reads_and_its_weights_show(page):
    open_figures(page, AttentionXRay(compact=True))
    assert page.locator(".mm-fig :is(button, input)").count() == len(TOKENS)  # one group of radios
    weights = AttentionXRay().stages().weights
    for row in (4, 1, 0):
        page.get_by_role("radio", name=TOKENS[row], exact=True).check()
        shares = page.locator("text.mm-small").all_text_contents()
        assert shares == [f"{w:.2f}" if j <= row else "future" for j, w in enumerate(weights[row].tolist())]
        widths = page.locator(".ax-line").evaluate_all(
            "lines => lines.map((line) => parseFloat(line.style.strokeWidth))"
        )
        expected = [1 + 20 * w if j <= row else 0 for j, w in enumerate(weights[row].tolist())]
        assert widths == pytest.approx(expected, abs=1e-3)
        assert page.locator("svg[role=img]").get_attribute("aria-label").startswith(f"{TOKENS[row]} reads the ")


def test_signs_have_their_own_colors(xray):
    """Orange and blue are queries and keys, whatever sign a number has."""
    tones = xray.locator(".ax-cell, .ax-products i").evaluate_all(
        "all => all.map((one) => one.style.getPropertyValue('--ax-tone'))"
    )
    assert set(tones) == {"var(--mm-plus)", "var(--mm-minus)", "var(--mm-v)"}


def table(page, name: str) -> list[list[str]]:
    cells = page.get_by_role("table", name=name).get_by_role("button").all_inner_texts()
    return [cells[i : i + len(TOKENS)] for i in range(0, len(cells), len(TOKENS))]


def numbers(texts: list[list[str]]) -> torch.Tensor:
    return torch.tensor([[-math.inf if t == "−∞" else float(t.replace("−", "-")) for t in row] for row in texts])


def test_both_tables_show_the_packages_numbers(xray):
    for dim, causal in itertools.product([0, 2, 5], [False, True]):
        xray.get_by_label("head_dim D").fill(str(dim))
        xray.get_by_label("causal mask").set_checked(causal)
        stages = AttentionXRay().stages(head_dim=HEAD_DIMS[dim], causal=causal)
        scores = stages.scores
        if causal:
            scores = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -math.inf)
        assert torch.allclose(numbers(table(xray, "Scores")).double(), scores, 0, 0.0051)
        assert torch.allclose(numbers(table(xray, "Weights")).double(), stages.weights, 0, 0.0051)


def test_hovering_and_arrow_keys_write_out_a_dot_product(xray):
    scores = xray.get_by_role("table", name="Scores").get_by_role("button")
    scores.nth(15).hover()  # it reads the
    assert "it · the" in xray.locator(".ax-title").nth(2).inner_text()
    scores.nth(15).focus()
    xray.keyboard.press("ArrowRight")
    xray.keyboard.press("ArrowUp")
    assert "naps · cat" in xray.locator(".ax-title").nth(2).inner_text()
    assert xray.evaluate("document.activeElement.getAttribute('aria-label')").startswith("naps reads cat")
    figure = AttentionXRay()
    dot = sum(a * b for a, b in zip(figure.query[2][:16], figure.key[1][:16], strict=True))
    written = xray.locator(".ax-written").first.inner_text().replace("−", "-")
    assert f"= {dot:.2f}".replace("-0.00", "0.00") in written


def test_tables_have_one_tab_stop_each(xray):
    for name in ("Scores", "Weights"):
        stops = xray.get_by_role("table", name=name).locator("button[tabindex='0']")
        assert stops.count() == 1


def test_a_masked_score_is_named_as_future(xray):
    xray.get_by_role("button", name="the reads purrs: −∞").click()
    assert "the mask puts −∞" in xray.locator(".ax-written").first.inner_text()


def test_verdict_tells_saturation_and_equivariance(xray):
    verdict = xray.locator(".mm-verdict")
    assert "reads from several tokens" in verdict.inner_text()
    xray.get_by_label("head_dim D").fill("5")
    xray.get_by_label("divide by √D").uncheck()
    assert verdict.inner_text().startswith("Saturated")
    xray.get_by_label("permute").check()
    assert verdict.inner_text().startswith("≠ Permuted")
    xray.get_by_label("causal mask").uncheck()
    assert verdict.inner_text().startswith("✓ Permuted")
    assert table(xray, "Scores")[0][0] != "−∞"
    xray.get_by_label("RoPE").check()
    assert verdict.inner_text().startswith("≠ Permuted")


def test_what_the_chapter_asks_to_switch_is_in_sight(page):
    open_figures(page, AttentionXRay())
    for name in ("head_dim D", "divide by √D", "causal mask", "permute"):
        assert page.get_by_label(name).is_visible()


# The reader's story


def test_the_story_shows_the_trained_heads_weights_and_score(page):
    open_figures(page, AttentionXRay())
    show_story(page)
    reading, (layer, head) = read_story(), telling_head()
    block = reading.blocks[layer]
    row = block.weights[head, -1]
    key = int(row.argmax())
    shown = page.eval_on_selector_all(".mm-word", "all => all.map((one) => one.getAttribute('aria-label'))")
    assert shown == [f"{word} {weight:.2f}" for word, weight in zip(reading.words, row.tolist(), strict=True)]
    assert f"reads “{reading.words[key]}” most, with weight {row[key]:.2f}" in page.inner_text(".mm-verdict")
    score = float(block.scores[head, -1, key])
    root = block.query.shape[-1]
    written = page.inner_text("[data-sym=score] .ax-written")
    assert f"= {score:.2f}, and {score:.2f} / √{root} = {score / root**0.5:.2f}." in written


def test_a_word_of_the_story_reads_no_later_one(page):
    open_figures(page, AttentionXRay())
    show_story(page)
    page.locator(".mm-word").nth(7).click()
    settle(page)
    row = read_story().blocks[telling_head()[0]].weights[telling_head()[1], 7]
    shown = page.eval_on_selector_all(".mm-word", "all => all.map((one) => one.getAttribute('aria-label'))")
    assert shown[7].endswith(f" {row[7]:.2f}") and all(label.endswith("future") for label in shown[8:])
