"""Checks for the exercises on RMSNorm and LayerNorm (chapter 02).

The gains tried are never all ones: a gain that is squared or forgotten cannot be told from the right one then.
Left out on purpose: speed and style; a slow loop that gives the right numbers passes.
"""

import math

import torch
from torch import Tensor
from torch.func import functional_call

from minimind_edu.checks._norm_mistakes import (
    GRADIENT_MISTAKES,
    HALF_PRECISION_MISTAKES,
    LAYER_NORM_MISTAKES,
    NORM_WEIGHTS_MISTAKES,
    RMS_NORM_MISTAKES,
    STEADY_STD_MISTAKES,
)
from minimind_edu.checks._report import Attempt, Property, report, same_as
from minimind_edu.config import MiniMindConfig
from minimind_edu.norms import LayerNorm, RMSNorm

_EPS = 1e-5
_POSITION = torch.tensor([[[1.0, -2.0, 0.0, 3.0]]], dtype=torch.float64)  # [B=1, S=1, E=4]
_ONES = torch.ones(4, dtype=torch.float64)
_GAIN = torch.tensor([1.0, 1.5, 0.5, 1.2], dtype=torch.float64)
_BIAS = torch.tensor([0.1, -0.2, 0.3, 0.0], dtype=torch.float64)


def check_rms_norm(attempt: Attempt) -> bool:
    """Does `attempt(x, weight, eps)` normalize the last axis of `x` by its root mean square and apply the gain?"""
    return report(
        "check_rms_norm",
        attempt,
        [
            Property("one position, a gain of ones", _like_rms_norm(_POSITION, _ONES)),
            Property("a gain of its own for every channel", _like_rms_norm(_POSITION, _GAIN)),
            Property("a tiny vector: eps stands inside the root", _like_rms_norm(_POSITION / 1000, _GAIN)),
            Property("a batch [4, 4], every row by itself", _like_rms_norm(_rows(4, 4), _GAIN)),
            Property("a batch [2, 3, 4], every position by itself", _like_rms_norm(_rows(2, 3, 4), _GAIN)),
            Property("x is left as it was", _leaves_x_alone),
            Property("half precision in, half precision out", _keeps_dtype),
            Property("float16 values of 600 do not overflow", _like_rms_norm_in_half(torch.float16)),
            Property("the cast back comes last, after the gain", _like_rms_norm_in_half(torch.bfloat16)),
        ],
    )


def check_layer_norm(attempt: Attempt) -> bool:
    """Does `attempt(x, weight, bias, eps)` give LayerNorm over the last axis?"""
    zeros = torch.zeros_like(_BIAS)
    return report(
        "check_layer_norm",
        attempt,
        [
            Property("one position, gain of ones, bias of zeros", _like_layer_norm(_POSITION, _ONES, zeros)),
            Property("a gain and a bias for every channel", _like_layer_norm(_POSITION, _GAIN, _BIAS)),
            Property("a tiny vector: eps stands inside the root", _like_layer_norm(_POSITION / 1000, _GAIN, _BIAS)),
            Property("a batch [4, 4], every row by itself", _like_layer_norm(_rows(4, 4), _GAIN, _BIAS)),
            Property("a batch [2, 3, 4], every position by itself", _like_layer_norm(_rows(2, 3, 4), _GAIN, _BIAS)),
            Property("a common offset of 100 changes nothing", _like_layer_norm(_POSITION + 100, _GAIN, _BIAS)),
        ],
    )


def check_norm_weights(attempt: Attempt) -> bool:
    """Does `attempt(config)` give the number of weights in all RMSNorms of a MiniMind?"""
    base = MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16)
    return report(
        "check_norm_weights",
        attempt,
        [
            Property("minimind2, 512 wide, 8 blocks", _counts_weights(MiniMindConfig.minimind2())),
            Property("minimind2, 768 wide, 16 blocks", _counts_weights(base)),
            Property("minimind3, with norms on queries and keys", _counts_weights(MiniMindConfig.minimind3())),
        ],
    )


def check_steady_std(attempt: Attempt) -> bool:
    """Does `attempt(fan_in)` give the std of weights with which a ReLU layer keeps the mean square of its input?"""
    return report(
        "check_steady_std",
        attempt,
        [
            Property(f"{fan_in} inputs", same_as(_steady_std, fan_in, mistakes=STEADY_STD_MISTAKES))
            for fan_in in (512, 50, 2)
        ],
    )


def check_rms_norm_gradient(attempt: Attempt) -> bool:
    """Does `attempt(x, weight, eps, grad_output)` give the gradient of RMSNorm with respect to `x`?"""
    grad = torch.tensor([[[0.4, 0.3, -1.0, 0.2]]], dtype=torch.float64)
    batch = _rows(2, 3, 4)
    return report(
        "check_rms_norm_gradient",
        attempt,
        [
            Property("one position, a gain of ones", _like_gradient(_POSITION, _ONES, grad)),
            Property("a gain of its own for every channel", _like_gradient(_POSITION, _GAIN, grad)),
            Property("a batch [2, 3, 4]", _like_gradient(batch, _GAIN, batch.cos())),
            Property("a tiny vector, where eps counts", _like_gradient(_POSITION / 1000, _GAIN, grad)),
        ],
    )


def _rows(*shape: int) -> Tensor:
    """Rows of different sizes and means, so that a mean over the wrong axis shows."""
    n = torch.arange(math.prod(shape), dtype=torch.float64)
    return (torch.sin(3 * n) * (1 + n / 2) + 0.5).reshape(shape)


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional_call(RMSNorm(x.shape[-1], eps), {"weight": weight}, (x,)).detach()


def _like_rms_norm(x: Tensor, weight: Tensor):
    return same_as(_rms_norm, x, weight, _EPS, mistakes=RMS_NORM_MISTAKES)


def _like_rms_norm_in_half(dtype: torch.dtype):
    """Values whose squares overflow float16, and which lie far from every rounding edge of either kind."""
    x = torch.tensor([82.0, -194.0, 31.0, 263.0, -570.0, 612.0], dtype=dtype)
    weight = torch.tensor([1.37, 0.71, 1.93, 0.83, 1.19, 0.59], dtype=dtype)
    return same_as(_rms_norm, x, weight, _EPS, mistakes=HALF_PRECISION_MISTAKES, rtol=1e-4)


def _leaves_x_alone(attempt: Attempt) -> str | None:
    x = _rows(2, 4)
    attempt(x, _GAIN.clone(), _EPS)
    if torch.equal(x, _rows(2, 4)):
        return None
    return (
        "your function writes into x (in place: x *= ... or x.pow_(2)); the residual connection still needs the old "
        "x, so build a new tensor"
    )


def _keeps_dtype(attempt: Attempt) -> str | None:
    for dtype in (torch.float16, torch.bfloat16):
        # A float32 gain, as in a model in which only the activations are half precision.
        answer = attempt(_POSITION.to(dtype), _GAIN.float(), _EPS)
        if answer.dtype != dtype:
            return (
                f"x was {dtype}, the result is {answer.dtype}: a float32 gain widens whatever it multiplies, so the "
                "cast back to x.dtype goes around the whole product"
            )
    return None


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    norm = LayerNorm(x.shape[-1], eps)
    return functional_call(norm, {"weight": weight, "bias": bias}, (x,)).detach()


def _like_layer_norm(x: Tensor, weight: Tensor, bias: Tensor):
    return same_as(_layer_norm, x, weight, bias, _EPS, mistakes=LAYER_NORM_MISTAKES)


def _norm_weights(config: MiniMindConfig) -> int:
    per_block = 2 * config.hidden_size + (2 * config.head_dim if config.use_qk_norm else 0)
    return config.num_hidden_layers * per_block + config.hidden_size


def _counts_weights(config: MiniMindConfig):
    return same_as(_norm_weights, config, mistakes=NORM_WEIGHTS_MISTAKES)


def _steady_std(fan_in: int) -> float:
    return math.sqrt(2 / fan_in)


def _gradient(x: Tensor, weight: Tensor, eps: float, grad_output: Tensor) -> Tensor:
    x.requires_grad_()
    norm = RMSNorm(x.shape[-1], eps)
    functional_call(norm, {"weight": weight}, (x,)).backward(grad_output)
    return x.grad


def _like_gradient(x: Tensor, weight: Tensor, grad_output: Tensor):
    return same_as(_gradient, x, weight, _EPS, grad_output, mistakes=GRADIENT_MISTAKES)
