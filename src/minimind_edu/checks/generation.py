"""Exercises on generation.

The probabilities are given out of order, and rows of a batch end at different steps, so that a shortcut shows.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, each


def _kept(p: Tensor, kept: Tensor) -> Tensor:
    return p * kept / (p * kept).sum()


def _before(p: Tensor) -> Tensor:
    """For each word the probability of all that are more probable."""
    ordered, index = p.sort(descending=True)
    return torch.empty_like(p).scatter(-1, index, ordered.cumsum(-1) - ordered)


def _top_p(p: Tensor, limit: float) -> Tensor:
    return _kept(p, _before(p) < limit)


_WORDS = torch.tensor([0.125, 0.5, 0.0625, 0.25, 0.0625 - 0.03125, 0.03125], dtype=torch.float64)
_ALIKE = torch.tensor([0.22, 0.3, 0.2, 0.28], dtype=torch.float64)
_SURE = torch.tensor([0.05, 0.05, 0.9], dtype=torch.float64)

check_top_p = Exercise(
    "Does `attempt(p, limit)` keep the fewest most probable words that reach the limit, `[V]` -> `[V]`?",
    answer=_top_p,
    cases=(
        Case("four words, nearly alike, 0.7 of the probability", (_ALIKE, 0.7)),
        Case("six words, 0.85 of the probability", (_WORDS, 0.85)),
        Case("the first word alone is enough", (_SURE, 0.3)),
        Case("two words reach the limit exactly", (_WORDS, 0.75)),
        Case("everything", (_WORDS, 1.0)),
    ),
    mistakes=(
        Mistake(
            lambda p, limit: _kept(p, _before(p) + p <= limit),
            "the word that crosses the limit still belongs to the nucleus; otherwise a sure model keeps no word at all",
        ),
        Mistake(
            lambda p, limit: p * (_before(p) < limit),
            "what is left does not add up to 1: divide by its sum",
        ),
        Mistake(
            lambda p, limit: _kept(p, _before(p) < limit).sort(descending=True).values,
            "your result is in sorted order: each word must keep its place",
        ),
        Mistake(
            lambda p, limit: _kept(p, p.cumsum(-1) - p < limit),
            "you add the words up in the order in which they come: begin with the most probable",
        ),
        Mistake(
            lambda p, limit: _kept(p, p >= limit * p.amax()),
            "this compares each word with the most probable one, which is min-p: add probabilities up instead",
        ),
        *(
            Mistake(
                wrong,
                "you compare each word by itself with a limit: add the probabilities up, the most probable first, "
                "until together they reach it",
            )
            for wrong in (
                lambda p, limit: _kept(p, p >= 1 - limit),
                lambda p, limit: _kept(p, p >= limit),
                lambda p, limit: p * (p >= limit),
            )
        ),
        Mistake(
            lambda p, limit: _kept(p, _before(p) <= limit),
            "where the words before already reach the limit exactly, no further word is needed",
        ),
    ),
)


Step = Callable[[Tensor], Tensor]  # ids [B, S] -> logits [B, S, V]


def _write(
    step: Step,
    ids: Tensor,
    count: int,
    end: int,
    pad: int,
    *,
    keep_end: bool = True,
    stop: Callable[[Tensor], Tensor] | None = torch.all,
    of_prompt: bool = False,
    fill: bool = True,
) -> Tensor:
    ended = (ids == end).any(1) & of_prompt
    for _ in range(count):
        token = step(ids)[:, -1].argmax(-1)
        now = ended | (token == end)
        token = torch.where((ended if keep_end else now) & fill, pad, token)
        ended = now
        ids = torch.cat([ids, token[:, None]], dim=1)
        if stop is not None and bool(stop(ended)):
            break
    return ids


def _script(*rows: list[int]) -> Step:
    """A model that says these words after a prompt of three, whatever it reads."""
    tokens = torch.tensor(rows)

    def step(ids: Tensor) -> Tensor:
        logits = torch.zeros(*ids.shape, 10)
        logits[range(len(tokens)), -1, tokens[:, ids.shape[1] - 3]] = 1.0
        return logits

    return step


_PROMPTS = torch.tensor([[4, 5, 6], [3, 9, 5]])

check_finish = Exercise(
    "Does `attempt(step, ids, count, end, pad)` continue `[B, S]` greedily and pad each row after its own end?",
    answer=_write,
    cases=(
        Case("no row ends", (_script([4, 5, 6], [7, 8, 4]), _PROMPTS, 3, 9, 0)),
        Case("one row ends before the other", (_script([4, 9, 6, 7, 9], [7, 8, 4, 9, 5]), _PROMPTS, 5, 9, 0)),
        Case("an end in the prompt ends nothing", (_script([4, 5, 6], [7, 8, 9]), _PROMPTS, 3, 9, 0)),
        Case("both end at once, and the rest is not written", (_script([9, 1, 1], [9, 2, 2]), _PROMPTS, 3, 9, 9)),
    ),
    mistakes=(
        Mistake(
            lambda *given: _write(*given, keep_end=False, stop=torch.any),
            "both bugs are still there: the end token is overwritten, and the first row that ends stops all others",
        ),
        Mistake(
            lambda *given: _write(*given, keep_end=False),
            "the end token itself is gone: a row is padded from the word after it on",
        ),
        Mistake(
            lambda *given: _write(*given, stop=torch.any),
            "the first row that ends stops all the others: go on until every row has ended",
        ),
        Mistake(
            lambda *given: _write(*given, stop=None),
            "you keep writing after every row has ended: stop there, for each step costs a pass of the model",
        ),
        Mistake(
            lambda *given: _write(*given, fill=False),
            "a row that has ended goes on with words of the model: it gets padding until the others end",
        ),
        Mistake(
            lambda *given: _write(*given, of_prompt=True),
            "an end token in the prompt has ended an earlier text, not this one: look only at what you write",
        ),
    ),
)


def _residual(p: Tensor, q: Tensor) -> Tensor:
    left = (p - q).clamp(min=0)
    return left / left.sum()


_P = torch.tensor([0.6, 0.3, 0.1, 0.0], dtype=torch.float64)
_Q = torch.tensor([0.2, 0.5, 0.05, 0.25], dtype=torch.float64)

check_residual = Exercise(
    "Does `attempt(p, q)` give the distribution from which to draw after a rejected guess, `[V]` each?",
    answer=_residual,
    cases=(
        Case("four words", (_P, _Q)),
        Case("the draft and the model the other way round", (_Q, _P)),
        Case("the draft never says the right word", (_P.flip(0), torch.tensor([1.0, 0, 0, 0], dtype=torch.float64))),
    ),
    mistakes=(
        Mistake(
            lambda p, q: p,
            "after a rejection p itself is wrong: words that the draft proposes often were already accepted often",
        ),
        Mistake(
            lambda p, q: (p - q).clamp(min=0),
            "these are the missing probabilities; divide by their sum to draw from them",
        ),
        Mistake(
            lambda p, q: _residual(q, p),
            "here the draft has too much; what must be filled up is where the model has more, p - q",
        ),
        Mistake(
            lambda p, q: (p - q).abs() / (p - q).abs().sum(),
            "a word of which the draft has too much must get nothing: negative differences become 0, not positive",
        ),
        Mistake(
            lambda p, q: (p - q) / (p - q).sum(),
            "p - q adds up to 0 and has negative entries: set those to 0 first",
        ),
        Mistake(
            lambda p, q: (p - q).softmax(-1),
            "the softmax gives every word something, and here a difference of 0 or less must get nothing: cut those "
            "off at 0 and divide by the sum",
        ),
        Mistake(
            lambda p, q: p * (p > q) / (p * (p > q)).sum(),
            "right words, wrong weights: of each only the difference is missing, not all of p",
        ),
    ),
)


_MOST = 20


def _best(words: Callable[[float, int], float], seconds: Callable[[float, int], float], first: int = 0) -> Attempt:
    """The number of guesses with the most words per second."""

    def ahead(rate: float, cost: float) -> int:
        return max(range(first, _MOST + 1), key=lambda count: words(rate, count) / seconds(cost, count))

    return ahead


def _words(rate: float, count: int) -> float:
    return sum(rate**i for i in range(count + 1))


def _time(cost: float, count: int) -> float:
    return 1 + cost * count


check_ahead = Exercise(
    "Does `attempt(rate, cost)` give how many words, 0 to 20, the draft should guess ahead for the most speed?",
    answer=each(_best(_words, _time)),
    cases=(
        Case("a guess costs a tenth, or as much as the model itself", ((0.8, 0.1), (0.8, 1.0))),
        Case("better drafts are followed further", ((0.9, 0.05), (0.7, 0.2))),
        Case("a bad draft, and one that is nearly free", ((0.1, 0.3), (0.5, 0.001))),
    ),
    mistakes=(
        Mistake(
            each(lambda rate, cost: _MOST),
            "more guesses never lose words, but they cost time: divide the words of a round by its time",
        ),
        Mistake(
            each(_best(lambda rate, count: _words(rate, count) - 1, _time)),
            "a round writes one word more than it accepts: after a rejection the corrected one, otherwise a free one",
        ),
        Mistake(
            each(_best(lambda rate, count: 1 + rate * count, _time)),
            "a guess counts only if all before it were accepted: the third with the cube of the rate",
        ),
        Mistake(
            each(_best(_words, lambda cost, count: cost * max(count, 1))),
            "a round also costs one pass of the large model, which checks the guesses",
        ),
        Mistake(
            each(_best(_words, _time, first=1)),
            "not guessing at all is allowed, and sometimes best: try 0 as well",
        ),
    ),
    through=each,
)
