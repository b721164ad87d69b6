"""Which tokens of a chat count: the answers, and the token that ends each of them.

A template writes who speaks around what is said, all as tokens of one row. Fine-tuning predicts every token of that row
and counts the loss of some: labels that do not count are -100, as PyTorch's cross-entropy leaves out. A mask of the
loss hides nothing from attention, and a mask of attention takes no loss away.

MiniMind: `dataset/lm_dataset.py`, SFTDataset.generate_labels. Answers alone: Ouyang et al. 2022, arXiv 2203.02155.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from minimind_edu.validation import check_tensor, whole_numbers

IGNORED = -100  # the label that no loss counts


def answer_labels(ids: Tensor, begin: Sequence[int], end: Sequence[int]) -> Tensor:
    """The labels of chats, -100 but at the tokens of every answer and of its `end`.

    Args:
        ids: chats as token ids, `[B, S]`.
        begin: the tokens after which an answer begins, as `<s> assistant`.
        end: the tokens that close it, which count; an answer that is cut off counts to the end of its row.

    Returns labels `[B, S]`, one for each token and not yet shifted. Raises a ValueError for ids that are no batch, or
    without tokens to search for.
    """
    check_tensor("ids", ids, "of integers [B, S]")
    if ids.dim() != 2:
        raise ValueError(f"ids must be [B, S], a row for each chat, got {list(ids.shape)}; one chat is ids[None]")
    begin, end = whole_numbers(begin), whole_numbers(end)
    if not begin or not end:
        raise ValueError(f"answers need tokens that begin and end them, got {begin} and {end}")
    labels = torch.full_like(ids, IGNORED)
    for row, known in zip(labels, ids.tolist(), strict=True):
        for first, place in answer_places(known, begin, end):
            row[first:place] = torch.tensor(known[first:place])
    return labels


def answer_places(row: Sequence[int], begin: Sequence[int], end: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Of each answer of one chat: the place where it begins, and the one behind its `end`, or behind the whole row."""
    place = 0
    while (first := _find(row, begin, place)) is not None:
        first += len(begin)
        closed = _find(row, end, first)
        place = len(row) if closed is None else closed + len(end)
        yield first, place


def _find(row: Sequence[int], wanted: Sequence[int], start: int) -> int | None:
    """Where `wanted` begins in a row, at `start` or after it."""
    places = range(start, len(row) - len(wanted) + 1)
    return next((place for place in places if row[place : place + len(wanted)] == wanted), None)
