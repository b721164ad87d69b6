"""checks.rmsnorm_vs_layernorm: right answers in other words pass, and what results do not show is noticed."""

import torch
from judged_answers import judged
from torch import nn

from minimind_edu import checks


def rms_norm(x, weight, eps):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = (wide * wide).sum(-1, keepdim=True) / x.shape[-1]
    return (weight * (wide / (mean_square + eps) ** 0.5)).to(x.dtype)


def rms_norm_in_float64(x, weight, eps):
    """The values tried in half precision must be far from every rounding edge."""
    wide = x.double()
    return (weight * wide / ((wide**2).mean(-1, keepdim=True) + eps * (1 + 1e-9)).sqrt()).to(x.dtype)


def layer_norm(x, weight, bias, eps):
    return nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def layer_norm_in_one_pass(x, weight, bias, eps):
    mean = x.mean(-1, keepdim=True)
    return weight * (x - mean) / ((x * x).mean(-1, keepdim=True) - mean**2 + eps).sqrt() + bias


def invariances(norm):
    x = torch.tensor([0.3, -2.0, 1.1, 0.0, 4.0, -0.7, 0.2], dtype=torch.float64)
    return [bool((norm(other) - norm(x)).abs().max() < 1e-6) for other in (0.01 * x, x - 30)]


def steady_std(fan_in):
    return nn.init.calculate_gain("relu") / fan_in**0.5


def rms_norm_gradient(x, weight, eps, grad_output):
    x = x.requires_grad_()
    return torch.autograd.grad(nn.functional.rms_norm(x, x.shape[-1:], weight, eps), x, grad_output)[0]


RIGHT = [
    (checks.check_rms_norm, rms_norm),
    (checks.check_rms_norm, rms_norm_in_float64),
    (checks.check_layer_norm, layer_norm),
    (checks.check_layer_norm, layer_norm_in_one_pass),
    (checks.check_invariances, invariances),
    (checks.check_steady_std, steady_std),
    (checks.check_rms_norm_gradient, rms_norm_gradient),
]


def rms_norm_in_place(x, weight, eps):
    x *= torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return weight * x


def layer_norm_in_place(x, weight, bias, eps):
    x -= x.mean(-1, keepdim=True)
    return rms_norm(x, weight, eps) + bias


def cast_before_gain(x, weight, eps):
    return weight * rms_norm(x, torch.ones_like(weight), eps)


def as_in_exercise_2(x, weight, bias, eps):
    x -= x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True)
    return weight * (x / (variance.sqrt() + eps) + bias)


def narrowed(x, weight, eps):
    """Right in every dtype but float64, whose digits it loses."""
    return rms_norm(x.float(), weight.float(), eps).to(x.dtype)


def narrowed_and_left(x, weight, eps):
    return rms_norm(x.float(), weight, eps) if x.dtype == torch.float64 else rms_norm(x, weight, eps)


def compared_on(*x):
    """A right comparison, on a vector that misleads."""
    x = torch.tensor(x, dtype=torch.float64)
    return lambda box: (torch.allclose(box(5 * x), box(x)), torch.allclose(box(x + 2), box(x)))


def sizes_only(box):
    x = torch.tensor([0.3, -2.0, 1.1, 0.0, 4.0, -0.7, 0.2], dtype=torch.float64)
    sizes = [float(box(given).norm()) for given in (x, 5 * x, x + 2)]
    return abs(sizes[1] - sizes[0]) < 1e-6, abs(sizes[2] - sizes[0]) < 1e-6


WRONG = [
    (checks.check_rms_norm, narrowed, "narrows float64"),
    (checks.check_rms_norm, narrowed_and_left, "narrows float64"),
    (checks.check_invariances, lambda box: (True, True), "the same whatever the box does"),
    (checks.check_invariances, lambda box: (False, False), "the same whatever the box does"),
    (checks.check_invariances, lambda box: (True, False), "the same whatever the box does"),
    (checks.check_invariances, compared_on(1, 2, 3, 4, 5, 6, 7), "channels of both signs"),
    (checks.check_invariances, compared_on(*[2] * 7), "a special case"),
    (checks.check_invariances, sizes_only, "compare all channels"),
    (checks.check_steady_std, lambda fan_in: 6**0.5, "the second question"),
    (checks.check_steady_std, lambda fan_in: (6 / fan_in) ** 0.5, "the bound of a uniform distribution"),
    (checks.check_rms_norm, rms_norm_in_place, "writes into x"),
    (checks.check_rms_norm, cast_before_gain, "cast the whole product"),
    (checks.check_rms_norm, lambda x, w, e: rms_norm(x, w, 1e-6), "expected"),
    (checks.check_steady_std, lambda fan_in: 1 / (0.584 * fan_in**0.5), "keep the mean square"),
    (checks.check_layer_norm, layer_norm_in_place, "writes into x"),
    (checks.check_layer_norm, as_in_exercise_2, "expected"),
    (checks.check_layer_norm, lambda x, w, b, e: layer_norm(x, w, b, 1e-6), "expected"),
    (checks.check_rms_norm_gradient, lambda x, w, e, g: rms_norm_gradient(x, w, 1e-5, g), "expected"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)
