"""What every interactive figure keeps: one bundle for each host, and a life in the real browser."""

import json
import re
from html.parser import HTMLParser

import pytest
import traitlets
from axe_playwright_python.sync_playwright import Axe
from browser import Watch, open_figure, run_js_module, serve, static_page
from IPython.core.formatters import DisplayFormatter
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

import minimind_edu.figures as figures
from minimind_edu.figures import Figure, Quiz, figure_names, module_source
from minimind_edu.figures._base import rounded
from minimind_edu.figures._join import join

CHOICE = {
    "question": "Which letter comes first? </script><b>bold</b>",
    "options": [
        {"text": "`b`", "why": "It comes second."},
        {"text": "`a`", "correct": True, "why": "Nothing comes before it."},
        {"text": "`c`", "why": "It comes third & last <here>."},
    ],
}
NUMBER = {"question": "What is 7 / 3?", "answer": 7 / 3, "tolerance": 0.01, "why": "Seven thirds."}
LARGE_NUMBER = {"question": "How many?", "answer": 25829888.0, "tolerance": 0, "why": "Counted."}
QUESTIONS = [CHOICE, NUMBER, LARGE_NUMBER]


def example(name: str) -> Figure:
    """The figure `name`, as it starts."""
    if name == "quiz":
        return Quiz(QUESTIONS)
    [cls] = [
        value
        for value in vars(figures).values()
        if isinstance(value, type) and issubclass(value, Figure) and getattr(value, "_module", "") == name
    ]
    return cls()


class Probe(Figure):
    """A figure without meaning, to look at the base class alone."""

    _module = "quiz"
    _repr_traits = ("values", "name")
    values = traitlets.List([1 / 3, -0.0, 12345678.9, 2, True]).tag(sync=True)
    name = traitlets.Unicode("a < b").tag(sync=True)
    hidden = traitlets.Float(float("nan"))

    def _summary(self):
        return "A sentence & more.", [("<label>", "1 < 2")]


def bundle(figure: Figure) -> dict:
    """What a kernel would store for the figure."""
    return DisplayFormatter().format(figure)[0]


def state_in(html: str) -> dict:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture
def static(monkeypatch):
    monkeypatch.setenv("MINIMIND_EDU_STATIC", "1")


@pytest.fixture
def live(monkeypatch):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)


# The base class


def test_static_bundle_holds_text_and_html_only(static):
    assert set(bundle(Probe())) == {"text/plain", "text/html"}


def test_live_bundle_holds_a_widget_view(live):
    figure = Probe()
    stored = bundle(figure)
    assert stored["application/vnd.jupyter.widget-view+json"]["model_id"] == figure.model_id
    assert "text/html" not in stored
    assert stored["text/plain"] == repr(figure)


def test_two_equal_figures_are_stored_byte_for_byte_alike(static):
    assert bundle(Probe()) == bundle(Probe())


def test_repr_is_short_and_names_no_address():
    assert repr(Probe(values=list(range(100)))) == "Probe(values=[0, 1, 2, 3, ...], name='a < b')"


def test_state_holds_six_significant_digits_and_only_its_own_traits():
    assert state_in(Probe().static_html()) == {"values": [0.333333, 0.0, 12345700.0, 2, True], "name": "a < b"}
    assert "-0.0" not in Probe().static_html()


def test_state_keys_are_sorted():
    assert list(state_in(Probe().static_html())) == ["name", "values"]
    assert '[{"a":1,"b":2}]' in Probe(values=[{"b": 2, "a": 1}]).static_html()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_cannot_hold_are_refused_by_name(number):
    with pytest.raises(ValueError, match=r"state\['values'\]\[1\] is -?(nan|inf)"):
        Probe(values=[0.0, number]).static_html()


def test_rounding_reaches_into_nested_values():
    assert rounded({"a": [1 / 3, (2 / 3,)]}) == {"a": [0.333333, [0.666667]]}


@pytest.mark.parametrize("text", ["</script><b>x</b>", "<!-- <script>", "a & b", '"quotes"', "中文 √"])
def test_text_in_the_state_cannot_end_its_script_element(text):
    html = Probe(name=text).static_html()
    assert html.count("</script>") == 1
    assert "<!--" not in html
    assert state_in(html)["name"] == text


def test_fallback_escapes_words_and_numbers():
    assert (
        "<p>A sentence &amp; more.</p><table><tbody>"
        '<tr><th scope="row">&lt;label&gt;</th><td>1 &lt; 2</td></tr></tbody></table>'
    ) in Probe().static_html()


def test_a_figure_must_say_its_summary():
    class Silent(Figure):
        _module = "quiz"

    with pytest.raises(NotImplementedError, match="Silent must implement _summary"):
        Silent().static_html()


def test_an_unknown_figure_is_told_with_those_that_exist():
    with pytest.raises(ValueError, match="no figure is called 'dial'.*quiz"):
        module_source("dial")


# The joiner


@pytest.fixture
def write(tmp_path):
    def write_files(**texts: str):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")
        return tmp_path / "figure.js"

    return write_files


def test_helpers_come_once_and_before_those_who_use_them(write):
    entry = write(
        kit="export function one() {}\nexport const two = 2, unused = 3;\n",
        middle='import { one } from "./kit.js";\nexport class Three {}\n',
        figure='import { one, two } from "./kit.js";\nimport { Three } from "./middle.js";\nexport default { one };\n',
    )
    assert join(entry).split() == (
        "function one() {} const two = 2, unused = 3; class Three {} export default { one };".split()
    )


@pytest.mark.parametrize(
    "line, message",
    [
        ('import kit from "./kit.js";', "is understood"),
        ('import * as kit from "./kit.js";', "is understood"),
        ('import { one as uno } from "./kit.js";', "is understood"),
        ("import {\n  one,\n} from './kit.js';", "is understood"),
        ('  import { one } from "./kit.js";', "is understood"),
        ('import { one } from "https://elsewhere/kit.js";', "is understood"),
        ('import "./kit.js";', "is understood"),
        ("const kit = await import('./kit.js');", "is understood"),
        ('import { one } from "./kid.js";', "no file kid.js"),
        ('import { one, three, four } from "./kit.js";', "kit.js does not export three, four"),
        ('import { inner } from "./kit.js";', "kit.js does not export inner"),
        ("export { one };", "only `function`"),
        ('export * from "./kit.js";', "only `function`"),
        ("const { a, b } = {};", "only `function`"),
        ("const a = 1;\nlet a = 2;", "figure.js:2: let a = 2;: a is already declared in figure.js"),
        ('import { one } from "./kit.js";\nfunction inner() {}', "inner is already declared in kit.js; rename one"),
        ("export const a = 1;\nexport class a {}", "already declared"),
    ],
)
def test_joiner_refuses_what_it_does_not_understand(write, line, message):
    kit = "export function one() {}\nfunction inner() {}\n"
    with pytest.raises(ValueError, match=re.escape(message)):
        join(write(kit=kit, figure=f"{line}\nexport default {{}};\n"))


def test_joiner_refuses_a_default_export_in_a_helper(write):
    with pytest.raises(ValueError, match="kit.js:2"):
        join(
            write(
                kit="export const one = 1;\nexport default {};\n",
                figure='import { one } from "./kit.js";\nexport default { one };\n',
            )
        )


def test_joiner_refuses_a_figure_without_a_default_export(write):
    with pytest.raises(ValueError, match="figure.js has no default export"):
        join(write(figure="export const render = 1;\n"))


# The quiz


def changed_options(**changes) -> dict:
    """CHOICE with its last option changed."""
    return {**CHOICE, "options": [*CHOICE["options"][:2], {**CHOICE["options"][2], **changes}]}


@pytest.mark.parametrize(
    "question, message",
    [
        ({**CHOICE, "options": CHOICE["options"][:2]}, "has 2 options, but a choice needs at least 3"),
        (changed_options(correct=True), "has 2 correct options, but exactly 1"),
        ({**CHOICE, "options": [CHOICE["options"][0]] * 3}, "has 0 correct options, but exactly 1"),
        (changed_options(why=""), "the wrong option '`c`' of question 'Which letter"),
        (changed_options(text=""), "'text' is missing in question 'Which letter"),
        (changed_options(reason="x"), "unknown reason in question 'Which letter"),
        ({**CHOICE, "answer": 1}, "unknown answer in question 'Which letter"),
        ({"options": CHOICE["options"]}, "needs a text under 'question'"),
        ({"question": "How many?"}, "'answer' is missing in question 'How many\\?'"),
        ({**NUMBER, "why": ""}, "'why' is missing in question 'What is 7 / 3"),
        ({**NUMBER, "tolerance": -1.0}, "What is 7 / 3.*tolerance >= 0"),
        ({**NUMBER, "answer": float("inf")}, "What is 7 / 3.*finite answer"),
        ({**NUMBER, "tolerance": 0}, "holds 2.33333 for 2.333333.*tolerance 0.0 is too small"),
    ],
)
def test_quiz_refuses_a_faulty_question_by_its_text(question, message):
    with pytest.raises(ValueError, match=message):
        Quiz([NUMBER, question])


def test_quiz_refuses_to_be_empty():
    with pytest.raises(ValueError, match="at least one question"):
        Quiz([])


class _Words(HTMLParser):
    """The text of a document as a viewer without scripts shows it."""

    def __init__(self, html: str):
        super().__init__()
        self.words, self.in_script = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.in_script = tag == "script"

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if not self.in_script:
            self.words.append(data)


def test_quiz_is_readable_without_scripts():
    quiz = Quiz(QUESTIONS)
    words = " ".join(_Words(quiz.static_html()).words)
    assert repr(quiz) == "Quiz(3 questions)"
    assert CHOICE["question"] in words
    assert "2.33333" in words and "25829888" in words  # a large count keeps all its digits
    assert "<code>a</code>" in quiz.static_html()


def test_quiz_answers_with_the_reason_of_the_chosen_option(page):
    open_figure(page, Quiz(QUESTIONS))
    card = page.locator("form").nth(0)
    card.get_by_role("button", name="Check").click()
    assert card.get_by_role("status").inner_text() == "Choose an answer first."
    card.get_by_role("radio", name="c").check()
    card.get_by_role("button", name="Check").click()
    assert card.get_by_role("status").inner_text() == "Not yet. It comes third & last <here>."
    card.get_by_role("radio", name="a").check()
    assert card.get_by_role("status").inner_text() == ""  # a reason never stands beside another choice
    card.get_by_role("button", name="Check").click()
    assert card.get_by_role("status").inner_text() == "Right. Nothing comes before it."
    assert page.locator(".mm-readout dd").all_inner_texts() == ["1 of 3", "0 of 3"]


@pytest.mark.parametrize(
    "typed, told",
    [
        ("2.33", "Right. Seven thirds."),
        ("2,33", "Right. Seven thirds."),
        ("7/3", "Right. Seven thirds."),
        (" +2.34 ", "Right. Seven thirds."),
        ("2.36", "Not yet. 2.36 is too large."),
        ("−2.33", "Not yet. −2.33 is too small."),
        ("seven", "Type a number, for example 0.25."),
        ("", "Type a number, for example 0.25."),
        ("1/0", "Type a number, for example 0.25."),
    ],
)
def test_quiz_judges_a_number_by_its_distance(page, typed, told):
    open_figure(page, Quiz([NUMBER]))
    page.get_by_role("textbox").fill(typed)
    page.keyboard.press("Enter")
    assert page.get_by_role("status").inner_text() == told


def test_quiz_reads_thousands_and_gives_the_answer_only_when_asked(page):
    open_figure(page, Quiz([LARGE_NUMBER]))
    reveal = page.get_by_role("button", name="Show the answer")
    assert not reveal.is_visible()
    page.get_by_role("textbox").fill("25,829,889")
    page.get_by_role("button", name="Check").click()
    reveal.click()
    assert page.get_by_role("status").inner_text() == "The answer is 25829888. Counted."
    page.get_by_role("textbox").fill("25,829,888")
    page.get_by_role("button", name="Check").click()
    assert page.locator(".mm-readout dd").all_inner_texts() == ["1 of 1", "0 of 1"]
    page.get_by_role("button", name="Start again").click()
    assert page.locator(".mm-readout dd").all_inner_texts() == ["0 of 1", "0 of 1"]
    assert page.get_by_role("textbox").input_value() == ""
    assert page.evaluate("document.activeElement.type") == "text"


def test_quiz_can_be_answered_from_the_keyboard_alone(page):
    open_figure(page, Quiz(QUESTIONS))
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")  # moving between options is no answer yet
    assert page.get_by_role("status").first.inner_text() == ""
    page.keyboard.press("Enter")
    assert page.get_by_role("status").first.inner_text() == "Right. Nothing comes before it."
    for key in ("Tab", "Tab", *"2.33", "Enter"):
        page.keyboard.press(key)
    assert page.get_by_role("status").nth(1).inner_text() == "Right. Seven thirds."
    assert page.locator(".mm-readout dd").all_inner_texts() == ["2 of 3", "2 of 3"]


def test_quiz_hears_enter_where_jupyterlab_cancels_the_line_break(page):
    open_figure(page, Quiz([NUMBER]))
    cancel = "document.addEventListener('beforeinput', (e) => e.inputType === 'insertLineBreak' && e.preventDefault())"
    page.evaluate(cancel)
    page.get_by_role("textbox").fill("2.33")
    page.keyboard.press("Enter")
    assert page.locator(".mm-readout dd").all_inner_texts() == ["1 of 1", "1 of 1"]


# Every figure in a real browser

EVERY_FIGURE = pytest.mark.parametrize("name", figure_names())

# Sizes on the screen, after an svg's scaling, of all words that are shown.
TEXT_SIZES = """() => [...document.querySelectorAll(".mm-fig *")].flatMap((node) => {
    const words = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!words || !node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) return [];
    const size = parseFloat(getComputedStyle(node).fontSize);
    return size ? [[size * (node.getScreenCTM ? node.getScreenCTM().a : 1), node.textContent]] : [];
})"""


@EVERY_FIGURE
def test_module_and_state_stay_below_60_kilobytes(name):
    figure = example(name)
    assert len((module_source(name) + figure.static_html()).encode()) < 60_000


@EVERY_FIGURE
def test_figure_speaks_without_scripts(browser, name):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    serve(page, static_page(example(name)))
    assert page.locator(".mm-fallback :is(table, ol)").is_visible()
    context.close()


@EVERY_FIGURE
@pytest.mark.parametrize(
    "over, theme, width",
    [("http", "light", 1280), ("http", "dark", 360), ("file", "dark", 1280), ("file", "light", 360)],
)
def test_figure_lives_on_a_static_page(page, tmp_path, name, over, theme, width):
    watch = Watch(page)
    page.set_viewport_size({"width": width, "height": 800})
    html = static_page(example(name), theme)
    if over == "http":
        serve(page, html)
    else:
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".minimind-figure[data-state]", timeout=10_000)
    assert watch.problems == []
    assert page.get_attribute(".minimind-figure", "data-state") == "alive"
    assert [url for url in watch.requests[1:] if not url.startswith(("blob:", "data:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    too_small = [words for size, words in page.evaluate(TEXT_SIZES) if size < 11.9]
    assert too_small == []


@EVERY_FIGURE
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figure_is_accessible(page, name, theme):
    open_figure(page, example(name), theme)
    for details in page.locator("details").all():
        details.evaluate("node => node.open = true")
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], node["target"], node["failureSummary"]) for rule in found for node in rule["nodes"]] == []


@EVERY_FIGURE
def test_figure_cleans_up_after_itself(page, name):
    serve(page)
    leftovers = page.evaluate(
        """async ([source, state]) => {
            const heard = { model: 0, page: 0, sizes: 0 };
            for (const target of [window, document]) {
                const { addEventListener, removeEventListener } = target;
                target.addEventListener = (...args) => (heard.page++, addEventListener.apply(target, args));
                target.removeEventListener = (...args) => (heard.page--, removeEventListener.apply(target, args));
            }
            const { observe, disconnect } = ResizeObserver.prototype;
            ResizeObserver.prototype.observe = function (node) { heard.sizes++; observe.call(this, node); };
            ResizeObserver.prototype.disconnect = function () { heard.sizes--; disconnect.call(this); };
            const model = {
                get: (key) => state[key], set() {}, save_changes() {},
                on: () => heard.model++, off: () => heard.model--,
            };
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const { default: figure } = await import(url);
            const el = document.body.appendChild(document.createElement("div"));
            const cleanup = await figure.render({ model, el });
            const built = el.querySelectorAll("*").length;
            cleanup();
            return { ...heard, built: built > 10, left: el.childNodes.length };
        }""",
        [module_source(name), state_in(example(name).static_html())],
    )
    assert leftovers == {"model": 0, "page": 0, "sizes": 0, "built": True, "left": 0}


SHOWN = """[...document.querySelectorAll(".mm-stage, .mm-readout")].map((node) => node.innerHTML).join()"""


def responds(page, act, *args) -> bool:
    """Whether the drawing or the key numbers differ soon after `act(*args)`."""
    before = page.evaluate(SHOWN)
    act(*args)
    try:
        page.wait_for_function(f"(before) => {SHOWN} !== before", arg=before, timeout=1000)
    except PlaywrightTimeoutError:
        return False
    return True


def drag(page, x: float, y: float, way: int = 1) -> None:
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 30 * way, y + 25 * way, steps=3)
    page.mouse.up()


def drag_by_finger(page, x: float, y: float) -> None:
    session = page.context.new_cdp_session(page)
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + 12, "y": y - 10}]),
        ("touchMove", [{"x": x + 25, "y": y - 20}]),
        ("touchEnd", []),
    ):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def middle_of(locator) -> tuple[float, float]:
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@EVERY_FIGURE
def test_sliders_answer_to_mouse_keyboard_and_touch(browser, name):
    context = browser.new_context(has_touch=True, viewport={"width": 700, "height": 1200})
    page = context.new_page()
    open_figure(page, example(name))
    for control in page.locator('input[type="range"]:visible').all():
        control.scroll_into_view_if_needed()
        label = control.evaluate("node => node.labels[0].textContent")
        box = control.bounding_box()
        left, width, middle = box["x"], box["width"], box["y"] + box["height"] / 2
        assert label and box["height"] >= 32
        assert responds(page, page.mouse.click, left + 0.8 * width, middle), f"{label}: mouse"
        assert responds(page, page.touchscreen.tap, left + 0.3 * width, middle), f"{label}: touch"
        assert responds(page, control.press, "End"), f"{label}: keyboard"
        assert "-" not in control.get_attribute("aria-valuetext")  # a true minus sign
    context.close()


@EVERY_FIGURE
def test_handles_answer_to_mouse_keyboard_and_touch(browser, name):
    context = browser.new_context(has_touch=True, viewport={"width": 700, "height": 1200})
    page = context.new_page()
    open_figure(page, example(name))
    for handle in page.locator(".mm-draggable").all():
        handle.scroll_into_view_if_needed()
        label = handle.get_attribute("aria-label")
        assert label
        assert handle.evaluate("node => getComputedStyle(node).touchAction") in ("none", "pan-y")
        # a handle may start at the end of its range, where one way leads nowhere
        moved = any(responds(page, drag, page, *middle_of(handle), way) for way in (1, -1))
        assert moved, f"{label}: mouse"
        assert responds(page, drag_by_finger, page, *middle_of(handle)), f"{label}: touch"
        handle.focus()
        arrows = ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown")
        assert any(responds(page, page.keyboard.press, key) for key in arrows), f"{label}: keyboard"
    context.close()


@EVERY_FIGURE
def test_keys_belong_to_the_figure_inside_jupyterlab(page, name):
    open_figure(page, example(name))
    focusable = ".mm-fig :is(input, button, select, [tabindex])"
    assert page.locator(focusable).count() > 0
    assert page.locator(f"{focusable}:not([data-lm-suppress-shortcuts])").count() == 0


# The static host


BROKEN = """
export default { render({ el }) { el.append("half a figure"); throw new Error("broken"); } };
"""


def test_host_tells_of_a_figure_that_cannot_start_and_leaves_its_numbers(page):
    watch = Watch(page)
    serve(page, static_page(Probe(), source=BROKEN))
    page.wait_for_selector('.minimind-figure[data-state="failed"]')
    assert "could not start" in page.locator(".mm-failed").inner_text()
    assert page.locator(".mm-fallback table").is_visible()
    assert page.get_by_text("half a figure").count() == 0
    assert len(watch.problems) == 1 and "broken" in watch.problems[0]


def test_host_tells_of_a_figure_that_the_page_lacks(page):
    serve(page, static_page(Probe()).replace('data-figure="quiz"', 'data-figure="missing"'))
    page.wait_for_selector('.minimind-figure[data-state="failed"]')
    assert page.locator(".mm-fallback table").is_visible()


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
    page.wait_for_selector('.minimind-figure[data-state="alive"]')
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


def test_figures_of_one_kind_share_a_page_without_sharing_answers(page):
    one = Quiz([CHOICE]).static_html()
    serve(page, static_page(Quiz([CHOICE])).replace("</main>", f"{one}</main>"))
    page.wait_for_selector('.minimind-figure[data-state="alive"] + .minimind-figure[data-state="alive"]')
    for quiz in page.locator(".mm-quiz").all():
        quiz.get_by_role("radio", name="a").check()
    assert page.locator(":checked").count() == 2


def test_host_folds_the_table_below_the_living_figure(page):
    serve(page, static_page(Probe(), source=MODEL_PROBE))
    page.wait_for_selector('.minimind-figure[data-state="alive"]')
    assert not page.locator(".mm-data table").is_visible()
    page.locator(".mm-data summary").click()
    assert page.locator(".mm-data table").is_visible()


# The kit


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
def test_numbers_are_written_for_reading(page, args, text):
    assert run_js_module(page, "kit", "fmt", args) == text


KIT_PAGE = """<!doctype html><html lang="en"><title>kit</title><div class="mm-fig" id="here"></div>
<script type="module">
import { button, choice, h, slider, toggle } from "/kit.js";
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
