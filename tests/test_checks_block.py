"""Exercise checks on the block and the model: right answers in other words pass, usual mistakes are named."""

import pytest
import torch
import torch.nn.functional as F
from check_answers import (
    assert_every_hint_is_its_own,
    assert_mistake_is_named,
    assert_told_as_not_attempted,
    wrong_answers,
)

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, checks
from minimind_edu.checks import _block_mistakes as known
from minimind_edu.figures.parameter_ledger import count_by_part

# ---- right answers, in words of their own


def pre_as_in_llama(x, norm1, attention, norm2, feed_forward):
    residual = x
    hidden = norm1(x)
    hidden = residual + attention(hidden)
    residual = hidden
    hidden = feed_forward(norm2(hidden))
    return residual + hidden


def pre_in_a_loop(x, norm1, attention, norm2, feed_forward):
    for norm, sublayer in ((norm1, attention), (norm2, feed_forward)):
        x = sublayer(norm(x)) + x
    return x


def post_in_one_line(x, norm1, attention, norm2, feed_forward):
    return norm2((y := norm1(attention(x) + x)) + feed_forward(y))


def sizes_one_by_one(embedding, added):
    sizes, square = [], embedding**2
    for size in added:
        square += size**2
        sizes.append(square**0.5)
    return sizes


def ledger_by_counting(config):
    counts = count_by_part(config)
    return [counts[part] for part in ("embedding", "attention", "feed-forward", "norms")]


def loss_by_gathering(logits, ids):
    chosen = logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:].unsqueeze(-1))
    return -chosen.mean()


def loss_with_ignored_label(logits, ids):
    labels = F.pad(ids[:, 1:], (0, 1), value=-100)
    return F.cross_entropy(logits.transpose(1, 2), labels)


RIGHT = [
    (checks.check_pre_norm_block, pre_as_in_llama),
    (checks.check_pre_norm_block, pre_in_a_loop),
    (checks.check_post_norm_block, post_in_one_line),
    (checks.check_stream_sizes, sizes_one_by_one),
    (checks.check_ledger, ledger_by_counting),
    (checks.check_next_token_loss, loss_by_gathering),
    (checks.check_next_token_loss, loss_with_ignored_label),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_right_answer_passes_whatever_the_default_dtype(check, answer, dtype, capsys):
    torch.set_default_dtype(dtype)
    try:
        assert check(answer) is True
    finally:
        torch.set_default_dtype(torch.float32)
    assert "not yet" not in capsys.readouterr().out


# ---- wrong answers, written as a learner would, and the words that the hint must hold


def pre(norms=lambda n1, n2: (n1, n2), first=None, second=None):
    """The right block with its norms exchanged, or with one half written otherwise."""

    def block(x, norm1, attention, norm2, feed_forward):
        norm1, norm2 = norms(norm1, norm2)
        x = first(x, norm1, attention) if first else x + attention(norm1(x))
        return second(x, norm2, feed_forward) if second else x + feed_forward(norm2(x))

    return block


def overwritten(x, norm, sublayer):
    x = norm(x)  # and the stream is gone
    return x + sublayer(x)


def lost_from_the_stream(x, norm1, attention, norm2, feed_forward):
    h = x + attention(norm1(x))
    return x + feed_forward(norm2(h))


def normalizes_the_attention(x, norm1, attention, norm2, feed_forward):
    out = attention(norm1(x))
    return (x + out) + feed_forward(norm2(out))


def post(n1=None, n2=None, **parts):
    def block(x, norm1, attention, norm2, feed_forward):
        x = (n1 or (lambda a, b: a))(norm1, norm2)(x + attention(x))
        return (n2 or (lambda a, b: b))(norm1, norm2)(x + feed_forward(x))

    return block


def both_sides(x, norm1, attention, norm2, feed_forward):
    x = norm1(x + attention(norm1(x)))
    return norm2(x + feed_forward(norm2(x)))


def same(x):
    return x


WRONG_PRE = {
    "post-norm": (post(), "this is post-norm"),
    "overwrites x": (pre(first=overwritten, second=overwritten), "normalized stream"),
    "one norm": (pre(norms=lambda a, b: (a, a)), "same norm serves twice"),
    "norms exchanged": (pre(norms=lambda a, b: (b, a)), "changed places"),
    "side by side": (lambda x, a, f, b, g: x + f(a(x)) + g(b(x)), "side by side"),
    "old x again": (lost_from_the_stream, "lost from the stream"),
    "attention alone": (normalizes_the_attention, "whole stream"),
    "feed-forward first": (lambda x, a, f, b, g: (y := x + g(a(x))) + f(b(y)), "comes first"),
    "no residual": (lambda x, a, f, b, g: g(b(f(a(x)))), "residual connection"),
    "outputs": (lambda x, a, f, b, g: (y := x + a(f(x))) + b(g(y)), "OLMo 2"),
    "no norm": (lambda x, a, f, b, g: (y := x + f(x)) + g(y), "no norm"),
    "half a block": (lambda x, a, f, b, g: x + f(a(x)), "expected"),
    "a tuple": (lambda x, a, f, b, g: (x, None), "got tuple"),
}

WRONG_POST = {
    "pre-norm": (pre(), "this is pre-norm"),
    "the notes' one norm": (post(n2=lambda a, b: a), "one norm serves twice"),
    "norms exchanged": (post(lambda a, b: b, lambda a, b: a), "changed places"),
    "only at the end": (post(n1=lambda a, b: same), "not only the last"),
    "only in the middle": (post(n2=lambda a, b: same), "second sum"),
    "old x again": (lambda x, a, f, b, g: b(x + g(a(x + f(x)))), "lost from the stream"),
    "both sides": (both_sides, "both sides"),
    "outputs": (lambda x, a, f, b, g: (y := x + a(f(x))) + b(g(y)), "OLMo 2"),
    "no norm": (lambda x, a, f, b, g: (y := x + f(x)) + g(y), "no norm"),
    "no residual": (lambda x, a, f, b, g: g(b(f(a(x)))), "residual connection"),
}


def sizes(rule):
    def answer(embedding, added):
        stream, told = embedding, []
        for size in added:
            stream = rule(stream, size)
            told.append(stream)
        return told

    return answer


def root_of_squares(stream, size):
    return (stream**2 + size**2) ** 0.5


WRONG_SIZES = {
    "sum": (sizes(lambda stream, size: stream + size), "Pythagoras"),
    "squares": (lambda e, a: [s**2 for s in sizes(root_of_squares)(e, a)], "take the root"),
    "no embedding": (lambda e, a: sizes(root_of_squares)(0.0, a), "begin empty"),
    "with the start": (lambda e, a: [e, *sizes(root_of_squares)(e, a)], "start itself"),
    "last": (lambda e, a: sizes(root_of_squares)(e, a)[-1], "not only the last"),
    "embedding alone": (lambda e, a: [root_of_squares(e, s) for s in a], "added before it"),
    "mean": (lambda e, a: [s / (i + 2) ** 0.5 for i, s in enumerate(sizes(root_of_squares)(e, a))], "not averaged"),
    "post-norm": (lambda e, a: torch.ones(len(a)), "post-norm"),
    "largest": (sizes(max), "expected"),
}


def ledger(**changes):
    """The right ledger from a config with other sizes."""

    def answer(c):
        heads, kv = c.num_attention_heads, changes.get("kv", lambda c: c.num_key_value_heads)(c)
        width = changes.get("width", lambda c: c.intermediate_size)(c)
        blocks = changes.get("blocks", c.num_hidden_layers)
        norms = blocks * changes.get("norms", 2) * c.hidden_size
        bias = changes.get("bias", 0)
        attention = 2 * c.hidden_size * c.head_dim * (heads + kv)
        attention += bias * ((heads + 2 * kv) * c.head_dim + c.hidden_size)
        fed = changes.get("matrices", 3) * c.hidden_size * width
        fed += bias * (2 * width + c.hidden_size)
        table = changes.get("tables", 1) * c.vocab_size * c.hidden_size
        norms += changes.get("final", 1) * c.hidden_size
        return [table, blocks * attention, blocks * fed, norms]

    return answer


WRONG_LEDGERS = {
    "full heads": (ledger(kv=lambda c: c.num_attention_heads), "fewer than the queries"),
    "two matrices": (ledger(matrices=2), "three matrices"),
    "16 norms": (ledger(final=0), "final one"),
    "one norm": (ledger(norms=1), "two norms"),
    "biases": (ledger(bias=1), "bias"),
    "one block": (ledger(blocks=1), "one block"),
    "head again": (ledger(tables=2), "counts once"),
    "four times": (ledger(width=lambda c: 4 * c.hidden_size), "four times"),
    "total": (lambda c: sum(ledger()(c)), "this is the total"),
    "attention forgotten": (lambda c: [v * (i != 1) for i, v in enumerate(ledger()(c))], "expected"),
}


def entropy(logits, targets, **options):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), **options)


WRONG_LOSSES = {
    "no shift": (lambda x, i: entropy(x, i), "its own token"),
    "wrong way": (lambda x, i: entropy(x[:, 1:], i[:, :-1]), "wrong way"),
    "rolled": (lambda x, i: entropy(x, i.roll(-1, dims=1)), "roll"),
    "sum": (lambda x, i: entropy(x[:, :-1], i[:, 1:], reduction="sum"), "not their sum"),
    "softmax twice": (lambda x, i: entropy(x[:, :-1].softmax(-1), i[:, 1:]), "itself"),
    "logits": (lambda x, i: -x[:, :-1].gather(-1, i[:, 1:].unsqueeze(-1)).mean(), "no probability"),
    "probabilities": (lambda x, i: -x[:, :-1].softmax(-1).gather(-1, i[:, 1:].unsqueeze(-1)).mean(), "logarithm"),
    "sign": (lambda x, i: -entropy(x[:, :-1], i[:, 1:]), "sign"),
    "last only": (lambda x, i: F.cross_entropy(x[:, -2], i[:, -1]), "last prediction"),
    "first only": (lambda x, i: F.cross_entropy(x[0, :-1], i[0, 1:]), "first sequence"),
}

WRONG = wrong_answers(
    {
        checks.check_pre_norm_block: WRONG_PRE,
        checks.check_post_norm_block: WRONG_POST,
        checks.check_stream_sizes: WRONG_SIZES,
        checks.check_ledger: WRONG_LEDGERS,
        checks.check_next_token_loss: WRONG_LOSSES,
    }
)


@pytest.mark.parametrize(("check", "answer", "words"), WRONG)
def test_a_usual_mistake_is_named(check, answer, words, capsys):
    assert_mistake_is_named(check, answer, words, capsys)


@pytest.mark.parametrize("check", dict.fromkeys(check for check, _ in RIGHT))
def test_nothing_written_yet_is_no_mistake(check, capsys):
    assert_told_as_not_attempted(check, lambda *arguments: None, capsys)


@pytest.mark.parametrize(
    "mistakes",
    [
        known.PRE_NORM_MISTAKES,
        known.POST_NORM_MISTAKES,
        known.SIZE_MISTAKES,
        known.LEDGER_MISTAKES,
        known.LOSS_MISTAKES,
    ],
)
def test_every_hint_is_its_own(mistakes):
    assert_every_hint_is_its_own(mistakes)


# ---- the references, against the package


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_reference_blocks_are_the_packages(placement):
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = MiniMindConfig(num_hidden_layers=1, norm_placement=placement, vocab_size=5, **sizes)
    model = MiniMindForCausalLM(config).double()
    layer, core = model.model.layers[0], model.model
    x = core.embed_tokens(torch.tensor([[1, 4, 2]]))
    tables = core.freqs_cos[:3], core.freqs_sin[:3]
    reference = known.pre_norm_block if placement == "pre" else known.post_norm_block
    parts = (layer.input_layernorm, lambda h: layer.self_attn(h, tables)[0], layer.post_attention_layernorm, layer.mlp)
    torch.testing.assert_close(reference(x, *parts), layer(x, tables)[0])


def test_the_reference_loss_is_the_packages():
    config = MiniMindConfig(hidden_size=16, num_attention_heads=2, vocab_size=9, num_hidden_layers=1)
    ids = torch.tensor([[1, 4, 2, 8], [0, 7, 7, 3]])
    out = MiniMindForCausalLM(config)(ids, labels=ids)
    torch.testing.assert_close(known.next_token_loss(out.logits, ids), out.loss)
