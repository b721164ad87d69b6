"""Exercises on poems: their line ends, and the exchange that proves a rhyme."""

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Case, Exercise, Mistake, numbers

COMMA, STOP = 2, 3  # as in trained.verse.corpus, which notebooks without poems do not carry


def _lines(ids: Tensor) -> list[Tensor]:
    """The lines of a poem, each with its mark."""
    marks = ((ids == COMMA) | (ids == STOP)).nonzero()[:, 0] + 1
    return list(ids.tensor_split(marks)[:-1])


def _line_ends(ids: Tensor, kept: int) -> Tensor:
    return torch.cat([line[-kept - 1 :] for line in _lines(ids)])


def _at_stops(ids: Tensor, kept: int) -> Tensor:
    return torch.cat([line[-kept - 1 :] for line in ids.tensor_split((ids == STOP).nonzero()[:, 0] + 1)[:-1]])


def _poem(lines: int, width: int) -> Tensor:
    rows = torch.arange(100, 100 + lines * width).view(lines, width)
    marks = torch.tensor([COMMA, STOP] * (lines // 2))[:, None]
    return torch.cat([rows, marks], 1).flatten()


check_line_ends = Exercise(
    "Does `attempt(ids, kept)` cut each line of a poem to its last characters and its mark?",
    answer=_line_ends,
    cases=(
        Case("four lines of five, the last character of each", (_poem(4, 5), 1)),
        Case("four lines of five, the last three", (_poem(4, 5), 3)),
        Case("eight lines of seven", (_poem(8, 7), 1)),
        Case("as many as a line has: nothing is cut", (_poem(4, 5), 5)),
    ),
    mistakes=(
        Mistake(
            lambda ids, kept: torch.cat([line[-kept - 1 : -1] for line in _lines(ids)]),
            "the marks are gone, and with them the only sign of where a line ends: keep them",
        ),
        Mistake(
            lambda ids, kept: torch.cat([torch.cat([line[:kept], line[-1:]]) for line in _lines(ids)]),
            "these are the beginnings of the lines: the rhyme stands at their ends",
        ),
        Mistake(
            lambda ids, kept: torch.cat([line[-kept:] for line in _lines(ids)]),
            "one character too few: the mark is not one of those that are counted",
        ),
        Mistake(_at_stops, "you cut at full stops alone: a line ends at a comma, too"),
    ),
)


def _times(before: Tensor, after: Tensor, group: Tensor) -> Tensor:
    return after.softmax(-1)[group].sum() / before.softmax(-1)[group].sum()


_GROUP = torch.tensor([True, False, False, True, False, True, False, False])
_ALONE = torch.arange(8) == 2

check_exchange = Exercise(
    "Does `attempt(before, after, group)` say how many times as probable a group of characters has become?",
    answer=_times,
    cases=(
        Case("eight characters, three of them in the group", (3 * numbers(8), 3 * numbers(8, shift=0.7), _GROUP)),
        Case("one character alone", (3 * numbers(8), 3 * numbers(8, shift=0.7), _ALONE)),
        Case("nothing was read: 1", (numbers(8), numbers(8) + 2, _GROUP)),
    ),
    mistakes=(
        Mistake(
            lambda before, after, group: after[group].sum() / before[group].sum(),
            "these are logits: make probabilities of them first, over all characters",
        ),
        Mistake(
            lambda before, after, group: after[group].softmax(-1).sum() / before[group].softmax(-1).sum(),
            "your softmax sees the group alone, so it always sums to 1: take it over all characters, then choose",
        ),
        Mistake(
            lambda before, after, group: _times(after, before, group),
            "the other way round: after the exchange, divided by before",
        ),
        Mistake(
            lambda before, after, group: (after.softmax(-1)[group] / before.softmax(-1)[group]).mean(),
            "you average the quotients of single characters: add up the group first, then divide",
        ),
        Mistake(
            lambda before, after, group: _times(before, after, group).log(),
            "this is a difference of logarithms: how many times as probable is asked for",
        ),
    ),
)
