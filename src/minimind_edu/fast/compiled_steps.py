"""`token_step`, compiled for the CPU: once for each way of calling it, and kept with the decoder.

torch.compile makes one function of the whole step. It watches what it was called with, and makes another function when
a size changes that it took to be constant; here it is told which sizes change, so that one function serves them all:
one row, or any number from two on; any position, any length of the buffers.
"""

import threading
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
import torch.compiler.config
from torch import Tensor
from torch.utils._pytree import tree_leaves

from minimind_edu.fast.layout import Weights
from minimind_edu.fast.row_products import in_words
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
        self._steps: dict[tuple[Any, ...], Step | str] = {}
        self._one_at_a_time = threading.Lock()

    def get(self, weights: Weights, batch: int, masked: bool) -> Step | str:
        """The step for this many rows, or why it cannot be compiled. A line shows that compiling is at work.

        Args:
            weights: as in token_step.
            batch: B.
            masked: whether there is padding.
        """
        key = _key(weights.gain, batch, masked)
        with self._one_at_a_time:
            if key not in self._steps:
                for _ in progress(["once"], "compiling the step for one token"):
                    try:
                        self._steps[key] = _compiled(self.model, weights, batch, masked)
                    except Exception as error:  # what compilers fail with has no common class
                        self._steps[key] = in_words(error)
        return self._steps[key]


def _key(weight: Tensor, batch: int, masked: bool) -> tuple[Any, ...]:
    """All that a compiled step takes to be constant, and that may change in a model's life."""
    rows = 1 if batch == 1 else 2 if batch <= FEW else FEW + 1
    return rows, masked, weight.dtype, torch.get_num_threads(), torch.is_inference_mode_enabled()


def _compiled(model: MiniMindForCausalLM, weights: Weights, batch: int, masked: bool) -> Step:
    """Compile by calling once with made-up inputs.

    dynamic=True lets sizes vary; but those that are equal at the first call are taken to be equal always. Hence
    primes, which no size of a model is.
    """
    import torch._dynamo.config  # a second, which only what compiles shall take

    config, weight = model.config, weights.gain
    rows, room, end = (1 if batch == 1 else 13 if batch <= FEW else 31), 1009, 499
    step = torch.compile(_twin(token_step), dynamic=True, fullgraph=True)
    shape = (rows, room, config.num_key_value_heads, config.head_dim)
    keys, values = ([weight.new_zeros(shape) for _ in weights.layers] for _ in range(2))
    positions = (model.model.freqs_cos[:1], model.model.freqs_sin[:1])
    token = torch.zeros(rows, 1, dtype=torch.int64)
    mask = torch.ones(rows, 1, 1, end, dtype=torch.bool) if masked else None
    for tensor in tree_leaves(tuple(weights)):
        if isinstance(tensor, Tensor):
            torch._dynamo.mark_static(tensor)  # or dynamic=True would let the weights' own sizes vary
    # dynamic=True would make a size even of the norms' eps, and a tensor of it at every step
    numbers_stay = torch._dynamo.config.patch(specialize_float=True)
    # what torch keeps on disk is not told apart by the processor's instructions, and gave wrong tokens under others
    instructions = torch.backends.cpu.get_cpu_capability()
    processor = torch.compiler.config.patch(cache_key_tag=instructions)  # pyright: ignore[reportAttributeAccessIssue]
    with torch.no_grad(), numbers_stay, processor, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of its own old parts while it compiles
        step(model, weights, token, positions, end, keys, values, mask)
    return step


def _twin(function: FunctionType) -> FunctionType:
    """The same function with a code object of its own.

    torch.compile counts what it compiled by code object and gives up at eight, however many models there are.
    """
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
