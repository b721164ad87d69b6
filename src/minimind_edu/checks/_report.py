"""How every check speaks: one line for each property tried, and one hint for the first that does not hold.

A check is a list of properties. A property has a claim, which is printed, and a question: a function that takes the
learner's attempt and returns None when the claim holds, or a hint. Most questions are `same_as`: the attempt is
compared with a reference on given arguments, and where it differs, with the usual wrong answers, so that the hint can
name the mistake instead of only the number. Output is deterministic: no residuals, no addresses.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Attempt = Callable[..., Any]


class Property(NamedTuple):
    """One thing that must hold of an attempt."""

    claim: str
    question: Callable[[Attempt], str | None]  # attempt -> None, or a hint


class Mistake(NamedTuple):
    """A usual wrong answer: how it is computed, and what to tell whoever computed it."""

    answer: Attempt
    hint: str


class NotAttempted(Exception):
    """The attempt returned None: the learner has not begun."""


def report(name: str, attempt: Attempt, properties: Iterable[Property]) -> bool:
    """Try the properties in order, print one line for each, and stop at the first that does not hold.

    Returns:
        True if all properties hold. What the attempt raises is told, not raised again.
    """
    print(name)
    count = 0
    for claim, question in properties:
        try:
            hint = question(_asked(attempt))
        except NotAttempted:
            print("  not attempted yet: replace the dots, then run the cell again")
            return False
        except Exception as error:  # whatever a learner's code can raise
            text = str(error).strip().splitlines()
            hint = f"your code stopped with {type(error).__name__}: {text[0] if text else 'no message'}"
        if hint is not None:
            print(f"  not yet  {claim}\n           hint: {hint}")
            return False
        print(f"  ok       {claim}")
        count += 1
    print(f"  all {count} hold")
    return True


def same_as(
    reference: Attempt, *arguments: Any, mistakes: Iterable[Mistake] = (), rtol: float = 1e-6, atol: float = 1e-9
) -> Callable[[Attempt], str | None]:
    """A question: does the attempt give what `reference` gives for these arguments?

    A usual mistake whose own result cannot be told from the right one on these arguments is never named.
    """

    def question(attempt: Attempt) -> str | None:
        expected = torch.as_tensor(reference(*_copies(arguments)))
        answer = attempt(*_copies(arguments))  # copies: an attempt may write into its arguments
        problem = difference(answer, expected, rtol, atol)
        if problem is None:
            return None
        for mistake in mistakes:
            wrong = _result_or_none(mistake.answer, arguments)
            if wrong is None or difference(wrong, expected, rtol, atol) is None:
                continue
            if difference(answer, torch.as_tensor(wrong), rtol, atol) is None:
                return mistake.hint
        return problem

    return question


def difference(answer: Any, expected: Tensor, rtol: float = 1e-6, atol: float = 1e-9) -> str | None:
    """None if `answer` is `expected`, else a sentence: the kind, the shape or the first number that differs."""
    try:
        answer = torch.as_tensor(answer)
    except (TypeError, ValueError, RuntimeError):
        return f"expected a tensor or a number, got {type(answer).__name__}"
    if answer.shape != expected.shape:
        return f"the answer has shape {list(answer.shape)}, expected {list(expected.shape)}"
    dtype = torch.promote_types(answer.dtype, expected.dtype)
    if not dtype.is_complex:
        dtype = torch.promote_types(dtype, torch.float32)
    answer, expected = answer.detach().to(dtype), expected.detach().to(dtype)
    close = torch.isclose(answer, expected, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return None
    index = (~close).nonzero()[0].tolist()
    where = f"at index {index} it is" if index else "it is"
    got, wanted = answer[tuple(index)].item(), expected[tuple(index)].item()
    return f"{where} {_number(got)}, expected {_number(wanted)}"


def given(answer: Any) -> Any:
    """`answer` itself; stops the check kindly when there is none yet. For what an attempt's result returns in turn."""
    if answer is None:
        raise NotAttempted
    return answer


def _asked(attempt: Attempt) -> Attempt:
    """The attempt, expected to return something."""

    def asked(*arguments: Any, **named: Any) -> Any:
        return given(attempt(*arguments, **named))

    return asked


def _copies(arguments: tuple) -> tuple:
    return tuple(a.detach().clone() if isinstance(a, Tensor) else a for a in arguments)


def _result_or_none(function: Attempt, arguments: tuple) -> Any:
    try:
        return function(*_copies(arguments))
    except (RuntimeError, IndexError, ValueError):  # this mistake would not even run on these arguments
        return None


def _number(value: complex | float | bool) -> str:
    if isinstance(value, complex):
        return f"{value:.4f}"
    size = abs(value)
    return f"{value:.4f}" if size == 0 or 1e-3 <= size < 1e5 else f"{value:.3e}"
