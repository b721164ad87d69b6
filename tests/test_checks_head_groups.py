"""checks.head_groups: right answers pass, and every usual wrong answer is named."""

import math

import pytest
import torch
import torch.nn.functional as F
from check_answers import (
    assert_every_hint_is_its_own,
    assert_mistake_is_named,
    assert_told_as_not_attempted,
    usual_mistakes,
)

from minimind_edu import MiniMindConfig, checks
from minimind_edu.attention import Attention, repeat_kv_interleave
from minimind_edu.checks import _head_group_mistakes as known
from minimind_edu.checks import head_groups as module

# ---- right answers, none of them written like the reference


def head_by_proportion(query_head, num_heads, num_kv_heads):
    return query_head * num_kv_heads // num_heads


def head_by_list(query_head, num_heads, num_kv_heads):
    size = num_heads // num_kv_heads
    return [head for head in range(num_kv_heads) for _ in range(size)][query_head]


def repeat_by_stack(x, n_rep):
    return torch.stack([x] * n_rep, dim=3).flatten(2, 3)


def repeat_by_index(x, n_rep):
    return x[:, :, torch.arange(x.shape[2] * n_rep) // n_rep]


def parameters_by_module(config):
    layer = Attention(config)
    return sum(p.numel() for name, p in layer.named_parameters() if "norm" not in name)


def parameters_by_formula(config):
    query, kept = (config.head_dim * n for n in (config.num_attention_heads, config.num_key_value_heads))
    return 2 * config.hidden_size * query + 2 * config.hidden_size * kept


def grouped_by_rows(query, key, value):
    """The group stands beside the query positions: [B, K, G*S, D]."""
    batch, length, heads, dim = query.shape
    kv_heads = key.shape[2]
    rows = query.unflatten(2, (kv_heads, -1)).permute(0, 2, 3, 1, 4).flatten(2, 3)
    scores = rows @ key.permute(0, 2, 3, 1) / math.sqrt(dim)
    output = scores.softmax(-1) @ value.transpose(1, 2)
    return output.unflatten(2, (-1, length)).permute(0, 3, 1, 2, 4).flatten(2, 3)


def grouped_by_loop(query, key, value):
    size = query.shape[2] // key.shape[2]
    outputs = []
    for head in range(query.shape[2]):
        k, v = key[:, :, head // size], value[:, :, head // size]
        weights = (query[:, :, head] @ k.mT / query.shape[-1] ** 0.5).softmax(-1)
        outputs.append(weights @ v)
    return torch.stack(outputs, dim=2)


def pool_by_loop(weight, num_heads, num_kv_heads):
    blocks = weight.chunk(num_heads)
    size = num_heads // num_kv_heads
    groups = [blocks[start : start + size] for start in range(0, num_heads, size)]
    return torch.cat([sum(group) / size for group in groups])


RIGHT = [
    (checks.check_kv_head_of, head_by_proportion),
    (checks.check_kv_head_of, head_by_list),
    (checks.check_repeat_kv, repeat_by_stack),
    (checks.check_repeat_kv, repeat_by_index),
    (checks.check_repeat_kv, repeat_kv_interleave),
    (checks.check_attention_parameters, parameters_by_module),
    (checks.check_attention_parameters, parameters_by_formula),
    (checks.check_grouped_attention, grouped_by_rows),
    (checks.check_grouped_attention, grouped_by_loop),
    (checks.check_pool_heads, pool_by_loop),
]
ALL = sorted({check for check, _ in RIGHT}, key=lambda check: check.__name__)


@pytest.mark.parametrize("check, answer", RIGHT, ids=lambda f: f.__name__)
def test_right_answers_pass(check, answer, capsys):
    assert check(answer) is True
    assert "not yet" not in capsys.readouterr().out


# ---- wrong answers

MISTAKES = {
    checks.check_kv_head_of: known.KV_HEAD_MISTAKES,
    checks.check_repeat_kv: known.REPEAT_MISTAKES,
    checks.check_attention_parameters: known.PARAMETER_MISTAKES,
    checks.check_grouped_attention: known.GROUPED_MISTAKES,
    checks.check_pool_heads: known.POOL_MISTAKES,
}


@pytest.mark.parametrize("check, mistake", usual_mistakes(MISTAKES))
def test_every_usual_mistake_is_named(check, mistake, capsys):
    assert_mistake_is_named(check, mistake.answer, mistake.hint, capsys)


def test_every_check_knows_at_least_five_mistakes():
    for usual in MISTAKES.values():
        assert_every_hint_is_its_own(usual)


def repeats_for_sdpa(query, key, value):
    group = query.shape[2] // key.shape[2]
    q = query.transpose(1, 2)
    k, v = (repeat_kv_interleave(x, group).transpose(1, 2) for x in (key, value))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2)


def broadcasts(query, key, value):
    """No repeat is written, but matmul copies what it broadcasts."""
    groups = query.transpose(1, 2).unflatten(1, (key.shape[2], -1))  # [B, K, G, S, D]
    k, v = (x.transpose(1, 2).unsqueeze(2) for x in (key, value))  # [B, K, 1, T, D]
    weights = (groups @ k.mT / math.sqrt(query.shape[-1])).softmax(-1)
    return (weights @ v).flatten(1, 2).transpose(1, 2)


@pytest.mark.parametrize("answer", [repeats_for_sdpa, broadcasts])
def test_a_right_answer_that_repeats_is_told_so(answer, capsys):
    assert checks.check_grouped_attention(answer) is False
    assert "every key was repeated" in capsys.readouterr().out


def test_one_number_for_all_layers_is_not_one_layer(capsys):
    config = MiniMindConfig()
    total = known.attention_parameters(config) * config.num_hidden_layers
    assert checks.check_attention_parameters(lambda c: total) is False
    assert "one layer is asked for" in capsys.readouterr().out


# ---- what every check does


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_nothing_yet(check, capsys):
    assert_told_as_not_attempted(check, lambda *arguments: None, capsys)


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_an_error_is_told_kindly(check, capsys):
    def broken(*arguments):
        raise IndexError("too few heads")

    assert check(broken) is False
    assert "stopped with IndexError: too few heads" in capsys.readouterr().out


@pytest.mark.parametrize("check, answer", RIGHT, ids=lambda f: f.__name__)
def test_output_is_the_same_every_time(check, answer, capsys):
    check(answer)
    first = capsys.readouterr().out
    check(answer)
    assert capsys.readouterr().out == first


def test_references_agree_with_the_package():
    config = MiniMindConfig.minimind3()
    assert known.attention_parameters(config) == parameters_by_module(config)
    q, k, v = module._inputs(2, 3, 4, 6, 2)
    fused = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), enable_gqa=True).transpose(1, 2)
    assert torch.allclose(known.grouped_attention(q, k, v), fused)
