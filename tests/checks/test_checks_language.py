"""checks.language: the checks answer in Chinese in a Chinese notebook, and in English everywhere else."""

import pytest
import torch

from minimind_edu import checks
from minimind_edu.checks import language
from minimind_edu.checks.exercise import Case, Exercise, Mistake
from minimind_edu.checks.language import in_chinese
from minimind_edu.notebook import LANGUAGE
from tools.answers import files

TRANSLATED = [path.name.removesuffix(".zh.md") for path in files() if path.stem != "exercise.zh"]
EXERCISES = [one for name in checks.__all__ if (one := getattr(checks, name)).chapter in TRANSLATED]


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv(LANGUAGE, "zh")


def answers(exercise: Exercise, attempt, capsys) -> list[str]:
    exercise.check(attempt)
    return capsys.readouterr().out.splitlines()


def test_the_chapters_that_readers_begin_with_answer_in_chinese():
    assert {"whole_model", "rmsnorm_vs_layernorm", "attention"} <= set(TRANSLATED)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.__name__)
def test_every_line_is_chinese_but_the_name_of_the_check(exercise, chinese, capsys):
    name, *lines = answers(exercise, exercise.answer, capsys)
    assert name == exercise.__name__ and lines.pop() == f"  {len(exercise.cases)} 条全部成立"
    assert [line[:4] for line in lines] == ["  通过"] * len(exercise.cases)
    for mistake in exercise.mistakes:
        told = answers(exercise, mistake.answer, capsys)
        assert told[-2].startswith("  还不对   ") and told[-1].startswith("           提示："), told
        assert any("\u4e00" <= letter <= "\u9fff" for letter in told[-1].partition("提示：")[2]), told


@pytest.mark.parametrize(
    "attempt, told",
    [
        (lambda *_: None, "  还没有写：把省略号换成你的代码，再运行一次这个单元格"),
        (
            lambda x: x.no_such_thing,
            "           提示：你的代码停下了，AttributeError：'Tensor' object has no attribute",
        ),
        (lambda x: {"a": x}, "           提示：应当是张量或数，收到的是 dict：请只返回里面的值，按题目的次序"),
        (lambda x: x[:1], "           提示：答案的形状是 [1]，应当是 [3]"),
        (lambda x: x + 1, "           提示：下标 [0] 处是 2，应当是 1"),
        (lambda x: -x, "           提示：-x"),
    ],
)
def test_what_all_checks_say_is_chinese_and_what_python_says_is_not(attempt, told, chinese, capsys):

    three = torch.tensor([1.0, 2.0, 3.0])
    exercise = Exercise("?", lambda x: x, (Case("three", (three,)),), (Mistake(lambda x: -x, "-x"),))
    exercise.chapter = "whole_model"
    assert answers(exercise, attempt, capsys)[-1].startswith(told)


def test_a_part_of_an_answer_is_named_and_told_in_chinese():
    told = in_chinese("           hint: keys: it is 3, expected 4", "whole_model")
    assert told == "           提示：keys: 得到的是 3，应当是 4"


def test_english_notebooks_hear_english_and_so_do_checks_that_nobody_has_translated(monkeypatch, capsys):
    exercise = checks.check_next_word
    assert answers(exercise, lambda *_: None, capsys)[1].startswith("  not attempted yet")
    monkeypatch.setenv(LANGUAGE, "zh")
    monkeypatch.setattr(exercise, "chapter", "not_translated")
    assert answers(exercise, exercise.answer, capsys)[-1] == "  all 4 hold"
    assert not language.file_of("not_translated").exists()
