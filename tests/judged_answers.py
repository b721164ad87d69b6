"""The two tests that every file of exercises has: right answers pass, and wrong ones get the hint that fits."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest


def judged(right: Sequence[tuple[Any, ...]], wrong: Sequence[tuple[Any, ...]]) -> tuple[Callable, Callable]:
    """Both tests over such tables: of (check, answer), and of (check, answer, words of the hint)."""

    @pytest.mark.parametrize(("check", "answer"), right, ids=lambda part: part.__name__)
    def passes(check, answer):
        assert check(answer) is True

    @pytest.mark.parametrize(("check", "answer", "words"), wrong, ids=lambda part: getattr(part, "__name__", part))
    def gets_the_hint(check, answer, words, capsys):
        assert check(answer) is False
        assert words in capsys.readouterr().out.split("hint: ")[1]

    return passes, gets_the_hint
