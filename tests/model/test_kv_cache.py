"""A model with a cache computes what it computes without, however the text is cut."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import SLOW_PROPERTY, tensor, tiny_model, token_ids

from minimind_edu.model.for_comparison import CatCache
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.layer_cache import BufferCache
from minimind_edu.model.masks import visible_keys

CACHES = [CatCache, BufferCache]
seeds = st.integers(0, 10_000)
cuts = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def pair(length, seed=0, batch=2, heads=2, dim=4, dtype=torch.float64):
    return (
        tensor(batch, length, heads, dim, seed=seed, dtype=dtype),
        tensor(batch, length, heads, dim, seed=seed + 1, dtype=dtype),
    )


def test_reads_like_the_notes_list_of_pairs():
    model = tiny_model()
    past = model(token_ids(2, 5), use_cache=True).past_key_values
    assert len(past) == 2 and past.length == 5
    for key, value in past:
        assert key.shape == value.shape == (2, 5, 2, 8)
    key, _ = past[-1]
    assert torch.equal(key, list(past)[1][0])
    assert torch.equal(past[:1][0][0], past[0][0])
    assert [torch.equal(one, other) for (one, _), (other, _) in zip(past[::-1], past, strict=True)] == [False, False]
    assert torch.equal(past[::-1][0][0], past[1][0]) and len(past[::2]) == 1


def test_a_cache_has_at_least_one_layer():
    with pytest.raises(ValueError, match="num_layers must be a whole number of at least 1, got 0"):
        KVCache(0)


def test_an_empty_cache_is_true():
    assert KVCache(2), "`past or None` must not lose it"


def test_num_bytes_is_that_of_keys_and_values_held():
    model = tiny_model(dtype=torch.float32)
    past = model(token_ids(3, 5), use_cache=True).past_key_values
    layers, batch, length, heads, dim, item_size = 2, 3, 5, 2, 8, 4
    assert past.num_bytes() == 2 * layers * batch * length * heads * dim * item_size
    assert KVCache(2, capacity=100).num_bytes() == 0


def test_to_hf_layout_turns_positions_and_heads_around():
    past = tiny_model()(token_ids(2, 5), use_cache=True).past_key_values
    for (key, value), (hf_key, hf_value) in zip(past, past.to_hf_layout(), strict=True):
        assert hf_key.shape == hf_value.shape == (2, 2, 5, 8)
        assert torch.equal(hf_key[:, 1, 3], key[:, 3, 1])
        assert torch.equal(hf_value[:, 0, 4], value[:, 4, 0])


# Cached = uncached

GENERATIONS = ["minimind2", "minimind3", "minimind2_moe"]
MODELS = {kind: tiny_model(kind) for kind in GENERATIONS}


def left_padded(batch, length, seed):
    """A mask `[B, T]` whose rows begin with different numbers of zeros, and end with ones."""
    generator = torch.Generator().manual_seed(seed)
    padding = torch.randint(0, length, (batch, 1), generator=generator)
    return (torch.arange(length) >= padding).long()


def logits_in_chunks(model, ids, lengths, mask):
    logits, past, end = [], None, 0
    for length in lengths:
        start, end = end, end + length
        out = model(ids[:, start:end], None if mask is None else mask[:, :end], past_key_values=past, use_cache=True)
        logits.append(out.logits)
        past = out.past_key_values
    return torch.cat(logits, dim=1), past


def hidden_with_caches(model, ids, lengths, mask, caches):
    """The blocks run by hand, each with the cache given for it: what any LayerCache must make possible."""
    chunks, end = [], 0
    inner = model.model
    for length in lengths:
        start, end = end, end + length
        x = inner.embed_tokens(ids[:, start:end])
        tables = inner.freqs_cos[start:end], inner.freqs_sin[start:end]
        visible = visible_keys(length, end, None if mask is None else mask[:, :end])
        for layer, cache in zip(inner.layers, caches, strict=True):
            x, _ = layer(x, tables, cache, visible)
        chunks.append(inner.norm(x))
    return torch.cat(chunks, dim=1)


@pytest.mark.parametrize("kind", GENERATIONS)
@SLOW_PROPERTY
@given(lengths=cuts, padded=st.booleans(), seed=seeds)
def test_cached_and_uncached_logits_agree_however_the_prompt_is_cut(kind, lengths, padded, seed):
    model, total = MODELS[kind], sum(lengths)
    ids = token_ids(3, total, seed=seed)
    mask = left_padded(3, total, seed) if padded else None
    with torch.no_grad():
        whole = model(ids, mask).logits
        chunks, past = logits_in_chunks(model, ids, lengths, mask)
    real = slice(None) if mask is None else mask.bool()
    torch.testing.assert_close(chunks[real], whole[real], rtol=1e-10, atol=1e-10)
    assert past.length == total


@pytest.mark.parametrize("cache_class", CACHES)
@SLOW_PROPERTY
@given(lengths=cuts, padded=st.booleans(), seed=seeds)
def test_both_caches_give_the_uncached_result(cache_class, lengths, padded, seed):
    model, total = MODELS["minimind3"], sum(lengths)
    ids = token_ids(2, total, seed=seed)
    mask = left_padded(2, total, seed) if padded else None
    with torch.no_grad():
        whole = model(ids, mask).last_hidden_state
        caches = [cache_class() for _ in model.model.layers]
        chunks = hidden_with_caches(model, ids, lengths, mask, caches)
    real = slice(None) if mask is None else mask.bool()
    torch.testing.assert_close(chunks[real], whole[real], rtol=1e-10, atol=1e-10)


def test_a_prompt_fed_token_by_token_in_float32_agrees_within_rounding():
    model = tiny_model("minimind3", dtype=torch.float32)
    ids = token_ids(2, 20)
    with torch.no_grad():
        chunks, _ = logits_in_chunks(model, ids, [1] * 20, None)
        whole = model(ids).logits
    torch.testing.assert_close(chunks, whole, rtol=1e-4, atol=1e-4)


def test_the_notes_tuples_can_be_passed_as_the_past():
    model, ids = MODELS["minimind2"], token_ids(2, 6)
    with torch.no_grad():
        past = model(ids[:, :4], use_cache=True).past_key_values
        by_cache = model(ids[:, 4:], past_key_values=past).logits
        for pairs in (list(past), tuple(past)):
            assert torch.equal(model(ids[:, 4:], past_key_values=pairs).logits, by_cache)


def test_a_past_passed_twice_gives_the_same_result_twice():
    model, ids = MODELS["minimind2"], token_ids(2, 6)
    with torch.no_grad():
        past = model(ids[:, :4], use_cache=True).past_key_values
        one = model(ids[:, 4:], past_key_values=past, use_cache=True)
        two = model(ids[:, 4:], past_key_values=past, use_cache=True)
    assert torch.equal(one.logits, two.logits)
    assert past.length == 4, "the past itself is not continued"
    assert one.past_key_values.length == two.past_key_values.length == 6


def test_one_past_can_be_continued_in_two_ways_side_by_side():
    model = MODELS["minimind2"]
    prompt, endings = token_ids(1, 4), [token_ids(1, 5, seed=seed) for seed in (1, 2)]
    with torch.no_grad():
        start = model(prompt, use_cache=True).past_key_values
        pasts, logits = [start, start], [[], []]
        for step in range(5):
            for branch in (0, 1):
                out = model(endings[branch][:, step : step + 1], past_key_values=pasts[branch], use_cache=True)
                pasts[branch] = out.past_key_values
                logits[branch].append(out.logits)
        for branch in (0, 1):
            whole = model(torch.cat([prompt, endings[branch]], dim=1)).logits[:, 4:]
            torch.testing.assert_close(torch.cat(logits[branch], dim=1), whole)


# Gradients


def gradients_of(model, ids, lengths):
    model.zero_grad()
    logits, _ = logits_in_chunks(model, ids, lengths, None)
    (logits * tensor(*logits.shape, seed=5)).sum().backward()
    return {name: p.grad for name, p in model.named_parameters() if p.requires_grad}


@pytest.mark.parametrize("trained", ["", "q_proj", "v_proj", "layers.0.self_attn.k_proj", "mlp"])
def test_gradients_flow_through_cached_calls_whatever_is_trained(trained):
    model, ids = tiny_model(), token_ids(2, 7)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(trained in name)
    whole = gradients_of(model, ids, [7])
    chunks = gradients_of(model, ids, [4, 1, 2])
    assert whole
    for name, gradient in whole.items():
        torch.testing.assert_close(chunks[name], gradient, msg=name)


def test_generating_between_forward_and_backward_disturbs_no_gradient():
    model, ids = tiny_model(), token_ids(2, 6)
    expected = gradients_of(model, ids, [6])
    model.zero_grad()
    out = model(ids, use_cache=True)
    with torch.no_grad():
        model(ids[:, :1], past_key_values=out.past_key_values, use_cache=True)
    (out.logits * tensor(*out.logits.shape, seed=5)).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], msg=name)


def test_a_past_computed_without_gradients_can_be_continued_with_them():
    model, ids = tiny_model(), token_ids(2, 7)
    with torch.no_grad():
        past = model(ids[:, :4], use_cache=True).past_key_values
        past = model(ids[:, 4:5], past_key_values=past, use_cache=True).past_key_values
    out = model(ids[:, 5:6], past_key_values=past, use_cache=True)
    out = model(ids[:, 6:], past_key_values=out.past_key_values, use_cache=True)
    out.logits.sum().backward()
    assert model.model.embed_tokens.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("cuts", [[4], [4, 1], [3, 1, 1]])
def test_a_past_computed_in_inference_mode_can_be_continued_outside(cuts):
    model, ids = tiny_model(), token_ids(2, 8)
    length = sum(cuts)
    with torch.inference_mode():
        _, past = logits_in_chunks(model, ids, cuts, None)
    with torch.no_grad():
        expected = model(ids).logits[:, length:]
        out = model(ids[:, length:], past_key_values=past)
    torch.testing.assert_close(out.logits, expected)


# Bad input


def bad_pasts():
    model = MODELS["minimind2"]
    with torch.no_grad():
        past = list(model(token_ids(2, 4), use_cache=True).past_key_values)
    turned = [(key.transpose(1, 2), value.transpose(1, 2)) for key, value in past]
    repeated = [(key.repeat(1, 1, 2, 1), value.repeat(1, 1, 2, 1)) for key, value in past]
    shorter = [past[0], (past[1][0][:, :3], past[1][1][:, :3])]
    return {
        "too few layers": (past[:1], "must hold one pair for each of the 2 layers, got 1"),
        "no layers": ([], "must hold one pair for each of the 2 layers, got 0"),
        "too many layers": (past + past[:1], "must hold one pair for each of the 2 layers, got 3"),
        "numbers in place of tensors": ([(1, 2)] * 2, r"past_key_values\[0\] must be a tensor .* got int"),
        "a key without its value": (
            [past[0], (past[1][0], None)],
            r"past_key_values\[1\] must be a tensor .* got NoneType",
        ),
        "values in half precision": (
            [(key, value.half()) for key, value in past],
            "keys and values must have one dtype and device, got torch.float64 on cpu and torch.float16 on cpu",
        ),
        "no cache was asked for": (
            [None, None],
            r"past_key_values\[0\] is None: the call that returned it ran without use_cache=True; "
            "pass past_key_values=None to start anew",
        ),
        "transformers' layout": (
            turned,
            r"past_key_values\[0\] must be \[B, T, K, D\] with K=2 and D=8, got \[2, 2, 4, 8\]; "
            r"this looks like transformers' \[B, K, T, D\]: transpose\(1, 2\) converts it",
        ),
        "after repeat_kv": (
            repeated,
            r"with K=2 and D=8, got \[2, 4, 4, 8\]; the cache holds key/value heads before repeat_kv, not query heads",
        ),
        "another head_dim": (
            [(key[..., :6], value[..., :6]) for key, value in past],
            r"with K=2 and D=8, got \[2, 4, 2, 6\]$",
        ),
        "layers of different length": (
            shorter,
            "all layers must have seen the same positions, but layer 0 holds 4 and layer 1 holds 3",
        ),
        "something else": (
            {"past": 1},
            r"must be one \(key, value\) pair of \[B, T, K, D\] for each layer, got dict; a transformers cache can be "
            "read layer by layer",
        ),
        "no pairs": ([past[0][0], past[1][0]], r"past_key_values\[0\] must be a \(key, value\) pair, got Tensor"),
        "another batch": (
            [(key[:1], value[:1]) for key, value in past],
            r"the cache holds \[B, T, K, D\] = \[1, 4, 2, 8\], which new keys of shape \[2, 1, 2, 8\] do not continue",
        ),
        "key and value of different shape": (
            [(key, value[:, :3]) for key, value in past],
            r"must both be \[B, S, K, D\], got \[2, 4, 2, 8\] and \[2, 3, 2, 8\]",
        ),
    }


@pytest.mark.parametrize("case", list(bad_pasts()))
def test_rejects_a_past_that_does_not_fit_the_model(case):
    past, message = bad_pasts()[case]
    with pytest.raises(ValueError, match=message):
        MODELS["minimind2"](token_ids(2, 1), past_key_values=past)
