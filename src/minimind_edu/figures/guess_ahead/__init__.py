"""GuessAhead: speculative decoding with the reader as the draft: who guesses, what stays, and what comes out.

Both models are asked here, once for every text that a round can reach; the page draws the rounds from a seed.
"""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from traitlets import Dict, Enum, Int, List, default

from minimind_edu import world
from minimind_edu.trained.living import draft_model, living_model
from minimind_edu.web.base import Figure
from minimind_edu.world.words import IDS, PLACES

START = "Mia is in the hall. Tom is in the kitchen. Mia goes from the hall to the"
FIRST = ("kitchen", "attic", "garden", "cellar", "hall")  # what a reader may guess, place by place
SECOND = (".", "?")
THIRD = ("the", "⇒", "where is", "Mia", "Tom")
OTHERS = -1  # stands for all words that are too seldom to be listed
MOST = 5_000  # rounds
Row = tuple[int, int, int]  # word, and its probabilities by the large model and the draft, in thousandths
Probabilities = NDArray[np.float64]  # [V]


def comes_out(p: Probabilities, q: Probabilities, rule: str = "leftovers") -> Probabilities:
    """What is written in the place of one guess, exactly: a word of q that p checks, [V].

    Args:
        p, q: the distributions of the large model and of whoever guesses, [V]; a reader's q is 1 for the guess.
        rule: what takes the place of a rejected guess: `leftovers`, a word from max(0, p - q); `all`, one from p.
    """
    kept = np.minimum(p, q)
    left = p if rule == "all" else np.maximum(p - q, 0)
    return kept + (1 - kept.sum()) * left / left.sum() if left.any() else kept


@cache
def tree() -> dict[str, list[Row]]:
    """The words that may follow START and each beginning of a round, by its ids: the likeliest rows first."""
    after = [[]] + [[IDS[place]] for place in PLACES[0]]
    after += [[*place, IDS[mark]] for place in after[1:] for mark in SECOND]
    start, found = world.encode(f"<s> {START}").tolist(), {}
    models = living_model(), draft_model()
    for ids in after:
        with torch.no_grad():
            p, q = (model(torch.tensor([start + ids])).logits[0, -1].double().softmax(-1).numpy() for model in models)
        found[" ".join(map(str, ids))] = _rows(p, q)
    return found


def _rows(p: Probabilities, q: Probabilities) -> list[Row]:
    large, small = ((1000 * shares).round().astype(int).tolist() for shares in (p, q))
    order = np.argsort(-p, kind="stable").tolist()
    rows = [(word, large[word], small[word]) for word in order if large[word] or small[word]]
    return [*rows, (OTHERS, max(0, 1000 - sum(row[1] for row in rows)), max(0, 1000 - sum(row[2] for row in rows)))]


class GuessAhead(Figure):
    """Three words are guessed, the large model keeps or rejects them, and what came out is counted.

    Args:
        shows: who guesses: `you`, three words that are always the same, or `draft`, the small model, which draws them.
        first, second, third: the reader's words, of FIRST, SECOND and THIRD.
        rule: what takes the place of a rejected guess, as in `comes_out`.
        rounds: 0 to 5000.
        seed: of all draws.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "first", "second", "third", "rule", "rounds")

    shows = Enum(("you", "draft"), default_value="you").tag(sync=True)
    first = Enum(FIRST, default_value=FIRST[0]).tag(sync=True)
    second = Enum(SECOND, default_value=SECOND[0]).tag(sync=True)
    third = Enum(THIRD, default_value=THIRD[0]).tag(sync=True)
    rule = Enum(("leftovers", "all"), default_value="leftovers").tag(sync=True)
    rounds = Int(0, min=0, max=MOST).tag(sync=True)
    seed = Int(0, min=0, max=2**31 - 1).tag(sync=True)
    # what follows from the weights
    words = List(read_only=True).tag(sync=True)
    choices = List(read_only=True).tag(sync=True)
    places = List(read_only=True).tag(sync=True)
    start = List(read_only=True).tag(sync=True)
    tree = Dict(read_only=True).tag(sync=True)

    @default("words")
    def _words_of_the_world(self) -> list[str]:
        return list(world.WORDS)

    @default("choices")
    def _ids_of_the_choices(self) -> list[list[int]]:
        return [[IDS[word] for word in words] for words in (FIRST, SECOND, THIRD)]

    @default("places")
    def _ids_of_the_places(self) -> list[int]:
        return [IDS[place] for place in PLACES[0]]

    @default("start")
    def _ids_of_the_start(self) -> list[int]:
        return world.encode(START).tolist()

    @default("tree")
    def _asked_of_both_models(self) -> dict[str, list[Row]]:
        return tree()

    def long_run(self) -> list[tuple[str, float, float, float]]:
        """Each listed first word, its p and q, and the share of rounds in which it comes out, in the long run."""
        words, p, q = self._listed("")
        if self.shows == "you":
            q = np.array([float(word == IDS[self.first]) for word in words])
        names = [world.WORDS[word] if word != OTHERS else "others" for word in words]
        return list(zip(names, p.tolist(), q.tolist(), comes_out(p, q, self.rule).tolist(), strict=True))

    def words_per_round(self) -> float:
        """How many words a round writes on average: the kept ones, and one that the large model adds."""
        return 1 + self._kept([])

    def _kept(self, path: list[int]) -> float:
        """Guesses that are kept on average, after these."""
        if len(path) == len(self.choices) or " ".join(map(str, path)) not in self.tree:
            return 0.0
        words, p, q = self._listed(" ".join(map(str, path)))
        if self.shows == "you":
            q = np.array([float(word == IDS[(self.first, self.second, self.third)[len(path)]]) for word in words])
        shares = zip(words, np.minimum(p, q).tolist(), strict=True)
        return sum(share * (1 + self._kept([*path, word])) for word, share in shares if share)

    def _listed(self, path: str) -> tuple[list[int], Probabilities, Probabilities]:
        words, p, q = zip(*self.tree[path], strict=True)
        return list(words), np.array(p) / sum(p), np.array(q) / sum(q)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        who = f"“{self.first} {self.second} {self.third}” is" if self.shows == "you" else "what the draft draws is"
        place = {"leftovers": "the leftovers", "all": "all of the large model's words"}[self.rule]
        shown = [row for row in self.long_run() if max(row[1:]) >= 0.005]
        rows = [(name, f"large model {_percent(p)}, comes out {_percent(out)}") for name, p, _, out in shown]
        rows.append(("words per round", f"{self.words_per_round():.2f}"))
        return f"After “{START}” {who} guessed; a rejected word is replaced from {place}. In the long run:", rows


def _percent(share: float) -> str:
    return f"{int(100 * share + 0.5 + 1e-9)} %"  # halves rise, as in the page
