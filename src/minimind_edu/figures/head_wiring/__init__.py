"""HeadWiring: one slider from MHA through GQA to MQA, which query head reads which key/value head, and the cache.

The figure computes in JavaScript (head_wiring/math.js, compared with the package in the tests); the numbers in
its table are those of real caches, filled with tensors that have a shape and a dtype but no memory.
"""

import torch
from traitlets import Bool, Bunch, Enum, Int, TraitError, validate

from minimind_edu.model.kv_cache import KVCache
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import proposed

ORDERS = ("repeat_kv", "tiled")
DTYPES = ("float32", "bfloat16", "float16")
LENGTHS = tuple(2**power for power in range(16))  # 1 to 32,768, the stops of the slider


class HeadWiring(Figure):
    """Query heads that share key/value heads, and the cache that keeps only these.

    Args:
        num_heads: query heads, 2 to 16.
        num_kv_heads: key/value heads; must divide `num_heads`.
        head_dim: channels of one head. The stream is taken to be num_heads * head_dim wide, as in MiniMind.
        num_layers: 1 to 32.
        length: positions in the cache, a power of two from 1 to 32,768.
        dtype: of keys and values: `float32`, `bfloat16` or `float16`.
        order: how the heads are repeated: `repeat_kv`, or `tiled` as x.repeat does it.
        as_group_size: whether the number is misread as the number of queries that share a key/value head.

    Raises:
        TraitError: if the heads do not divide or a size is out of its range.
    """

    _repr_traits = ("num_kv_heads", "head_dim", "num_layers", "length", "dtype", "order")

    num_heads = Int(8, min=2, max=16).tag(sync=True, outside=None)  # no control follows it
    num_kv_heads = Int(4, min=1).tag(sync=True)
    head_dim = Int(96, min=1, max=256).tag(sync=True)
    num_layers = Int(8, min=1, max=32).tag(sync=True)
    length = Enum(LENGTHS, default_value=LENGTHS[-1]).tag(sync=True)
    dtype = Enum(DTYPES, default_value="float16").tag(sync=True)
    order = Enum(ORDERS, default_value="repeat_kv").tag(sync=True)
    as_group_size = Bool(False).tag(sync=True)

    @validate("num_heads", "num_kv_heads")
    def _heads_divide(self, proposal: Bunch) -> int:
        heads, kv_heads = proposed(self, proposal, "num_heads", "num_kv_heads")
        if heads % kv_heads:
            raise TraitError(
                f"num_heads must be a multiple of num_kv_heads, got {heads} and {kv_heads}: every key/value head "
                "serves as many queries as the others"
            )
        return proposal["value"]

    def stops(self) -> list[int]:
        """The numbers of key/value heads that divide the query heads, MHA first."""
        return [n for n in range(self.num_heads, 0, -1) if self.num_heads % n == 0]

    def cache(self, num_kv_heads: int, length: int) -> KVCache:
        """A real cache of these sizes, on the meta device: shapes and bytes, but no memory."""
        cache = KVCache(self.num_layers)
        shape = 1, length, num_kv_heads, self.head_dim
        for layer in cache.layers:
            key, value = (torch.empty(shape, dtype=getattr(torch, self.dtype), device="meta") for _ in range(2))
            layer.append(key, value)
        return cache

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for kv_heads in self.stops():
            name = {self.num_heads: " (MHA)", 1: " (MQA)"}.get(kv_heads, "")
            token = self.cache(kv_heads, 1).num_bytes()
            context = self.cache(kv_heads, self.length).num_bytes() / 2**20
            rows.append((f"{kv_heads} KV heads{name}", f"{token:,} B a token, {context:,.2f} MiB"))
        return (
            f"The cache of {self.num_layers} layers with head_dim {self.head_dim} in {self.dtype}, a token and at "
            f"{self.length:,} positions: each halving of the key/value heads halves it.",
            rows,
        )
