"""Exercises on attention.

Positions, channels, heads and batch have different sizes throughout, so that a wrong axis shows. Most mistakes run
without an error, give the right shape, and can even be trained: only a comparison finds them.
"""

import math

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, numbers
from minimind_edu.model.attention import attention
from minimind_edu.model.masks import causal_mask, padding_mask


def _causal_head(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    q, k, v = (x[None, :, None] for x in (query, key, value))  # [S, D] -> [1, S, 1, D]
    return attention(q, k, v, causal_mask(query.shape[0], key.shape[0]))[0][0, :, 0]


def _scores(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.T / math.sqrt(query.shape[-1])


def _masked(scores: Tensor, diagonal: int = 0) -> Tensor:
    return scores.masked_fill(~torch.ones_like(scores).tril(diagonal).bool(), -torch.inf)


def _powers(scores: Tensor, mask: Tensor, least: float = 0.0) -> Tensor:
    """The softmax as it stands in the formula: e to a score of several hundred is infinite."""
    powers = scores.exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=least)


_OVERFLOW = "e to a large score is infinite, and inf / inf is nan: subtract the row's largest score, or use softmax"


def _qkv(*shape: int, scale: float = 1.0) -> tuple[Tensor, ...]:
    return tuple(1.5 * scale * numbers(3, *shape))


check_causal_head = Exercise(
    "Is `attempt(query, key, value)` one causal head, `[S, D]` each -> `[S, D]`?",
    answer=_causal_head,
    cases=(
        Case("five tokens, head_dim 8", _qkv(5, 8)),
        Case("seven tokens, head_dim 3", _qkv(7, 3)),
        Case("one token reads itself", _qkv(1, 4)),
        Case("scores in the hundreds do not overflow", _qkv(4, 6, scale=30.0)),
    ),
    mistakes=(
        Mistake(
            lambda q, k, v: _masked(q @ k.T).softmax(-1) @ v,
            "the scores are not scaled: divide by the square root of head_dim",
        ),
        Mistake(
            lambda q, k, v: _masked(q @ k.T / q.shape[-1]).softmax(-1) @ v,
            "you divide the scores by head_dim itself: divide by its square root",
        ),
        Mistake(lambda q, k, v: _powers(_scores(q, k), torch.ones(len(q), len(q)).tril()) @ v, _OVERFLOW),
        Mistake(
            lambda q, k, v: _scores(q, k).softmax(-1) @ v, "nothing hides the future: row s may see columns 0 to s only"
        ),
        Mistake(
            lambda q, k, v: _masked(_scores(q, k), -1).softmax(-1) @ v,
            "your mask hides one key too many: a query may see its own position, and the first one sees nothing else",
        ),
        Mistake(
            lambda q, k, v: _masked(_scores(q, k).T).T.softmax(-1) @ v,
            "the triangle is upside down: a query sees the future and not the past; tril keeps the lower triangle",
        ),
        Mistake(
            lambda q, k, v: _scores(q, k).softmax(-1).tril() @ v,
            "the mask comes after the softmax, so the rows no longer sum to 1: fill the scores with -inf before it",
        ),
        Mistake(
            lambda q, k, v: _scores(q, k).tril().softmax(-1) @ v,
            "a hidden score must be -inf, not 0: exp(0) is 1, so the future still gets weight",
        ),
        Mistake(
            lambda q, k, v: (
                _scores(q, k).masked_fill(torch.ones(len(q), len(q)).tril().bool(), -torch.inf).softmax(-1) @ v
            ),
            "you fill what may be seen: masked_fill writes where the mask is True, so it needs the future (~ inverts)",
        ),
        Mistake(
            lambda q, k, v: _masked(_scores(k, q)).softmax(-1) @ v,
            "query and key are swapped: a row is a query, so query @ key.T",
        ),
        Mistake(lambda q, k, v: _masked(_scores(q, k)).softmax(-1) @ k, "you mix the keys; mix the values"),
        Mistake(
            lambda q, k, v: _masked(_scores(q, k)).softmax(0) @ v,
            "the softmax runs over the queries: use the last axis",
        ),
    ),
)


def _triangle(attention_mask: Tensor) -> Tensor:
    return causal_mask(attention_mask.shape[1], attention_mask.shape[1])


def _visible(attention_mask: Tensor) -> Tensor:
    return _triangle(attention_mask) & padding_mask(attention_mask)


def _is_boolean(attempt: Attempt) -> str | None:
    given = attempt(_LEFT.clone())
    try:
        answer = torch.as_tensor(given)
    except (RuntimeError, TypeError, ValueError):  # no tensor, which the cases tell
        return None
    if answer.dtype is torch.bool:
        return None
    if (answer <= 0).all() and (answer < 0).any():  # in whatever way it was put together
        return "these are numbers to add to scores, 0 and a large negative one: return True where a key is visible"
    if torch.equal(answer, _visible(_LEFT).to(answer)):
        return f"return True and False, not {answer.dtype}: compare or call .bool()"
    return None  # the cases tell what is wrong


_LEFT = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]])
_RIGHT = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0]])

check_visible = Exercise(
    "Does `attempt(attention_mask)` join the causal and the padding rule, `[B, T]` -> `[B, 1, T, T]`, boolean?",
    answer=_visible,
    cases=(
        Property("True and False, not numbers to add", _is_boolean),
        Case("padding on the right", (_RIGHT,)),
        Case("padding on the left", (_LEFT,)),
        Case("no padding: the triangle alone", (torch.ones(2, 3, dtype=torch.long),)),
    ),
    mistakes=(
        Mistake(
            lambda m: _triangle(m).expand(m.shape[0], 1, -1, -1),
            "only the causal rule is applied: a query still sees the padding",
        ),
        Mistake(
            lambda m: padding_mask(m).expand(-1, 1, m.shape[1], -1),
            "only the padding rule is applied: a query still sees the future",
        ),
        Mistake(lambda m: _triangle(m) | padding_mask(m), "a key must satisfy both rules: use & (and), not | (or)"),
        Mistake(
            lambda m: _triangle(m) & m.bool()[:, None, :, None],
            "you hide padding as a query (rows): hide it only as a key, along the last axis, [B, 1, 1, T]",
        ),
        Mistake(
            lambda m: _triangle(m).tril(-1) & padding_mask(m),
            "your triangle lacks the diagonal: a query may see its own position",
        ),
        Mistake(lambda m: ~_visible(m), "yours is True where a key is hidden: True means visible, so invert it with ~"),
        Mistake(
            lambda m: _triangle(m).mT & padding_mask(m), "the triangle is upside down: tril keeps what came before"
        ),
    ),
)


def _multi_head(query: Tensor, key: Tensor, value: Tensor, num_heads: int) -> Tensor:
    q, k, v = (x.unflatten(-1, (num_heads, -1)) for x in (query, key, value))
    return attention(q, k, v, causal_mask(q.shape[1], k.shape[1]))[0].flatten(2)


def _split(x: Tensor, num_heads: int) -> Tensor:
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # [B, S, H*D] -> [B, H, S, D]


def _split_by_view(x: Tensor, num_heads: int) -> Tensor:
    return x.reshape(x.shape[0], num_heads, x.shape[1], -1)


def _join(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)  # [B, H, S, D] -> [B, S, H*D]


def _join_by_view(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], x.shape[2], -1)


def _split_scattered(x: Tensor, num_heads: int) -> Tensor:
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)  # [B, S, D*H] -> [B, H, S, D]


def _join_scattered(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).flatten(2)


def _heads(split: Attempt = _split, join: Attempt = _join, mask: Attempt = _masked) -> Attempt:
    """Attention over the last two axes of what `split` gives, joined by `join`."""

    def answer(query: Tensor, key: Tensor, value: Tensor, num_heads: int) -> Tensor:
        q, k, v = (split(x, num_heads) for x in (query, key, value))
        return join(mask(q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v)

    return answer


check_multi_head = Exercise(
    "Does `attempt(query, key, value, num_heads)` split, attend causally and join, `[B, S, H * D]` each?",
    answer=_multi_head,
    cases=(
        Case("3 heads of 4 channels, five tokens", (*_qkv(2, 5, 12), 3)),
        Case("2 heads of 6 channels, three tokens", (*_qkv(1, 3, 12), 2)),
        Case("one head", (*_qkv(2, 4, 5), 1)),
    ),
    mistakes=(
        Mistake(
            _heads(_split_by_view, _join_by_view),
            "view to [B, H, S, D] cuts across the positions: view to [B, S, H, D] first, then transpose(1, 2)",
        ),
        Mistake(
            _heads(_split_by_view, _join),
            "the result is joined correctly, but view to [B, H, S, D] cuts across the positions when you split: view "
            "to [B, S, H, D], then transpose(1, 2)",
        ),
        Mistake(
            _heads(lambda x, heads: _split(x, heads).transpose(1, 2), lambda x: x.flatten(2)),
            "the heads attend to each other at every position: transpose(1, 2) puts the positions before the channels",
        ),
        *(
            Mistake(
                _heads(_split_scattered, join),
                "your head i has the channels i, i + H, i + 2H: a head has neighboring channels, view(B, S, H, D)",
            )
            for join in (_join_scattered, _join)
        ),
        Mistake(
            _heads(join=_join_by_view),
            "you join the heads without transposing back, which mixes positions: transpose(1, 2) first",
        ),
        Mistake(
            lambda q, k, v, heads: _heads()(q / math.sqrt(heads), k, v, heads),
            "divide by the root of the channels of one head, not of all heads together",
        ),
        Mistake(_heads(mask=lambda scores: scores), "nothing hides the future: every head needs the causal mask"),
    ),
)


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -torch.inf).softmax(-1).masked_fill(~mask, 0.0)


_SCORES = 3 * numbers(4, 6)
_SOME = torch.tensor([[1, 0, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]).bool()
_EMPTY_ROW = _SOME & (torch.arange(4) != 1)[:, None]


def _fill_empty(weights: Tensor, mask: Tensor) -> Tensor:
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)


check_masked_softmax = Exercise(
    "Does `attempt(scores, mask)` give weights over the visible keys, and zeros to a row without any?",
    answer=_masked_softmax,
    cases=(
        Case("every row sees something", (_SCORES, _SOME)),
        Case("a row that sees nothing gets zeros", (_SCORES, _EMPTY_ROW)),
        Case("[B, H, S, T] under one triangle", (numbers(2, 3, 5, 5), torch.ones(5, 5).tril().bool())),
        Case("scores of 1000", (_SCORES + 1000, _EMPTY_ROW)),
    ),
    mistakes=(
        Mistake(
            lambda s, m: s.masked_fill(~m, -torch.inf).softmax(-1),
            "NaN (0/0) in the row whose keys are all hidden: fill the hidden weights with 0 after the softmax",
        ),
        Mistake(
            lambda s, m: s.masked_fill(~m, -1e9).softmax(-1),
            "a row of hidden keys spreads its weight over them: finite scores such as -1e9 are equal, so all keys tie",
        ),
        Mistake(
            lambda s, m: s.softmax(-1) * m,
            "you mask after the softmax only, so the rows do not sum to 1: hide the scores before it",
        ),
        Mistake(
            lambda s, m: (s - 1e9 * ~m).softmax(-1),
            "an added -1e9 keeps the gaps: a row of hidden keys comes out as if nothing were hidden",
        ),
        Mistake(lambda s, m: _powers(s, m, least=1e-9), _OVERFLOW),
        Mistake(lambda s, m: _fill_empty(_powers(s, m), m), _OVERFLOW),
        Mistake(lambda s, m: (s * m).softmax(-1), "a score of 0 is not hidden, because exp(0) is 1: use -inf"),
        Mistake(lambda s, m: _masked_softmax(s, ~m), "you read the mask the wrong way round: True means visible"),
    ),
)


def _divisors(scores: Tensor, weights: Tensor) -> Tensor:
    return (scores[..., :1] - scores[..., 1:]) / (weights[..., :1] / weights[..., 1:]).log()


def _table(divisor: float) -> tuple[Tensor, Tensor]:
    scores = 3 * numbers(3, 5)
    return scores, (scores / divisor).softmax(-1)


check_divisors = Exercise(
    "Does `attempt(scores, weights)` find the divisor that each entry implies against the first, `[..., T - 1]`?",
    answer=_divisors,
    cases=(
        Case("a row without a divisor: all ones", (_table(1.0)[0][0], _table(1.0)[1][0])),
        Case("three rows, divided by 7", _table(7.0)),
        Case("weights that no softmax made", (numbers(4), torch.tensor([0.5, 0.2, 0.1, 0.2]).double())),
    ),
    mistakes=(
        Mistake(
            lambda s, w: (s[..., :1] - s[..., 1:]) / (w[..., :1] / w[..., 1:]),
            "the ratio of two weights is e to the gap of their scores: take its logarithm",
        ),
        Mistake(
            lambda s, w: (s[..., :1] - s[..., 1:]) / (w[..., :1] - w[..., 1:]).log(),
            "divide the two weights; their difference still depends on the whole row",
        ),
        Mistake(lambda s, w: 1 / _divisors(s, w), "upside down: gap / divisor = log of the ratio"),
        Mistake(
            lambda s, w: -_divisors(s, w), "the sign: the gap and the ratio must both have the first entry in front"
        ),
        Mistake(
            lambda s, w: (s[..., :-1] - s[..., 1:]) / (w[..., :-1] / w[..., 1:]).log(),
            "compare with the first entry, not with the neighbor",
        ),
    ),
)


def _lead(written: Tensor, gain: Tensor, table: Tensor, new: int, old: int, rms: Tensor | None = None) -> Tensor:
    rms = written.sum(0).pow(2).mean().sqrt() if rms is None else rms
    return (written / rms * gain) @ (table[new] - table[old])


def _written(writers: int, channels: int, words: int) -> tuple[Tensor, Tensor, Tensor]:
    return 2 * numbers(writers, channels), 1 + numbers(channels, shift=1).abs(), numbers(words, channels, shift=2)


def _rms(x: Tensor) -> Tensor:
    return x.pow(2).mean(-1, keepdim=True).sqrt()


check_lead = Exercise(
    "Does `attempt(written, gain, table, new, old)` say what each writer adds to the lead, `[W, E]` -> `[W]`?",
    answer=_lead,
    cases=(
        Case("five writers, 8 channels", (*_written(5, 8, 7), 2, 4)),
        Case("three writers, 4 channels, other words", (*_written(3, 4, 6), 5, 0)),
        Case("one writer", (*_written(1, 6, 3), 0, 1)),
    ),
    mistakes=(
        Mistake(
            lambda w, g, t, new, old: _lead(w, g, t, new, old, _rms(w)),
            "you divide every writer by its own size, and then all have written alike much: divide by that of the sum",
        ),
        Mistake(
            lambda w, g, t, new, old: _lead(w, g, t, new, old, torch.ones(())),
            "nothing is divided: the norm divides by the root mean square of the whole stream, the sum of all writers",
        ),
        Mistake(
            lambda w, g, t, new, old: _lead(w, g, t, new, old, w.sum(0).pow(2).mean()),
            "you divide by the mean of the squares: take its root",
        ),
        Mistake(
            lambda w, g, t, new, old: _lead(w, g, t, new, old, w.sum(0).norm()),
            "you divide by the length of the stream: its root mean square is the length divided by the root of E",
        ),
        Mistake(
            lambda w, g, t, new, old: _lead(w, torch.ones_like(g), t, new, old),
            "the gain is missing: after the division the norm multiplies every channel by its gain",
        ),
        Mistake(
            lambda w, g, t, new, old: _lead(w, g, torch.cat([t, torch.zeros_like(t[:1])]), new, len(t)),
            "that is what each adds to the logit of the new word: a lead is its logit minus that of the old word",
        ),
        Mistake(lambda w, g, t, new, old: _lead(w, g, t, old, new), "the sign: new minus old, not old minus new"),
        Mistake(
            lambda w, g, t, new, old: _lead(w, g, t, new, old) / _lead(w, g, t, new, old).sum(),
            "these are shares of the lead, with sum 1: return logits, whose sum is the lead",
        ),
        Mistake(
            lambda w, g, t, new, old: (lambda p: p[:, new] - p[:, old])((w / _rms(w.sum(0)) * g @ t.T).softmax(-1)),
            "a softmax cannot be shared out among writers: stay with logits, which are sums",
        ),
    ),
)
