"""dpo: log-probabilities of answers, and a loss that asks for their difference alone."""

import math

import pytest
import torch
import torch.nn.functional as F
from model_builders import tensor

from minimind_edu.model.dpo import answer_log_probability, dpo_loss

LOGITS = tensor(2, 6, 11)
LABELS = torch.tensor([[-100, -100, 3, 4, 10, -100], [-100, 0, 7, -100, -100, -100]])


def test_an_answer_is_as_likely_as_its_tokens_together():
    p = LOGITS.double().softmax(-1)
    expected = [p[0, 1, 3] * p[0, 2, 4] * p[0, 3, 10], p[1, 0, 0] * p[1, 1, 7]]
    found = answer_log_probability(LOGITS, LABELS).double().exp()
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-5, atol=0)


def test_it_is_minus_the_sum_of_the_cross_entropy():
    for row in range(2):
        loss = F.cross_entropy(LOGITS[row, :-1], LABELS[row, 1:], ignore_index=-100, reduction="sum")
        assert answer_log_probability(LOGITS, LABELS)[row].item() == pytest.approx(-loss.item(), rel=1e-5)


def test_the_loss_by_hand():
    log_p, known = torch.tensor([-1.0, -2.0, -3.0, -7.0]), torch.tensor([-2.0, -1.5, -3.5, -6.0])
    loss, margin = dpo_loss(log_p, known, beta=0.5)
    assert margin.tolist() == pytest.approx([1.0 - 0.5, -0.5 - -1.0])
    wanted = [math.log(1 + math.exp(-0.5 * m)) for m in (0.5, 0.5)]
    assert loss.item() == pytest.approx(sum(wanted) / 2)


def test_a_model_that_is_its_reference_has_the_loss_ln_2():
    log_p = tensor(8)
    loss, margin = dpo_loss(log_p, log_p.clone(), beta=0.3)
    assert loss.item() == pytest.approx(math.log(2)) and not margin.any()


def test_only_the_difference_of_the_two_answers_counts():
    """Both may fall: the loss does not notice."""
    log_p, known = tensor(6), 2 * tensor(6).flip(0)
    loss, margin = dpo_loss(log_p, known)
    less, same = dpo_loss(log_p - 5, known)
    assert torch.allclose(loss, less) and torch.allclose(margin, same, atol=1e-5)


def test_the_gradient_lifts_the_chosen_and_lowers_the_rejected_equally():
    log_p = tensor(6).requires_grad_()
    dpo_loss(log_p, tensor(6).detach(), beta=0.2)[0].backward()
    assert log_p.grad.tolist() == pytest.approx([-0.2 * 0.5 / 3] * 3 + [0.2 * 0.5 / 3] * 3, abs=1e-7)


def test_large_margins_stay_finite():
    loss, _ = dpo_loss(torch.tensor([-900.0, 0.0]), torch.zeros(2), beta=1.0)
    assert loss.item() == pytest.approx(900)


@pytest.mark.parametrize(
    "log_p, known, beta, message",
    [
        (tensor(6), tensor(4), 0.1, r"chosen answers and then the rejected ones, got \[6\] and \[4\]"),
        (tensor(5), tensor(5), 0.1, r"two vectors \[2 \* pairs\]"),
        (tensor(2, 2), tensor(2, 2), 0.1, r"got \[2, 2\] and \[2, 2\]"),
        (tensor(4), tensor(4), 0.0, "beta must be above 0, got 0.0"),
    ],
)
def test_rejects_what_is_no_pair(log_p, known, beta, message):
    with pytest.raises(ValueError, match=message):
        dpo_loss(log_p, known, beta)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="labels must have the shape of input_ids"):
        answer_log_probability(LOGITS, LABELS[:, :4])
