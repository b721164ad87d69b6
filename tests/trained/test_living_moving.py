"""One query moved back: rotated as the model would rotate it there, nothing else changed, and what both models say."""

import math
from pathlib import Path

import pytest
import torch
from cases import long_after

from minimind_edu import world
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis
from minimind_edu.trained.living import STORED, exam, heads, living_model, moving

ROOT = Path(__file__).parents[2]

LAST = 24  # position of "goes from the"
HEADS = [(layer, head) for layer in range(4) for head in range(4)]


@pytest.fixture(scope="module", params=long_after(1, STORED))
def read_by(request):
    """Each stored model in float64, and its head that reads who goes."""
    return living_model(request.param).double(), moving.READERS[request.param]


@pytest.fixture(scope="module")
def story():
    return torch.from_numpy(world.encode(moving.STORY))[None]


@torch.no_grad()
def flipped(model, back, which, pairs=None, count=60) -> tuple[int, int]:
    """Of so many stories: how many end in the other's room, and how many in the room of who goes."""
    ids, own, others = moving.stories(count)
    with moving.moved(model, back, which, pairs):
        said = model(ids).logits[:, -1].argmax(-1)
    return int((said == others).sum()), int((said == own).sum())


@torch.no_grad()
def test_a_moved_query_reads_as_one_that_stands_there(read_by, story):
    """Its weights are those of the unrotated vectors, rotated by the package for a query so many words earlier."""
    model, reader = read_by
    q, k = moving.unrotated(model, story, reader)
    tables = model.model.freqs_cos[: LAST + 1], model.model.freqs_sin[: LAST + 1]
    keys, _ = apply_rotary_pos_emb(k[None, :, None], k[None, :, None], *tables)
    for back in (0, 1, 4, 12):
        at = LAST - back
        moved, _ = apply_rotary_pos_emb(*2 * [q[None, None, None]], *(table[at : at + 1] for table in tables))
        wanted = (keys[0, :, 0] @ moved[0, 0, 0] / math.sqrt(len(q))).softmax(-1)
        with moving.moved(model, back, [reader]):
            found = heads.attention_weights(model, story)[reader[0], reader[1], -1]
        torch.testing.assert_close(found, wanted)


@torch.no_grad()
def test_nothing_moves_but_the_last_query_of_the_heads_and_pairs_named(read_by, story):
    model, _ = read_by
    attend = heads.block(model, 1).self_attn
    x = torch.randn(2, 25, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    tables = model.model.freqs_cos[:25], model.model.freqs_sin[:25]
    q, k, v = attend.project(x, *tables)
    with moving.moved(model, 3, [(1, 0), (1, 2), (3, 1)], [0, 5]):
        moved, *others = attend.project(x, *tables)
    assert torch.equal(others[0], k) and torch.equal(others[1], v)
    changed = (moved != q).nonzero()  # text, position, head, channel
    assert set(changed[:, 1].tolist()) == {24} and set(changed[:, 2].tolist()) == {0, 2}
    assert set(changed[:, 3].tolist()) == {0, 5, 16, 21}
    assert torch.equal(attend.project(x, *tables)[0], q)


def test_a_failure_inside_leaves_the_model_as_it_was(read_by, story):
    model, _ = read_by
    with torch.no_grad():
        before = model(story).logits
    with pytest.raises(KeyError), moving.moved(model, 4, HEADS):
        raise KeyError
    with torch.no_grad():
        assert torch.equal(model(story).logits, before)


def test_a_moved_query_can_be_learned_from(read_by, story):
    model, reader = read_by
    with moving.moved(model, 4, [reader]):
        model(story).logits[0, -1].max().backward()
    assert model.model.embed_tokens.weight.grad.isfinite().all()
    model.zero_grad()


def test_stories_are_of_the_world_and_name_the_rooms():
    ids, own, others = moving.stories(60)
    assert ids.shape == (60, LAST + 1) and len(set(map(tuple, ids.tolist()))) > 50
    for told, here, there in zip(ids.tolist(), own.tolist(), others.tolist(), strict=True):
        exact = world.distributions(torch.tensor(told).numpy())[-1]
        assert exact[here] == 1 and exact[there] == 0, "who goes can leave one room only"
        other, one = told[1], told[5]
        assert (told[3], told[7], told[23], told[19]) == (there, here, one, other)


def test_a_third_room_is_nobodys():
    form = "<s> {one} is in the {here}. {other} is in the {there}. {other} goes from the {there} to the {third}."
    ids, own, others = moving.stories(40, form)
    thirds = ids[:, -2]
    assert ((thirds != own) & (thirds != others)).all()


def test_one_head_of_sixteen_decides_who_goes(read_by):
    """Moved back by four words alone, it sends the other away in every story, and no other head does in any."""
    model, reader = read_by
    assert flipped(model, 0, HEADS) == (0, 60)
    for head in HEADS:
        assert flipped(model, 4, [head]) == ((60, 0) if head == reader else (0, 60))


def test_three_and_four_words_back_the_other_goes_and_fast_pairs_do_it(read_by):
    model, reader = read_by
    assert [flipped(model, back, [reader])[0] for back in (1, 3, 4, 12)] == [0, 60, 60, 0]
    assert flipped(model, 4, [head for head in HEADS if head != reader]) == (0, 60)
    assert flipped(model, 4, [reader], range(4)) == flipped(model, 4, [reader], range(3)) == (60, 0)
    assert flipped(model, 4, [reader], range(4, 16)) == (0, 60)


@torch.no_grad()
def test_what_the_lesson_says_of_where_it_fails_and_of_no_rotations():
    """Of the form of story in which few flip, and of the translations, which its deeper page computes."""
    lesson = (ROOT / "chapters" / "04_rope_rotation.ipynb").read_text(encoding="utf-8")
    form = "<s> {one} is in the {here}. {other} is in the {there}. {one} goes from the"
    assert "*Mia is in the kitchen. Tom is in the garden. Mia goes from the*, only" in lesson
    ids, _, others = moving.stories(60, form)
    flips = []
    for name, reader in moving.READERS.items():
        model = living_model(name).double()
        with moving.moved(model, 4, [reader]):
            flips.append(int((model(ids).logits[:, -1].argmax(-1) == others).sum()))
    assert f"only {flips[0]} stories of 60 flip in the model and {flips[1]} in the twin" in lesson
    shares = {}
    tables = precompute_freqs_cis(32, 1100, 1e4)
    for name, rows in {"trained": slice(100), "none": [0] * 100, "later": slice(1000, 1100)}.items():
        model = living_model()
        model.model.freqs_cos, model.model.freqs_sin = (table[rows] for table in tables)
        shares[name] = [exam.accuracy(model, world.questions("translation", 60, seed)) for seed in (5, 6, 7)]
    assert shares["trained"] == [1, 1, 1] == shares["later"]
    assert f"[{100 * min(shares['none']):.0f} to {100 * max(shares['none']):.0f} %]" in lesson


def test_what_the_figure_gets_is_the_models(story):
    model, reader = living_model().double(), moving.READERS["living"]
    stored = moving.measured()
    assert stored["words"] == [world.WORDS[one] for one in story[0].tolist()]
    assert [one["word"] for one in stored["following"]] == ["kitchen"] * 3 + ["garden"] * 5 + ["kitchen"] * 5
    for back, said in enumerate(stored["following"]):
        with moving.moved(model, back, [reader]), torch.no_grad():
            logits = model(story).logits[0, -1]
        shares = logits.softmax(-1)[world.encode("kitchen garden")]
        assert said["shares"] == pytest.approx(shares.tolist())
        assert said["lead"] == pytest.approx(float(shares[0].log() - shares[1].log()), abs=1e-6)


SHORT = "<s> {one} is in the {here}. {other} is in the {there}. {one} goes from the"


@pytest.mark.parametrize(
    ("told", "one", "other"),
    [("<s> Mia is in the kitchen. Tom is in the garden. Mia goes from the", 9, 5), (moving.STORY, 23, 19)],
)
def test_names_are_found_where_they_stand_last(told, one, other):
    ids = torch.from_numpy(world.encode(told))[None]
    assert [int(place) for place in moving.names(ids)] == [one, other]
    assert [world.WORDS[int(ids[0, place])] for place in (one, other)] == ["Mia", "Tom"]


@torch.no_grad()
def test_a_head_that_reads_one_word_gives_its_value_and_nothing_else_changes(read_by):
    """Where a head's weights are ones for that word already, by a mask, its layer's output is the same."""
    model, (layer, head) = read_by
    told, _, _ = moving.stories(3, SHORT)
    seen = {}
    attend = heads.block(model, layer).self_attn
    hook = attend.o_proj.register_forward_pre_hook(lambda _, given: seen.setdefault("before", given[0].clone()))
    project = attend.project
    attend.project = lambda *given: seen.setdefault("projected", project(*given))
    with torch.no_grad():
        model(told)
    hook.remove()
    del attend.project
    values, places = seen["projected"][2], torch.tensor([5, 9, 0])
    with moving.reading(model, (layer, head), places):
        hook = attend.o_proj.register_forward_pre_hook(lambda _, given: seen.setdefault("after", given[0].clone()))
        model(told)
        hook.remove()
    before, after = (seen[when].unflatten(-1, (4, -1)) for when in ("before", "after"))
    shared_by = 4 // values.shape[2]
    for text, place in enumerate(places):
        assert torch.equal(after[text, -1, head], values[text, place, head // shared_by])
    changed = (before != after).any(-1).nonzero()  # text, position, head
    assert set(changed[:, 1].tolist()) == {told.shape[1] - 1} and set(changed[:, 2].tolist()) == {head}
    assert "project" not in vars(attend)


@torch.no_grad()
def test_where_it_fails_the_head_finds_nobody_else_but_would_do_with_him_what_it_does(read_by):
    """51 and 60 of 60 say the other's room once the head reads the other, and none once it reads who goes."""
    model, reader = read_by
    told, own, others = moving.stories(60, SHORT)
    one, other = moving.names(told)
    for places, least_own, least_others in ((one, 60, 0), (other, 0, 50)):
        with moving.reading(model, reader, places):
            said = model(told).logits[:, -1].argmax(-1)
        assert (said == own).sum() >= least_own and (said == others).sum() >= least_others
