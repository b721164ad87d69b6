"""How long calls take, measured in one way on every device."""

import math
import os
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import torch

from minimind_edu.notebook import progress

Name = TypeVar("Name", bound=Hashable)

_SHORTEST = 0.002  # seconds between two looks at the clock, so that looking costs nothing
# Where a chapter's outputs are compared, nobody reads its timings: this variable says how many rounds are enough.
MOST_ROUNDS = "MINIMIND_EDU_MOST_ROUNDS"
_TICK = 1e-7  # seconds that a clock can tell apart; what is shorter may seem to take none


def synchronize(device: torch.device | str) -> None:
    """Wait until the device has done all that it was told. A CPU has; CUDA, MPS and others only queue it and return."""
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    elif device.type != "cpu":
        torch.accelerator.synchronize(device)


def clock_for(device: torch.device | str) -> Callable[[], float]:
    """A function that says the time in seconds, once the device has done all that it was told.

    With a single CPU thread it is the time that the CPU worked, which a busy neighbor disturbs less; with several it is
    the wall clock's, for CPU time would count every thread.
    """
    if torch.device(device).type == "cpu":
        return time.process_time if torch.get_num_threads() == 1 else time.perf_counter

    def seconds() -> float:
        synchronize(device)
        return time.perf_counter()

    return seconds


def best_seconds(
    calls: Mapping[Name, Callable[[], object]], device: torch.device | str, rounds: int = 25
) -> dict[Name, float]:
    """The shortest time that each call took, in seconds of `clock_for`.

    The calls take turns, so that a busy moment of the machine is nobody's bad luck, and the best of the rounds is the
    one that was disturbed least. The first round also warms up, so it takes two to mean something. A call that is over
    in less than 2 ms is repeated between two looks at the clock.

    Args:
        calls: what to measure, by name.
        device: where the calls compute; the clock is read when that device has finished.
        rounds: so many times each, or as many as the environment's `MINIMIND_EDU_MOST_ROUNDS` allows, if that is less.

    Raises:
        ValueError: if there are fewer than two rounds.
    """
    rounds = min(rounds, int(os.environ.get(MOST_ROUNDS, rounds)))
    if rounds < 2:
        raise ValueError(f"the first round warms up, so there must be at least 2, got {rounds}")
    clock = clock_for(device)
    best: dict[Name, float] = {}
    turns = [turn for _ in range(rounds) for turn in calls.items()]
    for name, call in progress(turns, f"measuring on {torch.device(device).type}"):
        repeats = math.ceil(_SHORTEST / max(best[name], _TICK)) if name in best else 1
        start = clock()
        for _ in range(repeats):
            call()
        seconds = (clock() - start) / repeats
        best[name] = min(seconds, best.get(name, seconds))
    return best
