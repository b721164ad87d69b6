import pytest
import torch
from model_builders import tensor, tiny_model

from minimind_edu.weights.state_dicts import canonical


def weights(kind="minimind2", **changes):
    return tiny_model(kind, dtype=torch.float32, **changes).state_dict()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_our_own_names_stay_and_no_tensor_is_copied():
    given = weights()
    ours = canonical(given)
    assert same(ours, given)
    assert all(ours[name].data_ptr() == given[name].data_ptr() for name in given)


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "module._orig_mod.", "module.module.", "_orig_mod.module."]
)
def test_prefixes_of_training_are_taken_off(prefix):
    given = weights()
    assert same(canonical({prefix + name: value for name, value in given.items()}), given)


def test_a_compiled_part_is_found_too():
    given = weights()
    renamed = {name.replace("layers.0.", "layers.0._orig_mod."): value for name, value in given.items()}
    assert same(canonical(renamed), given)


@pytest.mark.parametrize("wrapper", ["model", "state_dict", "model_state_dict", "module"])
def test_weights_are_taken_out_of_a_training_checkpoint(wrapper):
    given = weights()
    checkpoint = {wrapper: given, "optimizer": {"state": {0: torch.ones(2)}}, "epoch": 1, "loss": torch.ones(())}
    assert same(canonical(checkpoint), given)


def test_the_core_without_its_output_matrix_is_found():
    core = tiny_model(dtype=torch.float32).model.state_dict()
    given = weights()
    del given["lm_head.weight"]
    assert same(canonical(core), given)


def test_tables_are_left_out():
    extra = {
        "model.freqs_cos": torch.ones(3),
        "model.freqs_sin": torch.ones(3),
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3),
    }
    assert same(canonical(weights() | extra), weights())


def test_fused_experts_become_single_ones():
    """E = 3, F = 2, N = 2: the first F rows of an expert are its gate, the others its up."""
    gate_up, down = tensor(2, 4, 3), tensor(2, 3, 2, seed=1)
    prefix = "model.layers.7.mlp.experts."
    found = canonical({f"{prefix}gate_up_proj": gate_up, f"{prefix}down_proj": down})
    expected = {
        f"{prefix}{index}.{name}.weight": value
        for index in range(2)
        for name, value in {
            "gate_proj": gate_up[index, :2],
            "up_proj": gate_up[index, 2:],
            "down_proj": down[index],
        }.items()
    }
    assert same(found, expected)


BAD = {
    "LoRA of upstream": (
        {"model.layers.0.self_attn.q_proj.lora.A.weight": torch.ones(2, 2)},
        "only the low-rank corrections of a LoRA .*convert_merge_base_lora",
    ),
    "LoRA of PEFT": (
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(2, 2)},
        "only the low-rank corrections of a LoRA .*merge_and_unload",
    ),
    "LoRA not merged": (
        weights() | {"model.layers.0.self_attn.q_proj.lora.A.weight": torch.ones(2, 2)},
        "a model with a LoRA that is not merged into it",
    ),
    "the first MiniMind": (
        {"tok_embeddings.weight": torch.ones(2, 2), "layers.0.attention.wq.weight": torch.ones(2, 2)},
        "weights of the first MiniMind",
    ),
    "quantized": ({"model.norm.weight": torch.ones(2, dtype=torch.int8)}, "torch.int8: quantized"),
    "float8": ({"model.norm.weight": torch.ones(2).to(torch.float8_e4m3fn)}, "torch.float8_e4m3fn: quantized"),
    "nothing": ({}, "no tensors under names; it holds nothing"),
    "no tensors": ({"epoch": 3, "loss": 0.1}, "no tensors under names; it holds epoch, loss"),
}


@pytest.mark.parametrize("case", BAD)
def test_other_kinds_of_weights_are_named(case):
    content, message = BAD[case]
    with pytest.raises(ValueError, match=f"^f.pth holds {message}"):
        canonical(content, "f.pth")
