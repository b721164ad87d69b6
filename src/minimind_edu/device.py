"""Where to compute, in which precision and with how many threads: the one place that asks.

device = pick_device()
model = from_checkpoint("MiniMind2").to(device, pick_dtype(device))  # to read and write texts
model = MiniMindForCausalLM(config).to(device)  # to train: in float32, and converted afterwards

MPS has no float64, so what is float64 is converted before it moves: `x.float().to(device)`.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import nn

_PROCESS = os.getpid()


def pick_device(dtype: torch.dtype | None = None) -> torch.device:
    """CUDA if there is one, else Apple's MPS unless you compute in float64, which it has not, else the CPU."""
    if torch.cuda.is_available():
        # torch runs a backward in a thread of its own, says at its first matrix product that the thread had no context
        # yet, and makes one: there is nothing to do about it, and a reader would wonder
        warnings.filterwarnings("ignore", "Attempting to run cuBLAS, but there was no current CUDA context")
        return torch.device("cuda")
    if torch.backends.mps.is_available() and dtype != torch.float64:
        return torch.device("mps")
    return torch.device("cpu")


def devices_here() -> list[torch.device]:
    """The CPU, and after it the picked device, if that is another: for measurements that show both."""
    return list(dict.fromkeys((torch.device("cpu"), pick_device())))


def device_of(model: object) -> torch.device:
    """Where the parameters of a model are; what has none, such as a function that knows the answers, is on the CPU."""
    parameters = model.parameters() if isinstance(model, nn.Module) else ()
    return next((parameter.device for parameter in parameters), torch.device("cpu"))


def pick_dtype(device: torch.device | str) -> torch.dtype:
    """A dtype that the device computes natively, for a trained model: float16 can be read with, but not trained in.

    bfloat16 on CUDA from compute capability 8.0 on, float16 on older CUDA (a T4 is 7.5: torch calls bfloat16
    "supported" there, but emulates it) and on MPS, float32 on the CPU.
    """
    device = torch.device(device)
    if device.type == "cuda":
        major, _ = torch.cuda.get_device_capability(device)
        return torch.bfloat16 if major >= 8 else torch.float16
    return torch.float16 if device.type == "mps" else torch.float32


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one CPU thread inside the block, and on as many as before after it, whatever happens in between.

    For many small tensors: each operation is over before a second thread has been woken, and where other programs keep
    the cores busy the threads wait for each other far longer than they compute. Works as a decorator, too.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def living_threads() -> Iterator[None]:
    """Compute on one CPU thread inside the block if this process was forked, else on as many as there are.

    Of torch's own threads none is left in a forked child, and torch would wait for them without end.
    """
    with nullcontext() if os.getpid() == _PROCESS else one_thread():
        yield
