"""Train the model of verse: `python -m minimind_edu.trained.verse --corpus poems.txt.xz --into FOLDER`.

Half an hour of a quiet core for each seed, a minute or two of an NVIDIA GPU. `poems.txt.xz` is made by
`python -m minimind_edu.trained.verse.sources`; without `--corpus` the package's own small corpus is read. Each run
writes into FOLDER, as it goes,

    NAME.json                    losses, and what was measured on the way and in the end
    NAME.safetensors             the weights, and NAME-before.safetensors those before the tails

`--way plain` never sees tails, in as many steps and tokens; `--way tails_first` begins with them. `--unfiltered` trains
on poems that do not rhyme by the lists, too. `--longer 4` trains four times as long, `--longer .01` tries the way in a
minute.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from minimind_edu.device import one_thread, pick_device
from minimind_edu.trained import stored
from minimind_edu.trained.training import train
from minimind_edu.trained.verse import WAYS, exam, first_tails, new_model, phases, recipe, replay
from minimind_edu.trained.verse.corpus import SMALL, Corpus, batches, read_corpus
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

HELD, WRITTEN = 240, 64  # held-out poems of each form, and poems written, for a look on the way
WRITTEN_LAST = 256  # poems written in the end
SMOOTH = 25  # losses that make one point of the stored curve
LOOKS = 24  # on the way, evenly, and more while the tails are read:
LOOKS_AT_TAILS = 16


def looks(chosen: list[Any], way: str) -> set[int]:
    """After how many steps the model is looked at."""
    total = sum(phase.steps for phase in chosen)
    found = {round(total * part / LOOKS) for part in range(1, LOOKS + 1)}
    found |= {round(total * part) for part in (0.01, 0.02, 0.06)}
    tails = first_tails(way)
    begin, steps = sum(phase.steps for phase in chosen[:tails]), chosen[tails].steps
    return found | {begin + round(steps * part / LOOKS_AT_TAILS) for part in range(LOOKS_AT_TAILS + 1)} | {total}


def look(model: Any, corpus: Corpus, written: int) -> dict[str, Any]:
    """What is measured at one time."""
    return {
        **exam.expected(model, corpus, HELD),
        "exchange": exam.exchange(model, corpus, HELD),
        "exchange_8x5": exam.exchange(model, corpus, HELD, ("8x5",)),
        "judged": exam.judged(exam.write(model, written, seed=1)),
    }


@one_thread()
def run(args: argparse.Namespace, corpus: Corpus, into: Path) -> None:
    """One training, with all that it writes."""
    chosen = phases(args.way, args.longer)
    trained, device = recipe(chosen), torch.device(args.device or pick_device())
    model = (from_checkpoint(args.start) if args.start else new_model(args.seed)).to(device)
    begun, looked = time.perf_counter(), 0.0
    at, tokens = looks(chosen, args.way), 0
    before = sum(phase.steps for phase in chosen[: first_tails(args.way)])
    result: dict[str, Any] = {
        "way": args.way,
        "seed": args.seed,
        "longer": args.longer,
        "unfiltered": args.unfiltered,
        "corpus": args.corpus.name,
        "poems": sum(len(ids) for name, ids in corpus.training.items() if name in exam.WHOLE),
        "steps": [phase.steps for phase in chosen],
        "device": torch.cuda.get_device_name() if device.type == "cuda" else device.type,
        "looks": [],
    }

    def supply() -> Any:
        nonlocal tokens
        for ids in batches(corpus, chosen, args.seed):
            tokens += ids.numel()
            yield ids

    def note(step: int, written: int) -> None:
        nonlocal looked
        start = time.perf_counter()
        model.eval()
        seen = {"step": step, "tokens": tokens, "seconds": round(start - begun - looked, 1)}
        result["looks"].append(seen | stored.rounded(look(model, corpus, written), 5))
        stored.write(json.dumps(result, ensure_ascii=False) + "\n", into / f"{args.name}.json")
        model.train()
        looked += time.perf_counter() - start
        last = result["looks"][-1]
        print(
            f"{args.name} {step} steps {tokens:,} tokens {seen['seconds']}s loss {last['loss']:.3f} "
            f"exchange {last['exchange']['times']:.2f} rhyme {last['rhyme']:.3f} written {last['judged']['rhyme']}",
            flush=True,
        )

    def after(step: int, _: Any) -> None:
        if step == before and args.way == "recipe":
            save_checkpoint(model, into / f"{args.name}-before.safetensors")
        if step in at and step < trained.steps:
            note(step, WRITTEN)

    note(0, WRITTEN)
    if device.type == "cuda" and not args.launched:
        losses = replay.train(model, supply(), trained, after)
    else:
        losses = train(model, supply(), trained, lambda step, loss: after(step + 1, loss))
    save_checkpoint(model.eval(), into / f"{args.name}.safetensors")
    points = [sum(losses[i : i + SMOOTH]) / SMOOTH for i in range(0, len(losses) - SMOOTH + 1, SMOOTH)]
    result["losses"] = stored.rounded(points, 4)
    result["train_seconds"] = round(time.perf_counter() - begun - looked, 1)
    note(trained.steps, WRITTEN_LAST)
    poems = exam.write(model, WRITTEN_LAST, seed=1)
    result["copied"] = exam.copied(poems, corpus)
    result["written"] = poems[:40]
    result["all_seconds"] = round(time.perf_counter() - begun, 1)
    stored.write(json.dumps(result, ensure_ascii=False) + "\n", into / f"{args.name}.json")
    print(f"{args.name} is done after {result['all_seconds']} s, {tokens:,} tokens", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=SMALL)
    parser.add_argument("--way", choices=tuple(WAYS), default="recipe")
    parser.add_argument("--seed", type=stored.whole_number(0), default=0)
    parser.add_argument("--longer", type=float, default=1.0)
    parser.add_argument("--unfiltered", action="store_true")
    parser.add_argument("--device")
    parser.add_argument("--launched", action="store_true", help="on CUDA, launch every kernel by itself")
    parser.add_argument("--start", type=Path, help="weights to go on from, for --way lesson")
    parser.add_argument("--few", action="store_true", help="look at less, to try the way")
    parser.add_argument("--name", help="of the files; the default tells way and seed")
    stored.add_into(parser)
    args = parser.parse_args()
    into = stored.place(parser, args.into, Path(__file__).parent, whole=False)
    args.name = args.name or f"{args.way}-{args.seed}"
    run(args, read_corpus(args.corpus, args.unfiltered), into)


if __name__ == "__main__":
    main()
