"""Folders that transformers writes, read by `from_checkpoint`: the same logits come out."""

import json

import pytest
import torch
from model_builders import TINY_SIZES, tiny_model, token_ids
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from minimind_edu.hf import export
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.weights.checkpoints import from_checkpoint

YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
MODELS = {
    "Llama": (LlamaForCausalLM, LlamaConfig, {}),
    "Llama, tied, another theta": (
        LlamaForCausalLM,
        LlamaConfig,
        {"tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    ),
    "Llama with wide heads": (LlamaForCausalLM, LlamaConfig, {"head_dim": 16}),
    "Llama without groups": (LlamaForCausalLM, LlamaConfig, {"num_key_value_heads": 4, "rms_norm_eps": 1e-2}),
    "Qwen3": (Qwen3ForCausalLM, Qwen3Config, {"head_dim": 16}),
    "Qwen3 with YaRN": (Qwen3ForCausalLM, Qwen3Config, {"head_dim": 8, "rope_parameters": YARN}),
    "Qwen3 with YaRN, tables no longer than the trained context": (
        Qwen3ForCausalLM,
        Qwen3Config,
        {"head_dim": 8, "rope_parameters": YARN, "max_position_embeddings": 16},
    ),
    "Qwen3-MoE": (Qwen3MoeForCausalLM, Qwen3MoeConfig, {"head_dim": 8, **MOE}),
    "Qwen3-MoE, renormalized": (
        Qwen3MoeForCausalLM,
        Qwen3MoeConfig,
        {"head_dim": 8, **MOE, "norm_topk_prob": True, "tie_word_embeddings": True},
    ),
}


def theirs(name):
    model_class, config_class, changes = MODELS[name]
    model = model_class(config_class(**(TINY_SIZES | changes))).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = (0.5, 1.5) if parameter.dim() == 1 else (-0.5, 0.5)
            parameter.uniform_(*spread, generator=generator)
    return model


@torch.no_grad()
def assert_same_logits(ours, model):
    expected = model(IDS).logits
    assert expected.std() > 0.3, "logits this small would agree whatever the model does"
    torch.testing.assert_close(ours(IDS).logits, expected, rtol=0, atol=1e-5 * float(expected.std()))


IDS = token_ids(2, 16)


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_folder_gives_the_same_logits(name, tmp_path):
    model = theirs(name)
    model.save_pretrained(tmp_path)
    assert_same_logits(from_checkpoint(tmp_path), model)


@pytest.mark.parametrize("name", ["Llama", "Qwen3-MoE"])
def test_a_folder_in_shards_gives_the_same_logits(name, tmp_path):
    model = theirs(name)
    model.save_pretrained(tmp_path, max_shard_size="16KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert_same_logits(from_checkpoint(tmp_path), model)


@pytest.mark.parametrize("name", ["Llama", "Qwen3", "Qwen3-MoE"])
def test_the_state_dict_of_a_loaded_model_gives_the_same_logits(name, tmp_path):
    """What upstream's convert_transformers2torch writes; a mixture's experts are fused in it."""
    model = theirs(name)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text(json.dumps(model.config.to_dict()))
    assert_same_logits(from_checkpoint(tmp_path), model)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["Llama, tied, another theta", "Qwen3-MoE"])
def test_half_precision_comes_back_bit_by_bit(name, dtype, tmp_path):
    model = theirs(name).to(dtype)
    model.save_pretrained(tmp_path)
    read = from_checkpoint(tmp_path)
    weights = model.state_dict()
    assert read.lm_head.weight.dtype == dtype
    assert torch.equal(read.lm_head.weight, weights["lm_head.weight"])
    assert torch.equal(read.model.layers[1].self_attn.q_proj.weight, weights["model.layers.1.self_attn.q_proj.weight"])


ADAPTED = {
    "minimind2": {"rope_scaling": RopeScaling(4.0, 16, 4.0, 1.0, 1.0, "minimind2")},
    "minimind2_moe": {"num_experts_per_tok": 3},
    "minimind3": {"norm_placement": "post"},
    "minimind3_moe": {"tie_word_embeddings": False},
}


@pytest.mark.parametrize("kind", ADAPTED)
def test_a_model_in_the_adapter_comes_back_with_everything(kind, tmp_path):
    model = tiny_model(kind, dtype=torch.float32, **ADAPTED[kind])
    read = from_checkpoint(export(model, tmp_path / "out", adapter=True))
    assert read.config == model.config
    assert torch.equal(read(IDS).logits, model(IDS).logits)


EXPORTS = {
    "minimind2": {},
    "minimind3": {"tie_word_embeddings": False},
    "minimind3_moe": {"num_experts_per_tok": 2, "num_shared_experts": 0},
}


@pytest.mark.parametrize("kind", EXPORTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_exported_model_comes_back(kind, dtype, tmp_path):
    """Config and weights; what acts in training only has no place in the files of transformers."""
    model = tiny_model(kind, dtype=dtype, **EXPORTS[kind])
    read = from_checkpoint(export(model, tmp_path / "out"))
    assert read.config == model.config
    ours, back = model.state_dict(), read.state_dict()
    assert ours.keys() == back.keys()
    assert all(torch.equal(value, back[name]) for name, value in ours.items())


Y = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
THETA = {"rope_theta": 1e4}
# One fact in two places, or at the border: what transformers makes of each was looked up by running it.
BORDERS = {
    "rope_scaling goes whole": {"rope_scaling": Y, "rope_parameters": {"rope_type": "default"} | THETA},
    "rope_scaling goes without the other's base": {
        "rope_scaling": Y,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
    "rope_scaling's factor": {"rope_scaling": Y | {"factor": 2.0}, "rope_parameters": Y | THETA},
    "rope_scaling's base": {
        "rope_scaling": {"rope_type": "default", "rope_theta": 500.0},
        "rope_parameters": Y | THETA,
    },
    "a base inside goes first": {"rope_theta": 500.0, "rope_scaling": Y | THETA},
    "a trained context beside": {
        "original_max_position_embeddings": 16,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
    },
    "a trained context beside goes first": {"original_max_position_embeddings": 8, "rope_scaling": Y},
    "a factor of 1": {"rope_parameters": Y | THETA | {"factor": 1.0, "attention_factor": 1.2,
                                                      "original_max_position_embeddings": 64}},
    "a factor of 1.01": {"rope_parameters": Y | THETA | {"factor": 1.01, "original_max_position_embeddings": 64}},
    "swish": {"hidden_act": "swish"},
    "positions within the trained context": {"rope_parameters": Y | THETA | {"original_max_position_embeddings": 99}},
}  # fmt: skip


@pytest.mark.parametrize("family", ["Llama", "Qwen3"])
@pytest.mark.parametrize("case", BORDERS)
def test_an_edited_config_means_what_transformers_makes_of_it(family, case, tmp_path):
    theirs(family).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    described = json.loads(path.read_text())
    del described["rope_parameters"]
    path.write_text(json.dumps(described | BORDERS[case]))
    assert_same_logits(from_checkpoint(tmp_path), AutoModelForCausalLM.from_pretrained(tmp_path))


@pytest.mark.parametrize("original, base", [(1, 500.0), (10**6, 3.0)])
def test_a_ramp_that_runs_backwards_is_refused_on_the_way_in_as_on_the_way_out(original, base, tmp_path):
    theirs("Qwen3").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    yarn = Y | {"original_max_position_embeddings": original, "rope_theta": base}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rope_parameters": yarn}))
    with pytest.raises(ValueError, match="this YaRN ramp runs backwards, from pair .*"):
        from_checkpoint(tmp_path)
    with pytest.raises(ValueError, match="this YaRN ramp runs backwards, from pair .*"):
        from_checkpoint(tmp_path, rms_norm_eps=1e-5)
    scaling = RopeScaling(4.0, 2048, formula="minimind2")
    assert from_checkpoint(tmp_path, rope_scaling=scaling).config.rope_scaling == scaling, "what you say yourself"


def test_what_ends_a_text_comes_from_generation_config(tmp_path):
    theirs("Llama").save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 25]}))
    assert from_checkpoint(tmp_path).config.eos_token_id == (2, 25)
    for ends, reached in (([9999, 2, -1], (2,)), (9999, None), ([9999], None), (-1, None), (25, 25)):
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
        assert from_checkpoint(tmp_path).config.eos_token_id == reached, "no text ends with a token without a logit"
    (tmp_path / "generation_config.json").unlink()
    assert from_checkpoint(tmp_path).config.eos_token_id == 2


@pytest.mark.parametrize("family, other", [("Llama", "qwen3_moe"), ("Qwen3-MoE", "qwen3")])
def test_weights_of_the_other_kind_are_refused(family, other, tmp_path):
    theirs(family).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    described = json.loads(path.read_text()) | {"model_type": other}
    known = {"num_local_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob"}
    known |= {"router_aux_loss_coef"}
    path.write_text(json.dumps({name: value for name, value in described.items() if name not in known}))
    with pytest.raises(ValueError, match="use_moe=(True|False).*; the weights show .*use_moe=(True|False)"):
        from_checkpoint(tmp_path)
