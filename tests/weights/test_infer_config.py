"""Every size that names and shapes show is found; what they do not show comes from where the docstring says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, PROPERTY, tiny_config, tiny_model

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.weights.infer_config import assumed, differences, infer_config, sizes_shown


def weights_of(config):
    """Names and shapes, without memory."""
    with torch.device("meta"):
        state = MiniMindForCausalLM(config).state_dict()
    if config.tie_word_embeddings:
        del state["lm_head.weight"]
    return state


PRESETS = {
    "minimind2 small": MiniMindConfig.minimind2(),
    "minimind2": MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16),
    "minimind2 mixture": MiniMindConfig.minimind2_moe(),
    "minimind3": MiniMindConfig.minimind3(),
    "minimind3 small": MiniMindConfig.minimind3(hidden_size=512),
    "minimind3 mixture": MiniMindConfig.minimind3_moe(),
}


@pytest.mark.parametrize("name", PRESETS)
def test_every_released_size_is_told_from_its_shapes_alone(name):
    assert infer_config(weights_of(PRESETS[name])) == PRESETS[name]


@PROPERTY
@given(
    kind=st.sampled_from(KINDS),
    head_dim=st.sampled_from([2, 4, 8]),
    kv_heads=st.sampled_from([1, 2, 4, 8]),
    layers=st.integers(1, 12),
    inner=st.integers(1, 70),
    experts=st.integers(1, 5),
    tied=st.booleans(),
)
def test_every_size_that_shapes_show_is_found(kind, head_dim, kv_heads, layers, inner, experts, tied):
    shared = 0 if kind == "minimind3_moe" else experts % 3
    config = tiny_config(
        kind,
        hidden_size=32,
        num_attention_heads=8,
        head_dim=head_dim,
        num_key_value_heads=kv_heads,
        num_hidden_layers=layers,
        tie_word_embeddings=tied,
        max_position_embeddings=32768,
        **(
            {"num_experts": experts, "num_experts_per_tok": 1, "num_shared_experts": shared,
             "moe_intermediate_size": inner, "intermediate_size": None}
            if "moe" in kind
            else {"intermediate_size": inner}
        ),
    )  # fmt: skip
    known = {"num_experts_per_tok": 1, "intermediate_size": config.intermediate_size} if "moe" in kind else {}
    weights = weights_of(config)
    if not tied:  # meta tensors hold no numbers to compare
        weights = {name: torch.zeros(value.shape) for name, value in weights.items()}
        weights["lm_head.weight"] += 1
    assert infer_config(weights, **known) == config


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_assumed_is_what_weights_do_not_show(kind):
    found = infer_config(weights_of(tiny_config(kind, num_attention_heads=8, head_dim=4)))
    others = {"num_attention_heads": 16, "rope_theta": 1e4, "rms_norm_eps": 1e-3, "max_position_embeddings": 64}
    others |= {"rope_scaling": RopeScaling(4.0, 16)}
    others |= {"num_experts_per_tok": 3 - found.num_experts_per_tok, "norm_topk_prob": not found.norm_topk_prob}
    names = assumed(found)
    assert set(names) <= set(others) and names == {name: getattr(found, name) for name in names}
    for name in names:
        changed = {name: others[name]} | ({"head_dim": 2} if name == "num_attention_heads" else {})
        other = tiny_config(kind, **{"num_attention_heads": 8, "head_dim": 4} | changed)
        assert getattr(infer_config(weights_of(other)), name) == names[name] != getattr(other, name)


def test_with_qk_norm_any_number_of_heads_is_told():
    config = tiny_config("minimind3", num_attention_heads=6, num_key_value_heads=3, head_dim=10)
    found = infer_config(weights_of(config))
    assert (found.num_attention_heads, found.num_key_value_heads, found.head_dim) == (6, 3, 10)


def test_without_qk_norm_heads_are_eight_unless_you_say_otherwise():
    config = tiny_config(num_attention_heads=4, num_key_value_heads=2)  # 4 heads of 8
    found = infer_config(weights_of(config))
    assert (found.num_attention_heads, found.num_key_value_heads, found.head_dim) == (8, 4, 4)
    for known in ({"num_attention_heads": 4}, {"head_dim": 8}):
        found = infer_config(weights_of(config), **known)
        assert (found.num_attention_heads, found.num_key_value_heads, found.head_dim) == (4, 2, 8)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "known"),
    [(3, 1, 6, {}), (5, 1, 16, {}), (4, 2, 8, {"num_attention_heads": 3}), (8, 4, 3, {})],
)
def test_heads_that_cannot_be_told_are_asked_for(heads, kv_heads, head_dim, known):
    query, key = heads * head_dim, kv_heads * head_dim
    weights = {
        "model.embed_tokens.weight": torch.empty(61, 32),
        "model.layers.0.self_attn.q_proj.weight": torch.empty(query, 32),
        "model.layers.0.self_attn.k_proj.weight": torch.empty(key, 32),
    }
    with pytest.raises(ValueError, match=f"q_proj has {query} rows and k_proj {key}, .* Give num_attention_heads"):
        infer_config(weights, **known)


def test_config_json_goes_before_presets_and_you_before_config_json():
    weights = weights_of(tiny_config())
    described = {"rope_theta": 5e5, "rms_norm_eps": 1e-4, "num_attention_heads": 4, "head_dim": None}
    found = infer_config(weights, described, rms_norm_eps=1e-3)
    assert (found.rope_theta, found.rms_norm_eps) == (5e5, 1e-3)
    assert (found.num_attention_heads, found.num_key_value_heads, found.head_dim) == (4, 2, 8)


def test_a_config_json_is_believed_against_the_shapes_so_that_the_weights_are_found_not_to_fit():
    found = infer_config(weights_of(tiny_config()), {"num_hidden_layers": 3, "vocab_size": 62})
    assert (found.num_hidden_layers, found.vocab_size, found.hidden_size) == (3, 62, 32)


def test_the_presets_values_follow_the_generation_that_the_weights_show():
    two, three = (infer_config(weights_of(tiny_config(kind))) for kind in ("minimind2", "minimind3"))
    assert (two.rms_norm_eps, three.rms_norm_eps) == (1e-5, 1e-6)
    moe = {kind: infer_config(weights_of(tiny_config(kind))) for kind in ("minimind2_moe", "minimind3_moe")}
    assert [config.num_experts_per_tok for config in moe.values()] == [2, 1]
    assert [config.num_shared_experts for config in moe.values()] == [1, 0]


def test_a_mixture_of_one_expert_needs_no_second():
    config = tiny_config("minimind2_moe", num_experts=1, num_experts_per_tok=1)
    assert infer_config(weights_of(config)).num_experts_per_tok == 1


def test_equal_matrices_are_tied_and_different_ones_are_not():
    weights = tiny_model().state_dict()
    assert sizes_shown(weights)["tie_word_embeddings"]
    weights["lm_head.weight"] = weights["lm_head.weight"].clone()
    assert sizes_shown(weights)["tie_word_embeddings"]
    weights["lm_head.weight"] += 1e-9
    assert not sizes_shown(weights)["tie_word_embeddings"]


def test_a_model_that_diverged_is_still_tied():
    """NaN equals nothing, not even itself."""
    weights = tiny_model().state_dict()
    weights["model.embed_tokens.weight"][0, 0] = torch.nan
    assert sizes_shown(weights)["tie_word_embeddings"]


def test_differences_are_the_fields_that_the_weights_contradict():
    weights = weights_of(tiny_config("minimind3"))
    config = tiny_config("minimind3", num_key_value_heads=4, intermediate_size=50, num_hidden_layers=3)
    expected = {"num_hidden_layers": 2, "intermediate_size": 48, "num_key_value_heads": 2}
    assert differences(config, weights) == expected
    assert differences(tiny_config("minimind3"), weights) == {}


def test_a_missing_head_differs_only_from_an_untied_config():
    weights = weights_of(tiny_config())
    untied = tiny_config(tie_word_embeddings=False)
    assert differences(untied, weights) == {"tie_word_embeddings": True}
    assert differences(tiny_config(), weights) == {}
    assert differences(untied, tiny_model().state_dict()) == {}
