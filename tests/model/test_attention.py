"""Attention is its definition, written out and fused, for grouped heads, with masks, caches and dropout."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, SLOW_PROPERTY, spread_weights, tensor, tiny_config

from minimind_edu.measure.counting import Watch
from minimind_edu.model import attention as attention_module
from minimind_edu.model.attention import Attention, attention, fast_attention, repeat_kv
from minimind_edu.model.for_comparison import CatCache
from minimind_edu.model.masks import causal_mask, visible_keys
from minimind_edu.model.rope import precompute_freqs_cis

DOUBLE = torch.float64
HALVES = [torch.float16, torch.bfloat16]
seeds = st.integers(0, 10_000)
# B, S, past, K, G, D/2
sizes = st.tuples(
    st.integers(1, 3), st.integers(1, 6), st.integers(0, 5), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4)
)


def projections(size, seed=0, dtype=DOUBLE):
    """Query `[B, S, H, D]`, key and value `[B, past + S, K, D]`."""
    batch, length, past, kv_heads, group, half = size
    query = tensor(batch, length, kv_heads * group, 2 * half, seed=seed, dtype=dtype)
    key, value = (tensor(batch, past + length, kv_heads, 2 * half, seed=seed + n, dtype=dtype) for n in (1, 2))
    return query, key, value


def attention_number_by_number(query, key, value, allowed):
    """The definition, in plain loops: one query of one head at a time."""
    batch, length, heads, dim = query.shape
    group = heads // key.shape[2]
    output = torch.zeros_like(query)
    for b in range(batch):
        for s in range(length):
            for h in range(heads):
                seen = [t for t in range(key.shape[1]) if allowed(b, s, t)]
                keys, values = key[b, seen, h // group], value[b, seen, h // group]
                parts = [math.exp(score / math.sqrt(dim)) for score in (keys @ query[b, s, h]).tolist()]
                for part, read in zip(parts, values, strict=True):
                    output[b, s, h] += part / sum(parts) * read
    return output


# Repeating heads


@PROPERTY
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), seeds)
def test_repeat_kv_equals_repeat_interleave(batch, length, heads, n_rep, seed):
    x = tensor(batch, length, heads, 3, seed=seed)
    expected = torch.repeat_interleave(x, n_rep, dim=2)
    assert torch.equal(repeat_kv(x, n_rep), expected)


def test_neighboring_query_heads_share_a_key_value_head():
    heads = torch.arange(2.0).view(1, 1, 2, 1)
    assert repeat_kv(heads, 4).flatten().tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


# Attention


@SLOW_PROPERTY
@given(sizes, seeds)
def test_both_ways_compute_the_definition(size, seed):
    query, key, value = projections(size, seed)
    past = size[2]
    expected = attention_number_by_number(query, key, value, lambda b, s, t: t <= past + s)
    written_out, _ = attention(query, key, value, causal_mask(size[1], past + size[1]))
    torch.testing.assert_close(written_out, expected)
    torch.testing.assert_close(fast_attention(query, key, value, "causal"), expected)
    torch.testing.assert_close(attention(query, key, value, "causal")[0], expected)


@PROPERTY
@given(sizes, seeds)
def test_attention_equals_torch_scaled_dot_product_attention(size, seed):
    query, key, value = projections(size, seed)
    mask = causal_mask(size[1], size[1] + size[2])
    theirs = F.scaled_dot_product_attention(
        query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), mask, enable_gqa=True
    ).transpose(1, 2)
    torch.testing.assert_close(attention(query, key, value, mask)[0], theirs)
    torch.testing.assert_close(fast_attention(query, key, value, mask), theirs)
    torch.testing.assert_close(fast_attention(query, key, value, "causal"), theirs)


@PROPERTY
@given(sizes, seeds)
def test_both_ways_agree_under_any_mask(size, seed):
    query, key, value = projections(size, seed)
    batch, length, past = size[:3]
    mask = tensor(batch, 1, length, past + length, seed=seed + 3) > 0
    output, _ = attention(query, key, value, mask)
    torch.testing.assert_close(fast_attention(query, key, value, mask), output)
    allowed = mask[:, 0]
    expected = attention_number_by_number(query, key, value, lambda b, s, t: allowed[b, s, t])
    torch.testing.assert_close(output, expected)


@PROPERTY
@given(sizes, seeds)
def test_weights_of_a_query_sum_to_one_and_forbidden_ones_are_zero(size, seed):
    query, key, value = projections(size, seed)
    mask = causal_mask(size[1], size[1] + size[2])
    _, weights = attention(query, key, value, mask)
    assert weights.shape == (size[0], query.shape[2], *mask.shape)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert (weights.masked_select(~mask) == 0).all()


MASKS = {"causal": "causal", "none": None, "padding": torch.tensor([[[[False] + [True] * 4]]])}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("length", [1, 3, 5])
def test_a_mask_means_the_same_to_both(name, length):
    query, key, value = projections((2, length, 5 - length, 2, 2, 4))
    written_out, _ = attention(query, key, value, MASKS[name])
    torch.testing.assert_close(fast_attention(query, key, value, MASKS[name]), written_out)


@pytest.mark.parametrize("way", [attention, fast_attention])
def test_what_a_query_may_see_is_always_said(way):
    with pytest.raises(TypeError, match="mask"):
        way(*projections(ONE))
    with pytest.raises(ValueError, match="mask must be a boolean tensor, 'causal', or None for every key, got 'all'"):
        way(*projections(ONE), "all")


def test_without_a_mask_every_query_sees_everything():
    query, key, value = projections((1, 3, 0, 2, 2, 2))
    output, weights = attention(query, key, value, None)
    torch.testing.assert_close(fast_attention(query, key, value, None), output)
    assert (weights > 0).all()


@pytest.mark.parametrize("way", [lambda *a: attention(*a)[0], fast_attention])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
def test_a_query_that_may_look_nowhere_gets_zeros(way, dtype):
    query, key, value = projections((1, 3, 0, 2, 2, 2), dtype=dtype)
    mask = causal_mask(3, 3)
    mask[1] = False
    output = way(query, key, value, mask)
    assert (output[:, 1] == 0).all()
    assert output.isfinite().all()


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, DOUBLE])
@pytest.mark.parametrize("tensor", [0, 1, 2], ids=["query", "key", "value"])
@pytest.mark.parametrize("place", [(0, 2, 1), (0, slice(None), 1), (0, 0, 1), (0, -1, 0)], ids=str)
@pytest.mark.parametrize("length, past", [(4, 0), (3, 2), (1, 4)])
def test_NaN_shows_wherever_it_shows_when_written_out(dtype, tensor, place, length, past):
    """Torch's kernel for the CPU takes a row of NaN scores for one that may look nowhere."""
    inputs = list(projections((1, length, past, 2, 2, 4), dtype=dtype))
    batch, position, head = place
    inputs[tensor][batch, min(position, length - 1) if isinstance(position, int) else position, head, 0] = torch.nan
    visible = causal_mask(length, length + past)
    shows = attention(*inputs, visible)[0].isnan()
    if tensor == 2:  # written out, a weight of 0 times NaN is NaN, too
        shows = shows & inputs[2][:, past:].isnan().repeat_interleave(2, dim=2)
    for mask in ("causal", visible, visible[None, None].expand(1, 4, -1, -1)):
        there = fast_attention(*inputs, mask).isnan()
        assert there.any() and bool((there | ~shows).all())


@pytest.mark.parametrize("length, past", [(4, 0), (3, 2), (1, 4)])
def test_NaN_shows_behind_padding(length, past):
    query, key, value = projections((1, length, past, 2, 2, 4))
    key[0, 1:, :, 0] = torch.nan
    visible = visible_keys(length, length + past, torch.tensor([[0] + [1] * (length + past - 1)]))
    written_out, _ = attention(query, key, value, visible)
    assert (fast_attention(query, key, value, visible).isnan() | ~written_out.isnan()).all()


@pytest.mark.parametrize("length, past", [(4, 0), (3, 2), (1, 4)])
def test_scores_that_overflow_show(length, past):
    query, key, value = projections((1, length, past, 2, 2, 8), dtype=torch.float32)
    written_out, _ = attention(1e25 * query, 1e25 * key, value, causal_mask(length, length + past))
    assert written_out.isnan().all()
    assert fast_attention(1e25 * query, 1e25 * key, value, causal_mask(length, length + past)).isnan().all()


def test_an_output_without_a_zero_is_not_looked_at_twice():
    """What every step pays to show NaN is two calls: whether there is a zero, and the answer."""
    query, key, value = projections((1, 1, 7, 2, 2, 8))
    with Watch() as watch:
        fast_attention(query, key, value, "causal")
    assert watch.calls["all"] == watch.calls["_local_scalar_dense"] == 1
    assert not {"mul", "sum", "isnan", "masked_fill"} & set(watch.calls)
    value.zero_()  # zeros, and no query is NaN
    assert (fast_attention(query, key, value, "causal") == 0).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_large_numbers_of_half_precision_are_no_NaN(dtype):
    query, key, value = projections((1, 4, 0, 2, 2, 8), dtype=dtype)
    value[..., 0] = 0  # a zero in the output is what lets the scores be looked at
    assert fast_attention(200 * query, 200 * query[:, :, :2], value, causal_mask(4, 4)).isfinite().all()


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_stays_half_precision(dtype):
    query, key, value = projections((2, 5, 3, 2, 2, 4), dtype=dtype)
    mask = causal_mask(5, 8)
    output, weights = attention(query, key, value, mask)
    assert output.dtype == weights.dtype == fast_attention(query, key, value, mask).dtype == dtype
    exact, _ = attention(query.double(), key.double(), value.double(), mask)
    torch.testing.assert_close(output.double(), exact, rtol=0.02, atol=0.02)


def test_large_queries_and_keys_do_not_overflow_in_half_precision():
    query, key, value = projections((1, 6, 0, 1, 2, 32))
    query, key, value = (100 * query).half(), (100 * key).half(), value.half()
    assert (query[0, :, 0] @ key[0, :, 0].T).isinf().any(), "the bare product must overflow"
    output, _ = attention(query, key, value, causal_mask(6, 6))
    exact, _ = attention(query.double(), key.double(), value.double(), causal_mask(6, 6))
    torch.testing.assert_close(output.double(), exact, rtol=0.02, atol=0.02)


def test_the_softmax_of_half_precision_scores_is_computed_in_float32(monkeypatch):
    seen, softmax = [], torch.Tensor.softmax
    monkeypatch.setattr(torch.Tensor, "softmax", lambda x, *given: seen.append(x.dtype) or softmax(x, *given))
    for dtype in (*HALVES, DOUBLE):
        attention(*projections((1, 3, 0, 2, 2, 2), dtype=dtype), None)
    assert seen == [torch.float32, torch.float32, DOUBLE]


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("masked", ["the same for all", "for each head", "for each head of each text"])
def test_heads_may_see_different_keys(length, masked):
    """One query is computed in another way than several, and no rule of masks may depend on that."""
    query, key, value = projections((2, length, 4, 2, 2, 3))
    batch, heads = {"the same for all": (1, 1), "for each head": (1, 4), "for each head of each text": (2, 4)}[masked]
    mask = tensor(batch, heads, length, length + 4, seed=3) > 0
    expected, _ = attention(query, key, value, mask)
    torch.testing.assert_close(fast_attention(query, key, value, mask), expected)
    if batch == 1:
        torch.testing.assert_close(fast_attention(query, key, value, mask[0]), expected)


@pytest.mark.parametrize("length", [1, 3])
def test_values_may_have_channels_of_their_own_number(length):
    query, key, value = projections((2, length, 2, 2, 2, 3))
    mask = causal_mask(length, length + 2)
    output, _ = attention(query, key, value[..., :5], mask)
    torch.testing.assert_close(output, attention(query, key, value, mask)[0][..., :5])
    torch.testing.assert_close(fast_attention(query, key, value[..., :5], mask), output)


ONE = (1, 3, 2, 2, 2, 2)  # query [1, 3, 4, 4], key and value [1, 5, 2, 4]
MISFITS = {
    "fewer values than keys": lambda q, k, v: (q, k, v[:, 1:]),
    "other channels in the queries": lambda q, k, v: (q[..., 1:], k, v),
    "another batch": lambda q, k, v: (q.repeat(2, 1, 1, 1), k, v),
    "no key/value heads": lambda q, k, v: (q, k[:, :, :0], v[:, :, :0]),
    "heads that are no multiple": lambda q, k, v: (q[:, :, :3], k, v),
    "no axis of heads": lambda q, k, v: (q[:, :, 0], k[:, :, 0], v[:, :, 0]),
}


@pytest.mark.parametrize("way", [attention, fast_attention])
@pytest.mark.parametrize("misfit", MISFITS)
def test_rejects_shapes_that_do_not_fit(way, misfit):
    with pytest.raises(ValueError, match=r"attention needs queries \[B, S, H, D\], .* H a multiple of K, got \["):
        way(*MISFITS[misfit](*projections(ONE)), None)


@pytest.mark.parametrize("way", [attention, fast_attention])
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_rejects_a_mask_that_would_be_added(way, dtype):
    with pytest.raises(ValueError, match=f"mask must be boolean, .* got {dtype}; try `mask == 1`"):
        way(*projections(ONE), causal_mask(3, 5).to(dtype))


# The module


def module_and_input(kind="minimind2", length=6, seed=0, dtype=DOUBLE, **changes):
    config = tiny_config(kind, **changes)
    module = Attention(config)
    spread_weights(module, seed)
    tables = precompute_freqs_cis(config.head_dim, 32, config.rope_theta, dtype=DOUBLE)
    x = tensor(2, length, config.hidden_size, seed=seed + 1, dtype=dtype)
    return module.to(dtype).eval(), x, [table[:length] for table in tables]


@PROPERTY
@given(st.sampled_from(["minimind2", "minimind3"]), st.integers(2, 8), st.data())
def test_changing_a_token_changes_no_output_before_it(kind, length, data):
    module, x, tables = module_and_input(kind, length)
    position = data.draw(st.integers(1, length - 1))
    changed = x.clone()
    changed[:, position] += 1
    before, _ = module(x, tables)
    after, _ = module(changed, tables)
    torch.testing.assert_close(before[:, :position], after[:, :position], rtol=0, atol=1e-12)
    assert (before[:, position:] - after[:, position:]).abs().amax((0, 2)).min() > 1e-6


@PROPERTY
@given(st.sampled_from([(2, 1), (4, 2), (6, 3), (4, 4)]), seeds)
def test_grouped_heads_with_one_query_each_are_multi_head_attention(heads, seed):
    """K = H: torch's own multi-head attention on the same projections, once RoPE turns by nothing."""
    query_heads, _ = heads
    module, x, _ = module_and_input(
        num_attention_heads=query_heads, num_key_value_heads=query_heads, head_dim=6, hidden_size=query_heads * 6,
        seed=seed,
    )  # fmt: skip
    width = query_heads * 6
    theirs = torch.nn.MultiheadAttention(width, query_heads, bias=False, batch_first=True).double()
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([module.q_proj.weight, module.k_proj.weight, module.v_proj.weight]))
        theirs.out_proj.weight.copy_(module.o_proj.weight)
    unturned = torch.ones(6, 6, dtype=DOUBLE), torch.zeros(6, 6, dtype=DOUBLE)
    ours, weights = module(x, unturned, return_weights=True)
    expected, expected_weights = theirs(x, x, x, attn_mask=~causal_mask(6, 6), average_attn_weights=False)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(weights, expected_weights)


@PROPERTY
@given(st.sampled_from([(4, 2), (6, 2), (4, 1)]), seeds)
def test_grouped_heads_equal_many_heads_with_repeated_projections(heads, seed):
    query_heads, kv_heads = heads
    sizes = {"num_attention_heads": query_heads, "head_dim": 8}
    grouped, x, tables = module_and_input(num_key_value_heads=kv_heads, seed=seed, **sizes)
    many, _, _ = module_and_input(num_key_value_heads=query_heads, seed=seed, **sizes)
    with torch.no_grad():
        for name in ("q_proj", "o_proj"):
            getattr(many, name).weight.copy_(getattr(grouped, name).weight)
        for name in ("k_proj", "v_proj"):
            per_head = getattr(grouped, name).weight.view(kv_heads, 8, -1)
            rows = [per_head[head // (query_heads // kv_heads)] for head in range(query_heads)]
            getattr(many, name).weight.copy_(torch.cat(rows))
    torch.testing.assert_close(grouped(x, tables)[0], many(x, tables)[0])


@pytest.mark.parametrize("kind", ["minimind2", "minimind3"])
def test_returning_the_weights_changes_nothing(kind):
    module, x, tables = module_and_input(kind)
    fast, none = module(x, tables)
    slow, weights = module(x, tables, return_weights=True)
    torch.testing.assert_close(fast, slow)
    assert none is None and weights.shape == (2, 4, 6, 6)


def test_projected_queries_and_keys_are_turned_and_values_are_not():
    module, x, tables = module_and_input()
    q, k, v = module.project(x, *tables)
    torch.testing.assert_close(q[:, 0].flatten(1), module.q_proj(x[:, 0]))
    torch.testing.assert_close(k[:, 0].flatten(1), module.k_proj(x[:, 0]))
    assert not torch.allclose(k[:, 1:].flatten(2), module.k_proj(x[:, 1:]), atol=0.1)
    torch.testing.assert_close(v.flatten(2), module.v_proj(x))


def test_qk_norm_normalizes_each_head_before_rope():
    module, x, tables = module_and_input("minimind3")
    with torch.no_grad():
        module.q_norm.weight.fill_(1.0)
        module.k_norm.weight.fill_(2.0)
    q, k, _ = module.project(x, *tables)
    torch.testing.assert_close(q.pow(2).mean(-1), torch.ones_like(q[..., 0]), atol=1e-4, rtol=0)
    torch.testing.assert_close(k.pow(2).mean(-1), 4 * torch.ones_like(k[..., 0]), atol=1e-3, rtol=0)
    raw = module.q_proj(x).view(2, 6, 4, 8)
    position_0 = raw[:, 0] / raw[:, 0].pow(2).mean(-1, keepdim=True).sqrt()
    torch.testing.assert_close(q[:, 0], position_0, rtol=1e-4, atol=1e-4)


def test_qk_norm_stands_before_rope_so_its_gain_moves_with_the_channel():
    """A gain applied after RoPE would scale other channels: the two orders differ once gains differ."""
    module, x, tables = module_and_input("minimind3")
    q, _, _ = module.project(x, *tables)
    unturned = [torch.ones_like(tables[0]), torch.zeros_like(tables[1])]
    normed, _, _ = module.project(x, *unturned)
    pairs = q.unflatten(-1, (2, -1)).norm(dim=-2)
    torch.testing.assert_close(pairs, normed.unflatten(-1, (2, -1)).norm(dim=-2))


def test_minimind2_has_no_qk_norm_and_no_biases():
    module, _, _ = module_and_input()
    names = [name for name, _ in module.named_parameters()]
    assert names == [f"{letter}_proj.weight" for letter in "qkvo"]


def test_the_cache_holds_turned_keys_before_repeat_kv():
    module, x, tables = module_and_input()
    cache = CatCache()
    module(x, tables, cache)
    _, k, v = module.project(x, *tables)
    assert torch.equal(cache.key, k) and torch.equal(cache.value, v)
    assert cache.key.shape == (2, 6, 2, 8)


def test_attention_output_is_right_under_a_cache_with_its_weights():
    module, x, tables = module_and_input()
    whole, _ = module(x, tables)
    cache = CatCache()
    first = [table[:4] for table in tables]
    then = [table[4:] for table in tables]
    module(x[:, :4], first, cache)
    output, weights = module(x[:, 4:], then, cache, return_weights=True)
    torch.testing.assert_close(output, whole[:, 4:])
    assert weights.shape == (2, 4, 2, 6) and (weights[:, :, 0, 5] == 0).all()


def test_returned_weights_obey_the_mask_that_was_given():
    module, x, tables = module_and_input()
    mask = visible_keys(6, 6, torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6]))
    output, weights = module(x, tables, mask=mask, return_weights=True)
    assert (weights[0, :, 2:, :2] == 0).all() and (weights[1, :, 1:, 0] > 0).all()
    torch.testing.assert_close(output, module(x, tables, mask=mask)[0])


def test_dropout_hides_its_share_of_the_attention_weights():
    """With a value of its own for each key, what comes out is the weights themselves."""
    query, key = tensor(1, 1, 1, 2000), torch.zeros(1, 2000, 1, 2000, dtype=DOUBLE)
    torch.manual_seed(0)
    weights = fast_attention(query, key, torch.eye(2000, dtype=DOUBLE)[None, :, None], None, dropout=0.25).flatten()
    assert (weights == 0).double().mean().item() == pytest.approx(0.25, abs=0.03)
    assert weights.sum().item() == pytest.approx(1.0, abs=0.05), "those that are kept are scaled up"


def test_the_module_drops_attention_weights_at_the_rate_of_the_config(monkeypatch):
    rates = []
    monkeypatch.setattr(attention_module, "fast_attention", lambda q, k, v, mask, rate: rates.append(rate) or q)
    module, x, tables = module_and_input(dropout=0.3)
    module(x, tables)
    module.train()(x, tables)
    assert rates == [0.0, 0.3]


def test_dropout_acts_in_training_only():
    module, x, tables = module_and_input(dropout=0.5)
    torch.testing.assert_close(module(x, tables)[0], module(x, tables)[0], rtol=0, atol=0)
    module.train()
    torch.manual_seed(0)
    assert (module(x, tables)[0] == 0).double().mean() > 0.2


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("kind", ["minimind2", "minimind3"])
def test_the_module_keeps_half_precision(dtype, kind):
    module, x, tables = module_and_input(kind, dtype=dtype)
    tables = [table.float() for table in tables]
    cache = CatCache()
    output, weights = module(x, tables, cache, return_weights=True)
    assert output.dtype == weights.dtype == cache.key.dtype == dtype
    assert module(x, tables)[0].dtype == dtype


def test_gradients_are_right():
    query, key, value = (x.requires_grad_() for x in projections((1, 2, 1, 1, 2, 1)))
    mask = causal_mask(2, 3)
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, mask)[0], (query, key, value))
