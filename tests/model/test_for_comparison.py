"""What the model does not use is what it is compared with: by a formula of its own, or with the model's part."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, spread_weights, tensor

from minimind_edu.model.attention import repeat_kv
from minimind_edu.model.for_comparison import (
    CatCache,
    LayerNorm,
    PlainFeedForward,
    half_split_permutation,
    precompute_freqs_complex,
    repeat_kv_interleave,
    repeat_kv_tiled,
    rotate_complex,
    rotate_every_two,
    rotate_interleaved,
)
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis, rope_angles

DOUBLE = torch.float64
seeds = st.integers(0, 10_000)
widths = st.integers(2, 40)

# Norms


def layer_norm(dim, eps=1e-5, dtype=torch.float64, seed=7):
    norm = LayerNorm(dim, eps).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(tensor(dim, seed=seed) + 2)
        norm.bias.copy_(tensor(dim, seed=seed + 1))
    return norm


@PROPERTY
@given(st.lists(st.integers(1, 5), max_size=3), widths, st.sampled_from([1e-6, 1e-5, 1e-2, 1.0]), seeds)
def test_layer_norm_equals_torch_layer_norm(leading, dim, eps, seed):
    norm = layer_norm(dim, eps, seed=seed)
    theirs = torch.nn.LayerNorm(dim, eps=eps, dtype=torch.float64)
    theirs.load_state_dict(norm.state_dict())
    x = 3 * tensor(*leading, dim, seed=seed) + 1
    torch.testing.assert_close(norm(x), theirs(x), rtol=1e-12, atol=1e-12)


@PROPERTY
@given(widths, seeds, st.floats(0.1, 50), st.floats(-50, 50))
def test_layer_norm_ignores_scale_and_a_common_offset(dim, seed, scale, offset):
    norm = layer_norm(dim, eps=1e-14)
    x = tensor(dim, seed=seed)
    torch.testing.assert_close(norm(scale * x + offset), norm(x), rtol=1e-6, atol=1e-6)


# Pairs of neighbors


def test_rotating_every_two_channels_by_90_degrees_twice_inverts_them():
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert rotate_every_two(x).tolist() == [-2.0, 1.0, -4.0, 3.0]
    assert torch.equal(rotate_every_two(rotate_every_two(x)), -x)


form_shapes = st.tuples(
    st.integers(1, 2), st.integers(1, 5), st.sampled_from([1, 2, 4]), st.integers(1, 16).map(lambda pairs: 2 * pairs)
)


@PROPERTY
@given(form_shapes, st.integers(0, 50), seeds)
def test_half_split_interleaved_and_complex_agree_after_the_permutation(shape, start, seed):
    batch, length, heads, dim = shape
    q, k = tensor(*shape, seed=seed), tensor(batch, length, 1, dim, seed=seed + 1)
    rows = slice(start, start + length)
    cos, sin = precompute_freqs_cis(dim, start + length, dtype=DOUBLE)
    angles = rope_angles(dim, start + length, dtype=DOUBLE)[rows]
    order = half_split_permutation(dim)

    interleaved = rotate_interleaved(q, k, angles.cos(), angles.sin())
    by_complex = rotate_complex(q, k, precompute_freqs_complex(dim, start + length, dtype=DOUBLE)[rows])
    half_split = apply_rotary_pos_emb(q[..., order], k[..., order], cos[rows], sin[rows])
    for one, other, permuted in zip(interleaved, by_complex, half_split, strict=True):
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(one[..., order], permuted)


def test_the_forms_differ_without_the_permutation():
    q = tensor(1, 5, 1, 8)
    cos, sin = precompute_freqs_cis(8, 5, dtype=DOUBLE)
    half_split, _ = apply_rotary_pos_emb(q, q, cos, sin)
    interleaved, _ = rotate_interleaved(q, q, cos[:, :4], sin[:, :4])
    assert not torch.allclose(half_split, interleaved, atol=0.1)


def test_permuting_projection_rows_converts_a_checkpoint():
    heads, dim, width, length = 3, 8, 10, 4
    w_q, w_k = tensor(heads * dim, width), tensor(heads * dim, width, seed=1)
    x = tensor(1, length, width, seed=2)
    cos, sin = precompute_freqs_cis(dim, length, dtype=DOUBLE)
    rows = half_split_permutation(dim)

    def scores(w_q, w_k, rotate, *tables):
        q, k = (torch.nn.functional.linear(x, w).view(1, length, heads, dim) for w in (w_q, w_k))
        q, k = rotate(q, k, *tables)
        return torch.einsum("bshd,bthd->bhst", q, k)

    def converted(w):
        return w.view(heads, dim, width)[:, rows].reshape(heads * dim, width)

    torch.testing.assert_close(
        scores(w_q, w_k, rotate_interleaved, cos[:, : dim // 2], sin[:, : dim // 2]),
        scores(converted(w_q), converted(w_k), apply_rotary_pos_emb, cos, sin),
    )


def test_complex_numbers_have_length_one():
    freqs_cis = precompute_freqs_complex(8, 100, dtype=DOUBLE)
    assert freqs_cis.shape == (100, 4)
    torch.testing.assert_close(freqs_cis.abs(), torch.ones(100, 4, dtype=DOUBLE))


def test_the_complex_form_computes_float64_in_float64():
    q = tensor(1, 50, 2, 16)
    rotated, _ = rotate_complex(q, q, precompute_freqs_complex(16, 50, dtype=DOUBLE))
    angles = rope_angles(16, 50, dtype=DOUBLE)
    expected, _ = rotate_interleaved(q, q, angles.cos(), angles.sin())
    torch.testing.assert_close(rotated, expected, rtol=1e-12, atol=1e-12)


def test_rejects_full_width_tables_in_the_interleaved_forms():
    q, (cos, sin) = torch.zeros(1, 5, 2, 8), precompute_freqs_cis(8, 5)
    with pytest.raises(ValueError, match="the tables need 4 columns, got 8"):
        rotate_interleaved(q, q, cos, sin)
    with pytest.raises(ValueError, match="the tables need 4 columns, got 8"):
        rotate_complex(q, q, torch.complex(cos, sin))


# Heads


@PROPERTY
@given(st.integers(1, 4), st.integers(1, 4), seeds)
def test_interleaving_the_heads_is_repeat_kv(heads, n_rep, seed):
    x = tensor(2, 3, heads, 2, seed=seed)
    assert torch.equal(repeat_kv_interleave(x, n_rep), repeat_kv(x, n_rep))


@PROPERTY
@given(st.integers(2, 4), st.integers(2, 4), seeds)
def test_tiling_the_heads_is_something_else(heads, n_rep, seed):
    x = tensor(1, 2, heads, 3, seed=seed)
    assert torch.equal(repeat_kv_tiled(x, n_rep), torch.cat([x] * n_rep, dim=2))
    assert not torch.equal(repeat_kv(x, n_rep), repeat_kv_tiled(x, n_rep))
    assert repeat_kv_tiled(torch.arange(2.0).view(1, 1, 2, 1), 3).flatten().tolist() == [0, 1, 0, 1, 0, 1]


# Feed-forward


@PROPERTY
@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 10_000))
def test_the_plain_form_is_the_sum_over_units_that_are_on(hidden_size, width, seed):
    module = PlainFeedForward(hidden_size, width).double()
    spread_weights(module, seed)
    x = tensor(hidden_size, seed=seed + 1)
    up, down = module.up_proj.weight.detach(), module.down_proj.weight.detach()
    expected = sum(max(float(up[unit] @ x), 0.0) * down[:, unit] for unit in range(width))
    torch.testing.assert_close(module(x), expected)


# Cache


def test_joining_copies_all_that_was_there():
    cache, (key, value) = CatCache(), (tensor(2, 5, 2, 4), tensor(2, 5, 2, 4, seed=1))
    first, _ = cache.append(key[:, :3], value[:, :3])
    then, held = cache.append(key[:, 3:], value[:, 3:])
    assert torch.equal(then, key) and torch.equal(held, value) and cache.length == 5
    assert then.data_ptr() != first.data_ptr()
