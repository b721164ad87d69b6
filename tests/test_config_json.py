"""A config.json means here what it means to those who wrote it, and what this package does not compute is refused."""

import json

import pytest
from transformers import AutoConfig, LlamaConfig, Qwen3Config, Qwen3MoeConfig

from minimind_edu.config import MiniMindConfig
from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.weights.config_json import values_of

# What every file of transformers says; its own switches are absent or off.
SIZES = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 48,
}


@pytest.mark.parametrize("generation", ["minimind2", "minimind3"])
@pytest.mark.parametrize("model_type", ["minimind", None])
def test_upstreams_names_become_ours(generation, model_type):
    described = {
        "model_type": model_type,
        "architectures": ["MiniMindForCausalLM"],
        "n_routed_experts": 3,
        "n_shared_experts": 2,
        "aux_loss_alpha": 0.5,
        "flash_attn": True,
        "scoring_func": "softmax",
        "hidden_act": "silu",
        "torch_dtype": "float16",
        "use_cache": True,
        "intermediate_size": None,
        "rms_norm_eps": None,
        "rope_scaling": None,
        "inference_rope_scaling": False,
    } | {name: value for name, value in SIZES.items() if name != "intermediate_size"}
    expected = {"num_experts": 3, "num_shared_experts": 2, "router_aux_loss_coef": 0.5} | SIZES
    del expected["intermediate_size"]
    if model_type:  # its constructor's own
        expected |= {"use_moe": False, "tie_word_embeddings": True}
    assert values_of(described, generation) == expected


def of_transformers(config, model_type, **more):
    """The fields in which one of transformers' configs and MiniMindConfig speak of the same."""
    names = ("rms_norm_eps", "max_position_embeddings", "initializer_range", "tie_word_embeddings")
    fields = {name: getattr(config, name) for name in names}
    fields |= {"rope_theta": config.rope_parameters["rope_theta"]}
    fields |= {name: getattr(config, name) for name in SIZES}
    return fields | more


CONFIGS = {"llama": LlamaConfig, "qwen3": Qwen3Config, "qwen3_moe": Qwen3MoeConfig}


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_config_written_by_transformers_says_the_same_here(model_type, tmp_path):
    changes = {"rms_norm_eps": 1e-4, "max_position_embeddings": 77, "tie_word_embeddings": True}
    config = CONFIGS[model_type](**SIZES, **changes, rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    config.save_pretrained(tmp_path)
    values = values_of(json.loads((tmp_path / "config.json").read_text()), "minimind3")
    assert of_transformers(config, model_type).items() <= values.items()
    assert values["use_moe"] == (model_type == "qwen3_moe")
    assert values["use_qk_norm"] == (model_type != "llama")
    if model_type == "qwen3_moe":
        names = ("num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob")
        assert {name: getattr(config, name) for name in names}.items() <= values.items()
        assert values["router_aux_loss_coef"] == config.router_aux_loss_coef
        assert values["num_shared_experts"] == 0


@pytest.mark.parametrize("model_type", CONFIGS)
def test_what_a_config_leaves_out_is_transformers_default(model_type, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, **SIZES}))
    theirs = AutoConfig.from_pretrained(tmp_path)
    values = values_of({"model_type": model_type, **SIZES}, "minimind3")
    names = ["rms_norm_eps", "max_position_embeddings", "initializer_range", "bos_token_id", "eos_token_id"]
    names += ["tie_word_embeddings"]  # a matrix left out would be drawn anew
    if model_type == "qwen3_moe":
        names += ["num_experts_per_tok", "norm_topk_prob", "router_aux_loss_coef"]
    assert {name: values[name] for name in names} == {name: getattr(theirs, name) for name in names}
    assert values["rope_theta"] == theirs.rope_parameters["rope_theta"]


YARN = {"factor": 4.0, "original_max_position_embeddings": 16}
ROPES = {
    "transformers 5": {"rope_parameters": {"rope_theta": 5e5, "rope_type": "yarn", **YARN}},
    "transformers 4": {"rope_theta": 5e5, "rope_scaling": {"rope_type": "yarn", **YARN}},
    "older": {"rope_theta": 5e5, "rope_scaling": {"type": "yarn", **YARN}},
    "both": {
        "rope_theta": 5e5,
        "rope_scaling": {"type": "yarn", **YARN},
        "rope_parameters": {"rope_theta": 5e5, "rope_type": "yarn", **YARN},
    },
}


@pytest.mark.parametrize("case", ROPES)
def test_yarn_is_found_wherever_a_version_writes_it(case):
    described = {"model_type": "qwen3", "max_position_embeddings": 64, **SIZES, **ROPES[case]}
    values = values_of(described, "minimind3")
    assert values["rope_scaling"] == RopeScaling(4.0, 16)
    assert values["rope_theta"] == 5e5
    assert values["max_position_embeddings"] == 64
    MiniMindConfig(**values)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"beta_fast": 8, "beta_slow": 2, "attention_factor": 1.5}, RopeScaling(4.0, 16, 8, 2, 1.5)),
        ({"attention_factor": None, "beta_fast": None}, RopeScaling(4.0, 16)),
        ({"factor": None}, RopeScaling(4.0, 16)),
    ],
)
def test_yarns_values_come_with_transformers_defaults(given, expected):
    described = {"model_type": "llama", "max_position_embeddings": 64, **SIZES}
    values = values_of(described | {"rope_scaling": {"type": "yarn", **YARN, **given}}, "minimind2")
    assert values["rope_scaling"] == expected


def test_yarn_applies_even_where_the_config_stops_at_the_trained_context():
    """transformers scales then as always; ours would not, so the tables are made as long as the scaling reaches."""
    described = {"model_type": "qwen3", "max_position_embeddings": 16, **SIZES, **ROPES["transformers 4"]}
    assert values_of(described, "minimind3")["max_position_embeddings"] == 64


def upstream_yarn(generation, **given):
    described = {"model_type": "minimind", "inference_rope_scaling": True, "rope_scaling": given or None}
    return values_of(described, generation)["rope_scaling"]


def test_upstreams_switch_means_what_its_generation_means():
    assert upstream_yarn("minimind2") == RopeScaling(4.0, 2048, 4.0, 1.0, 1.0, "minimind2")
    assert upstream_yarn("minimind3") == RopeScaling(16.0, 2048, 32.0, 1.0, 1.0)


@pytest.mark.parametrize("switch", ["false", "yes", 1])
def test_upstreams_switch_is_true_or_false(switch):
    """Any text, "false" too, would switch the scaling on."""
    with pytest.raises(ValueError, match=f"inference_rope_scaling must be True or False, got {switch!r}"):
        values_of({"model_type": "minimind", "inference_rope_scaling": switch}, "minimind2")
    assert "rope_scaling" not in values_of({"model_type": "minimind", "inference_rope_scaling": None}, "minimind2")


def test_the_last_minimind2_has_yarn_proper_which_its_attention_factor_shows():
    given = {"type": "yarn", "factor": 16, "beta_fast": 32, "beta_slow": 1, "original_max_position_embeddings": 2048}
    assert upstream_yarn("minimind2", **given).formula == "minimind2"
    assert upstream_yarn("minimind2", **given, attention_factor=1.0) == RopeScaling(16, 2048, 32, 1, 1.0)


def test_our_own_scaling_comes_back_as_it_is():
    given = {"factor": 4.0, "original_max_position_embeddings": 16, "formula": "minimind2", "beta_fast": 4.0}
    values = values_of({"model_type": "minimind_edu", "minimind_rope_scaling": given}, "minimind2")
    assert values["rope_scaling"] == RopeScaling(**given)


@pytest.mark.parametrize(("written", "meant"), [(7, 7), ([7, 8], (7, 8)), ([], None), (None, None)])
def test_one_token_several_or_none_end_a_text(written, meant):
    values = values_of({"model_type": "llama", "eos_token_id": written, "bos_token_id": None}, "minimind2")
    assert values["eos_token_id"] == meant
    assert values["bos_token_id"] is None


REFUSED = {
    "another model": ({"model_type": "gpt2"}, "a model of type 'gpt2', and only minimind, minimind_edu, llama, "),
    "another activation": ({"hidden_act": "gelu"}, "hidden_act='gelu', but only hidden_act='silu' is computed here"),
    "biases": ({"attention_bias": True}, "attention_bias=True"),
    "biases in the feed-forward part": ({"mlp_bias": True}, "mlp_bias=True"),
    "a sliding window": ({"use_sliding_window": True}, "use_sliding_window=True"),
    "a mixture in some layers": ({"decoder_sparse_step": 2}, "decoder_sparse_step=2"),
    "dense layers in a mixture": ({"mlp_only_layers": [0]}, r"mlp_only_layers=\[0\]"),
    "half-rotated heads": ({"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
    "half-rotated heads in RoPE's own": (
        {"rope_parameters": {"partial_rotary_factor": 0.5}},
        "partial_rotary_factor=0.5",
    ),
    "another router": ({"scoring_func": "sigmoid"}, "scoring_func='sigmoid'"),
    "quantized": ({"quantization_config": {"bits": 4}}, "quantization_config"),
    "another RoPE": ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "RoPE of type 'llama3'"),
    "DeepSeek's YaRN": (
        {"rope_scaling": {"type": "yarn", **YARN, "mscale": 1.0, "mscale_all_dim": 0.8}},
        "YaRN sets mscale, mscale_all_dim",
    ),
    "RoPE as a word": ({"rope_scaling": "yarn"}, "rope_scaling must be an object, got 'yarn'"),
    "RoPE as a list": ({"rope_parameters": [1]}, r"rope_parameters must be an object, got \[1\]"),
    "our scaling as a word": ({"minimind_rope_scaling": "yarn"}, "minimind_rope_scaling='yarn', a field whose meaning is not"),
    "an untruncated ramp": ({"rope_scaling": {"type": "yarn", **YARN, "truncate": False}}, "YaRN sets truncate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_this_package_does_not_compute_is_refused_by_name(case):
    described, message = REFUSED[case]
    with pytest.raises(ValueError, match=f"config.json.* {message}"):
        values_of({"model_type": "llama", **SIZES} | described, "minimind2")


def test_switches_that_are_off_are_no_obstacle():
    off = {"hidden_act": "silu", "attention_bias": False, "mlp_only_layers": [], "partial_rotary_factor": 1.0}
    off |= {"use_sliding_window": False, "sliding_window": None, "rope_scaling": {"rope_type": "default"}}
    assert "rope_scaling" not in values_of({"model_type": "llama", **SIZES, **off}, "minimind2")


def test_yarn_without_a_trained_context_is_refused():
    given = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 0}
    with pytest.raises(ValueError, match="original_max_position_embeddings must be .*got 0"):
        values_of({"model_type": "llama", **SIZES, "rope_scaling": given}, "minimind2")


def test_values_make_a_config():
    values = values_of({"model_type": "llama", **SIZES}, "minimind2")
    config = MiniMindConfig(**values)
    assert config.rms_norm_eps == 1e-6 and config.rope_theta == 1e4
