"""Exercises on the mixture of experts.

Tokens, experts, choices and channels have different sizes, so that a wrong axis shows.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, difference, numbers
from minimind_edu.model.moe import load_balancing_loss

# Routing weights


def _route(logits: Tensor, k: int, renormalize: bool) -> Tensor:
    probabilities = logits.softmax(-1)
    weights, chosen = probabilities.topk(k, dim=-1)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return torch.zeros_like(logits).scatter(-1, chosen, weights)


def _zeros_into_the_softmax(logits: Tensor, k: int, renormalize: bool) -> Tensor:
    best, chosen = logits.topk(k, dim=-1)
    return torch.zeros_like(logits).scatter(-1, chosen, best).softmax(-1)


def _overflows(attempt: Attempt) -> str | None:
    """Logits in the hundreds: e to them is infinite."""
    logits = 300 * numbers(2, 5).float()
    answer = attempt(logits.clone(), 3, True)
    if isinstance(answer, Tensor) and answer.isnan().any():
        return "e to such a logit is infinite: subtract the token's largest logit first, or call softmax, which does"
    return difference(answer, _route(logits, 3, True), rtol=1e-5, atol=1e-7)


check_route = Exercise(
    "Does `attempt(logits, k, renormalize)` give the routing weights `[T, N]`, 0 for experts that were not chosen?",
    answer=_route,
    cases=(
        # float32, as in the notebook: zeros that somebody makes with torch.zeros fit in
        Case("five tokens, two of four experts, renormalized", (2 * numbers(5, 4).float(), 2, True)),
        Case("five tokens, two of four experts, not renormalized", (2 * numbers(5, 4).float(), 2, False)),
        Case("one of six experts, not renormalized", (numbers(3, 6, shift=1.0).float(), 1, False)),
        Property("logits in the hundreds", _overflows),
    ),
    mistakes=(
        Mistake(
            lambda logits, k, renormalize: _route(logits, k, True),
            "you renormalize always; without it the weights are the probabilities, and the chosen ones add up to less "
            "than 1",
        ),
        Mistake(
            lambda logits, k, renormalize: _route(logits, k, False),
            "you never renormalize: divide the chosen weights of a token by their sum if that is asked for",
        ),
        Mistake(
            lambda logits, k, renormalize: logits.softmax(-1),
            "every expert still has a weight: all but the k largest of a token become 0",
        ),
        Mistake(
            lambda logits, k, renormalize: _route(logits.T, k, renormalize).T,
            "here tokens compete for an expert; the experts compete for a token, so work along the last axis",
        ),
        Mistake(
            _zeros_into_the_softmax,
            "a logit of 0 is not out of the race, for e to the 0 is 1: put the zeros in after the softmax, or minus "
            "infinity before it",
        ),
        Mistake(
            lambda logits, k, renormalize: _route(-logits, k, renormalize), "you keep the k smallest, not the k largest"
        ),
        Mistake(
            lambda logits, k, renormalize: _route(logits, k, renormalize).topk(k).values,
            "these are the k weights alone, `[T, k]`: put each at the place of its expert, in `[T, N]`, 0 elsewhere",
        ),
    ),
    rtol=1e-5,
    atol=1e-7,
)


# Dispatch

Expert = Callable[[Tensor], Tensor]  # [tokens, E] -> [tokens, E]


def _mixture(x: Tensor, experts: Sequence[Expert], chosen: Tensor, weights: Tensor) -> Tensor:
    output = torch.zeros_like(x)
    for index, expert in enumerate(experts):
        rows, choice = (chosen == index).nonzero(as_tuple=True)
        if len(rows):
            output = output.index_add(0, rows, weights[rows, choice, None] * expert(x[rows]))
    return output


def _mixture_with(weight_of: Callable[[Tensor, Tensor, Tensor], Tensor], add: bool) -> Attempt:
    """The mixture with another weight, `weight_of(weights, rows, choice)`, or whose last expert replaces the others."""

    def answer(x: Tensor, experts: Sequence[Expert], chosen: Tensor, weights: Tensor) -> Tensor:
        output = torch.zeros_like(x)
        for index, expert in enumerate(experts):
            rows, choice = (chosen == index).nonzero(as_tuple=True)
            worked = weight_of(weights, rows, choice)[:, None] * expert(x[rows])
            output[rows] = output[rows] + worked if add else worked
        return output

    return answer


def _own(weights: Tensor, rows: Tensor, choice: Tensor) -> Tensor:
    return weights[rows, choice]


def _first(weights: Tensor, rows: Tensor, choice: Tensor) -> Tensor:
    return weights[rows, 0]


def _three_experts() -> list[Expert]:
    return [lambda x, a=a: torch.tanh(a * x).flip(-1) for a in (0.5, 1.5, 4.0)]


_CHOSEN = torch.tensor([[0, 2], [2, 1], [1, 0], [2, 0], [0, 1]])
_WEIGHTS = torch.tensor([[0.7, 0.3], [0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.55, 0.45]], dtype=torch.float64)


def _too_much_work(attempt: Attempt) -> str | None:
    """Each expert counts the rows that it gets."""
    seen: list[list[int]] = [[] for _ in range(3)]

    def counting(index: int, expert: Expert) -> Expert:
        def counted(x: Tensor) -> Tensor:
            seen[index].append(x.numel() // x.shape[-1])
            return expert(x)

        return counted

    counted = [counting(index, expert) for index, expert in enumerate(_three_experts())]
    attempt(numbers(5, 3), counted, _CHOSEN[:, :1], _WEIGHTS[:, :1])
    rows = [sum(batches) for batches in seen]
    if rows != [2, 1, 2]:
        return (
            f"5 tokens chose one expert each, 2, 1 and 2 of them; your experts worked on {rows[0]}, {rows[1]} and "
            f"{rows[2]} rows: give each only the tokens that chose it"
        )
    if any(len(batches) > 1 for batches in seen):
        return "give an expert all of its tokens in one call; token by token its matrices are read again each time"
    return None


check_mixture = Exercise(
    "Does `attempt(x, experts, chosen, weights)` mix: x `[T, E]`, chosen and weights `[T, k]`, result `[T, E]`?",
    answer=_mixture,
    cases=(
        Case("five tokens, two of three experts each", (numbers(5, 4), _three_experts(), _CHOSEN, _WEIGHTS)),
        Case("one expert each", (numbers(5, 4), _three_experts(), _CHOSEN[:, :1], _WEIGHTS[:, :1])),
        Case("an expert that nobody chose", (numbers(2, 4), _three_experts(), _CHOSEN[3:4].repeat(2, 1), _WEIGHTS[:2])),
        Property("each expert is called once, with its own tokens", _too_much_work),
    ),
    mistakes=(
        Mistake(
            _mixture_with(_own, add=False),
            "a token's second expert overwrites what the first one gave: add to the output, do not assign",
        ),
        Mistake(
            _mixture_with(_first, add=True),
            "every expert gets the weight of the token's first choice: take the weight of the place at which this "
            "expert was chosen",
        ),
        Mistake(
            _mixture_with(_first, add=False),
            "two things are wrong: outputs are overwritten, not added, and the weight is that of the first choice",
        ),
        Mistake(
            _mixture_with(lambda weights, rows, choice: torch.ones_like(weights[rows, choice]), add=True),
            "the routing weights are missing: each output counts with the weight of its choice",
        ),
        Mistake(
            lambda x, experts, chosen, weights: _mixture(x, experts, chosen[:, :1], weights[:, :1]),
            "only the first choice works: a token has k experts",
        ),
        Mistake(
            lambda x, experts, chosen, weights: x + _mixture(x, experts, chosen, weights),
            "the stream is added by the block, not here: begin with zeros",
        ),
    ),
)


# Balance


def _shares(chosen: Tensor, num_experts: int) -> Tensor:
    return F.one_hot(chosen, num_experts).double().mean((0, 1))


_PROBABILITIES = (2 * numbers(7, 4)).softmax(-1)


check_balance = Exercise(
    "Does `attempt(probabilities, chosen)`, `[T, N]` and `[T, k]`, give N times the sum of f times P?",
    answer=load_balancing_loss,
    cases=(
        Case("seven tokens, two of four experts", (_PROBABILITIES, _PROBABILITIES.topk(2).indices)),
        Case("one of five experts", ((3 * numbers(6, 5)).softmax(-1), (3 * numbers(6, 5)).topk(1).indices)),
        Case(
            "all tokens at one of three experts: 3",
            (torch.tensor([[1.0, 0, 0]] * 4).double(), torch.zeros(4, 1, dtype=torch.long)),
        ),
        Case(
            "one of four experts has all tokens, and the others some probability",
            (torch.tensor([[0.4, 0.3, 0.2, 0.1]] * 3).double(), torch.zeros(3, 1, dtype=torch.long)),
        ),
    ),
    mistakes=(
        Mistake(
            lambda p, chosen: p.shape[1] * (chosen.flatten().bincount() / chosen.numel() * p.mean(0)).sum(),
            "f is too short: experts that nobody chose count as well, with load 0; tell bincount minlength=N, or "
            "one_hot the number of experts",
        ),
        Mistake(
            lambda p, chosen: chosen.shape[1] * load_balancing_loss(p, chosen),
            "this is k times too large: f is the share of all T · k assignments, so divide by k as well",
        ),
        Mistake(
            lambda p, chosen: load_balancing_loss(p, chosen) / p.shape[1],
            "the factor N is missing; with it an even load costs 1, however many experts there are",
        ),
        Mistake(
            lambda p, chosen: p.shape[1] * _shares(chosen, p.shape[1]).square().sum(),
            "this multiplies f by f, which are counts and have no gradient: the second factor is the mean probability",
        ),
        Mistake(
            lambda p, chosen: p.shape[1] * p.mean(0).square().sum(),
            "this multiplies P by P; one of the two factors is the share of the assignments, which is counted",
        ),
        Mistake(
            lambda p, chosen: load_balancing_loss(p, chosen[:, :1]),
            "you count first choices only; all k choices of a token load an expert",
        ),
        Mistake(
            lambda p, chosen: p.shape[1] * (_shares(chosen, p.shape[1]) * p.sum(0)).sum(),
            "you add the probabilities of all tokens: P is their mean, or the loss would grow with the text",
        ),
    ),
)


# Which logits learn


def _taught(num_experts: int, k: int, renormalize: bool) -> int:
    reached = k if renormalize else num_experts
    return reached if reached > 1 else 0


_PLANS = ((6, 2, False), (6, 2, True), (4, 1, True), (4, 1, False), (8, 8, True), (6, 3, True), (1, 1, False))

check_taught = Exercise(
    "How many of a token's router logits does the loss reach, by `attempt(num_experts, k, renormalize)`?",
    answer=_taught,
    cases=tuple(
        Case(f"{k} of {n}, {'renormalized' if renormalize else 'not renormalized'}", (n, k, renormalize))
        for n, k, renormalize in _PLANS
    ),
    mistakes=(
        Mistake(
            lambda n, k, renormalize: k if renormalize else n,
            "a single weight divided by itself is 1 whatever its logit is, and so is the softmax over one expert",
        ),
        Mistake(
            lambda n, k, renormalize: k,
            "the chosen ones only? Not here: without renormalizing, every logit is in the denominator of the softmax",
        ),
        Mistake(
            lambda n, k, renormalize: n,
            "renormalized, the weights depend on the chosen logits alone: the denominator of the softmax cancels",
        ),
        Mistake(
            lambda n, k, renormalize: n - k,
            "you count the experts that were not chosen: which logits does a routing weight depend on?",
        ),
        Mistake(
            lambda n, k, renormalize: 0,
            "the choice has no gradient, but the weight of a chosen expert has, unless it is always 1",
        ),
    ),
)


# Experts awake


def _awake(num_experts: int, k: int, tokens: int) -> float:
    return num_experts * (1 - (1 - k / num_experts) ** tokens)


_BATCHES = ((5, 2, 3), (4, 1, 1), (4, 1, 2), (8, 2, 16), (128, 8, 64))

check_awake = Exercise(
    "How many experts do tokens wake on average, by `attempt(num_experts, k, tokens)`, if they choose at random?",
    answer=_awake,
    cases=tuple(
        Case(f"{tokens} {'token' if tokens == 1 else 'tokens'}, {k} of {n} experts", (n, k, tokens))
        for n, k, tokens in _BATCHES
    ),
    mistakes=(
        Mistake(
            lambda n, k, tokens: float(min(n, k * tokens)),
            "this is the most that can be awake; two tokens may well choose the same expert",
        ),
        Mistake(
            lambda n, k, tokens: n * (1 - (1 - 1 / n) ** (k * tokens)),
            "a token's k experts are different ones, so it misses a given expert with probability 1 - k/N",
        ),
        Mistake(
            lambda n, k, tokens: 1 - (1 - k / n) ** tokens,
            "this is the probability that one given expert is awake; the expected number is N times that",
        ),
        Mistake(
            lambda n, k, tokens: n * (1 - k / n) ** tokens, "these are the experts that sleep: subtract them from N"
        ),
        Mistake(
            lambda n, k, tokens: n * (k / n) ** tokens,
            "this asks that all tokens choose an expert; one that chooses it is enough to wake it",
        ),
        Mistake(lambda n, k, tokens: k * tokens / n, "this is how many tokens an expert gets, on average"),
    ),
    rtol=1e-9,
)
