"""Questions about stories of the house, with their only right answers: what a trained model is judged by.

They are asked only where a guess can fail: where another person is elsewhere, or another object has another holder.
"""

from dataclasses import dataclass

import numpy as np

from minimind_edu.validation import check_count
from minimind_edu.world.house import Dice, House, Sentence
from minimind_edu.world.stories import language_indices
from minimind_edu.world.words import BOS, PLACES, WORDS

QUESTIONS = {  # kind -> the kinds of sentences that ask it
    "where": ("where",),
    "where object": ("where object",),
    "who": ("who",),
    "recall": ("go", "take", "drop"),  # the text itself repeats where somebody is
    "people": ("people",),
    "objects": ("objects",),
    "translation": ("translation",),
}
LONGEST = 15  # words of the longest sentence, a roll call of three
SHORTEST = 48  # words of a text with room for a story of two objects and a roll call of them


@dataclass(frozen=True)
class Question:
    """A text, and the only words that may follow it."""

    kind: str
    prompt: np.ndarray  # [S], begins with <s>
    answer: np.ndarray  # [answers]: one word, or the whole sentence of a translation


def questions(
    kind: str, count: int, seed: int | np.random.Generator, length: int = 96, story: str = "en zh", asked: str = "en zh"
) -> list[Question]:
    """Questions with their only right answers, each after a story of its own, at most `length` words in all.

    Args:
        kind: a key of QUESTIONS. "people" and "objects" ask for one entry of a roll call.
        count: how many.
        seed: a whole number of at least 0, or a generator that goes on where it is.
        length: the most words of prompt and answer together; stories of all lengths up to it occur.
        story, asked: the languages of the story and of the sentence that asks; a translation is asked for in the other
            language than that of the sentence before it.

    Raises a ValueError for another kind or language, and for a text too short to ask everything.
    """
    if kind not in QUESTIONS:
        raise ValueError(f"there are questions of the kinds {', '.join(QUESTIONS)}; got {kind!r}")
    check_count("count", count)
    check_count("length", length, at_least=SHORTEST)
    dice, found = Dice(seed), []
    while len(found) < count:
        house, ids, enough = House(language_indices(story)), [BOS], dice([1] * (length - 2 * LONGEST))
        while len(ids) < enough:
            sentence = house.sentence(dice)
            house.happen(sentence)
            ids += sentence.ids
        if kind != "translation":
            house.languages = language_indices(asked)
            if len(set(_answers_there_are(kind, house))) < 2:
                continue
        for _ in range(100):  # until the grammar asks; some stories give it nothing to ask
            sentence = house.sentence(dice)
            if sentence.kind in QUESTIONS[kind]:
                answers = _answers(kind, sentence)
                start, end = answers[dice([1] * len(answers))]
                prompt, answer = ids + sentence.ids[:start], sentence.ids[start:end]
                found.append(Question(kind, np.array(prompt, dtype=np.int64), np.array(answer, dtype=np.int64)))
                break
    return found


def _answers_there_are(kind: str, house: House) -> list[int]:
    """The answers to this question for everybody, or everything, of whom it can be asked."""
    if kind == "where object":
        return [house.place_of(x) for x in house.holder]
    return list(house.holder.values() if kind in ("who", "objects") else house.place.values())


def _answers(kind: str, sentence: Sentence) -> list[tuple[int, int]]:
    """Where in the sentence answers begin and end."""
    words = [WORDS[i] for i in sentence.ids]
    if kind == "translation":
        return [(1, len(words))]
    if kind == "who":
        return [(len(words) - 2, len(words) - 1)]
    if kind == "objects":
        return [(i + 1, i + 2) for i, word in enumerate(words) if word in (":", "：")]
    places = [(i, i + 1) for i, word in enumerate(words) if word in PLACES[sentence.language]]
    return places if kind == "people" else places[:1]  # someone who goes is in the first of the two places
