"""RMSNorm is its formula, and keeps what LayerNorm keeps, too: over the last axis only, in float32 or wider."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, tensor

from minimind_edu.model.for_comparison import LayerNorm
from minimind_edu.model.norms import RMSNorm

HALVES = [torch.float16, torch.bfloat16]

shapes = st.lists(st.integers(1, 5), min_size=0, max_size=3).map(tuple)
widths = st.integers(2, 40)
epsilons = st.sampled_from([1e-6, 1e-5, 1e-2, 1.0])
seeds = st.integers(0, 10_000)


def rms_norm(dim, eps=1e-5, dtype=torch.float64, seed=7):
    norm = RMSNorm(dim, eps).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(tensor(dim, seed=seed) + 2)
    return norm


def layer_norm(dim, eps=1e-5, dtype=torch.float64, seed=7):
    norm = LayerNorm(dim, eps).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(tensor(dim, seed=seed) + 2)
        norm.bias.copy_(tensor(dim, seed=seed + 1))
    return norm


def torch_rms_norm(ours):
    theirs = torch.nn.RMSNorm(ours.weight.shape[0], eps=ours.eps, dtype=ours.weight.dtype)
    theirs.load_state_dict(ours.state_dict())
    return theirs


@PROPERTY
@given(shapes, widths, epsilons, seeds)
def test_rms_norm_equals_torch_rms_norm(leading, dim, eps, seed):
    norm = rms_norm(dim, eps, seed=seed)
    x = 3 * tensor(*leading, dim, seed=seed) + 1
    torch.testing.assert_close(norm(x), torch_rms_norm(norm)(x), rtol=1e-12, atol=1e-12)


@PROPERTY
@given(widths, seeds, st.floats(0.1, 50))
def test_rms_norm_ignores_scale_but_not_a_common_offset(dim, seed, scale):
    norm = rms_norm(dim, eps=1e-14)
    x = tensor(dim, seed=seed)
    torch.testing.assert_close(norm(scale * x), norm(x), rtol=1e-9, atol=1e-9)
    assert not torch.allclose(norm(x + 5), norm(x), atol=1e-3)


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
def test_every_position_is_normalized_by_itself(make):
    norm = make(6)
    x = tensor(2, 3, 6)
    one_by_one = torch.stack([norm(row) for row in x.flatten(0, 1)]).view_as(x)
    torch.testing.assert_close(norm(x), one_by_one, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("input_rms, output_rms", [(1e-3, 0.302), (1e-2, 0.953)])
def test_eps_stands_inside_the_root(input_rms, output_rms):
    # inside: r / sqrt(r² + eps); outside it would be r / (r + eps), which is 0.990 and 0.999 here
    x = torch.tensor([input_rms, -input_rms], dtype=torch.float64)
    norm = RMSNorm(2, eps=1e-5).double()
    assert norm(x).pow(2).mean().sqrt().item() == pytest.approx(output_rms, abs=1e-3)


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
def test_zeros_stay_finite(make):
    assert make(4)(torch.zeros(2, 4, dtype=torch.float64)).isfinite().all()


def test_norm_alone_leaves_out_gain_and_bias():
    x = tensor(3, 8)
    plain = torch.nn.functional.rms_norm(x, (8,), eps=1e-5)
    torch.testing.assert_close(rms_norm(8).norm(x), plain)
    torch.testing.assert_close(layer_norm(8).norm(x), torch.nn.functional.layer_norm(x, (8,), eps=1e-5))


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64])
@pytest.mark.parametrize("gain_dtype", [*HALVES, torch.float32])
def test_result_has_the_dtype_of_the_input(make, dtype, gain_dtype):
    assert make(8, dtype=gain_dtype)(tensor(2, 8).to(dtype)).dtype == dtype


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_rounds_once(make, dtype):
    """The exact result, rounded; casting before the gain is applied would round twice."""
    norm = make(64, dtype=dtype)
    x = tensor(50, 64).to(dtype)
    exact = make(64)
    exact.load_state_dict({name: value.double() for name, value in norm.state_dict().items()})
    rounded = exact(x.double()).to(dtype)
    share_equal = (norm(x) == rounded).double().mean().item()
    assert share_equal > 0.99


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
def test_activations_of_400_do_not_overflow_in_float16(make):
    x = (400 * tensor(4, 64)).half()
    assert x.pow(2).isinf().any(), "the squares must overflow, or this shows nothing"
    expected = make(64)(x.double())
    result = make(64, dtype=torch.float16)(x)
    torch.testing.assert_close(result.double(), expected, rtol=3e-3, atol=3e-3)


def test_gain_starts_at_one_and_bias_at_zero():
    assert RMSNorm(5).weight.tolist() == [1.0] * 5
    assert LayerNorm(5).weight.tolist() == [1.0] * 5
    assert LayerNorm(5).bias.tolist() == [0.0] * 5


def test_gradients_are_right():
    x = tensor(2, 5).requires_grad_()
    assert torch.autograd.gradcheck(rms_norm(5), x)
    assert torch.autograd.gradcheck(layer_norm(5), x)


@pytest.mark.parametrize("name, norm", [("RMSNorm", RMSNorm(8)), ("LayerNorm", LayerNorm(8))])
def test_rejects_a_last_axis_of_another_size(name, norm):
    message = (
        rf"{name}\(8\) normalizes the last axis, which must have 8 channels, got a tensor of shape "
        r"\[2, 8, 1\]; move the channels to the end, or build the norm with dim=1"
    )
    with pytest.raises(ValueError, match=message):
        norm(torch.zeros(2, 8, 1))


@pytest.mark.parametrize("name, norm", [("RMSNorm", RMSNorm(4)), ("LayerNorm", LayerNorm(4))])
def test_rejects_integers_which_it_would_round(name, norm):
    with pytest.raises(ValueError, match=f"{name} divides, so it needs floating-point numbers, got torch.int64"):
        norm(torch.tensor([1, 2, 3, 4]))


@pytest.mark.parametrize("eps", [1e-50, -1e-5, float("nan"), None])
@pytest.mark.parametrize("norm", [RMSNorm, LayerNorm])
def test_rejects_an_eps_that_float32_rounds_away(norm, eps):
    """With an eps of 1e-50 a vector of zeros would become NaN."""
    with pytest.raises(ValueError, match="eps must be"):
        norm(4, eps=eps)
    assert norm(4, eps=1e-37)(torch.zeros(4)).tolist() == [0.0] * 4


def test_shows_its_size_and_eps():
    assert repr(RMSNorm(8, 1e-6)) == "RMSNorm(8, eps=1e-06)"
    assert repr(LayerNorm(8)) == "LayerNorm(8, eps=1e-05)"
