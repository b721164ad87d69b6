"""One file for llama.cpp and Ollama: a Llama, Qwen3 or Qwen3-MoE as GGUF, which llama.cpp's own library writes.

    python -m minimind_edu.hf.gguf FOLDER FILE [--precision Q8_0]

The facts are chosen so that llama.cpp computes the same; what it cannot compute is refused. Q8_0 holds 32 numbers in 34
bytes: a float16 scale d, and 32 int8 that are multiplied by it.
"""

import argparse
import contextlib
import json
import math
import os
import re
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gguf import MODEL_ARCH, GGMLQuantizationType, GGUFValueType, GGUFWriter, TokenType, get_tensor_name_map
from gguf.quants import quantize
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoTokenizer, PretrainedConfig, PreTrainedTokenizerFast

from minimind_edu.hf.counterpart import counterpart_config
from minimind_edu.model.config import MiniMindConfig, tokens_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope_frequencies import yarn_correction_range
from minimind_edu.validation import check_choice
from minimind_edu.weights.checkpoints import from_checkpoint
from minimind_edu.weights.hub import as_path
from minimind_edu.weights.writing import file_to_write, replacing

PRECISIONS = ("F32", "Q8_0")
_TYPES = {str: GGUFValueType.STRING, bool: GGUFValueType.BOOL, int: GGUFValueType.UINT32,
          float: GGUFValueType.FLOAT32, list: GGUFValueType.ARRAY}  # fmt: skip

# What splits a text before its pieces are merged, and whether a whole piece goes before its merges: llama.cpp's names.
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LATER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {
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
    check_choice("precision", precision, PRECISIONS)
    checkpoint, path = as_path(folder), as_path(file)
    if path.suffix != ".gguf":
        raise ValueError(f"a GGUF file's name must end in .gguf, got {path.name!r}")
    file_to_write(path)
    model = from_checkpoint(checkpoint)
    twin = counterpart_config(model.config)
    architecture = twin.model_type.replace("_", "")  # qwen3_moe is qwen3moe there
    facts = {f"{architecture}.{name}": value for name, value in _facts(model.config).items()}
    facts |= _tokenizer(checkpoint if checkpoint.is_dir() else checkpoint.parent, twin)
    with replacing(path) as partial, contextlib.closing(GGUFWriter(partial, architecture)) as writer:
        for name, value in facts.items():
            writer.add_key_value(name, value, _TYPES[type(value)])
        for name, values in _tensors(model, architecture).items():
            # with a rounded router other experts would be chosen
            kind = GGMLQuantizationType["F32" if values.ndim == 1 or "ffn_gate_inp" in name else precision]
            writer.add_tensor(name, _quantized(name, values, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    return path


def _quantized(name: str, values: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
    if kind == GGMLQuantizationType.Q8_0:
        if values.shape[-1] % 32:
            raise ValueError(f"Q8_0 takes 32 numbers of a row at once, and {name} has {values.shape[-1]}; use F32")
        if np.abs(values).max() / 127 > np.finfo(np.float16).max:
            raise ValueError(f"Q8_0 holds its scales in float16, and {name} has numbers beyond it; use F32")
    return quantize(values, kind)


def _facts(config: MiniMindConfig) -> dict[str, Any]:
    """What llama.cpp must know of the model."""
    return {
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
        **_yarn(config),
        **(_experts(config) if config.use_moe else {}),
    }


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
    counts = {"expert_count": config.num_experts, "expert_used_count": config.num_experts_per_tok}
    return counts | {"expert_feed_forward_length": config.moe_intermediate_size}


def _tokenizer(folder: Path, config: PretrainedConfig) -> dict[str, Any]:
    """The tokens of a byte-level BPE, in which order they are merged, and what stands around a text."""
    if (found := _read_tokenizer(folder, config)) is None:
        return _ids_only("there is no tokenizer in the folder")
    tokenizer, stored, framed, bare = found
    ids = tokenizer.get_vocab()
    model, added = stored["model"], {token["content"]: token for token in stored["added_tokens"]}
    split = _SPLITS.get((_patterns(stored["pre_tokenizer"]), model.get("ignore_merges", False)))
    ends = list(tokens_of(config.eos_token_id))
    place = next(n for n in range(len(framed) + 1) if framed[n : n + len(bare)] == bare)
    before, after = framed[:place], framed[place + len(bare) :]
    flags = ("byte_fallback", "dropout", "continuing_subword_prefix", "end_of_word_suffix")
    unlike = {  # what llama.cpp would read otherwise
        f"it is a {model['type']}": model["type"] != "BPE",
        f"it sets {', '.join(flag for flag in flags if model.get(flag))}": any(map(model.get, flags)),
        "its pre_tokenizer has no name there": split is None,
        "it normalizes text": stored["normalizer"] not in (None, {"type": "NFC"}),
        "it has a token for unknown bytes": model.get("unk_token") and not ids.keys() >= set(ByteLevel.alphabet()),
        "it has no merges": not model.get("merges"),
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
        warnings.warn("llama.cpp does not normalize text to NFC, as this tokenizer does; give it that", stacklevel=3)
    ends = after + [token for token in ends if token not in after]
    if len(ends) > 3:
        warnings.warn(f"a GGUF file names three tokens that end a text, so {ends[3:]} are left out", stacklevel=3)
    names = dict(zip(("eos", "eot", "eom"), ends, strict=False))
    names |= {"bos": next(iter(before), config.bos_token_id), "padding": tokenizer.pad_token_id}
    # llama.cpp wants a text for each row of the embedding, and no two alike
    mark = "[PAD"
    while any(text.startswith(mark) for text in ids):
        mark = "[" + mark
    texts = [f"{mark}{token}]" for token in range(config.vocab_size)]
    kinds = [int(TokenType.UNUSED)] * config.vocab_size
    for text, token in ids.items():
        kind = TokenType.CONTROL if added.get(text, {}).get("special") else TokenType.USER_DEFINED
        texts[token], kinds[token] = text, int(kind if text in added else TokenType.NORMAL)
    templates = tokenizer.chat_template or {}  # one, or several by their names
    templates = {"default": templates} if isinstance(templates, str) else templates
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": split,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.add_bos_token": bool(before),
        "tokenizer.ggml.add_eos_token": bool(after),
        **{f"tokenizer.ggml.{name}_token_id": token for name, token in names.items() if token in range(len(texts))},
        **{f"tokenizer.chat_template.{name}".removesuffix(".default"): text for name, text in templates.items()},
    }


def _read_tokenizer(folder: Path, config: PretrainedConfig) -> tuple[Any, Any, list[int], list[int]] | None:
    """The tokenizer that transformers finds, its file's content, a text's ids with what frames it, and without.

    None where there is no file of one. No code of a folder is run.
    """
    stated = (folder / "tokenizer_config.json").is_file()
    if not stated and not (folder / "tokenizer.json").is_file():
        return None
    # without a word on its class, AutoTokenizer would guess from the model's type
    kind = AutoTokenizer if stated else PreTrainedTokenizerFast
    try:
        tokenizer = kind.from_pretrained(folder, config=config, trust_remote_code=False, local_files_only=True)
        stored = json.loads(tokenizer.backend_tokenizer.to_str())
        return tokenizer, stored, *(tokenizer("a", add_special_tokens=frame)["input_ids"] for frame in (True, False))
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


def _ids_only(reason: str) -> dict[str, Any]:
    warnings.warn(f"the file takes token ids only, no text: {reason}", stacklevel=4)
    return {"tokenizer.ggml.model": "none"}


def _tensors(model: MiniMindForCausalLM, architecture: str) -> dict[str, np.ndarray]:
    """In float32 under llama.cpp's names, a layer's experts as one tensor `[N, I, E]`. Tied, one matrix is both."""
    names = get_tensor_name_map(MODEL_ARCH[architecture.upper()], model.config.num_hidden_layers)
    renamed: dict[str, list[np.ndarray]] = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinity, so no model can be written; was training stable?")
        if architecture == "llama" and re.search(r"[qk]_proj", name):  # RoPE's pairs: (i, i + D/2) to (2i, 2i + 1)
            heads = values.reshape(-1, 2, model.config.head_dim // 2, model.config.hidden_size)  # [H, 2, D/2, E]
            values = heads.swapaxes(1, 2).reshape(values.shape)
        new = names.get_name(re.sub(r"experts\.\d+", "experts", name), (".weight",))
        renamed.setdefault(str(new), []).append(values)
    return {name: np.stack(rows) if "_exps" in name else rows[0] for name, rows in renamed.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="what hf.export has written")
    parser.add_argument("file", help="where to, such as my-model.gguf")
    parser.add_argument("--precision", choices=PRECISIONS, default="F32")
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
