"""A config.json means here what it means to those who wrote it, and what this package does not compute is refused."""

import json

import pytest
from transformers import AutoConfig, GenerationConfig, LlamaConfig, Qwen3Config, Qwen3MoeConfig

from minimind_edu.hf import MiniMindEduConfig
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.foreign import FAMILIES
from minimind_edu.model.rope_frequencies import RopeScaling
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
    names = ["rms_norm_eps", "max_position_embeddings", "initializer_range"]
    names += ["tie_word_embeddings"]  # a matrix left out would be drawn anew
    if model_type == "qwen3_moe":
        names += ["num_experts_per_tok", "norm_topk_prob", "router_aux_loss_coef"]
    assert {name: values[name] for name in names} == {name: getattr(theirs, name) for name in names}
    assert values["rope_theta"] == theirs.rope_parameters["rope_theta"]
    # texts end where the file says; LlamaConfig's own eos_token_id=2 ends none
    with pytest.raises(OSError, match="generation_config.json"):
        GenerationConfig.from_pretrained(tmp_path)
    ends = GenerationConfig.from_pretrained(tmp_path, config_file_name="config.json", _from_model_config=True)
    assert (values["bos_token_id"], values["eos_token_id"]) == (ends.bos_token_id, ends.eos_token_id) == (None, None)


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
    "our scaling as a word": (
        {"minimind_rope_scaling": "yarn"},
        "minimind_rope_scaling='yarn', a field whose meaning is not",
    ),
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


def test_values_of_a_file_that_is_silent_are_those_of_its_own_program():
    """Our adapter starts from MiniMindConfig, whatever generation the weights show."""
    values = values_of({"model_type": "minimind_edu"}, "minimind3")
    assert values == MiniMindConfig.defaults()


ALL_NAMES = {
    "llama": (LlamaConfig, {}),
    "qwen3": (Qwen3Config, {}),
    "qwen3_moe": (Qwen3MoeConfig, {}),
    "a mixture with everything set": (
        Qwen3MoeConfig,
        {"use_cache": False, "num_labels": 3, "problem_type": "regression", "dtype": "float16", "sliding_window": 3},
    ),
    "yarn": (
        LlamaConfig,
        {"rope_parameters": {"rope_type": "yarn", **YARN, "truncate": True, "beta_fast": 32, "attention_factor": 1.0}},
    ),
    "minimind_edu": (MiniMindEduConfig, {}),
}


@pytest.mark.parametrize("case", ALL_NAMES)
def test_every_field_that_transformers_writes_is_in_the_table(case, tmp_path):
    """In memory, in a file, in the words of transformers 4, and with what it kept for generation."""
    config_class, changes = ALL_NAMES[case]
    config = config_class(**SIZES, **changes)
    config.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text()) | config.to_dict()
    written["eos_token_id"] = 2
    values_of(written, "minimind3")
    if case != "minimind_edu":
        rope = written.pop("rope_parameters")
        older = {"rope_theta": rope.pop("rope_theta"), "rope_scaling": rope, "torch_dtype": "float16"}
        values_of(written | older, "minimind3")
    family = FAMILIES[config.model_type]
    names = GenerationConfig._get_default_generation_params().keys() | vars(LlamaConfig()).keys()
    names -= {"rope_parameters", "_post_init_done", "_output_attentions"}
    known = family.used.keys() | family.rope | family.only.keys() | family.nothing
    assert case == "minimind_edu" or names <= known, names - known


# Llama and Qwen3 files as programs of 2023 to 2025 wrote them (transformers 4.31 to 4.57)
OF_TRANSFORMERS_4 = {
    "llama": {
        "_name_or_path": "x", "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "initializer_range": 0.02,
        "max_position_embeddings": 4096, "mlp_bias": False, "pad_token_id": 0, "pretraining_tp": 1,
        "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": False,
        "torch_dtype": "float16", "transformers_version": "4.31.0.dev0", "use_cache": True,
    },
    "qwen3": {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
        "eos_token_id": 2, "hidden_act": "silu", "initializer_range": 0.02, "max_position_embeddings": 40960,
        "max_window_layers": 28, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000,
        "sliding_window": None, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0", "use_cache": True, "use_sliding_window": False,
    },
    "qwen3_moe": {
        "architectures": ["Qwen3MoeForCausalLM"], "attention_bias": False, "decoder_sparse_step": 1,
        "hidden_act": "silu", "max_window_layers": 48, "mlp_only_layers": [], "moe_intermediate_size": 24,
        "norm_topk_prob": True, "num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": False,
        "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
        "sliding_window": None, "tie_word_embeddings": False, "use_sliding_window": False,
    },
}  # fmt: skip


# What else stands in public folders of these families, written by other programs, and changes no result.
OF_OTHERS = {
    "SmolLM2": (
        "llama",
        {"transformers.js_config": {"dtype": "q4"}, "is_llama_config": True, "rope_interleaved": False},
    ),
    "LLaMA": ("llama", {"max_sequence_length": 2048, "pad_token_id": -1, "gradient_checkpointing": False}),
    "Zephyr and Yi": ("llama", {"_flash_attn_2_enabled": True, "cache_implementation": None}),
    "Qwen3-Coder": ("qwen3_moe", {"shared_expert_intermediate_size": 0, "qkv_bias": False, "use_qk_norm": True}),
}


@pytest.mark.parametrize("name", OF_OTHERS)
def test_public_files_are_read(name):
    model_type, fields = OF_OTHERS[name]
    described = {"model_type": model_type, **SIZES}
    assert values_of(described | fields, "minimind3") == values_of(described, "minimind3")


@pytest.mark.parametrize("field", ["shared_expert_intermediate_size", "qkv_bias"])
def test_what_qwen3_coder_says_is_off_is_refused_when_it_is_on(field):
    with pytest.raises(ValueError, match=f"config.json asks for {field}=64, but only {field}="):
        values_of({"model_type": "qwen3_moe", **SIZES, field: 64}, "minimind3")


@pytest.mark.parametrize("model_type", OF_TRANSFORMERS_4)
def test_files_of_transformers_4_are_read(model_type):
    described = OF_TRANSFORMERS_4[model_type]
    values = values_of({"model_type": model_type, **SIZES, **described}, "minimind3")
    assert values["rope_theta"] == described["rope_theta"]
    assert values["norm_topk_prob"] if model_type == "qwen3_moe" else not values["use_moe"]


@pytest.mark.parametrize("name", ["norm_placement", "use_moe", "dropout", "n_routed_experts", "attn_soft_cap"])
@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_field_that_nobody_has_looked_at_is_refused_not_ignored(model_type, name):
    with pytest.raises(ValueError, match=f"config.json has {name}='post', a field whose meaning is not known here"):
        values_of({"model_type": model_type, **SIZES, name: "post"}, "minimind3")


def test_our_names_do_not_act_in_minimind_s_files():
    with pytest.raises(ValueError, match="config.json has norm_placement='post', a field whose meaning is not known"):
        values_of({"model_type": "minimind", "norm_placement": "post"}, "minimind3")


def test_two_names_of_one_field_must_agree():
    described = {"model_type": "qwen3_moe", **SIZES, "num_experts": 4, "num_local_experts": 4}
    assert values_of(described, "minimind3")["num_experts"] == 4
    with pytest.raises(ValueError, match="config.json says num_experts=4, and num_local_experts=5 as well"):
        values_of(described | {"num_local_experts": 5}, "minimind3")


def test_a_file_without_a_type_is_minimind_s_unless_it_names_another_program():
    values_of({"architectures": ["MiniMindForCausalLM"]}, "minimind2")
    with pytest.raises(ValueError, match="a model of type 'LlamaForCausalLM without a model_type', and only minimind"):
        values_of({"architectures": ["LlamaForCausalLM"]}, "minimind2")


def test_a_file_s_own_positions_stay_where_they_go_beyond_the_trained_context():
    described = {"model_type": "llama", **SIZES, "max_position_embeddings": 100, **ROPES["transformers 4"]}
    values = values_of(described, "minimind2")
    assert values["max_position_embeddings"] == 100 and not values["rope_scaling"].always


@pytest.mark.parametrize("factor", [1, 1.0, 1.01])
def test_a_factor_of_about_one_still_scales(factor):
    yarn = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": 64, "attention_factor": 1.2}
    values = values_of(
        {"model_type": "llama", **SIZES, "max_position_embeddings": 64, "rope_scaling": yarn}, "minimind2"
    )
    assert values["rope_scaling"].starts_at(values["max_position_embeddings"])


def test_a_factor_alone_makes_no_endless_tables():
    yarn = {"rope_type": "yarn", "factor": 1e9, "original_max_position_embeddings": 64}
    values = values_of(
        {"model_type": "llama", **SIZES, "max_position_embeddings": 64, "rope_scaling": yarn}, "minimind2"
    )
    assert values["max_position_embeddings"] == 2**18


ENDS = [  # config.json's, generation_config.json's (None: no such file), ours
    (2, None, 2),
    (2, {"eos_token_id": [2, 25]}, (2, 25)),
    (2, {"bos_token_id": 7}, None),
    (None, {"eos_token_id": 5}, 5),
    ([2, 3], {}, None),
]


@pytest.mark.parametrize(("described", "generating", "ends"), ENDS)
def test_a_generation_config_goes_before_the_config(described, generating, ends):
    """transformers reads the one or the other, never both."""
    config = {"model_type": "llama", **SIZES, "eos_token_id": described, "bos_token_id": 1}
    values = values_of(config, "minimind2", generating)
    assert values["eos_token_id"] == ends
    assert values["bos_token_id"] == (1 if generating is None else generating.get("bos_token_id"))


def test_minimind_s_own_program_does_not_read_a_generation_config():
    values = values_of({"model_type": "minimind", "eos_token_id": 2}, "minimind3", {"eos_token_id": [2, 25]})
    assert values["eos_token_id"] == 2


@pytest.mark.parametrize("stated", [True, False])
def test_one_expert_of_minimind2_is_not_renormalized_whatever_its_file_says(stated):
    upstream = {"num_experts_per_tok": 1, "norm_topk_prob": stated, "use_moe": True}
    assert not MiniMindConfig.from_upstream(upstream, "minimind2").norm_topk_prob
    assert MiniMindConfig.from_upstream(upstream, "minimind3").norm_topk_prob == stated
    assert MiniMindConfig.from_upstream(upstream | {"num_experts_per_tok": 2}, "minimind2").norm_topk_prob == stated


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_number_of_many_digits_is_named_by_its_field(model_type):
    with pytest.raises(ValueError, match="^config.json's max_position_embeddings is a number of 400 digits"):
        values_of({"model_type": model_type, "max_position_embeddings": 10**399}, "minimind3")


ODD_VALUES = [float("nan"), float("inf"), 10**400, -1, 0.5, "8", [8], {"a": 1}, True, None]


@pytest.mark.parametrize("model_type", ["llama", "qwen3_moe", "minimind", "minimind_edu"])
def test_odd_values_are_refused_in_one_sentence_or_are_none(model_type):
    """Anything but a ValueError fails, whatever stands in whatever field."""
    family = FAMILIES[model_type]
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    for name in [*family.used, *family.rope, *family.only, *yarn, "model_type", "architectures"]:
        for value in ODD_VALUES:
            described = {"model_type": model_type, **SIZES, "rope_scaling": yarn}
            (described["rope_scaling"] if name in yarn else described)[name] = value
            try:
                values = values_of(described, "minimind3")
                MiniMindConfig(**{"num_experts": 8} | values)
            except ValueError as error:
                assert "\n" not in str(error), (name, value)
