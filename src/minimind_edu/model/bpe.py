"""Byte-pair encoding: a text as pieces, learned by joining the most frequent pair of neighbors again and again.

The first 256 pieces are the bytes, so that every text in every language has ids, and each merge adds one piece. A piece
never crosses from one word into the next; a space belongs to the word that follows it.

The method: Gage 1994; for words: Sennrich, Haddow and Birch 2016, arXiv 1508.07909; for bytes: Radford et al. 2019
(GPT-2). MiniMind: `train_tokenizer.py`, which leaves the work to the library tokenizers and learns 6,400 pieces.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from minimind_edu.validation import check_count, whole_numbers

BYTES = 256
_WORD = re.compile(r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+")

Pair = tuple[int, int]
Ids = tuple[int, ...]


@dataclass(frozen=True)
class BPE:
    """The pieces, as the merges that made them: merge i joins two pieces into piece 256 + i.

    Raises:
        ValueError: if a merge joins what does not exist yet, or is joined already.
    """

    merges: tuple[Pair, ...] = ()

    def __post_init__(self) -> None:
        known: dict[Pair, int] = {}
        for i, pair in enumerate(self.merges):
            if len(pair) != 2 or not all(isinstance(piece, int) and 0 <= piece < BYTES + i for piece in pair):
                raise ValueError(
                    f"merge {i} may join two of the pieces 0 to {BYTES + i - 1}, which exist then; got {pair}"
                )
            if known.setdefault(pair, i) != i:
                raise ValueError(f"merge {i} joins {pair}, which merge {known[pair]} has joined already")

    @property
    def pieces(self) -> list[bytes]:
        """The bytes of every piece, by id."""
        found = [bytes([i]) for i in range(BYTES)]
        for left, right in self.merges:
            found.append(found[left] + found[right])
        return found

    def encode(self, text: str) -> list[int]:
        """The ids of a text: in every word, merges in the order in which they were learned."""
        learned = {pair: BYTES + i for i, pair in enumerate(self.merges)}
        words = words_of(text)
        known = {word: _joined(word, learned) for word in set(words)}
        return [piece for word in words for piece in known[word]]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; bytes that are no whole character become �.

        Raises:
            ValueError: for an id without a piece.
        """
        pieces, ids = self.pieces, whole_numbers(ids)
        if strange := [i for i in ids if not 0 <= i < len(pieces)]:
            raise ValueError(f"the ids of these pieces are 0 to {len(pieces) - 1}, got {strange[0]}")
        return b"".join(pieces[i] for i in ids).decode("utf-8", errors="replace")


def train(text: str, vocab_size: int) -> BPE:
    """Learn pieces from a text until there are `vocab_size`, or until every word is one piece.

    Of pairs that are equally frequent, the one with the smaller ids is joined.

    Raises:
        ValueError: if `vocab_size` has no room for the bytes.
    """
    check_count("vocab_size", vocab_size, at_least=BYTES)
    words, merges = Counter(words_of(text)), []
    for new in range(BYTES, vocab_size):
        pairs = count_pairs(words)
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        words = Counter({merge(word, best, new): count for word, count in words.items()})
    return BPE(tuple(merges))


def words_of(text: str) -> list[Ids]:
    """The words of a text as bytes; together they are the text."""
    return [tuple(word.encode()) for word in _WORD.findall(text)]


def count_pairs(words: Mapping[Ids, int]) -> Counter[Pair]:
    """How often two pieces are neighbors, from words with their counts."""
    pairs: Counter[Pair] = Counter()
    for word, count in words.items():
        for pair in zip(word, word[1:], strict=False):
            pairs[pair] += count
    return pairs


def merge(ids: Sequence[int], pair: Pair, new: int) -> Ids:
    """The ids with every `pair` replaced by `new`, a piece that `pair` does not contain.

    From left to right: of three equal neighbors the first two are joined.
    """
    joined: list[int] = []
    for piece in ids:
        joined.append(piece)
        if tuple(joined[-2:]) == pair:
            joined[-2:] = [new]
    return tuple(joined)


def _joined(word: Ids, learned: Mapping[Pair, int]) -> Ids:
    while True:
        possible = [pair for pair in zip(word, word[1:], strict=False) if pair in learned]
        if not possible:
            return word
        first = min(possible, key=lambda pair: learned[pair])
        word = merge(word, first, learned[first])
