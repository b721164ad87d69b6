"""What a model has learned of the lists: its loss against the exact entropy, and how many answers are all right."""

import numpy as np
import torch
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope import precompute_freqs_cis
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.trained.ablations.lists import END, TASKS, answers, distributions, encode
from minimind_edu.trained.ablations.lists import decode as text_of

BATCH = 25  # rows at a time


@torch.no_grad()
def log_probabilities(model: MiniMindForCausalLM, rows: np.ndarray) -> Tensor:
    """Log-probabilities [B, T, V] of the word after each word of rows [B, T]; on the CPU, as the rows are."""
    parts = torch.from_numpy(rows).to(device_of(model)).split(BATCH)
    return torch.cat([model(part).logits.log_softmax(-1).cpu() for part in parts])


def loss(model: MiniMindForCausalLM, rows: np.ndarray) -> float:
    """The expected cross-entropy in nats a word on rows [B, T]: at best their entropy.

    Expected: over every word that may follow, by its exact probability, and not only over the one that does.
    """
    exact = torch.from_numpy(np.stack([distributions(row) for row in rows]))[:, :-1]
    return float(-(exact * log_probabilities(model, rows)[:, :-1]).sum(-1).mean())


def right_answers(model: MiniMindForCausalLM, rows: np.ndarray) -> list[tuple[str, int, bool]]:
    """The task, the position and the verdict of each whole answer in rows [B, T]: is every greedy word right?"""
    tokens = log_probabilities(model, rows).argmax(-1).numpy()
    found = []
    for row, greedy in zip(rows, tokens, strict=True):
        for answer in answers(row):
            right = bool((greedy[answer.start - 1 : answer.end - 1] == row[answer.start : answer.end]).all())
            found.append((answer.task, answer.start, right))
    return found


def accuracy(model: MiniMindForCausalLM, rows: np.ndarray) -> dict[str, float]:
    """The fraction of right answers for each task."""
    found = right_answers(model, rows)
    return {task: float(np.mean([right for name, _, right in found if name == task])) for task in TASKS}


def accuracy_along(model: MiniMindForCausalLM, rows: np.ndarray, block: int) -> list[float]:
    """The fraction of right answers in each block of so many positions."""
    found, length = right_answers(model, rows), rows.shape[1]
    blocks = [[right for _, at, right in found if at // block == i] for i in range(length // block)]
    return [float(np.mean(verdicts)) for verdicts in blocks]


def with_yarn(model: MiniMindForCausalLM, scaling: RopeScaling) -> None:
    """Scale a model's RoPE for longer texts, without further training."""
    sizes = model.config.head_dim, model.config.max_position_embeddings, model.config.rope_theta
    tables = precompute_freqs_cis(*sizes, scaling)
    model.model.freqs_cos, model.model.freqs_sin = (table.to(device_of(model)) for table in tables)


@torch.no_grad()
def greedy_answer(model: MiniMindForCausalLM, prompt: str) -> str:
    """What a model says after a prompt like "sort 3 1 2 =", at most as many words as a right answer has."""
    ids = np.concatenate([encode("<s>"), encode(prompt)])
    for _ in range(len(prompt.split()) - 1):
        best = int(log_probabilities(model, ids[None])[0, -1].argmax())
        ids = np.append(ids, best)
        if best == END:
            break
    return text_of(ids[1 + len(prompt.split()) :])
