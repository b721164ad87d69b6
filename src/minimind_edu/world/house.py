"""The grammar of the house, in one method: `House.sentence(pick)`.

`pick(weights)` returns an index. With `Dice` the grammar writes stories. With `Replay`, over all picks, it lists every
sentence that may come next with its probability, and from that list follows the exact distribution of the next word.
The weights are whole numbers, so that a port to another language can find the same fractions.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from minimind_edu.world.words import IDS, NOBODY, OBJECTS, PEOPLE, PHRASES, PLACES, PRONOUNS, TRANSLATE

CAST, PROPS, ROOMS = 3, 3, 4  # the most people, objects and places of one story

# P and Q are people, X is an object, A and B are places. The subject of a sentence is what it tells something about: a
# small model learns who has the ball only where "the ball" comes before the person, as in the question.
SENTENCES = {
    "is": ("P|is in the|A|.", "P|在|A|。"),
    "go": ("P|goes from the|A|to the|B|.", "P|从|A|去|B|。"),
    "take": ("the|X|is picked up by|P|in the|A|.", "X|被|P|在|A|拿起了|。"),
    "drop": ("the|X|is put down by|P|in the|A|.", "X|被|P|在|A|放下了|。"),
    "give": ("the|X|is given by|P|to|Q|.", "X|被|P|交给了|Q|。"),
    "where": ("where is|P|?|in the|A|.", "P|在哪里|？|在|A|。"),
    "where object": ("where is|the|X|?|in the|A|.", "X|在哪里|？|在|A|。"),
    "who": ("who has the|X|?|Q|.", "谁拿着|X|？|Q|。"),
    "people": ("where is|everybody|?", "大家|在哪里|？"),  # then P : A , P : A .
    "objects": ("who has what|?", "谁拿着|什么|？"),  # then X : Q , X : Q .
}
FORMS = {kind: tuple(form.split("|") for form in both) for kind, both in SENTENCES.items()}
SLOTS = {"P": PEOPLE, "Q": PEOPLE, "X": OBJECTS, "A": PLACES, "B": PLACES}
WEIGHTS = {"is": 40, "go": 14, "take": 60, "drop": 8, "give": 30}  # what is told
WEIGHTS |= {"where": 6, "where object": 6, "who": 8, "people": 10, "objects": 50}  # what is asked
TOLD = ("is", "go", "take", "drop", "give")
BY_OBJECTS = ("where object", "who")  # weighs more with the square of the objects: one object has one answer
AFTER_QUESTION = 4  # times as likely is it then that something is told: a second question often has the same answer
LANGUAGE = (5, 1)  # that of the sentence before, or the other one
TRANSLATION = (4, 1)  # after a statement: something new, or its translation
PRONOUN = (3, 2)  # where one is possible: the name, or the pronoun

Pick = Callable[[Sequence[int]], int]


class Sentence(NamedTuple):
    """One sentence: what it is about, and its words."""

    kind: str  # a key of SENTENCES, or "translation"
    language: int  # 0 or 1, of LANGUAGES
    slots: dict[str, int]  # a letter -> the index of its person, object or place
    ids: list[int]


def pick_one(pick: Pick, items: Sequence):
    """One of the items, each as likely as the others."""
    return items[pick([1] * len(items))]


def old_or_new(pick: Pick, old: Sequence, new: Sequence):
    """One of the items; where there are both, the old and the new ones are equally likely."""
    return pick_one(pick, (old, new)[pick([1, 1])] if old and new else old or new)


class House:
    """What a text has told so far, and what may come next. `languages` are those of the sentences to come."""

    def __init__(self, languages: Sequence[int] = (0, 1)):
        self.languages = languages
        self.place: dict[int, int] = {}  # person -> place
        self.holder: dict[int, int] = {}  # object -> person or NOBODY
        self.lies: dict[int, int] = {}  # object that nobody holds -> place
        self.seen: list[int] = []  # the places that were mentioned
        self.spoken: int | None = None  # the language of the sentence before
        self.statement: Sentence | None = None  # the sentence before, if a translation may follow
        self.asked = False  # whether the sentence before was a question
        self.named: list[int] = []  # the people of the statement before, whom "she" or "he" may mean
        self._look()

    def _look(self) -> None:
        """Find out who can do what."""
        people, objects = list(self.place), list(self.holder)
        self.held = {p: [x for x in objects if self.holder[x] == p] for p in people}
        free = [p for p in people if not self.held[p]]  # everybody holds one thing at most: who has it matters
        self.near = {p: [q for q in free if q != p and self.place[q] == self.place[p]] for p in people}
        self.lying = {p: [x for x in self.lies if self.lies[x] == self.place[p]] for p in people}
        self.unseen = [x for x in range(8) if x not in self.holder] if len(objects) < PROPS else []
        self.unvisited = [a for a in range(8) if a not in self.seen] if len(self.seen) < ROOMS else []
        self.able = {
            "is": [p for p in range(8) if p not in self.place] if len(people) < CAST else [],
            "go": people,
            "take": [p for p in free if self.lying[p] or self.unseen],
            "drop": [p for p in people if self.held[p]],
            "give": [p for p in people if self.held[p] and self.near[p]],
            "where": people,
            "where object": objects,
            "who": objects,
            "people": list(itertools.permutations(people)) if len(people) > 1 else [],
            "objects": list(itertools.permutations(objects)) if len(objects) > 1 else [],
        }
        self.kinds = [kind for kind in WEIGHTS if self.able[kind]]
        self.weights = [self._weight(kind) for kind in self.kinds]

    def place_of(self, x: int) -> int:
        """Where an object is: where it lies, or where its holder is."""
        return self.lies[x] if self.holder[x] == NOBODY else self.place[self.holder[x]]

    def sentence(self, pick: Pick) -> Sentence:
        """Choose one sentence that may come next; `happen` makes it true."""
        if self.statement and pick(TRANSLATION):
            language, slots = 1 - self.statement.language, self.statement.slots
            return Sentence("translation", language, slots, [TRANSLATE, *say(self.statement.kind, language, slots)])
        language = self._language(pick)
        kind = self.kinds[pick(self.weights)]
        who = pick_one(pick, self.able[kind])  # or which object, or in which order
        if kind in ("people", "objects"):
            pairs = [(p, self.place[p]) for p in who] if kind == "people" else [(x, self.holder[x]) for x in who]
            return Sentence(kind, language, {}, roll_call(kind, language, pairs))
        if kind == "where object":
            slots = {"X": who, "A": self.place_of(who)}
        elif kind == "who":
            slots = {"X": who, "Q": self.holder[who]}
        elif kind == "is":
            slots = {"P": who, "A": self._somewhere(pick)}
        else:
            slots = {"P": who, "A": self.place[who]}
        pronoun = None
        if kind == "go":
            alike = [p for p in self.named if p % 2 == who % 2]
            pronoun = PRONOUNS[language][who % 2] if alike == [who] and pick(PRONOUN) else None
        if kind == "go":
            slots["B"] = self._somewhere(pick, slots["A"])
        elif kind == "take":
            slots["X"] = old_or_new(pick, self.lying[who], self.unseen)
        elif kind in ("drop", "give"):
            slots["X"] = pick_one(pick, self.held[who])
        if kind == "give":
            slots["Q"] = pick_one(pick, self.near[who])
        return Sentence(kind, language, slots, say(kind, language, slots, pronoun))

    def _language(self, pick: Pick) -> int:
        if self.spoken is None or len(self.languages) == 1:
            return pick_one(pick, self.languages)
        return (self.spoken, 1 - self.spoken)[pick(LANGUAGE)]

    def _weight(self, kind: str) -> int:
        """How likely a kind of sentence is now, compared with the others."""
        if kind in TOLD:
            return WEIGHTS[kind] * (AFTER_QUESTION if self.asked else 1)
        return WEIGHTS[kind] * (len(self.holder) ** 2 if kind in BY_OBJECTS else 1)

    def _somewhere(self, pick: Pick, but: int | None = None) -> int:
        return old_or_new(pick, [a for a in self.seen if a != but], self.unvisited)

    def happen(self, sentence: Sentence) -> None:
        """Change the house as the sentence says."""
        kind, slots, self.spoken = sentence.kind, sentence.slots, sentence.language
        self.statement = sentence if kind in TOLD else None
        if kind == "translation":
            return
        self.asked = kind not in TOLD
        self.named = [slots[letter] for letter in "PQ" if letter in slots] if kind in TOLD else []
        if kind in ("is", "go"):
            self.place[slots["P"]] = goal = slots["A" if kind == "is" else "B"]
            self.seen += [goal] if goal not in self.seen else []
        elif kind in ("take", "give"):
            self.holder[slots["X"]] = slots["P" if kind == "take" else "Q"]
            self.lies.pop(slots["X"], None)
        elif kind == "drop":
            self.holder[slots["X"]], self.lies[slots["X"]] = NOBODY, slots["A"]
        self._look()

    def sentences(self) -> list[tuple[float, Sentence]]:
        """Every sentence that may come next with its probability: the grammar, replayed over all picks."""
        found, path = [], []
        while True:
            replay = Replay(path)
            sentence = self.sentence(replay)
            found.append((replay.probability, sentence))
            while path and path[-1] == replay.widths[len(path) - 1] - 1:
                path.pop()
            if not path:
                return found
            path[-1] += 1


class Replay:
    """A pick that follows a path of choices, and takes the first one where the path ends."""

    def __init__(self, path: list[int]):
        self.path, self.widths, self.probability = path, [], 1.0

    def __call__(self, weights: Sequence[int]) -> int:
        width, depth = len(weights), len(self.widths)
        if width == 1:
            return 0
        if depth == len(self.path):
            self.path.append(0)
        choice = self.path[depth]
        self.widths.append(width)
        self.probability *= weights[choice] / sum(weights)
        return choice


class Dice:
    """A random pick. It takes the raw numbers of the generator, which numpy keeps the same on every machine."""

    def __init__(self, seed: int | np.random.Generator):
        generator = seed if isinstance(seed, np.random.Generator) else np.random.Generator(np.random.PCG64(seed))
        self.raw, self.numbers = generator.bit_generator.random_raw, []

    def __call__(self, weights: Sequence[int]) -> int:
        if len(weights) == 1:
            return 0
        self.numbers = self.numbers or self.raw(64).tolist()
        rest = self.numbers.pop() % sum(weights)  # of 64 bits: uniform as far as a float can tell
        for choice, weight in enumerate(weights):
            if rest < weight:
                return choice
            rest -= weight
        raise AssertionError("the weights are whole numbers")


def say(kind: str, language: int, slots: dict[str, int], pronoun: str | None = None) -> list[int]:
    """The ids of one sentence; a pronoun takes the place of P."""
    words = []
    for word in FORMS[kind][language]:
        if word == "P" and pronoun:
            word = pronoun
        elif word in SLOTS:
            word = SLOTS[word][language][slots[word]]
        words.append(IDS[word])
    return words


def roll_call(kind: str, language: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The ids of a roll call: of people and their places, or of objects and their holders."""
    keys, values = (PEOPLE, PLACES) if kind == "people" else (OBJECTS, PEOPLE)
    stop, _, colon, comma = PHRASES[language][-4:]
    words = [*FORMS[kind][language]]
    for key, value in pairs:
        words += [keys[language][key], colon, values[language][value], comma]
    return [IDS[word] for word in [*words[:-1], stop]]
