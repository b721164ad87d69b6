"""Keys and values of the positions that a model has already seen, so that it need not compute them again.

What is kept, for every layer, is the keys after RoPE and the values, both before repeat_kv: `[B, T, K, D]` each, T the
positions so far. Two ways to keep them: CatCache joins old and new with torch.cat, as the notes and MiniMind do, and
copies everything at every step; BufferCache writes the new positions in place behind the old ones.

Both have one method that matters, `append(key, value)`, and both give the same numbers.
MiniMind: `model/model_minimind.py`, class Attention, `past_key_value`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

KeyValue = tuple[Tensor, Tensor]  # each [B, T, K, D]


class LayerCache(Protocol):
    """What attention asks of a cache: the keys and values of one layer."""

    @property
    def length(self) -> int: ...

    def append(self, key: Tensor, value: Tensor) -> KeyValue: ...


def _check_new(old: Tensor | None, key: Tensor, value: Tensor) -> None:
    if key.dim() != 4 or key.shape != value.shape:
        raise ValueError(f"keys and values must both be [B, S, K, D], got {list(key.shape)} and {list(value.shape)}")
    if old is None:
        return
    if (old.shape[0], *old.shape[2:]) != (key.shape[0], *key.shape[2:]):
        raise ValueError(
            f"the cache holds [B, T, K, D] = {list(old.shape)}, which new keys of shape {list(key.shape)} do not "
            "continue: only the second axis, positions, may differ"
        )
    if (old.dtype, old.device) != (key.dtype, key.device):
        raise ValueError(
            f"the cache holds {old.dtype} on {old.device}, but the new keys are {key.dtype} on {key.device}; "
            "convert the model before the first call, not between calls"
        )


class CatCache:
    """The cache of one layer, made longer with torch.cat: obvious, and O(T) of copying at every step."""

    def __init__(self) -> None:
        self.key: Tensor | None = None  # [B, T, K, D]
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        """T, the positions held."""
        return 0 if self.key is None else self.key.shape[1]

    def append(self, key: Tensor, value: Tensor) -> KeyValue:
        """Add S new positions, `[B, S, K, D]` each, and return all of them, `[B, T + S, K, D]` each.

        Raises:
            ValueError: if the new tensors do not have the shape of the old ones but for the positions.
        """
        _check_new(self.key, key, value)
        if self.key is not None and self.value is not None:
            key = torch.cat([self.key, key], dim=1)
            value = torch.cat([self.value, value], dim=1)
        self.key, self.value = key, value
        return key, value


class _Buffers:
    """The two tensors behind one or several BufferCaches, and how far they are filled."""

    def __init__(self, key: Tensor, value: Tensor, filled: int):
        self.key, self.value = key, value  # [B, capacity, K, D]
        self.filled = filled


class BufferCache:
    """The cache of one layer in a preallocated buffer: a step writes its S positions and copies nothing else.

    When the buffer is full it is replaced by one of twice the size, so that copying stays O(1) a position on average.

    `fork()` gives a second cache with the same past at no cost. The two share the buffer until both want to write
    the same position; the later one then moves to a buffer of its own. Nobody's past is ever overwritten.

    Args:
        capacity: positions to make room for at the first append, when the shapes are known. It is a hint, no limit.
        zeroed: fill new room with zeros, for one who reads whole buffers under a mask: what is masked counts 0 times,
            but 0 times NaN is NaN. Otherwise memory is taken only as it is filled.
    """

    def __init__(self, capacity: int = 0, zeroed: bool = False):
        self.length = 0  # T, the positions held
        self._capacity, self._zeroed = capacity, zeroed
        self._buffers: _Buffers | None = None

    @classmethod
    def holding(cls, key: Tensor, value: Tensor) -> "BufferCache":
        """A cache that holds these keys and values, `[B, T, K, D]` each, without copying them yet."""
        _check_new(None, key, value)
        cache = cls()
        cache.length = key.shape[1]
        cache._buffers = _Buffers(key, value, cache.length)
        return cache

    @property
    def capacity(self) -> int:
        """Positions that the buffer has room for, or will have at the first append."""
        return self._capacity if self._buffers is None else self._buffers.key.shape[1]

    @property
    def key(self) -> Tensor | None:
        """`[B, T, K, D]`, a view of the buffer."""
        return None if self._buffers is None else self._buffers.key[:, : self.length]

    @property
    def value(self) -> Tensor | None:
        """`[B, T, K, D]`, a view of the buffer."""
        return None if self._buffers is None else self._buffers.value[:, : self.length]

    def fork(self) -> "BufferCache":
        """Another cache with the same past; appending to one does not change the other."""
        twin = BufferCache(self._capacity, self._zeroed)
        twin.length, twin._buffers = self.length, self._buffers
        return twin

    def append(self, key: Tensor, value: Tensor) -> KeyValue:
        """Add S new positions, `[B, S, K, D]` each, and return all of them, `[B, T + S, K, D]` each.

        Raises:
            ValueError: if the new tensors do not have the shape of the old ones but for the positions.
        """
        _check_new(self.key, key, value)
        end = self.length + key.shape[1]
        if key.requires_grad or value.requires_grad or self._holds_gradients():
            self._buffers = self._joined(key, value)
        else:
            if not self._may_write(end):
                self._move(key, value, end)
            # Autograd may have saved views of the past, for the queries' gradient. `.data` writes behind its back,
            # which is right here: the positions written are ones that no view has ever shown.
            self._buffers.key.data[:, self.length : end] = key
            self._buffers.value.data[:, self.length : end] = value
            self._buffers.filled = end
        self.length = end
        return self.key, self.value

    def reserve(self, count: int) -> KeyValue:
        """Count `count` more positions as held, and return the whole buffers, `[B, capacity, K, D]` each.

        The caller writes those positions, and nothing else; others keep what they hold, as with append. For caches that
        hold something, hence have shapes.
        """
        end = self.length + count
        if self._holds_gradients() or not self._may_write(end):
            self._move(self.key, self.value, end)
        self._buffers.filled = self.length = end
        return self._buffers.key.data, self._buffers.value.data  # .data as in append

    def _holds_gradients(self) -> bool:
        buffers = self._buffers
        return buffers is not None and (buffers.key.requires_grad or buffers.value.requires_grad)

    def _may_write(self, end: int) -> bool:
        buffers = self._buffers
        return (
            buffers is not None
            and buffers.filled == self.length  # else a fork has written here already
            and end <= buffers.key.shape[1]
            # torch forbids writing to a tensor of inference mode from outside of it
            and (torch.is_inference_mode_enabled() or not buffers.key.is_inference())
        )

    def _move(self, key: Tensor, value: Tensor, end: int) -> None:
        """Take a new buffer, with room to grow, and copy the past into it."""
        batch, _, heads, head_dim = key.shape
        room = max(self._capacity, end if self._buffers is None else 2 * end)
        old_key, old_value = self.key, self.value
        make = Tensor.new_zeros if self._zeroed else Tensor.new_empty
        shape = (batch, room, heads, head_dim)
        new = _Buffers(make(key, shape), make(value, shape), self.length)
        if old_key is not None and old_value is not None:
            new.key[:, : self.length] = old_key
            new.value[:, : self.length] = old_value
        self._buffers = new

    def _joined(self, key: Tensor, value: Tensor) -> _Buffers:
        if self.key is not None and self.value is not None:
            key = torch.cat([self.key, key], dim=1)
            value = torch.cat([self.value, value], dim=1)
        return _Buffers(key, value, key.shape[1])


class KVCache(Sequence[KeyValue]):
    """The caches of all layers; reads like the notes' list of `(key, value)` pairs, one for each layer.

    Args:
        num_layers: L.
        capacity, zeroed: positions to make room for, a hint, and whether it starts as zeros; as in BufferCache.
    """

    def __init__(self, num_layers: int, capacity: int = 0, zeroed: bool = False):
        self.layers = [BufferCache(capacity, zeroed) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """T, the positions held."""
        return self.layers[0].length

    @property
    def capacity(self) -> int:
        """Positions that there is room for."""
        return self.layers[0].capacity

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, layer: Any) -> Any:
        if isinstance(layer, slice):
            return [self[index] for index in range(len(self))[layer]]
        cache = self.layers[layer]
        return cache.key, cache.value

    def __iter__(self) -> Iterator[KeyValue]:
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        return True  # an empty cache is still a cache: `past or None` must not lose it

    def fork(self) -> "KVCache":
        """The same past, to be continued in another way."""
        twin = KVCache(0)
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
        """The cache that `past_key_values` stands for: a KVCache, or the notes' list of pairs.

        Args:
            pairs: a KVCache (continued on a fork), or L pairs of `[B, T, K, D]`.
            num_layers, num_heads, head_dim: L, K and D of the model.

        Raises:
            ValueError: if it is neither, or does not fit the model.
        """
        if isinstance(pairs, KVCache):
            cache = pairs.fork()
        else:
            cache = cls(0)
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
            f"past_key_values must be one (key, value) pair of [B, T, K, D] for each layer, got "
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
    return list(pairs)


def _check_layout(index: int, key: Tensor | None, num_heads: int, head_dim: int) -> None:
    if key is None or list(key.shape[2:]) == [num_heads, head_dim]:
        return
    hint = ""
    if list(key.shape[1:4:2]) == [num_heads, head_dim]:
        hint = "; this looks like transformers' [B, K, T, D]: transpose(1, 2) turns it around"
    elif key.shape[3] == head_dim and key.shape[2] % num_heads == 0:
        hint = "; the cache holds key/value heads before repeat_kv, not query heads"
    raise ValueError(
        f"past_key_values[{index}] must be [B, T, K, D] with K={num_heads} and D={head_dim}, "
        f"got {list(key.shape)}{hint}"
    )
