"""The models of transformers with the same weights: Llama, Qwen3 and Qwen3-MoE compute what MiniMind computes."""

import math

import pytest
import torch
from model_builders import tensor, tiny_config, token_ids
from transformers import DynamicCache, GenerationConfig, LlamaConfig
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from minimind_edu.hf import to_transformers
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.moe import load_balancing_loss
from minimind_edu.model.rope_frequencies import RopeScaling, rope_frequencies
from minimind_edu.model.sampling import keep_min_p, keep_top_k, keep_top_p, penalize_repetition

SIZES = {"hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 96, "head_dim": 16}
PADDING, END = 0, 60


def model_pair(kind, **changes):
    """Our model and the one of transformers with the same weights."""
    torch.manual_seed(0)
    config = tiny_config(kind, **{**SIZES, "initializer_range": 0.1, **changes})
    ours = MiniMindForCausalLM(config)
    with torch.no_grad():
        for parameter in ours.parameters():
            if parameter.dim() == 1:
                parameter.uniform_(0.5, 1.5)
    theirs = to_transformers(ours)
    theirs.set_attn_implementation("eager")
    theirs.generation_config = GenerationConfig(pad_token_id=PADDING)  # without an end
    return ours.eval(), theirs


CASES = {
    "Llama": ("minimind2", {}),
    "Llama, untied": ("minimind2", {"tie_word_embeddings": False}),
    "Qwen3": ("minimind3", {}),
    "Qwen3 with YaRN": ("minimind3", {"rope_scaling": RopeScaling(4, 16)}),
    "Qwen3 with YaRN as MiniMind3 sets it": ("minimind3", {"rope_scaling": RopeScaling(4, 16, attention_factor=1.0)}),
    "Qwen3-MoE, top-1": ("minimind3_moe", {}),
    "Qwen3-MoE, top-2": ("minimind3_moe", {"num_experts_per_tok": 2}),
    "Qwen3-MoE, not renormalized": ("minimind3_moe", {"num_experts_per_tok": 2, "norm_topk_prob": False}),
}


@pytest.fixture(scope="module", params=CASES)
def pair(request):
    kind, changes = CASES[request.param]
    return model_pair(kind, **changes)


@torch.no_grad()
def test_logits_of_the_whole_text_agree(pair):
    ours, theirs = pair
    ids = token_ids(3, 40)
    expected = theirs(ids).logits
    assert expected.std() > 0.3, "logits this small would agree whatever the model does"
    torch.testing.assert_close(ours(ids).logits, expected, rtol=0, atol=1e-5)


LEFT_PADDED = torch.tensor([[0] * 6 + [1] * 4, [0] * 2 + [1] * 8, [1] * 10])


@torch.no_grad()
def test_logits_with_left_padding_agree(pair):
    ours, theirs = pair
    ids = token_ids(3, 10).masked_fill(LEFT_PADDED == 0, PADDING)
    # ours counts positions from the padding on, theirs may not: only differences matter
    positions = (LEFT_PADDED.cumsum(-1) - 1).clamp(min=0)
    expected = theirs(ids, attention_mask=LEFT_PADDED, position_ids=positions).logits
    real = LEFT_PADDED.bool()
    torch.testing.assert_close(ours(ids, LEFT_PADDED).logits[real], expected[real], rtol=0, atol=1e-5)


@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_tokens_agree(pair, use_cache):
    ours, theirs = pair
    ids = token_ids(3, 10)
    expected = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
    tokens = ours.generate(ids, 24, eos_token_id=None, use_cache=use_cache)
    assert torch.equal(tokens, expected)


def test_greedy_tokens_with_left_padding_and_ends_agree(pair):
    ours, theirs = pair
    ids = token_ids(3, 10).masked_fill(LEFT_PADDED == 0, PADDING)
    free = ours.generate(ids, 12, attention_mask=LEFT_PADDED, eos_token_id=None)
    end = int(free[0, 14])
    expected = theirs.generate(
        ids, attention_mask=LEFT_PADDED, max_new_tokens=12, do_sample=False, eos_token_id=end,
        pad_token_id=PADDING,
    )  # fmt: skip
    tokens = ours.generate(ids, 12, attention_mask=LEFT_PADDED, eos_token_id=end, pad_token_id=PADDING)
    assert torch.equal(tokens, expected)
    assert (tokens[0, 15:] == PADDING).all()


def test_loss_agrees():
    ours, theirs = model_pair("minimind3")
    ids = token_ids(3, 20)
    labels = ids.clone()
    labels[0, :7] = -100
    assert ours(ids, labels=labels).loss.item() == pytest.approx(theirs(ids, labels=labels).loss.item(), abs=1e-5)


@torch.no_grad()
def test_our_cache_in_their_layout_is_theirs():
    ours, theirs = model_pair("minimind3")
    ids = token_ids(2, 9)
    pairs = ours(ids, use_cache=True).past_key_values.to_hf_layout()
    layers = theirs(ids, use_cache=True).past_key_values.layers
    for (key, value), layer in zip(pairs, layers, strict=True):
        torch.testing.assert_close(key, layer.keys, rtol=0, atol=1e-5)
        torch.testing.assert_close(value, layer.values, rtol=0, atol=1e-5)


@torch.no_grad()
def test_their_cache_is_refused_in_words():
    ours, theirs = model_pair("minimind3")
    past = theirs(token_ids(2, 9), use_cache=True).past_key_values
    message = r"must be one \(key, value\) pair of \[B, T, K, D\] for each layer, got DynamicCache; .* transposed"
    with pytest.raises(ValueError, match=message):
        ours(token_ids(2, 1), past_key_values=past)
    with pytest.raises(ValueError, match=message):
        ours(token_ids(2, 1), past_key_values=type(past)())  # an empty one is falsy, and no less foreign


# YaRN


def yarn_of_transformers(dim, base, scaling):
    config = LlamaConfig(
        hidden_size=dim,
        num_attention_heads=1,
        head_dim=dim,
        max_position_embeddings=int(scaling.original_max_position_embeddings * scaling.factor),
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": base,
            "factor": scaling.factor,
            "original_max_position_embeddings": scaling.original_max_position_embeddings,
            "beta_fast": scaling.beta_fast,
            "beta_slow": scaling.beta_slow,
        },
    )
    return ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")


@pytest.mark.parametrize("dim", [8, 64, 96, 128])
@pytest.mark.parametrize("base", [1e4, 1e6])
@pytest.mark.parametrize("factor", [2.0, 4.0, 16.0])
@pytest.mark.parametrize("betas", [(32.0, 1.0), (4.0, 1.0)])
@pytest.mark.parametrize("context", [2048, 10_000_000])
def test_yarn_frequencies_and_attention_factor_are_those_of_transformers(dim, base, factor, betas, context):
    scaling = RopeScaling(factor, context, *betas)
    expected, attention_factor = yarn_of_transformers(dim, base, scaling)
    torch.testing.assert_close(rope_frequencies(dim, base, scaling), expected, rtol=1e-6, atol=0)
    assert scaling.table_factor == pytest.approx(attention_factor, rel=1e-9)


# Sampling


def rows_of_logits(seed):
    return 3 * tensor(4, 61, seed=seed, dtype=torch.float32)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("top_k", [1, 5, 61, 100])
def test_top_k_is_that_of_transformers(seed, top_k):
    logits = rows_of_logits(seed)
    assert torch.equal(keep_top_k(logits, top_k), TopKLogitsWarper(top_k)(None, logits))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("top_p", [0.01, 0.3, 0.85, 0.99])
def test_top_p_is_that_of_transformers(seed, top_p):
    logits = rows_of_logits(seed)
    assert torch.equal(keep_top_p(logits, top_p), TopPLogitsWarper(top_p)(None, logits))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("min_p", [0.01, 0.1, 0.5, 1.0])
def test_min_p_is_that_of_transformers(seed, min_p):
    logits = rows_of_logits(seed)
    assert torch.equal(keep_min_p(logits, min_p), MinPLogitsWarper(min_p)(None, logits))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("penalty", [0.8, 1.0, 1.5])
def test_the_repetition_penalty_is_that_of_transformers(seed, penalty):
    logits, ids = rows_of_logits(seed), token_ids(4, 9, seed=seed)
    seen = torch.zeros(4, 61, dtype=torch.bool).scatter(1, ids, True)
    expected = RepetitionPenaltyLogitsProcessor(penalty)(ids, logits)
    torch.testing.assert_close(penalize_repetition(logits, seen, penalty), expected)


def test_sampled_tokens_are_those_of_transformers_processors():
    """The whole chain in its order: penalty, temperature, top-k, top-p, min-p, then a draw from one generator."""
    ours, _ = model_pair("minimind3")
    ids = token_ids(2, 6)
    options = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.3}
    tokens = ours.generate(
        ids, 10, do_sample=True, eos_token_id=None, generator=torch.Generator().manual_seed(3),
        **options,
    )  # fmt: skip
    chain = [
        RepetitionPenaltyLogitsProcessor(1.3),
        TemperatureLogitsWarper(0.8),
        TopKLogitsWarper(20),
        TopPLogitsWarper(0.9),
        MinPLogitsWarper(0.1),
    ]
    generator, text = torch.Generator().manual_seed(3), ids
    for _ in range(10):
        with torch.no_grad():
            scores = ours(text).logits[:, -1]
        for process in chain:
            scores = process(text, scores)
        drawn = torch.multinomial(scores.softmax(-1), 1, generator=generator)
        text = torch.cat([text, drawn], dim=1)
    assert torch.equal(tokens, text)


# The auxiliary loss


@pytest.mark.parametrize("top_k", [1, 2])
@pytest.mark.parametrize("num_experts", [4, 8])
def test_the_auxiliary_loss_is_theirs_averaged_over_the_choices(top_k, num_experts):
    """transformers and MiniMind3 sum over the k choices, which makes the loss of an even router k instead of 1."""
    logits = tensor(50, num_experts)
    probabilities = logits.softmax(-1)
    experts = probabilities.topk(top_k).indices
    theirs = load_balancing_loss_func((logits,), num_experts, top_k)
    ours = load_balancing_loss(probabilities, experts)
    assert math.isclose(top_k * ours.item(), theirs.item(), rel_tol=1e-6)  # theirs counts in float32


# Their cache


def test_their_cache_object_is_no_past_in_the_way_of_the_notes():
    """What chapter 07 says of it: false when empty, and not to be indexed when filled."""
    cache = DynamicCache()
    assert not cache
    cache.update(tensor(1, 2, 3, 4), tensor(1, 2, 3, 4), layer_idx=0)
    with pytest.raises(TypeError, match="not subscriptable"):
        cache[0]
