"""Exercises on poems: their line ends, the exchange that proves a rhyme, and edges of attention that are cut."""

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Case, Exercise, Mistake, numbers

COMMA, STOP = 2, 3  # ids, as in trained.verse.corpus, which notebooks without poems do not carry


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


def _cut_edge(scores: Tensor, cut: Tensor) -> Tensor:
    return scores.masked_fill(cut, -torch.inf).softmax(-1)


_CUT = torch.tensor([False, True, False, False, True, False])

check_cut_edge = Exercise(
    "Does `attempt(scores, cut)`, `[S]` each, give the weights of a query without the edges that are cut?",
    answer=_cut_edge,
    cases=(
        Case("six keys, two of them cut", (3 * numbers(6), _CUT)),
        Case("all but one are cut: it gets everything", (3 * numbers(6), torch.arange(6) != 3)),
        Case("nothing is cut", (3 * numbers(6), torch.zeros(6, dtype=torch.bool))),
        Case("scores far below 0", (3 * numbers(6) - 50, _CUT)),
    ),
    mistakes=(
        Mistake(
            lambda scores, cut: scores.softmax(-1).masked_fill(cut, 0.0),
            "the weights no longer sum to 1: cut before the softmax, so that the others share what is free",
        ),
        Mistake(
            lambda scores, cut: scores.masked_fill(cut, 0.0).softmax(-1),
            "a score of 0 is no weight of 0: the exponential of 0 is 1, minus infinity gives 0",
        ),
        Mistake(
            lambda scores, cut: scores.masked_fill(~cut, -torch.inf).softmax(-1),
            "the other way round: these keys are the ones that may not be read",
        ),
    ),
)

_LEVEL = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0]])

check_rhyming = Exercise(
    "Does `attempt(a, b, level)` say whether two characters rhyme?",
    answer=lambda a, b, level: a != b and bool((level[a] * level[b]).any()),
    cases=(
        Case("two of one group", (0, 1, _LEVEL)),
        Case("two of different groups", (0, 2, _LEVEL)),
        Case("one with two readings, and one of the second", (3, 2, _LEVEL)),
        Case("a character and itself", (3, 3, _LEVEL)),
        Case("two that are in no level group", (4, 5, _LEVEL)),
    ),
    mistakes=(
        Mistake(
            lambda a, b, level: bool((level[a] * level[b]).any()),
            "a character does not rhyme with itself",
        ),
        Mistake(
            lambda a, b, level: a != b and bool((level[a] == level[b]).all()),
            "not all groups must agree: one in common is enough, and two without any have none in common",
        ),
        Mistake(
            lambda a, b, level: a != b and bool((level[a] == level[b]).any()),
            "that both are not in a group is nothing in common: multiply the rows",
        ),
    ),
)
