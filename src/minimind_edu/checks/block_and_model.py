"""Exercises on the block and the model.

The sublayers and norms that an attempt receives are small functions, all different, so that one in the wrong place
shows in the numbers.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, Property, numbers
from minimind_edu.model.config import MiniMindConfig

Function = Callable[[Tensor], Tensor]
HalfBlock = Callable[[Tensor, Function], Tensor]  # x and a sublayer -> the stream after it


def pre_norm_block(x: Tensor, norm1: Function, attend: Function, norm2: Function, feed: Function) -> Tensor:
    """The stream after a pre-norm block."""
    x = x + attend(norm1(x))
    return x + feed(norm2(x))


def _post_norm_block(x: Tensor, norm1: Function, attend: Function, norm2: Function, feed: Function) -> Tensor:
    x = norm1(x + attend(x))
    return norm2(x + feed(x))


def _norm(*gain: float) -> Function:
    """An RMSNorm without eps; the two of a block differ in their gains."""
    weight = torch.tensor(gain, dtype=torch.float64)
    return lambda x: weight * x / x.pow(2).mean(-1, keepdim=True).sqrt()


def _sublayer(shift: float) -> Function:
    matrix = numbers(4, 4, shift=shift)
    return lambda x: torch.tanh(x @ matrix)


def _block_cases() -> tuple[Case, ...]:
    x, norm1, norm2 = 2 * numbers(2, 3, 4), _norm(1.0, 2.0, 0.5, 1.5), _norm(0.8, 1.0, 3.0, 0.4)
    attend, feed, silent = _sublayer(0.3), _sublayer(0.7), torch.zeros_like
    return (
        Case("attention alone (the feed-forward network adds zeros)", (x, norm1, attend, norm2, silent)),
        Case("the feed-forward network alone", (x, norm1, silent, norm2, feed)),
        Case("both", (x, norm1, attend, norm2, feed)),
        Case("where both add zeros, the stream stays as it is", (x, norm1, silent, norm2, silent)),
    )


_KEEP_X = (
    "the residual connection carries a normalized stream: keep x as it is, and normalize only what the sublayer reads"
)

check_pre_norm_block = Exercise(
    "Does `attempt(x, norm1, attention, norm2, feed_forward)` give the stream after a pre-norm block?",
    answer=pre_norm_block,
    cases=_block_cases(),
    mistakes=(
        Mistake(
            _post_norm_block, "this is post-norm: you normalize the sum; pre-norm normalizes what a sublayer reads"
        ),
        Mistake(lambda x, n1, a, n2, f: (z := n2((y := n1(x)) + a(y))) + f(z), _KEEP_X),
        Mistake(
            lambda x, n1, a, n2, f: (y := x + a(x)) + f(y),
            "there is no norm in this block: a sublayer reads a normalized copy of the stream",
        ),
        Mistake(
            lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x)),
            "both sublayers read the old x; the second must read the stream after attention was added",
        ),
        Mistake(
            lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x)))),
            "the second addition begins with the old x, so what attention added is lost",
        ),
        Mistake(
            lambda x, n1, a, n2, f: f(n2(x + a(n1(x)))),
            "the second residual connection is missing: add what the feed-forward network returns to the stream",
        ),
        Mistake(
            lambda x, n1, a, n2, f: (y := a(n1(x))) + f(n2(y)),
            "the first residual connection is missing: add what attention returns to the stream",
        ),
        Mistake(lambda x, n1, a, n2, f: x + a(n1(x)), "the second half of the block is missing"),
        Mistake(
            lambda x, n1, a, n2, f: pre_norm_block(x, n2, a, n1, f),
            "the norms are swapped: norm1 is attention's, norm2 the feed-forward network's",
        ),
    ),
)


_DEPTH, _SEEDS = 3, count()


def _make_block() -> nn.Linear:
    """A stand-in for a block, different each time; the notebook's random numbers are left as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(next(_SEEDS))
        return nn.Linear(2, 2)


def _stack_of(attempt: Attempt) -> nn.Module:
    stack = attempt(_make_block, _DEPTH)
    if not isinstance(stack, nn.Module):
        raise TypeError(
            f"{type(stack).__name__} is no module: parameters() of a model does not look into it; use nn.ModuleList"
        )
    return stack


def _count(attempt: Attempt) -> str | None:
    found: Any = _stack_of(attempt)
    return None if len(list(found)) == _DEPTH else f"there are {len(list(found))} blocks, expected {_DEPTH}"


def _parameters(attempt: Attempt) -> str | None:
    found = sum(parameter.numel() for parameter in _stack_of(attempt).parameters())
    expected = _DEPTH * 6
    return None if found == expected else f"parameters() finds {found}, expected {expected}: is one block used twice?"


def _drawn_anew(attempt: Attempt) -> str | None:
    weights = [weight for weight in _stack_of(attempt).parameters() if weight.dim() == 2]
    same = any(torch.equal(weight, other) for i, weight in enumerate(weights) for other in weights[:i])
    return "two blocks begin with the same numbers: call make() for each, copies are copies" if same else None


check_stack = Exercise(
    "Does `attempt(make, depth)` stack `depth` blocks, each of them made by `make()`, in a module?",
    answer=lambda make, depth: nn.ModuleList(make() for _ in range(depth)),
    cases=(
        Property(f"{_DEPTH} blocks in a module", _count),
        Property("each with parameters of its own", _parameters),
        Property("each with numbers of its own", _drawn_anew),
    ),
)


def _factor(target: float, embedding: float, added: float, depth: int) -> float:
    """The factor on what sublayers add, so that the squares of all sizes sum to the target's."""
    return ((target**2 - embedding**2) / (2 * depth)) ** 0.5 / added


check_factor = Exercise(
    "Does `attempt(target, embedding, added, depth)` scale the additions so that the stream ends at `target`?",
    answer=_factor,
    cases=(
        Case("from 3 to 5 in one block whose sublayers add 4", (5.0, 3.0, 4.0, 1)),
        Case("from 0.02 to 1 in 8 blocks", (1.0, 0.02, 0.13, 8)),
        Case("from 0.7 to 2 in 32 blocks", (2.0, 0.7, 0.4, 32)),
    ),
    mistakes=(
        Mistake(
            lambda target, embedding, added, depth: (target - embedding) / (2 * depth * added),
            "sizes add up only along one direction; at right angles their squares do (Pythagoras)",
        ),
        Mistake(
            lambda target, embedding, added, depth: _factor(target, embedding, added, depth) * 2**0.5,
            "a block adds twice: once attention, once the feed-forward network",
        ),
        Mistake(
            lambda target, embedding, added, depth: _factor(target, 0.0, added, depth),
            "the stream does not begin empty: it begins with the embedding",
        ),
        Mistake(
            lambda target, embedding, added, depth: _factor(target, embedding, added, depth) ** 2,
            "this is the square of the factor; take the root at the end",
        ),
        Mistake(
            lambda target, embedding, added, depth: _factor(target, embedding, 1.0, depth),
            "this is the size that an addition should have; the factor is that size divided by the present one",
        ),
    ),
)


def _ledger(
    config: MiniMindConfig,
    kv_heads: int | None = None,
    output_maps: int = 1,
    matrices: int = 3,
    final: int = 1,
    tables: int = 1,
    head_dim: int | None = None,
) -> tuple[int, int, int, int]:
    """Parameters of embedding, attention, feed-forward networks and norms; by default the right ones."""
    hidden, layers, heads = config.hidden_size, config.num_hidden_layers, config.num_attention_heads
    kv_heads = config.num_key_value_heads if kv_heads is None else kv_heads
    head_dim = config.head_dim if head_dim is None else head_dim
    attention = hidden * head_dim * ((1 + output_maps) * heads + 2 * kv_heads)
    feed_forward = matrices * hidden * config.intermediate_size
    norms = (2 * layers + final) * hidden
    return tables * config.vocab_size * hidden, layers * attention, layers * feed_forward, norms


check_ledger = Exercise(
    "Does `attempt(config)` give the parameters of embedding, attention, feed-forward networks and norms?",
    answer=_ledger,
    cases=(
        Case("MiniMind2 small, 25,829,888 in all", (MiniMindConfig.minimind2(),)),
        Case("MiniMind2, 104,030,976 in all", (MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16),)),
        Case(
            "90 wide, 7 blocks, 5 of 15 heads with 10 channels each",
            (
                MiniMindConfig(
                    vocab_size=100,
                    hidden_size=90,
                    num_hidden_layers=7,
                    num_attention_heads=15,
                    num_key_value_heads=5,
                    head_dim=10,
                    intermediate_size=130,
                ),
            ),
        ),
    ),
    mistakes=(
        Mistake(
            lambda c: _ledger(c, kv_heads=c.num_attention_heads),
            "keys and values have num_key_value_heads heads, fewer than the queries",
        ),
        Mistake(lambda c: _ledger(c, output_maps=0), "o_proj is missing: attention has four matrices"),
        Mistake(lambda c: _ledger(c, matrices=2), "SwiGLU has three matrices: gate, up and down"),
        Mistake(lambda c: _ledger(c, final=0), "one norm is missing: the final one, after the last block"),
        Mistake(
            lambda c: _ledger(c, head_dim=c.hidden_size // c.num_attention_heads),
            "all heads together, num_attention_heads * head_dim, may be wider than the stream",
        ),
        Mistake(
            lambda c: tuple(_ledger(c)[i] for i in (1, 2, 3, 0)),
            "return them in this order: embedding, attention, feed-forward networks, norms",
        ),
        Mistake(
            lambda c: tuple(n // (c.num_hidden_layers if i in (1, 2) else 1) for i, n in enumerate(_ledger(c))),
            "attention and feed-forward network are those of one block; count them in all blocks",
        ),
        Mistake(lambda c: _ledger(c, tables=2), "the head uses the embedding's matrix: a tied table counts once"),
    ),
)


def _normalized(x: Tensor) -> Tensor:
    gain = 1.2 + torch.arange(x.shape[-1], dtype=torch.float64).mul(2).sin()  # of whatever width was chosen
    return gain * F.rms_norm(x, x.shape[-1:], eps=1e-6)


_HALVES: dict[str, HalfBlock] = {
    "no norm": lambda x, sublayer: x + sublayer(x),
    "post-norm": lambda x, sublayer: _normalized(x + sublayer(x)),
    "pre-norm": lambda x, sublayer: x + sublayer(_normalized(x)),
    "a norm on the output": lambda x, sublayer: x + _normalized(sublayer(x)),
    "a norm before and one after the sublayer": lambda x, sublayer: x + _normalized(sublayer(_normalized(x))),
}
_X, _V = numbers(1, 1, 4), numbers(1, 1, 4, shift=1.0)


def _reads(half: HalfBlock, x: Tensor) -> Tensor:
    """What the sublayer of `half` receives."""
    read: list[Tensor] = []

    def sublayer(z: Tensor) -> Tensor:
        read.append(z)
        return torch.zeros_like(z)

    half(x, sublayer)
    return read[0]


def _same_size(function: Function, x: Tensor) -> bool:
    return torch.allclose(function(x), function(100 * x), rtol=1e-3)


def _norms_of(half: HalfBlock, x: Tensor = _X) -> tuple[bool, bool, bool]:
    """Whether a norm acts on what the sublayer reads, on what it adds, on the sum: does its scale get through?"""
    return (
        _same_size(lambda z: _reads(half, z), _X),
        _same_size(lambda v: half(x, lambda z: v), _V),
        _same_size(lambda z: half(z, torch.zeros_like), _X),
    )


def _of_size_one(half: HalfBlock) -> tuple[bool, bool, bool]:
    results = _reads(half, _X), half(_X, lambda z: _V) - _X, half(_X, torch.zeros_like)
    reads, adds, total = (bool((result.pow(2).mean().sqrt() - 1).abs() < 1e-3) for result in results)
    return reads, adds, total


check_norms_of = Exercise(
    "Does `attempt(half_block)` find by experiment where the norms are: `(reads, adds, total)`, each a bool?",
    answer=_norms_of,
    cases=tuple(Case(name, (half,)) for name, half in _HALVES.items()),
    mistakes=(
        Mistake(
            lambda half: tuple(not norm for norm in _norms_of(half)),
            "the other way round: a norm is where a hundred times the size makes no difference",
        ),
        Mistake(
            _of_size_one,
            "a norm has a gain, so what leaves it need not have RMS 1; change the size and compare instead",
        ),
        Mistake(
            lambda half: (_same_size(lambda z: half(z, lambda r: r), _X), *_norms_of(half)[1:]),
            "for the first answer, look at what the sublayer receives, not at what comes out of the block",
        ),
        Mistake(
            lambda half: _norms_of(half, torch.zeros_like(_X)),
            "with x = 0 the sum is what the sublayer adds, and a norm of the one looks like a norm of the other",
        ),
        Mistake(
            lambda half: _norms_of(half)[::-1],
            "return the three in this order: what the sublayer reads, what it adds, the sum",
        ),
    ),
)
