"""Where the memory goes while a model is trained or served, counted from its sizes alone. Nothing is run.

    weights       4 bytes a number, and the tables of RoPE
    gradients     4 bytes for each number that is trained
    Adam          8: its two averages (Kingma, Ba 2015, arXiv 1412.6980)
    activations   what the forward pass leaves for the backward pass, below
    logits        batch * length * V numbers in float32, three times: their log-softmax, its gradient, and their own
    reference     DPO's second model (Rafailov et al. 2023, arXiv 2305.18290): weights and tables again

They are not all there at once. Memory is fullest at one of two moments: when the backward pass begins, with all
activations and no gradient yet; or in Adam's step, with all gradients and no activation.

Activations, numbers for one token in one block, where x is the residual stream. Autograd keeps what a derivative reads:

    a norm, each of two      x, 1 / rms(x), x / rms(x), and its result, which is what the next matrices read: 3 E + 1
    attention, fused         q, k, v, its result, and H sums of a softmax: 2 H D + 2 K D + H
    attention, plain         q; k and v repeated for all heads; its result; a row of weights for each head: 4 H D + H S
    network                  gate, silu(gate), up, and their product: 4 I
    norms of q and k         what they read, twice, and a root for each head: 2 (H + K) D + H + K

Plain is what torch takes for float32 on a GPU when heads are grouped: its fused kernels there are for half precision or
for as many keys as queries. After the last block: the final norm, 3 E + 1, and 8 bytes for the label.

With autocast (Micikevicius et al. 2018, arXiv 1710.03740) what a matrix product reads or gives has 2 bytes, the stream
and the norms keep 4, every product keeps a copy of its own of what it reads, and the matrices have copies of 2 bytes.
With LoRA (Hu et al. 2021, arXiv 2106.09685; here on the square matrices q_proj and o_proj, as MiniMind has it) frozen
matrices and gains ask for no input of theirs: x / rms(x), the result of the second norm and the network's product go,
and nothing before the first adapter is kept.

Left out: what the allocator rounds up (2 % on an H200), the CUDA context, dropout (MiniMind trains without), experts.
`benchmarks/memory.py` holds all of this against what a GPU has measured. MiniMind has no such file.
"""

from dataclasses import dataclass

from minimind_edu.measure.costs import cache_bytes_per_position, parts_of
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.validation import check_choice, check_count

KINDS = "train", "lora", "dpo"
WIDE, HALF, INDEX = 4, 2, 8  # bytes of a float32, of a bfloat16, of a token's number


@dataclass(frozen=True)
class Memory:
    """Bytes of each part. What a moment does not hold is left out of its sum, not of these numbers."""

    weights: int  # and the tables of RoPE
    reference: int = 0  # another model
    copies: int = 0  # of the matrices, in half precision
    adam: int = 0
    activations: int = 0
    logits: int = 0
    gradients: int = 0
    scratch: int = 0  # of Adam's step
    cache: int = 0  # keys and values, while serving

    @property
    def always(self) -> int:
        """What is there at every moment."""
        return self.weights + self.reference + self.adam + self.cache

    @property
    def backward(self) -> int:
        """When the backward pass begins; while serving, when the next token is chosen."""
        return self.always + self.copies + self.activations + self.logits

    @property
    def step(self) -> int:
        """While Adam changes the weights."""
        return self.always + self.gradients + self.scratch

    @property
    def peak(self) -> int:
        """The fuller of the two moments."""
        return max(self.backward, self.step)


def table_bytes(config: MiniMindConfig) -> int:
    """Cosines and sines of all positions, in float32."""
    return 2 * config.max_position_embeddings * config.head_dim * WIDE


def num_weights(config: MiniMindConfig) -> int:
    """Numbers that the model has learned."""
    return sum(part.weights for part in parts_of(config, 1).values())


def lora_weights(config: MiniMindConfig, rank: int) -> int:
    """Numbers of the adapters of q_proj and o_proj: A `[rank, in]` and B `[out, rank]` each."""
    return config.num_hidden_layers * 2 * rank * (config.hidden_size + config.num_attention_heads * config.head_dim)


def kept_for_backward(
    config: MiniMindConfig, length: int, kind: str = "train", autocast: bool = False, gpu: bool = True, rank: int = 8
) -> dict[str, int]:
    """Bytes that one token of a text leaves for the backward pass, piece by piece, over all blocks.

    Args:
        length: S, tokens of the text; plain attention keeps a weight for each of them.
        kind: "train" and "dpo" train all weights, "lora" adapters of this rank on q_proj and o_proj.
        autocast: matrix products in bfloat16.
        gpu: whether attention is plain in float32 with grouped heads; on a CPU it is fused.

    Raises:
        ValueError: for a mixture of experts, of which each token keeps what its experts compute, or for dropout.
    """
    _check(config, length, kind, rank)
    lora = kind == "lora"
    E, H, K = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
    D, L = config.head_dim, config.num_hidden_layers
    narrow = HALF if autocast else WIDE
    plain = gpu and not autocast and H != K
    # a norm: x and its root; x / rms(x) for the gain; its result, once or for each product that reads it
    norm = (E + 1) * WIDE if lora else (2 * E + 1) * WIDE
    read_by_attention = E * narrow * (3 if autocast and not lora else 1)  # lora: the adapter of q_proj
    read_by_network = 0 if lora else E * narrow * (2 if autocast else 1)
    heads = (H + K) * (D + 1) * WIDE if lora else (H + K) * (2 * D + 1) * WIDE
    attention = (4 * H * D + H * length) * WIDE if plain else (2 * H * D + 2 * K * D) * narrow + H * WIDE
    pieces = {
        "norms": L * (2 * norm + read_by_attention + read_by_network),
        "norms of q and k": L * heads * config.use_qk_norm,
        "attention": L * attention,
        "network": L * (3 if lora else 4) * config.intermediate_size * narrow,
        "adapters": L * 2 * rank * narrow * lora,
        "final norm": norm + (0 if lora else E * narrow),
        "label": INDEX,
    }
    if lora:  # no gradient goes before the first adapter: neither to the stream there, nor to its keys and values
        pieces["norms"] -= norm
        pieces["norms of q and k"] -= K * (D + 1) * WIDE * config.use_qk_norm
        pieces["attention"] -= H * D * WIDE * plain
    return pieces


def training_memory(
    config: MiniMindConfig,
    batch: int,
    length: int,
    kind: str = "train",
    autocast: bool = False,
    gpu: bool = True,
    rank: int = 8,
) -> Memory:
    """Training with AdamW on float32 weights; arguments and errors as in `kept_for_backward`.

    Args:
        batch: B, texts in one forward pass; of DPO, both texts of each pair.
    """
    check_count("batch", batch)
    kept = kept_for_backward(config, length, kind, autocast, gpu, rank)
    whole = num_weights(config)
    matrices = whole - parts_of(config, 1)["norms"].weights
    if not config.tie_word_embeddings:
        matrices -= config.vocab_size * config.hidden_size  # the embedding is looked up, not multiplied
    adapters = lora_weights(config, rank) if kind == "lora" else 0
    trained = adapters or whole
    copied = matrices + adapters
    if adapters:  # before the first adapter no gradient is asked for, so nothing there is read again
        heads = config.num_attention_heads + 2 * config.num_key_value_heads
        copied -= config.hidden_size * (heads * config.head_dim + rank)
    weights = (whole + adapters) * WIDE + table_bytes(config)
    return Memory(
        weights=weights,
        reference=weights if kind == "dpo" else 0,
        copies=copied * HALF * autocast,
        adam=2 * trained * WIDE,
        activations=batch * length * sum(kept.values()),
        logits=3 * batch * length * config.vocab_size * WIDE,
        gradients=trained * WIDE,
        scratch=trained * WIDE,
    )


def serving_memory(config: MiniMindConfig, batch: int, length: int, itemsize: int = 4) -> Memory:
    """Writing the next tokens of texts of this length, whose keys and values are in a cache.

    The working space in which a prompt is read is left out: engines read it in pieces.

    Args:
        batch: B, texts at once.
        length: positions of each in the cache.
        itemsize: bytes of a number in weights and cache; logits have 4.
    """
    check_count("batch", batch)
    check_count("length", length, 1, config.max_position_embeddings)
    return Memory(
        weights=num_weights(config) * itemsize + table_bytes(config),
        cache=batch * length * cache_bytes_per_position(config, itemsize),
        logits=batch * config.vocab_size * WIDE,
    )


def _check(config: MiniMindConfig, length: int, kind: str, rank: int) -> None:
    check_choice("kind", kind, KINDS)
    check_count("length", length, 1, config.max_position_embeddings)
    check_count("rank", rank)
    if config.use_moe:
        raise ValueError("kept_for_backward counts dense models, got use_moe=True; give the config of a dense one")
    if config.dropout:
        raise ValueError(f"kept_for_backward counts no masks of dropout, got dropout={config.dropout}; give dropout=0")
    if config.norm_placement != "pre":
        raise ValueError(f"kept_for_backward counts pre-norm, got {config.norm_placement!r}; give norm_placement='pre'")
