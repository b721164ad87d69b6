"""A GPU that is only pretended, to run on a machine without one what will run on a machine with one.

Tensors that are moved to it stay where they are and are marked. As on the real device, a marked and an unmarked tensor
cannot meet in one operation, numpy takes no marked one, what is drawn there differs from what the CPU draws, a
generator draws only where it is, and MPS takes no float64. CONTRIBUTING lists what it cannot show.

`pytest --pretend cuda` runs all of the package's tests that build on `model_builders` with it, and with --nbval every
chapter.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _pop_mode_temporarily

# They copy from one place to the other, or only ask; what comes back is where the first one is.
_MAY_MIX = (
    Tensor.to,
    Tensor.copy_,
    Tensor.__setitem__,
    Tensor.__getitem__,  # but see _is_mixed
    Tensor.data.__set__,
    torch._has_compatible_shallow_copy_type,
)
# A single number on the CPU may meet anything, but for these.
_NO_NUMBERS = (torch.stack, torch.cat, torch.nn.functional.embedding)
_DRAW = re.compile(
    r"(rand|randn|randint)(_like)?|randperm|multinomial|dropout|(normal|bernoulli|uniform|exponential)_?"
)
_ABOUT = {Tensor.is_cuda.__get__: "cuda", Tensor.is_mps.__get__: "mps", Tensor.is_cpu.__get__: "cpu"}


def place(tensor: Tensor) -> str:
    """Where the tensor is, by its mark, or else where torch says."""
    return getattr(tensor, "pretended_device", None) or tensor.device.type


def tensors_in(*values: Any) -> Iterator[Tensor]:
    """The tensors among what a function takes or returns, in lists and dictionaries, too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from tensors_in(*value)
        elif isinstance(value, dict):
            yield from tensors_in(*value.values())


class PretendedDevice(TorchFunctionMode):
    """While it is active, `name` ("cuda" or "mps") is a device that tensors can be moved to."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name
        self.arrived = 0  # tensors that were moved there or made there
        self._drawn_there = torch.Generator().manual_seed(75).get_state()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        tensors = list(tensors_in(args, kwargs))
        places = [place(x) for x in tensors]
        there = self.name in places
        if there and places[0] == self.name and (answer := self._answer(function, tensors[0])) is not None:
            return answer
        if there and self._is_mixed(function, tensors, places):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices: "
                f"{getattr(function, '__name__', function)} was given tensors on {', '.join(places)}"
            )
        args, kwargs, asked = self._without_device(function, args, dict(kwargs or {}))
        if function in _MAY_MIX:
            there = places[0] == self.name
        elif function == torch.tensor and not isinstance(args[0], Tensor):
            there = False  # single numbers from anywhere make a tensor on the CPU
        target = asked or (self.name if there else "cpu")
        if function == Tensor.data.__set__:
            args[0].pretended_device = places[1]
        elif function == Tensor.register_hook and there:
            args = (args[0], lambda gradient, hook=args[1]: hook(self._marked(gradient, self.name)))
        if target == self.name and _DRAW.fullmatch(getattr(function, "__name__", "")):
            result = self._draw(function, args, kwargs)
        else:
            result = function(*args, **kwargs)
        if target == "cpu" and not there or target == "meta":
            return result
        if asked and any(result is x and p != asked for x, p in zip(tensors, places, strict=True)):
            result = result.clone()  # a real move copies
        if target == "cpu":
            return result
        self.arrived += asked == self.name
        if function == Tensor.__iter__:
            return iter([self._marked(x, target) for x in result])
        old = () if asked else {id(x) for x in tensors}  # where they are they stay
        for tensor in tensors_in(result):
            if id(tensor) not in old:
                self._marked(tensor, target)
        return result

    def _answer(self, function: Callable, tensor: Tensor) -> Any:
        """What a tensor there says of itself; None if it is what one on the CPU would say."""
        if function == Tensor.device.__get__:
            return torch.device(self.name, 0)
        if function in _ABOUT:
            return _ABOUT[function] == self.name
        if function in (Tensor.numpy, Tensor.__array__):
            raise TypeError(
                f"can't convert {self.name}:0 device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        if function == Tensor.__repr__ or (function == Tensor.__format__ and tensor.dim()):
            said = Tensor.__repr__(tensor)
            end = re.search(r",\s+(?:size|dtype|grad_fn|requires_grad)=|\)$", said).start()
            return f"{said[:end]}, device='{self.name}:0'{said[end:]}"
        return None

    def _is_mixed(self, function: Callable, tensors: list[Tensor], places: list[str]) -> bool:
        if function == Tensor.__getitem__:  # an index may stay on the CPU
            return places[0] != self.name
        if function in _MAY_MIX:
            return False
        here = [x for x, p in zip(tensors, places, strict=True) if p != self.name]
        return any(x.dim() or x.is_meta or function in _NO_NUMBERS for x in here)

    def _without_device(self, function: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict, str | None]:
        """The call with the device that it asks for replaced by the CPU, and that device, or None."""
        if function in (Tensor.cpu, Tensor.cuda):
            return args[:1], kwargs, function.__name__
        asked = kwargs.get("device")
        if function == Tensor.to and len(args) > 1:
            if isinstance(args[1], Tensor):
                return (args[0], args[1].dtype, *args[2:]), kwargs, place(args[1])
            if isinstance(args[1], torch.device | str):
                asked, args = args[1], (args[0], self._really(args[1]), *args[2:])
        if asked is None:
            return args, kwargs, None
        if "device" in kwargs:
            kwargs["device"] = self._really(asked)
        return args, kwargs, torch.device(asked).type

    def _really(self, device: torch.device | str) -> torch.device:
        return torch.device("cpu" if torch.device(device).type == self.name else device)

    def _draw(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        if kwargs.get("generator") is not None:
            raise RuntimeError(f"Expected a '{self.name}' device type for generator but found 'cpu'")
        before = torch.get_rng_state()
        torch.set_rng_state(self._drawn_there)
        try:
            return function(*args, **kwargs)
        finally:
            self._drawn_there = torch.get_rng_state()
            torch.set_rng_state(before)

    def _marked(self, tensor: Tensor, target: str) -> Tensor:
        if target == "mps" and tensor.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        if place(tensor) != target:
            tensor.pretended_device = target
        return tensor


def _parameter(
    cls: type, data: Tensor | None = None, requires_grad: bool = True, *, make=nn.Parameter.__new__
) -> Tensor:
    """To make a parameter of a tensor is no operation for torch, so the mode is not asked."""
    parameter = make(cls, data, requires_grad)
    if mark := getattr(data, "pretended_device", None):
        parameter.pretended_device = mark
    return parameter


def _compile(model: Any = None, *, make: Callable = torch.compile, **options: Any) -> Callable:
    """Compiled for the CPU, and not for the mode: torch would trace that, too."""
    compiled = make(model, **options)

    def call(*args: Any, **named: Any) -> Any:
        with _pop_mode_temporarily():
            return compiled(*args, **named)

    return call


def _torch_itself_asks() -> bool:
    """What compiles and draws inside of torch would go on and ask a driver that is not there."""
    return sys._getframe(2).f_globals.get("__name__", "").startswith("torch.")


@contextmanager
def pretended(name: str) -> Iterator[PretendedDevice]:
    """Pretend the device, and answer every query as a machine with it would. A pretended CUDA is a T4."""
    answers = {
        "torch.cuda.is_available": lambda: name == "cuda" and not _torch_itself_asks(),
        "torch.cuda.synchronize": lambda device=None: None,
        "torch.cuda.get_device_capability": lambda device=None: (7, 5),
        "torch.cuda.get_device_name": lambda device=None: "a pretended GPU",
        "torch.backends.mps.is_available": lambda: name == "mps",
        "torch.mps.synchronize": lambda: None,
        "torch.nn.Parameter.__new__": _parameter,
        "torch.compile": _compile,
    }
    patches = [patch(where, answer) for where, answer in answers.items()]
    for one in patches:
        one.start()
    try:
        with PretendedDevice(name) as device:
            yield device
    finally:
        for one in patches:
            one.stop()


def from_now_on(name: str) -> None:
    """Pretend the device for the rest of this process."""
    _for_good.enter_context(pretended(name))


_for_good = ExitStack()
