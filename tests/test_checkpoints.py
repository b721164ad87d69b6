import dataclasses
import json

import pytest
import torch
from model_builders import KINDS, tiny_config, tiny_model, token_ids
from safetensors import safe_open
from safetensors.torch import save_file

from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.weights import checkpoints
from minimind_edu.weights.checkpoints import from_checkpoint, load_weights, save_checkpoint


def stored_names(path):
    with safe_open(path, framework="pt") as file:
        return set(file.keys())


def same_weights(one, other):
    states = one.state_dict(), other.state_dict()
    return states[0].keys() == states[1].keys() and all(
        value.dtype == states[1][name].dtype and torch.equal(value, states[1][name])
        for name, value in states[0].items()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_saved_model_comes_back_bit_by_bit(kind, tied, dtype, tmp_path):
    model = tiny_model(kind, dtype=dtype, tie_word_embeddings=tied)
    read = from_checkpoint(save_checkpoint(model, tmp_path / "model.safetensors"))
    assert read.config == model.config
    assert same_weights(read, model)
    assert torch.equal(read(token_ids(2, 5)).logits, model(token_ids(2, 5)).logits)


def test_the_config_comes_back_with_its_rope_scaling(tmp_path):
    scaling = RopeScaling(4.0, 16, attention_factor=1.0)
    model = tiny_model(rope_scaling=scaling, dtype=torch.float32)
    read = from_checkpoint(save_checkpoint(model, str(tmp_path / "model.safetensors")))
    assert read.config.rope_scaling == scaling
    assert torch.equal(read.model.freqs_cos, model.model.freqs_cos)


def test_a_tied_matrix_is_written_once_and_read_back_tied(tmp_path):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    assert "model.embed_tokens.weight" in stored_names(path)
    assert "lm_head.weight" not in stored_names(path)
    read = from_checkpoint(path)
    assert read.lm_head.weight is read.model.embed_tokens.weight


def test_an_untied_model_keeps_both_matrices(tmp_path):
    path = save_checkpoint(tiny_model(tie_word_embeddings=False), tmp_path / "model.safetensors")
    assert {"lm_head.weight", "model.embed_tokens.weight"} <= stored_names(path)
    read = from_checkpoint(path)
    assert not torch.equal(read.lm_head.weight, read.model.embed_tokens.weight)


def test_a_model_that_was_read_is_in_eval_mode(tmp_path):
    model = tiny_model(dropout=0.5).train()
    assert not from_checkpoint(save_checkpoint(model, tmp_path / "model.safetensors")).training


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".bin"])
def test_upstreams_pth_is_read_with_a_config(suffix, tmp_path):
    model = tiny_model("minimind3", dtype=torch.float16)
    path = tmp_path / f"full_sft_512{suffix}"
    torch.save(model.state_dict(), path)
    assert same_weights(from_checkpoint(path, model.config), model)


def test_tables_in_a_file_are_ignored(tmp_path):
    """Weights of the seed era could hold the RoPE tables."""
    model = tiny_model(dtype=torch.float32)
    tables = {"model.freqs_cos": torch.zeros(3, 8), "model.freqs_sin": torch.zeros(3, 8)}
    path = tmp_path / "model.pth"
    torch.save(model.state_dict() | tables, path)
    read = from_checkpoint(path, model.config)
    assert torch.equal(read.model.freqs_cos, model.model.freqs_cos)


def test_safetensors_of_others_are_read_with_a_config(tmp_path):
    model = tiny_model(dtype=torch.bfloat16)
    path = tmp_path / "model.safetensors"
    save_file({name: value.clone() for name, value in model.state_dict().items()}, path)
    assert same_weights(from_checkpoint(path, model.config), model)


def test_a_given_config_goes_before_the_stored_one(tmp_path):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    assert from_checkpoint(path, tiny_config(rope_theta=1e4)).config.rope_theta == 1e4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_model_takes_on_the_dtype_of_weights_that_are_copied_into_it(dtype):
    model = MiniMindForCausalLM(tiny_config())
    load_weights(model, tiny_model(dtype=dtype).state_dict())
    assert same_weights(model, tiny_model(dtype=dtype))


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    old = tiny_model(seed=1)
    path = save_checkpoint(old, tmp_path / "model.safetensors")
    before = path.read_bytes()

    def fail_halfway(tensors, target, **options):
        target.write_bytes(before[: len(before) // 2])
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoints, "save_file", fail_halfway)
    with pytest.raises(OSError, match="no space left"):
        save_checkpoint(tiny_model(seed=2), path)
    assert path.read_bytes() == before
    assert same_weights(from_checkpoint(path), old)


def test_saving_again_replaces_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    for seed in (1, 2):
        save_checkpoint(tiny_model(seed=seed), path)
    assert same_weights(from_checkpoint(path), tiny_model(seed=2))
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.safetensors"]


# Without a config


EIGHT_HEADS = {"num_attention_heads": 8, "head_dim": 4, "max_position_embeddings": 32768}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_bare_state_dict_is_enough(kind, dtype, suffix, tmp_path):
    """The tiny models differ from the presets in sizes only, and all of those show."""
    model = tiny_model(kind, dtype=dtype, **EIGHT_HEADS)
    path = tmp_path / f"full_sft_32{suffix}"
    if suffix == ".pth":
        torch.save(model.state_dict(), path)
    else:
        save_file({name: value.clone() for name, value in model.state_dict().items()}, path)
    read = from_checkpoint(path, intermediate_size=48)
    assert read.config == model.config
    assert same_weights(read, model)
    assert torch.equal(read(token_ids(2, 5)).logits, model(token_ids(2, 5)).logits)


def test_what_you_know_goes_before_what_the_file_says(tmp_path):
    model = tiny_model(rope_theta=1e4, dtype=torch.float32)
    path = save_checkpoint(model, tmp_path / "model.safetensors")
    assert from_checkpoint(path, rope_theta=1e5).config == dataclasses.replace(model.config, rope_theta=1e5)
    torch.save(model.state_dict(), tmp_path / "model.pth")
    read = from_checkpoint(tmp_path / "model.pth", num_attention_heads=4, rope_theta=1e4, max_position_embeddings=64)
    assert read.config == model.config
    assert torch.equal(read(token_ids(2, 5)).logits, model(token_ids(2, 5)).logits)


def test_a_training_checkpoint_of_several_processes_is_read(tmp_path):
    model = tiny_model(dtype=torch.float16, **EIGHT_HEADS)
    weights = {f"module._orig_mod.{name}": value for name, value in model.state_dict().items()}
    checkpoint = {"model": weights, "optimizer": {"state": {}, "param_groups": [{"lr": 1e-3}]}, "step": 7}
    torch.save(checkpoint, tmp_path / "full_sft_32_resume.pth")
    assert same_weights(from_checkpoint(tmp_path / "full_sft_32_resume.pth"), model)


def upstream_folder(folder, model, **described):
    """What upstream's own save_pretrained(safe_serialization=False) leaves behind."""
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size")
    config = {name: getattr(model.config, name) for name in names} | {"model_type": "minimind", **described}
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def test_a_folder_of_upstream_is_read(tmp_path):
    model = tiny_model("minimind2_moe", dtype=torch.float16, num_experts_per_tok=3, router_aux_loss_coef=0.2)
    described = {"num_experts_per_tok": 3, "n_routed_experts": 4, "aux_loss_alpha": 0.2, "flash_attn": True,
                 "max_position_embeddings": 64, "intermediate_size": 48, "use_moe": True}  # fmt: skip
    read = from_checkpoint(upstream_folder(tmp_path, model, **described))
    assert read.config == model.config
    assert same_weights(read, model)


def test_a_folder_of_upstream_with_yarn_turns_as_upstream_does(tmp_path):
    model = tiny_model("minimind3", rope_scaling=RopeScaling(4, 16, attention_factor=1.0), dtype=torch.float32)
    scaling = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "attention_factor": 1.0}
    folder = upstream_folder(
        tmp_path, model, inference_rope_scaling=True, rope_scaling=scaling, max_position_embeddings=64
    )
    assert torch.equal(from_checkpoint(folder).model.freqs_cos, model.model.freqs_cos)


CONTRADICTIONS = {
    "key/value heads": (
        {"num_key_value_heads": 4},
        r"wrong shape: model.layers.0.self_attn.k_proj.weight \[16, 32\] instead of \[32, 32\], .*"
        "num_key_value_heads=4; the weights show num_key_value_heads=2$",
    ),
    "layers": (
        {"num_hidden_layers": 3},
        "missing: model.layers.2.input_layernorm.weight, .* and 3 more. "
        "The config says num_hidden_layers=3; the weights show num_hidden_layers=2$",
    ),
    "fewer layers": (
        {"num_hidden_layers": 1},
        "unexpected: model.layers.1.input_layernorm.weight, .* and 3 more. "
        "The config says num_hidden_layers=1; the weights show num_hidden_layers=2$",
    ),
    "a mixture": ({"use_moe": True}, "The config says use_moe=True; the weights show use_moe=False$"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_config_json_that_contradicts_the_weights_is_not_believed_in_silence(case, tmp_path):
    described, message = CONTRADICTIONS[case]
    folder = upstream_folder(tmp_path, tiny_model(), **described)
    with pytest.raises(ValueError, match=f"does not fit its config.json. .*{message}"):
        from_checkpoint(folder)
    true = {name: getattr(tiny_config(), name) for name in described}
    assert same_weights(from_checkpoint(folder, **true), tiny_model())
    assert same_weights(from_checkpoint(folder, tiny_config()), tiny_model())


def test_a_part_of_the_weights_says_what_it_lacks(tmp_path):
    part = tiny_model(**EIGHT_HEADS).state_dict()
    del part["model.norm.weight"], part["model.layers.1.input_layernorm.weight"]
    torch.save(part, tmp_path / "part.pth")
    with pytest.raises(
        ValueError,
        match="part.pth does not fit the config inferred from its shapes. "
        "missing: model.layers.1.input_layernorm.weight, model.norm.weight$",
    ):
        from_checkpoint(tmp_path / "part.pth")


def test_weights_of_another_model_are_named_with_their_file(tmp_path):
    torch.save({"transformer.wte.weight": torch.ones(5, 4)}, tmp_path / "gpt2.pth")
    with pytest.raises(ValueError, match="gpt2.pth: these are not the weights of a MiniMind"):
        from_checkpoint(tmp_path / "gpt2.pth")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"num_hidden_layers": "8"}, "num_hidden_layers must be a whole number"), ({"rope_theta": "1e6"}, "str")],
)
def test_a_config_json_of_words_is_named(wrong, message, tmp_path):
    with pytest.raises(ValueError, match=f"^{tmp_path}: .*{message}"):
        from_checkpoint(upstream_folder(tmp_path, tiny_model(), **wrong))


def test_mixed_precision_loses_nothing(tmp_path):
    state = tiny_model(dtype=torch.float16, **EIGHT_HEADS).state_dict()
    state["model.norm.weight"] = state["model.norm.weight"].float() * 1.0001
    torch.save(state, tmp_path / "mixed.pth")
    read = from_checkpoint(tmp_path / "mixed.pth")
    assert {value.dtype for value in read.state_dict().values()} == {torch.float32}
    assert torch.equal(read.model.norm.weight, state["model.norm.weight"])


# What reading leaves alone


def test_a_read_model_can_be_trained_and_saved_over_its_own_file(tmp_path):
    """Its weights are its own: neither a mapping of the file nor shared with anything."""
    path = save_checkpoint(tiny_model(dtype=torch.float32), tmp_path / "model.safetensors")
    model = from_checkpoint(path)
    assert all(value.requires_grad and value.is_leaf for value in model.parameters())
    before = model.model.norm.weight.clone()
    path.write_bytes(bytes(path.stat().st_size))
    assert torch.equal(model.model.norm.weight, before)
    ids = token_ids(1, 5)
    model.train()(ids, labels=ids).loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= parameter.grad
    save_checkpoint(model, path)
    assert same_weights(from_checkpoint(path), model)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_reading_draws_no_random_numbers(tmp_path):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    state = torch.get_rng_state()
    from_checkpoint(path)
    assert torch.equal(torch.get_rng_state(), state)


def test_long_reading_shows_its_progress(tmp_path, monkeypatch, capsys):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    from_checkpoint(path)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(checkpoints, "_LONG", 1)
    from_checkpoint(path)
    assert "reading weights: 100%" in capsys.readouterr().err


# Bad input


def weights_and(changes, kind="minimind2", **sizes):
    weights = tiny_model(kind, dtype=torch.float32, **sizes).state_dict()
    return {name: value for name, value in (weights | changes).items() if value is not None}


BAD_WEIGHTS = {
    "a key is missing": (
        weights_and({"model.norm.weight": None}),
        "the state dict does not fit the model's config. missing: model.norm.weight$",
    ),
    "a key is foreign": (
        weights_and({"transformer.h.0.attn.c_attn.weight": torch.zeros(2)}),
        "unexpected: transformer.h.0.attn.c_attn.weight",
    ),
    "a shape is wrong": (
        weights_and({"model.layers.1.self_attn.k_proj.weight": torch.zeros(32, 32)}),
        r"wrong shape: model.layers.1.self_attn.k_proj.weight \[32, 32\] instead of \[16, 32\]",
    ),
    "another generation": (
        weights_and({}, "minimind3"),
        "unexpected: model.layers.0.self_attn.k_norm.weight, .*"
        "The config says use_qk_norm=False; the weights show use_qk_norm=True$",
    ),
    "a mixture": (
        weights_and({}, "minimind2_moe"),
        "missing: model.layers.0.mlp.down_proj.weight, .* unexpected: .* and [0-9]+ more. "
        "The config says use_moe=False; the weights show use_moe=True$",
    ),
    "another vocabulary": (
        weights_and({}, vocab_size=50),
        r"wrong shape: lm_head.weight \[50, 32\] instead of \[61, 32\], .*"
        "vocab_size=61; the weights show vocab_size=50$",
    ),
    "an untied head": (
        weights_and({"lm_head.weight": torch.ones(61, 32)}),
        "lm_head.weight differs from model.embed_tokens.weight in the state dict, so these weights are not tied, "
        "but the model's config has tie_word_embeddings=True; use tie_word_embeddings=False",
    ),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_rejects_weights_that_do_not_fit_and_leaves_the_model_alone(case):
    weights, message = BAD_WEIGHTS[case]
    model = tiny_model(seed=5)
    with pytest.raises(ValueError, match=message):
        load_weights(model, weights)
    assert same_weights(model, tiny_model(seed=5))


@pytest.mark.parametrize("metadata", [{"config": '{"hidden_size": 32}'}, {"config": "not json"}])
def test_names_a_config_that_is_not_ours(metadata, tmp_path):
    path = tmp_path / "model.safetensors"
    model = tiny_model(tie_word_embeddings=False)
    save_file(model.state_dict(), path, metadata=metadata)
    with pytest.raises(ValueError, match="config"):
        from_checkpoint(path)
    assert same_weights(from_checkpoint(path, model.config), model)


def test_rejects_file_names_it_cannot_write(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .safetensors, got 'model.pth'"):
        save_checkpoint(MiniMindForCausalLM(tiny_config()), tmp_path / "model.pth")


@pytest.mark.parametrize("name", ["gone.safetensors", "gone.pth", "gone", "no/such/folder"])
def test_says_that_a_file_is_missing(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"there is no file or folder .*{name}"):
        from_checkpoint(tmp_path / name, tiny_config())


def test_a_misspelt_field_is_named(tmp_path):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    with pytest.raises(TypeError, match="MiniMindConfig has no field rope_tetha"):
        from_checkpoint(path, rope_tetha=1e4)
    with pytest.raises(ValueError, match=r"either a whole config or single fields \(rope_theta\), not both"):
        from_checkpoint(path, tiny_config(), rope_theta=1e4)
