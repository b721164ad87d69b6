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

from minimind_edu.config import MiniMindConfig
from minimind_edu.hf.config import end_tokens
from minimind_edu.rope_frequencies import yarn_correction_range

_OTHERWISE = (
    "; the adapter takes every model of this book to transformers as it is: "
    "minimind_edu.hf.export(..., adapter=True), or MiniMindEduForCausalLM"
)


def counterpart_config(config: MiniMindConfig) -> PretrainedConfig:
    """The config of the transformers model that gives the same logits.

    Raises:
        ValueError: if there is none; the message gives the reason.
    """
    _check_has_counterpart(config)
    shared = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_parameters": rope_parameters(config),
        "tie_word_embeddings": config.tie_word_embeddings,
        "attention_bias": False,
        "attention_dropout": config.dropout,
        "initializer_range": config.initializer_range,
        "bos_token_id": config.bos_token_id,
        "eos_token_id": end_tokens(config),
        # transformers would freeze the embedding of a padding token; generation_config names one instead
        "pad_token_id": None,
    }
    if not config.use_moe:
        return (Qwen3Config if config.use_qk_norm else LlamaConfig)(**shared)
    return Qwen3MoeConfig(
        num_experts=config.num_experts,
        num_experts_per_tok=config.num_experts_per_tok,
        moe_intermediate_size=config.moe_intermediate_size,
        norm_topk_prob=config.norm_topk_prob,
        router_aux_loss_coef=config.router_aux_loss_coef,
        **shared,
    )


def _check_has_counterpart(config: MiniMindConfig) -> None:
    reason = None
    if config.norm_placement != "pre":
        reason = "they are all pre-norm, and this model has norm_placement='post'"
    elif config.use_moe and config.num_shared_experts:
        reason = (
            f"Qwen3-MoE has no expert that every token visits, and this model has "
            f"num_shared_experts={config.num_shared_experts}"
        )
    elif config.use_moe and not config.use_qk_norm:
        reason = "Qwen3-MoE has QK-norm, and this mixture has use_qk_norm=False"
    elif not config.use_qk_norm and config.hidden_size % config.num_attention_heads:
        reason = (
            "Llama needs hidden_size to be a multiple of num_attention_heads, and this model has "
            f"{config.hidden_size} and {config.num_attention_heads}"
        )
    if reason is not None:
        raise ValueError(f"Llama, Qwen3 and Qwen3-MoE cannot be this model: {reason}{_OTHERWISE}")


def rope_parameters(config: MiniMindConfig) -> dict[str, Any]:
    """RoPE as transformers 5 describes it.

    The attention factor is always written out: transformers would otherwise take the paper's value, while MiniMind3
    sets 1.

    Raises:
        ValueError: for a scaling that transformers cannot express.
    """
    scaling = config.rope_scaling
    # ours starts to scale when the tables outgrow the trained context, theirs always does
    if scaling is None or not scaling.starts_at(config.max_position_embeddings):
        return {"rope_type": "default", "rope_theta": config.rope_theta}
    if scaling.formula != "yarn":
        raise ValueError(
            "transformers has no counterpart of MiniMind2's own formula of RoPE scaling (formula='minimind2'), "
            f"which is not YaRN although its source calls it so; export without rope_scaling{_OTHERWISE}"
        )
    low, high = yarn_correction_range(config.head_dim, config.rope_theta, scaling)
    if low > high:
        raise ValueError(
            f"this YaRN ramp runs backwards, from pair {low} to pair {high}, and transformers reads it in another way; "
            "original_max_position_embeddings is too small for these betas, got "
            f"{scaling.original_max_position_embeddings}{_OTHERWISE}"
        )
    return {
        "rope_type": "yarn",
        "rope_theta": config.rope_theta,
        "factor": scaling.factor,
        "original_max_position_embeddings": scaling.original_max_position_embeddings,
        "beta_fast": scaling.beta_fast,
        "beta_slow": scaling.beta_slow,
        "attention_factor": float(scaling.table_factor),
    }
