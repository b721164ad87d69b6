"""Checks for the exercises on the block and the model (chapter 10).

The sublayers and norms that an attempt receives are small functions, each unlike the others, so that one in the wrong
place shows in the numbers.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from minimind_edu.checks._block_mistakes import (
    LEDGER_MISTAKES,
    LOSS_MISTAKES,
    POST_NORM_MISTAKES,
    PRE_NORM_MISTAKES,
    SIZE_MISTAKES,
    Function,
    ledger,
    next_token_loss,
    post_norm_block,
    pre_norm_block,
    stream_sizes,
)
from minimind_edu.checks._report import Attempt, Mistake, Property, report, same_as
from minimind_edu.config import MiniMindConfig

_BATCH, _LENGTH, _HIDDEN = 2, 3, 4


def check_pre_norm_block(attempt: Attempt) -> bool:
    """Does `attempt(x, norm1, attention, norm2, feed_forward)` give the stream behind a pre-norm block?"""
    claim = "where both say nothing, the stream stays as it is"
    properties = _block_properties(pre_norm_block, PRE_NORM_MISTAKES, claim)
    return report("check_pre_norm_block", attempt, properties)


def check_post_norm_block(attempt: Attempt) -> bool:
    """Does `attempt(x, norm1, attention, norm2, feed_forward)` give the stream behind a post-norm block?"""
    claim = "where both say nothing, the stream is normalized twice"
    properties = _block_properties(post_norm_block, POST_NORM_MISTAKES, claim)
    return report("check_post_norm_block", attempt, properties)


def check_stream_sizes(attempt: Attempt) -> bool:
    """Does `attempt(embedding, added)` give the RMS of a pre-norm stream after every addition?"""

    def asks(claim: str, embedding: float, added: list[float]) -> Property:
        return Property(claim, same_as(stream_sizes, embedding, added, mistakes=SIZE_MISTAKES))

    return report(
        "check_stream_sizes",
        attempt,
        [
            asks("four additions of different sizes", 0.5, [1.0, 0.25, 2.0, 0.75]),
            asks("3 and then 4 make 5", 3.0, [4.0]),
            asks("sixteen equal ones: sizes that grow like a root", 0.02, [0.3] * 16),
        ],
    )


def check_ledger(attempt: Attempt) -> bool:
    """Does `attempt(config)` give the parameters of embedding, attention, feed-forward networks and norms?"""

    def asks(claim: str, config: MiniMindConfig) -> Property:
        return Property(claim, same_as(ledger, config, mistakes=LEDGER_MISTAKES))

    odd = MiniMindConfig(
        vocab_size=100,
        hidden_size=90,
        num_hidden_layers=7,
        num_attention_heads=15,
        num_key_value_heads=5,
        intermediate_size=130,
    )
    return report(
        "check_ledger",
        attempt,
        [
            asks("MiniMind2 small, 25,829,888 in all", MiniMindConfig.minimind2()),
            asks("MiniMind2, 104,030,976 in all", MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16)),
            asks("90 wide, 7 blocks, 5 of 15 heads", odd),
        ],
    )


def check_next_token_loss(attempt: Attempt) -> bool:
    """Does `attempt(logits, ids)` give the mean cross-entropy of the next token?"""

    def asks(claim: str, batch: int, length: int) -> Property:
        vocabulary = 7
        logits = 3 * _numbers(batch, length, vocabulary)
        ids = (torch.arange(batch * length) ** 2 + 3) % vocabulary
        arguments = logits, ids.view(batch, length)
        return Property(claim, same_as(next_token_loss, *arguments, mistakes=LOSS_MISTAKES))

    return report(
        "check_next_token_loss",
        attempt,
        [
            asks("one sequence of two: a single prediction", 1, 2),
            asks("one sequence of six", 1, 6),
            asks("three sequences of five", 3, 5),
        ],
    )


def _numbers(*shape: int, shift: float = 0.0) -> Tensor:
    """Numbers without two equal entries, the same on every machine."""
    n = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(3 * n + 1 + shift) + 0.1 * torch.sin(n * n)).view(shape)


def _norm(gain: list[float]) -> Function:
    """An RMSNorm without eps; the two of a block differ in their gains."""
    weight = torch.tensor(gain, dtype=torch.float64)
    return lambda x: weight * x / x.pow(2).mean(-1, keepdim=True).sqrt()


def _sublayer(shift: float) -> Function:
    matrix = _numbers(_HIDDEN, _HIDDEN, shift=shift)
    return lambda x: torch.tanh(x @ matrix)


def _nothing(x: Tensor) -> Tensor:
    return torch.zeros_like(x)


def _asks(
    reference: Callable[..., Tensor], mistakes: tuple[Mistake, ...], *silent: str
) -> Callable[[Attempt], str | None]:
    """A question about one block, in which the sublayers named add nothing."""
    attend = _nothing if "attention" in silent else _sublayer(0.3)
    feed = _nothing if "feed-forward" in silent else _sublayer(0.7)
    norms = _norm([1.0, 2.0, 0.5, 1.5]), _norm([0.8, 1.0, 3.0, 0.4])
    x = 2 * _numbers(_BATCH, _LENGTH, _HIDDEN)
    return same_as(reference, x, norms[0], attend, norms[1], feed, mistakes=mistakes)


def _block_properties(reference: Callable[..., Tensor], mistakes: tuple[Mistake, ...], silence: str) -> list[Property]:
    """The whole block first: where a half is silent, different mistakes look alike."""
    return [
        Property("attention, then the feed-forward network", _asks(reference, mistakes)),
        Property("attention alone", _asks(reference, mistakes, "feed-forward")),
        Property("the feed-forward network alone", _asks(reference, mistakes, "attention")),
        Property(silence, _asks(reference, mistakes, "attention", "feed-forward")),
    ]
