"""The config that a set of weights was made for, read off their names and shapes.

Shapes show every size but one: with QK-norm, q_norm shows the size of a head; without it, q_proj shows only the product
H * D, and a MiniMind has eight heads. What neither the shapes nor a config.json nor the caller says (`assumed`) is
taken from the preset of a generation: MiniMind3's if the weights have QK-norm, otherwise MiniMind2's.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from minimind_edu.model.config import MiniMindConfig, tokens_of
from minimind_edu.model.foreign import OF_TRANSFORMERS, check_ramp_of_minimind, reason_without_counterpart
from minimind_edu.model.upstream import weight_of_one_expert
from minimind_edu.validation import check_count
from minimind_edu.weights.config_json import values_of

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
_LAYER = "model.layers.0."
_QUERY, _KEY = f"{_LAYER}self_attn.q_proj.weight", f"{_LAYER}self_attn.k_proj.weight"
_MINIMIND_HEADS = 8
_DECIDE_THE_COUNTERPART = {"rope_scaling", "norm_placement", "num_shared_experts", "use_qk_norm"}
_UNSEEN = ("rope_theta", "rope_scaling", "rms_norm_eps", "max_position_embeddings")  # by names and shapes


def infer_config(
    weights: Mapping[str, Tensor],
    described: Mapping[str, Any] | None = None,
    generating: Mapping[str, Any] | None = None,
    **known: Any,
) -> MiniMindConfig:
    """The config for these weights.

    Args:
        weights: canonical names (`state_dicts.canonical`); the numbers are looked at for tying only.
        described: the content of a config.json; where it contradicts the shapes it is believed, so that the weights
            are then found not to fit.
        generating: the content of a generation_config.json beside it.
        known: fields of MiniMindConfig that you know; they go before everything else.

    Raises:
        ValueError: if the number of heads cannot be told, or config.json asks for what this package does not compute.
    """
    shown = sizes_shown(weights)
    generation = "minimind3" if shown["use_qk_norm"] else "minimind2"
    if generating is not None:  # transformers takes any number there, and no text ends with one that has no logit
        ends = generating.get("eos_token_id")
        kept = [end for end in tokens_of(ends) if not isinstance(end, int) or end in range(shown["vocab_size"])]
        generating = {**generating, "eos_token_id": kept if isinstance(ends, list) else next(iter(kept), None)}
    stated = {} if described is None else values_of(described, generation, generating)
    values = shown | stated | known
    values |= _heads(weights, values)
    preset = getattr(MiniMindConfig, generation)
    if "num_experts" in shown:
        values.setdefault("num_experts_per_tok", min(preset().num_experts_per_tok, shown["num_experts"]))
    kind = None if described is None else described.get("model_type") or "minimind"
    if kind == "minimind" and "norm_topk_prob" not in known:
        values |= weight_of_one_expert(values, generation)
    config = preset(**values)
    if kind == "minimind" and "rope_scaling" not in known:
        check_ramp_of_minimind(config)
    if kind in OF_TRANSFORMERS and not known.keys() & _DECIDE_THE_COUNTERPART:
        if reason := reason_without_counterpart(config):
            raise ValueError(f"config.json describes what no Llama, Qwen3 or Qwen3-MoE of transformers is: {reason}")
    return config


def assumed(config: MiniMindConfig) -> dict[str, Any]:
    """The fields of a config that was inferred from weights alone which nothing showed: the preset's."""
    names = [] if config.use_qk_norm else ["num_attention_heads"]
    names += _UNSEEN
    if config.use_moe:
        names += ["num_experts_per_tok", "norm_topk_prob"]
    return {name: getattr(config, name) for name in names}


def sizes_shown(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """The fields of MiniMindConfig that names and shapes alone determine."""
    vocab_size, hidden_size = weights[_EMBEDDING].shape
    shown: dict[str, Any] = {
        "vocab_size": vocab_size,
        "hidden_size": hidden_size,
        "num_hidden_layers": _count(weights, "model.layers."),
        "use_qk_norm": f"{_LAYER}self_attn.q_norm.weight" in weights,
        "tie_word_embeddings": is_tied(weights),
        "use_moe": f"{_LAYER}mlp.gate.weight" in weights,
    }
    if shown["use_moe"]:
        shown["num_experts"] = _count(weights, f"{_LAYER}mlp.experts.")
        shown["num_shared_experts"] = _count(weights, f"{_LAYER}mlp.shared_experts.")
    for field, name in (
        ("head_dim", "self_attn.q_norm.weight"),
        ("intermediate_size", "mlp.gate_proj.weight"),
        ("moe_intermediate_size", "mlp.experts.0.gate_proj.weight"),
    ):
        if _LAYER + name in weights:
            shown[field] = weights[_LAYER + name].shape[:1].numel()  # 1 for a tensor without axes
    return shown


def is_tied(weights: Mapping[str, Tensor]) -> bool:
    """Whether the output matrix is left out, or is the embedding once more."""
    head, embedding = weights.get(_HEAD), weights[_EMBEDDING]
    if head is None or (head.data_ptr() == embedding.data_ptr() and head.shape == embedding.shape):
        return True  # NaN, too, where the numbers alone would never be equal
    return head.shape == embedding.shape and torch.equal(head, embedding)


def differences(config: MiniMindConfig, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """The fields in which the weights' names and shapes contradict a config, with the values that they show."""
    shown = sizes_shown(weights)
    if _HEAD in weights:
        del shown["tie_word_embeddings"]  # an untied matrix may still equal the embedding
    head_dim = shown.get("head_dim", config.head_dim)
    for field, name in (("num_attention_heads", _QUERY), ("num_key_value_heads", _KEY)):
        if len(weights[name]) % head_dim == 0:
            shown[field] = len(weights[name]) // head_dim
    return {name: value for name, value in shown.items() if getattr(config, name) != value}


def _count(weights: Mapping[str, Tensor], prefix: str) -> int:
    """How many numbers follow the prefix: layers or experts."""
    rest = (name.removeprefix(prefix) for name in weights if name.startswith(prefix))
    return len({name.partition(".")[0] for name in rest})


def _heads(weights: Mapping[str, Tensor], values: Mapping[str, Any]) -> dict[str, int]:
    """Heads and their size from the rows of q_proj (H * D) and k_proj (K * D) and from what is known of them."""
    for name in ("head_dim", "num_attention_heads", "num_key_value_heads"):
        if values.get(name) is not None:
            check_count(name, values[name])
    q_rows, k_rows = len(weights[_QUERY]), len(weights[_KEY])
    head_dim, heads = values.get("head_dim"), values.get("num_attention_heads")
    if head_dim is None:
        assumed = heads or _MINIMIND_HEADS
        head_dim = q_rows // assumed
        if head_dim < 2 or head_dim % 2 or q_rows % assumed or k_rows % head_dim:
            raise ValueError(
                f"the number of heads cannot be told: q_proj has {q_rows} rows and k_proj {k_rows}, and {assumed} "
                f"query heads {'(MiniMind has eight) ' if heads is None else ''}do not fit them. Give "
                "num_attention_heads=... as well; each head has rows of q_proj / num_attention_heads channels"
            )
    return {
        "head_dim": head_dim,
        "num_attention_heads": heads or max(q_rows // head_dim, 1),
        "num_key_value_heads": values.get("num_key_value_heads") or max(k_rows // head_dim, 1),
    }
