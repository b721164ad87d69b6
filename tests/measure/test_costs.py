"""The counts are those of the real model: its tensors' bytes, and the operations that PyTorch counts."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from minimind_edu import MiniMindConfig, MiniMindForCausalLM
from minimind_edu.measure.costs import (
    Cost,
    Machine,
    cache_bytes_per_position,
    call_cost,
    decode_cost,
    generation_cost,
    layer_matrix_weights,
    parts_of,
    prefill_cost,
    weights_read,
)
from minimind_edu.model.generation import generate

SMALL = dict(
    vocab_size=90,
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=10,
    intermediate_size=70,
    max_position_embeddings=64,
)
CONFIGS = {
    "minimind2": MiniMindConfig.minimind2(**SMALL),
    "minimind3": MiniMindConfig.minimind3(**SMALL),
    "untied": MiniMindConfig.minimind2(**SMALL, tie_word_embeddings=False),
    "experts": MiniMindConfig.minimind2_moe(**SMALL, moe_intermediate_size=26),
}
PRESETS = [
    MiniMindConfig.minimind2(),
    MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16),
    MiniMindConfig.minimind3(),
]


@pytest.fixture(params=CONFIGS)
def config(request):
    return CONFIGS[request.param]


def built(config):
    torch.manual_seed(0)
    return MiniMindForCausalLM(config).eval().requires_grad_(False)


def counted(function, *arguments, **named):
    """Operations of all matrix products; attention in its plain form, since the fused CPU kernel is not counted."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        result = function(*arguments, **named)
    return counter.get_total_flops(), result


def ids(batch, length):
    return torch.arange(batch * length).view(batch, length) % 90


# ---- operations


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("length", [1, 7])
def test_prefill_and_decode_do_the_operations_that_pytorch_counts(config, batch, length):
    model = built(config)
    prompt = ids(batch, length)
    done, out = counted(model, prompt, use_cache=True, logits_to_keep=1)
    assert done == prefill_cost(config, length, batch).operations
    done, _ = counted(model, prompt[:, -1:], past_key_values=out.past_key_values)
    assert done == decode_cost(config, length + 1, batch).operations


def test_a_chunk_with_all_its_logits(config):
    model = built(config)
    past = model(ids(2, 5), use_cache=True).past_key_values
    done, _ = counted(model, ids(2, 4), past_key_values=past)
    assert done == call_cost(config, new=4, past=5, batch=2, logits=4).operations


@pytest.mark.parametrize("use_cache", [True, False])
def test_generation_does_the_operations_that_pytorch_counts(config, use_cache):
    done, _ = counted(generate, built(config), ids(1, 4), 6, use_cache=use_cache, eos_token_id=None)
    assert done == generation_cost(config, 4, 6, use_cache).operations


def test_one_more_position_costs_one_product_for_the_score_and_one_for_the_mixture():
    config = PRESETS[0]
    more = decode_cost(config, 101).operations - decode_cost(config, 100).operations
    assert more == 2 * 2 * config.num_hidden_layers * config.hidden_size


def test_with_a_cache_twice_the_text_costs_four_times_the_attention_and_without_eight_times():
    config = replace(CONFIGS["minimind2"], max_position_embeddings=10**6)

    def attention(length, use_cache):
        """The part that is not linear in the tokens read: all operations less those of the weights."""
        passes = length if use_cache else length * (length + 1) // 2
        matrices = passes * config.num_hidden_layers * layer_matrix_weights(config)
        head = length * config.vocab_size * config.hidden_size
        total = generation_cost(config, 1, length, use_cache).operations
        return total - 2 * (matrices + head)

    assert attention(800, True) / attention(400, True) == pytest.approx(4, rel=0.01)
    assert attention(800, False) / attention(400, False) == pytest.approx(8, rel=0.01)


# ---- bytes


def bytes_of(tensors):
    return sum(tensor.nbytes for tensor in tensors)


@pytest.mark.parametrize("name", ["minimind2", "minimind3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_reads_the_bytes_of_all_weights(name, dtype):
    model = built(CONFIGS[name]).to(dtype)
    cost = decode_cost(CONFIGS[name], 9, itemsize=dtype.itemsize)
    assert cost.weight_bytes == bytes_of(model.parameters())


@pytest.mark.parametrize("config", PRESETS, ids=["small", "base", "minimind3"])
def test_presets_read_all_their_parameters(config):
    with torch.device("meta"):
        model = MiniMindForCausalLM(config)
    assert weights_read(config) == model.num_parameters()


def test_an_untied_embedding_table_is_not_read():
    config = CONFIGS["untied"]
    model = built(config)
    table = model.model.embed_tokens.weight
    assert 4 * weights_read(config) == bytes_of(model.parameters()) - table.nbytes
    assert weights_read(config) == weights_read(CONFIGS["minimind2"])


def test_experts_are_read_when_a_token_may_visit_them():
    config = CONFIGS["experts"]
    model = built(config)
    assert weights_read(config, tokens=1) == model.num_parameters(active=True)
    for many in (2, 50):  # two of four experts a token
        assert weights_read(config, tokens=many) == model.num_parameters()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_cache_bytes_are_those_of_the_tensors(config, dtype):
    cache = built(config).to(dtype)(ids(2, 5), use_cache=True).past_key_values
    assert prefill_cost(config, 5, 2, dtype.itemsize).cache_bytes == cache.num_bytes()
    assert cache.num_bytes() == 10 * cache_bytes_per_position(config, dtype.itemsize)


def test_a_step_reads_its_past_and_writes_itself(config):
    cost = decode_cost(config, context=33, batch=5, itemsize=2)
    assert cost.cache_bytes == 5 * 33 * cache_bytes_per_position(config, itemsize=2)


def test_the_notes_sizes():
    small, base = PRESETS[:2]
    assert decode_cost(small, 1).weight_bytes == 4 * 25_829_888
    assert decode_cost(base, 1).weight_bytes == 4 * 104_030_976
    assert [cache_bytes_per_position(c) for c in (small, base)] == [8_192, 24_576]


# ---- the roofline


def test_intensity_of_decoding_is_about_half_an_operation_a_byte_and_grows_with_the_batch():
    one, eight = (decode_cost(PRESETS[0], 1, batch).intensity for batch in (1, 8))
    assert one == pytest.approx(0.5, abs=0.01)
    assert eight == pytest.approx(8 * one, rel=0.01)


def test_a_machine_is_limited_by_memory_below_its_ridge_and_by_arithmetic_above():
    machine = Machine(bandwidth=10.0, peak=40.0)
    slow, fast = Cost(30, 10, 0), Cost(80, 4, 6)
    assert machine.ridge == 4
    assert (machine.limited_by(slow), machine.seconds(slow)) == ("memory", 1.0)
    assert (machine.limited_by(fast), machine.seconds(fast)) == ("arithmetic", 2.0)
    for cost in (slow, fast):
        assert cost.operations / machine.seconds(cost) == machine.attainable(cost.intensity)


def test_costs_add_up():
    assert Cost(1, 2, 3) + Cost(10, 20, 30) == Cost(11, 22, 33)
    assert Cost(1, 2, 3).bytes == 5


# ---- what is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(new=0), "new must be a whole number of at least 1, got 0"),
        (dict(new=1, past=-1), "past must be a whole number of at least 0, got -1"),
        (dict(new=1, batch=1.5), "batch must be a whole number of at least 1, got 1.5"),
        (dict(new=1, itemsize=0), "itemsize must be a whole number of at least 1, got 0"),
        (dict(new=2, logits=3), "logits for new positions only, got logits=3, new=2"),
        (dict(new=2, logits=0), "logits must be a whole number of at least 1, got 0"),
    ],
)
def test_impossible_calls_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        call_cost(PRESETS[0], **arguments)


def test_other_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="context must be a whole number of at least 1"):
        decode_cost(PRESETS[0], 0)
    with pytest.raises(ValueError, match="new_tokens must be a whole number"):
        generation_cost(PRESETS[0], 3, 0)
    with pytest.raises(ValueError, match="tokens must be a whole number"):
        weights_read(PRESETS[0], 0)
    with pytest.raises(ValueError, match="itemsize must be a whole number"):
        cache_bytes_per_position(PRESETS[0], 0)
    for bandwidth, peak in ((0, 5), (5, 0), (-1, 5), (math.inf, math.inf), (math.nan, 1), ("1", 5)):
        with pytest.raises(ValueError, match="(bandwidth|peak), in .* per second, must be"):
            Machine(bandwidth, peak)
    for experts in (-1, 5):
        with pytest.raises(ValueError, match=f"experts must be a whole number from 0 to 4, got {experts}"):
            layer_matrix_weights(MiniMindConfig.minimind2_moe(), experts)


@pytest.mark.parametrize("context", [1, 7, 300])
def test_the_parts_make_the_whole(config, context):
    parts = parts_of(config, context)
    assert sum(part.weights for part in parts.values()) == built(config).num_parameters()
    assert 2 * sum(part.multiply_adds for part in parts.values()) == decode_cost(config, context).operations


def test_a_part_has_the_weights_of_its_modules(config):
    model = built(config).model
    assert parts_of(config, 1)["norms"].weights == sum(
        weight.numel() for name, weight in model.named_parameters() if "norm" in name
    )
    assert parts_of(config, 1)["feed-forward"].weights == sum(
        weight.numel() for layer in model.layers for weight in layer.mlp.parameters()
    )


def test_parts_refuse_a_token_that_attends_to_nothing():
    with pytest.raises(ValueError, match="context must be a whole number of at least 1, got 0"):
        parts_of(MiniMindConfig(), 0)
