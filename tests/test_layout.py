"""Laying weights out for decoding moves some of them in memory and changes nothing else."""

import copy
import pickle
import weakref

import pytest
import safetensors.torch
import torch
from model_builders import KINDS, tiny_model, token_ids
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from minimind_edu.fast.layout import lay_out
from minimind_edu.fast.rows import Rows
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

IDS = token_ids(2, 7)


def laid_out(kind="minimind2", **changes):
    model = tiny_model(kind, **changes)
    lay_out(model)
    return model


def tensors_of(weights):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tuple(weights)) if isinstance(leaf, torch.Tensor)]


def places(model):
    return [tensor.data_ptr() for tensor in tensors_of(lay_out(model))]


@pytest.mark.parametrize("kind", KINDS)
def test_laying_out_moves_parameters_and_changes_nothing_else(kind):
    model, before = laid_out(kind), tiny_model(kind)
    expected = before.state_dict()
    assert list(model.state_dict()) == list(expected)
    for name, weight in model.state_dict().items():
        assert weight.shape == expected[name].shape and torch.equal(weight, expected[name])
        assert weight.stride() == expected[name].stride() and weight.storage_offset() == 0
        assert weight.untyped_storage().nbytes() == weight.nbytes
    assert torch.equal(model(IDS).logits, before(IDS).logits), "to the last bit"


@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_are_the_models_own_in_the_order_of_the_step(kind):
    model = tiny_model(kind)
    weights = lay_out(model)
    owned = [(it.data_ptr(), it.data_ptr() + it.nbytes) for it in model.parameters()]
    for tensor in tensors_of(weights):
        begin, end = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
        assert sum(b - a for a, b in set(owned) if begin <= a and b <= end) == tensor.nbytes, "no second copy"
    assert torch.equal(weights.output.t(), model.lm_head.weight)
    for layer, block in zip(weights.layers, model.model.layers, strict=True):
        part, mlp = block.self_attn, block.mlp
        names = ("q_proj", "k_proj", "v_proj")
        assert torch.equal(layer.qkv.t(), torch.cat([getattr(part, name).weight for name in names]))
        assert torch.equal(layer.out.t(), part.o_proj.weight)
        networks = mlp.shared_experts if model.config.use_moe else [mlp]
        for network, own in zip(layer.networks, networks, strict=True):
            assert torch.equal(network.gate_up.t(), torch.cat([own.gate_proj.weight, own.up_proj.weight]))
            assert torch.equal(network.down.t(), own.down_proj.weight)
        joined = (layer.qkv, layer.out, *(matrix for network in layer.networks for matrix in network))
        assert all(matrix.t().is_contiguous() and not matrix.requires_grad for matrix in joined)
        if layer.experts is not None:
            assert layer.experts.router is mlp.gate
            for stack, name in zip(layer.experts[1:], ("gate_proj", "up_proj", "down_proj"), strict=True):
                assert torch.equal(stack, torch.stack([getattr(expert, name).weight for expert in mlp.experts]))
                assert stack.is_contiguous() and not stack.requires_grad


def test_for_the_loops_the_same_memory_is_held_as_rows():
    model = tiny_model("minimind2_moe", dtype=torch.float32)
    weights, rows = lay_out(model), lay_out(model, loops=True)
    layer, own = weights.layers[1], rows.layers[1]
    pairs = [(weights.output, rows.output), (layer.qkv, own.qkv), (layer.networks[0].down, own.networks[0].down)]
    for matrix, held in pairs:
        assert isinstance(held, Rows) and held.values.data_ptr() == matrix.data_ptr()
        assert torch.equal(held.values, matrix.t()) and bool(held.scales.eq(1).all())
    assert own.experts.up.data_ptr() == layer.experts.up.data_ptr()


def test_laying_out_again_moves_nothing_whoever_does_it():
    for kind in KINDS:
        model = tiny_model(kind)
        first, addresses = lay_out(model), [it.data_ptr() for it in model.parameters()]
        assert places(model) == [it.data_ptr() for it in tensors_of(first)]
        del first
        lay_out(model)
        assert [it.data_ptr() for it in model.parameters()] == addresses, "also when nobody holds the first one"


def test_joined_memory_is_given_back_when_no_parameter_is_part_of_it():
    model = tiny_model()
    weights = lay_out(model)
    memory = weakref.ref(weights.layers[0].qkv.untyped_storage())
    del weights
    model.model.layers[0].self_attn.q_proj.float()
    model.model.layers[0].self_attn.v_proj.float()
    assert memory() is not None, "the keys are still part of it"
    model.float()
    assert memory() is None


def test_a_tied_matrix_stays_one():
    model = laid_out()
    assert model.lm_head.weight is model.model.embed_tokens.weight
    separate = tiny_model(tie_word_embeddings=False)
    weights = lay_out(separate)
    assert weights.embedding.data_ptr() == separate.model.embed_tokens.weight.data_ptr() != weights.output.data_ptr()


@pytest.mark.parametrize("kind", ["minimind2", "minimind3_moe"])
def test_a_model_laid_out_learns_as_before(kind):
    losses = []
    for model in (tiny_model(kind), laid_out(kind)):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(3):
            out = model.train()(IDS, labels=IDS)
            optimizer.zero_grad()
            out.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        losses.append(out.loss.item())
        assert not torch.equal(model.lm_head.weight, tiny_model(kind).lm_head.weight)
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_what_a_model_learns_is_seen_at_once():
    model = tiny_model("minimind2_moe")
    weights = lay_out(model)
    layer, block = weights.layers[0], model.model.layers[0]
    with torch.no_grad():
        block.self_attn.k_proj.weight.fill_(7.0)
        block.mlp.experts[2].up_proj.weight.fill_(7.0)
        model.model.norm.weight.fill_(3.0)
    assert (layer.qkv == 7.0).any(0).sum() == len(block.self_attn.k_proj.weight)
    assert (layer.experts.up[2] == 7.0).all() and not (layer.experts.up[1] == 7.0).any()
    assert (weights.gain == 3.0).all() and not weights.gain.requires_grad


def assert_same_tensors(one, other):
    tensors, expected = (safetensors.torch.load_file(path) for path in (one, other))
    assert tensors.keys() == expected.keys()
    assert all(torch.equal(tensors[name], it) for name, it in expected.items())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_model_laid_out_is_saved_and_flattened_by_anybody_as_before(kind, tied, tmp_path):
    """By libraries that know nothing of us, which refused parameters by columns, or saved a whole for each piece."""
    model, before = laid_out(kind, tie_word_embeddings=tied), tiny_model(kind, tie_word_embeddings=tied)
    files = {}
    for name, it in (("model", model), ("before", before)):
        safetensors.torch.save_model(it, tmp_path / f"{name}.safetensors")
        if not tied:
            safetensors.torch.save_file(it.state_dict(), tmp_path / f"{name}.state.safetensors")
        torch.save(it.state_dict(), tmp_path / f"{name}.pth")
        torch.save(it.model.layers[0].self_attn.k_proj, tmp_path / f"{name}.part.pth")
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(it))
        save_checkpoint(it, tmp_path / f"{name}.own.safetensors")
        files[name] = {path.name.removeprefix(name): path.stat().st_size for path in tmp_path.glob(f"{name}.*")}
    assert files["model"].keys() == files["before"].keys()
    for suffix, size in files["model"].items():
        assert size == pytest.approx(files["before"][suffix], rel=0.01), suffix
    for suffix in (".safetensors", ".own.safetensors"):
        assert_same_tensors(tmp_path / f"model{suffix}", tmp_path / f"before{suffix}")
    again = pickle.loads((tmp_path / "model.pickle").read_bytes())
    read = from_checkpoint(tmp_path / "model.own.safetensors")
    for it in (again, read):
        assert torch.equal(it(IDS).logits, before(IDS).logits)

    vector = parameters_to_vector(model.parameters())
    assert torch.equal(vector, parameters_to_vector(before.parameters()))
    other = tiny_model(kind, seed=1, tie_word_embeddings=tied)
    vector_to_parameters(parameters_to_vector(other.parameters()), model.parameters())
    assert torch.equal(model(IDS).logits, other(IDS).logits)


@pytest.mark.parametrize("kind", ["minimind2", "minimind3_moe"])
def test_a_model_laid_out_is_exported_as_before(kind, tmp_path):
    from minimind_edu.hf import export

    for name, model in (("model", laid_out(kind)), ("before", tiny_model(kind))):
        export(model, tmp_path / name)
        export(model, tmp_path / f"{name} adapted", adapter=True)
    for kept in ("", " adapted"):
        assert_same_tensors(*(tmp_path / f"{name}{kept}" / "model.safetensors" for name in ("model", "before")))


def test_a_model_laid_out_is_loaded_copied_and_converted_as_any_other():
    model, plain = laid_out(), tiny_model()
    twin = copy.deepcopy(model)
    assert torch.equal(twin(IDS).logits, plain(IDS).logits)
    with torch.no_grad():
        lay_out(twin).layers[0].qkv.zero_()
    assert torch.equal(model(IDS).logits, plain(IDS).logits) and not torch.equal(twin(IDS).logits, plain(IDS).logits)
    single = model.to(torch.float32)(IDS).logits
    torch.testing.assert_close(single.double(), plain(IDS).logits, rtol=0, atol=1e-4)
    model.double()
    where = places(model)
    other = tiny_model(seed=1)
    model.load_state_dict(other.state_dict())
    torch.testing.assert_close(model(IDS).logits, other(IDS).logits)
    assert places(model) == where, "loaded into the same memory"


@pytest.mark.parametrize("kind", ["minimind2", "minimind2_moe"])
def test_weights_laid_out_in_inference_mode_can_still_be_trained(kind):
    model = tiny_model(kind)
    with torch.inference_mode():
        lay_out(model)
    model(IDS, labels=IDS).loss.backward()
    assert model.lm_head.weight.grad is not None


def exchange(maps, one, other):
    maps[one].weight, maps[other].weight = maps[other].weight, maps[one].weight


CHANGES = {
    "replaced": lambda it: setattr(it[1], "weight", nn.Parameter(torch.zeros_like(it[1].weight))),
    "a memory of its own": lambda it: setattr(it[1].weight, "data", it[1].weight.data.clone()),
    "by columns": lambda it: setattr(it[1].weight, "data", it[1].weight.data.t().contiguous().t()),
    "exchanged": lambda it: exchange(it, 1, 2),  # the first one stays, and so do the sizes
    "exchanged with the first": lambda it: exchange(it, 0, 1),
    "converted": lambda it: [own.to(torch.float32) for own in it],
    "the first one alone": lambda it: setattr(it[0].weight, "data", it[0].weight.data.clone()),
    "by columns in the same place": lambda it: setattr(it[0].weight, "data", it[0].weight.data.view(32, 32).t()),
}


@pytest.mark.parametrize("kind", ["minimind2", "minimind2_moe"])
@pytest.mark.parametrize("change", CHANGES)
def test_matrices_that_no_longer_lie_together_are_joined_anew(change, kind):
    model = tiny_model(kind, num_key_value_heads=4, intermediate_size=32)
    part, mlp = model.model.layers[0].self_attn, model.model.layers[0].mlp
    mixture = kind.endswith("moe")
    maps = [it.up_proj for it in mlp.experts] if mixture else [part.q_proj, part.k_proj, part.v_proj]  # [32, 32] each
    lay_out(model)
    CHANGES[change](maps)
    expected = torch.cat([own.weight.detach() for own in maps])
    layer = lay_out(model).layers[0]
    joined = layer.experts.up.flatten(0, 1) if mixture else layer.qkv.t()
    assert torch.equal(joined, expected)
    assert torch.equal(torch.cat([own.weight for own in maps]), expected)
    with torch.no_grad():
        maps[1].weight.fill_(7.0)
    assert (joined[32:64] == 7.0).all() and (joined == 7.0).sum() == 32 * 32


def test_a_single_matrix_that_lies_by_columns_is_laid_by_rows():
    model = tiny_model()
    weight = model.model.layers[0].self_attn.o_proj.weight
    weight.data = weight.data.t().contiguous().t()
    weights = lay_out(model)
    assert torch.equal(weights.layers[0].out.t(), weight) and weight.is_contiguous()
    assert weights.layers[0].out.data_ptr() == weight.data_ptr()
