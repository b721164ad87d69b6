"""Which tokens of a chat count for the loss: those of its answers, and the token that ends each.

MiniMind finds an answer by what stands before it, `<|im_start|>assistant` and a line break, and by what ends it,
`<|im_end|>` and a line break, which counts, too. An answer that is cut counts as far as it goes.
MiniMind: `dataset/lm_dataset.py`, SFTDataset.generate_labels, as of commit d65ef2c.
"""

from collections.abc import Sequence

from minimind_edu.model.chat import answer_places


def answer_mask(ids: Sequence[int], opening: Sequence[int], closing: Sequence[int]) -> list[bool]:
    """For each token, whether it counts.

    Args:
        ids: of a whole chat, cut to the greatest length.
        opening, closing: the tokens before an answer, and those that end it.
    """
    mask = [False] * len(ids)
    for first, place in answer_places(list(ids), list(opening), list(closing)):
        mask[first:place] = [True] * (place - first)
    return mask


def counted(mask: Sequence[bool]) -> int:
    """How many predictions count: nothing predicts the first token."""
    return sum(mask[1:])
