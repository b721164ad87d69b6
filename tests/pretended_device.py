"""A GPU that is only pretended, to run on a machine without one what will run on a machine with one.

Tensors that are moved to it stay where they are and are marked. As on the real device, a marked and an unmarked tensor
cannot meet in one operation, and MPS takes no float64. What it cannot show: speed, rounding, and missing operations.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

_MAY_MIX = (
    Tensor.to,
    Tensor.copy_,
    Tensor.__getitem__,  # an index may stay on the CPU
    Tensor.__setitem__,
    Tensor.data.__set__,
    torch._has_compatible_shallow_copy_type,
)


def place(tensor: Tensor) -> str:
    """Where the tensor is, by its mark."""
    return getattr(tensor, "pretended_device", "cpu")


class PretendedDevice(TorchFunctionMode):
    """While it is active, `name` ("cuda" or "mps") is a device that tensors can be moved to."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name
        self.arrived = 0  # tensors that were moved there or made there

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function == Tensor.device.__get__:
            return torch.device(place(args[0]))
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        # a single number on the CPU may meet anything
        places = {place(x) for x in tensors if x.dim() or place(x) != "cpu"}
        if len(places) > 1 and function not in _MAY_MIX:
            raise RuntimeError(f"{function} was given tensors on {' and '.join(sorted(places))}")
        if function == Tensor.data.__set__:
            args[0].pretended_device = place(args[1])
        args, kwargs, asked = _without_device(function, args, dict(kwargs or {}))
        result = function(*args, **kwargs)
        if asked and any(result is x and place(x) != asked for x in tensors):
            result = result.clone()  # a real move copies
        self.arrived += asked == self.name
        target = asked or (self.name if self.name in places else "cpu")
        return tree_map_only(Tensor, lambda x: self._marked(x, target), result)

    def _marked(self, tensor: Tensor, target: str) -> Tensor:
        if target == "mps" and tensor.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        if place(tensor) != target:
            tensor.pretended_device = target
        return tensor


def _without_device(function, args: tuple, kwargs: dict) -> tuple[tuple, dict, str | None]:
    """The call with the device that it asks for replaced by the CPU, and that device, or None."""
    if function == Tensor.cpu:
        return args, kwargs, "cpu"
    asked = kwargs.get("device")
    if asked is not None:
        kwargs["device"] = "cpu"
    if function == Tensor.to and len(args) > 1:
        if isinstance(args[1], Tensor):
            return (args[0], args[1].dtype), kwargs, place(args[1])
        if isinstance(args[1], torch.device | str):
            asked, args = args[1], (args[0], "cpu", *args[2:])
    return args, kwargs, None if asked is None else torch.device(asked).type


@contextmanager
def pretended(name: str, monkeypatch) -> Iterator[PretendedDevice]:
    """Pretend the device, and answer every query as a machine with it would. A pretended CUDA is a T4."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: name == "cuda")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (7, 5))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: name == "mps")
    monkeypatch.setattr(torch.mps, "synchronize", lambda: None)
    with PretendedDevice(name) as device:
        yield device
