"""GuessAhead: speculative decoding word by word: what the draft guesses, what stays, and what is drawn in its place.

Both models are asked here, and every word is drawn from a seed; the page holds what happened, one look for each word
that was checked.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from traitlets import Dict, Enum, Int, List, default

from minimind_edu import world
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import draft_model, living_model
from minimind_edu.web.base import Figure

START = "Mia is in the hall. Tom is in the kitchen."
AHEAD = 4  # words that the draft guesses in a round
LOOKS = 20  # words that are checked or given
SEEDS = (1, 26, 54)  # draws of which three words are rejected each, which is more than usual, and English stories
SHOWN = 6  # words of a look; the others have little of either model
Probabilities = NDArray[np.float64]  # [V]


def drawn(p: Probabilities, dart: float) -> int:
    """The word that a dart from 0 up to 1 hits, the words laid end to end with their weights."""
    along = p.cumsum()
    return int(np.searchsorted(along, dart * along[-1], side="right"))


def checked(p: Probabilities, q: Probabilities, word: int, dart: float, second: float) -> dict[str, Any]:
    """What becomes of a guess of the draft.

    Args:
        p, q: the distributions of the large model and of the draft.
        word: the guess, drawn from q.
        dart: from 0 up to 1; on the draft's bar of the word it lands at dart * q, and within p the word stays.
        second: another dart, for the leftovers.

    Returns:
        kind, `kept` or `rejected`; word; dart, where it landed; and said, the word that is written.
    """
    landed = dart * q[word]
    if landed <= p[word]:
        return {"kind": "kept", "word": word, "dart": landed, "said": word}
    written = drawn(np.maximum(p - q, 0), second)
    return {"kind": "rejected", "word": word, "dart": landed, "said": written}


def speculate(seed: int, looks: int = LOOKS) -> list[dict[str, Any]]:
    """So many looks at speculative decoding after START.

    Each is what `checked` returns, or `free`, the word after a round without a rejection; with the pass of the large
    model, from 1, the guesses that wait after this one, and rows of (word, p, q), the likeliest first.
    """
    models = living_model(), draft_model()
    chance = np.random.Generator(np.random.PCG64(seed))
    text, found, passes = world.encode(f"<s> {START}").tolist(), [], 0
    while len(found) < looks:
        guessed = list(text)
        for _ in range(AHEAD):
            guessed.append(drawn(_read(models[1], guessed)[-1], chance.random()))
        p, q = (_read(model, guessed)[len(text) - 1 :] for model in models)
        passes += 1
        for i in range(AHEAD + 1):
            if i == AHEAD:
                written = drawn(p[i], chance.random())
                look = {"kind": "free", "word": written, "dart": 0.0, "said": written}
                q[i] = 0
            else:
                look = checked(p[i], q[i], guessed[len(text)], chance.random(), chance.random())
            waiting = guessed[len(text) + 1 :]
            found.append(look | {"pass": passes, "waiting": waiting, "rows": _rows(p[i], q[i], look)})
            text.append(look["said"])
            if look["kind"] == "rejected":
                break
    return found[:looks]


def _read(model: MiniMindForCausalLM, text: list[int]) -> NDArray[np.float64]:
    """The distributions of the next word at every position, [S, V]."""
    with torch.no_grad():
        return model(torch.tensor([text])).logits[0].double().softmax(-1).numpy()


def _rows(p: Probabilities, q: Probabilities, look: dict[str, Any]) -> list[list[float]]:
    """(word, p, q) of the words of a look and the likeliest others, the likeliest first, in thousandths."""
    most = np.maximum(p, q)
    most[[look["word"], look["said"]]] += 1
    chosen = np.argsort(-most, kind="stable")[:SHOWN]
    ordered = sorted(chosen.tolist(), key=lambda word: -max(p[word], q[word]))
    return [[word, round(1000 * float(p[word])), round(1000 * float(q[word]))] for word in ordered]


@cache
def runs() -> dict[str, list[dict[str, Any]]]:
    """The looks of each seed."""
    short = lambda look: look | {"dart": round(1000 * look["dart"], 1)}  # noqa: E731
    return {str(seed): [short(look) for look in speculate(seed)] for seed in SEEDS}


class GuessAhead(Figure):
    """Speculative decoding, one checked word after the other: both models' bars, the dart, and the text.

    Args:
        step: which of the 20 looks, from 1.
        seed: of all draws, one of SEEDS.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("step", "seed")

    step = Int(1, min=1, max=LOOKS).tag(sync=True)
    seed = Enum(SEEDS, default_value=SEEDS[0]).tag(sync=True)
    # what follows from the weights and the seeds
    words = List(read_only=True).tag(sync=True)
    start = List(read_only=True).tag(sync=True)
    runs = Dict(read_only=True).tag(sync=True)

    @default("words")
    def _words_of_the_world(self) -> list[str]:
        return list(world.WORDS)

    @default("start")
    def _ids_of_the_start(self) -> list[int]:
        return world.encode(START).tolist()

    @default("runs")
    def _looks_of_the_seeds(self) -> dict[str, list[dict[str, Any]]]:
        return runs()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        look = self.runs[str(self.seed)][self.step - 1]
        name = world.WORDS[look["word"]]
        fate = {
            "kept": f"the draft's “{name}” is kept",
            "rejected": f"the draft's “{name}” is rejected, and “{world.WORDS[look['said']]}” drawn from the leftovers",
            "free": f"all guesses were kept, and “{name}” comes for free",
        }[look["kind"]]
        rows = [
            (world.WORDS[word], f"large model {p / 10:.0f} %, draft {q / 10:.0f} %, both {min(p, q) / 10:.0f} %")
            for word, p, q in look["rows"]
        ]
        return f"Word {self.step} after “{START}”, in pass {look['pass']} of the large model: {fate}.", rows
