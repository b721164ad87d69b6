"""Play, back and step: a figure that takes 0 to 3 tells what each press does, beat by beat."""

import pytest
from browser import SIZE, serve

MOUNTED = """async (isCompact) => {
    const { createTransport } = await import("/web/kit/transport.js");
    const words = { play: "Play", pause: "Pause", step: "Step", back: "Back", reset: "Start over" };
    window.place = 0;
    const go = (direction) => {
        window.place = Math.max(0, Math.min(3, window.place + direction));
        window.transport.set(window.place, 3);
    };
    window.transport = createTransport(words, go, { beat: 100, isCompact });
    document.body.append(window.transport.root);
    window.transport.set(0, 3);
}"""


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport=SIZE)
    page = context.new_page()
    serve(page)
    page.clock.install(time=0)
    page.clock.pause_at(60)
    page.evaluate(MOUNTED, False)
    yield page
    context.close()


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def place(page):
    return page.evaluate("window.place")


def test_play_steps_at_once_and_with_every_beat_and_stops_at_the_end(page):
    press(page, "Play")
    assert place(page) == 1
    page.clock.run_for(100)
    assert place(page) == 2
    page.clock.run_for(1000)
    assert place(page) == 3
    assert page.get_by_role("button", name="Play", exact=True).count() == 1  # no longer Pause
    press(page, "Play")  # shows the beginning for a beat
    assert place(page) == 0
    page.clock.run_for(100)
    assert place(page) == 1


def test_pause_and_a_hand_stop_it(page):
    press(page, "Play")
    press(page, "Pause")
    page.clock.run_for(500)
    assert place(page) == 1
    press(page, "Play")
    press(page, "Back")
    page.clock.run_for(500)
    assert place(page) == 1
    press(page, "Play")
    page.evaluate("window.transport.release()")  # the figure goes
    page.clock.run_for(500)
    assert place(page) == 2


def test_what_has_nothing_left_to_do_is_disabled_and_hands_the_focus_to_play(page):
    def disabled():
        return page.eval_on_selector_all("button", "all => all.map((one) => one.disabled)")

    assert disabled() == [False, True, False, True]  # play, back, step, start over
    for _ in range(3):
        press(page, "Step")
    assert disabled() == [False, False, True, False]
    assert page.evaluate("document.activeElement.textContent") == "Play"
    press(page, "Start over")
    assert place(page) == 0
    assert page.evaluate("document.activeElement.textContent") == "Play"


def test_compact_it_plays_and_steps(page):
    page.evaluate("document.body.replaceChildren()")
    page.evaluate(MOUNTED, True)
    assert page.locator("button").all_inner_texts() == ["Play", "Step"]
