"""A model whose parameters have names and sizes but no numbers, for who counts them or brings numbers of their own."""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM


class _ParametersOnMeta(TorchFunctionMode):
    """What parameters are made of goes to torch's meta device, and nothing is drawn for them.

    `torch.device("meta")` would do the same to the tables of rope, whose arithmetic there loads torch's compiler.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.empty, torch.ones):
            return func(*args, **kwargs | {"device": "meta"})
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs.get("tensor")
        return func(*args, **kwargs)


def without_storage(config: MiniMindConfig) -> MiniMindForCausalLM:
    """Build the model without memory for its parameters and without drawing a random number.

    `load_state_dict(..., assign=True)` makes tensors that you have its parameters. The tables of rope are computed.
    """
    with _ParametersOnMeta():
        return MiniMindForCausalLM(config)
