"""checks.block: right answers in other words pass, and the references are what the package computes."""

import pytest
import torch
import torch.nn.functional as F

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, checks
from minimind_edu.checks import block as module
from minimind_edu.figures.parameter_ledger import count_by_part


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
def test_a_right_answer_passes(check, answer):
    assert check(answer) is True


WRONG = [
    (checks.check_pre_norm_block, lambda x, n1, attention, n2, f: x + attention(n1(x)), "expected"),
    (checks.check_pre_norm_block, lambda x, n1, attention, n2, f: (x, None), "got tuple"),
    (checks.check_ledger, lambda config: ledger_by_counting(config)[:3], "shape [3], expected [4]"),
]


@pytest.mark.parametrize(("check", "answer", "words"), WRONG, ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_answer_gets_the_hint_that_fits(check, answer, words, capsys):
    assert check(answer) is False
    assert words in capsys.readouterr().out.split("hint: ")[1]


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_reference_blocks_are_the_packages(placement):
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = MiniMindConfig(num_hidden_layers=1, norm_placement=placement, vocab_size=5, **sizes)
    core = MiniMindForCausalLM(config).double().model
    layer, x = core.layers[0], core.embed_tokens(torch.tensor([[1, 4, 2]]))
    tables = core.freqs_cos[:3], core.freqs_sin[:3]
    reference = module.pre_norm_block if placement == "pre" else module.post_norm_block
    parts = (layer.input_layernorm, lambda h: layer.self_attn(h, tables)[0], layer.post_attention_layernorm, layer.mlp)
    torch.testing.assert_close(reference(x, *parts), layer(x, tables)[0])


def test_the_reference_loss_is_the_packages():
    config = MiniMindConfig(hidden_size=16, num_attention_heads=2, vocab_size=9, num_hidden_layers=1)
    ids = torch.tensor([[1, 4, 2, 8], [0, 7, 7, 3]])
    out = MiniMindForCausalLM(config)(ids, labels=ids)
    torch.testing.assert_close(module.next_token_loss(out.logits, ids), out.loss)
