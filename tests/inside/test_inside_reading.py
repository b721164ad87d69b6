"""What the page keeps of a text is what torch computes, however the text became what it is."""

import random

import pytest
import torch
from own_models import EVERY, load, logits_of, own_model

from minimind_edu.trained.living.heads import attention_weights

CLOSE = 1e-4
IDS = [5, 17, 3, 44, 9, 9, 60, 21, 8, 33, 2, 50]
LOGITS = "Array.from({ length: reading.size() }, (_, at) => reading.logitsAt(at))"


@pytest.fixture(params=EVERY, ids=" by ".join)
def model(request, node, tmp_path):
    kind, engine = request.param
    model = own_model(kind)
    load(node, model, tmp_path, engine)
    node.evaluate("() => { globalThis.reading = createReading(model); }")
    return model


def test_logits_weights_and_lens_are_torchs(node, model):
    L = model.config.num_hidden_layers
    script = f"""(ids) => {{
        const read_ = read(reading, ids);
        return [read_, {LOGITS}, ids.map((_, at) => reading.lens(at, 3)), ids.map((_, at) => reading.tell(at).weights)];
    }}"""
    read, logits, lens, weights = node.evaluate(script, IDS)
    assert read == list(range(len(IDS)))
    expected = logits_of(model, IDS)
    torch.testing.assert_close(torch.tensor(logits), expected, rtol=0, atol=CLOSE)
    maps = attention_weights(model, torch.tensor([IDS]))  # [L, H, S, S]
    for at, blocks in enumerate(weights):
        rows = torch.tensor(blocks).view(L, -1, at + 1)
        torch.testing.assert_close((rows / 255) ** 2, maps[:, :, at, : at + 1], rtol=0, atol=1 / 255)
    likeliest = expected.softmax(-1).topk(3)
    for at, blocks in enumerate(lens):
        ids, shares = zip(*blocks[-1], strict=True)
        assert list(ids) == likeliest.indices[at].tolist()
        torch.testing.assert_close(torch.tensor(shares), likeliest.values[at], rtol=0, atol=CLOSE)


def test_a_silent_head_is_what_a_hook_makes_of_it(node, model):
    read = node.evaluate("(ids) => read(reading, ids)", IDS)
    for heads in ([(1, 2)], [(0, 0), (1, 3)], []):
        keys = [f"{layer}.{head}" for layer, head in heads]
        again, logits = node.evaluate(f"([ids, keys]) => [read(reading, ids, keys), {LOGITS}]", [IDS, keys])
        assert again == read
        torch.testing.assert_close(torch.tensor(logits), logits_of(model, IDS, *heads), rtol=0, atol=CLOSE)


def test_a_text_that_changed_step_by_step_is_as_if_read_anew(node, model):
    """Words appended, replaced and taken back, heads silenced and brought back, readings ended in the middle."""
    source = random.Random(1)
    ids, keys = IDS[:4], []
    script = f"""([ids, keys, most]) => {{
        let count = 0;
        for (const _ of reading.become(ids, new Set(keys))) if (++count === most) break;
        return [count, reading.size(), {LOGITS}];
    }}"""
    for _ in range(25):
        change = source.randrange(4)
        if change == 0 and len(ids) < 30:
            ids = [*ids, source.randrange(61)]
        elif change == 1:
            ids = [*ids[: source.randrange(1, len(ids) + 1)], *source.choices(range(61), k=2)]
        elif change == 2:
            keys = [f"{source.randrange(2)}.{source.randrange(4)}"] if source.random() < 0.7 else []
        most = source.choice([1, 3, 1000])
        count, size, logits = node.evaluate(script, [ids, keys, most])
        heads = [tuple(map(int, key.split("."))) for key in keys]
        assert count <= most and (most < 1000 or size == len(ids))
        torch.testing.assert_close(torch.tensor(logits), logits_of(model, ids, *heads)[:size], rtol=0, atol=CLOSE)


def test_a_reading_that_was_ended_goes_on_where_it_was(node, model):
    """Of a head that fell silent: what was not read again yet is not taken for what is."""
    script = f"""([ids, keys]) => {{
        read(reading, ids);
        for (const _ of reading.become(ids, new Set(keys))) break;
        return [read(reading, ids, keys), {LOGITS}];
    }}"""
    again, logits = node.evaluate(script, [IDS, ["1.0"]])
    assert again == list(range(1, len(IDS)))
    torch.testing.assert_close(torch.tensor(logits), logits_of(model, IDS, (1, 0)), rtol=0, atol=CLOSE)


def test_only_what_differs_is_read(node, model):
    script = "(steps) => steps.map(([ids, keys]) => read(reading, ids, keys))"
    steps = [[IDS, []], [[*IDS, 1], []], [[*IDS[:7], 1], []], [IDS[:5], []], [IDS[:5], ["1.0"]]]
    found = node.evaluate(script, steps)
    assert found == [list(range(12)), [12], [7], [], list(range(5))]


def test_what_is_told_of_a_position(node, model):
    node.evaluate("(ids) => read(reading, ids)", IDS)
    told = node.evaluate("([at, next]) => reading.tell(at, next)", [6, IDS[7]])
    p = logits_of(model, IDS)[6].softmax(-1)
    assert told["at"] == 6 and [id for id, _ in told["top"]] == p.topk(24).indices.tolist()
    assert told["entropy"] == pytest.approx(-(p * p.log()).sum().item(), abs=1e-3)
    expected = {"id": IDS[7], "probability": p[IDS[7]].item(), "rank": 1 + int((p > p[IDS[7]]).sum())}
    assert told["next"] == pytest.approx(expected, abs=1e-4)
    assert node.evaluate("() => reading.tell(11).next") is None
    assert [route is not None for route in told["routes"]] == [model.config.use_moe] * 2


def test_a_position_can_be_opened_again(node, model):
    script = """([ids, keys]) => {
        read(reading, ids, keys);
        const whole = model.run(ids, { silenced: new Set(keys) }).traces;
        const far = (a, b) => Math.max(...a.map((x, i) => Math.abs(x - b[i])));
        return ids.map((_, at) => {
            const trace = reading.traceAt(at);
            return Math.max(...trace.blocks.map((block, l) => far(block.output, whole[at].blocks[l].output)));
        });
    }"""
    assert max(node.evaluate(script, [IDS, ["0.1"]])) == 0


def test_an_opened_position_is_opened_anew_in_another_text(node, model):
    """And where a head has fallen silent: what was opened there before is of something else."""
    script = """([ids, other]) => {
        const opened = () => Array.from(reading.traceAt(4).final);
        const found = [];
        for (const [some, silenced] of [[ids, []], [other, []], [other, ["0.0"]]]) {
            read(reading, some, silenced);
            found.push([opened(), Array.from(reading.keptAt(4).streams.at(-1))]);
        }
        return found;
    }"""
    found = node.evaluate(script, [IDS, [1, 2, *IDS[2:]]])
    for opened, kept in found:
        torch.testing.assert_close(torch.tensor(opened), torch.tensor(kept), rtol=0, atol=CLOSE)
    assert len({str(kept) for _, kept in found}) == 3


def test_another_text_is_read_beside(node, model):
    script = """([ids, other, keys]) => {
        read(reading, ids);
        return [reading.beside(other, new Set(keys)), reading.logitsAt(ids.length - 1)];
    }"""
    beside, own = node.evaluate(script, [IDS, IDS[3:8], ["0.2"]])
    torch.testing.assert_close(torch.tensor(beside), logits_of(model, IDS[3:8], (0, 2))[-1], rtol=0, atol=CLOSE)
    torch.testing.assert_close(torch.tensor(own), logits_of(model, IDS)[-1], rtol=0, atol=CLOSE)


def test_a_trial_tells_what_is_lost_without_each_head(node, model):
    script = """([ids, at, token, keys, heads]) => (read(reading, ids, keys), heads.map(([layer, head]) => {
        const steps = reading.without(at, token, layer, head);
        reading.beside(ids.slice(2)); // somebody else is heard meanwhile
        for (;;) {
            const { done, value } = steps.next();
            if (done) return value;
            reading.beside(ids.slice(3));
        }
    }))"""
    ids = IDS + IDS  # more than are read at once
    heads = [(1, 0), (1, 3), (0, 2)]
    for found, head in zip(node.evaluate(script, [ids, 20, 4, ["1.1"], heads]), heads, strict=True):
        expected = logits_of(model, ids[:21], (1, 1), head)[20].log_softmax(-1)[4].item()
        assert found == pytest.approx(expected, abs=CLOSE)
    logits = node.evaluate(f"() => {LOGITS}")
    torch.testing.assert_close(torch.tensor(logits), logits_of(model, ids, (1, 1)), rtol=0, atol=CLOSE)


def test_a_trial_lets_others_be_heard_after_every_few_tokens(node, model):
    script = "(ids) => (read(reading, ids), [[...reading.without(30, 4, 0, 1)].length, model.atOnce ?? 1])"
    steps, at_once = node.evaluate(script, IDS * 3)
    assert steps == -(-31 // at_once) > 1


def test_a_token_more_asks_the_last_matrix_once(node, model):
    """What was expected of it is in what was told of the token before it."""
    script = """(ids) => {
        read(reading, ids);
        reading.tell(ids.length - 1);
        let count = 0;
        const [whole, rest] = [model.read, model];
        rest.read = (stream) => (count++, whole(stream));
        const expected = reading.following(ids.length - 1, 7);
        read(reading, [...ids, 7]);
        const told = [reading.tell(ids.length), reading.tell(ids.length - 1, 7).next];
        rest.read = whole;
        return [count, expected, told[1]];
    }"""
    count, expected, again = node.evaluate(script, IDS)
    assert count == 2 and expected == again, "the second is the one before the last, asked about anew"
