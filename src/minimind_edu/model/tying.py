"""Keep a model's embedding and its output layer one matrix, whatever is loaded into it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from minimind_edu.validation import values_are_known


def keep_tied(model: nn.Module) -> None:
    """See to it that loading a state dict into a tied model leaves it tied, and is refused if it holds two tables."""
    model.register_load_state_dict_pre_hook(_refuse_two_tables)
    model.register_load_state_dict_post_hook(_tie_again)


def _refuse_two_tables(model: Any, weights: Mapping[str, Any], prefix: str, *_: Any) -> None:
    """Before load_state_dict: which of two different tables a tied model would keep depends on how it loads."""
    head, table = (weights.get(f"{prefix}{name}.weight") for name in ("lm_head", "model.embed_tokens"))
    if head is None or table is None or head.shape != table.shape:
        return
    if values_are_known(head) and not torch.allclose(head, table.to(head), rtol=0, atol=0, equal_nan=True):
        raise ValueError(
            "lm_head.weight and model.embed_tokens.weight differ, but tie_word_embeddings=True makes them one matrix; "
            "build the model with tie_word_embeddings=False"
        )


def _tie_again(model: Any, _: Any) -> None:
    """After load_state_dict(assign=True), which gives each name a matrix of its own."""
    model.lm_head.weight = model.model.embed_tokens.weight
