"""Stories of the house, and the exact distribution of each of their words."""

from collections.abc import Sequence

import numpy as np

from minimind_edu.validation import check_count
from minimind_edu.world.house import Dice, House
from minimind_edu.world.words import BOS, LANGUAGES, WORDS, decode, words_of


def write_story(seed: int | np.random.Generator, length: int = 96, languages: str = "en zh") -> np.ndarray:
    """The ids [T] of one story, cut at `length`.

    Args:
        seed: a whole number of at least 0, or a generator that goes on where it is.
        length: how many words, `<s>` among them.
        languages: "en", "zh", or "en zh" for a coin before each sentence.
    """
    return stories(1, length, seed, languages)[0]


def stories(
    batch_size: int, length: int = 96, seed: int | np.random.Generator = 0, languages: str = "en zh"
) -> np.ndarray:
    """The ids [B, T] of stories, the same for a seed on every machine; `write_story` explains what is given."""
    check_count("batch_size", batch_size)
    check_count("length", length)
    dice, rows = Dice(seed), []
    for _ in range(batch_size):
        house, ids = House(language_indices(languages)), [BOS]
        while len(ids) < length:
            sentence = house.sentence(dice)
            house.happen(sentence)
            ids += sentence.ids
        rows.append(ids[:length])
    return np.array(rows, dtype=np.int64)


def language_indices(names: str) -> list[int]:
    """'en zh' -> [0, 1]; raises a ValueError for what names no languages of this world."""
    if names not in ("en", "zh", "en zh"):
        raise ValueError(f'languages must be "en", "zh" or "en zh", got {names!r}')
    return [LANGUAGES.index(name) for name in names.split()]


# Exact probabilities, of stories in both languages


def distributions(story: Sequence[int] | np.ndarray) -> np.ndarray:
    """The exact distributions [T, V] of the word after each word of a story [T], aligned like a model's logits.

    Raises a ValueError where a word cannot follow those before it.
    """
    words = words_of(story)
    if words[:1] != ["<s>"]:
        raise ValueError(f"a story begins with <s>, got {words[0] if words else 'no word'!r}")
    reader = Reader()
    rows = [reader.distribution()]
    for end in range(1, len(words)):
        if not reader.read(int(story[end])):
            allowed = ", ".join(words_of(np.flatnonzero(rows[-1])))
            raise ValueError(f"{words[end]!r} cannot follow {decode(story[:end])!r}; what can: {allowed}")
        rows.append(reader.distribution())
    return np.array(rows)


class Reader:
    """Reads a story word by word, from `<s>` on, and knows the exact distribution of the next one."""

    def __init__(self):
        self._house = House()
        self._begun: list[int] = []  # the words of the sentence that is being told
        self._options = self._house.sentences()  # what it may become, with probabilities

    def distribution(self) -> np.ndarray:
        """The exact distribution [V] of the next word."""
        row = np.zeros(len(WORDS))
        for probability, sentence in self._options:
            row[sentence.ids[len(self._begun)]] += probability
        return row / row.sum()

    def read(self, word: int) -> bool:
        """Whether this word can be the next one; if so, the story goes on with it."""
        place = len(self._begun)
        options = [(p, sentence) for p, sentence in self._options if sentence.ids[place] == word]
        if not options:
            return False
        self._options, self._begun = options, [*self._begun, word]
        if len(options[0][1].ids) == len(self._begun):  # nothing else begins like a whole sentence
            self._house.happen(options[0][1])
            self._options, self._begun = self._house.sentences(), []
        return True


def next_word_distribution(prefix: Sequence[int] | np.ndarray) -> np.ndarray:
    """The exact distribution [V] of the word after a prefix [S]; raises a ValueError as `distributions` does."""
    return distributions(prefix)[-1]


def entropies(story: Sequence[int] | np.ndarray) -> np.ndarray:
    """The exact entropy [T - 1] in nats of each word of a story [T] after the first, given all words before it."""
    rows = distributions(story)[:-1]
    return -(rows * np.log(np.where(rows > 0, rows, 1))).sum(-1)
