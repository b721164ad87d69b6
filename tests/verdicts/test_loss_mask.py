"""verdicts.loss_mask: which tokens of a chat count, against a second way of finding them."""

import random

import pytest

from minimind_edu.verdicts.loss_mask import answer_mask, counted

OPENING, CLOSING = [1, 9, 8], [2, 8]  # <|im_start|> assistant \n, and <|im_end|> \n
QUESTION = [1, 5, 8, 20, 21, 2, 8]


@pytest.mark.parametrize(
    "ids, mask",
    [
        ([*QUESTION, *OPENING, 30, 31, *CLOSING], [0] * 10 + [1, 1, 1, 1]),
        ([*QUESTION, *OPENING, 30, 31], [0] * 10 + [1, 1]),  # cut
        ([*QUESTION, *OPENING], [0] * 10),
        (QUESTION, [0] * 7),
        ([*OPENING, 30, *CLOSING, *QUESTION, *OPENING, *CLOSING], [0] * 3 + [1] * 3 + [0] * 10 + [1, 1]),
        ([], []),
    ],
)
def test_answers_and_what_ends_them_count(ids, mask):
    assert answer_mask(ids, OPENING, CLOSING) == [bool(one) for one in mask]


def as_minimind_does(ids, opening, closing):
    """The walk of MiniMind's generate_labels, step by step."""
    labels, at = [False] * len(ids), 0
    while at < len(ids):
        if ids[at : at + len(opening)] == opening:
            start = end = at + len(opening)
            while end < len(ids) and ids[end : end + len(closing)] != closing:
                end += 1
            for place in range(start, min(end + len(closing), len(ids))):
                labels[place] = True
            at = end + len(closing) if end < len(ids) else len(ids)
        else:
            at += 1
    return labels


def test_it_is_the_mask_of_minimind_on_any_row():
    source = random.Random(0)
    for _ in range(2000):
        ids = source.choices([1, 2, 8, 9, 30], k=source.randrange(40))
        assert answer_mask(ids, OPENING, CLOSING) == as_minimind_does(ids, OPENING, CLOSING)


def test_nothing_predicts_the_first_token():
    assert counted([True, True, False]) == 1 and counted([True]) == 0 and counted([]) == 0
