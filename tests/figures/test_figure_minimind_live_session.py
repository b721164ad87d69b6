"""The session of the living page: after whatever a reader does, it holds what the model says of the story as it is."""

import random
from contextlib import ExitStack

import pytest
import torch

from minimind_edu import world
from minimind_edu.model.sampling import Sampling
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.heads import silenced
from minimind_edu.web.living_model import payload

MODULE = "figures/minimind_live/session"
BEGIN = """async ([file, tables]) => {
    const load = (name) => import(`/${name}.js`);
    const [live, { createWorld }, { createSession }] = await Promise.all(
        ["web/live/model", "web/live/world", "figures/minimind_live/session"].map(load));
    const unpacked = live.unpackWeights(live.bytesOf(file));
    const model = live.createLiveModel(unpacked);
    let steps = 0;
    const counted = { ...model, step: (...given) => (steps++, model.step(...given)) };
    globalThis.begin = (ids) => {
        globalThis.changes = 0;
        globalThis.session = createSession({ world: createWorld(tables), tables }, ids, () => changes++);
    };
    globalThis.attach = () => session.attach(counted, unpacked.tensors);
    globalThis.act = ([name, ...given]) => {
        steps = changes = 0;
        session[name](...given);
        const { ids, selected, written, silenced, brokenAt, canUndo, zoom, traces, cache } = session;
        return { ids, selected, written: [...written], silenced: [...silenced], brokenAt, canUndo, zoom, steps, changes,
            logits: traces.map((trace) => trace.logits), cached: cache?.length };
    };
}"""


@pytest.fixture
def session(node):
    """A function that does one thing in a session of one short story, and tells the session as it is then."""
    node.evaluate(BEGIN, [payload()["weights"], world.tables()])
    node.evaluate("([ids]) => begin(ids)", [story()])
    node.evaluate("attach()")
    return lambda *action: node.evaluate("(action) => act(action)", action)


def story(length=23, seed=0):
    return world.stories(1, length, seed, "en zh")[0].tolist()


@torch.no_grad()
def logits_of(ids, heads=()):
    model = living_model()
    with ExitStack() as stack:
        for key in heads:
            stack.enter_context(silenced(model, *map(int, key.split("."))))
        return model(torch.tensor([ids])).logits[0]


def broken_at(ids):
    """The first word that cannot follow, or None."""
    for end in range(1, len(ids) + 1):
        try:
            world.distributions(ids[:end])
        except ValueError:
            return end - 1
    return None


def some_action(chance, now):
    """What a reader may do next, and the story, the silenced heads and the written words that follow from it."""
    ids, heads = now["ids"], set(now["silenced"])
    word, at = chance.randrange(1, 88), chance.randrange(1, len(ids))
    name = chance.choice(("append", "replace", "silenceSome", "load", "next"))
    if name == "append":
        return (name, word), [*ids, word], heads
    if name == "next":
        return (name,), None, heads
    if name == "replace":
        return (name, at, word), [*ids[:at], word, *ids[at + 1 :]], heads
    if name == "load":
        other = story(chance.randrange(5, 20), chance.randrange(100))
        return (name, other), other, heads
    key = f"{chance.randrange(4)}.{chance.randrange(4)}"
    return (name, [key], key not in heads), ids, heads ^ {key}


def test_after_any_actions_the_traces_are_those_of_the_story_and_undo_leads_back(session):
    chance, seen = random.Random(0), [session("select", 1000)]
    for _ in range(24):
        action, ids, heads = some_action(chance, seen[-1])
        now = session(*action)
        assert now["ids"] == (ids or [*seen[-1]["ids"], now["ids"][-1]]) and set(now["silenced"]) == heads, action
        assert (len(now["ids"]) - 1 in now["written"]) or action[0] != "next"
        found, expected = torch.tensor(now["logits"]), logits_of(now["ids"], heads)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-3, msg=str(action))
        assert now["cached"] == len(now["ids"]) and now["brokenAt"] == broken_at(now["ids"]) and now["canUndo"]
        assert now["changes"] == 1
        seen.append(now)
    for before in reversed(seen[:-1]):
        now = session("undo")
        for name in ("ids", "selected", "written", "brokenAt"):
            assert now[name] == before[name]
        assert set(now["silenced"]) == set(before["silenced"])
    assert not now["canUndo"] and session("undo")["changes"] == 0


def test_only_what_differs_is_read_again(session):
    ids = story()
    assert session("append", 5)["steps"] == 1
    assert session("replace", 20, 7)["steps"] == 4
    assert session("undo")["steps"] == 4 and session("undo")["steps"] == 0
    assert session("load", [*ids[:10], 3, 4])["steps"] == 2
    assert session("silenceSome", ["1.2"], True)["steps"] == 12
    assert session("silenceSome", ["1.2"], True)["changes"] == 0
    assert session("select", 3)["steps"] == 0


def test_an_answer_takes_the_place_after_the_selected_word(session):
    ids = story()
    session("select", 4)
    assert session("answer", 9)["ids"] == [*ids[:5], 9, *ids[6:]]
    assert session("select", -3)["selected"] == 0 and session("select", 99)["selected"] == len(ids) - 1
    assert session("answer", 9)["ids"][len(ids) :] == [9]


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.5, "topK": 5}, {"temperature": 2, "topP": 0.6}], ids=str)
def test_what_comes_after_a_position_is_the_models_the_drawn_and_the_worlds(session, node, settings):
    session("set", {"settings": {"temperature": 1, "topK": 0, "topP": 1} | settings})
    names = {"temperature": "temperature", "topK": "top_k", "topP": "top_p"}
    knobs = {names[name]: value for name, value in settings.items()}
    expected = logits_of(story())
    for at in (0, 7, 22):
        found = node.evaluate("([at]) => session.after(at)", [at])
        shares = (expected[at] / knobs.get("temperature", 1)).softmax(-1)
        torch.testing.assert_close(torch.tensor(found["model"]), shares, rtol=0, atol=1e-4)
        drawn = Sampling(do_sample=True, **knobs).probabilities(expected[at : at + 1], torch.zeros(1, 88).bool())[0]
        torch.testing.assert_close(torch.tensor(found["drawn"], dtype=torch.float32), drawn, rtol=0, atol=1e-4)
        assert found["exact"] == pytest.approx(world.next_word_distribution(story()[: at + 1]).tolist(), abs=1e-12)


def test_the_models_own_word_is_drawn_with_the_settings(session, node):
    session("set", {"settings": {"temperature": 0, "topK": 0, "topP": 1}})
    now = session("next")
    assert now["ids"][-1] == logits_of(story())[-1].argmax() and now["written"] == [len(story())]
    assert session("replace", len(story()), 3)["written"] == [], "the reader's word now"


def test_a_part_is_toggled_and_closed_by_itself_alone(session):
    head = {"part": "head", "layer": 1, "head": 2}
    assert session("toggle", head)["zoom"] == head
    assert session("toggle", head | {"head": 3})["zoom"] == head | {"head": 3}
    assert session("toggle", head | {"head": 3})["zoom"] is None


def test_several_heads_fall_silent_at_once_and_come_back_at_once(session):
    assert session("silenceSome", ["0.0", "1.2"], True)["silenced"] == ["0.0", "1.2"]
    assert session("silenceSome", ["0.0", "1.2", "3.3"], False)["silenced"] == []
    assert session("undo")["silenced"] == ["0.0", "1.2"] and session("undo")["silenced"] == []


def test_playing_writes_until_it_is_stopped_or_taken_back(session, node):
    node.evaluate("() => { globalThis.ticks = []; globalThis.setInterval = (tick) => ticks.push(tick); }")
    node.evaluate("() => { globalThis.clearInterval = (timer) => timer && ticks.splice(timer - 1, 1); }")
    session("play")
    now = node.evaluate("() => (ticks.forEach((tick) => tick()), [session.isPlaying, session.ids.length])")
    assert now == [True, len(story()) + 1]
    assert session("undo")["ids"] == story() and not node.evaluate("session.isPlaying || ticks.length")
    session("load", story(96) + story(95))
    session("play")
    node.evaluate("() => [...ticks, ...ticks].forEach((tick) => tick())")
    assert not node.evaluate("session.isPlaying"), "the story is full"
    assert session("stop")["changes"] == 0


def test_before_the_model_is_there_the_world_alone_is_known(node):
    node.evaluate(BEGIN, [payload()["weights"], world.tables()])
    node.evaluate("([ids]) => begin(ids)", [story()])
    found = node.evaluate("session.after()")
    assert found["model"] is found["drawn"] is None and sum(found["exact"]) == pytest.approx(1)
    assert node.evaluate("act(['next'])")["ids"] == story(), "nobody is there to write"
    now = node.evaluate("act(['append', 7])")
    assert now["ids"] == [*story(), 7] and now["logits"] == []
    node.evaluate("attach()")
    assert len(node.evaluate("session.traces.map((trace) => trace.position)")) == len(story()) + 1


def test_a_story_ends_and_what_was_done_is_forgotten_after_a_hundred_actions(session):
    most = 2 * 96
    session("load", story(96) + story(96))
    assert len(session("append", 3)["ids"]) == most
    session("load", story(5))
    for at in range(110):
        now = session("silenceSome", ["0.0"], at % 2 == 0)
    taken = 0
    while now["canUndo"]:
        now, taken = session("undo"), taken + 1
    assert taken == 100


def test_the_largest_come_first(node):
    assert node.call(MODULE, "descending", [[0.1, 3, -1, 3]]) == [1, 3, 0, 2]
