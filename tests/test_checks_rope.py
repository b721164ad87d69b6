"""checks.rope: right answers pass, and every usual wrong answer is named."""

import math

import pytest
import torch
from check_answers import (
    assert_every_hint_is_its_own,
    assert_mistake_is_named,
    assert_told_as_not_attempted,
    wrong_answers,
)

from minimind_edu import checks
from minimind_edu.checks import _rope_mistakes as known
from minimind_edu.rope import (
    apply_rotary_pos_emb,
    half_split_permutation,
    precompute_freqs_cis,
    rotate_half,
    rotate_interleaved,
)

# ---- right answers, none of them written like the reference


def turn_by_complex_numbers(x, angle):
    turned = torch.view_as_complex(x) * torch.polar(torch.ones_like(x[0]), torch.full_like(x[0], angle))
    return torch.view_as_real(turned)  # fmt: skip


def turn_by_matrix(x, angle):
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.tensor([[cos, -sin], [sin, cos]], dtype=x.dtype) @ x


def tables_as_in_minimind(dim, end, rope_base):
    freqs = 1.0 / (rope_base ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end), freqs).float()
    cos = torch.cat([torch.cos(freqs), torch.cos(freqs)], dim=-1)
    return cos, torch.cat([torch.sin(freqs), torch.sin(freqs)], dim=-1)


def tables_by_loops(dim, end, rope_base):
    rows = [[p * rope_base ** (-2 * (i % (dim // 2)) / dim) for i in range(dim)] for p in range(end)]
    return [torch.tensor(rows).cos(), torch.tensor(rows).sin()]  # fmt: skip


def apply_by_halves(q, k, cos, sin):
    half = q.shape[-1] // 2
    cos, sin = cos[:, None, :half], sin[:, None, :half]

    def turn(x):
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    return turn(q), turn(k)


def turn_from_with_the_package(x, cos, sin, start):
    rows = slice(start, start + x.shape[1])
    return apply_rotary_pos_emb(x, x, cos[rows], sin[rows])[0]  # raises its own ValueError


def convert_as_transformers_does(weight, num_heads):
    rows, columns = weight.shape
    pairs = weight.view(num_heads, rows // num_heads // 2, 2, columns)
    return pairs.transpose(1, 2).reshape(rows, columns)


RIGHT = [
    (checks.check_rotate_pair, turn_by_complex_numbers),
    (checks.check_rotate_pair, turn_by_matrix),
    (checks.check_precompute_freqs_cis, tables_as_in_minimind),
    (checks.check_precompute_freqs_cis, tables_by_loops),
    (checks.check_precompute_freqs_cis, precompute_freqs_cis),
    (checks.check_apply_rotary_pos_emb, apply_by_halves),
    (checks.check_apply_rotary_pos_emb, apply_rotary_pos_emb),
    (checks.check_rotate_from, turn_from_with_the_package),
    (checks.check_convert_rows, convert_as_transformers_does),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer, capsys):
    assert check(answer) is True
    assert "not yet" not in capsys.readouterr().out


# ---- wrong answers, written as a learner would, and the words that the hint must hold


def pair(first, second):
    """turn(x, angle) from two expressions in x0, x1, cos, sin."""

    def turn(x, angle):
        c, s = math.cos(angle), math.sin(angle)
        return torch.stack([first(x[0], x[1], c, s), second(x[0], x[1], c, s)])

    return turn


def with_old_x_overwritten(x, angle):
    x[0] = x[0] * math.cos(angle) - x[1] * math.sin(angle)
    x[1] = x[0] * math.sin(angle) + x[1] * math.cos(angle)
    return x


WRONG_PAIRS = {
    "clockwise": (pair(lambda a, b, c, s: a * c + b * s, lambda a, b, c, s: b * c - a * s), "minus the angle"),
    "degrees": (lambda x, angle: turn_by_matrix(x, angle * math.pi / 180), "degrees"),
    "cosine and sine swapped": (
        pair(lambda a, b, c, s: a * s - b * c, lambda a, b, c, s: a * c + b * s),
        "changed places",
    ),
    "mirror": (pair(lambda a, b, c, s: a * c + b * s, lambda a, b, c, s: a * s - b * c), "mirror"),
    "no minus": (pair(lambda a, b, c, s: a * c + b * s, lambda a, b, c, s: a * s + b * c), "sign is missing"),
    "overwritten": (with_old_x_overwritten, "old x[0]"),
    "cosine only": (lambda x, angle: x * math.cos(angle), "shortens"),
    "added": (lambda x, angle: x + angle, "add the angle"),
}  # fmt: skip


def tables(exponent=lambda dim: torch.arange(0, dim, 2) / dim, base=None, first=0, double=None):
    double = double or (lambda angles: torch.cat([angles, angles], dim=-1))

    def make(dim, end, rope_base):
        inv_freq = 1 / (base or rope_base) ** exponent(dim)
        angles = double(torch.outer(torch.arange(first, first + end), inv_freq))
        return angles.cos(), angles.sin()

    return make


WRONG_TABLES = {
    "half the width": (tables(double=lambda a: a), "one column a pair"),
    "transposed": (tables(double=lambda a: torch.cat([a, a], -1).T), "rows and columns"),
    "doubled downwards": (tables(double=lambda a: torch.cat([a, a], 0)), "dim=-1"),
    "interleaved columns": (tables(double=lambda a: a.repeat_interleave(2, -1)), "a a b b"),
    "exponent i / dim": (tables(lambda d: torch.arange(d // 2) / d), "i / dim"),
    "exponent over half": (tables(lambda d: torch.arange(0, d, 2) / (d // 2)), "divide by dim"),
    "i from 1": (tables(lambda d: torch.arange(2, d + 2, 2) / d), "i = 0"),
    "reversed": (tables(lambda d: torch.arange(d - 2, -1, -2) / d), "reversed"),
    "growing": (tables(lambda d: -torch.arange(0, d, 2) / d), "grow"),
    "positions from 1": (tables(first=1), "begin with 1"),
    "base ignored": (tables(base=1e4), "rope_base"),
    "base of MiniMind": (tables(base=1e6), "rope_base"),
    "swapped": (lambda *a: tables()(*a)[::-1], "changed places"),
    "clockwise": (lambda *a: (tables()(*a)[0], -tables()(*a)[1]), "nanochat"),
    "degrees": (tables(double=lambda a: torch.cat([a, a], -1) * math.pi / 180), "degrees"),
    "one table": (lambda *a: tables()(*a)[0], "two tensors"),
}


def apply(quarter_turn=rotate_half, axis=1):
    def turn(q, k, cos, sin):
        if axis is not None:
            cos, sin = cos.unsqueeze(axis), sin.unsqueeze(axis)
        return q * cos + quarter_turn(q) * sin, k * cos + quarter_turn(k) * sin

    return turn


def in_place(q, k, cos, sin):
    turned = apply()(q, k, cos, sin)
    q.copy_(turned[0])
    return q, turned[1]


WRONG_TURNS = {
    "no axis for the heads": (apply(axis=None), "unsqueeze(1)"),
    "axis before the positions": (apply(axis=0), "unsqueeze(1)"),
    "interleaved": (apply(rotate_interleaved), "neighbors"),
    "clockwise": (apply(lambda x: -rotate_half(x)), "nanochat"),
    "swap without a sign": (apply(lambda x: x.roll(x.shape[-1] // 2, -1)), "minus sign"),
    "two signs": (apply(lambda x: -x.roll(x.shape[-1] // 2, -1)), "negates both"),
    "no quarter turn": (apply(lambda x: x), "quarter turn"),
    "cosine and sine swapped": (lambda q, k, cos, sin: apply()(q, k, sin, cos), "changed places"),
    "cosine only": (lambda q, k, cos, sin: (q * cos[:, None], k * cos[:, None]), "cosine part"),
    "keys forgotten": (lambda q, k, cos, sin: (apply()(q, k, cos, sin)[0], k), "keys are not"),
    "queries forgotten": (lambda q, k, cos, sin: (q, apply()(q, k, cos, sin)[1]), "queries are not"),
    "order": (lambda q, k, cos, sin: apply()(q, k, cos, sin)[::-1], "q first"),
    "added": (lambda q, k, cos, sin: (q + cos[:, None] + sin[:, None], k), "add the tables"),
    "in place": (in_place, "in place"),
}  # fmt: skip


def turn_from(rows):
    def turn(x, cos, sin, start):
        cos, sin = cos[rows(start, x.shape[1])], sin[rows(start, x.shape[1])]
        return x * cos[:, None] + rotate_half(x) * sin[:, None]

    return turn


def guarded(turn):
    def checked(x, cos, sin, start):
        if start + x.shape[1] > len(cos):
            raise ValueError("past the end")
        return turn(x, cos, sin, start)

    return checked


def raises_index_error(x, cos, sin, start):
    cos[start + x.shape[1] - 1]
    return turn_from(lambda start, length: slice(start, start + length))(x, cos, sin, start)


def refuses_the_last_row(x, cos, sin, start):
    if start + x.shape[1] >= len(cos):
        raise ValueError("past the end")
    return turn_from(lambda start, length: slice(start, start + length))(x, cos, sin, start)


WRONG_ROWS = {
    "from 0": (turn_from(lambda start, length: slice(length)), "cos[:S]"),
    "one row for all": (turn_from(lambda start, length: slice(start, start + 1)), "start + 1"),
    "one too far": (guarded(turn_from(lambda s, n: slice(s + 1, s + n + 1))), "too far"),
    "one too early": (turn_from(lambda s, n: slice(s - 1, s + n - 1) if s else slice(n)), "early"),
    "end of the slice": (turn_from(lambda start, length: slice(start, length)), "start + S"),
    "last rows": (turn_from(lambda start, length: slice(-length, None)), "last rows"),
    "clockwise": (
        lambda x, cos, sin, start: turn_from(lambda s, n: slice(s, s + n))(x, cos, -sin, start),
        "nanochat",
    ),
    "not turned": (lambda x, cos, sin, start: x, "as it was"),
    "silent past the end": (turn_from(lambda s, n: torch.arange(s, s + n).clamp(max=11)), "nothing was said"),
    "another error": (raises_index_error, "raise a ValueError"),
    "refuses too early": (refuses_the_last_row, "past the end"),
}  # fmt: skip


def by_head(order):
    def convert(weight, num_heads):
        heads = weight.unflatten(0, (num_heads, -1))
        return heads[:, order(heads.shape[1])].flatten(0, 1)

    return convert


WRONG_CONVERSIONS = {
    "untouched": (lambda weight, heads: weight, "old order"),
    "the way back": (by_head(lambda d: half_split_permutation(d).argsort()), "way back"),
    "odd first": (by_head(lambda d: torch.tensor([*range(1, d, 2), *range(0, d, 2)])), "odd rows"),
    "across heads": (lambda w, heads: torch.cat([w[0::2], w[1::2]]), "head by head"),
    "heads last": (
        lambda w, heads: torch.cat([w.view(-1, heads, w.shape[1])[i::2] for i in (0, 1)]).flatten(0, 1),
        "[D, H]",
    ),
    "columns": (lambda w, heads: torch.cat([w[:, 0::2], w[:, 1::2]], dim=1), "columns"),
    "halves": (by_head(lambda d: torch.arange(d).roll(d // 2)), "swap the halves"),
    "not flattened": (
        lambda w, heads: w.unflatten(0, (heads, -1))[:, half_split_permutation(len(w) // heads)],
        "flatten",
    ),
}  # fmt: skip

WRONG = wrong_answers(
    {
        checks.check_rotate_pair: WRONG_PAIRS,
        checks.check_precompute_freqs_cis: WRONG_TABLES,
        checks.check_apply_rotary_pos_emb: WRONG_TURNS,
        checks.check_rotate_from: WRONG_ROWS,
        checks.check_convert_rows: WRONG_CONVERSIONS,
    }
)


@pytest.mark.parametrize(("check", "answer", "words"), WRONG)
def test_a_usual_mistake_is_named(check, answer, words, capsys):
    assert_mistake_is_named(check, answer, words, capsys)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (checks.check_rotate_pair, lambda x, angle: None),
        (checks.check_precompute_freqs_cis, lambda dim, end, rope_base: None),
        (checks.check_precompute_freqs_cis, lambda dim, end, rope_base: (None, None)),
        (checks.check_apply_rotary_pos_emb, lambda q, k, cos, sin: None),
        (checks.check_rotate_from, lambda x, cos, sin, start: None),
        (checks.check_convert_rows, lambda weight, num_heads: None),
    ],
)
def test_nothing_written_yet_is_no_mistake(check, answer, capsys):
    assert_told_as_not_attempted(check, answer, capsys)


def test_what_the_attempt_raises_is_told(capsys):
    assert checks.check_rotate_pair(lambda x, angle: x.nonsense) is False
    assert "stopped with AttributeError" in capsys.readouterr().out


@pytest.mark.parametrize(
    "mistakes",
    [
        known.ROTATE_PAIR_MISTAKES,
        known.TABLE_MISTAKES,
        known.APPLY_MISTAKES,
        known.ROTATE_FROM_MISTAKES,
        known.CONVERT_MISTAKES,
    ],
)
def test_every_hint_is_its_own(mistakes):
    assert_every_hint_is_its_own(mistakes)


def test_relative_scores_alone_would_miss_the_mistakes_that_numbers_find():
    """Why the checks compare numbers: all of these keep the score of (8, 5) when both move on to (28, 25)."""
    q, k = torch.linspace(-1, 1, 8), torch.linspace(0.5, 2, 8)
    for name in ("exponent i / dim", "reversed", "positions from 1", "base ignored", "clockwise"):
        make, _ = WRONG_TABLES[name]
        cos, sin = make(8, 40, 100.0)

        def score(m, n, cos=cos, sin=sin):
            turned = [v * cos[p] + rotate_half(v) * sin[p] for v, p in ((q, m), (k, n))]
            return turned[0] @ turned[1]

        torch.testing.assert_close(score(8, 5), score(28, 25), rtol=1e-3, atol=1e-4)
