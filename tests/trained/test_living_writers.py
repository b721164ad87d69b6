"""Who writes a lead: an exact sum, by writer and by word; what silencing takes away, in both models, in 60 stories."""

import pytest
import torch
from cases import long_after

from minimind_edu import world
from minimind_edu.trained.living import STORED, answering, heads, living_model, writers
from minimind_edu.world.words import IDS, PLACES, TWIN

HEADS = [(layer, head) for layer in range(4) for head in range(4)]
ROOMS = IDS[writers.NEW], IDS[writers.OLD]


@pytest.fixture(scope="module", params=long_after(1, STORED))
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return living_model(name).double()


@pytest.fixture(scope="module")
def story():
    return torch.from_numpy(world.encode(writers.STORY))[None]


@torch.no_grad()
def leads(model, count=60, form=writers.FORM) -> torch.Tensor:
    """[stories, 1 + L * (H + 1)]"""
    ids, new, old = writers.stories(count, form)
    return torch.stack([writers.lead(model, ids[i : i + 1], int(new[i]), int(old[i])) for i in range(count)])


@torch.no_grad()
def test_writers_add_up_to_the_models_own_lead(model, story):
    logits = model(story).logits[0, -1]
    found = writers.lead(model, story, *ROOMS)
    torch.testing.assert_close(found.sum(), logits[ROOMS[0]] - logits[ROOMS[1]])


@torch.no_grad()
def test_the_words_of_a_head_add_up_to_what_it_writes(model, story):
    found = writers.lead(model, story, *ROOMS)
    weights = heads.attention_weights(model, story)
    for head in HEADS:
        read, adds = writers.by_word(model, story, head, *ROOMS)
        torch.testing.assert_close(read, weights[head[0], head[1], -1])
        torch.testing.assert_close(adds.sum(), found[writers.row_of(model, head)])


def test_the_five_writers_are_all_there_are(model, name):
    rows = writers.groups(name)
    assert len(rows) == 5 and sorted(sum(rows.values(), [])) == list(range(21))
    assert rows["network 4"] == [writers.row_of(model, (3, 4))]


@pytest.mark.parametrize("language", writers.FORMS)
def test_stories_name_the_new_room_and_the_old_one(language):
    ids, new, old = writers.stories(20, writers.FORMS[language], language=language)
    for words, there, before in zip(ids, new, old, strict=True):
        assert words[writers.LEFT] == before == words[3] and words[writers.REACHED] == there
        assert [int(words[spot - 1]) for spot in (writers.LEFT, writers.REACHED)] == [
            IDS[told] + TWIN * (language == "zh") for told in ("goes from the", "to the")
        ]
        assert world.next_word_distribution(words.numpy())[there] == 1


# which head tells the room that was left from the one that was reached, of each model in each language
TELLS = {("living", "en"): writers.TELLS, ("living", "zh"): "1.1", ("twin", "en"): "1.4", ("twin", "zh"): "1.4"}


@torch.no_grad()
@pytest.mark.parametrize("language", writers.FORMS)
def test_one_head_tells_left_from_reached_and_names_no_room(model, name, language):
    """What a head wrote at both rooms in another story: as it was, nothing is lost; exchanged, all go back."""
    told, new, old = writers.stories(60, writers.FORMS[language], language=language)
    spots = [writers.LEFT, writers.REACHED]
    both = {}
    for head in answering.ALL:
        others = answering.mixed(model, head, told).roll(1, 0)
        right = []
        for taken in (spots, spots[::-1]):
            with answering.rewritten(model, head, answering.given(others, spots, taken)):
                logits = model(told).logits[:, -1]
            at = torch.arange(60)
            right.append(float((logits[at, new] > logits[at, old]).double().mean()))
        both[head] = tuple(right)
    assert [head for head, right in both.items() if right == (1, 0)] == [TELLS[name, language]]


@torch.no_grad()
def test_the_head_that_crosses_out_writes_against_any_room_that_it_reads(model, name):
    """Of the eight rooms it lowers the one that it reads most, wherever it stands."""
    rooms = torch.tensor([IDS[room] for room in PLACES[0]])
    told, _, _ = writers.stories(30)
    for ids in told:
        for place in (3, 7, writers.LEFT, writers.REACHED):
            _, _, values = heads.query_keys_values(model, *writers.CROSSES[name], ids[None])
            layer, own = writers.CROSSES[name]
            columns = heads.block(model, layer).self_attn.o_proj.weight.unflatten(1, (4, -1))[:, own]
            logits = model.lm_head(model.model.norm.weight * (columns @ values[place]))
            assert rooms[logits[rooms].argmin()] == ids[place]


@torch.no_grad()
def test_every_stored_setting_is_a_run_without_that_head(model, name, story):
    """Zeros in place of what the head hands to o_proj, not in o_proj: another way than the one that is stored."""
    stored = writers.measured()["models"][name]
    size = model.config.head_dim
    assert len(stored["states"]) == 17
    for head in [None, *HEADS]:

        def muted(_, given, head=head):
            mixed = given[0].clone()
            mixed[..., head[1] * size : (head[1] + 1) * size] = 0
            return (mixed,)

        hook = head and heads.block(model, head[0]).self_attn.o_proj.register_forward_pre_hook(muted)
        logits = model(story).logits[0, -1]
        if hook:
            hook.remove()
        state = stored["states"][writers.name_of(head) if head else "none"]
        assert state["lead"] == pytest.approx(float(logits[ROOMS[0]] - logits[ROOMS[1]]), abs=1e-4)
        assert sum(state["writes"]) == pytest.approx(state["lead"], abs=5e-4)
        assert state["word"] == world.WORDS[int(logits.argmax())]
        assert state["share"] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-4)


@torch.no_grad()
def test_what_heads_read_when_two_writings_are_exchanged_is_stored_as_the_model_reads(story):
    model, spots = living_model().double(), [writers.LEFT, writers.REACHED]
    told = answering.mixed(model, writers.TELLS, story)
    with answering.rewritten(model, writers.TELLS, answering.given(told, spots, spots[::-1])):
        weights = heads.attention_weights(model, story)
    for name, read in writers.measured()["readers"]["exchanged"].items():
        layer, head = answering.at(name)
        assert read["weights"] == pytest.approx(weights[layer, head, -1].tolist(), abs=1e-4)
        assert sum(read["writes"]) == pytest.approx(read["lead"], abs=5e-4)


def test_the_head_that_crosses_out_costs_more_than_it_wrote_in_all_stories(model, name):
    """What the lesson tells, at its second setting: attribution and ablation answer different questions."""
    whole = leads(model)
    crosses = writers.CROSSES[name]
    wrote = whole[:, writers.row_of(model, crosses)]
    with heads.silenced(model, *crosses):
        rest = leads(model)
    lost = whole.sum(1) - rest.sum(1)
    assert bool((lost > wrote).all()) and bool((rest[:, -1] < whole[:, -1]).all())
    assert float(lost.mean() / wrote.mean()) == pytest.approx(2, abs=0.05)
    needed = {"living": (0, 2), "twin": (0, 3)}[name]
    with heads.silenced(model, *needed):
        gone = whole.sum(1) - leads(model).sum(1)
    assert abs(float(whole[:, writers.row_of(model, needed)].mean())) < 0.05 and float(gone.mean()) > 10
