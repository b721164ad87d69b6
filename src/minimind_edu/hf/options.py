"""Options that transformers passes to a model. Nothing that would change the result is ignored in silence."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from minimind_edu.validation import check_tensor

# The Trainer's divisor, which the loss uses; what generate used itself before it passed everything on.
_HARMLESS = ("num_items_in_batch", "cache_position", "tokenizer", "assistant_tokenizer")


def check_options(
    options: Mapping[str, Any], input_ids: Tensor | None, attention_mask: Tensor | None, start: int
) -> None:
    """Raise a ValueError for options that this model has no meaning for, and if there are no token ids.

    Args:
        options: what forward was given besides its named arguments.
        input_ids: `[B, S]`.
        attention_mask: `[B, start + S]`, or None.
        start: positions in the cache.
    """
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if unknown := sorted(given.keys() - {"position_ids", *_HARMLESS}):
        raise ValueError(
            f"this model has no {', '.join(unknown)}: it takes token ids, attends to everything before, and returns "
            "logits; minimind_edu.model.attention and its figures show attention weights"
        )
    if input_ids is None:
        raise ValueError("input_ids are missing: this model takes token ids, [B, S]")
    if "position_ids" in given:
        _check_positions(given["position_ids"], input_ids, attention_mask, start)


def _check_positions(positions: Tensor, input_ids: Tensor, attention_mask: Tensor | None, start: int) -> None:
    check_tensor("position_ids", positions, "[B, S]")
    length = input_ids.shape[1]
    if attention_mask is None:
        attention_mask = input_ids.new_ones(input_ids.shape[0], start + length)
    real = attention_mask[:, -length:].bool()  # [B, S]
    columns = torch.arange(start, start + length, device=input_ids.device)  # [S]
    without_padding = attention_mask.long().cumsum(-1)[:, -length:] - 1  # [B, S]
    fitting = positions.dim() in (1, 2) and list(positions.shape) in ([length], [1, length], list(real.shape))
    if not fitting or not any(bool(((positions == counted) | ~real).all()) for counted in (columns, without_padding)):
        raise ValueError(
            "position_ids say something else than one position after the other, which this model counts by itself; "
            "leave them out, and pad on the left"
        )
