"""State dicts from many hands get our names, and what is no plain weight is refused by name."""

import re

import pytest
import torch
from model_builders import tensor, tiny_model

from minimind_edu.weights.state_dicts import canonical

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def weights(kind="minimind2", **changes):
    return tiny_model(kind, dtype=torch.float32, **changes).state_dict()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_our_own_names_stay_and_no_tensor_is_copied():
    given = weights()
    ours = canonical(given, "f.pth")
    assert same(ours, given)
    assert all(ours[name].data_ptr() == given[name].data_ptr() for name in given)


@pytest.mark.parametrize(
    "prefix",
    [
        "module.",
        "_orig_mod.",
        "module._orig_mod.",
        "module.module.",
        "_orig_mod.module.",
        "_fsdp_wrapped_module.",
        "model.",
        "model.module.",
        "model._orig_mod.",
        "_forward_module.model.",
        "actor.",
    ],
)
def test_prefixes_of_training_are_taken_off(prefix):
    given = weights()
    assert same(canonical({prefix + name: value for name, value in given.items()}, "f.pth"), given)


@pytest.mark.parametrize("inner", ["_orig_mod.", "_fsdp_wrapped_module._checkpoint_wrapped_module.", "module."])
def test_a_wrapped_part_is_found_too(inner):
    given = weights()
    renamed = {name.replace("layers.0.", f"layers.0.{inner}"): value for name, value in given.items()}
    assert same(canonical(renamed, "f.pth"), given)


@pytest.mark.parametrize("wrapper", ["model", "state_dict", "model_state_dict", "module", "ema", "net"])
def test_weights_are_taken_out_of_a_training_checkpoint(wrapper):
    given = weights()
    checkpoint = {wrapper: given, "optimizer": {"state": {0: torch.ones(2)}}, "epoch": 1, "loss": torch.ones(())}
    assert same(canonical(checkpoint, "f.pth"), given)


def test_a_wrapper_in_a_wrapper_is_opened_and_the_state_of_an_optimizer_is_not():
    given = weights()
    lightning = {
        "state_dict": {f"model.{name}": value for name, value in given.items()},
        "pytorch-lightning_version": "2",
    }
    assert same(canonical(lightning, "f.ckpt"), given)
    averages = {name: value + 1 for name, value in given.items()}
    checkpoint = {"app": {"model": given, "optimizer": {"exp_avg": averages}}, "optim_states": averages}
    assert same(canonical(checkpoint, "f.pth"), given)
    averaged = {f"module.{name}": value for name, value in given.items()} | {"n_averaged": torch.tensor(7)}
    assert same(canonical(averaged, "f.pth"), given)


def many(depth=40):
    """A dictionary that holds itself by two names, again and again: a small file that would take for ever."""
    inner = {"a": torch.ones(2)}
    for _ in range(depth):
        inner = {str(i): inner for i in range(100)}
    return inner


TWO = {
    "a model and its average": ({"model": weights(), "ema": weights()}, "model.*, ema.*"),
    "beside its wrapper": (weights() | {"ema": weights()}, "*, ema.*"),
    "of one state dict": (
        {f"{who}.{name}": value for who in ("student", "teacher") for name, value in weights().items()},
        "student.*, teacher.*",
    ),
    "deeper": ({"a": {"b": weights(), "c": weights()}}, "a.b.*, a.c.*"),
}


@pytest.mark.parametrize("case", TWO)
def test_of_two_models_none_is_chosen(case):
    content, places = TWO[case]
    with pytest.raises(ValueError, match=re.escape(f"f.pth holds 2 models ({places}); which one is meant, you know")):
        canonical(content, "f.pth")
    with pytest.raises(ValueError, match="f.pth holds no named tensors"):
        canonical(many(), "f.pth")


@pytest.mark.parametrize("left", [EMBEDDING, HEAD])
def test_of_tied_matrices_either_may_be_left_out(left):
    given = weights()
    kept = given[EMBEDDING]
    del given[left]
    found = canonical(given, "f.pth")
    assert torch.equal(found[EMBEDDING], kept) and HEAD not in found


def test_tables_are_left_out():
    names = ("model.freqs_cos", "model.freqs_sin", "model.layers.0.self_attn.rotary_emb.inv_freq")
    assert same(canonical(weights() | {name: torch.ones(3) for name in names}, "f.pth"), weights())


PREFIX = "model.layers.7.mlp.experts."


def test_fused_experts_become_single_ones():
    """E = 3, F = 2, N = 2: the first F rows of an expert are its gate, the others its up."""
    gate_up, down = tensor(2, 4, 3), tensor(2, 3, 2, seed=1)
    given = {f"{PREFIX}gate_up_proj": gate_up, f"{PREFIX}down_proj": down}
    found = canonical(weights() | given, "f.pth")
    parts = {"gate_proj": gate_up[:, :2], "up_proj": gate_up[:, 2:], "down_proj": down}
    expected = {f"{PREFIX}{i}.{name}.weight": value[i] for i in range(2) for name, value in parts.items()}
    assert same(found, weights() | expected)


def fused(gate_up, down):
    return {f"{PREFIX}gate_up_proj": torch.ones(gate_up)} | ({f"{PREFIX}down_proj": torch.ones(down)} if down else {})


def without(*names):
    return {name: value for name, value in weights().items() if name not in names}


def beside(name, **options):
    return weights() | {name: torch.ones(2, **options)}


NORM, QUERY = "model.norm.weight", "model.layers.0.self_attn.q_proj.weight"
BAD = {
    "LoRA of upstream": (
        {"model.layers.0.self_attn.q_proj.lora.A.weight": torch.ones(2, 2)},
        r"holds a LoRA that is not merged into its model \(model.layers.0.*convert_merge_base_lora",
    ),
    "LoRA of PEFT": (
        weights() | {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(2, 2)},
        "holds a LoRA that is not merged .*merge_and_unload",
    ),
    "quantized": ({NORM: torch.ones(2, dtype=torch.int8)}, f"holds {NORM} as torch.int8, so the weights are quantized"),
    "float8": ({NORM: torch.ones(2).to(torch.float8_e4m3fn)}, f"holds {NORM} as torch.float8_e4m3fn, so"),
    "sparse": ({NORM: torch.ones(2).to_sparse()}, rf"does not hold every number of {NORM} \[2\]: it is sparse"),
    "repeated": ({NORM: torch.ones(1).expand(10**9)}, rf"does not hold every number of {NORM} \[1000000000\]"),
    "empty": ({NORM: torch.ones(10**9, 0)}, f"does not hold every number of {NORM}"),
    "on no device": ({NORM: torch.ones(2, device="meta")}, f"does not hold every number of {NORM}"),
    "one name twice": (
        {NORM: torch.ones(2), f"module.{NORM}": torch.zeros(2)},
        f"holds two tensors for {NORM}, one of them as module.{NORM}",
    ),
    "fused experts without a third axis": (fused((4, 3), (2, 3, 2)), r"must be \[N, 2I, E\] .* got \[4, 3\] and"),
    "fused experts of two sizes": (fused((2, 4, 3), (2, 3, 1)), r"must be \[N, 2I, E\] .* and \[2, 3, 1\]"),
    "fused experts of two numbers": (fused((2, 4, 3), (3, 3, 2)), r"must be \[N, 2I, E\]"),
    "fused experts without down_proj": (fused((2, 4, 3), None), r"down_proj \[N, E, I\], got \[2, 4, 3\] and None"),
    "another model": ({NORM: torch.ones(2)}, rf"does not hold the weights of a MiniMind.*\(the first are {NORM}\)"),
    "GPTQ": (beside(QUERY.replace("weight", "qweight"), dtype=torch.int32), "holds quantized weights, of GPTQ, AWQ or"),
    "bitsandbytes": (beside(f"{QUERY}.absmax"), "holds quantized weights"),
    "a critic": (
        beside("value_head.weight"),
        r"holds a critic or a reward model \(value_head.weight\); its output",
    ),
    "a router of another family": (
        beside("model.layers.0.mlp.gate.e_score_correction_bias"),
        r"holds biases \(model.layers.0.mlp.gate.e_score_correction_bias\)",
    ),
    "a reward model": (beside("score.weight"), r"holds a critic or a reward model \(score.weight"),
    "a vision model": (beside("model.vision_proj.weight"), "holds a model that sees or hears .*vision_proj"),
    "biases": (beside(QUERY.replace("weight", "bias")), "holds biases .*q_proj.bias"),
    "a head by itself": ({"model": without(HEAD), "lm_head": {"weight": torch.ones(2)}}, "holds lm_head.weight apart"),
    "two for one": (
        {f"actor.{name}": value for name, value in weights().items()} | {NORM: torch.ones(2)},
        "holds several tensors for one, some under names that begin with 'actor.'",
    ),
    "a body alone": (
        {name.removeprefix("model."): value for name, value in without(HEAD).items()},
        "without its lm_head a model cannot write, so save the whole one",
    ),
    "ZeRO-3": ({NORM: torch.ones(0)}, f"does not hold every number of {NORM} .*zero_to_fp32.py"),
    "no embedding": (without(EMBEDDING, HEAD), f"there is no matrix {EMBEDDING} among its"),
    "no queries": (without(QUERY), f"there is no matrix {QUERY} among its"),
    "queries in a row": (weights() | {QUERY: torch.ones(2)}, f"there is no matrix {QUERY} among its"),
    "nothing": ({}, "holds no named tensors; it holds nothing"),
    "no tensors": ({"epoch": 3, "loss": 0.1}, "holds no named tensors; it holds epoch, loss"),
    "numbers for names": ({0: torch.ones(2), 1: torch.ones(2)}, "holds no named tensors; it holds 0, 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_plain_weight_is_refused(case):
    content, message = BAD[case]
    with pytest.raises(ValueError, match=f"^f.pth:? (.*){message}"):
        canonical(content, "f.pth")
