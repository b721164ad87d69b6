"""What a config.json says, in the fields of MiniMindConfig.

Two families of files are read: MiniMind's own (`model_type` "minimind", "minimind_edu" for our adapter, or none), and
transformers' Llama, Qwen3 and Qwen3-MoE, which compute the same as MiniMind where no switch asks for more. A switch
that does is refused by name: ignoring it would give a model that runs and is wrong.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from minimind_edu.config import MiniMindConfig
from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.upstream import UPSTREAM_NAMES, upstream_scaling

# names of others -> ours; transformers 5 writes num_local_experts for Qwen3-MoE
_NAMES = UPSTREAM_NAMES | {"num_local_experts": "num_experts"}
_FIELDS = {field.name for field in fields(MiniMindConfig)} - {"rope_scaling"}

# What transformers assumes where a file is silent; its other sizes show in the weights.
_SILENT: dict[str, dict[str, Any]] = {
    "llama": {"max_position_embeddings": 2048, "use_qk_norm": False, "use_moe": False},
    "qwen3": {"max_position_embeddings": 32768, "use_qk_norm": True, "use_moe": False},
    "qwen3_moe": {"max_position_embeddings": 32768, "use_qk_norm": True, "use_moe": True,
                  "num_experts_per_tok": 8, "norm_topk_prob": False, "router_aux_loss_coef": 1e-3,
                  "num_shared_experts": 0, "seq_aux": False},
}  # fmt: skip
_SILENT_ALL = {"rms_norm_eps": 1e-6, "rope_theta": 1e4, "dropout": 0.0}

# Switches that must stand as here, or be absent: what else they could ask for does not exist in this package.
_ONLY: dict[str, tuple[Any, ...]] = {
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


def values_of(described: Mapping[str, Any], generation: str) -> dict[str, Any]:
    """The fields of MiniMindConfig that a config.json states, with transformers' defaults where it is one of its own.

    Args:
        described: the file's content.
        generation: "minimind2" or "minimind3", for upstream's two formulas of YaRN.

    Raises:
        ValueError: for a kind of model, or a switch, that this package does not compute.
    """
    kind = described.get("model_type")
    known = (None, "minimind", "minimind_edu", *_SILENT)
    if kind not in known:
        raise ValueError(
            f"config.json describes a model of type {kind!r}; read are "
            f"{', '.join(name for name in known if name)}. If its parts are the same, give config=MiniMindConfig(...)"
        )
    asked = (described.get("rope_parameters") or {}) | described
    for name, allowed in _ONLY.items():
        if asked.get(name) not in allowed:
            raise ValueError(
                f"config.json asks for {name}={asked[name]!r}; this package has {name}={allowed[0]!r} only"
            )
    named = {_NAMES.get(name, name): value for name, value in described.items()}
    tokens = ("bos_token_id", "eos_token_id")  # None means none; elsewhere it means "derive it"
    values = {name: value for name, value in named.items() if name in _FIELDS and (value is not None or name in tokens)}
    for name in tokens:
        if isinstance(values.get(name), list):
            values[name] = values[name][0]  # several may end a text; this package watches for one
    if kind in _SILENT:
        values = _SILENT_ALL | _SILENT[kind] | values
    return values | _rope(described, kind in _SILENT, generation, values)


def _rope(
    described: Mapping[str, Any], of_transformers: bool, generation: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """rope_theta and rope_scaling, wherever they stand: transformers 5 keeps both in `rope_parameters`."""
    if described.get("minimind_rope_scaling"):  # the adapter's own name (minimind_edu.hf)
        return {"rope_scaling": RopeScaling(**described["minimind_rope_scaling"])}
    given = (described.get("rope_scaling") or {}) | (described.get("rope_parameters") or {})
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


def _yarn_of_transformers(given: Mapping[str, Any], positions: int) -> dict[str, Any]:
    extra = {name for name in ("mscale", "mscale_all_dim") if given.get(name)}
    if not given.get("truncate", True):
        extra.add("truncate")
    if extra:
        raise ValueError(f"config.json's YaRN sets {', '.join(sorted(extra))}, which this package does not have")
    original = given.get("original_max_position_embeddings", positions)
    factor = given.get("factor") or positions / original
    names = ("beta_fast", "beta_slow", "attention_factor")
    chosen = {name: given[name] for name in names if given.get(name) is not None}
    scaling = RopeScaling(factor, original, **chosen)
    # transformers scales every text; our tables do so from the first position beyond the trained context
    return {
        "rope_scaling": scaling,
        "max_position_embeddings": positions if positions > original else int(factor * original),
    }
