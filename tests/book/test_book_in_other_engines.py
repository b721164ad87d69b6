"""The built book in Firefox and in WebKit: every page whole, at both widths, and figures that answer.

Chromium, in which everything else is tested, has the pages of test_book.py.
"""

import pytest
import torch
from book_builder import NARROW, PAGES, WIDE, served
from browser import FIGURE
from web_engines import NOTE_PROBLEMS, Engine, Firefox, WebKit, start

from minimind_edu import world
from minimind_edu.figures.guess_first import PLACES, RIGHT, asked, texts
from minimind_edu.trained.living import card, living_model
from minimind_edu.trained.living.heads import silenced
from minimind_edu.web import host

pytestmark = pytest.mark.long

PRESSES = 7
STEPS = 20  # of a training in the page


@pytest.fixture(scope="module", params=[Firefox, WebKit], ids=lambda engine: engine.name)
def engine(request):
    started = start(request.param)
    yield started
    started.close()


@pytest.fixture(scope="module")
def address(html):
    """The book on a server of this process; its pages themselves note what goes wrong, for WebKit."""
    with served(html, NOTE_PROBLEMS) as found:
        yield found


def visit(engine: Engine, address: str, name: str, size: dict[str, int] = WIDE) -> None:
    """Open a page, scroll to its end as a reader does, and back, until every figure has started."""
    engine.resize(**size)
    engine.open(f"{address}/{name}.html" + ("?q=rotation" if name == "search" else ""))
    scroll = """scrollTo({ top: args[0], behavior: "instant" });
        await new Promise((done) => setTimeout(done, 20));
        return document.documentElement.scrollHeight;"""
    y, end = 0, 1
    while y < end:
        end = engine.evaluate(scroll, y)
        y += round(0.85 * size["height"])
    engine.evaluate(scroll, 0)
    engine.wait_until("!document.querySelector(args[0])", f"{FIGURE}:not([data-state])")


def settle(engine: Engine) -> None:
    engine.evaluate("await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def assert_whole(engine: Engine, width: int) -> None:
    settle(engine)
    states, empty, broken, wide = engine.evaluate(
        """const formulas = [...document.querySelectorAll("math")].filter((one) => one.checkVisibility());
        const isEmpty = ({ width, height }) => width < 2 || height < 2;
        const isBroken = ({ localName: name, children }) =>
            children.length !== (/^m(sub|under)(sup|over)$/.test(name) ? 3 : 2);
        return [
            [...document.querySelectorAll(args[0])].map((one) => one.dataset.state),
            formulas.filter((one) => isEmpty(one.getBoundingClientRect())).map((one) => one.getAttribute("alttext")),
            [...document.querySelectorAll("math :is(msub, msup, msubsup, mfrac, munder, mover, munderover)")]
                .filter(isBroken).map((one) => one.outerHTML),
            [innerWidth, document.documentElement.scrollWidth],
        ];""",
        FIGURE,
    )
    assert set(states) <= {host.ALIVE}
    assert empty == [], "formulas of no size"
    assert broken == [], "formulas with a part too few or too many"
    assert wide[0] == width and wide[1] <= width


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_at_both_widths_and_without_complaint(engine, address, name):
    visit(engine, address, name)
    assert_whole(engine, WIDE["width"])
    engine.resize(**NARROW)
    assert_whole(engine, NARROW["width"])
    assert engine.problems == []


def middle_of(engine: Engine, selector: str, index: int = 0, across: float = 0.5) -> tuple[float, float]:
    """Scroll an element to the middle of the window and return a place on it, `across` of its width."""
    return tuple(
        engine.evaluate(
            """const one = document.querySelectorAll(args[0])[args[1]];
            one.scrollIntoView({ block: "center", behavior: "instant" });
            const { x, y, width, height } = one.getBoundingClientRect();
            return [x + args[2] * width, y + height / 2];""",
            selector,
            index,
            across,
        )
    )


def click(engine: Engine, selector: str, index: int = 0) -> None:
    place = middle_of(engine, selector, index)
    engine.drag(place, place)


def text_of(engine: Engine, selector: str) -> str:
    return engine.evaluate("return document.querySelector(args[0]).textContent", selector)


def shares(model, language: int) -> list[float]:
    """What the model gives to the three places of the story that both pages begin with, told in a language."""
    with torch.no_grad():
        text = torch.from_numpy(world.encode(f"<s> {asked(language, language)}"))
        return model(text[None]).logits[0, -1].softmax(-1)[texts()["places"][language]].tolist()


def number(text: str) -> float:
    return float(text.rstrip("%\xa0")) / 100


BOTH = pytest.mark.parametrize(("edition", "language"), [("", 0), ("zh/", 1)], ids=["English", "Chinese"])


@BOTH
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_front_page_answers_after_a_guess_and_follows_the_owner_without_its_head(
    engine, address, edition, language, size
):
    visit(engine, address, f"{edition}book/index", size)
    row = "document.querySelectorAll('.gf-row')"
    assert "%" not in text_of(engine, ".gf-fig"), "nothing is answered before a guess"
    model = living_model()
    click(engine, ".gf-row", PLACES.index(RIGHT))
    engine.wait_until("document.querySelector('.gf-go').checkVisibility({ opacityProperty: true })")
    numbers = f"return [...{row}].map((one) => one.querySelector('.mm-bar-number').textContent)"
    assert [number(one) for one in engine.evaluate(numbers)] == pytest.approx(shares(model, language), abs=0.006)
    click(engine, ".gf-go")
    engine.wait_until("document.querySelector('.st-stop[data-silent=true]')")
    lost = {kind: torch.tensor(table) for kind, table in card()["lost_without"].items()}
    missed = lost["recall"] * (1 - lost["translation"])
    with silenced(model, *divmod(int(missed.argmax()), missed.shape[1])):
        silent = shares(model, language)
    assert [number(one) for one in engine.evaluate(numbers)] == pytest.approx(silent, abs=0.006)
    outline = f"return {row}[args[0]].querySelector('.mm-before').getBoundingClientRect().width"
    assert engine.evaluate(outline, PLACES.index(RIGHT)) > 30, "the bar of before has left its outline"
    assert_whole(engine, size["width"])
    assert engine.problems == []


@BOTH
def test_the_seven_presses_say_something_and_the_answer_is_the_models(engine, address, edition, language):
    visit(engine, address, f"{edition}book/live")
    engine.evaluate("localStorage.clear()")
    for index in range(PRESSES):
        engine.evaluate("document.querySelector('.ml-guide .ml-seen').textContent = ''")
        click(engine, ".ml-step", index)
        engine.wait_until("document.querySelector('.ml-guide .ml-seen').textContent")
        if index == 0:
            settle(engine)
            assert text_of(engine, ".ml-bar > *").startswith(texts()["names"][language][PLACES.index(RIGHT)])
            right = shares(living_model(), language)[PLACES.index(RIGHT)]
            assert number(text_of(engine, ".ml-bar .mm-bar-number")) == pytest.approx(right, abs=0.006)
    assert engine.problems == []


def test_a_head_falls_silent_on_a_phone_while_the_answer_is_in_sight(engine, address):
    visit(engine, address, "book/live", NARROW)
    click(engine, ".ml-step", 0)
    engine.wait_until("!document.querySelector('.st-stop').disabled")
    before = engine.evaluate("return document.querySelector('.ml-beside').getBoundingClientRect().top + scrollY")
    click(engine, ".st-stop", 13)
    engine.wait_until("document.querySelector('.st-stop[data-silent=true]')")
    settle(engine)
    top, bottom, after = engine.evaluate(
        """const [road, last] = [".st-road", ".ml-bar:nth-child(4)"].map((one) => document.querySelector(one));
        const [above, below] = [road, last].map((one) => one.getBoundingClientRect());
        return [above.top, below.bottom, document.querySelector(".ml-beside").getBoundingClientRect().top + scrollY];"""
    )
    assert 0 <= top and bottom <= NARROW["height"] and abs(after - before) < 1
    assert_whole(engine, NARROW["width"])
    assert engine.problems == []


def test_a_slider_answers_to_mouse_and_keys(engine, address):
    visit(engine, address, "chapters/04_rope_rotation")
    slider = f"{FIGURE} input[type=range]"
    value = "const one = document.querySelector(args[0]); one.focus(); return Number(one.value)"
    shown = "return document.querySelector(args[0]).closest('.mm-fig').textContent"
    before, picture = engine.evaluate(value, slider), engine.evaluate(shown, slider)
    y = middle_of(engine, slider)[1]
    engine.drag((middle_of(engine, slider, across=0.3)[0], y), (middle_of(engine, slider, across=0.9)[0], y))
    dragged = engine.evaluate(value, slider)
    assert dragged > before and engine.evaluate(shown, slider) != picture
    engine.press("ArrowLeft")
    assert engine.evaluate(value, slider) < dragged
    engine.press("Home")
    assert engine.evaluate("return document.querySelector(args[0]).min", slider) == str(engine.evaluate(value, slider))
    assert engine.problems == []


@pytest.mark.parametrize("place", ["book/beyond_one_machine", "chapters/04_rope_rotation"])
def test_a_figure_is_kept_as_a_picture(engine, address, place):
    """The SVG is well-formed and has the title; of the PNG drawn from it a part is neither paper nor empty."""
    visit(engine, address, place)
    engine.evaluate("document.querySelector('.mm-keep').open = true")
    engine.wait_until("document.querySelector('.mm-keep button')")
    problem, title, words, size, inked = engine.evaluate(
        """const keep = minimindFigures.keep();
        const drawn = keep.picture(document.querySelector(".mm-mount > .mm-fig"));
        const parsed = new DOMParser().parseFromString(drawn.svg, "image/svg+xml");
        const image = await createImageBitmap(await keep.pixelsOf(drawn));
        const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const { data } = context.getImageData(0, 0, image.width, image.height);
        let dark = 0;
        for (let i = 0; i < data.length; i += 4) if (data[i + 3] && data[i] + data[i + 1] + data[i + 2] < 300) dark++;
        return [
            Boolean(parsed.querySelector("parsererror")),
            parsed.querySelector("title").textContent,
            [...parsed.querySelectorAll("text")].map((one) => one.textContent).join(" "),
            [image.width, 2 * drawn.width],
            dark / (image.width * image.height),
        ];"""
    )
    assert not problem and title and title.split()[0] in words
    assert size[0] == size[1] and 0.005 < inked < 0.5
    assert engine.problems == []


def test_a_model_is_trained_in_the_page(engine, address):
    visit(engine, address, "book/live")
    click(engine, ".ml-tab", 2)
    click(engine, ".ml-train button")
    engine.wait_until("document.querySelector('.ml-loss-run')?.getAttribute('d')?.split('L').length > args[0]", STEPS)
    click(engine, ".ml-train button")
    engine.wait_until("document.querySelector('.ml-train .ml-seen').textContent")
    assert float(text_of(engine, ".ml-loss-now")) < 4
    assert engine.problems == []


def test_the_living_page_works_from_a_folder(engine, html):
    visit(engine, html.as_uri(), "book/live")
    assert_whole(engine, WIDE["width"])
    click(engine, ".ml-step", 0)
    engine.wait_until("document.querySelector('.ml-guide .ml-seen').textContent")
