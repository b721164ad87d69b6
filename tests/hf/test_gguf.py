"""One file for llama.cpp and Ollama: what is read back, independently of what wrote it, is the model; and llama.cpp
itself, where it is installed, computes the same logits from it and makes the same tokens."""

import io
import json
import random
import re
import struct
import subprocess
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, talkative_model, tiny_model, token_ids
from tokenizer_builders import SPECIAL, TEMPLATE, TEXTS, write_tokenizer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as pre
from transformers import AutoTokenizer

from benchmarks.engines import ENGINES
from benchmarks.engines.checkpoint import write_checkpoint
from benchmarks.engines.client import PYTHON
from minimind_edu.hf import export, gguf, to_transformers
from minimind_edu.hf.gguf import main, write_gguf
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.weights.checkpoints import save_checkpoint

ROOT = Path(__file__).resolve().parents[2]
WIDE = {"hidden_size": 32, "intermediate_size": 64, "head_dim": 16, "vocab_size": 64}
MIXTURE = {"kind": "minimind3_moe", "num_experts_per_tok": 2}
FORMS = {0: "B", 4: "I", 5: "i", 6: "f", 7: "?"}  # types of facts


def read_gguf(path):
    """Facts and tensors of a file, read independently of what wrote it: bytes in the order of the format's text."""
    data = io.BytesIO(path.read_bytes())

    def take(form):
        return struct.unpack("<" + form, data.read(struct.calcsize("<" + form)))

    def text():
        return data.read(take("Q")[0]).decode()

    def fact(kind):
        if kind != 9:
            return text() if kind == 8 else take(FORMS[kind])[0]
        items, count = take("IQ")
        return [fact(items) for _ in range(count)]

    magic, version, tensors, facts = take("4sIQQ")
    assert (magic, version) == (b"GGUF", 3)
    found = {text(): fact(*take("I")) for _ in range(facts)}
    heads = []
    for _ in range(tensors):
        name, (dims,) = text(), take("I")
        heads.append((name, take(f"{dims}Q")[::-1], *take("IQ")))
    start = -(-data.tell() // 32) * 32
    content = {}
    for name, shape, kind, offset in heads:
        assert offset % 32 == 0 and name not in content
        data.seek(start + offset)
        size = int(np.prod(shape))
        if kind == 0:
            values = np.frombuffer(data.read(4 * size), np.float32)
        else:
            blocks = np.frombuffer(data.read(34 * size // 32), [("d", "<f2"), ("q", "i1", 32)])
            values = blocks["d"][:, None].astype(np.float32) * blocks["q"]
        content[name] = values.reshape(shape)
    return found, content


def written(checkpoint, file, precision="F32"):
    """What the file holds of a checkpoint without a tokenizer for llama.cpp, which is said."""
    with pytest.warns(UserWarning, match="^the file takes token ids only, no text: "):
        return read_gguf(write_gguf(checkpoint, file, precision))


def facts_of(model, folder, tokenizer=None, files=None):
    """The facts of a model in float32 that is exported with a tokenizer and further files."""
    folder.mkdir(exist_ok=True)
    if tokenizer is not None:
        write_tokenizer(folder / "tokenizer", tokenizer)
    exported = export(model, folder / "model", tokenizer=folder / "tokenizer")
    for name, content in (files or {}).items():
        path = exported / name
        stated = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(content if isinstance(content, str) else json.dumps(stated | content))
    return read_gguf(write_gguf(exported, folder / "model.gguf"))[0]


def byte_level(pre_tokenizer=None, texts=tuple(TEXTS), special=SPECIAL, **options):
    """A BPE of bytes of about 300 tokens, as MiniMind's."""
    tokens = Tokenizer(models.BPE(**options))
    tokens.pre_tokenizer = pre_tokenizer or pre.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokens.train_from_iterator(texts, trainer)
    return tokens


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A Llama of two heads that share one pair of keys and values, 32 wide; its tokenizer is a list of words."""
    return write_checkpoint(tiny_model(**WIDE), tmp_path_factory.mktemp("export") / "model")


# Tensors and facts

ROPE = st.none() | st.builds(
    RopeScaling,
    factor=st.floats(1, 40, width=32),
    original_max_position_embeddings=st.integers(8, 4096),
    attention_factor=st.none() | st.floats(0.5, 2, width=32),
)
MODELS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["minimind2", "minimind3", "minimind3_moe"]),
        "dtype": st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
        "vocab_size": st.integers(8, 70),
        "num_hidden_layers": st.integers(1, 3),
        "num_key_value_heads": st.sampled_from([1, 2, 4]),
        "head_dim": st.sampled_from([2, 6, 8, 16]),
        "intermediate_size": st.integers(1, 70),
        "max_position_embeddings": st.sampled_from([64, 4096]),
        "tie_word_embeddings": st.booleans(),
        "rope_theta": st.sampled_from([1e4, 1e6]),
        "rms_norm_eps": st.sampled_from([1e-5, 1e-6]),
        "rope_scaling": ROPE,
        "num_experts": st.integers(2, 5),
        "num_experts_per_tok": st.integers(1, 2),
    }
)
PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
}


@PROPERTY
@given(MODELS)
def test_any_model_is_read_back_number_by_number_and_fact_by_fact(tmp_path_factory, drawn):
    model = tiny_model(**drawn)
    config, folder = model.config, tmp_path_factory.mktemp("any")
    facts, tensors = written(save_checkpoint(model, folder / "m.safetensors"), folder / "m.gguf")
    kind = facts["general.architecture"]
    assert kind == {"minimind2": "llama", "minimind3": "qwen3", "minimind3_moe": "qwen3moe"}[drawn["kind"]]
    weights = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    expected = {"token_embd": weights["model.embed_tokens.weight"], "output_norm": weights["model.norm.weight"]}
    if not config.tie_word_embeddings:
        expected["output"] = weights["lm_head.weight"]
    for layer in range(config.num_hidden_layers):
        for ours, theirs in PARTS.items():
            if f"model.layers.{layer}.{ours}.weight" in weights:
                values = weights[f"model.layers.{layer}.{ours}.weight"]
                if kind == "llama" and theirs in ("attn_q", "attn_k"):  # rows 0, D/2, 1, D/2 + 1, ... of each head
                    order = np.arange(config.head_dim).reshape(2, -1).T.ravel()
                    values = values.reshape(-1, config.head_dim, values.shape[1])[:, order].reshape(values.shape)
                expected[f"blk.{layer}.{theirs}"] = values
        for part in ("gate", "up", "down") if config.use_moe else ():
            names = [f"model.layers.{layer}.mlp.experts.{n}.{part}_proj.weight" for n in range(config.num_experts)]
            expected[f"blk.{layer}.ffn_{part}_exps"] = np.stack([weights[name] for name in names])
    assert tensors.keys() == {f"{name}.weight" for name in expected}
    for name, values in expected.items():
        assert np.array_equal(tensors[f"{name}.weight"], values), name
    stated = {name.removeprefix(f"{kind}."): value for name, value in facts.items() if name.startswith(f"{kind}.")}
    scaling = config.rope_scaling
    if scaling and scaling.starts_at(config.max_position_embeddings):
        assert stated.pop("rope.scaling.type") == "yarn"
        assert stated.pop("rope.scaling.factor") == pytest.approx(scaling.factor)
        assert stated.pop("rope.scaling.original_context_length") == scaling.original_max_position_embeddings
        paper = 1 + 0.1 * np.log(scaling.factor)
        assert stated.pop("rope.scaling.attn_factor") * paper == pytest.approx(scaling.table_factor)
    if config.use_moe:
        assert stated.pop("expert_count") == config.num_experts
        assert stated.pop("expert_used_count") == config.num_experts_per_tok
        assert stated.pop("expert_feed_forward_length") == config.moe_intermediate_size
    assert stated == {
        "vocab_size": config.vocab_size,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": pytest.approx(config.rms_norm_eps),
        "rope.dimension_count": config.head_dim,
        "rope.freq_base": pytest.approx(config.rope_theta),
    }


@pytest.mark.parametrize("kind", ["minimind2", "minimind3", "minimind3_moe"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_folder_of_the_same_model_gives_the_same_file(tmp_path, kind, dtype):
    model = tiny_model(kind, dtype=dtype)
    export(model, tmp_path / "exported")
    to_transformers(model).save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    (tmp_path / "old").mkdir()
    torch.save(model.state_dict(), tmp_path / "old" / "pytorch_model.bin")
    (tmp_path / "old" / "config.json").write_text((tmp_path / "exported" / "config.json").read_text())
    files = []
    for folder in ("exported", "shards", "old"):
        written(tmp_path / folder, tmp_path / f"{folder}.gguf")
        files.append((tmp_path / f"{folder}.gguf").read_bytes())
    assert files[0] == files[1] == files[2]


def test_q8_0_is_off_by_half_a_step_at_most_and_leaves_norms_and_routers_alone(tmp_path):
    model = tiny_model(**MIXTURE, hidden_size=32, moe_intermediate_size=64, intermediate_size=64)
    folder = export(model, tmp_path / "model")
    exact, rounded = (written(folder, tmp_path / f"{kind}.gguf", kind)[1] for kind in ("F32", "Q8_0"))
    for name, values in exact.items():
        if values.ndim == 1 or "ffn_gate_inp" in name:
            assert np.array_equal(rounded[name], values), name
            continue
        assert not np.array_equal(rounded[name], values), name
        blocks = values.reshape(-1, 32)
        steps = np.abs(blocks).max(1, keepdims=True) / 127
        apart = np.abs(rounded[name].reshape(blocks.shape) - blocks)
        # half a step, and what float16 takes from the scale
        assert (apart <= (0.5 + 127 / 2048) * steps).all(), name


def test_q8_0_has_the_size_that_the_benchmark_counts_with(checkpoint, tmp_path):
    exact = written(checkpoint, tmp_path / "a.gguf")[1]
    written(checkpoint, tmp_path / "b.gguf", "Q8_0")
    matrices = sum(values.size for values in exact.values() if values.ndim == 2)
    size = (tmp_path / "b.gguf").stat().st_size
    assert size < matrices * ENGINES["llama.cpp Q8_0"].bytes_per_weight + 8000


def test_only_what_llama_cpp_reads_of_yarn_is_written(tmp_path):
    """Its betas are fixed for these models; others may still give the same ramp."""
    shared = {"max_position_embeddings": 4096, "kind": "minimind3", "head_dim": 64}
    for name, scaling, is_written in (
        ("usual", RopeScaling(4.0, 1024), True),
        ("same", RopeScaling(4.0, 1024, beta_fast=31.9, beta_slow=0.999), True),
        ("fast", RopeScaling(4.0, 1024, beta_fast=8.0), False),
        ("slow", RopeScaling(4.0, 1024, beta_slow=8.0), False),
        ("unused", RopeScaling(4.0, 4096, beta_fast=8.0), True),
    ):
        path = save_checkpoint(tiny_model(**shared, rope_scaling=scaling), tmp_path / f"{name}.safetensors")
        if is_written:
            facts, _ = written(path, tmp_path / f"{name}.gguf")
            assert ("qwen3.rope.scaling.type" in facts) == (name != "unused")
        else:
            with pytest.raises(ValueError, match="llama.cpp has YaRN with beta_fast=32 and beta_slow=1 only, got"):
                write_gguf(path, tmp_path / f"{name}.gguf")


OTHERS = {
    "never": ({"kind": "minimind3_moe", "num_experts_per_tok": 2, "norm_topk_prob": False}, "always renormalizes"),
    "one": ({"kind": "minimind3_moe", "norm_topk_prob": False}, "norm_topk_prob=False with 1 of 4 experts"),
    "shared": ({"kind": "minimind2_moe"}, "no expert that every token visits"),
    "post": ({"norm_placement": "post"}, "all pre-norm"),
    "old": ({"rope_scaling": RopeScaling(4.0, 16, formula="minimind2")}, "MiniMind2's own formula"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_llama_cpp_computes_in_another_way_is_refused_by_name(tmp_path, name):
    changes, reason = OTHERS[name]
    path = save_checkpoint(tiny_model(**changes), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=reason):
        write_gguf(path, tmp_path / "m.gguf")
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.safetensors"]


def test_where_every_expert_is_visited_weights_sum_to_1_anyway(tmp_path):
    model = tiny_model("minimind3_moe", num_experts_per_tok=4, norm_topk_prob=False)
    assert written(export(model, tmp_path / "m"), tmp_path / "m.gguf")[0]["qwen3moe.expert_used_count"] == 4


@pytest.mark.parametrize("precision", ["F32", "Q8_0"])
@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_a_number_that_is_none_is_refused_with_its_tensor(tmp_path, precision, number):
    model = tiny_model(**WIDE)
    model.model.layers[1].mlp.up_proj.weight.data[3, 4] = number
    path = save_checkpoint(model, tmp_path / "m.safetensors")
    with (
        pytest.warns(UserWarning),
        pytest.raises(ValueError, match=r"model\.layers\.1\.mlp\.up_proj\.weight holds NaN or"),
    ):
        write_gguf(path, tmp_path / "m.gguf", precision)


# Tokens


def test_every_token_stands_at_its_id_and_every_row_has_one(tmp_path):
    tokens = byte_level()
    size = tokens.get_vocab_size()
    tokens.add_tokens(["<name>", " 你 好"])
    tokens.add_special_tokens(["<|end|>"])
    model = tiny_model(vocab_size=size + 10)
    facts = facts_of(model, tmp_path / "a", tokens)
    pieces, kinds = facts["tokenizer.ggml.tokens"], facts["tokenizer.ggml.token_type"]
    assert len(pieces) == len(kinds) == size + 10 == len(set(pieces))
    assert pieces[size:] == ["<name>", " 你 好", "<|end|>", *(f"[PAD{token}]" for token in range(size + 3, size + 10))]
    assert kinds[size:] == [4, 4, 3] + [5] * 7  # written by the user, of control, unused
    assert kinds[: len(SPECIAL)] == [3] * len(SPECIAL) and set(kinds[len(SPECIAL) : size]) == {1}
    assert pieces[:size] == [tokens.id_to_token(token) for token in range(size)]


def test_a_tokenizer_that_reads_nothing_but_the_file_makes_the_same_ids(tmp_path):
    tokens = byte_level()
    facts = facts_of(tiny_model(vocab_size=tokens.get_vocab_size()), tmp_path / "a", tokens)
    assert facts["tokenizer.ggml.model"] == "gpt2" and facts["tokenizer.ggml.pre"] == "gpt-2"
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    vocabulary = {piece: token for token, piece in enumerate(facts["tokenizer.ggml.tokens"])}
    again = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    again.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    for text in ("the cat sat", "mat, 编程!"):
        assert again.encode(text).ids == tokens.encode(text).ids


def test_gaps_between_ids_are_filled_and_no_text_stands_twice(tmp_path):
    tokens = byte_level()
    stored = json.loads(tokens.to_str())
    size = tokens.get_vocab_size()
    added = stored["added_tokens"][0]
    stored["added_tokens"] += [added | {"id": size + 4, "content": f"[PAD{size + 2}]"}]
    stored["model"]["vocab"][f"[PAD{size + 2}]"] = size + 4
    tokens = Tokenizer.from_str(json.dumps(stored))
    facts = facts_of(tiny_model(vocab_size=size + 6), tmp_path / "a", tokens)
    pieces = facts["tokenizer.ggml.tokens"]
    assert pieces[size + 4] == f"[PAD{size + 2}]" and len(set(pieces)) == len(pieces) == size + 6
    assert facts["tokenizer.ggml.token_type"][size:] == [5, 5, 5, 5, 3, 5]


def test_ends_and_frames_are_those_of_transformers(tmp_path):
    tokens = byte_level()
    model = tiny_model(vocab_size=tokens.get_vocab_size(), bos_token_id=1, eos_token_id=2)
    facts = facts_of(model, tmp_path / "a", tokens)
    names = ("bos", "eos", "eot", "eom", "padding")
    assert [facts.get(f"tokenizer.ggml.{name}_token_id") for name in names] == [1, 2, None, None, 0]
    assert [facts[f"tokenizer.ggml.add_{name}_token"] for name in ("bos", "eos")] == [False, False]
    assert "tokenizer.ggml.eos_token_id" not in facts_of(
        tiny_model(vocab_size=tokens.get_vocab_size(), bos_token_id=None, eos_token_id=None), tmp_path / "b", tokens
    )
    # generation_config.json goes before config.json, as in generate; what ends a framed text comes first
    tokens.post_processor = processors.TemplateProcessing(
        single="<|im_end|> $A <|endoftext|>", special_tokens=[("<|im_end|>", 2), ("<|endoftext|>", 0)]
    )
    files = {"generation_config.json": {"eos_token_id": [1, 0, 7, 9999]}}
    facts = facts_of(model, tmp_path / "c", tokens, files)
    assert [facts.get(f"tokenizer.ggml.{name}_token_id") for name in names] == [2, 0, 1, 7, 0]
    assert [facts[f"tokenizer.ggml.add_{name}_token"] for name in ("bos", "eos")] == [True, True]
    with pytest.warns(UserWarning, match=r"three tokens that end a text, so \[7\] are left out"):
        facts_of(model, tmp_path / "d", tokens, {"generation_config.json": {"eos_token_id": [1, 0, 5, 7]}})


def test_the_chat_template_comes_along_from_either_place(tmp_path):
    tokens = byte_level()
    model = tiny_model(vocab_size=tokens.get_vocab_size())
    assert facts_of(model, tmp_path / "a", tokens)["tokenizer.chat_template"] == TEMPLATE
    named = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": "tools"}]
    facts = facts_of(model, tmp_path / "b", tokens, {"tokenizer_config.json": {"chat_template": named}})
    assert facts["tokenizer.chat_template"] == "plain" and facts["tokenizer.chat_template.tool_use"] == "tools"
    # as in transformers, the file of its own goes first
    files = {"tokenizer_config.json": {"chat_template": "inside"}, "chat_template.jinja": "beside"}
    assert facts_of(model, tmp_path / "c", tokens, files)["tokenizer.chat_template"] == "beside"
    facts = facts_of(model, tmp_path / "d", tokens, {"tokenizer_config.json": {"chat_template": None}})
    assert not [name for name in facts if "chat_template" in name]


CASES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTES = pre.ByteLevel(add_prefix_space=False, use_regex=False)
NAMED = {  # what splits texts; whether a whole piece goes before its merges
    "gpt-2": (pre.ByteLevel(add_prefix_space=False), False),
    "smollm": (pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]), False),
    "qwen2": (pre.Sequence([pre.Split(Regex(CASES % ""), "isolated"), BYTES]), False),
    "dbrx": (pre.Sequence([pre.Split(Regex(CASES % "{1,3}"), "isolated"), BYTES]), False),
    "llama-bpe": (pre.Sequence([pre.Split(Regex(CASES % "{1,3}"), "isolated"), BYTES]), True),
}


@pytest.mark.parametrize("name", NAMED)
def test_llama_cpps_name_of_a_split_is_found(tmp_path, name):
    split, ignore_merges = NAMED[name]
    tokens = byte_level(split, ignore_merges=ignore_merges)
    assert facts_of(tiny_model(vocab_size=400), tmp_path / "a", tokens)["tokenizer.ggml.pre"] == name


def test_text_that_transformers_normalizes_is_said(tmp_path):
    tokens = byte_level(NAMED["qwen2"][0])
    tokens.normalizer = normalizers.NFC()
    with pytest.warns(UserWarning, match="llama.cpp does not normalize text to NFC"):
        assert facts_of(tiny_model(vocab_size=400), tmp_path / "a", tokens)["tokenizer.ggml.pre"] == "qwen2"


def _with(change):
    tokens = byte_level()
    return change(tokens) or tokens


def _changed(**model):
    stored = json.loads(byte_level().to_str())
    stored["model"] |= model
    return Tokenizer.from_str(json.dumps(stored))


UNLIKE = {
    "WordLevel": (lambda: Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), "it is a WordLevel"),
    "Unigram": (lambda: Tokenizer(models.Unigram([("a", -1.0)], unk_id=0)), "it is a Unigram"),
    "byte fallback": (lambda: _changed(byte_fallback=True), "it sets byte_fallback"),
    "suffix": (lambda: _changed(end_of_word_suffix="</w>", merges=[]), "it sets end_of_word_suffix"),
    "dropout": (lambda: _changed(dropout=0.1), "it sets dropout"),
    "prefix space": (lambda: byte_level(pre.ByteLevel(add_prefix_space=True)), "pre_tokenizer has no name there"),
    "whole pieces": (lambda: _changed(ignore_merges=True), "pre_tokenizer has no name there"),
    "other regex": (
        lambda: byte_level(pre.Sequence([pre.Split(Regex(r"\w+"), "isolated"), BYTES])),
        "pre_tokenizer has no name there",
    ),
    "removed": (
        lambda: byte_level(pre.Sequence([pre.Split(Regex(CASES % ""), "removed"), BYTES])),
        "pre_tokenizer has no name there",
    ),
    "inverted": (
        lambda: byte_level(pre.Sequence([pre.Split(Regex(CASES % ""), "isolated", invert=True), BYTES])),
        "pre_tokenizer has no name there",
    ),
    "digits together": (
        lambda: byte_level(pre.Sequence([pre.Digits(), pre.ByteLevel(add_prefix_space=False)])),
        "pre_tokenizer has no name there",
    ),
    "no split": (lambda: byte_level(BYTES), "pre_tokenizer has no name there"),
    "split after bytes": (lambda: byte_level(pre.Sequence([BYTES, NAMED["qwen2"][0]])), "has no name there"),
    "lowercase": (lambda: _with(lambda t: setattr(t, "normalizer", normalizers.Lowercase())), "it normalizes text"),
    "unknown": (
        lambda: _changed(unk_token="a", vocab={"a": 0, "b": 1, "ab": 2}, merges=[["a", "b"]]),
        "it has a token for unknown bytes",
    ),
    "no merges": (lambda: _changed(merges=[]), "it has no merges"),
    "spaces": (lambda: _with(lambda t: t.add_tokens([AddedToken("<a>", lstrip=True)]) and None), "takes spaces along"),
    "words": (lambda: _with(lambda t: t.add_tokens([AddedToken("a", single_word=True)]) and None), "whole words only"),
    "two before": (
        lambda: _with(
            lambda t: setattr(
                t,
                "post_processor",
                processors.TemplateProcessing(single="<|im_end|> <|im_end|> $A", special_tokens=[("<|im_end|>", 2)]),
            )
        ),
        r"it sets \[2, 2\] before a text, \[\] behind",
    ),
    "no end behind": (
        lambda: _with(
            lambda t: setattr(
                t,
                "post_processor",
                processors.TemplateProcessing(single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]),
            )
        ),
        r"it sets \[\] before a text, \[0\] behind",
    ),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_a_tokenizer_that_llama_cpp_reads_in_another_way_is_left_out_with_the_reason(tmp_path, name):
    make, reason = UNLIKE[name]
    tokens = make()
    with pytest.warns(UserWarning, match=f"token ids only, no text: llama.cpp has no such tokenizer: .*{reason}"):
        facts = facts_of(tiny_model(vocab_size=400), tmp_path / "a", tokens)
    assert facts["tokenizer.ggml.model"] == "none" and "tokenizer.ggml.tokens" not in facts


def test_two_texts_of_one_id_have_no_place_in_the_file(tmp_path):
    tokens = byte_level()
    model = json.loads(tokens.to_str())["model"]
    model["vocab"]["zz"] = model["vocab"]["t"]
    with pytest.warns(UserWarning, match="two of its tokens share an id"):
        facts_of(tiny_model(vocab_size=400), tmp_path / "a", tokens, {"tokenizer.json": {"model": model}})


def test_without_a_tokenizer_the_file_takes_ids(tmp_path):
    folder = export(tiny_model(), tmp_path / "m")
    with pytest.warns(UserWarning, match="there is no tokenizer in the folder"):
        facts, _ = read_gguf(write_gguf(folder, tmp_path / "a.gguf"))
    assert facts["tokenizer.ggml.model"] == "none"


def test_a_tokenizer_of_another_model_or_damaged_is_refused(tmp_path):
    folder = export(tiny_model(), tmp_path / "m")  # 61 tokens
    (folder / "tokenizer.json").write_text(byte_level().to_str())
    with pytest.raises(ValueError, match=r"has a token of id 299 and the model's vocab_size is 61"):
        write_gguf(folder, tmp_path / "a.gguf")
    (folder / "tokenizer.json").write_text('{"model": 3')
    with pytest.raises(ValueError, match="m holds no tokenizer that can be read"):
        write_gguf(folder, tmp_path / "a.gguf")
    assert not (tmp_path / "a.gguf").exists()


def test_code_beside_a_model_is_not_run(tmp_path, monkeypatch):
    folder = export(tiny_model(vocab_size=400), tmp_path / "m", tokenizer=write_tokenizer(tmp_path / "t"))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass")
    config = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nobody is asked"))
    with pytest.raises(ValueError, match="holds no tokenizer that can be read"):
        write_gguf(folder, tmp_path / "a.gguf")
    assert not (tmp_path / "ran").exists()


# The file


def test_a_file_appears_when_it_is_complete_and_a_link_stays(checkpoint, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.gguf", tmp_path / "link.gguf"
    real.write_text("before")
    link.symlink_to(real)
    narrow = export(tiny_model(), tmp_path / "narrow")
    with (
        pytest.warns(UserWarning),
        pytest.raises(ValueError, match=r"32 numbers of a row at once, and blk\.0\.ffn_down\.weight has 48; use F32"),
    ):
        write_gguf(narrow, link, "Q8_0")
    assert real.read_text() == "before" and [entry.name for entry in real.parent.iterdir()] == ["real.gguf"]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # when half of it is written
        patch.setattr(gguf.GGUFWriter, "write_tensors_to_file", MagicMock(side_effect=KeyboardInterrupt))
        written(checkpoint, link)
    assert real.read_text() == "before" and [entry.name for entry in real.parent.iterdir()] == ["real.gguf"]
    written(checkpoint, link)
    assert link.is_symlink() and real.read_bytes()[:4] == b"GGUF"
    assert [entry.name for entry in real.parent.iterdir()] == ["real.gguf"]


def test_a_scale_beyond_float16_is_refused(tmp_path):
    model = tiny_model(**WIDE)
    model.model.layers[0].mlp.up_proj.weight.data[0, 0] = 1e9
    path = save_checkpoint(model, tmp_path / "m.safetensors")
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=r"float16, and blk\.0\.ffn_up\.weight has numbers"):
        write_gguf(path, tmp_path / "m.gguf", "Q8_0")


WRONG = {
    "no folder": (lambda tmp: ("model", tmp / "none" / "a.gguf"), "there is no folder .*none to save a.gguf in"),
    "a folder": (lambda tmp: ("model", tmp / "b.gguf"), "is a folder, so no file can be saved there"),
    "a name": (lambda tmp: ("model", tmp / "a.bin"), "must end in .gguf, got 'a.bin'"),
    "no model": (lambda tmp: (str(tmp / "nothing"), tmp / "a.gguf"), "nothing"),
    "no weights": (lambda tmp: (str(tmp / "b.gguf"), tmp / "a.gguf"), "holds no weights"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_command_says_in_a_sentence_what_is_wrong(checkpoint, tmp_path, capsys, name):
    (tmp_path / "b.gguf").mkdir()
    (folder, file), sentence = WRONG[name][0](tmp_path), WRONG[name][1]
    with pytest.raises(SystemExit) as ended:
        main([str(checkpoint) if folder == "model" else folder, str(file)])
    captured = capsys.readouterr()
    assert ended.value.code == 2 and not captured.out
    assert re.fullmatch(f".*{sentence}.*\n", captured.err), captured.err


def test_an_unknown_precision_is_refused(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="precision must be 'F32' or 'Q8_0', got 'Q4_0'"):
        write_gguf(checkpoint, tmp_path / "a.gguf", "Q4_0")


def test_the_command_writes_the_same_file_and_says_what_is_left_out(checkpoint, tmp_path, capsys):
    main([str(checkpoint), str(tmp_path / "a.gguf"), "--precision", "Q8_0"])
    captured = capsys.readouterr()
    assert captured.out.strip() == str(tmp_path / "a.gguf")
    assert captured.err.startswith("the file takes token ids only, no text: ") and captured.err.count("\n") == 1
    written(checkpoint, tmp_path / "b.gguf", "Q8_0")
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()


# llama.cpp itself

YARN = {"max_position_embeddings": 512}
COMPARED = {
    "Llama": {},
    "Llama, untied": {"tie_word_embeddings": False},
    "Llama with YaRN": {**YARN, "rope_scaling": RopeScaling(4.0, 32)},
    "Llama with YaRN, factor 1": {**YARN, "rope_scaling": RopeScaling(1.0, 32, attention_factor=1.3)},
    "Qwen3": {"kind": "minimind3"},
    "Qwen3 with YaRN": {**YARN, "kind": "minimind3", "rope_scaling": RopeScaling(4.0, 32)},
    "Qwen3 with MiniMind-3's YaRN": {
        **YARN,
        "kind": "minimind3",
        "rope_scaling": RopeScaling(16.0, 32, attention_factor=1.0),
    },
    "Qwen3 with wide heads": {"kind": "minimind3", "head_dim": 24, "tie_word_embeddings": False},
    "mixture, one expert": {"kind": "minimind3_moe"},
    "mixture, two experts": {**MIXTURE, "tie_word_embeddings": False},
    "mixture, all experts": {"kind": "minimind3_moe", "num_experts_per_tok": 4, "norm_topk_prob": False},
    "mixture with YaRN": {**MIXTURE, **YARN, "rope_scaling": RopeScaling(8.0, 32)},
}


def ask_llama_cpp(questions):
    """The answers of tests/llama_cpp_reader.py, in the environment of the benchmark's engines."""
    python = ROOT / PYTHON
    if not python.is_file() or subprocess.run([python, "-c", "import llama_cpp"], capture_output=True).returncode:
        pytest.skip("llama-cpp-python is not installed: `make engines` compiles it")
    script = ROOT / "tests" / "llama_cpp_reader.py"
    answer = subprocess.run([python, script], input=json.dumps(questions), capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-3000:]
    return json.loads(answer.stdout)


@pytest.mark.long
def test_llama_cpp_computes_the_same_logits_and_writes_the_same_tokens(tmp_path):
    ids = token_ids(1, 200)
    questions, expected = [], []
    for number, changes in enumerate(COMPARED.values()):
        model = talkative_model(**{"max_position_embeddings": 256, **changes})
        folder = export(model, tmp_path / str(number))
        written(folder, tmp_path / f"{number}.gguf")
        questions.append({"file": str(tmp_path / f"{number}.gguf"), "ids": ids[0].tolist(), "new": 20})
        with torch.no_grad():
            text = ids
            for _ in range(20):
                text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], 1)
            expected.append((model(ids).logits[0], text[0, 200:].tolist()))
    assert len({token for _, new in expected for token in new}) > 10
    for name, (logits, new), answer in zip(COMPARED, expected, ask_llama_cpp(questions), strict=True):
        apart = (torch.tensor(answer["logits"]) - logits).abs().max() / logits.abs().max()
        print(f"{name}: {apart:.1e} of the largest logit")
        assert apart < 1e-5, name
        assert answer["new"] == new, name


MARKS = [
    "don't",
    "I'LL",
    " 'S",
    "<name>",
    "<|end|>",
    "<|im_end|>",
    "我爱编程",
    "  \n",
    "\r\n",
    "12345",
    "Straße",
    "e\u0301",
]
LETTERS = "\n\t\r'sStTé中。，!?._<>| \u3000\u00a0\u200bⅣ²٣१😀ſK\u1e9e\x85\x0b\x1c\u2028\ufeff0123456789"


def strange_text(draw):
    """Texts at whose edges two readers of one regular expression could disagree."""
    parts = []
    for _ in range(draw.randint(1, 12)):
        anything = chr(draw.choice([draw.randrange(1, 0xD800), draw.randrange(0xE000, 0x30000)]))
        parts.append(draw.choice([draw.choice(LETTERS), draw.choice(LETTERS), draw.choice(MARKS), " ", anything]))
    return "".join(parts)


@pytest.mark.long
def test_llama_cpp_makes_the_same_tokens(tmp_path):
    draw, questions, expected = random.Random(0), [], []
    prose = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")]
    for name, (split, ignore_merges) in NAMED.items():
        tokens = byte_level(split, texts=prose, ignore_merges=ignore_merges)
        tokens.add_tokens(["<name>"])
        tokens.add_special_tokens(["<|end|>"])
        if name == "dbrx":
            tokens.post_processor = processors.TemplateProcessing(
                single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", 1), ("<|im_end|>", 2)]
            )
        facts_of(tiny_model(vocab_size=tokens.get_vocab_size() + 9), tmp_path / name, tokens)
        texts = [strange_text(draw) for _ in range(1000)] + ["", *prose]
        questions.append({"file": str(tmp_path / name / "model.gguf"), "texts": texts})
        tokenizer = AutoTokenizer.from_pretrained(tmp_path / name / "model")
        expected.append([tokenizer(text)["input_ids"] for text in texts])
    for question, ids, answer in zip(questions, expected, ask_llama_cpp(questions), strict=True):
        assert {1, 2} & set(answer["ends"]) == {2}
        for text, ours, theirs in zip(question["texts"], ids, answer["ids"], strict=True):
            assert theirs == ours, ascii(text)
