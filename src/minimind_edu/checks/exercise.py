"""How an exercise is checked: its reference, the cases tried and the likely mistakes, together in an `Exercise`.

The cases are tried in order, each with one printed line, up to the first that fails. There the answer is compared with
what each likely mistake gives, so that the hint can name the mistake instead of only the number that differs.
Output is deterministic: no times, no addresses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from minimind_edu.checks.language import tell
from minimind_edu.checks.typed import read_number

NOT_ATTEMPTED = "not attempted yet: replace the dots, then run the cell again"
_LONGEST = 200  # characters of an error's message
Attempt = Callable[..., Any]
FindProblem = Callable[[Attempt], str | None]  # a hint, or None when the claim holds


class NotAttempted(Exception):
    """The attempt returned None: nothing has been written yet."""


@dataclass(frozen=True)
class Case:
    """Arguments for which an attempt must return what the reference returns."""

    claim: str
    arguments: tuple[Any, ...]
    untouched: str | None = None  # if given: the hint for an attempt that writes into these arguments


@dataclass(frozen=True)
class Property:
    """Anything that a comparison of results does not show: a dtype, the memory used, the calls made."""

    claim: str
    find_problem: FindProblem


@dataclass(frozen=True)
class Mistake:
    """A likely wrong answer, and the hint for whoever computes it."""

    answer: Attempt
    hint: str


class _Without(TorchFunctionMode):
    """Refuses functions of PyTorch that would leave nothing to do."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (name := getattr(func, "__name__", "")) in self.names:
            raise ValueError(f"this exercise is to be solved without {name}")
        return func(*args, **(kwargs or {}))


def without(*names: str) -> Callable[[Attempt], Attempt]:
    """For `through`: an attempt that must not call these functions of PyTorch."""

    def through(attempt: Attempt) -> Attempt:
        def watched(*arguments: Any) -> Any:
            with _Without(names):
                return attempt(*arguments)

        return watched

    return through


@dataclass(eq=False, repr=False)
class Exercise:
    """One exercise with everything that its check needs; called with an attempt, it checks it.

    A mistake that gives the right result for some case is not named there. Where several agree on the case that fails,
    one that also agrees on all others is named, or else the first in the list.
    """

    question: str
    answer: Attempt  # the reference
    cases: tuple[Case | Property, ...]
    mistakes: tuple[Mistake, ...] = ()
    parts: tuple[str, ...] = ()  # the names of the tensors, if an answer consists of several
    rtol: float = 1e-6
    atol: float = 1e-9
    through: Callable[[Attempt], Attempt] | None = None  # attempt -> what is tried and compared in its place

    def __post_init__(self) -> None:
        self.__name__ = "exercise"
        self.chapter = ""  # whose exercise it is: the name of its file
        self.__doc__ = self.question  # what help() shows

    def __set_name__(self, owner: Any, name: str) -> None:
        """Take the name of the variable that holds the exercise: it begins what a check prints."""
        self.__name__ = name

    def __repr__(self) -> str:
        return f"{self.__name__}: {self.question}"

    def __call__(self, attempt: Attempt) -> bool:
        """Check an attempt: True if it is right. What is wrong is printed."""
        return self.check(self.through(attempt) if self.through and callable(attempt) else attempt)

    def check(self, attempt: Attempt) -> bool:
        """Try all cases in order, print a line for each, and stop at the first that fails.

        Returns:
            True if all hold. An exception in the attempt is reported, not raised.
        """

        def written(*arguments: Any, **named: Any) -> Any:
            result = attempt(*arguments, **named)
            if _is_none(result):
                raise NotAttempted
            return result

        print(self.__name__)  # a name in code, in every language
        for case in self.cases:
            try:
                hint = self._compare(written, case) if isinstance(case, Case) else case.find_problem(written)
            except NotAttempted:
                if not self._answers_somewhere(written):
                    tell(f"  {NOT_ATTEMPTED}", self.chapter)
                    return False
                hint = "your function returns None here, but not everywhere: is a return missing?"
            except (Exception, SystemExit) as error:  # an attempt can raise anything
                hint = _in_words(attempt, error)
            if hint is not None:
                tell(f"  not yet  {case.claim}\n           hint: {hint}", self.chapter)
                return False
            tell(f"  ok       {case.claim}", self.chapter)
        tell(f"  all {len(self.cases)} hold", self.chapter)
        return True

    def difference(self, answer: Any, expected: Any) -> str | None:
        """None if `answer` equals `expected`, else the first difference in words, for any number of parts."""
        if not self.parts:
            return difference(answer, expected, self.rtol, self.atol)
        if not isinstance(answer, tuple | list) or len(answer) != len(self.parts):
            return f"return {len(self.parts)} tensors ({', '.join(self.parts)}), not one {type(answer).__name__}"
        for name, got, wanted in zip(self.parts, answer, expected, strict=True):
            if problem := difference(got, wanted, self.rtol, self.atol):
                return f"{name}: {problem}"
        return None

    def _compare(self, attempt: Attempt, case: Case) -> str | None:
        arguments = _copy(case.arguments)
        answer, expected = attempt(*arguments), self.answer(*_copy(case.arguments))
        problem = self.difference(answer, expected)
        if problem is None:
            return case.untouched if case.untouched and not _same(arguments, case.arguments) else None
        fitting = [
            mistake
            for mistake in self.mistakes
            if self._agree(lambda *_: answer, mistake, case) and not self._agree(self.answer, mistake, case)
        ]
        exactly = (
            mistake
            for mistake in fitting
            if all(self._agree(attempt, mistake, compared) for compared in self._compared)
        )
        hinted = next(exactly, None) if len(fitting) > 1 else None
        return (hinted or fitting[0]).hint if fitting else problem

    @property
    def _compared(self) -> list[Case]:
        return [case for case in self.cases if isinstance(case, Case)]

    def _agree(self, attempt: Attempt, mistake: Mistake, case: Case) -> bool:
        """Whether an attempt gives what this mistake gives; not where either cannot even run."""
        try:
            return self.difference(attempt(*_copy(case.arguments)), mistake.answer(*_copy(case.arguments))) is None
        except Exception:  # an attempt can raise anything
            return False

    def _answers_somewhere(self, attempt: Attempt) -> bool:
        for case in self.cases:
            try:
                if isinstance(case, Case):
                    attempt(*_copy(case.arguments))
                    return True
            except Exception:  # None here too, or an error that will be reported in its turn
                continue
        return False


def _in_words(attempt: Any, error: BaseException) -> str:
    """What stopped an attempt, in one line that is not too long to read."""
    if not callable(attempt):
        return f"give the function itself, its name without brackets; got {type(attempt).__name__}"
    try:
        message = next(iter(str(error).strip().splitlines()), "no message")
    except Exception:
        message = "no message that can be read"
    short = message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …"
    return f"your code stopped with {type(error).__name__}: {short}"


def difference(answer: Any, expected: Any, rtol: float = 1e-6, atol: float = 1e-9) -> str | None:
    """None if `answer` equals `expected`, else a sentence: the type, the shape or the first number that differs.

    Args:
        answer, expected: whatever `torch.as_tensor` takes; a text counts as the number in it. Integers are compared
            exactly.
    """
    expected = torch.as_tensor(expected).detach()
    if isinstance(answer, str):
        try:
            answer = read_number(answer)
        except ValueError as error:
            return str(error)
    kind = type(answer).__name__
    answer = _as_tensor(answer)
    if answer is None:
        if kind == "dict":
            return "expected a tensor or a number, got dict: return its values alone, in the order of the task"
        return f"expected a tensor or a number, got {kind}"
    if answer.layout != torch.strided or answer.is_meta or answer.is_quantized or answer.is_nested:
        return "expected an ordinary tensor with numbers in it, not a sparse one or one without any"
    answer = answer.detach().cpu()
    if answer.shape != expected.shape:
        return f"the answer has shape {list(answer.shape)}, expected {list(expected.shape)}"
    if not (expected.is_floating_point() or expected.is_complex()):
        rtol, atol = (4 * torch.finfo(answer.dtype).eps if answer.is_floating_point() else 0.0), 0.0
    wide = torch.complex128 if answer.is_complex() or expected.is_complex() else torch.float64
    close = torch.isclose(answer.to(wide), expected.to(wide), rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return None
    index = (~close).nonzero()[0].tolist()
    got, wanted = _print_apart(answer[tuple(index)].item(), expected[tuple(index)].item())
    return f"at index {index} it is {got}, expected {wanted}" if index else f"it is {got}, expected {wanted}"


def _as_tensor(answer: Any) -> Tensor | None:
    """What torch takes, or NumPy: arrays that lie backwards, lists of arrays or of tensors. None: neither takes it."""
    for convert in (torch.as_tensor, lambda given: torch.from_numpy(np.array(given))):
        try:
            return convert(answer)
        except Exception:  # they may ask what was given for anything
            continue
    return None


def each(function: Attempt) -> Attempt:
    """`function` called several times: argument tuples -> the list of results, for rules that one call cannot show."""
    return lambda *calls: [function(*call) for call in calls]


def numbers(*shape: int, shift: float = 0.0) -> Tensor:
    """Float64 numbers without a pattern in which a wrong axis or order could hide, the same on every machine."""
    n = torch.arange(math.prod(shape), dtype=torch.float64)
    return (torch.sin(3 * n + 1 + shift) + 0.1 * torch.sin(n * n)).view(shape)


def _is_none(result: Any) -> bool:
    parts = result if isinstance(result, tuple | list) and result else [result]
    return all(part is None for part in parts)


def _copy(value: Any) -> Any:
    """New tensors in tuples and lists of any depth, strides kept: an attempt may write into its arguments."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    return type(value)(map(_copy, value)) if isinstance(value, tuple | list) else value


def _same(value: Any, original: Any) -> bool:
    if isinstance(value, Tensor):
        return torch.equal(value, original)
    return not isinstance(value, tuple | list) or all(map(_same, value, original))


def _print_apart(got: Any, wanted: Any) -> tuple[str, str]:
    """Both numbers with as many digits as tell them apart; whole numbers in full."""
    if isinstance(got, bool) and isinstance(wanted, bool):
        return str(got), str(wanted)
    if not isinstance(got, complex) and not isinstance(wanted, complex):
        if float(got).is_integer() and float(wanted).is_integer():
            return f"{int(got):,}", f"{int(wanted):,}"
    extreme = any(0 < abs(number) < 1e-3 or 1e5 <= abs(number) < math.inf for number in (got, wanted))
    for digits in range(4, 18):
        style = f".{digits - 1}e" if extreme else f".{digits}f"
        texts = format(got, style), format(wanted, style)
        if texts[0] != texts[1]:
            break
    return texts
