"""Measuring a machine: what is measured is what is said, and no test depends on how fast anything is."""

import json
from types import SimpleNamespace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from minimind_edu import MiniMindConfig, MiniMindForCausalLM
from minimind_edu.figures import Roofline
from minimind_edu.measure import machine
from minimind_edu.measure.costs import decode_cost, prefill_cost
from minimind_edu.measure.machine import main, measure_machine, measure_runs, step_seconds

TINY = MiniMindConfig(hidden_size=32, num_hidden_layers=2, vocab_size=90)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return MiniMindForCausalLM(TINY).eval()


def test_bandwidth_is_bytes_and_peak_operations_over_seconds(monkeypatch):
    def measured(calls, device, rounds):
        for call in calls.values():
            call()
        return {"sum": 4.0, "by rows": 0.5, "by columns": 2.0, "product": 0.25}

    monkeypatch.setattr(machine, "best_seconds", measured)
    machine._limits.cache_clear()
    found = measure_machine("cpu", torch.float32)
    assert found.bandwidth == 2**30 / 0.5
    assert found.peak == 2 * 1024**3 / 0.25
    monkeypatch.setattr(machine, "best_seconds", None)
    assert measure_machine(torch.device("cpu"), torch.float32) is found, "it was measured"
    monkeypatch.setattr(torch, "get_num_threads", lambda: -1)
    with pytest.raises(TypeError):
        measure_machine("cpu", torch.float32)  # with other threads it must be measured again
    machine._limits.cache_clear()


@pytest.mark.parametrize("way", ["sum", "by rows", "by columns"])
def test_every_reading_reads_every_number(way):
    numbers = torch.ones(6 * 4)
    read = machine.readings(numbers, width=4)[way]
    assert read().sum() == 24
    numbers[-1] = 2
    assert read().sum() == 25


def test_the_product_takes_the_operations_that_pytorch_counts():
    product, operations = machine.large_product(torch.device("cpu"), torch.float32)
    with FlopCounterMode(display=False) as counter:
        product()
    assert counter.get_total_flops() == operations


def test_this_machine_has_limits():
    found = measure_machine("cpu", rounds=1)
    assert found.bandwidth > 0 and found.peak > 0


def test_runs_stand_beside_their_costs(model):
    runs = measure_runs(model, ("plain", "compiled"), context=40, rounds=1)
    assert list(runs) == ["prefill", "decode, plain", "decode, compiled"]
    assert runs["prefill"][0] == prefill_cost(TINY, 40)
    assert runs["decode, compiled"][0] == decode_cost(TINY, 40)
    assert all(seconds > 0 for _, seconds in runs.values())


class Pretended:
    """Decoders whose steps take what they are told to take, and a clock that knows."""

    def __init__(self, lasting):
        self.now, self.asked, self._lasting = 0.0, [], iter(lasting)

    def decoder(self, model, way):
        return SimpleNamespace(stream=lambda *_, **__: self._steps(way))

    def _steps(self, way):
        self.asked.append(way)
        self.now += 1000  # the prompt
        yield way
        for seconds in next(self._lasting):
            self.now += seconds
            yield way


def pretended(monkeypatch, lasting):
    found = Pretended(lasting)
    monkeypatch.setattr(machine.fast, "decoder", found.decoder)
    monkeypatch.setattr(machine, "clock_for", lambda device: lambda: found.now)
    return found


@pytest.mark.parametrize(
    ("lasting", "expected"), [([2, 1, 1.5], 1.5), ([3, 4, 100], 3.5)], ids=["all", "until it is late"]
)
def test_a_step_is_the_median_of_those_in_time_and_the_prompt_is_none(model, monkeypatch, lasting, expected):
    pretended(monkeypatch, [lasting])
    found = step_seconds(model, torch.tensor([[1]]), new=len(lasting), rounds=1)
    assert found == {"plain": expected}


def test_ways_to_decode_take_turns_and_the_best_run_of_each_counts(model, monkeypatch):
    told = pretended(monkeypatch, [[9], [1], [2], [8], [3], [4]])
    found = step_seconds(model, torch.tensor([[1]]), ("plain", "compiled"), new=1)
    assert told.asked == ["plain", "compiled"] * 3
    assert found == {"plain": 2, "compiled": 1}


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


@pytest.mark.long
def test_the_command_prints_what_the_figure_reads(monkeypatch, capsys):
    monkeypatch.setattr(machine, "MiniMindConfig", lambda: TINY)
    monkeypatch.setattr(machine, "CONTEXT", 20)
    monkeypatch.setattr(machine, "pick_device", lambda: torch.device("cpu"))
    main(["a test", "--modes", "plain", "--rounds", "1"])
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "a test" and told["dtype"] == "float32"
    assert told["measured_at"]["hidden_size"] == 32 and told["measured_at"]["context"] == 20
    assert [run["name"] for run in told["runs"]] == ["prefill", "decode, plain"]
    assert Roofline(told).machine["peak"] == told["peak"]
