"""checks.rope: right answers in other words pass, and shapes, errors and arguments are looked at, not only numbers."""

import math

import pytest
import torch

from minimind_edu import checks
from minimind_edu.checks.rope import PRECOMPUTE_FREQS_CIS
from minimind_edu.rope import apply_rotary_pos_emb, precompute_freqs_cis, rotate_half


def rotate_by_complex_numbers(x, angle):
    rotated = torch.view_as_complex(x) * torch.polar(torch.ones_like(x[0]), torch.full_like(x[0], angle))
    return torch.view_as_real(rotated)


def rotate_by_matrix(x, angle):
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.tensor([[cos, -sin], [sin, cos]], dtype=x.dtype) @ x


def tables_as_in_minimind(dim, end, rope_base):
    freqs = 1.0 / (rope_base ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end), freqs).float()
    cos = torch.cat([torch.cos(freqs), torch.cos(freqs)], dim=-1)
    return cos, torch.cat([torch.sin(freqs), torch.sin(freqs)], dim=-1)


def tables_by_loops(dim, end, rope_base):
    rows = [[p * rope_base ** (-2 * (i % (dim // 2)) / dim) for i in range(dim)] for p in range(end)]
    return [torch.tensor(rows).cos(), torch.tensor(rows).sin()]


def apply_by_halves(q, k, cos, sin):
    half = q.shape[-1] // 2
    cos, sin = cos[:, None, :half], sin[:, None, :half]

    def rotate(x):
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    return rotate(q), rotate(k)


def rotate_from_with_a_guard(x, cos, sin, start):
    if start + x.shape[1] > len(cos):
        raise ValueError("past the end")
    positions = start + torch.arange(x.shape[1])
    return apply_by_halves(x, x, cos[positions], sin[positions])[1]


def convert_as_transformers_does(weight, num_heads):
    rows, columns = weight.shape
    pairs = weight.view(num_heads, rows // num_heads // 2, 2, columns)
    return pairs.transpose(1, 2).reshape(rows, columns)


RIGHT = [
    (checks.check_rotate_pair, rotate_by_complex_numbers),
    (checks.check_rotate_pair, rotate_by_matrix),
    (checks.check_precompute_freqs_cis, tables_as_in_minimind),
    (checks.check_precompute_freqs_cis, tables_by_loops),
    (checks.check_precompute_freqs_cis, precompute_freqs_cis),
    (checks.check_apply_rotary_pos_emb, apply_by_halves),
    (checks.check_rotate_from, rotate_from_with_a_guard),
    (checks.check_convert_rows, convert_as_transformers_does),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer):
    assert check(answer) is True


def rotate_in_place(x, angle):
    x[0] = x[0] * math.cos(angle) - x[1] * math.sin(angle)
    x[1] = x[0] * math.sin(angle) + x[1] * math.cos(angle)
    return x


def tables_doubled_by(double):
    def tables(dim, end, rope_base):
        angles = torch.outer(torch.arange(end), rope_base ** (-torch.arange(0, dim, 2) / dim))
        return double(angles.cos()), double(angles.sin())

    return tables


def apply_in_place(q, k, cos, sin):
    rotated = apply_by_halves(q, k, cos, sin)
    return q.copy_(rotated[0]), rotated[1]


def only_keys_clockwise(q, k, cos, sin):
    return apply_by_halves(q, k, cos, sin)[0], apply_by_halves(q, k, cos, -sin)[1]


def silent_past_the_end(x, cos, sin, start):
    positions = (start + torch.arange(x.shape[1])).clamp(max=len(cos) - 1)
    return apply_by_halves(x, x, cos[positions], sin[positions])[0]


def raises_an_index_error(x, cos, sin, start):
    positions = start + torch.arange(x.shape[1])
    return apply_by_halves(x, x, cos[positions], sin[positions])[0]


def refuses_the_last_row(x, cos, sin, start):
    if start + x.shape[1] >= len(cos):
        raise ValueError("past the end")
    return rotate_from_with_a_guard(x, cos, sin, start)


WRONG = [
    (checks.check_rotate_pair, rotate_in_place, "already overwritten"),
    (checks.check_precompute_freqs_cis, tables_doubled_by(lambda t: t), "one column per pair"),
    (checks.check_precompute_freqs_cis, tables_doubled_by(lambda t: torch.cat([t, t], -1).T), "rows and columns"),
    (checks.check_precompute_freqs_cis, tables_doubled_by(lambda t: torch.cat([t, t])), "doubled the rows"),
    (checks.check_precompute_freqs_cis, tables_doubled_by(lambda t: t[0]), "one row per position"),
    (checks.check_precompute_freqs_cis, lambda *sizes: tables_by_loops(*sizes)[0], "two tensors, cos and sin"),
    (checks.check_apply_rotary_pos_emb, apply_in_place, "in place"),
    (checks.check_apply_rotary_pos_emb, only_keys_clockwise, "k: at index"),
    (checks.check_rotate_from, silent_past_the_end, "there was no error"),
    (checks.check_rotate_from, raises_an_index_error, "raise a ValueError"),
    (checks.check_rotate_from, refuses_the_last_row, "stopped with ValueError: past the end"),
]


@pytest.mark.parametrize(("check", "answer", "words"), WRONG, ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_answer_gets_the_hint_that_fits(check, answer, words, capsys):
    assert check(answer) is False
    assert words in capsys.readouterr().out.split("hint: ")[1]


def test_two_missing_tables_are_an_answer_not_yet_written(capsys):
    assert checks.check_precompute_freqs_cis(lambda dim, end, rope_base: (None, None)) is False
    assert "not attempted yet" in capsys.readouterr().out


def test_relative_scores_alone_would_miss_the_mistakes_that_numbers_find():
    """Why the checks compare numbers: all these tables keep the score of (8, 5) when both move on to (28, 25)."""
    q, k = torch.linspace(-1, 1, 8).double(), torch.linspace(0.5, 2, 8).double()
    words = ("positions begin with 1", "exponent is i / dim", "frequencies grow", "always 10,000")
    mistakes = [mistake for mistake in PRECOMPUTE_FREQS_CIS.mistakes if any(word in mistake.hint for word in words)]
    assert len(mistakes) == len(words)
    for mistake in mistakes:
        cos, sin = mistake.answer(8, 40, 1.1)  # a base for which growing frequencies stay small

        def score(m, n, cos=cos, sin=sin):
            rotated = [v * cos[p] + rotate_half(v) * sin[p] for v, p in ((q, m), (k, n))]
            return rotated[0] @ rotated[1]

        torch.testing.assert_close(score(8, 5), score(28, 25))


def test_the_reference_of_rotating_from_a_position_is_the_packages():
    x, (cos, sin) = torch.randn(1, 4, 2, 8), precompute_freqs_cis(8, 12)
    expected = apply_rotary_pos_emb(x, x, cos[5:9], sin[5:9])[0]
    torch.testing.assert_close(rotate_from_with_a_guard(x, cos, sin, 5), expected)
