"""RoPE rotates as the paper says, in all its forms; scores depend on relative positions only."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, tensor

from minimind_edu.model.for_comparison import (
    half_split_permutation,
    precompute_freqs_complex,
    rotate_complex,
    rotate_interleaved,
)
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis, rope_angles, rotate_half
from minimind_edu.model.rope_frequencies import RopeScaling, rope_frequencies

DOUBLE = torch.float64
even_dims = st.integers(1, 16).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([100.0, 1e4, 1e6])
seeds = st.integers(0, 10_000)
positions = st.integers(0, 200)


def turned(x, position, rope_base=1e4):
    """The vector `[D]` as a query at this position."""
    cos, sin = precompute_freqs_cis(x.shape[-1], position + 1, rope_base, dtype=DOUBLE)
    q, _ = apply_rotary_pos_emb(x.view(1, 1, 1, -1), x.view(1, 1, 1, -1), cos[position:], sin[position:])
    return q.flatten()


def rotated_pair_by_pair(x, rope_base):
    """RoPE on `[S, D]` with a 2 x 2 rotation matrix for every position and half-split pair, written as in the paper."""
    length, dim = x.shape
    result = torch.empty_like(x)
    for position in range(length):
        for pair in range(dim // 2):
            angle = position * rope_base ** (-2 * pair / dim)
            first, second = float(x[position, pair]), float(x[position, pair + dim // 2])
            result[position, pair] = first * math.cos(angle) - second * math.sin(angle)
            result[position, pair + dim // 2] = first * math.sin(angle) + second * math.cos(angle)
    return result


# Frequencies and tables


def test_angles_are_position_times_frequency():
    angles = rope_angles(6, 5, 1e4, dtype=DOUBLE)
    frequencies = rope_frequencies(6, 1e4, dtype=DOUBLE)
    assert angles.shape == (5, 3)
    for position in range(5):
        torch.testing.assert_close(angles[position], position * frequencies)


def test_tables_hold_every_angle_twice_side_by_side():
    cos, sin = precompute_freqs_cis(8, 10, dtype=DOUBLE)
    angles = rope_angles(8, 10, dtype=DOUBLE)
    assert cos.shape == sin.shape == (10, 8)
    for half in (slice(0, 4), slice(4, 8)):
        torch.testing.assert_close(cos[:, half], angles.cos())
        torch.testing.assert_close(sin[:, half], angles.sin())


def test_position_zero_is_not_turned():
    x = tensor(8)
    assert torch.equal(turned(x, 0), x)


# What the rotation is


@PROPERTY
@given(even_dims, st.integers(1, 6), bases, seeds)
def test_the_rotation_is_that_of_the_paper(dim, length, base, seed):
    x = tensor(length, dim, seed=seed)
    cos, sin = precompute_freqs_cis(dim, length, base, dtype=DOUBLE)
    q, k = apply_rotary_pos_emb(x[None, :, None], x[None, :, None], cos, sin)
    expected = rotated_pair_by_pair(x, base)
    torch.testing.assert_close(q[0, :, 0], expected)
    torch.testing.assert_close(k[0, :, 0], expected)


@PROPERTY
@given(even_dims, positions, positions, positions, bases, seeds)
def test_scores_depend_only_on_relative_position(dim, m, n, shift, base, seed):
    q, k = tensor(dim, seed=seed), tensor(dim, seed=seed + 1)
    here = turned(q, m, base) @ turned(k, n, base)
    there = turned(q, m + shift, base) @ turned(k, n + shift, base)
    torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-9)


def test_scores_do_depend_on_relative_position():
    q, k = tensor(8), tensor(8, seed=1)
    scores = [float(turned(q, 10) @ turned(k, n)) for n in range(10)]
    assert len({round(score, 6) for score in scores}) == 10


@PROPERTY
@given(even_dims, positions, seeds)
def test_turning_keeps_the_length_of_every_pair(dim, position, seed):
    x = tensor(dim, seed=seed)
    before, after = x.view(2, -1), turned(x, position).view(2, -1)
    torch.testing.assert_close(before.norm(dim=0), after.norm(dim=0))


def test_rotate_half_is_a_quarter_turn():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert rotate_half(x).tolist() == [-3.0, -4.0, 1.0, 2.0]
    assert torch.equal(rotate_half(rotate_half(x)), -x)


# Layouts and dtypes


def test_unsqueeze_dim_says_where_the_heads_stand():
    q, k = tensor(2, 5, 4, 8), tensor(2, 5, 2, 8, seed=1)
    cos, sin = precompute_freqs_cis(8, 5, dtype=DOUBLE)
    positions_first = apply_rotary_pos_emb(q, k, cos, sin)
    heads_first = apply_rotary_pos_emb(q.transpose(1, 2), k.transpose(1, 2), cos, sin, unsqueeze_dim=0)
    for one, other in zip(positions_first, heads_first, strict=True):
        assert torch.equal(one, other.transpose(1, 2))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_all_forms_keep_the_dtype_of_their_input(dtype):
    q = tensor(1, 3, 2, 8, dtype=dtype)
    cos, sin = precompute_freqs_cis(8, 3)
    half_width = cos[:, :4], sin[:, :4]
    for result in (
        *apply_rotary_pos_emb(q, q, cos, sin),
        *rotate_interleaved(q, q, *half_width),
        *rotate_complex(q, q, precompute_freqs_complex(8, 3)),
    ):
        assert result.dtype == dtype


def test_queries_and_keys_each_keep_their_own_dtype():
    q, k = tensor(2, 3, 2, 8, dtype=torch.float32), tensor(2, 3, 1, 8, dtype=torch.bfloat16)
    half_width = rope_angles(8, 3).cos(), rope_angles(8, 3).sin()
    for results in (
        apply_rotary_pos_emb(q, k, *precompute_freqs_cis(8, 3)),
        rotate_interleaved(q, k, *half_width),
        rotate_complex(q, k, precompute_freqs_complex(8, 3)),
    ):
        assert [result.dtype for result in results] == [torch.float32, torch.bfloat16]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_turned_in_the_tables_precision_and_rounded_once(dtype):
    q = tensor(1, 50, 2, 16, dtype=dtype)
    exact, _ = apply_rotary_pos_emb(q.double(), q.double(), *precompute_freqs_cis(16, 50, dtype=DOUBLE))
    result, _ = apply_rotary_pos_emb(q, q, *precompute_freqs_cis(16, 50))
    assert (result == exact.to(dtype)).double().mean() > 0.99


def test_angles_in_float32_are_right_at_the_far_end():
    cos, _ = precompute_freqs_cis(64, 32768)
    frequencies = 1e6 ** (-torch.arange(0, 64, 2, dtype=DOUBLE) / 64)
    exact = torch.outer(torch.arange(32768, dtype=DOUBLE), frequencies).cos()
    assert (cos[:, :32] - exact).abs().max() < 3e-3


# Tables with scaling


def test_scaling_begins_where_the_table_outgrows_the_trained_context():
    scaling = RopeScaling(factor=4, original_max_position_embeddings=64)
    plain, scaled = rope_angles(16, 64), rope_angles(16, 64, rope_scaling=scaling)
    assert torch.equal(plain, scaled)
    longer = rope_angles(16, 65, rope_scaling=scaling)
    assert not torch.allclose(plain[:65], longer[:64])


def test_the_attention_factor_multiplies_both_tables():
    scaling = RopeScaling(4, 64)
    loud = precompute_freqs_cis(16, 128, rope_scaling=scaling, dtype=DOUBLE)
    plain = precompute_freqs_cis(16, 128, rope_scaling=RopeScaling(4, 64, attention_factor=1.0), dtype=DOUBLE)
    for one, other in zip(loud, plain, strict=True):
        torch.testing.assert_close(one, other * (0.1 * math.log(4) + 1))


# Bad input


@pytest.mark.parametrize("dim", [7, 0, -2])
@pytest.mark.parametrize("function", [precompute_freqs_cis, half_split_permutation])
def test_rejects_an_odd_head_dim(function, dim):
    with pytest.raises(ValueError, match=f"rotates pairs of channels, so dim must be even, .* got {dim}"):
        function(dim)


ROTATIONS = {
    "half-split": (apply_rotary_pos_emb, precompute_freqs_cis(8, 5)),
    "interleaved": (rotate_interleaved, (rope_angles(8, 5).cos(), rope_angles(8, 5).sin())),
    "complex": (rotate_complex, (precompute_freqs_complex(8, 5),)),
}


@pytest.mark.parametrize("form", ROTATIONS)
@pytest.mark.parametrize("integers", ["q", "k"])
def test_rejects_integers_which_a_rotation_would_cut(form, integers):
    rotate, tables = ROTATIONS[form]
    given = {name: torch.ones(1, 5, 2, 8) for name in "qk"}
    given[integers] = given[integers].long()
    with pytest.raises(ValueError, match=f"{integers}.* floating-point numbers, got torch.int64"):
        rotate(given["q"], given["k"], *tables)


COS, SIN = precompute_freqs_cis(8, 5)
COMPLEX = precompute_freqs_complex(8, 5)
NOT_CUT = (
    r"q of shape \[2, 5, 4, 8\] is read as \[B, S, H, D\] because unsqueeze_dim=1, .* one row per position, "
    r"got tables of shape \[6, 8\]; slice them to \[start:start \+ S\], or give the other unsqueeze_dim"
)
# rotate, the shape of q and k, the tables, part of the error
UNFIT = {
    "a cos of integers": (apply_rotary_pos_emb, [1, 5, 2, 8], (COS.long(), SIN), "floating-point numbers, got .*int64"),
    "a sin of integers": (apply_rotary_pos_emb, [1, 5, 2, 8], (COS, SIN.long()), "floating-point numbers, got .*int64"),
    "complex tables": (rotate_interleaved, [1, 5, 2, 8], (COMPLEX, COMPLEX), "floating-point numbers, got .*complex64"),
    "real tables": (rotate_complex, [1, 5, 2, 8], (COS[:, :4],), "freqs_cis must be complex, got torch.float32"),
    "tables not cut to the positions": (apply_rotary_pos_emb, [2, 5, 4, 8], precompute_freqs_cis(8, 6), NOT_CUT),
    "heads where positions stand": (apply_rotary_pos_emb, [2, 4, 5, 8], (COS, SIN), r"is read as \[B, S, H, D\]"),
    "positions where heads stand": (
        partial(apply_rotary_pos_emb, unsqueeze_dim=0), [2, 5, 4, 8], (COS, SIN),
        r"is read as \[B, H, S, D\] because unsqueeze_dim=0",
    ),
    "tables of another head_dim": (
        apply_rotary_pos_emb, [1, 5, 2, 8], precompute_freqs_cis(16, 5),
        "q has 8 channels per head, so the tables need 8 columns, got 16; compute them with dim=8",
    ),
    "an axis that holds no heads": (
        partial(apply_rotary_pos_emb, unsqueeze_dim=2), [1, 5, 2, 8], (COS, SIN), "must be 1 for .* or 0 for .*, got 2",
    ),
    "an axis from the end": (
        partial(apply_rotary_pos_emb, unsqueeze_dim=-1), [1, 5, 2, 8], (COS, SIN), "or 0 for .*, got -1",
    ),
    "cos and sin of different shapes": (
        apply_rotary_pos_emb, [1, 5, 2, 8], (COS, SIN[:4]), r"must both be \[S, D\], got \[5, 8\] and \[4, 8\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rotate, shape, tables, message", UNFIT.values(), ids=UNFIT)
def test_rejects_tables_that_do_not_fit_the_heads(rotate, shape, tables, message):
    with pytest.raises(ValueError, match=message):
        rotate(torch.zeros(shape), torch.zeros(shape), *tables)


def test_rejects_a_head_whose_channels_are_no_pairs():
    q, table = torch.ones(1, 5, 2, 7), torch.ones(5, 7)
    for rotate in (apply_rotary_pos_emb, rotate_interleaved):
        with pytest.raises(ValueError, match="head_dim of q must be even, .* got 7"):
            rotate(q, q, table, table)


@pytest.mark.parametrize("end", [-1, 2.5, 10**12])
def test_rejects_a_number_of_positions_that_is_none(end):
    with pytest.raises(ValueError, match=f"end must be a whole number from 0 to 4194304, got {end}"):
        precompute_freqs_cis(8, end)


def test_names_the_tensor_that_does_not_fit():
    q, k = torch.zeros(1, 5, 2, 8), torch.zeros(1, 4, 2, 8)
    with pytest.raises(ValueError, match=r"^k of shape \[1, 4, 2, 8\]"):
        apply_rotary_pos_emb(q, k, *precompute_freqs_cis(8, 5))
