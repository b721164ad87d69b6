"""checks.rope_rotation: right answers in other words pass; shapes, errors and arguments are looked at, too."""

import math

import torch
from judged_answers import judged

from minimind_edu import checks
from minimind_edu.checks.rope_rotation import check_rope
from minimind_edu.model.attention import attention
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis


def by_halves(x, cos, sin):
    """Tables of any width whose first half counts."""
    half = x.shape[-1] // 2
    cos, sin = cos[..., :half], sin[..., :half]
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def rope_from_a_table(x, positions, rope_base):
    cos, sin = precompute_freqs_cis(x.shape[-1], 1000, rope_base)
    return by_halves(x, cos[positions, None], sin[positions, None])


def rope_by_complex_numbers(x, positions, rope_base):
    half = x.shape[-1] // 2
    angles = torch.outer(positions.double(), rope_base ** (-torch.arange(half) / half))
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)[:, None]
    return torch.cat([turned.real, turned.imag], dim=-1)


def rope_by_loops(x, positions, rope_base):
    out, dim = x.clone(), x.shape[-1]
    for s, position in enumerate(positions.tolist()):
        for i in range(dim // 2):
            cos, sin = (f(position / rope_base ** (2 * i / dim)) for f in (math.cos, math.sin))
            a, b = x[:, s, :, i], x[:, s, :, i + dim // 2]
            out[:, s, :, i], out[:, s, :, i + dim // 2] = a * cos - b * sin, a * sin + b * cos
    return out


def attention_rotated_first(q, k, v, cos, sin):
    return attention(*apply_rotary_pos_emb(q, k, cos, sin), v, None)[0]


def attention_by_einsum(q, k, v, cos, sin):
    q, k = by_halves(q, cos[:, None], sin[:, None]), by_halves(k, cos[:, None], sin[:, None])
    weights = (torch.einsum("bshd,bthd->bhst", q, k) / q.shape[-1] ** 0.5).softmax(-1)
    return torch.einsum("bhst,bthd->bshd", weights, v)


def key_through_rope(query, distance, rope_base):
    return rope_by_loops(query[None, None, None], torch.tensor([distance]), rope_base)[0, 0, 0]


def convert_by_views(weight, num_heads):
    rows, columns = weight.shape
    halves = weight.view(num_heads, 2, rows // num_heads // 2, columns)
    return halves.transpose(1, 2).reshape(rows, columns)


RIGHT = [
    (checks.check_rope, rope_from_a_table),
    (checks.check_rope, rope_by_complex_numbers),
    (checks.check_rope, rope_by_loops),
    (checks.check_rotary_attention, attention_rotated_first),
    (checks.check_rotary_attention, attention_by_einsum),
    (checks.check_best_key, key_through_rope),
    (checks.check_convert_rows, convert_by_views),
]


def rope_in_place(x, positions, rope_base):
    return x.copy_(rope_by_loops(x, positions, rope_base))


def rope_without_the_heads(x, positions, rope_base):
    return rope_by_loops(x, positions, rope_base).flatten(2)


def attention_not_joined(q, k, v, cos, sin):
    return attention_rotated_first(q, k, v, cos, sin).transpose(1, 2)


def rope_in_float32(x, positions, rope_base):
    return rope_from_a_table(x.float(), positions, rope_base).float()


def attention_not_scaled(q, k, v, cos, sin):
    return attention_by_einsum(q * math.sqrt(q.shape[-1]), k, v, cos, sin)


def attention_scaled_twice(q, k, v, cos, sin):
    return attention_by_einsum(q / math.sqrt(q.shape[-1]), k, v, cos, sin)


def key_twice_as_long(query, distance, rope_base):
    return 2 * key_through_rope(query, distance, rope_base)


WRONG = [
    (checks.check_rope, rope_in_float32, "keep the dtype of x"),
    (checks.check_rotary_attention, attention_not_scaled, "by the square root of head_dim"),
    (checks.check_rotary_attention, attention_scaled_twice, "by head_dim itself"),
    (checks.check_best_key, key_twice_as_long, "as long as the query"),
    (checks.check_rope, rope_in_place, "in place"),
    (checks.check_rope, rope_without_the_heads, "shape [1, 4, 32], expected [1, 4, 4, 8]"),
    (checks.check_rotary_attention, attention_not_joined, ", expected "),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_relative_scores_alone_would_miss_the_mistakes_that_numbers_find():
    """Why the checks compare numbers: all these keep the score of (8, 5) when both move to (28, 25)."""
    words = ("interleaved pairs", "minus the angle", "exponent is i / D", "frequencies grow", "always 10,000")
    mistakes = [mistake for mistake in check_rope.mistakes if any(word in mistake.hint for word in words)]
    assert len(mistakes) == len(words)
    x = torch.stack([torch.linspace(-1, 1, 8), torch.linspace(0.5, 2, 8)]).double()[None, :, None]
    for mistake in mistakes:
        # a base for which growing frequencies stay small
        near, far = (mistake.answer(x, torch.tensor(positions), 1.1)[0, :, 0] for positions in ((8, 5), (28, 25)))
        torch.testing.assert_close(near[0] @ near[1], far[0] @ far[1])
