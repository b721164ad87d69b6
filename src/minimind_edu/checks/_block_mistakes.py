"""The usual wrong answers to the exercises on the block and the model, each with the hint that leads out of it."""

from collections.abc import Callable
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu.checks._report import Mistake
from minimind_edu.config import MiniMindConfig

Function = Callable[[Tensor], Tensor]


def pre_norm_block(x: Tensor, norm1: Function, attend: Function, norm2: Function, feed: Function):
    """`[B, S, E]` in and out: the reference of the first exercise."""
    x = x + attend(norm1(x))
    return x + feed(norm2(x))


def post_norm_block(x: Tensor, norm1: Function, attend: Function, norm2: Function, feed: Function):
    """`[B, S, E]` in and out: the reference of the second exercise."""
    x = norm1(x + attend(x))
    return norm2(x + feed(x))


def _norms_in_the_stream(x, norm1, attend, norm2, feed):
    x = norm1(x)
    x = norm2(x + attend(x))
    return x + feed(x)


def _second_from_the_start(x, norm1, attend, norm2, feed):
    return x + feed(norm2(x + attend(norm1(x))))


def _attention_alone_fed(x, norm1, attend, norm2, feed):
    attended = attend(norm1(x))
    return x + attended + feed(norm2(attended))


def _outputs_normalized(x, norm1, attend, norm2, feed):
    x = x + norm1(attend(x))
    return x + norm2(feed(x))


def _without_stream(x, norm1, attend, norm2, feed):
    return feed(norm2(attend(norm1(x))))


def _feed_forward_first(x, norm1, attend, norm2, feed):
    x = x + feed(norm1(x))
    return x + attend(norm2(x))


def _swapped(reference: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, norm1, attend, norm2, feed: reference(x, norm2, attend, norm1, feed)


def _one_norm(reference: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, norm1, attend, norm2, feed: reference(x, norm1, attend, norm1, feed)


def _no_norm(x, norm1, attend, norm2, feed):
    x = x + attend(x)
    return x + feed(x)


_SHARED = (
    Mistake(
        _outputs_normalized,
        "you normalize what the sublayer says before it is added: a third placement, which OLMo 2 uses with its "
        "norms, but not the one asked for",
    ),
    Mistake(_no_norm, "no norm is applied at all"),
    Mistake(_without_stream, "nothing is added to x: without the residual connection there is no stream"),
)

PRE_NORM_MISTAKES = (
    Mistake(post_norm_block, "this is post-norm: you normalize the sum; pre-norm normalizes what goes into the branch"),
    Mistake(
        _norms_in_the_stream,
        "the norm's result has replaced x, so the residual connection carries a normalized stream; keep x as it is and "
        "normalize only what the sublayer reads",
    ),
    Mistake(_one_norm(pre_norm_block), "the same norm serves twice; each half has its own, with gains of its own"),
    Mistake(_swapped(pre_norm_block), "the two norms have changed places: norm1 stands before attention"),
    Mistake(
        lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x)),
        "both halves read the old x, side by side; the feed-forward network must read the stream that attention has "
        "already added to",
    ),
    Mistake(
        _second_from_the_start,
        "the second addition starts from the old x, so what attention said is lost from the stream",
    ),
    Mistake(
        _attention_alone_fed,
        "norm2 reads attention's output alone; in spite of its name post_attention_layernorm it reads the whole "
        "stream, x plus attention",
    ),
    Mistake(_feed_forward_first, "attention comes first, the feed-forward network second"),
    *_SHARED,
)  # fmt: skip

POST_NORM_MISTAKES = (
    Mistake(pre_norm_block, "this is pre-norm: you normalize what goes into the branch; post-norm normalizes the sum"),
    Mistake(
        _one_norm(post_norm_block),
        "one norm serves twice, as in the notes' listing; two are needed, each with gains of its own",
    ),
    Mistake(_swapped(post_norm_block), "the two norms have changed places: norm1 follows attention"),
    Mistake(
        lambda x, n1, a, n2, f: n2((y := x + a(x)) + f(y)),
        "the sum with attention is not normalized: every addition has a norm behind it, not only the last",
    ),
    Mistake(
        lambda x, n1, a, n2, f: n2(x + f(n1(x + a(x)))),
        "the second addition starts from the old x, so what attention said is lost from the stream",
    ),
    Mistake(
        lambda x, n1, a, n2, f: (y := n1(x + a(x))) + f(y),
        "the second sum is not normalized: every addition has a norm behind it",
    ),
    Mistake(
        lambda x, n1, a, n2, f: n2((y := n1(x + a(n1(x)))) + f(n2(y))),
        "the sublayers read a normalized copy as well: that is a norm on both sides; post-norm has only the one behind",
    ),
    *_SHARED,
)  # fmt: skip


def stream_sizes(embedding: float, added: list[float]) -> Tensor:
    """RMS after every addition at right angles, `[len(added)]`: the reference of the third exercise."""
    squares = torch.tensor([embedding, *added], dtype=torch.float64) ** 2
    return squares.cumsum(0).sqrt()[1:]


def _sizes(of: Callable[[float, list[float]], list[float]]) -> Callable[..., Tensor]:
    return lambda embedding, added: torch.tensor(of(embedding, added), dtype=torch.float64)


SIZE_MISTAKES = (
    Mistake(
        _sizes(lambda e, a: list(accumulate(a, initial=e))[1:]),
        "sizes add up only for vectors that point the same way; at right angles their squares do (Pythagoras)",
    ),
    Mistake(
        _sizes(lambda e, a: list(accumulate((s * s for s in a), initial=e * e))[1:]),
        "this is the mean square; take the root at the end",
    ),
    Mistake(lambda e, a: stream_sizes(0.0, a), "the stream does not begin empty: the embedding is in it"),
    Mistake(
        lambda e, a: torch.cat([torch.tensor([e], dtype=torch.float64), stream_sizes(e, a)]),
        "one number for each addition; the start itself is not asked for",
    ),
    Mistake(lambda e, a: stream_sizes(e, a)[-1], "one number for each addition, not only the last"),
    Mistake(
        _sizes(lambda e, a: [(e * e + s * s) ** 0.5 for s in a]),
        "each addition meets the stream as it is by then, with everything added before it, not the embedding alone",
    ),
    Mistake(
        lambda e, a: stream_sizes(e, a) / torch.arange(2, len(a) + 2).sqrt(),
        "the squares are added, not averaged: nothing is divided by their number",
    ),
    Mistake(
        _sizes(lambda e, a: [1.0] * len(a)), "this would be post-norm; in pre-norm nobody brings the stream back to 1"
    ),
)


def ledger(config: MiniMindConfig) -> Tensor:
    """Parameters of the embedding, all attention, all feed-forward networks, all norms: the fourth reference."""
    return _ledger(config)


def _ledger(
    config: MiniMindConfig,
    kv_heads: int | None = None,
    matrices: int = 3,
    final: int = 1,
    bias: int = 0,
    layers: int | None = None,
    tables: int = 1,
    norms: int = 2,
    width: int | None = None,
) -> Tensor:
    hidden, kv = config.hidden_size, config.num_key_value_heads if kv_heads is None else kv_heads
    blocks = config.num_hidden_layers if layers is None else layers
    heads = config.num_attention_heads + kv
    attention = 2 * heads * config.head_dim * hidden
    inner = config.intermediate_size if width is None else width
    fed = matrices * hidden * inner + bias * (2 * inner + hidden)
    attention += bias * ((heads + kv) * config.head_dim + hidden)
    of_norms = blocks * norms * hidden + final * hidden
    return torch.tensor([tables * config.vocab_size * hidden, blocks * attention, blocks * fed, of_norms])


LEDGER_MISTAKES = (
    Mistake(
        lambda c: _ledger(c, kv_heads=c.num_attention_heads),
        "keys and values have num_key_value_heads heads, fewer than the queries",
    ),
    Mistake(lambda c: _ledger(c, matrices=2), "SwiGLU has three matrices: gate, up and down"),
    Mistake(lambda c: _ledger(c, final=0), "one norm is missing: the final one, after the last block"),
    Mistake(lambda c: _ledger(c, norms=1), "every block has two norms"),
    Mistake(lambda c: _ledger(c, bias=1), "no linear map of MiniMind has a bias"),
    Mistake(lambda c: _ledger(c, layers=1), "this is one block; the model has num_hidden_layers"),
    Mistake(lambda c: _ledger(c, tables=2), "the head uses the embedding's matrix: a tied table counts once"),
    Mistake(
        lambda c: _ledger(c, width=4 * c.hidden_size),
        "the feed-forward network is config.intermediate_size wide, not four times hidden_size",
    ),
    Mistake(
        lambda c: _ledger(c).sum(),
        "this is the total; return the four parts: embedding, attention, feed-forward, norms",
    ),
)


def next_token_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Mean cross-entropy of the next token: the reference of the fifth exercise."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def _targets_at(logits: Tensor, ids: Tensor) -> Tensor:
    """Log-probability of every next token, `[B, S-1]`."""
    return logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)


LOSS_MISTAKES = (
    Mistake(
        lambda x, i: F.cross_entropy(x.flatten(0, 1), i.flatten()),
        "every position is compared with its own token, which it has read; shift by one: position s predicts "
        "token s + 1",
    ),
    Mistake(
        lambda x, i: F.cross_entropy(x[:, 1:].flatten(0, 1), i[:, :-1].flatten()),
        "shifted the wrong way: the logits lose their last position, the ids their first",
    ),
    Mistake(
        lambda x, i: F.cross_entropy(x.flatten(0, 1), i.roll(-1, 1).flatten()),
        "roll brings the first token behind the last; the last position has nothing to predict and is left out",
    ),
    Mistake(
        lambda x, i: -_targets_at(x, i).sum(),
        "the mean over all predictions, not their sum",
    ),
    Mistake(
        lambda x, i: F.cross_entropy(x[:, :-1].softmax(-1).flatten(0, 1), i[:, 1:].flatten()),
        "cross_entropy takes logits; it does the softmax itself",
    ),
    Mistake(
        lambda x, i: -x[:, :-1].gather(-1, i[:, 1:, None]).mean(),
        "a logit is no probability: the log-softmax over the vocabulary is missing",
    ),
    Mistake(
        lambda x, i: -_targets_at(x, i).exp().mean(),
        "the logarithm of the probability is missing",
    ),
    Mistake(
        lambda x, i: _targets_at(x, i).mean(),
        "the sign: a loss is the negative log-probability",
    ),
    Mistake(
        lambda x, i: -_targets_at(x, i)[:, -1].mean(),
        "only the last prediction of each sequence: training uses all of them at once",
    ),
    Mistake(
        lambda x, i: F.cross_entropy(x[0, :-1], i[0, 1:]),
        "only the first sequence of the batch",
    ),
)  # fmt: skip
