"""Frequencies fall as in the paper, and each way of scaling slows the pairs that it should."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY

from minimind_edu.model.rope_frequencies import (
    RopeScaling,
    rope_frequencies,
    scaling_of_each_pair,
    yarn_correction_range,
)

DOUBLE = torch.float64
even_dims = st.integers(1, 16).map(lambda pairs: 2 * pairs)
bases = st.sampled_from([100.0, 1e4, 1e6])


@PROPERTY
@given(even_dims, bases)
def test_frequencies_fall_from_one_by_a_constant_ratio(dim, base):
    expected = [math.exp(-2 * pair / dim * math.log(base)) for pair in range(dim // 2)]
    assert rope_frequencies(dim, base, dtype=DOUBLE).tolist() == pytest.approx(expected, rel=1e-12)


def test_yarn_leaves_fast_pairs_alone_and_slows_slow_ones_by_the_factor():
    scaling = RopeScaling(factor=16)
    for dim, (low, high) in {96: (8, 21), 64: (5, 14)}.items():
        assert yarn_correction_range(dim, 1e6, scaling) == (low, high)
        scale = scaling_of_each_pair(dim, 1e6, scaling, DOUBLE)
        assert scale[: low + 1].tolist() == [1.0] * (low + 1)
        assert scale[high:].tolist() == [1 / 16] * (dim // 2 - high)
        assert (scale.diff()[low:high] < 0).all()


def range_clamped_at(last_pair, dim, base, context, betas):
    """YaRN's range with the upper clamp as an argument: MiniMind3 uses dim/2 - 1, transformers dim - 1."""
    fast, slow = (dim * math.log(context / (beta * 2 * math.pi)) / (2 * math.log(base)) for beta in betas)
    return max(math.floor(fast), 0), min(math.ceil(slow), last_pair)


def test_either_clamp_gives_the_same_range_in_all_realistic_settings():
    settings = [
        (dim, base, context, betas)
        for dim in (32, 64, 80, 96, 128, 256)
        for base in (1e4, 1e5, 5e5, 1e6, 1e7)
        for context in (512, 2048, 4096, 8192, 32768, 131072)
        for betas in ((32.0, 1.0), (4.0, 1.0))
        if base >= 1e5 or context <= 32768  # nobody trains 131072 positions with a base of 10,000
    ]
    for dim, base, context, betas in settings:
        ours = yarn_correction_range(dim, base, RopeScaling(16, context, *betas))
        assert ours == range_clamped_at(dim - 1, dim, base, context, betas)
        assert ours == range_clamped_at(dim // 2 - 1, dim, base, context, betas)


def test_the_clamps_part_where_the_trained_context_is_in_the_millions():
    setting = (64, 1e6, 10**7, (32.0, 1.0))
    assert range_clamped_at(31, *setting) == (25, 31)
    assert range_clamped_at(63, *setting) == (25, 34)
    assert yarn_correction_range(64, 1e6, RopeScaling(16, 10**7)) == (25, 34)


def test_the_older_formula_is_not_yarn():
    older = scaling_of_each_pair(96, 1e6, RopeScaling(16, formula="minimind2"), DOUBLE)
    assert (older[1:21] < 1).all(), "it slows fast pairs that YaRN leaves alone"
    assert older[0].item() == pytest.approx((1 * 16 - 1 + 1) / (1 * 16))
    step = (older[:-1] - older[1:]).max().item()
    assert step > 0.8, "and it drops to 1/factor in one step"
    assert older[-1].item() == pytest.approx(1 / 16)


def test_the_older_formula_is_that_of_minimind2_pair_by_pair():
    dim, base, factor, beta_fast, beta_slow, context = 64, 1e6, 4.0, 4.0, 1.0, 2048
    scaling = RopeScaling(factor, context, beta_fast, beta_slow, formula="minimind2")
    expected, corner_passed = [], False
    for pair in range(dim // 2):
        corner_passed |= 2 * math.pi * base ** (2 * pair / dim) > context
        beta = beta_slow + (beta_fast - beta_slow) * pair / (dim / 2 - 1)
        expected.append(1 / factor if corner_passed else (beta * factor - beta + 1) / (beta * factor))
    assert expected[0] == 1 and 0 < expected.index(0.25) < dim // 2
    ours = scaling_of_each_pair(dim, base, scaling, DOUBLE).tolist()
    assert ours == pytest.approx(expected)


def test_the_older_formula_without_a_corner_slows_no_pair_wholly():
    scaling = RopeScaling(4.0, 10**9, 4.0, formula="minimind2")
    assert (scaling_of_each_pair(8, 1e4, scaling, DOUBLE) > 0.25).all()


def test_a_base_of_many_digits_is_a_number_as_any_other():
    assert torch.equal(rope_frequencies(8, 10**30), rope_frequencies(8, 1e30))


@pytest.mark.parametrize("dim", [7, 0, -2, 10**9, 8.5])
def test_rejects_an_odd_head_dim(dim):
    with pytest.raises(ValueError, match=f"rotates pairs of channels, so dim must be even, .* got {dim}"):
        rope_frequencies(dim)


@pytest.mark.parametrize("base", [1, 0, -1.0, 0.5, math.nan, math.inf, 10**400, "1e4"])
def test_rejects_a_base_whose_frequencies_would_not_fall(base):
    with pytest.raises(ValueError, match="rope_base must be"):
        rope_frequencies(8, base)


def test_rejects_a_dtype_without_fractions():
    with pytest.raises(ValueError, match="dtype must be of floating-point numbers, got torch.int64"):
        rope_frequencies(8, dtype=torch.int64)


def test_a_scaling_starts_where_a_table_outgrows_the_trained_context():
    scaling = RopeScaling(4, 64)
    assert [scaling.starts_at(length) for length in (1, 63, 64, 65, 128)] == [False, False, False, True, True]


def test_a_ramp_of_no_width_is_a_step():
    """In a context of four positions even the fastest pair does not rotate once."""
    scaling = RopeScaling(16, 4)
    assert yarn_correction_range(8, 1e4, scaling) == (0, 0)
    assert scaling_of_each_pair(8, 1e4, scaling, DOUBLE).tolist() == [1.0] + [1 / 16] * 3


def test_the_attention_factor_of_the_paper_is_the_default():
    assert RopeScaling(factor=16).table_factor == pytest.approx(0.1 * math.log(16) + 1)
    assert RopeScaling(factor=1).table_factor == 1.0
    assert RopeScaling(factor=16, attention_factor=1.25).table_factor == 1.25
    assert RopeScaling(factor=16, formula="minimind2").table_factor == 1.0


BAD_SCALINGS = [
    ({"factor": 0.5}, "factor must be at least 1, got 0.5; it is how many times longer"),
    ({"factor": math.nan}, "factor must be a finite number, got nan"),
    (
        {"original_max_position_embeddings": 0},
        "original_max_position_embeddings must be a whole .* got 0",
    ),
    (
        {"beta_fast": 1.0, "beta_slow": 2.0},
        "beta_fast must be above 2.0, got 1.0; fast pairs rotate more",
    ),
    ({"beta_slow": 0.0}, "beta_slow must be above 0, got 0.0"),
    ({"beta_slow": 1e-320}, "beta_slow must be a finite number, got 1e-320"),
    ({"beta_fast": 10**400}, "beta_fast must be a finite number, got 1000"),
    ({"formula": "ntk"}, "formula must be 'yarn' or 'minimind2', got 'ntk'"),
    ({"factor": math.inf}, "factor must be a finite number, got inf"),
    ({"beta_fast": math.inf}, "beta_fast must be a finite number, got inf"),
    ({"original_max_position_embeddings": math.nan}, "original_max_position_embeddings must be a whole .* got nan"),
    ({"attention_factor": math.nan}, "attention_factor must be a finite number, got nan"),
    ({"attention_factor": "1"}, "attention_factor must be a finite number, got '1'"),
    ({"attention_factor": 0.0}, "attention_factor must be above 0, got 0.0; it multiplies cos and sin"),
]


@pytest.mark.parametrize("changes, message", BAD_SCALINGS)
def test_rejects_a_scaling_that_scales_nothing(changes, message):
    with pytest.raises(ValueError, match=message):
        RopeScaling(**changes)


def test_a_scaling_may_always_act():
    scaling = RopeScaling(4, 64, always=True)
    assert all(scaling.starts_at(length) for length in (1, 64, 65))
    with pytest.raises(ValueError, match="always must be True or False, got 'no'"):
        RopeScaling(4, 64, always="no")
