"""What each field of another program's config means here: one table, family by family.

A field is *used* (under our name), known to change *nothing*, known with *only* some values, or unknown; whoever reads
a config refuses what is unknown, by name, because a field that is ignored may be one that the other program obeys.

    minimind       MiniMind's own, both generations; those before 2025-04-26 are put in its words by weights/older.py
    minimind_edu   our adapter's: the fields of MiniMindConfig
    llama, qwen3, qwen3_moe      as transformers 4 and 5 write them

Sources: MiniMind's `model/model_minimind.py` (class MiniMindConfig); for transformers what its modeling, masking,
cache and RoPE code reads from a config.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from minimind_edu.model.rope_frequencies import scaling_of_each_pair, yarn_correction_range

_LARGEST = 2**53  # whole numbers up to here are floats, too


@dataclass(frozen=True)
class Family:
    """The fields of one family's configs."""

    used: Mapping[str, str]  # its name -> ours
    rope: frozenset[str]  # used, too: together they say how RoPE is scaled
    only: Mapping[str, tuple[Any, ...]]  # known with these values, which are what is computed here
    nothing: frozenset[str]  # change no logit
    silent: Mapping[str, Any] = field(default_factory=dict)  # ours -> what its program takes where a file is silent
    null: frozenset[str] = frozenset()  # used fields in which null means "derive it"; elsewhere null is no value

    def translated(self, given: Mapping[str, Any], where: str = "config.json") -> dict[str, Any]:
        """What is used, under our names; fields of RoPE are left out.

        Raises:
            ValueError: for a field or a value that is not in the table, and for two names that say different things.
        """
        for name, value in given.items():
            if name in self.only and _shortest(value) not in self.only[name]:
                raise ValueError(
                    f"{where} asks for {name}={value!r:.200}, but only {name}={self.only[name][0]!r} is computed here"
                )
            if not any(name in known for known in (self.used, self.rope, self.only, self.nothing)):
                raise ValueError(
                    f"{where} has {name}={value!r:.200}, a field whose meaning is not known here; if it changes no "
                    "result, take it out, or give config=MiniMindConfig(...)"
                )
        values: dict[str, Any] = {}
        for name, ours in self.used.items():
            if name not in given or (given[name] is None and name in self.null):
                continue
            if given[name] is None and not name.endswith("token_id"):
                raise ValueError(f"{where} has {name}=null, which says nothing; take it out, or give a value")
            if isinstance(given[name], int) and abs(given[name]) > _LARGEST:
                raise ValueError(f"{where}'s {name} is a number of {len(str(given[name]))} digits, which no model has")
            if ours in values and values[ours] != given[name]:
                raise ValueError(f"{where} says {ours}={values[ours]!r:.200}, and {name}={given[name]!r:.200} as well")
            values[ours] = given[name]
        return values


def _shortest(value: Any) -> Any:
    """A list that says the same of every layer, as one entry."""
    return value[:1] if isinstance(value, list) and value == value[:1] * len(value) else value


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


def _same(words: str) -> dict[str, str]:
    return {name: name for name in words.split()}


SIZES = _same(
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
    "max_position_embeddings rms_norm_eps tie_word_embeddings bos_token_id eos_token_id"
)
EXPERTS = _same("num_experts num_experts_per_tok moe_intermediate_size norm_topk_prob router_aux_loss_coef")
_DERIVABLE = _words("intermediate_size num_key_value_heads head_dim")

_NOTHING = _words(
    # about the file and who wrote it
    "model_type architectures transformers_version _name_or_path name_or_path _commit_hash auto_map custom_pipelines",
    "unsloth_fixed unsloth_version is_llama_config tokenizer_class task_specific_params finetuning_task prefix",
    "transformers.js_config",
    # the weights keep the dtype that their file has
    "dtype torch_dtype use_bfloat16",
    # which kernel computes, on how many machines, and what is kept or returned
    "attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal",
    "experts_implementation _experts_implementation _experts_implementation_internal flash_attn use_flash_attn",
    "_flash_attn_2_enabled cache_implementation",
    "pretraining_tp tp_plan base_model_tp_plan base_model_pp_plan base_model_ep_plan base_model_fsdp_plan torchscript",
    "max_window_layers use_cache return_dict output_attentions output_hidden_states chunk_size_feed_forward",
    # training, and heads of other tasks; the first is LLaMA's own name for the length of texts
    "max_sequence_length gradient_checkpointing",
    "attention_dropout output_router_logits neftune_noise_alpha tf_legacy_loss problem_type num_labels id2label",
    "label2id classifier_dropout is_decoder",
    # how texts are generated, which the caller says: parameters that transformers 4 kept in a model's config
    "pad_token_id sep_token_id decoder_start_token_id assistant_confidence_threshold assistant_lookbehind",
    "bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty epsilon_cutoff eta_cutoff exponential_decay_length_penalty forced_bos_token_id",
    "forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size num_assistant_tokens",
    "num_assistant_tokens_schedule num_beam_groups num_beams num_return_sequences output_scores",
    "remove_invalid_values repetition_penalty return_dict_in_generate suppress_tokens target_lookbehind temperature",
    "top_k top_p typical_p",
)
_OFF = (False, None)
_ONLY: dict[str, tuple[Any, ...]] = {
    "is_causal": (True,),
    "quantization_config": (None,),
    "pruned_heads": ({}, [], None),
    "cross_attention_hidden_size": (None,),
    **dict.fromkeys(("is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder"), _OFF),
}

_OF_MINIMIND = SIZES | EXPERTS | _same("use_moe dropout rope_theta seq_aux") | {
    "n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts",
    "aux_loss_alpha": "router_aux_loss_coef",
}  # fmt: skip
_MINIMIND = Family(
    used=_OF_MINIMIND,
    rope=_words("inference_rope_scaling rope_scaling"),
    only=_ONLY | {"hidden_act": ("silu", "swish", None), "scoring_func": ("softmax", None)},
    # max_seq_len bounds training texts; the constructor makes rope_parameters anew from its switch
    nothing=_NOTHING | _words("max_seq_len rope_parameters initializer_range"),
    silent={"use_moe": False, "tie_word_embeddings": True},
    null=frozenset(_OF_MINIMIND) - {"bos_token_id", "eos_token_id"},
)

_LLAMA = Family(
    used=SIZES | _same("initializer_range"),
    rope=_words("rope_theta rope_scaling rope_parameters original_max_position_embeddings"),
    only=_ONLY | {
        "hidden_act": ("silu", "swish"), "partial_rotary_factor": (1, None), "sliding_window": (None,),
        "layer_types": (["full_attention"], None), "per_layer_config": (None,),
        "decoder_sparse_step": (1,), "mlp_only_layers": ([], None),
        **dict.fromkeys(("attention_bias", "mlp_bias", "use_sliding_window", "rope_interleaved"), _OFF),
    },
    nothing=_NOTHING,
    silent={
        "num_attention_heads": 32, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "initializer_range": 0.02,
        "tie_word_embeddings": False, "dropout": 0.0, "use_qk_norm": False, "use_moe": False,
        # its config has a class's tokens then, but texts begin and end as the file says
        "bos_token_id": None, "eos_token_id": None,
    },
    null=_DERIVABLE,
)  # fmt: skip

_QWEN3 = Family(
    used=_LLAMA.used,
    rope=_LLAMA.rope,
    only={name: values for name, values in _LLAMA.only.items() if name != "sliding_window"},
    nothing=_NOTHING | _words("sliding_window"),  # without use_sliding_window
    silent={**_LLAMA.silent, "max_position_embeddings": 32768, "use_qk_norm": True},
    null=_DERIVABLE,
)  # fmt: skip

_QWEN3_MOE = Family(
    used={**_QWEN3.used, **EXPERTS, "num_local_experts": "num_experts"},
    rope=_QWEN3.rope,
    # the last three are Qwen3-Coder's, and say what all of them are
    only={**_QWEN3.only, "shared_expert_intermediate_size": (0, None), "qkv_bias": _OFF, "use_qk_norm": (True,)},
    nothing=_QWEN3.nothing,
    silent={**_QWEN3.silent, "use_moe": True, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": False,
            "router_aux_loss_coef": 1e-3, "num_shared_experts": 0, "seq_aux": False},
    null=_DERIVABLE,
)  # fmt: skip

_EDU = Family(
    used=SIZES | EXPERTS | _same(
        "rope_theta use_qk_norm norm_placement dropout initializer_range use_moe num_shared_experts seq_aux"
    ),
    rope=_words("minimind_rope_scaling"),
    only=_ONLY | dict.fromkeys(("rope_scaling", "rope_parameters"), (None,)),
    nothing=_NOTHING,
    null=_DERIVABLE | {"moe_intermediate_size"},
)  # fmt: skip

FAMILIES = {
    "minimind": _MINIMIND, "minimind_edu": _EDU, "llama": _LLAMA, "qwen3": _QWEN3, "qwen3_moe": _QWEN3_MOE
}  # fmt: skip
OF_TRANSFORMERS = ("llama", "qwen3", "qwen3_moe")

# What may stand in an object of RoPE; `finetuned` is a note of YaRN's authors. What a type does not use, it ignores.
ROPE_FIELDS = _words(
    "rope_type type rope_theta partial_rotary_factor factor original_max_position_embeddings beta_fast beta_slow",
    "attention_factor mscale mscale_all_dim truncate finetuned",
)


def reason_without_counterpart(config: Any) -> str | None:
    """Why neither Llama nor Qwen3 nor Qwen3-MoE computes what this MiniMindConfig does; None: one of them does.

    Asked on the way out, and on the way in, where a file may ask transformers for what our tables do not do.
    """
    scaling = config.rope_scaling
    if config.norm_placement != "pre":
        return "they are all pre-norm, and this model has norm_placement='post'"
    if config.use_moe and config.num_shared_experts:
        return (
            "Qwen3-MoE has no expert that every token visits, and this model has "
            f"num_shared_experts={config.num_shared_experts}"
        )
    if config.use_moe and not config.use_qk_norm:
        return "Qwen3-MoE has QK-norm, and this mixture has use_qk_norm=False"
    if not config.use_qk_norm and config.hidden_size % config.num_attention_heads:
        return (
            "Llama needs hidden_size to be a multiple of num_attention_heads, and this model has "
            f"{config.hidden_size} and {config.num_attention_heads}"
        )
    if scaling is None or not scaling.starts_at(config.max_position_embeddings):
        return None
    if scaling.formula != "yarn":
        return (
            "transformers has no counterpart of MiniMind2's own formula of RoPE scaling (formula='minimind2'), which "
            "is not YaRN although its source calls it so; export without rope_scaling"
        )
    low, high = yarn_correction_range(config.head_dim, config.rope_theta, scaling)
    if low > high:
        return (
            f"this YaRN ramp runs backwards, from pair {low} to pair {high}, and transformers reads it in another way; "
            "original_max_position_embeddings does not suit these betas and this rope_theta, got "
            f"{scaling.original_max_position_embeddings}"
        )
    return None


def check_ramp_of_minimind(config: Any) -> None:
    """Raise a ValueError where MiniMind's YaRN, whose ramp ends at the last pair at the latest, differs from ours."""
    scaling, dim = config.rope_scaling, config.head_dim
    if scaling is None or scaling.formula != "yarn" or not scaling.starts_at(config.max_position_embeddings):
        return
    low, high = yarn_correction_range(dim, config.rope_theta, scaling)
    last = dim // 2 - 1
    ours = scaling_of_each_pair(dim, config.rope_theta, scaling)
    if high > last and not torch.equal(ours, scaling_of_each_pair(dim, config.rope_theta, scaling, last_pair=last)):
        raise ValueError(
            f"MiniMind ends YaRN's ramp at the last pair ({last}), here it would end at pair {high}, and so the two "
            f"differ for heads of {dim} channels and rope_theta={config.rope_theta}; switch the scaling off"
        )
