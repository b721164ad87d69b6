"""Clock, paired rounds, spread, slope: everything about time that knows nothing of models."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from minimind_edu.measure.timing import clock_for

FEWEST_ROUNDS = 2  # whatever the time: a single round has no spread


class Clock:
    """How long work takes, in seconds of the package's `clock_for`; the only place that differs between CPU and GPU."""

    def __init__(self, device: torch.device):
        self._now = clock_for(device)
        self.kind = "CPU time" if self._now is time.process_time else "elapsed time"

    def seconds(self, work: Callable[[], object]) -> float:
        start = self._now()
        work()
        return self._now() - start


def rotated(names: Sequence[str], by: int) -> list[str]:
    """The names in their order, beginning with another one: nobody always comes first, or always after the same one."""
    by %= len(names)
    return [*names[by:], *names[:by]]


def paired_rounds(
    work: Mapping[str, Callable[[], float]],
    rounds: int,
    budget: float = float("inf"),
    done: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Let everybody work once in every round, in rotated order.

    Args:
        work: name -> runs and returns what it measured, usually seconds.
        rounds: how many.
        budget: seconds that may pass; a round that would go beyond is not begun, after the first two.
        done: called after every piece of work, for a progress bar.

    Returns:
        name -> one number a round.
    """
    measured: dict[str, list[float]] = {name: [] for name in work}
    gc.collect()
    gc.freeze()  # what the imports left need not be looked through every time
    start = time.perf_counter()
    for number in range(rounds):
        each = (time.perf_counter() - start) / max(number, 1)
        if number >= FEWEST_ROUNDS and (number + 1) * each > budget:
            break
        for name in rotated(list(work), number):
            gc.collect()  # else somebody pays for another one's garbage
            measured[name].append(work[name]())
            done()
    gc.unfreeze()
    return measured


@dataclass(frozen=True)
class Spread:
    """The middle of some rounds, and how far they lie apart."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Round by round: what is compared was measured at about the same moment."""
    return [a / b for a, b in zip(above, below, strict=True)]


def slope(places: Sequence[float], values: Sequence[float]) -> float:
    """How much the values rise for each step of the places: the least-squares line."""
    return statistics.linear_regression(places, values).slope
