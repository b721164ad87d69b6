"""Exercises on speed.

The sizes in one case are all different, so that no forgotten factor hides another. Nothing is timed: the exercise on
timing runs on a machine that is pretended, with a clock of its own.
"""

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake
from minimind_edu.measure.costs import Machine, decode_cost
from minimind_edu.model.config import MiniMindConfig

_SMALL, _NEWER = MiniMindConfig.minimind2(), MiniMindConfig.minimind3()
_ODD = MiniMindConfig.minimind2(
    vocab_size=97,
    hidden_size=60,
    num_hidden_layers=3,
    num_attention_heads=15,
    num_key_value_heads=5,
    head_dim=8,
    intermediate_size=110,
)


def _step(config: MiniMindConfig, context: int, batch: int) -> int:
    return decode_cost(config, context, batch).operations


def _without(missing: Callable[[MiniMindConfig, int], int]) -> Attempt:
    """The operations without these multiply-adds of one sequence."""
    return lambda c, t, b: _step(c, t, b) - 2 * b * missing(c, t)


def _queries(config: MiniMindConfig) -> int:
    """Width of all query heads, over all layers."""
    return config.num_hidden_layers * config.num_attention_heads * config.head_dim


check_step_operations = Exercise(
    "Does `attempt(config, context, batch)` give the operations of the matrix products of one decode step?",
    answer=_step,
    cases=(
        Case("minimind2, one sequence of 512: 60,030,976", (_SMALL, 512, 1)),
        Case("3 layers, 15 heads, 7 sequences of 41", (_ODD, 41, 7)),
        Case("minimind2, the whole table of positions", (_SMALL, 32768, 1)),
        Case("minimind3, 5 sequences of 100", (_NEWER, 100, 5)),
    ),
    mistakes=(
        Mistake(
            lambda c, t, b: _step(c, t, b) // 2,
            "those are multiply-adds: each is two operations, a multiplication and an addition",
        ),
        Mistake(
            _without(lambda c, t: 2 * t * _queries(c)),
            "attention is missing: every query meets all positions of the context, in every layer",
        ),
        Mistake(
            _without(lambda c, t: 2 * t * _queries(c) * (c.queries_per_kv - 1) // c.queries_per_kv),
            "every query head meets every key: attention has num_attention_heads, however few keys are kept",
        ),
        Mistake(
            _without(lambda c, t: 2 * _queries(c)),
            "your context is one position short: the new token attends to itself too",
        ),
        Mistake(
            _without(lambda c, t: c.vocab_size * c.hidden_size),
            "the logits are missing: a product with vocab_size rows for every sequence",
        ),
        Mistake(
            _without(lambda c, t: c.hidden_size * _queries(c)),
            "a product is missing: o_proj, or one of attention's two (the scores, and the mixture of the values)",
        ),
        Mistake(
            _without(lambda c, t: 2 * c.hidden_size * _queries(c) // c.queries_per_kv),
            "k_proj and v_proj are missing: the new token needs a key and a value of its own",
        ),
        Mistake(
            lambda c, t, b: _step(replace(c, num_key_value_heads=c.num_attention_heads), t, b),
            "k_proj and v_proj are num_key_value_heads * head_dim wide, not as wide as the queries",
        ),
        Mistake(
            lambda c, t, b: _step(c, t, 1),
            "that is one sequence: the batch shares the reading of the weights, not the computing",
        ),
        Mistake(
            lambda c, t, b: _step(replace(c, head_dim=c.hidden_size // c.num_attention_heads), t, b),
            "the projections are num_heads * head_dim wide, which need not be hidden_size: use config.head_dim",
        ),
    ),
)


def _readers(fits: Callable[[MiniMindConfig, int, Machine, float, int], bool]) -> Attempt:
    """The largest batch that `fits`; from there on none does."""

    def largest(config: MiniMindConfig, context: int, machine: Machine, seconds: float) -> int:
        batch = 0
        while fits(config, context, machine, seconds, batch + 1):
            batch += 1
        return batch

    return largest


_EXAMPLE = Machine(bandwidth=20e9, peak=100e9)

check_readers = Exercise(
    "Does `attempt(config, context, machine, seconds)` give the most texts whose decode step takes at most so long?",
    answer=_readers(lambda c, t, m, s, b: m.seconds(decode_cost(c, t, b)) <= s),
    cases=(
        Case("minimind2, short texts: 256 positions, 50 ms", (_SMALL, 256, _EXAMPLE, 0.05)),
        Case("4 ms: too little for a single reader", (_SMALL, 512, _EXAMPLE, 0.004)),
        Case("long texts: 8,192 positions, 50 ms", (_SMALL, 8192, _EXAMPLE, 0.05)),
        Case("a newer model on a faster machine", (_NEWER, 2000, Machine(300e9, 1e12), 0.02)),
    ),
    mistakes=(
        Mistake(
            _readers(lambda c, t, m, s, b: b * m.seconds(decode_cost(c, t)) <= s),
            "you let every reader have a step of its own: all texts of a batch share one reading of the weights",
        ),
        Mistake(
            _readers(lambda c, t, m, s, b: decode_cost(c, t, b).bytes / m.bandwidth <= s),
            "that is memory alone: with so many texts the arithmetic takes longer",
        ),
        Mistake(
            _readers(lambda c, t, m, s, b: m.seconds(replace(decode_cost(c, t, b), cache_bytes=0)) <= s),
            "the caches are missing: every text has its own, and every step reads all of them",
        ),
        Mistake(
            _readers(lambda c, t, m, s, b: b * _step(c, t, 1) / m.peak <= s),
            "that is arithmetic alone: here reading the caches, or the weights, takes longer",
        ),
        Mistake(
            _readers(
                lambda c, t, m, s, b: (
                    decode_cost(c, t, b).bytes / m.bandwidth + decode_cost(c, t, b).operations / m.peak <= s
                )
            ),
            "a processor moves and computes at the same time: the longer of the two counts, not their sum",
        ),
        Mistake(
            _readers(lambda c, t, m, s, b: b == 1 or m.seconds(decode_cost(c, t, b - 1)) <= s),
            "with the last of these readers a step takes too long: that is one too many",
        ),
    ),
)


def _attention_pairs(prompt: int, new_tokens: int, use_cache: bool) -> int:
    """S * T summed over all calls: one call for the prompt, then new_tokens - 1 more."""
    lengths = range(prompt + 1, prompt + new_tokens)
    return prompt**2 + sum(length if use_cache else length**2 for length in lengths)


def _unmasked_pairs(prompt: int, new_tokens: int, use_cache: bool) -> int:
    """Only the pairs that the causal mask leaves visible."""
    lengths = range(prompt + 1, prompt + new_tokens)
    return prompt * (prompt + 1) // 2 + sum(t if use_cache else t * (t + 1) // 2 for t in lengths)


check_attention_pairs = Exercise(
    "Does `attempt(prompt, new_tokens, use_cache)` give all pairs of a query and a key that attention computes?",
    answer=_attention_pairs,
    cases=(
        Case("a prompt of 5, 3 new tokens, with a cache", (5, 3, True)),
        Case("the same without", (5, 3, False)),
        Case("one new token: the prompt's call is all", (5, 1, True)),
        Case("a prompt of 10, 500 new tokens, with a cache", (10, 500, True)),
        Case("the same without", (10, 500, False)),
    ),
    mistakes=(
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new + 1, cached),
            "one call too many: the prompt's own call gives the first new token, and the last one is never read",
        ),
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new, cached) - prompt**2 + prompt,
            "the prompt's call computes prompt x prompt pairs, with a cache too: nothing is cached before it",
        ),
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new, True),
            "that is with a cache; without one each call computes all queries again, length x length",
        ),
        Mistake(
            lambda prompt, new, cached: _attention_pairs(prompt, new, False),
            "that is without a cache; with one a call has a single query, and as many pairs as keys",
        ),
        Mistake(
            _unmasked_pairs,
            "you leave out what the causal mask hides: count the pairs computed, queries x keys, before any mask",
        ),
        Mistake(
            lambda prompt, new, cached: new * (prompt + new),
            "you multiply the calls by the final length: T grows from call to call, so add the calls up one by one",
        ),
    ),
)


def _pretended(attempt: Attempt) -> Attempt:
    """`attempt` on a machine that queues its calls, runs them when somebody waits, and has a clock of its own.

    Returns:
        (seconds of each call, seconds more for its first run, two moments before and after which all takes three
        times as long, rounds) -> what the attempt says that each call takes.
    """

    def run(works: dict[str, float], first: float, quiet: tuple[float, float], rounds: int) -> Any:
        now, queue, known = 0.0, [], set()

        def wait() -> None:
            nonlocal now
            for name in queue:
                seconds = works[name] + (name not in known) * first
                now += seconds if quiet[0] <= now < quiet[1] else 3 * seconds
                known.add(name)
            queue.clear()

        calls = {name: lambda name=name: queue.append(name) for name in works}
        taken = attempt(calls, wait, lambda: now, rounds)
        return [taken[name] for name in works] if isinstance(taken, dict) else taken

    return run


def _shortest(calls: Any, wait: Any, clock: Any, rounds: int, summary: Any = min, warm: bool = True) -> Any:
    """The reference: a run that does not count, then rounds in which the calls take turns."""
    taken = {name: [] for name in calls}
    for _ in range(rounds + warm):
        for name, call in calls.items():
            start = clock()
            call()
            wait()
            taken[name].append(clock() - start)
    return {name: summary(seconds[warm:]) for name, seconds in taken.items()}


def _one_by_one(calls: Any, wait: Any, clock: Any, rounds: int) -> Any:
    return {name: _shortest({name: call}, wait, clock, rounds)[name] for name, call in calls.items()}


def _mean(seconds: list[float]) -> float:
    return sum(seconds) / len(seconds)


_ALWAYS = (0.0, float("inf"))

check_fair_times = Exercise(
    "Does `attempt(calls, wait, clock, rounds)` give the shortest undisturbed time of each call, by name?",
    answer=_pretended(_shortest),
    cases=(
        Case("a quiet machine that has seen the calls before", ({"a": 2.0, "b": 3.0}, 0.0, _ALWAYS, 5)),
        Case("a machine that compiles a call at its first run", ({"a": 2.0, "b": 3.0}, 20.0, _ALWAYS, 1)),
        Case("a machine whose busy neighbor takes one break", ({"a": 2.0, "b": 3.0}, 0.0, (25.0, 37.0), 4)),
    ),
    mistakes=(
        Mistake(
            _pretended(lambda calls, wait, clock, rounds: _shortest(calls, lambda: None, clock, rounds)),
            "a call only queues its work: wait() until it is done, then look at the clock",
        ),
        Mistake(
            _pretended(lambda calls, wait, clock, rounds: _shortest(calls, wait, clock, rounds, sum)),
            "that is the time of all runs together: return the shortest single run",
        ),
        Mistake(
            _pretended(lambda calls, wait, clock, rounds: _shortest(calls, wait, clock, rounds, warm=False)),
            "your first run counts, and it pays for what happens only once: run each call before you time it",
        ),
        Mistake(
            _pretended(_one_by_one),
            "you time one call to the end before the next begins, so a busy moment hits one of them: let them take "
            "turns, round by round",
        ),
        Mistake(
            _pretended(lambda calls, wait, clock, rounds: _shortest(calls, wait, clock, rounds, _mean)),
            "that is a mean, which keeps every disturbance: the shortest run was disturbed least",
        ),
        Mistake(
            _pretended(lambda calls, wait, clock, rounds: _shortest(calls, wait, clock, rounds, statistics.median)),
            "that is a median, which keeps what disturbs more than half of the runs: the shortest was disturbed least",
        ),
    ),
    through=_pretended,
)
