"""The KV cache of a whole model, and what may be given for it as `past_key_values`.

One LayerCache for each layer (`layer_cache.py`), held together so that all of them have seen the same positions.
MiniMind: `model/model_minimind.py`, `past_key_values` of MiniMindModel.forward.
"""

import copy
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from minimind_edu.model.layer_cache import BufferCache, KeyValue
from minimind_edu.validation import check_count, check_tensor


class KVCache(Sequence[KeyValue]):
    """The caches of all L layers; reads like the notes' list of `(key, value)` pairs. Arguments as in BufferCache."""

    def __init__(self, num_layers: int, capacity: int = 0):
        check_count("num_layers", num_layers)
        self.layers = [BufferCache(capacity) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """T, the positions held."""
        return self.layers[0].length

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, layer: Any) -> Any:
        """The pair of one layer, or a list of those of a slice."""
        if isinstance(layer, slice):
            return [(cache.key, cache.value) for cache in self.layers[layer]]
        return self.layers[layer].key, self.layers[layer].value

    def __bool__(self) -> bool:
        return True  # an empty cache is still a cache: `past or None` must not lose it

    def fork(self) -> "KVCache":
        """The same past, to be continued in another way."""
        twin = copy.copy(self)
        twin.layers = [layer.fork() for layer in self.layers]
        return twin

    def reserve(self, count: int) -> tuple[list[Tensor], list[Tensor]]:
        """The key buffers and the value buffers of all layers, with `count` positions more; see BufferCache.reserve."""
        keys, values = zip(*(layer.reserve(count) for layer in self.layers), strict=True)
        return list(keys), list(values)

    def num_bytes(self) -> int:
        """Bytes of the keys and values held (room not yet used is not counted): 2 * L * B * T * K * D * itemsize."""
        return sum(tensor.numel() * tensor.element_size() for pair in self for tensor in pair if tensor is not None)

    def to_hf_layout(self) -> tuple[KeyValue, ...]:
        """The pairs as transformers lays them out: `[B, K, T, D]`, views of the same memory."""
        return tuple((key.transpose(1, 2), value.transpose(1, 2)) for key, value in self)

    @classmethod
    def from_pairs(cls, pairs: Any, num_layers: int, num_heads: int, head_dim: int) -> "KVCache":
        """The cache that `past_key_values` stands for: a fork of a KVCache, or L pairs of `[B, T, K, D]`.

        Raises a ValueError for anything else, and for what does not fit the model's L, K and D.
        """
        if isinstance(pairs, KVCache):
            cache = pairs.fork()
        else:
            cache = cls(num_layers)
            cache.layers = [BufferCache.holding(*pair) for pair in _checked_pairs(pairs)]
        if len(cache) != num_layers:
            raise ValueError(
                f"past_key_values must hold one pair for each of the {num_layers} layers, got {len(cache)}"
            )
        for index, layer in enumerate(cache.layers):
            if layer.length != cache.length:
                raise ValueError(
                    f"all layers must have seen the same positions, but layer 0 holds {cache.length} "
                    f"and layer {index} holds {layer.length}"
                )
            _check_layout(index, layer.key, num_heads, head_dim)
        return cache


def _checked_pairs(pairs: Any) -> list[KeyValue]:
    if not isinstance(pairs, list | tuple):
        raise ValueError(
            "past_key_values must be one (key, value) pair of [B, T, K, D] for each layer, got "
            f"{type(pairs).__name__}; a transformers cache can be read layer by layer and transposed to [B, T, K, D]"
        )
    for index, pair in enumerate(pairs):
        if pair is None:
            raise ValueError(
                f"past_key_values[{index}] is None: the call that returned it ran without use_cache=True; "
                "pass past_key_values=None to start anew"
            )
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"past_key_values[{index}] must be a (key, value) pair, got {type(pair).__name__}")
        for tensor in pair:
            check_tensor(f"past_key_values[{index}]", tensor, "of [B, T, K, D], twice")
    return list(pairs)


def _check_layout(index: int, key: Tensor | None, num_heads: int, head_dim: int) -> None:
    if key is None or list(key.shape[2:]) == [num_heads, head_dim]:
        return
    hint = ""
    if list(key.shape[1:4:2]) == [num_heads, head_dim]:
        hint = "; this looks like transformers' [B, K, T, D]: transpose(1, 2) converts it"
    elif key.shape[3] == head_dim and key.shape[2] % num_heads == 0:
        hint = "; the cache holds key/value heads before repeat_kv, not query heads"
    raise ValueError(
        f"past_key_values[{index}] must be [B, T, K, D] with K={num_heads} and D={head_dim}, "
        f"got {list(key.shape)}{hint}"
    )
