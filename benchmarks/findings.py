"""From what was measured to what it says: ratios within each round, and the targets beside them.

Works on plain results only, so that a stored run can be read again. A target belongs to one CPU thread, float32, and
the sizes that it names; on other machines it is a comparison, not a promise.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.timing import Spread, ratios, slope

Result = dict[str, Any]

OURS = ("plain", "compiled")
BEFORE = ("lean",)  # ways of this package that only stored runs have
LIMIT = "read limit"
AGAINST = "x transformers"

SPEED = {  # times as fast as transformers, batch 1
    ("plain", "small"): 1.05,
    ("plain", "base"): 1.0,
    ("compiled", "small"): 2.3,
    ("compiled", "base"): 1.9,
}
SPEED_OF_BATCH = 1.05
SHORT_PROMPT = 32  # a faster step cannot make up for the time that a long prompt takes to read
SHARE_OF_LIMIT = 0.85  # compiled, small
CACHED_AGAINST_UNCACHED = 8.0
SLOPE_AGAINST_NOTES = 0.35
AS_FAST = 0.97  # prefill, training
LOGITS = 1e-5
ROUNDED = {"int4": 5 / 8, "int8": 1, "bfloat16": 2}  # ours with fewer bytes: how many for each weight
OF_KIND = {"compiled": (3, 4), "int8": (0.8, 1.5), "int4": (0, 0.8)}  # engines whose weights have so many bytes
AMONG = {"compiled": 1.0, "int8": 1.3, "int4": 1.15}  # times as fast as the best engine of the kind, with one text
AMONG_OF_BATCH = 0.9
SHARES = {"compiled": 0.75, "bfloat16": 0.65, "int8": 0.55, "int4": 0.4}  # of the read limit, with one text

SECOND_THREAD = 1.45  # times as fast as with one, where two processors are free


@dataclass(frozen=True)
class Finding:
    """One line of the table.

    Args:
        value: what was measured, with its unit, as text.
        rounds: the comparison, one number a round; empty: nothing to compare with.
        against: what it is compared with, or what the number in `rounds` is.
        target: what it should be, and `relation` whether at least (">="), at most ("<=") or exactly ("=") that.
        ceiling: the largest ratio that reading the bytes allows on this machine, where that is known.
    """

    scenario: str
    what: str
    value: str = ""
    rounds: tuple[float, ...] = ()
    against: str = ""
    target: float | None = None
    relation: str = ">="
    ceiling: float | None = None

    @property
    def spread(self) -> Spread | None:
        return Spread.of(self.rounds) if self.rounds else None

    @property
    def reached(self) -> bool | None:
        """None without a target."""
        if self.target is None or self.spread is None:
            return None
        middle = self.spread.median
        if self.relation == "=":
            return middle == self.target
        return middle >= self.target if self.relation == ">=" else middle <= self.target

    @property
    def verdict(self) -> str:
        if self.reached is None:
            return ""
        if self.reached:
            return "reached"
        if self.relation == ">=" and self.ceiling is not None and self.ceiling < self.target:
            return f"not reached; reading allows {self.ceiling:.2f}"
        return "not reached"


def findings(results: Iterable[Result]) -> list[Finding]:
    """All lines of a run, in its order."""
    return [line for result in results for line in READERS[result["kind"]](result)]


def of_decode(result: Result) -> list[Finding]:
    seconds, batch = result["seconds"], result["batch"]
    reference = seconds.get("transformers")
    lines = []
    for name, each in seconds.items():
        line = Finding(result["name"], name, f"{batch / statistics.median(each):.1f} tokens/s")
        if reference and name != "transformers":
            line = replace(
                line,
                rounds=tuple(ratios(reference, each)),
                against=AGAINST,
                target=_speed_target(result, name),
                ceiling=statistics.median(ratios(reference, seconds[LIMIT])),
            )
        lines.append(line)
    lines += [_share_of_limit(result, name) for name in OURS if name in seconds]
    if "no cache" in seconds:
        lines.append(_against_uncached(result))
    return lines


def _speed_target(result: Result, name: str) -> float | None:
    if result["batch"] > 1:
        return SPEED_OF_BATCH if name == "plain" else None
    if name == "compiled" and result["prompt"] > SHORT_PROMPT:
        return None
    return SPEED.get((name, result["size"]))


def _share_of_limit(result: Result, name: str) -> Finding:
    seconds = result["seconds"]
    judged = name == "compiled" and result["size"] == "small" and result["batch"] == 1
    return Finding(
        result["name"],
        name,
        rounds=tuple(ratios(seconds[LIMIT], seconds[name])),
        against="of the read limit",
        target=SHARE_OF_LIMIT if judged and result["prompt"] <= SHORT_PROMPT else None,
    )


def _against_uncached(result: Result) -> Finding:
    seconds = result["seconds"]
    full = (result["prompt"], result["new"]) == (32, 256)
    return Finding(
        result["name"],
        "plain",
        rounds=tuple(ratios(seconds["no cache"], seconds["plain"])),
        against="x no cache",
        target=CACHED_AGAINST_UNCACHED if full else None,
    )


def slopes(result: Result) -> dict[str, list[float]]:
    """Seconds for each further token of context, by peer, one number a round."""
    return {
        name: [slope(result["contexts"], one_round) for one_round in rounds]
        for name, rounds in result["seconds"].items()
    }


def of_context(result: Result) -> list[Finding]:
    rising = slopes(result)
    lines = []
    for name, each in rising.items():
        value = f"{1e6 * statistics.median(each):.2f} us/token"
        line = Finding(result["name"], name, value)
        if name != "notes":
            line = replace(
                line,
                rounds=tuple(ratios(each, rising["notes"])),
                against="of the notes'",
                target=SLOPE_AGAINST_NOTES if name == "plain" else None,
                relation="<=",
            )
        lines.append(line)
    against = tuple(ratios(rising["plain"], rising["transformers"]))
    return [*lines, Finding(result["name"], "plain", "", against, "of transformers'", 1.0, "<=")]


def of_prefill(result: Result) -> list[Finding]:
    return _against_transformers(result, lambda s: f"{result['prompt'] / s:.0f} tokens/s")


def of_training(result: Result) -> list[Finding]:
    losses = result["first_loss"]
    apart = abs(losses["plain"] / losses["transformers"] - 1)
    same = Finding(result["name"], "plain", f"first loss {losses['plain']:.4f}", (apart,), "off transformers'")
    return [*_against_transformers(result, lambda s: f"{1e3 * s:.0f} ms"), same]


def _against_transformers(result: Result, value: Callable[[float], str], judged: bool = True) -> list[Finding]:
    reference = result["seconds"]["transformers"]
    lines = []
    for name, each in result["seconds"].items():
        line = Finding(result["name"], name, value(statistics.median(each)))
        if name != "transformers":
            line = replace(
                line,
                rounds=tuple(ratios(reference, each)),
                against=AGAINST,
                target=AS_FAST if name == "plain" and judged else None,
            )
        lines.append(line)
    return lines


def of_cache_bytes(result: Result) -> list[Finding]:
    return [
        Finding(
            result["name"], name, f"{count:,} bytes", (count / result["formula"],), "of the formula", 1.0, relation="="
        )
        for name, count in result["bytes"].items()
    ]


def of_agreement(result: Result) -> list[Finding]:
    scenario = result["name"]
    count = f"{result['batch'] * result['new']} tokens"
    lines = [
        Finding(scenario, name, count, (share,), "of transformers'", 1.0, "=")
        for name, share in result["same_tokens"].items()
    ]
    whole = (result["full_logits"],)
    lines.append(Finding(scenario, "plain", "whole text", whole, "off in logits", LOGITS, "<="))
    for name, difference in result["cached_logits"].items():
        against = "off, relative"
        lines.append(Finding(scenario, name, "token by token", (difference,), against, LOGITS, "<="))
    return lines


def of_machine(result: Result) -> list[Finding]:
    lines = []
    for name, each in result["seconds"].items():
        rate = result["amounts"][name] / statistics.median(each) / 1e9
        unit = "GFLOP/s" if name == "product of matrices" else "GB/s"
        lines.append(Finding(result["name"], name, f"{rate:.1f} {unit}"))
    return lines


def of_engines(result: Result) -> list[Finding]:
    """Speed against our compiled step, and against reading as many bytes as each has."""
    scenario, seconds, batch = result["name"], result["seconds"], result["batch"]
    lines = []
    for name, each in seconds.items():
        line = Finding(scenario, name, f"{batch / statistics.median(each):.1f} tokens/s")
        if name != "compiled":
            line = replace(line, rounds=tuple(ratios(seconds["compiled"], each)), against="x compiled")
        lines.append(line)
    for name, each in seconds.items():
        limit = result["limits"][f"{result['bytes_per_weight'][name]:g} bytes"]
        size, share = f"{result['bytes_per_weight'][name]:g} bytes a weight", tuple(ratios(limit, each))
        target = SHARES.get(name) if batch == 1 else None
        lines.append(Finding(scenario, name, size, share, "of the read limit", target))
    for name, target in AMONG.items():
        best = best_engine(result, name)
        if best and name in seconds:
            rounds = tuple(ratios(seconds[best], seconds[name]))
            lines.append(Finding(scenario, name, "", rounds, f"x {best}", target if batch == 1 else AMONG_OF_BATCH))
    return lines + [
        Finding(scenario, name, "same tokens", (share,), "of transformers'", 1.0 if exact else None, "=")
        for name, share in result["same_tokens"].items()
        for exact in [result["bytes_per_weight"][name] == 4]
    ]


def best_engine(result: Result, name: str) -> str | None:
    """The fastest engine whose weights have as many bytes as those of one of our ways."""
    least, most = OF_KIND[name]
    sizes, ours = result["bytes_per_weight"], {*OURS, *BEFORE, *ROUNDED}
    engines = [engine for engine in result["seconds"] if engine not in ours and least < sizes[engine] <= most]
    return min(engines, key=lambda engine: statistics.median(result["seconds"][engine]), default=None)


def of_engines_prefill(result: Result) -> list[Finding]:
    return _against_transformers(result, lambda s: f"{result['prompt'] / s:.0f} tokens/s", judged=False)


def of_threads(result: Result) -> list[Finding]:
    """How much everybody gains from the run's threads; ours have a target for two."""
    lines = []
    for name, each in result["seconds"].items():
        rate = f"{1 / statistics.median(each):.1f} tokens/s with {result['threads']} threads"
        target = SECOND_THREAD if name in {*OURS, *BEFORE, *ROUNDED} and result["threads"] == 2 else None
        gain = tuple(ratios(result["alone"][name], each))
        lines.append(Finding(result["name"], name, rate, gain, "x one thread", target))
    return lines


def of_quality(result: Result) -> list[Finding]:
    lines = []
    for name, facts in result["quality"].items():
        lines.append(Finding(result["name"], name, f"loss {facts['loss']:.4f}", (facts["kl"],), "KL from plain, nats"))
        lines.append(Finding(result["name"], name, "", (facts["same_choice"],), "of the same choices"))
    return lines


READERS: dict[str, Callable[[Result], Sequence[Finding]]] = {
    "decode": of_decode,
    "step against context": of_context,
    "prefill": of_prefill,
    "training step": of_training,
    "cache bytes": of_cache_bytes,
    "agreement": of_agreement,
    "machine": of_machine,
    "engines": of_engines,
    "engines' prefill": of_engines_prefill,
    "engines' threads": of_threads,
    "engines' quality": of_quality,
}
