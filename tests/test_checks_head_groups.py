"""checks.head_groups: right answers in other words pass, also those that a reader finds elsewhere; references hold."""

import math

import pytest
import torch
import torch.nn.functional as F

from minimind_edu import MiniMindConfig, checks
from minimind_edu.attention import Attention, attention, repeat_kv_interleave
from minimind_edu.checks.head_groups import GROUPED_ATTENTION


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


def grouped_by_rows(query, key, value):
    """The group next to the query positions: [B, K, G*S, D]."""
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
    (checks.check_attention_parameters, parameters_by_module),
    (checks.check_grouped_attention, grouped_by_rows),
    (checks.check_grouped_attention, grouped_by_loop),
    (checks.check_pool_heads, pool_by_loop),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer):
    assert check(answer) is True


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


WRONG = [
    (checks.check_repeat_kv, repeat_kv_interleave, "without repeat_interleave"),
    (checks.check_repeat_kv, lambda x, n: torch.repeat_interleave(x, n, 2), "without repeat_interleave"),
    (checks.check_grouped_attention, repeats_for_sdpa, "every key was repeated"),
    (checks.check_grouped_attention, broadcasts, "every key was repeated"),
    (checks.check_attention_parameters, lambda config: 8 * parameters_by_module(MiniMindConfig()), "count one layer"),
]


@pytest.mark.parametrize(("check", "answer", "words"), WRONG, ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_answer_gets_the_hint_that_fits(check, answer, words, capsys):
    assert check(answer) is False
    assert words in capsys.readouterr().out.split("hint: ")[1]


def test_the_reference_is_the_packages_attention():
    for case in GROUPED_ATTENTION.cases[:-1]:
        torch.testing.assert_close(GROUPED_ATTENTION.answer(*case.arguments), attention(*case.arguments)[0])
