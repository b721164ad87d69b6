"""LoRA: a matrix that stays as it is, plus the product of two thin ones that learn.

    y = x Wᵀ + scale · x Aᵀ Bᵀ        W [out, in] is frozen, A [rank, in], B [out, rank]

B begins as zeros, so that nothing changes before the first step. Afterwards W + scale · B A is one matrix again:
merged, the model computes the same and costs what it cost before. Hu et al. 2021, arXiv 2106.09685.

MiniMind: `model/model_lora.py`. It has no scale (1 here), draws A from N(0, 0.02²), and takes square matrices only.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from minimind_edu.validation import check_count, check_number

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class LoRALinear(nn.Module):
    """A linear map with a frozen matrix and a product of two thin ones.

    Args:
        linear: the map as it was; it must have no bias, and is kept, not copied.
        rank: how many rows A has, and columns B.
        scale: what the product is multiplied by; others write alpha / rank.
        seed: of A, the same numbers on every machine.

    Raises:
        ValueError: for a map with a bias, a rank above both of its sides, or a scale that is no number.
    """

    def __init__(self, linear: nn.Linear, rank: int, scale: float = 1.0, seed: int = 0):
        super().__init__()
        sides = linear.out_features, linear.in_features
        check_count("rank", rank, at_most=min(sides))
        check_number("scale", scale)
        if linear.bias is not None:
            raise ValueError("LoRA here adds to a matrix alone, got a linear map with a bias; MiniMind's have none")
        self.linear, self.scale = linear.requires_grad_(False), scale
        drawn = np.random.default_rng(seed).standard_normal((rank, sides[1])) / math.sqrt(sides[1])
        weight = linear.weight
        self.A = nn.Parameter(torch.from_numpy(drawn).to(weight))  # [rank, in]
        self.B = nn.Parameter(weight.new_zeros(sides[0], rank))  # [out, rank]

    def forward(self, x: Tensor) -> Tensor:
        """`[..., in]` -> `[..., out]`."""
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One linear map that computes the same; the frozen one is left as it was."""
        merged = nn.Linear(self.linear.in_features, self.linear.out_features, bias=False)
        merged.weight = nn.Parameter(self.linear.weight + self.scale * self.B @ self.A)
        return merged


def add_lora(model: nn.Module, rank: int, names: Sequence[str] = PROJECTIONS, seed: int = 0) -> list[nn.Parameter]:
    """Freeze a model and put a LoRA around its linear maps; returns what is left to train, A and B of each in turn.

    Args:
        model: changed in place.
        rank: of every LoRA.
        names: how the names of the maps end that get one: `o_proj`, or `layers.3.mlp.down_proj` for a single one.
        seed: of the first A; each further map takes the next.

    Raises:
        ValueError: if no map has such a name, or there is a LoRA already.
    """
    if any(isinstance(part, LoRALinear) for part in model.modules()):
        raise ValueError("the model has a LoRA already, and a second would add to it; merge_lora(model) first")
    found = [
        (name, part)
        for name, part in model.named_modules()
        if isinstance(part, nn.Linear) and any(f".{name}".endswith(f".{end}") for end in names)
    ]
    if not found:
        raise ValueError(f"no linear map of this model has a name that ends in {', '.join(names)}")
    model.requires_grad_(False)
    trained: list[nn.Parameter] = []
    for number, (name, part) in enumerate(found):
        lora = LoRALinear(part, rank, seed=seed + number)
        _put(model, name, lora)
        trained += [lora.A, lora.B]
    return trained


def merge_lora(model: nn.Module) -> int:
    """Put one matrix in the place of each LoRA of a model, and return how many there were.

    Raises a ValueError where there is none, so that nothing is merged twice: a second time would add B A again.
    """
    found = [(name, part) for name, part in model.named_modules() if isinstance(part, LoRALinear)]
    if not found:
        raise ValueError("there is no LoRA to merge: it was merged before, or never added")
    for name, part in found:
        _put(model, name, part.merged())
    return len(found)


def _put(model: nn.Module, name: str, part: nn.Module) -> None:
    """Replace the module of this name."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, part)
