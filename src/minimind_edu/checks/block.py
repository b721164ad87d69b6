"""Exercises on the block and the model (chapter 10).

The sublayers and norms that an attempt receives are small functions, all different, so that one in the wrong place
shows in the numbers.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, numbers
from minimind_edu.config import MiniMindConfig

Function = Callable[[Tensor], Tensor]


def pre_norm_block(x: Tensor, norm1: Function, attend: Function, norm2: Function, feed: Function) -> Tensor:
    """The stream after a pre-norm block."""
    x = x + attend(norm1(x))
    return x + feed(norm2(x))


def post_norm_block(x: Tensor, norm1: Function, attend: Function, norm2: Function, feed: Function) -> Tensor:
    """The stream after a post-norm block."""
    x = norm1(x + attend(x))
    return norm2(x + feed(x))


def _norms_in_the_stream(x: Tensor, norm1: Function, attend: Function, norm2: Function, feed: Function) -> Tensor:
    x = norm1(x)
    x = norm2(x + attend(x))
    return x + feed(x)


def _norm(*gain: float) -> Function:
    """An RMSNorm without eps; the two of a block differ in their gains."""
    weight = torch.tensor(gain, dtype=torch.float64)
    return lambda x: weight * x / x.pow(2).mean(-1, keepdim=True).sqrt()


def _sublayer(shift: float) -> Function:
    matrix = numbers(4, 4, shift=shift)
    return lambda x: torch.tanh(x @ matrix)


def _block_cases(both_silent: str) -> tuple[Case, ...]:
    """The whole block first: where a sublayer is silent, different mistakes look alike."""
    x, norm1, norm2 = 2 * numbers(2, 3, 4), _norm(1.0, 2.0, 0.5, 1.5), _norm(0.8, 1.0, 3.0, 0.4)
    attend, feed, silent = _sublayer(0.3), _sublayer(0.7), torch.zeros_like
    return (
        Case("attention, then the feed-forward network", (x, norm1, attend, norm2, feed)),
        Case("attention alone", (x, norm1, attend, norm2, silent)),
        Case("the feed-forward network alone", (x, norm1, silent, norm2, feed)),
        Case(both_silent, (x, norm1, silent, norm2, silent)),
    )


_LOST = "the second addition starts from the old x, so attention's output is lost from the stream"

PRE_NORM_BLOCK = Exercise(
    "check_pre_norm_block",
    answer=pre_norm_block,
    cases=_block_cases("where both say nothing, the stream stays as it is"),
    mistakes=(
        Mistake(
            post_norm_block, "this is post-norm: you normalize the sum; pre-norm normalizes the input of each sublayer"
        ),
        Mistake(
            _norms_in_the_stream,
            "you overwrite x with its norm, so the residual connection carries a normalized stream; keep x, and "
            "normalize only what the sublayer reads",
        ),
        Mistake(
            lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x)),
            "both sublayers read the old x, in parallel; the second must read the stream after attention was added",
        ),
        Mistake(lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x)))), _LOST),
        Mistake(
            lambda x, n1, a, n2, f: f(n2(x + a(n1(x)))),
            "the second residual connection is missing: add the feed-forward network's output to the stream",
        ),
    ),
)


def check_pre_norm_block(attempt: Attempt) -> bool:
    """Does `attempt(x, norm1, attention, norm2, feed_forward)` give the stream after a pre-norm block?"""
    return PRE_NORM_BLOCK.check(attempt)


POST_NORM_BLOCK = Exercise(
    "check_post_norm_block",
    answer=post_norm_block,
    cases=_block_cases("where both say nothing, the stream is normalized twice"),
    mistakes=(
        Mistake(
            pre_norm_block, "this is pre-norm: you normalize the input of each sublayer; post-norm normalizes the sum"
        ),
        Mistake(
            lambda x, n1, a, n2, f: post_norm_block(x, n1, a, n1, f),
            "you use one norm twice, as in the notes' listing; there are two, each with its own gain",
        ),
        Mistake(
            lambda x, n1, a, n2, f: n2((y := x + a(x)) + f(y)),
            "the sum with attention is not normalized: every addition is followed by a norm, not only the last",
        ),
        Mistake(
            lambda x, n1, a, n2, f: (y := n1(x + a(x))) + f(y),
            "the second sum is not normalized: every addition is followed by a norm",
        ),
        Mistake(lambda x, n1, a, n2, f: n2(x + f(n1(x + a(x)))), _LOST),
    ),
)


def check_post_norm_block(attempt: Attempt) -> bool:
    """Does `attempt(x, norm1, attention, norm2, feed_forward)` give the stream after a post-norm block?"""
    return POST_NORM_BLOCK.check(attempt)


def _stream_sizes(embedding: float, added: Sequence[float]) -> Tensor:
    """RMS after every addition at right angles, `[len(added)]`."""
    return torch.tensor([embedding, *added], dtype=torch.float64).pow(2).cumsum(0).sqrt()[1:]


STREAM_SIZES = Exercise(
    "check_stream_sizes",
    answer=_stream_sizes,
    cases=(
        Case("four additions of different sizes", (0.5, [1.0, 0.25, 2.0, 0.75])),
        Case("3 and then 4 make 5", (3.0, [4.0])),
        Case("sixteen equal ones: sizes that grow like a root", (0.02, [0.3] * 16)),
    ),
    mistakes=(
        Mistake(
            lambda embedding, added: list(accumulate(added, initial=embedding))[1:],
            "sizes add up only for vectors in the same direction; at right angles their squares do (Pythagoras)",
        ),
        Mistake(
            lambda embedding, added: _stream_sizes(embedding, added) ** 2,
            "this is the mean square; take the root at the end",
        ),
        Mistake(
            lambda embedding, added: _stream_sizes(0.0, added),
            "the stream does not begin empty: it begins with the embedding",
        ),
        Mistake(
            lambda embedding, added: [embedding, *_stream_sizes(embedding, added).tolist()],
            "return one number for each addition; leave out the size before the first",
        ),
        Mistake(
            lambda embedding, added: [(embedding**2 + size**2) ** 0.5 for size in added],
            "each addition meets everything that was added before it, not the embedding alone",
        ),
    ),
)


def check_stream_sizes(attempt: Attempt) -> bool:
    """Does `attempt(embedding, added)` give the RMS of a pre-norm stream after every addition?"""
    return STREAM_SIZES.check(attempt)


def _ledger(
    config: MiniMindConfig,
    kv_heads: int | None = None,
    output_maps: int = 1,
    matrices: int = 3,
    final: int = 1,
    tables: int = 1,
) -> tuple[int, int, int, int]:
    """Parameters of embedding, attention, feed-forward networks and norms; by default the right ones."""
    hidden, layers, heads = config.hidden_size, config.num_hidden_layers, config.num_attention_heads
    kv_heads = config.num_key_value_heads if kv_heads is None else kv_heads
    attention = hidden * config.head_dim * ((1 + output_maps) * heads + 2 * kv_heads)
    feed_forward = matrices * hidden * config.intermediate_size
    norms = (2 * layers + final) * hidden
    return tables * config.vocab_size * hidden, layers * attention, layers * feed_forward, norms


LEDGER = Exercise(
    "check_ledger",
    answer=_ledger,
    cases=(
        Case("MiniMind2 small, 25,829,888 in all", (MiniMindConfig.minimind2(),)),
        Case("MiniMind2, 104,030,976 in all", (MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16),)),
        Case(
            "90 wide, 7 blocks, 5 of 15 heads",
            (
                MiniMindConfig(
                    vocab_size=100,
                    hidden_size=90,
                    num_hidden_layers=7,
                    num_attention_heads=15,
                    num_key_value_heads=5,
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
        Mistake(lambda c: _ledger(c, tables=2), "the head uses the embedding's matrix: a tied table counts once"),
    ),
)


def check_ledger(attempt: Attempt) -> bool:
    """Does `attempt(config)` give the parameters of embedding, attention, feed-forward networks and norms?"""
    return LEDGER.check(attempt)


def next_token_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Mean cross-entropy of the next token."""
    return _entropy(logits[:, :-1], ids[:, 1:])


def _entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _logits_and_ids(batch: int, length: int, vocabulary: int = 7) -> tuple[Tensor, Tensor]:
    ids = (torch.arange(batch * length) ** 2 + 3) % vocabulary
    return 3 * numbers(batch, length, vocabulary), ids.view(batch, length)


NEXT_TOKEN_LOSS = Exercise(
    "check_next_token_loss",
    answer=next_token_loss,
    cases=(
        Case("one sequence of two: a single prediction", _logits_and_ids(1, 2)),
        Case("one sequence of six", _logits_and_ids(1, 6)),
        Case("three sequences of five", _logits_and_ids(3, 5)),
    ),
    mistakes=(
        Mistake(
            _entropy,
            "you compare every position with its own token, which it has read; position s predicts token s + 1",
        ),
        Mistake(
            lambda logits, ids: _entropy(logits[:, 1:], ids[:, :-1]),
            "you shift the wrong way: drop the last position of the logits and the first of the ids",
        ),
        Mistake(
            lambda logits, ids: _entropy(logits, ids.roll(-1, 1)),
            "roll puts the first token after the last, but the last position has nothing to predict: leave it out",
        ),
        Mistake(
            lambda logits, ids: _entropy(logits[:, :-1].softmax(-1), ids[:, 1:]),
            "cross_entropy takes logits; it applies the softmax itself",
        ),
        Mistake(
            lambda logits, ids: next_token_loss(logits, ids) * (ids.shape[1] - 1) / ids.shape[1],
            "you divide by B * S, but there are only B * (S - 1) predictions",
        ),
    ),
)


def check_next_token_loss(attempt: Attempt) -> bool:
    """Does `attempt(logits, ids)` give the mean cross-entropy of the next token?"""
    return NEXT_TOKEN_LOSS.check(attempt)
