"""What a call of the model costs, counted from its sizes alone: operations done and bytes moved. Nothing is run.

    operations = 2 * multiply-adds of all matrix products      (elementwise work is left out, a few percent)
    bytes      = weights, each read once + cache, each position moved once
    time      >= max(bytes / bandwidth, operations / peak)     the roofline

Activations are left out of the bytes: while decoding they are thousands of times smaller than the weights. A causal
mask saves nothing here: all S * T pairs of queries and keys are counted, as attention written out computes them.
The letters are those of `attention.py`: B batch, S new positions, T all positions, H, K, D, E, L, and I, V, N.
Roofline: Williams, Waterman, Patterson 2009. MiniMind has no such file.
"""

from dataclasses import dataclass

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.validation import check_count, check_number


@dataclass(frozen=True)
class Cost:
    """What has to be done and moved; costs of several calls can be added."""

    operations: int  # additions and multiplications, two for each multiply-add
    weight_bytes: int
    cache_bytes: int  # of keys and values: what is read of the past, and what is written

    @property
    def bytes(self) -> int:
        """Weights and cache together."""
        return self.weight_bytes + self.cache_bytes

    @property
    def intensity(self) -> float:
        """Operations for each byte moved."""
        return self.operations / self.bytes

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.operations + other.operations,
            self.weight_bytes + other.weight_bytes,
            self.cache_bytes + other.cache_bytes,
        )


@dataclass(frozen=True)
class Machine:
    """The two limits of a machine.

    Raises:
        ValueError: if a limit is not a positive number.
    """

    bandwidth: float  # bytes per second, from memory
    peak: float  # operations per second, in matrix products

    def __post_init__(self) -> None:
        check_number("bandwidth, in bytes per second,", self.bandwidth, "above 0")
        check_number("peak, in operations per second,", self.peak, "above 0")

    @property
    def ridge(self) -> float:
        """The intensity at which both limits take equally long; below it memory limits, above it arithmetic."""
        return self.peak / self.bandwidth

    def attainable(self, intensity: float) -> float:
        """The most operations per second at this intensity."""
        return min(self.peak, intensity * self.bandwidth)

    def seconds(self, cost: Cost) -> float:
        """The least time that the cost can take here, if moving and computing overlap perfectly."""
        return max(cost.bytes / self.bandwidth, cost.operations / self.peak)

    def limited_by(self, cost: Cost) -> str:
        """`memory` or `arithmetic`."""
        return "memory" if cost.intensity < self.ridge else "arithmetic"


def layer_matrix_weights(config: MiniMindConfig, experts: int | None = None) -> int:
    """Numbers in the matrices of one layer.

    Args:
        experts: how many of the routed experts count; None: those that one token visits.
    """
    return _attention_weights(config) + _feed_forward_weights(config, experts)


def _attention_weights(config: MiniMindConfig) -> int:
    heads = config.num_attention_heads + config.num_key_value_heads  # q and o; k and v
    return 2 * config.hidden_size * config.head_dim * heads


def _feed_forward_weights(config: MiniMindConfig, experts: int | None) -> int:
    if not config.use_moe:
        return 3 * config.hidden_size * config.intermediate_size
    if experts is None:
        experts = config.num_experts_per_tok
    check_count("experts", experts, 0, config.num_experts)
    router = config.num_experts * config.hidden_size
    one_expert = 3 * config.hidden_size * config.moe_intermediate_size
    return router + (experts + config.num_shared_experts) * one_expert


def _norm_weights(config: MiniMindConfig) -> int:
    """Gains of all norms: two in a layer, those of its queries and keys, and the final one."""
    layer = 2 * config.hidden_size + (2 * config.head_dim if config.use_qk_norm else 0)
    return config.num_hidden_layers * layer + config.hidden_size


@dataclass(frozen=True)
class Part:
    """What one part of the model has learned, and what it computes for one token."""

    weights: int
    multiply_adds: int


def parts_of(config: MiniMindConfig, context: int) -> dict[str, Part]:
    """Weights and multiply-adds of every part, over all layers, while one token is read with a cache.

    The weights add up to `num_parameters()`, and twice the multiply-adds to the operations of `decode_cost`.

    Args:
        context: positions that the token attends to, itself included.
    """
    check_count("context", context)
    layers, table = config.num_hidden_layers, config.vocab_size * config.hidden_size
    projections = layers * _attention_weights(config)
    pairs = layers * config.num_attention_heads * context
    return {
        "embedding": Part(table, 0),  # a row is looked up
        "attention: projections": Part(projections, projections),
        "attention: scores, mixing": Part(0, 2 * pairs * config.head_dim),
        "feed-forward": Part(
            layers * _feed_forward_weights(config, config.num_experts), layers * _feed_forward_weights(config, None)
        ),
        "norms": Part(_norm_weights(config), 0),
        "output layer": Part(0 if config.tie_word_embeddings else table, table),
    }


def weights_read(config: MiniMindConfig, tokens: int = 1) -> int:
    """Numbers of the model that a call must read, each once: all but idle experts and an untied embedding table.

    Of an embedding table that is not also the output layer, only the rows of the tokens are read; they are left out.

    Args:
        tokens: B * S. With a mixture of experts more tokens wake more experts: as many as possible are counted.
    """
    check_count("tokens", tokens)
    experts = min(config.num_experts, tokens * config.num_experts_per_tok)
    head = config.vocab_size * config.hidden_size
    return config.num_hidden_layers * layer_matrix_weights(config, experts) + _norm_weights(config) + head


def cache_bytes_per_position(config: MiniMindConfig, itemsize: int = 4) -> int:
    """Bytes that one position of one sequence occupies in the KV cache: keys and values of all layers."""
    check_count("itemsize", itemsize)
    kept = config.num_key_value_heads * config.head_dim
    return 2 * config.num_hidden_layers * kept * itemsize


def call_cost(
    config: MiniMindConfig, new: int, past: int = 0, batch: int = 1, itemsize: int = 4, logits: int = 1
) -> Cost:
    """One call of the model.

    Args:
        new: S, positions that the model has not read yet.
        past: positions whose keys and values come from the cache.
        batch: B, sequences of this length.
        itemsize: bytes of one number, in weights and cache.
        logits: positions of each sequence whose logits are computed; generating needs the last only.

    Raises:
        ValueError: if a size is not a whole number in its range.
    """
    for name, count in {"new": new, "batch": batch, "itemsize": itemsize, "logits": logits}.items():
        check_count(name, count)
    check_count("past", past, at_least=0)
    if logits > new:
        raise ValueError(f"there are logits for new positions only, got logits={logits}, new={new}")
    matrices = batch * new * config.num_hidden_layers * layer_matrix_weights(config)
    pairs = batch * new * (past + new) * config.num_hidden_layers * config.num_attention_heads
    attention = 2 * pairs * config.head_dim  # a product for the score, one for the mixture
    head = batch * logits * config.vocab_size * config.hidden_size
    return Cost(
        operations=2 * (matrices + attention + head),
        weight_bytes=itemsize * weights_read(config, batch * new),
        cache_bytes=batch * (past + new) * cache_bytes_per_position(config, itemsize),
    )


def decode_cost(config: MiniMindConfig, context: int, batch: int = 1, itemsize: int = 4) -> Cost:
    """One decode step: every sequence gets one token, which attends to `context` positions, itself included."""
    check_count("context", context)
    return call_cost(config, 1, context - 1, batch, itemsize)


def prefill_cost(config: MiniMindConfig, length: int, batch: int = 1, itemsize: int = 4) -> Cost:
    """Reading prompts of `length` tokens in one call, logits of the last position only."""
    return call_cost(config, length, 0, batch, itemsize)


def generation_cost(
    config: MiniMindConfig, prompt: int, new_tokens: int, use_cache: bool = True, batch: int = 1, itemsize: int = 4
) -> Cost:
    """Continuing a prompt greedily: prefill and decode steps, or every time the whole text.

    The last token chosen is never read, so `new_tokens` calls are made, the prompt's own included.
    """
    check_count("new_tokens", new_tokens)
    calls = [prefill_cost(config, prompt, batch, itemsize)]
    for length in range(prompt + 1, prompt + new_tokens):
        cost = decode_cost if use_cache else prefill_cost
        calls.append(cost(config, length, batch, itemsize))
    return sum(calls, Cost(0, 0, 0))
