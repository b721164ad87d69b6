"""What was saved comes back bit by bit, what others saved is read, and what does not fit is refused with its file."""

import dataclasses
import json
import re

import pytest
import torch
from model_builders import KINDS, tiny_config, tiny_model, token_ids
from safetensors import safe_open
from safetensors.torch import save_file, save_model

from minimind_edu import fast
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.weights import checkpoints
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

# eight heads, as from_checkpoint assumes where nothing shows them, and the preset's number of positions
EIGHT_HEADS = {"num_attention_heads": 8, "head_dim": 4, "max_position_embeddings": 32768}


def same_weights(one, other):
    states = one.state_dict(), other.state_dict()
    return states[0].keys() == states[1].keys() and all(
        value.dtype == states[1][name].dtype and torch.equal(value, states[1][name])
        for name, value in states[0].items()
    )


def written(path, state):
    if path.suffix == ".safetensors":
        save_file({name: value.clone() for name, value in state.items()}, path)
    else:
        torch.save(state, path)
    return path


# Our own files


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_saved_model_comes_back_bit_by_bit(kind, tied, dtype, tmp_path):
    model = tiny_model(kind, dtype=dtype, tie_word_embeddings=tied)
    read = from_checkpoint(save_checkpoint(model, tmp_path / "model.safetensors"))
    assert read.config == model.config
    assert same_weights(read, model)
    assert (read.lm_head.weight is read.model.embed_tokens.weight) == tied
    assert torch.equal(read(token_ids(2, 5)).logits, model(token_ids(2, 5)).logits)


def test_the_config_comes_back_with_its_rope_scaling(tmp_path):
    scaling = RopeScaling(4.0, 16, attention_factor=1.0)
    model = tiny_model(rope_scaling=scaling, dtype=torch.float32)
    read = from_checkpoint(save_checkpoint(model, str(tmp_path / "model.safetensors")))
    assert read.config.rope_scaling == scaling
    assert torch.equal(read.model.freqs_cos, model.model.freqs_cos)


@pytest.mark.parametrize("tied", [True, False])
def test_a_tied_matrix_is_written_once(tied, tmp_path):
    path = save_checkpoint(tiny_model(tie_word_embeddings=tied), tmp_path / "model.safetensors")
    with safe_open(path, framework="pt") as file:
        assert "model.embed_tokens.weight" in file.keys()
        assert ("lm_head.weight" in file.keys()) is not tied
        assert file.metadata()["format"] == "pt", "transformers reads no file without it"


def test_a_model_that_was_read_is_in_eval_mode(tmp_path):
    model = tiny_model(dropout=0.5).train()
    assert not from_checkpoint(save_checkpoint(model, tmp_path / "model.safetensors")).training


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
    assert list(tmp_path.iterdir()) == [path]


def test_saving_again_replaces_the_file_and_nothing_beside_it(tmp_path):
    path, mine = tmp_path / "model.safetensors", tmp_path / "model.safetensors.partial"
    mine.write_text("a reader's own file")
    for seed in (1, 2):
        save_checkpoint(tiny_model(seed=seed), path)
    assert same_weights(from_checkpoint(path), tiny_model(seed=2))
    assert mine.read_text() == "a reader's own file"
    assert sorted(tmp_path.iterdir()) == [path, mine]


def test_a_link_stays_a_link_and_the_file_that_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "store").mkdir()
    link, target = tmp_path / "latest.safetensors", tmp_path / "store" / "v1.safetensors"
    link.symlink_to(target)
    for seed in (1, 2):  # the first time it leads to nothing yet
        assert save_checkpoint(tiny_model(seed=seed), link) == link
    assert link.is_symlink()
    assert same_weights(from_checkpoint(target), tiny_model(seed=2))
    assert list((tmp_path / "store").iterdir()) == [target]


def test_a_file_may_be_saved_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    save_checkpoint(tiny_model(), "~/model.safetensors")
    assert same_weights(from_checkpoint("~/model.safetensors"), tiny_model())


def test_rejects_paths_it_cannot_write(tmp_path):
    with pytest.raises(ValueError, match=r"must end in .safetensors, got 'model.pth'"):
        save_checkpoint(tiny_model(), tmp_path / "model.pth")
    with pytest.raises(ValueError, match=r"a path must be text or a pathlib.Path, got b'm.safetensors'"):
        save_checkpoint(tiny_model(), b"m.safetensors")
    with pytest.raises(FileNotFoundError, match=f"no folder {tmp_path}/gone to save m.safetensors in; make it first"):
        save_checkpoint(tiny_model(), tmp_path / "gone" / "m.safetensors")
    (tmp_path / "m.safetensors").mkdir()
    with pytest.raises(IsADirectoryError, match=r"m.safetensors is a folder, so no file can be saved there"):
        save_checkpoint(tiny_model(), tmp_path / "m.safetensors")
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.safetensors"]


def with_identity(model):
    model.model.layers[1].mlp = torch.nn.Identity()
    return model


def with_buffer(model):
    model.register_buffer("mine", torch.ones(3))
    return model


def with_another_head(model):
    model.lm_head.weight = torch.nn.Parameter(torch.ones(61, 32))
    return model


UNSAVABLE = {
    "a state dict": (lambda model: model.state_dict(), "only a MiniMindForCausalLM can be saved, got OrderedDict"),
    "a wrapper": (torch.nn.DataParallel, "can be saved, got DataParallel"),
    "a decoder": (lambda model: fast.decoder(model), r"got CompiledDecoder; a decoder holds it as .model"),
    "a rounded model": (
        lambda model: fast.rounded_decoder(model, "int8").model,
        r"differ: lm_head.weight is None instead of \[61, 32\]. A model whose matrices were rounded",
    ),
    "without a part": (
        with_identity,
        r"3 tensors differ: model.layers.1.mlp.down_proj.weight is None instead of \[32, 48\]",
    ),
    "with more": (with_buffer, r"1 tensors differ: mine is \[3\] instead of None"),
    "no longer tied": (with_another_head, "stores one matrix, but lm_head.weight of this model differs from model.emb"),
}


@pytest.mark.parametrize("case", UNSAVABLE)
@pytest.mark.parametrize("int8", [False, True])
def test_what_could_not_be_read_again_is_not_saved(case, int8, tmp_path):
    change, message = UNSAVABLE[case]
    with pytest.raises(ValueError, match=message):
        save_checkpoint(change(tiny_model(dtype=torch.float32)), tmp_path / "model.safetensors", int8=int8)
    assert not list(tmp_path.iterdir())


# Files of others


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".bin", ".safetensors"])
def test_files_of_others_are_read_with_a_config(suffix, tmp_path):
    model = tiny_model("minimind3", dtype=torch.float16)
    path = written(tmp_path / f"full_sft_512{suffix}", model.state_dict())
    assert same_weights(from_checkpoint(path, model.config), model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_bare_state_dict_is_enough(kind, dtype, suffix, tmp_path):
    """The tiny models differ from the presets in sizes only, and all of those show."""
    model = tiny_model(kind, dtype=dtype, **EIGHT_HEADS)
    read = from_checkpoint(written(tmp_path / f"full_sft_32{suffix}", model.state_dict()), intermediate_size=48)
    assert read.config == model.config
    assert same_weights(read, model)
    assert torch.equal(read(token_ids(2, 5)).logits, model(token_ids(2, 5)).logits)


def test_tables_in_a_file_are_ignored(tmp_path):
    """Weights of the seed era could hold the RoPE tables."""
    model = tiny_model(dtype=torch.float32)
    tables = {"model.freqs_cos": torch.zeros(3, 8), "model.freqs_sin": torch.zeros(3, 8)}
    read = from_checkpoint(written(tmp_path / "model.pth", model.state_dict() | tables), model.config)
    assert torch.equal(read.model.freqs_cos, model.model.freqs_cos)


def test_what_you_know_goes_before_what_the_file_says(tmp_path):
    model = tiny_model(rope_theta=1e4, dtype=torch.float32)
    path = save_checkpoint(model, tmp_path / "model.safetensors")
    assert from_checkpoint(path, tiny_config(rope_theta=2e4)).config.rope_theta == 2e4
    assert from_checkpoint(path, rope_theta=1e5).config == dataclasses.replace(model.config, rope_theta=1e5)
    path = written(tmp_path / "model.pth", model.state_dict())
    read = from_checkpoint(path, num_attention_heads=4, rope_theta=1e4, max_position_embeddings=64)
    assert read.config == model.config
    assert torch.equal(read(token_ids(2, 5)).logits, model(token_ids(2, 5)).logits)


def test_a_training_checkpoint_of_several_processes_is_read(tmp_path):
    model = tiny_model(dtype=torch.float16, **EIGHT_HEADS)
    weights = {f"module._orig_mod.{name}": value for name, value in model.state_dict().items()}
    checkpoint = {"model": weights, "optimizer": {"state": {}, "param_groups": [{"lr": 1e-3}]}, "step": 7}
    assert same_weights(from_checkpoint(written(tmp_path / "full_sft_32_resume.pth", checkpoint)), model)


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


def test_a_folder_of_upstream_with_yarn_rotates_as_upstream_does(tmp_path):
    """Its constructor makes the dictionary from the switch alone, so one that was edited does nothing there."""
    positions = {"max_position_embeddings": 3000}
    model = tiny_model("minimind3", rope_scaling=RopeScaling(attention_factor=1.0), dtype=torch.float32, **positions)
    scaling = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "attention_factor": 1.0}
    folder = upstream_folder(tmp_path, model, inference_rope_scaling=True, rope_scaling=scaling, **positions)
    assert torch.equal(from_checkpoint(folder).model.freqs_cos, model.model.freqs_cos)
    folder = upstream_folder(tmp_path, model, inference_rope_scaling=False, rope_scaling=scaling, **positions)
    plain = tiny_model("minimind3", dtype=torch.float32, **positions)
    assert torch.equal(from_checkpoint(folder).model.freqs_cos, plain.model.freqs_cos)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_keeps_one_of_tied_matrices_is_read(kind, tmp_path):
    """safetensors.torch.save_model leaves out the embedding, save_checkpoint the head."""
    model = tiny_model(kind, dtype=torch.float32, **EIGHT_HEADS)
    save_model(model, tmp_path / "m.safetensors")
    with safe_open(tmp_path / "m.safetensors", framework="pt") as file:
        assert "model.embed_tokens.weight" not in file.keys()
    read = from_checkpoint(tmp_path / "m.safetensors", intermediate_size=48)
    assert read.config == model.config and same_weights(read, model)
    with pytest.raises(ValueError, match="missing: lm_head.weight. The config says tie_word_embeddings=False"):
        from_checkpoint(tmp_path / "m.safetensors", tie_word_embeddings=False)


# A config.json beside a file, and what nothing says


def beside(folder, name="pretrain_32.pth", **described):
    """A model of other heads and another base than is assumed, and a config.json in its folder."""
    model = tiny_model("minimind2", dtype=torch.float32, rope_theta=1e4)
    torch.save(model.state_dict(), folder / name)
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "vocab_size",
             "rope_theta", "intermediate_size", "max_position_embeddings")  # fmt: skip
    config = {field: getattr(model.config, field) for field in names} | described
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return folder / name, model


def test_a_config_json_beside_a_file_is_used_where_it_fits(tmp_path, caplog):
    path, model = beside(tmp_path)
    for place in (path, tmp_path):
        read = from_checkpoint(place)
        assert read.config == model.config and same_weights(read, model)
    assert from_checkpoint(path, rope_theta=2e4).config == dataclasses.replace(model.config, rope_theta=2e4)
    assert caplog.messages == []


ASIDE = {
    "of another width": ({"hidden_size": 64}, r"\(it says .*'hidden_size': 64"),
    "of another depth, and of another kind": (
        {"num_hidden_layers": 3, "model_type": "bert"},
        r"\(it says .*'num_hidden_layers': 3",
    ),
    "of other heads": ({"num_key_value_heads": 4}, "The config says num_key_value_heads=4; the weights show"),
    "of a mixture": ({"use_moe": True}, "The config says use_moe=True; the weights show use_moe=False"),
    "of nothing": (
        dict.fromkeys(("hidden_size", "num_hidden_layers", "vocab_size")),
        r"\(it says {}\)",
    ),
}


@pytest.mark.parametrize("case", ASIDE)
def test_a_config_json_of_another_model_is_left_aside_and_told(case, tmp_path, caplog):
    described, reason = ASIDE[case]
    path, _ = beside(tmp_path, **described)
    assert from_checkpoint(path).config.num_attention_heads == 8
    [told] = caplog.messages
    start = f"^{path}: config.json in the same folder is left aside, because it tells of another model"
    assert re.search(f"{start}.*{reason}.*: taken for num_attention_heads=8, rope_theta=1000000.0", told)


def test_a_config_json_of_these_sizes_is_obeyed_or_refused(tmp_path):
    path, _ = beside(tmp_path, hidden_act="gelu")
    with pytest.raises(ValueError, match="config.json seems to tell of the weights beside it: .*hidden_act"):
        from_checkpoint(path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json seems to tell of the weights beside it: .*no valid JSON"):
        from_checkpoint(path)


def test_a_file_of_our_own_needs_no_config_json(tmp_path, caplog):
    (tmp_path / "config.json").write_text("{")
    save_checkpoint(tiny_model(), tmp_path / "mine.safetensors")
    assert from_checkpoint(tmp_path / "mine.safetensors").config == tiny_config()
    assert caplog.messages == []


@pytest.mark.parametrize("kind", KINDS)
def test_one_line_says_what_was_assumed(kind, tmp_path, caplog):
    model = tiny_model(kind, **EIGHT_HEADS)
    torch.save(model.state_dict(), tmp_path / "m.pth")
    config = from_checkpoint(tmp_path / "m.pth").config
    [told] = caplog.messages
    assert told.startswith(f"{tmp_path / 'm.pth'}: no config.json tells of these weights: taken for ")
    names = {"rope_theta", "rope_scaling", "rms_norm_eps", "max_position_embeddings"}
    names |= set() if config.use_qk_norm else {"num_attention_heads"}
    names |= {"num_experts_per_tok", "norm_topk_prob"} if config.use_moe else set()
    assert {pair.split("=")[0] for pair in re.findall(r"\w+=[^,]+", told)} == names
    assert all(f"{name}={getattr(config, name)}" in told for name in names)
    caplog.clear()
    from_checkpoint(tmp_path / "m.pth", rope_theta=1e4)
    assert "rope_theta" not in caplog.text and "rope_scaling" in caplog.text
    caplog.clear()
    from_checkpoint(tmp_path / "m.pth", **{name: getattr(config, name) for name in names})
    from_checkpoint(tmp_path / "m.pth", config)
    assert caplog.messages == []


@pytest.mark.parametrize("left", ["model.embed_tokens.weight", "lm_head.weight"])
def test_half_a_pair_is_taken_for_tied_and_that_is_told(left, tmp_path, caplog):
    """Nothing tells half of an untied pair from a tied one, unless it is safetensors.torch.save_model."""
    model = tiny_model("minimind3", dtype=torch.float32)
    torch.save({name: value for name, value in model.state_dict().items() if name != left}, tmp_path / "m.pth")
    assert same_weights(from_checkpoint(tmp_path / "m.pth"), model)
    assert "tie_word_embeddings=True" in caplog.text
    caplog.clear()
    save_model(model, tmp_path / "m.safetensors")
    assert same_weights(from_checkpoint(tmp_path / "m.safetensors"), model)
    assert "tie_word_embeddings" not in caplog.text


def test_many_differences_are_one_sentence(tmp_path):
    state = tiny_model(dtype=torch.float32).state_dict() | {f"model.extra.{i}": torch.ones(2) for i in range(9)}
    torch.save(state, tmp_path / "m.pth")
    message = r"m.pth does not fit .*: 9 tensors differ: model.extra.0 is \[2\] instead of None, [^,]*, [^,]*$"
    with pytest.raises(ValueError, match=message):
        from_checkpoint(tmp_path / "m.pth")


@pytest.mark.parametrize("positions", [10**399, 10**18])
def test_positions_beyond_all_floats_are_named(positions, tmp_path):
    torch.save(tiny_model().state_dict(), tmp_path / "m.pth")
    with pytest.raises(ValueError, match="max_position_embeddings=.* makes RoPE tables .*name the number of positions"):
        from_checkpoint(tmp_path / "m.pth", max_position_embeddings=positions)


def test_mixed_precision_loses_nothing(tmp_path):
    state = tiny_model(dtype=torch.float16, **EIGHT_HEADS).state_dict()
    state["model.norm.weight"] = state["model.norm.weight"].double() + 1e-12
    read = from_checkpoint(written(tmp_path / "mixed.pth", state))
    assert {value.dtype for value in read.state_dict().values()} == {torch.float64}
    assert read.model.freqs_cos.dtype == torch.float64
    assert torch.equal(read.model.norm.weight, state["model.norm.weight"])


# What reading leaves alone


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_read_model_can_be_trained_and_saved_over_its_own_file(suffix, tmp_path):
    """Its weights are its own: neither a mapping of the file nor shared with anything."""
    path = written(tmp_path / f"model{suffix}", tiny_model(dtype=torch.float32).state_dict())
    model = from_checkpoint(path, tiny_config())
    assert all(value.requires_grad and value.is_leaf for value in model.parameters())
    before = model.model.norm.weight.clone()
    path.write_bytes(bytes(path.stat().st_size))
    assert torch.equal(model.model.norm.weight, before)
    ids = token_ids(1, 5)
    model.train()(ids, labels=ids).loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= parameter.grad
    path = save_checkpoint(model, tmp_path / "model.safetensors")
    assert same_weights(from_checkpoint(path), model)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_reading_draws_no_random_numbers(tmp_path):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    state = torch.get_rng_state()
    from_checkpoint(path)
    assert torch.equal(torch.get_rng_state(), state)


def test_long_reading_shows_its_progress(tmp_path, monkeypatch):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    shown = []
    monkeypatch.setattr(checkpoints, "progress", lambda items, description: shown.append(description) or items)
    from_checkpoint(path)
    assert shown == []
    monkeypatch.setattr(checkpoints, "_PROGRESS_FROM", 1)
    assert same_weights(from_checkpoint(path), tiny_model())
    assert shown == ["reading weights"]


# What does not fit


def changed(kind="minimind2", changes=(), **sizes):
    """The state dict of a tiny model, with some tensors replaced, or left out where they are None."""
    state = tiny_model(kind, dtype=torch.float32, **sizes).state_dict() | dict(changes)
    return {name: value for name, value in state.items() if value is not None}


UNFIT = {
    "a key is missing": (
        changed(changes={"model.norm.weight": None}),
        r"1 tensors differ: model.norm.weight is None instead of \[32\]$",
    ),
    "a key is foreign": (
        changed(changes={"h.0.c_attn.weight": torch.ones(2)}),
        r"h.0.c_attn.weight is \[2\] instead of None$",
    ),
    "a shape is wrong": (
        changed(changes={"model.layers.1.self_attn.k_proj.weight": torch.ones(32, 32)}),
        r"1 tensors differ: model.layers.1.self_attn.k_proj.weight is \[32, 32\] instead of \[16, 32\]$",
    ),
    "another generation": (changed("minimind3"), "The config says use_qk_norm=False; the weights show use_qk_norm=Tr"),
    "a mixture": (changed("minimind2_moe"), "The config says use_moe=False; the weights show use_moe=True$"),
    "another vocabulary": (changed(vocab_size=50), "The config says vocab_size=61; the weights show vocab_size=50$"),
    "another model": ({"transformer.wte.weight": torch.ones(5, 4)}, "there is no matrix model.embed_tokens.weight"),
    "an untied head": (
        changed(changes={"lm_head.weight": torch.ones(61, 32)}),
        "lm_head.weight differs from model.embed_tokens.weight in .*, so these weights are not tied, but the config "
        "given has tie_word_embeddings=True; use tie_word_embeddings=False",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_weights_that_do_not_fit_the_config_are_refused(case, tmp_path):
    state, message = UNFIT[case]
    path = written(tmp_path / "f.pth", state)
    with pytest.raises(ValueError, match=f"(?s)(?=.*f.pth).*{message}"):
        from_checkpoint(path, tiny_config())


def test_a_tied_file_does_not_fit_an_untied_config(tmp_path):
    path = save_checkpoint(tiny_model(), tmp_path / "tied.safetensors")
    message = (
        "tied.safetensors does not fit the config given. missing: lm_head.weight. The config says "
        "tie_word_embeddings=False; the weights show tie_word_embeddings=True$"
    )
    with pytest.raises(ValueError, match=message):
        from_checkpoint(path, tiny_config(tie_word_embeddings=False))


MILLIONS = 10**7
WRONG = {
    "heads": ({"num_key_value_heads": 4}, "num_key_value_heads=4; the weights show num_key_value_heads=2$"),
    "layers": ({"num_hidden_layers": 3}, "num_hidden_layers=3; the weights show num_hidden_layers=2$"),
    "fewer layers": ({"num_hidden_layers": 1}, "num_hidden_layers=1; the weights show num_hidden_layers=2$"),
    "no mixture": ({"use_moe": False}, "use_moe=False; the weights show use_moe=True$"),
    "millions of layers": ({"num_hidden_layers": MILLIONS}, f"={MILLIONS}; the weights show num_hidden_layers=2$"),
    "millions of experts": ({"n_routed_experts": MILLIONS}, f"={MILLIONS}; the weights show num_experts=4$"),
    "millions of experts for all": (
        {"n_shared_experts": MILLIONS},
        "the weights show num_shared_experts=1$",
    ),
    "millions of positions": (
        {"max_position_embeddings": MILLIONS},
        "max_position_embeddings=10,000,000 makes RoPE tables of 0.6 GB; name the number of positions that you need",
    ),
    "words": ({"num_hidden_layers": "8"}, "num_hidden_layers must be a whole number"),
    "heads in words": ({"num_attention_heads": "8"}, "num_attention_heads must be a whole number"),
    "experts in words": ({"n_routed_experts": "4"}, "num_experts must be a whole number"),
    "a base in words": ({"rope_theta": "1e6"}, "rope_theta must be a finite number"),
    "scaling in words": ({"rope_scaling": "yarn"}, "config.json's rope_scaling must be an object, got 'yarn'"),
    "several types": ({"model_type": ["llama"]}, r"a model of type \['llama'\]"),
    "infinite scaling": (
        {"model_type": "llama", "rope_scaling": {"type": "yarn", "factor": float("inf")}},
        "factor must be a finite number, got inf",
    ),
    "scaling beyond all positions": (
        {"model_type": "llama", "rope_scaling": {"type": "yarn", "factor": 1e308}},
        "factor must be a finite number, got 1e\\+308",
    ),
}


def described_as_mixture(described):
    """In MiniMind's own words, which transformers does not have."""
    return described if described.get("model_type") == "llama" else {"use_moe": True, **described}


@pytest.mark.parametrize("case", WRONG)
def test_a_config_json_is_not_believed_in_silence(case, tmp_path, monkeypatch):
    """And compared before anything is built: some of these would build for minutes, or fill gigabytes."""
    described, message = WRONG[case]
    folder = upstream_folder(tmp_path, tiny_model("minimind2_moe"), **described_as_mixture(described))
    monkeypatch.setattr(checkpoints, "without_storage", lambda config: pytest.fail("a model was built"))
    with pytest.raises(ValueError, match=f"^{folder}(: .*| does not fit its config.json. The config says .*){message}"):
        from_checkpoint(folder)


def test_you_may_know_better_than_a_config_json(tmp_path):
    folder = upstream_folder(tmp_path, tiny_model(), num_hidden_layers=3)
    assert same_weights(from_checkpoint(folder, num_hidden_layers=2), tiny_model())
    assert same_weights(from_checkpoint(folder, tiny_config()), tiny_model())


def test_more_positions_than_a_file_may_ask_for_can_still_be_named(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "_MOST_TABLES", 1000)
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="model.safetensors: max_position_embeddings=64 makes RoPE tables"):
        from_checkpoint(path)
    with pytest.raises(ValueError, match="max_position_embeddings=1,000,000,000 makes RoPE tables of 64.0 GB"):
        from_checkpoint(path, max_position_embeddings=10**9)
    assert from_checkpoint(path, max_position_embeddings=8).config == tiny_config(max_position_embeddings=8)
    assert from_checkpoint(path, tiny_config()).config == tiny_config(), "a whole config may ask for any number"


def test_a_router_of_many_experts_is_compared_with_the_experts_that_there_are(tmp_path):
    state = changed("minimind2_moe", changes={"model.layers.0.mlp.gate.weight": torch.ones(10**6, 32)}, **EIGHT_HEADS)
    with pytest.raises(ValueError, match="tensors differ: model.layers.0.mlp.gate.weight is"):
        from_checkpoint(written(tmp_path / "f.pth", state))


STORED = {
    "of other fields": ('{"hidden_size": 32}', "KeyError: 'rope_scaling'"),
    "no JSON": ("not json", "JSONDecodeError"),
    "of a bad value": ('{"rope_scaling": null, "hidden_size": -1}', "hidden_size must be a whole number"),
    "of a bad scaling": ('{"rope_scaling": {"factors": 2}}', "TypeError"),
    "nested too deeply": (100_000 * "[", "RecursionError"),
}


@pytest.mark.parametrize("case", STORED)
def test_a_stored_config_that_is_not_ours_is_named_with_its_file(case, tmp_path):
    text, message = STORED[case]
    path, model = tmp_path / "model.safetensors", tiny_model(tie_word_embeddings=False)
    save_file(model.state_dict(), path, metadata={"config": text})
    with pytest.raises(ValueError, match=f"^{path}: its metadata holds a config that save_.*did not write.*{message}"):
        from_checkpoint(path)
    assert same_weights(from_checkpoint(path, model.config), model)


@pytest.mark.parametrize("name", ["gone.safetensors", "gone.pth", "gone", "no/such/folder"])
def test_says_that_a_file_is_missing(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"there is no file or folder .*{name}"):
        from_checkpoint(tmp_path / name, tiny_config())


@pytest.mark.parametrize("config", [{}, {"hidden_size": 32}, 3, "minimind2", MiniMindConfig, False])
def test_a_config_is_one_of_ours(config, tmp_path):
    path = save_checkpoint(tiny_model(), tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="config must be a MiniMindConfig, got .*from_upstream translates"):
        from_checkpoint(path, config)


def test_a_misspelt_field_is_named(tmp_path):
    for path in (
        save_checkpoint(tiny_model(), tmp_path / "model.safetensors"),
        written(tmp_path / "model.pth", tiny_model().state_dict()),
    ):
        with pytest.raises(ValueError, match="unexpected keyword argument 'rope_tetha'"):
            from_checkpoint(path, rope_tetha=1e4)
    with pytest.raises(ValueError, match=r"either a whole config or single fields \(rope_theta\), not both"):
        from_checkpoint(path, tiny_config(), rope_theta=1e4)
