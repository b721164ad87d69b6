"""What training lowers: how surprised the model is by the token that follows.

MiniMind: in `model/model_minimind.py`, MiniMindForCausalLM.forward; before, in the trainers.
"""

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from minimind_edu.validation import check_count, check_tensor, check_token_ids, values_are_known


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of the next token: the logits `[B, S, V]` at position s are compared with label s + 1.

    `labels`, `[B, S]`, are usually the ids that the model read; -100 is left out. Raises a ValueError for labels of
    another shape or outside the vocabulary, or if none is left to predict.
    """
    check_labels(labels, logits.shape)
    # The labels move, not the logits: cutting off the last position would copy all the others, and their gradient.
    following = F.pad(labels[:, 1:].long(), (0, 1), value=-100)  # [B, S], nothing follows the last
    return F.cross_entropy(logits.flatten(0, 1).float(), following.flatten(), ignore_index=-100)


def check_asked(input_ids: Any, labels: Any, logits_to_keep: Any, vocab_size: int) -> None:
    """Raise a ValueError unless these logits, and the loss of these labels, can be had of `input_ids`.

    Asked before the model works. Ids that are no batch are left to the model, which names what is wrong with them.
    """
    if not isinstance(input_ids, Tensor) or input_ids.dim() != 2:
        return
    batch, length = input_ids.shape
    check_count("logits_to_keep (0: all)", logits_to_keep, 0, length)
    if labels is not None:
        check_labels(labels, (batch, logits_to_keep or length, vocab_size))


def check_labels(labels: Any, logits_shape: Sequence[int], needed: bool = True) -> None:
    """Raise a ValueError unless `labels` are ids or -100, one for each of the logits.

    Args:
        labels: what was given.
        logits_shape: B, S and V of the logits.
        needed: whether there must be one to predict: the mean over none is no number.
    """
    check_tensor("labels", labels, "of integers [B, S]")
    if tuple(labels.shape) != tuple(logits_shape[:2]):
        raise ValueError(
            "labels must have the shape of input_ids and need the logits of all positions, "
            f"got labels {list(labels.shape)} and logits for {list(logits_shape[:2])}"
        )
    check_token_ids(labels.masked_fill(labels == -100, 0), logits_shape[-1], "labels (-100 is left out)")
    if needed and values_are_known(labels) and not bool((labels[:, 1:] != -100).any()):
        raise ValueError(
            "a loss needs a label to predict: the first of a row has nothing before it, and -100 is left out; "
            f"got labels {list(labels.shape)} with no other"
        )
