"""checks.training_in_minutes: right answers in other words pass, and wrong ones get the hint that fits."""

import math

import torch
import torch.nn.functional as F
from judged_answers import judged
from torch import nn

from minimind_edu import checks
from minimind_edu.trained.training import Recipe


def excess_by_kl_div(exact, logits):
    return F.kl_div(logits.log_softmax(-1), exact, reduction="batchmean")


def excess_in_two_parts(exact, logits):
    entropy = -torch.xlogy(exact, exact).sum(-1).mean()
    return F.cross_entropy(logits, exact) - entropy


def rate_of_the_package(step, steps, highest, warmup, last):
    return Recipe(steps=steps, learning_rate=highest, warmup=warmup, last=last).rate(step)


def loop_that_empties_last(model, batches, rate, limit):
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=rate), []
    for x, y in batches:
        loss = F.mse_loss(model(x), y)
        losses.append(loss.item())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        optimizer.zero_grad()
    return losses


def order_by_shuffling(task):
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        digits = torch.randint(0, 10, (4,), generator=generator)
        shuffled = digits[torch.randperm(4, generator=generator)]
        if task(digits.tolist()) != task(shuffled.tolist()):
            return True
    return False


def excess_by_log_of_softmax(exact, logits):
    return torch.xlogy(exact, exact).sum(-1).mean() - (exact * logits.softmax(-1).log()).sum(-1).mean()


def rate_with_cosine_after_warmup(step, steps, highest, warmup, last):
    if step < warmup:
        return highest * (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    return highest * (last + (1 - last) * (1 + math.cos(math.pi * done)) / 2)


RIGHT = [
    (checks.check_excess, excess_by_kl_div),
    (checks.check_excess, excess_in_two_parts),
    (checks.check_rate, rate_of_the_package),
    (checks.check_loop, loop_that_empties_last),
    (checks.check_needs_order, order_by_shuffling),
]


def loop_without_emptying(model, batches, rate, limit):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for x, y in batches:
        losses.append(F.mse_loss(model(x), y))
        losses[-1].backward()
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
    return [loss.item() for loss in losses]


def rate_without_cosine(step, steps, highest, warmup, last):
    return highest * min(1, (step + 1) / max(1, warmup))


WRONG = [
    (checks.check_excess, lambda p, logits: F.cross_entropy(logits, p), "distance from the floor"),
    (
        checks.check_excess,
        lambda p, logits: excess_by_kl_div(p, logits) / p.shape[1],
        "average over the vocabulary too",
    ),
    (checks.check_excess, excess_by_log_of_softmax, "minus infinity"),
    (checks.check_rate, rate_without_cosine, "expected"),
    (checks.check_rate, rate_with_cosine_after_warmup, "begins after the warm-up"),
    (checks.check_rate, lambda *plan: math.pi, "expected"),
    (checks.check_loop, loop_without_emptying, "gradients add up"),
    (checks.check_needs_order, lambda task: task([3, 1, 2]) == [3, 1, 2], "only copying"),
    (checks.check_needs_order, lambda task: isinstance(task([3, 1, 2]), list), "what kind of answer"),
    (checks.check_needs_order, lambda task: task([3, 1, 2]) != task([2, 1, 3]), "one pair of lists"),
    (checks.check_needs_order, lambda task: task([3, 1, 2]) != task([4, 1, 2]), "you changed a digit"),
    (checks.check_needs_order, lambda task: task([1, 2, 3, 4]) != task([4, 3, 2, 1]), "you only reverse"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_an_attempt_that_is_not_written_yet_is_told_so(capsys):
    for check in (checks.check_excess, checks.check_rate, checks.check_loop, checks.check_needs_order):
        assert check(lambda *_: None) is False
        assert "not attempted yet" in capsys.readouterr().out
