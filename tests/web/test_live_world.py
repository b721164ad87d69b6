"""The world in a page is the world of the package: the same words, distributions, states and refusals."""

import numpy as np
import pytest

from minimind_edu import world
from minimind_edu.world import decode, encode

LENGTH = 96
WORLD = """async (tables) => {
    const { createWorld } = await import("/web/live/world.js");
    const { seededRandom } = await import("/web/live/sampling.js");
    Object.assign(globalThis, { world: createWorld(tables), seededRandom });
}"""


@pytest.fixture(scope="module")
def live(node):
    """Node with `world`."""
    node.evaluate(WORLD, world.tables())
    return node


@pytest.fixture(scope="module")
def batch():
    """Stories [102, 96] in both languages, in English, in Chinese."""
    return np.concatenate([world.stories(34, LENGTH, seed, names) for seed, names in enumerate(("en zh", "en", "zh"))])


def distributions(live, stories):
    """Of each story: the rows [at most T, V], and where it is broken."""
    found = live.evaluate("(all) => all.map(world.distributions)", [np.asarray(story).tolist() for story in stories])
    return [(np.reshape(one["rows"], (-1, len(world.WORDS))), one["brokenAt"]) for one in found]


def test_the_words_are_those_of_the_package(live):
    assert live.evaluate("world.words") == world.WORDS


def test_text_and_ids_turn_into_each_other_as_in_python(live, batch):
    texts = [decode(story) for story in batch] + ["", " where is  Mia ?", "Mia⇒米娅 在 大厅 。 她从大厅去厨房。\n"]
    assert live.evaluate("(all) => all.map((text) => world.encode(text))", texts) == [encode(t).tolist() for t in texts]
    stories = [*batch.tolist(), [], [1], [0, 1, 46], [2, 1, 2], encode("where is the where is to the to").tolist()]
    assert live.evaluate("(all) => all.map((ids) => world.decode(ids))", stories) == [decode(ids) for ids in stories]


@pytest.mark.parametrize("text", ["Mia is in the tower.", "Mia is in the halls.", "米娅在天空。", "Mia!", "<s> mia"])
def test_what_is_no_word_is_named_as_in_python(live, text):
    word = live.evaluate("(text) => { try { world.encode(text); } catch (error) { return error.word; } }", text)
    with pytest.raises(ValueError, match=f"'{word}' is no word of this world"):
        encode(text)


def test_the_distributions_are_those_of_python(live, batch):
    for story, (rows, broken) in zip(batch, distributions(live, batch), strict=True):
        assert broken is None
        np.testing.assert_allclose(rows, world.distributions(story), rtol=0, atol=1e-12)


def test_a_story_breaks_where_python_refuses_it(live, batch):
    """In each story one word, anywhere, is replaced by any other."""
    generator = np.random.default_rng(0)
    changed = batch[::2].copy()
    rows = np.arange(len(changed))
    changed[rows, generator.integers(0, LENGTH, len(rows))] = generator.integers(0, 88, len(rows))
    found = distributions(live, [*changed, [], [2, 29, 23, 42], [0, 88], [0, -1]])
    assert [broken for _, broken in found[-4:]] == [None, 0, 1, 1]
    assert [len(rows) for rows, _ in found[-4:]] == [0, 0, 1, 1]
    for story, (rows, broken) in zip(changed, found, strict=False):
        end = LENGTH if broken is None else broken
        assert len(rows) == end
        if end:
            np.testing.assert_allclose(rows, world.distributions(story[:end]), rtol=0, atol=1e-12)
        if broken is not None:
            with pytest.raises(ValueError, match="cannot follow|begins with <s>"):
                world.distributions(story[: broken + 1])
    assert sum(broken is not None for _, broken in found) > 30


def test_the_words_that_may_follow_are_those_of_positive_probability(live, batch):
    for story in batch[::20]:
        expected = np.flatnonzero(world.next_word_distribution(story[:31])).tolist()
        assert live.evaluate("(ids) => world.nextWords(ids)", story[:31].tolist()) == expected
    assert live.evaluate("[world.nextWords([]), world.nextWords([0, 29]), world.nextWords([5])]") == [[0], [], []]


def test_a_word_that_cannot_follow_leaves_the_reader_as_it_was(live, batch):
    same = """(ids) => {
        const [reader, other] = [world.reader(), world.reader()];
        return ids.every((id) => {
            const strange = reader.next().findIndex((share) => share === 0);
            const refused = !reader.push(strange) && !reader.push(88);
            const read = reader.push(id) && other.push(id) && reader.length === other.length;
            return refused && read && String(reader.next()) === String(other.next());
        });
    }"""
    assert all(live.evaluate(same, story.tolist()) for story in batch[::20])


@pytest.mark.parametrize(("languages", "read"), [("en zh", None), ("en", 0), ("zh", 1)])
def test_what_is_written_in_the_page_is_possible_in_python(live, languages, read):
    write = (
        "([count, languages]) => Array.from({ length: count }, (_, i) => world.write(seededRandom(i), 96, languages))"
    )
    stories = live.evaluate(write, [40, languages])
    assert {len(story) for story in stories} == {LENGTH} and len({tuple(story) for story in stories}) == 40
    surprise = []
    for story in stories:
        rows = world.distributions(story)[:-1]
        after = rows[np.arange(LENGTH - 1), story[1:]]
        surprise.append((-np.log(after) + (rows * np.log(np.where(rows > 0, rows, 1))).sum(-1)).mean())
    if read is None:  # the words are as surprising as they should be
        assert abs(np.mean(surprise)) < 4 * np.std(surprise) / len(surprise) ** 0.5
    else:
        asked = {encode(text)[0] for text in ("where is", "who has the", "在哪里", "谁拿着")}
        spoken = {encode(text)[0] for text in (("where is", "who has the"), ("在哪里", "谁拿着"))[read]}
        assert asked & set(np.ravel(stories)) == spoken


def test_who_is_where_and_holds_what_is_what_python_reads(live, batch):
    prefixes = [story[:end].tolist() for story in batch for end in (1, 23, 60, LENGTH)]
    for ids, found in zip(prefixes, live.evaluate("(all) => all.map(world.stateAfter)", prefixes), strict=True):
        state = world.state_after(ids)
        known = {thing: state.where(thing) for thing in (*state.place, *state.holder)}
        assert found == {"place": state.place, "holder": state.holder, "where": known}


def test_a_state_can_be_read_from_what_leaves_the_world(live):
    """A page shows what somebody composed, or a model wrote: a sentence that says nothing must not stop it."""
    text = "<s> Mia is in the hall. the ball is picked up by Tom in the barn. is in the. is put down by the ball. "
    text += "Mia to. Leo"
    assert live.evaluate("(text) => world.stateAfter(world.encode(text))", text) == {
        "place": {"Mia": "hall"}, "holder": {"ball": "Tom"}, "where": {"Mia": "hall"},
    }  # fmt: skip


def test_a_word_more_costs_its_own_part_only(live, batch):
    """Counted in sentences, which are the same number on every machine: none is listed twice."""
    count = """async (ids) => {
        const reader = world.reader();
        reader.push(0);
        const House = reader.house.constructor, list = House.prototype.sentences;
        let lists = 0;
        House.prototype.sentences = function () { lists += 1; return list.call(this); };
        ids.slice(1).forEach((id) => reader.push(id));
        House.prototype.sentences = list;
        return lists;
    }"""
    stops = {encode(text)[0] for text in (".", "。")}
    for story in batch[::40]:
        assert live.evaluate(count, story.tolist()) == sum(word in stops for word in story.tolist())


def test_a_story_is_read_in_no_time(live, batch):
    took = "(all) => all.map((ids) => { const t = performance.now(); world.distributions(ids);"
    times = live.evaluate(took + " return performance.now() - t; })", batch[:40].tolist())
    assert np.median(times) < 100  # milliseconds
