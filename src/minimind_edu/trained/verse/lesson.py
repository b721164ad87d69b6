"""The lesson's training, from weights that have read whole poems alone, and what it is compared with.

    python -m minimind_edu.trained.verse.lesson     four minutes of a quiet core: two seeds in each of WAYS

`lesson.json` holds, for each way and seed, how many times as likely the exchanged rhyme is after so many steps.
"""

import argparse
import json
from functools import cache
from typing import Any

from minimind_edu.device import one_thread
from minimind_edu.trained import stored
from minimind_edu.trained.training import train
from minimind_edu.trained.verse import exam, phases, recipe, verse_model
from minimind_edu.trained.verse.corpus import FOLDER, Corpus, Phase, batches, read_corpus

RESULTS = FOLDER / "lesson.json"
SEEDS = (5, 6)
EVERY = 200  # steps between two looks
POEMS = 60  # held-out octaves of 5 that are asked


# what is trained on: as in the lesson, and octaves of five uncut, as many steps at the same rate
[_LESSON] = phases("lesson")
WAYS = {"line ends": _LESSON, "uncut": Phase(_LESSON.steps, _LESSON.tokens, {"8x5": 1.0})}


def seen(corpus: Corpus, way: str, seed: int) -> list[float]:
    """How many times as likely the exchanged rhyme is, before the training and after every EVERY steps."""
    chosen, model = [WAYS[way]], verse_model("before")

    def times() -> float:
        model.eval()
        found = exam.exchange(model, corpus, POEMS, ["8x5"])["times"]
        model.train()
        return found

    looks = [times()]
    train(
        model,
        batches(corpus, chosen, seed),
        recipe(chosen),
        lambda step, loss: looks.append(times()) if (step + 1) % EVERY == 0 else None,
    )
    return looks


@cache
def results() -> dict[str, dict[str, list[float]]]:
    """What is stored: by way and seed."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@one_thread()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    corpus = read_corpus()
    found: dict[str, Any] = {way: {str(seed): seen(corpus, way, seed) for seed in SEEDS} for way in WAYS}
    stored.write(json.dumps(stored.rounded(found, 2)) + "\n", into)


if __name__ == "__main__":
    main()
