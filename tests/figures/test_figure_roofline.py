"""Roofline: the browser counts as the package does, a static page measures nothing, every control moves the point."""

import math
from dataclasses import asdict

import pytest
from browser import open_figures, read_out, settle
from story_reader import read_story, show_story
from traitlets import TraitError

import minimind_edu.figures.roofline as module
from minimind_edu.figures import Roofline
from minimind_edu.figures.roofline import stored_machine
from minimind_edu.measure.costs import Machine, call_cost, decode_cost, prefill_cost
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.trained.living import living_model

MATH = "figures/roofline/math"
MACHINE = {"bandwidth": 2e10, "peak": 1e11}  # ridge 5
SIZES = [(512, 8, 2, 1, 4), (768, 16, 2, 8, 2), (128, 1, 8, 512, 1), (4096, 48, 1, 3, 4)]


def measured(**limits):
    """A machine with round limits, on which nothing but them was measured."""
    machine = {"name": "a test", "date": "2026-01-01", "dtype": "float32", **MACHINE, **limits}
    return machine | {"runs": [], "measured_at": {"itemsize": 4}}


def js_sizes(hidden, layers, kv_heads, batch, itemsize):
    return {
        "hidden": hidden,
        "layers": layers,
        "heads": 8,
        "kvHeads": kv_heads,
        "vocabulary": 6400,
        "batch": batch,
        "itemsize": itemsize,
    }


def config(hidden, layers, kv_heads):
    return MiniMindConfig.minimind2(hidden_size=hidden, num_hidden_layers=layers, num_key_value_heads=kv_heads)


def as_js(cost):
    return {"operations": cost.operations, "weightBytes": cost.weight_bytes, "cacheBytes": cost.cache_bytes}


# ---- the mathematics, in JavaScript and in the package


@pytest.mark.parametrize("sizes", SIZES)
def test_costs_agree_with_the_package(node, sizes):
    hidden, layers, kv_heads, batch, itemsize = sizes
    model, contexts = config(hidden, layers, kv_heads), [1, 512, 32768]
    for name, cost in [("decodeCost", decode_cost), ("prefillCost", prefill_cost)]:
        told = node.each(MATH, name, [[js_sizes(*sizes), context] for context in contexts])
        for context, actual in zip(contexts, told, strict=True):
            assert actual == pytest.approx(as_js(cost(model, context, batch, itemsize)), rel=1e-12)
    expected = as_js(call_cost(model, 7, 30, batch, itemsize))
    assert node.call(MATH, "callCost", [js_sizes(*sizes), 7, 30]) == expected


@pytest.mark.parametrize("cost", [decode_cost, prefill_cost])
def test_limits_agree_with_the_package(node, cost):
    machine = Machine(**MACHINE)
    for batch in (1, 64):
        counted = cost(config(512, 8, 2), 512, batch)
        under = node.call(MATH, "underRoof", [as_js(counted), MACHINE])
        assert under["intensity"] == pytest.approx(counted.intensity)
        assert under["seconds"] == pytest.approx(machine.seconds(counted))
        assert under["limit"] == machine.limited_by(counted)
        assert under["attainable"] == pytest.approx(machine.attainable(counted.intensity))
        assert node.call(MATH, "attainableAt", [counted.intensity, MACHINE]) == (
            pytest.approx(machine.attainable(counted.intensity))
        )


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (950, "950"), (1.7e11, "170 G"), (11.53e9, "11.5 G"), (999.9e6, "1 G"), (2e15, "2 P")],
)
def test_numbers_for_reading(node, number, text):
    assert node.call(MATH, "withPrefix", [number]) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00931, "9.31 ms"),
        (0.000369, "369 µs"),
        (2.5, "2.50 s"),
        (0.168, "168 ms"),
        (3e-5, "30.0 µs"),
        (1630, "27.2 min"),
        (54924, "15.3 h"),
    ],
)
def test_times_for_reading(node, seconds, text):
    assert node.call(MATH, "duration", [seconds]) == text


def test_the_nearest_intensity_is_so_by_ratio(node):
    nearest = """async ([options, wanted]) => {
        const { nearestIntensity } = await import("/figures/roofline/math.js");
        return wanted.map((one) => nearestIntensity(options, (option) => option ** 2, one));
    }"""
    assert node.evaluate(nearest, [[1, 2, 8], [1e-9, 1.9, 2.1, 15, 17, 1e9]]) == [1, 1, 2, 2, 8, 8]


def test_the_living_models_sizes_cost_what_the_package_counts(node):
    model = living_model().config
    sizes = node.call("figures/roofline/story", "costSizes", [{"living": {"model": {"config": asdict(model)}}}])
    expected = as_js(call_cost(model, 7, 30, 1, 4))
    assert node.call(MATH, "callCost", [sizes | {"batch": 1, "itemsize": 4}, 7, 30]) == expected


# ---- the machine


def test_the_stored_machine_was_measured_on_the_model_that_it_names():
    stored = stored_machine()
    at = stored["measured_at"]
    model = config(at["hidden_size"], at["num_hidden_layers"], at["num_key_value_heads"])
    sizes = model, at["context"], at["batch"], at["itemsize"]
    for run in stored["runs"]:
        cost = (prefill_cost if run["name"] == "prefill" else decode_cost)(*sizes)
        assert (run["operations"], run["weight_bytes"]) == (cost.operations, cost.weight_bytes)
        assert run["cache_bytes"] == cost.cache_bytes
        assert run["seconds"] > 0
    assert Machine(stored["bandwidth"], stored["peak"]).ridge > 1
    assert {run["name"] for run in stored["runs"]} >= {"prefill", "decode, plain"}


def test_a_static_figure_measures_nothing(monkeypatch):
    def measure():
        raise AssertionError("a page without a kernel must not depend on a machine")

    monkeypatch.setattr(module, "this_machine", measure)
    monkeypatch.setenv("MINIMIND_EDU_STATIC", "1")
    assert Roofline().machine["bandwidth"] == stored_machine()["bandwidth"]
    assert Roofline().static_html() == Roofline().static_html()


@pytest.mark.parametrize("wrong", [{"nonsense": 1}, {"hidden_size": 3}, {"batch": 3}, {"itemsize": 8}], ids=str)
def test_what_is_refused_is_refused_before_the_machine_is_measured(wrong, monkeypatch):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)
    monkeypatch.setattr(module, "this_machine", lambda: pytest.fail("it was measured"))
    with pytest.raises((TypeError, TraitError), match=next(iter(wrong))):
        Roofline(**wrong)


def test_a_live_figure_takes_the_readers_machine(monkeypatch):
    monkeypatch.setattr(module, "this_machine", lambda: measured(bandwidth=7e9))
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)
    assert Roofline().machine["bandwidth"] == 7e9


def test_numbers_start_as_wide_as_they_were_measured():
    half = measured() | {"dtype": "bfloat16", "measured_at": {"itemsize": 2}}
    assert Roofline(half).itemsize == 2
    assert Roofline(half, itemsize=4).itemsize == 4


def test_the_table_tells_the_limits():
    figure = Roofline(measured())
    sentence, rows = figure._summary()
    table = dict(rows)
    cost = decode_cost(figure.config(), 512)
    assert table["ridge, operations per byte"] == "5.0"
    assert table["decode is limited by"] == "memory"
    assert table["prefill is limited by"] == "arithmetic"
    assert table["decode, tokens per second at most"] == f"{2e10 / cost.bytes:,.0f}"
    assert "512 x 8" in sentence


# ---- a life in the page


def told(page, label):
    return next(value for name, value in read_out(page).items() if name.startswith(label))


def slide(page, label, steps):
    page.get_by_role("slider", name=label, exact=True).focus()
    for _ in range(abs(steps)):
        page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")


def verdict(page):
    return page.locator(".mm-verdict").inner_text()


def opened(page, *figures):
    open_figures(page, *figures)
    page.locator(".mm-more summary").click()


def test_the_words_and_numbers_are_the_packages(page):
    figure = Roofline(measured())
    opened(page, figure)
    machine = Machine(**MACHINE)
    decode, prefill = decode_cost(figure.config(), 512), prefill_cost(figure.config(), 512)
    assert told(page, "each sequence gets") == f"{1 / machine.seconds(decode):,.0f}"
    unused = 1 - decode.operations / machine.peak / machine.seconds(decode)
    assert (
        verdict(page) == f"Decode waits for memory: {100 * unused:.0f}\N{NO-BREAK SPACE}% of its arithmetic is unused."
    )
    assert told(page, "prefill, tokens") == f"{512 / machine.seconds(prefill):,.0f}"
    labels = page.locator(".ro-labels text").all_text_contents()
    assert labels == [
        "decode, batch 1",
        f"≤ {1 / machine.seconds(decode):,.0f} tokens/s",
        "prefill, 512 tokens",
        f"≤ {512 / machine.seconds(prefill):,.0f} tokens/s",
    ]
    assert told(page, "ridge") == "5.0"


def test_one_token_is_no_tokens(page):
    open_figures(page, Roofline(measured(), context=1))
    assert "prefill, 1 token" in page.locator(".ro-labels text").all_text_contents()
    assert page.get_by_role("slider", name="prompt length").get_attribute("aria-valuetext").startswith("1 token:")


@pytest.mark.parametrize("compact", [False, True])
def test_a_larger_batch_lifts_decode_until_it_computes(page, compact):
    figure = Roofline(measured(), batch=32)
    open_figures(page, Roofline(measured(), compact=compact))
    height = page.get_by_role("slider", name="batch, in the chart").bounding_box()["y"]
    slide(page, "batch", 5)
    assert page.get_by_role("slider", name="batch, in the chart").bounding_box()["y"] < height - 20
    if compact:
        return
    assert verdict(page).startswith("Decode is busy computing")
    intensity = decode_cost(figure.config(), 512, 32).intensity
    assert told(page, "decode, operations") == f"{intensity:.2f}"


def test_compact_it_has_the_batch_alone(page):
    open_figures(page, Roofline(measured(), compact=True))
    assert page.get_by_role("slider", name="prompt length").count() == 0


def test_fewer_key_value_heads_make_long_contexts_faster(page):
    opened(page, Roofline(measured(), context=32768, num_key_value_heads=8))
    slow = float(told(page, "each sequence gets"))
    page.get_by_role("radio", name="8", exact=True).focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    quick = float(told(page, "each sequence gets"))
    assert quick > 4 * slow
    assert told(page, "cache") == "128 MiB"


def test_bytes_of_a_number_move_the_point_along_the_slope(page):
    opened(page, Roofline(measured()))
    before = float(told(page, "decode, operations"))
    page.get_by_role("radio", name="4", exact=True).last.focus()
    page.keyboard.press("ArrowRight")
    assert float(told(page, "decode, operations")) == pytest.approx(2 * before, abs=0.02)


def dragged(page, name, dx):
    handle = page.get_by_role("slider", name=name, exact=True)
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx, y, steps=8)
    page.mouse.up()
    return int(handle.get_attribute("aria-valuenow"))


def test_dragging_the_points_changes_batch_and_context(page):
    open_figures(page, Roofline(measured()))
    assert dragged(page, "batch, in the chart", 80) > 4
    assert dragged(page, "batch, in the chart", -300) == 1
    assert dragged(page, "prompt length, in the chart", -100) < 100


def test_the_points_stand_on_the_roof(page):
    """Both handles keep their place on the line: their height follows from their intensity."""
    open_figures(page, Roofline(measured()))
    roof = page.locator("path.ro-roof").get_attribute("d")
    corners = [[float(n) for n in p.split()] for p in roof.replace("M", "").split("L")]
    for name in ("batch, in the chart", "prompt length, in the chart"):
        place = page.get_by_role("slider", name=name, exact=True).get_attribute("transform")
        x, y = (float(n) for n in place.removeprefix("translate(").rstrip(")").split())
        (x0, y0), (x1, y1), (_, flat) = corners
        on_roof = y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x < x1 else flat
        assert math.isclose(y, on_roof, abs_tol=0.6)


def test_measured_bars_show_only_where_they_were_measured(page):
    opened(page, Roofline(stored_machine()))
    runs = stored_machine()["runs"]
    assert page.locator("rect.ro-real").count() == len(runs) + 1  # and one in the legend
    slide(page, "layers", 1)
    assert page.locator("svg[role=img] rect.ro-real").count() == 0
    slide(page, "layers", -1)
    assert page.locator("rect.ro-real").count() == len(runs) + 1


def test_the_times_fold_where_they_have_no_room(page):
    page.set_viewport_size({"width": 344, "height": 900})
    open_figures(page, Roofline(stored_machine()))
    times = page.locator(".ro-times")
    assert not times.is_visible()
    page.locator(".mm-more summary").click()
    assert times.is_visible()


@pytest.mark.parametrize(("width", "batch", "context"), [(928, 64, 8), (328, 64, 8), (328, 512, 1), (328, 1, 32768)])
def test_labels_of_the_two_points_keep_apart_and_inside(page, width, batch, context):
    page.set_viewport_size({"width": width + 16, "height": 900})
    open_figures(page, Roofline(stored_machine(), batch=batch, context=context))
    boxes = [one.bounding_box() for one in page.locator(".ro-labels text").all()]
    figure = page.locator("svg[role=group]").bounding_box()
    for box in boxes:
        assert box["x"] >= figure["x"] - 0.5
        assert box["x"] + box["width"] <= figure["x"] + figure["width"] + 0.5
        assert box["y"] + box["height"] <= figure["y"] + figure["height"] - 30  # the numbers of the axis
    for one, other in [(a, b) for a in boxes[:2] for b in boxes[2:]]:
        apart_x = one["x"] + one["width"] < other["x"] or other["x"] + other["width"] < one["x"]
        assert apart_x or abs(one["y"] - other["y"]) >= 14


def test_of_two_points_in_one_place_both_are_seen_and_grabbed(page):
    """A batch of 512 that decodes without a past costs what a prefill of one token costs, 512 times."""
    open_figures(page, Roofline(stored_machine(), batch=512, context=1))
    disk = page.locator("circle.ro-disk").bounding_box()
    square = page.locator("rect.ro-square").bounding_box()
    assert square["x"] < disk["x"] - 2 and disk["x"] + disk["width"] + 2 < square["x"] + square["width"]
    x, y = square["x"] + 1, square["y"] + 1
    hit = "([x, y]) => document.elementFromPoint(x, y).closest('.mm-handle').getAttribute('aria-label')"
    assert page.evaluate(hit, [x, y]) == "prompt length, in the chart"
    assert page.evaluate(hit, [disk["x"] + 5, disk["y"] + 5]) == "batch, in the chart"


# The reader's story


def test_the_story_puts_the_living_model_under_the_roof(page):
    figure = Roofline(measured=stored_machine())
    open_figures(page, figure)
    show_story(page)
    reading = read_story()
    cost = decode_cost(reading.model.config, len(reading.words))
    machine = Machine(figure.machine["bandwidth"], figure.machine["peak"])
    numbers = read_out(page)
    assert numbers["decode, operations per byte"] == f"{cost.intensity:.2f}"
    assert numbers["each sequence gets, tokens per second"] == f"{round(1 / machine.seconds(cost)):,}"
    assert float(numbers["read in this page, tokens per second"].replace(",", "")) > 0
    unused = 1 - cost.operations / machine.peak / machine.seconds(cost)
    weights = f"{cost.weight_bytes // 4:,}"
    verdict = page.inner_text(".mm-verdict")
    assert f"only {weights} weights" in verdict and f"{100 * unused:.0f}\N{NO-BREAK SPACE}%" in verdict
    assert numbers["weights"] == f"{cost.weight_bytes / 1024:.0f} KiB"
    prefill = prefill_cost(reading.model.config, len(reading.words))
    assert numbers["prefill, operations per byte"] == f"{prefill.intensity:.1f}"


def test_a_batch_of_the_living_model_was_not_timed(page):
    open_figures(page, Roofline(measured=stored_machine()))
    show_story(page)
    assert "this page" in page.locator(".ro-bars").first.text_content()
    page.get_by_label("batch", exact=True).fill("3")
    settle(page)
    drawn = page.locator(".ro-bars").first.text_content()
    assert "this page" not in drawn and "timed only at batch 1" in drawn
