"""checks.exercise: every exercise accepts its reference, names each of its mistakes, and reports all else in words."""

import pydoc
from pathlib import Path

import numpy as np
import pytest
import torch
from cases import long_after
from torch import Tensor

from minimind_edu import checks
from minimind_edu.checks import kv_cache
from minimind_edu.checks.exercise import Case, Exercise, Mistake, Property, difference
from tools.chapters import chapters

EXERCISES = [getattr(checks, name) for name in checks.__all__]
COMPARED = [exercise for exercise in EXERCISES if any(isinstance(case, Case) for case in exercise.cases)]
MISTAKES = [(exercise, mistake) for exercise in EXERCISES for mistake in exercise.mistakes]
MISTAKES.sort(key=lambda both: both[1] is not both[0].mistakes[0])  # the first of each exercise before all others
FIRST_MISTAKES = sum(bool(exercise.mistakes) for exercise in EXERCISES)


def name_of(value):
    return value.__name__ if isinstance(value, Exercise) else value.hint[:40]


EVERY_EXERCISE = pytest.mark.parametrize("exercise", EXERCISES, ids=name_of)
SOME_EXERCISES = pytest.mark.parametrize("exercise", long_after(8, EXERCISES), ids=name_of)
SOME_COMPARED = pytest.mark.parametrize("exercise", long_after(8, COMPARED), ids=name_of)
EVERY_COMPARED = pytest.mark.parametrize("exercise", COMPARED, ids=name_of)


def changed(exercise, change):
    """The reference's answer, with `change` applied to its tensor or to every part of it."""

    def answer(*arguments):
        result = exercise.answer(*arguments)
        return tuple(map(change, result)) if exercise.parts else change(torch.as_tensor(result))

    return answer


def test_every_chapter_has_exercises_in_a_file_of_its_name_and_every_file_has_a_chapter():
    files = {path.stem for path in Path(checks.__file__).parent.glob("*.py")} - {
        "__init__",
        "exercise",
        "language",
        "typed",
    }
    assert files == {chapter.name for chapter in chapters().values()}
    assert all(isinstance(exercise, Exercise) for exercise in EXERCISES) and len(set(EXERCISES)) == len(EXERCISES) > 60


@EVERY_EXERCISE
def test_an_exercise_is_named_as_its_variable_and_help_says_what_is_asked(exercise):
    assert exercise.__name__.startswith("check_") and getattr(checks, exercise.__name__) is exercise
    assert "`attempt(" in exercise.question and "?" in exercise.question
    assert repr(exercise) == f"{exercise.__name__}: {exercise.question}"
    assert f"    {exercise.question}" in pydoc.render_doc(exercise, renderer=pydoc.plaintext).splitlines()


@EVERY_EXERCISE
def test_the_reference_passes_with_one_line_for_each_case(exercise, capsys):
    assert exercise.check(exercise.answer) is True
    claims = [f"  ok       {case.claim}" for case in exercise.cases]
    assert capsys.readouterr().out.splitlines() == [exercise.__name__, *claims, f"  all {len(claims)} hold"]


@pytest.mark.parametrize(("exercise", "mistake"), long_after(FIRST_MISTAKES, MISTAKES), ids=name_of)
def test_every_mistake_gets_its_own_hint(exercise, mistake, capsys):
    assert exercise.check(mistake.answer) is False
    *_, not_yet, hint = capsys.readouterr().out.splitlines()
    assert not_yet.startswith("  not yet  ")
    assert hint == f"           hint: {mistake.hint}"


@EVERY_COMPARED
def test_an_unforeseen_wrong_answer_is_told_what_is_expected(exercise, capsys):
    for wrong in (lambda part: 1.5 * part + 0.25, lambda part: torch.zeros(3, 7)):
        assert exercise.check(changed(exercise, wrong)) is False
        assert ", expected " in capsys.readouterr().out


@SOME_COMPARED
def test_numpy_answers_are_accepted(exercise):
    def as_array(part: Tensor):
        return part if part.dtype == torch.bfloat16 else part.numpy()  # NumPy has no bfloat16

    assert exercise.check(changed(exercise, as_array)) is True


@SOME_COMPARED
def test_lists_are_accepted_or_a_tensor_is_asked_for(exercise, capsys):
    if not exercise.check(changed(exercise, Tensor.tolist)):
        assert "hint: return a tensor: a list has no" in capsys.readouterr().out


@EVERY_EXERCISE
def test_nothing_written_yet_is_no_mistake(exercise, capsys):
    assert exercise(lambda *arguments: None) is False
    printed = capsys.readouterr().out
    assert "not attempted yet" in printed and "hint" not in printed


@EVERY_EXERCISE
def test_what_an_attempt_raises_is_reported(exercise, capsys):
    def raises(*arguments):
        raise KeyError("no such channel")

    assert exercise(raises) is False
    assert "hint: your code stopped with KeyError: 'no such channel'" in capsys.readouterr().out


@EVERY_EXERCISE
def test_what_is_no_answer_at_all_is_reported(exercise, capsys):
    assert exercise(lambda *arguments: "later") is False
    assert "hint: " in capsys.readouterr().out


@SOME_EXERCISES
def test_the_default_dtype_and_a_second_run_change_nothing(exercise, capsys):
    exercise.check(exercise.answer)
    expected = capsys.readouterr().out
    kv_cache._tiny_model.cache_clear()
    kv_cache._expected.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        exercise.check(exercise.answer)
    finally:
        torch.set_default_dtype(torch.float32)
    assert capsys.readouterr().out == expected


@SOME_EXERCISES
def test_checking_leaves_the_random_numbers_alone(exercise):
    kv_cache._tiny_model.cache_clear()
    before = torch.get_rng_state()
    exercise.check(exercise.answer)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_attempt_that_empties_its_arguments_spoils_no_later_check():
    def empties(*arguments):
        for argument in arguments:
            if isinstance(argument, Tensor):
                argument.zero_()
            elif isinstance(argument, dict | tuple | list):
                empties(*(argument.values() if isinstance(argument, dict) else argument))
        return arguments[0]

    assert not any(exercise.check(empties) for exercise in EXERCISES)
    assert not any(exercise.check(mistake.answer) for exercise, mistake in MISTAKES)


# ---- one small exercise, to see every rule at work

DOUBLE = Exercise(
    "Does `attempt(x)` double x?",
    answer=lambda x: 2 * x,
    cases=(
        Case("zero", (torch.zeros(2),)),
        Case("a pair", (torch.tensor([[1.0, 4.0]]).T,), untouched="it writes into x"),
        Property(
            "float64 stays", lambda attempt: None if attempt(torch.ones(1).double()).dtype.itemsize == 8 else "no"
        ),
    ),
    mistakes=(Mistake(lambda x: x * x, "squared"), Mistake(lambda x: x**2, "the same again"), Mistake(int, "an int")),
)


def hint_for(attempt, capsys, exercise=DOUBLE):
    assert exercise.check(attempt) is False
    return capsys.readouterr().out.split("hint: ")[1].strip()


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Strange:
    def __array__(self, *_, **__):
        raise KeyError("no array")


def stopping(error):
    def attempt(*_):
        raise error

    return attempt


ODD = {
    "the result instead of the function": (
        torch.ones(2),
        "give the function itself, its name without brackets; got Tensor",
    ),
    "the dots": (..., "its name without brackets; got ellipsis"),
    "exit()": (stopping(SystemExit(1)), "your code stopped with SystemExit: 1"),
    "an error without words": (stopping(Mute()), "your code stopped with Mute: no message that can be read"),
    "an error of many words": (stopping(ValueError("x" * 10_000)), f"stopped with ValueError: {'x' * 200} …"),
    "an array of its own mind": (lambda x: Strange(), "expected a tensor or a number, got Strange"),
    "a sparse tensor": (
        lambda x: (2 * x).to_sparse(),
        "expected an ordinary tensor with numbers in it",
    ),
    "a tensor on meta": (
        lambda x: x.to("meta"),
        "expected an ordinary tensor with numbers in it",
    ),
    "a ragged list": (lambda x: [[1.0], [2.0, 3.0]], "expected a tensor or a number, got list"),
    "objects": (lambda x: np.array([x], dtype=object), "expected a tensor or a number, got ndarray"),
    "a generator": (lambda x: (value for value in x), "expected a tensor or a number, got generator"),
    "a dictionary": (lambda x: {"x": 2 * x}, "expected a tensor or a number, got dict: return its values alone"),
    "too many parameters": (
        lambda x, y: x,
        "stopped with TypeError: <lambda>() missing 1 required",
    ),
    "no parameter": (lambda: 1, "stopped with TypeError: <lambda>() takes 0 positional"),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_answers_are_answered_by_a_sentence(case, capsys):
    attempt, words = ODD[case]
    assert DOUBLE(attempt) is False
    printed = capsys.readouterr().out
    assert words in printed.split("hint: ")[1]
    assert max(map(len, printed.splitlines())) < 300


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: (2 * x).numpy()[::-1][::-1],
        lambda x: np.flip(np.flip(2 * x.numpy(), 0), 0),
        lambda x: [2 * row.numpy() for row in x],
        lambda x: [2 * row for row in x],
        lambda x: (2 * x).requires_grad_(),
        lambda x: 2 * x.to(torch.complex64),
    ],
)
def test_right_numbers_are_right_in_whatever_holds_them(answer):
    exercise = Exercise("Is it double?", DOUBLE.answer, (Case("some", (torch.tensor([[1.0, 4.0], [2.0, 3.0]]),)),))
    assert exercise(answer) is True


def test_the_first_mistake_that_fits_is_named_and_only_where_it_is_wrong(capsys):
    assert hint_for(lambda x: x * x, capsys) == "squared"
    assert hint_for(lambda x: x * x + (x == 0), capsys) == "at index [0] it is 1, expected 0"


def test_a_mistake_too_small_to_be_seen_is_not_named(capsys):
    nearly = Mistake(lambda x: 2 * x * (1 + 8e-7), "nearly right")
    exercise = Exercise("Is it double?", DOUBLE.answer, (Case("ones", (torch.ones(1).double(),)),), (nearly,))
    assert exercise.check(nearly.answer) is True
    assert hint_for(lambda x: 2 * x * (1 + 16e-7), capsys, exercise) == "at index [0] it is 2.000003, expected 2.000000"


def test_an_attempt_may_not_write_where_arguments_must_stay(capsys):
    assert hint_for(lambda x: x.mul_(2), capsys) == "it writes into x"


def test_none_in_one_place_only_is_a_missing_return(capsys):
    assert "is a return missing?" in hint_for(lambda x: 2 * x if x.any() else None, capsys)
    assert "is a return missing?" in hint_for(lambda x: None if x.any() else 2 * x, capsys)


def test_arguments_keep_their_strides():
    strides = []
    DOUBLE.check(lambda x: strides.append(x.stride()) or 2 * x)
    assert strides[1] == DOUBLE.cases[1].arguments[0].stride()


def test_several_parts_are_compared_by_name(capsys):
    exercise = Exercise("Is it two?", lambda x: (x, -x), (Case("one", (torch.ones(2),)),), parts=("first", "second"))
    assert hint_for(lambda x: (x, x), capsys, exercise) == "second: at index [0] it is 1, expected -1"
    assert hint_for(lambda x: x[0], capsys, exercise) == "return 2 tensors (first, second), not one Tensor"


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (0.061112, 0.061114, "it is 0.061112, expected 0.061114"),
        (0.5, 0.25, "it is 0.5000, expected 0.2500"),
        (3.5, 7, "it is 3.5000, expected 7.0000"),
        (1.25e-9, 1.5e-9, "it is 1.250e-09, expected 1.500e-09"),
        (1_770_000, 1_770_001, "it is 1,770,000, expected 1,770,001"),
        (26_000_000.0, 13_000_000, "it is 26,000,000, expected 13,000,000"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "at index [1] it is False, expected True"),
        (float("nan"), 0.0, "it is nan, expected 0.0000"),
        ([1 + 2j], [1 - 2j], "at index [0] it is 1.0000+2.0000j, expected 1.0000-2.0000j"),
        ([1, 2], [[1, 2]], "the answer has shape [2], expected [1, 2]"),
        ("later", 1, "'later' is no number: write it like 0.25, 1/4, 1,024, 1.5 MiB or 25 %"),
        ({"a": 1}, 1, "expected a tensor or a number, got dict: return its values alone, in the order of the task"),
    ],
)
def test_a_difference_is_told_in_as_many_digits_as_it_needs(answer, expected, words):
    assert difference(answer, expected, rtol=1e-6, atol=0.0) == words


def test_integers_are_compared_exactly_and_floats_within_the_tolerance():
    assert difference(100_000_001, 100_000_000) is not None
    assert difference(torch.tensor(104_030_976 * (1 + 1e-16), dtype=torch.float64), 104_030_976) is None
    assert difference(np.float32(1 / 3), torch.tensor(1 / 3, dtype=torch.float64)) is None
    assert difference(0.333, 1 / 3) is not None
