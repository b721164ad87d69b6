"""Checks on norms: every usual wrong answer is rejected, with the hint that leads out of it.

The wrong answers are written as a learner would write them, not with the helpers that the checks use to name them.
"""

import pytest
import torch
from torch import nn

from minimind_edu.checks import (
    check_layer_norm,
    check_norm_weights,
    check_rms_norm,
    check_rms_norm_gradient,
    check_steady_std,
)
from minimind_edu.config import MiniMindConfig
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.norms import RMSNorm


def rms_norm(x, weight, eps):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = (wide * wide).sum(-1, keepdim=True) / x.shape[-1]
    return (weight * (wide / (mean_square + eps) ** 0.5)).to(x.dtype)


def layer_norm(x, weight, bias, eps):
    return nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def norm_weights(config):
    with torch.device("meta"):
        model = MiniMindForCausalLM(config)
    return sum(part.weight.numel() for part in model.modules() if isinstance(part, RMSNorm))


def steady_std(fan_in):
    return nn.init.calculate_gain("relu") / fan_in**0.5


def rms_norm_gradient(x, weight, eps, grad_output):
    x = x.requires_grad_()
    return torch.autograd.grad(nn.functional.rms_norm(x, x.shape[-1:], weight, eps), x, grad_output)[0]


def in_place(x, weight, eps):
    x *= torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return weight * x


def cast_before_gain(x, weight, eps):
    return weight * rms_norm(x, torch.ones_like(weight), eps)


RMS_NORM = {
    "mean subtracted": (lambda x, w, e: layer_norm(x, w, None, e), "that is LayerNorm"),
    "std": (lambda x, w, e: w * x / (x.std(-1, keepdim=True, unbiased=False) ** 2 + e).sqrt(), "standard deviation"),
    "std, n - 1": (lambda x, w, e: w * x / (x.var(-1, keepdim=True) + e).sqrt(), "n - 1"),
    "sum": (lambda x, w, e: w * x / ((x**2).sum(-1, keepdim=True) + e).sqrt(), "sum of the squares"),
    "no root": (lambda x, w, e: w * x / ((x**2).mean(-1, keepdim=True) + e), "take its root"),
    "times the root": (lambda x, w, e: w * x * ((x**2).mean(-1, keepdim=True) + e).sqrt(), "divide by it"),
    "absolute values": (lambda x, w, e: w * x / (x.abs().mean(-1, keepdim=True) + e), "absolute"),
    "gain squared": (lambda x, w, e: w * rms_norm(x, w, e), "applied twice"),
    "no gain": (lambda x, w, e: rms_norm(x, torch.ones_like(w), e), "gain is missing"),
    "one plus gain": (lambda x, w, e: rms_norm(x, w + 1, e), "1 + weight"),
    "eps outside": (lambda x, w, e: w * x / ((x**2).mean(-1, keepdim=True).sqrt() + e), "outside the root"),
    "no eps": (lambda x, w, e: w * x / (x**2).mean(-1, keepdim=True).sqrt(), "eps is missing"),
    "no keepdim": (lambda x, w, e: w * x / ((x**2).mean(-1) + e).sqrt(), "keepdim=True is missing"),
    "mean over all": (lambda x, w, e: w * x / ((x**2).mean() + e).sqrt(), "all axes"),
    "mean over batch": (lambda x, w, e: w * x / ((x**2).mean(0, keepdim=True) + e).sqrt(), "last axis"),
    "mean over positions": (lambda x, w, e: w * x / ((x**2).mean(1, keepdim=True) + e).sqrt(), "last axis"),
    "in place": (in_place, "writes into x"),
    "no float32": (lambda x, w, e: (w * x / ((x**2).mean(-1, keepdim=True) + e).sqrt()).to(x.dtype), "widen first"),
    "float32 out": (lambda x, w, e: w.double() * rms_norm(x.double(), torch.ones_like(w), e), "whole product"),
    "cast before gain": (cast_before_gain, "whole product"),
    "everything cast before gain": (lambda x, w, e: cast_before_gain(x, w.to(x.dtype), e), "rounded twice"),
}

LAYER_NORM = {
    "n - 1": (
        lambda x, w, b, e: w * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + e).sqrt() + b,
        "n - 1",
    ),
    "std, n - 1, eps outside": (
        lambda x, w, b, e: w * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + e) + b,
        "n - 1",
    ),
    "not centered": (lambda x, w, b, e: rms_norm(x, w, e) + b, "mean is still in it"),
    "RMS before centering": (
        lambda x, w, b, e: w * (x - x.mean(-1, keepdim=True)) / ((x**2).mean(-1, keepdim=True) + e).sqrt() + b,
        "before centering",
    ),
    "x divided by std": (
        lambda x, w, b, e: w * x / (x.var(-1, keepdim=True, unbiased=False) + e).sqrt() + b,
        "divide the centered vector",
    ),
    "no root": (
        lambda x, w, b, e: w * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + e) + b,
        "take its root",
    ),
    "no bias": (lambda x, w, b, e: layer_norm(x, w, None, e), "bias is missing"),
    "bias before gain": (lambda x, w, b, e: w * layer_norm(x, None, b, e), "bias is multiplied"),
    "no gain": (lambda x, w, b, e: layer_norm(x, None, b, e), "gain is missing"),
    "gain squared": (lambda x, w, b, e: layer_norm(x, w * w, b, e), "applied twice"),
    "eps outside": (
        lambda x, w, b, e: w * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + e) + b,
        "outside the root",
    ),
    "no eps": (lambda x, w, b, e: layer_norm(x, w, b, 0.0), "eps is missing"),
    "no keepdim": (
        lambda x, w, b, e: w * (x - x.mean(-1)) / (((x - x.mean(-1)) ** 2).mean(-1) + e).sqrt() + b,
        "keepdim=True is missing",
    ),
    "mean over all": (lambda x, w, b, e: w * (x - x.mean()) / (x.var(unbiased=False) + e).sqrt() + b, "all axes"),
    "mean over batch": (
        lambda x, w, b, e: w * (x - x.mean(0)) / (x.var(0, unbiased=False) + e).sqrt() + b,
        "batch normalization",
    ),
}


def blocks_and_final(config):
    return config.hidden_size * (2 * config.num_hidden_layers + 1)


def with_qk(config, width):
    return blocks_and_final(config) + (config.num_hidden_layers * width if config.use_qk_norm else 0)


NORM_WEIGHTS = {
    "no final norm": (lambda c: norm_weights(c) - c.hidden_size, "final one"),
    "with biases": (lambda c: 2 * norm_weights(c), "bias"),
    "one norm in a block": (lambda c: norm_weights(c) - c.num_hidden_layers * c.hidden_size, "there are two"),
    "number of norms": (lambda c: 2 * c.num_hidden_layers + 1, "one weight for every channel"),
    "no norms on q and k": (blocks_and_final, "queries and keys are missing"),
    "q and k as wide as the stream": (lambda c: with_qk(c, 2 * c.hidden_size), "head_dim wide, not"),
    "a gain for every head": (
        lambda c: with_qk(c, (c.num_attention_heads + c.num_key_value_heads) * c.head_dim),
        "share one gain",
    ),
    "only one of q and k": (lambda c: with_qk(c, c.head_dim), "one of q_norm and k_norm"),
    "q and k without the switch": (
        lambda c: blocks_and_final(c) + c.num_hidden_layers * 2 * c.head_dim,
        "use_qk_norm is False",
    ),
}

STEADY_STD = {
    "no ReLU": (lambda n: n**-0.5, "half of the mean square"),
    "variance": (lambda n: 2 / n, "that is the variance"),
    "2 outside the root": (lambda n: 2 / n**0.5, "under the root"),
    "nn.Linear's": (lambda n: (3 * n) ** -0.5, "nn.Linear starts with"),
    "bound of uniform": (lambda n: (6 / n) ** 0.5, "bound of a uniform"),
    "upside down": (lambda n: (n / 2) ** 0.5, "upside down"),
    "fan_in outside the root": (lambda n: 2**0.5 / n, "variances add up"),
}


def scale_of(x, eps):
    return 1 / ((x**2).mean(-1, keepdim=True) + eps).sqrt()


GRADIENT = {
    "RMS taken as constant": (lambda x, w, e, g: scale_of(x, e) * w * g, "as a constant"),
    "wrong sign": (lambda x, w, e, g: 2 * scale_of(x, e) * w * g - rms_norm_gradient(x, w, e, g), "a sign"),
    "sum for mean": (
        lambda x, w, e, g: scale_of(x, e) * (w * g - x * scale_of(x, e) ** 2 * (w * g * x).sum(-1, keepdim=True)),
        "take the mean",
    ),
    "no gain": (lambda x, w, e, g: rms_norm_gradient(x, torch.ones_like(w), e, g), "gain is missing"),
    "gain at the end": (lambda x, w, e, g: w * rms_norm_gradient(x, torch.ones_like(w), e, g), "too late"),
    "LayerNorm's": (
        lambda x, w, e, g: scale_of(x, e) * (w * g - (w * g).mean(-1, keepdim=True)),
        "belongs to LayerNorm",
    ),
    "not divided by RMS": (
        lambda x, w, e, g: rms_norm_gradient(x, w, e, g) / scale_of(x, e),
        "division by the RMS is missing",
    ),
}

CHECKS = {
    check_rms_norm: (rms_norm, RMS_NORM),
    check_layer_norm: (layer_norm, LAYER_NORM),
    check_norm_weights: (norm_weights, NORM_WEIGHTS),
    check_steady_std: (steady_std, STEADY_STD),
    check_rms_norm_gradient: (rms_norm_gradient, GRADIENT),
}
EVERY_CHECK = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@EVERY_CHECK
def test_right_answer_passes_and_every_line_says_ok(check, capsys):
    assert check(CHECKS[check][0]) is True
    name, *lines, last = capsys.readouterr().out.splitlines()
    assert name == check.__name__
    assert all(line.startswith("  ok       ") for line in lines)
    assert last == f"  all {len(lines)} hold"


@pytest.mark.parametrize(
    ("check", "name"),
    [pytest.param(check, name, id=f"{check.__name__}-{name}") for check in CHECKS for name in CHECKS[check][1]],
)
def test_wrong_answer_is_rejected_with_a_hint(check, name, capsys):
    wrong, keyword = CHECKS[check][1][name]
    assert check(wrong) is False
    *_, not_yet, hint = capsys.readouterr().out.splitlines()
    assert not_yet.startswith("  not yet  ")
    assert hint.startswith("           hint: ")
    assert keyword in hint


@EVERY_CHECK
def test_at_least_five_wrong_answers_are_named(check):
    assert len(CHECKS[check][1]) >= 5


@EVERY_CHECK
def test_nothing_written_yet_is_told_kindly(check, capsys):
    assert check(lambda *arguments: None) is False
    assert "not attempted yet" in capsys.readouterr().out


@EVERY_CHECK
def test_what_the_attempt_raises_is_told_and_not_raised(check, capsys):
    def raises(*arguments):
        raise KeyError("no such channel")

    assert check(raises) is False
    assert "KeyError: 'no such channel'" in capsys.readouterr().out


@EVERY_CHECK
def test_an_unknown_mistake_is_told_with_the_first_number_that_differs(check, capsys):
    right = CHECKS[check][0]
    assert check(lambda *arguments: 1.5 * right(*arguments)) is False
    assert ", expected " in capsys.readouterr().out


@EVERY_CHECK
def test_a_wrong_shape_is_told(check, capsys):
    assert check(lambda *arguments: torch.zeros(3, 7)) is False
    assert "shape [3, 7], expected" in capsys.readouterr().out


@EVERY_CHECK
def test_what_is_no_number_is_told(check, capsys):
    assert check(lambda *arguments: "later") is False
    assert "expected a tensor or a number, got str" in capsys.readouterr().out


def test_float32_and_float64_arithmetic_pass_alike_in_half_precision(capsys):
    """The values tried in half precision must lie far from every rounding edge."""

    def in_float64(x, weight, eps):
        wide = x.double()
        return (weight * wide / ((wide**2).mean(-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    assert check_rms_norm(in_float64)
    assert check_rms_norm(lambda x, weight, eps: in_float64(x, weight, eps * (1 + 1e-9)))


def test_presets_have_the_known_numbers_of_norm_weights():
    assert norm_weights(MiniMindConfig.minimind2()) == 8_704
    assert norm_weights(MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16)) == 25_344
