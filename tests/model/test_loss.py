"""The loss compares each position with the token that follows, and says when there is none."""

import math

import pytest
import torch
import torch.nn.functional as F
from model_builders import tensor, token_ids

from minimind_edu.model.loss import next_token_loss

LOGITS, IDS = tensor(2, 6, 61), token_ids(2, 6)


def test_each_position_is_compared_with_the_next_label():
    probabilities = LOGITS.softmax(-1)
    losses = [-math.log(probabilities[b, s, IDS[b, s + 1]].item()) for b in range(2) for s in range(5)]
    assert next_token_loss(LOGITS, IDS).item() == pytest.approx(sum(losses) / 10, rel=1e-5)


def test_label_zero_counts_as_any_other():
    labels = torch.zeros_like(IDS)
    expected = F.cross_entropy(LOGITS[:, :5].flatten(0, 1), labels[:, 1:].flatten())
    assert next_token_loss(LOGITS, labels).item() == pytest.approx(expected.item(), rel=1e-5)


def test_labels_in_int32_give_the_same_loss():
    assert torch.equal(next_token_loss(LOGITS, IDS.int()), next_token_loss(LOGITS, IDS))


def test_ignored_labels_do_not_count():
    labels = IDS[:1].clone()
    labels[:, :4] = -100
    expected = F.cross_entropy(LOGITS[0, 3:5], IDS[0, 4:])
    assert next_token_loss(LOGITS[:1], labels).item() == pytest.approx(expected.item(), rel=1e-5)


def test_half_precision_logits_are_compared_in_float32():
    logits = LOGITS.half()
    assert torch.equal(next_token_loss(logits, IDS), next_token_loss(logits.float(), IDS))


BAD_LABELS = {
    "of another shape": (IDS[:, :4], r"need the logits of all positions, got labels \[2, 4\] and logits for \[2, 6\]"),
    "outside the vocabulary": (IDS + 58, r"labels \(-100 is left out\): token ids must lie in \[0, 61\), got ids from"),
    "below zero": (torch.where(IDS == IDS[0, 1], -1, IDS), "token ids must lie in .* got ids from -1"),
    "all left out": (torch.full((2, 6), -100), r"needs a label to predict: .* -100 is left out; got labels \[2, 6\]"),
    "left out but the first": (F.pad(IDS[:, :1], (0, 5), value=-100), "a loss needs a label to predict"),
    "in a list": (IDS.tolist(), "labels must be a tensor of integers .* got list"),
}


@pytest.mark.parametrize("case", BAD_LABELS)
def test_rejects_labels_that_cannot_be_predicted(case):
    labels, message = BAD_LABELS[case]
    with pytest.raises(ValueError, match=message):
        next_token_loss(LOGITS, labels)


def test_rejects_a_single_position():
    with pytest.raises(ValueError, match="the first of a row has nothing before it"):
        next_token_loss(LOGITS[:, :1], IDS[:, :1])
