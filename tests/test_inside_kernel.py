"""The kernel answers the views as the worker of a page does: the same numbers, by torch."""

import numpy as np
import pytest
import torch
from own_models import MODELS, load, logits_of, own_model

from minimind_edu.figures.inside.kernel import Kernel

IDS = [5, 17, 3, 44, 9, 9, 60, 21, 8, 33]
CLOSE = 2e-4


class Asked:
    """A kernel, and what it has sent."""

    def __init__(self, model):
        self.sent = []
        self.kernel = Kernel(model, lambda message, buffers: self.sent.append((message, buffers)))

    def __call__(self, **message):
        self.sent.clear()
        self.kernel.hear(message)
        return self.sent

    def read(self, ids, silenced=(), run=1):
        (told, none), (ready, nothing) = self(do="read", run=run, ids=ids, silenced=list(silenced))
        assert (told["did"], told["run"], ready) == ("read", run, {"did": "ready", "run": run})
        assert none == nothing == []
        return told["told"]

    def look(self, what, kind=np.float32, **place):
        [(message, buffers)] = self(do="look", key=7, what=what, **place)
        assert (message["did"], message["key"]) == ("look", 7), message
        return np.frombuffer(buffers[0], kind) if buffers else message["answer"]


@pytest.fixture(params=MODELS)
def both(request, node, tmp_path):
    """A kernel, and in node the reading of the same model."""
    model = own_model(request.param)
    load(node, model, tmp_path)
    node.evaluate("() => { globalThis.reading = createReading(model); globalThis.insight = createInsight(unpacked); }")
    return Asked(model), node, model


def assert_same(found, expected):
    """Numbers closely, all else exactly."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_same(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=CLOSE, rel=CLOSE)
    else:
        assert found == expected


@pytest.mark.parametrize("silenced", [[], ["0.1", "1.3"], ["1.feed"]])
def test_it_tells_what_the_worker_tells(both, silenced):
    asked, node, model = both
    H = model.config.num_attention_heads
    told = asked.read(IDS, silenced)
    maps = [asked.look("maps", np.uint8, layer=layer, **{"from": 0}).astype(int) for layer in range(2)]
    script = """([ids, keys]) => (read(reading, ids, keys), ids.map((_, at) => {
        const { weights, routes, ...told } = reading.tell(at, ids[at + 1]);
        return [told, routes.map((one) => one && { probabilities: one.probabilities, chosen: one.chosen }), weights];
    }))"""
    for at, (expected, routes, bytes_) in enumerate(node.evaluate(script, [IDS, silenced])):
        found = dict(told[at])
        assert_same(found.pop("routes"), routes)
        assert_same(found, expected)
        size, start = H * (at + 1), H * at * (at + 1) // 2
        for block, row in zip(maps, bytes_, strict=True):
            assert np.abs(block[start : start + size] - row).max() <= 1, "a byte, rounded up or down"
    assert {len(one) for one in maps} == {H * len(IDS) * (len(IDS) + 1) // 2}
    later = asked.look("maps", np.uint8, layer=1, **{"from": 7})
    assert (later == maps[1][-len(later) :]).all() and len(later) == H * (8 + 9 + 10)


def test_it_answers_what_the_worker_answers(both):
    asked, node, _ = both
    asked.read(IDS, ["0.2"])
    script = """([ids, at]) => {
        read(reading, ids, ["0.2"]);
        const trace = reading.traceAt(at);
        const { streams, middles } = reading.keptAt(at);
        return [reading.lens(at, 3), insight.wrote(trace, 4, null, new Set(["0.2"])), insight.wrote(trace, 4, 9),
            insight.neurons(trace, 1), [...streams, ...middles].flatMap((one) => [...one])];
    }"""
    lens, wrote, against, neurons, streams = node.evaluate(script, [IDS, 6])
    assert_same(asked.look("lens", at=6), lens)
    assert_same(asked.look("wrote", at=6, token=4, against=None), wrote)
    found = asked.look("wrote", at=6, token=4, against=9)
    assert found["logit"] == pytest.approx(against["logit"], abs=CLOSE)
    found = asked.look("neurons", at=6, layer=1)
    sizes = [one.pop("size") for one in neurons["strongest"]]
    assert sizes == sorted(sizes, reverse=True)
    assert_same(found, neurons)
    np.testing.assert_allclose(asked.look("stream", at=6), streams, rtol=1e-4, atol=1e-4)
    together = found_sum(asked.look("wrote", at=6, token=4, against=None))
    assert together == pytest.approx(wrote["logit"], abs=1e-3)


def found_sum(written):
    return written["embedding"] + sum(sum(block["heads"]) + block["feed"] for block in written["blocks"])


def test_a_trial_and_another_text_are_as_torch_with_a_hook(both):
    asked, _, model = both
    asked.read(IDS, ["1.1"])
    found = [message for message, _ in asked(do="trial", run=3, at=8, token=4)]
    heads = [(one["layer"], one["head"]) for one in found]
    assert heads == [(layer, head) for layer in (1, 0) for head in range(4) if (layer, head) != (1, 1)]
    for one in found:
        expected = logits_of(model, IDS[:9], (1, 1), (one["layer"], one["head"]))[8].log_softmax(-1)[4].item()
        assert (one["did"], one["run"]) == ("trial", 3) and one["without"] == pytest.approx(expected, abs=CLOSE)
    expected = logits_of(model, IDS[2:6], (0, 3))[-1].softmax(-1)
    top = asked.look("beside", ids=IDS[2:6], silenced=["0.3"])
    assert [id for id, _ in top] == expected.topk(24).indices.tolist()
    assert [p for _, p in top] == pytest.approx(expected.topk(24).values.tolist(), abs=CLOSE)
    assert len(asked.kernel.ids) == len(IDS), "the text is as it was"


def test_only_what_changed_is_sent(both):
    asked, _, _ = both
    asked.read(IDS)
    for ids, silenced, sent in (
        ([*IDS, 1], [], [9, 10]), ([*IDS[:7], 1], [], [6, 7]), (IDS[:5], [], [4]), (IDS[:5], ["1.0"], [0, 1, 2, 3, 4])
    ):  # fmt: skip
        assert [one["at"] for one in asked.read(ids, silenced)] == sent


def test_a_draw_is_of_the_likely_ones_and_what_fails_is_told(both):
    asked, _, model = both
    asked.read(IDS)
    likely = logits_of(model, IDS)[-1].topk(2).indices.tolist()
    drawn = {asked.look("draw", at=9, settings={"temperature": 2, "topK": 2, "topP": 1}) for _ in range(20)}
    assert drawn <= set(likely)
    assert asked.look("lens", at=10) is None, "a text that was taken back"
    [(message, _)] = asked(do="look", key=3, what="lens", at="x")
    assert (message["did"], message["key"]) == ("fail", 3)


def test_the_model_is_left_as_it_was(both):
    asked, _, model = both
    before = logits_of(model, IDS)
    asked.read(IDS, ["0.1", "1.feed"])
    torch.testing.assert_close(logits_of(model, IDS), before, rtol=0, atol=0)
