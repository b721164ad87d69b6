"""One file for llama.cpp and Ollama: what is read back, independently of what wrote it, is the export."""

import io
import json
import struct

import numpy as np
import pytest
from model_builders import tiny_model
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from benchmarks.engines import ENGINES
from benchmarks.engines.checkpoint import write_checkpoint
from minimind_edu.hf import export
from minimind_edu.hf.gguf import main, q8_0, write_gguf
from minimind_edu.living import living_model


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A Llama of two heads that share one pair of keys and values, 32 wide; its tokenizer is a list of words."""
    model = tiny_model(hidden_size=32, intermediate_size=64, head_dim=16, vocab_size=64)
    return write_checkpoint(model, tmp_path_factory.mktemp("export") / "model")


def read_gguf(path):
    """Facts and tensors of a file, read independently of what wrote it: bytes in the order of the format's text."""
    data = io.BytesIO(path.read_bytes())

    def take(form):
        return struct.unpack("<" + form, data.read(struct.calcsize("<" + form)))

    def text():
        return data.read(take("Q")[0]).decode()

    magic, version, tensors, facts = take("4sIQQ")
    assert (magic, version) == (b"GGUF", 3)
    found = {}
    for _ in range(facts):
        name, (kind,) = text(), take("I")
        if kind == 9:
            items, count = take("IQ")
            found[name] = [text() if items == 8 else take({5: "i"}[items])[0] for _ in range(count)]
        else:
            found[name] = text() if kind == 8 else take({4: "I", 6: "f"}[kind])[0]
    heads = []
    for _ in range(tensors):
        name, (dims,) = text(), take("I")
        heads.append((name, take(f"{dims}Q")[::-1], *take("IQ")))
    start = -(-data.tell() // 32) * 32
    content = {}
    for name, shape, kind, offset in heads:
        assert offset % 32 == 0
        data.seek(start + offset)
        size = int(np.prod(shape))
        if kind == 0:
            values = np.frombuffer(data.read(4 * size), np.float32)
        else:
            blocks = np.frombuffer(data.read(34 * size // 32), [("d", "<f2"), ("q", "i1", 32)])
            values = blocks["d"][:, None].astype(np.float32) * blocks["q"]
        content[name] = values.reshape(shape)
    return found, content


def test_a_gguf_file_holds_the_export_with_rope_pairs_beside_each_other(checkpoint, tmp_path):
    facts, tensors = read_gguf(write_gguf(checkpoint, tmp_path / "a.gguf", "F32"))
    config = json.loads((checkpoint / "config.json").read_text())
    weights = load_file(checkpoint / "model.safetensors")
    assert facts["general.architecture"] == "llama" and facts["llama.vocab_size"] == 64
    assert facts["llama.attention.head_count_kv"] == config["num_key_value_heads"]
    assert facts["llama.rope.freq_base"] == pytest.approx(config["rope_theta"])
    assert len(tensors) == len(weights)
    assert np.array_equal(tensors["blk.1.ffn_down.weight"], weights["model.layers.1.mlp.down_proj.weight"])
    assert np.array_equal(tensors["token_embd.weight"], weights["model.embed_tokens.weight"])
    ours, theirs = weights["model.layers.0.self_attn.k_proj.weight"], tensors["blk.0.attn_k.weight"]
    assert np.array_equal(theirs[0], ours[0]) and np.array_equal(theirs[1], ours[8])
    assert np.array_equal(theirs[2], ours[1]) and np.array_equal(theirs[15], ours[15])


def test_a_model_with_normed_queries_keeps_its_pairs(tmp_path):
    exported = write_checkpoint(living_model(), tmp_path / "model")
    facts, tensors = read_gguf(write_gguf(exported, tmp_path / "a.gguf", "F32"))
    weights = load_file(exported / "model.safetensors")
    assert facts["general.architecture"] == "qwen3" and "blk.0.attn_q_norm.weight" in tensors
    assert np.array_equal(tensors["blk.0.attn_q.weight"], weights["model.layers.0.self_attn.q_proj.weight"])


def test_q8_0_is_off_by_half_a_step_at_most_and_leaves_norms_alone(checkpoint, tmp_path):
    exact = read_gguf(write_gguf(checkpoint, tmp_path / "a.gguf", "F32"))[1]
    path = write_gguf(checkpoint, tmp_path / "b.gguf", "Q8_0")
    rounded = read_gguf(path)[1]
    for name, values in exact.items():
        blocks = values.reshape(-1, min(32, values.size))
        steps = np.abs(blocks).max(1, keepdims=True) / 127
        apart = np.abs(rounded[name].reshape(blocks.shape) - blocks)
        # half a step, and what float16 takes from the scale
        assert (apart <= (0.5 + 127 / 2048) * steps).all(), name
        assert values.ndim == 2 or np.array_equal(rounded[name], values)
    matrices = sum(values.size for values in exact.values() if values.ndim == 2)
    assert path.stat().st_size < matrices * ENGINES["llama.cpp Q8_0"].bytes_per_weight + 8000


def test_a_row_that_cannot_be_split_into_blocks_is_refused():
    with pytest.raises(ValueError, match="32 numbers of a row at once, and rows of 48"):
        q8_0(np.ones((2, 48), np.float32))
    assert np.frombuffer(q8_0(np.zeros((1, 32), np.float32)), np.int8).any() == 0


def test_a_tokenizer_of_pieces_of_bytes_goes_along(tmp_path):
    """A tokenizer that reads nothing but the file makes the same ids."""
    marks = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=marks, initial_alphabet=alphabet, show_progress=False)
    tokens.train_from_iterator(["the cat sat on the mat"] * 3 + ["我爱编程"], trainer)
    (tmp_path / "tokenizer").mkdir()
    tokens.save(str(tmp_path / "tokenizer" / "tokenizer.json"))
    (tmp_path / "tokenizer" / "tokenizer_config.json").write_text('{"chat_template": null}')
    model = tiny_model(vocab_size=tokens.get_vocab_size())
    folder = export(model, tmp_path / "model", tokenizer=tmp_path / "tokenizer")

    facts, _ = read_gguf(write_gguf(folder, tmp_path / "a.gguf"))
    assert facts["tokenizer.ggml.model"] == "gpt2" and facts["tokenizer.ggml.eos_token_id"] == model.config.eos_token_id
    pieces = facts["tokenizer.ggml.tokens"]
    assert [kind for kind in facts["tokenizer.ggml.token_type"] if kind != 1] == [3] * len(marks)
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    again = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges))
    again.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for text in ("the cat sat", "mat, 编程!"):
        assert again.encode(text).ids == tokens.encode(text).ids


def test_without_such_a_tokenizer_the_file_takes_ids(checkpoint, tmp_path):
    assert read_gguf(write_gguf(checkpoint, tmp_path / "a.gguf"))[0]["tokenizer.ggml.model"] == "none"


def test_another_kind_of_model_is_refused(tmp_path):
    mixture = tiny_model(use_moe=True, use_qk_norm=True, num_shared_experts=0)
    folder = export(mixture, tmp_path / "mixture")
    with pytest.raises(ValueError, match="only a dense Llama or Qwen3 can be written as GGUF here, got 'qwen3_moe'"):
        write_gguf(folder, tmp_path / "a.gguf")


def test_the_command_writes_the_same_file(checkpoint, tmp_path, capsys):
    main([str(checkpoint), str(tmp_path / "a.gguf"), "--precision", "Q8_0"])
    assert capsys.readouterr().out.strip() == str(tmp_path / "a.gguf")
    assert (tmp_path / "a.gguf").read_bytes() == write_gguf(checkpoint, tmp_path / "b.gguf", "Q8_0").read_bytes()
