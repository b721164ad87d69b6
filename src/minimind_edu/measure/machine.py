"""The two limits of the machine at hand, measured: how fast memory can be read, how fast matrices are multiplied.

    python -m minimind_edu.measure.machine "one core of a server CPU"

measures this machine and prints what the book stores about its own (`figures/roofline/machine.json`): the two
limits, and how fast MiniMind2 small really is beside them. Everything is the best of several rounds, with as many
threads as torch has been given (`torch.set_num_threads`).
"""

import argparse
import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu import fast
from minimind_edu.device import pick_device, pick_dtype
from minimind_edu.measure.costs import Cost, Machine, decode_cost, prefill_cost
from minimind_edu.measure.timing import best_seconds, clock_for
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM

CONTEXT = 512  # positions of what is measured beside the limits
NEW = 16  # tokens of a run that is timed, beside the first
LONGEST = 5.0  # seconds of such a run

READ_BYTES = 2**30  # more than any cache holds
SIDE = {"cpu": 1024, "gpu": 8192}  # of two square matrices, large enough to keep all units busy


def readings(numbers: Tensor, width: int = 512) -> dict[str, Callable[[], Tensor]]:
    """The ways to read memory, each of which some processor does best; every call reads all numbers once.

    Args:
        numbers: `[rows * width]`, whatever they are.
        width: of the matrix as which two of the ways see them, multiplied with one vector as `nn.Linear` does it: lying
            by rows, as in a model, and by columns.
    """
    by_rows = numbers.view(-1, width)  # [rows, width]
    by_columns = numbers.view(width, -1).t()  # [rows, width]
    vector = numbers[:width].clone()[None]  # [1, width]
    return {
        "sum": numbers.sum,
        "by rows": lambda: F.linear(vector, by_rows),
        "by columns": lambda: F.linear(vector, by_columns),
    }


def large_product(device: torch.device, dtype: torch.dtype) -> tuple[Callable[[], Tensor], int]:
    """The product of two large matrices, and how many operations it takes."""
    side = SIDE["cpu" if device.type == "cpu" else "gpu"]
    matrix = torch.full((side, side), 0.5, dtype=dtype, device=device)
    return lambda: matrix @ matrix, 2 * side**3


def measure_machine(
    device: torch.device | str | None = None, dtype: torch.dtype | None = None, rounds: int = 7
) -> Machine:
    """Both limits, in a few seconds; what was measured with as many threads and rounds is known at once.

    Memory: the fastest of `readings`. Arithmetic: `large_product`. What a smaller model can gain because a part of it
    stays in a cache is left out of the limit.

    Args:
        device, dtype: None takes what `pick_device` and `pick_dtype` choose.
        rounds: the best of this many counts.
    """
    device = pick_device() if device is None else torch.device(device)
    dtype = pick_dtype(device) if dtype is None else dtype
    return _limits(device, dtype, rounds, torch.get_num_threads())


@cache
def _limits(device: torch.device, dtype: torch.dtype, rounds: int, threads: int) -> Machine:
    count = READ_BYTES // dtype.itemsize
    numbers = torch.ones(count, dtype=dtype, device=device)
    ways = readings(numbers)
    product, operations = large_product(device, dtype)
    seconds = best_seconds({**ways, "product": product}, device, rounds + 1)
    return Machine(bandwidth=numbers.nbytes / min(seconds[way] for way in ways), peak=operations / seconds["product"])


def measure_runs(
    model: MiniMindForCausalLM, decode_modes: tuple[str, ...] = ("plain",), context: int = 512, rounds: int = 3
) -> dict[str, tuple[Cost, float]]:
    """How long one decode step and one prefill of this model take where it is, beside what they cost.

    Args:
        decode_modes: ways to decode, as `fast.decoder` names them; the key of each is `decode, <mode>`.
        context: tokens of the prefill, and positions that the decode steps attend to (a few more, a few less).
        rounds: the best of this many counts.

    Returns:
        name -> cost and seconds of one step.
    """
    weight = model.lm_head.weight
    device, itemsize = weight.device, weight.dtype.itemsize
    ids = torch.arange(context, device=device)[None] % model.config.vocab_size  # [1, S]
    with torch.inference_mode():
        prefill = {"prefill": lambda: model(ids, logits_to_keep=1)}
        seconds = best_seconds(prefill, device, rounds + 1)["prefill"]
    runs = {"prefill": (prefill_cost(model.config, context, itemsize=itemsize), seconds)}
    cost = decode_cost(model.config, context, itemsize=itemsize)
    steps = step_seconds(model, ids[:, : -NEW // 2], decode_modes, rounds=rounds + 1)
    return runs | {f"decode, {mode}": (cost, seconds) for mode, seconds in steps.items()}


def step_seconds(
    model: MiniMindForCausalLM, ids: torch.Tensor, modes: Sequence[str] = ("plain",), new: int = NEW, rounds: int = 3
) -> dict[str, float]:
    """Seconds of one decode step in each way of decoding; reading the prompt is left out.

    Of the `new` steps of a run the median counts, and of the runs the best. The ways take turns, so that a busy moment
    of the machine is nobody's bad luck.

    Args:
        ids: `[B, S]`, the prompts.
        modes: ways to decode, as `fast.decoder` names them.
        new: steps of a run; it ends with those that were done when five seconds had passed.
        rounds: runs of each.
    """
    best: dict[str, float] = {}
    decoders = {mode: fast.decoder(model, mode) for mode in modes}
    for _ in range(rounds):
        for mode, decoder in decoders.items():
            seconds = _median_step(decoder, ids, new)
            best[mode] = min(seconds, best.get(mode, seconds))
    return best


def _median_step(decoder: MiniMindForCausalLM | fast.CompiledDecoder, ids: torch.Tensor, new: int) -> float:
    clock = clock_for(ids.device)
    steps = decoder.stream(ids, new + 1, eos_token_id=None)
    next(steps)
    moments = [clock()]
    while moments[-1] - moments[0] < LONGEST and next(steps, None) is not None:
        moments.append(clock())
    return median(after - before for before, after in pairwise(moments))


def description(name: str, decode_modes: tuple[str, ...], rounds: int = 3) -> dict[str, Any]:
    """This machine as JSON-able facts: what it is called, its limits, and MiniMind2 small on it."""
    device = pick_device()
    dtype = pick_dtype(device)
    torch.manual_seed(0)
    config = MiniMindConfig()
    model = MiniMindForCausalLM(config).eval().requires_grad_(False).to(device, dtype)
    runs = measure_runs(model, decode_modes, CONTEXT, rounds)
    sizes = ("hidden_size", "num_hidden_layers", "num_key_value_heads")
    return {
        "name": name,
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
        "dtype": str(dtype).removeprefix("torch."),
        **asdict(measure_machine(device, dtype, 3 * rounds)),
        "measured_at": {size: getattr(config, size) for size in sizes}
        | {"batch": 1, "context": CONTEXT, "itemsize": dtype.itemsize},
        "runs": [{"name": run, **asdict(cost), "seconds": s} for run, (cost, s) in runs.items()],
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure and print; see the module's first lines."""
    parser = argparse.ArgumentParser(prog="python -m minimind_edu.measure.machine")
    parser.add_argument("name", help="what to call this machine, without naming its owner")
    parser.add_argument("--threads", type=int, help="threads of the CPU (default: torch's own)")
    parser.add_argument("--modes", nargs="*", default=list(fast.WAYS))
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    print(json.dumps(description(options.name, tuple(options.modes), options.rounds), indent=2))


if __name__ == "__main__":
    main()
