"""checks.gqa_shapes: right answers in other words pass, also those that a reader finds elsewhere; references hold."""

import math

import torch
import torch.nn.functional as F
from judged_answers import judged

from minimind_edu import checks
from minimind_edu.checks.gqa_shapes import check_grouped_attention, check_reordered
from minimind_edu.model.attention import attention
from minimind_edu.model.for_comparison import repeat_kv_interleave, repeat_kv_tiled
from minimind_edu.model.kv_cache import KVCache


def repeat_by_stack(x, n_rep):
    return torch.stack([x] * n_rep, dim=3).flatten(2, 3)


def repeat_by_index(x, n_rep):
    return x[:, :, torch.arange(x.shape[2] * n_rep) // n_rep]


def heads_by_real_caches(config, batch, length, budget):
    heads = config.num_attention_heads
    best = 0
    for count in range(1, heads + 1):
        cache = KVCache(config.num_hidden_layers)
        for layer in cache.layers:
            layer.append(*torch.empty(2, batch, length, count, config.head_dim, dtype=torch.half, device="meta"))
        if heads % count == 0 and cache.num_bytes() <= budget:
            best = count
    return best


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


def reordered_by_list(weight, num_kv_heads, head_dim):
    heads = weight.split(head_dim)
    return torch.cat([heads[i] for i in sorted(range(len(heads)), key=lambda i: i % num_kv_heads)])


def reordered_by_index(weight, num_kv_heads, head_dim):
    order = torch.arange(len(weight) // head_dim).view(-1, num_kv_heads).T.flatten()
    return weight.view(len(order), head_dim, -1)[order].view_as(weight)


def pool_by_loop(weight, num_heads, num_kv_heads):
    blocks = weight.chunk(num_heads)
    size = num_heads // num_kv_heads
    groups = [blocks[start : start + size] for start in range(0, num_heads, size)]
    return torch.cat([sum(group) / size for group in groups])


RIGHT = [
    (checks.check_repeat_kv, repeat_by_stack),
    (checks.check_repeat_kv, repeat_by_index),
    (checks.check_heads_that_fit, heads_by_real_caches),
    (checks.check_grouped_attention, grouped_by_rows),
    (checks.check_grouped_attention, grouped_by_loop),
    (checks.check_reordered, reordered_by_list),
    (checks.check_reordered, reordered_by_index),
    (checks.check_pool_heads, pool_by_loop),
]


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


def fitting(bytes_of_a_head):
    """An answer that is right but for the bytes of one head at one position."""

    def answer(config, batch, length, budget):
        heads = config.num_attention_heads
        fits = [
            k for k in range(1, heads + 1) if heads % k == 0 and k * batch * length * bytes_of_a_head(config) <= budget
        ]
        return max(fits, default=0)

    return answer


WRONG = [
    (checks.check_repeat_kv, repeat_kv_interleave, "without repeat_interleave"),
    (checks.check_repeat_kv, lambda x, n: torch.repeat_interleave(x, n, 2), "without repeat_interleave"),
    (checks.check_grouped_attention, repeats_for_sdpa, "every key was repeated"),
    (checks.check_grouped_attention, broadcasts, "every key was repeated"),
    (checks.check_heads_that_fit, fitting(lambda c: 2 * c.num_hidden_layers * 64 * 2), "use config.head_dim"),
    (checks.check_heads_that_fit, fitting(lambda c: 2 * 8 * c.head_dim * 2), "use config.num_hidden_layers"),
    (checks.check_heads_that_fit, lambda c, b, t, m: min(8, m // (32 * c.head_dim * b * t)), "must divide"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_the_reference_is_the_packages_attention():
    for case in check_grouped_attention.cases[:-1]:
        torch.testing.assert_close(check_grouped_attention.answer(*case.arguments), attention(*case.arguments, None)[0])


def test_a_reordered_checkpoint_attends_as_it_was_trained_to():
    q, k, v = torch.randn(1, 4, 24), torch.randn(1, 4, 3, 4), torch.randn(1, 4, 3, 4)
    trained, _ = attention(q.unflatten(-1, (6, 4)), repeat_kv_tiled(k, 2), repeat_kv_tiled(v, 2), None)
    moved = check_reordered.answer(q[0].T, 3, 4).T[None].unflatten(-1, (6, 4))  # channels of the queries as rows
    output, _ = attention(moved, k, v, None)
    torch.testing.assert_close(output.flatten(2)[0].T, check_reordered.answer(trained.flatten(2)[0].T, 3, 4))
