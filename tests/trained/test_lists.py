"""ablations.lists: rows are what they say, and the exact probabilities are those of the rows that are drawn."""

import numpy as np
import pytest

from minimind_edu.trained.ablations.lists import (
    BOS,
    LONGEST,
    SHORTEST,
    TASKS,
    WORDS,
    answers,
    decode,
    distributions,
    encode,
    entropy,
    write_rows,
)

ROWS = write_rows(400, length=32, seed=7)


def test_text_and_ids_lead_back_to_each_other():
    text = "<s> reverse 3 1 4 = 4 1 3 ;"
    assert decode(encode(text)) == text
    with pytest.raises(ValueError, match="'ten' is no word of the lists; they are <s> ;"):
        encode("sort ten =")


def test_the_same_rows_for_a_seed_and_others_for_another():
    assert np.array_equal(write_rows(3, seed=7), write_rows(3, seed=7))
    assert not np.array_equal(write_rows(3, seed=7), write_rows(3, seed=8))
    assert decode(write_rows(1, 12, seed=0)[0]) == decode(
        write_rows(1, 12, seed=np.random.Generator(np.random.PCG64(0)))[0]
    )


@pytest.mark.parametrize("digits", [(2, 5), (6, 8)])
def test_every_answer_is_right_and_every_length_occurs(digits):
    lengths = set()
    for row in write_rows(60, 48, seed=1, digits=digits):
        for one in answers(row):
            told = decode(row[one.start : one.end]).split()
            end = one.start - 1
            begin = end - (len(told) - 1)
            asked = [int(word) for word in decode(row[begin:end]).split()]
            assert WORDS[row[begin - 1]] == one.task and WORDS[row[end]] == "="
            assert told == [*map(str, TASKS[one.task](asked)), ";"]
            lengths.add(len(asked))
    assert lengths == set(range(digits[0], digits[1] + 1))


def test_an_answer_that_is_cut_off_is_none():
    assert [a.task for a in answers(encode("<s> copy 1 2 = 1 2 ; sort 3 1 = 1"))] == ["copy"]


def test_the_exact_probabilities_are_those_of_the_rows():
    """Among many rows, what follows `<s> sort 1 2` comes as often as the distribution says."""
    many = write_rows(20_000, length=5, seed=3)
    for prefix in ([BOS], encode("<s> sort"), encode("<s> copy 1 2")):
        matching = many[(many[:, : len(prefix)] == prefix).all(1), len(prefix)]
        counted = np.bincount(matching, minlength=len(WORDS)) / len(matching)
        exact = distributions(np.array(prefix))[-1]
        assert np.abs(counted - exact).max() < 4 * np.sqrt(0.25 / len(matching))


def test_probabilities_sum_to_one_and_allow_what_came():
    for row in ROWS[:50]:
        exact = distributions(row)
        assert np.allclose(exact.sum(-1), 1)
        assert (exact[np.arange(len(row) - 1), row[1:]] > 0).all()


def test_after_the_equals_sign_nothing_is_open():
    row = encode("<s> sort 4 1 1 = 1 1 4 ;")
    exact = distributions(row)
    assert [WORDS[p.argmax()] for p in exact[5:9]] == ["1", "1", "4", ";"] and (exact[5:9].max(-1) == 1).all()
    assert exact[4].max() == pytest.approx(1 / 3)  # three digits: there may come none, one or two more
    assert distributions(encode("<s> sort 4 1 1 0 9"))[-1].max() == 1  # no list is longer than five


def test_the_entropy_is_the_mean_surprise_of_the_rows():
    exact = np.stack([distributions(row) for row in ROWS])[:, :-1]
    surprise = -np.log(np.take_along_axis(exact, ROWS[:, 1:, None], -1)).mean()
    assert entropy(ROWS) == pytest.approx(surprise, abs=0.02)


def test_sizes_that_mean_nothing_are_refused():
    assert (SHORTEST, LONGEST) == (2, 5)
    for wrong in ({"batch_size": 0}, {"batch_size": 1, "length": 0}):
        with pytest.raises(ValueError, match="must be"):
            write_rows(**wrong)
