"""Exercises on the feed-forward network.

Positions, channels and neurons have different sizes, so that a wrong axis shows.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, numbers, without


def _swiglu(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T


def _weights(channels: int, neurons: int) -> tuple[Tensor, Tensor, Tensor]:
    shifts = (0.0, 1.3, 2.1)
    gate, up, down = (numbers(neurons, channels, shift=shift) for shift in shifts)
    return gate, up, down.T.contiguous()


check_swiglu = Exercise(
    "Is `attempt(x, gate, up, down)` a SwiGLU: x `[..., E]`, gate and up `[I, E]`, down `[E, I]` -> `[..., E]`?",
    answer=_swiglu,
    cases=(
        Case("two texts of three positions, 4 channels, 6 neurons", (numbers(2, 3, 4), *_weights(4, 6))),
        Case("one position, fewer neurons than channels", (3 * numbers(5, shift=0.4), *_weights(5, 2))),
    ),
    mistakes=(
        Mistake(
            lambda x, gate, up, down: _swiglu(x, up, gate, down),
            "gate and up are swapped: the activation belongs to the gate",
        ),
        Mistake(
            lambda x, gate, up, down: (torch.sigmoid(x @ gate.T) * (x @ up.T)) @ down.T,
            "this gate is a plain sigmoid; SiLU is z * sigmoid(z)",
        ),
        Mistake(
            lambda x, gate, up, down: F.silu((x @ gate.T) * (x @ up.T)) @ down.T,
            "the activation is around the product; it belongs to the gate alone, before the product",
        ),
        Mistake(
            lambda x, gate, up, down: (F.silu(x @ gate.T) * F.silu(x @ up.T)) @ down.T,
            "there is an activation on both; up stays linear",
        ),
        Mistake(
            lambda x, gate, up, down: ((x @ gate.T) * (x @ up.T)) @ down.T,
            "the activation is missing",
        ),
        Mistake(
            lambda x, gate, up, down: (F.gelu(x @ gate.T) * (x @ up.T)) @ down.T,
            "this is GELU, which makes a GEGLU; use z * sigmoid(z)",
        ),
    ),
    through=without("silu", "silu_", "glu"),
)


def _network(design: Attempt) -> Attempt:
    """The SwiGLU of two neurons that has the matrices which `design()` gives."""

    def network(x: Tensor) -> Tensor | None:
        weights = design()
        if weights is None:
            return None
        gate, up, down = (torch.as_tensor(matrix).double() for matrix in weights)
        shapes = [list(matrix.shape) for matrix in (gate, up, down)]
        if shapes != [[2, 2], [2, 2], [1, 2]]:
            raise ValueError(f"two neurons have gate and up [2, 2] and down [1, 2], got {shapes}")
        return _swiglu(x, gate, up, down)

    return network


def _of_two(function: Callable[[Tensor, Tensor], Tensor]) -> Attempt:
    return lambda x: function(x[..., 0], x[..., 1])[..., None]


check_squares = Exercise(
    "Are `attempt()` gate and up `[2, 2]` and down `[1, 2]` of a SwiGLU that turns (a, b) into a² − b²?",
    answer=_of_two(lambda a, b: a * a - b * b),
    cases=(
        Case("a = 3, b = 2", (torch.tensor([[3.0, 2.0]], dtype=torch.float64),)),
        Case("nine pairs of both signs", (2 * numbers(9, 2),)),
        Case("large numbers", (100 * numbers(3, 2, shift=0.7),)),
    ),
    mistakes=(
        Mistake(_of_two(lambda a, b: a * b), "this is a · b, as in the text; which product gives a² − b²?"),
        Mistake(_of_two(lambda a, b: b * b - a * a), "this is b² − a²: change the sign of one matrix"),
        Mistake(_of_two(lambda a, b: a * a + b * b), "this is a² + b²"),
        Mistake(_of_two(lambda a, b: (a - b) ** 2), "this is (a − b)²: gate and up look at the same sum"),
        Mistake(_of_two(lambda a, b: (a + b) ** 2), "this is (a + b)²: gate and up look at the same sum"),
        Mistake(
            _of_two(lambda a, b: F.silu(a + b) * (a - b)),
            "one neuron alone leaves silu(a + b) · (a − b): the second has to take silu(−(a + b)) away",
        ),
        Mistake(
            _of_two(lambda a, b: (F.silu(a + b) + F.silu(-a - b)) * (a - b)),
            "the two neurons are added; silu(z) − silu(−z) is z, so subtract the second",
        ),
    ),
    through=_network,
)


Part = Callable[[Tensor], Tensor]  # [S, E] -> [S, E]


def _changes(part: Part, x: Tensor, change: Part = lambda row: row.flip(0) + 1.0) -> Tensor:
    """`[S, S]`: does output m change when input n does?"""
    rows = []
    for position in range(len(x)):
        other = x.clone()
        other[position] = change(other[position])
        rows.append((part(other) != part(x)).any(-1))
    return torch.stack(rows, dim=1)


def _alone(part: Part, x: Tensor) -> bool:
    return _is_diagonal(_changes(part, x))


def _is_diagonal(changes: Tensor) -> bool:
    return not bool((changes & ~torch.eye(len(changes), dtype=torch.bool)).any())


def _alone_with_equal_numbers(part: Part, x: Tensor) -> bool:
    return _is_diagonal(_changes(part, x, lambda row: row + 1.0))


def _treats_alike(part: Part, x: Tensor) -> bool:
    return torch.allclose(part(x.flip(0)), part(x).flip(0))


def _same_singly(part: Part, x: Tensor) -> bool:
    return torch.allclose(torch.cat([part(row[None]) for row in x]), part(x))


_TEXT = numbers(4, 3)
_EXACT = (1024 * _TEXT).round() / 1024  # a number added to these leaves their differences as they are, to the last bit

check_alone = Exercise(
    "Does `attempt(part, x)` find out whether `part`, `[S, E] -> [S, E]`, works on every position alone?",
    answer=_alone,
    cases=(
        Case("a SwiGLU: True", (lambda x: _swiglu(x, *_weights(3, 5)), _TEXT)),
        Case("a softmax over the positions: False", (lambda x: x.softmax(0), _TEXT)),
        Case("a softmax over the channels: True", (lambda x: x.softmax(-1), _TEXT)),
        Case("the sum of all positions so far: False", (lambda x: x.cumsum(0), _TEXT)),
        Case("the sum of all positions to come: False", (lambda x: x.flip(0).cumsum(0).flip(0), _TEXT)),
        Case("what was two positions before: False", (lambda x: F.pad(x, (0, 0, 2, 0))[:-2], _TEXT)),
        Case(
            "every position multiplied by its number: True",
            (lambda x: x * torch.arange(1, len(x) + 1)[:, None], _TEXT),
        ),
        Case(
            "minus each position's largest channel, then the sum so far: False",
            (lambda x: (x - x.amax(-1, keepdim=True)).cumsum(0), _EXACT),
        ),
    ),
    mistakes=(
        Mistake(
            _same_singly,
            "you gave the positions one by one; then each is number 1, and a part that counts positions acts otherwise",
        ),
        Mistake(
            _treats_alike,
            "a softmax over the positions treats all of them alike and mixes them, so another order shows nothing: "
            "change one position and look at the others",
        ),
        Mistake(
            lambda part, x: not bool(_changes(part, x).diagonal(1).any() or _changes(part, x).diagonal(-1).any()),
            "you compared neighbors only; something can reach further",
        ),
        Mistake(
            lambda part, x: not bool(_changes(part, x)[:-1, -1].any()),
            "you changed only the last position; a part that looks backward passes",
        ),
        Mistake(
            lambda part, x: not bool(_changes(part, x)[1:, 0].any()),
            "you changed only the first position; a part that looks forward passes",
        ),
        Mistake(
            lambda part, x: not bool(_changes(part, x).any()),
            "True means that no other position changes; the output of the changed position itself may",
        ),
        Mistake(
            _alone_with_equal_numbers,
            "you add the same number to all channels of a position, which a part that subtracts the largest channel "
            "does not see: change them by unequal numbers",
        ),
    ),
)


def _sizes(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
    hidden = F.silu(x @ gate.T) * (x @ up.T)
    return hidden.abs().mean(0) * down.norm(dim=0)


def _without(neuron: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> tuple[Tensor, ...]:
    kept = torch.arange(len(gate)) != neuron
    return gate[kept], up[kept], down[:, kept]


def _pruned(score: Callable[..., Tensor]) -> Attempt:
    return lambda x, gate, up, down: _without(score(x, gate, up, down).argmin(), gate, up, down)


def _uneven(channels: int, neurons: int, shift: float) -> tuple[Tensor, ...]:
    """Neurons whose outputs are long where their activations are small, so that no single factor tells."""
    gate, up, down = _weights(channels, neurons)
    size = 1.4 + numbers(neurons, shift=shift)
    return gate * size[:, None], up, down / size


check_pruned = Exercise(
    "Are `attempt(x, gate, up, down)` the three matrices without the neuron that adds least on x `[S, E]`?",
    answer=_pruned(_sizes),
    cases=(
        Case("four positions, 4 channels, 9 neurons", (3 * numbers(4, 4, shift=3.6), *_uneven(4, 9, 4.8))),
        Case("activations whose signs cancel", (3 * numbers(4, 4, shift=3.0), *_uneven(4, 9, 3.0))),
        Case("a neuron that adds much, at one position alone", (3 * numbers(4, 4, shift=3.8), *_uneven(4, 9, 11.8))),
    ),
    mistakes=(
        Mistake(
            _pruned(lambda x, gate, up, down: (F.silu(x @ gate.T) * (x @ up.T)).abs().mean(0)),
            "you compare the activations only; a small one with a long column in down can add much",
        ),
        Mistake(
            _pruned(lambda x, gate, up, down: down.norm(dim=0)),
            "you compare the columns of down only; what is multiplied with them may be tiny",
        ),
        Mistake(
            _pruned(
                lambda x, gate, up, down: (F.silu(x @ gate.T) * (x @ up.T)).mean(0).abs() * down.norm(dim=0),
            ),
            "you average activations with their signs, which cancel; take absolute values first",
        ),
        Mistake(
            _pruned(lambda x, gate, up, down: ((x @ gate.T) * (x @ up.T)).abs().mean(0) * down.norm(dim=0)),
            "the activation is missing: the gate goes through silu",
        ),
        Mistake(
            _pruned(
                lambda x, gate, up, down: (F.silu(x @ gate.T) * (x @ up.T)).pow(2).mean(0) * down.norm(dim=0).pow(2),
            ),
            "you average squares, which count one large position for more than many small ones; average the lengths",
        ),
        Mistake(
            _pruned(lambda x, gate, up, down: (F.silu(x @ gate.T) * (x @ up.T)).abs().amax(0) * down.norm(dim=0)),
            "you take the largest length over the positions; take the average",
        ),
        Mistake(
            _pruned(lambda x, gate, up, down: -_sizes(x, gate, up, down)), "you removed the neuron that adds the most"
        ),
        Mistake(
            lambda x, gate, up, down: (*_pruned(_sizes)(x, gate, up, down)[:2], down),
            "its column in down is still there, so the shapes no longer fit",
        ),
    ),
    parts=("gate", "up", "down"),
)
