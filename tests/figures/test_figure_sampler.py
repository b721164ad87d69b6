"""Sampler: its bars are the package's distributions, its draws follow them, and its text grows by the living model."""

import json
import re

import pytest
import torch
from browser import ALIVE, open_figures, read_out, serve, settle, static_page, unfold

from minimind_edu import world
from minimind_edu.figures import Sampler, living_script
from minimind_edu.figures.sampler import STARTS, WORDS, starts
from minimind_edu.trained.living import living_model

pytestmark = pytest.mark.usefixtures("forgetful")

KNOBS = [
    {},
    {"temperature": 0.5},
    {"temperature": 1.8, "min_p": 0.05},
    {"start": "broad", "top_k": 4},
    {"start": "broad", "temperature": 0.7, "top_p": 0.9},
    {"start": "broad", "repetition_penalty": 1.5},
    {"start": "broad", "repetition_penalty": 1.3, "temperature": 1.2, "top_k": 20, "top_p": 0.95, "min_p": 0.02},
    {"start": "sharp", "temperature": 2.0},
]
OTHER_STORY = "Zoe is in the barn. where is Zoe? in the"
ROW = ".sp-row"
# The rows as they are drawn: { word: [before, after, share of the draws or null] }, as parts of 1.
DRAWN = """() => Object.fromEntries([...document.querySelectorAll(".sp-row")].map((row) => {
    const [before, after, drawn] = row.querySelectorAll(".mm-track i");
    const part = (text) => parseFloat(text) / 100;
    const share = drawn.hidden ? null : part(drawn.style.left);
    return [row.querySelector(".mm-bar-word").textContent, [part(before.style.width), part(after.style.width), share]];
}))"""


def drawn(page):
    return page.evaluate(DRAWN)


def text_of(page):
    """The words of the text, without the place for the next one."""
    shown = page.locator(".sp-text").evaluate(
        "(line) => [...line.childNodes].slice(0, -2).map((n) => n.textContent).join('')"
    )
    return shown.strip()


def next_probabilities(text):
    """What the living model says after a text: { word: probability }."""
    ids = torch.from_numpy(world.encode(f"<s> {text}"))[None]
    with torch.no_grad():
        said = living_model()(ids).logits[0, -1].softmax(-1)
    return dict(zip(world.WORDS, said.tolist(), strict=True))


def wait_for_draws(page, count):
    page.wait_for_function(
        f"document.querySelector('.mm-readout').textContent.includes('after {count} draw')"
        " && !document.querySelector('.sp-actions button:last-child').disabled"
    )


@pytest.fixture
def sampler(page):
    open_figures(page, Sampler())
    return page


# The Python side


def test_the_starts_hold_what_the_living_model_says():
    entropies = []
    for name, text in STARTS.items():
        start = starts()[name]
        assert world.decode(start["ids"][1:]) == text and len(start["logits"]) == WORDS
        said = torch.tensor(start["logits"]).softmax(-1)
        expected = torch.tensor(list(next_probabilities(text).values()))
        torch.testing.assert_close(said, expected, rtol=0, atol=1e-3)
        entropies.append(torch.special.entr(said).sum().item())
    assert entropies[0] > entropies[1] + 0.5 > entropies[2] + 1.5  # broad, medium, sharp


def test_all_words_may_follow_by_the_rules_of_the_world():
    """What the starts promise: many words, seven places, and one answer."""
    possible = [int((world.next_word_distribution(world.encode(f"<s> {text}")) > 0).sum()) for text in STARTS.values()]
    assert possible[0] > 20 and possible[1:] == [7, 1]


def test_the_table_tells_both_distributions_and_entropies():
    figure = Sampler(temperature=0.5)
    before, after = figure.probabilities()
    sentence, rows = figure._summary()
    assert STARTS["medium"] in sentence
    best = int(before.argmax())
    assert dict(rows)[world.WORDS[best]] == f"{100 * before[best]:.1f} %, {100 * after[best]:.1f} %"
    assert re.fullmatch(r"\d\.\d\d nats, \d\.\d\d nats", dict(rows)["entropy"])


def test_knobs_that_change_nothing_leave_the_models_probabilities():
    before, after = Sampler().probabilities()
    torch.testing.assert_close(before, after)


# The distribution


@pytest.mark.parametrize("knobs", KNOBS, ids=str)
def test_its_bars_are_the_distributions_of_the_package(page, knobs):
    figure = Sampler(**knobs)
    before, after = (dict(zip(world.WORDS, p.tolist(), strict=True)) for p in figure.probabilities())
    open_figures(page, figure)
    rows = drawn(page)
    [others] = [word for word in rows if word not in before]
    for word, (first, second, _) in rows.items():
        if word != others:
            assert [first, second] == pytest.approx([before[word], after[word]], abs=2e-5), word
            assert page.locator(ROW, has_text=word).first.get_attribute("aria-label").startswith(f"{word}: ")
    rest = [1 - sum(row[i] for word, row in rows.items() if word != others) for i in (0, 1)]
    assert rows[others][:2] == pytest.approx(rest, abs=2e-4)
    entropies = [torch.special.entr(p).sum().item() for p in figure.probabilities()]
    shown = read_out(page)
    assert shown["entropy of the model"] == f"{entropies[0]:.2f} nats"
    assert shown["entropy after the knobs"] == f"{entropies[1]:.2f} nats"


def test_words_that_are_cut_are_marked_and_counted(page):
    figure = Sampler(start="broad", top_k=4)
    before, after = figure.probabilities()
    open_figures(page, figure)
    assert page.locator(f"{ROW}[data-cut=false]").count() == 4
    assert page.locator(f"{ROW}[data-cut=true]").first.inner_text().endswith("cut")
    share = 100 * before[after == 0].sum().item()
    assert (
        page.locator(".mm-verdict").inner_text()
        == f"4 of {WORDS} words are left; the others had {share:.0f}\N{NO-BREAK SPACE}%."
    )


def test_a_penalty_marks_the_words_of_the_text(page):
    seen = f"{ROW}[data-seen=true] .mm-bar-word"
    open_figures(page, Sampler(start="broad"))
    assert page.locator(seen).count() == 0
    open_figures(page, Sampler(start="broad", repetition_penalty=1.5))
    text = set(world.encode(STARTS["broad"]).tolist())
    marked = page.locator(seen).all_text_contents()
    assert marked == [word for word in drawn(page) if word in world.WORDS and world.WORDS.index(word) in text]
    assert "Mia" in marked


def test_temperature_moves_the_bars_and_says_how(sampler):
    temperature = sampler.get_by_label("temperature")
    outline = [row[0] for row in drawn(sampler).values()]
    temperature.fill("0.5")
    low = drawn(sampler)["garden"][1]
    assert "likelier still" in sampler.locator(".mm-verdict").inner_text()
    temperature.fill("2")
    assert low > outline[0] > drawn(sampler)["garden"][1]
    assert "better chance" in sampler.locator(".mm-verdict").inner_text()
    assert [row[0] for row in drawn(sampler).values()] == outline


def test_presets_set_all_knobs_and_follow_them(sampler):
    unfold(sampler)
    recipes = {
        "greedy": "top-k 1",
        "careful": "temperature 0.70 → top-p 0.90",
        "free": "temperature 1.50 → min-p 0.05",
        "none": "",
    }
    for name, recipe in recipes.items():
        sampler.get_by_label(name, exact=True).check()
        assert sampler.locator(".sp-recipe").inner_text() == recipe
    sampler.get_by_label("top-k").fill("0")  # the first stop
    assert sampler.get_by_label("greedy", exact=True).is_checked()
    assert "All draws give" in sampler.locator(".mm-verdict").inner_text()
    sampler.get_by_label("top-p").fill("0.5")
    assert not sampler.get_by_label("greedy", exact=True).is_checked()


def test_every_step_says_how_many_words_it_leaves(page):
    open_figures(page, Sampler(start="broad", top_k=20, top_p=0.8, min_p=0.2))
    unfold(page)
    said = [page.get_by_label(label).get_attribute("aria-valuetext") for label in ("top-k", "top-p", "min-p")]
    counts = [int(text.removesuffix(" left").split()[-1]) for text in said]
    assert counts[0] == 20 > counts[1] > counts[2] >= 1
    assert f"{counts[2]} of {WORDS} words" in page.locator(".mm-verdict").inner_text()


# The draws


def test_draws_approach_the_bars(page):
    page.emulate_media(reduced_motion="reduce")
    open_figures(page, Sampler(start="broad", temperature=0.8))
    gaps = []
    for total in (100, 3000):
        while not page.get_by_text(f"gap after {total} draws").count():
            page.get_by_text("Draw 100", exact=True).click()
        gaps.append(float(read_out(page)[f"gap after {total} draws"].removesuffix(" %")))
    assert gaps[1] < 4 < gaps[0] < 30
    for _, after, share in drawn(page).values():
        assert share == pytest.approx(after, abs=0.03)
    page.emulate_media(reduced_motion="no-preference")


def test_with_motion_the_draws_come_one_after_the_other(sampler):
    sampler.get_by_text("Draw 100", exact=True).click()
    wait_for_draws(sampler, 100)
    assert sum(row[2] or 0 for row in drawn(sampler).values()) == pytest.approx(1, abs=0.02)


def test_one_draw_is_the_word_that_can_be_taken(sampler):
    sampler.get_by_text("Draw 1", exact=True).click()
    shares = {word: share for word, (_, _, share) in drawn(sampler).items() if share}
    assert list(shares.values()) == [1.0]
    [word] = shares
    assert sampler.locator(".sp-slot").inner_text() == word
    assert sampler.get_by_role("button", name=f"Take “{word}”").is_enabled()


def test_the_same_seed_draws_the_same_and_another_does_not(page):
    page.emulate_media(reduced_motion="reduce")
    seen = []
    for seed in (3, 3, 4):
        open_figures(page, Sampler(start="broad", seed=seed))
        page.get_by_text("Draw 100", exact=True).click()
        seen.append(json.dumps(drawn(page)))
    assert seen[0] == seen[1] != seen[2]
    page.emulate_media(reduced_motion="no-preference")


def test_a_knob_begins_the_draws_anew(sampler):
    sampler.get_by_text("Draw 1", exact=True).click()
    assert "gap after 1 draw" in read_out(sampler)
    sampler.get_by_label("temperature").fill("0.5")
    assert read_out(sampler)["gap to the draws"] == "–"
    assert sampler.locator(".sp-slot").inner_text() == ""
    assert sampler.get_by_role("button", name="Take it").is_disabled()


# The text


def test_taking_words_makes_a_text_that_the_living_model_goes_on_with(page):
    open_figures(page, Sampler(start="broad"))
    page.get_by_text("Draw 1", exact=True).click()
    expected = STARTS["broad"]
    for _ in range(4):
        expected = world.decode([*world.encode(expected), world.WORDS.index(page.locator(".sp-slot").inner_text())])
        length = page.locator(".sp-text b").count()
        page.get_by_role("button", name="Take “").click()
        page.wait_for_function(f"document.querySelectorAll('.sp-text b').length === {length + 1}")
        settle(page)
        assert text_of(page) == expected
        said = next_probabilities(expected)
        for word, (before, after, _) in drawn(page).items():
            assert word not in said or [before, after] == pytest.approx([said[word]] * 2, abs=5e-4)
        assert page.locator(".sp-slot").inner_text() in said  # and the next is drawn
    for _ in range(4):
        page.get_by_text("Undo", exact=True).click()
    assert text_of(page) == STARTS["broad"]
    assert page.get_by_text("Undo", exact=True).is_disabled()


def test_a_text_can_be_written_with_one_key(sampler):
    sampler.get_by_text("Draw 1", exact=True).click()
    sampler.locator(".sp-actions button").last.focus()
    for length in range(1, 5):
        sampler.keyboard.press("Enter")
        sampler.wait_for_function(f"document.querySelectorAll('.sp-text b').length === {length}")
        assert sampler.evaluate("document.activeElement.textContent").startswith("Take “")


def test_a_number_between_the_stops_is_shown_as_it_is(page):
    open_figures(page, Sampler(top_k=40))
    unfold(page)
    assert page.get_by_label("top-k").get_attribute("aria-valuetext").startswith("40 · ")


def test_a_bar_adds_its_word_by_keyboard_too(sampler):
    bar = sampler.locator(f"button{ROW}", has_text="hall")
    bar.focus()
    sampler.keyboard.press("Enter")
    sampler.wait_for_function("document.querySelectorAll('.sp-text b').length === 1")
    assert text_of(sampler) == f"{STARTS['medium']} hall"
    assert max(drawn(sampler).items(), key=lambda item: item[1][0])[0] == "."


def test_another_start_drops_what_was_added(sampler):
    sampler.locator(f"button{ROW}", has_text="hall").click()
    sampler.wait_for_function("document.querySelectorAll('.sp-text b').length === 1")
    sampler.get_by_label("one", exact=True).check()
    assert text_of(sampler).endswith("where is Mia? in the") and sampler.locator(".sp-text b").count() == 0


def test_without_the_script_the_text_stays_and_the_knobs_work(page):
    serve(page, static_page(Sampler()).replace(living_script(), ""))
    page.wait_for_selector(ALIVE)
    page.locator(f"button{ROW}", has_text="hall").click()
    page.wait_for_function("document.querySelector('.sp-status').textContent.includes('not within reach')")
    assert text_of(page) == STARTS["medium"]
    before = drawn(page)
    page.get_by_label("temperature").fill("0.5")
    assert drawn(page) != before


def test_it_goes_on_with_the_readers_story(page):
    open_figures(page, Sampler())
    page.evaluate(f"localStorage.setItem('minimind-story', {OTHER_STORY!r})")
    unfold(page)
    page.get_by_label("This story").check()
    page.wait_for_function("document.querySelector('.sp-text').textContent.includes('Zoe')")
    assert text_of(page) == OTHER_STORY
    said = next_probabilities(OTHER_STORY)
    assert drawn(page)["barn"][0] == pytest.approx(said["barn"], abs=5e-4)
    assert page.get_by_text("How many words can follow?").is_hidden()


# Its size


@pytest.mark.parametrize("width", [928, 328])
def test_nothing_moves_while_words_are_drawn_or_a_preset_is_chosen(page, width):
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width + 16, "height": 900})
    open_figures(page, Sampler())
    heights = set()
    for label in ("many", "a few", "one"):
        page.get_by_label(label, exact=True).check()
        for temperature in ("0.3", "1", "2"):
            page.get_by_label("temperature").fill(temperature)
            page.get_by_text("Draw 100", exact=True).click()
            settle(page)
            heights.add(page.locator(".mm-fig").bounding_box()["height"])
    assert len(heights) == 1  # nothing moves while a hand is at the control
    unfold(page)
    settle(page)
    unfolded = set()
    for label in ("none", "greedy", "careful", "free"):
        page.get_by_label(label, exact=True).check()
        unfolded.add(page.locator(".mm-fig").bounding_box()["height"])
    assert len(unfolded) == 1
    page.emulate_media(reduced_motion="no-preference")
