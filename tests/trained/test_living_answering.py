"""The heads that answer where somebody is: few are needed, all others can go, and each does what the lesson says."""

import itertools

import pytest
import torch
from cases import long_after

from minimind_edu import world
from minimind_edu.trained.living import STORED, answering, heads, living_model

MODELS = pytest.mark.parametrize("name", long_after(1, STORED))
LANGUAGES = pytest.mark.parametrize("language", answering.FORMS)


@pytest.fixture(scope="module")
def model():
    return living_model().requires_grad_(False)


@pytest.fixture(scope="module")
def asked() -> torch.Tensor:
    return torch.from_numpy(world.encode(answering.story("en", "en", **answering.STORY)))[None]


def test_heads_are_named_by_block_and_head_from_one():
    assert answering.ALL[0] == "1.1" and answering.ALL[-1] == "4.4" and len(answering.ALL) == 16
    assert answering.at("3.4") == (2, 3)
    with pytest.raises(ValueError, match="heads are named 1.1 to 4.4, block and head, got '5.1'"):
        answering.at("5.1")
    assert {*answering.but("1.1", "4.4"), "1.1", "4.4"} == {*answering.ALL}


def test_silenced_heads_are_those_of_the_model_and_come_back(model, asked):
    whole = model(asked).logits
    with answering.silenced(model, "1.2", "4.2"):
        without = model(asked).logits
    with heads.silenced(model, 0, 1), heads.silenced(model, 3, 1):
        torch.testing.assert_close(model(asked).logits, without)
    torch.testing.assert_close(model(asked).logits, whole)
    assert (without - whole).abs().max() > 1


@LANGUAGES
def test_stories_are_the_worlds_and_their_answers_its_only_ones(language):
    for asked, who in itertools.product(answering.FORMS, ("stays", "goes")):
        told = answering.stories(20, language, asked, who=who)
        assert told.ids.shape == (20, 19)
        for ids, place, other in zip(*told, strict=True):
            chances = world.next_word_distribution(ids.numpy())
            assert chances[place] == 1 and place != other
        spots = {"place": answering.PLACE, "left": answering.LEFT, "new": answering.NEW}
        own, others = ("place", "new") if who == "stays" else ("new", "place")
        if asked == language:
            assert (told.ids[:, spots[own]] == told.place).all() and (told.ids[:, spots[others]] == told.other).all()
        assert (told.ids[:, answering.LEFT] == told.ids[:, answering.LEFT_AGAIN]).all()
        assert (told.ids[:, answering.GOES] != told.ids[:, answering.STAYS]).all()


def test_who_is_asked_for_stays_or_goes():
    with pytest.raises(ValueError, match="who must be 'stays' or 'goes', got 'left'"):
        answering.stories(1, who="left")


@LANGUAGES
def test_stories_with_exchanged_names_are_the_worlds_and_ask_for_the_other(language):
    told = answering.stories(20, language)
    for ids, place in zip(answering.renamed(told.ids), told.place, strict=True):
        assert world.next_word_distribution(ids.numpy())[place] == 1  # the other one stays there now
    assert (answering.renamed(answering.renamed(told.ids)) == told.ids).all()
    assert (answering.renamed(told.ids)[:, answering.STAYS] == told.ids[:, answering.GOES]).all()


@MODELS
@LANGUAGES
def test_a_few_heads_answer_without_all_others(name, language):
    some, told = living_model(name), answering.stories(300, language)
    assert answering.shares(some, told)[0] == 1
    with answering.silenced(some, *answering.but(*answering.NEEDED[name])):
        assert answering.shares(some, told)[0] > 0.99


@MODELS
def test_none_of_the_few_can_go_when_the_others_are_silenced(name):
    some = living_model(name)
    for missing in answering.NEEDED[name]:
        kept = [head for head in answering.NEEDED[name] if head != missing]
        right = []
        for language in answering.FORMS:
            with answering.silenced(some, *answering.but(*kept)):
                right.append(answering.shares(some, answering.stories(200, language))[0])
        assert min(right) < 0.99, missing


def test_each_of_the_eleven_can_go_alone_and_each_of_the_five_is_missed(model):
    told = answering.stories(300)
    for name in answering.ALL:
        with answering.silenced(model, name):
            right, new = answering.shares(model, told)
        assert (right == 1) == (name not in answering.NEEDED["living"]), name
        if name == answering.WHOSE["living"]:
            assert (right, new) == (0, 1)


def test_every_set_of_the_eleven_leaves_the_answer(model, asked):
    eleven = answering.but(*answering.NEEDED["living"])
    says = answering.every_set(model, asked, eleven)
    assert says.shape == (2**11,) and {world.WORDS[word] for word in says.tolist()} == {"hall"}


def test_every_set_is_what_the_model_says_with_these_heads_silenced(model, asked):
    names = ("4.2", "1.4", "3.4", "1.2")
    says = answering.every_set(model, asked, names)
    for chosen in range(16):
        silent = [name for bit, name in enumerate(sorted(names)) if chosen >> bit & 1]
        with answering.silenced(model, *silent):
            assert model(asked).logits[0, -1].argmax() == says[chosen], silent
    assert len(says.unique()) > 1


@MODELS
@LANGUAGES
def test_one_head_alone_writes_whose_two_places_are(name, language):
    """Given what it writes there when the two have each other's names, the model answers with the other's place."""
    some, told = living_model(name), answering.stories(100, language)
    changed = {}
    for head in answering.ALL:
        there = answering.mixed(some, head, answering.renamed(told.ids))
        with answering.rewritten(some, head, answering.given(there, [answering.PLACE, answering.NEW])):
            right, other = answering.shares(some, told)
        if right < 1:
            changed[head] = right, other
    assert changed == {answering.WHOSE[name]: (0, 1)}


@MODELS
@LANGUAGES
def test_two_places_exchanged_move_the_answer_for_more_than_one_head(name, language):
    """Why the lesson exchanges names and not places: a head that writes no name is not spared by this."""
    some, told = living_model(name), answering.stories(100, language)
    spots = [answering.PLACE, answering.NEW]
    for head in (answering.WHOSE[name], "1.2"):
        change = answering.given(answering.mixed(some, head, told.ids), spots, spots[::-1])
        with answering.rewritten(some, head, change):
            assert answering.shares(some, told)[1] > 0.3, head


@MODELS
@LANGUAGES
def test_for_who_goes_one_head_more_is_needed(name, language):
    some, told = living_model(name), answering.stories(200, language, who="goes")
    assert answering.shares(some, told)[0] == 1
    for more, least, most in (((), 0.4, 0.85), (("3.3",), 0.97, 1)):
        with answering.silenced(some, *answering.but(*answering.NEEDED[name], *more)):
            assert least < answering.shares(some, told)[0] <= most


@pytest.mark.long
@MODELS
def test_one_head_of_the_last_word_decides_the_language(name):
    some = living_model(name)
    both = {asked: answering.stories(200, "en", asked) for asked in answering.FORMS}
    for one, other in itertools.permutations(both):
        for head in answering.ALL:
            there = answering.mixed(some, head, both[other].ids)
            with answering.rewritten(some, head, answering.given(there, [-1])):
                right = answering.shares(some, both[one])[0]
                in_the_other = answering.shares(some, both[other]._replace(ids=both[one].ids))[0]
            assert (right, in_the_other) == ((0, 1) if head == answering.LANGUAGE[name] else (1, 0)), head


def test_what_is_rewritten_alike_changes_nothing(model, asked):
    whole = model(asked).logits
    with answering.rewritten(model, "3.4", lambda x: x.clone()):
        torch.testing.assert_close(model(asked).logits, whole)
    given = answering.mixed(model, "3.4", asked)
    assert given.shape == (1, 19, 32)
    with answering.rewritten(model, "3.4", torch.zeros_like):
        silent = model(asked).logits
    with answering.silenced(model, "3.4"):
        torch.testing.assert_close(model(asked).logits, silent)


@MODELS
def test_query_keys_and_values_give_what_a_head_mixes_last(name, asked):
    some = living_model(name)
    for head in ("1.1", "2.3", "3.4", "4.2"):
        q, k, v = heads.query_keys_values(some, *answering.at(head), asked)
        weights = (k @ q / len(q) ** 0.5).softmax(-1)
        torch.testing.assert_close(weights @ v, answering.mixed(some, head, asked)[0, -1])


@LANGUAGES
def test_what_is_read_once_answers_as_the_whole_story_does(model, language):
    told, turned = (answering.stories(40, language, who=who) for who in ("stays", "goes"))
    past, there = answering.read(model, told), answering.mixtures(model, turned.ids)
    for head in ("1.1", "3.4", "4.2"):
        with answering.rewritten(model, head, answering.given(there[head], [-1])):
            found = answering.shares(model, told, past)
            assert found == answering.shares(model, told)
        assert found == ((1, 0) if head == "1.1" else (0, 1))


def test_every_head_gets_back_what_it_mixed_and_no_other_does(model, asked):
    whole, found = model(asked).logits, answering.mixtures(model, asked)
    assert tuple(found) == answering.ALL
    for name, others in zip(found, (*answering.ALL[1:], answering.ALL[0]), strict=True):
        for given in (name, others):
            with answering.rewritten(model, name, answering.given(found[given], range(asked.shape[1]))):
                same = torch.allclose(model(asked).logits, whole, atol=1e-4)
            assert same == (given == name), (name, given)
    model(asked)  # nothing is left listening
    assert all(mixture.shape == (1, 19, 32) for mixture in found.values())


def test_a_mean_over_stories_is_what_every_story_gets(model):
    told = answering.stories(50)
    change = answering.means(model, told.ids)["1.2"]
    given = answering.mixed(model, "1.2", told.ids)
    torch.testing.assert_close(change(given), given.mean(0).expand_as(given))


@LANGUAGES
def test_a_reading_is_the_models(model, language):
    ids = torch.from_numpy(world.encode(answering.story(language, language, **answering.STORY)))[None]
    names = ["hall", "garden", "kitchen"] if language == "en" else ["大厅", "花园", "厨房"]
    for silent in ((), ("1.3",), answering.but("3.4")):
        read = answering.reading(silent, language)
        with answering.silenced(model, *silent):
            chances = model(ids).logits[0, -1].softmax(-1)
            weights = heads.attention_weights(model, ids)
        assert read["shares"] == pytest.approx([float(chances[world.encode(name)[0]]) for name in names], abs=1e-5)
        word, share = read["other"]
        assert word not in names and share == pytest.approx(float(chances[world.WORDS.index(word)]), abs=1e-5)
        assert read["fetched"] == pytest.approx([float(weights[3, 1, 18, spot]) for spot in (3, 7, 11, 13)], abs=1e-5)
        for (most, weight), spot in zip(read["whose"], (3, 7, 11, 13, 18), strict=True):
            assert weight == pytest.approx(float(weights[2, 3, spot].max()), abs=1e-5)
            assert most == int(weights[2, 3, spot].argmax())
