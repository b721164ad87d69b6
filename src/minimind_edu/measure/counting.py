"""What PyTorch does while a function runs, counted: operations of matrix products, routines called, bytes written.

Counts are the same on every machine, which times are not. `costs.py` has formulas for some of them and runs nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

T = TypeVar("T")


def count_operations(function: Callable[..., T], *args: Any, **named: Any) -> tuple[int, T]:
    """The operations of all matrix products in `function(*args, **named)`, and what it returned.

    Two for each multiply-add. Attention runs in its plain form meanwhile: PyTorch cannot count in the CPU's fused one.
    """
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        result = function(*args, **named)
    return counter.get_total_flops(), result


class Watch(TorchDispatchMode):
    """While this context is open, every routine that PyTorch dispatches to is seen.

    One call in Python can be several here: `F.rms_norm` on a CPU is six. Use it under `torch.no_grad()`, or what is
    done for gradients is seen too.

    Attributes:
        calls: how often each routine was called, by name.
        written: bytes of all results that are new tensors; a view of an old one writes nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.calls[name] += 1
        if not (func.is_view or name == "_unsafe_view"):
            # some routines also return a few numbers for the backward pass, after the result itself
            first = result[0] if isinstance(result, tuple) else result
            self.written += first.nbytes if isinstance(first, Tensor) else 0
        return result
