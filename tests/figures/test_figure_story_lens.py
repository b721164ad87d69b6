"""StoryLens: what it tells is what the stored model says through norm and head, and what the world allows."""

import numpy as np
import pytest
import torch
from browser import open_figures, read_out

from minimind_edu import world
from minimind_edu.figures import StoryLens
from minimind_edu.figures.story_lens import BLOCKS, STORY, reading_of
from minimind_edu.trained.living import living_model

OTHER = "Zoe is in the barn. where is Zoe? in the"


@pytest.fixture(scope="module")
def model():
    return living_model().requires_grad_(False)


def said_by_hand(model, ids: torch.Tensor) -> torch.Tensor:
    """Probabilities [L + 1, S, V]: block after block, then norm and head as if it were the last one."""
    core = model.model
    positions = core.freqs_cos[: len(ids)], core.freqs_sin[: len(ids)]
    x, found = core.embed_tokens(ids[None]), []
    for block in [None, *core.layers]:
        x = x if block is None else block(x, positions)[0]
        found.append(model.lm_head(core.norm(x))[0].softmax(-1))
    return torch.stack(found)


@pytest.mark.parametrize("story", [STORY, OTHER])
def test_every_cell_is_what_the_model_would_say_there(model, story):
    ids = torch.from_numpy(world.encode(f"<s> {story}"))
    by_hand, read = said_by_hand(model, ids), reading_of(story)
    exact = world.distributions(ids.numpy())
    assert [world.WORDS[i] for i in ids] == read["tokens"]
    for at, cells in enumerate(read["said"]):
        assert len(cells) == BLOCKS + 1
        for depth, (word, probability, right) in enumerate(cells):
            assert world.WORDS[by_hand[depth, at].argmax()] == word
            assert by_hand[depth, at].max().item() == pytest.approx(probability, abs=0.0011)
            wrong = np.abs(by_hand[depth, at].numpy() - exact[at]).sum() / 2  # total variation
            assert right == pytest.approx(1 - wrong, abs=0.0011)
        word, probability = read["truth"][at]
        assert exact[at].max() == pytest.approx(probability, abs=0.0011)
        assert exact[at][world.WORDS.index(word)] == exact[at].max()
    means = np.mean([[right for _, _, right in cells] for cells in read["said"]], axis=0)
    assert read["right"] == pytest.approx(means.tolist(), abs=0.0011)


def test_the_last_column_is_the_models_answer(model):
    ids = torch.from_numpy(world.encode(f"<s> {STORY}"))[None]
    assert reading_of(STORY)["said"][-1][-1][0] == world.WORDS[model(ids).logits[0, -1].argmax()] == "hall"


def test_another_story_is_read_anew():
    lens = StoryLens()
    lens.story = OTHER
    assert lens.reading == reading_of(OTHER) and lens.word == len(world.encode(f"<s> {OTHER}")) - 1
    assert f"{100 * reading_of(OTHER)['right'][-1]:.0f} %" in lens._summary()[0]


# In the browser


@pytest.fixture
def lens(page):
    page.set_viewport_size({"width": 944, "height": 1000})
    open_figures(page, StoryLens(depth=1))
    return page


def shown(page) -> list[list[str]]:
    cells = "all => all.map((row) => [...row.querySelectorAll('.sl-cell')].map((cell) => cell.innerText))"
    return page.eval_on_selector_all(".sl-row:not([aria-hidden])", cells)


def test_columns_fill_as_blocks_read(lens):
    read = reading_of(STORY)
    for depth in (1, 2, 4, 0):
        lens.locator("input[type=range]").fill(str(depth))
        expected = [[word if at <= depth else "" for at, (word, _, _) in enumerate(said)] for said in read["said"]]
        assert shown(lens) == expected
        assert f"{100 * read['right'][depth]:.0f}\u00a0%" in lens.locator(".mm-verdict").inner_text()


def test_a_word_is_looked_at_by_mouse_and_keys(lens):
    read = reading_of(STORY)
    for press, at in (("3", 3), ("ArrowDown", 4), ("Home", 0), ("End", 18)):
        if press.isdigit():
            lens.locator(".sl-word").nth(at).click()
        else:
            lens.keyboard.press(press)
        assert lens.locator(".sl-word[aria-pressed=true]").count() == 1
        [here, allowed] = read_out(lens).items()
        word, probability, _ = read["said"][at][1]
        assert here[0] == f"at “{read['tokens'][at]}”, position {at}"
        assert here[1] == f"{word}, {100 * probability:.0f} %"
        assert allowed[1].startswith(read["truth"][at][0])
