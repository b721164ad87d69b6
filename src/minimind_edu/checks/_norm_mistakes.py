"""The usual wrong answers to the exercises on norms, each with the hint that leads out of it.

Hints name what was done, then what to do; the tables are tried in order, so a mistake stands above what it could be
taken for.
"""

import math

import torch
from torch import Tensor

from minimind_edu.checks._report import Mistake
from minimind_edu.config import MiniMindConfig
from minimind_edu.norms import LayerNorm, RMSNorm


def _mean_square(x: Tensor, *axes: int) -> Tensor:
    return x.pow(2).mean(axes or None, keepdim=True)


def _center(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def _scaled(x: Tensor, mean_square: Tensor, weight: Tensor, eps: float) -> Tensor:
    return weight * x * torch.rsqrt(mean_square + eps)


_WRONG_AXIS = "your mean runs along the batch or the positions; the channels are the last axis: mean(-1, keepdim=True)"

RMS_NORM_MISTAKES = (
    Mistake(
        lambda x, weight, eps: LayerNorm(x.shape[-1], eps).norm(x) * weight,
        "you subtract the mean: that is LayerNorm. RMSNorm divides x as it is",
    ),
    Mistake(
        lambda x, weight, eps: weight * x / torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps),
        "you divide by the standard deviation, which measures from the mean; the root mean square measures from zero: "
        "x.pow(2).mean(...)",
    ),
    Mistake(
        lambda x, weight, eps: weight * x / torch.sqrt(x.var(-1, keepdim=True) + eps),
        "you divide by the standard deviation (x.std or x.var, even with n - 1); the root mean square is taken from "
        "x.pow(2).mean(...)",
    ),
    Mistake(
        lambda x, weight, eps: _scaled(x, x.pow(2).sum(-1, keepdim=True), weight, eps),
        "you take the sum of the squares: the output then has length 1. Take their mean, and its RMS becomes 1",
    ),
    Mistake(
        lambda x, weight, eps: weight * x / (_mean_square(x, -1) + eps),
        "you divide by the mean square itself: take its root",
    ),
    Mistake(
        lambda x, weight, eps: weight * x * torch.sqrt(_mean_square(x, -1) + eps),
        "you multiply by the root: divide by it (or multiply by torch.rsqrt, one over the root)",
    ),
    Mistake(
        lambda x, weight, eps: weight * x / (x.abs().mean(-1, keepdim=True) + eps),
        "you take the mean of the absolute values: square first, average, then take the root",
    ),
    Mistake(
        lambda x, weight, eps: _scaled(x, _mean_square(x, -1), weight**2, eps),
        "the gain is applied twice (squared); with a gain of ones nobody would notice",
    ),
    Mistake(
        lambda x, weight, eps: _scaled(x, _mean_square(x, -1), torch.ones_like(weight), eps),
        "the gain is missing: multiply by weight after normalizing",
    ),
    Mistake(
        lambda x, weight, eps: _scaled(x, _mean_square(x, -1), 1 + weight, eps),
        "you multiply by 1 + weight (some models store the gain so, Gemma for one); here weight is the gain itself",
    ),
    Mistake(
        lambda x, weight, eps: weight * x / (_mean_square(x, -1).sqrt() + eps),
        "eps stands outside the root: add it to the mean square, before the root is taken",
    ),
    Mistake(
        lambda x, weight, eps: weight * x / _mean_square(x, -1).sqrt(),
        "eps is missing: a vector of zeros would be divided by zero. Add eps to the mean square",
    ),
    Mistake(
        lambda x, weight, eps: _scaled(x, x.pow(2).mean(-1), weight, eps),
        "keepdim=True is missing: without it the means of the rows are laid along the columns, and on a square batch "
        "nothing complains",
    ),
    Mistake(
        lambda x, weight, eps: _scaled(x, x.pow(2).mean(), weight, eps),
        "your mean runs over all axes, so the rows of a batch change each other; name the last axis: "
        "mean(-1, keepdim=True)",
    ),
    Mistake(lambda x, weight, eps: _scaled(x, _mean_square(x, 0), weight, eps), _WRONG_AXIS),
    Mistake(lambda x, weight, eps: _scaled(x, _mean_square(x, 1), weight, eps), _WRONG_AXIS),
)

HALF_PRECISION_MISTAKES = (
    Mistake(
        lambda x, weight, eps: (weight * RMSNorm(x.shape[-1], eps).norm(x)).to(x.dtype),
        "you compute in the dtype of x, and in float16 the square of 300 is already inf; widen first: x.float()",
    ),
    Mistake(
        lambda x, weight, eps: weight * RMSNorm(x.shape[-1], eps).norm(x.float()).to(x.dtype),
        "you cast back before the gain, so the result is rounded twice; put the cast around the whole product",
    ),
)


LAYER_NORM_MISTAKES = (
    Mistake(
        lambda x, w, b, eps: w * _center(x) / torch.sqrt(x.var(-1, keepdim=True) + eps) + b,
        "your variance divides by n - 1, as x.var and x.std do unless told otherwise; LayerNorm divides by n",
    ),
    Mistake(
        lambda x, w, b, eps: w * _center(x) / (x.std(-1, keepdim=True) + eps) + b,
        "your standard deviation divides by n - 1, as x.std does unless told otherwise; LayerNorm divides by n",
    ),
    Mistake(
        lambda x, w, b, eps: w * RMSNorm(x.shape[-1], eps).norm(x) + b,
        "the mean is still in it: that is RMSNorm with a bias. Subtract the mean first",
    ),
    Mistake(
        lambda x, w, b, eps: w * _center(x) * torch.rsqrt(_mean_square(x, -1) + eps) + b,
        "you divide the centered vector by the RMS of the one before centering: normalize the centered vector by its "
        "own RMS",
    ),
    Mistake(
        lambda x, w, b, eps: w * x * torch.rsqrt(_mean_square(_center(x), -1) + eps) + b,
        "you divide x itself by the standard deviation: divide the centered vector, x minus its mean",
    ),
    Mistake(
        lambda x, w, b, eps: w * _center(x) / (_mean_square(_center(x), -1) + eps) + b,
        "you divide by the variance: take its root",
    ),
    Mistake(lambda x, w, b, eps: w * LayerNorm(x.shape[-1], eps).norm(x), "the bias is missing: add it last"),
    Mistake(
        lambda x, w, b, eps: w * (LayerNorm(x.shape[-1], eps).norm(x) + b),
        "the bias is multiplied with the gain: apply the gain first, then add the bias",
    ),
    Mistake(
        lambda x, w, b, eps: LayerNorm(x.shape[-1], eps).norm(x) + b,
        "the gain is missing: multiply by weight before you add the bias",
    ),
    Mistake(
        lambda x, w, b, eps: w**2 * LayerNorm(x.shape[-1], eps).norm(x) + b,
        "the gain is applied twice (squared); with a gain of ones nobody would notice",
    ),
    Mistake(
        lambda x, w, b, eps: w * _center(x) / (_mean_square(_center(x), -1).sqrt() + eps) + b,
        "eps stands outside the root: add it to the variance, before the root is taken",
    ),
    Mistake(
        lambda x, w, b, eps: w * _center(x) / _mean_square(_center(x), -1).sqrt() + b,
        "eps is missing: a vector of equal numbers would be divided by zero. Add eps to the variance",
    ),
    Mistake(
        lambda x, w, b, eps: w * (x - x.mean(-1)) * torch.rsqrt((x - x.mean(-1)).pow(2).mean(-1) + eps) + b,
        "keepdim=True is missing: without it the means of the rows are laid along the columns, and on a square batch "
        "nothing complains",
    ),
    Mistake(
        lambda x, w, b, eps: w * (x - x.mean()) * torch.rsqrt((x - x.mean()).pow(2).mean() + eps) + b,
        "your means run over all axes, so the rows of a batch change each other; name the last axis: "
        "mean(-1, keepdim=True)",
    ),
    Mistake(
        lambda x, w, b, eps: w * (x - x.mean(0)) * torch.rsqrt((x - x.mean(0)).pow(2).mean(0) + eps) + b,
        "your means run over axis 0, the batch (that is batch normalization); the channels are the last axis",
    ),
)


def _block_and_final_weights(config: MiniMindConfig) -> int:
    return (2 * config.num_hidden_layers + 1) * config.hidden_size


def _qk_norm_weights(config: MiniMindConfig, width_of_both: int) -> int:
    return config.num_hidden_layers * width_of_both if config.use_qk_norm else 0


def _all_weights(config: MiniMindConfig) -> int:
    return _block_and_final_weights(config) + _qk_norm_weights(config, 2 * config.head_dim)


NORM_WEIGHTS_MISTAKES = (
    # First, because in minimind3 the weights of all k_norms happen to be as many as those of the final norm.
    Mistake(
        lambda c: _block_and_final_weights(c) + _qk_norm_weights(c, c.head_dim),
        "you count one of q_norm and k_norm: a block has both, head_dim wide each",
    ),
    Mistake(
        lambda c: _all_weights(c) - c.hidden_size,
        "one norm is missing: the final one, after the last block and before lm_head",
    ),
    Mistake(lambda c: 2 * _all_weights(c), "you count a bias for every gain: RMSNorm has none, that is LayerNorm's"),
    Mistake(
        lambda c: _all_weights(c) - c.num_hidden_layers * c.hidden_size,
        "you count one norm in a block: there are two, before attention and before the feed-forward network",
    ),
    Mistake(
        lambda c: 2 * c.num_hidden_layers + 1,
        "that is the number of norms: each of them has one weight for every channel",
    ),
    Mistake(
        _block_and_final_weights,
        "the norms on queries and keys are missing: with config.use_qk_norm every block has two more, head_dim wide",
    ),
    Mistake(
        lambda c: _block_and_final_weights(c) + _qk_norm_weights(c, 2 * c.hidden_size),
        "the norms on queries and keys run over one head's channels: they are head_dim wide, not hidden_size",
    ),
    Mistake(
        lambda c: (
            _block_and_final_weights(c)
            + _qk_norm_weights(c, (c.num_attention_heads + c.num_key_value_heads) * c.head_dim)
        ),
        "you give every head a gain of its own: all query heads of a block share one gain, all key heads another",
    ),
    Mistake(
        lambda c: _block_and_final_weights(c) + 2 * c.head_dim * c.num_hidden_layers,
        "you count norms on queries and keys where config.use_qk_norm is False",
    ),
)


STEADY_STD_MISTAKES = (
    Mistake(
        lambda n: math.sqrt(1 / n),
        "that keeps the scale of a layer without activation; ReLU throws half of the mean square away, so double the "
        "variance",
    ),
    Mistake(lambda n: 2 / n, "that is the variance: the standard deviation is its root"),
    Mistake(
        lambda n: 2 / math.sqrt(n), "the 2 belongs under the root: ReLU halves the mean square, not the root of it"
    ),
    Mistake(
        lambda n: math.sqrt(1 / (3 * n)),
        "that is what nn.Linear starts with, and what made the signal shrink by 0.41 in every layer",
    ),
    Mistake(
        lambda n: math.sqrt(6 / n),
        "that is the bound of a uniform distribution, whose standard deviation is smaller by the root of 3",
    ),
    Mistake(lambda n: math.sqrt(n / 2), "upside down: the more inputs are added up, the smaller each weight must be"),
    Mistake(lambda n: math.sqrt(2) / n, "fan_in belongs under the root: variances add up, not deviations"),
)


def _back(x: Tensor, eps: float, u: Tensor, share: float = 1.0) -> Tensor:
    """The gradient for u = weight * grad_output, with `share` of the part along the normalized x taken away."""
    scale = torch.rsqrt(_mean_square(x, -1) + eps)
    y = x * scale
    return scale * (u - share * y * (u * y).mean(-1, keepdim=True))


GRADIENT_MISTAKES = (
    Mistake(
        lambda x, w, eps, g: _back(x, eps, w * g, share=0.0),
        "you treat the RMS as a constant, but it grows with x: the part of the gradient along x has to be taken away",
    ),
    Mistake(
        lambda x, w, eps, g: _back(x, eps, w * g, share=-1.0),
        "a sign: the part along x is subtracted, since a longer x is divided by more",
    ),
    Mistake(
        lambda x, w, eps, g: _back(x, eps, w * g, share=x.shape[-1]),
        "you add up u * y over the channels: take the mean, because y has length sqrt(n), not 1",
    ),
    Mistake(
        lambda x, w, eps, g: _back(x, eps, g),
        "the gain is missing: what reaches the normalized vector is weight * grad_output",
    ),
    Mistake(
        lambda x, w, eps, g: w * _back(x, eps, g),
        "the gain comes too late: multiply grad_output by weight first, then take away the part along x",
    ),
    Mistake(
        lambda x, w, eps, g: torch.rsqrt(_mean_square(x, -1) + eps) * _center(w * g),
        "you subtract the mean of the gradient: that belongs to LayerNorm. Subtract the part along x",
    ),
    Mistake(
        lambda x, w, eps, g: _back(x, eps, w * g) / torch.rsqrt(_mean_square(x, -1) + eps),
        "the division by the RMS is missing: a vector twice as long gets half the gradient",
    ),
)
