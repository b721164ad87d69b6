"""What the parts refuse, and the sentences that say so: each names the rule, the value and the likely fix.

Values inside a tensor can only be looked at where there are some. While torch.compile or torch.export traces a call
there are none, so there only shapes and dtypes are checked.
"""

import operator
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor, nn

_FLOAT32 = torch.finfo(torch.float32)  # tiny: 1.2e-38, max: 3.4e38
_INTEGERS = torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8
_COMPARISONS = {"above": operator.gt, "at least": operator.ge, "below": operator.lt, "at most": operator.le}


def check_count(name: str, value: Any, at_least: int = 1, at_most: int | None = None) -> None:
    """Raise a ValueError unless `value` is a whole number within these bounds."""
    whole = issubclass(type(value), Integral) and not isinstance(value, bool)
    if not whole or value < at_least or (at_most is not None and value > at_most):
        bounds = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ValueError(f"{name} must be a whole number {bounds}, got {value!r}")


def check_number(name: str, value: Any, rule: str = "", why: str = "") -> None:
    """Raise a ValueError unless `value` is a number that float32 can hold, and obeys a rule: "above 0 and at most 1".

    `why` is the reason for the rule, or what to do instead.
    """
    number = issubclass(type(value), Real) and not isinstance(value, bool)
    if not number or not (value == 0 or _FLOAT32.tiny <= abs(value) <= _FLOAT32.max):
        raise ValueError(
            f"{name} must be a finite number, got {value!r}; the model computes in float32, which holds 0 and sizes "
            "from 1.2e-38 to 3.4e38"
        )
    for part in filter(None, rule.split(" and ")):
        comparison, bound = part.rsplit(" ", 1)
        if not _COMPARISONS[comparison](value, float(bound)):
            raise ValueError(f"{name} must be {rule}, got {value}{why and f'; {why}'}")


def with_plain_numbers(settings: Any) -> None:
    """Make numbers of numpy in the fields of a frozen dataclass Python's own, which json and torch know, too."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        item = getattr(value, "item", None)
        if isinstance(value, Real) and not isinstance(value, bool | int | float) and item is not None:
            object.__setattr__(settings, field.name, item())


def check_flag(name: str, value: Any) -> None:
    """Raise a ValueError unless `value` is True or False: any text, 'false' too, would count as true."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raise a ValueError unless `value` is one of these."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}")


def check_even(name: str, value: int) -> None:
    """Raise a ValueError unless RoPE can split `value` channels of one head into pairs."""
    if value not in range(2, 2**16 + 1, 2):
        raise ValueError(f"RoPE rotates pairs of channels, so {name} must be even, from 2 to {2**16}, got {value}")


def check_tensor(name: str, value: Any, shape: str) -> None:
    """Raise a ValueError unless `value` is a dense tensor: lists and arrays have no device and no dtype of torch's."""
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{name} must be a tensor {shape}, got {type(value).__name__}; torch.as_tensor converts lists and arrays"
        )
    if value.layout != torch.strided:
        raise ValueError(f"{name} must be a dense tensor {shape}, got {value.layout}; to_dense() converts it")


def whole_numbers(ids: Iterable[Any]) -> list[int]:
    """The ids of one text as integers of Python, from a list, an array or a tensor; a ValueError for other numbers."""
    try:
        return [operator.index(i) for i in ids]
    except TypeError:
        raise ValueError(f"ids are a sequence of whole numbers, got {ids!r}") from None


def check_token_ids(ids: Any, vocab_size: int, name: str = "input_ids") -> None:
    """Raise a ValueError unless `ids` is `[B, S]` integers of the vocabulary with at least one position."""
    check_tensor(name, ids, "of integers [B, S]")
    if ids.dim() != 2 or ids.dtype not in _INTEGERS:
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


def check_call(config: Any, input_ids: Any, attention_mask: Any, start: int, weights: Tensor) -> int:
    """Where the new tokens end, `start + S`; a ValueError for what MiniMindModel.forward cannot read.

    Args:
        config: the MiniMindConfig of the model.
        input_ids, attention_mask: as given to the model.
        start: the position of the first new token.
        weights: the embedding, to tell where the model is.
    """
    check_token_ids(input_ids, config.vocab_size)
    for name, given in (("input_ids", input_ids), ("attention_mask", attention_mask)):
        if isinstance(given, Tensor) and given.is_meta and not weights.is_meta:
            raise ValueError(f"{name} must be where the model is, not on the meta device, which keeps no values")
    length = input_ids.shape[1]
    end, limit = start + length, config.max_position_embeddings
    if end > limit:
        raise ValueError(
            f"{start} positions in the cache and {length} new ones exceed max_position_embeddings={limit}; "
            "shorten the text, or build the model with a larger max_position_embeddings"
        )
    return end


def check_attention_mask(mask: Any, shape: Sequence[int | None], meaning: str = "") -> None:
    """Raise a ValueError unless `mask` has this shape (None: any size) and holds nothing but 0 and 1.

    `meaning` says in the message what the shape counts.
    """
    check_tensor("attention_mask", mask, "of ones and zeros")
    if mask.dim() != 2 or any(size not in (None, given) for size, given in zip(shape, mask.shape, strict=True)):
        required = str([size or "any" for size in shape]).replace("'", "")
        raise ValueError(f"attention_mask must be [B, T] = {required}{meaning}, got {list(mask.shape)}")
    strange = mask.dtype if mask.is_complex() else None
    if strange is None and mask.dtype != torch.bool and values_are_known(mask):
        strange = next((value.item() for value in mask[(mask != 0) & (mask != 1)]), None)
    if strange is not None:
        raise ValueError(
            f"attention_mask holds 1 on tokens and 0 on padding, got {strange}; a mask that is added to the scores, "
            "0 and -inf, becomes one of these with `mask == 0`"
        )


def check_finite(model: nn.Module, matrices_to: torch.dtype | None = None) -> None:
    """Raise a ValueError that names the first parameter that holds NaN or infinity, if one does.

    Not every such number reaches the logits: a row of the embedding may not be read, an expert not be visited. The
    smallest and the largest number tell, which is quicker than to look at each: NaN is both where there is one.

    Args:
        matrices_to: the dtype that matrices are about to be rounded to, and all else to float32; what becomes infinite
            by that is refused, too. None: nothing is rounded.
    """
    for name, parameter in model.named_parameters():
        if parameter.numel() == 0 or not values_are_known(parameter):
            continue
        ends = torch.stack(parameter.detach().aminmax())
        then = ends
        if matrices_to is not None:
            then = ends.to(matrices_to if parameter.dim() == 2 else torch.float32)
        if not bool(then.isfinite().all()):
            found = "NaN" if bool(ends.isnan().any()) else "infinity"
            if bool(ends.isfinite().all()):
                found = f"numbers up to {float(ends.abs().max()):.5g}, which are infinite in {then.dtype}"
            raise ValueError(
                f"weights must be finite numbers, but {name} holds {found}; "
                "take an earlier checkpoint, or convert the weights again if half precision overflowed"
            )


def values_are_known(x: Tensor) -> bool:
    """Whether Python should look at the numbers in `x`: not while a compiler or vmap only follows the operations."""
    return not (torch.compiler.is_compiling() or _checked_before.get() or x.is_meta or _is_mapped(x))


# torch has no public name for it; without it vmap says in its own words what it cannot follow
_is_mapped = getattr(getattr(torch._C, "_functorch", None), "is_batchedtensor", lambda x: False)
_checked_before = ContextVar("_checked_before", default=False)


@contextmanager
def checked_before() -> Iterator[None]:
    """Inside, values in tensors are not looked at: the caller has done so. A GPU is waited for at every such look."""
    before = _checked_before.set(True)
    try:
        yield
    finally:
        _checked_before.reset(before)
