"""Exercises on RoPE.

Every check compares numbers with the package. It would not be enough that lengths are kept and that scores depend on
position differences only: a wrong base, exponent, order, direction or pairing keeps both.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, numbers
from minimind_edu.model.for_comparison import half_split_permutation, rotate_every_two
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis, rotate_half

Pair = tuple[Tensor, Tensor]

_TOLERANCE = 1e-5  # tables may be computed in float32 or in float64


def _reference_tables(dim: int, end: int, rope_base: float) -> Pair:
    return precompute_freqs_cis(dim, end, rope_base, dtype=torch.float64)


def _rope(x: Tensor, positions: Tensor, rope_base: float) -> Tensor:
    """`[B, S, H, D]` rotated for positions `[S]`, half-split."""
    cos, sin = _reference_tables(x.shape[-1], int(positions.max()) + 1, rope_base)
    return apply_rotary_pos_emb(x, x, cos[positions], sin[positions])[0]


def _exponents(dim: int) -> Tensor:
    """Those of the half-split form, 2i / dim for each of the `dim` channels."""
    return (2 * torch.arange(dim // 2, dtype=torch.float64) / dim).repeat(2)


def _with(exponents: Attempt = _exponents, quarter_turn: Attempt = rotate_half, heads_axis: bool = True) -> Attempt:
    """`_rope` by the formula, so that one piece of it can be replaced."""

    def rope(x: Tensor, positions: Tensor, rope_base: float) -> Tensor:
        angles = positions[:, None] * rope_base ** -exponents(x.shape[-1])  # [S, D]
        if heads_axis:
            angles = angles[:, None]  # [S, 1, D]
        return x * angles.cos() + quarter_turn(x) * angles.sin()

    return rope


def _positions(*positions: int) -> Tensor:
    return torch.tensor(positions)


def _keeps_float64(attempt: Attempt) -> str | None:
    rotated = attempt(numbers(1, 2, 1, 4), _positions(0, 1), 50.0)
    if isinstance(rotated, list):  # which has no dtype to lose
        return None
    dtype = torch.as_tensor(rotated).dtype
    return None if dtype == torch.float64 else f"keep the dtype of x: it was torch.float64, and the result is {dtype}"


check_rope = Exercise(
    "Does `attempt(x, positions, rope_base)` rotate x `[B, S, H, D]` for positions `[S]`, half-split?",
    answer=_rope,
    cases=(
        # No base is a power of another: a wrong exponent could be taken for a wrong base.
        Case("positions 0 to 3, as many heads", (numbers(1, 4, 4, 8), _positions(0, 1, 2, 3), 50.0)),
        Case("positions in any order, two heads", (numbers(2, 3, 2, 6), _positions(9, 2, 30), 1e4)),
        Case("one position, 64 channels", (numbers(1, 1, 2, 64), _positions(700), 1e6)),
        Case(
            "x is left as it was",
            (numbers(1, 3, 1, 8), _positions(4, 5, 6), 100.0),
            untouched="your function writes into x (in place, such as x *= cos): build a new tensor",
        ),
        Property("float64 stays float64", _keeps_float64),
    ),
    mistakes=(
        Mistake(
            _with(heads_axis=False),
            "your angles [S, D] were aligned with the axes [H, D], so they depend on the head: insert an axis for the "
            "heads, [S, 1, D]",
        ),
        Mistake(
            _with(quarter_turn=rotate_every_two),
            "you rotate neighbors, (0, 1), (2, 3) and so on, but the angles are half-split: pair i with i + D/2",
        ),
        Mistake(
            _with(lambda dim: _exponents(dim).view(2, -1).T.flatten(), rotate_every_two),
            "you use interleaved pairs, (0, 1), (2, 3) and so on; here they are half-split, i and i + D/2",
        ),
        Mistake(
            _with(quarter_turn=lambda x: -rotate_half(x)),
            "you rotate by minus the angle, clockwise. That works as long as queries and keys share it, but weights "
            "trained with the other direction need the other direction",
        ),
        Mistake(
            _with(quarter_turn=lambda x: x.roll(x.shape[-1] // 2, -1)),
            "a minus sign is missing: rotated by 90 degrees, [first, second] becomes [-second, first]",
        ),
        Mistake(
            _with(lambda dim: torch.arange(dim, dtype=torch.float64) / dim),
            "every channel has a frequency of its own: the two channels of a pair must share one, so there are D/2, "
            "each used twice",
        ),
        Mistake(
            _with(lambda dim: _exponents(dim) / 2),
            "your exponent is i / D: it must be 2i / D, which torch.arange(0, D, 2) gives",
        ),
        Mistake(
            _with(lambda dim: -_exponents(dim)),
            "your frequencies grow with i: take 1 / base ** (2i / D), so that they fall",
        ),
        Mistake(
            lambda x, positions, base: _rope(x, torch.arange(len(positions)), base),
            "you count the positions 0, 1, 2, ... yourself: use the argument positions",
        ),
        Mistake(
            lambda x, positions, base: _rope(x, positions, 1e4),
            "your base is always 10,000: use the argument rope_base",
        ),
    ),
    atol=_TOLERANCE,
)


def _attend(
    axis: int = 0,
    quarter_turn: Attempt = rotate_half,
    rotated: str = "qk",
    clockwise: str = "",
    divisor: Callable[[float], float] = math.sqrt,
) -> Attempt:
    """Attention `[B, S, H, D]` with tables `[S, D]`, whose heads' axis is put at `axis` of `[B, H, S, D]`."""

    def attend(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        cos, sin = cos.unsqueeze(axis), sin.unsqueeze(axis)

        def placed(name: str, x: Tensor) -> Tensor:
            x = x.transpose(1, 2)  # [B, S, H, D] -> [B, H, S, D]
            side = -1 if name in clockwise else 1
            return x * cos + side * quarter_turn(x) * sin if name in rotated else x

        q, k, v = placed("q", q), placed("k", k), placed("v", v)
        return ((q @ k.mT / divisor(q.shape[-1])).softmax(-1) @ v).transpose(1, 2)

    return attend


def _attention_inputs(batch: int, length: int, heads: int, dim: int) -> tuple[Tensor, ...]:
    q, k, v = (2 * numbers(batch, length, heads, dim, shift=shift) for shift in (0.0, 1.0, 2.0))
    return q, k, v, *_reference_tables(dim, length, 20.0)


# What is wrong in the exercise's function, and how `_attend` goes wrong in the same way.
_BUGS: dict[str, dict[str, Any]] = {
    "the table's rows meet the heads: after transpose(1, 2) the layout is [B, H, S, D], so the axis for the heads must "
    "be in front of the positions, [1, S, D]": {"axis": 1},
    "the tables are half-split and the rotation pairs neighbors: use [-second half, first half]": {
        "quarter_turn": rotate_every_two
    },
    "the values are rotated: they are summed, so nothing cancels their absolute angles": {"rotated": "qkv"},
}


def _left(bugs: tuple[str, ...]) -> Mistake:
    """An attempt in which these bugs are left; its hint names one of them."""
    hint = "this is what the broken function computes" if len(bugs) == len(_BUGS) else bugs[0]
    hint = f"{hint}; and there is one more bug" if len(bugs) == 2 else hint
    return Mistake(_attend(**{name: value for bug in bugs for name, value in _BUGS[bug].items()}), hint)


check_rotary_attention = Exercise(
    "Is `attempt(q, k, v, cos, sin)`, `[B, S, H, D]` and tables `[S, D]`, attention with RoPE and without a mask?",
    answer=_attend(),
    cases=(
        Case("four positions, four heads", _attention_inputs(1, 4, 4, 8)),
        Case("two texts of five positions, three heads", _attention_inputs(2, 5, 3, 6)),
        Case("one head", _attention_inputs(1, 6, 1, 4)),
    ),
    mistakes=(
        *(_left(bugs) for count in (1, 2, 3) for bugs in combinations(_BUGS, count)),
        Mistake(
            _attend(clockwise="qk"),
            "you rotate by minus the angle, clockwise: the quarter turn is [-second, first], with the minus in front",
        ),
        Mistake(
            _attend(clockwise="k"),
            "the keys are rotated the other way than the queries, so the score depends on the sum of their positions",
        ),
        Mistake(
            _attend(divisor=lambda dim: 1), "the scores are not divided: divide them by the square root of head_dim"
        ),
        Mistake(
            _attend(divisor=lambda dim: dim), "you divide the scores by head_dim itself: divide by its square root"
        ),
        Mistake(_attend(rotated="q"), "only the queries are rotated: the score then depends on absolute positions"),
    ),
    atol=_TOLERANCE,
)


def _key(turn: float = 1.0, quarter_turn: Attempt = rotate_half, base: float | None = None) -> Attempt:
    """The query rotated by `turn` times the angles of the distance."""

    def best_key(query: Tensor, distance: int, rope_base: float) -> Tensor:
        cos, sin = _reference_tables(len(query), distance + 1, rope_base if base is None else base)
        angle = torch.atan2(sin[distance], cos[distance]) * turn
        return query * angle.cos() + quarter_turn(query) * angle.sin()

    return best_key


check_best_key = Exercise(
    "Is `attempt(query, distance, rope_base)` the key `[D]`, as long as the query, that scores highest there?",
    answer=_key(),
    cases=(
        Case("the previous word, 8 channels", (numbers(8), 1, 50.0)),
        Case("seven words back, 16 channels", (numbers(16, shift=1.0), 7, 1e4)),
        Case("the word itself", (numbers(4, shift=2.0), 0, 1e4)),
    ),
    mistakes=(
        Mistake(
            _key(turn=-1.0),
            "your key is best `distance` positions AFTER the query: at distance d the query has been rotated d steps "
            "further, so the key needs a head start",
        ),
        Mistake(
            lambda query, distance, base: query.clone(),
            "your key is the query itself, which scores highest at distance 0",
        ),
        Mistake(
            lambda query, distance, base: -_key()(query, distance, base),
            "your key has the LOWEST possible score there: it points the opposite way",
        ),
        Mistake(
            lambda query, distance, base: 2 * _key()(query, distance, base),
            "the direction is right, but the key is twice as long: it shall be as long as the query",
        ),
        Mistake(
            lambda query, distance, base: torch.nn.functional.normalize(_key()(query, distance, base), dim=0),
            "the direction is right, but the key has length 1: it shall be as long as the query",
        ),
        Mistake(
            _key(quarter_turn=rotate_every_two),
            "your angles are half-split and your rotation pairs neighbors: pair channel i with i + D/2",
        ),
        Mistake(_key(base=10_000.0), "your base is always 10,000: use the argument rope_base"),
    ),
    atol=_TOLERANCE,
)


def _rows_by(order: Attempt) -> Attempt:
    """Reorder the rows of every head by order(head_dim)."""

    def convert(weight: Tensor, num_heads: int) -> Tensor:
        by_head = weight.unflatten(0, (num_heads, -1))  # [H*D, E] -> [H, D, E]
        return by_head[:, order(by_head.shape[1])].flatten(0, 1)

    return convert


check_convert_rows = Exercise(
    "Does `attempt(weight, num_heads)` reorder `[H*D, E]` rows from half-split to interleaved pairs, head by head?",
    answer=_rows_by(lambda dim: half_split_permutation(dim).argsort()),
    cases=(
        Case("one head of eight channels", (numbers(8, 4), 1)),
        Case("three heads of eight channels", (numbers(24, 6), 3)),
        Case("two heads of sixteen channels", (numbers(32, 4), 2)),
    ),
    mistakes=(
        Mistake(
            lambda weight, num_heads: weight,
            "the rows are in their old order: within a head, rows 0 and D/2 come first, then 1 and D/2 + 1, and so on",
        ),
        Mistake(
            _rows_by(half_split_permutation),
            "this is the opposite conversion, from interleaved to half-split. You need rows 0, D/2, 1, D/2 + 1, ...",
        ),
        Mistake(
            _rows_by(lambda dim: half_split_permutation(dim).argsort().view(-1, 2).flip(1).flatten()),
            "the second half comes first in each pair, which swaps its channels and so reverses the rotation",
        ),
        Mistake(
            lambda weight, num_heads: weight[half_split_permutation(weight.shape[0]).argsort()],
            "you reorder all rows at once, across the heads: do it head by head, weight.view(H, D, E)[:, order]",
        ),
        Mistake(
            lambda weight, num_heads: weight[:, half_split_permutation(weight.shape[1]).argsort()],
            "you reorder the columns, which are the input channels; the channels of q are the rows",
        ),
    ),
)
