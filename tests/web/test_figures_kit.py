"""The kit's controls tell what the reader did and nothing else, and its numbers are written for reading."""

import pytest
from browser import serve


@pytest.mark.parametrize(
    "args, text",
    [
        ([1.005], "1.00"),
        ([-0.001, 2], "0.00"),
        ([-1.5, 1], "−1.5"),
        ([3, 0], "3"),
        ([float("inf")], "∞"),
        ([-float("inf")], "−∞"),
        ([float("nan")], "–"),
    ],
)
def test_numbers_are_written_for_reading(node, args, text):
    assert node.call("web/kit/kit", "fmt", args) == text


@pytest.mark.parametrize("number, text", [(0, "0"), (999.4, "999"), (999.5, "1,000"), (25829888, "25,829,888")])
def test_thousands_stand_apart(node, number, text):
    assert node.call("web/kit/kit", "grouped", [number]) == text


def test_a_number_is_kept_between_its_bounds(node):
    assert node.each("web/kit/kit", "clamp", [(-1, 0, 5), (3, 0, 5), (9, 0, 5)]) == [0, 3, 5]


@pytest.mark.parametrize(
    "key, shift, step",
    [
        ("ArrowRight", False, 1),
        ("ArrowUp", True, 5),
        ("ArrowLeft", False, -1),
        ("ArrowDown", True, -5),
        ("a", True, 0),
        (None, False, 0),
    ],
)
def test_arrow_keys_lead_up_and_down(node, key, shift, step):
    assert node.call("web/kit/drag", "arrowStep", [{"key": key, "shiftKey": shift}]) == step


def test_a_line_goes_through_its_points_to_a_tenth_of_a_pixel(node):
    lines = node.each("web/kit/chart", "lineThrough", [([[0, 1.04], [2.26, -3]],), ([[5, 5]],), ([],)])
    assert lines == ["M0.0 1.0L2.3 -3.0", "M5.0 5.0", ""]


def test_a_scale_leads_to_pixels_and_back(node):
    scaled = """async () => {
        const { linear } = await import("/web/kit/chart.js");
        const y = linear([0, 3], [100, 10]); // a pixel's y falls while the number rises
        return [0, 1, 3, 4].flatMap((x) => [y(x), y.invert(y(x))]);
    }"""
    assert node.evaluate(scaled) == [100, 0, 70, 1, 10, 3, -20, 4]


KIT_PAGE = """<!doctype html><html lang="en"><title>kit</title><div class="mm-fig" id="here"></div>
<script type="module">
import { button, choice, controlsOf, fill, h, row, slider, toggle } from "/web/kit/kit.js";
window.heard = [];
const hear = (name) => (value) => heard.push([name, value]);
const format = (x) => `${x} turns`;
window.kit = {
  slider: slider({ label: "Speed", min: -2, max: 2, step: 0.5, value: 1, format, onInput: hear("slider") }),
  toggle: toggle({ label: "Scale", checked: true, onChange: hear("toggle") }),
  choice: choice({
    label: "Norm",
    options: [{ value: null, label: "None" }, { value: [1], label: "RMS" }, { value: 0, label: "Layer" }],
    value: 0,
    onChange: hear("choice"),
  }),
  other: choice({ label: "Other", options: [{ value: 1, label: "One" }, { value: 2, label: "Two" }], value: 2 }),
  button: button({ label: "Go", onClick: () => hear("button")("clicked") }),
};
Object.assign(window, { choice, controlsOf, fill, row, slider, toggle });
document.querySelector("#here").append(...Object.values(kit).map((control) => control.root));
document.querySelector("#here").append(h("p", { hidden: false, title: null }, 0, null, false, ["one", ["two"]]));
</script>"""


def heard(page) -> list:
    return page.evaluate("heard.splice(0)")


def test_controls_tell_what_the_reader_did_and_nothing_else(page):
    serve(page, KIT_PAGE)
    page.get_by_role("slider", name="Speed").press("ArrowRight")
    assert heard(page) == [["slider", 1.5]]
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "1.5 turns"
    assert page.locator("output").inner_text() == "1.5 turns"
    page.get_by_role("switch", name="Scale").press("Space")
    assert heard(page) == [["toggle", False]]
    page.get_by_role("radio", name="RMS").check()
    assert heard(page) == [["choice", [1]]]
    assert page.get_by_role("radio", name="Two").is_checked()
    page.get_by_role("button", name="Go").press("Enter")
    assert heard(page) == [["button", "clicked"]]
    page.evaluate("kit.slider.set(-1), kit.toggle.set(true), kit.choice.set(null)")
    assert page.evaluate("[kit.slider.get(), kit.toggle.get(), kit.choice.get()]") == [-1, True, None]
    assert page.get_by_role("radio", name="None").is_checked()
    assert page.locator("output").inner_text() == "-1 turns"
    assert heard(page) == []


def test_elements_drop_what_is_nothing_and_keep_zero(page):
    serve(page, KIT_PAGE)
    assert page.locator("#here p").inner_text() == "0onetwo"
    assert page.locator("#here p").evaluate("node => node.getAttributeNames()") == []


def test_a_part_stands_for_its_root(page):
    serve(page, KIT_PAGE)
    page.evaluate("fill(document.querySelector('#here'), [row(kit.slider, [kit.toggle]), null, 'x', kit.button])")
    assert page.locator("#here > *").count() == 2
    assert page.locator("#here > .mm-controls > *").count() == 2
    assert page.locator("#here").evaluate("node => node.textContent.endsWith('xGo')")


# A model as anywidget gives it, and a control of each kind for one of its traits.
BOUND = """() => {
    window.traits = { length: 8, scaled: true, kind: "b", power: 100 };
    const model = { get: (name) => traits[name], set: (name, value) => (traits[name] = value), save_changes() {} };
    const { bound, follow } = controlsOf(model);
    const options = ["a", "b"].map((value) => ({ value, label: value }));
    const power = { min: 0, max: 4, step: 1, shown: Math.log10, written: (x) => 10 ** x };
    window.controls = [
        bound(slider, "length", { label: "Length", stops: [1, 4, 8, 32], format: (x) => `${x} words` }),
        bound(toggle, "scaled", { label: "Scaled" }),
        bound(choice, "kind", { label: "Kind", options }),
        bound(slider, "power", { label: "Power", ...power }),
    ];
    window.follow = follow;
    fill(document.querySelector("#here"), controls);
}"""
SHOWN = "[controls.map((one) => one.get()), [...document.querySelectorAll('output')].map((one) => one.textContent)]"


def test_a_bound_control_shows_its_trait_writes_and_follows_it(page):
    serve(page, KIT_PAGE)
    page.evaluate(BOUND)
    assert page.evaluate(SHOWN) == [[2, True, "b", 2], ["8 words", "2"]]
    page.get_by_role("slider", name="Length").press("ArrowRight")
    page.get_by_role("switch", name="Scaled").press("Space")
    page.get_by_role("radio", name="a", exact=True).check()
    page.get_by_role("slider", name="Power").press("End")
    assert page.evaluate("traits") == {"length": 32, "scaled": False, "kind": "a", "power": 10000}
    page.evaluate("Object.assign(traits, { length: 5, scaled: true, kind: 'b', power: 1 }), follow()")
    assert page.evaluate(SHOWN) == [[1, True, "b", 0], ["4 words", "0"]]


# A whole figure in ten lines: its trait, what it draws and what it says.
WHOLE = """async (compact) => {
    const { figure } = await import("/web/kit/figure.js");
    const { h } = await import("/web/kit/kit.js");
    const words = { title: "Whole", titleCompact: "Small", caption: "Why", more: "More", length: "Length" };
    const heard = {};
    const traits = { length: 2, compact };
    const on = (event, cb) => (heard[event] = cb);
    const [get, set] = [(name) => traits[name], (name, value) => (traits[name] = value)];
    window.model = { get, set, on, off() {}, save_changes() {} };
    window.change = (length) => (model.set("length", length), heard["change:length"]());
    const { render } = figure({
        words: { en: words },
        traits: ["length"],
        verdict: "own",
        create({ model, words, isCompact, bound, redraw }) {
            const stage = h("div", { class: "mm-stage" });
            const length = bound(slider, "length", { label: words.length, min: 0, max: 9, step: 1 });
            let extra = 0;
            Object.assign(window, { add: (x) => (extra = x, redraw()) });
            const draw = (width) => {
                const sum = model.get("length") + extra;
                fill(stage, `drawn ${sum} at ${width}`);
                const numbers = [["sum", String(sum)]];
                if (sum < 5) return { verdict: "short", numbers, isStory: false };
                return { verdict: "long", tone: "bad", numbers, title: "Changed", isStory: true };
            };
            return { stage, control: length, more: ["folded"], draw };
        },
    });
    const el = document.querySelector("#here");
    el.replaceChildren();
    el.style.width = "300px";
    window.remove = render({ model, el });
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


def test_a_figure_says_what_its_drawing_returns(page):
    serve(page, KIT_PAGE)
    page.evaluate(WHOLE, False)
    figure = page.locator("figure.mm-fig")
    assert figure.locator(".mm-title").inner_text() == "Whole"
    width = figure.locator(".mm-stage").evaluate("stage => stage.clientWidth")
    assert figure.locator(".mm-stage").inner_text() == f"drawn 2 at {width}"
    assert figure.locator(".mm-verdict.own").inner_text() == "short"
    assert figure.get_attribute("data-story") == "false"
    page.evaluate("change(7)")
    assert page.get_by_role("slider", name="Length").input_value() == "7", "a control follows its trait"
    assert figure.locator(".mm-title").inner_text() == "Changed"
    assert figure.locator(".mm-verdict").get_attribute("data-tone") == "bad"
    assert figure.locator(".mm-readout dd").inner_text() == "7"
    assert figure.get_attribute("data-story") == "true"
    page.evaluate("change(2), add(1)")
    assert figure.locator(".mm-stage").inner_text() == f"drawn 3 at {width}", "redraw knows the width"
    assert figure.locator(".mm-verdict").get_attribute("data-tone") is None
    page.evaluate("remove()")
    assert page.locator("figure").count() == 0


def test_a_compact_figure_has_its_title_and_says_nothing_below(page):
    serve(page, KIT_PAGE)
    page.evaluate(WHOLE, True)
    assert page.locator(".mm-title").inner_text() == "Small"
    assert page.locator("figure .mm-verdict, figure .mm-readout, figure .mm-more").count() == 0
    assert page.get_by_role("slider", name="Length").is_visible()
