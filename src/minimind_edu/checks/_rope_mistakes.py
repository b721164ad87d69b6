"""The usual wrong answers to the exercises on RoPE, each with the hint that leads out of it.

Most of them keep lengths and depend on position differences only, as the right answer does: base, exponent, order,
direction, pairing and an offset of one are all found by comparing numbers, and by nothing less.
"""

import math

import torch
from torch import Tensor

from minimind_edu.checks._report import Attempt, Mistake
from minimind_edu.rope import (
    apply_rotary_pos_emb,
    half_split_permutation,
    precompute_freqs_cis,
    rotate_half,
    rotate_interleaved,
)

Pair = tuple[Tensor, Tensor]

_OTHER_WAY = (
    "you turn by minus the angle, clockwise. That is a sound convention as long as queries and keys share it (nanochat "
    "turns that way), but weights trained with the other one cannot be used with it"
)


def turn_pair(x: Tensor, angle: float) -> Tensor:
    """`[2]` turned counter-clockwise: the reference of the first exercise."""
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.stack([x[0] * cos - x[1] * sin, x[0] * sin + x[1] * cos])


def _with_the_new_first(x: Tensor, angle: float) -> Tensor:
    first = x[0] * math.cos(angle) - x[1] * math.sin(angle)
    return torch.stack([first, first * math.sin(angle) + x[1] * math.cos(angle)])


def _mirrored(x: Tensor, angle: float) -> Tensor:
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.stack([x[0] * cos + x[1] * sin, x[0] * sin - x[1] * cos])


ROTATE_PAIR_MISTAKES = (
    Mistake(
        lambda x, angle: turn_pair(x, math.radians(angle)),
        "you take the angle for degrees; it is in radians, as math.cos expects it",
    ),
    Mistake(
        lambda x, angle: turn_pair(x, -math.radians(angle)),
        "you take the angle for degrees, and turn clockwise; it is in radians, and (1, 0) moves up",
    ),
    Mistake(
        lambda x, angle: turn_pair(x, math.pi / 2 - angle),
        "cosine and sine have changed places: at angle 0 the cosine is 1 and must leave x as it is",
    ),
    Mistake(lambda x, angle: turn_pair(x, -angle), _OTHER_WAY),
    Mistake(
        _mirrored,
        "this is a mirror, not a turn: the minus sign belongs to x[1] * sin in the first component, and only there",
    ),
    Mistake(
        lambda x, angle: turn_pair(x, angle) + torch.tensor([2.0, 0.0]) * x[1] * math.sin(angle),
        "a sign is missing: the first component is x[0] * cos MINUS x[1] * sin",
    ),
    Mistake(
        _with_the_new_first, "the second component must be made from the old x[0]; you have already overwritten it"
    ),
    Mistake(
        lambda x, angle: x * math.cos(angle),
        "you scale by the cosine, which shortens x; the part a quarter turn ahead, times the sine, is missing",
    ),
    Mistake(
        lambda x, angle: x + angle,
        "you add the angle to the numbers, as an absolute position code would; turn the vector by it",
    ),
)


def _tables(
    dim: int, end: int, rope_base: float, exponents: Tensor | None = None, first: int = 0, interleaved: bool = False
) -> Pair:
    """Tables that are right, or wrong in one named way."""
    if exponents is None:
        exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    inv_freq = 1.0 / rope_base**exponents  # [D/2]
    angles = torch.outer(torch.arange(first, first + end, dtype=torch.float64), inv_freq)
    doubled = angles.repeat_interleave(2, -1) if interleaved else torch.cat([angles, angles], -1)
    return doubled.cos(), doubled.sin()


def _exponents(dim: int) -> Tensor:
    return torch.arange(0, dim, 2, dtype=torch.float64) / dim


def _degrees(dim: int, end: int, rope_base: float) -> Pair:
    angles = torch.outer(torch.arange(end, dtype=torch.float64), rope_base ** -_exponents(dim))
    angles = torch.cat([angles, angles], dim=-1).deg2rad()
    return angles.cos(), angles.sin()


def _clockwise(dim: int, end: int, rope_base: float) -> Pair:
    cos, sin = _tables(dim, end, rope_base)
    return cos, -sin


TABLE_MISTAKES = (
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base)[::-1],
        "cosine and sine have changed places: return cos first; at position 0 it is 1 everywhere",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base, first=1),
        "your positions begin with 1: the first row belongs to position 0, which is not turned (torch.arange(end))",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base, interleaved=True),
        "your columns run a a b b, for interleaved pairs (repeat_interleave); half-split pairs need a b a b, "
        "torch.cat([angles, angles], dim=-1)",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base, _exponents(dim) / 2),
        "your exponent is i / dim: it must be 2i / dim, which torch.arange(0, dim, 2) gives",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base, _exponents(dim) * 2),
        "your exponent is 2i divided by dim / 2: divide by dim",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base, _exponents(dim) + 2 / dim),
        "your first pair has i = 1; it is i = 0, so that pair 0 turns by one radian a position",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base, _exponents(dim).flip(0)),
        "your frequencies are reversed: pair 0 is the fastest",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, rope_base, -_exponents(dim)),
        "your frequencies grow with i: take 1 / base ** (2i / dim), so that they fall",
    ),
    Mistake(_degrees, "your angles were turned from degrees into radians; position * frequency is in radians already"),
    Mistake(_clockwise, _OTHER_WAY),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, 10_000.0),
        "your base is always 10,000: use the argument rope_base",
    ),
    Mistake(
        lambda dim, end, rope_base: _tables(dim, end, 1e6), "your base is always 1,000,000: use the argument rope_base"
    ),
)


def _apply(quarter_turn: Attempt, axis: int | None = 1) -> Attempt:
    """Rotation of queries and keys with this quarter turn, the heads' axis put in at `axis` or not at all."""

    def apply(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Pair:
        if axis is not None:
            cos, sin = cos.unsqueeze(axis), sin.unsqueeze(axis)
        return q * cos + quarter_turn(q) * sin, k * cos + quarter_turn(k) * sin

    return apply


def _halves(x: Tensor, first_sign: int, second_sign: int) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first_sign * second, second_sign * first], dim=-1)


APPLY_MISTAKES = (
    Mistake(
        _apply(rotate_half, axis=None),
        "the tables [S, D] were lined up with the axes [H, D], so each head is turned by its own number: put an axis "
        "for the heads in, cos.unsqueeze(1)",
    ),
    Mistake(
        _apply(rotate_interleaved),
        "you pair neighbors, (0, 1), (2, 3) and so on, but the tables are half-split: pair channel i with i + D/2",
    ),
    Mistake(_apply(lambda x: _halves(x, 1, -1)), _OTHER_WAY),
    Mistake(
        _apply(lambda x: _halves(x, 1, 1)),
        "your quarter turn swaps the halves without a minus sign: it is [-second, first]",
    ),
    Mistake(
        _apply(lambda x: _halves(x, -1, -1)),
        "your quarter turn negates both halves: it is [-second, first], one minus sign",
    ),
    Mistake(
        _apply(lambda x: x), "you multiply q itself by the sine: that product needs the quarter turn, rotate_half(q)"
    ),
    Mistake(
        lambda q, k, cos, sin: apply_rotary_pos_emb(q, k, sin, cos),
        "cosine and sine have changed places: x * cos + rotate_half(x) * sin",
    ),
    Mistake(
        lambda q, k, cos, sin: (q * cos[:, None], k * cos[:, None]),
        "only the cosine part is there: add rotate_half(x) * sin",
    ),
    Mistake(
        lambda q, k, cos, sin: (apply_rotary_pos_emb(q, k, cos, sin)[0], k),
        "the keys are not turned: the score needs both turns, or it depends on the query's position alone",
    ),
    Mistake(
        lambda q, k, cos, sin: (q, apply_rotary_pos_emb(q, k, cos, sin)[1]),
        "the queries are not turned: the score needs both turns, or it depends on the key's position alone",
    ),
    Mistake(
        lambda q, k, cos, sin: apply_rotary_pos_emb(q, k, cos, sin)[::-1],
        "queries and keys have changed places: return q first",
    ),
    Mistake(
        lambda q, k, cos, sin: (q + cos[:, None] + sin[:, None], k + cos[:, None] + sin[:, None]),
        "you add the tables, as an absolute position code would; multiply: x * cos + rotate_half(x) * sin",
    ),
)


def turn_rows(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`[B, S, H, D]` turned by the given rows, without looking at their number: broadcasting decides."""
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return x * cos + rotate_half(x) * sin


def _rows_from(first: Attempt, last: Attempt) -> Attempt:
    """Turn by the rows first(start, S) to last(start, S)."""

    def turn(x: Tensor, cos: Tensor, sin: Tensor, start: int) -> Tensor:
        rows = slice(first(start, x.shape[1]), last(start, x.shape[1]))
        return turn_rows(x, cos[rows], sin[rows])

    return turn


ROTATE_FROM_MISTAKES = (
    Mistake(
        _rows_from(lambda start, length: 0, lambda start, length: length),
        "you take the rows 0 to S - 1, cos[:S]: every new piece of text would stand at position 0 (and one word alone "
        "comes back as it was). Take cos[start : start + S]",
    ),
    Mistake(
        _rows_from(lambda start, length: start, lambda start, length: start + 1),
        "all positions are turned by the row `start`: the second one needs row start + 1. Take cos[start : start + S]",
    ),
    Mistake(
        _rows_from(lambda start, length: start + 1, lambda start, length: start + length + 1),
        "you are one row too far: the first of the new positions is `start` itself, because counting begins at 0",
    ),
    Mistake(
        _rows_from(lambda start, length: start - 1, lambda start, length: start + length - 1),
        "you are one row too early: with `start` positions in the cache, the next one is number `start`",
    ),
    Mistake(
        _rows_from(lambda start, length: start, lambda start, length: length),
        "the end of your slice is S: it must be start + S, or the slice is empty as soon as start reaches S",
    ),
    Mistake(
        _rows_from(lambda start, length: -length, lambda start, length: None),
        "you take the last rows of the whole table; the rows begin at `start`",
    ),
    Mistake(
        lambda x, cos, sin, start: turn_rows(x, cos[start : start + x.shape[1]], -sin[start : start + x.shape[1]]),
        _OTHER_WAY,
    ),
)  # fmt: skip


def _rows_by(order: Attempt) -> Attempt:
    """Reorder the rows of every head by order(head_dim)."""

    def convert(weight: Tensor, num_heads: int) -> Tensor:
        by_head = weight.unflatten(0, (num_heads, -1))  # [H*D, E] -> [H, D, E]
        return by_head[:, order(by_head.shape[1])].flatten(0, 1)

    return convert


def _odd_first(dim: int) -> Tensor:
    return half_split_permutation(dim).roll(dim // 2)


CONVERT_MISTAKES = (
    Mistake(
        lambda weight, num_heads: weight,
        "the rows are in their old order: within a head, rows 0, 2, 4, ... come first, then 1, 3, 5, ...",
    ),
    Mistake(
        _rows_by(lambda dim: half_split_permutation(dim).argsort()),
        "this is the way back, from half-split to interleaved: row 0, then row D/2, ... You need 0, 2, 4, ..., 1, 3, 5",
    ),
    Mistake(
        _rows_by(_odd_first),
        "the odd rows come first: then the two channels of each pair have changed places, and it turns the other way. "
        "Even rows first",
    ),
    Mistake(
        lambda weight, num_heads: weight[half_split_permutation(weight.shape[0])],
        "you reorder all rows at once, across the heads: do it head by head, weight.view(H, D, E)[:, order]",
    ),
    Mistake(
        lambda weight, num_heads: weight.unflatten(0, (-1, num_heads))[
            half_split_permutation(weight.shape[0] // num_heads)
        ].flatten(0, 1),
        "you read the rows as [D, H]; the channels of one head lie next to each other: view(H, D, E)",
    ),
    Mistake(
        lambda weight, num_heads: weight[:, half_split_permutation(weight.shape[1])],
        "you reorder the columns, which are the input channels; the channels of q are the rows",
    ),
    Mistake(
        _rows_by(lambda dim: torch.arange(dim).roll(dim // 2)),
        "you swap the halves of each head; pairs are neighbors in the old order: take every second row",
    ),
    Mistake(
        lambda weight, num_heads: _rows_by(half_split_permutation)(weight, num_heads).unflatten(0, (num_heads, -1)),
        "the order is right, but the heads still have an axis of their own: flatten(0, 1) gives [H*D, E] back",
    ),
)


def reference_tables(dim: int, end: int, rope_base: float) -> Pair:
    """The package's tables, in float64."""
    return precompute_freqs_cis(dim, end, rope_base, dtype=torch.float64)


convert_rows = _rows_by(half_split_permutation)
