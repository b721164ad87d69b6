"""The thread of two models, in node without a page: what it answers, and what a newer reading ends."""

import base64

import pytest
import torch
from own_models import logits_of, own_model

from minimind_edu.inside.page import STEP, rope_of, store

IDS = [(7 * i) % 61 for i in range(40)]
START = """async ([files, ropes, step]) => {
    const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer;
    globalThis.sent = [];
    globalThis.onmessage = null;
    globalThis.postMessage = (message) => sent.push(structuredClone(message));
    (await import("/inside/beside/worker.js")).default();
    globalThis.say = (data) => onmessage({ data });
    let key = 0;
    globalThis.look = (what, place) => say({ do: "look", key: ++key, what, ...place });
    globalThis.answers = () => sent.splice(0).map(({ did, answer, message }) => (did === "look" ? answer : message));
    await say({ do: "open", buffer: files.map(bytes), rope: ropes, step: bytes(step) });
    return sent.splice(0);
}"""


@pytest.fixture
def models(node, tmp_path):
    """In node: say(message), look(what, place), answers(); returns the two models; only one has scaled RoPE."""
    pair = own_model("minimind3"), own_model("minimind2", use_qk_norm=True)
    files = []
    for model in pair:
        store(model, tmp_path / "weights.safetensors", 32)
        files.append(base64.b64encode((tmp_path / "weights.safetensors").read_bytes()).decode())
    ropes = [rope_of(model.config) for model in pair]
    assert ropes[0] and not ropes[1]
    step = base64.b64encode(STEP.read_bytes()).decode()
    assert node.evaluate(START, [files, ropes, step]) == [{"did": "open", "why": None}]
    return pair


def test_each_row_goes_on_as_its_own_model_and_is_read_by_both(node, models):
    script = """async ([ids, greedy]) => {
        await look("read", { row: 0, ids, known: 37 });
        await look("read", { row: 1, ids: ids.slice(0, 9), known: 0 });
        for (const row of [0, 1]) await look("next", { row, settings: greedy, random: 0.5 });
        return answers();
    }"""
    greedy = {"temperature": 0, "topK": 0, "topP": 1}
    first, second, *tokens = node.evaluate(script, [IDS, greedy])
    assert [one["at"] for one in first] == [37, 38, 39] and [one["at"] for one in second] == list(range(9))
    expected = [logits_of(models[0], IDS)[-1].argmax(), logits_of(models[1], IDS[:9])[-1].argmax()]
    assert tokens == [token.item() for token in expected]
    for told, ids in ((first[-1], IDS), (second[-1], IDS[:9])):
        for which, model in enumerate(models):
            assert told["tops"][which][0][0] == logits_of(model, ids)[-1].argmax().item()


def test_the_same_number_draws_the_token_that_it_falls_on(node, models):
    script = """async ([ids, settings, draws]) => {
        await look("read", { row: 1, ids, known: 0 });
        answers();
        for (const random of draws) await look("next", { row: 1, settings, random });
        return answers();
    }"""
    settings, draws = {"temperature": 1.5, "topK": 0, "topP": 1}, [0.0, 0.3, 0.6, 0.9, 0.99]
    found = node.evaluate(script, [IDS, settings, draws])
    p, order = (logits_of(models[1], IDS)[-1] / 1.5).softmax(-1).sort(descending=True)
    reached = p.cumsum(0)
    assert found == [order[int((reached <= draw).sum())].item() for draw in draws]
    assert len(set(found)) > 2


def test_a_newer_reading_of_a_row_ends_the_older_one_and_not_that_of_the_other(node, models):
    script = """async ([ids, other]) => {
        const readings = [look("read", { row: 0, ids, known: 0 }), look("read", { row: 1, ids, known: 38 }),
                          look("read", { row: 0, ids: other, known: 0 })];
        await Promise.all(readings);
        return sent.splice(0).sort((a, b) => a.key - b.key).map(({ answer }) => answer);
    }"""
    older, beside, newer = node.evaluate(script, [IDS, IDS[3:9]])
    assert older is None and len(beside) == 2 and len(newer) == 6


def test_each_model_is_compared_with_torch_and_a_failure_is_told(node, models):
    top = [[[id, logit] for id, logit in enumerate(logits_of(model, IDS[:9])[-1].tolist())] for model in models]
    script = """async ([ids, tops]) => {
        for (const [which, top] of tops.entries()) await look("check", { which, ids, top });
        await look("read", { row: 0, ids: [1, 99], known: 0 });
        return answers();
    }"""
    *checks, failure = node.evaluate(script, [IDS[:9], top])
    for check, model in zip(checks, models, strict=True):
        assert check["far"] < 1e-3 and check["first"] == logits_of(model, IDS[:9])[-1].argmax().item()
    assert "99" in failure


def test_maps_are_of_the_row_that_was_asked_for(node, models):
    script = """async (ids) => {
        await look("read", { row: 0, ids, known: 99 });
        await look("read", { row: 1, ids: ids.slice(0, 3), known: 99 });
        for (const row of [0, 1]) await look("maps", { row, layer: 1, head: 2 });
        return answers().slice(2);
    }"""
    whole, short = node.evaluate(script, IDS)
    assert [len(bytes) for bytes in whole] == [820, 820] and [len(bytes) for bytes in short] == [6, 6]
    assert short[0] == whole[0][:6] and short[1] == whole[1][:6] and short[0] != short[1]
    assert torch.tensor(short[0][-3:]).div(255).pow(2).sum().item() == pytest.approx(1, abs=0.01)
