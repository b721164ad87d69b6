"""The caches of transformers, used by our attention as they are.

Our layers ask a cache for one thing, `append(key, value)` with `[B, S, K, D]`. Theirs keep `[B, K, T, D]` and are
changed in place: generate reorders, repeats and crops them between calls. So nothing is copied over: the layers below
hand each new key and value to the cache that was given, and read back what it holds.
"""

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, EncoderDecoderCache

from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.layer_cache import KeyValue


class _TransformersLayer:
    """One layer of a transformers cache, in our layout."""

    def __init__(self, cache: Cache, index: int):
        self._cache, self._index = cache, index

    @property
    def length(self) -> int:
        """T, the positions held."""
        # a StaticCache answers with the very tensor that it goes on counting with
        return int(self._cache.get_seq_length(self._index))

    @property
    def key(self) -> Tensor | None:
        """`[B, T, K, D]`, a view."""
        return self._held("keys")

    @property
    def value(self) -> Tensor | None:
        """`[B, T, K, D]`, a view."""
        return self._held("values")

    def _held(self, name: str) -> Tensor | None:
        length = self.length
        if length == 0:
            return None
        held = getattr(self._cache.layers[self._index], name)
        # a quantized cache keeps other things there
        return held.transpose(1, 2)[:, :length] if held.dim() == 4 else None

    def append(self, key: Tensor, value: Tensor) -> KeyValue:
        """Add S new positions, `[B, S, K, D]` each, and return all of them, `[B, T + S, K, D]` each."""
        start = self.length
        end = start + key.shape[1]
        positions = torch.arange(start, end, device=key.device)  # static caches of 5.0 ask for them
        keys, values = self._cache.update(
            key.transpose(1, 2), value.transpose(1, 2), self._index, {"cache_position": positions}
        )
        # a static cache returns all of its room, [B, K, max, D]
        return keys[:, :, :end].transpose(1, 2), values[:, :, :end].transpose(1, 2)


class TransformersCache(KVCache):
    """A transformers cache in the place of ours: read in our layout, changed in place.

    Raises:
        ValueError: if the cache is of a kind that does not keep all positions of a decoder.
    """

    def __init__(self, cache: Cache, num_layers: int):
        if isinstance(cache, EncoderDecoderCache) or any(cache.is_sliding):
            raise ValueError(
                f"this model is a decoder that looks back at every position, so a {type(cache).__name__} which "
                "forgets some, or belongs to an encoder, does not fit; use DynamicCache or StaticCache"
            )
        if len(cache.layers) not in (0, num_layers):
            raise ValueError(
                f"past_key_values holds {len(cache.layers)} layers, but the model has {num_layers}; a cache belongs "
                "to the model that filled it"
            )
        self.cache = cache
        self.layers = [_TransformersLayer(cache, index) for index in range(num_layers)]

    def fork(self) -> "TransformersCache":
        """Itself: unlike ours, these caches are continued in place, and generate relies on it."""
        return self


def to_dynamic_cache(past: KVCache) -> DynamicCache:
    """A cache of ours, `[B, T, K, D]` in each layer, as one that transformers can continue."""
    cache = DynamicCache()
    for index, (key, value) in enumerate(past):
        if key is not None:
            cache.update(key.transpose(1, 2), value.transpose(1, 2), index)
    return cache
