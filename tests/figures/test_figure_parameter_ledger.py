"""ParameterLedger: the browser's formulas count what the package builds, and tying takes away one table."""

import itertools
import re

import pytest
import torch
from browser import open_figures, settle
from story_reader import read_story, show_story

from minimind_edu import MiniMindConfig, world
from minimind_edu.figures import ParameterLedger
from minimind_edu.figures.parameter_ledger import PARTS, count_by_part

MATH = "figures/parameter_ledger/math"
JS_PARTS = ("embedding", "attention", "feedForward", "norms", "head")
SIZES = list(itertools.product(("minimind2", "minimind3"), (128, 704, 2048), (1, 3), (1, 4)))


def figure(generation, hidden, layers, kv_heads, vocabulary=1600, tied=True) -> ParameterLedger:
    return ParameterLedger(
        hidden_size=hidden,
        num_hidden_layers=layers,
        vocab_size=vocabulary,
        num_key_value_heads=kv_heads,
        generation=generation,
        tied=tied,
    )


def as_js(ledger: ParameterLedger) -> dict:
    return {
        "hidden": ledger.hidden_size,
        "layers": ledger.num_hidden_layers,
        "vocabulary": ledger.vocab_size,
        "heads": 8,
        "kvHeads": ledger.num_key_value_heads,
        "generation": ledger.generation,
        "tied": ledger.tied,
    }


# The Python side


@pytest.mark.parametrize(
    "config, total",
    [
        (MiniMindConfig.minimind2(), 25_829_888),
        (MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16), 104_030_976),
        (MiniMindConfig.minimind3(), 63_912_192),
    ],
)
def test_parts_of_the_real_models_add_up(config, total):
    counts = count_by_part(config)
    assert tuple(counts) == PARTS
    assert sum(counts.values()) == total
    assert counts["head"] == 0
    assert counts["embedding"] == config.vocab_size * config.hidden_size


def test_the_table_names_every_part_of_the_untied_model():
    rows = dict(ParameterLedger()._summary()[1])
    assert rows["head"] == rows["embedding"] == "3,276,800, 11.26%"
    assert rows["untied model"] == "29,106,688"
    assert rows["tied model"] == "25,829,888"


# The formulas, against models that the package builds


def test_every_part_is_what_the_package_counts(node):
    ledgers = [figure(*sizes, tied=tied) for sizes, tied in itertools.product(SIZES, (True, False))]
    all_counts = node.each(MATH, "parameterLedger", [[as_js(ledger)] for ledger in ledgers])
    for ledger, actual in zip(ledgers, all_counts, strict=True):
        expected = count_by_part(ledger.config(ledger.tied))
        assert [actual[name] for name in JS_PARTS] == list(expected.values()), ledger
        assert actual["total"] == sum(expected.values())


def test_feed_forward_width_is_the_packages_at_every_step_of_the_slider(node):
    arguments = list(itertools.product(range(128, 2049, 64), ("minimind2", "minimind3")))
    expected = [figure(generation, hidden, 1, 2).config(True).intermediate_size for hidden, generation in arguments]
    assert node.each(MATH, "intermediateSize", arguments) == expected


@pytest.mark.parametrize(
    "sizes, share",
    [(("minimind2", 768, 16, 2), 0.0451), (("minimind2", 768, 8, 2), 0.0828), (("minimind2", 512, 8, 2), 0.1126)],
)
def test_saved_shares_of_the_real_models(node, sizes, share):
    args = [as_js(figure(*sizes, vocabulary=6400))]
    saved = node.call(MATH, "savedByTying", args)
    assert saved["share"] == pytest.approx(share, abs=5e-5)
    assert saved["parameters"] == 6400 * sizes[1]


def test_vocabulary_steps_lead_there_and_back(node):
    steps = list(range(12, 45))
    at = node.each(MATH, "vocabularyAt", [[step] for step in steps])
    assert (at[0], at[12], at[-1]) == (800, 6400, 204_800)
    assert node.each(MATH, "vocabularyStep", [[vocabulary] for vocabulary in at]) == steps


def test_the_nearest_rows_are_those_of_the_largest_cosine(node):
    rows = torch.randn(30, 5, generator=torch.Generator().manual_seed(0))
    cosines = torch.nn.functional.cosine_similarity(rows[4], rows, dim=1)
    nearest = node.evaluate(
        """async ([rows, at, count]) => {
            const { nearestRows } = await import("/figures/parameter_ledger/math.js");
            return nearestRows({ shape: [30, 5], data: Float32Array.from(rows.flat()) }, at, count);
        }""",
        [rows.tolist(), 4, 7],
    )
    best = cosines.argsort(descending=True)[1:8]  # but itself
    assert [one["row"] for one in nearest] == best.tolist()
    assert [one["cosine"] for one in nearest] == pytest.approx(cosines[best].tolist())


# The figure in the browser


@pytest.fixture
def ledger(page):
    page.set_viewport_size({"width": 800, "height": 1400})
    open_figures(page, ParameterLedger())
    page.locator(".mm-more summary").click()
    return page


def numbers(page) -> list[str]:
    return page.locator(".mm-readout dd").all_inner_texts()


def row_of(page, name):
    return page.get_by_role("row", name=name)


def row(page, name) -> list[str]:
    return row_of(page, name).inner_text().split()


def test_compact_the_switch_takes_the_head_away(page):
    open_figures(page, ParameterLedger(compact=True, tied=False))
    assert row(page, "total")[1] == "29,106,688"
    page.get_by_role("switch").check()
    assert row(page, "total")[1] == "25,829,888"
    assert page.locator(".le-saved").count() == 1
    assert page.locator(".mm-verdict").inner_text().startswith("Tying saves 3,276,800 parameters")


def test_presets_are_the_real_models(ledger):
    shown = {
        "MiniMind2 small": ["25,829,888", "29,106,688", "11.26 %", "22.52 %"],
        "MiniMind2": ["104,030,976", "108,946,176", "4.51 %", "9.02 %"],
        "MiniMind3": ["63,912,192", "68,827,392", "7.14 %", "14.28 %"],
    }
    for preset, (tied, untied, saved, both) in shown.items():
        ledger.get_by_label("hidden size").fill("1024")
        assert ledger.locator(".mm-choice:not(.mm-source *) input:checked").count() == 0
        ledger.get_by_label(preset, exact=True).check()
        assert row(ledger, "total")[1] == tied
        assert numbers(ledger) == [untied, both]
        assert (
            ", {} of the untied model".format(saved.replace(" ", "\N{NO-BREAK SPACE}"))
            in ledger.locator(".mm-verdict").inner_text()
        )


def test_bars_are_as_long_as_their_counts(ledger):
    counts = count_by_part(ParameterLedger().config(False))
    widths = {name: row_of(ledger, name).locator(".le-part").bounding_box()["width"] for name in PARTS}
    for name in ("embedding", "attention", "head"):
        expected = counts[name] / counts["feed-forward"]
        assert widths[name] / widths["feed-forward"] == pytest.approx(expected, abs=0.01)


def test_untying_adds_the_head_and_says_what_tying_would_save(ledger):
    ledger.get_by_role("switch").uncheck()
    assert row(ledger, "total")[1] == "29,106,688"
    assert numbers(ledger)[0] == "25,829,888"
    assert ledger.locator(".le-saved").count() == 0
    words = ledger.locator(".mm-verdict").inner_text()
    assert words == "Tying would save 3,276,800 parameters, 11.26\N{NO-BREAK SPACE}% of the untied model."
    assert row(ledger, "head") == ["head", "3,276,800", "11.26", "%"]


def test_tied_the_head_is_an_outline_in_chart_and_table(ledger):
    assert ledger.locator(".le-saved").count() == 2
    assert row(ledger, "head")[1:3] == ["0", "(tied)"]


def test_with_a_big_vocabulary_the_tables_dominate_and_depth_undoes_it(ledger):
    ledger.get_by_label("vocabulary").fill("44")
    both = float(numbers(ledger)[1].split()[0])
    assert both > 90
    ledger.get_by_label("layers", exact=True).fill("32")
    assert float(numbers(ledger)[1].split()[0]) < both - 15


@pytest.mark.parametrize("vocabulary", [800, 6400, 204_800])
def test_names_in_the_chart_keep_apart_and_inside(page, vocabulary):
    page.set_viewport_size({"width": 928, "height": 900})
    open_figures(page, ParameterLedger(vocab_size=vocabulary))
    chart = page.locator("svg[role=group]").bounding_box()
    names = page.locator("svg[role=group] text").filter(has_text=re.compile("head|embedding|attention|feed")).all()
    boxes = [name.bounding_box() for name in names]
    assert len(boxes) == 4
    assert all(other["y"] - one["y"] > 13 for one, other in itertools.pairwise(boxes))
    assert all(box["x"] + box["width"] <= chart["x"] + chart["width"] for box in boxes)
    assert all(box["y"] + box["height"] <= chart["y"] + chart["height"] for box in boxes)


@pytest.mark.parametrize("width", [928, 344])
def test_the_chart_folds_where_it_has_no_room(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_figures(page, ParameterLedger())
    chart = page.get_by_role("slider", name="layers, in the chart")
    assert chart.is_visible() == (width == 928)
    page.locator(".mm-more summary").click()
    assert chart.is_visible()


def test_every_slider_shows_the_packages_total(ledger):
    changes = {}
    for label, position, name, value in [
        ("vocabulary", "20", "vocab_size", 3200),
        ("layers", "3", "num_hidden_layers", 3),
        ("hidden size", "1152", "hidden_size", 1152),
        ("key/value heads", "3", "num_key_value_heads", 8),
    ]:
        ledger.get_by_label(label).last.fill(position)
        changes[name] = value
        tied = sum(count_by_part(ParameterLedger(**changes).config(True)).values())
        assert row(ledger, "total")[1] == f"{tied:,}"


def test_a_vocabulary_between_the_steps_is_shown_as_it_is(page):
    open_figures(page, ParameterLedger(vocab_size=50_257))
    page.locator(".mm-more summary").click()
    assert page.get_by_label("vocabulary").get_attribute("aria-valuetext") == "50,257"


def test_the_point_in_the_chart_answers_to_arrow_keys(ledger):
    point = ledger.get_by_role("slider", name="layers, in the chart")
    point.focus()
    ledger.keyboard.press("ArrowRight")
    ledger.keyboard.press("Shift+ArrowRight")
    assert point.get_attribute("aria-valuenow") == "14"
    assert ledger.get_by_label("layers", exact=True).input_value() == "14"


# The reader's story


def test_the_story_counts_the_living_model_and_finds_the_nearest_row(page):
    open_figures(page, ParameterLedger())
    show_story(page)
    reading = read_story()
    config = reading.model.config
    counts = count_by_part(config)
    table = page.locator(".le-table").first
    cells = table.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.children[2].textContent)")
    assert cells[:4] == [f"{counts[part]:,}" for part in ("embedding", "attention", "feed-forward", "norms")]
    whole = reading.model.num_parameters()
    rows = torch.nn.functional.normalize(reading.model.model.embed_tokens.weight.detach(), dim=-1)
    cosines = (rows @ rows.T).fill_diagonal_(-1)
    ids = world.encode(" ".join(reading.words))
    telling = max(range(len(ids)), key=lambda at: float(cosines[ids[at]].max()))
    nearest = cosines[ids[telling]].topk(5)
    shown = page.eval_on_selector_all(
        ".le-nearest tr", "rows => rows.map((row) => [row.children[0].textContent, row.children[2].textContent])"
    )
    assert shown == [[world.WORDS[i], f"{c:.2f}"] for c, i in zip(*map(torch.Tensor.tolist, nearest), strict=True)]
    saved = config.vocab_size * config.hidden_size
    verdict = page.inner_text(".mm-verdict")
    assert f"Tying saves {saved:,} parameters, {100 * saved / (whole + saved):.2f}\N{NO-BREAK SPACE}%" in verdict
    assert f"“{reading.words[telling]}”" in verdict and f"“{shown[0][0]}”, cosine {shown[0][1]}" in verdict


def test_untying_the_living_model_stays_in_the_figure(page):
    open_figures(page, ParameterLedger())
    before = page.inner_text(".le-table")
    show_story(page)
    page.get_by_role("switch").uncheck()
    config = read_story().model.config
    saved = config.vocab_size * config.hidden_size
    assert page.inner_text(".mm-verdict").startswith(f"Tying would save {saved:,} parameters")
    page.locator(".mm-word").nth(3).click()
    assert not page.get_by_role("switch").is_checked()
    page.get_by_label("Example").check()
    settle(page)
    assert page.inner_text(".le-table") == before
