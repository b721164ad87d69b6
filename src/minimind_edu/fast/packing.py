"""The same matrices, laid out another way in memory: column by column, or all experts of a layer one after the other.

A matrix has a shape, values, and an order in which the values are stored. PyTorch hands `x Wᵀ` to a library that is
made for large matrices. For a single vector it reads W faster when each column is stored together: one pass over memory
adds x[i] times column i to all outputs, where row by row every output is a sum of its own. How much faster depends on
the processor; what a prompt costs hardly changes.

Names, shapes, values, state dict and saved files are the same before and after; so is everything that training does.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from minimind_edu.feed_forward import FeedForward


# What torch makes in inference mode can never be trained again, and weights outlive the mode.
@torch.inference_mode(False)
def pack_weights(model: nn.Module) -> None:
    """Lay the matrix of every linear map out column by column. Doing it twice changes nothing.

    A tied embedding is the same matrix as lm_head and is laid out with it. A token's embedding is then scattered over
    memory, which costs microseconds; reading all of lm_head faster gains more.
    """
    for weight in _matrices(model):
        weight.data = weight.data.t().contiguous().t()  # contiguous() copies only what is not


@torch.inference_mode(False)
def unpack_weights(model: nn.Module) -> None:
    """Lay every matrix out row by row again, as in a new model. Does nothing where they already are."""
    for weight in _matrices(model):
        weight.data = weight.data.contiguous()


def _matrices(model: nn.Module) -> list[nn.Parameter]:
    return [module.get_parameter("weight") for module in model.modules() if isinstance(module, nn.Linear)]


@torch.inference_mode(False)
def stack_experts(experts: Sequence[FeedForward]) -> tuple[Tensor, Tensor, Tensor]:
    """All experts' gate, up and down matrices as three tensors, without a second copy of them.

    The experts' own parameters become views of the three, so they may go on learning. Where they are already stored one
    after the other, nothing is moved.

    Returns:
        `[N, I, E]`, `[N, I, E]` and `[N, E, I]`.
    """
    gate, up, down = (
        _stack([getattr(expert, name).weight for expert in experts]) for name in ("gate_proj", "up_proj", "down_proj")
    )
    return gate, up, down


def _stack(weights: Sequence[nn.Parameter]) -> Tensor:
    if not _stored_in_order(weights):
        stacked = torch.stack([weight.data for weight in weights])  # N x [out, in] -> [N, out, in]
        for weight, own in zip(weights, stacked, strict=True):
            weight.data = own
    first = weights[0].data
    return first.as_strided((len(weights), *first.shape), (first.numel(), *first.stride()))


def _stored_in_order(weights: Sequence[nn.Parameter]) -> bool:
    first = weights[0].data
    size = first.numel() * first.element_size()
    return all(
        weight.is_contiguous()
        and weight.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
        and weight.data_ptr() == first.data_ptr() + index * size
        for index, weight in enumerate(weights)
    )
