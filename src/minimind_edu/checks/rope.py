"""Checks for the exercises on RoPE (chapter 03).

Every one compares numbers with the package. That lengths are kept and that scores depend on position differences only
is not enough: a wrong base, exponent, order, direction or pairing keeps both.
Left out on purpose: the complex form, and YaRN, which has a chapter of its own.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks._report import Attempt, Mistake, NotAttempted, Property, _copies, given, report, same_as
from minimind_edu.checks._rope_mistakes import (
    APPLY_MISTAKES,
    CONVERT_MISTAKES,
    ROTATE_FROM_MISTAKES,
    ROTATE_PAIR_MISTAKES,
    TABLE_MISTAKES,
    convert_rows,
    reference_tables,
    turn_pair,
    turn_rows,
)
from minimind_edu.rope import apply_rotary_pos_emb

_TOLERANCE = 1e-5  # tables computed in float32 are as welcome as those in float64


def check_rotate_pair(attempt: Attempt) -> bool:
    """Does `attempt(x, angle)` turn `x`, `[2]`, counter-clockwise by `angle` radians?"""

    def turns(x: list[float], angle: float) -> Any:
        vector = torch.tensor(x, dtype=torch.float64)
        return same_as(turn_pair, vector, angle, mistakes=ROTATE_PAIR_MISTAKES, atol=_TOLERANCE)

    return report(
        "check_rotate_pair",
        attempt,
        [
            Property("(1, 0), turned by 0.5, moves up", turns([1.0, 0.0], 0.5)),
            Property("(0.6, -1.1), turned by 2", turns([0.6, -1.1], 2.0)),
            Property("a negative angle turns the other way", turns([0.6, -1.1], -0.8)),
            Property("an angle of more than a whole turn", turns([-0.3, 0.9], 20.0)),
        ],
    )


def check_precompute_freqs_cis(attempt: Attempt) -> bool:
    """Does `attempt(dim, end, rope_base)` give the half-split tables cos and sin, `[end, dim]` each?"""

    def tables(dim: int, end: int, rope_base: float) -> Any:
        return _pair_like(("cos", "sin"), reference_tables, dim, end, rope_base, mistakes=TABLE_MISTAKES)

    return report(
        "check_precompute_freqs_cis",
        attempt,
        [
            Property("two tables of shape [end, dim]", _has_table_shapes),
            # no base here is a power of another, or a wrong exponent could pass for a wrong base
            Property("dim 4, base 50, ten positions", tables(4, 10, 50.0)),
            Property("dim 8, base 10,000, six positions", tables(8, 6, 10_000.0)),
            Property("dim 16, base 1,000,000, forty positions", tables(16, 40, 1e6)),
        ],
    )


def check_apply_rotary_pos_emb(attempt: Attempt) -> bool:
    """Does `attempt(q, k, cos, sin)` turn q `[B, S, H, D]` and k `[B, S, K, D]` by tables `[S, D]`, half-split?"""

    def turns(batch: int, length: int, heads: int, kv_heads: int, dim: int) -> Any:
        q, k = _numbers(batch, length, heads, dim), _numbers(batch, length, kv_heads, dim).cos()
        cos, sin = reference_tables(dim, length, 100.0)
        return _pair_like(("q", "k"), apply_rotary_pos_emb, q, k, cos, sin, mistakes=APPLY_MISTAKES)

    return report(
        "check_apply_rotary_pos_emb",
        attempt,
        [
            Property("four positions, four heads", turns(1, 4, 4, 4, 8)),
            Property("six positions, three query heads, one key head", turns(2, 6, 3, 1, 8)),
            Property("more channels, a single position", turns(1, 1, 2, 2, 64)),
            Property("q and k are left as they were", _leaves_q_and_k_alone),
        ],
    )


def check_rotate_from(attempt: Attempt) -> bool:
    """Does `attempt(x, cos, sin, start)` turn x `[B, S, H, D]` for positions start to start + S - 1 of whole tables?"""

    def turns(start: int, length: int) -> Any:
        x, cos, sin = _numbers(1, length, 3, 8), *reference_tables(8, 12, 100.0)
        return same_as(_rotate_from, x, cos, sin, start, mistakes=ROTATE_FROM_MISTAKES, atol=_TOLERANCE)

    return report(
        "check_rotate_from",
        attempt,
        [
            Property("one new position after five", turns(5, 1)),
            Property("a piece of four after two", turns(2, 4)),
            Property("a prompt of four positions, from 0", turns(0, 4)),
            Property("the last rows of the table, 8 to 11", turns(8, 4)),
            Property("a ValueError past the end of the table", _refuses_to_run_past_the_end),
        ],
    )


def check_convert_rows(attempt: Attempt) -> bool:
    """Does `attempt(weight, num_heads)` reorder `[H*D, E]` rows from interleaved to half-split pairs, head by head?"""

    def converts(heads: int, dim: int, width: int) -> Any:
        weight = _numbers(heads * dim, width)
        return same_as(convert_rows, weight, heads, mistakes=CONVERT_MISTAKES)

    return report(
        "check_convert_rows",
        attempt,
        [
            Property("one head of eight channels", converts(1, 8, 4)),
            Property("three heads of eight channels", converts(3, 8, 6)),
            Property("two heads of sixteen channels", converts(2, 16, 4)),
        ],
    )


def _numbers(*shape: int) -> Tensor:
    """Numbers without a pattern that a wrong axis or order could hide in."""
    n = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(3 * n) + 0.1 * torch.sin(n * n)).reshape(shape)


def _pair_like(names: tuple[str, str], reference: Attempt, *arguments: Any, mistakes: Iterable[Mistake]) -> Any:
    """A question: `same_as`, for an attempt that returns two tensors. The first that differs is named."""

    def part(function: Attempt, index: int) -> Attempt:
        return lambda *given_arguments: function(*given_arguments)[index]

    def question(attempt: Attempt) -> str | None:
        if problem := _not_two(names, attempt(*_copies(arguments))):
            return problem
        for index, name in enumerate(names):
            usual = [Mistake(part(mistake.answer, index), mistake.hint) for mistake in mistakes]
            asked = same_as(part(reference, index), *arguments, mistakes=usual, atol=_TOLERANCE)  # fmt: skip
            if problem := asked(part(attempt, index)):
                return f"{name}: {problem}"
        return None

    return question


def _not_two(names: tuple[str, str], answer: Any) -> str | None:
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        return f"return two tensors, {names[0]} and {names[1]}: your function returned {type(answer).__name__}"
    for part in answer:
        given(part)
    return None


def _has_table_shapes(attempt: Attempt) -> str | None:
    dim, end = 8, 6
    answer = attempt(dim, end, 10_000.0)
    if problem := _not_two(("cos", "sin"), answer):
        return problem
    for name, table in zip(("cos", "sin"), answer, strict=True):
        shape = list(torch.as_tensor(table).shape)
        if shape == [end, dim]:
            continue
        hints = {
            (end, dim // 2): "it has one column a pair; both channels of a pair need it, so write it twice, side by "
            "side: torch.cat([angles, angles], dim=-1)",
            (dim, end): "rows and columns have changed places: torch.outer(positions, inv_freq)",
            (dim // 2, end): "rows and columns have changed places: torch.outer(positions, inv_freq)",
            (2 * end, dim // 2): "it was doubled downwards: double the columns, dim=-1",
        }
        told = hints.get(tuple(shape), "one row a position and one column a channel are needed")
        return f"{name} has shape {shape}, expected {[end, dim]}: {told}"
    return None


def _leaves_q_and_k_alone(attempt: Attempt) -> str | None:
    q, k = _numbers(1, 3, 2, 8), _numbers(1, 3, 2, 8).cos()
    before = q.clone(), k.clone()
    attempt(q, k, *reference_tables(8, 3, 100.0))
    if torch.equal(q, before[0]) and torch.equal(k, before[1]):
        return None
    return "your function writes into q or k (in place, such as q *= cos): build new tensors"


def _rotate_from(x: Tensor, cos: Tensor, sin: Tensor, start: int) -> Tensor:
    rows = slice(start, start + x.shape[1])
    return turn_rows(x, cos[rows], sin[rows])


def _refuses_to_run_past_the_end(attempt: Attempt) -> str | None:
    cos, sin = reference_tables(8, 12, 100.0)
    for start, length in ((12, 1), (10, 4)):
        try:
            answer = attempt(_numbers(1, length, 3, 8), cos, sin, start)
        except ValueError:
            continue
        except NotAttempted:
            raise
        except Exception as error:
            return (
                f"position {start + length - 1} is past the last row, 11, and your code stopped with "
                f"{type(error).__name__}: compare start + S with len(cos) first, and raise a ValueError that says it"
            )
        return (
            f"position {start + length - 1} is past the last row, 11, and nothing was said: the answer has shape "
            f"{list(torch.as_tensor(answer).shape)}. Compare start + S with len(cos), and raise a ValueError"
        )
    return None
