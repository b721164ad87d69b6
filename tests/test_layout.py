"""Laying weights out for decoding changes their order in memory and nothing else."""

import copy

import pytest
import torch
from model_builders import KINDS, tiny_model, token_ids
from torch import nn

from minimind_edu.fast.layout import join, lay_out, stack_experts
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

IDS = token_ids(2, 7)


def laid_out(kind="minimind2", by_columns=True, **changes):
    model = tiny_model(kind, **changes)
    lay_out(model, by_columns)
    return model


def tensors_of(weights):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tuple(weights)) if isinstance(leaf, torch.Tensor)]


def places(model, by_columns=True):
    return [tensor.data_ptr() for tensor in tensors_of(lay_out(model, by_columns))]


both_orders = pytest.mark.parametrize("by_columns", [True, False], ids=["by columns", "by rows"])


@both_orders
@pytest.mark.parametrize("kind", KINDS)
def test_laying_out_changes_the_order_in_memory_and_nothing_else(kind, by_columns):
    model, before = laid_out(kind, by_columns), tiny_model(kind)
    expected = before.state_dict()
    assert list(model.state_dict()) == list(expected)
    for name, weight in model.state_dict().items():
        assert weight.shape == expected[name].shape and torch.equal(weight, expected[name])
    torch.testing.assert_close(model(IDS).logits, before(IDS).logits)


@both_orders
@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_are_the_models_own_in_the_order_of_the_step(kind, by_columns):
    model = tiny_model(kind)
    weights = lay_out(model, by_columns)
    owned = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    assert {tensor.untyped_storage().data_ptr() for tensor in tensors_of(weights)} <= owned, "no second copy"
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
        assert all((matrix if by_columns else matrix.t()).is_contiguous() for matrix in joined)


@both_orders
def test_laying_out_twice_moves_nothing(by_columns):
    for kind in KINDS:
        model = tiny_model(kind)
        assert places(model, by_columns) == places(model, by_columns)


def test_rows_again_are_those_of_a_new_model():
    model, new = laid_out(), tiny_model()
    lay_out(model, by_columns=False)
    for name, weight in model.state_dict().items():
        assert weight.stride() == new.state_dict()[name].stride()
    assert torch.equal(model(IDS).logits, new(IDS).logits), "to the last bit"


def test_a_tied_matrix_stays_one():
    model = laid_out()
    assert model.lm_head.weight is model.model.embed_tokens.weight
    separate = laid_out(tie_word_embeddings=False)
    assert separate.model.embed_tokens.weight.is_contiguous(), "only products need columns"


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
    model = tiny_model()
    weights = lay_out(model)
    with torch.no_grad():
        model.model.layers[0].self_attn.k_proj.weight.fill_(7.0)
        model.model.norm.weight.fill_(3.0)
    assert (weights.layers[0].qkv == 7.0).any(0).sum() == len(model.model.layers[0].self_attn.k_proj.weight)
    assert (weights.gain == 3.0).all() and not weights.gain.requires_grad


def test_a_model_laid_out_is_saved_loaded_copied_and_converted_as_any_other(tmp_path):
    model, plain = laid_out(), tiny_model()
    path = save_checkpoint(model, tmp_path / "laid_out.safetensors")
    assert path.stat().st_size == save_checkpoint(plain, tmp_path / "p.safetensors").stat().st_size
    torch.save(model.state_dict(), tmp_path / "laid_out.pth")
    torch.save(plain.state_dict(), tmp_path / "p.pth")
    assert (tmp_path / "laid_out.pth").stat().st_size == pytest.approx((tmp_path / "p.pth").stat().st_size, rel=0.1)
    read = from_checkpoint(path)
    assert torch.equal(read(IDS).logits, plain(IDS).logits)
    twin = copy.deepcopy(model)
    torch.testing.assert_close(twin(IDS).logits, model(IDS).logits)
    with torch.no_grad():
        lay_out(twin).layers[0].qkv.zero_()
    torch.testing.assert_close(model(IDS).logits, plain(IDS).logits)
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


CHANGES = {
    "replaced": lambda it: setattr(it[1], "weight", nn.Parameter(torch.zeros_like(it[1].weight))),
    "a layout of its own": lambda it: setattr(it[1].weight, "data", it[1].weight.data.clone()),
    "exchanged": lambda it: it.insert(1, it.pop(2)),  # the first one stays, and so do the sizes
    "converted": lambda it: [own.to(torch.float32) for own in it],
    "the first one alone": lambda it: setattr(it[0].weight, "data", it[0].weight.data.clone()),
}


@both_orders
@pytest.mark.parametrize("change", CHANGES)
def test_matrices_that_no_longer_lie_together_are_joined_anew(change, by_columns):
    maps = [nn.Linear(5, width, bias=False).double() for width in (4, 4, 4, 2)]
    join(maps, by_columns)
    CHANGES[change](maps)
    expected = torch.cat([own.weight.detach() for own in maps])
    assert torch.equal(join(maps, by_columns).t(), expected)
    assert torch.equal(torch.cat([own.weight for own in maps]), expected)


# Experts


def mixture_of(model):
    return model.model.layers[0].mlp


def test_stacked_experts_hold_every_experts_matrices():
    mixture = mixture_of(tiny_model("minimind2_moe"))
    stacks = stack_experts(mixture)
    assert stacks.router is mixture.gate
    for stack, name in zip(stacks[1:], ("gate_proj", "up_proj", "down_proj"), strict=True):
        expected = [getattr(expert, name).weight for expert in mixture.experts]
        assert torch.equal(stack, torch.stack(expected))
        assert stack.is_contiguous() and not stack.requires_grad


def test_stacking_makes_no_second_copy():
    mixture = mixture_of(tiny_model("minimind2_moe"))
    stacks = stack_experts(mixture)
    with torch.no_grad():
        mixture.experts[2].up_proj.weight.fill_(7.0)
    assert (stacks.up[2] == 7.0).all() and not (stacks.up[1] == 7.0).any()


@pytest.mark.parametrize("part", ["one replaced", "converted", "two exchanged"])
def test_experts_that_no_longer_lie_together_are_stacked_anew(part):
    model = tiny_model("minimind2_moe")
    mixture = mixture_of(model)
    stack_experts(mixture)
    experts = mixture.experts
    if part == "one replaced":
        experts[1].up_proj.weight = nn.Parameter(torch.zeros_like(experts[1].up_proj.weight))
    elif part == "converted":
        model.to(torch.float32)
    else:
        experts[0].up_proj, experts[1].up_proj = experts[1].up_proj, experts[0].up_proj
    assert torch.equal(stack_experts(mixture).up, torch.stack([expert.up_proj.weight for expert in experts]))
