"""Training: one loop, short enough to read in one sitting.

    loss of a batch -> gradients -> clipped -> AdamW takes a step at the rate that the schedule says

The rate rises for a few steps (warm-up) and then falls along half a cosine. AdamW: Loshchilov and Hutter 2019, arXiv
1711.05101; the cosine: 2017, arXiv 1608.03983. MiniMind: `trainer/train_pretrain.py`.

A run is repeatable on one machine: weights and batches come from seeds. Other processors round otherwise, and small
differences grow: the runs of two machines end equally well, with other weights.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from minimind_edu.device import device_of, one_thread
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.notebook import progress
from minimind_edu.validation import check_count, check_number


@dataclass(frozen=True)
class Recipe:
    """How to train. The defaults made the book's model.

    Args:
        steps: batches to learn from.
        learning_rate: the highest, nearly reached when the warm-up ends.
        warmup: steps until then; 0 begins at the highest.
        last: what is left of the rate at the end, as a fraction.
        betas: how slowly AdamW's averages forget old gradients and their squares; below 1.
        weight_decay: of matrices; the gains of norms are left alone.
        clip: the largest norm of all gradients together; longer ones are scaled down to it.

    Raises:
        ValueError: for a number out of its range.
    """

    steps: int = 12_000
    learning_rate: float = 5e-3
    warmup: int = 100
    last: float = 0.05
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.01
    clip: float = 1.0

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("warmup", self.warmup, at_least=0)
        check_number("learning_rate", self.learning_rate, "at least 0")
        check_number("last", self.last, "at least 0 and at most 1", "it is a fraction of the highest rate")
        check_number("weight_decay", self.weight_decay, "at least 0")
        check_number("clip", self.clip, "above 0", "at 0 no gradient would be left; a large one clips nothing")
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise ValueError(f"betas must be a pair, of gradients and of their squares, got {self.betas!r}")
        for beta in self.betas:
            check_number("each of betas", beta, "at least 0 and below 1")

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        cosine = (1 + math.cos(math.pi * step / self.steps)) / 2
        return self.learning_rate * warm * (self.last + (1 - self.last) * cosine)


def initialize(model: MiniMindForCausalLM, seed: int) -> MiniMindForCausalLM:
    """Draw every matrix anew from N(0, initializer_range²), the same numbers on every machine; gains become 1.

    torch draws other normal numbers with another instruction set; numpy does not. Returns the model.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    with torch.no_grad():
        for parameter in model.parameters():  # names a tied matrix once
            if parameter.dim() < 2:
                parameter.fill_(1.0)
            else:
                drawn = generator.standard_normal(tuple(parameter.shape)) * model.config.initializer_range
                parameter.copy_(torch.from_numpy(drawn))
    return model


def adamw(model: MiniMindForCausalLM, recipe: Recipe) -> torch.optim.AdamW:
    """The optimizer, with weight decay on matrices alone."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    gains = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas)


@one_thread()
def train(
    model: MiniMindForCausalLM,
    batches: Iterable[Tensor],
    recipe: Recipe | None = None,
    after: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train on batches, one for each step, and return the losses [steps]; the model is changed, and left in eval mode.

    Args:
        model: on the device where the batches are, or can be moved to.
        batches: ids [B, T] of texts without padding; at least `recipe.steps` of them.
        recipe: the default is the book's.
        after: called after each step with its number, from 0, and its loss.

    Raises:
        ValueError: if the model is in float16, the batches end before the steps do, or a loss is no longer finite.
    """
    if any(parameter.dtype == torch.float16 for parameter in model.parameters()):
        raise ValueError(
            "a model in float16 cannot be trained: AdamW divides by a root plus 1e-8, which float16 rounds to 0; "
            "train in float32, model.float(), and convert afterwards"
        )
    recipe = recipe or Recipe()
    optimizer, device = adamw(model, recipe), device_of(model)
    losses: list[float] = []
    supply = iter(batches)
    model.train()
    try:
        for step in progress(range(recipe.steps), "training"):
            ids = next(supply, None)
            if ids is None:
                raise ValueError(f"the batches ended after {step} of {recipe.steps} steps; give more, or fewer steps")
            losses.append(_take_step(model, ids.to(device), optimizer, recipe, step))
            if after:
                after(step, losses[-1])
    finally:
        model.eval()
    return losses


def _take_step(
    model: MiniMindForCausalLM, ids: Tensor, optimizer: torch.optim.AdamW, recipe: Recipe, step: int
) -> float:
    """Learn from ids [B, T], and return their loss before the step."""
    out = model(ids, labels=ids)
    assert out.loss is not None  # there were labels
    loss = out.loss.item()
    if not math.isfinite(loss):
        raise ValueError(f"the loss of step {step} is {loss}: a smaller learning_rate or clip may help")
    for group in optimizer.param_groups:
        group["lr"] = recipe.rate(step)
    optimizer.zero_grad()
    (out.loss if out.aux_loss is None else out.loss + out.aux_loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    optimizer.step()
    return loss
