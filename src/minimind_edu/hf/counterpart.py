"""Which model of transformers computes what one of ours computes, if any does.

    dense, no QK-norm     (MiniMind2)        LlamaConfig
    dense, QK-norm        (MiniMind3)        Qwen3Config
    mixture, QK-norm      (MiniMind3-MoE)    Qwen3MoeConfig

The choice follows the switches that change the computation, not the generation's name. What none of the three computes
is refused: a folder that loads and then gives other logits would be worse than none.

Left behind, because they act in training only: dropout outside attention, and how the auxiliary loss is averaged.
"""

from typing import Any

from transformers import LlamaConfig, PretrainedConfig, Qwen3Config, Qwen3MoeConfig

from minimind_edu.hf.config import end_tokens
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.foreign import EXPERTS, SIZES, reason_without_counterpart

_OTHERWISE = (
    "; the adapter takes every model of this book to transformers as it is: "
    "minimind_edu.hf.export(..., adapter=True), or MiniMindEduForCausalLM"
)


def counterpart_config(config: MiniMindConfig) -> PretrainedConfig:
    """The config of the transformers model that gives the same logits.

    Raises:
        ValueError: if there is none; the message gives the reason.
    """
    if reason := reason_without_counterpart(config):
        raise ValueError(f"Llama, Qwen3 and Qwen3-MoE cannot be this model: {reason}{_OTHERWISE}")
    shared = {name: getattr(config, name) for name in (*SIZES, "initializer_range")} | {
        "rope_parameters": _rope_parameters(config),
        "attention_bias": False,
        "attention_dropout": config.dropout,
        "eos_token_id": end_tokens(config),
        # transformers would freeze the embedding of a padding token; generation_config names one instead
        "pad_token_id": None,
    }
    if not config.use_moe:
        return (Qwen3Config if config.use_qk_norm else LlamaConfig)(**shared)
    return Qwen3MoeConfig(**shared, **{name: getattr(config, name) for name in EXPERTS})


def _rope_parameters(config: MiniMindConfig) -> dict[str, Any]:
    """RoPE as transformers 5 describes it.

    The attention factor is always written out: transformers would otherwise take the paper's value, while MiniMind3
    sets 1.
    """
    scaling = config.rope_scaling
    # without `always` ours starts to scale when the tables outgrow the trained context; theirs always does
    if scaling is None or not scaling.starts_at(config.max_position_embeddings):
        return {"rope_type": "default", "rope_theta": config.rope_theta}
    return {
        "rope_type": "yarn",
        "rope_theta": config.rope_theta,
        "factor": scaling.factor,
        "original_max_position_embeddings": scaling.original_max_position_embeddings,
        "beta_fast": scaling.beta_fast,
        "beta_slow": scaling.beta_slow,
        "attention_factor": float(scaling.table_factor),
    }
