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

from minimind_edu.model.foreign import check_ramp_of_minimind
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.model.upstream import Generation, translated
from minimind_edu.validation import check_choice, check_count, check_even, check_flag, check_number, with_plain_numbers

DERIVED: Any = None  # stands for a size that follows from the others, until __post_init__ computes it


@dataclass(frozen=True)
class MiniMindConfig:
    """The sizes and switches of one model. The defaults are MiniMind2 small, the model of the source notes.

    `head_dim`, `intermediate_size` and `moe_intermediate_size` may be left out; they are then derived from
    `hidden_size` by MiniMind2's rules. `config.changed(hidden_size=768)` is a config with another size, and with those
    that follow from it (dataclasses.replace would keep them). Raises a ValueError if a value is of the wrong kind or
    sizes contradict each other; the message names the field, the rule, the values and the likely fix.
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
        with_plain_numbers(self)
        for name, (check, *rule) in _RULES.items():
            if getattr(self, name) is not DERIVED or name not in _DERIVED:
                check(name, getattr(self, name), *rule)
        self._check_heads()
        self._derive("head_dim", self.hidden_size // self.num_attention_heads)
        check_even("head_dim", self.head_dim)
        self._derive("intermediate_size", minimind2_intermediate_size(self.hidden_size))
        self._derive("moe_intermediate_size", self.intermediate_size)
        if self.num_experts_per_tok > self.num_experts:
            raise ValueError(
                f"num_experts_per_tok cannot exceed num_experts, got {self.num_experts_per_tok} of "
                f"{self.num_experts}: a token visits an expert at most once"
            )
        if not isinstance(self.rope_scaling, RopeScaling | None):
            raise ValueError(
                f"rope_scaling must be a RopeScaling or None, got {self.rope_scaling!r}; a dictionary of upstream's is "
                "translated by MiniMindConfig.from_upstream"
            )
        self._check_tokens("bos_token_id", () if self.bos_token_id is None else (self.bos_token_id,))
        self._check_tokens("eos_token_id", tokens_of(self.eos_token_id))
        if isinstance(self.eos_token_id, list):
            object.__setattr__(self, "eos_token_id", tuple(self.eos_token_id))

    def _check_tokens(self, name: str, tokens: tuple[Any, ...]) -> None:
        try:
            for token in tokens:
                check_count(name, token, 0, self.vocab_size - 1)
        except ValueError as error:
            raise ValueError(f"{error}; {name}=None says that there is none") from None

    def _derive(self, name: str, size: int) -> None:
        if getattr(self, name) is DERIVED:
            object.__setattr__(self, name, size)  # once, before anybody can read the frozen fields

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

    @property
    def queries_per_kv(self) -> int:
        """G = H / K, the number of query heads that share one key/value head."""
        return self.num_attention_heads // self.num_key_value_heads

    def changed(self, **changes: Any) -> "MiniMindConfig":
        """This config with other values, and with everything derived again that is as the rules of a preset derive it.

        Sizes that follow no rule stay. Raises the errors of MiniMindConfig, and a TypeError for an unknown field.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)} | changes
        hidden, heads = self.hidden_size, self.num_attention_heads
        if hidden % heads == 0 and self.head_dim == hidden // heads:
            values["head_dim"] = DERIVED
        if self.moe_intermediate_size == self.intermediate_size:
            values["moe_intermediate_size"] = DERIVED
        for rule in (minimind3_intermediate_size, minimind2_intermediate_size):
            if self.intermediate_size == rule(hidden):
                values["intermediate_size"] = rule(values["hidden_size"])
        # MiniMind2's rule for one expert, which its preset states
        if not self.use_qk_norm and self.norm_topk_prob == (self.num_experts_per_tok > 1):
            values["norm_topk_prob"] = values["num_experts_per_tok"] != 1
        return MiniMindConfig(**values | changes)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """What is taken for each field that is left out and not derived."""
        return {field.name: field.default for field in fields(cls) if field.default is not DERIVED}

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
        changes = {"hidden_size": 768} | changes
        changes = {"intermediate_size": minimind3_intermediate_size(changes["hidden_size"])} | changes
        shape = {"num_key_value_heads": 4, "rms_norm_eps": 1e-6, "use_qk_norm": True}
        experts = {"num_experts_per_tok": 1, "num_shared_experts": 0, "router_aux_loss_coef": 5e-4, "seq_aux": False}
        return cls(**shape | experts | changes)

    @classmethod
    def minimind3_moe(cls, **changes: Any) -> "MiniMindConfig":
        """MiniMind3-MoE, 768 x 8, one of four experts per token: 198,416,640 parameters."""
        return cls.minimind3(**{"use_moe": True, **changes})

    @classmethod
    def from_upstream(cls, upstream: Mapping[str, Any], generation: Generation) -> "MiniMindConfig":
        """Translate the arguments of upstream's own MiniMindConfig; what is not named takes its generation's default.

        Raises a ValueError for a generation that does not exist, or a name that this generation does not have.
        """
        changes = translated(upstream, generation, {field.name for field in fields(cls)})
        config = (cls.minimind2 if generation == "minimind2" else cls.minimind3)(**changes)
        check_ramp_of_minimind(config)
        return config


_DERIVED = ("head_dim", "intermediate_size", "moe_intermediate_size")
_COUNTS = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
           "max_position_embeddings", "num_experts", "num_experts_per_tok", *_DERIVED)  # fmt: skip
_FLAGS = ("use_qk_norm", "tie_word_embeddings", "use_moe", "norm_topk_prob", "seq_aux")
_RULES: dict[str, tuple[Any, ...]] = {  # field: what checks it, and what else it is told
    **dict.fromkeys(_COUNTS, (check_count,)),
    "num_shared_experts": (check_count, 0),
    **dict.fromkeys(_FLAGS, (check_flag,)),
    "norm_placement": (check_choice, ("pre", "post")),
    "dropout": (check_number, "at least 0 and below 1", "it is a probability"),
    "rms_norm_eps": (check_number, "above 0", "without it a vector of zeros divides by zero"),
    "rope_theta": (check_number, "above 1", "it is the base of the falling frequencies"),
    "initializer_range": (check_number, "at least 0"),
    "router_aux_loss_coef": (check_number, "at least 0"),
}


def tokens_of(ids: Any) -> tuple[Any, ...]:
    """None, one token id or several, as a tuple; they are not checked."""
    return () if ids is None else tuple(ids) if isinstance(ids, list | tuple) else (ids,)


def minimind2_intermediate_size(hidden_size: int) -> int:
    """8/3 of the hidden size, rounded up to a multiple of 64 (512 -> 1408, 640 -> 1728, 768 -> 2048)."""
    check_count("hidden_size", hidden_size)
    return 64 * math.ceil(int(hidden_size * 8 / 3) / 64)


def minimind3_intermediate_size(hidden_size: int) -> int:
    """Pi times the hidden size, rounded up to a multiple of 64 (512 -> 1664, 768 -> 2432)."""
    check_count("hidden_size", hidden_size)
    return 64 * math.ceil(hidden_size * math.pi / 64)
