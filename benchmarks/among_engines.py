"""Our ways among the engines that people use: decoding, prefill, and what rounded weights cost in quality."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.bench import Bench, ReadLimit, elapsed
from benchmarks.engines import ENGINES
from benchmarks.engines.client import EngineError, Engines, RemoteEngine
from benchmarks.findings import OURS, ROUNDED
from benchmarks.peers import Decoder
from benchmarks.scenarios import Decode, Prefill, Scenario
from minimind_edu import fast
from minimind_edu.measure.costs import generation_cost
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.trained.living import living_model, story_batches

EXACT = dict.fromkeys(("transformers", "transformers compiled", *OURS), 4)  # bytes of a weight
BYTES = {**EXACT, **ROUNDED, **{name: kind.bytes_per_weight for name, kind in ENGINES.items()}}


@dataclass(frozen=True)
class AmongEngines(Decode):
    """Whole calls, prompt included, of our ways and of every engine, and the reading of as many bytes as each needs.

    An engine's seconds are those of its own process. One that fails is left out, with the reason.
    """

    kind = "engines"
    new: int = 128
    peers: tuple[str, ...] = (*EXACT, *ROUNDED)

    def measure(self, bench: Bench) -> dict[str, Any]:
        ids = bench.prompts(self.size, self.batch, self.prompt)
        ours = {name: peer for name, peer in bench.peers(self.size, more=True).items() if name in self.peers}
        compiling, warned = bench.warm_up(ours, self.size, ids, self.new)
        engines = bench.engines(self.size)
        texts = {name: peer.generate(ids, self.new) for name, peer in ours.items()}
        texts |= each(engines, lambda engine: engine.generate(ids, self.new))
        work = {name: bench.timed(partial(peer.generate, ids, self.new), self.new) for name, peer in ours.items()}
        limits = self._limits(bench, {BYTES[name] for name in texts})
        seconds = rounds_of(self, bench, work | limits, engines, ids, self.new)
        measured = [name for name in texts if name in seconds]
        return {
            "seconds": {name: seconds[name] for name in measured},
            "limits": {name: seconds[name] for name in limits},
            "bytes_per_weight": {name: BYTES[name] for name in measured},
            "same_tokens": {name: self._same(texts[name], texts[next(iter(ours))]) for name in measured},
            "compiling": compiling,
            "warned": warned,
            **facts_of(engines),
        }  # fmt: skip

    def _limits(self, bench: Bench, sizes: set[float]) -> dict[str, Callable[[], float]]:
        """Reading all that a step must read where a weight has so many bytes; the cache stays as it is."""
        cost = generation_cost(
            bench.models[self.size], self.prompt, self.new, batch=self.batch, itemsize=bench.dtype.itemsize
        )
        weights = cost.weight_bytes / bench.dtype.itemsize
        return {
            f"{size:g} bytes": ReadLimit((size * weights + cost.cache_bytes) / self.new, bench).seconds
            for size in sorted(sizes, reverse=True)
        }

    def _same(self, text: Tensor, expected: Tensor) -> float:
        return (text == expected)[:, self.prompt :].float().mean().item()


@dataclass(frozen=True)
class MoreThreads(AmongEngines):
    """What the run's threads gain over one: everybody with one and with all of them in the same rounds, by the clock on
    the wall. Of the engines llama.cpp, which is compiled for the machine as ours is.
    """

    kind = "engines' threads"
    peers: tuple[str, ...] = ("compiled", *ROUNDED)

    def measure(self, bench: Bench) -> dict[str, Any]:
        ids = bench.prompts(self.size, 1, self.prompt)
        ours = {name: peer for name, peer in bench.peers(self.size, more=True).items() if name in self.peers}
        bench.warm_up(ours, self.size, ids, self.new)
        theirs = [name for name, kind in ENGINES.items() if kind.module == "llama"]
        bench.close()  # engines that wait with other numbers of threads
        with (
            closing(bench.started(self.size, theirs, 1)) as alone,
            closing(bench.started(self.size, theirs, bench.threads)) as together,
        ):
            work = {}
            for threads, engines in ((1, alone), (bench.threads, together)):
                each(engines, lambda engine: engine.generate(ids, self.new))
                calls = {name: peer.generate for name, peer in ours.items()}
                calls |= {name: engine.generate for name, engine in engines.running.items()}
                work |= {(name, threads): partial(self._seconds, call, ids, threads) for name, call in calls.items()}
            both = [name for name, threads in work if threads == 1 and (name, bench.threads) in work]
            seconds = bench.paired(self.name, work, self.rounds, self.budget)
            return {
                "seconds": {name: seconds[name, bench.threads] for name in both},
                "alone": {name: seconds[name, 1] for name in both},
                "threads": bench.threads,
                **facts_of(together),
            }

    def _seconds(self, generate: Callable[[Tensor, int], Tensor], ids: Tensor, threads: int) -> float:
        """Of a step; an engine in its own process keeps the number with which it was started."""
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            return elapsed(lambda: generate(ids, self.new)) / self.new
        finally:
            torch.set_num_threads(before)


@dataclass(frozen=True)
class PrefillAmongEngines(Prefill):
    """Reading a prompt up to its first new token; seconds of the whole call."""

    kind = "engines' prefill"
    peers: tuple[str, ...] = ("transformers", "plain", "bfloat16")

    def measure(self, bench: Bench) -> dict[str, Any]:
        ids = bench.prompts(self.size, 1, self.prompt)
        ours = {name: peer for name, peer in bench.peers(self.size, more=True).items() if name in self.peers}
        engines = bench.engines(self.size)
        for peer in ours.values():
            peer.generate(ids, 1)
        each(engines, lambda engine: engine.generate(ids, 1))
        work = {name: bench.timed(partial(peer.generate, ids, 1)) for name, peer in ours.items()}
        return {"seconds": rounds_of(self, bench, work, engines, ids, 1), **facts_of(engines)}


@dataclass(frozen=True)
class Quality(Scenario):
    """What rounding does to the book's trained model: stories of its world, read one word after the other.

    Each word's probabilities are compared with those of our model in float32: the divergence KL(ours, theirs) and the
    loss on the next word, in nats a word, and how often the most probable word is the same.
    """

    kind = "engines' quality"
    size: str = "living"
    stories: int = 8
    length: int = 96

    @torch.no_grad()
    def measure(self, bench: Bench) -> dict[str, Any]:
        model = living_model()
        texts = next(story_batches(seed=17, batch_size=self.stories, length=self.length))  # [B, T]
        engines = bench.engines(self.size)
        logits = {"plain": model(texts).logits}
        for name in ROUNDED:
            logits[name] = one_by_one(fast.rounded_decoder(living_model(), to=name), texts)
        logits |= each(engines, lambda engine: torch.stack([engine.logits(text) for text in texts]))
        exact = logits["plain"].double().log_softmax(-1)  # [B, T, V]
        return {
            "quality": {name: compared(exact, other.double().log_softmax(-1), texts) for name, other in logits.items()},
            **facts_of(engines),
        }  # fmt: skip


def compared(exact: Tensor, other: Tensor, texts: Tensor) -> dict[str, float]:
    """Two log-probabilities `[B, T, V]` of the word after each word of `texts` `[B, T]`."""
    return {
        "kl": (exact.exp() * (exact - other)).sum(-1).mean().item(),
        "loss": -other[:, :-1].gather(-1, texts[:, 1:, None]).mean().item(),
        "same_choice": (exact.argmax(-1) == other.argmax(-1)).float().mean().item(),
    }


def one_by_one(decoder: Decoder, ids: Tensor) -> Tensor:
    """Logits `[B, T, V]` of texts `[B, T]`, each word read by a decode step."""
    cache, logits = KVCache(decoder.config.num_hidden_layers), []
    for place in range(ids.shape[1]):
        out = decoder(ids[:, place : place + 1], past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = out.past_key_values
        logits.append(out.logits)
    return torch.cat(logits, dim=1)


def each(engines: Engines, ask: Callable[[RemoteEngine], Tensor]) -> dict[str, Tensor]:
    """What every engine answers; who fails is left out from now on."""
    answers = {}
    for name, engine in list(engines.running.items()):
        try:
            answers[name] = ask(engine)
        except EngineError as error:
            engines.drop(name, error)
    return answers


def rounds_of(
    scenario: Scenario, bench: Bench, work: dict[str, Callable[[], float]], engines: Engines, ids: Tensor, new: int
) -> dict[str, list[float]]:
    """Seconds of a step of everybody in turns; if an engine fails in a round, all begin again without it."""
    while True:
        theirs = {name: partial(_seconds, engine, ids, new) for name, engine in engines.running.items()}
        try:
            return bench.paired(scenario.name, work | theirs, scenario.rounds, scenario.budget)
        except EngineError as error:
            engines.drop(error.name, error)


def _seconds(engine: RemoteEngine, ids: Tensor, new: int) -> float:
    return engine.timed(ids, new)[1] / new


def facts_of(engines: Engines) -> dict[str, Any]:
    """Which versions took part, and who did not, with the reason."""
    return {"missing": dict(engines.missing), "versions": dict(engines.versions)}
