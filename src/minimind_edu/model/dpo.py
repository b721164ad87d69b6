"""DPO: of two answers one is preferred, and the model moves away from what it was by that preference alone.

    margin = (log p(chosen) - log p_ref(chosen)) - (log p(rejected) - log p_ref(rejected))
    loss   = -log sigmoid(beta · margin)

The model begins as its own reference, so every margin is 0 and every loss -log sigmoid(0) = ln 2 = 0.693. Only the
difference of the two answers is asked for: both may become less likely. Rafailov et al. 2023, arXiv 2305.18290.

MiniMind: `trainer/train_dpo.py`, dpo_loss.
"""

import torch.nn.functional as F
from torch import Tensor

from minimind_edu.model.chat import IGNORED
from minimind_edu.model.loss import check_labels
from minimind_edu.validation import check_number


def answer_log_probability(logits: Tensor, labels: Tensor) -> Tensor:
    """How likely each row's counted tokens are together: the sum of their log-probabilities, `[B]`.

    Args:
        logits: `[B, S, V]`.
        labels: `[B, S]`, -100 at what does not count; position s is compared with label s + 1.

    Raises:
        ValueError: for labels that do not fit the logits.
    """
    check_labels(labels, logits.shape)
    following = labels[:, 1:]  # [B, S - 1]
    counts = following != IGNORED
    log_p = logits[:, :-1].float().log_softmax(-1)
    chosen = log_p.gather(-1, following.masked_fill(~counts, 0)[..., None])[..., 0]
    return (chosen * counts).sum(-1)


def dpo_loss(log_p: Tensor, log_p_reference: Tensor, beta: float = 0.1) -> tuple[Tensor, Tensor]:
    """The mean loss, and the margin of each pair.

    Args:
        log_p: of `answer_log_probability`, `[2 * pairs]`: first all chosen answers, then the rejected ones in order.
        log_p_reference: the same of the frozen reference.
        beta: how much a margin weighs; above 0.

    Returns the loss, a scalar, and the margins `[pairs]`, without beta. Raises a ValueError for another shape or beta.
    """
    check_number("beta", beta, "above 0")
    if log_p.shape != log_p_reference.shape or log_p.dim() != 1 or len(log_p) % 2:
        raise ValueError(
            "dpo_loss needs two vectors [2 * pairs], chosen answers and then the rejected ones, got "
            f"{list(log_p.shape)} and {list(log_p_reference.shape)}"
        )
    chosen, rejected = (log_p - log_p_reference).chunk(2)  # log-ratios, [pairs] each
    margin = chosen - rejected
    return -F.logsigmoid(beta * margin).mean(), margin
