"""`token_step`, compiled: once for each way of calling it, and kept with the decoder.

torch.compile makes one function of the whole step. It watches what it was called with, and makes another function when
a size changes that it took to be constant; here it is told which sizes change, so that one function serves them all.

    CPU     one row, or any number from two on; any position, any length of the buffers
    CUDA    fixed shapes and addresses, so that the step can be replayed as a CUDA graph (mode="reduce-overhead"): the
            position is a tensor, and the buffers are read whole, under a mask

The step with fixed shapes is tested on the CPU. Its CUDA graph has never been run, nor measured.
"""

import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
import torch.compiler.config
from torch import Tensor
from torch.utils._pytree import tree_leaves

from minimind_edu.fast.layout import Weights
from minimind_edu.fast.rows import FEW
from minimind_edu.fast.token_step import token_step
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.notebook import progress

Step = Callable[..., Tensor]  # arguments and result of token_step


class CompiledSteps:
    """The compiled steps of one model, each made when first needed.

    Weights are arguments of a step, so values that change need nothing new.

    Args:
        model: as in token_step.
    """

    def __init__(self, model: MiniMindForCausalLM) -> None:
        self.model = model
        self.failure = ""  # why compiling failed, once it has
        self._steps: dict[tuple[Any, ...], Step] = {}

    def get(self, weights: Weights, batch: int, masked: bool, capacity: int | None = None) -> Step | None:
        """The step for this many rows; None if it cannot be compiled. A line shows that compiling is at work.

        Args:
            weights: as in token_step.
            batch: B.
            masked: whether there is padding.
            capacity: of the buffers, for a step with fixed shapes; None: rows and positions may vary.
        """
        key = _key(self.model.model.norm.weight, batch, masked, capacity)
        if key not in self._steps and not self.failure:
            for _ in progress(["once"], "compiling the step for one token"):
                try:
                    self._steps[key] = _compiled(self.model, weights, batch, masked, capacity)
                except Exception as error:  # what compilers fail with has no common class
                    first_line = (str(error).strip() or "no message").splitlines()[0]
                    self.failure = f"{type(error).__name__}, {first_line}"
        return self._steps.get(key)


def _key(weight: Tensor, batch: int, masked: bool, capacity: int | None) -> tuple[Any, ...]:
    """All that a compiled step takes to be constant, and that may change in a model's life."""
    rows = batch if capacity else 1 if batch == 1 else 2 if batch <= FEW else FEW + 1
    state = torch.get_num_threads(), torch.is_inference_mode_enabled()
    return rows, masked, capacity, weight.dtype, weight.device, *state


def _compiled(model: MiniMindForCausalLM, weights: Weights, batch: int, masked: bool, capacity: int | None) -> Step:
    """Compile by calling once with made-up inputs.

    dynamic=True lets sizes vary; but those that are equal at the first call are taken to be equal always. Hence
    primes, which no size of a model is.
    """
    import torch._dynamo.config  # a second, which only what compiles shall take

    config, weight = model.config, model.model.norm.weight
    place: int | Tensor
    if capacity is None:
        rows, room, end = (1 if batch == 1 else 13 if batch <= FEW else 31), 1009, 499
        step = torch.compile(_twin(token_step), dynamic=True, fullgraph=True)
        place = end
    else:
        rows, room, end = batch, capacity, capacity
        mode = "reduce-overhead" if weight.is_cuda else None
        step = torch.compile(_twin(token_step), dynamic=False, fullgraph=True, mode=mode)
        place = torch.full((1,), end, device=weight.device)
    shape = (rows, room, config.num_key_value_heads, config.head_dim)
    keys, values = ([weight.new_zeros(shape) for _ in model.model.layers] for _ in range(2))
    positions = (model.model.freqs_cos[:1], model.model.freqs_sin[:1])
    token = torch.zeros(rows, 1, dtype=torch.int64, device=weight.device)
    mask = token.new_ones(rows, 1, 1, end).bool() if masked else None
    if capacity is not None:
        for tensor in (*_tensors(weights), *keys, *values):
            torch._dynamo.mark_static_address(tensor)  # or a CUDA graph copies it at every step
    for tensor in _tensors(weights):
        torch._dynamo.mark_static(tensor)  # or dynamic=True would let the weights' own sizes vary
    # dynamic=True would make a size even of the norms' eps, and a tensor of it at every step
    numbers_stay = torch._dynamo.config.patch(specialize_float=True)
    # what torch keeps on disk is not told apart by the processor's instructions, and gave wrong tokens under others
    instructions = torch.backends.cpu.get_cpu_capability()
    processor = torch.compiler.config.patch(cache_key_tag=instructions)  # pyright: ignore[reportAttributeAccessIssue]
    with torch.no_grad(), numbers_stay, processor, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of its own old parts while it compiles
        step(model, weights, token, positions, place, keys, values, mask)
    return step


def _tensors(weights: Weights) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tuple(weights)) if isinstance(leaf, Tensor)]


def _twin(function: FunctionType) -> FunctionType:
    """The same function with a code object of its own.

    torch.compile counts what it compiled by code object and gives up at eight, however many models there are.
    """
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
