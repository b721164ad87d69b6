"""Texts that a trained model draws token by token, the same for a seed on every device."""

from typing import Any

import torch
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM


def drawn(model: MiniMindForCausalLM, begun: Tensor, new: int, seed: int, **choice: Any) -> Tensor:
    """Texts drawn after their beginnings, ids `[B, S + new]` on the CPU; fewer, if every row has ended before.

    Equal seeds draw equal tokens where the probabilities are equal.

    Args:
        model: on any device, in eval mode.
        begun: ids `[B, S]`.
        new: tokens to draw for each row, at most.
        seed: of all draws.
        choice: options of `generate`, as `temperature` or `eos_token_id`.

    Raises:
        ValueError: as `generate` does.
    """
    generator = torch.Generator().manual_seed(seed)
    return model.generate(begun.to(device_of(model)), new, do_sample=True, generator=generator, **choice).cpu()
