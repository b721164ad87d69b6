"""checks.rope_scaling: right answers pass, every usual wrong answer is named, and the references are the package's."""

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
from minimind_edu.checks import _rope_scaling_mistakes as known
from minimind_edu.config import MiniMindConfig
from minimind_edu.rope import precompute_freqs_cis
from minimind_edu.rope_frequencies import RopeScaling, rope_frequencies, scaling_of_each_pair, yarn_correction_range

# ---- the references of the checks are the package


def test_references_are_the_packages():
    for dim, base, context in [(64, 1e6, 2048), (96, 1e4, 4096), (128, 5e5, 1024), (64, 1e4, 128)]:
        inv_freq = rope_frequencies(dim, base, dtype=torch.float64)
        torch.testing.assert_close(known.periods(dim, base), 2 * math.pi / inv_freq)
        turns = context * inv_freq / (2 * math.pi)
        assert known.unfinished_pairs(dim, base, context) == int((turns < 1).sum())
        scaling = RopeScaling(8.0, context)
        low, high = yarn_correction_range(dim, base, scaling)
        assert known.yarn_range(dim, base, context, 32.0, 1.0) == (low, high)
        expected = scaling_of_each_pair(dim, base, scaling, torch.float64)
        torch.testing.assert_close(known.yarn_scaling(dim, low, high, 8.0), expected)


def test_bytes_are_those_of_real_tables():
    config = MiniMindConfig.minimind3(max_position_embeddings=512)
    tables = precompute_freqs_cis(config.head_dim, 512)
    expected = sum(table.nbytes for table in tables)
    assert known.table_bytes(config.hidden_size, config.num_attention_heads, 512, 4) == expected


# ---- right answers, none of them written like the reference


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
def test_a_right_answer_passes(check, answer, capsys):
    assert check(answer) is True
    assert "not yet" not in capsys.readouterr().out


# ---- wrong answers, written as a learner would, and the words that the hint must hold


def by_pair(formula):
    return lambda dim, base: torch.tensor([formula(i, dim, base) for i in range(dim // 2)])


TURN = 2 * math.pi

WRONG_PERIODS = {
    "frequencies": (rope_frequencies, "divided by the frequency"),
    "no 2 pi": (lambda dim, base: 1 / rope_frequencies(dim, base), "one radian"),
    "degrees": (by_pair(lambda i, dim, base: 360 * base ** (2 * i / dim)), "360 degrees"),
    "half a turn": (by_pair(lambda i, dim, base: math.pi * base ** (2 * i / dim)), "half a turn"),
    "exponent i / dim": (by_pair(lambda i, dim, base: TURN * base ** (i / dim)), "2i / dim"),
    "i from 1": (by_pair(lambda i, dim, base: TURN * base ** (2 * (i + 1) / dim)), "i = 1"),
    "both ends": (by_pair(lambda i, dim, base: TURN * base ** (i / (dim // 2 - 1))), "6,283,185"),
    "reversed": (lambda dim, base: TURN / rope_frequencies(dim, base).flip(0), "reverse"),
    "fixed base": (lambda dim, base: TURN / rope_frequencies(dim, 1e6), "argument rope_base"),
    "all channels": (lambda dim, base: (TURN / rope_frequencies(dim, base)).repeat(2), "shape"),
}


def turns(dim, base, context):
    return context / torch.tensor(periods_one_by_one(dim, base))


WRONG_COUNTS = {
    "finished": (lambda *a: int((turns(*a) >= 1).sum()), "do complete"),
    "first index": (lambda *a: int((turns(*a) < 1).nonzero()[0]), "do complete"),
    "channels": (lambda *a: int((turns(*a).repeat(2) < 1).sum()), "channels"),
    "one radian": (lambda *a: int((turns(*a) * TURN < 1).sum()), "one radian"),
    "half a turn": (lambda *a: int((turns(*a) < 0.5).sum()), "half a turn"),
    "share": (lambda *a: float((turns(*a) < 1).double().mean()), "share"),
    "exponent i / dim": (
        lambda dim, base, context: int((turns(dim, base**0.5, context) < 1).sum()),
        "2i / dim",
    ),
    "fixed base": (lambda dim, base, context: int((turns(dim, 1e6, context) < 1).sum()), "rope_base"),
    "a mask": (lambda *a: turns(*a) < 1, "shape"),
}  # fmt: skip

WRONG_BYTES = {
    "one table": (lambda e, h, end, size: end * e // h * size, "one table"),
    "a quarter": (lambda e, h, end, size: end * e // h // 2 * size, "one column a pair"),
    "hidden size": (lambda e, h, end, size: 2 * end * e * size, "hidden_size wide"),
    "numbers": (lambda e, h, end, size: 2 * end * e // h, "these are numbers"),
    "bits": (lambda e, h, end, size: 2 * end * e // h * size * 8, "bits"),
    "MiB": (lambda e, h, end, size: 2 * end * e // h * size / 1024 / 1024, "MiB"),
    "one row": (lambda e, h, end, size: 2 * e // h * size, "one row"),
    "heads": (lambda e, h, end, size: 2 * end * h * size, "one number a head"),
}


def pair_turning(beta, dim, base, context):
    return math.log(context / beta / TURN) / math.log(base) * dim / 2


def ramp_ends(low, high):
    def answer(dim, base, context, fast, slow):
        first, last = (pair_turning(beta, dim, base, context) for beta in (fast, slow))
        return max(low(first), 0), high(last)

    return answer


WRONG_RANGES = {
    "order": (lambda *a: known.yarn_range(*a)[::-1], "low first"),
    "betas": (lambda d, b, c, fast, slow: known.yarn_range(d, b, c, slow, fast), "betas"),
    "fractions": (ramp_ends(float, float), "fractions"),
    "both down": (ramp_ends(int, int), "both down"),
    "both up": (ramp_ends(math.ceil, math.ceil), "both up"),
    "roundings": (ramp_ends(math.ceil, math.floor), "roundings"),
    "nearest": (ramp_ends(round, round), "nearest"),
    "no 2 pi": (lambda d, b, c, *betas: known.yarn_range(d, b, c * TURN, *betas), "2 pi is missing"),
    "channels": (lambda d, b, c, *betas: known.yarn_range(2 * d, b, c, *betas), "below the line"),
    "negative": (
        lambda d, b, c, fast, slow: (
            math.floor(pair_turning(fast, d, b, c)),
            math.ceil(pair_turning(slow, d, b, c)),
        ),
        "negative",
    ),
}  # fmt: skip


def by_index(formula):
    return lambda dim, low, high, factor: torch.tensor([formula(i, low, high, factor, dim) for i in range(dim // 2)])


def share(i, low, high):
    return min(max((i - low) / (high - low), 0), 1)


WRONG_SCALES = {
    "inverted": (
        by_index(lambda i, low, high, s, dim: share(i, low, high) * (1 - 1 / s) + 1 / s),
        "inverted",
    ),
    "no clamp": (
        by_index(lambda i, low, high, s, dim: 1 - (i - low) / (high - low) * (1 - 1 / s)),
        "clamp",
    ),
    "linear": (by_index(lambda i, low, high, s, dim: 1 / s), "linear scaling"),
    "times": (by_index(lambda i, low, high, s, dim: 1 + share(i, low, high) * (s - 1)), "faster"),
    "periods": (
        by_index(lambda i, low, high, s, dim: 1 / (1 + share(i, low, high) * (s - 1))),
        "blend the periods",
    ),
    "step at high": (by_index(lambda i, low, high, s, dim: 1.0 if i < high else 1 / s), "MiniMind2"),
    "step at low": (by_index(lambda i, low, high, s, dim: 1.0 if i <= low else 1 / s), "step at low"),
    "all pairs": (
        by_index(lambda i, low, high, s, dim: 1 - share(i, 0, dim // 2 - 1) * (1 - 1 / s)),
        "over all pairs",
    ),
    "the ramp": (by_index(lambda i, low, high, s, dim: share(i, low, high)), "ramp itself"),
    "channels": (
        lambda dim, *rest: by_index(
            lambda i, low, high, s, _: 1 - share(i, low, high) * (1 - 1 / s)
        )(2 * dim, *rest),
        "one a channel",
    ),
}  # fmt: skip

WRONG = wrong_answers(
    {
        checks.check_periods: WRONG_PERIODS,
        checks.check_unfinished_pairs: WRONG_COUNTS,
        checks.check_table_bytes: WRONG_BYTES,
        checks.check_yarn_range: WRONG_RANGES,
        checks.check_yarn_scaling: WRONG_SCALES,
    }
)


@pytest.mark.parametrize(("check", "answer", "words"), WRONG)
def test_a_usual_mistake_is_named(check, answer, words, capsys):
    assert_mistake_is_named(check, answer, words, capsys)


@pytest.mark.parametrize("check", [check for check, _ in RIGHT], ids=lambda check: check.__name__)
def test_nothing_written_yet_is_no_mistake(check, capsys):
    assert_told_as_not_attempted(check, lambda *arguments: None, capsys)


@pytest.mark.parametrize(
    "mistakes",
    [
        known.PERIOD_MISTAKES,
        known.UNFINISHED_MISTAKES,
        known.TABLE_BYTES_MISTAKES,
        known.YARN_RANGE_MISTAKES,
        known.YARN_SCALING_MISTAKES,
    ],
)
def test_every_hint_is_its_own(mistakes):
    assert_every_hint_is_its_own(mistakes)
