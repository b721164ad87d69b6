"""checks.attention: right answers pass, and every usual wrong answer is named."""

import math

import pytest
import torch
import torch.nn.functional as F
from check_answers import (
    assert_every_hint_is_its_own,
    assert_mistake_is_named,
    assert_told_as_not_attempted,
    wrong_answers,
)

from minimind_edu import checks
from minimind_edu.checks import _attention_mistakes as known

# ---- right answers, none of them written like the reference


def head_by_rows(query, key, value):
    rows = []
    for s in range(len(query)):
        scores = key[: s + 1] @ query[s] / len(query[s]) ** 0.5
        powers = (scores - scores.max()).exp()
        rows.append(powers / powers.sum() @ value[: s + 1])
    return torch.stack(rows)


def head_by_pytorch(query, key, value):
    return F.scaled_dot_product_attention(query[None], key[None], value[None], is_causal=True)[0]


def visible_by_comparing(attention_mask):
    places = torch.arange(attention_mask.shape[1])
    return ((places <= places[:, None]) & (attention_mask[:, None, :] == 1))[:, None]


def heads_one_by_one(query, key, value, num_heads):
    parts = zip(*(x.chunk(num_heads, -1) for x in (query, key, value)), strict=True)
    return torch.cat([F.scaled_dot_product_attention(*part, is_causal=True) for part in parts], dim=-1)


def heads_by_view(query, key, value, num_heads):
    batch, length, width = query.shape
    q, k, v = (x.view(batch, length, num_heads, width // num_heads).transpose(1, 2) for x in (query, key, value))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.transpose(1, 2).reshape(batch, length, width)


def softmax_by_powers(scores, mask):
    powers = (scores - scores.amax(-1, keepdim=True)).exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-300)


def softmax_by_nan_to_num(scores, mask):
    return torch.where(mask, scores, -math.inf).softmax(-1).nan_to_num(0.0)


RIGHT = [
    (checks.check_causal_head, head_by_rows),
    (checks.check_causal_head, head_by_pytorch),
    (checks.check_visible, visible_by_comparing),
    (checks.check_multi_head, heads_one_by_one),
    (checks.check_multi_head, heads_by_view),
    (checks.check_masked_softmax, softmax_by_powers),
    (checks.check_masked_softmax, softmax_by_nan_to_num),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer, capsys):
    assert check(answer) is True
    assert "not yet" not in capsys.readouterr().out


# ---- wrong answers, written as a learner would, and the words that the hint must hold


def triangle(scores, diagonal=1):
    return scores + torch.full(scores.shape[-2:], -math.inf, dtype=scores.dtype).triu(diagonal)


def head(scores=lambda q, k: q @ k.T / math.sqrt(q.shape[1]), weigh=lambda s: triangle(s).softmax(-1)):  # fmt: skip
    return lambda q, k, v: weigh(scores(q, k)) @ v


WRONG_HEADS = {
    "no scale": (head(lambda q, k: q @ k.T), "not scaled"),
    "scale by d": (head(lambda q, k: q @ k.T / q.shape[1]), "square root"),
    "scale by s": (head(lambda q, k: q @ k.T / len(q) ** 0.5), "number of positions"),
    "no mask": (head(weigh=lambda s: s.softmax(-1)), "hides the future"),
    "off by one": (head(weigh=lambda s: triangle(s, 2).softmax(-1)), "one too many"),
    "without itself": (head(weigh=lambda s: triangle(s, 0).softmax(-1)), "one too few"),
    "columns": (head(weigh=lambda s: triangle(s).softmax(0)), "columns"),
    "mask after": (head(weigh=lambda s: s.softmax(-1).tril()), "after the softmax"),
    "zeros": (head(weigh=lambda s: s.tril().softmax(-1)), "not 0"),
    "no softmax": (head(weigh=lambda s: s.tril()), "not weights"),
    "weights": (lambda q, k, v: triangle(q @ k.T / q.shape[1] ** 0.5).softmax(-1), "the weights"),
    "transposed": (head(weigh=lambda s: triangle(s).softmax(-1).T), "transposed"),
    "overflow": (head(weigh=lambda s: s.exp().tril() / s.exp().tril().sum(-1, True)), "expected"),
}


def tri(m):
    return torch.ones(m.shape[1], m.shape[1]).tril().bool()


WRONG_MASKS = {
    "causal only": (lambda m: tri(m)[None, None].repeat(len(m), 1, 1, 1), "only the causal"),
    "padding only": (lambda m: (m == 1)[:, None, None].repeat(1, 1, m.shape[1], 1), "only the padding"),
    "or": (lambda m: tri(m) | (m == 1)[:, None, None], "both rules"),
    "as queries": (lambda m: tri(m) & (m == 1)[:, None, :, None], "as a query"),
    "inverted": (lambda m: ~tri(m) | (m == 0)[:, None, None], "inverted"),
    "upside down": (lambda m: tri(m).T & (m == 1)[:, None, None], "upside down"),
    "padding kept": (lambda m: tri(m) & (m == 0)[:, None, None], "keep the padding"),
    "no axis": (lambda m: tri(m) & (m == 1)[:, None], "axis for the heads"),
    "numbers": (lambda m: (tri(m) & (m == 1)[:, None, None]).int(), "True and False"),
}  # fmt: skip


def multi(split, join, scale=None, hide=triangle):
    def answer(query, key, value, h):
        q, k, v = (split(x, h) for x in (query, key, value))
        scores = q @ k.mT / math.sqrt(scale(query, h) if scale else q.shape[-1])
        return join((hide(scores).softmax(-1) @ v), query)

    return answer


def proper(x, h):
    return x.reshape(*x.shape[:2], h, -1).transpose(1, 2)


def rejoin(x, like):
    return x.transpose(1, 2).reshape(like.shape)


def bare(x, like):
    return x.reshape(like.shape)


def strided(x, h):
    return x.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)


def by_channels(x, like):
    return x.permute(0, 2, 3, 1).flatten(2)


WRONG_MULTI = {
    "view only": (multi(lambda x, h: x.reshape(len(x), h, x.shape[1], -1), bare), "across the positions"),
    "whole width": (multi(proper, rejoin, lambda q, h: q.shape[-1]), "whole width"),
    "no transpose back": (multi(proper, bare), "transposing back"),
    "no mask": (multi(proper, rejoin, hide=lambda s: s), "causal mask"),
    "one head": (multi(lambda x, h: x[:, None], rejoin), "split into heads is missing"),
    "channels first": (multi(strided, by_channels), "neighboring"),
    "joined by channels": (multi(proper, by_channels), "wrong order"),
    "not joined": (multi(proper, lambda x, like: x), "has shape"),
}  # fmt: skip

WRONG_SOFTMAX = {
    "nan": (lambda s, m: torch.where(m, s, -math.inf).softmax(-1), "NaN"),
    "filled": (lambda s, m: torch.where(m, s, -1e9).softmax(-1), "tie"),
    "added": (lambda s, m: (s - 1e9 * ~m).softmax(-1), "leaves the softmax"),
    "after": (lambda s, m: torch.where(m, s.softmax(-1), 0.0), "do not sum to 1"),
    "zeros": (lambda s, m: torch.where(m, s, 0.0).softmax(-1), "not hidden"),
    "zeros twice": (lambda s, m: torch.where(m, s, 0.0).softmax(-1) * m, "still count"),
    "inverted": (lambda s, m: s.masked_fill(m, -math.inf).softmax(-1).nan_to_num(0), "wrong way round"),
    "columns": (lambda s, m: s.masked_fill(~m, -math.inf).softmax(-2).nan_to_num(0), "over the queries"),
    "powers": (lambda s, m: s.exp() * m, "divide each row"),
    "overflow": (lambda s, m: s.exp() * m / (s.exp() * m).sum(-1, True).clamp(min=1e-9), "index"),
}  # fmt: skip

WRONG = wrong_answers(
    {
        checks.check_causal_head: WRONG_HEADS,
        checks.check_visible: WRONG_MASKS,
        checks.check_multi_head: WRONG_MULTI,
        checks.check_masked_softmax: WRONG_SOFTMAX,
    }
)


@pytest.mark.parametrize(("check", "answer", "words"), WRONG)
def test_a_usual_mistake_is_named(check, answer, words, capsys):
    assert_mistake_is_named(check, answer, words, capsys)


@pytest.mark.parametrize("check", sorted({check for check, _ in RIGHT}, key=lambda c: c.__name__))
def test_nothing_written_yet_is_no_mistake(check, capsys):
    assert_told_as_not_attempted(check, lambda *arguments: None, capsys)


@pytest.mark.parametrize(
    "mistakes", [known.HEAD_MISTAKES, known.VISIBLE_MISTAKES, known.MULTI_MISTAKES, known.SOFTMAX_MISTAKES]
)
def test_every_hint_is_its_own(mistakes):
    assert_every_hint_is_its_own(mistakes)
