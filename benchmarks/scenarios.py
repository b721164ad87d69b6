"""What is measured. A scenario runs on a Bench and returns numbers that JSON can hold; `findings.py` reads them.

Seconds are those of one step of the whole batch (one token for each row), unless the kind says otherwise.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from benchmarks.bench import Bench, ReadLimit
from benchmarks.findings import LIMIT
from benchmarks.peers import Peer, llama_twin, random_model
from minimind_edu.measure.costs import generation_cost
from minimind_edu.measure.machine import large_product

CACHED = ("transformers", "transformers static", "notes", "plain", "compiled")
STEPPING = ("transformers", "notes", "plain", "compiled")
BRIEF = 3


@dataclass(frozen=True)
class Scenario:
    """What all kinds share: the model's size, how many rounds, and when to stop adding rounds."""

    size: str = "small"
    rounds: int = 7
    budget: float = 60.0  # seconds

    kind: ClassVar[str]

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.size}"

    def run(self, bench: Bench) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, **asdict(self), **self.measure(bench)}

    def measure(self, bench: Bench) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Decode(Scenario):
    """Whole calls of `generate`, prompt included, and beside them the reading of as many bytes as a step must read."""

    kind = "decode"
    prompt: int = 32
    new: int = 256
    batch: int = 1
    peers: tuple[str, ...] = CACHED

    @property
    def name(self) -> str:
        return f"{super().name}, {self.prompt} -> {self.prompt + self.new}, batch {self.batch}"

    def measure(self, bench: Bench) -> dict[str, Any]:
        ids = bench.prompts(self.size, self.batch, self.prompt)
        peers = bench.peers(self.size)
        compiling, warned = bench.warm_up(self.peers, self.size, ids, self.new)
        step = step_bytes(bench, self)
        limit = ReadLimit(step, bench)
        work = {
            name: bench.timed(lambda peer=peers[name]: peer.generate(ids, self.new), self.new) for name in self.peers
        }
        work[LIMIT] = limit.seconds
        seconds = bench.paired(self.name, work, self.rounds, self.budget)
        return {"seconds": seconds, "compiling": compiling, "warned": warned, "step_bytes": step}


@dataclass(frozen=True)
class Uncached(Decode):
    """What the cache saves: this package with and without."""

    peers: tuple[str, ...] = ("plain", "no cache")

    @property
    def name(self) -> str:
        return f"{super().name}, with and without cache"


def step_bytes(bench: Bench, decode: Decode) -> float:
    """Bytes that one step must read, on the average of the call."""
    config, itemsize = bench.models[decode.size], bench.dtype.itemsize
    cost = generation_cost(config, decode.prompt, decode.new, batch=decode.batch, itemsize=itemsize)
    return cost.bytes / decode.new


@dataclass(frozen=True)
class Context(Scenario):
    """One decode step after contexts of different length."""

    kind = "step against context"
    contexts: tuple[int, ...] = (128, 256, 512, 1024, 2048, 4096)
    steps: int = 8
    peers: tuple[str, ...] = STEPPING

    def measure(self, bench: Bench) -> dict[str, Any]:
        # a short prompt is enough to compile the step, which serves every length
        brief = bench.prompts(self.size, 1, 8)
        compiling, warned = bench.warm_up(self.peers, self.size, brief, 4)
        peers = bench.peers(self.size)
        work = {}
        for name in self.peers:
            streams = [self._started(peers[name], bench, length) for length in self.contexts]
            work[name] = partial(self._seconds, bench, streams)
        seconds = bench.paired(self.name, work, self.rounds, self.budget)
        return {"seconds": seconds, "compiling": compiling, "warned": warned}

    def _started(self, peer: Peer, bench: Bench, length: int) -> Iterator[Tensor]:
        """A stream that has read so much that the steps to be timed lie about evenly around the context's length."""
        timed = self.steps * (bench.rounds or self.rounds)
        prompt = bench.prompts(self.size, 1, max(length - timed // 2 - BRIEF, 1))
        stream = peer.stream(prompt, timed + BRIEF)
        for _ in range(BRIEF):  # the prompt itself, and steps that may be the first of their kind
            next(stream)
        return stream

    def _seconds(self, bench: Bench, streams: list[Iterator[Tensor]]) -> list[float]:
        """Of one step, for each context."""
        return [
            bench.clock.seconds(lambda: [next(stream) for _ in range(self.steps)]) / self.steps  # noqa: B023
            for stream in streams
        ]


@dataclass(frozen=True)
class Prefill(Scenario):
    """Reading a prompt up to its first new token; seconds of the whole call."""

    kind = "prefill"
    prompt: int = 512
    peers: tuple[str, ...] = ("transformers", "notes", "plain")

    @property
    def name(self) -> str:
        return f"{super().name}, {self.prompt} tokens"

    def measure(self, bench: Bench) -> dict[str, Any]:
        ids = bench.prompts(self.size, 1, self.prompt)
        peers = bench.peers(self.size)
        bench.warm_up(self.peers, self.size, ids, 1)
        work = {name: bench.timed(lambda peer=peers[name]: peer.generate(ids, 1)) for name in self.peers}
        return {"seconds": bench.paired(self.name, work, self.rounds, self.budget)}


@dataclass(frozen=True)
class Training(Scenario):
    """One step of AdamW with clipped gradients; seconds of the whole step."""

    kind = "training step"
    size: str = "training"
    batch: int = 16
    length: int = 256

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.batch} x {self.length} tokens"

    def measure(self, bench: Bench) -> dict[str, Any]:
        ours = random_model(bench.models[self.size]).to(bench.device, bench.dtype)
        learners = {"transformers": llama_twin(ours), "plain": ours}
        ids = bench.prompts(self.size, self.batch, self.length)
        steps = {name: training_step(model.train(), ids) for name, model in learners.items()}
        losses = {name: step() for name, step in steps.items()}
        work = {name: bench.timed(step) for name, step in steps.items()}
        seconds = bench.paired(self.name, work, self.rounds, self.budget)
        return {"seconds": seconds, "first_loss": losses}


def training_step(model: nn.Module, ids: Tensor) -> Any:
    """A function that takes one step on these ids and returns the loss before it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> float:
        loss = model(ids, labels=ids).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


@dataclass(frozen=True)
class Limits(Scenario):
    """The machine: bytes read a second, alone and by a matrix times one vector, and operations a second.

    A library may read a matrix well below the speed of memory when there is but one vector, and better along columns.
    How far tells how much another layout and compiling can gain on a machine.
    """

    kind = "machine"
    megabytes: int = 400
    width: int = 512

    @property
    def name(self) -> str:
        return self.kind

    @torch.no_grad()
    def measure(self, bench: Bench) -> dict[str, Any]:
        limit = ReadLimit(self.megabytes * 1e6, bench, self.width)
        product, operations = large_product(bench.device, bench.dtype)
        work = {
            "reading memory": lambda: limit.seconds(2),
            "vector, by rows": bench.timed(limit.ways["by rows"]),
            "vector, by columns": bench.timed(limit.ways["by columns"]),
            "product of matrices": bench.timed(product),
        }
        for once in work.values():
            once()
        return {
            "seconds": bench.paired(self.name, work, self.rounds, self.budget),
            "amounts": {  # bytes, but operations for the product
                **dict.fromkeys(list(work)[:-1], limit.numbers.nbytes),
                "product of matrices": operations,
            },
        }
