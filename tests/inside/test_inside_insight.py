"""Who wrote a token is an exact sum, and the neurons are the strongest, by torch's own numbers."""

import pytest
import torch
from own_models import EVERY, load, logits_of, own_model

IDS = [5, 17, 3, 44, 9, 9, 60, 21]


@pytest.fixture(params=EVERY, ids=" by ".join)
def model(request, node, tmp_path):
    kind, engine = request.param
    model = own_model(kind)
    load(node, model, tmp_path, engine)
    script = """() => {
        globalThis.insight = createInsight(unpacked);
        globalThis.traceOf = (ids, keys = []) => model.run(ids, { silenced: new Set(keys) }).traces.at(-1);
    }"""
    node.evaluate(script)
    return model


def sum_of(written):
    return written["embedding"] + sum(sum(block["heads"]) + block["feed"] for block in written["blocks"])


@pytest.mark.parametrize("heads", [[], [(0, 1), (1, 3)]], ids=["all heads", "two are silent"])
@pytest.mark.parametrize("against", [None, 30])
def test_the_pushes_add_up_to_the_logit(node, model, heads, against):
    keys = [f"{layer}.{head}" for layer, head in heads]
    script = """([ids, keys, token, against]) =>
        insight.wrote(traceOf(ids, keys), token, against, new Set(keys))"""
    logits = logits_of(model, IDS, *heads)[-1]
    for token in (4, 57):
        written = node.evaluate(script, [IDS, keys, token, against])
        expected = logits[token] - (logits.mean() if against is None else logits[against])
        assert written["logit"] == pytest.approx(expected.item(), abs=1e-3)
        assert sum_of(written) == pytest.approx(written["logit"], abs=1e-3)
        assert [written["blocks"][layer]["heads"][head] for layer, head in heads] == [0] * len(heads)


@torch.no_grad()
def test_a_push_is_what_a_part_adds_along_the_token(node, model):
    """Each part by itself, not only their sum: what torch's own parts give, projected on the same direction."""
    given = {}
    for layer, block in enumerate(model.model.layers):
        block.self_attn.o_proj.register_forward_pre_hook(
            lambda _, x, layer=layer: given.update({f"heads{layer}": x[0]})
        )
        block.mlp.register_forward_hook(
            lambda _, x, y, layer=layer: given.update({f"feed{layer}": y[0] if isinstance(y, tuple) else y})
        )
    model.model.norm.register_forward_pre_hook(lambda _, x: given.update(final=x[0]))
    model(torch.tensor([IDS]))
    final = given["final"][0, -1]
    scale = (final.pow(2).mean() + model.config.rms_norm_eps).rsqrt()
    direction = (model.lm_head.weight[4] - model.lm_head.weight[30]) * model.model.norm.weight * scale  # [E]
    written = node.evaluate("(ids) => insight.wrote(traceOf(ids), 4, 30)", IDS)
    for layer, (block, found) in enumerate(zip(model.model.layers, written["blocks"], strict=True)):
        back = block.self_attn.o_proj.weight.T @ direction  # [H*D]
        pushes = (given[f"heads{layer}"][0, -1] * back).view(model.config.num_attention_heads, -1).sum(-1)
        torch.testing.assert_close(torch.tensor(found["heads"]), pushes, rtol=0, atol=1e-4)
        feed = given[f"feed{layer}"].view(len(IDS), -1)[-1] @ direction
        assert found["feed"] == pytest.approx(feed.item(), abs=1e-4)
    assert written["embedding"] == pytest.approx(
        (model.model.embed_tokens.weight[IDS[-1]] @ direction).item(), abs=1e-4
    )


@torch.no_grad()
def test_the_strongest_neurons_and_the_tokens_that_they_lift(node, model):
    script = """(ids) => {
        const trace = traceOf(ids);
        const { hidden, experts, route } = trace.blocks[1];
        return [insight.neurons(trace, 1, 4, 3), hidden ?? experts[0].hidden, route?.chosen[0] ?? null];
    }"""
    found, hidden, expert = node.evaluate(script, IDS)
    mlp = model.model.layers[1].mlp
    down = (mlp if expert is None else mlp.experts[expert]).down_proj.weight  # [E, F]
    hidden = torch.tensor(hidden)
    sizes = hidden.abs() * down.norm(dim=0)
    assert (found["count"], found["expert"]) == (len(hidden), expert)
    assert [one["neuron"] for one in found["strongest"]] == sizes.topk(4).indices.tolist()
    for one in found["strongest"]:
        lifted = model.lm_head.weight @ (
            down[:, one["neuron"]] * model.model.norm.weight * hidden[one["neuron"]].sign()
        )
        assert one["tokens"] == lifted.topk(3).indices.tolist()
