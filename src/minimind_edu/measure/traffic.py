"""How many bytes operations read and write, counted from their tensors: the same on every machine.

A count of what has to move, not of what a processor moves: its caches may save a reading, and memory has costs of its
own. MiniMind has no such file.
"""

import math
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Traffic(TorchDispatchMode):
    """Inside a `with` block, adds up the bytes that operations read and write.

    A view moves nothing. Any other operation reads its inputs and writes its results. What `expand` shows several
    times is one number in memory, and is read once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.read = self.written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        results = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        old = {tensor.untyped_storage().data_ptr() for tensor in inputs}
        changes_old = func._schema.is_mutable  # add_, copy_: the result is an input, and yet it is written
        written = [t for t in results if changes_old or t.untyped_storage().data_ptr() not in old]
        if written:
            self.written += sum(map(_bytes_in_memory, written))
            self.read += sum(_bytes_in_memory(t) for t in inputs if not any(t is w for w in written))
        return result


def _bytes_in_memory(tensor: Tensor) -> int:
    """Bytes of the numbers that a tensor shows, each counted once: along a stride of 0 they repeat."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return math.prod(size for size, stride in sizes if stride) * tensor.element_size() if tensor.numel() else 0
