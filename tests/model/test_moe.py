"""The router sends each token to its experts, the mixture adds them up, and an even load costs least."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, spread_weights, tensor, tiny_config

from minimind_edu.model.moe import MoEFeedForward, MoEGate, load_balancing_loss

KINDS = ["minimind2_moe", "minimind3_moe"]
seeds = st.integers(0, 10_000)


def mixture(kind="minimind2_moe", seed=0, **changes):
    module = MoEFeedForward(tiny_config(kind, **changes))
    spread_weights(module, seed)
    return module.double().eval()


def gate(**changes):
    module = MoEGate(tiny_config("minimind2_moe", **changes)).double()
    spread_weights(module)
    return module


def mixture_token_by_token(module, x, top_k, renormalize):
    """The definition: for each token the k most probable experts, by name, weighted."""
    result = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for s in range(x.shape[1]):
            token = x[b, s]
            scores = torch.exp(module.gate.weight @ token)
            probabilities = (scores / scores.sum()).tolist()
            chosen = sorted(range(len(probabilities)), key=lambda i: -probabilities[i])[:top_k]
            total = sum(probabilities[i] for i in chosen) if renormalize else 1.0
            for i in chosen:
                result[b, s] += probabilities[i] / total * module.experts[i](token)
            for expert in module.shared_experts:
                result[b, s] += expert(token)
    return result


@PROPERTY
@given(
    top_k=st.integers(1, 4),
    renormalize=st.booleans(),
    shared=st.integers(0, 2),
    batch=st.integers(1, 3),
    length=st.integers(1, 5),
    seed=seeds,
)
def test_the_mixture_is_the_weighted_sum_of_the_chosen_experts(top_k, renormalize, shared, batch, length, seed):
    module = mixture(
        "minimind3_moe", seed, num_experts_per_tok=top_k, norm_topk_prob=renormalize,
        num_shared_experts=shared,
    )  # fmt: skip
    x = tensor(batch, length, 32, seed=seed)
    expected = mixture_token_by_token(module, x, top_k, renormalize)
    torch.testing.assert_close(module(x)[0], expected)


@PROPERTY
@given(st.integers(1, 6), seeds)
def test_with_all_experts_chosen_it_is_the_dense_weighted_sum(num_experts, seed):
    module = mixture("minimind3_moe", seed, num_experts=num_experts, num_experts_per_tok=num_experts)
    x = tensor(2, 3, 32, seed=seed)
    probabilities = (x @ module.gate.weight.T).softmax(-1)
    expected = sum(probabilities[..., i, None] * expert(x) for i, expert in enumerate(module.experts))
    torch.testing.assert_close(module(x)[0], expected)


def test_shared_experts_are_added_with_weight_one():
    module = mixture(num_shared_experts=2)
    x = tensor(2, 3, 32)
    with_shared, _ = module(x)
    shared, module.shared_experts = module.shared_experts, torch.nn.ModuleList()
    without, _ = module(x)
    torch.testing.assert_close(with_shared - without, shared[0](x) + shared[1](x))


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_inference_give_the_same_output(kind):
    module, x = mixture(kind), tensor(2, 5, 32)
    evaluated, _ = module(x)
    trained, _ = module.train()(x)
    assert torch.equal(evaluated, trained)


# What the router says


def test_routing_weights_are_renormalized_probabilities_of_the_largest():
    routed = gate()(tensor(2, 5, 32))
    assert routed.weights.shape == routed.experts.shape == (10, 2)
    torch.testing.assert_close(routed.weights.sum(-1), torch.ones(10, dtype=torch.float64))
    for weights, experts, probabilities in zip(routed.weights, routed.experts, routed.probabilities, strict=True):
        largest = sorted(probabilities.tolist(), reverse=True)[:2]
        assert probabilities[experts].tolist() == largest
        assert weights.tolist() == pytest.approx([p / sum(largest) for p in largest])


def test_routing_weights_without_renormalization_are_the_probabilities():
    routed = gate(norm_topk_prob=False)(tensor(2, 5, 32))
    torch.testing.assert_close(routed.weights, routed.probabilities.gather(1, routed.experts))


def router_gradient(**changes):
    module = mixture("minimind3_moe", **changes)
    module(tensor(2, 5, 32))[0].square().sum().backward()
    return module.gate.weight.grad.norm().item()


def test_one_renormalized_expert_teaches_the_router_nothing():
    """Its weight is 1 whatever the logits, so only the auxiliary loss reaches the router."""
    assert router_gradient(num_experts_per_tok=1, norm_topk_prob=True) < 1e-9
    assert router_gradient(num_experts_per_tok=1, norm_topk_prob=False) > 1e-3
    assert router_gradient(num_experts_per_tok=2, norm_topk_prob=True) > 1e-3


def test_an_expert_that_no_token_chose_gets_a_zero_gradient_in_training():
    module = mixture("minimind3_moe").train()
    module(tensor(1, 1, 32))[0].sum().backward()
    gradients = [expert.down_proj.weight.grad for expert in module.experts]
    assert all(gradient is not None for gradient in gradients)
    assert sum(bool(gradient.any()) for gradient in gradients) == 1


# The auxiliary loss


def loss_counted(probabilities, experts):
    """N * sum over experts of (share of assignments) * (mean probability), by counting, for one group of tokens."""
    tokens, num_experts = probabilities.shape
    assignments = experts.flatten().tolist()
    total = 0.0
    for expert in range(num_experts):
        share = assignments.count(expert) / len(assignments)
        total += share * sum(probabilities[:, expert].tolist()) / tokens
    return num_experts * total


@pytest.mark.parametrize("top_k", [1, 2])
@PROPERTY
@given(batch=st.integers(1, 3), length=st.integers(1, 6), num_experts=st.integers(2, 6), seed=seeds)
def test_auxiliary_loss_equals_a_count_by_hand(top_k, batch, length, num_experts, seed):
    x = tensor(batch, length, 32, seed=seed)
    sizes = {"num_experts": num_experts, "num_experts_per_tok": top_k, "router_aux_loss_coef": 0.3}

    over_batch = gate(seq_aux=False, **sizes)(x)
    expected = 0.3 * loss_counted(over_batch.probabilities, over_batch.experts)
    assert over_batch.aux_loss.item() == pytest.approx(expected)

    by_sequence = gate(seq_aux=True, **sizes)(x)
    sequences = zip(by_sequence.probabilities.split(length), by_sequence.experts.split(length), strict=True)
    expected = 0.3 * sum(loss_counted(*sequence) for sequence in sequences) / batch
    assert by_sequence.aux_loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("top_k", [1, 2, 4])
@pytest.mark.parametrize("num_experts", [4, 8])
def test_an_even_router_pays_exactly_one(num_experts, top_k):
    """Whatever N and k: each expert has the same share and the same probability."""
    probabilities = torch.full((num_experts, num_experts), 1 / num_experts)
    experts = (torch.arange(num_experts)[:, None] + torch.arange(top_k)) % num_experts
    assert load_balancing_loss(probabilities, experts).item() == pytest.approx(1.0)


@pytest.mark.parametrize("num_experts, top_k", [(4, 1), (4, 2), (8, 2)])
def test_a_collapsed_router_pays_experts_per_choice(num_experts, top_k):
    """All tokens go to the same k experts, which share all probability: N / k."""
    experts = torch.arange(top_k).expand(10, top_k)
    probabilities = torch.zeros(10, num_experts)
    probabilities[:, :top_k] = 1 / top_k
    assert load_balancing_loss(probabilities, experts).item() == pytest.approx(num_experts / top_k)


def test_a_router_of_zeros_pays_the_coefficient():
    module = gate(router_aux_loss_coef=0.25)
    with torch.no_grad():
        module.weight.zero_()
    assert module(tensor(2, 5, 32)).aux_loss.item() == pytest.approx(0.25)


def test_balancing_within_sequences_sees_what_the_batch_average_hides():
    """Two sequences, each sent to one expert only: even over the batch, collapsed within each sequence."""
    probabilities = torch.tensor([[[1.0, 0.0]] * 4, [[0.0, 1.0]] * 4])
    experts = torch.tensor([[[0]] * 4, [[1]] * 4])
    assert load_balancing_loss(probabilities, experts).mean().item() == pytest.approx(2.0)
    whole = load_balancing_loss(probabilities.flatten(0, 1), experts.flatten(0, 1))
    assert whole.item() == pytest.approx(1.0)


def test_auxiliary_loss_pulls_an_uneven_router_toward_balance():
    module, x = gate(router_aux_loss_coef=1.0), tensor(4, 16, 32)
    losses = []
    for _ in range(20):
        loss = module(x).aux_loss
        losses.append(loss.item())
        (gradient,) = torch.autograd.grad(loss, module.weight)
        with torch.no_grad():
            module.weight -= 0.1 * gradient
    assert 1.0 < losses[-1] < losses[0] - 0.01


# Dtypes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half_precision_but_the_router_counts_in_float32(kind, dtype):
    module = mixture(kind).to(dtype)
    for mode in (module.eval(), module.train()):
        output, routed = mode(tensor(2, 3, 32, dtype=dtype))
        assert output.dtype == routed.weights.dtype == dtype
        assert routed.probabilities.dtype == routed.aux_loss.dtype == torch.float32


def test_experts_drop_out_in_training_only():
    config = tiny_config("minimind2_moe", dropout=0.5)
    torch.manual_seed(0)
    moe, x = MoEFeedForward(config), torch.randn(2, 8, config.hidden_size)
    rates = [part.dropout.p for part in (*moe.experts, *moe.shared_experts)]
    assert rates == [0.5] * 5
    assert torch.equal(moe.eval()(x)[0], moe(x)[0])
    assert not torch.equal(moe.train()(x)[0], moe(x)[0])
