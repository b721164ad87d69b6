"""The whole model: sizes, tying, loss, masks, precision, and what it refuses."""

import copy
import dataclasses
import json
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, PROPERTY, tensor, tiny_config, tiny_model, token_ids
from pretended_device import pretended

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope import precompute_freqs_cis
from minimind_edu.model.rope_frequencies import RopeScaling

HALVES = [torch.float16, torch.bfloat16]


MODELS = {kind: tiny_model(kind) for kind in KINDS}

# Sizes


@pytest.mark.parametrize(
    "config, total, active",
    [
        (MiniMindConfig.minimind2(), 25_829_888, 25_829_888),
        (MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16), 104_030_976, 104_030_976),
        (MiniMindConfig.minimind2_moe(), 145_029_760, 91_945_600),
        (MiniMindConfig.minimind3(), 63_912_192, 63_912_192),
        (MiniMindConfig.minimind3_moe(), 198_416_640, 63_936_768),
    ],
)
def test_parameter_counts_are_those_of_the_released_models(config, total, active):
    with torch.device("meta"):
        model = MiniMindForCausalLM(config)
    assert model.num_parameters() == total
    assert model.num_parameters(active=True) == active


def test_state_dict_has_upstreams_keys_and_shapes():
    shapes = {name: list(value.shape) for name, value in MODELS["minimind3"].state_dict().items()}
    layer = {
        "self_attn.q_proj.weight": [32, 32],
        "self_attn.k_proj.weight": [16, 32],
        "self_attn.v_proj.weight": [16, 32],
        "self_attn.o_proj.weight": [32, 32],
        "self_attn.q_norm.weight": [8],
        "self_attn.k_norm.weight": [8],
        "input_layernorm.weight": [32],
        "post_attention_layernorm.weight": [32],
        "mlp.gate_proj.weight": [48, 32],
        "mlp.up_proj.weight": [48, 32],
        "mlp.down_proj.weight": [32, 48],
    }
    expected = {f"model.layers.{i}.{name}": shape for i in (0, 1) for name, shape in layer.items()}
    expected |= {"model.embed_tokens.weight": [61, 32], "model.norm.weight": [32]}
    assert shapes == expected | {"lm_head.weight": [61, 32]}


def test_on_the_meta_device_shapes_alone_are_computed():
    with torch.device("meta"):
        model = MiniMindForCausalLM(tiny_config())
    assert model(IDS.to("meta")).logits.shape == (2, 5, 61)


def test_active_parameters_are_asked_for_by_true():
    with pytest.raises(ValueError, match="active must be True or False, got 'experts'"):
        MODELS["minimind2"].num_parameters("experts")


def test_mixtures_have_upstreams_keys():
    names = {name for name in MODELS["minimind2_moe"].state_dict() if "layers.0.mlp" in name}
    parts = ["gate_proj", "up_proj", "down_proj"]
    experts = [f"experts.{i}" for i in range(4)] + ["shared_experts.0"]
    expected = {f"{expert}.{part}.weight" for expert in experts for part in parts} | {"gate.weight"}
    assert names == {f"model.layers.0.mlp.{name}" for name in expected}


# Weight tying


def test_tied_weights_share_storage_and_are_counted_once():
    model, untied = (MiniMindForCausalLM(tiny_config(tie_word_embeddings=tie)) for tie in (True, False))
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert untied.lm_head.weight.data_ptr() != untied.model.embed_tokens.weight.data_ptr()
    assert untied.num_parameters() - model.num_parameters() == 61 * 32


def test_tied_weights_stay_tied_through_conversion_and_training():
    model = tiny_model(dtype=torch.float32).half().float()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ids = token_ids(2, 6)
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_a_tied_matrix_gets_the_gradients_of_both_its_uses():
    tied, untied = tiny_model(), tiny_model(tie_word_embeddings=False)
    with torch.no_grad():
        for name, parameter in untied.named_parameters():
            parameter.copy_(tied.state_dict()[name])
    ids = token_ids(2, 6)
    for model in (tied, untied):
        model(ids, labels=ids).loss.backward()
    both = untied.lm_head.weight.grad + untied.model.embed_tokens.weight.grad
    torch.testing.assert_close(tied.lm_head.weight.grad, both)


def test_the_router_is_initialized_as_a_linear_map_not_like_the_other_matrices():
    """Uniform within 1 / sqrt(E), as upstream's router and as nn.Linear; the normal of 0.02 would be far narrower."""
    torch.manual_seed(0)
    model = MiniMindForCausalLM(tiny_config("minimind2_moe", hidden_size=64, num_experts=8))
    for layer in model.model.layers:
        assert 0.9 / 8 < layer.mlp.gate.weight.abs().max() <= 1 / 8


def test_new_weights_have_the_spread_of_the_config():
    model = MiniMindForCausalLM(tiny_config(hidden_size=64, initializer_range=0.05))
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            assert (parameter == 1).all(), name
        else:
            assert parameter.std().item() == pytest.approx(0.05, rel=0.1), name


@pytest.mark.parametrize("assign", [False, True])
def test_a_tied_model_refuses_two_tables_and_stays_as_it_was(assign):
    model = tiny_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    weights = before | {"lm_head.weight": torch.full((61, 32), 5.0, dtype=torch.float64)}
    with pytest.raises(ValueError, match="lm_head.weight and model.embed_tokens.weight differ, .*=False"):
        model.load_state_dict(weights, assign=assign)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    tiny_model(tie_word_embeddings=False).load_state_dict(weights, assign=assign)


@pytest.mark.parametrize("assign", [False, True])
def test_a_tied_model_loads_a_table_that_was_stored_twice(assign):
    weights = tiny_model(seed=1).state_dict()
    weights["model.embed_tokens.weight"][3, 3] = torch.nan  # what is no number equals itself here
    weights["lm_head.weight"] = weights["lm_head.weight"].clone()
    model = tiny_model()
    model.load_state_dict(weights, assign=assign)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    wrapped = torch.nn.ModuleDict({"inner": tiny_model()})
    wrapped.load_state_dict({f"inner.{name}": value for name, value in weights.items()}, assign=assign)
    with pytest.raises(ValueError, match="differ"):
        wrapped.load_state_dict(
            {
                f"inner.{name}": torch.zeros_like(value) if "lm_head" in name else value
                for name, value in weights.items()
            }
        )


# The output


def test_output_reads_by_name_and_by_key():
    out = MODELS["minimind2"](token_ids(2, 5))
    assert out.logits is out["logits"]
    assert out["past_key_values"] is None and out["loss"] is None and out["aux_loss"] is None
    assert out[0] is out.logits and len(out) == 6
    with pytest.raises(KeyError, match="'hidden'; there are logits, last_hidden_state"):
        out["hidden"]


def test_every_call_returns_an_output_of_its_own():
    model = MODELS["minimind2"]
    one, two = model(token_ids(1, 5, seed=1)), model(token_ids(1, 5, seed=2))
    assert one is not two and not torch.equal(one.logits, two.logits)


def test_logits_are_the_hidden_states_seen_by_the_embedding():
    model = MODELS["minimind2"]
    out = model(token_ids(2, 5))
    expected = torch.einsum("bse,ve->bsv", out.last_hidden_state, model.model.embed_tokens.weight)
    torch.testing.assert_close(out.logits, expected)


def test_hidden_states_are_normalized_last():
    model = MODELS["minimind2"]
    hidden = model(token_ids(2, 5)).last_hidden_state / model.model.norm.weight
    torch.testing.assert_close(hidden.pow(2).mean(-1), torch.ones(2, 5).double(), rtol=0, atol=1e-3)


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_logits_to_keep_are_the_last_ones(keep):
    model, ids = MODELS["minimind2"], token_ids(2, 5)
    torch.testing.assert_close(model(ids, logits_to_keep=keep).logits, model(ids).logits[:, 5 - keep :])


def test_the_cache_is_returned_only_when_asked_for():
    model, ids = MODELS["minimind2"], token_ids(1, 6)
    past = model(ids, use_cache=True).past_key_values
    assert model(ids[:, :1], past_key_values=past).past_key_values is None
    assert past.length == 6
    assert model(ids[:, :1], past_key_values=past, use_cache=True).past_key_values.length == 7


def test_dropout_acts_on_the_embedding_in_training_only():
    model, ids = tiny_model(dropout=0.5, num_hidden_layers=1), token_ids(1, 6)
    seen = []
    model.model.layers[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model.train()(ids)
    model.eval()(ids)
    assert (seen[0] == 0).double().mean() > 0.3 and not (seen[1] == 0).any()


# torch's own tools


PADDED = {"attention_mask": torch.tensor([[0, 1, 1, 1, 1], [1] * 5])}


@pytest.mark.parametrize("kind, options", [("minimind3", PADDED), ("minimind3_moe", {})])
def test_the_model_can_be_exported(kind, options):
    model, ids = MODELS[kind], token_ids(2, 5)
    options = options | {"labels": ids}
    out, expected = (call(ids, **options) for call in (torch.export.export(model, (ids,), options).module(), model))
    for name in ("logits", "last_hidden_state", "loss"):
        torch.testing.assert_close(out[name], expected[name])


@pytest.mark.parametrize("kind, options", [("minimind2", PADDED), ("minimind2", {"use_cache": True})])
def test_the_model_can_be_compiled_as_one_graph(kind, options):
    model, ids = MODELS[kind], token_ids(2, 5)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(ids, **options).logits, model(ids, **options).logits)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap's own loop over fused attention
def test_the_model_can_be_mapped_over_a_batch():
    model, ids = MODELS["minimind2"], token_ids(3, 5)
    mapped = torch.vmap(lambda row: model(row[None]).logits[0])(ids)
    torch.testing.assert_close(mapped, model(ids).logits)


def test_the_loss_is_that_of_the_logits_without_the_auxiliary_loss():
    model, ids = MODELS["minimind2_moe"], token_ids(2, 6)
    out = model(ids, labels=ids)
    expected = F.cross_entropy(out.logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    assert out.loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert out.aux_loss > 0.01


def test_auxiliary_losses_of_the_layers_are_summed():
    out = MODELS["minimind2_moe"](token_ids(2, 6))
    assert len(out.routing) == 2
    assert out.aux_loss.item() == pytest.approx(sum(r.aux_loss.item() for r in out.routing))
    assert MODELS["minimind2"](token_ids(2, 6)).routing == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_step_lowers_the_loss(kind):
    model, ids = tiny_model(kind, dtype=torch.float32).train(), token_ids(4, 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    losses = []
    for _ in range(5):
        out = model(ids, labels=ids)
        losses.append(out.loss.item())
        optimizer.zero_grad()
        (out.loss if out.aux_loss is None else out.loss + out.aux_loss).backward()
        optimizer.step()
    assert losses[-1] < losses[0]


# Causality, positions, padding


@pytest.mark.parametrize("kind", KINDS)
@PROPERTY
@given(length=st.integers(2, 10), data=st.data())
def test_changing_a_token_changes_no_output_before_it(kind, length, data):
    position = data.draw(st.integers(0, length - 1))
    model, ids = MODELS[kind], token_ids(2, length)
    changed = ids.clone()
    changed[:, position] = (changed[:, position] + 1) % 61
    with torch.no_grad():
        before, after = model(ids).logits, model(changed).logits
    torch.testing.assert_close(before[:, :position], after[:, :position], rtol=0, atol=1e-10)
    assert (before[:, position] - after[:, position]).abs().max() > 1e-3


def test_the_order_of_earlier_tokens_matters():
    """Without positions the last output of one block would see a bag of tokens; with RoPE it sees an order."""
    model, ids = tiny_model(num_hidden_layers=1), token_ids(1, 6)
    swapped = ids[:, [1, 0, 2, 3, 4, 5]]
    assert not torch.allclose(model(ids).logits[:, -1], model(swapped).logits[:, -1], atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@PROPERTY
@given(length=st.integers(1, 8), padding=st.integers(1, 6), seed=st.integers(0, 1000))
def test_padding_on_the_left_changes_nothing(kind, length, padding, seed):
    """Positions move by the padding, but scores depend on differences only."""
    model, ids = MODELS[kind], token_ids(1, length, seed=seed)
    padded = torch.cat([token_ids(1, padding, seed=seed + 1), ids], dim=1)
    mask = torch.cat([torch.zeros(1, padding), torch.ones(1, length)], dim=1)
    with torch.no_grad():
        alone, behind = model(ids).logits, model(padded, mask).logits[:, padding:]
    torch.testing.assert_close(alone, behind, rtol=1e-9, atol=1e-9)


def test_padding_on_the_right_changes_nothing_before_it():
    model, ids = MODELS["minimind2"], token_ids(2, 6)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0]] * 2)
    torch.testing.assert_close(model(ids, mask).logits[:, :4], model(ids[:, :4]).logits)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
@pytest.mark.parametrize("kind", ["minimind2", "minimind3_moe"])
def test_a_fully_padded_row_gives_no_nan(dtype, kind):
    model, ids = tiny_model(kind, dtype=dtype), token_ids(2, 5)
    mask = torch.tensor([[0] * 5, [1] * 5])
    out = model(ids, mask, use_cache=True)
    assert out.logits.isfinite().all()
    torch.testing.assert_close(out.logits[1:], model(ids[1:]).logits, rtol=0.02, atol=0.02)
    out.logits.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    mask = torch.cat([mask, torch.tensor([[0], [1]])], dim=1)
    step = model(ids[:, :1], mask, past_key_values=out.past_key_values)
    assert step.logits.isfinite().all()


def test_the_last_position_of_the_table_can_be_used():
    model = tiny_model(max_position_embeddings=8)
    past = model(token_ids(1, 7), use_cache=True).past_key_values
    assert model(token_ids(1, 1), past_key_values=past).logits.isfinite().all()


@pytest.mark.parametrize("scaling", [RopeScaling(4, 16), RopeScaling(4, 16, 4, formula="minimind2")])
def test_a_scaled_model_uses_the_scaled_tables(scaling):
    config = tiny_config(rope_scaling=scaling)
    model = MiniMindForCausalLM(config)
    cos, sin = precompute_freqs_cis(8, 64, 1e6, scaling)
    assert torch.equal(model.model.freqs_cos, cos) and torch.equal(model.model.freqs_sin, sin)
    plain, _ = precompute_freqs_cis(8, 64, 1e6)
    assert not torch.allclose(cos, plain)


# Precision and devices


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", HALVES)
def test_a_model_in_half_precision_computes_in_it_throughout(kind, dtype):
    model, ids = tiny_model(kind, dtype=dtype), token_ids(2, 5)
    out = model(ids, use_cache=True)
    assert out.logits.dtype == out.last_hidden_state.dtype == dtype
    assert all(tensor.dtype == dtype for pair in out.past_key_values for tensor in pair)
    assert model(ids, labels=ids).loss.dtype == torch.float32


@pytest.mark.parametrize("kind", ["minimind2", "minimind3"])
def test_half_precision_is_near_float32(kind):
    single = tiny_model(kind, dtype=torch.float32)
    half = tiny_model(kind, dtype=torch.float16)
    single.load_state_dict({name: value.float() for name, value in half.state_dict().items()})
    ids = token_ids(2, 20)
    spread = single(ids).logits.std()
    assert (half(ids).logits.float() - single(ids).logits).abs().max() < 0.02 * spread


@pytest.mark.parametrize("kind", KINDS)
def test_activations_of_400_do_not_overflow_in_float16(kind):
    model, ids = tiny_model(kind, tie_word_embeddings=False), token_ids(2, 6)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(400)
    expected = model(ids).logits
    result = model.half()(ids).logits
    assert result.isfinite().all()
    assert (result.double() - expected).abs().max() < 0.05 * expected.std()


@pytest.mark.parametrize("convert", ["half", "bfloat16"])
def test_tables_stay_in_float32_when_the_model_is_halved(convert):
    model = MiniMindForCausalLM(tiny_config())
    getattr(model, convert)()
    cos, sin = precompute_freqs_cis(8, 64)
    assert torch.equal(model.model.freqs_cos, cos) and torch.equal(model.model.freqs_sin, sin)
    model.float()
    assert torch.equal(model.model.freqs_cos, cos), "nothing was lost on the way"


@pytest.mark.parametrize("move", ["half", "to", "to_empty"])
def test_other_tables_that_were_put_in_their_place_move_along(move):
    """A model without positions must not get them back on a GPU."""
    with pretended("cuda"):
        model = MiniMindForCausalLM(tiny_config())
        model.model.freqs_cos.fill_(1.0)
        getattr(model, move)(*(["cuda"] if move == "to" else []), **({"device": "cuda"} if move == "to_empty" else {}))
        assert model.model.freqs_cos.device.type == ("cpu" if move == "half" else "cuda")
        assert bool((model.model.freqs_cos == 1).all()) and bool(model.model.freqs_sin.any())


def test_tables_of_another_width_that_were_put_in_their_place_are_kept():
    model, (cos, sin) = tiny_model(dtype=torch.float32), precompute_freqs_cis(8, 64, 1e3, dtype=torch.float64)
    model.model.freqs_cos, model.model.freqs_sin = cos, sin
    for convert in (model.half, model.double, model.float):
        convert()
        assert torch.equal(model.model.freqs_cos, cos) and torch.equal(model.model.freqs_sin, sin)
    twin = copy.deepcopy(model)
    assert torch.equal(twin(token_ids(1, 5)).logits, model(token_ids(1, 5)).logits)


def test_tables_come_back_from_where_there_is_no_memory():
    model, (cos, _) = tiny_model(dtype=torch.float32).to("meta"), precompute_freqs_cis(8, 64)
    assert model.model.freqs_cos.is_meta
    assert torch.equal(model.to_empty(device="cpu").model.freqs_cos, cos)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_a_compiler_finds_the_tables_ready(dtype):
    """Computed while it follows the model, they would be computed anew at every call."""
    model = tiny_model(dtype=dtype)
    assert model.model._tables[0].dtype == torch.promote_types(dtype, torch.float32)


def test_tables_are_widened_with_the_model():
    model = MiniMindForCausalLM(tiny_config()).double()
    cos, _ = precompute_freqs_cis(8, 64, dtype=torch.float64)
    assert torch.equal(model.model.freqs_cos, cos)


@pytest.mark.parametrize("found", [0.0, 7.0, math.nan])
@pytest.mark.parametrize("scaling", [None, RopeScaling(4, 16)])
def test_to_empty_rebuilds_the_tables_whatever_the_memory_holds(found, scaling, monkeypatch):
    """Memory that is allocated and not written may hold anything, also what looks like a cosine."""
    config = tiny_config(rope_scaling=scaling)
    with torch.device("meta"):
        model = MiniMindForCausalLM(config)
    monkeypatch.setattr(torch, "empty_like", lambda t, device=None: torch.full_like(t, found, device=device))
    model.to_empty(device="cpu")
    cos, sin = precompute_freqs_cis(8, 64, rope_scaling=scaling)
    assert torch.equal(model.model.freqs_cos, cos) and torch.equal(model.model.freqs_sin, sin)


def test_a_model_built_on_meta_computes_what_one_built_on_the_cpu_does():
    expected, ids = tiny_model(dtype=torch.float32), token_ids(2, 5)
    with torch.device("meta"):
        model = MiniMindForCausalLM(tiny_config())
    model.to_empty(device="cpu")
    model.load_state_dict(expected.state_dict())
    assert torch.equal(model.eval()(ids).logits, expected(ids).logits)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scaling", [None, RopeScaling(4, 16)])
def test_weights_can_be_assigned_to_a_model_on_meta(kind, scaling):
    """load_state_dict(assign=True) calls no `_apply`, so the tables have to follow the weights by another way."""
    expected = tiny_model(kind, dtype=torch.float32, rope_scaling=scaling)
    with torch.device("meta"):
        model = MiniMindForCausalLM(expected.config)
        model.load_state_dict(expected.state_dict(), assign=True)
    assert torch.equal(model.model.freqs_cos, expected.model.freqs_cos)
    assert torch.equal(model.model.freqs_sin, expected.model.freqs_sin)
    ids = token_ids(2, 5)
    assert torch.equal(model.eval()(ids).logits, expected(ids).logits)


def test_assigning_wider_weights_widens_the_tables():
    expected = tiny_model(dtype=torch.float64)
    model = MiniMindForCausalLM(tiny_config())
    model.load_state_dict(expected.state_dict(), assign=True)
    assert torch.equal(model.model.freqs_cos, expected.model.freqs_cos)
    model.load_state_dict(tiny_model(dtype=torch.float16).state_dict(), assign=True)
    assert model.model.freqs_cos.dtype == torch.float32


def test_loading_into_a_model_in_place_leaves_its_tables():
    model = tiny_model(dtype=torch.float32)
    before = model.model.freqs_cos
    model.load_state_dict(tiny_model(seed=1, dtype=torch.float32).state_dict())
    assert model.model.freqs_cos is before


@pytest.mark.parametrize("tied", [True, False])
def test_assigned_weights_are_tied_as_the_config_says(tied):
    model = MiniMindForCausalLM(tiny_config(tie_word_embeddings=tied))
    model.load_state_dict(tiny_model(tie_word_embeddings=tied).state_dict(), assign=True)
    assert (model.lm_head.weight is model.model.embed_tokens.weight) == tied


def test_a_copy_of_a_model_has_tables_and_a_tie_of_its_own():
    """The hooks that keep both in step must not hold on to the model that was copied."""
    model = copy.deepcopy(tiny_model())
    model.load_state_dict(tiny_model(seed=1, dtype=torch.float32).state_dict(), assign=True)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert model.model.freqs_cos.dtype == torch.float32


def test_tables_are_not_part_of_the_state_dict():
    assert not [name for name in MODELS["minimind2"].state_dict() if "freqs" in name]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_computes_what_the_cpu_does(kind):
    model, ids = tiny_model(kind), token_ids(2, 9)
    mask = torch.tensor([[0, 0] + [1] * 7, [1] * 9])
    expected = model(ids, mask).logits
    tokens = model.generate(ids, 6, attention_mask=mask, eos_token_id=None)
    model.to("cuda")
    result = model(ids.cuda(), mask.cuda()).logits.cpu()
    torch.testing.assert_close(result[mask.bool()], expected[mask.bool()])
    on_cuda = model.generate(ids.cuda(), 6, attention_mask=mask.cuda(), eos_token_id=None)
    assert torch.equal(on_cuda.cpu(), tokens)
    halved = model.bfloat16()(ids.cuda(), mask.cuda()).logits
    assert halved.dtype == torch.bfloat16 and halved.isfinite().all()


# Bad input

IDS = token_ids(2, 5)
BAD_CALLS = {
    "one row without a batch": (
        {"input_ids": IDS[0]},
        r"input_ids must be integers of shape \[B, S\], got torch.int64 of shape \[5\]; torch.tensor\(\[ids\]\)",
    ),
    "numbers that are no integers": (
        {"input_ids": IDS.float()},
        r"input_ids must be integers of shape \[B, S\], got torch.float32",
    ),
    "truth values": ({"input_ids": IDS.bool()}, r"input_ids must be integers of shape \[B, S\], got torch.bool"),
    "no position": ({"input_ids": IDS[:, :0]}, r"input_ids must hold at least one token in each row, got \[2, 0\]"),
    "an id above the vocabulary": (
        {"input_ids": IDS + 58},
        r"token ids must lie in \[0, 61\), got ids from \d+ to \d+; does the tokenizer belong to this model",
    ),
    "an id below zero": ({"input_ids": IDS - 60}, r"token ids must lie in \[0, 61\), got ids from -"),
    "more positions than there are": (
        {"input_ids": token_ids(1, 65)},
        "0 positions in the cache and 65 new ones exceed max_position_embeddings=64; shorten the text, or build",
    ),
    "a mask for other positions": (
        {"input_ids": IDS, "attention_mask": torch.ones(2, 6)},
        r"attention_mask must be \[B, T\] = \[2, 5\], one entry for each of the 0 cached and 5 new positions, "
        r"got \[2, 6\]",
    ),
    "a mask of another rank": (
        {"input_ids": IDS, "attention_mask": torch.ones(2, 1, 5, 5)},
        r"attention_mask must be \[B, T\] = \[2, 5\], .* got \[2, 1, 5, 5\]",
    ),
    "more logits than positions": (
        {"input_ids": IDS, "logits_to_keep": 6},
        r"logits_to_keep \(0: all\) must be a whole number from 0 to 5, got 6",
    ),
    "labels without their logits": (
        {"input_ids": IDS, "labels": IDS, "logits_to_keep": 2},
        r"need the logits of all positions, got labels \[2, 5\] and logits for \[2, 2\]",
    ),
    "True as a number of logits": (
        {"input_ids": IDS, "logits_to_keep": True},
        "logits_to_keep .* from 0 to 5, got True",
    ),
    "half a position": ({"input_ids": IDS, "logits_to_keep": 1.5}, "logits_to_keep .* from 0 to 5, got 1.5"),
    "a word for a truth value": ({"input_ids": IDS, "use_cache": "no"}, "use_cache must be True or False, got 'no'"),
    "a complex mask": (
        {"input_ids": IDS, "attention_mask": torch.ones(2, 5, dtype=torch.complex64)},
        "attention_mask holds 1 on tokens and 0 on padding, got torch.complex64",
    ),
    "a mask for one row of two": (
        {"input_ids": IDS, "attention_mask": torch.tensor([[0, 1, 1, 1, 1]])},
        r"attention_mask must be \[B, T\] = \[2, 5\], .* got \[1, 5\]",
    ),
    "ids without values": (
        {"input_ids": IDS.to("meta")},
        "input_ids must be where the model is, not on the meta device, which keeps no values",
    ),
    "a mask without values": (
        {"input_ids": IDS, "attention_mask": torch.ones(2, 5, device="meta")},
        "attention_mask must be where the model is, not on the meta device",
    ),
    "sparse ids": ({"input_ids": IDS.to_sparse()}, "input_ids must be a dense tensor .* got torch.sparse_coo"),
    "a list of ids": (
        {"input_ids": IDS.tolist()},
        "input_ids must be a tensor of integers .* got list; torch.as_",
    ),
    "an array of ids": ({"input_ids": IDS.numpy()}, "input_ids must be a tensor of integers .* got ndarray"),
    "a list as the mask": (
        {"input_ids": IDS, "attention_mask": [[1] * 5] * 2},
        "attention_mask must be a tensor of ones and zeros, got list",
    ),
    "a list of labels": ({"input_ids": IDS, "labels": IDS.tolist()}, "labels must be a tensor of integers .* got list"),
    "a mask to be added": (
        {"input_ids": IDS, "attention_mask": torch.zeros(2, 5).masked_fill(IDS < 20, -torch.inf)},
        "attention_mask holds 1 on tokens and 0 on padding, got -inf; a mask that is added .* `mask == 0`",
    ),
    "a mask of minus ones": (
        {"input_ids": IDS, "attention_mask": torch.full((2, 5), -1)},
        "attention_mask holds 1 on tokens and 0 on padding, got -1",
    ),
    "a mask of NaN": (
        {"input_ids": IDS, "attention_mask": torch.full((2, 5), torch.nan)},
        "attention_mask holds 1 on tokens and 0 on padding, got nan",
    ),
}


REFUSED_BEFORE = [case for case, (arguments, _) in BAD_CALLS.items() if {"labels", "logits_to_keep"} & arguments.keys()]


@pytest.mark.parametrize("case", REFUSED_BEFORE)
def test_what_is_asked_for_is_refused_before_the_work(case):
    arguments, message = BAD_CALLS[case]
    model = tiny_model()
    model.model.layers[0].register_forward_pre_hook(lambda *_: pytest.fail("the model works already"))
    with pytest.raises(ValueError, match=message):
        model(**arguments)
    past = MODELS["minimind2"](IDS, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="labels must have the shape of input_ids"):
        model(IDS[:, :1], past_key_values=past, labels=IDS)
    with pytest.raises(ValueError, match="a loss needs a label to predict"):
        model(IDS, labels=torch.full_like(IDS, -100))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.int8, torch.uint8])
def test_ids_may_be_integers_of_any_size(dtype):
    model, ids = MODELS["minimind2"], IDS.to(dtype)
    assert torch.equal(model(ids).logits, model(IDS).logits)
    assert torch.equal(model(ids, labels=ids).loss, model(IDS, labels=IDS).loss)
    assert torch.equal(model.generate(ids, 3), model.generate(IDS, 3))


@pytest.mark.parametrize("number", [np.int64(2), np.uint8(2), np.int32(2)])
def test_a_whole_number_of_numpy_is_one(number):
    model = MODELS["minimind2"]
    assert torch.equal(model(IDS, logits_to_keep=number).logits, model(IDS, logits_to_keep=2).logits)
    config = tiny_config(num_hidden_layers=number, rope_theta=np.float32(1e4))
    assert config == tiny_config(rope_theta=1e4) and type(config.num_hidden_layers) is int
    json.dumps(dataclasses.asdict(config))


@pytest.mark.parametrize("case", BAD_CALLS)
def test_rejects_what_it_cannot_compute(case):
    arguments, message = BAD_CALLS[case]
    with pytest.raises(ValueError, match=message):
        MODELS["minimind2"](**arguments)


def test_a_model_that_lost_a_layer_keeps_a_cache_of_those_it_has():
    model = tiny_model()
    del model.model.layers[1]
    past = model(IDS[:, :3], use_cache=True).past_key_values
    assert len(past) == 1
    torch.testing.assert_close(model(IDS[:, 3:], past_key_values=past).logits, model(IDS).logits[:, 3:])
    with pytest.raises(ValueError, match="one pair for each of the 1 layers, got 2"):
        model.generate(IDS, 4)


def test_rejects_running_past_the_last_position_with_a_cache():
    model = MODELS["minimind2"]
    past = model(token_ids(1, 60), use_cache=True).past_key_values
    with pytest.raises(ValueError, match="60 positions in the cache and 5 new ones exceed"):
        model(token_ids(1, 5), past_key_values=past)


def test_rejects_a_mask_that_forgets_the_past():
    model = MODELS["minimind2"]
    past = model(IDS, use_cache=True).past_key_values
    message = r"attention_mask must be \[B, T\] = \[2, 6\], one entry for each of the 5 cached and 1 new"
    with pytest.raises(ValueError, match=message):
        model(IDS[:, :1], torch.ones(2, 1), past_key_values=past)


def test_a_rejected_call_leaves_the_past_as_it_was():
    model = MODELS["minimind2"]
    past = model(IDS, use_cache=True).past_key_values
    before = [key.clone() for key, _ in past]
    with pytest.raises(ValueError):
        model(IDS + 60, past_key_values=past)
    assert all(torch.equal(key, kept) for (key, _), kept in zip(past, before, strict=True))


def test_changing_the_config_object_is_impossible_after_building():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MODELS["minimind2"].config.vocab_size = 5


def test_spread_weights_makes_every_parameter_matter():
    """What the other tests stand on: no parameter of a test model can be left out without a difference."""
    model, ids = tiny_model("minimind3_moe", num_experts_per_tok=2), token_ids(4, 12)
    (model(ids).logits * tensor(4, 12, 61)).sum().backward()
    assert all(p.grad.abs().max() > 1e-6 for p in model.parameters())
