"""TwoNeurons: each setting shows the word that the stored model says there, and its planes are shaded where it does."""

import itertools

import pytest
import torch
from browser import open_figures, settle

from minimind_edu import world
from minimind_edu.figures import TwoNeurons
from minimind_edu.figures.two_neurons import ACTIVE
from minimind_edu.trained.living import living_model, neurons

MATH = "figures/two_neurons/math"
HELD = [*itertools.product((0.0, -40.0, -60.0, -143.0), (0.0, -46.0, -107.0))]  # activations of both


@pytest.fixture(scope="module")
def model():
    return living_model().double().requires_grad_(False)


def logits(model, story: str, first: float, second: float) -> torch.Tensor:
    """The logits of the whole model, run with both neurons held at its last position."""

    def hold(_, given):
        active = given[0].clone()
        active[:, -1, neurons.measured()["pair"]] = torch.tensor([first, second], dtype=torch.float64)
        return (active,)

    hook = neurons.network(model).down_proj.register_forward_pre_hook(hold)
    try:
        return model(torch.from_numpy(world.encode(neurons.TOLD[story]))[None]).logits[0, -1]
    finally:
        hook.remove()


@pytest.mark.parametrize("story", neurons.TOLD)
@pytest.mark.parametrize(("first", "second"), HELD)
def test_every_setting_is_the_models(model, node, story, first, second):
    wanted = logits(model, story, first, second)
    figure = TwoNeurons(shows="two", story=story)
    torch.testing.assert_close(figure.logits(first, second), wanted, atol=1e-8, rtol=1e-8)
    drawn = node.call(MATH, "logitsAt", [neurons.measured(), neurons.measured()["told"][story], [first, second]])
    torch.testing.assert_close(torch.tensor(drawn, dtype=torch.float64), wanted, atol=1e-8, rtol=1e-8)
    [said] = node.call(MATH, "largest", [drawn, 1])
    assert said == int(wanted.argmax())
    assert node.call(MATH, "chancesOf", [drawn])[said] == pytest.approx(wanted.softmax(-1).max().item())


def test_what_the_lesson_says_of_the_slider(model):
    said = {active: world.WORDS[logits(model, "en", active, neurons.measured()["told"]["en"]["active"][1]).argmax()]
            for active in (0, -40, -60, -143)}  # fmt: skip
    assert said == {0: "去", -40: "去", -60: "to the", -143: "to the"}


def test_a_figure_begins_with_what_the_neurons_do_in_its_story():
    for story, told in neurons.measured()["told"].items():
        figure = TwoNeurons(shows="two", story=story)
        assert (figure.first, figure.second) == tuple(round(active) for active in told["active"])
        assert TwoNeurons(story=story, shows="inside").active()[0] == pytest.approx(told["active"][0], abs=1)


def test_the_count_of_places_is_that_of_the_model(node):
    model = living_model().requires_grad_(False)
    last = neurons.leaving(model, neurons.stories())["en"]
    for active in (0.0, -40.0, -100.0, ACTIVE[0]):
        said = neurons.next_words(model, last, {neurons.measured()["pair"][0]: active})
        told = node.call(MATH, "countThen", [neurons.measured()["places"]["en"], active])
        assert told == sum(word == "to the" for word in said)


READ = """() => ({
    said: document.querySelector(".mm-next-word").innerText.split("\\n")[0].trim(),
    verdict: document.querySelector(".tn-verdict").innerText })"""


@pytest.mark.parametrize(("shows", "story"), [("one", "en"), *itertools.product(("two", "inside"), neurons.TOLD)])
def test_each_combination_of_the_switches_says_what_the_model_says(page, model, shows, story):
    """The lesson test: view and story, each at its own numbers, at those of the other story, and at 0."""
    other = neurons.measured()["told"]["zh" if story == "en" else "en"]
    first, second = (round(active) for active in other["active"])
    settings = [{}, {"first": 0.0, "gate": 0.0}]
    settings.append(
        {"first": first, "second": second, "gate": round(other["gate"][0], 1), "up": round(other["up"][0], 1)}
    )
    for setting in settings:
        figure = TwoNeurons(shows=shows, story=story, **setting)
        word = world.WORDS[logits(model, story, *figure.active()).argmax()]
        open_figures(page, figure)
        settle(page)
        read = page.evaluate(READ)
        assert read["said"].startswith(word), (setting, read)
        assert f"“{word}”" in read["verdict"]


def test_the_one_neuron_has_no_story_that_another_writes(page):
    open_figures(page, TwoNeurons())
    settle(page)
    assert page.locator(".tn-control").count() == 1
    assert page.locator(".tn-switches").count() == 0


def test_exchange_takes_the_other_storys_numbers_and_back(page):
    open_figures(page, TwoNeurons(shows="two"))
    settle(page)
    said = []
    for _ in range(2):
        page.locator(".tn-switches .mm-button").click()
        settle(page)
        said.append(page.evaluate(READ)["said"])
    assert said[0].startswith("去") and said[1] == "to the"


REGION = """async ([stored, story, word, size, step]) => {
    const { regionOf } = await import("/figures/two_neurons/math.js");
    const activeAt = (x, y) => [20 - 1.5 * x, 20 - 1.5 * y];
    return regionOf(stored, stored.told[story], word, { width: size, height: size, step, activeAt });
}"""


@pytest.mark.parametrize("story", neurons.TOLD)
def test_a_plane_is_shaded_where_the_word_follows(node, story):
    size, step, word = 120, 10, neurons.measured()["words"].index("to the")
    rows = node.evaluate(REGION, [neurons.measured(), story, word, size, step])
    figure, seen = TwoNeurons(shows="two", story=story), set()
    for row, runs in enumerate(rows):
        for x in range(step // 2, size, step):
            first, second = 20 - 1.5 * x, 20 - 1.5 * (row + 0.5) * step
            follows = int(figure.logits(first, second).argmax()) == word
            assert any(start <= x < end for start, end in runs) == follows, (first, second)
            seen.add(follows)
    assert seen == {True, False}
