"""The lesson's training, from weights that have read whole poems alone, and what it is compared with.

    python -m minimind_edu.trained.verse.lesson     ten minutes of a quiet core: three seeds of each way

`lesson.json` holds, for each way, seed and form of FORMS, how many times as likely the exchanged rhyme is after so many
steps.
"""

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

from minimind_edu.device import one_thread
from minimind_edu.trained import stored
from minimind_edu.trained.training import Recipe, train
from minimind_edu.trained.verse import LESSON_RATE, exam, phases, recipe, verse_model
from minimind_edu.trained.verse.corpus import FOLDER, Corpus, Phase, batches, read_corpus

RESULTS = FOLDER / "lesson.json"
SEEDS = (5, 6, 7)
EVERY = 120  # steps between two looks
POEMS = 60  # held-out octaves of each form that are asked
FORMS = ("8x5", "8x7")
LONGER = 2.6  # a batch of line ends is of so many times as many poems


def _uncut(phase: Phase, steps: int) -> Phase:
    """The octaves of a phase with all their characters, of five and of seven in the same proportion of poems."""
    lengths = {form: poems.shape[1] for form, poems in read_corpus().training.items()}
    sizes = {form: len(read_corpus().training[form]) for form in FORMS}
    poems = {form: share * (phase.tokens // lengths[form]) for form, share in phase.shares.items()}  # in a batch
    cut = poems.pop("8x1")
    batches_of = {
        form: (poems.get(form, 0) + cut * size / sum(sizes.values())) / (phase.tokens // lengths[form])
        for form, size in sizes.items()
    }
    return Phase(steps, phase.tokens, {form: share / sum(batches_of.values()) for form, share in batches_of.items()})


@cache
def ways() -> dict[str, tuple[Phase, Recipe]]:
    """What is read, and how it is trained on.

    Returns:
        line ends: as in the lesson.
        half the rate, twice the rate: line ends, too.
        uncut: the same octaves whole, as many tokens.
        as many poems: the same octaves whole, so long that as many poems are read, and as many rhymes.
    """
    [ends] = phases("lesson")
    rated = {"half the rate": 0.5, "line ends": 1.0, "twice the rate": 2.0}
    found = {way: (ends, replace(recipe([ends]), learning_rate=times * LESSON_RATE)) for way, times in rated.items()}
    for way, longer in (("uncut", 1.0), ("as many poems", LONGER)):
        whole = _uncut(ends, round(longer * ends.steps))
        found[way] = whole, recipe([whole])
    return found


def seen(corpus: Corpus, phase: Phase, trained: Recipe, seed: int) -> dict[str, list[float]]:
    """How many times as likely the exchanged rhyme is, before the training and after every EVERY steps, by form."""
    model, looks = verse_model("before"), defaultdict(list)

    def look() -> None:
        model.eval()
        for form in FORMS:
            looks[form].append(exam.exchange(model, corpus, POEMS, [form])["times"])
        model.train()

    look()
    train(
        model,
        batches(corpus, [phase], seed),
        trained,
        lambda step, loss: look() if (step + 1) % EVERY == 0 else None,
    )
    return dict(looks)


@cache
def results() -> dict[str, dict[str, dict[str, list[float]]]]:
    """What is stored: by way, seed and form."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@one_thread()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    corpus = read_corpus()
    found: dict[str, Any] = {}
    for way, (phase, trained) in ways().items():
        found[way] = {str(seed): seen(corpus, phase, trained, seed) for seed in SEEDS}
    stored.write(json.dumps(stored.rounded(found, 2)) + "\n", into)


if __name__ == "__main__":
    main()
