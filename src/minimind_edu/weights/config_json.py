"""What a config.json says, in the fields of MiniMindConfig.

Two families of files are read: MiniMind's own (`model_type` "minimind", "minimind_edu" for our adapter, or none), and
transformers' Llama, Qwen3 and Qwen3-MoE, which compute the same as MiniMind unless a switch asks for more. Such a
switch is refused by name: ignoring it would give a model that runs and is wrong.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from minimind_edu.config import MiniMindConfig
from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.upstream import UPSTREAM_NAMES, Generation, upstream_scaling
from minimind_edu.validation import check_count

# names of others -> ours; transformers 5 writes num_local_experts for Qwen3-MoE
_NAMES = UPSTREAM_NAMES | {"num_local_experts": "num_experts"}
_FIELDS = {field.name for field in fields(MiniMindConfig)} - {"rope_scaling"}

# What transformers assumes where a file is silent; the weights show its other sizes.
_DEFAULTS_OF_ALL = {"rms_norm_eps": 1e-6, "rope_theta": 1e4, "dropout": 0.0}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"max_position_embeddings": 2048, "use_qk_norm": False, "use_moe": False},
    "qwen3": {"max_position_embeddings": 32768, "use_qk_norm": True, "use_moe": False},
    "qwen3_moe": {"max_position_embeddings": 32768, "use_qk_norm": True, "use_moe": True,
                  "num_experts_per_tok": 8, "norm_topk_prob": False, "router_aux_loss_coef": 1e-3,
                  "num_shared_experts": 0, "seq_aux": False},
}  # fmt: skip

# Switches with the values that this package computes.
_SUPPORTED: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("silu", None),
    "attention_bias": (False, None),
    "mlp_bias": (False, None),
    "use_sliding_window": (False, None),
    "decoder_sparse_step": (1, None),
    "mlp_only_layers": ([], None),
    "partial_rotary_factor": (1, None),
    "scoring_func": ("softmax", None),
    "quantization_config": (None,),
}


def values_of(described: Mapping[str, Any], generation: Generation) -> dict[str, Any]:
    """The fields of MiniMindConfig that a config.json states, with transformers' defaults where it is one of its own.

    Args:
        described: the file's content.
        generation: "minimind2" or "minimind3", for upstream's two formulas of YaRN.

    Raises:
        ValueError: for a kind of model, or a switch, that this package does not compute.
    """
    kind = described.get("model_type")
    known = ("minimind", "minimind_edu", *_DEFAULTS)
    if kind is not None and kind not in known:
        raise ValueError(
            f"config.json describes a model of type {kind!r}, and only {', '.join(known)} are read. If its parts are "
            "the same, give config=MiniMindConfig(...)"
        )
    switches = _object(described, "rope_parameters") | dict(described)
    for name, supported in _SUPPORTED.items():
        if switches.get(name) not in supported:
            raise ValueError(
                f"config.json asks for {name}={switches[name]!r}, but only {name}={supported[0]!r} is computed here"
            )
    values = {_NAMES.get(name, name): value for name, value in described.items() if value is not None}
    values = {name: value for name, value in values.items() if name in _FIELDS}
    for name in ("bos_token_id", "eos_token_id"):
        if name in described:  # here null means that there is none; elsewhere, that it is derived
            values[name] = described[name]
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name]) or None
    if kind in _DEFAULTS:
        values = _DEFAULTS_OF_ALL | _DEFAULTS[kind] | values
    return values | _rope(described, kind in _DEFAULTS, generation, values)


def _rope(
    described: Mapping[str, Any], of_transformers: bool, generation: Generation, values: Mapping[str, Any]
) -> dict[str, Any]:
    """rope_theta and rope_scaling, wherever a version writes them: transformers 5 has both in `rope_parameters`."""
    if ours := _object(described, "minimind_rope_scaling"):  # the adapter's own name (minimind_edu.hf)
        return {"rope_scaling": RopeScaling(**ours)}
    given = _object(described, "rope_scaling") | _object(described, "rope_parameters")
    theta = {"rope_theta": given.pop("rope_theta")} if "rope_theta" in given else {}
    old_name = given.pop("type", None)
    kind = given.pop("rope_type", None) or old_name
    if kind not in (None, "default", "yarn"):
        raise ValueError(f"config.json asks for RoPE of type {kind!r}; this package has 'default' and 'yarn'")
    if not of_transformers:
        switch = {"inference_rope_scaling": described.get("inference_rope_scaling", False)}
        scaling = upstream_scaling(switch | {"rope_scaling": given}, generation)
        return theta if scaling is None else theta | {"rope_scaling": scaling}
    if kind == "yarn":
        return theta | _yarn_of_transformers(given, values["max_position_embeddings"])
    return theta


def _object(described: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A copy of the JSON object of that name, empty where there is none."""
    value = described.get(name) or {}
    if not isinstance(value, Mapping):
        raise ValueError(f"config.json's {name} must be an object, got {value!r}")
    return dict(value)


def _yarn_of_transformers(given: Mapping[str, Any], positions: int) -> dict[str, Any]:
    extra = {name for name in ("mscale", "mscale_all_dim") if given.get(name)}
    if not given.get("truncate", True):
        extra.add("truncate")
    if extra:
        raise ValueError(f"config.json's YaRN sets {', '.join(sorted(extra))}, which this package does not have")
    original = given.get("original_max_position_embeddings", positions)
    check_count("max_position_embeddings", positions)
    check_count("original_max_position_embeddings", original)
    factor = given.get("factor") or positions / original
    names = ("beta_fast", "beta_slow", "attention_factor")
    chosen = {name: given[name] for name in names if given.get(name) is not None}
    scaling = RopeScaling(factor, original, **chosen)
    # transformers scales every text; our tables do so from the first position beyond the trained context
    return {
        "rope_scaling": scaling,
        "max_position_embeddings": positions if scaling.starts_at(positions) else int(factor * original),
    }
