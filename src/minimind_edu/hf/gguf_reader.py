"""A model out of llama.cpp's one file, by llama.cpp's own library of its format: what gguf.py writes, and others.

The facts of a file become a MiniMindConfig; what no config here says is refused by name. Rounded matrices are unrounded
by the library, to float32. The tokenizer in the file is left where it is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import MODEL_ARCH, GGUFReader, get_tensor_name_map
from gguf.quants import dequantize
from torch import Tensor

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.weights.files import reading
from minimind_edu.weights.without_storage import without_storage

ARCHITECTURES = ("llama", "qwen3", "qwen3moe")
_KNOWN = frozenset(  # facts that are used, or change no logit
    "vocab_size context_length embedding_length block_count feed_forward_length expert_feed_forward_length "
    "attention.head_count attention.head_count_kv attention.key_length attention.value_length "
    "attention.layer_norm_rms_epsilon rope.dimension_count rope.freq_base expert_count expert_used_count "
    "rope.scaling.type rope.scaling.factor rope.scaling.original_context_length rope.scaling.attn_factor "
    "rope.scaling.finetuned".split()
)


@dataclass(frozen=True)
class GGUFModel:
    """What a file holds."""

    model: MiniMindForCausalLM  # float32, in eval mode
    kinds: tuple[str, ...]  # how its matrices are stored, such as F32 or Q8_0
    architecture: str


def read_gguf(path: Path) -> GGUFModel:
    """Read a Llama, Qwen3 or Qwen3-MoE.

    Raises:
        ValueError: for a file that is damaged, another architecture, a fact that is not computed here, or tensors that
            are missing or none of the model's.
    """
    with reading(path):
        reader = GGUFReader(path)
        facts = {name: field.contents() for name, field in reader.fields.items()}
    architecture = facts.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise ValueError(f"{path} is of the architecture {architecture!r}, and {', '.join(ARCHITECTURES)} are read")
    prefix = f"{architecture}."
    stated = {name.removeprefix(prefix): value for name, value in facts.items() if name.startswith(prefix)}
    if unknown := sorted(stated.keys() - _KNOWN):
        raise ValueError(f"{path} states {prefix}{unknown[0]}={stated[unknown[0]]!r}, whose meaning is not known here")
    found = {tensor.name: tensor for tensor in reader.tensors}
    try:
        config = _config(architecture, stated, found)
        model, used = _filled(config, architecture, found)
    except KeyError as missing:
        raise ValueError(f"{path} lacks {missing.args[0]}, which a model of this architecture has") from missing
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if strange := sorted(found.keys() - used):
        raise ValueError(f"{path} holds {strange[0]} and {len(strange) - 1} more, which are none of this model's")
    kinds = {tensor.tensor_type.name for tensor in found.values() if len(tensor.shape) > 1}
    return GGUFModel(model.eval(), tuple(sorted(kinds)), architecture)


def _config(architecture: str, facts: Mapping[str, Any], found: Mapping[str, Any]) -> MiniMindConfig:
    heads, width = facts["attention.head_count"], facts["embedding_length"]
    head_dim = facts.get("attention.key_length", facts.get("rope.dimension_count", width // heads))
    if {facts.get(name, head_dim) for name in ("attention.value_length", "rope.dimension_count")} != {head_dim}:
        raise ValueError("its heads have keys, values and rotated parts of different widths, which no MiniMind has")
    mixture = architecture == "qwen3moe"
    values: dict[str, Any] = {
        "vocab_size": int(found["token_embd.weight"].shape[1]),
        "hidden_size": width,
        "num_hidden_layers": facts["block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": facts.get("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": facts["context_length"],
        "rope_theta": facts.get("rope.freq_base", 1e4),
        "rms_norm_eps": facts["attention.layer_norm_rms_epsilon"],
        "use_qk_norm": architecture != "llama",
        "tie_word_embeddings": "output.weight" not in found,
        "rope_scaling": _scaling(facts),
        "use_moe": mixture,
        "intermediate_size": facts.get("feed_forward_length") or None,
    }
    if mixture:
        values |= {
            "num_experts": facts["expert_count"],
            "num_experts_per_tok": facts["expert_used_count"],
            "moe_intermediate_size": facts["expert_feed_forward_length"],
            "num_shared_experts": 0,
            "norm_topk_prob": True,  # as llama.cpp always does for this architecture
        }
    return MiniMindConfig(**values)


def _scaling(facts: Mapping[str, Any]) -> RopeScaling | None:
    kind = facts.get("rope.scaling.type", "none")
    if kind == "none":
        return None
    if kind != "yarn":
        raise ValueError(f"it asks for RoPE scaling of type {kind!r}; none and yarn are computed here")
    factor = facts["rope.scaling.factor"]
    # llama.cpp multiplies the paper's value by this
    attention = facts.get("rope.scaling.attn_factor", 1.0) * (1 + 0.1 * float(np.log(factor)))
    return RopeScaling(factor, facts["rope.scaling.original_context_length"], attention_factor=attention, always=True)


def _filled(
    config: MiniMindConfig, architecture: str, found: Mapping[str, Any]
) -> tuple[MiniMindForCausalLM, set[str]]:
    """The model with its tensors, and which of the file's it has used."""
    model = without_storage(config)
    names = get_tensor_name_map(MODEL_ARCH[architecture.upper()], config.num_hidden_layers)
    state: dict[str, Tensor] = {}
    used: set[str] = set()
    for name in model.state_dict():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stored = str(names.get_name(re.sub(r"experts\.\d+", "experts", name), (".weight",)))
        used.add(stored)
        values = np.array(dequantize(found[stored].data, found[stored].tensor_type), dtype=np.float32)
        if expert := re.search(r"experts\.(\d+)", name):
            values = values[int(expert[1])]
        if architecture == "llama" and re.search(r"[qk]_proj", name):  # RoPE's pairs: (2i, 2i + 1) to (i, i + D/2)
            heads = values.reshape(-1, config.head_dim // 2, 2, config.hidden_size)
            values = heads.swapaxes(1, 2).reshape(values.shape)
        state[name] = torch.from_numpy(np.ascontiguousarray(values))
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, assign=True)
    return model, used
