"""The lesson's training, from weights that have read whole poems alone, and what it is compared with.

    python -m minimind_edu.trained.verse.lesson     six minutes of a quiet core: two seeds in each way

`lesson.json` holds, for each way and seed, how many times as likely the exchanged rhyme is after so many steps.
"""

import argparse
import json
from functools import cache
from typing import Any

from minimind_edu.device import one_thread
from minimind_edu.trained import stored
from minimind_edu.trained.training import Recipe, train
from minimind_edu.trained.verse import exam, phases, recipe, verse_model
from minimind_edu.trained.verse.corpus import FOLDER, Corpus, Phase, batches, read_corpus

RESULTS = FOLDER / "lesson.json"
SEEDS = (5, 6)
EVERY = 200  # steps between two looks
POEMS = 60  # held-out octaves of 5 that are asked


def ways() -> dict[str, tuple[list[Phase], Recipe]]:
    """What is trained on and how: as in the lesson, the same octaves uncut, and the lesson with a rate that falls."""
    [lesson] = phases("lesson")
    constant = recipe([lesson])
    falling = Recipe(constant.steps, constant.learning_rate, constant.warmup, weight_decay=constant.weight_decay)
    uncut = Phase(lesson.steps, lesson.tokens, {"8x5": 1.0})
    return {"line ends": ([lesson], constant), "uncut": ([uncut], constant), "falling rate": ([lesson], falling)}


def seen(corpus: Corpus, way: str, seed: int) -> list[float]:
    """How many times as likely the exchanged rhyme is, before the training and after every EVERY steps."""
    (chosen, trained), model = ways()[way], verse_model("before")

    def times() -> float:
        model.eval()
        found = exam.exchange(model, corpus, POEMS, ["8x5"])["times"]
        model.train()
        return found

    looks = [times()]
    train(
        model,
        batches(corpus, chosen, seed),
        trained,
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
    found: dict[str, Any] = {way: {str(seed): seen(corpus, way, seed) for seed in SEEDS} for way in ways()}
    stored.write(json.dumps(stored.rounded(found, 2)) + "\n", into)


if __name__ == "__main__":
    main()
