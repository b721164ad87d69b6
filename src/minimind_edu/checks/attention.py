"""Checks for the exercises on attention (chapter 05).

Positions, channels, heads and batch have different sizes throughout, so that an axis taken for another shows. Left
out on purpose: grouped heads and the cache, which have chapters of their own.
"""

from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks._attention_mistakes import (
    HEAD_MISTAKES,
    MULTI_MISTAKES,
    SOFTMAX_MISTAKES,
    VISIBLE_MISTAKES,
    causal_head,
    masked_softmax,
    multi_head,
    visible,
)
from minimind_edu.checks._report import Attempt, Property, difference, given, report, same_as


def _numbers(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def check_causal_head(attempt: Attempt) -> bool:
    """Is `attempt(query, key, value)` one causal head, `[S, D]` each -> `[S, D]`?"""

    def asks(length: int, head_dim: int, size: float = 1.0) -> Any:
        q, k, v = size * _numbers(3, length, head_dim, seed=length)
        return same_as(causal_head, q, k, v, mistakes=HEAD_MISTAKES)

    return report(
        "check_causal_head",
        attempt,
        [
            Property("five tokens, head_dim 8", asks(5, 8)),
            Property("seven tokens, head_dim 3", asks(7, 3)),
            Property("one token reads itself", asks(1, 4)),
            Property("scores in the hundreds do not overflow", asks(4, 6, size=30.0)),
        ],
    )


def check_visible(attempt: Attempt) -> bool:
    """Does `attempt(attention_mask)` join the causal and the padding rule, `[B, T]` -> `[B, 1, T, T]`, boolean?"""
    left = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]])
    right = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]])

    def asks(mask: Tensor) -> Any:
        return same_as(visible, mask, mistakes=VISIBLE_MISTAKES)

    def is_boolean(attempt: Attempt) -> str | None:
        answer = given(attempt(left.clone()))
        if answer.dtype is torch.bool:
            return None
        return f"True and False are wanted, not {answer.dtype}: compare or call .bool()"

    return report(
        "check_visible",
        attempt,
        [
            Property("padding on the right", asks(right)),
            Property("padding on the left", asks(left)),
            Property("no padding: the triangle alone", asks(torch.ones(2, 3, dtype=torch.long))),
            Property("True and False, not numbers to add", is_boolean),
        ],
    )


def check_multi_head(attempt: Attempt) -> bool:
    """Does `attempt(query, key, value, num_heads)` split, attend causally and join, `[B, S, H * D]` each?"""

    def asks(batch: int, length: int, heads: int, head_dim: int) -> Any:
        q, k, v = _numbers(3, batch, length, heads * head_dim, seed=heads)
        return same_as(multi_head, q, k, v, heads, mistakes=MULTI_MISTAKES)

    def leaves_other_heads_alone(attempt: Attempt) -> str | None:
        q, k, v = _numbers(3, 2, 5, 12, seed=9)
        before = given(attempt(q.clone(), k.clone(), v.clone(), 3))
        q[..., :4] += 1
        after = given(attempt(q.clone(), k.clone(), v.clone(), 3))
        if difference(after[..., 4:], before[..., 4:]) is None:
            return None
        return "a new query in head 0 changed the other heads' channels; heads do not meet before o_proj"

    return report(
        "check_multi_head",
        attempt,
        [
            Property("3 heads of 4 channels, five tokens", asks(2, 5, 3, 4)),
            Property("2 heads of 6 channels, three tokens", asks(1, 3, 2, 6)),
            Property("one head", asks(2, 4, 1, 5)),
            Property("a head keeps its channels to itself", leaves_other_heads_alone),
        ],
    )


def check_masked_softmax(attempt: Attempt) -> bool:
    """Does `attempt(scores, mask)` give weights over the visible keys, and zeros to a row that sees nothing?"""
    scores = 3 * _numbers(4, 6, seed=2)
    some = torch.tensor([[1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]).bool()
    nothing = some.clone()
    nothing[1] = False
    batch, triangle = _numbers(2, 3, 5, 5, seed=3), torch.ones(5, 5).tril().bool()

    def asks(scores: Tensor, mask: Tensor) -> Any:
        return same_as(masked_softmax, scores, mask, mistakes=SOFTMAX_MISTAKES)

    return report(
        "check_masked_softmax",
        attempt,
        [
            Property("every row sees something", asks(scores, some)),
            Property("a row that sees nothing gets zeros", asks(scores, nothing)),
            Property("[B, H, S, T] under one triangle", asks(batch, triangle)),
            Property("scores of 1000", asks(scores + 1000, nothing)),
        ],
    )
