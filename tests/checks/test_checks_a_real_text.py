"""checks.a_real_text: right answers in other words pass, and wrong ones get the hint that fits."""

from judged_answers import judged

from minimind_edu import checks
from minimind_edu.trained.verse.corpus import COMMA, STOP, ids_of, read_corpus, tails

MARKS = (ids_of()[COMMA], ids_of()[STOP])


def line_ends_by_distance(ids, kept):
    """A place stays if one of the next places, itself among them, is a mark."""
    marks = [place for place, one in enumerate(ids.tolist()) if one in MARKS]
    return ids[[place for mark in marks for place in range(mark - kept, mark + 1)]]


def times_by_logarithms(before, after, group):
    return (after.log_softmax(-1)[group].logsumexp(-1) - before.log_softmax(-1)[group].logsumexp(-1)).exp()


def cut_edge_by_dividing(scores, cut):
    weights = (scores - scores.max()).exp() * ~cut
    return weights / weights.sum()


def rhyming_by_sets(a, b, level):
    groups = [set(row.nonzero()[:, 0].tolist()) for row in (level[a], level[b])]
    return a != b and not groups[0].isdisjoint(groups[1])


RIGHT = [
    (checks.check_line_ends, line_ends_by_distance),
    (checks.check_exchange, times_by_logarithms),
    (checks.check_cut_edge, cut_edge_by_dividing),
    (checks.check_rhyming, rhyming_by_sets),
]

WRONG = [
    (
        checks.check_line_ends,
        lambda ids, kept: (left := line_ends_by_distance(ids, kept))[left > max(MARKS)],
        "the marks are gone",
    ),
    (checks.check_line_ends, lambda ids, kept: line_ends_by_distance(ids, kept - 1), "one character too few"),
    (
        checks.check_exchange,
        lambda before, after, group: after.exp()[group].sum() / before.exp()[group].sum(),
        "expected",
    ),
    (
        checks.check_exchange,
        lambda before, after, group: before.softmax(0)[group].sum() / after.softmax(0)[group].sum(),
        "the other way round",
    ),
    (checks.check_cut_edge, lambda scores, cut: scores.softmax(-1) * ~cut, "no longer sum to 1"),
    (checks.check_cut_edge, lambda scores, cut: (scores * ~cut).softmax(-1), "the exponential of 0 is 1"),
    (checks.check_rhyming, lambda a, b, level: not (level[a] * level[b]).sum() == 0, "not rhyme with itself"),
    (checks.check_rhyming, lambda a, b, level: a != b and level[a].tolist() == level[b].tolist(), "one in common"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_the_line_ends_are_those_that_the_model_reads():
    poems = read_corpus().held_out["8x5"][:4].long()
    for kept in (1, 3):
        for poem, cut in zip(poems, tails(poems, 5, kept), strict=True):
            assert line_ends_by_distance(poem[1:-1], kept).tolist() == cut[1:-1].tolist()
            assert checks.check_line_ends.answer(poem[1:-1], kept).tolist() == cut[1:-1].tolist()
