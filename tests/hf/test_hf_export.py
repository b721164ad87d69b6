"""Out to transformers: the folder loads there, computes the same, and holds our weights bit for bit."""

import json
from dataclasses import replace

import pytest
import torch
from model_builders import KINDS, talkative_model, tiny_config, tiny_model, token_ids
from safetensors.torch import load_file
from tokenizer_builders import train_tokens, write_tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import logging

from minimind_edu import fast, from_checkpoint, hf
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope_frequencies import RopeScaling

PADDED = torch.tensor([[0] * 6 + [1] * 4, [0] * 2 + [1] * 8, [1] * 10])
YARN = RopeScaling(4.0, 16, attention_factor=1.0)  # the tables of tiny_config are 4 times as long

CASES = {
    "Llama": ("minimind2", {}),
    "Llama, untied": ("minimind2", {"tie_word_embeddings": False}),
    "Llama, wide heads": ("minimind2", {"head_dim": 16}),
    "Llama, scaling": ("minimind2", {"rope_scaling": RopeScaling(4.0, 16)}),
    "Qwen3": ("minimind3", {}),
    "Qwen3, untied": ("minimind3", {"tie_word_embeddings": False}),
    "Qwen3, scaling": ("minimind3", {"rope_scaling": YARN}),
    "Qwen3, a ramp of no width": ("minimind3", {"rope_scaling": RopeScaling(32.0, 2)}),
    "Qwen3-MoE, top-1": ("minimind3_moe", {}),
    "Qwen3-MoE, top-2 of 5": (
        "minimind3_moe",
        {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
    ),
    "Qwen3-MoE, not renormalized": (
        "minimind3_moe",
        {"num_experts_per_tok": 2, "norm_topk_prob": False, "tie_word_embeddings": False},
    ),
}


def exported(model, folder, **options):
    """The model of transformers that a reader gets from the exported folder."""
    return AutoModelForCausalLM.from_pretrained(hf.export(model, folder, **options))


@pytest.fixture(scope="module", params=CASES)
def pair(request, tmp_path_factory):
    kind, changes = CASES[request.param]
    model = talkative_model(kind, **changes)
    return model, exported(model, tmp_path_factory.mktemp("export") / "model"), request.param


def test_the_folder_is_loaded_as_the_class_of_transformers(pair):
    _, theirs, case = pair
    expected = {"Llama": "LlamaForCausalLM", "Qwen3": "Qwen3ForCausalLM"}
    assert type(theirs).__name__ == expected.get(case.split(",")[0], "Qwen3MoeForCausalLM")
    assert not theirs.training


@torch.no_grad()
def test_logits_agree(pair):
    ours, theirs, _ = pair
    ids = token_ids(3, 60)
    expected = ours(ids).logits
    assert expected.std() > 0.3, "logits this small would agree whatever the model does"
    torch.testing.assert_close(theirs(ids).logits, expected, rtol=0, atol=1e-5)


def test_greedy_tokens_agree(pair):
    ours, theirs, _ = pair
    ids = token_ids(3, 10)
    expected = ours.generate(ids, 30)
    tokens = theirs.generate(ids, max_new_tokens=30, do_sample=False)
    assert torch.equal(tokens, expected)
    assert len(expected[:, 10:].unique()) > 15, "constant continuations would prove little"


def test_greedy_tokens_agree_when_padded_on_the_left_and_ended_early(pair):
    ours, theirs, _ = pair
    ids = token_ids(3, 10).masked_fill(PADDED == 0, 0)
    free = ours.generate(ids, 20, attention_mask=PADDED, eos_token_id=None)
    end = int(free[1, 15])
    expected = ours.generate(ids, 20, attention_mask=PADDED, eos_token_id=end, pad_token_id=2)
    tokens = theirs.generate(ids, attention_mask=PADDED, max_new_tokens=20, do_sample=False, eos_token_id=end)
    assert (expected == 2).any(), "no row was padded, so the padding was not compared"
    assert torch.equal(tokens, expected)


def test_the_file_holds_our_weights_bit_for_bit(pair, tmp_path):
    ours, theirs, _ = pair
    expected = ours.state_dict()
    if ours.config.tie_word_embeddings:
        del expected["lm_head.weight"]
    for source in (ours, None):
        folder = tmp_path / str(source is None)
        if source is None:
            theirs.save_pretrained(folder)  # and after a round through transformers
        else:
            hf.export(source, folder)
        stored = load_file(folder / "model.safetensors")
        assert stored.keys() == expected.keys()
        assert all(torch.equal(stored[name], expected[name]) for name in expected)


@pytest.mark.parametrize("adapter", [False, True])
def test_our_from_checkpoint_reads_the_folder_back(pair, adapter, tmp_path):
    ours, _, _ = pair
    back = from_checkpoint(hf.export(ours, tmp_path / "model", adapter=adapter))
    expected = ours.config
    scaling = expected.rope_scaling
    if scaling is not None and not adapter:  # transformers' file always names the factor
        factor = scaling.table_factor
        expected = replace(expected, rope_scaling=replace(scaling, attention_factor=factor))
    for name in ("router_aux_loss_coef", "seq_aux", "num_experts", "num_experts_per_tok",
                 "moe_intermediate_size", "num_shared_experts", "norm_topk_prob"):  # fmt: skip
        if not ours.config.use_moe:  # a dense model's file says nothing of experts
            expected = replace(expected, **{name: getattr(back.config, name)})
    assert back.config == expected
    assert back.state_dict().keys() == ours.state_dict().keys()
    for name, value in ours.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name


def test_nothing_is_printed_and_progress_bars_stay_as_they_were(tmp_path, capfd):
    hf.export(tiny_model("minimind3_moe"), tmp_path / "model")
    assert capfd.readouterr() == ("", "")
    assert logging.is_progress_bar_enabled()


def test_the_twin_has_weights_of_its_own():
    ours = tiny_model("minimind3", dtype=torch.float32)
    before = {name: value.clone() for name, value in ours.state_dict().items()}
    theirs = hf.to_transformers(ours)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.zero_()
    assert all(torch.equal(value, before[name]) for name, value in ours.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@torch.no_grad()
def test_half_precision_stays_half(dtype, tmp_path):
    ours = tiny_model("minimind3", dtype=dtype)
    theirs = exported(ours, tmp_path / "half")
    assert theirs.dtype == dtype
    for name, value in theirs.state_dict().items():
        assert torch.equal(value, ours.state_dict()[name]), name
    ids = token_ids(3, 20)
    exact = tiny_model("minimind3", dtype=torch.float64)
    exact.load_state_dict(ours.state_dict())
    expected = exact(ids).logits
    # transformers rounds before the gain and rounds the tables, so in half precision the two differ, each by rounding
    noise = (ours(ids).logits - expected).abs().max()
    assert (theirs(ids).logits - expected).abs().max() < 4 * noise


def test_the_folder_says_how_to_generate(tmp_path):
    hf.export(tiny_model("minimind3", eos_token_id=7, bos_token_id=5), tmp_path / "model")
    stored = json.loads((tmp_path / "model" / "generation_config.json").read_text())
    assert (stored["bos_token_id"], stored["eos_token_id"], stored["pad_token_id"]) == (5, 7, 7)
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    # naming a padding token here would freeze its row of the embedding in training
    assert config["pad_token_id"] is None


@pytest.mark.parametrize("kind", ["minimind2", "minimind3", "minimind3_moe"])
def test_what_acts_in_training_only_is_written_as_well(kind, tmp_path):
    model = tiny_model(kind, dropout=0.25, initializer_range=0.05, router_aux_loss_coef=0.3)
    config = json.loads((hf.export(model, tmp_path / "model") / "config.json").read_text())
    assert (config["attention_dropout"], config["initializer_range"]) == (0.25, 0.05)
    assert config.get("router_aux_loss_coef") == (0.3 if kind == "minimind3_moe" else None)


def test_the_config_can_also_be_read_by_transformers_4(tmp_path):
    """It looks for other names, and without them takes defaults: 10,000 for the base of RoPE, 128 experts."""
    model = tiny_model("minimind3_moe", dtype=torch.float16, rope_scaling=YARN, rope_theta=5e5)
    hf.export(model, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == 5e5
    assert config["num_experts"] == 4
    assert config["torch_dtype"] == config["dtype"] == "float16"
    assert config["rope_scaling"] == {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
        "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0,
    }  # fmt: skip
    assert config["rope_scaling"].items() < config["rope_parameters"].items()


# What transformers cannot be

REFUSED = {
    "post-norm": (
        tiny_config(norm_placement="post"), "they are all pre-norm, and this model has norm_placement='post'",
    ),
    "a shared expert": (
        tiny_config("minimind2_moe", use_qk_norm=True),
        "Qwen3-MoE has no expert that every token visits, and this model has num_shared_experts=1",
    ),
    "a mixture without QK-norm": (
        tiny_config("minimind2_moe", num_shared_experts=0),
        "Qwen3-MoE has QK-norm, and this mixture has use_qk_norm=False",
    ),
    "a hidden size that heads do not divide": (
        tiny_config(hidden_size=36, num_attention_heads=8, head_dim=16),
        "hidden_size to be a multiple of num_attention_heads, and this model has 36 and 8",
    ),
    "MiniMind2's own scaling": (
        tiny_config(rope_scaling=RopeScaling(4.0, 16, formula="minimind2")),
        "no counterpart of MiniMind2's own formula of RoPE scaling",
    ),
    "a ramp that runs backwards": (
        tiny_config("minimind3", rope_scaling=RopeScaling(16.0, 2), head_dim=64),
        "runs backwards, from pair 0 to pair -2, .* original_max_position_embeddings does not suit .* got 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_what_transformers_cannot_be_and_points_to_the_adapter(case, tmp_path):
    config, message = REFUSED[case]
    with pytest.raises(ValueError, match=f"{message}.*; the adapter takes every model"):
        hf.export(MiniMindForCausalLM(config), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    assert type(exported(MiniMindForCausalLM(config), tmp_path / "model", adapter=True)) is (hf.MiniMindEduForCausalLM)


@pytest.mark.parametrize("formula", ["yarn", "minimind2"])
@torch.no_grad()
def test_a_scaling_that_never_starts_is_left_out(formula):
    """Ours scales only when the tables outgrow the trained context; transformers would always."""
    ours = tiny_model("minimind3", dtype=torch.float32, rope_scaling=RopeScaling(4.0, 64, formula=formula))
    theirs = hf.to_transformers(ours)
    assert theirs.config.rope_parameters == {"rope_type": "default", "rope_theta": 1e6}
    ids = token_ids(2, 60)
    torch.testing.assert_close(theirs(ids).logits, ours(ids).logits, rtol=0, atol=1e-5)


# The tokenizer

TEXTS = ["the cat sat", " Hello, 世界!  two  spaces\n", "<|im_start|>user\nhi<|im_end|>"]


def tokenizer_folder(folder, named=True):
    """A tokenizer of 300 tokens at most, as upstream keeps it, or as nothing but tokenizer.json."""
    tokens = train_tokens(300)
    write_tokenizer(folder, tokens)
    if not named:
        (folder / "tokenizer_config.json").unlink()
    return tokens


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_tokenizer_goes_along(kind, named, tmp_path):
    tokens = tokenizer_folder(tmp_path / "tokens", named)
    model = tiny_model(kind, vocab_size=300)
    adapter = kind == "minimind2_moe"
    folder = hf.export(model, tmp_path / "model", tokenizer=tmp_path / "tokens", adapter=adapter)
    read = AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        assert read(text).input_ids == tokens.encode(text).ids
        assert read.decode(read(text).input_ids) == text
    assert (read.bos_token_id, read.eos_token_id) == (1, 2)
    stored = GenerationConfig.from_pretrained(folder)
    assert (stored.eos_token_id, stored.pad_token_id) == (2, 0 if named else 2)
    copied = (folder / "tokenizer.json").read_bytes()
    assert copied == (tmp_path / "tokens" / "tokenizer.json").read_bytes()


def test_refuses_a_tokenizer_that_is_none_or_too_large(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must hold tokenizer.json, and .*empty does not"):
        hf.export(tiny_model(), tmp_path / "model", tokenizer=tmp_path / "empty")
    tokenizer_folder(tmp_path / "tokens")
    with pytest.raises(ValueError, match=r"has \d+ tokens and the model's vocab_size is 61"):
        hf.export(tiny_model(), tmp_path / "model", tokenizer=tmp_path / "tokens")
    assert not (tmp_path / "model").exists()


BROKEN = {
    "no JSON": ({"tokenizer.json": "", "tokenizer_config.json": "{}"}, "tokens holds no tokenizer that can be read: E"),
    "nor a config": ({"tokenizer.json": "{"}, "holds no tokenizer that can be read"),
    "another object": ({"tokenizer.json": "[]", "tokenizer_config.json": "{}"}, "holds no tokenizer that can be read"),
    "a broken config": ({"tokenizer_config.json": "{"}, "holds no tokenizer that can be read"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_tokenizer_is_named(case, tmp_path):
    tokenizer_folder(tmp_path / "tokens", named=len(BROKEN[case][0]) == 2)
    for name, text in BROKEN[case][0].items():
        (tmp_path / "tokens" / name).write_text(text)
    with pytest.raises(ValueError, match=BROKEN[case][1]):
        hf.export(tiny_model(vocab_size=300), tmp_path / "model", tokenizer=tmp_path / "tokens")
    assert [path.name for path in tmp_path.iterdir()] == ["tokens"]


@pytest.mark.parametrize("mapped", [["own.Tokenizer", None], "own.Tokenizer"])
def test_no_code_of_a_tokenizers_folder_is_run_or_offered(mapped, tmp_path, monkeypatch):
    tokens = tokenizer_folder(tmp_path / "tokens")
    (tmp_path / "tokens/own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    described = json.loads((tmp_path / "tokens/tokenizer_config.json").read_text())
    (tmp_path / "tokens/tokenizer_config.json").write_text(
        json.dumps(described | {"auto_map": {"AutoTokenizer": mapped}})
    )
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
    model = tiny_model(vocab_size=tokens.get_vocab_size())
    with pytest.raises(ValueError, match="tokens holds no tokenizer .*auto_map.*such code is never run"):
        hf.export(model, tmp_path / "model", tokenizer=tmp_path / "tokens")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokens"]


def test_a_file_of_a_tokenizer_that_cannot_be_read_is_not_left_out(tmp_path):
    tokens = tokenizer_folder(tmp_path / "tokens")
    (tmp_path / "tokens/chat_template.jinja").symlink_to("gone.jinja")
    with pytest.raises(ValueError, match="chat_template.jinja cannot be read: No such file"):
        hf.export(tiny_model(vocab_size=tokens.get_vocab_size()), tmp_path / "model", tokenizer=tmp_path / "tokens")


@pytest.mark.parametrize("name", ["folder", "tokenizer"])
def test_folders_are_paths(name, tmp_path):
    with pytest.raises(ValueError, match="a path must be text or a pathlib.Path, got 3"):
        hf.export(tiny_model(), **{"folder": tmp_path / "model", name: 3})


def test_a_folder_may_be_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hf.export(tiny_model(), "~/model") == tmp_path / "model"
    assert (tmp_path / "model" / "config.json").is_file()


@pytest.mark.parametrize("adapter", [False, True])
def test_what_could_not_be_loaded_again_is_not_written(adapter, tmp_path):
    """transformers would draw new weights where a file has none."""
    model = tiny_model(dtype=torch.float32)
    for change in ("rounded", "another part"):
        if change == "another part":
            model.model.layers[1].mlp = torch.nn.Identity()
        given = fast.rounded_decoder(model, "int8").model if change == "rounded" else model
        with pytest.raises(ValueError, match="only a model as its config makes it can be read again"):
            hf.export(given, tmp_path / "model", adapter=adapter)
        with pytest.raises(ValueError, match="only a model as its config makes it can be read again"):
            hf.to_transformers(given)
    with pytest.raises(ValueError, match="only a MiniMindForCausalLM can be saved, got NoneType"):
        hf.export(None, tmp_path / "model", adapter=adapter)
    assert not list(tmp_path.iterdir())


# The folder


def listing(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def test_leaves_an_existing_folder_alone_unless_asked(tmp_path):
    folder = hf.export(tiny_model(seed=1), tmp_path / "model")
    before = listing(folder)
    with pytest.raises(FileExistsError, match="model exists already; give another name, or overw"):
        hf.export(tiny_model(seed=2), folder)
    assert listing(folder) == before
    hf.export(tiny_model(seed=2), folder, overwrite=True)
    assert listing(folder).keys() == before.keys()
    assert listing(folder)["model.safetensors"] != before["model.safetensors"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_tokenizer_stays_where_no_other_is_given(tmp_path):
    tokens = write_tokenizer(tmp_path / "tokens")
    folder = hf.export(tiny_model(seed=1, vocab_size=300), tmp_path / "model", tokenizer=tokens)
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    before = listing(folder)
    hf.export(tiny_model(seed=2, vocab_size=300), folder, overwrite=True)
    after = listing(folder)
    assert {name for name in before if after[name] != before[name]} == {"model.safetensors"}
    assert GenerationConfig.from_pretrained(folder).pad_token_id == 0, "the tokenizer's, as in the first export"
    with pytest.raises(ValueError, match=r"the tokenizer in .*model has \d+ tokens and the model's vocab_size is 61"):
        hf.export(tiny_model(), folder, overwrite=True)
    assert listing(folder) == after


@pytest.mark.parametrize("given", [False, True])
def test_no_part_of_a_tokenizer_is_lost_that_is_not_replaced(given, tmp_path):
    """Somebody's own vocabulary, without a tokenizer.json; or a template that the tokenizer given does not have."""
    tokens = write_tokenizer(tmp_path / "tokens")
    model = tiny_model(vocab_size=300)
    folder = hf.export(model, tmp_path / "model", tokenizer=tokens if given else None)
    names = ["chat_template.jinja"] if given else ["vocab.json", "merges.txt"]
    for name in names:
        put(folder, name)
    before = listing(folder)
    with pytest.raises(FileExistsError, match=f"model is not replaced, because its {', '.join(names)} would be lost"):
        hf.export(model, folder, tokenizer=tokens if given else None, overwrite=True)
    assert listing(folder) == before


def put(folder, name):
    """What nobody must lose: a file, a folder with a file in it (a/b), or a link (a -> b)."""
    name, _, target = name.partition(" -> ")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if target:
        (folder / name).symlink_to(target)
    else:
        (folder / name).write_bytes(b"mine")


KEPT = {
    "notes": ["notes.txt"],
    "what a Trainer saves": ["training_args.bin", "checkpoint-20/optimizer.pt"],
    "a folder named like a file": ["merges.txt/diary"],
    "a repository": [".git/HEAD"],
    "links into a cache": ["chat_template.jinja -> elsewhere"],
    "weights of another name": ["model.safetensors.old", "full_sft_512.pth"],
}


@pytest.mark.parametrize("case", KEPT)
def test_never_deletes_what_no_export_wrote(case, tmp_path):
    """A config.json alone says little: a Trainer's whole output has one beside its checkpoints."""
    folder = hf.export(tiny_model(seed=1), tmp_path / "model")
    for name in KEPT[case]:
        put(folder, name)
    before = listing(folder)
    named = KEPT[case][0].partition("/")[0].partition(" ->")[0]
    with pytest.raises(FileExistsError, match=f"model is not replaced, .* because it holds .*{named}"):
        hf.export(tiny_model(seed=2), folder, overwrite=True)
    assert listing(folder) == before


def test_never_replaces_what_is_no_models_folder(tmp_path):
    write_tokenizer(tmp_path / "tokens")
    with pytest.raises(FileExistsError, match="tokens is not replaced, .* because it holds no config.json"):
        hf.export(tiny_model(), tmp_path / "tokens", overwrite=True)
    (tmp_path / "config.json").write_bytes(b"x")
    with pytest.raises(FileExistsError, match="config.json is not replaced"):
        hf.export(tiny_model(), tmp_path / "config.json", overwrite=True)
    assert (tmp_path / "config.json").read_bytes() == b"x"


@pytest.mark.parametrize("name", ["", ".", "..", "../here"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_never_replaces_the_current_folder(name, overwrite, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ValueError, match="cannot be the current folder or one above it, .* give a new name"):
        hf.export(tiny_model(), name, overwrite=overwrite)
    assert list(tmp_path.iterdir()) == [tmp_path / "here"]


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    real = hf.export(tiny_model(seed=1), tmp_path / "elsewhere" / "model")
    before = listing(real)
    (tmp_path / "link").symlink_to(real)
    assert hf.export(tiny_model(seed=2), tmp_path / "link", overwrite=True) == tmp_path / "link"
    assert (tmp_path / "link").is_symlink()
    assert listing(real).keys() == before.keys()
    assert listing(real)["model.safetensors"] != before["model.safetensors"]


def test_takes_an_empty_folder_and_makes_the_folders_above(tmp_path):
    (tmp_path / "empty").mkdir()
    assert (hf.export(tiny_model(), tmp_path / "empty") / "config.json").is_file()
    assert (hf.export(tiny_model(), tmp_path / "a" / "b" / "c") / "config.json").is_file()


@pytest.mark.parametrize("when", ["writing the weights", "moving the folder into place"])
def test_a_failure_leaves_everything_as_it_was(when, tmp_path, monkeypatch):
    folder = hf.export(tiny_model(seed=1), tmp_path / "model")
    before = listing(folder)

    def fail(*_, **__):
        raise OSError("no space left on device")

    rename = type(folder).rename
    if when == "writing the weights":
        monkeypatch.setattr("transformers.modeling_utils.safe_save_file", fail)
    else:
        monkeypatch.setattr(type(folder), "rename", lambda a, b: fail() if a.name == "new" else rename(a, b))
    with pytest.raises(OSError, match="no space left"):
        hf.export(tiny_model(seed=2), folder, overwrite=True)
    with pytest.raises(OSError, match="no space left"):
        hf.export(tiny_model(seed=2), tmp_path / "new name")
    assert listing(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
