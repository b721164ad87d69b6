"""The model's own thread, in node without a page: what it tells of a reading that a newer one ends, and in between."""

import base64

import pytest
from own_models import logits_of, own_model

from minimind_edu.inside.page import STEP, store

IDS = [(7 * i) % 61 for i in range(40)]
START = """async ([weights, step]) => {
    const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer;
    globalThis.sent = [];
    globalThis.onmessage = null;
    globalThis.postMessage = (message) => sent.push(structuredClone(message));
    (await import("/inside/worker.js")).default();
    globalThis.say = (data) => onmessage({ data });
    globalThis.until = async (did, count = 1) => {
        while (sent.filter((one) => one.did === did).length < count) await new Promise((done) => setImmediate(done));
    };
    globalThis.answers = () => sent.filter(({ did }) => did === "look").map(({ key, answer }) => [key, answer]);
    await say({ do: "open", buffer: bytes(weights), rope: null, step: bytes(step) });
    return sent;
}"""


@pytest.fixture
def worker(node, tmp_path):
    """In node: say(message), sent, until(did, count), answers(); returns the model."""
    model = own_model("minimind2")
    store(model, tmp_path / "weights.safetensors", 32)
    given = [base64.b64encode(path.read_bytes()).decode() for path in (tmp_path / "weights.safetensors", STEP)]
    assert node.evaluate(START, given) == [{"did": "open", "why": None}]
    return model


def test_what_a_reading_that_was_ended_has_not_told_the_next_one_tells(node, worker):
    """It may have read more than it told: a page that waited for those in vain would have holes in its text."""
    script = """async (ids) => {
        sent.length = 0;
        const { now } = performance;
        performance.now = () => 0; // no time passes, in which it would tell
        say({ do: "read", run: 1, ids: ids.slice(0, 30), silenced: [], known: 0 });
        await new Promise((done) => setImmediate(done));
        performance.now = now;
        const early = sent.length;
        say({ do: "read", run: 2, ids, silenced: [], known: 0 });
        await until("ready");
        return [early, sent];
    }"""
    early, sent = node.evaluate(script, IDS)
    assert early == 0 and {message["run"] for message in sent} == {2}
    told = [one for message in sent if message["did"] == "read" for one in message["told"]]
    assert [one["at"] for one in told] == list(range(40))
    p = logits_of(worker, IDS).softmax(-1)
    for at, one in enumerate(told[:-1]):
        assert one["next"]["probability"] == pytest.approx(p[at, IDS[at + 1]].item(), abs=1e-4)


def test_of_what_is_known_only_what_follows_it_is_told(node, worker):
    script = """async ([ids, more]) => {
        const found = [];
        let [run, known] = [0, 0];
        for (const text of [ids, more, ids]) {
            sent.length = 0;
            say({ do: "read", run: ++run, ids: text, silenced: [], known: Math.min(known, text.length) });
            await until("ready");
            found.push(sent[0].told);
            known = text.length;
        }
        return found;
    }"""
    first, second, third = node.evaluate(script, [IDS, [*IDS, 5]])
    assert [one["at"] for one in first] == list(range(40)) and first[-1]["next"] is None
    follows = logits_of(worker, IDS)[-1].softmax(-1)[5].item()
    assert set(second[0]) == {"at", "next"} and second[0]["at"] == 39 and set(second[1]) > {"top", "weights"}
    assert second[0]["next"]["probability"] == pytest.approx(follows, abs=1e-4)
    assert third == [{"at": 39, "next": None}]


def test_a_trial_ends_at_once_for_a_new_text_and_for_another_trial_and_others_are_heard(node, worker):
    script = """async (ids) => {
        const trial = (key, head) => say({ do: "look", key, what: "without", at: 39, token: 4, layer: 0, head });
        say({ do: "read", run: 1, ids, silenced: [], known: 0 });
        await until("ready");
        sent.length = 0;
        trial(1, 0);
        say({ do: "look", key: 2, what: "lens", at: 3 });
        await until("look", 2);
        const between = answers().map(([key]) => key);
        trial(3, 1);
        trial(4, 2);
        await until("look", 4);
        trial(5, 3);
        say({ do: "read", run: 2, ids: ids.slice(3), silenced: [], known: 0 });
        await until("look", 5);
        await until("ready");
        return [between, Object.fromEntries(answers())];
    }"""
    between, answers = node.evaluate(script, IDS)
    assert between == [2, 1], "the lens did not wait for the trial"
    for key, head in (("1", 0), ("4", 2)):
        expected = logits_of(worker, IDS, (0, head))[39].log_softmax(-1)[4].item()
        assert answers[key] == pytest.approx(expected, abs=1e-4)
    assert answers["3"] is answers["5"] is None
