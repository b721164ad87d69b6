"""Which cases of a test run with every push."""

from collections.abc import Iterable
from typing import Any

import pytest


def long_after(count: int, cases: Iterable[Any]) -> list[Any]:
    """The first `count` cases as they are, and the others marked as long: for tests whose cases take the same way.

    Every push then looks whether the way is open, and a close look, where its subject was touched, at all of it.
    """
    long = pytest.mark.long
    kept = list(cases)
    return kept[:count] + [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=long) for case in kept[count:]
    ]
