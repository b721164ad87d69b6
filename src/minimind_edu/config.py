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
from minimind_edu.upstream import Generation, translated
from minimind_edu.validation import check_count, check_flag, check_number

DERIVED: Any = None  # stands for a size that follows from the others, until __post_init__ computes it


@dataclass(frozen=True)
class MiniMindConfig:
    """The sizes and switches of one model. The defaults are MiniMind2 small, the model of the source notes.

    `head_dim`, `intermediate_size` and `moe_intermediate_size` may be left out; they are then derived from
    `hidden_size` by MiniMind2's rules. To change a size that others are derived from, start again from a preset:
    `MiniMindConfig.minimind2(hidden_size=768)`.

    Raises:
        ValueError: if a value is of the wrong kind or sizes contradict each other; the message names the field, the
            rule, the values and the likely fix.
    """

    vocab_size: int = 6400  # V
    hidden_size: int = 512  # E, the width of the residual stream
    num_hidden_layers: int = 8  # L
    num_attention_heads: int = 8  # H, query heads
    num_key_value_heads: int = 2  # K
    head_dim: int = DERIVED  # D; hidden_size // num_attention_heads
    intermediate_size: int = DERIVED  # I; 8/3 of hidden_size, rounded up to a multiple of 64
    max_position_embeddings: int = 32768  # positions in the RoPE tables
    rope_theta: float = 1e6
    rope_scaling: RopeScaling | None = None
    rms_norm_eps: float = 1e-5  # added to the mean square, inside the root
    use_qk_norm: bool = False  # RMSNorm over head_dim on queries and keys, before RoPE
    norm_placement: Literal["pre", "post"] = "pre"  # "post" is for comparison; no MiniMind uses it
    tie_word_embeddings: bool = True
    dropout: float = 0.0  # in training: embeddings, attention weights, attention and feed-forward outputs
    initializer_range: float = 0.02  # standard deviation of a new model's weights
    bos_token_id: int | None = 1
    eos_token_id: int | tuple[int, ...] | None = 2  # each of several ends a text; None: no token does

    use_moe: bool = False
    num_experts: int = 4  # N, routed experts
    num_experts_per_tok: int = 2  # k
    num_shared_experts: int = 1  # experts that every token visits, in addition to the routed ones
    moe_intermediate_size: int = DERIVED  # I of one expert; intermediate_size
    norm_topk_prob: bool = True  # renormalize the routing weights of the chosen experts to sum to 1
    router_aux_loss_coef: float = 0.1
    seq_aux: bool = True  # balance the load within each sequence instead of over the whole batch

    def __post_init__(self) -> None:
        self._check_kinds()
        self._check_heads()
        derived = {
            "head_dim": self.hidden_size // self.num_attention_heads,
            "intermediate_size": minimind2_intermediate_size(self.hidden_size),
        }
        derived["moe_intermediate_size"] = self.intermediate_size or derived["intermediate_size"]
        for name, size in derived.items():
            if getattr(self, name) is DERIVED:
                object.__setattr__(self, name, size)  # once, before anybody can read the frozen fields
        self._check_ranges()

    def _check_kinds(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) is not DERIVED or name not in _DERIVED:
                check_count(name, getattr(self, name))
        check_count("num_shared_experts", self.num_shared_experts, at_least=0)
        for name in _NUMBERS:
            check_number(name, getattr(self, name))
        for name in _FLAGS:
            check_flag(name, getattr(self, name))
        if self.rope_scaling is not None and not isinstance(self.rope_scaling, RopeScaling):
            raise ValueError(
                f"rope_scaling must be a RopeScaling or None, got {self.rope_scaling!r}; a dictionary of upstream's is "
                "translated by MiniMindConfig.from_upstream"
            )
        if isinstance(self.eos_token_id, list):
            object.__setattr__(self, "eos_token_id", tuple(self.eos_token_id))
        for name in ("bos_token_id", "eos_token_id"):
            for token in tokens_of(getattr(self, name)):
                check_count(name, token, at_least=0)
                if token >= self.vocab_size:
                    raise ValueError(f"{name} must lie in [0, {self.vocab_size}), the vocabulary, got {token}")

    def _check_heads(self) -> None:
        heads, kv_heads = self.num_attention_heads, self.num_key_value_heads
        if heads % kv_heads:
            raise ValueError(
                f"num_attention_heads must be a multiple of num_key_value_heads, got {heads} and {kv_heads}: every "
                "key/value head serves the same number of query heads. Note that num_key_value_heads counts heads; "
                "it is not the number of query heads in a group"
            )
        if self.head_dim is DERIVED and self.hidden_size % heads:
            raise ValueError(
                f"hidden_size must be a multiple of num_attention_heads, got {self.hidden_size} and {heads}; "
                "change one of them, or give head_dim yourself"
            )

    def _check_ranges(self) -> None:
        if self.head_dim % 2:
            raise ValueError(
                f"head_dim must be even because RoPE rotates pairs of channels, got {self.head_dim}; "
                "change hidden_size, num_attention_heads or head_dim"
            )
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
        for name in ("initializer_range", "router_aux_loss_coef"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} cannot be negative, got {getattr(self, name)}")

    @property
    def queries_per_kv(self) -> int:
        """G = H / K, the number of query heads that share one key/value head."""
        return self.num_attention_heads // self.num_key_value_heads

    @classmethod
    def minimind2(cls, **changes: Any) -> "MiniMindConfig":
        """MiniMind2 small, 512 x 8: 25,829,888 parameters. hidden_size=768, num_hidden_layers=16 is MiniMind2."""
        # one renormalized weight is always exactly 1; MiniMind2 renormalizes only where there are several
        alone: dict[str, Any] = {"norm_topk_prob": False} if changes.get("num_experts_per_tok") == 1 else {}
        return cls(**alone | changes)

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
        changes = translated(upstream, generation)
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise ValueError(
                f"upstream's {generation} config has no field {', '.join(unknown)}; "
                f"known here: {', '.join(sorted(known))}"
            )
        # upstream writes None where it means "derive it"
        changes = {name: value for name, value in changes.items() if value is not None or name not in _DERIVED}
        return (cls.minimind2 if generation == "minimind2" else cls.minimind3)(**changes)


_DERIVED = ("head_dim", "intermediate_size", "moe_intermediate_size")
_COUNTS = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "max_position_embeddings", "num_experts", "num_experts_per_tok", *_DERIVED,
)  # fmt: skip
_NUMBERS = ("rope_theta", "rms_norm_eps", "dropout", "initializer_range", "router_aux_loss_coef")
_FLAGS = ("use_qk_norm", "tie_word_embeddings", "use_moe", "norm_topk_prob", "seq_aux")


def tokens_of(ids: Any) -> tuple[Any, ...]:
    """None, one token id or several, as a tuple; they are not checked."""
    if ids is None:
        return ()
    return tuple(ids) if isinstance(ids, list | tuple) else (ids,)


def minimind2_intermediate_size(hidden_size: int) -> int:
    """8/3 of the hidden size, rounded up to a multiple of 64 (512 -> 1408, 640 -> 1728, 768 -> 2048)."""
    return 64 * math.ceil(int(hidden_size * 8 / 3) / 64)


def minimind3_intermediate_size(hidden_size: int) -> int:
    """Pi times the hidden size, rounded up to a multiple of 64 (512 -> 1664, 768 -> 2432)."""
    return 64 * math.ceil(hidden_size * math.pi / 64)
