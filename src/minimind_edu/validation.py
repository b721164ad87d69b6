"""What the parts refuse, and the sentences that say so: each names the rule, the value and the likely fix.

Values inside a tensor can only be looked at where there are some. While torch.compile or torch.export traces a call
there are none, so there only shapes and dtypes are checked.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import is_batchedtensor


def check_count(name: str, value: Any, at_least: int = 1) -> None:
    """Raise a ValueError unless `value` is a whole number of at least `at_least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {value!r}")


def check_number(name: str, value: Any) -> None:
    """Raise a ValueError unless `value` is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise a ValueError unless `value` is True or False: any text, 'false' too, would count as true."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_even(name: str, value: int) -> None:
    """Raise a ValueError unless RoPE can split `value` channels into pairs."""
    if value < 2 or value % 2:
        raise ValueError(f"RoPE rotates pairs of channels, so {name} must be even and at least 2, got {value}")


def check_tensor(name: str, value: Any, shape: str) -> None:
    """Raise a ValueError unless `value` is a tensor: lists and arrays have no device and no dtype of torch's."""
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{name} must be a tensor {shape}, got {type(value).__name__}; torch.as_tensor converts lists and arrays"
        )


def check_token_ids(ids: Any, vocab_size: int, name: str = "input_ids") -> None:
    """Raise a ValueError unless `ids` is `[B, S]` integers of the vocabulary with at least one position."""
    check_tensor(name, ids, "of integers [B, S]")
    if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"{name} must be integers of shape [B, S], got {ids.dtype} of shape {list(ids.shape)}; "
            "torch.tensor([ids]) makes a batch of one row"
        )
    if ids.numel() == 0:
        raise ValueError(
            f"{name} must hold at least one token in each row, got {list(ids.shape)}; start an empty prompt with the "
            "beginning-of-sequence token"
        )
    if not values_are_known(ids):
        return
    low, high = (int(value) for value in ids.aminmax())
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"{name}: token ids must lie in [0, {vocab_size}), got ids from {low} to {high}; "
            "does the tokenizer belong to this model?"
        )


def check_attention_mask(mask: Any, shape: list[int], required: str) -> None:
    """Raise a ValueError unless `mask` has this shape and holds nothing but 0 (padding) and 1 (token).

    Args:
        mask: what was given.
        shape: what its shape must be.
        required: the same in words, for the message.
    """
    check_tensor("attention_mask", mask, "of ones and zeros")
    if list(mask.shape) != shape:
        raise ValueError(f"attention_mask must be {required}, got {list(mask.shape)}")
    if mask.dtype == torch.bool or not values_are_known(mask):
        return
    strange = mask[(mask != 0) & (mask != 1)]
    if strange.numel():
        raise ValueError(
            f"attention_mask holds 1 on tokens and 0 on padding, got {strange[0].item()}; a mask that is added to the "
            "scores, 0 and -inf, becomes one of these with `mask == 0`"
        )


def values_are_known(x: Tensor) -> bool:
    """Whether Python may look at the numbers in `x`: not while a compiler or vmap only follows the operations."""
    return not (torch.compiler.is_compiling() or is_batchedtensor(x) or x.is_meta)
