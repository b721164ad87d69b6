"""MovedQuery: its arrows, scores and weights are torch's, and each next word is the model's own, at every setting."""

import cmath
import math
import re

import pytest
import torch
from browser import open_figures, settle

from minimind_edu import world
from minimind_edu.figures import MovedQuery
from minimind_edu.figures.moved_query import LAST, MIA, TOM
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis
from minimind_edu.trained.living import heads, living_model, moving

BACK = range(moving.FARTHEST + 1)
READER = moving.READERS["living"]
MATH = "figures/moved_query/math"


@pytest.fixture(scope="module")
def model():
    return living_model().double()


@pytest.fixture(scope="module")
def story():
    return torch.from_numpy(world.encode(moving.STORY))[None]


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", text.replace("−", "-"))]


# The numbers


@torch.no_grad()
def test_weights_of_the_picture_are_the_models_at_every_setting(model, story):
    for back in BACK:
        with moving.moved(model, back, [READER]):
            weights = heads.attention_weights(model, story)[READER[0], READER[1], -1]
        for start in (0, 1, 100):
            torch.testing.assert_close(MovedQuery().scores(back, start).softmax(-1), weights, atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_a_story_that_stands_later_has_the_same_next_words(story):
    tables = precompute_freqs_cis(32, 300, 1e4, dtype=torch.float64)
    for start in (1, 37, 100):
        for back in (0, 3, 4, 11):
            said = []
            for first in (0, start):
                model = living_model().double()
                with moving.moved(model, back, [READER]):
                    model.model.freqs_cos, model.model.freqs_sin = (table[first:] for table in tables)
                    said.append(model(story).logits)
            torch.testing.assert_close(*said)


def test_javascript_adds_up_what_torch_does(node):
    stored, figure = moving.measured(), MovedQuery()
    cases = [(back, start) for back in BACK for start in (0, 100)]
    for word in (0, 5, TOM, MIA):
        vectors = stored["query"], stored["keys"][word]
        adds = node.each(MATH, "addsOf", [[*vectors, start + LAST - back, start + word, 1e4] for back, start in cases])
        for (back, start), by_pair in zip(cases, adds, strict=True):
            assert sum(by_pair) == pytest.approx(float(figure.scores(back, start)[word]))
            both = torch.tensor([vectors], dtype=torch.float64)[:, :, None]
            rows = [start + LAST - back, start + word]
            cos, sin = (table[rows] for table in precompute_freqs_cis(32, 200, 1e4, dtype=torch.float64))
            query, key = apply_rotary_pos_emb(both, both, cos, sin)[0][0, :, 0]
            assert by_pair == pytest.approx(((query * key).view(2, 16).sum(0) / math.sqrt(32)).tolist())
    scores = figure.scores(4).tolist()
    assert node.call(MATH, "weightsOf", [scores]) == pytest.approx(torch.tensor(scores).softmax(-1).tolist())


def test_the_table_tells_whom_it_reads_and_what_follows():
    _, rows = MovedQuery(back=7)._summary()
    assert [int(numbers(label)[0]) for label, _ in rows] == [0, 0, 3, 3, 4, 4, 7, 7]
    for (of_weights, weights), (_, lead) in zip(rows[::2], rows[1::2], strict=True):
        back = int(numbers(of_weights)[0])
        wanted = MovedQuery().scores(back).softmax(-1)[[MIA, TOM]].tolist()
        assert numbers(weights) == pytest.approx(wanted, abs=0.0051)
        assert float(lead) == pytest.approx(moving.measured()["following"][back]["lead"], abs=0.0051)


# In the browser


def test_each_move_shows_whom_it_reads_and_what_follows(page):
    open_figures(page, MovedQuery())
    for back in BACK:
        page.get_by_role("slider").fill(str(back))
        settle(page)
        scores, said = MovedQuery().scores(back), moving.measured()["following"][back]
        weights = scores.softmax(-1)
        words = moving.measured()["words"]
        told = page.locator(".mq-verdict").inner_text()
        assert f"reads “{words[int(weights.argmax())]}” with {weights.max():.2f}" in told
        assert told.endswith(f"Next word: {said['word']}.")
        below = page.locator(".mq-word .mq-weight").all_inner_texts()
        assert below == [f"{weight:.2f}" if weight >= 0.05 else "" for weight in weights.tolist()]
        [shown] = numbers(page.locator(".mq-lead").inner_text().partition(":")[2])
        assert shown == pytest.approx(said["lead"], abs=0.0051)
        shares = [numbers(text)[0] / 100 for text in page.locator(".mm-bar-number").all_inner_texts()]
        assert shares == pytest.approx(said["shares"], abs=6e-4)
        pairs = page.locator(".mq-dial").evaluate_all("all => all.map(one => one.innerText)")
        sums = [numbers(text) for text in page.locator(".mq-sum b").all_inner_texts()]
        added = [numbers(text)[-2:] for text in pairs]
        slow, whole = [sums[0][0], sums[1][0]], [sums[2][0], sums[3][0]]
        assert whole == pytest.approx(scores[[MIA, TOM]].tolist(), abs=0.0051)
        fast = [sum(one) for one in zip(*added, strict=True)]
        assert [a + b for a, b in zip(fast, slow, strict=True)] == pytest.approx(whole, abs=0.03)
        assert (
            page.locator(".mq-flag").evaluate("one => one.parentNode.querySelector('span').innerText")
            == (words[LAST - back])
        )


def told(page) -> tuple[float, ...]:
    """The positions of query and key, and their score, of which the sentence also tells how far pair 1 is rotated."""
    pair, m, speed, query, n, again, key, score = numbers(page.locator(".mq-verdict").inner_text())
    degrees = math.degrees(10_000 ** (-2 / 32))
    assert (pair, speed, again) == (1, 32.2, 32.2)
    assert [query, key] == pytest.approx([m * degrees, n * degrees], abs=0.51)
    return m, n, score


def test_at_the_head_of_the_chapter_each_move_shows_the_same(page):
    open_figures(page, MovedQuery(compact=True))
    words = moving.measured()["words"]
    for back in BACK:
        page.get_by_role("slider").fill(str(back))
        settle(page)
        weights = MovedQuery().scores(back).softmax(-1).tolist()
        below = page.locator(".mq-word .mq-weight").all_inner_texts()
        assert below == [f"{weight:.2f}" if weight >= 0.05 else "" for weight in weights]
        shares = [numbers(text)[0] / 100 for text in page.locator(".mm-bar-number").all_inner_texts()]
        assert shares == pytest.approx(moving.measured()["following"][back]["shares"], abs=6e-4)
        host = page.locator(".mq-flag").evaluate("one => one.parentNode.querySelector('span').innerText")
        assert host == words[LAST - back]


def test_all_words_moved_on_change_no_number(page):
    open_figures(page, MovedQuery(shows="key"))
    start, back = page.get_by_role("slider").all()
    at_first = page.locator(".mq-add b").all_inner_texts()
    arrows = "all => all.map(one => one.style.transform)"
    before = page.locator(".mq-arrow").evaluate_all(arrows)
    for moved_on in ("1", "37", "100"):
        start.fill(moved_on)
        settle(page)
        assert page.locator(".mq-add b").all_inner_texts() == at_first
        assert page.locator(".mq-arrow").evaluate_all(arrows) != before
        assert told(page) == (int(moved_on) + LAST, int(moved_on) + MIA, 9.85)
    back.fill("3")
    settle(page)
    assert told(page) == (100 + LAST - 3, 100 + MIA, 5.44)


def test_a_press_on_a_word_draws_its_key(page):
    open_figures(page, MovedQuery(back=11))
    page.locator(".mq-word", has_text="Mia").nth(1).click()
    settle(page)
    assert page.locator(".mq-sum b").all_inner_texts()[-1] == f"{MovedQuery().scores(11)[12]:.2f}"
    assert page.locator(".mq-word[aria-pressed=true]").count() == 1
    assert "reads “Mia”" in page.locator(".mq-verdict").inner_text()


@pytest.mark.parametrize("gap", [30, 40, 48])
def test_letters_are_off_heads_and_apart(node, gap):
    """Of arrows that reach the rim, too, beyond whose tips there is no room."""
    for lengths in ((96, 96), (96, 30), (60, 96), (25, 60)):
        for turn in range(0, 360, 15):
            arrows = [[lengths[0], 0.3], [lengths[1], 0.3 + math.radians(turn)]]
            places = [complex(x, -y) for x, y in node.call(MATH, "lettersApart", [arrows, gap])]
            heads = [cmath.rect(length - 6, angle) for length, angle in arrows]
            assert min(abs(place - head) for place in places for head in heads) > 0.6 * gap, (lengths, turn)
            assert abs(places[0] - places[1]) > 0.95 * gap and max(map(abs, places)) < 82.01, (lengths, turn)
