"""MiniMind from before 2025-04-26 (commit 274483c), under names that Meta's Llama and llama2.c have, too.

Three things were otherwise: the names, the fields of the config, and which channels RoPE turns together. In a head of
size D it turned neighbors, (2i, 2i + 1); since then it turns (i, i + D/2), as transformers does. Attention does not
mind the order of a head's channels as long as queries and keys agree, so the rows of both matrices are put in the new
order once, and the model computes what it computed before.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

QUERY = "layers.0.attention.wq.weight"  # which all of them have
_PARTS = {"tok_embeddings": "embed_tokens", "attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
          "attention": "self_attn", "wq": "q_proj", "wk": "k_proj", "wv": "v_proj", "wo": "o_proj",
          "feed_forward": "mlp", "w1": "gate_proj", "w2": "down_proj", "w3": "up_proj",
          "shared_experts": "shared_experts.0"}  # fmt: skip
_FIELDS = {"dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
           "n_kv_heads": "num_key_value_heads", "norm_eps": "rms_norm_eps"}  # fmt: skip
# The shapes show what these led to, or they size buffers.
_SHOWN = ("multiple_of", "ffn_dim_multiplier", "n_shared_experts", "max_seq_len", "max_batch_size", "use_scaled_rope")
_ROPE_THETA = 1e4  # where no file says another


def modern_name(name: str) -> str:
    """Our name for one of these tensors."""
    if name == "output.weight":
        return "lm_head.weight"
    return "model." + ".".join(_PARTS.get(part, part) for part in name.split("."))


def modern_config(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config.json (LMConfig), a params.json of Meta's or the model_args of llama2.c in the names of today's MiniMind.

    Other files are returned as they are.

    Raises:
        ValueError: for a kind of RoPE that this package does not compute.
    """
    if "dim" not in described or "hidden_size" in described:
        return described
    if described.get("use_scaled_rope"):
        raise ValueError("its config asks for use_scaled_rope, Llama 3.1's RoPE, which this package does not compute")
    inner = "moe_intermediate_size" if described.get("use_moe") else "intermediate_size"
    names = _FIELDS | {"hidden_dim": inner}
    values = {names.get(name, name): value for name, value in described.items() if name not in _SHOWN}
    if values.get("num_key_value_heads", "") is None:  # in all three programs; each has its own where none is given
        values["num_key_value_heads"] = values.get("num_attention_heads")
    if values.get("vocab_size") == -1:  # Meta's: as many as the tokenizer has
        del values["vocab_size"]
    return {"rope_theta": _ROPE_THETA} | values


def preset(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """What a MiniMind of that time had and its weights do not show; two generations differ in the shape of keys.

    Raises:
        ValueError: if it was no preset of MiniMind's, so that the rows cannot be put in order.
    """
    queries, keys = (len(weights[f"model.layers.0.self_attn.{name}_proj.weight"]) for name in "qk")
    if queries == 4 * keys and queries <= 8 * 128:
        return {"num_attention_heads": 8}  # 8 and 2, since February 2025
    if queries == 2 * keys and queries <= 16 * 128:
        return {"num_attention_heads": 16, "rope_theta": _ROPE_THETA}  # 16 and 8, of 2024
    raise ValueError(
        f"its names are those of MiniMind before 2025-04-26, or of Llama, and with {queries} rows of wq and {keys} of "
        "wk the number of heads cannot be told, by which rows are put in order; give num_attention_heads=... (and "
        "rope_theta=1e4, if it is Llama or llama2.c)"
    )


def in_halves(matrix: Tensor, head_dim: int) -> Tensor:
    """The rows [H * D, E] of wq or wk, within each head from (2i, 2i + 1) to (i, i + D/2)."""
    return matrix.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2).flatten(0, 2)
