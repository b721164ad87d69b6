import os

import pytest
import torch
from model_builders import KINDS, tiny_config, tiny_model, token_ids
from safetensors import safe_open
from safetensors.torch import save_file

from minimind_edu import checkpoints
from minimind_edu.checkpoints import from_checkpoint, load_weights, save_checkpoint
from minimind_edu.config import RopeScaling
from minimind_edu.model import MiniMindForCausalLM


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


class RunsCode:
    """What a pickle of another's could hold: an object that runs a command when it is loaded."""

    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.mkdir, (self.witness,)


def test_a_pth_file_runs_no_code(tmp_path):
    witness, path = str(tmp_path / "ran"), tmp_path / "model.pth"
    torch.save({"model.norm.weight": RunsCode(witness)}, path)
    with pytest.raises(Exception, match="Weights only load failed"):
        from_checkpoint(path, tiny_config())
    assert not os.path.exists(witness)
    torch.load(path, weights_only=False)
    assert os.path.exists(witness), "it would have run, had it been allowed to"


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


# Bad input


def weights_and(changes, kind="minimind2", **sizes):
    weights = tiny_model(kind, dtype=torch.float32, **sizes).state_dict()
    return {name: value for name, value in (weights | changes).items() if value is not None}


BAD_WEIGHTS = {
    "a key is missing": (
        weights_and({"model.norm.weight": None}),
        "do not fit the config. missing: model.norm.weight. Compare hidden_size",
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
        "unexpected: model.layers.0.self_attn.k_norm.weight, .* Compare .*use_qk_norm",
    ),
    "a mixture": (
        weights_and({}, "minimind2_moe"),
        "missing: model.layers.0.mlp.down_proj.weight, .* unexpected: .* and [0-9]+ more. Compare .* use_moe",
    ),
    "another vocabulary": (
        weights_and({}, vocab_size=50),
        r"wrong shape: lm_head.weight \[50, 32\] instead of \[61, 32\]",
    ),
    "an untied head": (
        weights_and({"lm_head.weight": torch.ones(61, 32)}),
        "lm_head.weight differs from model.embed_tokens.weight, so these weights are not tied; "
        "use a config with tie_word_embeddings=False",
    ),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_rejects_weights_that_do_not_fit_and_leaves_the_model_alone(case):
    weights, message = BAD_WEIGHTS[case]
    model = tiny_model(seed=5)
    with pytest.raises(ValueError, match=message):
        load_weights(model, weights)
    assert same_weights(model, tiny_model(seed=5))


def test_names_what_a_file_without_a_config_needs(tmp_path):
    path = tmp_path / "full_sft_512.pth"
    torch.save(tiny_model().state_dict(), path)
    with pytest.raises(
        ValueError, match="full_sft_512.pth holds no config; give one, .*from_upstream"
    ):
        from_checkpoint(path)


@pytest.mark.parametrize("metadata", [{"config": '{"hidden_size": 32}'}, {"config": "not json"}])
def test_names_a_config_that_is_not_ours(metadata, tmp_path):
    path = tmp_path / "model.safetensors"
    model = tiny_model(tie_word_embeddings=False)
    save_file(model.state_dict(), path, metadata=metadata)
    with pytest.raises(ValueError, match="config"):
        from_checkpoint(path)
    assert same_weights(from_checkpoint(path, model.config), model)


def test_rejects_file_names_it_cannot_read_or_write(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .safetensors, got 'model.pth'"):
        save_checkpoint(MiniMindForCausalLM(tiny_config()), tmp_path / "model.pth")
    with pytest.raises(
        ValueError, match=r"read from .safetensors, .pth, .pt or .bin, got 'm.gguf'"
    ):
        from_checkpoint(tmp_path / "m.gguf", tiny_config())


@pytest.mark.parametrize("name", ["gone.safetensors", "gone.pth"])
def test_says_that_a_file_is_missing(name, tmp_path):
    with pytest.raises(FileNotFoundError):
        from_checkpoint(tmp_path / name, tiny_config())
