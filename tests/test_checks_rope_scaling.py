"""checks.rope_scaling: the references are the package's, and right answers in other words pass."""

import math

import pytest
import torch

from minimind_edu import checks
from minimind_edu.checks import rope_scaling as module
from minimind_edu.config import MiniMindConfig
from minimind_edu.rope import precompute_freqs_cis
from minimind_edu.rope_frequencies import RopeScaling, rope_frequencies, scaling_of_each_pair, yarn_correction_range


def test_the_references_are_the_packages():
    for dim, base, context in [(64, 1e6, 2048), (96, 1e4, 4096), (128, 5e5, 1024), (64, 1e4, 128)]:
        inv_freq = rope_frequencies(dim, base, dtype=torch.float64)
        torch.testing.assert_close(module.periods(dim, base), 2 * math.pi / inv_freq)
        turns = context * inv_freq / (2 * math.pi)
        assert module.unfinished_pairs(dim, base, context) == int((turns < 1).sum())
        scaling = RopeScaling(8.0, context)
        low, high = yarn_correction_range(dim, base, scaling)
        assert module.yarn_range(dim, base, context, 32.0, 1.0) == (low, high)
        expected = scaling_of_each_pair(dim, base, scaling, torch.float64)
        torch.testing.assert_close(module.yarn_scaling(dim, low, high, 8.0), expected)


def test_bytes_are_those_of_real_tables():
    config = MiniMindConfig.minimind3(max_position_embeddings=512)
    tables = precompute_freqs_cis(config.head_dim, 512)
    expected = sum(table.nbytes for table in tables)
    assert module.table_bytes(config.hidden_size, config.num_attention_heads, 512, 4) == expected


def periods_one_by_one(dim, rope_base):
    return [2 * math.pi / rope_base ** (-2 * i / dim) for i in range(dim // 2)]


def unfinished_by_frequency(dim, rope_base, context):
    return int((context * rope_frequencies(dim, rope_base) < 2 * math.pi).sum())


def bytes_by_measuring(hidden_size, num_heads, end, bytes_per_number):
    dtype = {2: torch.float16, 4: torch.float32, 8: torch.float64}[bytes_per_number]
    return sum(t.nbytes for t in precompute_freqs_cis(hidden_size // num_heads, end, dtype=dtype))


def range_by_counting(dim, rope_base, context, beta_fast, beta_slow):
    turns = context / torch.tensor(periods_one_by_one(dim, rope_base))
    return max(int((turns >= beta_fast).sum()) - 1, 0), int((turns > beta_slow).sum())


def scaling_by_loop(dim, low, high, factor):
    scale = []
    for pair in range(dim // 2):
        ramp = min(max((pair - low) / (high - low), 0.0), 1.0)
        scale.append(1 - ramp * (1 - 1 / factor))
    return torch.tensor(scale)


RIGHT = [
    (checks.check_periods, periods_one_by_one),
    (checks.check_unfinished_pairs, unfinished_by_frequency),
    (checks.check_table_bytes, bytes_by_measuring),
    (checks.check_yarn_range, range_by_counting),
    (checks.check_yarn_scaling, scaling_by_loop),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer):
    assert check(answer) is True
