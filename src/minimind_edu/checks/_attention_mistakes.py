"""The usual wrong answers to the exercises on attention, each with the hint that leads out of it.

Most of them run without an error, give the right shape, and even train: only a comparison finds them.
"""

import math
from typing import Any

import torch
from torch import Tensor

from minimind_edu.attention import attention
from minimind_edu.checks._report import Mistake
from minimind_edu.masks import causal_mask, padding_mask


def causal_head(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """One causal head, `[S, D]` each -> `[S, D]`: the reference of the first exercise."""
    q, k, v = (x[None, :, None] for x in (query, key, value))
    return attention(q, k, v, causal_mask(query.shape[0], key.shape[0]))[0][0, :, 0]


def _head(
    scale: Any = lambda q: math.sqrt(q.shape[-1]), diagonal: int = 0, dim: int = -1, mix: Any = torch.matmul
) -> Any:
    def answer(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.T / scale(query)
        allowed = torch.ones_like(scores).tril(diagonal).bool()
        return mix(scores.masked_fill(~allowed, -torch.inf).softmax(dim), value)

    return answer


def _masked_after(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return (query @ key.T / math.sqrt(query.shape[-1])).softmax(-1).tril() @ value


def _zeroed_scores(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return (query @ key.T / math.sqrt(query.shape[-1])).tril().softmax(-1) @ value


def _no_softmax(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return (query @ key.T / math.sqrt(query.shape[-1])).tril() @ value


HEAD_MISTAKES = (
    Mistake(_head(lambda q: 1.0), "the scores are not scaled: divide by the root of head_dim"),
    Mistake(_head(lambda q: q.shape[-1]), "you divide by head_dim itself; divide by its square root"),
    Mistake(
        _head(lambda q: math.sqrt(q.shape[0])),
        "you divide by the root of the number of positions; head_dim is the last axis",
    ),
    Mistake(_head(diagonal=10**6), "nothing hides the future: row s may see columns 0 to s only"),
    Mistake(_head(diagonal=1), "one too many: a query looks at the position after its own"),
    Mistake(
        _head(diagonal=-1), "one too few: a query may look at its own position, and the first one has nothing else"
    ),
    Mistake(_head(dim=0), "the softmax runs down the columns; every row, a query, must sum to 1: dim=-1"),
    Mistake(
        _masked_after, "the mask came after the softmax: the rows no longer sum to 1. Put -inf into the scores, before"
    ),
    Mistake(_zeroed_scores, "a hidden score must be -inf, not 0: e to the 0 is 1, so the future still gets weight"),
    Mistake(_no_softmax, "these are scores, not weights: the softmax between mask and values is missing"),
    Mistake(_head(mix=lambda weights, value: weights), "these are the weights; the output is weights @ value"),
    Mistake(
        _head(mix=lambda weights, value: weights.T @ value), "the weights are transposed: a row belongs to a query"
    ),
)


def visible(attention_mask: Tensor) -> Tensor:
    """Causal and padding together, `[B, T]` -> `[B, 1, T, T]`, boolean: the reference of the second exercise."""
    length = attention_mask.shape[1]
    return causal_mask(length, length) & padding_mask(attention_mask)


def _causal(attention_mask: Tensor) -> Tensor:
    return causal_mask(attention_mask.shape[1], attention_mask.shape[1])


VISIBLE_MISTAKES = (
    Mistake(
        lambda m: _causal(m).expand(m.shape[0], 1, -1, -1),
        "only the causal rule: the padding of each sequence is still seen",
    ),
    Mistake(lambda m: padding_mask(m).expand(-1, 1, m.shape[1], -1), "only the padding rule: the future is still seen"),
    Mistake(lambda m: _causal(m) | padding_mask(m), "a key must satisfy both rules: use & (and), not | (or)"),
    Mistake(
        lambda m: _causal(m) & m.bool()[:, None, :, None],
        "padding is hidden as a query (rows); it must be hidden as a key: the last axis, [B, 1, 1, T]",
    ),
    Mistake(lambda m: ~visible(m), "it is inverted: True stands where a query may look, not where not"),
    Mistake(
        lambda m: _causal(m).T & padding_mask(m),
        "the triangle is upside down: a query sees the future and not the past; tril keeps the lower part",
    ),
    Mistake(
        lambda m: _causal(m) & ~padding_mask(m),
        "in attention_mask a 1 is a real token; you hide the tokens and keep the padding",
    ),
    Mistake(
        lambda m: (_causal(m) & padding_mask(m))[:, 0],
        "an axis for the heads is missing: [B, 1, T, T], so that one mask serves all heads",
    ),
)


def multi_head(query: Tensor, key: Tensor, value: Tensor, num_heads: int) -> Tensor:
    """Split, attend causally, join, `[B, S, H * D]` each: the reference of the third exercise."""
    q, k, v = (x.unflatten(-1, (num_heads, -1)) for x in (query, key, value))
    return attention(q, k, v, causal_mask(q.shape[1], k.shape[1]))[0].flatten(2)


def _split(x: Tensor, num_heads: int) -> Tensor:
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _view_only(x: Tensor, num_heads: int) -> Tensor:
    batch, length, width = x.shape
    return x.reshape(batch, num_heads, length, width // num_heads)


def _inner(x: Tensor, num_heads: int) -> Tensor:
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


def _multi(
    split: Any = _split,
    width: Any = lambda q, h: q.shape[-1] // h,
    join: Any = lambda x: x.transpose(1, 2).flatten(2),
    mask: Any = lambda x: x,
) -> Any:
    def answer(query: Tensor, key: Tensor, value: Tensor, num_heads: int) -> Tensor:
        q, k, v = (split(x, num_heads) for x in (query, key, value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(width(query, num_heads))
        allowed = mask(torch.ones_like(scores).bool())
        return join(scores.masked_fill(~allowed, -torch.inf).softmax(-1) @ v)

    return answer


MULTI_MISTAKES = (
    Mistake(
        _multi(_view_only, join=lambda x: x.flatten(1).reshape(x.shape[0], x.shape[2], -1), mask=torch.tril),
        "view to [B, H, S, D] cuts across the positions: view to [B, S, H, D] first, then transpose(1, 2)",
    ),
    Mistake(
        _multi(width=lambda q, h: q.shape[-1], mask=torch.tril),
        "you scale by the root of the whole width; each head's dot product adds up head_dim = width / heads products",
    ),
    Mistake(
        _multi(join=lambda x: x.reshape(x.shape[0], x.shape[2], -1), mask=torch.tril),
        "the heads are joined without transposing back: reshape mixes positions; transpose(1, 2) first",
    ),
    Mistake(_multi(), "nothing hides the future: every head needs the causal mask"),
    Mistake(
        _multi(lambda x, h: x[:, None], mask=torch.tril, width=lambda q, h: q.shape[-1] // h),
        "this is a single head of the whole width: split the channels into heads before the dot products",
    ),
    Mistake(
        _multi(lambda x, h: x[:, None], mask=torch.tril, width=lambda q, h: q.shape[-1]),
        "one head of the whole width: the split into heads is missing",
    ),
    Mistake(
        _multi(_inner, mask=torch.tril, join=lambda x: x.permute(0, 2, 3, 1).flatten(2)),
        "a head has neighboring channels: [B, S, H, D] with the heads before head_dim, not after",
    ),
    Mistake(
        _multi(mask=torch.tril, join=lambda x: x.permute(0, 2, 3, 1).flatten(2)),
        "joined in the wrong order: head after head, each with all its channels: [B, S, H, D] -> [B, S, H * D]",
    ),
)  # fmt: skip


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the keys where `mask` is True, zeros for a row without any: the reference of the fourth exercise."""
    return scores.masked_fill(~mask, -torch.inf).softmax(-1).masked_fill(~mask, 0.0)


SOFTMAX_MISTAKES = (
    Mistake(
        lambda s, m: s.masked_fill(~m, -torch.inf).softmax(-1),
        "NaN in the row that may see nothing: 0/0. Fill the hidden places of the weights with 0 after the softmax",
    ),
    Mistake(
        lambda s, m: s.masked_fill(~m, -1e9).softmax(-1),
        "the row that may see nothing spreads its weight over hidden keys: -1e9 is the same everywhere, so they tie",
    ),
    Mistake(
        lambda s, m: (s + (~m) * -1e9).softmax(-1),
        "the row that may see nothing still has weights that sum to 1: adding -1e9 to all leaves the softmax as it was",
    ),
    Mistake(
        lambda s, m: s.softmax(-1) * m,
        "masked after the softmax only: the rows do not sum to 1. The hidden scores must leave before",
    ),
    Mistake(lambda s, m: (s * m).softmax(-1), "a score of 0 is not hidden, e to the 0 is 1: use -inf"),
    Mistake(
        lambda s, m: (s * m).softmax(-1) * m,
        "the hidden scores became 0, and their powers still count in the sum: use -inf before the softmax",
    ),
    Mistake(lambda s, m: masked_softmax(s, ~m), "the mask is read the wrong way round: True means visible"),
    Mistake(lambda s, m: masked_softmax(s.mT, m.mT).mT, "the softmax runs over the queries; dim=-1 are the keys"),
    Mistake(
        lambda s, m: s.masked_fill(~m, -torch.inf).exp(), "these are powers, not weights: divide each row by its sum"
    ),
)
