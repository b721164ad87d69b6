"""What training lowers: how surprised the model is by the token that follows.

MiniMind: in `model/model_minimind.py`, MiniMindForCausalLM.forward; before, in the trainers.
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from minimind_edu.validation import check_tensor, check_token_ids, values_are_known


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of the next token: the logits `[B, S, V]` at position s are compared with label s + 1.

    `labels`, `[B, S]`, are usually the ids that the model read; -100 is left out. Raises a ValueError for labels of
    another shape or outside the vocabulary, or if none is left to predict.
    """
    check_labels(labels, logits)
    # The labels move, not the logits: cutting off the last position would copy all the others, and their gradient.
    following = F.pad(labels[:, 1:].long(), (0, 1), value=-100)  # [B, S], nothing follows the last
    return F.cross_entropy(logits.flatten(0, 1).float(), following.flatten(), ignore_index=-100)


def check_labels(labels: Any, logits: Tensor, needed: bool = True) -> None:
    """Raise a ValueError unless `labels` are ids or -100, one for each of the logits.

    Args:
        labels: what was given.
        logits: `[B, S, V]`.
        needed: whether there must be one to predict: the mean over none is no number.
    """
    check_tensor("labels", labels, "of integers [B, S]")
    if labels.shape != logits.shape[:2]:
        raise ValueError(
            "labels must have the shape of input_ids and need the logits of all positions, "
            f"got labels {list(labels.shape)} and logits for {list(logits.shape[:2])}"
        )
    check_token_ids(labels.masked_fill(labels == -100, 0), logits.shape[-1], "labels (-100 is left out)")
    if needed and values_are_known(labels) and not bool((labels[:, 1:] != -100).any()):
        raise ValueError(
            "a loss needs a label to predict: the first of a row has nothing before it, and -100 is left out; "
            f"got labels {list(labels.shape)} with no other"
        )
