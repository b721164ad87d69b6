"""What the scenarios share: the machine they run on, the peers, the clock, and the read limit."""

import ctypes
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.engines import ENGINES
from benchmarks.engines.checkpoint import write_checkpoint
from benchmarks.engines.client import PYTHON, Engines, start_engines
from benchmarks.peers import Peer, build_more, build_peers, random_model
from benchmarks.timing import Clock, paired_rounds
from minimind_edu.fast.library import cpp_compiler, flags, why_no_library
from minimind_edu.measure.machine import readings
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.trained.living import living_model

MODELS = {  # weights wide enough that logits differ clearly and the chosen tokens do too
    "small": MiniMindConfig(initializer_range=0.05),
    "base": MiniMindConfig(hidden_size=768, num_hidden_layers=16, initializer_range=0.05),
    "training": MiniMindConfig(hidden_size=256, num_hidden_layers=4),
}


@dataclass
class Bench:
    """Where and how a scenario runs.

    Args:
        rounds: replaces every scenario's own number.
        models: the configs behind the names of sizes.
        python: of the environment of the engines.
    """

    device: torch.device = torch.device("cpu")
    dtype: torch.dtype = torch.float32
    threads: int = 1
    rounds: int | None = None
    models: Mapping[str, MiniMindConfig] = field(default_factory=lambda: MODELS)
    python: Path = PYTHON

    def __post_init__(self) -> None:
        torch.set_num_threads(self.threads)
        self.clock = Clock(self.device)
        self._built: tuple[str, dict[str, Peer]] | None = None
        self._engines: tuple[str, Engines] = "", Engines()

    def peers(self, size: str, more: bool = False) -> dict[str, Peer]:
        """The peers of a size, on request with those of `build_more`; only the last size asked for stays in memory."""
        if self._built is None or self._built[0] != size:
            self._built = None
            self._built = size, build_peers(self.models[size], self.device, self.dtype)
        built = self._built[1]
        if more and "transformers compiled" not in built:
            built.update(build_more(self.models[size], self.device, self.dtype))
        return built

    def engines(self, size: str) -> Engines:
        """The engines with the weights of a size, or of the book's trained model, "living"; one size runs at a time."""
        if self._engines[0] != size:
            self.close()
            self._engines = size, self.started(size, ENGINES, self.threads)
        return self._engines[1]

    def started(self, size: str, names: Iterable[str], threads: int) -> Engines:
        """Some of the engines with so many threads, which the caller closes."""
        model = living_model() if size == "living" else random_model(self.models[size])
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = write_checkpoint(model, Path(folder, "model"))
            return start_engines(names, checkpoint, self.python, threads)

    def close(self) -> None:
        """End the engines that run."""
        self._engines[1].close()
        self._engines = "", Engines()

    def prompts(self, size: str, batch: int, length: int) -> Tensor:
        """Token ids `[batch, length]`, the same every time."""
        generator = torch.Generator().manual_seed(length)
        vocab_size = self.models[size].vocab_size
        return torch.randint(vocab_size, (batch, length), generator=generator).to(self.device)

    def timed(self, work: Callable[[], object], times: int = 1) -> Callable[[], float]:
        """A function that does the work and returns the seconds it took, divided by `times`."""
        return lambda: self.clock.seconds(work) / times

    def paired(
        self, name: str, work: Mapping[str, Callable[[], object]], rounds: int, budget: float
    ) -> dict[str, list]:
        """`paired_rounds` with a progress bar; rounds asked for on the command line are all run, however long."""
        if self.rounds:
            rounds, budget = self.rounds, float("inf")
        with tqdm(total=rounds * len(work), desc=name, unit="run", disable=None) as bar:
            return paired_rounds(work, rounds, budget, bar.update)

    def warm_up(self, peers: Iterable[str], size: str, ids: Tensor, new: int) -> tuple[dict[str, float], list[str]]:
        """Call everybody once; who compiles is called as it will be called later, the others briefly.

        Returns:
            how many seconds longer the first call of each that compiles took than its second, and what was warned of.
        """
        compiling = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for name in peers:
                peer = self.peers(size)[name]
                if peer.compiles:
                    first, second = (elapsed(lambda: peer.generate(ids, new)) for _ in range(2))  # noqa: B023
                    compiling[name] = first - second
                else:
                    peer.generate(ids, min(new, 2))
        messages = {str(warning.message) for warning in caught}
        return compiling, sorted(messages)


def elapsed(work: Callable[[], object]) -> float:
    """Seconds that passed."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class ReadLimit:
    """As many bytes as a decode step must read, in one piece, read by the fastest of the package's `readings`, or, with
    one thread and a compiler, by reading.cpp.

    Memory and the caches of the processor treat a piece of this size as they treat the weights themselves. It is read
    anew in every round, so that a moment in which neighbors use the memory counts for the limit too.
    """

    def __init__(self, num_bytes: float, bench: Bench, width: int = 512):
        self.clock = bench.clock
        count = max(round(num_bytes / bench.dtype.itemsize / width), 1) * width
        self.numbers = torch.ones(count, dtype=bench.dtype, device=bench.device)
        self.ways = readings(self.numbers, width)
        if bench.device.type == "cpu" and bench.threads == 1 and why_no_library() is None:
            self.ways["four places"] = partial(four_places(), self.numbers.data_ptr(), self.numbers.nbytes // 4)
        for way in self.ways.values():
            way()
        self.read = min(self.ways.values(), key=lambda way: self._seconds(way, 3))

    def seconds(self, times: int = 8) -> float:
        """Of one reading."""
        return self._seconds(self.read, times)

    def _seconds(self, way: Callable[[], object], times: int) -> float:
        return self.clock.seconds(lambda: [way() for _ in range(times)]) / times


@cache
def four_places() -> Callable[[int, int], int]:
    """What reading.cpp does, compiled: from an address and a count of 32 bits, their total modulo 2^32."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = Path(folder, "reading.so")
        source = str(Path(__file__).with_name("reading.cpp"))
        subprocess.run([*cpp_compiler(), *flags(), source, "-o", str(made)], check=True)
        total = ctypes.CDLL(str(made)).total
    total.argtypes, total.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_uint32
    return total
