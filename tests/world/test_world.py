"""The house: probabilities are exact, stories agree with a reader of their own, every question has one answer."""

import json
import re

import numpy as np
import pytest
from cases import long_after

from minimind_edu import world
from minimind_edu.world import decode, encode
from minimind_edu.world.house import SENTENCES, TOLD, WEIGHTS, Dice, House
from minimind_edu.world.words import OBJECTS, PEOPLE, PHRASES, PLACES, PRONOUNS

LENGTH = 96
STOPS = (".", "。")
STORY_0 = "<s> 米娅在大厅。鼓被米娅在大厅拿起了。马克在大厅。 the drum is given by Mia to Mark. the"
ENGLISH = {zh: en for lists in (PEOPLE, OBJECTS, PLACES) for en, zh in zip(*lists, strict=True)}


@pytest.fixture(scope="module")
def batch():
    """Stories [100, 96]."""
    return world.stories(100, LENGTH, seed=11)


@pytest.fixture(scope="module")
def exact(batch):
    """Their exact distributions [100, 96, V]."""
    return np.stack([world.distributions(story) for story in batch])


def houses(count, seed, languages=(0, 1)):
    """Houses in the middle of stories."""
    dice = Dice(seed)
    for _ in range(count):
        house = House(languages)
        for _ in range(dice([1] * 20)):
            house.happen(house.sentence(dice))
        yield house


def sentences_of(story):
    """(where it begins, its words) of each whole sentence after <s>."""
    begin, words = 1, []
    for i, word in enumerate(world.WORDS[j] for j in story[1:]):
        words.append(word)
        if word in STOPS:
            yield begin, words
            begin, words = i + 2, []


# The vocabulary


def test_the_words_and_their_ids_stay_as_they_are():
    """Trained weights have a row for each of them: another order would spoil every stored model."""
    english = (
        "Mia Tom Anna Jack Lily Mark Zoe Leo nobody ball key book cup hat lamp map drum "
        "garden kitchen attic cellar hall study barn garage she he is_in_the goes_from_the to_the the "
        "is_picked_up_by in_the is_put_down_by is_given_by to where_is everybody who_has_the who_has_what . ? : ,"
    )
    chinese = (
        "米娅 汤姆 安娜 杰克 莉莉 马克 佐伊 利奥 没有人 球 钥匙 书 杯子 帽子 灯 地图 鼓 "
        "花园 厨房 阁楼 地窖 大厅 书房 谷仓 车库 她 他 在 从 去 被 拿起了 放下了 交给了 "
        "在哪里 大家 谁拿着 什么 。 ？ ： ，"
    )
    words = f"<s> ⇒ {english} {chinese}"
    assert [word.replace("_", " ") for word in words.split()] == world.WORDS
    assert len(set(world.WORDS)) == 88
    assert all(world.WORDS[world.WORDS.index(zh) - 44] == en for zh, en in ENGLISH.items())
    assert world.BOS == 0


def test_text_and_ids_turn_into_each_other(batch):
    for story in batch:
        assert encode(decode(story)).tolist() == story.tolist()
        assert encode(" ".join(world.WORDS[i] for i in story)).tolist() == story.tolist()
    assert decode(encode("<s>Mia is in the hall.⇒米娅 在 大厅 。她从大厅去厨房。")) == (
        "<s> Mia is in the hall. ⇒ 米娅在大厅。她从大厅去厨房。"
    )
    assert encode("").shape == (0,) and decode([]) == ""


@pytest.mark.parametrize(
    ("text", "unknown"),
    [("Mia is in the tower.", "tower"), ("Mia is in the halls.", "halls"), ("米娅在天空。", "天空"), ("Mia!", "!")],
)
def test_what_is_no_word_is_named(text, unknown):
    with pytest.raises(ValueError, match=f"'{re.escape(unknown)}' is no word of this world"):
        encode(text)


@pytest.mark.parametrize("strange", [-1, 88])
def test_ids_beyond_the_words_are_refused(strange):
    for refuses in (decode, world.distributions, world.state_after):
        with pytest.raises(ValueError, match=f"0 to 87, got {strange}"):
            refuses([0, strange])


@pytest.mark.parametrize("strange", [1.9, 2.0, "2", None, [2]])
def test_ids_that_are_no_whole_numbers_are_refused_and_not_cut(strange):
    for refuses in (decode, world.distributions, world.state_after):
        with pytest.raises(ValueError, match="ids are a sequence of whole numbers, got"):
            refuses([0, strange])


# The sentences, for somebody who reads Chinese to check

EXAMPLES = [
    ("is", "Mia is in the hall.", "米娅在大厅。"),
    ("go", "Tom goes from the hall to the kitchen.", "汤姆从大厅去厨房。"),
    ("go", "she goes from the garden to the attic.", "她从花园去阁楼。"),
    ("go", "he goes from the cellar to the barn.", "他从地窖去谷仓。"),
    ("take", "the ball is picked up by Anna in the study.", "球被安娜在书房拿起了。"),
    ("drop", "the book is put down by Jack in the kitchen.", "书被杰克在厨房放下了。"),
    ("give", "the hat is given by Lily to Mark.", "帽子被莉莉交给了马克。"),
    ("where", "where is Mia? in the attic.", "米娅在哪里？在阁楼。"),
    ("where object", "where is the key? in the cellar.", "钥匙在哪里？在地窖。"),
    ("who", "who has the lamp? Leo.", "谁拿着灯？利奥。"),
    ("who", "who has the book? nobody.", "谁拿着书？没有人。"),
    ("people", "where is everybody? Mia: hall, Tom: garage.", "大家在哪里？米娅：大厅，汤姆：车库。"),
    (
        "people",
        "where is everybody? Zoe: garden, Jack: study, Lily: hall.",
        "大家在哪里？佐伊：花园，杰克：书房，莉莉：大厅。",
    ),
    ("objects", "who has what? drum: Anna, hat: nobody.", "谁拿着什么？鼓：安娜，帽子：没有人。"),
    ("objects", "who has what? cup: Mark, map: Mark, key: Tom.", "谁拿着什么？杯子：马克，地图：马克，钥匙：汤姆。"),
]
SHAPES = {"nobody": "person", "没有人": "person"}
SHAPES |= {word: kind for kind, lists in (("thing", OBJECTS), ("place", PLACES)) for words in lists for word in words}
SHAPES |= {word: "person" for words in PEOPLE for word in words[:8]}


def shape(words):
    return " ".join(SHAPES.get(word, word) for word in words)


TRANSLATED = [
    text for kind, *texts in EXAMPLES for text in texts if kind in TOLD and not re.match("s?he |[她他]", text)
]


def shape_of(text):
    return shape(world.WORDS[i] for i in encode(text))


def test_these_are_all_sentences_of_the_world_in_both_languages():
    texts = [text for _, *both in EXAMPLES for text in both]
    assert [decode(encode(text)) for text in texts] == texts
    expected = {shape_of(text) for text in texts} | {"⇒ " + shape_of(text) for text in TRANSLATED}
    found = {shape(words) for story in world.stories(1500, LENGTH, seed=0) for _, words in sentences_of(story)}
    assert found == expected
    assert {kind for kind, _, _ in EXAMPLES} == set(SENTENCES) == set(WEIGHTS)


def test_the_examples_say_the_same_in_both_languages():
    twins = ENGLISH | dict(zip(PRONOUNS[1], PRONOUNS[0], strict=True))
    for _, english, chinese in EXAMPLES:
        told = [world.WORDS[i] for i in encode(english)]
        other = [twins[world.WORDS[i]] for i in encode(chinese) if world.WORDS[i] in twins]
        assert sorted(other) == sorted(word for word in told if word in twins.values())


def test_every_word_occurs():
    assert set(world.stories(300, LENGTH, seed=4).flatten().tolist()) == set(range(len(world.WORDS)))


# Stories


def test_stories_depend_on_nothing_but_the_seed():
    rows = world.stories(4, 40, seed=7)
    assert rows.shape == (4, 40) and rows.dtype == np.int64 and (rows[:, 0] == world.BOS).all()
    assert np.array_equal(rows, world.stories(4, 40, seed=7))
    assert np.array_equal(rows[0], world.write_story(7, 40))
    assert not np.array_equal(rows, world.stories(4, 40, seed=8))
    assert decode(world.write_story(0, 24)) == STORY_0  # on every machine


def test_a_generator_goes_on_where_it_is():
    generator = np.random.default_rng(3)
    first, second = world.write_story(generator), world.write_story(generator)
    assert np.array_equal(first, world.write_story(np.random.default_rng(3)))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(("languages", "index"), [("en", 0), ("zh", 1)])
def test_a_story_can_be_in_one_language(languages, index):
    used = set(world.stories(50, LENGTH, 5, languages).flatten().tolist())
    translated = sum((lists[1 - index] for lists in (PEOPLE, OBJECTS, PLACES)), [])
    asked = [word for word in PHRASES[1 - index] if word in ("where is", "who has the", "在哪里", "谁拿着")]
    assert asked and not {world.WORDS[i] for i in used} & set(asked)
    assert {world.WORDS[i] for i in used} & set(translated), "translations are in the other language"


def test_what_makes_no_story_is_refused():
    with pytest.raises(ValueError, match="length must be a whole number of at least 1, got 0"):
        world.write_story(0, 0)
    with pytest.raises(ValueError, match="batch_size must be"):
        world.stories(0)
    with pytest.raises(ValueError, match='"en", "zh" or "en zh", got \'de\''):
        world.write_story(0, 10, "de")


# Exact probabilities


def test_distributions_sum_to_one(exact):
    assert (exact >= 0).all()
    assert np.abs(exact.sum(-1) - 1).max() < 1e-12


def test_what_is_written_was_possible(batch, exact):
    after = np.take_along_axis(exact[:, :-1], batch[:, 1:, None], axis=-1)
    assert (after > 0).all()


def test_what_is_possible_can_be_written(batch, exact):
    """One of each story's possible words, put at a random place, is accepted; one of the impossible is refused."""
    generator = np.random.default_rng(0)
    for story, rows in zip(batch[:40], exact, strict=False):
        end = int(generator.integers(1, LENGTH))
        possible, impossible = np.flatnonzero(rows[end - 1]), np.flatnonzero(rows[end - 1] == 0)
        word = int(generator.choice(possible))
        assert world.next_word_distribution([*story[:end], word]).sum() == pytest.approx(1)
        word = int(generator.choice(impossible))
        with pytest.raises(ValueError, match=re.escape(f"{world.WORDS[word]!r} cannot follow '<s>")):
            world.next_word_distribution([*story[:end], word])


def test_a_prefix_begins_with_s():
    for prefix in ([], encode("Mia is in the hall.")):
        with pytest.raises(ValueError, match="a story begins with <s>"):
            world.next_word_distribution(prefix)


def test_the_refusal_says_what_can_follow():
    with pytest.raises(ValueError, match="'barn' cannot follow '<s> Mia is in the hall. Mia goes from the'.*: hall$"):
        world.next_word_distribution(encode("<s> Mia is in the hall. Mia goes from the barn"))


def test_everybody_holds_one_thing_at_most():
    held = [things for house in houses(250, seed=3) for things in house.held.values()]
    assert max(map(len, held)) == 1 and sum(map(len, held)) > 100


def test_a_question_about_things_weighs_the_square_of_their_number():
    """One object has one holder, and to name it needs no search."""
    for house in houses(250, seed=4):
        likely = sum(p for p, sentence in house.sentences() if sentence.kind == "who")
        others = sum(p for p, sentence in house.sentences() if sentence.kind == "where")
        if likely and others:
            assert likely / others == pytest.approx(len(house.holder) ** 2 * WEIGHTS["who"] / WEIGHTS["where"])


def test_sentences_are_told_apart_by_their_words():
    """Else a text would mean two things, and the probability of a sentence would be that of one meaning."""
    for house in houses(250, seed=2):
        options = house.sentences()
        texts = {tuple(sentence.ids) for _, sentence in options}
        assert len(texts) == len(options)
        assert not any(text[:end] in texts for text in texts for end in range(1, len(text)))
        assert sum(p for p, _ in options) == pytest.approx(1, abs=1e-12)


def test_a_first_sentence_by_hand():
    """A coin for the language, one of eight people, one of eight places."""
    first = world.next_word_distribution(encode("<s>"))
    expected = [1 / 16 if word in PEOPLE[0][:8] + PEOPLE[1][:8] else 0 for word in world.WORDS]
    assert np.allclose(first, expected, rtol=0, atol=1e-12)
    second = world.next_word_distribution(encode("<s> Mia is in the"))
    assert np.allclose(second, [(word in PLACES[0]) / 8 for word in world.WORDS], rtol=0, atol=1e-12)


def test_a_second_sentence_by_hand():
    """1 in 5 is translated; else English in 5 of 6, then is 40, go 14, take 60, where 6; she in 2 of 5."""
    after = world.next_word_distribution(encode("<s> Mia is in the hall."))
    english, chinese = 0.8 * 5 / 6 / 120, 0.8 / 6 / 120
    expected = {"⇒": 0.2, "where is": english * 6, "Mia": english * 14 * 3 / 5, "she": english * 14 * 2 / 5}
    expected |= {"the": english * 60, "Tom": english * 40 / 7, "利奥": chinese * 40 / 7, "球": chinese * 60 / 8}
    expected |= {"米娅": chinese * (14 * 3 / 5 + 6), "她": chinese * 14 * 2 / 5}
    assert {word: after[world.WORDS.index(word)] for word in expected} == pytest.approx(expected, abs=1e-12)


def test_after_a_question_something_is_told_four_times_as_often():
    told = "<s> Mia is in the hall. 米娅从大厅去厨房。"
    before = world.next_word_distribution(encode(told))
    after = world.next_word_distribution(encode(told + " where is Mia? in the kitchen."))
    where, other = world.WORDS.index("where is"), world.WORDS.index("Tom")
    assert after[other] / after[where] == pytest.approx(4 * before[other] / before[where])


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        ("Mia goes from the hall to the", dict.fromkeys(PLACES[0][:4] + PLACES[0][5:], 1 / 7)),
        ("the", dict.fromkeys(OBJECTS[0], 1 / 8)),
        ("the ball is picked up by", {"Mia": 1}),
        ("汤姆在", dict.fromkeys(PLACES[1], 1 / 14) | {"大厅": 1 / 2}),
        ("球被米娅在", {"大厅": 1}),
        ("where is Mia? in the", {"hall": 1}),
        ("⇒", {"米娅": 1}),
    ],
)
def test_what_follows_by_hand(begun, words):
    found = world.next_word_distribution(encode("<s> Mia is in the hall. " + begun))
    assert {world.WORDS[i]: found[i] for i in np.flatnonzero(found)} == pytest.approx(words, abs=1e-12)


def chi_square_limit(freedom, sigmas=4.0):
    """What a chi-square statistic exceeds in 3 of 100,000 cases (Wilson and Hilferty, 1931)."""
    spread = 2 / (9 * freedom)
    return freedom * (1 - spread + sigmas * spread**0.5) ** 3


@pytest.mark.parametrize("sentences", long_after(2, [4, 1, 9, 20]))
@pytest.mark.parametrize("words", [0, 1, 2])
def test_20_000_draws_follow_the_exact_distribution(sentences, words):
    """After some whole sentences, and after the first words of one that begins in the most usual way."""
    dice, house, prefix = Dice(100 + sentences), House(), [world.BOS]
    for _ in range(sentences):
        sentence = house.sentence(dice)
        house.happen(sentence)
        prefix += sentence.ids
    drawn = [house.sentence(dice).ids for _ in range(20_000)]
    for place in range(words):
        begins = [ids[place] for ids in drawn]
        usual = max(set(begins), key=begins.count)
        drawn = [ids for ids in drawn if ids[place] == usual]
        prefix.append(usual)
    counts = np.bincount([ids[words] for ids in drawn], minlength=len(world.WORDS))
    expected = world.next_word_distribution(prefix) * len(drawn)
    assert counts[expected == 0].sum() == 0
    possible = expected > 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    if possible.sum() > 1:
        assert statistic < chi_square_limit(possible.sum() - 1)
    assert len(drawn) >= 500


def test_entropy_is_the_mean_surprise(batch, exact):
    entropy = -(exact * np.log(np.where(exact > 0, exact, 1))).sum(-1)[:, :-1]  # [100, 95]
    assert np.allclose(entropy[0], world.entropies(batch[0]), rtol=0, atol=1e-12)
    after = np.take_along_axis(exact[:, :-1], batch[:, 1:, None], axis=-1)[..., 0]
    difference = (-np.log(after) - entropy).mean(1)
    error = difference.std(ddof=1) / len(batch) ** 0.5
    assert abs(difference.mean()) < 3 * error and error < 0.02


def test_a_distribution_does_not_depend_on_what_comes_later(batch, exact):
    for end in (1, 2, 17, 60, LENGTH):
        assert np.array_equal(world.next_word_distribution(batch[0, :end]), exact[0, end - 1])


# The tables that a page gets


def test_the_tables_are_small_and_can_be_written_as_json():
    text = json.dumps(world.tables(), ensure_ascii=False)
    assert json.loads(text) == world.tables()
    assert len(text.encode()) < 4_000


def test_the_tables_hold_every_word_of_every_list():
    tables = world.tables()
    lists = [words for name in ("people", "objects", "places", "pronouns", "marks") for words in tables[name]]
    templates = [text.split("|") for texts in tables["sentences"].values() for text in texts]
    words = {word for words in lists + templates for word in words} - set(tables["slots"])
    assert tables["words"] == world.WORDS and words | {"<s>", tables["translate"]} == set(world.WORDS)
    assert {len(lists) for name, lists in tables.items() if name in tables["slots"].values()} == {2}
    assert set(tables["sentences"]) == set(tables["weights"]) > set(tables["told"])
    assert tables["marks"] == [[".", "?", ":", ","], ["。", "？", "：", "，"]]


def test_only_who_puts_something_down_says_the_words_for_it():
    tables = world.tables()
    for language, word in enumerate(tables["put_down"]):
        assert [kind for kind, texts in SENTENCES.items() if word in texts[language].split("|")] == ["drop"]


# Stories against a reader of their own


def parts(words):
    """The people, things and places of a sentence, in English, in the order of the words."""
    words = [ENGLISH.get(word, word) for word in words]
    return tuple([word for word in words if word in lists[0]] for lists in (PEOPLE, OBJECTS, PLACES))


def woman(person):
    return person in ("Mia", "Anna", "Lily", "Zoe")


def subject(words, named):
    """Who does it; a pronoun must fit exactly one of those whom the statement before named."""
    if words[0] in ("she", "he", "她", "他"):
        (person,) = [person for person in named if woman(person) == (words[0] in ("she", "她"))]
        return person
    return parts(words)[0][0]


def heard(words, named):
    """Whom a sentence names, for the pronouns after it; and who does what, for its translation."""
    if {"?", "？"} & set(words):
        return [], None
    people, things, places = parts(words)
    who = subject(words, named)
    others = people if words[0] in ("she", "he", "她", "他") else people[1:]
    return [who, *others], (who, others, things, places)


def claims(words, state, named, before):
    """What a sentence supposes or says of the house as it was before it: pairs (told, true).

    `named` are the people of the statement before, `before` its subject and parts.
    """
    people, things, places = parts(words)
    if words[0] == "⇒":
        return [((people[0], people[1:], things, places), before)]
    if ":" in words or "：" in words:
        if things:
            return [
                (sorted(things), sorted(state.holder)),
                *((p, state.holder[x]) for p, x in zip(people, things, strict=True)),
            ]
        everybody = sorted(thing for thing in state.place if thing in PEOPLE[0])
        return [(sorted(people), everybody), *((a, state.place[p]) for p, a in zip(people, places, strict=True))]
    if {"?", "？"} & set(words):
        if places:
            return [(places[0], state.where((people + things)[0]))]
        return [(people[0], state.holder[things[0]])]
    who = subject(words, named)
    if who not in state.place:
        return [(len(people + places), 2), (len(things), 0)]
    told = [(place, state.place[who]) for place in places[:1]]
    if len(places) == 2:
        return [*told, (places[1] != places[0], True)]
    if {"is picked up by", "拿起了"} & set(words):
        lies = (state.holder.get(things[0], "nobody"), state.place.get(things[0], places[0]))
        return [*told, (("nobody", places[0]), lies), (len(places), 1)]
    told.append((who, state.holder[things[0]]))
    if {"is given by", "交给了"} & set(words):
        return [*told, (state.place[people[-1]], state.place[who]), (people[-1] != who, True)]
    return [*told, (bool({"is put down by", "放下了"} & set(words)), True), (len(places), 1)]


def test_every_story_agrees_with_a_reader_that_does_not_know_the_grammar():
    count = 0
    for story in world.stories(600, LENGTH, seed=21):
        named, before = [], None
        for begin, words in sentences_of(story):
            state = world.state_after(story[:begin])
            for told, true in claims(words, state, named, before):
                assert told == true, f"{decode(story[: begin + len(words)])}: {told} but {true}"
                count += 1
            if words[0] != "⇒":
                named, before = heard(words, named)
    assert count > 10_000


def test_the_reader_reads_a_story_by_hand():
    text = "<s> Mia is in the hall. 汤姆在大厅。球被米娅在大厅拿起了。the ball is given by Mia to Tom. 他从大厅去厨房。"
    text += "⇒ Tom goes from the"
    ids = encode(text)
    state = world.state_after(ids)
    assert state.place == {"Mia": "hall", "Tom": "kitchen"}
    assert state.holder == {"ball": "Tom"}
    assert state.where("ball") == "kitchen" and state.where("Mia") == "hall"
    text += " hall to the kitchen. the ball is put down by Tom in the kitchen. 谁拿着球？"
    later = world.state_after(encode(text))
    assert later.holder == {"ball": "nobody"} and later.where("ball") == "kitchen"
    assert world.next_word_distribution(ids).max() > 0


def test_the_reader_counts_whole_sentences_only():
    whole, begun = (
        encode("<s> Mia is in the hall."),
        encode("<s> Mia is in the hall. Mia goes from the hall to the barn"),
    )
    assert world.state_after(whole) == world.state_after(begun)
    assert world.state_after(encode("<s>")) == world.State()


def test_the_reader_refuses_what_says_nothing():
    with pytest.raises(ValueError, match="this sentence says nothing: '<s> to the .'"):
        world.state_after(encode("<s> to the."))


# Questions


def right_answer(kind, prompt):
    """The word that answers, in English, from the reader's state."""
    named = []
    for _, words in sentences_of(prompt):
        if words[0] != "⇒":
            named, _ = heard(words, named)
    asked = [world.WORDS[i] for i in split(prompt)[-1]]
    state = world.state_after(prompt)
    people, things, _ = parts(asked)
    if kind in ("people", "objects"):
        return state.where(people[-1]) if kind == "people" else state.holder[things[-1]]
    if kind == "who":
        return state.holder[things[0]]
    if kind == "recall":
        return state.where(subject(asked, named))
    return state.where((people + things)[0])


def split(prompt):
    """The sentences of a prompt; the last one is not whole."""
    found = [[]]
    for i in prompt[1:]:
        found[-1].append(int(i))
        if world.WORDS[i] in STOPS:
            found.append([])
    return found


@pytest.mark.parametrize("kind", world.QUESTIONS)
def test_each_question_has_one_answer_and_it_is_right(kind):
    found = world.questions(kind, 60, seed=9)
    assert len(found) == 60 and len({tuple(question.prompt) for question in found}) > 55
    for question in found:
        whole = np.concatenate([question.prompt, question.answer])
        assert question.kind == kind and whole.dtype == np.int64 and len(whole) <= LENGTH
        rows = world.distributions(whole[:-1])[len(question.prompt) - 1 :]
        assert np.allclose(rows[np.arange(len(question.answer)), question.answer], 1, rtol=0, atol=1e-12)
        answer = [world.WORDS[i] for i in question.answer]
        if kind == "translation":
            *_, statement, arrow = split(question.prompt)
            assert decode(arrow) == "⇒" and shape(answer) in {shape_of(text) for text in TRANSLATED}
            assert (answer[-1] == "。") == (world.WORDS[statement[-1]] == ".")
            assert world.state_after([*question.prompt[:-1], *question.answer]) == world.state_after(question.prompt)
        else:
            assert len(answer) == 1 and ENGLISH.get(answer[0], answer[0]) == right_answer(kind, question.prompt)


@pytest.mark.parametrize("kind", world.QUESTIONS)
@pytest.mark.parametrize(("told", "asked"), [("en", "zh"), ("zh", "en"), ("en", "en")])
def test_a_story_in_one_language_can_be_asked_in_the_other(kind, told, asked):
    marks = {"en": set(PHRASES[0]), "zh": set(PHRASES[1])}
    for question in world.questions(kind, 20, seed=2, story=told, asked=asked):
        *sentences, last = split(question.prompt)
        words = [{world.WORDS[i] for i in sentence} for sentence in sentences]
        assert not any(word & marks["zh" if told == "en" else "en"] for word in words if "⇒" not in word)
        if kind == "translation":
            assert (question.answer[-1] == world.WORDS.index("。")) == (told == "en")
        elif len(last) > 1:
            assert {world.WORDS[i] for i in last} & marks[asked]


def test_questions_vary_and_depend_on_the_seed():
    first, again, other = (world.questions("who", 60, seed=seed) for seed in (1, 1, 2))
    assert [q.prompt.tolist() for q in first] == [q.prompt.tolist() for q in again]
    assert [q.prompt.tolist() for q in first] != [q.prompt.tolist() for q in other]
    assert len({int(q.answer[0]) for q in first}) >= 10
    assert min(len(q.prompt) for q in first) < 30 and max(len(q.prompt) for q in first) > 65


@pytest.mark.parametrize("kind", world.QUESTIONS)
def test_short_texts_have_room_for_every_question(kind):
    for question in world.questions(kind, 20, seed=3, length=48):
        assert len(question.prompt) + len(question.answer) <= 48


def test_what_is_no_question_is_refused():
    with pytest.raises(ValueError, match="the kinds where, where object, who, .*; got 'why'"):
        world.questions("why", 1, 0)
    with pytest.raises(ValueError, match="length must be a whole number of at least 48, got 20"):
        world.questions("who", 1, 0, length=20)


def test_a_reader_follows_a_story_as_its_distributions_do():
    story = world.write_story(3, 60)
    reader, rows = world.Reader(), world.distributions(story)
    for place, word in enumerate(story[1:]):
        assert (reader.distribution() == rows[place]).all()
        wrong = int(np.flatnonzero(rows[place] == 0)[0])
        assert not reader.read(wrong)  # and it goes on where it was
        assert reader.read(int(word))
    assert (reader.distribution() == rows[-1]).all()
