"""Checks for the exercises on grouped query heads (chapter 06).

Sizes in one check are all different, and the numbers have no pattern, so that a wrong axis or order shows. Groups of
equal number and size (four heads, two groups) are avoided where two orders could be taken for each other.
Left out on purpose: masks, which have a chapter of their own.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from minimind_edu.attention import repeat_kv
from minimind_edu.checks._head_group_mistakes import (
    GROUPED_MISTAKES,
    KV_HEAD_MISTAKES,
    PARAMETER_MISTAKES,
    POOL_MISTAKES,
    REPEAT_MISTAKES,
    attention_parameters,
    grouped_attention,
    kv_head_of,
    pool_heads,
)
from minimind_edu.checks._report import Attempt, Property, given, report, same_as
from minimind_edu.config import MiniMindConfig


def check_kv_head_of(attempt: Attempt) -> bool:
    """Does `attempt(query_head, num_heads, num_kv_heads)` give the key/value head that a query head reads?"""

    def all_heads(heads: int, kv_heads: int) -> Any:
        def every(function: Attempt) -> Attempt:
            # `given`: a learner who has not begun returns None from inside the list
            return lambda: [given(function(head, heads, kv_heads)) for head in range(heads)]

        mistakes = [mistake._replace(answer=every(mistake.answer)) for mistake in KV_HEAD_MISTAKES]

        def question(function: Attempt) -> str | None:
            return same_as(every(kv_head_of), mistakes=mistakes)(every(function))

        return question

    return report(
        "check_kv_head_of",
        attempt,
        [
            Property("8 query heads, 2 key/value heads", all_heads(8, 2)),
            Property("12 query heads, 4 key/value heads", all_heads(12, 4)),
            Property("MQA: 6 query heads, 1 key/value head", all_heads(6, 1)),
            Property("MHA: 5 query heads, 5 key/value heads", all_heads(5, 5)),
        ],
    )


def check_repeat_kv(attempt: Attempt) -> bool:
    """Does `attempt(x, n_rep)` write every head of x n_rep times, `[B, T, K, D]` -> `[B, T, K * n_rep, D]`?"""

    def repeats(batch: int, length: int, kv_heads: int, dim: int, n_rep: int) -> Any:
        x = _numbers(batch, length, kv_heads, dim)
        return same_as(repeat_kv, x, n_rep, mistakes=REPEAT_MISTAKES)

    return report(
        "check_repeat_kv",
        attempt,
        [
            Property("two heads, four copies each", repeats(1, 3, 2, 5, 4)),
            Property("a batch of two, three heads, two copies each", repeats(2, 5, 3, 4, 2)),
            Property("MQA: one head for seven queries", repeats(2, 3, 1, 4, 7)),
            Property("MHA: one copy, nothing to do", repeats(2, 3, 4, 5, 1)),
            Property("a transposed view as input", _repeats_a_view),
        ],
    )


def check_attention_parameters(attempt: Attempt) -> bool:
    """Does `attempt(config)` give the weights of q_proj, k_proj, v_proj and o_proj of one layer?"""

    def counts(config: MiniMindConfig) -> Any:
        return same_as(attention_parameters, config, mistakes=PARAMETER_MISTAKES, rtol=1e-12)

    narrow = MiniMindConfig.minimind2(hidden_size=90, num_attention_heads=15, num_key_value_heads=5, head_dim=8)
    return report(
        "check_attention_parameters",
        attempt,
        [
            Property("minimind2: 8 heads, 2 of them kept", counts(MiniMindConfig.minimind2())),
            Property("15 heads of 8 channels in a stream of 90", counts(narrow)),
            Property("minimind3: 8 heads, 4 of them kept", counts(MiniMindConfig.minimind3())),
        ],
    )


def check_grouped_attention(attempt: Attempt) -> bool:
    """Does `attempt(query, key, value)` attend (no mask), `[B, S, H, D]`, without repeating keys and values?"""

    def attends(batch: int, queries: int, keys: int, heads: int, kv_heads: int) -> Any:
        q, k, v = _inputs(batch, queries, keys, heads, kv_heads)
        return same_as(grouped_attention, q, k, v, mistakes=GROUPED_MISTAKES)

    return report(
        "check_grouped_attention",
        attempt,
        [
            Property("six query heads, two key/value heads", attends(1, 3, 5, 6, 2)),
            Property("a batch of two, twelve heads and three", attends(2, 4, 7, 12, 3)),
            Property("MQA: one key/value head", attends(2, 3, 4, 5, 1)),
            Property("one new query, as in a decode step", attends(2, 1, 9, 8, 2)),
            Property("nothing as large as repeated keys is written", _repeats_nothing),
        ],
    )


def check_pool_heads(attempt: Attempt) -> bool:
    """Does `attempt(weight, num_heads, num_kv_heads)` turn `[H*D, E]` into `[K*D, E]`, the mean of each group?"""

    def pools(heads: int, kv_heads: int, dim: int, width: int) -> Any:
        weight = _numbers(heads * dim, width)
        return same_as(pool_heads, weight, heads, kv_heads, mistakes=POOL_MISTAKES)

    return report(
        "check_pool_heads",
        attempt,
        [
            Property("8 heads of 5 channels to 2", pools(8, 2, 5, 3)),
            Property("6 heads of 4 channels to 3", pools(6, 3, 4, 7)),
            Property("MQA: 5 heads of 3 channels to 1", pools(5, 1, 3, 4)),
            Property("MHA: 4 heads stay 4", pools(4, 4, 3, 5)),
        ],
    )


def _numbers(*shape: int) -> Tensor:
    """Numbers without a pattern that a wrong axis or order could hide in."""
    n = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(3 * n) + torch.sin(n * n / 7)).reshape(shape)


def _inputs(
    batch: int, queries: int, keys: int, heads: int, kv_heads: int, dim: int = 4
) -> tuple[Tensor, Tensor, Tensor]:
    q = _numbers(batch, queries, heads, dim)
    k = _numbers(batch, keys, kv_heads, dim).cos()
    return q, k, _numbers(batch, keys, kv_heads, dim).roll(1, dims=1)


def _repeats_a_view(attempt: Attempt) -> str | None:
    x = _numbers(2, 3, 5, 4).transpose(1, 2)  # [B, T=5, K=3, D], not contiguous

    def contiguous(view: Tensor, n_rep: int) -> Tensor:
        return repeat_kv(view.contiguous(), n_rep)

    return same_as(contiguous, x, 2, mistakes=REPEAT_MISTAKES)(lambda _, n: attempt(x, n))


class _LargestNew(TorchDispatchMode):
    """Remembers the largest storage that any operation returned, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor):
                self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return result


def _repeats_nothing(attempt: Attempt) -> str | None:
    # two queries and many channels: scores are small beside the keys, so only a repetition can be that large
    q, k, v = _inputs(1, 2, 48, 12, 3, dim=32)
    with _LargestNew() as watch:
        attempt(q, k, v)
    repeated = k.numel() * k.element_size() * q.shape[2] // k.shape[2]
    if watch.bytes < repeated:
        return None
    return (
        "the numbers are right, but somewhere every key was repeated for its queries (repeat_kv, or a product that "
        "broadcasts over the group and copies first): let the group stand beside the positions of the queries, "
        "[B, K, G*S, D], or use torch.einsum"
    )
