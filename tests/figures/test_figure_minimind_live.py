"""The page of the living model, as a visitor uses it. What it says is compared with the package's own model."""

import json
import re
from pathlib import Path

import pytest
import torch
from browser import FIGURE, ORIGIN, Watch, open_figures, serve, settle, show, static_page
from figure_examples import state_in
from kept import address_in, handed_over, open_menu

from minimind_edu import world
from minimind_edu.figures import MiniMindLive
from minimind_edu.figures.guess_first import PLACES, RIGHT
from minimind_edu.figures.guess_first import asked as of_the_front_page
from minimind_edu.figures.minimind_live import LINKED, STORIES, next_words
from minimind_edu.trained.living import card, living_model
from minimind_edu.trained.living.heads import silenced
from minimind_edu.world.words import IDS, TWIN
from tools.chapters import links

TOLD, TOLD_IN_CHINESE = STORIES["told"]
ASKED, ASKED_IN_CHINESE = (f"{TOLD} {question}" for question in STORIES["question"])
OF_MIA = f"{TOLD} {STORIES['owner'][0]}"
PART = ".ml-part, .st-head"
PRESSES = ["ask", "other", "owner", "look", "silence", "translate", "write"]


def said_after(story: str, model=None) -> torch.Tensor:
    """The probabilities [V] of the next word by the book's model, or by one of which something is silent."""
    with torch.no_grad():
        return (model or living_model())(torch.from_numpy(world.encode(f"<s> {story}"))[None]).logits[0, -1].softmax(-1)


def where_head() -> tuple[int, int]:
    """Layer and head without which people get lost and translations do not."""
    lost = {kind: torch.tensor(table) for kind, table in card()["lost_without"].items()}
    missed = lost["recall"] * (1 - lost["translation"])
    return divmod(int(missed.argmax()), missed.shape[1])


# The Python side


def test_the_first_picture_holds_the_models_and_the_worlds_probabilities():
    live = MiniMindLive()
    said, exact = said_after(ASKED), world.next_word_distribution(world.encode(f"<s> {ASKED}"))
    words, shares, truths = zip(*live.first["bars"], strict=True)
    ids = [world.WORDS.index(word) for word in words]
    assert ids == said.argsort(descending=True, stable=True)[: len(ids)].tolist()
    assert shares == pytest.approx(said[ids].tolist())
    assert truths == pytest.approx(exact[ids].tolist())


@pytest.mark.parametrize("language", [0, 1])
def test_what_the_presses_show_holds_in_the_language_of_the_page(language):
    """The whole model is right about all that is asked; without the one head the thing goes along with its owner."""
    told, model, (layer, head) = STORIES["told"][language], living_model(), where_head()
    questions = [STORIES["question"][language], STORIES["question"][1 - language], STORIES["owner"][language]]
    asked = [f"{told} {question}" for question in [*questions, STORIES["translation"][language]]]
    right = [world.next_word_distribution(world.encode(f"<s> {text}")).argmax() for text in asked]
    assert [said_after(text).argmax().item() for text in asked] == right
    assert len({*right[:3]}) == 3, "three answers"
    with silenced(model, layer, head):
        assert said_after(asked[0], model).argmax() == right[2]
        assert said_after(asked[3], model).argmax() == right[3], "a translation does not need it"


def test_the_page_goes_on_with_the_story_of_the_front_page():
    assert [f"{told} {question}" for told in STORIES["told"] for question in STORIES["question"]] == [
        of_the_front_page(told, question) for told in (0, 1) for question in (0, 1)
    ]


def test_all_questions_of_the_page_have_one_answer_and_the_unknown_has_none():
    for story in [*STORIES["examples"], TOLD, TOLD_IN_CHINESE]:
        assert next_words(story)
    for story in STORIES["examples"]:
        assert world.next_word_distribution(world.encode(f"<s> {story}")).max() == 1
    for told, unknown in zip(STORIES["told"], STORIES["unknown"], strict=True):
        with pytest.raises(ValueError, match="cannot follow"):
            world.next_word_distribution(world.encode(f"<s> {told} {unknown}"))


def test_impossible_values_are_refused():
    with pytest.raises(ValueError, match="'house' is no word of this world"):
        MiniMindLive(story="house")
    with pytest.raises(ValueError, match="'Tom' cannot follow"):
        MiniMindLive(story="Mia Tom")


def test_the_table_tells_the_answer():
    sentence, rows = MiniMindLive(compact=True)._summary()
    assert ASKED in sentence
    assert rows[0][0] in world.WORDS and re.fullmatch(r"[\d.]+ %, by the rules [\d.]+ %", rows[0][1])


def test_whole_and_compact_hold_what_the_page_needs():
    whole, compact = (state_in(MiniMindLive(compact=small).static_html()) for small in (False, True))
    assert whole["story"] == compact["story"] == ASKED
    assert whole["sizes"]["parameters"] == living_model().num_parameters()


# The groups of words


def test_every_word_is_in_one_group(node):
    groups = node.call("figures/minimind_live/palette", "groupsOf", [world.tables()])
    words = [word for sheet in groups for group in sheet.values() for word in group]
    assert sorted(words) == sorted(world.WORDS[1:])


# A visit


@pytest.fixture
def visit(page):
    """The whole page, still, with the story of the book."""
    page.emulate_media(reduced_motion="reduce")
    open_figures(page, MiniMindLive(story=TOLD, in_url=True))
    page.evaluate("localStorage.clear(); history.replaceState(null, '', location.pathname)")
    yield page
    page.evaluate("localStorage.clear()")
    page.emulate_media(reduced_motion="no-preference")


def story_of(page) -> str:
    """The story on the page as text."""
    words = page.eval_on_selector_all(".ml-chips .ml-chip", "all => all.map((chip) => chip.firstChild.data)")
    return world.decode([world.WORDS.index(word) for word in words[1:]])


def bars_of(page) -> dict[str, str]:
    """Word -> percentage, from the top."""
    rows = "all => all.map((bar) => [bar.children[0].firstChild.data, bar.querySelector('.mm-bar-number').textContent])"
    return dict(page.eval_on_selector_all(".ml-bar", rows))


def share(text: str) -> float:
    return float(text.removesuffix("\xa0%")) / 100


def press_and_read(page, button, part: str) -> str:
    """What this part of the page says once the button has been pressed; nothing it said before counts."""
    page.locator(f"{part} .ml-seen").evaluate("(said) => (said.textContent = '')")
    button.click()
    page.wait_for_function("(part) => document.querySelector(`${part} .ml-seen`).textContent", arg=part)
    settle(page)
    return page.inner_text(f"{part} .ml-seen")


def press(page, name: str) -> str:
    """What the page says after one of the seven presses."""
    return press_and_read(page, page.locator(".ml-step").nth(PRESSES.index(name)), ".ml-guide")


def assert_bars_are_of(page, said: torch.Tensor) -> None:
    bars = bars_of(page)
    best = said.argmax().item()
    assert next(iter(bars)) == world.WORDS[best]
    for word, text in bars.items():
        assert share(text) == pytest.approx(said[world.WORDS.index(word)].item(), abs=0.006)


def test_the_same_question_in_two_languages_and_another_one(visit):
    for name, asked in (("ask", ASKED), ("other", ASKED_IN_CHINESE)):
        saw = press(visit, name)
        said = said_after(asked)
        assert world.encode(story_of(visit)).tolist() == world.encode(asked).tolist()
        assert_bars_are_of(visit, said)
        assert world.WORDS[said.argmax()] in saw
    saw = press(visit, "owner")
    said = said_after(OF_MIA)
    assert_bars_are_of(visit, said)
    assert f"about Mia. It says “{world.WORDS[said.argmax()]}” with" in saw


@pytest.fixture
def first_visit(page):
    """The whole page as it opens for somebody who has never been here."""
    page.emulate_media(reduced_motion="reduce")
    open_figures(page, MiniMindLive())
    yield page
    page.evaluate("localStorage.clear()")
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("guess", ["barn", "study"])
def test_a_reader_guesses_before_anything_is_answered(first_visit, guess):
    assert story_of(first_visit) == ASKED
    assert "%" not in first_visit.locator(".ml-stage").inner_text()
    places = first_visit.locator(".ml-bar:visible .mm-bar-word").all_inner_texts()
    assert places == [*PLACES]
    first_visit.get_by_role("button", name=f"Guess: {guess}").click()
    first_visit.wait_for_function("document.querySelector('.ml-bar').textContent.includes('%')")
    settle(first_visit)
    said = said_after(ASKED)
    assert_bars_are_of(first_visit, said)
    saw = first_visit.inner_text(".ml-guide .ml-seen")
    agreed = world.WORDS[said.argmax()] == guess
    assert saw.startswith("You agree. It says" if agreed else f"You said “{guess}”. It says")
    assert "%" in first_visit.locator(".st-lens").first.inner_text()


def test_the_chinese_page_tells_its_story_in_chinese(page):
    open_figures(page, MiniMindLive(), language="zh")
    assert world.encode(story_of(page)).tolist() == world.encode(f"{TOLD_IN_CHINESE} {STORIES['question'][1]}").tolist()
    places = page.locator(".ml-bar:visible .mm-bar-word").evaluate_all("all => all.map((one) => one.firstChild.data)")
    assert places == [world.WORDS[IDS[place] + TWIN] for place in PLACES]
    page.evaluate("localStorage.clear()")


def test_what_was_said_before_a_head_fell_silent_stays_as_an_outline(visit):
    press(visit, "look")
    assert visit.locator(".mm-before:visible").count() == 0
    before = said_after(ASKED).max().item()
    press(visit, "silence")
    second = visit.locator(".ml-bar").nth(1)
    assert second.locator(".mm-bar-word").inner_text() == RIGHT, "what was said before is seen to fall"
    ghosts = visit.eval_on_selector_all(
        ".ml-bar", "all => all.map((one) => parseFloat(one.querySelector('.mm-before').style.width) / 100)"
    )
    assert max(ghosts) == pytest.approx(before, abs=0.001)
    assert visit.locator(".ml-story .ml-chip[style*=--ml-read]").count() == 0, "a silent head reads nothing"
    visit.locator(".ml-chips .ml-chip").nth(2).click()
    assert visit.locator(".mm-before:visible").count() == 0, "another place is another question"


def test_the_bars_stay_where_they_are_from_press_to_press(visit):
    tops = set()
    for name in PRESSES[:6]:
        press(visit, name)
        tops.add(visit.evaluate("scrollY + document.querySelector('.ml-beside').getBoundingClientRect().top"))
    widths = visit.locator(".ml-go").bounding_box()["width"]
    press(visit, "write")
    assert len(tops) == 1 and visit.locator(".ml-go").bounding_box()["width"] == widths


def test_tabs_are_walked_by_keys_and_show_one_panel(visit):
    tabs = visit.get_by_role("tab")
    assert tabs.all_inner_texts() == ["Write", "Break", "Train"]
    tabs.first.focus()
    for shown in (1, 2, 0):
        visit.keyboard.press("ArrowRight")
        assert [one == "true" for one in tabs.evaluate_all("all => all.map((one) => one.ariaSelected)")] == [
            at == shown for at in range(3)
        ]
        assert visit.locator(".ml-panel:visible").count() == 1


def test_one_light_goes_through_the_blocks_at_the_next_word(page):
    open_figures(page, MiniMindLive(story=TOLD))
    running = """document.getAnimations().filter((one) => one.animationName === "st-travel")
        .map((one) => one.effect.getTiming().duration)"""
    assert page.evaluate(running) == []
    page.get_by_role("button", name="Next word").click()
    assert page.evaluate(running) == [400]
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("button", name="Next word").click()
    assert page.evaluate(running) == []
    page.emulate_media(reduced_motion="no-preference")
    page.evaluate("localStorage.clear()")


def test_a_head_is_opened_and_silenced_and_what_is_lost_is_told(visit):
    layer, head = where_head()
    assert f"Head {head + 1} of block {layer + 1}" in press(visit, "look")
    named = f"Block {layer + 1}, head {head + 1}"
    lens = lambda: visit.inner_text(".ml-lens .ml-title")  # noqa: E731
    assert lens() == named
    assert visit.get_by_role("button", name=named, exact=True).get_attribute("data-shown") == "true"
    rows = visit.locator(".ml-lens .st-weight")
    read = rows.evaluate_all("all => all.map((one) => one.querySelector('.mm-bar-word').firstChild.data)")
    lengths = rows.evaluate_all("all => all.map((one) => one.querySelector('.st-read').style.width)")
    numbers = rows.locator(".mm-bar-number").all_inner_texts()
    assert [float(one[:-1]) / 100 for one in lengths] == pytest.approx([share(one) for one in numbers], abs=0.006)
    tinted = ".ml-story .ml-chip[style*=--ml-read]"
    chips = visit.eval_on_selector_all(tinted, "all => all.map((one) => one.firstChild.data)")
    assert {one for one, text in zip(read, numbers, strict=True) if share(text) >= 0.05} <= {*chips}
    press(visit, "silence")
    assert visit.locator('.st-head[data-silent="true"]').count() == 1
    assert lens() == f"{named}, silent"
    model = living_model()
    with silenced(model, layer, head):
        said = said_after(ASKED, model)
    assert_bars_are_of(visit, said)
    visit.locator(".ml-lens button").click()
    assert not visit.locator(".ml-lens li").count() or not visit.locator(".ml-lens li").first.is_visible()
    assert visit.inner_text(".st-open .st-title") == named and visit.locator(".st-open input").is_checked()
    visit.locator(".st-open .mm-toggle").click()
    assert visit.locator('.st-head[data-silent="true"]').count() == 0
    assert_bars_are_of(visit, said_after(ASKED))


ON_A_PHONE = [".ml-seen", ".ml-story", ".st-road", ".ml-bar"]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "width, height, parts", [(1280, 800, [*ON_A_PHONE, ".ml-lens"]), (360, 740, ON_A_PHONE)], ids=["wide", "phone"]
)
def test_what_a_press_shows_is_in_sight(page, language, width, height, parts):
    """The sentence, the words that are read, the heads and all bars, from the button on, at every press."""
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": height})
    open_figures(page, MiniMindLive(), language=language)
    for name in PRESSES[:6]:
        press(page, name)
        page.evaluate("scrollTo(0, document.querySelector('.ml-guide').getBoundingClientRect().top + scrollY)")
        for part in parts:
            for one in page.locator(f"{part}:visible").all():
                box = one.bounding_box()
                assert 0 <= box["y"] and box["y"] + box["height"] <= height, (name, part)
    page.evaluate("localStorage.clear()")
    page.emulate_media(reduced_motion="no-preference")


def test_a_head_of_the_road_falls_silent_and_comes_back_and_nothing_moves(visit):
    press(visit, "ask")
    where = """[".ml-beside", ".ml-panel:not([hidden])", ".ml-inside"]
        .map((part) => document.querySelector(part).getBoundingClientRect().top)"""
    visit.get_by_role("tab", name="Break").click()
    assert "Press it: it falls silent" in visit.inner_text(".ml-lens")
    assert not visit.locator(".ml-lens button").is_visible(), "there is no head to open yet"
    before, (layer, head) = visit.evaluate(where), where_head()
    stop = visit.get_by_role("button", name=f"Silence head {head + 1} of block {layer + 1}", exact=True)
    visit.get_by_role("tab", name="Write").click()
    stop.click()
    assert visit.get_by_role("tab", name="Break").get_attribute("aria-selected") == "true", "what it reads stands there"
    assert visit.inner_text(".ml-lens .ml-title") == f"Block {layer + 1}, head {head + 1}, silent"
    model = living_model()
    with silenced(model, layer, head):
        assert_bars_are_of(visit, said_after(ASKED, model))
    assert visit.evaluate(where) == before
    stop.click()
    assert stop.get_attribute("aria-pressed") == "false"
    assert_bars_are_of(visit, said_after(ASKED))
    assert visit.evaluate(where) == before


def test_the_road_says_what_each_block_would(visit):
    press(visit, "ask")
    model, streams = living_model(), []
    for layer in model.model.layers:
        layer.register_forward_hook(lambda *given: streams.append(given[-1][0]))
    said_after(ASKED, model)
    with torch.no_grad():
        chances = [model.lm_head(model.model.norm(x[0, -1])).softmax(-1) for x in streams]
    for text, said in zip(visit.locator(".st-lens").all_inner_texts(), chances, strict=True):
        word, number = text.split(maxsplit=1)
        assert word == world.WORDS[said.argmax()] and share(number) == pytest.approx(said.max().item(), abs=0.006)


@pytest.mark.parametrize("width", [944, 360])
def test_the_maps_of_heads_can_be_read(visit, width):
    visit.set_viewport_size({"width": width, "height": 900})
    maps = visit.eval_on_selector_all(".st-head .ml-map", "all => all.map((one) => one.getBoundingClientRect().width)")
    assert min(maps) >= 80


def test_a_map_is_drawn_once_for_a_story(visit):
    press(visit, "look")
    visit.evaluate("""() => {
        window.drawn = 0;
        const cells = document.querySelector(".st-head .ml-map g");
        new MutationObserver((all) => (window.drawn += all.length)).observe(cells, { childList: true });
    }""")
    visit.locator(".ml-chips .ml-chip").nth(3).click()
    visit.locator('.ml-chips [aria-current="true"]').press("ArrowLeft")
    settle(visit)
    assert visit.evaluate("window.drawn") == 0
    visit.get_by_role("tab", name="Write").click()
    visit.get_by_role("button", name="Next word").click()
    settle(visit)
    assert visit.evaluate("window.drawn") == 1


def test_a_silent_head_is_told_in_the_marks_of_the_language(node):
    said = "async () => (await import('/figures/minimind_live/words.zh.js')).minimindLiveWords.zh.silent('头')"
    assert re.fullmatch("头[，（][\u3400-\u9fff]+）?", node.evaluate(said))


# Where the cell of row y and column x of the open map is.
CELL = """([y, x]) => {
    const [map, words] = [document.querySelector(".st-map"), document.querySelectorAll(".ml-chips .ml-chip").length];
    map.scrollTo(0, 0);
    const { left, top } = map.getBoundingClientRect();
    const cell = (map.firstChild.offsetWidth - 92) / words;
    return { x: left + 92 + (x + 0.5) * cell, y: top + 84 + (y + 0.5) * cell };
}"""


def test_the_map_of_an_open_head_says_who_reads_whom_and_chooses(visit):
    visit.locator(".st-head").nth(6).click()
    visit.locator(".st-map").scroll_into_view_if_needed()
    told, row = visit.locator(".st-mapside .mm-note"), 3
    words = ["<s>", *(world.WORDS[one] for one in world.encode(TOLD))]

    def point(column):
        visit.mouse.move(**visit.evaluate(CELL, [row, column]))
        return told.inner_text()

    pairs = [re.fullmatch(r"“(.+)” reads “(.+)”: (.+)", point(column)).groups() for column in range(row + 1)]
    assert [(reader, read) for reader, read, _ in pairs] == [(words[row], word) for word in words[: row + 1]]
    assert sum(share(text) for _, _, text in pairs) == pytest.approx(1, abs=0.02)
    assert point(row + 1) == f"“{words[row + 1]}” comes after “{words[row]}”, which cannot read it"
    visit.mouse.click(**visit.evaluate(CELL, [row, 0]))
    settle(visit)
    chosen = visit.eval_on_selector_all(".ml-chips .ml-chip", "all => all.map((one) => one.ariaCurrent)")
    assert chosen.index("true") == row
    [most] = [text for _, read, text in pairs if read == visit.locator(".st-open .mm-bar-word").first.inner_text()][:1]
    assert visit.locator(".st-open .mm-bar-number").first.inner_text() == most


def test_the_last_presses_translate_and_write(visit):
    assert "still silent" in press(visit, "translate")
    assert story_of(visit).endswith("⇒ 米娅从书房去")
    saw = press(visit, "write")
    assert visit.locator('.st-head[data-silent="true"]').count() == 0
    assert visit.locator('.ml-chip[data-is="written"], .ml-chip[data-is="broken"]').count() > 0
    assert "12 words" in saw


def test_beyond_the_training_and_about_somebody_who_is_not_there(visit):
    visit.get_by_role("tab", name="Break").click()
    buttons = visit.locator(".ml-breaks .mm-button")
    said = press_and_read(visit, buttons.nth(0), ".ml-breaks")
    assert visit.locator(".ml-chips .ml-chip").count() == 160
    assert re.search(r"knows \d+ of \d+ up to word 96.* \d+ of \d+ beyond", said)
    assert "never mentions Zoe" in press_and_read(visit, buttons.nth(1), ".ml-breaks")
    assert visit.locator('.ml-chip[data-is="broken"]').inner_text() == "Zoe"
    assert "“Zoe” cannot stand here" in visit.inner_text(".ml-broken")


def test_words_are_written_changed_and_taken_back(visit):
    visit.get_by_text("Write the next word yourself").click()
    lit = visit.locator(".ml-sheet:visible .ml-chip:enabled")
    exact = world.next_word_distribution(world.encode(f"<s> {TOLD}"))
    texts = lit.evaluate_all("all => all.map((one) => one.firstChild.data)")
    allowed = {word for word, share in zip(world.WORDS, exact, strict=True) if share > 0}
    assert set(texts) == {word for word in allowed if word.isascii() or word == "⇒"}
    lit.get_by_text("where is", exact=True).click()
    assert story_of(visit) == f"{TOLD} where is"
    visit.locator(".ml-chips .ml-chip").nth(3).click()  # the garden
    visit.locator(".ml-instead .ml-chip").get_by_text("barn", exact=True).click()
    assert story_of(visit).startswith("Mia is in the barn. the drum")
    assert visit.locator('.ml-chip[data-is="broken"]').inner_text() == "garden"
    assert visit.locator('.ml-chip[data-is="after"]').count() > 0
    for _ in range(2):
        visit.get_by_role("button", name="Undo").click()
    assert story_of(visit) == TOLD


def test_a_full_story_says_so_and_takes_no_more_until_a_word_is_taken_back(visit):
    story = " ".join(["Mia is in the hall."] * 47 + ["Tom is in the"])
    assert len(world.encode(f"<s> {story}")) == 191
    visit.evaluate("(story) => (location.hash = `#story=${story}`)", story.replace(" ", "_"))
    visit.locator(".ml-chips .ml-chip").nth(190).wait_for()
    after, full = visit.get_by_role("button", name="Next word"), "This story is full: the page reads 192 words"
    assert full not in visit.inner_text(".ml-full")
    after.click()
    assert full in visit.inner_text(".ml-full")
    assert after.is_disabled() and visit.get_by_role("button", name="Play").is_disabled()
    visit.get_by_role("button", name="Undo").click()
    assert full not in visit.inner_text(".ml-full") and after.is_enabled()


def test_sampling_grays_out_what_is_cut(visit):
    visit.get_by_text("How a word is drawn").click()
    visit.locator('details:has(> .mm-controls) input[type="range"]').nth(1).fill("2")
    assert visit.locator('.ml-bar[data-cut="true"]').count() == 5
    visit.locator('details:has(> .mm-controls) input[type="range"]').nth(0).fill("0")
    assert visit.locator('.ml-bar[data-cut="true"]').count() == 6
    assert next(iter(bars_of(visit).values())) == "100\xa0%"


def test_every_part_opens_alone_and_closes(visit):
    for part in visit.locator(PART).all():
        part.click()
        assert visit.locator('.ml-inside [aria-expanded="true"]').count() == 1
        assert visit.locator(".st-open .st-title").count() > 0
    part.click()
    assert not visit.locator(".st-open").is_visible()


def test_pointing_at_a_head_moves_nothing(visit):
    height = "document.querySelector('.ml-story').offsetHeight"
    before = visit.evaluate(height)
    visit.locator(".st-head").nth(5).hover()
    settle(visit)
    assert visit.locator(".ml-story .ml-chip[style*=--ml-read]").count() > 0
    assert visit.evaluate(height) == before


# What the page does from now on: passes through the model (each makes vectors), looks at the layout, changes.
COUNT_WORK = """() => {
    const work = (window.work = { vectors: 0, looks: 0, changes: 0, elsewhere: 0 });
    const Vector = window.Float32Array;
    window.Float32Array = new Proxy(Vector, {
        construct(target, args, as) { work.vectors++; return Reflect.construct(target, args, as); },
    });
    const looks = [[Element, "clientWidth"], [HTMLElement, "offsetWidth"], [HTMLElement, "offsetHeight"]];
    for (const [owner, name] of looks) {
        const { get } = Object.getOwnPropertyDescriptor(owner.prototype, name);
        Object.defineProperty(owner.prototype, name, {
            configurable: true, get() { work.looks++; return get.call(this); },
        });
    }
    const rectangle = Element.prototype.getBoundingClientRect;
    Element.prototype.getBoundingClientRect = function () { work.looks++; return rectangle.call(this); };
    new MutationObserver((changes) => changes.forEach(({ target }) => {
        work.changes++;
        work.elsewhere += !target.closest(".ml-story");
    })).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
}"""
HOVER_ALL = """async () => {
    const frame = () => new Promise(requestAnimationFrame);
    const parts = [...document.querySelectorAll(".st-head, .ml-chips .ml-chip")];
    for (const part of parts) {
        part.dispatchEvent(new PointerEvent("pointerenter"));
        await frame();
        part.dispatchEvent(new PointerEvent("pointerleave"));
    }
    await frame().then(frame);
    return window.work;
}"""


def test_pointing_at_words_and_heads_computes_nothing_and_measures_once(visit):
    visit.evaluate(COUNT_WORK)
    work = visit.evaluate(HOVER_ALL)
    config, words = living_model().config, len(world.encode(f"<s> {TOLD}"))
    heads = config.num_hidden_layers * config.num_attention_heads
    assert work["vectors"] == 0, "no pass through the model"
    assert work["looks"] <= words + 2, "the layout is read once for all heads, not once for each"
    assert 0 < work["changes"] <= heads * 4 * words, "tints and arcs of what is read, no more"
    assert work["elsewhere"] == 0, "nothing but the story is drawn anew"
    visit.get_by_role("button", name="Next word").click()
    assert visit.evaluate("window.work.vectors") > 0, "the count sees a pass"
    visit.evaluate("localStorage.clear()")
    serve(visit)  # another window: nothing is counted any more


def test_the_cache_grows_by_a_column_for_each_word(visit):
    config = living_model().config
    token = config.num_hidden_layers * 2 * config.num_key_value_heads * config.head_dim * 4
    words = len(world.encode(f"<s> {TOLD}"))
    assert f"{words * token / 1024:.1f} KiB" in visit.locator("details:has(.ml-cache) summary").inner_text()
    visit.get_by_role("button", name="Next word").click()
    assert f"{(words + 1) * token / 1024:.1f} KiB" in visit.locator("details:has(.ml-cache) summary").inner_text()


def test_the_keyboard_alone_reaches_everything(visit):
    visit.locator(".ml-go").focus()
    visit.keyboard.press("Enter")
    settle(visit)
    assert_bars_are_of(visit, said_after(ASKED))
    for _ in range(8):  # the seven numbers, then the one Tab stop of the story
        visit.keyboard.press("Tab")
    assert visit.evaluate("document.activeElement.getAttribute('aria-current')") == "true"
    visit.keyboard.press("ArrowLeft")
    visit.keyboard.press("ArrowLeft")
    assert visit.evaluate("document.activeElement.firstChild.data") == "drum"
    visit.keyboard.press("Home")
    assert visit.evaluate("document.activeElement.firstChild.data") == "<s>"


def test_the_address_brings_the_story_back(visit):
    press(visit, "ask")
    assert "#story=" in visit.url
    visit.evaluate("localStorage.clear()")
    visit.reload()
    visit.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    settle(visit)
    assert world.encode(story_of(visit)).tolist() == world.encode(ASKED).tolist()
    assert_bars_are_of(visit, said_after(ASKED))


# Chapters and the page: every chapter opens its part there, every part leads back


def story_links() -> dict[str, tuple[str, str]]:
    """Chapter -> story and part of the link in its "Where this lives in MiniMind"; "" without a part."""
    found = {}
    for path in sorted((Path(__file__).parents[2] / "chapters").glob("[0-9]*.ipynb")):
        cells = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
        [place] = [text for text in cells if "## Where this lives in MiniMind" in text]
        links = re.findall(r"\]\(\.\./book/live\.md#story=([^&)]+)(?:&part=([\w-]+))?\)", place)
        found[path.stem] = links[0] if len(links) == 1 else ("", "")
    return found


LINKS_TO_STORIES = story_links()
FOLDS = {
    "cache": "details:has(.ml-cache)",
    "sampling": "details:has(> .mm-controls)",
    "training": ".ml-train",
}


@pytest.fixture(scope="module")
def opened(browser):
    """A page of its own, whose address is followed again and again."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    page = context.new_page()
    serve(page, static_page(MiniMindLive(in_url=True), keeps=True))
    yield page
    context.close()


@pytest.mark.parametrize("chapter", LINKS_TO_STORIES)
def test_a_chapter_opens_its_own_story_at_its_part(opened, chapter):
    story, part = LINKS_TO_STORIES[chapter]
    assert story, f"chapters/{chapter}.ipynb must have one link ../book/live.md#story=… where its part lives"
    text = story.replace("_", " ")
    assert next_words(text), "the world can tell this story"
    opened.goto("about:blank")
    opened.goto(f"{ORIGIN}/#story={story}{part and f'&part={part}'}")
    opened.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    settle(opened)
    assert world.encode(story_of(opened)).tolist() == world.encode(text).tolist()
    name = part.split("-")[0]
    shown = opened.locator(FOLDS.get(name, ".st-open"))
    if name in FOLDS:
        assert shown.is_visible() and shown.evaluate("one => one.open ?? true")
    elif part:
        assert shown.locator(".st-title").count()
        assert opened.locator('.ml-inside [aria-expanded="true"]').count() == 1
    else:
        assert not shown.is_visible()
    top = "one => { const box = one.getBoundingClientRect(); return box.top < innerHeight && box.bottom > 0; }"
    assert not part or shown.evaluate(top)


@pytest.mark.parametrize("part", ["norm", "norm-0", "norm-9", "head-1", "head-1-5", "ffn-1-1", "toString", "%E4", ""])
def test_a_part_that_is_none_leaves_the_page_as_it_is(opened, part):
    opened.goto("about:blank")
    watch = Watch(opened)
    opened.goto(f"{ORIGIN}/#story=Mia_is_in_the_hall.&part={part}")
    opened.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    settle(opened)
    assert story_of(opened) == "Mia is in the hall."
    assert not opened.locator(".st-open").is_visible()
    assert not watch.problems


def test_an_address_that_is_pasted_opens_its_part_and_the_next_story_drops_it(visit):
    visit.evaluate("location.hash = '#story=Mia_is_in_the_hall.&part=head-2-3'")
    visit.wait_for_selector(".st-open .st-title")
    assert visit.inner_text(".st-open .st-title") == "Block 2, head 3"
    press(visit, "ask")
    assert "part=" not in visit.url


@pytest.mark.parametrize("part", ["head-2-3", "ffn-4", "final", ""])
def test_what_a_reader_keeps_leads_back_to_the_story_and_its_open_part(opened, part):
    address = f"{ORIGIN}/#story=Mia_is_in_the_hall.{part and f'&part={part}'}"
    opened.goto("about:blank")
    opened.goto(address)
    opened.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    settle(opened)
    keeper = opened.locator(".mm-keep")
    open_menu(keeper)
    _, svg = handed_over(opened, keeper, "SVG")
    assert address_in(svg) == address
    keeper.get_by_role("button", name="Link").wait_for()


def test_the_compact_one_leads_to_the_page_of_its_story(page):
    show(page, static_page(MiniMindLive(compact=True, story="Mia is in the hall.", page="live.html"), keeps=True))
    page.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    settle(page)
    keeper = page.locator(".mm-keep")
    open_menu(keeper)
    assert address_in(handed_over(page, keeper, "SVG")[1]) == f"{ORIGIN}/live.html#story=Mia_is_in_the_hall."


def test_every_chapter_is_reached_from_the_page(page):
    chapters = links(LINKED)
    open_figures(page, MiniMindLive(links=chapters))
    page.eval_on_selector_all("details", "all => all.forEach((one) => (one.open = true))")
    page.get_by_role("tab", name="Train").click()
    links_shown = page.locator(".ml-chapter a:visible")
    seen = set(links_shown.evaluate_all("all => all.map((a) => a.getAttribute('href'))"))
    page.get_by_role("tab", name="Write").click()
    parts = page.locator(PART)
    for at in range(parts.count()):
        parts.nth(at).click()
        seen |= set(links_shown.evaluate_all("all => all.map((a) => a.getAttribute('href'))"))
    assert seen == {link["href"] for link in chapters.values()}


def test_from_a_file_on_a_phone_without_a_request_or_a_complaint(browser, tmp_path):
    (tmp_path / "page.html").write_text(static_page(MiniMindLive(in_url=True)), encoding="utf-8")
    context = browser.new_context(viewport={"width": 360, "height": 740}, reduced_motion="reduce")
    page = context.new_page()
    watch = Watch(page)
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    for name in PRESSES:
        assert press(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert watch.problems == []
    assert [url for url in watch.requests[1:] if not url.startswith(("blob:", "data:"))] == []
    context.close()


# Before the weights, and without them


def test_a_still_without_scripts_does_not_ask_for_a_story(browser, http_address):
    """The title invites to what no still can do; the page says instead that nothing moves."""
    for scripts in (True, False):
        context = browser.new_context(java_script_enabled=scripts)
        page = context.new_page()
        page.goto(f"{http_address}/book/live.html")
        title = page.get_by_text("Tell MiniMind a story, ask about it").first
        title.wait_for(state="visible" if scripts else "hidden")
        assert page.get_by_role("figure", name="Tell MiniMind a story").count() >= 1
        context.close()


def test_the_hero_asks_for_the_weights_when_something_is_asked_of_it(page):
    open_figures(page, MiniMindLive(compact=True, page="live.html"))
    shown = {word: share for word, share, _ in next_words(ASKED)[:4]}
    assert {word: share(text) for word, text in bars_of(page).items()} == pytest.approx(shown, abs=0.006)
    assert page.get_attribute(".ml-open", "href").startswith("live.html#story=Mia_")
    page.get_by_role("button", name="Next word").click()
    settle(page)
    assert page.locator(".ml-chips .ml-chip").count() == len(world.encode(ASKED)) + 2


def test_without_weights_the_first_state_stays_and_says_so(page):
    html = re.sub(
        r"<script>[^<]*\[\"living\"\] = .*?</script>", "", static_page(MiniMindLive(story=TOLD)), flags=re.DOTALL
    )
    serve(page, html)
    page.wait_for_selector(f'{FIGURE}[data-state="alive"]')
    page.wait_for_function("document.querySelector('.ml-seen').textContent.includes('did not arrive')")
    assert_bars_are_of(page, said_after(TOLD))
    page.locator(".ml-go").click()
    settle(page)
    assert "did not arrive" in page.inner_text(".ml-guide .ml-seen")
