"""GateSurface: its outputs are those of the package, its shades are where they are, its point goes where it is led."""

import pytest
import torch
from browser import open_figures, read_out, unfold

from minimind_edu.figures import GateSurface
from minimind_edu.figures.gate_surface import ACTIVATIONS, LIMIT
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.for_comparison import PlainFeedForward

MATH = "figures/gate_surface/math"
GRID = torch.linspace(-LIMIT, LIMIT, 13, dtype=torch.float64)
POINTS = torch.cartesian_prod(GRID, GRID)  # [169, 2], g and u


def one_neuron(*gates_and_values: tuple[float, float]) -> FeedForward:
    """A feed-forward network that reads x = (g, u): a neuron with gate a·g and value b·u for each (a, b)."""
    layer = FeedForward(2, len(gates_and_values)).double()
    with torch.no_grad():
        layer.gate_proj.weight.copy_(torch.tensor([[a, 0.0] for a, _ in gates_and_values]))
        layer.up_proj.weight.copy_(torch.tensor([[0.0, b] for _, b in gates_and_values]))
        layer.down_proj.weight.copy_(torch.tensor([[1.0], [0.0]]).expand(2, len(gates_and_values)))
    return layer


def outputs(node, name: str, gated: bool) -> list[float]:
    return node.each(MATH, "neuronOutput", [[name, gated, g, u] for g, u in POINTS.tolist()])


# The Python side


def test_the_table_tells_every_activation_with_a_gate_and_without():
    sentence, rows = GateSurface(gate=-1.0, value=2.0)._summary()
    assert "g = -1 and value u = 2" in sentence
    assert dict(rows)["silu: with a gate, silu(g)·u"] == "-0.54, u times -0.27"
    assert dict(rows)["relu: without, relu(g)"] == "0.00, whatever u is"
    assert len(rows) == 6


# The mathematics, against the package


def test_a_gated_neuron_is_one_of_the_packages(node):
    with torch.no_grad():
        expected = one_neuron((1, 1))(POINTS)[:, 0]
    assert outputs(node, "silu", True) == pytest.approx(expected.tolist(), abs=1e-9)


def test_a_plain_neuron_is_one_of_the_packages(node):
    layer = PlainFeedForward(2, 1).double()
    with torch.no_grad():
        layer.up_proj.weight.copy_(torch.tensor([[1.0, 0.0]]))
        layer.down_proj.weight.copy_(torch.tensor([[1.0], [0.0]]))
        expected = layer(POINTS)[:, 0]
    assert outputs(node, "relu", False) == pytest.approx(expected.tolist(), abs=1e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_pytorch(node, name):
    places = torch.linspace(-6, 6, 97, dtype=torch.float64)
    found = node.each(MATH, "activate", [[name, x] for x in places.tolist()])
    assert found == pytest.approx(ACTIVATIONS[name](places).tolist(), abs=1e-6)


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_shades_are_where_the_output_is_beyond_the_level(node, name, gated):
    columns = 61
    gates = torch.linspace(-LIMIT, LIMIT, columns, dtype=torch.float64)
    values = torch.linspace(-2.97, 2.97, 23, dtype=torch.float64)
    output = ACTIVATIONS[name](gates)[:, None] * (values if gated else torch.ones(23))
    levels = (0.1, 1, 4, -0.1, -1, -4)
    found = node.each(MATH, "regionsBeyond", [[name, gated, level, columns] for level in levels])
    for level, runs in zip(levels, found, strict=True):
        shaded = torch.zeros(columns, 23, dtype=torch.bool)
        for g, low, high in (column for run in runs for column in run):
            shaded[round((g + LIMIT) / (2 * LIMIT) * (columns - 1))] |= (values >= low) & (values <= high)
        far = output * (1 if level > 0 else -1) - abs(level)
        column = (far >= 0).any(1).float()[None, None]
        single = (column > 0) & (torch.nn.functional.conv1d(column, torch.ones(1, 1, 3), padding=1) == 1)
        clear = (far.abs() > 1e-9) & ~single[0, 0, :, None]  # one column alone is no region
        assert torch.equal(shaded[clear], (far >= 0)[clear]), level


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_two_gated_neurons_multiply_for_every_activation(name):
    act = ACTIVATIONS[name]
    g, u = POINTS.T
    assert torch.allclose(act(g) * u - act(-g) * u, g * u, atol=1e-12)


# The figure in the browser


@pytest.fixture
def surface(page):
    page.set_viewport_size({"width": 944, "height": 1200})
    open_figures(page, GateSurface())
    unfold(page)
    return page


def lead(page, gate: float, value: float) -> None:
    page.get_by_label("gate g", exact=True).fill(str(gate))
    page.get_by_label("value u", exact=True).fill(str(value))


def read_number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_the_numbers_are_those_of_the_neuron(surface):
    layer = one_neuron((1, 1), (-1, 1))
    with torch.no_grad():
        layer.down_proj.weight[:, 1] = -1  # the second is subtracted
    for gate, value in [(1.5, -1.2), (-1.0, 2.0), (0.0, 3.0), (-2.5, -2.5)]:
        lead(surface, gate, value)
        x = torch.tensor([gate, value], dtype=torch.float64)
        with torch.no_grad():
            each = torch.nn.functional.silu(layer.gate_proj(x)) * layer.up_proj(x)
            product = layer(x)[0].item()
        shown = read_out(surface)
        assert read_number(shown["output"]) == pytest.approx(each[0].item(), abs=0.005)
        assert read_number(shown["SiLU(−g) · u"]) == pytest.approx(each[1].item(), abs=0.005)
        assert product == pytest.approx(gate * value)
        assert read_number(shown["difference: g · u"]) == pytest.approx(product, abs=0.005)
        factor = read_number(shown["factor, SiLU(g)"])
        assert surface.locator(".gs-section").last.get_attribute("aria-label") == (
            f"along u: {shown['factor, SiLU(g)']} · u"
        )
        assert factor == pytest.approx(GateSurface(gate=gate).opening("silu"), abs=0.005)


def test_the_sentence_follows_the_gate(surface):
    verdict = surface.locator(".mm-verdict")
    said = {2.0: "At g", 0.05: "The gate is nearly shut", -1.0: "Below zero"}
    for gate, words in said.items():
        lead(surface, gate, 1.0)
        assert verdict.inner_text().startswith(words)
    surface.get_by_label("ReLU", exact=True).check()
    assert verdict.inner_text().startswith("The gate is nearly shut")  # ReLU lets nothing leak
    surface.get_by_label("without", exact=True).check()
    assert verdict.inner_text().startswith("Without a gate")
    assert read_out(surface)["times u"] == "not read"


def test_what_the_text_asks_for_is_in_sight(page):
    open_figures(page, GateSurface(gate=-3.0, value=3.0))
    page.get_by_label("ReLU", exact=True).check()  # a control in a closed fold cannot be checked
    assert read_out(page)["factor, ReLU(g)"] == "0.00"


def test_without_a_gate_the_line_along_u_is_flat(surface):
    points = "path => Array.from({ length: 9 }, (_, i) => path.getPointAtLength((path.getTotalLength() * i) / 8).y)"
    along_u = surface.locator(".gs-section").last.locator(".gs-curve")
    assert len({round(y) for y in along_u.evaluate(points)}) > 5
    surface.get_by_label("without", exact=True).check()
    assert len({round(y, 1) for y in along_u.evaluate(points)}) == 1
    assert surface.locator(".gs-chosen").get_attribute("aria-label").endswith("plain: SiLU(g)")


def test_stripes_of_a_plain_neuron_and_four_corners_of_a_gated_one(surface):
    gated, plain = surface.locator(".gs-plane").all()
    edges = "paths => paths.map((path) => { const { y, height } = path.getBBox(); return [y, height]; })"
    assert len({tuple(box) for box in plain.locator("path").evaluate_all(edges)}) == 1  # each from bottom to top
    assert len({tuple(box) for box in gated.locator("path").evaluate_all(edges)}) > 8


def test_either_point_can_be_dragged_and_both_move(surface):
    for handle in surface.locator(".gs-plane .mm-handle").all():
        before = surface.locator(".gs-plane .mm-handle").evaluate_all("all => all.map((one) => one.ariaValueText)")
        box = handle.bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        surface.mouse.move(x, y)
        surface.mouse.down()
        surface.mouse.move(x - 40, y - 30, steps=3)
        surface.mouse.up()
        after = surface.locator(".gs-plane .mm-handle").evaluate_all("all => all.map((one) => one.ariaValueText)")
        assert all(old != new for old, new in zip(before, after, strict=True))
        assert after[0].split(", ")[:2] == after[1].split(", ")[:2]


def test_arrow_keys_move_the_point_up_and_right(surface):
    handle = surface.locator(".gs-plane .mm-handle").first
    handle.focus()
    surface.keyboard.press("ArrowUp")
    surface.keyboard.press("ArrowRight")
    gate, value = (float(surface.get_by_label(name, exact=True).input_value()) for name in ("gate g", "value u"))
    assert gate > 1.5 and value > -1.2
    for _ in range(30):
        surface.keyboard.press("Shift+ArrowRight")
    assert float(surface.get_by_label("gate g", exact=True).input_value()) == LIMIT


def test_compact_a_point_leads_the_sentence(page):
    open_figures(page, GateSurface(compact=True))
    assert page.locator(".mm-fig :is(input, button, summary)").count() == 0
    before = page.locator(".mm-verdict").inner_text()
    page.locator(".gs-plane .mm-handle").first.press("ArrowRight")
    assert page.locator(".mm-verdict").inner_text() != before
