"""Calls are timed in turns, with the clock that their device needs."""

import math
import time

import pytest
import torch

from minimind_edu.measure import timing
from minimind_edu.measure.timing import best_seconds, clock_for, synchronize


class Clock:
    """A clock that only calls set forward."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        for name in ("perf_counter", "process_time"):
            monkeypatch.setattr(time, name, lambda: self.now)

    def call(self, *durations):
        """A call that takes these times one after another, and the last one from then on."""
        left = list(durations)

        def run():
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_the_best_round_of_each_call_counts(clock):
    calls = {"a": clock.call(9, 3, 5, 4), "b": clock.call(8, 7, 6)}
    assert best_seconds(calls, "cpu", rounds=4) == {"a": 3, "b": 6}


def test_calls_take_turns(clock):
    order, work = [], clock.call(0.003)
    calls = {name: lambda name=name: order.append(name) or work() for name in "ab"}
    best_seconds(calls, "cpu", rounds=2)
    assert order == ["a", "b", "a", "b"]


def test_a_short_call_is_repeated_between_two_looks_at_the_clock(clock):
    count = 0
    step = clock.call(0.0005)

    def short():
        nonlocal count
        count += 1
        step()

    assert math.isclose(best_seconds({"short": short}, "cpu", rounds=3)["short"], 0.0005)
    assert count == 1 + 4 + 4  # once to learn how long it takes, then 2 ms


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_one_cpu_thread_is_timed_by_its_work_and_several_by_the_wall(threads):
    threads(1)
    assert clock_for("cpu") is time.process_time
    threads(2)
    assert clock_for("cpu") is time.perf_counter


def test_one_round_is_refused():
    with pytest.raises(ValueError, match="at least 2, got 1"):
        best_seconds({"a": lambda: None}, "cpu", rounds=1)


def test_where_outputs_are_compared_few_rounds_are_enough(clock, monkeypatch):
    durations = [9, 5, 1]
    monkeypatch.setenv(timing.MOST_ROUNDS, "2")
    assert best_seconds({"a": clock.call(*durations)}, "cpu", rounds=3) == {"a": 5}
    monkeypatch.setenv(timing.MOST_ROUNDS, "3")
    assert best_seconds({"a": clock.call(*durations)}, "cpu", rounds=2) == {"a": 5}, "no more than asked for"
    monkeypatch.delenv(timing.MOST_ROUNDS)
    assert best_seconds({"a": clock.call(*durations)}, "cpu", rounds=3) == {"a": 1}


@pytest.mark.parametrize(("name", "module"), [("cuda", torch.cuda), ("mps", torch.mps), ("xpu", torch.accelerator)])
def test_the_clock_is_read_when_the_device_has_finished(name, module, clock, monkeypatch):
    """The call only queues its work; the time passes in synchronize."""
    queued = []

    def wait(device=None):
        while queued:
            clock.now += queued.pop()

    monkeypatch.setattr(module, "synchronize", wait)
    queued.extend([1.0, 1.0])  # what was queued before is not the call's
    assert best_seconds({"a": lambda: queued.append(2.0)}, name, rounds=2) == {"a": 2.0}
    assert best_seconds({"a": lambda: queued.append(2.0)}, "cpu", rounds=2) == {"a": 0.0}


def test_a_gpu_is_waited_for_by_its_number_and_a_cpu_not_at_all(monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "synchronize", asked.append)
    monkeypatch.setattr(torch.mps, "synchronize", lambda: asked.append("mps"))
    for device in ("cpu", torch.device("cuda", 1), "mps"):
        synchronize(device)
    assert asked == [torch.device("cuda", 1), "mps"]


def test_measuring_shows_its_progress(capsys, monkeypatch):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)
    timing.best_seconds({"a": lambda: sum(range(100_000))}, "cpu", rounds=10)
    shown = capsys.readouterr()
    assert "measuring on cpu" in shown.out + shown.err
