"""Which keys a query may see: those at its own position and before, and no padding.

Masks are boolean, True where a query may look. B batch, S query positions, T key positions (past + S).
"""

import torch
from torch import Tensor

from minimind_edu.validation import check_attention_mask, values_are_known


def causal_mask(query_length: int, key_length: int, device: torch.device | None = None) -> Tensor:
    """Which keys each query may see: True on and below the diagonal that ends in the lower right corner.

    The queries are the last S of T positions, so query s is at position T - S + s. With S = T this is the usual
    triangle; with a cache it is a rectangle. Returns `[S, T]`; raises a ValueError for more queries than keys.
    """
    if query_length > key_length:
        raise ValueError(
            f"the queries are the last of the keys' positions, so there cannot be more queries ({query_length}) "
            f"than keys ({key_length})"
        )
    allowed = torch.ones(query_length, key_length, dtype=torch.bool, device=device)
    return allowed.tril(diagonal=key_length - query_length)


def padding_mask(attention_mask: Tensor) -> Tensor:
    """Which keys are real tokens: `[B, T]` of nothing but ones and zeros -> `[B, 1, 1, T]`, for heads and queries."""
    check_attention_mask(attention_mask, (None, None))
    return attention_mask.bool()[:, None, None, :]


def visible_keys(
    query_length: int, key_length: int, attention_mask: Tensor | None, batch: int | None = None
) -> Tensor | None:
    """The mask of all layers, `[B, 1, S, T]`: causal, and blind to padding. None where causal alone is enough.

    A padding position may look at itself, and only there: what it computes is never read, but a row of a softmax must
    hold at least one number.

    The queries are the last S of T positions. `attention_mask`, `[B, T]`, is 0 on padding and 1 on tokens, a ValueError
    for anything else, and for other rows than `batch`, if that is given; None: no padding.
    """
    if attention_mask is None:
        return None
    counted = f", one entry for each of the {key_length - query_length} cached and {query_length} new positions"
    check_attention_mask(attention_mask, (batch, key_length), counted)
    if values_are_known(attention_mask) and bool(attention_mask.all()):
        return None
    causal = causal_mask(query_length, key_length, attention_mask.device)  # [S, T]
    itself = causal.triu(key_length - query_length)  # the diagonal alone
    real = attention_mask.bool()[:, None, None, :]
    return (causal & real) | itself  # [B, 1, S, T]
