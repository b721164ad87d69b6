"""Every figure in a real browser: alive on any page, accessible, answering to all hands, and gone without a trace."""

import browser as looking
import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import EMPTY, FALLBACK, FIGURE, Watch, open_figures, serve, settle, show, static_page, unfold
from cases import long_after
from figure_examples import EVERY_FIGURE, example, state_in

from minimind_edu.figures import Figure, figure_names, module_source, own_stylesheet, shared_stylesheet
from minimind_edu.web import host

# Sizes on the screen, after an svg's scaling, of all words that are shown.
TEXT_SIZES = """() => [...document.querySelectorAll(".mm-fig *")].flatMap((node) => {
    const words = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!words || !node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) return [];
    const [size, drawn] = [parseFloat(getComputedStyle(node).fontSize), node.getScreenCTM?.()];
    return size ? [[size * (drawn ? Math.hypot(drawn.a, drawn.b) : 1), node.textContent]] : [];
})"""


ALL_DONE = "count => document.querySelectorAll('[data-state]').length === count"
OVERFLOWING = """() => [...document.querySelectorAll(".mm-fig")]
    .filter((figure) => figure.scrollWidth > figure.clientWidth || figure.getBoundingClientRect().right > innerWidth)
    .map((figure) => figure.closest("[data-figure]").dataset.figure)"""


@pytest.fixture(scope="module")
def examples() -> list[Figure]:
    return [example(name) for name in figure_names()]


# bytes; the map is six drawings in one, the norms are a globe, fans and the strips of the story, the stream's state is
# 32 kB of measured runs for each of three networks, and the living model is a whole page whose links open
# the part that is open
LARGEST = {"model_map": 72_000, "norm_geometry": 73_500, "residual_stream": 138_500, "minimind_live": 127_500}


@EVERY_FIGURE
def test_module_styles_and_state_stay_small(name):
    figure = example(name)
    assert len((module_source(name) + own_stylesheet(name) + figure.static_html()).encode()) < LARGEST.get(name, 60_000)


@pytest.mark.always
def test_figures_speak_without_scripts(browser, examples):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    serve(page, static_page(*examples))
    fallbacks = page.locator(f"{FALLBACK} > :is(table, ol)").all()
    assert len(fallbacks) == len(examples)
    assert all(fallback.is_visible() for fallback in fallbacks)
    context.close()


@pytest.mark.always
@pytest.mark.parametrize("over", long_after(1, ["http", "file"]))
def test_all_figures_live_on_one_static_page(browser, examples, tmp_path, over):
    context = browser.new_context()
    page = context.new_page()
    watch = Watch(page)
    html = static_page(*examples)
    if over == "http":
        serve(page, html)
    else:
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function(ALL_DONE, arg=len(examples))
    states = page.eval_on_selector_all(FIGURE, "all => all.map((one) => [one.dataset.figure, one.dataset.state])")
    assert states == [[name, host.ALIVE] for name in figure_names()]
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        settle(page)
        assert page.evaluate(OVERFLOWING) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert [words for size, words in page.evaluate(TEXT_SIZES) if size < 11.9] == []
    assert watch.problems == []
    assert [url for url in watch.requests[1:] if not url.startswith(("blob:", "data:"))] == []
    context.close()


# Where everything in the figures is, and how it is styled in all properties that any stylesheet names.
LOOKS = """() => {
    const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
    const names = [...new Set(rules.flatMap((rule) => [...rule.style || []]))];
    return [...document.querySelectorAll(".mm-fig, .mm-fig *")].map((node) => {
        const { x, y, width, height } = node.getBoundingClientRect();
        const style = getComputedStyle(node);
        const named = names.map((name) => `${name}: ${style.getPropertyValue(name)}`);
        const figure = node.closest("[data-figure]").dataset.figure;
        return [figure, node.getAttribute("class"), x, y, width, height, ...named].join("; ");
    });
}"""


def test_every_figures_styles_outdo_the_shared_ones_in_any_order(page, examples):
    """In a notebook each figure brings the shared styles with it, after the own styles of those before it."""
    page.emulate_media(reduced_motion="reduce")  # handles that show themselves would differ from moment to moment
    open_figures(page, *examples)
    page.evaluate(f"window.before = ({LOOKS})()")
    page.add_style_tag(content=shared_stylesheet())
    assert page.evaluate(f"({LOOKS})().filter((look, i) => look !== before[i])") == []
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_are_accessible(page, examples, theme):
    open_figures(page, *examples, theme=theme)
    page.eval_on_selector_all("details", "all => all.forEach((one) => (one.open = true))")
    settle(page)
    options = {"preload": False, "resultTypes": ["violations"]}  # all styles are inside the page
    if theme == "dark":
        options["runOnly"] = ["color-contrast"]  # all that another theme can change
    found = Axe().run(page, options=options).response["violations"]
    assert [(rule["id"], node["html"], node["failureSummary"]) for rule in found for node in rule["nodes"]] == []


def test_figures_that_get_no_frame_are_opened_in_another_window(page, monkeypatch):
    serve(page)
    page.evaluate("window.requestAnimationFrame = () => 0")
    monkeypatch.setattr(looking, "PATIENCE", 50)
    open_figures(page, example("sampler"))  # asserts that it is alive
    settle(page)


@EVERY_FIGURE
def test_figure_cleans_up_after_itself(page, name):
    show(page, EMPTY)
    leftovers = page.evaluate(
        """async ([source, state]) => {
            const heard = { model: 0, page: 0, sizes: 0 };
            for (const target of [window, document]) {
                const { addEventListener, removeEventListener } = EventTarget.prototype;
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
            Object.assign(ResizeObserver.prototype, { observe, disconnect }); // the page outlives the test
            for (const target of [window, document]) {
                delete target.addEventListener;
                delete target.removeEventListener;
            }
            return { ...heard, built: built > 10, left: el.childNodes.length };
        }""",
        [module_source(name), state_in(example(name).static_html())],
    )
    assert leftovers == {"model": 0, "page": 0, "sizes": 0, "built": True, "left": 0}


SHOWN = """[...document.querySelectorAll(".mm-stage, .mm-readout")].map((node) => node.innerHTML).join()"""


# Whether that differs from the last time it was asked for, now or a few frames later.
DIFFERS = f"""async () => {{
    const shown = () => {SHOWN};
    for (let frame = 0; frame < 10 && shown() === window.before; frame++) await new Promise(requestAnimationFrame);
    const differs = shown() !== window.before;
    window.before = shown();
    return differs;
}}"""


def responds(page, act, *args) -> bool:
    """Whether the drawing or the key numbers differ a few frames after `act(*args)`."""
    act(*args)
    return page.evaluate(DIFFERS)


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


@pytest.fixture(scope="module")
def touched(browser):
    """A page that a finger can touch."""
    context = browser.new_context(has_touch=True, viewport={"width": 700, "height": 1200})
    yield context.new_page()
    context.close()


@EVERY_FIGURE
def test_sliders_answer_to_mouse_keyboard_and_touch(touched, name):
    page = touched
    open_figures(page, example(name))
    unfold(page)
    page.evaluate(DIFFERS)
    for control in page.locator('input[type="range"]:visible').all():
        control.scroll_into_view_if_needed()
        label = control.evaluate("node => node.labels[0].textContent")
        box = control.bounding_box()
        left, width, middle = box["x"], box["width"], box["y"] + box["height"] / 2
        assert label and box["height"] >= 32
        # a slider of few stops may be at one of the two already
        clicked = any(responds(page, page.mouse.click, left + part * width, middle) for part in (0.8, 0.95))
        assert clicked, f"{label}: mouse"
        assert responds(page, page.touchscreen.tap, left + 0.3 * width, middle), f"{label}: touch"
        assert responds(page, control.press, "End"), f"{label}: keyboard"
        assert "-" not in control.get_attribute("aria-valuetext")  # a true minus sign


@EVERY_FIGURE
def test_handles_answer_to_mouse_keyboard_and_touch(touched, name):
    page = touched
    open_figures(page, example(name))
    unfold(page)
    page.evaluate(DIFFERS)
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


def test_keys_belong_to_the_figure_inside_jupyterlab(page, examples):
    open_figures(page, *examples)
    focusable = ".mm-fig :is(input, button, select, [tabindex])"
    counts = "(all, selector) => all.map((figure) => figure.querySelectorAll(selector).length)"
    assert all(page.eval_on_selector_all(FIGURE, counts, focusable))
    assert page.locator(f"{focusable}:not([data-lm-suppress-shortcuts])").count() == 0
