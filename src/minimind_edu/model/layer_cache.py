"""Keys and values of the positions that one layer has already seen, so that it need not compute them again.

What is kept is the keys after RoPE and the values, both before repeat_kv: `[B, T, K, D]` each, T the positions so far.
MiniMind and the notes join old and new with torch.cat and copy everything at every step (CatCache in
`for_comparison.py`); BufferCache writes the new positions in place after the old ones. `kv_cache.py` holds the caches
of all layers.
MiniMind: `model/model_minimind.py`, class Attention, `past_key_value`.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from minimind_edu.validation import check_count

KeyValue = tuple[Tensor, Tensor]  # each [B, T, K, D]


class LayerCache(Protocol):
    """What attention asks of a cache: the keys and values of one layer."""

    def append(self, key: Tensor, value: Tensor) -> KeyValue: ...


def check_new(old: Tensor | None, key: Tensor, value: Tensor) -> None:
    """Raise a ValueError unless key and value belong together and continue `old`, the keys held so far, if any."""
    if key.dim() != 4 or key.shape != value.shape:
        raise ValueError(f"keys and values must both be [B, S, K, D], got {list(key.shape)} and {list(value.shape)}")
    if (key.dtype, key.device) != (value.dtype, value.device):
        raise ValueError(
            "keys and values must have one dtype and device, "
            f"got {key.dtype} on {key.device} and {value.dtype} on {value.device}"
        )
    if old is not None and (old.shape[0], *old.shape[2:]) != (key.shape[0], *key.shape[2:]):
        raise ValueError(
            f"the cache holds [B, T, K, D] = {list(old.shape)}, which new keys of shape {list(key.shape)} do not "
            "continue: only the second axis, positions, may differ"
        )
    if old is not None and (old.dtype, old.device) != (key.dtype, key.device):
        raise ValueError(
            f"the cache holds {old.dtype} on {old.device}, but the new keys are {key.dtype} on {key.device}; "
            "convert the model before the first call, not between calls"
        )


def joined(old_key: Tensor | None, old_value: Tensor | None, key: Tensor, value: Tensor) -> KeyValue:
    """Old and new positions in new tensors: `[B, T, K, D]` and `[B, S, K, D]` -> `[B, T + S, K, D]`."""
    if old_key is None or old_value is None:
        return key, value
    return torch.cat([old_key, key], dim=1), torch.cat([old_value, value], dim=1)


@dataclass
class _Buffers:
    """The two tensors that one or several BufferCaches share, and how far they are filled."""

    key: Tensor  # [B, capacity, K, D]
    value: Tensor
    filled: int


class BufferCache:
    """The cache of one layer in a preallocated buffer: a step writes its S positions and copies nothing else.

    When the buffer is full it is replaced by one of twice the size, so that copying stays O(1) per position on average.
    `fork()` gives a second cache with the same past at no cost. The two share the buffer until both want to write
    the same position; the later one then moves to a buffer of its own. Nobody's past is ever overwritten.

    Args:
        capacity: positions to make room for at the first append, when the shapes are known. It is a hint, no limit.
    """

    def __init__(self, capacity: int = 0):
        check_count("capacity", capacity, at_least=0)
        self.length = 0  # T, the positions held
        self._capacity = capacity
        self._buffers: _Buffers | None = None

    @classmethod
    def holding(cls, key: Tensor, value: Tensor) -> "BufferCache":
        """A cache that holds these keys and values, `[B, T, K, D]` each, without copying them yet."""
        check_new(None, key, value)
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
        twin = BufferCache(self._capacity)
        twin.length, twin._buffers = self.length, self._buffers
        return twin

    def append(self, key: Tensor, value: Tensor) -> KeyValue:
        """Add S new positions, `[B, S, K, D]` each, and return all of them, `[B, T + S, K, D]` each.

        Raises a ValueError if the new ones differ from the old in more than their number.
        """
        check_new(self.key, key, value)
        end = self.length + key.shape[1]
        if key.requires_grad or value.requires_grad or self._holds_gradients():
            self._buffers = buffers = _Buffers(*joined(self.key, self.value, key, value), end)
        else:
            buffers = self._buffers_with_room(end, key, value)
            # Autograd may have saved views of the past, for the queries' gradient. `.data` writes without its knowing,
            # which is right here: no view has ever shown the positions that are written.
            buffers.key.data[:, self.length : end] = key
            buffers.value.data[:, self.length : end] = value
            buffers.filled = end
        self.length = end
        return buffers.key[:, :end], buffers.value[:, :end]

    def reserve(self, count: int) -> KeyValue:
        """The whole buffers, `[B, capacity, K, D]` each, for the caller to write `count` more positions there.

        They count as filled. Raises a ValueError if the cache is empty.
        """
        check_count("count", count, at_least=0)
        key, value = self.key, self.value
        if key is None or value is None:
            raise ValueError("an empty cache has no shapes to reserve room for: append the prompt's keys first")
        buffers = self._buffers_with_room(self.length + count, key, value)
        buffers.filled = self.length = self.length + count
        return buffers.key.data, buffers.value.data  # .data as in append

    def _holds_gradients(self) -> bool:
        held = self._buffers
        return held is not None and (held.key.requires_grad or held.value.requires_grad)

    def _buffers_with_room(self, end: int, key: Tensor, value: Tensor) -> _Buffers:
        """The buffers, if this cache may write positions up to `end` there; else new ones, made like key and value."""
        buffers = self._buffers
        if buffers is not None and self._may_write(buffers, end):
            return buffers
        room = max(self._capacity, end if buffers is None else 2 * end)
        shape = (key.shape[0], room, *key.shape[2:])
        new = _Buffers(key.new_empty(shape), value.new_empty(shape), self.length)
        if buffers is not None:
            new.key[:, : self.length] = buffers.key[:, : self.length]
            new.value[:, : self.length] = buffers.value[:, : self.length]
        self._buffers = new
        return new

    def _may_write(self, buffers: _Buffers, end: int) -> bool:
        if buffers.filled != self.length or end > buffers.key.shape[1]:
            return False  # a fork has written here already, or there is no room
        # torch forbids writing to a tensor of inference mode from outside of it
        return not self._holds_gradients() and (torch.is_inference_mode_enabled() or not buffers.key.is_inference())
