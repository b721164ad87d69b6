"""Which scenarios a full run and a quick one have, in their order: one size after the other, since models take room."""

from benchmarks.agreement import Agreement, CacheBytes
from benchmarks.among_engines import AmongEngines, MoreThreads, PrefillAmongEngines, Quality
from benchmarks.scenarios import Context, Decode, Limits, Prefill, Scenario, Training, Uncached

FULL: tuple[Scenario, ...] = (
    Limits(rounds=15),
    Training(rounds=7, budget=90),
    Decode("small", 7, 120),
    Uncached("small", 3, 120),
    Decode("small", 7, 90, prompt=512, new=128),
    Decode("small", 7, 90, new=96, batch=8),
    Prefill("small", 7, 60),
    Context("small", 7, 90),
    CacheBytes("small"),
    Agreement("small"),
    Agreement("small", batch=8),
    Decode("base", 5, 120, new=64),
    Decode("base", 5, 120, prompt=512, new=48),
    Decode("base", 5, 90, new=32, batch=8),
    Prefill("base", 5, 60),
    Context("base", 5, 60, contexts=(128, 1024, 4096)),
    CacheBytes("base"),
    Agreement("base", new=32),
)
QUICK: tuple[Scenario, ...] = (
    Limits(rounds=3),
    Training(rounds=2, budget=6, batch=4),
    Decode("small", 3, 10, new=48),
    Uncached("small", 2, 6, new=24),
    Decode("small", 2, 6, new=8, batch=8, peers=("transformers", "notes", "plain")),
    Decode("small", 2, 6, prompt=256, new=16, peers=("transformers", "notes", "plain")),
    Prefill("small", 3, 6, prompt=256),
    Context("small", 3, 8, contexts=(128, 512, 1024), steps=4),
    CacheBytes("small", batch=2, positions=64),
    Agreement("small", new=16),
    Decode("base", 3, 10, new=6, peers=("transformers", "notes", "plain")),
)

# What `--peers` adds
WITH_ENGINES: tuple[Scenario, ...] = (
    AmongEngines("small", 5, 150),
    AmongEngines("small", 3, 120, new=64, batch=8),
    PrefillAmongEngines("small", 5, 60),
    AmongEngines("base", 5, 150, new=48),
    AmongEngines("base", 3, 120, new=24, batch=8),
    PrefillAmongEngines("base", 3, 60),
    Quality(),
)
QUICK_WITH_ENGINES: tuple[Scenario, ...] = (
    AmongEngines("small", 3, 30, new=32),
    AmongEngines("small", 2, 30, new=8, batch=8),
    PrefillAmongEngines("small", 2, 20, prompt=256),
    AmongEngines("base", 3, 40, new=12),
    Quality(stories=2),
)

# What `--peers` adds with several threads
WITH_THREADS: tuple[Scenario, ...] = (MoreThreads("small", 9, 120), MoreThreads("base", 7, 150, new=48))
QUICK_WITH_THREADS: tuple[Scenario, ...] = (MoreThreads("small", 3, 30, new=32),)
