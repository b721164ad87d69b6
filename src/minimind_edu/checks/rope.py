"""Exercises on RoPE (chapter 03).

Every check compares numbers with the package. It would not be enough that lengths are kept and that scores depend on
position differences only: a wrong base, exponent, order, direction or pairing keeps both.
"""

import math

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, NotAttempted, Property, numbers
from minimind_edu.rope import (
    apply_rotary_pos_emb,
    half_split_permutation,
    precompute_freqs_cis,
    rotate_half,
    rotate_interleaved,
)

Pair = tuple[Tensor, Tensor]

_TOLERANCE = 1e-5  # tables may be computed in float32 or in float64
_CLOCKWISE = (
    "you rotate by minus the angle, clockwise. That works as long as queries and keys share the convention (nanochat "
    "does it), but weights trained with the other direction need the other direction"
)


def _reference_tables(dim: int, end: int, rope_base: float) -> Pair:
    return precompute_freqs_cis(dim, end, rope_base, dtype=torch.float64)


def _rotate_pair(x: Tensor, angle: float) -> Tensor:
    """`[2]`, rotated counter-clockwise."""
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.stack([x[0] * cos - x[1] * sin, x[0] * sin + x[1] * cos])


def _mirrored(x: Tensor, angle: float) -> Tensor:
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.stack([x[0] * cos + x[1] * sin, x[0] * sin - x[1] * cos])


def _overwritten(x: Tensor, angle: float) -> Tensor:
    first = x[0] * math.cos(angle) - x[1] * math.sin(angle)
    return torch.stack([first, first * math.sin(angle) + x[1] * math.cos(angle)])


def _vector(first: float, second: float) -> Tensor:
    return torch.tensor([first, second], dtype=torch.float64)


ROTATE_PAIR = Exercise(
    "check_rotate_pair",
    answer=_rotate_pair,
    cases=(
        Case("(1, 0), turned by 0.5, moves up", (_vector(1.0, 0.0), 0.5)),
        Case("(0.6, -1.1), turned by 2", (_vector(0.6, -1.1), 2.0)),
        Case("a negative angle turns the other way", (_vector(0.6, -1.1), -0.8)),
        Case("an angle of more than a whole turn", (_vector(-0.3, 0.9), 20.0)),
    ),
    mistakes=(
        Mistake(
            lambda x, angle: _rotate_pair(x, math.radians(angle)),
            "you take the angle for degrees; it is in radians, as math.cos expects it",
        ),
        Mistake(lambda x, angle: _rotate_pair(x, -angle), _CLOCKWISE),
        Mistake(_mirrored, "this is a reflection: the minus sign belongs to x[1] * sin in the first component only"),
        Mistake(
            lambda x, angle: torch.stack([_rotate_pair(x, -angle)[0], _rotate_pair(x, angle)[1]]),
            "a sign is missing: the first component is x[0] * cos MINUS x[1] * sin",
        ),
        Mistake(_overwritten, "the second component needs the old x[0], which you have already overwritten"),
    ),
    atol=_TOLERANCE,
)


def check_rotate_pair(attempt: Attempt) -> bool:
    """Does `attempt(x, angle)` rotate `x`, `[2]`, counter-clockwise by `angle` radians?"""
    return ROTATE_PAIR.check(attempt)


def _tables(dim: int, end: int, rope_base: float, exponent: float = 1.0, first: int = 0, swap: bool = False) -> Pair:
    """The right tables; or the exponents times `exponent`, positions from `first`, or columns a a b b (`swap`)."""
    inv_freq = rope_base ** (-exponent * torch.arange(0, dim, 2, dtype=torch.float64) / dim)  # [D/2]
    angles = torch.outer(torch.arange(first, first + end, dtype=torch.float64), inv_freq)  # [end, D/2]
    doubled = angles.repeat_interleave(2, -1) if swap else torch.cat([angles, angles], -1)  # [end, D]
    return doubled.cos(), doubled.sin()


def _has_table_shapes(attempt: Attempt) -> str | None:
    dim, end = 8, 6
    answer = attempt(dim, end, 10_000.0)
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        return f"return two tensors, cos and sin: your function returned {type(answer).__name__}"
    for name, table in zip(("cos", "sin"), answer, strict=True):
        shape = tuple(torch.as_tensor(table).shape)
        hints: dict[tuple[int, ...], str] = {
            (end, dim // 2): "it has one column per pair, but both channels of a pair need it: "
            "torch.cat([angles, angles], dim=-1)",
            (dim, end): "rows and columns have changed places: torch.outer(positions, inv_freq)",
            (2 * end, dim // 2): "you doubled the rows: double the columns, dim=-1",
        }
        if shape != (end, dim):
            hint = hints.get(shape, "it needs one row per position and one column per channel")
            return f"{name} has shape {list(shape)}, expected {[end, dim]}: {hint}"
    return None


PRECOMPUTE_FREQS_CIS = Exercise(
    "check_precompute_freqs_cis",
    answer=_reference_tables,
    cases=(
        Property("two tables of shape [end, dim]", _has_table_shapes),
        # No base is a power of another: a wrong exponent could be taken for a wrong base.
        Case("dim 4, base 50, ten positions", (4, 10, 50.0)),
        Case("dim 8, base 10,000, six positions", (8, 6, 10_000.0)),
        Case("dim 16, base 1,000,000, forty positions", (16, 40, 1e6)),
    ),
    mistakes=(
        Mistake(
            lambda dim, end, base: _tables(dim, end, base, first=1),
            "your positions begin with 1: the first row belongs to position 0, where nothing is rotated",
        ),
        Mistake(
            lambda dim, end, base: _tables(dim, end, base, swap=True),
            "your columns are a a b b, for interleaved pairs (repeat_interleave); half-split pairs need a b a b: "
            "torch.cat([angles, angles], dim=-1)",
        ),
        Mistake(
            lambda dim, end, base: _tables(dim, end, base, exponent=1 / 2),
            "your exponent is i / dim: it must be 2i / dim, which torch.arange(0, dim, 2) gives",
        ),
        Mistake(
            lambda dim, end, base: _tables(dim, end, base, exponent=-1),
            "your frequencies grow with i: take 1 / base ** (2i / dim), so that they fall",
        ),
        Mistake(
            lambda dim, end, base: _tables(dim, end, 10_000.0), "your base is always 10,000: use the argument rope_base"
        ),
    ),
    parts=("cos", "sin"),
    atol=_TOLERANCE,
)


def check_precompute_freqs_cis(attempt: Attempt) -> bool:
    """Does `attempt(dim, end, rope_base)` give the half-split tables cos and sin, `[end, dim]` each?"""
    return PRECOMPUTE_FREQS_CIS.check(attempt)


def _rotate(quarter_turn: Attempt, axis: int | None = 1) -> Attempt:
    """Rotation of queries and keys with this quarter turn, the heads' axis inserted at `axis` or not at all."""

    def apply(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Pair:
        if axis is not None:
            cos, sin = cos.unsqueeze(axis), sin.unsqueeze(axis)
        return q * cos + quarter_turn(q) * sin, k * cos + quarter_turn(k) * sin

    return apply


def _inputs(batch: int, length: int, heads: int, kv_heads: int, dim: int) -> tuple[Tensor, ...]:
    q, k = numbers(batch, length, heads, dim), numbers(batch, length, kv_heads, dim).cos()
    return q, k, *_reference_tables(dim, length, 100.0)


APPLY_ROTARY_POS_EMB = Exercise(
    "check_apply_rotary_pos_emb",
    answer=apply_rotary_pos_emb,
    cases=(
        Case("four positions, four heads", _inputs(1, 4, 4, 4, 8)),
        Case("six positions, three query heads, one key head", _inputs(2, 6, 3, 1, 8)),
        Case("more channels, a single position", _inputs(1, 1, 2, 2, 64)),
        Case(
            "q and k are left as they were",
            _inputs(1, 3, 2, 2, 8),
            untouched="your function writes into q or k (in place, such as q *= cos): build new tensors",
        ),
    ),
    mistakes=(
        Mistake(
            _rotate(rotate_half, axis=None),
            "the tables [S, D] were aligned with the axes [H, D], so the angle depends on the head: insert an axis for "
            "the heads, cos.unsqueeze(1)",
        ),
        Mistake(
            _rotate(rotate_interleaved),
            "you pair neighbors, (0, 1), (2, 3) and so on, but the tables are half-split: pair channel i with i + D/2",
        ),
        Mistake(_rotate(lambda x: -rotate_half(x)), _CLOCKWISE),
        Mistake(
            _rotate(lambda x: x.roll(x.shape[-1] // 2, -1)),
            "your quarter turn swaps the halves without a minus sign: it is [-second, first]",
        ),
        Mistake(
            lambda q, k, cos, sin: (apply_rotary_pos_emb(q, k, cos, sin)[0], k),
            "the keys are not rotated: without that the score depends on the query's position alone",
        ),
    ),
    parts=("q", "k"),
    atol=_TOLERANCE,
)


def check_apply_rotary_pos_emb(attempt: Attempt) -> bool:
    """Does `attempt(q, k, cos, sin)` rotate q `[B, S, H, D]` and k `[B, S, K, D]` by tables `[S, D]`, half-split?"""
    return APPLY_ROTARY_POS_EMB.check(attempt)


def _rotate_rows(x: Tensor, cos: Tensor, sin: Tensor, rows: slice) -> Tensor:
    """`[B, S, H, D]` rotated by these rows, however many they are: broadcasting does the rest."""
    return x * cos[rows, None] + rotate_half(x) * sin[rows, None]


def _rotate_from(x: Tensor, cos: Tensor, sin: Tensor, start: int) -> Tensor:
    rows = slice(start, start + x.shape[1])
    return apply_rotary_pos_emb(x, x, cos[rows], sin[rows])[0]  # raises a ValueError where rows are missing


def _refuses_to_run_past_the_end(attempt: Attempt) -> str | None:
    for start, length in ((12, 1), (10, 4)):
        past_the_end = f"position {start + length - 1} is past the last row, 11"
        try:
            answer = attempt(numbers(1, length, 3, 8), *_reference_tables(8, 12, 100.0), start)
        except ValueError:
            continue
        except NotAttempted:
            raise
        except Exception as error:
            return (
                f"{past_the_end}, and your code stopped with {type(error).__name__}: compare start + S with len(cos) "
                "first, and raise a ValueError that says so"
            )
        return (
            f"{past_the_end}, but there was no error: the answer has shape {list(torch.as_tensor(answer).shape)}. "
            "Compare start + S with len(cos), and raise a ValueError"
        )
    return None


def _pieces(start: int, length: int) -> tuple:
    return numbers(1, length, 3, 8), *_reference_tables(8, 12, 100.0), start


ROTATE_FROM = Exercise(
    "check_rotate_from",
    answer=_rotate_from,
    cases=(
        Case("one new position after five", _pieces(5, 1)),
        Case("a piece of four after two", _pieces(2, 4)),
        Case("a prompt of four positions, from 0", _pieces(0, 4)),
        Case("the last rows of the table, 8 to 11", _pieces(8, 4)),
        Property("a ValueError past the end of the table", _refuses_to_run_past_the_end),
    ),
    mistakes=(
        Mistake(
            lambda x, cos, sin, start: _rotate_rows(x, cos, sin, slice(x.shape[1])),
            "you take rows 0 to S - 1, as if every piece of text began at position 0. Take cos[start : start + S]",
        ),
        Mistake(
            lambda x, cos, sin, start: _rotate_rows(x, cos, sin, slice(start, start + 1)),
            "you rotate all positions by row `start`, but the second needs row start + 1. Take cos[start : start + S]",
        ),
        Mistake(
            lambda x, cos, sin, start: _rotate_from(x, cos, sin, start + 1),
            "you are one row too far: counting begins at 0, so the first new position is `start` itself",
        ),
        Mistake(
            lambda x, cos, sin, start: _rotate_rows(x, cos, sin, slice(start, x.shape[1])),
            "your slice ends at S: it must end at start + S, or it is empty as soon as start reaches S",
        ),
        Mistake(
            lambda x, cos, sin, start: _rotate_rows(x, cos, sin, slice(-x.shape[1], None)),
            "you take the last rows of the whole table; the rows begin at `start`",
        ),
    ),
    atol=_TOLERANCE,
)


def check_rotate_from(attempt: Attempt) -> bool:
    """Does `attempt(x, cos, sin, start)` rotate x `[B, S, H, D]` by rows start to start + S - 1 of whole tables?"""
    return ROTATE_FROM.check(attempt)


def _rows_by(order: Attempt) -> Attempt:
    """Reorder the rows of every head by order(head_dim)."""

    def convert(weight: Tensor, num_heads: int) -> Tensor:
        by_head = weight.unflatten(0, (num_heads, -1))  # [H*D, E] -> [H, D, E]
        return by_head[:, order(by_head.shape[1])].flatten(0, 1)

    return convert


CONVERT_ROWS = Exercise(
    "check_convert_rows",
    answer=_rows_by(half_split_permutation),
    cases=(
        Case("one head of eight channels", (numbers(8, 4), 1)),
        Case("three heads of eight channels", (numbers(24, 6), 3)),
        Case("two heads of sixteen channels", (numbers(32, 4), 2)),
    ),
    mistakes=(
        Mistake(
            lambda weight, num_heads: weight,
            "the rows are in their old order: within a head, rows 0, 2, 4, ... come first, then 1, 3, 5, ...",
        ),
        Mistake(
            _rows_by(lambda dim: half_split_permutation(dim).argsort()),
            "this is the opposite conversion, from half-split to interleaved. You need rows 0, 2, 4, ..., 1, 3, 5, ...",
        ),
        Mistake(
            _rows_by(lambda dim: half_split_permutation(dim).roll(dim // 2)),
            "you put the odd rows first, which swaps the channels of each pair and so reverses the rotation",
        ),
        Mistake(
            lambda weight, num_heads: weight[half_split_permutation(weight.shape[0])],
            "you reorder all rows at once, across the heads: do it head by head, weight.view(H, D, E)[:, order]",
        ),
        Mistake(
            lambda weight, num_heads: weight[:, half_split_permutation(weight.shape[1])],
            "you reorder the columns, which are the input channels; the channels of q are the rows",
        ),
    ),
)


def check_convert_rows(attempt: Attempt) -> bool:
    """Does `attempt(weight, num_heads)` reorder `[H*D, E]` rows from interleaved to half-split pairs, head by head?"""
    return CONVERT_ROWS.check(attempt)
