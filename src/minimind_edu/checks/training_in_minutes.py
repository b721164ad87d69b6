"""Exercises on training.

Every mistake here trains, and the loss still falls: only a comparison shows that something is lost.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, each, numbers


def _excess(exact: Tensor, logits: Tensor) -> Tensor:
    log_exact = torch.where(exact > 0, exact, 1.0).log()
    return (exact * (log_exact - logits.log_softmax(-1))).sum(-1).mean()


def _rows(*shape: int) -> Tensor:
    return (3 * numbers(*shape)).softmax(-1)


_SURE = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.25, 0.25, 0.5]], dtype=torch.float64)

check_excess = Exercise(
    "Does `attempt(exact, logits)`, `[T, V]` each, give the nats per word above the entropy?",
    answer=_excess,
    cases=(
        Case("five words, a vocabulary of 7", (_rows(5, 7), numbers(5, 7, shift=0.5))),
        Case("a model that knows the truth: 0", (_rows(4, 6), _rows(4, 6).log() + 2)),
        Case("words that cannot come: 0 log 0 is 0", (_SURE, numbers(3, 3))),
        Case("logits in the thousands", (_SURE, 4000 * numbers(3, 3))),
    ),
    mistakes=(
        Mistake(
            lambda p, logits: (p * (torch.where(p > 0, p, 1.0).log() - logits.softmax(-1).log())).sum(-1).mean(),
            "softmax rounds small probabilities to 0, and log makes that minus infinity: log_softmax does both at once",
        ),
        Mistake(
            lambda p, logits: -(p * logits.log_softmax(-1)).sum(-1).mean(),
            "this is the expected loss, not yet its distance from the floor: subtract the entropy of exact",
        ),
        Mistake(
            lambda p, logits: (logits.softmax(-1) * (logits.log_softmax(-1) - p.log())).sum(-1).mean(),
            "the two have changed places: average with the exact probabilities, for these are the words that come",
        ),
        Mistake(
            lambda p, logits: (p * (p.log() - logits.log_softmax(-1))).sum(-1).mean(),
            "NaN, from 0 times log 0: where exact is 0 take the logarithm of 1 instead",
        ),
        Mistake(
            lambda p, logits: _excess(p, logits) * p.shape[0], "you sum over the words: the mean is asked for, per word"
        ),
        Mistake(
            lambda p, logits: _excess(p, logits) / p.shape[1],
            "you average over the vocabulary too: sum over it, and average over the words alone",
        ),
        Mistake(
            lambda p, logits: _excess(p, logits) / math.log(2),
            "this is in bits: natural logarithms give nats, as the loss of every framework",
        ),
    ),
)


def _rate(step: int, steps: int, highest: float, warmup: int, last: float) -> float:
    warm = min(1.0, (step + 1) / max(1, warmup))
    cosine = (1 + math.cos(math.pi * step / steps)) / 2
    return highest * warm * (last + (1 - last) * cosine)


def _rates(*plan: float) -> tuple[tuple[float, ...], ...]:
    """Arguments of five steps along one plan: the first, one of the warm-up, its end, the middle, the last."""
    steps, highest, warmup, last = plan
    return tuple((step, steps, highest, warmup, last) for step in (0, 4, warmup - 1, steps // 2, steps - 1))


def _cosine_after_warmup(step: int, steps: int, highest: float, warmup: int, last: float) -> float:
    if step < warmup:
        return highest * (step + 1) / warmup
    cosine = (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2
    return highest * (last + (1 - last) * cosine)


check_rate = Exercise(
    "Is `attempt(step, steps, highest, warmup, last)` the rate of a step: warm-up, then half a cosine?",
    answer=each(_rate),
    cases=(
        Case("1,000 steps, 10 of warm-up, down to a tenth", _rates(1000, 3e-3, 10, 0.1)),
        Case("200 steps, 50 of warm-up, down to nothing", _rates(200, 1e-2, 50, 0.0)),
        Case("no warm-up at all", ((0, 100, 1e-3, 0, 0.05), (50, 100, 1e-3, 0, 0.05))),
    ),
    mistakes=(
        Mistake(each(lambda s, n, top, w, last: _rate(s, n, top, 0, last)), "the warm-up is missing"),
        Mistake(
            each(lambda s, n, top, w, last: _rate(s, n, top, w, last) * (s / (s + 1) if s < w else 1)),
            "the first step has the rate 0, so it is wasted: step 0 is the first of the warm-up, (step + 1) / warmup",
        ),
        Mistake(
            each(_cosine_after_warmup),
            "your cosine begins after the warm-up, as in many libraries; here it begins at step 0, and the warm-up "
            "multiplies it",
        ),
        Mistake(
            each(lambda s, n, top, w, last: _rate(s, n, top, w, 0.0)),
            "the rate falls to 0; at the end the fraction `last` of it must be left",
        ),
        Mistake(
            each(lambda s, n, top, w, last: max(_rate(s, n, top, w, 0.0), top * last)),
            "you cut the curve off at last; squeeze it instead: last + (1 - last) * cosine",
        ),
        Mistake(
            each(lambda s, n, top, w, last: top * min(1, (s + 1) / max(1, w)) * (last + (1 - last) * (1 - s / n))),
            "this falls along a straight line; half a cosine is asked for",
        ),
        Mistake(
            each(lambda s, n, top, w, last: _rate(2 * s, n, top, w, last) if s >= w else _rate(s, n, top, w, last)),
            "your cosine makes a whole period, so the rate rises again: only half of one, up to pi",
        ),
    ),
    atol=1e-12,
    through=each,
)


Loop = Callable[[nn.Module, Sequence[tuple[Tensor, Tensor]], float, float], object]


def _loop(
    zero: bool = True, clip: bool = True, late: bool = False, keep: bool = True, each_tensor: bool = False
) -> Attempt:
    """A training loop with its usual mistakes as switches: model, batches, rate, limit -> losses."""

    def run(model: nn.Module, batches: Sequence[tuple[Tensor, Tensor]], rate: float, limit: float) -> list[float]:
        optimizer, losses = torch.optim.AdamW(model.parameters(), lr=rate), []
        for x, y in batches:
            optimizer = optimizer if keep else torch.optim.AdamW(model.parameters(), lr=rate)
            if zero:
                optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            if late:
                optimizer.step()
            loss.backward()
            for group in [[p] for p in model.parameters()] if each_tensor else [list(model.parameters())]:
                if clip:
                    nn.utils.clip_grad_norm_(group, limit)
            if not late:
                optimizer.step()
            losses.append(loss.item())
        return losses

    return run


def _trained(loop: Attempt) -> Attempt:
    """The losses and the weights that a loop makes of a small network, as one row of numbers."""

    def run(length: int, limit: float) -> Tensor | None:
        # skip_init: drawing weights would take random numbers from the reader
        first, second = (nn.utils.skip_init(nn.Linear, *sizes, dtype=torch.float64) for sizes in ((3, 4), (4, 2)))
        model = nn.Sequential(first, nn.Tanh(), second)
        with torch.no_grad():
            for i, parameter in enumerate(model.parameters()):
                parameter.copy_(numbers(*parameter.shape, shift=i))
        batches = [(numbers(5, 3, shift=i), 4 * numbers(5, 2, shift=2 * i)) for i in range(length)]
        losses = loop(model, batches, 0.05, limit)
        if losses is None:
            return None
        weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        return torch.cat([torch.as_tensor(losses, dtype=torch.float64).flatten(), weights])

    return run


check_loop = Exercise(
    "Does `attempt(model, batches, rate, limit)` train with AdamW, gradients clipped, and return the losses?",
    answer=_trained(_loop()),
    cases=(
        Case("one step, nothing to clip", (1, 1e3)),
        Case("six steps, nothing to clip", (6, 1e3)),
        Case("six steps, every gradient clipped", (6, 0.5)),
    ),
    mistakes=(
        Mistake(
            _trained(_loop(zero=False)),
            "gradients add up over the steps: PyTorch adds to .grad until zero_grad empties it",
        ),
        Mistake(
            _trained(_loop(late=True)),
            "the optimizer takes its step before the gradients of this loss exist: loss.backward() first",
        ),
        Mistake(
            _trained(_loop(keep=False)),
            "a new optimizer in every step forgets its averages, and its bias correction starts again: make it once",
        ),
        Mistake(_trained(_loop(clip=False)), "the gradients are not clipped, or only after the step"),
        Mistake(
            _trained(_loop(each_tensor=True)),
            "each tensor is clipped by itself, which changes the direction: one norm over all of them",
        ),
        Mistake(
            _trained(_loop(zero=False, keep=False)),
            "gradients are never emptied, and the optimizer is made anew in every step: make it once, before the loop, "
            "and call zero_grad in it",
        ),
    ),
    through=_trained,
)


Task = Callable[[list[int]], object]

_TASKS: dict[str, Task] = {
    "copy": list,
    "the largest digit": max,
    "sort": sorted,
    "the first digit": lambda digits: digits[0],
    "the last but one": lambda digits: digits[-2],
    "how many are even": lambda digits: sum(d % 2 == 0 for d in digits),
    "is it sorted?": lambda digits: digits == sorted(digits),
    "the sum": sum,
    "the largest jump between neighbors": lambda digits: max(abs(a - b) for a, b in itertools.pairwise(digits)),
}
_ORDERED = ("copy", "the first digit", "the last but one", "is it sorted?", "the largest jump between neighbors")
_TRIED = ([3, 1, 2], [5, 5, 0], [1, 2, 3, 4], [9, 8, 7], [2, 2], [0, 6, 4, 4, 1])


def _needs_order(task: Task) -> bool:
    return any(task(list(other)) != task(digits) for digits in _TRIED for other in itertools.permutations(digits))


check_needs_order = Exercise(
    "Does `attempt(task)` find by trying whether a task on a list of digits depends on their order?",
    answer=_needs_order,
    cases=tuple(Case(f"{name}: {name in _ORDERED}", (task,)) for name, task in _TASKS.items()),
    mistakes=(
        Mistake(
            lambda task: any(task(digits[::-1]) != task(digits) for digits in _TRIED),
            "you only reverse: some tasks give the same answer for a list and its reverse; try every order",
        ),
        Mistake(
            lambda task: task([3, 1, 2]) != task([2, 1, 3]),
            "one pair of lists is too few: some tasks notice only other orders; try many lists, every way round",
        ),
        Mistake(
            lambda task: task([3, 1, 2]) == [3, 1, 2],
            "only copying gives the question back: compare the answers to two orders of the same digits",
        ),
        Mistake(
            lambda task: isinstance(task([3, 1, 2]), list),
            "you look at what kind of answer comes; ask whether it changes when the same digits come in another order",
        ),
        Mistake(
            lambda task: task([3, 1, 2]) != task([4, 1, 2]),
            "you changed a digit: keep the digits, and change their order alone",
        ),
        Mistake(lambda task: not _needs_order(task), "the other way round: True where the order matters"),
    ),
)
