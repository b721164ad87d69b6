"""What the tests of the exercise checks share: tables of wrong answers, and what must be said of each."""

import pytest


def wrong_answers(tables):
    """One pytest parameter for every wrong answer.

    Args:
        tables: `{check: {name: (answer, words that its hint must hold)}}`.
    """
    return [
        pytest.param(check, answer, words, id=f"{check.__name__}-{name}")
        for check, table in tables.items()
        for name, (answer, words) in table.items()
    ]


def usual_mistakes(tables):
    """One pytest parameter for every mistake that a check knows: `{check: mistakes}`."""
    return [
        pytest.param(check, mistake, id=f"{check.__name__}-{mistake.hint[:40]}")
        for check, usual in tables.items()
        for mistake in usual
    ]


def assert_told_as_not_attempted(check, answer, capsys):
    """An answer that is not written yet is no mistake: it is said so, without a hint."""
    assert check(answer) is False
    told = capsys.readouterr().out
    assert "not attempted yet" in told and "hint" not in told


def assert_every_hint_is_its_own(mistakes):
    """At least five mistakes are known, and no two of them are told alike."""
    hints = [mistake.hint for mistake in mistakes]
    assert len(hints) >= 5
    assert len(set(hints)) == len(hints)


def assert_mistake_is_named(check, answer, words, capsys):
    """The check refuses the answer at one property, with a hint that holds these words."""
    assert check(answer) is False
    told = capsys.readouterr().out
    assert told.count("not yet") == 1
    assert words in told.split("hint:")[1]
