"""The training loop: it repeats itself, follows its schedule, learns, and says what is wrong when it cannot."""

import itertools
import math

import pytest
import torch
from model_builders import tiny_config, tiny_model

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.training import Recipe, adamw, initialize, train

SHORT = Recipe(steps=12, learning_rate=1e-2, warmup=3)


def batches(seed=0):
    """Sequences [4, 10] that count up from anywhere: what comes next is certain."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randint(0, 61, (4, 1), generator=generator).add(torch.arange(10)).remainder(61)


def new(seed=0, **changes):
    return initialize(MiniMindForCausalLM(tiny_config(initializer_range=0.2, **changes)), seed)


def parameters(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_the_same_seeds_give_the_same_losses_and_weights():
    runs = []
    for _ in range(2):
        model = new()
        runs.append((train(model, batches(), SHORT), parameters(model)))
    assert runs[0][0] == runs[1][0]
    assert torch.equal(runs[0][1], runs[1][1])
    assert train(new(), batches(1), SHORT) != runs[0][0], "other batches"
    assert train(new(1), batches(), SHORT) != runs[0][0], "other weights"


def test_threads_of_the_machine_do_not_matter_and_come_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    try:
        train(new(), batches(), Recipe(steps=1), lambda step, loss: seen.append(torch.get_num_threads()))
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(before)


def test_the_losses_are_those_of_the_batches_before_each_step():
    """No step at rate 0 changes anything, so that the losses are the model's."""
    model, seen = new(), []
    losses = train(model, batches(), Recipe(steps=3, learning_rate=0.0), lambda step, loss: seen.append((step, loss)))
    expected = [model(ids, labels=ids).loss.item() for ids in itertools.islice(batches(), 3)]
    assert losses == pytest.approx(expected, rel=1e-5)
    assert seen == list(enumerate(losses))


def test_the_rate_rises_and_falls():
    recipe = Recipe(steps=1000, learning_rate=2.0, warmup=10, last=0.1)
    rates = [recipe.rate(step) for step in range(1001)]
    assert rates[0] == pytest.approx(0.2)
    assert rates[4] == pytest.approx(1.0, rel=1e-3)
    assert max(rates) == rates[9] == pytest.approx(2.0, rel=1e-3)
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert rates[500] == pytest.approx(1.1)
    assert rates[1000] == pytest.approx(0.2)


def test_without_warmup_it_begins_at_the_top():
    assert Recipe(steps=10, learning_rate=3.0, warmup=0).rate(0) == 3.0


def test_every_step_is_taken_at_its_rate(monkeypatch):
    rates = []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW,
        "step",
        lambda self, *args: (rates.append([group["lr"] for group in self.param_groups]), step(self, *args))[1],
    )
    train(new(), batches(), SHORT)
    assert rates == [[SHORT.rate(step)] * 2 for step in range(12)]


def test_long_gradients_are_scaled_down(monkeypatch):
    norms = []
    step = torch.optim.AdamW.step

    def spy(self, *args):
        gradients = [parameter.grad for group in self.param_groups for parameter in group["params"]]
        norms.append(torch.cat([gradient.flatten() for gradient in gradients]).norm().item())
        return step(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    train(new(), batches(), Recipe(steps=2, clip=1e-3))
    assert norms == pytest.approx([1e-3] * 2, rel=1e-2)
    train(new(), batches(), Recipe(steps=1, clip=1e6))
    assert norms[-1] > 0.1, "a short one stays as it is"


def test_a_step_learns_from_its_own_batch_alone(monkeypatch):
    model, gradients = new(), []
    step = torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW,
        "step",
        lambda self, *args: (gradients.append(model.lm_head.weight.grad.clone()), step(self, *args))[1],
    )
    train(model, batches(), Recipe(steps=3, learning_rate=0.0, clip=1e6))
    last = list(itertools.islice(batches(), 3))[-1]
    [expected] = torch.autograd.grad(model(last, labels=last).loss, model.lm_head.weight)
    torch.testing.assert_close(gradients[-1], expected)


def test_matrices_alone_decay():
    model = tiny_model(dtype=torch.float32)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = adamw(model, Recipe(learning_rate=0.5, weight_decay=0.1))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        factor = 0.95 if parameter.dim() == 2 else 1.0
        torch.testing.assert_close(parameter.detach(), factor * before[name], msg=name)


def test_a_tied_matrix_is_trained_once_and_stays_tied():
    model = new()
    held = [id(parameter) for group in adamw(model, SHORT).param_groups for parameter in group["params"]]
    assert len(held) == len(set(held)) == len(list(model.parameters()))
    before = model.lm_head.weight.detach().clone()
    train(model, batches(), SHORT)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert not torch.equal(model.lm_head.weight, before)


def test_new_weights_have_their_spread_and_gains_are_1():
    model = initialize(tiny_model(dtype=torch.float32, initializer_range=0.3), 5)
    matrices = torch.cat([parameter.detach().flatten() for parameter in model.parameters() if parameter.dim() == 2])
    assert matrices.std() == pytest.approx(0.3, rel=0.05)
    assert matrices.mean() == pytest.approx(0, abs=0.02)
    assert all((parameter == 1).all() for parameter in model.parameters() if parameter.dim() == 1)


def test_the_balancing_loss_is_learned_too(monkeypatch):
    """Its gradient reaches the router even where the loss of the words has none."""
    model = initialize(MiniMindForCausalLM(tiny_config("minimind3_moe", router_aux_loss_coef=10.0)), 0)
    gradients, step = [], torch.optim.AdamW.step
    router = model.model.layers[0].mlp.gate.weight
    monkeypatch.setattr(
        torch.optim.AdamW, "step", lambda self, *args: (gradients.append(router.grad.clone()), step(self, *args))[1]
    )
    train(model, batches(), Recipe(steps=1, learning_rate=0.0, clip=1e6))
    [ids] = itertools.islice(batches(), 1)
    out = model.train()(ids, labels=ids)
    [expected] = torch.autograd.grad(out.loss + out.aux_loss, router, retain_graph=True)
    torch.testing.assert_close(gradients[0], expected)
    assert not torch.allclose(torch.autograd.grad(out.loss, router)[0], expected, rtol=0.1)


def test_both_averages_forget_as_the_recipe_says():
    optimizer = adamw(new(), Recipe(betas=(0.8, 0.9)))
    assert [group["betas"] for group in optimizer.param_groups] == [(0.8, 0.9)] * 2


@pytest.mark.parametrize("kind", ["minimind2", "minimind3_moe"])
def test_the_loss_falls(kind):
    model = initialize(MiniMindForCausalLM(tiny_config(kind, initializer_range=0.2)), 0)
    losses = train(model, batches(), Recipe(steps=80, learning_rate=1e-2, warmup=10))
    assert sum(losses[-10:]) / 10 < 0.5 * losses[0]
    assert not model.training


# What cannot go on


def test_batches_that_end_too_soon_are_told():
    model = new()
    with pytest.raises(ValueError, match="the batches ended after 5 of 12 steps; give more, or fewer steps"):
        train(model, itertools.islice(batches(), 5), SHORT)
    assert not model.training


def test_float16_is_refused_before_its_weights_become_nan():
    """AdamW adds 1e-8 to what it divides by; float16 rounds that to 0, and a word that did not occur gets 0 / 0."""
    model = new().half()
    with pytest.raises(ValueError, match="float16 cannot be trained: .* train in float32, .* convert afterwards"):
        train(model, batches(), SHORT)
    assert parameters(model).isfinite().all()


def test_bfloat16_can_be_trained():
    model = new().bfloat16()
    assert all(map(math.isfinite, train(model, batches(), SHORT)))
    assert parameters(model).isfinite().all()


def test_a_loss_that_is_no_number_is_told_before_it_spoils_the_weights():
    model = new()
    with torch.no_grad():
        model.model.norm.weight.fill_(float("inf"))
    kept = [parameter.detach().clone() for parameter in model.parameters()]
    with pytest.raises(ValueError, match="the loss of step 0 is (nan|inf): a smaller learning_rate or clip may help"):
        train(model, batches(), SHORT)
    assert all(map(torch.equal, model.parameters(), kept))


REFUSED = {
    "no steps": ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
    "half a step": ({"steps": 1.5}, "steps must be a whole number"),
    "warm-up below 0": ({"warmup": -1}, "warmup must be a whole number of at least 0"),
    "rate below 0": ({"learning_rate": -1e-3}, "learning_rate must be at least 0, got -0.001"),
    "rate that is no number": ({"learning_rate": float("nan")}, "learning_rate must be a finite number"),
    "more than all is left": ({"last": 1.5}, "last must be at least 0 and at most 1, got 1.5; it is a fraction"),
    "weights that grow": ({"weight_decay": -0.1}, "weight_decay must be at least 0"),
    "nothing passes the clip": ({"clip": 0}, "clip must be above 0, got 0"),
    "an average over no end": ({"betas": (0.9, 1.0)}, "betas must be at least 0 and below 1, got 1.0"),
    "one beta": ({"betas": (0.9,)}, r"betas must be a pair, .* got \(0.9,\)"),
    "a number as betas": ({"betas": 0.9}, "betas must be a pair, .* got 0.9"),
    "betas in words": ({"betas": ("a", "b")}, "betas must be a finite number, got 'a'"),
}


@pytest.mark.parametrize("changes, message", REFUSED.values(), ids=REFUSED)
def test_a_recipe_out_of_range_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**changes)
