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
    rows = np.zeros((len(words), len(WORDS)))
    house = House()
    options, begun = house.sentences(), 1  # what the words since `begun` may become
    for end in range(1, len(words) + 1):
        for probability, sentence in options:
            rows[end - 1, sentence.ids[end - begun]] += probability
        rows[end - 1] /= rows[end - 1].sum()
        if end == len(words):
            break
        allowed = sorted({sentence.ids[end - begun] for _, sentence in options})
        options = [(p, s) for p, s in options if s.ids[end - begun] == story[end]]
        if not options:
            text, rest = decode(story[:end]), ", ".join(words_of(allowed))
            raise ValueError(f"{words[end]!r} cannot follow {text!r}; what can: {rest}")
        if len(options[0][1].ids) == end + 1 - begun:  # nothing else begins like a whole sentence
            house.happen(options[0][1])
            options, begun = house.sentences(), end + 1
    return rows


def next_word_distribution(prefix: Sequence[int] | np.ndarray) -> np.ndarray:
    """The exact distribution [V] of the word after a prefix [S]; raises a ValueError as `distributions` does."""
    return distributions(prefix)[-1]


def entropies(story: Sequence[int] | np.ndarray) -> np.ndarray:
    """The exact entropy [T - 1] in nats of each word of a story [T] after the first, given all words before it."""
    rows = distributions(story)[:-1]
    return -(rows * np.log(np.where(rows > 0, rows, 1))).sum(-1)
