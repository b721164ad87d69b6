"""Train every variant and store how it answers: `python -m minimind_edu.trained.sharing`, twenty minutes of one core.

`--steps 20 --into FILE` tries it.
"""

import json

from minimind_edu.trained import stored
from minimind_edu.trained.sharing import RUNS, SEEDS, STEPS, VARIANTS, run


def main() -> None:
    only, into = stored.steps_and_place(__doc__, RUNS)
    results: dict[int, dict[str, list[float]]] = {}
    for steps in STEPS if only is None else (only,):
        results[steps] = {}
        for name, variant in VARIANTS.items():
            results[steps][name] = stored.rounded([run(variant, seed, steps) for seed in SEEDS])
            print(f"{name}, {steps:,} steps: {results[steps][name]}", flush=True)
    stored.write(json.dumps(results, indent=1) + "\n", into)


if __name__ == "__main__":
    main()
