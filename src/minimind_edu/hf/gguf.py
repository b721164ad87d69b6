"""One file for llama.cpp and Ollama: GGUF version 3, as far as a Llama, Qwen3 or Qwen3-MoE needs it.

    python -m minimind_edu.hf.gguf FOLDER FILE [--precision Q8_0]

    magic, version, how many tensors, how many facts
    facts      name, type, value: sizes of the model, its tokenizer
    tensors    name, dimensions (innermost first), type, where its bytes begin
    bytes      of all tensors, each beginning at a multiple of 32

Q8_0 holds 32 numbers in 34 bytes: a float16 scale d, and 32 int8 that are multiplied by it.
"""

import argparse
import json
import math
import os
import re
import struct
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoTokenizer, PretrainedConfig, PreTrainedTokenizerFast

from minimind_edu.config import MiniMindConfig, tokens_of
from minimind_edu.hf.counterpart import counterpart_config
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.rope_frequencies import yarn_correction_range
from minimind_edu.validation import check_choice
from minimind_edu.weights.checkpoints import from_checkpoint
from minimind_edu.weights.files import read_json
from minimind_edu.weights.hub import as_path

ALIGNMENT = BLOCK = 32
U32, I32, F32, BOOL, TEXT, LIST = 4, 5, 6, 7, 8, 9  # types of facts
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # types of tokens
TYPES = {"F32": 0, "Q8_0": 8}  # types of tensors
ARCHITECTURES = {"llama": "llama", "qwen3": "qwen3", "qwen3_moe": "qwen3moe"}  # transformers' names: llama.cpp's
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
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.gate_proj": "ffn_gate_exps",
    "mlp.experts.up_proj": "ffn_up_exps",
    "mlp.experts.down_proj": "ffn_down_exps",
}

# What splits a text before its pieces are merged, and whether a whole piece goes before its merges: llama.cpp's names.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LATER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPLITS = {
    ((_GPT2,), False): "gpt-2",
    ((r"\p{N}", _GPT2), False): "smollm",
    ((_LATER % "",), False): "qwen2",
    ((_LATER % "{1,3}",), False): "dbrx",
    ((_LATER % "{1,3}",), True): "llama-bpe",
}


def write_gguf(folder: str | os.PathLike[str], file: str | os.PathLike[str], precision: str = "F32") -> Path:
    """Write a Llama, Qwen3 or Qwen3-MoE as one file: matrices in `precision`, F32 or Q8_0, norms and routers in F32.

    A byte-level BPE tokenizer, such as MiniMind's, goes along with its chat templates, if llama.cpp makes the same
    tokens. With any other, or none, the file takes token ids only, and a warning says why. The file appears only when
    it is complete; a link stays a link.

    Args:
        folder: what `hf.export` or `save_pretrained` wrote, or anything else that `from_checkpoint` reads.
        file: a name that ends in .gguf, in a folder that exists.

    Raises:
        FileNotFoundError, IsADirectoryError: if there is nothing to read, or no folder to write in.
        ValueError: if llama.cpp has no model that computes the same, a number is not finite, the tokenizer cannot be
            read or is larger than the model, or a matrix is no multiple of 32 wide and precision is Q8_0.
    """
    check_choice("precision", precision, tuple(TYPES))
    checkpoint, path = as_path(folder), as_path(file)
    target = Path(os.path.realpath(path))
    if path.suffix != ".gguf":
        raise ValueError(f"a GGUF file's name must end in .gguf, got {path.name!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} in; make it first")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder, so no file can be written there; give another name")
    model = from_checkpoint(checkpoint)
    twin = counterpart_config(model.config)
    facts = _facts(model.config, ARCHITECTURES[twin.model_type])
    facts |= _tokenizer(checkpoint if checkpoint.is_dir() else checkpoint.parent, twin)
    tensors = _tensors(model)
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(facts))
    head += b"".join(_fact(name, value) for name, value in facts.items())
    contents: list[bytes] = []
    for name, values in tensors.items():
        # with a rounded router other experts would be chosen
        kind = precision if values.ndim > 1 and "ffn_gate_inp" not in name else "F32"
        head += _text(name) + struct.pack(f"<I{values.ndim}Q", values.ndim, *reversed(values.shape))
        head += struct.pack("<IQ", TYPES[kind], sum(map(len, contents)))
        contents.append(_padded(ENCODERS[kind](values)))
    # on the same disk as the file, so that moving it into place is one step
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=target.parent) as scratch:
        partial = Path(scratch, "model.gguf")
        partial.write_bytes(b"".join([_padded(head), *contents]))
        partial.replace(target)
    return path


def q8_0(values: np.ndarray) -> bytes:
    """Blocks of 32 numbers: the scale is the largest absolute value / 127."""
    if values.shape[-1] % BLOCK:
        raise ValueError(f"Q8_0 takes {BLOCK} numbers of a row at once, and rows of {values.shape[-1]} cannot be split")
    blocks = values.reshape(-1, BLOCK)  # [blocks, 32]
    scales = np.abs(blocks).max(1, keepdims=True) / 127
    if scales.max(initial=0) > np.finfo(np.float16).max:
        raise ValueError(
            f"Q8_0 holds its scales in float16, and a number of {127 * scales.max():.3g} is beyond it; use F32"
        )
    numbers = np.rint(blocks / np.where(scales, scales, 1)).astype(np.int8)
    return np.hstack([scales.astype(np.float16).view(np.int8), numbers]).tobytes()


ENCODERS = {"F32": lambda values: values.astype(np.float32).tobytes(), "Q8_0": q8_0}


def _facts(config: MiniMindConfig, kind: str) -> dict[str, Any]:
    """What llama.cpp must know of the model."""
    sizes = {
        "vocab_size": config.vocab_size,
        "context_length": config.max_position_embeddings,
        "embedding_length": config.hidden_size,
        "block_count": config.num_hidden_layers,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.num_attention_heads,
        "attention.head_count_kv": config.num_key_value_heads,
        "attention.key_length": config.head_dim,
        "attention.value_length": config.head_dim,
        "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "rope.dimension_count": config.head_dim,
        "rope.freq_base": float(config.rope_theta),
    }
    sizes |= _yarn(config) | (_experts(config) if config.use_moe else {})
    return {"general.architecture": kind, **{f"{kind}.{name}": value for name, value in sizes.items()}}


def _yarn(config: MiniMindConfig) -> dict[str, Any]:
    scaling = config.rope_scaling
    if scaling is None or not scaling.starts_at(config.max_position_embeddings):
        return {}
    usual = replace(scaling, beta_fast=32.0, beta_slow=1.0)
    ramps = [yarn_correction_range(config.head_dim, config.rope_theta, given) for given in (scaling, usual)]
    if ramps[0] != ramps[1]:
        raise ValueError(
            f"llama.cpp has YaRN with beta_fast=32 and beta_slow=1 only, got {scaling.beta_fast} and "
            f"{scaling.beta_slow}, which slow other pairs down; no fact of a GGUF file changes them"
        )
    return {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": float(scaling.factor),
        "rope.scaling.original_context_length": scaling.original_max_position_embeddings,
        # llama.cpp multiplies this by the paper's value, whatever the file says
        "rope.scaling.attn_factor": scaling.table_factor / (1 + 0.1 * math.log(scaling.factor)),
    }


def _experts(config: MiniMindConfig) -> dict[str, Any]:
    if not config.norm_topk_prob and config.num_experts_per_tok < config.num_experts:
        raise ValueError(
            "llama.cpp's Qwen3-MoE always renormalizes the weights of the chosen experts, and this model has "
            f"norm_topk_prob=False with {config.num_experts_per_tok} of {config.num_experts} experts"
        )
    return {
        "expert_count": config.num_experts,
        "expert_used_count": config.num_experts_per_tok,
        "expert_feed_forward_length": config.moe_intermediate_size,
    }


def _tokenizer(folder: Path, config: PretrainedConfig) -> dict[str, Any]:
    """The tokens of a byte-level BPE, in which order they are merged, and what stands around a text."""
    tokenizer = _read_tokenizer(folder, config)
    if tokenizer is None:
        return _ids_only("there is no tokenizer in the folder")
    stored, ids = json.loads(tokenizer.backend_tokenizer.to_str()), tokenizer.get_vocab()
    model, added = stored["model"], {token["content"]: token for token in stored["added_tokens"]}
    split = SPLITS.get((_patterns(stored["pre_tokenizer"]), model.get("ignore_merges", False)))
    path = folder / "generation_config.json"
    known = read_json(path) if path.is_file() else config.to_dict()
    ends = [token for token in tokens_of(known.get("eos_token_id")) if token < config.vocab_size]
    framed, bare = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (True, False))
    place = next(n for n in range(len(framed) + 1) if framed[n : n + len(bare)] == bare)
    before, after = framed[:place], framed[place + len(bare) :]
    flags = ("byte_fallback", "dropout", "continuing_subword_prefix", "end_of_word_suffix")
    unlike = {  # what llama.cpp would read otherwise
        f"it is a {model['type']}": model["type"] != "BPE",
        f"it sets {', '.join(flag for flag in flags if model.get(flag))}": any(map(model.get, flags)),
        "its pre_tokenizer has no name there": split is None,
        "it normalizes text": stored["normalizer"] not in (None, {"type": "NFC"}),
        "it has a token for unknown bytes": model.get("unk_token") and not ids.keys() >= set(ByteLevel.alphabet()),
        "two of its tokens share an id": len(set(ids.values())) < len(ids),
        "an added token takes spaces along, or whole words only": any(
            token[flag] for token in added.values() for flag in ("lstrip", "rstrip", "single_word")
        ),
        f"it sets {before} before a text, {after} behind": before[1:] or after not in ([], *([end] for end in ends)),
    }
    if reasons := [reason for reason, is_so in unlike.items() if is_so]:
        return _ids_only(f"llama.cpp has no such tokenizer: {', '.join(reasons)}")
    if max(ids.values(), default=0) >= config.vocab_size:
        raise ValueError(
            f"the tokenizer in {folder} has a token of id {max(ids.values())} and the model's vocab_size is "
            f"{config.vocab_size}; does the tokenizer belong to this model?"
        )
    if stored["normalizer"]:
        warnings.warn(
            "llama.cpp does not normalize text to NFC, as this tokenizer does: give it such text", stacklevel=3
        )
    ends = after + [token for token in ends if token not in after]
    if len(ends) > 3:
        warnings.warn(f"a GGUF file names three tokens that end a text, so {ends[3:]} are left out", stacklevel=3)
    names = dict(zip(("eos", "eot", "eom"), ends, strict=False))
    names |= {"bos": next(iter(before), known.get("bos_token_id")), "padding": tokenizer.pad_token_id}
    # llama.cpp wants a text for each row of the embedding, and no two alike
    texts = [f"[PAD{token}]" for token in range(config.vocab_size)]
    kinds = [UNUSED] * config.vocab_size
    for text, token in ids.items():
        texts[token] = text
        kinds[token] = (CONTROL if added[text]["special"] else USER_DEFINED) if text in added else NORMAL
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": split,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.add_bos_token": bool(before),
        "tokenizer.ggml.add_eos_token": bool(after),
        **{f"tokenizer.ggml.{name}_token_id": token for name, token in names.items() if token is not None},
        **_templates(tokenizer.chat_template),
    }


def _read_tokenizer(folder: Path, config: PretrainedConfig) -> Any:
    """The tokenizer that transformers finds, None where there is no file of one. No code of a folder is run."""
    stated = (folder / "tokenizer_config.json").is_file()
    if not stated and not (folder / "tokenizer.json").is_file():
        return None
    # without a word on its class, AutoTokenizer would guess from the model's type
    kind = AutoTokenizer if stated else PreTrainedTokenizerFast
    try:
        return kind.from_pretrained(folder, config=config, trust_remote_code=False, local_files_only=True)
    except Exception as error:  # for damaged files the libraries raise whatever their parsers run into
        raise ValueError(f"{folder} holds no tokenizer that can be read: {error}") from error


def _patterns(stored: dict[str, Any] | None) -> tuple[str, ...] | None:
    """The regular expressions by which a pre_tokenizer splits a text, one after the other; None: not by these alone."""
    parts, found = (stored or {}).get("pretokenizers", [stored]), []
    for part in parts:
        match part:
            case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}:
                found.append(pattern)
            case {"type": "Digits", "individual_digits": True}:
                found.append(r"\p{N}")
            case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": by_regex} if part is parts[-1]:
                return (*found, _GPT2) if by_regex else tuple(found)
            case _:
                return None
    return None


def _templates(stored: str | dict[str, str] | None) -> dict[str, Any]:
    """A chat template, or several by their names."""
    named = {"default": stored} if isinstance(stored, str) else stored or {}
    others = [name for name in named if name != "default"]
    facts = {f"tokenizer.chat_template.{name}": text for name, text in named.items()}
    if others:
        facts["tokenizer.chat_templates"] = others
    if "default" in named:
        facts["tokenizer.chat_template"] = facts.pop("tokenizer.chat_template.default")
    return facts


def _ids_only(reason: str) -> dict[str, Any]:
    warnings.warn(f"the file takes token ids only, no text: {reason}", stacklevel=4)
    return {"tokenizer.ggml.model": "none"}


def _tensors(model: MiniMindForCausalLM) -> dict[str, np.ndarray]:
    """In float32 under llama.cpp's names, a layer's experts as one tensor [N, I, E]; tied, the embedding stands alone."""
    renamed: dict[str, Any] = {}
    for name, tensor in model.state_dict().items():
        layer, part = re.findall(r"^(?:model\.layers\.(\d+)\.)?(.+)\.weight$", name)[0]
        if part == "lm_head" and model.config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinity, so no model can be written; was training stable?")
        if part.endswith(("q_proj", "k_proj")) and not model.config.use_qk_norm:  # a Llama: RoPE's pairs side by side
            values = _interleaved(values, model.config.head_dim)
        new = f"blk.{layer}." * bool(layer) + NAMES[re.sub(r"experts\.\d+", "experts", part)] + ".weight"
        if ".experts." in name:
            renamed.setdefault(new, []).append(values)
        else:
            renamed[new] = values
    return {name: np.stack(values) if isinstance(values, list) else values for name, values in renamed.items()}


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
        bool: lambda: (BOOL, struct.pack("<?", value)),
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
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_: print(f"{message}.", file=sys.stderr)
        try:
            print(write_gguf(options.folder, options.file, options.precision))
        except (ValueError, OSError) as error:
            parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
