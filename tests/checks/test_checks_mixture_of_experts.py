"""checks.mixture_of_experts: right answers in other words pass, and wrong ones get the hint that fits."""

import math

import torch
import torch.nn.functional as F
from judged_answers import judged

from minimind_edu import checks


def route_by_infinity(logits, k, renormalize):
    least = logits.topk(k, dim=-1).values[..., -1:]
    if renormalize:
        return logits.masked_fill(logits < least, -math.inf).softmax(-1)
    return logits.softmax(-1) * (logits >= least)


def mixture_by_sorting(x, experts, chosen, weights):
    k, asked = chosen.shape[1], chosen.flatten()
    order = asked.argsort()
    pieces = x[order // k].split(asked.bincount(minlength=len(experts)).tolist())
    worked = torch.cat([expert(piece) for expert, piece in zip(experts, pieces, strict=True)])
    return torch.zeros_like(x).index_add(0, order // k, weights.flatten()[order, None] * worked)


def balance_by_one_hot(probabilities, chosen):
    f = F.one_hot(chosen, probabilities.shape[1]).to(probabilities.dtype).mean((0, 1))
    return probabilities.shape[1] * f @ probabilities.mean(0)


def taught_by_autograd(num_experts, k, renormalize):
    logits = torch.linspace(0, 1, num_experts, dtype=torch.float64, requires_grad=True)
    weights = logits.softmax(-1).topk(k).values
    if renormalize:
        weights = weights / weights.sum()
    (weights * torch.arange(1.0, k + 1) ** 2).sum().backward()
    return int((logits.grad.abs() > 1e-9).sum())


def awake_one_by_one(num_experts, k, tokens):
    asleep = 1.0
    for _ in range(tokens):
        asleep *= (num_experts - k) / num_experts
    return num_experts - num_experts * asleep


def route_into_new_zeros(logits, k, renormalize):
    weights, chosen = logits.softmax(-1).topk(k)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return torch.zeros(logits.shape).scatter(-1, chosen, weights)


RIGHT = [
    (checks.check_route, route_by_infinity),
    (checks.check_route, route_into_new_zeros),
    (checks.check_mixture, mixture_by_sorting),
    (checks.check_balance, balance_by_one_hot),
    (checks.check_taught, taught_by_autograd),
    (checks.check_awake, awake_one_by_one),
]


def mixture_by_masks(x, experts, chosen, weights):
    output = torch.zeros_like(x)
    for index, expert in enumerate(experts):
        output = output + (weights * (chosen == index)).sum(-1, keepdim=True) * expert(x)
    return output


def mixture_token_by_token(x, experts, chosen, weights):
    rows = [
        sum(w * experts[i](token[None])[0] for i, w in zip(choices, ws, strict=True))
        for token, choices, ws in zip(x, chosen.tolist(), weights, strict=True)
    ]
    return torch.stack(rows)


def mixture_of_the_exercise(x, experts, chosen, weights):
    output = torch.zeros_like(x)
    for index, expert in enumerate(experts):
        rows = (chosen == index).any(-1)
        output[rows] = weights[rows, 0, None] * expert(x[rows])
    return output


def route_by_hand(logits, k, renormalize):
    weights, chosen = (logits.exp() / logits.exp().sum(-1, keepdim=True)).topk(k)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return torch.zeros_like(logits).scatter(-1, chosen, weights)


def weights_alone(logits, k, renormalize):
    weights = logits.softmax(-1).topk(k).values
    return weights / weights.sum(-1, keepdim=True) if renormalize else weights


def balance_of_those_who_were_chosen(probabilities, chosen):
    f = chosen.flatten().bincount() / chosen.numel()
    return probabilities.shape[1] * (f * probabilities.mean(0)).sum()


def balance_by_one_hot_of_those_who_were_chosen(probabilities, chosen):
    f = F.one_hot(chosen).double().mean((0, 1))
    return probabilities.shape[1] * (f * probabilities.mean(0)).sum()


WRONG = [
    (checks.check_route, route_by_hand, "subtract the token's largest logit first"),
    (checks.check_route, weights_alone, "the k weights alone"),
    (checks.check_balance, balance_of_those_who_were_chosen, "f is too short"),
    (checks.check_balance, balance_by_one_hot_of_those_who_were_chosen, "f is too short"),
    (checks.check_mixture, mixture_by_masks, "give each only the tokens that chose it"),
    (checks.check_mixture, mixture_token_by_token, "all of its tokens in one call"),
    (checks.check_mixture, mixture_of_the_exercise, "two things are wrong"),
    (checks.check_awake, lambda n, k, tokens: 1.0, "expected"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)
