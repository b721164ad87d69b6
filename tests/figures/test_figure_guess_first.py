"""The figure of the front page: its story is one that a single head decides, in both languages."""

import pytest
import torch
from browser import open_figures, settle

from minimind_edu import world
from minimind_edu.figures import GuessFirst
from minimind_edu.figures.guess_first import PLACES, RIGHT, asked, texts
from minimind_edu.trained.living import card, living_model
from minimind_edu.trained.living.heads import silenced

OWNER = PLACES[-1]


def where_head() -> tuple[int, int]:
    """As heads.js finds it: the head without which people get lost and translations do not."""
    lost = {kind: torch.tensor(table) for kind, table in card()["lost_without"].items()}
    missed = lost["recall"] * (1 - lost["translation"])
    return divmod(int(missed.argmax()), missed.shape[1])


def shares(model, text: str, places: list[int]) -> dict[str, float]:
    with torch.no_grad():
        said = model(torch.from_numpy(world.encode(f"<s> {text}"))[None]).logits[0, -1].softmax(-1)
    return dict(zip(PLACES, said[places].tolist(), strict=True))


@pytest.mark.parametrize("told", [0, 1])
@pytest.mark.parametrize("question", [0, 1])
def test_one_head_decides_where_the_thing_is(told, question):
    model, text, places = living_model(), asked(told, question), texts()["places"][question]
    exact = world.next_word_distribution(world.encode(f"<s> {text}"))
    assert exact[places[PLACES.index(RIGHT)]] == 1
    assert shares(model, text, places)[RIGHT] > 0.95
    with silenced(model, *where_head()):
        assert shares(model, text, places)[OWNER] > 0.98


def test_nothing_of_the_answer_is_on_the_page_before_a_guess(page):
    open_figures(page, GuessFirst(page="live.html"))
    assert "%" not in page.inner_text(".mm-fig")
    assert not page.locator(".gf-go:visible").count()


def test_guess_press_break(page):
    open_figures(page, GuessFirst(page="live.html"))
    page.get_by_role("button", name="Guess: barn").click()
    page.wait_for_selector(".gf-go:visible")
    numbers = lambda: page.locator(".gf-row .mm-bar-number").all_inner_texts()  # noqa: E731
    model, text, places = living_model(), asked(0, 0), texts()["places"][0]
    told = lambda: [f"{100 * one:.1f}" for one in shares(model, text, places).values()]  # noqa: E731
    assert [float(one.split()[0]) for one in numbers()] == pytest.approx([float(one) for one in told()], abs=0.06)
    assert "your guess" in page.locator(".gf-row").nth(2).inner_text()
    page.locator("button.gf-go").click()
    settle(page)
    with silenced(model, *where_head()):
        assert [float(one.split()[0]) for one in numbers()] == pytest.approx([float(one) for one in told()], abs=0.06)
    assert "followed Mia" in page.inner_text(".gf-said")


def test_the_keyboard_goes_through_all_presses(page):
    open_figures(page, GuessFirst(page="live.html"))
    page.get_by_role("button", name="Guess: study").focus()
    for _ in range(4):
        page.keyboard.press("Enter")
        page.wait_for_selector(".gf-go:focus")
        settle(page)
    assert page.get_attribute(".gf-go:focus", "href").startswith("live.html#story=Mia_is_in_the_garden.")
