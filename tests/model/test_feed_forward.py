"""SwiGLU and its plain counterpart are their formulas, position by position."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, spread_weights, tensor

from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.for_comparison import PlainFeedForward


def built(cls, hidden_size=6, intermediate_size=10, seed=0, **options):
    module = cls(hidden_size, intermediate_size, **options)
    spread_weights(module, seed)
    return module.double().eval()


def silu(x):
    return x / (1 + math.exp(-x))


@PROPERTY
@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 10_000))
def test_swiglu_is_the_gated_sum_over_its_units(hidden_size, width, seed):
    module = built(FeedForward, hidden_size, width, seed=seed)
    x = tensor(hidden_size, seed=seed + 1)
    gate, up, down = (getattr(module, name).weight.detach() for name in ("gate_proj", "up_proj", "down_proj"))
    expected = sum(silu(float(gate[unit] @ x)) * float(up[unit] @ x) * down[:, unit] for unit in range(width))
    torch.testing.assert_close(module(x), expected)


@pytest.mark.parametrize("cls", [FeedForward, PlainFeedForward])
def test_every_position_is_changed_by_itself(cls):
    module, x = built(cls), tensor(2, 3, 6)
    one_by_one = torch.stack([module(row) for row in x.flatten(0, 1)]).view_as(x)
    torch.testing.assert_close(module(x), one_by_one)


def test_there_are_three_matrices_and_no_biases():
    shapes = {name: tuple(p.shape) for name, p in FeedForward(6, 10).named_parameters()}
    assert shapes == {"gate_proj.weight": (10, 6), "up_proj.weight": (10, 6), "down_proj.weight": (6, 10)}


@pytest.mark.parametrize("cls", [FeedForward, PlainFeedForward])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half_precision(cls, dtype):
    assert built(cls).to(dtype)(tensor(2, 3, 6, dtype=dtype)).dtype == dtype


def test_dropout_acts_on_the_output_in_training_only():
    module, x = built(FeedForward, dropout=0.5), tensor(20, 6)
    assert torch.equal(module(x), module(x))
    expected = module(x)
    module.train()
    torch.manual_seed(0)
    dropped = module(x)
    kept = dropped != 0
    assert 0.2 < kept.double().mean() < 0.8
    torch.testing.assert_close(dropped[kept], 2 * expected[kept])
