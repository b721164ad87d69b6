"""Exercises on RMSNorm and LayerNorm.

The gains tried are rarely all ones: a gain that is squared or forgotten would go unnoticed. The eps is one that nobody
writes by hand, and so small that only the tiny vector shows what was done with it.
"""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, numbers
from minimind_edu.model.for_comparison import LayerNorm
from minimind_edu.model.norms import RMSNorm

Box = Callable[[Tensor], Tensor]

_EPS = 5e-6
_POSITION = torch.tensor([[[1.0, -2.0, 0.0, 3.0]]], dtype=torch.float64)  # [B=1, S=1, E=4]
_ONES = torch.ones(4, dtype=torch.float64)
_GAIN = torch.tensor([1.0, 1.5, 0.5, 1.2], dtype=torch.float64)
_BIAS = torch.tensor([0.1, -0.2, 0.3, 0.0], dtype=torch.float64)
_WRITES_INTO_X = (
    "your function writes into x (such as x -= ... or x.pow_(2)), but the residual connection needs the old x"
)


def _rows(*shape: int) -> Tensor:
    """Rows of different sizes and means, so that a mean over the wrong axis shows."""
    n = torch.arange(math.prod(shape), dtype=torch.float64)
    return (torch.sin(3 * n) * (1 + n / 2) + 0.5).reshape(shape)


def _mean(x: Tensor) -> Tensor:
    return x.mean(-1, keepdim=True)


def _mean_square(x: Tensor) -> Tensor:
    return x.pow(2).mean(-1, keepdim=True)


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return functional_call(RMSNorm(x.shape[-1], eps), {"weight": weight}, (x,)).detach()


def _scaled(x: Tensor, mean_square: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * x * torch.rsqrt(mean_square + eps)


def _in_half_precision(dtype: torch.dtype) -> tuple[Tensor, Tensor, float]:
    """Values whose squares overflow float16, far from every rounding edge of float16 and bfloat16."""
    x = torch.tensor([82.0, -194.0, 31.0, 263.0, -570.0, 612.0], dtype=dtype)
    return x, torch.tensor([1.37, 0.71, 1.93, 0.83, 1.19, 0.59], dtype=dtype), _EPS


def _keeps_dtype(attempt: Attempt) -> str | None:
    for dtype in (torch.float16, torch.bfloat16):
        # A float32 gain, as in a model in which only the activations are half precision.
        answer = attempt(_POSITION.to(dtype), _GAIN.float(), _EPS)
        if isinstance(answer, list):
            return "return a tensor: a list has no dtype"
        answer = torch.as_tensor(answer)
        if answer.dtype != dtype:
            return (
                f"x was {dtype}, the result is {answer.dtype}: a float32 gain widens whatever it multiplies, so cast "
                "the whole product back to x.dtype"
            )
    return None


def _keeps_float64(attempt: Attempt) -> str | None:
    x, gain = _rows(2, 4), _GAIN
    answer = torch.as_tensor(attempt(x.clone(), gain.clone(), _EPS), dtype=torch.float64)
    off = (answer - _rms_norm(x, gain, _EPS)).abs().max().item()
    if off < 1e-12:
        return None
    return (
        f"x was float64, and the result is off by {off:.0e}, as much as float32 rounds: x.float() narrows float64; "
        "widen with x.to(torch.promote_types(x.dtype, torch.float32))"
    )


check_rms_norm = Exercise(
    "Does `attempt(x, weight, eps)` normalize the last axis of `x` by its root mean square and apply the gain?",
    answer=_rms_norm,
    cases=(
        Case("one position, a gain of ones", (_POSITION, _ONES, _EPS)),
        Case("a gain of its own for every channel", (_POSITION, _GAIN, _EPS)),
        Case("a tiny vector: eps is inside the root", (_POSITION / 1000, _GAIN, _EPS)),
        Case("a batch [4, 4], every row by itself", (_rows(4, 4), _GAIN, _EPS)),
        Case("a batch [2, 3, 4], every position by itself", (_rows(2, 3, 4), _GAIN, _EPS)),
        Case("x is left as it was", (_rows(2, 4), _GAIN, _EPS), untouched=_WRITES_INTO_X),
        Property("float64 stays float64", _keeps_float64),
        Property("half precision in, half precision out", _keeps_dtype),
        Case("float16 values of 600 do not overflow", _in_half_precision(torch.float16)),
        Case("the cast back comes last, after the gain", _in_half_precision(torch.bfloat16)),
    ),
    mistakes=(
        # The first two are right in float64; in float16 they could be taken for others.
        Mistake(
            lambda x, weight, eps: _scaled(x, _mean_square(x), weight, eps).to(x.dtype),
            "you compute in the dtype of x, but in float16 the square of 300 is already inf; widen first: x.float()",
        ),
        Mistake(
            lambda x, weight, eps: weight.to(x.dtype) * _rms_norm(x, torch.ones_like(weight), eps),
            "you cast back before the gain, so the result is rounded twice; cast the whole product",
        ),
        Mistake(
            lambda x, weight, eps: weight * LayerNorm(x.shape[-1], eps)(x),
            "you subtract the mean: that is LayerNorm. RMSNorm divides x as it is",
        ),
        Mistake(
            lambda x, weight, eps: _scaled(x, _mean_square(weight * x), weight, eps),
            "your gain is inside the mean square: take the mean square of x alone, and multiply by the gain at the end",
        ),
        Mistake(
            lambda x, weight, eps: _scaled(x, x.var(-1, keepdim=True), weight, eps),
            "you divide by the standard deviation, taken around the mean; the RMS is around zero: x.pow(2).mean(...)",
        ),
        Mistake(
            lambda x, weight, eps: weight * x / (_mean_square(x).sqrt() + eps),
            "eps is outside the root: add it to the mean square before you take the root",
        ),
        Mistake(
            lambda x, weight, eps: _scaled(x, _mean_square(x), weight, 1e-5),
            "your eps is always 1e-5: use the argument eps",
        ),
        Mistake(
            lambda x, weight, eps: _scaled(x, x.pow(2).mean(-1), weight, eps),
            "keepdim=True is missing: without it each column is divided by the RMS of a row, and on a square batch "
            "PyTorch raises no error",
        ),
        Mistake(
            lambda x, weight, eps: _scaled(x, x.pow(2).mean(), weight, eps),
            "your mean runs over all axes, so the rows of a batch affect each other: mean(-1, keepdim=True)",
        ),
    ),
)


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return functional_call(LayerNorm(x.shape[-1], eps), {"weight": weight, "bias": bias}, (x,)).detach()


check_layer_norm = Exercise(
    "Does `attempt(x, weight, bias, eps)` give LayerNorm over the last axis?",
    answer=_layer_norm,
    cases=(
        Case("one position, gain of ones, bias of zeros", (_POSITION, _ONES, 0 * _BIAS, _EPS), _WRITES_INTO_X),
        Case("a gain and a bias for every channel", (_POSITION, _GAIN, _BIAS, _EPS)),
        Case("a tiny vector: eps is inside the root", (_POSITION / 1000, _GAIN, _BIAS, _EPS)),
        Case("a batch [4, 4], every row by itself", (_rows(4, 4), _GAIN, _BIAS, _EPS)),
        Case("a batch [2, 3, 4], every position by itself", (_rows(2, 3, 4), _GAIN, _BIAS, _EPS)),
        Case("a common offset of 100 changes nothing", (_POSITION + 100, _GAIN, _BIAS, _EPS)),
    ),
    mistakes=(
        Mistake(
            lambda x, w, b, eps: _scaled(x - _mean(x), x.var(-1, keepdim=True), w, eps) + b,
            "your variance divides by n - 1, the default of x.var and x.std; LayerNorm divides by n",
        ),
        Mistake(
            lambda x, w, b, eps: _rms_norm(x, w, eps) + b, "you do not subtract the mean: that is RMSNorm with a bias"
        ),
        Mistake(
            lambda x, w, b, eps: w * (_layer_norm(x, torch.ones_like(w), torch.zeros_like(b), eps) + b),
            "your gain multiplies the bias, too: apply the gain first, then add the bias",
        ),
        Mistake(
            lambda x, w, b, eps: w * (x - _mean(x)) / (_mean_square(x - _mean(x)).sqrt() + eps) + b,
            "eps is outside the root: add it to the variance before you take the root",
        ),
        Mistake(
            lambda x, w, b, eps: _layer_norm(x, w, b, 1e-5),
            "your eps is always 1e-5, the default of F.layer_norm: use the argument eps",
        ),
        Mistake(
            lambda x, w, b, eps: _scaled(x - x.mean(-1), (x - x.mean(-1)).pow(2).mean(-1), w, eps) + b,
            "keepdim=True is missing: without it the mean of a row is subtracted from a column, and on a square batch "
            "PyTorch raises no error",
        ),
    ),
)


def _invariances(norm: Box) -> tuple[bool, bool]:
    x = numbers(7)
    larger, shifted = norm(5 * x), norm(x + 2)
    return torch.allclose(larger, norm(x)), torch.allclose(shifted, norm(x))


def _tried_on(x: Tensor, factor: float = 5.0, same: Callable[[Tensor, Tensor], bool] = torch.allclose) -> Attempt:
    """A way to try a box that uses this vector, this factor and this idea of sameness."""
    return lambda norm: (same(norm(factor * x), norm(x)), same(norm(x + 2), norm(x)))


_BOXES: dict[str, Box] = {  # eps is 0: it would tell large vectors from small ones
    "softmax": lambda x: x.softmax(-1),
    "the signs of the channels": torch.sign,
    "RMSNorm": RMSNorm(7, eps=0.0).norm,
    "LayerNorm": LayerNorm(7, eps=0.0).norm,
    "x minus its mean": lambda x: x - x.mean(),
    "x over its largest channel": lambda x: x / x.abs().max(),
    "clipped to [-1, 1]": lambda x: x.clamp(-1, 1),
    "nothing at all": lambda x: x,
    "smallest channel to 0, largest to 1": lambda x: (x - x.min()) / (x.max() - x.min()),
}

check_invariances = Exercise(
    "Does `attempt(norm)` find by trying whether a function of 7 channels ignores a factor, and an offset?",
    answer=_invariances,
    cases=tuple(Case(name, (box,)) for name, box in _BOXES.items()),
    mistakes=(
        Mistake(lambda norm: _invariances(norm)[::-1], "the other way round: return first the factor, then the offset"),
        Mistake(
            _tried_on(numbers(7), same=torch.equal),
            "equal up to rounding is equal: compare with torch.allclose, not bit by bit",
        ),
        Mistake(
            _tried_on(numbers(7), factor=-5.0),
            "your factor is negative: it reverses every arrow, and no norm hides that; take a positive one",
        ),
        *(
            Mistake(
                lambda norm, same=same: same,
                "your answer is the same whatever the box does: call box(x), box(5 * x) and box(x + 2), and compare",
            )
            for same in itertools.product((True, False), repeat=2)
        ),
        Mistake(
            _tried_on(1 + torch.arange(7, dtype=torch.float64)),
            "all channels of your vector are positive, so no factor and no offset changes a sign, and none is clipped "
            "at −1: take channels of both signs",
        ),
        Mistake(
            lambda norm: (
                abs(norm(5 * numbers(7)).norm() - norm(numbers(7)).norm()).item() < 1e-6,
                abs(norm(numbers(7) + 2).norm() - norm(numbers(7)).norm()).item() < 1e-6,
            ),
            "you compare only the sizes of the results: compare all channels",
        ),
        Mistake(
            _tried_on(torch.ones(7, dtype=torch.float64)),
            "your vector is a special case: mix signs and sizes, so that no two channels are alike",
        ),
    ),
)


check_steady_std = Exercise(
    "Does `attempt(fan_in)` give the std of weights with which a ReLU layer keeps the mean square of its input?",
    answer=lambda fan_in: math.sqrt(2 / fan_in),
    cases=tuple(Case(f"{fan_in} inputs", (fan_in,)) for fan_in in (512, 50, 2)),
    mistakes=(
        Mistake(
            lambda n: math.sqrt(1 / n),
            "that keeps the scale without an activation; ReLU halves the mean square, so double the variance",
        ),
        Mistake(
            lambda n: math.sqrt(6),
            "that is the factor on PyTorch's weights, the answer to the second question: the standard deviation that "
            "they then have depends on fan_in",
        ),
        Mistake(lambda n: 2 / n, "that is the variance: the standard deviation is its root"),
        Mistake(
            lambda n: math.sqrt(6 / n),
            "that is the bound of a uniform distribution with this standard deviation: the bound is √3 times as large",
        ),
        Mistake(
            lambda n: 2 / math.sqrt(n), "the 2 belongs under the root: ReLU halves the mean square, not the root of it"
        ),
        Mistake(
            lambda n: math.sqrt(1 / (3 * n)),
            "that is the initialization of nn.Linear, with which the size shrinks by a factor of 0.41 in every layer",
        ),
        Mistake(
            lambda n: math.sqrt(1 / ((1 / 2 - 1 / (2 * math.pi)) * n)),
            "that keeps the standard deviation of the outputs, but their mean is not 0: keep the mean square",
        ),
    ),
    rtol=1e-3,  # a rounded 0.584 is that mistake, too
)


def _gradient(x: Tensor, weight: Tensor, eps: float, grad_output: Tensor) -> Tensor:
    x.requires_grad_()
    y = functional_call(RMSNorm(x.shape[-1], eps), {"weight": weight}, (x,))
    return torch.autograd.grad(y, x, grad_output)[0]


def _without_part_along_x(x: Tensor, eps: float, u: Tensor, share: float = 1.0) -> Tensor:
    """The gradient for u = weight * grad_output, with `share` of the part along the normalized x removed."""
    scale = torch.rsqrt(_mean_square(x) + eps)
    y = x * scale
    return scale * (u - share * y * (u * y).mean(-1, keepdim=True))


_GRAD = torch.tensor([[[0.4, 0.3, -1.0, 0.2]]], dtype=torch.float64)

check_rms_norm_gradient = Exercise(
    "Does `attempt(x, weight, eps, grad_output)` give the gradient of RMSNorm with respect to `x`?",
    answer=_gradient,
    cases=(
        Case("one position, a gain of ones", (_POSITION, _ONES, _EPS, _GRAD)),
        Case("a gain of its own for every channel", (_POSITION, _GAIN, _EPS, _GRAD)),
        Case("a batch [2, 3, 4]", (_rows(2, 3, 4), _GAIN, _EPS, _rows(2, 3, 4).cos())),
        Case("a tiny vector, where eps counts", (_POSITION / 1000, _GAIN, _EPS, _GRAD)),
    ),
    mistakes=(
        Mistake(
            lambda x, w, eps, g: _without_part_along_x(x, eps, w * g, share=0.0),
            "you treat the RMS as a constant, but it grows with x: remove the part of the gradient along x",
        ),
        Mistake(
            lambda x, w, eps, g: _without_part_along_x(x, eps, w * g, share=x.shape[-1]),
            "you add up u * y over the channels: take the mean, because y has length sqrt(n), not 1",
        ),
        Mistake(
            lambda x, w, eps, g: _without_part_along_x(x, eps, g),
            "the gain is missing: what reaches the normalized vector is weight * grad_output",
        ),
        Mistake(
            lambda x, w, eps, g: w * _without_part_along_x(x, eps, g),
            "the gain comes too late: multiply grad_output by weight first, then remove the part along x",
        ),
        Mistake(
            lambda x, w, eps, g: torch.rsqrt(_mean_square(x) + eps) * (w * g - (w * g).mean(-1, keepdim=True)),
            "you subtract the mean of the gradient, which belongs to LayerNorm: subtract the part along x",
        ),
        Mistake(
            lambda x, w, eps, g: _without_part_along_x(x, 0.0, w * g),
            "eps is missing: RMSNorm divides by the root of mean square plus eps, and so does its gradient",
        ),
    ),
)
