"""What a broken cache still answers: the count is that of reading each question alone, and of who reads no story."""

import pytest
import torch
from cases import long_after

from minimind_edu import world
from minimind_edu.model.broken_caches import BUGS, read
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.broken import EARLIER, read_in_calls, right_answers, right_by_last_place, written


@pytest.fixture(scope="module")
def asked():
    return world.questions("where", 30, seed=21)  # a stale cache spoils three of them


@pytest.mark.parametrize("chunk", long_after(1, [16, 5]))
@pytest.mark.parametrize("bug", BUGS)
@torch.no_grad()
def test_questions_read_together_are_answered_as_alone(asked, bug, chunk):
    model, right = living_model().double(), 0
    for question in asked:
        cache = read(model, torch.from_numpy(world.encode(EARLIER))[None])[1] if bug == "stale" else None
        for piece in torch.from_numpy(question.prompt)[None].split(chunk, dim=1):
            logits, cache = read(model, piece, cache, bug)
        right += int(logits[0, -1].argmax()) == question.answer[0]
    assert right_answers(model, bug, asked, chunk) == right


@pytest.mark.parametrize("name", ["living", "twin"])
def test_the_models_know_all_answers(asked, name):
    assert right_answers(living_model(name), "none", asked) == len(asked)


WALK = EARLIER + " Leo is in the attic. Mia is in the garden. Tom goes from the hall to the kitchen."


@pytest.mark.parametrize("name", long_after(1, ["living", "twin"]))
def test_the_more_a_stale_cache_holds_the_more_is_wrong(asked, name):
    story = world.decode(world.stories(1, 96, seed=5)[0])
    right = [right_answers(living_model(name), "stale", asked, earlier=held) for held in (EARLIER, WALK, story)]
    assert len(asked) > right[0] > right[1] > right[2]
    assert right_answers(living_model(name), "stale", asked) == right[0]


def test_whoever_names_the_last_place_is_often_wrong():
    mia, zh = "<s> Mia is in the hall. Tom is in the attic. ", "<s> 米娅在大厅。汤姆在阁楼。"
    told = [
        (mia + "where is Mia? in the", "hall"),
        (mia + "where is Tom? in the", "attic"),
        (zh + "米娅在哪里？在", "大厅"),
        (zh + "汤姆在哪里？在", "阁楼"),
        (zh + "⇒ " + mia + "where is Tom? in the", "阁楼"),
    ]
    asked = [world.Question("where", world.encode(prompt), world.encode(answer)) for prompt, answer in told]
    assert right_by_last_place(asked) == 3
    assert [right_by_last_place([question]) for question in asked] == [0, 1, 0, 1, 1]


@pytest.mark.parametrize("bug", BUGS)
@torch.no_grad()
def test_what_a_broken_cache_writes_is_what_its_own_logits_choose(bug):
    """A batch writes as each prompt alone, and reading what was written in the same calls gives the same words."""
    model = living_model().double()
    prompts = torch.from_numpy(world.stories(3, 8, seed=4))
    words = written(model, bug, prompts, 4, chunk=3)
    assert torch.equal(words[:1], written(model, bug, prompts[:1], 4, chunk=3))
    logits = read_in_calls(model, bug, torch.cat([prompts, words], dim=1), prompt=8, chunk=3)
    assert torch.equal(logits[:, 7:-1].argmax(-1), words)


def test_a_right_cache_writes_what_is_written_without_one_and_each_bug_something_else():
    model = living_model().double()
    prompts = torch.from_numpy(world.encode("<s> Mia is in the garden. Leo is in the attic."))[None]
    told = {bug: written(model, bug, prompts, 13, chunk=3).tolist()[0] for bug in BUGS}
    assert told["none"] == model.generate(prompts, 13, eos_token_id=None, use_cache=False)[0, 9:].tolist()
    assert len({tuple(words) for words in told.values()}) == len(BUGS)
    assert written(model, "square", prompts, 13, chunk=9).tolist()[0] == told["none"]
