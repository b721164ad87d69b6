"""MemoryBars: where the memory of a card goes in training and serving, part by part.

Bytes are counted in JavaScript (memory_bars/math.js, compared with `minimind_edu.measure.memory` in the tests), and
held against what one GPU measured: memory_bars/measured.json, written by `python -m benchmarks.memory --into FILE`.
"""

import json
from pathlib import Path
from typing import Any

from traitlets import Bool, Dict, Enum, List, default

from minimind_edu.measure.memory import Memory, serving_memory, training_memory
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.web.base import Figure

STORED = Path(__file__).parent / "measured.json"
MODELS = {
    "small": MiniMindConfig.minimind2(),
    "base": MiniMindConfig.minimind2(hidden_size=768, num_hidden_layers=16),
    "minimind3": MiniMindConfig.minimind3(),
}
KINDS = ("train", "lora", "dpo", "serve")
BATCHES = tuple(2**power for power in range(9))  # 1 to 256
LENGTHS = tuple(2**power for power in range(6, 14))  # 64 to 8192
CARDS = (8, 16, 24, 80)  # GB
_SIZES = {  # name in JavaScript -> of the config
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kvHeads": "num_key_value_heads",
    "headDim": "head_dim",
    "inner": "intermediate_size",
    "vocabulary": "vocab_size",
    "positions": "max_position_embeddings",
    "qkNorm": "use_qk_norm",
    "tied": "tie_word_embeddings",
}


def sizes_of(config: MiniMindConfig) -> dict[str, int | bool]:
    """What math.js counts from."""
    return {name: getattr(config, field) for name, field in _SIZES.items()}


class MemoryBars(Figure):
    """Choose what is trained or served, how much at once, and on which card.

    Args:
        kind: "train" (pre-training and SFT: the same memory), "lora" (rank 8), "dpo", or "serve" with a KV cache.
        batch: texts at once, a power of two up to 256; of DPO, both texts of each pair.
        length: tokens of each, a power of two from 64 to 8192.
        half: matrix products in bfloat16; serving, the weights and the cache too.
        card: GB of the card: 8, 16, 24 or 80.
        model: "small" or "base" of MiniMind2, or "minimind3".

    Raises:
        TraitError: for any other value.
    """

    _repr_traits = ("kind", "batch", "length", "half", "card", "model")

    kind = Enum(KINDS, default_value="train").tag(sync=True)
    batch = Enum(BATCHES, default_value=32).tag(sync=True)
    length = Enum(LENGTHS, default_value=512).tag(sync=True)
    half = Bool(False).tag(sync=True)
    card = Enum(CARDS, default_value=8).tag(sync=True)
    model = Enum(tuple(MODELS), default_value="small").tag(sync=True)
    sizes = Dict(read_only=True).tag(sync=True)
    measured = List(read_only=True).tag(sync=True)  # model, batch, length, kind, half, bytes at most

    @default("sizes")
    def _sizes_of_models(self) -> dict[str, dict[str, int | bool]]:
        return {name: sizes_of(config) for name, config in MODELS.items()}

    @default("measured")
    def _stored_peaks(self) -> list[list[Any]]:
        rows = json.loads(STORED.read_text(encoding="utf-8"))["rows"]
        return [[*row[:5], row[-1]] for row in rows]

    def memory(self) -> Memory:
        """The bytes of each part, as `minimind_edu.measure.memory` counts them."""
        config = MODELS[self.model]
        if self.kind == "serve":
            return serving_memory(config, self.batch, self.length, itemsize=2 if self.half else 4)
        return training_memory(config, self.batch, self.length, self.kind, self.half)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        memory = self.memory()
        parts = {
            "weights": memory.weights,
            "reference": memory.reference,
            "Adam": memory.adam,
            "half-precision copies": memory.copies,
            "KV cache": memory.cache,
            "activations": memory.activations,
            "logits": memory.logits,
            "gradients, while Adam steps": memory.gradients + memory.scratch,
            "at most": memory.peak,
        }
        rows = [(name, f"{count / 1e9:.2f} GB") for name, count in parts.items() if count]
        return "Where the memory of a card goes, part by part, and the most that is there at once.", rows
