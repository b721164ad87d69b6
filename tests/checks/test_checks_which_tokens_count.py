"""checks.which_tokens_count: right answers in other words pass, and wrong ones get the hint that fits."""

import torch
import torch.nn.functional as F
from judged_answers import judged

from minimind_edu import checks


def labels_by_runs(ids):
    found, counting = [], False
    for i, token in enumerate(ids):
        if counting:
            found.append(token)
            counting = token != 9
            continue
        found.append(-100)
        counting = i > 0 and ids[i - 1 : i + 1] == [7, 8]
    return found


def labels_as_tensor(ids):
    return torch.tensor(labels_by_runs(ids))


def dpo_by_softplus(log_p, reference, beta):
    moved = log_p - reference
    half = len(moved) // 2
    return F.softplus(-beta * (moved[:half] - moved[half:])).mean()


def dpo_by_cross_entropy(log_p, reference, beta):
    pairs = beta * (log_p - reference).view(2, -1).T
    return F.cross_entropy(pairs, torch.zeros(len(pairs), dtype=torch.long))


def merged_by_columns(weight, a, b, scale):
    new = weight.clone()
    for i in range(len(a)):
        new += scale * torch.outer(b[:, i], a[i])
    return new


def log_p(model, ids, labels):
    found = model(ids)[:, :-1].log_softmax(-1).gather(-1, labels[:, 1:].clamp(min=0)[..., None])[..., 0]
    return (found * (labels[:, 1:] >= 0)).sum(-1)


def step_by_detach(model, reference, ids, labels, beta):
    return dpo_by_softplus(log_p(model, ids, labels), log_p(reference, ids, labels).detach(), beta)


RIGHT = [
    (checks.check_answer_labels, labels_by_runs),
    (checks.check_answer_labels, labels_as_tensor),
    (checks.check_dpo_loss, dpo_by_softplus),
    (checks.check_dpo_loss, dpo_by_cross_entropy),
    (checks.check_merged, merged_by_columns),
    (checks.check_dpo_step, step_by_detach),
]


def moved(by):
    """The right labels with the mask moved, as somebody gets who shifts it as well as the loss."""

    def labels(ids):
        counts = [label >= 0 for label in labels_by_runs(ids)]
        counts = [False] * by + counts[: len(ids) - by] if by > 0 else counts[-by:] + [False] * -by
        return [token if count else -100 for token, count in zip(ids, counts, strict=True)]

    return labels


def merged_in_place(weight, a, b, scale):
    weight += scale * b @ a
    return weight


def step_with_a_live_reference(model, reference, ids, labels, beta):
    return dpo_by_softplus(log_p(model, ids, labels), log_p(reference, ids, labels), beta)


def step_without_any_gradient(model, reference, ids, labels, beta):
    with torch.no_grad():
        return step_by_detach(model, reference, ids, labels, beta)


def step_that_is_its_own_reference(model, reference, ids, labels, beta):
    return dpo_by_softplus(log_p(model, ids, labels), log_p(model, ids, labels).detach(), beta)


WRONG = [
    (checks.check_answer_labels, moved(1), "one too late"),
    (checks.check_answer_labels, moved(-1), "one too early"),
    (checks.check_answer_labels, lambda ids: [-100 if i in (0, 9) else i for i in labels_by_runs(ids)], "must count"),
    (checks.check_answer_labels, lambda ids: list(ids), "expected -100"),
    (checks.check_answer_labels, lambda ids: [token or -100 for token in ids], "everything but padding"),
    (checks.check_answer_labels, lambda ids: [-100] * len(ids), "expected"),
    (checks.check_dpo_loss, lambda p, r, beta: dpo_by_softplus(p, torch.zeros_like(r), beta), "reference is missing"),
    (checks.check_dpo_loss, lambda p, r, beta: dpo_by_softplus(p.flip(0), r.flip(0), beta), "wrong sign"),
    (checks.check_dpo_loss, lambda p, r, beta: dpo_by_softplus(p, r, beta) * beta, "it is"),
    (checks.check_dpo_loss, lambda p, r, beta: beta * dpo_by_softplus(p, r, 1.0), "not the loss"),
    (checks.check_merged, merged_in_place, "writes into the frozen matrix"),
    (checks.check_merged, lambda w, a, b, s: w + 2 * s * b @ a, "merged twice"),
    (checks.check_merged, lambda w, a, b, s: w + s * a.T @ b.T, "the product is transposed"),
    (checks.check_dpo_step, step_with_a_live_reference, "your reference gets a gradient"),
    (checks.check_dpo_step, step_without_any_gradient, "no gradient reaches the model"),
    (checks.check_dpo_step, step_that_is_its_own_reference, "its own reference"),
    (checks.check_dpo_step, lambda m, r, i, t, beta: 2 * step_by_detach(m, r, i, t, beta), "expected"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_an_attempt_that_is_not_written_yet_is_told_so(capsys):
    for check in (checks.check_answer_labels, checks.check_dpo_loss, checks.check_merged, checks.check_dpo_step):
        assert check(lambda *_: None) is False
        assert "not attempted yet" in capsys.readouterr().out
