"""Keys and values of the positions that one layer has already seen, so that it need not compute them again.

What is kept is the keys after RoPE and the values, both before repeat_kv: `[B, T, K, D]` each, T the positions so far.
Two ways to keep them: CatCache joins old and new with torch.cat, as the notes and MiniMind do, and copies everything at
every step; BufferCache writes the new positions in place after the old ones.

Both have one method that matters, `append(key, value)`, and both give the same numbers. `kv_cache.py` holds the caches
of all layers.
MiniMind: `model/model_minimind.py`, class Attention, `past_key_value`.
"""

from typing import Protocol

import torch
from torch import Tensor

from minimind_edu.validation import check_count

KeyValue = tuple[Tensor, Tensor]  # each [B, T, K, D]


class LayerCache(Protocol):
    """What attention asks of a cache: the keys and values of one layer."""

    @property
    def length(self) -> int: ...

    def append(self, key: Tensor, value: Tensor) -> KeyValue: ...


def _check_new(old: Tensor | None, key: Tensor, value: Tensor) -> None:
    if key.dim() != 4 or key.shape != value.shape:
        raise ValueError(f"keys and values must both be [B, S, K, D], got {list(key.shape)} and {list(value.shape)}")
    if (key.dtype, key.device) != (value.dtype, value.device):
        raise ValueError(
            f"keys and values must have one dtype and device, got {key.dtype} on {key.device} and {value.dtype} on "
            f"{value.device}"
        )
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
        self.key, self.value = _joined(self.key, self.value, key, value)
        return self.key, self.value


def _joined(old_key: Tensor | None, old_value: Tensor | None, key: Tensor, value: Tensor) -> KeyValue:
    """Old and new positions in new tensors: `[B, T, K, D]` and `[B, S, K, D]` -> `[B, T + S, K, D]`."""
    if old_key is None or old_value is None:
        return key, value
    return torch.cat([old_key, key], dim=1), torch.cat([old_value, value], dim=1)


class _Buffers:
    """The two tensors that one or several BufferCaches share, and how far they are filled."""

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
        zeroed: fill new room with zeros, for a reader of whole buffers under a mask: what is masked has weight 0, but
            0 times NaN is NaN. Otherwise memory is taken only as it is filled.
    """

    def __init__(self, capacity: int = 0, zeroed: bool = False):
        check_count("capacity", capacity, at_least=0)
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
            self._buffers = buffers = _Buffers(*_joined(self.key, self.value, key, value), end)
        else:
            buffers = self._buffers_with_room(end, key, value)
            # Autograd may have saved views of the past, for the queries' gradient. `.data` writes behind its back,
            # which is right here: the positions written are ones that no view has ever shown.
            buffers.key.data[:, self.length : end] = key
            buffers.value.data[:, self.length : end] = value
            buffers.filled = end
        self.length = end
        return buffers.key[:, :end], buffers.value[:, :end]

    def reserve(self, count: int) -> KeyValue:
        """Mark `count` more positions as filled, and return the whole buffers, `[B, capacity, K, D]` each.

        The caller writes those positions, and nothing else. Only for a cache that holds something, and so has shapes.

        Raises:
            ValueError: if the cache is empty, or `count` below 0.
        """
        check_count("count", count, at_least=0)
        key, value = self.key, self.value
        if key is None or value is None:
            raise ValueError("an empty cache has no shapes to reserve room for: append the prompt's keys first")
        buffers = self._buffers_with_room(self.length + count, key, value)
        buffers.filled = self.length = self.length + count
        return buffers.key.data, buffers.value.data  # .data as in append

    def _holds_gradients(self) -> bool:
        buffers = self._buffers
        return buffers is not None and (buffers.key.requires_grad or buffers.value.requires_grad)

    def _buffers_with_room(self, end: int, key: Tensor, value: Tensor) -> _Buffers:
        """The buffers, if this cache may write positions up to `end` there; else new ones that hold its past.

        Args:
            key, value: tensors with the batch size, heads, head_dim, dtype and device that new buffers take.
        """
        buffers = self._buffers
        if buffers is not None and self._may_write(buffers, end):
            return buffers
        batch, _, heads, head_dim = key.shape
        room = max(self._capacity, end if buffers is None else 2 * end)
        make = Tensor.new_zeros if self._zeroed else Tensor.new_empty
        shape = (batch, room, heads, head_dim)
        new = _Buffers(make(key, shape), make(value, shape), self.length)
        if buffers is not None:
            new.key[:, : self.length] = buffers.key[:, : self.length]
            new.value[:, : self.length] = buffers.value[:, : self.length]
        self._buffers = new
        return new

    def _may_write(self, buffers: _Buffers, end: int) -> bool:
        return (
            buffers.filled == self.length  # else a fork has written here already
            and end <= buffers.key.shape[1]
            and not self._holds_gradients()
            # torch forbids writing to a tensor of inference mode from outside of it
            and (torch.is_inference_mode_enabled() or not buffers.key.is_inference())
        )
