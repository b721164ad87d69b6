"""A config derives what is left out, knows both generations, and refuses sizes that contradict each other."""

import dataclasses
import math

import pytest

from minimind_edu.model.config import MiniMindConfig, minimind2_intermediate_size, minimind3_intermediate_size


def test_the_default_is_minimind2_small():
    config = MiniMindConfig()
    assert (config.hidden_size, config.num_hidden_layers) == (512, 8)
    assert (config.num_attention_heads, config.num_key_value_heads) == (8, 2)
    assert (config.head_dim, config.queries_per_kv) == (64, 4)
    assert config.rms_norm_eps == 1e-5
    assert config == MiniMindConfig.minimind2()


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MiniMindConfig().hidden_size = 768


@pytest.mark.parametrize("hidden_size, width", [(512, 1408), (640, 1728), (768, 2048)])
def test_minimind2_feed_forward_is_eight_thirds_wide(hidden_size, width):
    assert minimind2_intermediate_size(hidden_size) == width
    assert MiniMindConfig.minimind2(hidden_size=hidden_size).intermediate_size == width


@pytest.mark.parametrize("hidden_size, width", [(512, 1664), (768, 2432)])
def test_minimind3_feed_forward_is_pi_times_as_wide(hidden_size, width):
    assert minimind3_intermediate_size(hidden_size) == width
    assert MiniMindConfig.minimind3(hidden_size=hidden_size).intermediate_size == width


@pytest.mark.parametrize("preset", ["minimind2", "minimind3"])
def test_presets_refuse_a_size_in_words(preset):
    with pytest.raises(ValueError, match="hidden_size must be a whole number of at least 1, got '768'"):
        getattr(MiniMindConfig, preset)(hidden_size="768")


def test_minimind3_differs_from_minimind2_where_upstream_does():
    config = MiniMindConfig.minimind3()
    assert (config.hidden_size, config.num_key_value_heads, config.head_dim) == (768, 4, 96)
    assert config.use_qk_norm and config.rms_norm_eps == 1e-6
    mixture = MiniMindConfig.minimind3_moe()
    assert (mixture.num_experts, mixture.num_experts_per_tok) == (4, 1)
    assert mixture.num_shared_experts == 0
    assert mixture.router_aux_loss_coef == 5e-4


def test_minimind2_mixture_has_two_of_four_experts_and_a_shared_one():
    config = MiniMindConfig.minimind2_moe()
    assert (config.hidden_size, config.moe_intermediate_size) == (640, 1728)
    assert (config.num_experts, config.num_experts_per_tok, config.num_shared_experts) == (4, 2, 1)


def test_minimind2_renormalizes_only_where_several_experts_are_chosen():
    assert MiniMindConfig.minimind2_moe().norm_topk_prob
    assert not MiniMindConfig.minimind2_moe(num_experts_per_tok=1).norm_topk_prob


def test_what_is_asked_for_wins_over_the_rule():
    assert MiniMindConfig.minimind2_moe(num_experts_per_tok=1, norm_topk_prob=True).norm_topk_prob


def test_several_end_tokens_may_be_listed_as_transformers_does():
    config = MiniMindConfig(eos_token_id=[2, 3])
    assert config.eos_token_id == (2, 3) and hash(config) == hash(MiniMindConfig(eos_token_id=(2, 3)))


def test_head_dim_may_be_chosen_apart_from_the_hidden_size():
    config = MiniMindConfig(hidden_size=100, num_attention_heads=8, head_dim=16)
    assert config.head_dim == 16


def test_from_upstream_translates_minimind2_names():
    config = MiniMindConfig.from_upstream(
        {"n_routed_experts": 6, "n_shared_experts": 2, "aux_loss_alpha": 0.3, "use_moe": True}, generation="minimind2"
    )
    assert (config.num_experts, config.num_shared_experts) == (6, 2)
    assert config.router_aux_loss_coef == 0.3


def test_from_upstream_takes_the_defaults_of_its_generation():
    assert MiniMindConfig.from_upstream({}, "minimind2") == MiniMindConfig.minimind2()
    assert MiniMindConfig.from_upstream({}, "minimind3") == MiniMindConfig.minimind3()


def test_from_upstream_leaves_out_what_changes_no_result():
    upstream = {"flash_attn": True, "hidden_act": "silu", "intermediate_size": None}
    assert MiniMindConfig.from_upstream(upstream, "minimind2") == MiniMindConfig.minimind2()


def test_from_upstream_knows_what_each_generation_calls_yarn():
    older = MiniMindConfig.from_upstream({"inference_rope_scaling": True}, "minimind2").rope_scaling
    newer = MiniMindConfig.from_upstream({"inference_rope_scaling": True}, "minimind3").rope_scaling
    assert (older.factor, older.beta_fast, older.formula) == (4.0, 4.0, "minimind2")
    assert (newer.factor, newer.beta_fast, newer.formula) == (16.0, 32.0, "yarn")
    assert older.table_factor == newer.table_factor == 1.0


def test_from_upstream_reads_a_rope_scaling_dictionary():
    given = {"type": "yarn", "factor": 8, "original_max_position_embeddings": 1024}
    scaling = MiniMindConfig.from_upstream({"rope_scaling": given}, "minimind3").rope_scaling
    assert (scaling.factor, scaling.original_max_position_embeddings) == (8, 1024)


def test_from_upstream_refuses_a_rope_scaling_in_a_word():
    with pytest.raises(ValueError, match="upstream's rope_scaling must be a dictionary, got 'yarn'"):
        MiniMindConfig.from_upstream({"rope_scaling": "yarn"}, "minimind3")


@pytest.mark.parametrize("generation, attention_factor", [("minimind2", 1.0), ("minimind3", 1.0)])
def test_from_upstream_takes_2048_for_a_trained_context_that_is_not_named(generation, attention_factor):
    given = {"factor": 8, "attention_factor": attention_factor}
    scaling = MiniMindConfig.from_upstream({"rope_scaling": given}, generation).rope_scaling
    assert scaling.original_max_position_embeddings == 2048


BAD_CONFIGS = [
    ({"vocab_size": 0}, "vocab_size must be a whole number of at least 1, got 0"),
    ({"hidden_size": 512.0}, "hidden_size must be a whole number of at least 1, got 512.0"),
    ({"num_hidden_layers": True}, "num_hidden_layers must be a whole number .* got True"),
    ({"head_dim": -2}, "head_dim must be a whole number of at least 1, got -2"),
    (
        {"num_key_value_heads": 3},
        "num_attention_heads must be a multiple of num_key_value_heads, got 8 and 3: every key/value head serves "
        "the same number .* counts heads; it is not the number of query heads in a group",
    ),
    (
        {"hidden_size": 100},
        "hidden_size must be a multiple of num_attention_heads, got 100 and 8; .* or give head_dim yourself",
    ),
    ({"hidden_size": 72}, "RoPE rotates pairs of channels, so head_dim must be even, .* got 9"),
    (
        {"num_experts_per_tok": 5},
        "num_experts_per_tok cannot exceed num_experts, got 5 of 4: a token visits an expert at most once",
    ),
    ({"num_shared_experts": -1}, "num_shared_experts .* got -1"),
    ({"num_shared_experts": 1.5}, "num_shared_experts .* got 1.5"),
    ({"norm_placement": "sandwich"}, "norm_placement must be 'pre' or 'post', got 'sandwich'"),
    ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
    ({"rms_norm_eps": 0.0}, "rms_norm_eps must be above 0, got 0.0; without it a vector of zeros"),
    ({"rms_norm_eps": 1e-50}, "rms_norm_eps must be a finite number, got 1e-50"),
    ({"rms_norm_eps": math.nan}, "rms_norm_eps must be a finite number, got nan"),
    ({"rope_theta": 1.0}, "rope_theta must be above 1, got 1.0; it is the base"),
    ({"rope_theta": 10**400}, "rope_theta must be a finite number"),
    ({"rope_theta": math.nan}, "rope_theta must be a finite number, got nan"),
    ({"rope_theta": math.inf}, "rope_theta must be a finite number, got inf"),
    ({"rms_norm_eps": math.inf}, "rms_norm_eps must be a finite number, got inf"),
    ({"rms_norm_eps": "1e-5"}, "rms_norm_eps must be a finite number, got '1e-5'"),
    ({"dropout": None}, "dropout must be a finite number, got None"),
    ({"initializer_range": -1.0}, "initializer_range must be at least 0, got -1.0"),
    ({"initializer_range": math.nan}, "initializer_range must be a finite number, got nan"),
    ({"initializer_range": "x"}, "initializer_range must be a finite number, got 'x'"),
    ({"router_aux_loss_coef": -0.1}, "router_aux_loss_coef must be at least 0, got -0.1"),
    ({"tie_word_embeddings": "false"}, "tie_word_embeddings must be True or False, got 'false'"),
    ({"use_moe": "no"}, "use_moe must be True or False, got 'no'"),
    ({"eos_token_id": "2"}, "eos_token_id must be a whole number from 0 to 6399, got '2'"),
    ({"eos_token_id": 99999}, "eos_token_id must be a whole number from 0 to 6399, got 99999"),
    ({"eos_token_id": [2, -3]}, "eos_token_id must be a whole number from 0 to 6399, got -3"),
    ({"bos_token_id": 6400}, "bos_token_id must be a whole number from 0 to 6399, got 6400"),
    ({"bos_token_id": [1, 2]}, r"bos_token_id must be a whole number from 0 to 6399, got \[1, 2\]"),
    ({"max_position_embeddings": 0}, "max_position_embeddings must be a whole number of at least 1, got 0"),
    (
        {"hidden_size": 10**9, "num_attention_heads": 1, "num_key_value_heads": 1},
        "head_dim must be even, from 2 to 65536",
    ),
    (
        {"rope_scaling": {"factor": 4}},
        "must be a RopeScaling or None, got .'factor': 4.; .*MiniMindConfig.from_upstream",
    ),
    ({"hidden_size": "512"}, "hidden_size must be a whole number of at least 1, got '512'"),
    ({"vocab_size": None}, "vocab_size must be a whole number of at least 1, got None"),
]


@pytest.mark.parametrize("changes, message", BAD_CONFIGS)
def test_rejects_sizes_that_contradict_each_other(changes, message):
    with pytest.raises(ValueError, match=message):
        MiniMindConfig(**changes)


def test_rejects_a_generation_that_does_not_exist():
    with pytest.raises(ValueError, match="generation must be 'minimind2' or 'minimind3', got 'x'"):
        MiniMindConfig.from_upstream({}, generation="x")


def test_rejects_a_name_that_upstream_does_not_have():
    with pytest.raises(ValueError, match="minimind3 config has no field n_layer; known here: .*"):
        MiniMindConfig.from_upstream({"n_layer": 4}, "minimind3")


@pytest.mark.parametrize("preset", ["minimind2", "minimind2_moe", "minimind3", "minimind3_moe"])
@pytest.mark.parametrize("changes", [
    {"hidden_size": 768}, {"hidden_size": 1024, "num_hidden_layers": 2}, {"num_attention_heads": 16}, {"dropout": 0.1},
    {"num_experts_per_tok": 1}, {"num_experts_per_tok": 3}, {"intermediate_size": 100}, {"head_dim": 32}, {},
])  # fmt: skip
def test_a_changed_config_is_the_preset_with_those_changes(preset, changes):
    make = getattr(MiniMindConfig, preset)
    assert make().changed(**changes) == make(**changes)


def test_a_changed_config_follows_minimind2_s_rule_for_one_expert():
    one = MiniMindConfig.minimind2_moe(num_experts_per_tok=1)
    assert not one.norm_topk_prob and one.changed(num_experts_per_tok=2).norm_topk_prob
    assert one.changed(norm_topk_prob=True).norm_topk_prob
    assert not MiniMindConfig.minimind2_moe().changed(num_experts_per_tok=1).norm_topk_prob


def test_sizes_of_no_rule_stay_in_a_changed_config():
    config = MiniMindConfig(intermediate_size=100, moe_intermediate_size=50, head_dim=32)
    changed = config.changed(hidden_size=768, use_moe=True)
    assert (changed.intermediate_size, changed.moe_intermediate_size, changed.head_dim) == (100, 50, 32)
    with pytest.raises(TypeError, match="n_layer"):
        config.changed(n_layer=3)


def test_from_upstream_takes_what_upstream_swallows_and_obeys_a_switch_that_is_off():
    sizes = {"hidden_size": 256, "num_hidden_layers": 4}
    assert MiniMindConfig.from_upstream(sizes | {"max_seq_len": 1024}, "minimind3") == MiniMindConfig.minimind3(**sizes)
    off = {"inference_rope_scaling": False, "rope_scaling": {"factor": 16, "attention_factor": 1.0}}
    assert MiniMindConfig.from_upstream(off, "minimind3").rope_scaling is None
    with pytest.raises(ValueError, match="upstream's config asks for hidden_act='gelu', but only hidden_act='silu'"):
        MiniMindConfig.from_upstream({"hidden_act": "gelu"}, "minimind3")


def test_a_ramp_that_minimind_cuts_at_the_last_pair_is_refused():
    scaled = {"inference_rope_scaling": True, "hidden_size": 128, "num_attention_heads": 8}
    assert MiniMindConfig.from_upstream(scaled, "minimind3").rope_scaling is not None
    with pytest.raises(ValueError, match=r"MiniMind ends YaRN's ramp at the last pair \(7\), here it would"):
        MiniMindConfig.from_upstream(scaled | {"rope_theta": 300.0}, "minimind3")


def test_a_token_beyond_the_vocabulary_can_be_left_out():
    with pytest.raises(ValueError, match="eos_token_id must be .* got 9; eos_token_id=None says that there is none"):
        MiniMindConfig(vocab_size=8, eos_token_id=9)
