"""NormGeometry: its numbers against torch's own norms, and what a hand sees that moves it."""

import math

import pytest
import torch
from browser import SIZE, Watch, open_figures, read_out, serve, settle, unfold
from story_reader import read_story, show_story
from torch.nn import functional as F

from minimind_edu.figures import NormGeometry, module_source
from minimind_edu.figures.norm_geometry import channel_stats, example_values
from minimind_edu.model.for_comparison import LayerNorm
from minimind_edu.model.norms import RMSNorm

MATH = "figures/norm_geometry/math"
SIZES = (1280, 360)


def rms_norm(x, gain=None, eps=1e-5):
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def layer_norm(x, gain=None, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gain, None, eps)


REFERENCES = {"rmsNorm": rms_norm, "layerNorm": layer_norm}


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def spread_inputs():
    """Vectors of 3 and 64 channels, from far below eps to far above, with offsets up to a million."""
    generator = torch.Generator().manual_seed(0)
    for dim in (3, 64):
        for scale in (0.0, 1e-9, 1e-4, 1e-2, 1.0, 30.0, 1e5):
            for offset in (0.0, 1e-3, -1.0, 5.0, 1e6):
                yield scale * torch.randn(dim, generator=generator, dtype=torch.float64) + offset


# The package's numbers


def test_outputs_equal_the_norms_of_torch():
    figure = NormGeometry(x=[0.3, -2.0, 4.0], offset=1.5, gain=[0.5, -1.2, 2.0], eps=1e-3)
    x, gain = tensor([1.8, -0.5, 5.5]), tensor([0.5, -1.2, 2.0])
    outputs = figure.outputs()
    torch.testing.assert_close(outputs["input"], x)
    torch.testing.assert_close(outputs["layer"], layer_norm(x, gain, 1e-3))
    torch.testing.assert_close(outputs["rms"], rms_norm(x, gain, 1e-3))


def test_curve_equals_the_norms_of_torch():
    figure = NormGeometry()
    x = tensor(figure.values)
    for name, reference in {"layer": layer_norm, "rms": rms_norm}.items():
        for at in (0, 7, 50):
            y = reference(x + figure.curve["c"][at])
            for key, value in {"mean": y.mean(), "std": y.var(correction=0).sqrt()}.items():
                assert figure.curve[name][key][at] == pytest.approx(value.item(), abs=6e-6)


def test_an_offset_raises_the_mean_and_narrows_the_spread_of_rms_norm_only():
    curve = NormGeometry().curve
    at = [curve["c"].index(c) for c in (0.0, 1.0, 5.0)]
    assert [curve["rms"]["mean"][i] for i in at] == pytest.approx([-0.10, 0.66, 0.98], abs=0.01)
    assert [curve["rms"]["std"][i] for i in at] == pytest.approx([0.99, 0.75, 0.21], abs=0.01)
    assert curve["rms"]["mean"] == sorted(curve["rms"]["mean"])
    for key, value in {"mean": 0, "std": 1, "rms": 1}.items():
        assert curve["layer"][key] == pytest.approx([value] * 51, abs=1e-5)


def test_rms_squared_is_mean_squared_plus_std_squared():
    for y in spread_inputs():
        mean, std, rms = channel_stats(y).values()
        torch.testing.assert_close(rms**2, mean**2 + std**2)


def test_curve_follows_the_values():
    figure = NormGeometry()
    figure.values = [1.0, 2.0, 3.0, 4.0]
    assert figure.curve["rms"]["mean"][0] == pytest.approx(2.5 / math.sqrt(7.5), abs=1e-5)


def test_gain_turns_the_notes_example_by_almost_seven_degrees():
    rows = dict(NormGeometry(x=[1.0, -2.0, 3.0], gain=[1.0, 1.5, 1.2])._summary()[1])
    assert rows["RMSNorm: angle to the input"] == "6.87 degrees"


def test_table_is_honest_about_vectors_without_direction():
    rows = dict(NormGeometry(x=[1.2, 1.2, 1.2])._summary()[1])
    assert rows["LayerNorm: channels"] == "0.0000, 0.0000, 0.0000"
    assert rows["LayerNorm: angle to the input"].startswith("none")
    assert rows["RMSNorm: angle to the input"] == "0.00 degrees"


def test_the_longer_vector_does_not_depend_on_the_notebooks_default_dtype():
    expected = example_values()
    torch.set_default_dtype(torch.float32 if torch.get_default_dtype() == torch.float64 else torch.float64)
    try:
        assert example_values() == expected == NormGeometry().values
    finally:
        torch.set_default_dtype(torch.float32)


# The same formulas in JavaScript


@pytest.mark.parametrize("name", REFERENCES)
def test_norms_in_the_page_equal_torch(node, name):
    generator = torch.Generator().manual_seed(1)
    cases = []
    for x in spread_inputs():
        gain = torch.randn(len(x), generator=generator, dtype=torch.float64)
        cases += [(x, 1e-6, None), (x, 1e-5, gain), (x, 1.0, None)]
    arguments = [[x.tolist(), eps] + ([] if gain is None else [gain.tolist()]) for x, eps, gain in cases]
    for (x, eps, gain), got in zip(cases, node.each(MATH, name, arguments), strict=True):
        # LayerNorm divides what the subtraction of the mean left of the digits of x.
        lost = 4e-15 * x.abs().max().item() / math.sqrt(eps) if name == "layerNorm" else 0
        want = REFERENCES[name](x, gain, eps)
        torch.testing.assert_close(tensor(got), want, rtol=1e-12, atol=1e-15 + lost)


def test_stats_in_the_page_equal_torch(node):
    inputs = list(spread_inputs())
    for x, got in zip(inputs, node.each(MATH, "channelStats", [[x.tolist()] for x in inputs]), strict=True):
        want = {key: value.item() for key, value in channel_stats(x).items()}
        assert got == pytest.approx(want, rel=1e-9, abs=1e-9)


def test_angle_keeps_its_digits_when_it_is_small(node):
    for radians in (1e-9, 1e-4, 0.12, 1.5, 3.0, math.pi):
        turned = [2 * math.cos(radians), 2 * math.sin(radians), 0]
        got = node.call(MATH, "angleBetween", [[3, 0, 0], turned])
        assert got == pytest.approx(math.degrees(radians), rel=1e-6)
    assert node.call(MATH, "angleBetween", [[0, 0, 0], [1, 0, 0]]) != pytest.approx(0)


def test_every_rms_norm_of_a_shifted_vector_lies_on_the_dotted_half_circle(node):
    x = tensor([2.1, -1.2, 1.5])
    points = tensor(node.call(MATH, "meridianThrough", [x.tolist(), math.sqrt(3), 24]))
    mean, std, _ = channel_stats(points[1:-1]).values()
    c = mean / std * x.std(correction=0) - x.mean()  # the offset that leads to each point
    shifted = x + c[:, None]
    torch.testing.assert_close(rms_norm(shifted, eps=0.0), points[1:-1])
    assert c[0] < -5 and c[-1] > 5


def test_view_is_orthonormal_and_can_be_undone(node):
    for yaw, pitch in [(0, 0), (0.4, 0.34), (-2.5, 1.2), (3, math.pi / 2)]:
        view = node.call(MATH, "viewFrom", [yaw, pitch])
        rows = tensor([view["right"], view["up"], view["toward"]])
        torch.testing.assert_close(rows @ rows.T, torch.eye(3, dtype=torch.float64))
        assert torch.linalg.det(rows) > 0  # not a mirror image
        point = [0.3, -2.0, 5.0]
        seen = node.call(MATH, "project", [view, point])
        assert node.call(MATH, "unproject", [view, seen]) == pytest.approx(point)


def test_a_hand_is_led_along_the_arrow_and_straight_up_and_nowhere_else(node):
    view, x = node.call(MATH, "viewFrom", [0.4, 0.34]), [2.1, -1.2, 1.5]
    aside = [0.02 * part for part in view["right"]]  # what a hand is off
    for way, factor, stays in ((tensor(x), 0.7, "rms"), (torch.ones(3, dtype=torch.float64), 1.3, "layer")):
        wanted = tensor(x) + factor * way
        hand = node.call(MATH, "project", [view, (wanted + tensor(aside)).tolist()])[:2]
        led = tensor(node.call(MATH, "ledTo", [view, x, hand, 0.1]))
        reference = REFERENCES["rmsNorm" if stays == "rms" else "layerNorm"]
        torch.testing.assert_close(led, wanted, atol=0.05, rtol=0)
        torch.testing.assert_close(reference(led, eps=0.0), reference(tensor(x), eps=0.0))
    hand = node.call(MATH, "project", [view, x])[:2]
    assert node.call(MATH, "ledTo", [view, x, [hand[0] + 0.5, hand[1] - 0.1], 0.1]) is None
    behind = node.call(MATH, "project", [view, [-part for part in x]])[:2]  # the other end of the arrow
    assert node.call(MATH, "ledTo", [view, x, behind, 0.1]) is None


def test_outline_of_the_stretched_sphere_is_that_of_its_points(node):
    gain = tensor([0.4, 1.7, 1.1])
    view = node.call(MATH, "viewFrom", [0.8, 0.5])
    flat = tensor([view["right"], view["up"]])
    left, sizes, _ = torch.linalg.svd(math.sqrt(3) * flat * gain)
    outline = node.call(MATH, "outlineOf", [view, gain.tolist(), math.sqrt(3)])
    assert (outline["major"], outline["minor"]) == pytest.approx(tuple(sizes.tolist()))
    along = tensor([math.cos(outline["angle"]), math.sin(outline["angle"])])
    assert abs(torch.dot(along, left[:, 0]).item()) == pytest.approx(1)


# The figure under a hand


@pytest.fixture
def calm(page):
    """The page of a reader who prefers no motion: examples are there at once."""
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 1280, "height": 1200})
    yield page
    page.emulate_media(reduced_motion="null")


def open_unfolded(page, *figures) -> None:
    open_figures(page, *figures)
    unfold(page)
    settle(page)


def number(text: str) -> float | None:
    return float(text.replace("−", "-").rstrip("°")) if text not in ("", "–") else None


def table(page) -> dict[str, list[float]]:
    """The figure's own numbers: mean, std, RMS and angle by row."""
    settle(page)
    cells = "all => all.map((row) => [...row.cells].map((cell) => cell.innerText))"
    rows = page.eval_on_selector_all(".mm-fig .ng-table tbody tr", cells)
    return {name: [number(text) for text in texts] for name, *texts in rows}


def degrees(x, y) -> float:
    return math.degrees(math.acos(min(1, F.cosine_similarity(x, y, dim=0).item())))


def expected(x, gain=None, eps=1e-5) -> dict[str, list[float]]:
    """What the table must show for both norms, from torch."""
    outputs = {"LayerNorm": layer_norm(x, gain, eps), "RMSNorm": rms_norm(x, gain, eps)}
    return {
        name: [*(value.item() for value in channel_stats(y).values()), degrees(x, y)] for name, y in outputs.items()
    }


def assert_table(page, x, **options):
    shown = table(page)
    for name, values in expected(tensor(x), **options).items():
        assert shown[name][:3] == pytest.approx(values[:3], abs=0.0051), name
        assert shown[name][3] == pytest.approx(values[3], abs=0.051), name


def slide(page, label, value):
    page.get_by_label(label, exact=True).evaluate(
        "(input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true })); }",
        str(value),
    )
    settle(page)


def channels(page) -> list[float]:
    """The three channels of x + c, as the bars have them."""
    settle(page)
    texts = page.locator(".mm-fig svg[aria-label='The three channels of the input'] text")
    return [number(text) for text in texts.all_text_contents()[1::2]]


def middle(locator) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def tip(page):
    return page.get_by_role("slider", name="Tip of x")


def drag(page, start, dx, dy):
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + dx, start[1] + dy, steps=4)
    page.mouse.up()
    settle(page)


def test_common_offset_moves_only_rms_norm(calm):
    open_unfolded(calm, NormGeometry())
    before = table(calm)
    for c in (1, 2.5, 5):
        slide(calm, "c, added to every channel", c)
        assert_table(calm, [2.1 + c, -1.2 + c, 1.5 + c])
        assert table(calm)["LayerNorm"][:3] == before["LayerNorm"][:3]
    assert table(calm)["RMSNorm"][0] > 0.9 > before["RMSNorm"][0]


def test_size_of_x_changes_neither_norm_while_eps_is_small(calm):
    open_unfolded(calm, NormGeometry())
    before = table(calm)
    for power in (-0.5, 0.6):
        slide(calm, "size of x (its RMS)", power)
        shown = table(calm)
        assert shown["x"][2] == pytest.approx(10**power, abs=0.0051)
        assert {name: shown[name] for name in expected(torch.ones(3))} == {
            name: before[name] for name in expected(torch.ones(3))
        }


def test_large_eps_keeps_the_output_inside_the_sphere(calm):
    open_unfolded(calm, NormGeometry(x=[0.6, -0.4, 0.5]))
    slide(calm, "eps", 0)
    assert_table(calm, [0.6, -0.4, 0.5], eps=1.0)
    assert "does not reach the sphere" in calm.locator(".ng-remark").inner_text()


def test_gain_turns_the_direction_of_rms_norm(calm):
    open_unfolded(calm, NormGeometry())
    assert table(calm)["RMSNorm"][3] == 0
    slide(calm, "gain of channel 2", 2)
    assert_table(calm, [2.1, -1.2, 1.5], gain=tensor([1, 2, 1]))
    assert table(calm)["RMSNorm"][3] > 10


@pytest.mark.parametrize("width", SIZES)
def test_tip_follows_the_pointer_and_numbers_follow_the_tip(calm, width):
    calm.set_viewport_size({"width": width, "height": 1200})
    open_unfolded(calm, NormGeometry())
    start = middle(tip(calm))
    calm.mouse.move(*start)
    calm.mouse.down()
    calm.mouse.move(start[0] - 60, start[1] + 25, steps=5)
    settle(calm)
    assert middle(tip(calm)) == pytest.approx((start[0] - 60, start[1] + 25), abs=1)
    calm.mouse.up()
    x = channels(calm)
    assert x != pytest.approx([2.1, -1.2, 1.5], abs=0.2)
    assert table(calm)["x"][0] == pytest.approx(sum(x) / 3, abs=0.01)
    assert table(calm)["RMSNorm"][3] == 0


@pytest.mark.parametrize("width", SIZES)
def test_x_dragged_along_its_arrow_moves_neither_output_and_straight_up_only_rms_norm(calm, width):
    calm.set_viewport_size({"width": width, "height": 1200})
    open_figures(calm, NormGeometry())
    layer, rms = marks(calm)
    (x, y), (cx, cy, _) = middle(tip(calm)), sphere(calm)
    box = calm.locator(".ng-globe svg").bounding_box()
    out = ((x - box["x"] - cx) / 4, (y - box["y"] - cy) / 4)
    drag(calm, (x, y), out[0] + 2, out[1] + 3)  # no hand is exact
    assert math.dist(middle(tip(calm)), (x + out[0], y + out[1])) < 5
    assert marks(calm) == [pytest.approx(layer, abs=0.1), pytest.approx(rms, abs=0.1)]
    drag(calm, middle(tip(calm)), -3, -25)
    lifted, climbed = marks(calm)
    assert lifted == pytest.approx(layer, abs=0.1) and climbed[1] < rms[1] - 3
    drag(calm, middle(tip(calm)), 30, 25)
    assert all(math.dist(*pair) > 2 for pair in zip(marks(calm), (layer, climbed), strict=True))


def test_arrow_keys_move_the_tip_across_the_screen(calm):
    open_unfolded(calm, NormGeometry())
    tip(calm).focus()
    mean = table(calm)["x"][0]
    for _ in range(4):
        calm.keyboard.press("ArrowUp")
    assert table(calm)["x"][0] > mean + 0.05
    assert table(calm)["LayerNorm"][0] == 0


def test_no_arrow_key_is_lost_when_several_come_within_one_frame(calm):
    press = """(tip, presses) => {
        const up = () => new KeyboardEvent("keydown", { key: "ArrowUp", bubbles: true });
        for (let i = 0; i < presses; i += 1) tip.dispatchEvent(up());
    }"""
    means = []
    for presses in (1, 4):
        open_unfolded(calm, NormGeometry())
        start = table(calm)["x"][0]
        tip(calm).evaluate(press, presses)
        means.append(table(calm)["x"][0] - start)
    assert means[1] > 3 * means[0] > 0


def test_rotating_the_globe_changes_the_picture_and_no_number(calm):
    open_unfolded(calm, NormGeometry())
    before, place = table(calm), middle(tip(calm))
    box = calm.get_by_role("slider", name="Rotate the globe").bounding_box()
    drag(calm, (box["x"] + 15, box["y"] + 15), 90, 30)
    turned = middle(tip(calm))
    assert math.dist(turned, place) > 20
    calm.keyboard.press("ArrowRight")
    settle(calm)
    assert middle(tip(calm)) != pytest.approx(turned, abs=0.5)
    assert table(calm) == before


def test_one_channel_moves_alone(calm):
    open_unfolded(calm, NormGeometry())
    row = calm.get_by_role("slider", name="Channel 2 of x")
    row.focus()
    calm.keyboard.press("ArrowUp")
    calm.keyboard.press("ArrowRight")
    assert channels(calm) == [2.1, -1.0, 1.5]
    calm.keyboard.press("Shift+ArrowDown")
    assert channels(calm) == [2.1, -1.5, 1.5]
    slide(calm, "c, added to every channel", 1)
    knob = middle(row.locator("circle"))
    drag(calm, knob, 30, 0)
    x = channels(calm)
    assert x[0] == 3.1 and x[2] == 2.5 and x[1] > 0
    assert middle(row.locator("circle"))[0] == pytest.approx(knob[0] + 30, abs=1)


EXAMPLES = {
    "All channels equal": ([1.2, 1.2, 1.2], None, "LayerNorm gives 0"),
    "Mean zero": ([1.3, -2.0, 0.7], None, "both norms make the same move"),
    "Tiny vector": ([0.0021, -0.0012, 0.0015], None, "does not reach the sphere"),
    "With a gain": ([1.0, -2.0, 3.0], tensor([1.0, 1.5, 1.2]), "6.87°"),
}


def test_example_shows_what_torch_says(calm):
    open_unfolded(calm, NormGeometry())
    for name, (x, gain, remark) in EXAMPLES.items():
        calm.get_by_role("button", name=name).click()
        if name == "All channels equal":
            assert table(calm)["LayerNorm"] == [0, 0, 0, None]
            assert table(calm)["RMSNorm"] == [1, 0, 1, 0]
        else:
            assert_table(calm, x, gain=gain)
        assert remark in calm.locator(".ng-remark").inner_text()
        calm.get_by_role("button", name="Reset").click()
        assert_table(calm, [2.1, -1.2, 1.5])


def test_example_arrives_with_motion_too(browser):
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    open_unfolded(page, NormGeometry())
    page.clock.install(time=0)
    page.clock.pause_at(60)
    tip = page.locator(".ng-row").first
    start = tip.get_attribute("aria-valuetext")
    page.get_by_role("button", name="With a gain").click()
    page.clock.run_for(260)
    assert tip.get_attribute("aria-valuetext") not in (start, "1.00")
    page.clock.run_for(600)
    assert tip.get_attribute("aria-valuetext") == "1.00"
    page.clock.resume()
    assert channels(page) == [1, -2, 3]
    context.close()


def test_zero_vector_is_shown_honestly_and_can_be_left(calm):
    watch = Watch(calm)
    open_unfolded(calm, NormGeometry(x=[0.0, 0.0, 0.0]))
    assert table(calm) == {"x": [0, 0, 0, None], "LayerNorm": [0, 0, 0, None], "RMSNorm": [0, 0, 0, None]}
    assert "stays zero under both norms" in calm.locator(".ng-remark").inner_text()
    slide(calm, "size of x (its RMS)", 0)
    assert channels(calm) == [1, 1, 1]
    assert watch.problems == []


def test_one_norm_can_be_shown_alone(calm):
    open_unfolded(calm, NormGeometry())
    for choice in ("LayerNorm", "RMSNorm"):
        calm.get_by_role("radio", name=choice).check()
        assert list(table(calm)) == ["x", choice]


def fan_numbers(page, norm) -> list[float]:
    text = page.locator(f".ng-head:has-text('{norm}') > span").inner_text()
    return [number(part.split()[1]) for part in text.split(" · ")]


def test_long_vector_shows_the_curves_of_the_package(calm):
    figure = NormGeometry()
    open_unfolded(calm, figure)
    for c, at in ((0, 0), (1, 10), (5, 50)):
        slide(calm, "c, added to every channel", c)
        for name, key in (("LayerNorm", "layer"), ("RMSNorm", "rms")):
            want = [figure.curve[key][stat][at] for stat in ("mean", "std", "rms")]
            assert fan_numbers(calm, name) == pytest.approx(want, abs=0.0051)


def test_offset_can_be_dragged_over_the_long_vector(calm):
    open_unfolded(calm, NormGeometry())
    picture = calm.get_by_role("img", name="RMSNorm of the longer vector")
    picture.scroll_into_view_if_needed()
    drag(calm, middle(picture), 60, 0)
    c = float(calm.get_by_label("c, added to every channel").input_value())
    assert 2.5 < c < 4.5
    assert channels(calm) == pytest.approx([2.1 + c, -1.2 + c, 1.5 + c], abs=0.0051)


STATES = [
    {},
    {"offset": 2.0},
    {"offset": 5.0},
    {"x": [1.2, 1.2, 1.2]},
    {"x": [-3.0, -2.5, -4.0]},
    {"x": [0.002, -0.001, 0.001]},
    {"x": [1.0, -2.0, 3.0], "gain": [1.0, 1.5, 1.2]},
    {"gain": [0.2, 2.0, 1.0], "offset": 0.7},
    {"eps": 1.0, "x": [0.3, 0.2, -0.1]},
]


@pytest.mark.parametrize("width", SIZES)
def test_labels_never_lie_on_each_other_and_stay_inside(calm, width):
    calm.set_viewport_size({"width": width, "height": 1200})
    open_unfolded(calm, *(NormGeometry(**state) for state in STATES))
    settle(calm)
    globes = calm.locator(".mm-fig svg[aria-label^='Three channels']").all()
    for globe, state in zip(globes, STATES, strict=True):
        assert_labels_apart(globe, state)


def assert_labels_apart(globe, state):
    boxes = globe.evaluate(
        """(drawing) => Array.from(drawing.querySelectorAll("g[aria-hidden] text"), (text) => {
            const { x, y, width, height } = text.getBBox();
            return [text.textContent, x, y, x + width, y + height];
        })"""
    )
    limit_x, limit_y = (float(value) for value in globe.get_attribute("viewBox").split()[2:])
    assert {"RMSNorm", "LayerNorm"} <= {name for name, *_ in boxes}, state
    for i, (name, x0, y0, x1, y1) in enumerate(boxes):
        assert x0 > -1 and y0 > -3 and x1 < limit_x + 1 and y1 < limit_y + 3, (state, name)
        for other, u0, v0, u1, v1 in boxes[:i]:
            # A text's box is taller than its letters by a fifth.
            apart = x1 < u0 or u1 < x0 or y1 - 4 < v0 or v1 - 4 < y0
            assert apart, f"{state}: {name} lies on {other}"


def sphere(page) -> list[float]:
    """Middle and radius of the sphere on the screen."""
    settle(page)
    return page.locator(".ng-passive circle[fill^=url]").evaluate(
        "(circle) => ['cx', 'cy', 'r'].map((name) => Number(circle.getAttribute(name)))"
    )


def marks(page) -> list[tuple[float, float]]:
    """Where LayerNorm's square and RMSNorm's disk are."""
    settle(page)
    return [middle(page.locator(f".ng-passive {shape}[data-sym=norm]")) for shape in ("rect", "circle")]


def test_the_sphere_keeps_its_size_while_x_moves(calm):
    open_unfolded(calm, NormGeometry())
    before = sphere(calm)
    for c in (1, 2.5, 5):
        slide(calm, "c, added to every channel", c)
        assert sphere(calm) == before
    slide(calm, "size of x (its RMS)", 0.6)
    assert sphere(calm) == before
    slide(calm, "gain of channel 2", 2)  # its ellipsoid needs more room
    assert sphere(calm)[2] < before[2]


@pytest.mark.parametrize("width", SIZES)
def test_a_tip_out_of_the_picture_is_held_at_its_edge_and_comes_back(calm, width):
    calm.set_viewport_size({"width": width, "height": 1200})
    open_figures(calm, NormGeometry(offset=5.0))
    picture = calm.locator(".ng-globe svg").bounding_box()
    x, y = middle(tip(calm))
    assert picture["y"] <= y <= picture["y"] + 20
    assert "x + c, out of view, RMS 5.9" in calm.locator(".ng-globe").text_content()
    assert tip(calm).get_attribute("aria-valuetext").startswith("5.9")
    drag(calm, (x, y), 20, 60)
    assert middle(tip(calm)) == pytest.approx((x + 20, y + 60), abs=1)


def test_the_three_numbers_are_the_means(calm):
    open_figures(calm, NormGeometry())
    for c in (0, 1, 5):
        slide(calm, "c, added to every channel", c)
        x = tensor([2.1 + c, -1.2 + c, 1.5 + c])
        told = [number(text) for text in read_out(calm).values()]
        assert told == pytest.approx([x.mean().item(), 0, rms_norm(x).mean().item()], abs=0.0051)


@pytest.mark.parametrize("width", [738, 328])
def test_compact_is_the_globe_and_one_slider(calm, width):
    calm.set_viewport_size({"width": width + 16, "height": 900})
    open_figures(calm, NormGeometry(compact=True))
    settle(calm)
    assert calm.locator(".mm-fig :is(input, button, summary)").count() == 1
    names = [one.get_attribute("aria-label") for one in calm.locator("svg [tabindex]").all()]
    assert names == ["Rotate the globe", "Tip of x: RMS"]
    layer, rms = zip(*(slide(calm, "c, added to every channel", c) or marks(calm) for c in (0, 0.5, 1, 2)), strict=True)
    assert len(set(layer)) == 1
    heights = [y for _, y in rms]
    assert heights == sorted(heights, reverse=True) and heights[0] - heights[-1] > 25


def test_kernel_can_move_the_figure_and_take_it_away(calm):
    serve(calm)
    state = NormGeometry().state()
    seen = calm.evaluate(
        """async ([source, state]) => {
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const { default: figure } = await import(url);
            const callbacks = {};
            let saved = 0;
            const model = {
                get: (name) => state[name],
                set: (name, value) => { state[name] = value; (callbacks[`change:${name}`] || []).forEach((f) => f()); },
                on: (name, f) => (callbacks[name] ||= []).push(f),
                off: (name, f) => (callbacks[name] = callbacks[name].filter((one) => one !== f)),
                save_changes: () => (saved += 1),
            };
            const cleanup = figure.render({ model, el: document.body });
            const nextFrame = () => new Promise(requestAnimationFrame);
            const frame = () => nextFrame().then(nextFrame);
            await frame();
            model.set("x", [1, 1, -2]);
            await frame();
            document.querySelector("details").open = true;
            await frame();
            await frame();
            const text = document.querySelector("tbody").textContent;
            const slider = document.querySelector("input[type=range]");
            slider.value = 1;
            slider.dispatchEvent(new Event("input"));
            const own = [state.offset, saved];
            cleanup();
            const left = Object.values(callbacks).flat().length + document.body.children.length;
            return { text, own, left };
        }""",
        [module_source("norm_geometry"), state],
    )
    assert seen["text"].startswith("x0.001.411.41")
    assert seen["own"] == [1, 1]
    assert seen["left"] == 0


# The reader's story


def norm_inputs(reading) -> list[tuple[torch.Tensor, torch.nn.Module]]:
    """What each norm of the stream gets at the last word, and the norm, in their order."""
    body, stream, found = reading.model.model, reading.embedding, []
    for layer, block in zip(body.layers, reading.blocks, strict=True):
        found += [(stream, layer.input_layernorm), (stream + block.attended, layer.post_attention_layernorm)]
        stream = block.output
    return [(x[-1], norm) for x, norm in [*found, (stream, body.norm)]]


@pytest.mark.parametrize("place", [0, 3, -1])
def test_the_story_shows_the_stream_at_every_norm(page, place):
    open_figures(page, NormGeometry())
    show_story(page)
    sites = norm_inputs(read_story())
    page.get_by_label("norm", exact=True).fill(str(place % len(sites)))
    settle(page)
    x, norm = sites[place]
    with torch.no_grad():
        handed_on = norm(x)
        plain = RMSNorm(len(x), eps=norm.eps)(x)
        centered = LayerNorm(len(x), eps=norm.eps)(x)
    rms = [float(y.pow(2).mean().sqrt()) for y in (x, plain, handed_on)]
    titles = page.eval_on_selector_all(".ng-strip p", "all => all.map((one) => one.textContent.split('RMS ').at(-1))")
    assert titles == [f"{value:.2f}" for value in rms]
    angle = math.degrees(math.acos(float(torch.nn.functional.cosine_similarity(plain, centered, dim=0))))
    numbers = read_out(page)
    assert numbers["RMS of the stream"] == f"{rms[0]:.2f}"
    assert numbers["mean of its channels"] == f"{float(x.mean()):z.2f}".replace("-", "−")
    assert float(numbers["LayerNorm's output, apart by"].rstrip("°")) == pytest.approx(angle, abs=0.06)
    heights = page.eval_on_selector_all(
        ".ng-strip",
        "all => all.map((one) => [...one.querySelectorAll('rect')].map((bar) => Number(bar.getAttribute('height'))))",
    )
    drawn = torch.tensor(heights[0])
    assert torch.allclose(drawn / drawn.max(), x.abs() / x.abs().max(), atol=1e-3)


def test_the_globe_gives_way_to_the_story_and_comes_back(page):
    open_figures(page, NormGeometry())
    title = page.inner_text(".mm-title")
    show_story(page)
    assert not page.locator(".ng-globe").is_visible() and page.locator(".ng-strip").count() == 3
    assert page.inner_text(".mm-title") != title
    page.get_by_label("Example", exact=True).check()
    settle(page)
    assert page.locator(".ng-globe").is_visible() and not page.locator(".ng-stream").is_visible()
    assert page.inner_text(".mm-title") == title
