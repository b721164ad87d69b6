"""checks.rope_frequencies: the references are the package's, and right answers in other words pass."""

import math

import pytest
import torch
from judged_answers import judged

from minimind_edu import checks
from minimind_edu.checks import rope_frequencies as module
from minimind_edu.model.rope_frequencies import RopeScaling, rope_frequencies, scaling_of_each_pair


def test_the_references_are_the_packages():
    for dim, base, context in [(64, 1e6, 2048), (96, 1e4, 4096), (128, 5e5, 1024), (64, 1e4, 128)]:
        rotations = context * rope_frequencies(dim, base, dtype=torch.float64) / (2 * math.pi)
        assert module.unfinished_pairs(dim, base, context) == int((rotations < 1).sum())
        expected = scaling_of_each_pair(dim, base, RopeScaling(8.0, context), torch.float64)
        torch.testing.assert_close(module.yarn_scaling(dim, base, context, 8.0), expected)


@pytest.mark.parametrize(("dim", "context"), [(64, 2048), (96, 32768), (4, 100)])
def test_with_the_largest_base_no_pair_is_unfinished_and_with_a_larger_one_the_last_is(dim, context):
    base = module.largest_base(dim, context)
    assert module.unfinished_pairs(dim, base * (1 - 1e-9), context) == 0
    assert module.unfinished_pairs(dim, base * (1 + 1e-9), context) == 1


def unfinished_by_frequency(dim, rope_base, context):
    return int((context * rope_frequencies(dim, rope_base) < 2 * math.pi).sum())


def base_by_halving(dim, context):
    low, high = 1.0, 1e12
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if module.unfinished_pairs(dim, middle, context) else (middle, high)
    return low


def yarn_by_loop(dim, rope_base, context, factor):
    rotations = context * rope_frequencies(dim, rope_base, dtype=torch.float64) / (2 * math.pi)
    low, high = max(int((rotations >= 32).sum()) - 1, 0), int((rotations > 1).sum())
    scale = []
    for pair in range(dim // 2):
        ramp = min(max((pair - low) / (high - low), 0.0), 1.0)
        scale.append(1 - ramp * (1 - 1 / factor))
    return scale


def yarn_by_the_package(dim, rope_base, context, factor):
    return scaling_of_each_pair(dim, rope_base, RopeScaling(factor, context))


def position_by_trying(dtype):
    positions = torch.arange(2**24 + 2)
    return int((positions.to(dtype)[1:] == positions.to(dtype)[:-1]).nonzero()[0])


RIGHT = [
    (checks.check_unfinished_pairs, unfinished_by_frequency),
    (checks.check_largest_base, base_by_halving),
    (checks.check_yarn_scaling, yarn_by_loop),
    (checks.check_yarn_scaling, yarn_by_the_package),
    (checks.check_first_lost_position, position_by_trying),
]


def ramp_by_rotations(dim, rope_base, context, factor):
    """As in YaRN's paper."""
    rotations = context * rope_frequencies(dim, rope_base, dtype=torch.float64) / (2 * math.pi)
    kept = ((rotations - 1) / 31).clamp(0, 1)
    return kept + (1 - kept) / factor


WRONG = [
    (checks.check_yarn_scaling, ramp_by_rotations, "as in YaRN's paper"),
    (checks.check_largest_base, lambda dim, context: int(module.largest_base(dim, context)), "as a float"),
    (checks.check_largest_base, lambda dim, context: round(module.largest_base(dim, context)), "as a float"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)
