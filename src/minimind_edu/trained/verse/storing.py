"""Keep of a folder of runs what the package tells: `python -m minimind_edu.trained.verse.storing FOLDER POEMS`.

FOLDER is what runs of `python -m minimind_edu.trained.verse` have written, POEMS the corpus that they read. Of the
runs of the recipe the one with the lowest held-out loss is stored as int8 rows, after all phases and before the tails;
of all runs the curves; of the stored weights a card.
"""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from minimind_edu.trained import stored
from minimind_edu.trained.verse import CARD, FOLDER, PHASES, RUNS, STORED, exam, phases, recipe, sounds
from minimind_edu.trained.verse.corpus import Corpus, decode, read_corpus
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

HELD, WRITTEN = 240, 256  # held-out poems of each form, and poems written, of an exam
SHOWN = 5  # the first poems that are kept of a run
KEPT = ("way", "seed", "longer", "unfiltered", "corpus", "poems", "steps", "device", "train_seconds")


def columns(looks: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """What the looks of a run saw, number by number."""
    rows = [
        {
            **{name: look[name] for name in ("step", "tokens", "loss", "rhyme_loss", "rhyme", "rhyme_other")},
            "exchange": look["exchange"]["times"],
            "exchange_8x5": look["exchange_8x5"]["times"],
            **{name: look["judged"][name] for name in ("form", "rhyme_chance", "paired", "paired_chance", "same")},
            "written_rhyme": look["judged"]["rhyme"],
            "opposite_2": look["judged"]["opposite"][0],
            "opposite_4": look["judged"]["opposite"][1],
        }
        for look in looks
    ]
    return {name: stored.rounded([row[name] for row in rows], 4) for name in rows[0]}


def curve(run: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run."""
    kept = {name: run[name] for name in KEPT if name in run}
    return {
        **kept,
        "looks": columns(run["looks"]),
        "last": stored.rounded(run["looks"][-1], 4),
        "copied": run.get("copied"),
        "written": run.get("written", [])[:SHOWN],
    }


def examined(path: Path, corpus: Corpus) -> dict[str, Any]:
    """An exam of stored weights; held-out poems come from the package's own corpus, copies are looked for in all."""
    model, small = from_checkpoint(path), read_corpus()
    poems = exam.write(model, WRITTEN, seed=1)
    return {
        "parameters": model.num_parameters(),
        "bytes": path.stat().st_size,
        "expected": exam.expected(model, small, HELD),
        "exchange": exam.exchange(model, small, HELD),
        "judged": exam.judged(poems),
        "copied": exam.copied(poems, corpus),
        "times_usual": sounds.times_usual(*sounds.second_rhymes(model, small, HELD)),
        "groups": sounds.own_groups(*sounds.second_rhymes(model, small, HELD)),
        "written": poems[:SHOWN],
    }


def real(corpus: Corpus) -> dict[str, Any]:
    """What held-out poems keep of the rules themselves; that they rhyme was a condition of the list."""
    poems = [decode(row) for name in exam.WHOLE for row in corpus.held_out[name][:HELD]]
    return exam.judged(poems)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("poems", type=Path)
    stored.add_into(parser)
    args = parser.parse_args()
    into = stored.place(parser, args.into, FOLDER)
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(args.folder.glob("*.json"))}
    whole = {name: run for name, run in found.items() if "copied" in run}
    stored.write(
        json.dumps({name: curve(run) for name, run in whole.items()}, ensure_ascii=False) + "\n", into / RUNS.name
    )
    of_recipe = [name for name, run in whole.items() if name.startswith("recipe") and not run["unfiltered"]]
    complete = [name for name in of_recipe if (args.folder / f"{name}-before.safetensors").exists()]
    best = min(complete, key=lambda name: whole[name]["looks"][-1]["loss"])
    corpus, card = read_corpus(args.poems), {"stored": best, "of": of_recipe}
    for name, ending in (("verse", ""), ("before", "-before")):
        model = from_checkpoint(args.folder / f"{best}{ending}.safetensors")
        path = save_checkpoint(model, into / STORED[name].name, int8=True)
        card[name] = examined(path, corpus)
    card |= {
        "recipe": dataclasses.asdict(recipe(phases())),
        "phases": {name: dataclasses.asdict(phase) for name, phase in PHASES.items()},
        "real": real(read_corpus()),
    }
    stored.write(json.dumps(stored.rounded(card, 4), ensure_ascii=False, indent=1) + "\n", into / CARD.name)


if __name__ == "__main__":
    main()
