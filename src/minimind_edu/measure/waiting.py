"""How long a step waits for its weights, measured: the same step with the weights in memory, and with them at hand.

    python -m minimind_edu.measure.waiting "one core of a server CPU" runs.json

adds a run on this machine to the file, with one thread; the book stores two of its own
(`waiting.json`, beside this file). A run has, in microseconds of the processor's own time:

    pipe     reading as many bytes as the model's weights have, in the fastest of `machine.readings`
    step     a word for each of some texts: by `model` (PyTorch), by `file` (`fast/step.cpp`), by the file with weights
             of fewer bytes, and by the file with its weights `at hand`
    product  two large matrices

At hand: `step.cpp` with one expression changed, so that every row of a matrix is one of its first eight. Loops, calls
and operations stay; what is read stays in the core's own caches. What such a step saves, the other waited for.
"""

import argparse
import datetime
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import quantiles
from typing import Any

import torch
from torch import Tensor

from minimind_edu import fast
from minimind_edu.fast.library import SOURCE
from minimind_edu.measure.machine import large_product, readings
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import CONFIG as LIVING

MODELS = {  # larger than every cache of the stored machine; the book's example; one that the core's own cache holds
    "large": MiniMindConfig(hidden_size=768, num_hidden_layers=16),
    "small": MiniMindConfig(),
    "living": LIVING,
}
TEXTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
BY_MODEL = (1, 2, 4, 8, 16, 32, 64)  # so many texts the model itself reads, too
CONTEXT = 64  # positions that the steps begin with
LONG = 512  # and those of the small model in addition
ROUNDED = ("bfloat16", "int8", "int4")
FEW = (1, 2, 8)  # texts for which they are measured
STEPS = {"large": 6, "small": 6, "living": 25}  # that count in each round, after two that do not
ROUNDS = 5
HERE, FIRST_EIGHT = "smaller(row(k), end - 1) * m.width", "smaller(row(k), end - 1) % 8 * m.width"
STORED = Path(__file__).with_name("waiting.json")


@cache
def stored_runs() -> dict[str, Any]:
    """The book's own runs: name of the machine, version of torch, and `runs`, each with its date and rows."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def quartiles(
    what: str,
    model: str | None = None,
    way: str | None = None,
    texts: int | None = None,
    context: int | None = None,
    run: int | None = None,
) -> tuple[float, float, float]:
    """The quartiles of what was measured, in microseconds: a quarter of the times, half and three quarters are less.

    Args:
        what, model, way, texts, context: as in the rows. A pipe without a way is the fastest one.
        run: index of one run; None: all of them together.

    Raises:
        KeyError: if no row is of this kind.
    """  # fmt: skip
    asked = {"what": what, "model": model, "way": way, "texts": texts, "context": context}
    asked = {name: value for name, value in asked.items() if value is not None}
    runs = stored_runs()["runs"] if run is None else stored_runs()["runs"][run : run + 1]
    times: dict[str | None, list[int]] = {}
    for row in (row for run in runs for row in run["rows"] if asked.items() <= row.items()):
        times.setdefault(row.get("way"), []).extend(row["microseconds"])
    if not times or (len(times) > 1 and what != "pipe"):
        raise KeyError(f"the rows of a time must be of one kind, and {asked} has {len(times)}")
    low, middle, high = min((quantiles(taken, n=4) for taken in times.values()), key=lambda found: found[1])
    return low, middle, high


@cache
def at_hand() -> str:
    """The text of `step.cpp` that takes each row of a float32 matrix from the first eight.

    Raises:
        ValueError: if the expression that says where a row is does not stand there once.
    """
    code = SOURCE.read_text(encoding="utf-8")
    if code.count(HERE) != 1:
        raise ValueError(f"step.cpp must say once where a row lies, as {HERE!r}; it does so {code.count(HERE)} times")
    return code.replace(HERE, FIRST_EIGHT)


def stepper(decoder: Any, texts: int, context: int) -> Callable[[], Tensor]:
    """A call that reads one more token of each text, after random keys and values; returns logits, `[texts, 1, V]`.

    Args:
        decoder: a model, or what `fast` makes of one.
        texts: B.
        context: positions that the first call attends to, itself included.
    """
    config = decoder.config
    pair = tuple(torch.randn(2, texts, context - 1, config.num_key_value_heads, config.head_dim))
    past = [[pair] * config.num_hidden_layers]
    tokens = torch.zeros(texts, 1, dtype=torch.long)

    def step() -> Tensor:
        out = decoder(tokens, None, past[0], use_cache=True)
        past[0] = out.past_key_values
        return out.logits

    return step


def microseconds(call: Callable[[], object], count: int, repeats: int = 1) -> list[int]:
    """How long each of so many calls took, of `repeats` in a row the mean."""
    taken = []
    for _ in range(count):
        start = time.process_time()
        for _ in range(repeats):
            call()
        taken.append(round(1e6 * (time.process_time() - start) / repeats))
    return taken


def measure(rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """All rows of one run; every round measures everything once, so that a busy minute is nobody's bad luck alone."""
    torch.manual_seed(0)
    rows: dict[tuple[Any, ...], list[int]] = {}
    models = {name: MiniMindForCausalLM(config).eval() for name, config in MODELS.items()}
    decoders = {name: _decoders(name, model) for name, model in models.items()}
    product, _ = large_product(torch.device("cpu"), torch.float32)
    for _ in range(rounds):
        rows.setdefault(("product", None, None, None, None), []).extend(microseconds(product, 3))
        for name, model in models.items():
            for way, call in readings(torch.ones(model.num_parameters() // 512 * 512)).items():
                call()
                repeats = max(1, 2**23 // model.num_parameters())
                rows.setdefault(("pipe", name, way, None, None), []).extend(microseconds(call, 6, repeats))
            for way, (decoder, counts) in decoders[name].items():
                for texts, context in counts:
                    step = stepper(decoder, texts, context)
                    microseconds(step, 2)
                    row = rows.setdefault(("step", name, way, texts, context), [])
                    row.extend(microseconds(step, STEPS[name]))
    names = ("what", "model", "way", "texts", "context")
    return [
        {key: value for key, value in zip(names, keys, strict=True) if value is not None} | {"microseconds": taken}
        for keys, taken in rows.items()
    ]


def _decoders(name: str, model: MiniMindForCausalLM) -> dict[str, tuple[Any, list[tuple[int, int]]]]:
    """The ways to take a step of this model, and for how many texts and positions each is measured."""
    ways: dict[str, Any] = {"file": fast.decoder(model), "at hand": fast.CompiledDecoder(model, at_hand())}
    for decoder in ways.values():
        decoder.most = max(TEXTS)  # and not only as many as it reads faster than the model
    ways["model"] = model
    contexts = (CONTEXT, LONG) if name == "small" else (CONTEXT,)
    found = {}
    for way, decoder in ways.items():
        counts = [(n, CONTEXT) for n in (BY_MODEL if way == "model" else TEXTS)]
        found[way] = decoder, counts + [(n, LONG) for n in BY_MODEL if LONG in contexts]
    if name != "living":
        for to in ROUNDED:
            found[to] = fast.rounded_decoder(model, to), [(n, CONTEXT) for n in FEW]
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measure, and add the run to a file; see the module's first lines."""
    parser = argparse.ArgumentParser(prog="python -m minimind_edu.measure.waiting")
    parser.add_argument("name", help="what to call this machine, without naming its owner")
    parser.add_argument("file", type=Path, help="where the runs are kept; it is made if it is not there")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    kept: dict[str, Any] = {"name": options.name, "torch": torch.__version__, "runs": []}
    if options.file.exists():
        kept = json.loads(options.file.read_text(encoding="utf-8"))
    with torch.inference_mode():
        rows = measure(options.rounds)
    kept["runs"].append({"date": datetime.date.today().isoformat(), "rows": rows})
    options.file.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
