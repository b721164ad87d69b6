"""Train every variant and store how it answers: `python -m minimind_edu.trained.sharing`, twenty minutes of one core.

`--steps 20 --into FILE` tries it.
"""

import argparse
import json

from minimind_edu.trained import stored
from minimind_edu.trained.sharing import RUNS, SEEDS, STEPS, VARIANTS, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=stored.whole_number(1))
    stored.add_into(parser)
    given = parser.parse_args()
    into = stored.place(parser, given.into, RUNS, whole=given.steps is None)
    results: dict[int, dict[str, list[float]]] = {}
    for steps in STEPS if given.steps is None else (given.steps,):
        results[steps] = {}
        for name, variant in VARIANTS.items():
            results[steps][name] = stored.rounded([run(variant, seed, steps) for seed in SEEDS])
            print(f"{name}, {steps:,} steps: {results[steps][name]}", flush=True)
    stored.write(json.dumps(results, indent=1) + "\n", into)


if __name__ == "__main__":
    main()
