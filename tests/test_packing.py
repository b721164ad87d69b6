"""Laying weights out another way changes their order in memory and nothing else."""

import copy

import pytest
import torch
from model_builders import KINDS, tiny_model, token_ids
from torch import nn

from minimind_edu.fast.packing import pack_weights, stack_experts, unpack_weights
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

IDS = token_ids(2, 7)


def matrices(model):
    return {name: part.weight for name, part in model.named_modules() if isinstance(part, nn.Linear)}


def packed(kind="minimind2", **changes):
    model = tiny_model(kind, **changes)
    pack_weights(model)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_packing_changes_the_order_in_memory_and_nothing_else(kind):
    model, before = packed(kind), tiny_model(kind)
    assert all(weight.t().is_contiguous() for weight in matrices(model).values())
    expected = before.state_dict()
    assert list(model.state_dict()) == list(expected)
    for name, weight in model.state_dict().items():
        assert weight.shape == expected[name].shape and torch.equal(weight, expected[name])
    torch.testing.assert_close(model(IDS).logits, before(IDS).logits)


def test_packing_twice_moves_nothing():
    model = packed()
    places = [weight.data_ptr() for weight in matrices(model).values()]
    pack_weights(model)
    assert [weight.data_ptr() for weight in matrices(model).values()] == places


def test_unpacking_gives_the_layout_of_a_new_model_and_then_rests():
    model, new = packed(), tiny_model()
    unpack_weights(model)
    for name, weight in matrices(model).items():
        assert weight.stride() == matrices(new)[name].stride()
    assert torch.equal(model(IDS).logits, new(IDS).logits), "to the last bit"
    places = [weight.data_ptr() for weight in matrices(model).values()]
    unpack_weights(model)
    assert [weight.data_ptr() for weight in matrices(model).values()] == places


def test_a_tied_matrix_stays_one():
    model = packed()
    assert model.lm_head.weight is model.model.embed_tokens.weight
    separate = packed(tie_word_embeddings=False)
    assert separate.model.embed_tokens.weight.is_contiguous(), "only products are packed"


@pytest.mark.parametrize("kind", ["minimind2", "minimind3_moe"])
def test_a_packed_model_learns_as_an_unpacked_one(kind):
    losses = []
    for model in (tiny_model(kind), packed(kind)):
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


def test_a_packed_model_is_saved_loaded_copied_and_converted_as_any_other(tmp_path):
    model, plain = packed(), tiny_model()
    path = save_checkpoint(model, tmp_path / "packed.safetensors")
    assert path.stat().st_size == save_checkpoint(plain, tmp_path / "p.safetensors").stat().st_size
    read = from_checkpoint(path)
    assert torch.equal(read(IDS).logits, plain(IDS).logits)
    assert torch.equal(copy.deepcopy(model)(IDS).logits, model(IDS).logits)
    single = model.to(torch.float32)(IDS).logits
    torch.testing.assert_close(single.double(), plain(IDS).logits, rtol=0, atol=1e-4)
    model.double()
    other = tiny_model(seed=1)
    model.load_state_dict(other.state_dict())
    torch.testing.assert_close(model(IDS).logits, other(IDS).logits)
    assert model.lm_head.weight.t().is_contiguous(), "still packed"


@pytest.mark.parametrize("change", [pack_weights, lambda m: (pack_weights(m), unpack_weights(m))])
def test_weights_laid_out_in_inference_mode_can_still_be_trained(change):
    model = tiny_model()
    with torch.inference_mode():
        change(model)
    model(IDS, labels=IDS).loss.backward()
    assert model.lm_head.weight.grad is not None


# Experts


def experts_of(model):
    return model.model.layers[0].mlp.experts


def test_stacked_experts_hold_every_experts_matrices():
    experts = experts_of(tiny_model("minimind2_moe"))
    stacks = stack_experts(experts)
    for stack, name in zip(stacks, ("gate_proj", "up_proj", "down_proj"), strict=True):
        expected = [getattr(expert, name).weight for expert in experts]
        assert torch.equal(stack, torch.stack(expected))
        assert stack.is_contiguous() and not stack.requires_grad


def test_stacking_makes_no_second_copy_and_moves_only_once():
    model, before = tiny_model("minimind2_moe"), tiny_model("minimind2_moe")
    first, again = stack_experts(experts_of(model)), stack_experts(experts_of(model))
    assert [stack.data_ptr() for stack in first] == [stack.data_ptr() for stack in again]
    with torch.no_grad():
        experts_of(model)[2].up_proj.weight.fill_(7.0)
    assert (first[1][2] == 7.0).all() and not (first[1][1] == 7.0).any()
    assert list(model.state_dict()) == list(before.state_dict())


def test_stacked_experts_learn_are_saved_and_copied(tmp_path):
    model, before = tiny_model("minimind2_moe"), tiny_model("minimind2_moe")
    with torch.inference_mode():
        stack_experts(experts_of(model))
    model(IDS, labels=IDS).loss.backward()
    read = from_checkpoint(save_checkpoint(model, tmp_path / "stacked.safetensors"))
    assert torch.equal(read(IDS).logits, before(IDS).logits)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        stack_experts(experts_of(twin))[0].zero_()
    assert torch.equal(model(IDS).logits, before(IDS).logits), "a copy is a copy"


@pytest.mark.parametrize("part", ["one replaced", "packed", "converted", "two exchanged"], ids=lambda part: part)
def test_experts_that_no_longer_lie_together_are_stacked_anew(part):
    model = tiny_model("minimind2_moe")
    experts = experts_of(model)
    stack_experts(experts)
    if part == "one replaced":
        experts[1].up_proj.weight = nn.Parameter(torch.zeros_like(experts[1].up_proj.weight))
    elif part == "packed":
        pack_weights(model)
    elif part == "converted":
        model.to(torch.float32)
    else:
        experts[0].up_proj, experts[1].up_proj = experts[1].up_proj, experts[0].up_proj
    up = stack_experts(experts)[1]
    assert torch.equal(up, torch.stack([expert.up_proj.weight for expert in experts]))
