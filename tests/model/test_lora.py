"""lora: two thin matrices beside a frozen one, that begin as nothing and end as one matrix with it."""

import pytest
import torch
from model_builders import tensor
from torch import nn

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.lora import PROJECTIONS, LoRALinear, add_lora, merge_lora
from minimind_edu.model.model import MiniMindForCausalLM

CONFIG = MiniMindConfig(
    vocab_size=40, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
    intermediate_size=40, max_position_embeddings=32, dropout=0.0,
)  # fmt: skip
IDS = torch.arange(20).reshape(2, 10)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return MiniMindForCausalLM(CONFIG).eval()


def trained(model, rank=3, names=PROJECTIONS):
    """LoRA after some training, as far as B tells."""
    parameters = add_lora(model, rank, names)
    with torch.no_grad():
        for i, b in enumerate(parameters[1::2]):
            b.copy_(0.3 * tensor(*b.shape, seed=i))
    return parameters


def test_the_formula():
    linear = nn.Linear(5, 7, bias=False).double()
    lora = LoRALinear(linear, 2, scale=0.5)
    with torch.no_grad():
        lora.B.copy_(tensor(7, 2))
    x = tensor(3, 4, 5)
    expected = x @ (linear.weight + 0.5 * lora.B @ lora.A).T
    torch.testing.assert_close(lora(x), expected)
    assert lora.A.shape == (2, 5) and lora.B.shape == (7, 2)


def test_nothing_changes_before_the_first_step(model):
    before = model(IDS).logits
    add_lora(model, 4)
    assert torch.equal(model(IDS).logits, before)


def test_only_the_thin_matrices_learn_and_b_learns_first(model):
    parameters = add_lora(model, 4)
    model(IDS, labels=IDS).loss.backward()
    assert {id(p) for p in model.parameters() if p.requires_grad} == {id(p) for p in parameters}
    assert all(p.grad is None for name, p in model.named_parameters() if not name.endswith((".A", ".B")))
    assert all(not a.grad.any() for a in parameters[::2]), "B is 0, so nothing reaches A"
    assert all(b.grad.any() for b in parameters[1::2])


def test_the_count_is_rank_times_both_sides(model):
    parameters = add_lora(model, 3, ["q_proj", "down_proj"])
    shapes = [(24, 24), (24, 40)] * 2  # out, in; two blocks
    assert sum(p.numel() for p in parameters) == sum(3 * (out + size) for out, size in shapes)


def test_one_map_can_be_named_alone(model):
    assert len(add_lora(model, 2, ["layers.1.mlp.down_proj"])) == 2
    [name] = [name for name, part in model.named_modules() if isinstance(part, LoRALinear)]
    assert name == "model.layers.1.mlp.down_proj"


def test_merged_equals_unmerged_and_has_the_keys_of_before(model):
    keys, shapes = list(model.state_dict()), [weight.shape for weight in model.state_dict().values()]
    trained(model)
    apart = model(IDS).logits
    assert merge_lora(model) == 14
    torch.testing.assert_close(model(IDS).logits, apart, rtol=1e-5, atol=1e-5)
    assert list(model.state_dict()) == keys
    assert [weight.shape for weight in model.state_dict().values()] == shapes


def test_a_merge_leaves_the_frozen_matrix_alone(model):
    linear = model.model.layers[0].self_attn.q_proj
    before = linear.weight.clone()
    trained(model)
    merge_lora(model)
    assert torch.equal(linear.weight, before)
    assert model.model.layers[0].self_attn.q_proj is not linear


def test_the_change_has_the_rank(model):
    linear = model.model.layers[0].mlp.up_proj
    trained(model, rank=3)
    merge_lora(model)
    change = (model.model.layers[0].mlp.up_proj.weight - linear.weight).double()
    assert (torch.linalg.svdvals(change) > 1e-5).sum() == 3


def test_the_same_numbers_for_a_seed():
    first, again, other = (LoRALinear(nn.Linear(5, 7, bias=False), 2, seed=seed).A for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_a_second_merge_and_a_second_lora_are_refused(model):
    with pytest.raises(ValueError, match="no LoRA to merge"):
        merge_lora(model)
    add_lora(model, 2)
    with pytest.raises(ValueError, match="has a LoRA already"):
        add_lora(model, 2)
    merge_lora(model)
    with pytest.raises(ValueError, match="no LoRA to merge"):
        merge_lora(model)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: LoRALinear(nn.Linear(5, 7, bias=False), 0), "rank must be a whole number from 1 to 5, got 0"),
        (lambda: LoRALinear(nn.Linear(5, 7, bias=False), 6), "rank must be a whole number from 1 to 5, got 6"),
        (lambda: LoRALinear(nn.Linear(5, 7), 2), "got a linear map with a bias"),
        (lambda: LoRALinear(nn.Linear(5, 7, bias=False), 2, scale=float("nan")), "scale must be a finite number"),
        (lambda: add_lora(MiniMindForCausalLM(CONFIG), 2, ["c_attn"]), "has a name that ends in c_attn"),
    ],
)
def test_rejects_what_makes_no_lora(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_each_map_has_an_a_of_its_own(model):
    parameters = add_lora(model, 2, ["q_proj"])
    first, second = parameters[::2]
    assert first.shape == second.shape and not torch.equal(first, second)
