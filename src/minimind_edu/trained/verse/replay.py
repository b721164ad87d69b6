"""Training on an NVIDIA GPU: each kind of step is recorded once, as a CUDA graph, and replayed.

A step of a model of one million weights is some five hundred small kernels. Launched one by one from Python they wait
for Python; replayed, they do not. The arithmetic is that of `training.train`.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.training import Recipe, adamw
from minimind_edu.validation import checked_before

LOOK = 100  # steps after which losses are fetched: to fetch one is to wait for the GPU
WARM = 3  # steps before a recording, as torch asks for: they choose kernels, and learn nothing


def train(
    model: MiniMindForCausalLM,
    batches: Iterable[Tensor],
    recipe: Recipe,
    after: Callable[[int, list[float]], None] | None = None,
) -> list[float]:
    """Train on batches, as `training.train` does, on CUDA; returns the losses [steps].

    Args:
        model: on a CUDA device.
        batches: ids [B, T] without padding, at least `recipe.steps` of them.
        recipe: as there.
        after: called after each step with the number of steps done, and all losses that have been fetched.

    Raises:
        ValueError: if a loss is no longer finite.
    """
    device = device_of(model)
    rate = torch.zeros((), device=device)
    groups = [{**group, "lr": rate} for group in adamw(model, recipe).param_groups]
    for group in groups:
        group |= {"foreach": None, "fused": True, "capturable": True}
    optimizer = torch.optim.AdamW(groups, lr=rate, fused=True, capturable=True)
    parameters = list(model.parameters())
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
        # the optimizer's averages are made before anything is recorded, so that all recordings share them
        optimizer.state[parameter] |= {
            "step": torch.zeros((), device=device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    recorded: dict[torch.Size, tuple[Tensor, Tensor, torch.cuda.CUDAGraph]] = {}

    def forward_backward(ids: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = model(ids, labels=ids).loss
        assert loss is not None
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, recipe.clip, foreach=True)
        return loss.detach()

    def record(ids: Tensor) -> tuple[Tensor, Tensor, torch.cuda.CUDAGraph]:
        held, loss = ids.clone(), torch.zeros((), device=device)
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(WARM):
                forward_backward(held)
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss.copy_(forward_backward(held))
            optimizer.step()
        return held, loss, graph

    losses: list[float] = []
    waiting: list[Tensor] = []
    model.train()
    try:
        with checked_before():
            for step, batch in zip(range(recipe.steps), batches, strict=False):
                ids = batch.to(device, non_blocking=True)
                if ids.shape not in recorded:
                    recorded[ids.shape] = record(ids)
                held, loss, graph = recorded[ids.shape]
                held.copy_(ids)
                rate.fill_(recipe.rate(step))
                graph.replay()
                waiting.append(loss.clone())
                if len(waiting) == LOOK or step + 1 == recipe.steps:
                    losses += torch.stack(waiting).tolist()
                    waiting.clear()
                    if not math.isfinite(losses[-1]):
                        raise ValueError(f"the loss of step {step} is {losses[-1]}: a smaller learning_rate may help")
                if after:
                    after(step + 1, losses)
    finally:
        model.eval()
    return losses
