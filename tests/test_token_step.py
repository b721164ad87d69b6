"""The step in torch: what it computes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, SLOW_PROPERTY, tiny_model, token_ids

from minimind_edu.fast.token_step import token_step
from minimind_edu.kv_cache import KVCache
from minimind_edu.rope_frequencies import RopeScaling

YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
MODELS = {kind: tiny_model(kind) for kind in KINDS}
MODELS["post-norm"] = tiny_model(norm_placement="post")
MODELS["yarn"] = tiny_model("minimind3", **YARN)
MODELS["not tied"] = tiny_model(tie_word_embeddings=False)
MODELS["two shared experts"] = tiny_model("minimind2_moe", num_shared_experts=2)
# so large that each norm shows which one it took
MODELS["large eps"] = tiny_model("minimind3", rms_norm_eps=0.5)
every_model = pytest.mark.parametrize("name", MODELS)


@torch.no_grad()
def prefilled(model, ids, mask=None, **cache):
    past = KVCache(len(model.model.layers), **cache)
    return model(ids, mask, past_key_values=past, use_cache=True).past_key_values


@torch.no_grad()
def stepped(model, token, past, mask=None):
    """One step on a fork of `past`: logits, and the fork."""
    past = past.fork()
    keys, values = past.reserve(1)
    return token_step(model, token, past.length, keys, values, mask), past


@every_model
@SLOW_PROPERTY
@given(batch=st.integers(1, 3), length=st.integers(1, 20), seed=st.integers(0, 99))
def test_a_step_is_the_models_forward_for_one_token(name, batch, length, seed):
    model = MODELS[name]
    batch = 1 if model.config.use_moe else batch
    ids = token_ids(batch, length + 1, seed=seed)
    past = prefilled(model, ids[:, :-1], capacity=32)
    logits, after = stepped(model, ids[:, -1:], past)
    with torch.no_grad():
        expected = model(ids[:, -1:], past_key_values=past, use_cache=True)
    torch.testing.assert_close(logits, expected.logits)
    for got, wanted in zip(after, expected.past_key_values, strict=True):
        torch.testing.assert_close(got, wanted)


@every_model
def test_padding_is_not_read(name):
    model, rows = MODELS[name], 1 if MODELS[name].config.use_moe else 2
    ids, mask = token_ids(rows, 9), torch.tensor([[0, 0, 0] + [1] * 6, [1] * 9])[:rows]
    past = prefilled(model, ids[:, :-1], mask[:, :-1], capacity=16)
    logits, _ = stepped(model, ids[:, -1:], past, mask.bool())
    with torch.no_grad():
        expected = model(ids[:, -1:], mask, past_key_values=past, use_cache=True).logits
    torch.testing.assert_close(logits, expected)


def test_what_is_not_yet_filled_does_not_count():
    model, ids = MODELS["minimind2"], token_ids(1, 6)
    past = prefilled(model, ids[:, :-1], capacity=16)
    expected, _ = stepped(model, ids[:, -1:], past)
    for buffer in sum(past.fork().reserve(0), []):
        buffer[:, 5:] = torch.nan
    logits, _ = stepped(model, ids[:, -1:], past)
    assert torch.equal(logits, expected)


def test_only_the_new_position_is_written():
    model, ids = MODELS["minimind2"], token_ids(2, 6)
    past = prefilled(model, ids[:, :-1], capacity=16)
    keys, values = past.fork().reserve(0)
    for buffer in (*keys, *values):
        buffer[:, 5:] = 7.0
    before = [buffer.clone() for buffer in (*keys, *values)]
    stepped(model, ids[:, -1:], past)
    for old, new in zip(before, (*keys, *values), strict=True):
        changed = (old != new).flatten(2).any(-1)  # [B, capacity]
        assert changed.nonzero()[:, 1].unique().tolist() == [5]


@pytest.mark.parametrize("dtype, atol", [(torch.float32, 1e-5), (torch.bfloat16, 4e-2)])
def test_in_shorter_dtypes_a_step_agrees_within_rounding(dtype, atol):
    model, ids = tiny_model("minimind3", dtype=dtype), token_ids(1, 9)
    past = prefilled(model, ids[:, :-1])
    logits, _ = stepped(model, ids[:, -1:], past)
    with torch.no_grad():
        expected = model(ids[:, -1:], past_key_values=past, use_cache=True).logits
    assert logits.dtype == dtype
    largest = expected.abs().max().item()
    torch.testing.assert_close(logits, expected, rtol=0, atol=atol * largest)
