"""One file for llama.cpp and Ollama: GGUF version 3, as far as an exported Llama or Qwen3 needs it.

    python -m minimind_edu.hf.gguf FOLDER FILE [--precision Q8_0]

    magic, version, how many tensors, how many facts
    facts      name, type, value: sizes of the model, its tokenizer
    tensors    name, dimensions (innermost first), type, where its bytes begin
    bytes      of all tensors, each beginning at a multiple of 32

Q8_0 holds 32 numbers in 34 bytes: a float16 scale d, and 32 int8 that are multiplied by it.
"""

import argparse
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ALIGNMENT = BLOCK = 32
U32, I32, F32, TEXT, LIST = 4, 5, 6, 8, 9  # types of facts
TYPES = {"F32": 0, "Q8_0": 8}  # types of tensors
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
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
}


def write_gguf(folder: str | os.PathLike[str], file: str | os.PathLike[str], precision: str = "F32") -> Path:
    """Write what `hf.export` has written as one file: matrices in `precision`, F32 or Q8_0, norms in F32.

    A byte-level BPE tokenizer, such as MiniMind's, goes along; with any other, or none, the file takes token ids only.

    Raises:
        ValueError: if the folder is no Llama or Qwen3, or a matrix is no multiple of 32 wide and precision is Q8_0.
    """
    checkpoint, path = Path(folder), Path(file)
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] not in ("llama", "qwen3"):
        raise ValueError(f"only a dense Llama or Qwen3 can be written as GGUF here, got {config['model_type']!r}")
    tensors = _tensors(config, load_file(checkpoint / "model.safetensors"))
    types = {name: precision if values.ndim == 2 else "F32" for name, values in tensors.items()}
    contents = {name: ENCODERS[types[name]](values) for name, values in tensors.items()}
    facts = _facts(config) | _tokenizer(checkpoint)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(facts))
    head += b"".join(_fact(name, value) for name, value in facts.items())
    start = 0
    for name, values in tensors.items():
        head += _text(name) + struct.pack(f"<I{values.ndim}Q", values.ndim, *reversed(values.shape))
        head += struct.pack("<IQ", TYPES[types[name]], start)
        start += len(_padded(contents[name]))
    path.write_bytes(_padded(head) + b"".join(map(_padded, contents.values())))
    return path


def q8_0(values: np.ndarray) -> bytes:
    """Blocks of 32 numbers: the scale is the largest absolute value / 127."""
    if values.shape[-1] % BLOCK:
        raise ValueError(f"Q8_0 takes {BLOCK} numbers of a row at once, and rows of {values.shape[-1]} cannot be split")
    blocks = values.reshape(-1, BLOCK)  # [blocks, 32]
    scales = np.abs(blocks).max(1, keepdims=True) / 127
    numbers = np.rint(blocks / np.where(scales, scales, 1)).astype(np.int8)
    return np.hstack([scales.astype(np.float16).view(np.int8), numbers]).tobytes()


ENCODERS = {"F32": lambda values: values.astype(np.float32).tobytes(), "Q8_0": q8_0}


def _facts(config: dict[str, Any]) -> dict[str, Any]:
    """What llama.cpp must know of the model."""
    kind = config["model_type"]
    head_dim = config["head_dim"]
    sizes = {
        "vocab_size": config["vocab_size"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.dimension_count": head_dim,
        "rope.freq_base": float(config["rope_theta"]),
    }
    return {
        "general.architecture": kind,
        **{f"{kind}.{name}": value for name, value in sizes.items()},
    }


def _tokenizer(checkpoint: Path) -> dict[str, Any]:
    """The pieces of a byte-level BPE tokenizer, and in which order they are merged."""
    path = checkpoint / "tokenizer.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    model = stored.get("model", {})
    split = stored.get("pre_tokenizer") or {}
    if model.get("type") != "BPE" or split.get("type") != "ByteLevel" or split.get("add_prefix_space"):
        return {"tokenizer.ggml.model": "none"}
    added = {one["content"]: one["id"] for one in stored.get("added_tokens", []) if one["special"]}
    pieces = sorted(model["vocab"] | added, key=(model["vocab"] | added).get)
    merges = [one if isinstance(one, str) else " ".join(one) for one in model["merges"]]
    known = json.loads((checkpoint / "generation_config.json").read_text(encoding="utf-8"))
    ends = known.get("eos_token_id")
    ids = {"bos": known.get("bos_token_id"), "eos": ends[0] if isinstance(ends, list) else ends}
    template = checkpoint / "chat_template.jinja"
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": [3 if piece in added else 1 for piece in pieces],  # 3: controls, never text
        "tokenizer.ggml.merges": merges,
        **{f"tokenizer.ggml.{name}_token_id": value for name, value in ids.items() if value is not None},
        **({"tokenizer.chat_template": template.read_text(encoding="utf-8")} if template.is_file() else {}),
    }


def _tensors(config: dict[str, Any], weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Under llama.cpp's names, and for a Llama with RoPE's pairs beside each other."""
    renamed = {}
    for name, values in weights.items():
        parts = name.removesuffix(".weight").split(".")
        if parts[:2] == ["model", "layers"]:
            new = f"blk.{parts[2]}.{NAMES['.'.join(parts[3:])]}"
        else:
            new = NAMES[".".join(parts)]
        if config["model_type"] == "llama" and parts[-1] in ("q_proj", "k_proj"):
            values = _interleaved(values, config["head_dim"])
        renamed[f"{new}.weight"] = values
    return renamed


def _interleaved(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """From RoPE's pairs (i, i + D/2) to (2i, 2i + 1), within each head."""
    heads = rows.reshape(-1, 2, head_dim // 2, rows.shape[1])  # [H*D, E] -> [H, 2, D/2, E]
    return heads.swapaxes(1, 2).reshape(rows.shape)


def _fact(name: str, value: str | int | float | list[Any]) -> bytes:
    if isinstance(value, list):
        kind, items = (TEXT, map(_text, value)) if isinstance(value[0], str) else (I32, map(_whole, value))
        return _text(name) + struct.pack("<IIQ", LIST, kind, len(value)) + b"".join(items)
    kind, content = {
        str: lambda: (TEXT, _text(str(value))),
        int: lambda: (U32, struct.pack("<I", value)),
        float: lambda: (F32, struct.pack("<f", value)),
    }[type(value)]()
    return _text(name) + struct.pack("<I", kind) + content


def _whole(number: int) -> bytes:
    return struct.pack("<i", number)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % ALIGNMENT)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="what hf.export has written")
    parser.add_argument("file", help="where to, such as my-model.gguf")
    parser.add_argument("--precision", choices=list(TYPES), default="F32")
    options = parser.parse_args(arguments)
    print(write_gguf(options.folder, options.file, options.precision))


if __name__ == "__main__":
    main()
