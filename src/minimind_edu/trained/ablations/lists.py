"""Lists: tasks that a very small model can learn, of which each needs something else, with their exact entropy.

    <s> reverse 3 1 4 = 4 1 3 ; sort 5 2 = 2 5 ; copy 7 7 0 1 9 = 7 7 0 1 9 ; ...

Task, length and digits are drawn evenly; everything after "=" follows from what was asked. A row is cut at its length.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from minimind_edu.validation import check_count
from minimind_edu.world.house import Dice

TASKS: dict[str, Callable[[list[int]], list[int]]] = {
    "copy": list,
    "reverse": lambda digits: digits[::-1],
    "sort": sorted,
}
WORDS = ["<s>", ";", "=", *TASKS, *"0123456789"]
IDS = {word: i for i, word in enumerate(WORDS)}
BOS, END, EQUALS, ZERO = IDS["<s>"], IDS[";"], IDS["="], IDS["0"]
DIGITS = len(WORDS) - ZERO
SHORTEST, LONGEST = 2, 5  # digits of a list in training


@dataclass(frozen=True)
class Answer:
    """Where a row holds a whole answer: row[start:end], its ";" included."""

    task: str
    start: int
    end: int


def encode(text: str) -> np.ndarray:
    """The ids [S] of words separated by spaces; raises a ValueError that names what is no word."""
    if unknown := [word for word in text.split() if word not in IDS]:
        raise ValueError(f"{unknown[0]!r} is no word of the lists; they are {' '.join(WORDS)}")
    return np.array([IDS[word] for word in text.split()], dtype=np.int64)


def decode(ids: np.ndarray) -> str:
    """The text of ids [S]."""
    return " ".join(WORDS[int(i)] for i in ids)


def write_rows(
    batch_size: int,
    length: int = 48,
    seed: int | np.random.Generator = 0,
    digits: tuple[int, int] = (SHORTEST, LONGEST),
) -> np.ndarray:
    """The ids [B, T] of rows of tasks, the same for a seed on every machine.

    Args:
        batch_size: how many rows.
        length: T, how many words, `<s>` among them.
        seed: a whole number of at least 0, or a generator that goes on where it is.
        digits: the fewest and the most digits of a list.
    """
    check_count("batch_size", batch_size)
    check_count("length", length)
    dice, (shortest, longest) = Dice(seed), digits
    kinds, lengths, every = [1] * len(TASKS), [1] * (longest - shortest + 1), [1] * DIGITS
    found = []
    for _ in range(batch_size):
        row = [BOS]
        while len(row) < length:
            task = list(TASKS)[dice(kinds)]
            asked = [dice(every) for _ in range(shortest + dice(lengths))]
            row += [IDS[task], *(ZERO + d for d in asked), EQUALS, *(ZERO + d for d in TASKS[task](asked)), END]
        found.append(row[:length])
    return np.array(found, dtype=np.int64)


def distributions(row: np.ndarray) -> np.ndarray:
    """The exact distributions [T, V] of the word after each word of a row [T] of lists of 2 to 5 digits."""
    exact = np.zeros((len(row), len(WORDS)))
    task, asked, due = "", [], []  # due: what is left of the answer
    for p, word in zip(exact, row, strict=True):
        if word in (BOS, END):
            p[[IDS[name] for name in TASKS]] = 1 / len(TASKS)
            continue
        if WORDS[word] in TASKS:
            task, asked = WORDS[word], []
        elif word == EQUALS:
            due = [*(ZERO + d for d in TASKS[task](asked)), END]
        elif not due:
            asked.append(int(word) - ZERO)
        if due:
            p[due.pop(0)] = 1
        else:
            # all lengths are equally likely: of those still possible, one is this one
            p[EQUALS] = 1 / (LONGEST + 1 - len(asked)) if len(asked) >= SHORTEST else 0
            p[ZERO:] = (1 - p[EQUALS]) / DIGITS
    return exact


def entropy(rows: np.ndarray) -> float:
    """The exact entropy in nats a word, averaged over the words of rows [B, T] after the first."""
    exact = np.stack([distributions(row) for row in rows])[:, :-1]
    return float(-(exact * np.log(np.where(exact > 0, exact, 1))).sum(-1).mean())


def answers(row: np.ndarray) -> Iterator[Answer]:
    """The whole answers of a row [T]."""
    task, start = "", None
    for at, word in enumerate(row):
        if WORDS[word] in TASKS:
            task = WORDS[word]
        elif word == EQUALS:
            start = at + 1
        elif word == END and start is not None:
            yield Answer(task, start, at + 1)
            start = None
