"""Every size and switch of a MiniMind model, checked once and then never changed.

Two generations of MiniMind exist. `minimind2` is the model of the source notes: eight query heads, two key/value
heads, a shared expert in its mixtures. `minimind3` (upstream, August 2026) adds QK-norm, four key/value heads and
YaRN proper. One implementation serves both: they differ in the values below and nowhere else.

Field names are those of MiniMind and of transformers, so that a config found on the hub reads the same here.
MiniMind: `model/model_minimind.py`, class MiniMindConfig.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from minimind_edu.rope_frequencies import RopeScaling

Generation = Literal["minimind2", "minimind3"]


@dataclass(frozen=True)
class MiniMindConfig:
    """The sizes and switches of one model. The defaults are MiniMind2 small, the model of the source notes.

    `head_dim`, `intermediate_size` and `moe_intermediate_size` may be left out; they are then derived from
    `hidden_size` by MiniMind2's rules. To change a size that others are derived from, start again from a preset:
    `MiniMindConfig.minimind2(hidden_size=768)`.

    Raises:
        ValueError: if sizes contradict each other; the message names the rule, the values and the likely fix.
    """

    vocab_size: int = 6400
    hidden_size: int = 512  # E, the width of the residual stream
    num_hidden_layers: int = 8  # L
    num_attention_heads: int = 8  # H, query heads
    num_key_value_heads: int = 2  # K
    head_dim: int | None = None  # D; None: hidden_size // num_attention_heads
    intermediate_size: int | None = None  # F; None: 8/3 of hidden_size, rounded up to a multiple of 64
    max_position_embeddings: int = 32768  # positions in the RoPE tables
    rope_theta: float = 1e6
    rope_scaling: RopeScaling | None = None
    rms_norm_eps: float = 1e-5  # added to the mean square, inside the root
    use_qk_norm: bool = False  # RMSNorm over head_dim on queries and keys, before RoPE
    norm_placement: Literal["pre", "post"] = "pre"  # "post" is for comparison; no MiniMind uses it
    tie_word_embeddings: bool = True
    dropout: float = 0.0  # in training: attention weights, attention and feed-forward outputs
    initializer_range: float = 0.02  # standard deviation of a new model's weights
    bos_token_id: int | None = 1
    eos_token_id: int | None = 2  # None: no token ends a text

    use_moe: bool = False
    num_experts: int = 4  # N, routed experts
    num_experts_per_tok: int = 2
    num_shared_experts: int = 1  # experts that every token visits, beside the routed ones
    moe_intermediate_size: int | None = None  # F of one expert; None: intermediate_size
    norm_topk_prob: bool = True  # renormalize the routing weights of the chosen experts to sum to 1
    router_aux_loss_coef: float = 0.1
    seq_aux: bool = True  # balance the load within each sequence instead of over the whole batch

    def __post_init__(self) -> None:
        counts = (
            "vocab_size hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim "
            "intermediate_size max_position_embeddings num_experts num_experts_per_tok moe_intermediate_size"
        )
        for name in counts.split():
            if getattr(self, name) is not None:
                _check_count(name, getattr(self, name), at_least=1)
        _check_count("num_shared_experts", self.num_shared_experts, at_least=0)
        self._check_heads()
        # A frozen dataclass is filled in by the back door, once, before anybody can read it.
        if self.head_dim is None:
            object.__setattr__(self, "head_dim", self.hidden_size // self.num_attention_heads)
        if self.head_dim % 2:
            raise ValueError(
                f"head_dim must be even because RoPE rotates pairs of channels, got {self.head_dim}; "
                "change hidden_size, num_attention_heads or head_dim"
            )
        if self.intermediate_size is None:
            object.__setattr__(self, "intermediate_size", minimind2_intermediate_size(self.hidden_size))
        if self.moe_intermediate_size is None:
            object.__setattr__(self, "moe_intermediate_size", self.intermediate_size)
        self._check_switches()

    def _check_heads(self) -> None:
        heads, kv_heads = self.num_attention_heads, self.num_key_value_heads
        if heads % kv_heads:
            raise ValueError(
                f"num_attention_heads must be a multiple of num_key_value_heads, got {heads} and {kv_heads}: every "
                "key/value head serves the same number of query heads. Note that num_key_value_heads counts heads; "
                "it is not the number of query heads in a group"
            )
        if self.head_dim is None and self.hidden_size % heads:
            raise ValueError(
                f"hidden_size must be a multiple of num_attention_heads, got {self.hidden_size} and {heads}; "
                "change one of them, or give head_dim yourself"
            )

    def _check_switches(self) -> None:
        if self.num_experts_per_tok > self.num_experts:
            raise ValueError(
                f"num_experts_per_tok cannot exceed num_experts, got {self.num_experts_per_tok} of "
                f"{self.num_experts}: a token visits an expert at most once"
            )
        if self.norm_placement not in ("pre", "post"):
            raise ValueError(f"norm_placement must be 'pre' or 'post', got {self.norm_placement!r}")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout is a probability below 1, got {self.dropout}")
        if not self.rms_norm_eps > 0:
            raise ValueError(
                f"rms_norm_eps must be positive, got {self.rms_norm_eps}: without it a vector of zeros divides by zero"
            )
        if not self.rope_theta > 1:
            raise ValueError(
                f"rope_theta must be above 1, got {self.rope_theta}: it is the base of the falling frequencies"
            )

    @property
    def queries_per_kv(self) -> int:
        """G = H / K, the number of query heads that share one key/value head."""
        return self.num_attention_heads // self.num_key_value_heads

    @classmethod
    def minimind2(cls, **changes: Any) -> "MiniMindConfig":
        """MiniMind2 small, 512 x 8: 25,829,888 parameters. hidden_size=768, num_hidden_layers=16 is MiniMind2."""
        if changes.get("num_experts_per_tok") == 1:
            # one renormalized weight is always exactly 1; MiniMind2 renormalizes only where there are several
            changes["norm_topk_prob"] = False
        return cls(**changes)

    @classmethod
    def minimind2_moe(cls, **changes: Any) -> "MiniMindConfig":
        """MiniMind2-MoE, 640 x 8, one shared expert and two of four: 145,029,760 parameters."""
        return cls.minimind2(**{"hidden_size": 640, "use_moe": True, **changes})

    @classmethod
    def minimind3(cls, **changes: Any) -> "MiniMindConfig":
        """MiniMind3, 768 x 8, QK-norm: 63,912,192 parameters."""
        hidden_size = changes.get("hidden_size", 768)
        newer = {
            "hidden_size": hidden_size,
            "num_key_value_heads": 4,
            "intermediate_size": minimind3_intermediate_size(hidden_size),
            "rms_norm_eps": 1e-6,
            "use_qk_norm": True,
            "num_experts_per_tok": 1,
            "num_shared_experts": 0,
            "router_aux_loss_coef": 5e-4,
            "seq_aux": False,
        }
        return cls(**{**newer, **changes})

    @classmethod
    def minimind3_moe(cls, **changes: Any) -> "MiniMindConfig":
        """MiniMind3-MoE, 768 x 8, one of four experts a token: 198,416,640 parameters."""
        return cls.minimind3(**{"use_moe": True, **changes})

    @classmethod
    def from_upstream(cls, upstream: Mapping[str, Any], generation: Generation) -> "MiniMindConfig":
        """Translate the arguments of upstream's own MiniMindConfig.

        Args:
            upstream: upstream's names and values; what is not named takes that generation's default.
            generation: whose defaults and names apply, `"minimind2"` or `"minimind3"`.

        Raises:
            ValueError: for a generation that does not exist, or a name that this generation does not have.
        """
        if generation not in ("minimind2", "minimind3"):
            raise ValueError(f"generation must be 'minimind2' or 'minimind3', got {generation!r}")
        values = dict(upstream)
        scaling = upstream_scaling(values, generation)
        changes = {UPSTREAM_NAMES.get(name, name): value for name, value in values.items()}
        for name in _WITHOUT_MEANING_HERE:
            changes.pop(name, None)
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise ValueError(
                f"upstream's {generation} config has no field {', '.join(unknown)}; "
                f"known here: {', '.join(sorted(known))}"
            )
        # upstream writes None where it means "derive it"
        optional = {"head_dim", "intermediate_size", "moe_intermediate_size"}
        changes = {name: value for name, value in changes.items() if value is not None or name not in optional}
        if scaling is not None:
            changes["rope_scaling"] = scaling
        return (cls.minimind2 if generation == "minimind2" else cls.minimind3)(**changes)


# upstream's name -> ours, where they differ; both generations together, since no name means two things
UPSTREAM_NAMES = {
    "n_routed_experts": "num_experts",
    "n_shared_experts": "num_shared_experts",
    "aux_loss_alpha": "router_aux_loss_coef",
}

# Switches of upstream's that change no result here: which kernel runs, and choices with only one value.
_WITHOUT_MEANING_HERE = ("flash_attn", "hidden_act", "scoring_func", "model_type", "torch_dtype", "dtype",
                         "architectures", "transformers_version")  # fmt: skip


def upstream_scaling(values: dict[str, Any], generation: Generation) -> RopeScaling | None:
    """Take upstream's YaRN switch and dictionary out of `values` and return what they mean.

    MiniMind2 got YaRN proper in its last versions: there the dictionary has an `attention_factor`.
    """
    switched_on = values.pop("inference_rope_scaling", False)
    given = values.pop("rope_scaling", None)
    if not switched_on and not given:
        return None
    if generation == "minimind2" and "attention_factor" not in (given or {}):
        defaults: dict[str, Any] = {"factor": 4.0, "beta_fast": 4.0, "formula": "minimind2", "attention_factor": 1.0}
    else:
        defaults = {"factor": 16.0, "beta_fast": 32.0, "attention_factor": 1.0}
    known = {field.name for field in fields(RopeScaling)} - {"formula"}
    return RopeScaling(**defaults | {name: value for name, value in (given or {}).items() if name in known})


def _check_count(name: str, value: Any, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r}")


def minimind2_intermediate_size(hidden_size: int) -> int:
    """8/3 of the hidden size, rounded up to a multiple of 64 (512 -> 1408, 640 -> 1728, 768 -> 2048)."""
    return 64 * math.ceil(int(hidden_size * 8 / 3) / 64)


def minimind3_intermediate_size(hidden_size: int) -> int:
    """Pi times the hidden size, rounded up to a multiple of 64 (512 -> 1664, 768 -> 2432)."""
    return 64 * math.ceil(hidden_size * math.pi / 64)
