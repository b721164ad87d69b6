"""Measuring a machine: what is measured is what is said, and no test depends on how fast anything is."""

import json
import time

import pytest
import torch

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, machine
from minimind_edu.costs import decode_cost, prefill_cost
from minimind_edu.figures import Roofline
from minimind_edu.machine import best_seconds, clock_for, main, measure_machine, measure_runs

TINY = MiniMindConfig(hidden_size=32, num_hidden_layers=2, vocab_size=90)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return MiniMindForCausalLM(TINY).eval()


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def clock_of(monkeypatch, *moments):
    times = iter(moments)
    monkeypatch.setattr(machine, "clock_for", lambda device: lambda: next(times))


def test_the_first_run_does_not_count_and_the_shortest_does(monkeypatch):
    clock_of(monkeypatch, 0.0, 0.4, 0.5, 0.7, 0.7, 1.3)
    calls = []
    assert best_seconds(lambda: calls.append(1), rounds=3) == pytest.approx(0.2)
    assert len(calls) == 4


def test_a_busy_machine_is_not_asked_again_and_again(monkeypatch):
    clock_of(monkeypatch, 0.0, 2.0, 2.0, 3.5, 3.5, 4.0)
    calls = []
    assert best_seconds(lambda: calls.append(1), rounds=9, budget=3.0) == 1.5
    assert len(calls) == 3


def test_one_cpu_thread_is_timed_by_its_work_and_several_by_the_wall(one_thread):
    assert clock_for("cpu") is time.process_time
    torch.set_num_threads(2)
    assert clock_for("cpu") is time.perf_counter


def test_bandwidth_is_bytes_and_peak_operations_over_seconds(monkeypatch):
    seconds = iter([4.0, 0.5, 2.0, 0.25])  # three ways to read, one product

    def measured(function, device, rounds):
        function()
        return next(seconds)

    monkeypatch.setattr(machine, "best_seconds", measured)
    found = measure_machine("cpu", torch.float32)
    assert found.bandwidth == 2**28 / 0.5
    assert found.peak == 2 * 1024**3 / 0.25


def test_this_machine_has_limits():
    found = measure_machine("cpu", rounds=1)
    assert found.bandwidth > 0 and found.peak > 0


def test_runs_stand_beside_their_costs(model):
    runs = measure_runs(model, ("plain", "packed"), context=40, rounds=1)
    assert list(runs) == ["prefill", "decode, plain", "decode, packed"]
    assert runs["prefill"][0] == prefill_cost(TINY, 40)
    assert runs["decode, packed"][0] == decode_cost(TINY, 40)
    assert all(seconds > 0 for _, seconds in runs.values())


def test_decode_steps_attend_to_the_context_on_average(model, monkeypatch):
    asked = []

    def stream(ids, steps, **options):
        asked.append((ids.shape[1], steps))
        return iter(range(steps))

    monkeypatch.setattr(model, "stream", stream)
    measure_runs(model, context=40, rounds=1)
    prompt, steps = asked[0]
    lengths = range(prompt + 1, prompt + steps)  # what the steps after the first attend to
    assert abs(sum(lengths) / len(lengths) - 40) <= 0.5


def test_the_command_prints_what_the_figure_reads(monkeypatch, capsys, one_thread):
    monkeypatch.setattr(machine, "MiniMindConfig", lambda: TINY)
    monkeypatch.setattr(machine, "CONTEXT", 20)
    monkeypatch.setattr(machine, "pick_device", lambda: torch.device("cpu"))
    main(["a test", "--modes", "plain", "--rounds", "1"])
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "a test" and told["dtype"] == "float32"
    assert told["measured_at"]["hidden_size"] == 32 and told["measured_at"]["context"] == 20
    assert [run["name"] for run in told["runs"]] == ["prefill", "decode, plain"]
    assert Roofline(told).machine["peak"] == told["peak"]
