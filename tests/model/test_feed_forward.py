"""SwiGLU and its plain counterpart are their formulas, position by position."""

import math

import pytest
import torch
from model_builders import spread_weights, tensor

from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.for_comparison import PlainFeedForward


def built(cls, hidden_size=6, intermediate_size=10, seed=0, **options):
    module = cls(hidden_size, intermediate_size, **options)
    spread_weights(module, seed)
    return module.double().eval()


def silu(x):
    return x / (1 + math.exp(-x))


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
