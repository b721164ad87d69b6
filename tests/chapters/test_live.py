"""Chapters in Jupyter's own front ends, in the real browser: opened, run, and every figure dragged. `make live`.

    LIVE=lab pytest tests/chapters/test_live.py                                  JupyterLab of this environment
    LIVE=classic LIVE_PYTHON=/path/to/python pytest tests/chapters/test_live.py  Notebook 6 of that one
    LIVE=lab pytest tests/chapters/test_live.py -k 06                            one chapter
    LIVE=lab LIVE_FIGURES=1 pytest tests/chapters/test_live.py                   a notebook with each class of figure
    once

It takes minutes, so an ordinary test run leaves it out. Pictures of what was seen go to _build/live.
"""

import json
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from browser import Watch
from figure_examples import QUESTIONS, example
from front_ends import FRONT_ENDS, ROOT, OpenNotebook, serving
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from minimind_edu.figures import figure_names

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))
EACH_FIGURE = Path("each_figure.ipynb")
KEEP_TO_THEMSELVES = ("guess_first", "minimind_live", "quiz")  # what a reader does to them, Python does not learn
PICTURES = ROOT / "_build" / "live"
ALIVE = ".mm-fig"
SOON = 3000  # milliseconds until a figure has drawn itself anew
STILL = 300  # milliseconds after which a figure that shows the same is at rest: a story is written every 220
LOOKS = 20  # at the traits, until they count as unchanged, or at a control

if os.environ.get("LIVE") not in FRONT_ENDS:
    pytest.skip(
        f"front ends are driven by `make live`, which sets LIVE to {' or '.join(FRONT_ENDS)}", allow_module_level=True
    )

# What a figure shows: its elements, and where its controls stand.
SHOWN = """figure => JSON.stringify([
    figure.innerHTML, ...[...figure.querySelectorAll("input")].map((one) => [one.value, one.checked])
])"""

# Whether the front end hides a part of each: what lies at its edges is something else.
IS_CUT = """all => all.map((one) => {
    const { left, right, top, bottom } = one.getBoundingClientRect();
    const places = [[(left + right) / 2, top + 2], [(left + right) / 2, bottom - 2]];
    return !places.every(([x, y]) => one.contains(document.elementFromPoint(x, y)));
})"""

# Controls by kind, and the keys that must reach them although the front end has uses of its own for these keys.
CONTROLS = {
    "slider": ('input[type="range"]', ("ArrowLeft", "ArrowRight", "Home", "End")),
    "switch": ('input[type="checkbox"]', ("Space",)),
    "option": ('input[type="radio"]', ("ArrowDown", "ArrowUp")),
    "handle": (".mm-draggable[tabindex]", ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown")),
    "button": ("button", ("Enter", "Space")),
    "field": ('input[type="text"]', ("7", "Enter")),
}


def figure_cells(chapter: Path) -> dict[int, str]:
    """Code cells of a chapter that show a figure, by their index among code cells, with its stored HTML."""
    cells = [cell for cell in nbformat.read(chapter, 4).cells if cell.cell_type == "code"]
    html = {
        index: output.data["text/html"]
        for index, cell in enumerate(cells)
        for output in cell.outputs
        if "minimind-figure" in output.get("data", {}).get("text/html", "")
    }
    assert html, f"{chapter.name} shows no figure"
    return html


@pytest.fixture(scope="module")
def front_end():
    return FRONT_ENDS[os.environ["LIVE"]]


@pytest.fixture(scope="module")
def server(front_end, tmp_path_factory):
    # absolute, for the server works elsewhere; not resolved, for an environment's Python is a link
    python = os.path.abspath(os.environ.get("LIVE_PYTHON", sys.executable))
    with serving(python, front_end, tmp_path_factory.mktemp("live")) as server:
        yield server


def write_each_figure(path: Path) -> Path:
    """A notebook with each class of figure once, as chapters are stored: not run, and with what needs no kernel."""
    cells = []
    for at, name in enumerate(figure_names(), 1):
        arguments = repr(QUESTIONS) if name == "quiz" else ""
        cell = nbformat.v4.new_code_cell(
            f"from minimind_edu.figures import class_of\n\nclass_of({name!r})({arguments})", execution_count=at
        )
        bundle = {"text/html": example(name).static_html(), "text/plain": name}
        cell.outputs = [nbformat.v4.new_output("execute_result", bundle, execution_count=at)]
        cells.append(cell)
    metadata = nbformat.read(CHAPTERS[0], 4).metadata
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def complaints(watch: Watch) -> set[str]:
    """Complaints without what differs from run to run: ports, hashes, counts."""
    return {re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", problem) for problem in watch.problems}


@pytest.fixture(scope="module")
def its_own_complaints(browser, server, front_end, tmp_path_factory) -> set[str]:
    """What the front end says of itself, with a notebook that holds a formula, lines of text and a slider of Jupyter's
    own, and nothing of ours: Notebook 6 looks for the colors of text, and knows no widget that holds outputs.
    """
    path = tmp_path_factory.mktemp("empty") / "empty.ipynb"
    slider = "from ipywidgets import interactive\nslider = interactive(int, x=(0, 9))\nslider.children[0].value = 3"
    cells = [
        nbformat.v4.new_markdown_cell("$x^2$\n\n```text\none\n```"),
        nbformat.v4.new_code_cell(slider),
        nbformat.v4.new_code_cell("1 + 1"),
    ]
    metadata = nbformat.read(CHAPTERS[0], 4).metadata
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    page = browser.new_page()
    watch = Watch(page)
    opened = OpenNotebook(server, front_end, page, path)
    opened.run_all()
    opened.close()
    return complaints(watch)


@pytest.fixture(
    scope="module", params=[EACH_FIGURE] if os.environ.get("LIVE_FIGURES") else CHAPTERS, ids=lambda path: path.stem
)
def chapter(request, tmp_path_factory) -> Path:
    if request.param is EACH_FIGURE:
        return write_each_figure(tmp_path_factory.mktemp("figures") / EACH_FIGURE)
    return request.param


@pytest.fixture(scope="module")
def opened(chapter, browser, server, front_end):
    """The chapter as it came, in a page of its own: not trusted, not run."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    watch = Watch(page)
    notebook = OpenNotebook(server, front_end, page, chapter)
    notebook.watch = watch
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def run(opened):
    """The same after Run All."""
    opened.run_all()
    return opened


@pytest.fixture
def figures(run, chapter):
    """Every figure of the chapter that ran: its number in the kernel, its element."""
    return {run.number(index): run.output(index).locator(ALIVE).first for index in figure_cells(chapter)}


def picture(element, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for _ in range(2):  # what comes into view takes its true height only then
        element.evaluate("node => node.scrollIntoView({ block: 'start' })")
        element.page.wait_for_timeout(300)
    element.page.screenshot(path=PICTURES / f"{os.environ['LIVE']}_{name}.png")


def changes(figure, act, *args, soon: int = SOON) -> bool:
    """Whether the figure shows something else soon after `act(*args)`."""
    before = figure.evaluate(SHOWN)
    act(*args)
    try:
        figure.page.wait_for_function(
            f"([figure, before]) => ({SHOWN})(figure) !== before", arg=[figure.element_handle(), before], timeout=soon
        )
    except PlaywrightTimeoutError:
        return False
    return True


def is_heard(figure, kind: str, control, key: str) -> bool:
    """Whether a key that is pressed on a control does something: a button may have nothing new to show."""
    keyboard = figure.page.keyboard
    if kind != "button":
        return changes(figure, keyboard.press, key)
    clicked = "node => { window.clicked = 0; node.addEventListener('click', () => window.clicked++); }"
    control.evaluate(clicked)
    keyboard.press(key)
    return figure.page.evaluate("window.clicked") > 0


def rest(figure) -> None:
    """Wait until a figure shows the same for a while: what a press began goes on, and would pass for the next one's."""
    figure.evaluate(
        """(figure, [still, most]) => new Promise((done) => {
            const now = () => performance.now();
            if (!figure.changedAt) {
                const watch = new MutationObserver(() => (figure.changedAt = now()));
                watch.observe(figure, { subtree: true, childList: true, attributes: true, characterData: true });
                figure.changedAt = now();
            }
            const end = now() + most;
            const look = () => (now() - figure.changedAt > still || now() > end ? done() : setTimeout(look, 20));
            look();
        })""",
        [STILL, SOON],
    )


def box_of(control) -> dict[str, float]:
    """Where a control is, in the middle of the window; a figure that still plays may draw it anew meanwhile."""
    for _ in range(LOOKS):
        control.evaluate("node => node.scrollIntoView({ block: 'center' })")
        if box := control.bounding_box():
            return box
    pytest.fail(f"{control} is nowhere to be seen")


def use(kind: str, control) -> None:
    """What a reader does with the mouse: pull, press, or point and type."""
    box, mouse = box_of(control), control.page.mouse
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    if kind == "slider":
        share = control.evaluate("node => (node.value - node.min) / (node.max - node.min)")
        x, goal = box["x"] + 9 + share * (box["width"] - 18), 0.75 if share < 0.5 else 0.25
        mouse.move(x, y)
        mouse.down()
        mouse.move(box["x"] + goal * box["width"], y, steps=4)
        mouse.up()
    elif kind == "handle":
        mouse.move(x, y)
        mouse.down()
        mouse.move(x - 120, y + 25, steps=4)  # far enough where a handle has few places
        mouse.up()
    else:
        mouse.click(x, y)
        if kind == "field":
            control.page.keyboard.type("0.5")


def controls(figure, kind: str) -> list:
    """The controls of this kind that a reader could use now."""
    return [
        control for control in figure.locator(CONTROLS[kind][0]).all() if control.is_visible() and control.is_enabled()
    ]


def followed(notebook, number: str, before: dict, looks: int = LOOKS) -> set[str]:
    """Traits of the figure in the kernel that differ from before, as soon as there are any."""
    for _ in range(looks):
        now = notebook.states()[number]
        if now != before:
            return {name for name in now if now[name] != before[name]}
        notebook.page.wait_for_timeout(40)
    return set()


def test_before_it_runs_a_figure_is_a_sentence_and_a_table(opened, chapter):
    for index, html in figure_cells(chapter).items():
        output = opened.output(index)
        assert output.locator(".mm-fallback p, .mm-fallback li").first.is_visible()
        assert output.locator(".mm-fallback :is(table, ol)").first.is_visible()
        assert output.locator(ALIVE).count() == 0
        assert output.locator("tr").count() == html.count("<tr>")
        picture(output, f"{chapter.stem}_{opened.number(index)}_not_run")
    assert opened.errors() == []


def test_run_all_brings_every_figure_to_life_and_no_error(run, chapter):
    assert run.errors() == []
    for index in figure_cells(chapter):
        figures = run.output(index).locator(ALIVE)
        assert figures.count() == 1
        picture(figures.first, f"{chapter.stem}_{run.number(index)}")
        assert figures.first.is_visible()
    assert set(run.states()) == {run.number(index) for index in figure_cells(chapter)}


def test_every_control_moves_its_figure_and_the_traits_follow(run, figures, capsys):
    again, told = [], []
    for number, figure in figures.items():
        counts, traits = {}, set()
        for kind in CONTROLS:
            for place, control in enumerate(controls(figure, kind)):
                if not (control.is_visible() and control.is_enabled()):
                    continue
                if kind == "option" and control.is_checked():
                    continue
                if kind == "button":
                    rest(figure)
                before = run.states()[number]
                if not changes(figure, use, kind, control):
                    again.append((f"[{number}] {kind} {place}", figure, kind, control))
                counts[kind] = counts.get(kind, 0) + 1
                traits |= followed(run, number, before)
        told.append(f"[{number}] {counts}, traits that followed: {sorted(traits)}")
        keeps_to_itself = run.ask(f"Out[{number}]._module").strip("'") in KEEP_TO_THEMSELVES
        assert counts and bool(traits) != keeps_to_itself, told[-1]
    with capsys.disabled():
        print(f"\n{run.name}", *told, sep="\n    ")
    # what was shown already when they were pressed is not any more, after all the others
    assert [name for name, *control in again if not changes(control[0], use, *control[1:])] == []


def test_keys_reach_the_figure_and_not_the_notebook(run, figures):
    deaf = []
    cells = run.page.locator(run.front_end.code_cell).count()
    for number, figure in figures.items():
        for kind, (_, keys) in CONTROLS.items():
            for place, control in enumerate(controls(figure, kind)[:2]):
                control.focus()
                heard = [is_heard(figure, kind, control, key) for key in keys]
                inside = figure.evaluate("node => node.contains(document.activeElement)")
                if not (any(heard) and inside):
                    deaf.append(f"[{number}] {kind} {place}: {heard}, focus inside: {inside}")
    assert deaf == []
    assert run.page.locator(run.front_end.code_cell).count() == cells


def test_every_picture_is_kept_and_its_menu_is_in_sight(run, figures):
    """The kernel sends what draws the files; an output cuts off what leaves it."""
    for number, figure in figures.items():
        keeper = figure.locator("xpath=following-sibling::details[contains(@class, 'mm-keep')]")
        if run.ask(f"Out[{number}]._module").strip("'") == "quiz":
            assert keeper.count() == 0
            continue
        keeper.locator("summary").click()
        try:
            keeper.get_by_role("button", name="PNG").wait_for(timeout=60_000)  # the kernel may compute meanwhile
        except PlaywrightTimeoutError:
            pytest.fail(f"[{number}] open: {keeper.get_attribute('open')}, it says {keeper.text_content()}")
        assert keeper.get_by_role("button").all_text_contents() == ["SVG", "PNG"], f"[{number}]"
        cut = keeper.locator("summary, button").evaluate_all(IS_CUT)
        assert not any(cut), f"[{number}] {cut}"
        for kind in ("SVG", "PNG"):
            with run.page.expect_download() as found:
                keeper.get_by_role("button", name=kind).click()
            kept = found.value.path().read_bytes()
            assert kept.startswith({"SVG": b"<svg", "PNG": b"\x89PNG"}[kind]) and len(kept) > 2000, f"[{number}] {kind}"
            keeper.get_by_role("button", name="Saved").first.wait_for()
            PICTURES.mkdir(parents=True, exist_ok=True)
            found.value.save_as(PICTURES / f"{os.environ['LIVE']}_{run.name}_{number}.{kind.lower()}")
        keeper.locator("summary").click()


def test_a_trait_set_in_a_cell_moves_the_figure(run, figures):
    at_start = {number: state for number, state in run.states().items() if number in figures}
    for number, figure in figures.items():
        sliders = controls(figure, "slider") or controls(figure, "handle")
        if not sliders:
            continue
        changes(figure, use, "slider" if controls(figure, "slider") else "handle", sliders[0])
        moved = followed(run, number, at_start[number], looks=20 * LOOKS)  # it will: a kernel may be busy
        pulled = run.states()[number]
        assert moved, f"[{number}]"
        for name in moved:
            # the others stand where they stood at the start, for one of them may bound this one
            others = {other: at_start[number][other] for other in moved if other != name}
            if others:
                changes(figure, run.ask, setting(number, {**others, name: pulled[name]}))
            back = setting(number, {name: at_start[number][name]})
            assert changes(figure, run.ask, back, soon=10 * SOON), f"[{number}] {name}"


def setting(number: str, traits: dict) -> str:
    """Python that sets these traits of a figure in the kernel."""
    values = f"__import__('json').loads({json.dumps(json.dumps(traits))})"
    return f"[Out[{number}].set_trait(name, value) for name, value in {values}.items()]"


def test_nothing_was_complained_of(run, its_own_complaints):
    assert complaints(run.watch) - its_own_complaints == set()


def test_a_model_of_ones_own_is_open_and_writes(browser, server, front_end, its_own_complaints, tmp_path):
    """figures.Inside, whose kernel must hear and answer: messages with bytes, in both generations of widgets."""
    code = (
        "from minimind_edu import figures\nfrom minimind_edu.trained.living import living_model\n\n"
        'figures.Inside(living_model(), text="0 2 29 20")'
    )
    metadata = nbformat.read(CHAPTERS[0], 4).metadata
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)], metadata=metadata), tmp_path / "own.ipynb"
    )
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    watch = Watch(page)
    notebook = OpenNotebook(server, front_end, page, tmp_path / "own.ipynb")
    notebook.run_all()
    assert notebook.errors() == []
    page.locator('.in-page[data-busy="false"]').wait_for(timeout=60_000)
    assert page.locator(".in-line button").count() == 4
    page.get_by_role("button", name="Next token", exact=True).click()
    page.locator(".in-line button").nth(4).wait_for()
    page.locator('.in-page[data-busy="false"]').wait_for(timeout=60_000)
    page.get_by_role("button", name="block 2", exact=True).click()
    page.locator(".st-strips b", has_text=".").first.wait_for()
    page.get_by_role("button", name="Try without each head").click()
    page.locator(".in-tried", has_text="Needed most here").wait_for(timeout=60_000)
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.locator(".in-page").screenshot(path=PICTURES / f"own_model_{os.environ['LIVE']}.png")
    assert page.locator(".in-page").evaluate("one => one.scrollWidth <= one.clientWidth")
    assert notebook.errors() == [] and complaints(watch) - its_own_complaints == set()
    notebook.close()
