"""What a model has learned of the house: questions with one right answer, and its distance from the exact world."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM

BATCH = 50  # texts at a time: small enough for any machine
REMEMBERED = 256  # stories whose exact distributions are kept: a page asks about the same ones again and again


@torch.no_grad()
def accuracy(model: MiniMindForCausalLM, asked: Sequence[world.Question]) -> float:
    """The fraction of questions to which every word of the greedy answer is right."""
    right = 0
    asked = sorted(asked, key=lambda question: len(question.prompt) + len(question.answer))  # little to fill up
    for begin in range(0, len(asked), BATCH):
        batch = asked[begin : begin + BATCH]
        texts = [np.concatenate([question.prompt, question.answer]) for question in batch]
        # filled up behind the answers, where a causal model cannot look
        ids = np.zeros((len(texts), max(map(len, texts))), dtype=np.int64)
        for row, text in zip(ids, texts, strict=True):
            row[: len(text)] = text
        logits = model(torch.from_numpy(ids).to(device_of(model))).logits
        tokens = logits.argmax(-1).cpu().numpy()  # [B, S], of the word that follows each
        for row, question in zip(tokens, batch, strict=True):
            first = len(question.prompt) - 1
            right += bool((row[first : first + len(question.answer)] == question.answer).all())
    return right / len(asked)


@lru_cache(REMEMBERED)
def _exact(story: tuple[int, ...]) -> np.ndarray:
    return world.distributions(story)


def distributions(stories: np.ndarray) -> Tensor:
    """The world's distributions [B, T, V] of the word after each word of stories [B, T], in float64."""
    return torch.from_numpy(np.stack([_exact(tuple(story)) for story in stories.tolist()]))


@torch.no_grad()
def divergence(model: MiniMindForCausalLM, stories: np.ndarray) -> tuple[float, float]:
    """KL(world, model) and the entropy of the world, in nats a word, averaged over the words of stories [B, T]."""
    exact = distributions(stories)[:, :-1]  # [B, T - 1, V]
    log_exact = torch.where(exact > 0, exact, 1.0).log()
    kl = entropy = 0.0
    for begin in range(0, len(stories), BATCH):
        part = slice(begin, begin + BATCH)
        log_model = log_probabilities(model, torch.from_numpy(stories[part]))[:, :-1]
        kl += float((exact[part] * (log_exact[part] - log_model)).sum())
        entropy -= float((exact[part] * log_exact[part]).sum())
    words = exact.shape[0] * exact.shape[1]
    return kl / words, entropy / words


def log_probabilities(model: MiniMindForCausalLM, ids: Tensor) -> Tensor:
    """Log-probabilities [B, T, V] after each word of ids [B, T]; float64 and so on the CPU: MPS has none."""
    return model(ids.to(device_of(model))).logits.cpu().double().log_softmax(-1)
