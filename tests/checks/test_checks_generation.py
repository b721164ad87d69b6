"""checks.generation: right answers in other words pass, and wrong ones get the hint that fits."""

import torch
from judged_answers import judged

from minimind_edu import checks
from minimind_edu.model.sampling import keep_top_p


def top_p_of_the_package(p, limit):
    return keep_top_p(p.log()[None], limit).softmax(-1)[0]


def top_p_by_a_loop(p, limit):
    kept, total = torch.zeros_like(p), 0.0
    for word in sorted(range(len(p)), key=lambda word: -p[word]):
        if total >= limit:
            break
        kept[word] = p[word]
        total += p[word].item()
    return kept / total


def finish_with_lists(step, ids, count, end, pad):
    rows, ended = ids.tolist(), [False] * len(ids)
    for _ in range(count):
        if all(ended):
            break
        said = step(torch.tensor(rows))[:, -1].argmax(-1).tolist()
        for i, word in enumerate(said):
            rows[i].append(pad if ended[i] else word)
            ended[i] = ended[i] or word == end
    return rows


def residual_by_maximum(p, q):
    left = torch.maximum(p, q) - q
    return left / (1 - torch.minimum(p, q).sum())


def ahead_by_the_closed_sum(rate, cost):
    speed = {n: (1 - rate ** (n + 1)) / (1 - rate) / (1 + n * cost) for n in range(21)}
    return max(speed, key=speed.get)


RIGHT = [
    (checks.check_top_p, top_p_of_the_package),
    (checks.check_top_p, top_p_by_a_loop),
    (checks.check_finish, finish_with_lists),
    (checks.check_residual, residual_by_maximum),
    (checks.check_ahead, ahead_by_the_closed_sum),
]


def broken(step, ids, count, end, pad):  # as the exercise prints it
    ended = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(count):
        token = step(ids)[:, -1].argmax(-1)
        ended = ended | (token == end)
        token = torch.where(ended, pad, token)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if ended.any():
            break
    return ids


def above_the_rest(p, limit):
    kept = torch.where(p > 1 - limit, p, 0.0)
    return kept / kept.sum()


def above_the_limit(p, limit):
    kept = torch.where(p > limit, p, 0.0)
    return kept / kept.sum()


WRONG = [
    (checks.check_finish, broken, "both bugs are still there"),
    (checks.check_top_p, lambda p, limit: p, "expected"),
    (checks.check_top_p, above_the_rest, "compare each word by itself"),
    (checks.check_top_p, above_the_limit, "compare each word by itself"),
    (checks.check_residual, lambda p, q: (p - q).softmax(0), "the softmax gives every word something"),
    (checks.check_ahead, lambda rate, cost: 2, "expected"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_a_function_that_returns_nothing_is_not_attempted_yet(capsys):
    assert checks.check_residual(lambda p, q: None) is False
    assert "not attempted yet" in capsys.readouterr().out
