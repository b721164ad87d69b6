"""The kernel answers the views as the worker of a page does: the same numbers, by torch."""

import numpy as np
import pytest
import torch
from own_models import MODELS, load, logits_of, own_model

from minimind_edu.inside.kernel import Kernel

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

    def read(self, ids, silenced=(), run=1, known=0):
        (told, none), (ready, nothing) = self(do="read", run=run, ids=ids, silenced=list(silenced), known=known)
        assert (told["did"], told["run"], ready) == ("read", run, {"did": "ready", "run": run})
        assert none == nothing == []
        return told["told"]

    def look(self, what, kind: type = np.float32, **place):
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
    for layer, head in ((1, 3), (1, 0), (0, 2)):
        expected = logits_of(model, IDS[:9], (1, 1), (layer, head))[8].log_softmax(-1)[4].item()
        assert asked.look("without", at=8, token=4, layer=layer, head=head) == pytest.approx(expected, abs=CLOSE)
    expected = logits_of(model, IDS[2:6], (0, 3))[-1].softmax(-1)
    top = asked.look("beside", ids=IDS[2:6], silenced=["0.3"])
    assert [id for id, _ in top] == expected.topk(24).indices.tolist()
    assert [p for _, p in top] == pytest.approx(expected.topk(24).values.tolist(), abs=CLOSE)
    assert len(asked.kernel.ids) == len(IDS), "the text is as it was"


def test_only_what_is_not_known_is_sent(both):
    asked, _, _ = both
    asked.read(IDS)
    for ids, known, sent in (
        ([*IDS, 1], 10, [9, 10]),
        ([*IDS[:7], 1], 7, [6, 7]),
        (IDS[:5], 5, [4]),
        (IDS, 3, range(2, 10)),
    ):
        told = asked.read(ids, known=known)
        assert [one["at"] for one in told] == list(sent)
        assert_same(told[0], {"at": known - 1, "next": Asked(asked.kernel.model).read(ids)[known - 1]["next"]})


@pytest.fixture
def read_by_blocks(both):
    """Gives how many tokens each block has read since the last time."""
    _, _, model = both
    counts = [0 for _ in model.model.layers]
    for index, layer in enumerate(model.model.layers):

        def count(module, given, index=index):
            counts[index] += given[0].shape[1]

        layer.input_layernorm.register_forward_pre_hook(count)

    def since():
        found = list(counts)
        counts[:] = [0 for _ in counts]
        return found

    return since


def test_a_part_of_a_text_that_was_read_costs_no_second_reading(both, read_by_blocks):
    asked, _, _ = both
    asked.read(IDS, ["0.2"])
    assert read_by_blocks() == [10, 10]
    for what, place in (
        ("lens", {"at": 3}), ("wrote", {"at": 3, "token": 4}), ("neurons", {"at": 3, "layer": 1}),
        ("stream", {"at": 9}), ("maps", {"layer": 0, "from": 0}),
        ("draw", {"at": 9, "settings": {"temperature": 1, "topK": 0, "topP": 1}}),
        ("beside", {"ids": IDS[:4], "silenced": ["0.2"]}),
    ):  # fmt: skip
        assert asked.look(what, **place) is not None
    assert read_by_blocks() == [0, 0]
    asked.look("beside", ids=IDS[:4], silenced=[])
    assert read_by_blocks() == [4, 4]


def test_of_another_text_only_what_differs_is_read(both, read_by_blocks):
    asked, _, model = both
    for ids, keys, count in (
        (IDS, [], [10, 10]), ([*IDS, 1], [], [1, 1]), ([*IDS, 1, 2, 3], [], [2, 2]), ([*IDS[:7], 1], [], [1, 1]),
        (IDS[:5], [], [0, 0]), (IDS[:5], ["1.0"], [0, 5]), ([*IDS[:3], 8, 9], ["1.0"], [2, 2]),
        (IDS[:5], ["0.1", "1.0"], [5, 5]), (IDS, [], [10, 10]), (IDS, ["1.3"], [0, 10]), ([4, *IDS], [], [11, 11]),
    ):  # fmt: skip
        told = asked.read(ids, keys)
        assert read_by_blocks() == count
        silent = [tuple(map(int, key.split("."))) for key in keys]
        expected = logits_of(model, ids, *silent).softmax(-1)
        read_by_blocks()
        for one, p in zip(told, expected, strict=True):
            assert [share for _, share in one["top"]] == pytest.approx(p.topk(24).values.tolist(), abs=CLOSE)
        rows = asked.look("maps", np.uint8, layer=1, **{"from": 0})
        fresh = Asked(model)
        fresh.read(ids, keys)
        again = fresh.look("maps", np.uint8, layer=1, **{"from": 0})
        assert np.abs(rows.astype(int) - again).max() <= 1, "a byte, rounded up or down"
        read_by_blocks()


def test_what_was_read_in_part_is_read_anew(both, monkeypatch):
    asked, _, model = both
    asked.read(IDS)
    last = model.model.layers[1].mlp
    with monkeypatch.context() as broken:
        broken.setattr(last, "forward", lambda x: 1 / 0)
        [(message, _)] = asked(do="read", run=2, ids=[*IDS, 1], silenced=[], known=10)
        assert (message["did"], message["message"]) == ("fail", "division by zero")
    assert asked.read([*IDS, 1]) == Asked(model).read([*IDS, 1])


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
