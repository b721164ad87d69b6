"""The host mounts static figures, tells of those that cannot start, and its model is heard as anywidget's is."""

from browser import ALIVE, FAILED, FALLBACK, Watch, serve, static_page
from figure_examples import CHOICE, Probe

from minimind_edu.figures import KeyCircles, Quiz
from minimind_edu.web import host

BROKEN = """
export default { render({ el }) { el.append("half a figure"); throw new Error("broken"); } };
"""


def test_host_tells_of_a_figure_that_cannot_start_and_leaves_its_numbers(page):
    watch = Watch(page)
    serve(page, static_page(Probe(), source=BROKEN))
    page.wait_for_selector(FAILED)
    assert "could not start" in page.locator(".mm-failed").inner_text()
    assert page.locator(f"{FALLBACK} table").is_visible()
    assert page.get_by_text("half a figure").count() == 0
    assert len(watch.problems) == 1 and "broken" in watch.problems[0]


def test_host_tells_of_a_figure_that_the_page_lacks(page):
    serve(page, static_page(Probe()).replace('data-figure="quiz"', 'data-figure="missing"'))
    page.wait_for_selector(FAILED)
    assert page.locator(f"{FALLBACK} table").is_visible()


MODEL_PROBE = """
export default {
  render({ model, el }) {
    const heard = [];
    const hear = (word) => (_, value) => heard.push([word, value]);
    const first = hear("first");
    model.on("change:name", first);
    model.on("change:name change:values", hear("both"));
    model.on("change", () => heard.push("any"));
    model.set("name", "new");
    model.set("name", "new");
    model.off("change:name", first);
    model.set("name", "newer");
    model.set("values", [1]);
    model.set("values", [1]);
    model.off("change:name");
    model.set("name", "last");
    model.save_changes();
    window.heard = { heard, name: model.get("name"), values: model.get("values") };
    el.append("alive");
  },
};
"""


def test_host_model_is_heard_as_in_anywidget(page):
    serve(page, static_page(Probe(), source=MODEL_PROBE))
    page.wait_for_selector(ALIVE)
    assert page.evaluate("window.heard") == {
        "heard": [
            *(["first", "new"], ["both", "new"], "any"),
            *(["both", "newer"], "any"),
            *(["both", [1]], "any"),
            "any",
        ],
        "name": "last",
        "values": [1],
    }


def test_a_figure_is_set_from_outside_and_goes_back_to_how_the_page_has_it(page):
    serve(page, static_page(KeyCircles(width=6)))
    page.wait_for_selector(ALIVE)
    figure = page.locator("[data-figure]")
    ask = f"(figure, detail) => figure.dispatchEvent(new CustomEvent('{host.SET}', {{ detail }}))"
    says = page.locator(".mm-verdict")
    for detail, width in (({"width": 2}, 2), ({"width": 5, "stored": {}}, 2), (None, 6)):  # nobody trained five
        figure.evaluate(ask, detail)
        assert says.inner_text().startswith(f"{width} channels: {width // 2} of 4")


def test_figures_of_one_kind_share_a_page_without_sharing_answers(page):
    serve(page, static_page(Quiz([CHOICE]), Quiz([CHOICE])))
    page.wait_for_selector(f"{ALIVE} + {ALIVE}")
    for quiz in page.locator(".mm-quiz").all():
        quiz.get_by_role("radio", name="a").check()
    assert page.locator(":checked").count() == 2


def test_host_folds_the_table_below_the_living_figure(page):
    serve(page, static_page(Probe(), source=MODEL_PROBE))
    page.wait_for_selector(ALIVE)
    assert not page.locator(".mm-data table").is_visible()
    summary = page.locator(".mm-data summary")
    assert page.locator(".mm-data").bounding_box()["width"] <= 1, "it is there for those who hear the page"
    summary.focus()
    assert summary.bounding_box()["width"] > 100
    page.keyboard.press("Enter")
    assert page.locator(".mm-data table").is_visible()
