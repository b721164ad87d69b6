"""How far two models are apart on one text is what torch computes from the same two."""

import base64

import pytest
import torch
from own_models import ENGINES, MODELS, own_model

from minimind_edu.inside.page import STEP, rope_of, store
from minimind_edu.trained.living.heads import attention_weights
from minimind_edu.verdicts.same_model import passed

IDS = [(7 * i) % 61 for i in range(21)]  # more than are read at once
CLOSE = 1e-4
OPEN = """async ([files, ropes, module, engine]) => {
    const [live, step, both, compare] = await Promise.all(
        ["web/live/model", "inside/step", "inside/beside/both", "inside/beside/compare"].map(
            (name) => import(`/${name}.js`)));
    const models = [];
    for (const [at, file] of files.entries()) {
        const unpacked = { ...live.unpackWeights(live.bytesOf(file), true), rope: ropes[at] };
        const { model, why } = await step.openModel(unpacked, engine === "step" ? live.bytesOf(module) : null);
        if ((engine === "step") !== (why === null)) throw new Error(why ?? "no reason");
        models.push(model);
    }
    Object.assign(globalThis, compare, { comparison: both.createComparison(models) });
    globalThis.all = (ids, from = 0) => ([...comparison.read(ids)], comparison.toldFrom(from));
}"""


def changed(model, from_block):
    """The model with other weights from one of its blocks on."""
    other = type(model)(model.config).eval()
    other.load_state_dict(model.state_dict())
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for layer in other.model.layers[from_block:]:
            for weight in layer.parameters():
                weight.add_(0.05 * torch.randn(weight.shape, generator=generator))
    return other


def open_pair(node, folder, models, engine="step"):
    files = []
    for model in models:
        store(model, folder / "weights.safetensors", 32)
        files.append(base64.b64encode((folder / "weights.safetensors").read_bytes()).decode())
    ropes = [rope_of(model.config) for model in models]
    node.evaluate(OPEN, [files, ropes, base64.b64encode(STEP.read_bytes()).decode(), engine])


def expected(models, ids):
    """Of each token by torch: how far streams are apart, what moved of heads and of what comes next."""
    ways = [passed(model, torch.tensor([ids])) for model in models]
    depth = min(len(way) for way in ways) - 1
    apart = [((x - y).norm(dim=-1) / x.norm(dim=-1))[0] for x, y in zip(ways[0][:depth], ways[1][:depth], strict=True)]
    maps = [attention_weights(model, torch.tensor([ids])) for model in models]
    shared = min(len(map) for map in maps)
    moved = (maps[0][:shared] - maps[1][:shared]).abs().sum(-1) / 2  # [L, H, S]
    chances = [way[-1][0].softmax(-1) for way in ways]
    return torch.stack(apart, -1), moved.flatten(0, 1).T, (chances[0] - chances[1]).abs().sum(-1) / 2, chances


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("engine", ENGINES)
def test_streams_heads_and_next_tokens_are_as_far_apart_as_by_torch(node, tmp_path, kind, engine):
    model = own_model(kind)
    models = model, changed(model, 1)
    open_pair(node, tmp_path, models, engine)
    told = node.evaluate("all", IDS)
    apart, heads, moved, chances = expected(models, IDS)
    assert [one["at"] for one in told] == list(range(len(IDS)))
    assert heads.max() > 0.05 and moved.max() > 0.05 and apart[:, 2].min() > 0.01
    for name, values in (("apart", apart), ("heads", heads), ("moved", moved)):
        found = torch.tensor([one[name] for one in told])
        torch.testing.assert_close(found, values, rtol=1e-3, atol=CLOSE)
    for which in (0, 1):
        ids, shares = zip(*told[-1]["tops"][which], strict=True)
        likeliest = chances[which][-1].topk(24)
        assert list(ids) == likeliest.indices.tolist()
        torch.testing.assert_close(torch.tensor(shares), likeliest.values, rtol=0, atol=CLOSE)


@pytest.mark.parametrize(("block", "parted"), [(0, 1), (1, 2)])
def test_they_part_in_the_first_block_whose_weights_differ(node, tmp_path, block, parted):
    model = own_model()
    open_pair(node, tmp_path, (model, changed(model, block)))
    script = "(ids) => all(ids).map(({ apart }) => [partedAt(apart, 1e-3), Math.max(...apart.slice(0, 1))])"
    assert node.evaluate(script, IDS) == [[parted, 0]] * len(IDS)
    assert node.evaluate("(ids) => partedAt(all(ids).at(-1).apart, 9)", IDS) is None


def test_a_model_beside_itself_is_nowhere_apart(node, tmp_path):
    open_pair(node, tmp_path, (own_model(), own_model()))
    far = "({ moved, apart, heads }) => Math.max(moved, ...apart, ...heads)"
    found = node.evaluate(f"(ids) => [all(ids).map({far}), movedHeads(all(ids), 5)]", IDS)
    assert found == [[0] * len(IDS), [0] * 8]


def test_the_mean_of_a_head_is_over_the_tokens_that_had_a_choice(node, tmp_path):
    model = own_model()
    models = model, changed(model, 0)
    open_pair(node, tmp_path, models)
    heads = expected(models, IDS)[1]
    for at in (1, 7, len(IDS) - 1):
        found = torch.tensor(node.evaluate("([ids, at]) => movedHeads(all(ids), at)", [IDS, at]))
        torch.testing.assert_close(found, heads[1 : at + 1].mean(0), rtol=1e-3, atol=CLOSE)
    assert node.evaluate("(ids) => movedHeads(all(ids), 0)", IDS) == [0] * 8


def test_a_text_that_changed_is_as_if_read_anew_also_after_one_that_was_ended(node, tmp_path):
    model = own_model()
    models = model, changed(model, 0)
    open_pair(node, tmp_path, models)
    other = [*IDS[:6], *IDS[3:12]]
    script = """([ids, other]) => {
        all(ids);
        for (const _ of comparison.read([9, ...ids, ...ids])) break;
        return [all(other, 2), all(ids.slice(0, 4))];
    }"""
    found = node.evaluate(script, [IDS, other])
    for told, ids, first in ((found[0], other, 2), (found[1], IDS[:4], 0)):
        assert [one["at"] for one in told] == list(range(first, len(ids)))
        apart = expected(models, ids)[0][first:]
        torch.testing.assert_close(torch.tensor([one["apart"] for one in told]), apart, rtol=1e-3, atol=CLOSE)


def test_maps_are_of_both_models_and_logits_of_the_one_that_was_asked_for(node, tmp_path):
    model = own_model()
    models = model, changed(model, 0)
    open_pair(node, tmp_path, models)
    script = "(ids) => (all(ids), [comparison.mapsOf(1, 2), comparison.logitsAt(4, 0), comparison.logitsAt(4, 1)])"
    maps, *logits = node.evaluate(script, IDS)
    T = len(IDS)
    rows, columns = torch.tril_indices(T, T)
    for which, one in enumerate(models):
        weights = attention_weights(one, torch.tensor([IDS]))[1, 2]
        found = (torch.tensor(maps[which]) / 255) ** 2
        torch.testing.assert_close(found, weights[rows, columns], rtol=0, atol=1 / 255)
        asked = passed(one, torch.tensor([IDS]))[-1][0, 4]
        torch.testing.assert_close(torch.tensor(logits[which]), asked, rtol=0, atol=1e-3)


def test_of_models_of_other_shapes_only_what_both_have_is_compared(node, tmp_path):
    wide = own_model(hidden_size=64)
    deep = own_model(num_hidden_layers=3)
    many = own_model(num_attention_heads=8, head_dim=8)
    sizes = {
        "wide": (wide, {"blocks": None, "heads": 2}),
        "deep": (deep, {"blocks": 2, "heads": 2}),
        "many": (many, {"blocks": 2, "heads": 0}),
    }
    for other, common in sizes.values():
        models = own_model(), other
        open_pair(node, tmp_path, models)
        configs = [{name: getattr(one.config, name) for name in
                    ("hidden_size", "num_hidden_layers", "num_attention_heads")} for one in models]  # fmt: skip
        assert node.evaluate("(configs) => comparable(configs)", configs) == common
        told = node.evaluate("all", IDS)[-1]
        assert len(told["apart"]) == (0 if common["blocks"] is None else 3)
        assert len(told["heads"]) == 4 * common["heads"]
        chances = [passed(one, torch.tensor([IDS]))[-1][0, -1].softmax(-1) for one in models]
        assert told["moved"] == pytest.approx((chances[0] - chances[1]).abs().sum().item() / 2, abs=CLOSE)


@pytest.mark.parametrize(
    ("one", "other", "at"),
    [([1, 2, 3], [1, 2, 3], None), ([1, 2, 3], [1, 4, 3], 1), ([1, 2], [1, 2, 3], 2), ([], [], None), ([], [5], 0)],
)
def test_two_answers_part_at_the_first_token_that_differs_or_is_missing(node, one, other, at):
    assert node.call("inside/beside/compare", "partingOf", [one, other]) == at
    assert node.call("inside/beside/compare", "partingOf", [other, one]) == at
