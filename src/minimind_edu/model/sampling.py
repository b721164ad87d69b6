"""From logits to one token for each row: greedy, or drawn from a distribution that has been reshaped first.

Greedy takes the most probable token. Sampling draws from softmax(logits / temperature), after top-k has kept the k
largest, top-p (nucleus) the smallest set that holds a probability of p, and min-p whatever is at least a fraction of
the most probable token. Holtzman et al. 2019, arXiv 1904.09751; min-p: Nguyen et al. 2024, arXiv 2407.01082;
repetition penalty: Keskar et al. 2019, arXiv 1909.05858. The order of the steps is that of transformers.
MiniMind: GenerationMixin.generate in MiniMind2, an own `generate` in MiniMind3.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from minimind_edu.validation import check_count, check_flag, check_number, with_plain_numbers

ROUNDING = 1e-6  # of a sum of float32 probabilities, as a share of it


def penalize_repetition(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Make tokens that have occurred, where `seen` `[B, V]` is True, less likely if the penalty is above 1.

    Positive logits are divided by the penalty, negative ones multiplied. `[B, V]` -> same.
    """
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def keep_top_k(logits: Tensor, top_k: int) -> Tensor:
    """All but the `top_k` largest logits of each row become -inf (ties with the last one stay); 0 keeps all.

    `[B, V]` -> same.
    """
    smallest_kept = logits.topk(min(top_k or logits.shape[-1], logits.shape[-1])).values[..., -1:]  # [B, 1]
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def keep_top_p(logits: Tensor, top_p: float) -> Tensor:
    """Keep the fewest of the most probable tokens whose probabilities reach `top_p`; at least one. `[B, V]` -> same.

    1 keeps all. Of equally probable tokens those with larger ids stay, as in transformers. A sum that is `top_p` but
    for rounding has reached it: of 1,500 rows of decimals and their exact sums transformers keeps one token too many
    in 131.
    """
    if top_p == 1:
        return logits
    ordered, index = logits.sort(stable=True)  # [B, V], the least probable first
    # A token goes if it and those below are not needed for top_p. Small numbers come first, so little is rounded.
    unneeded = ordered.softmax(-1).cumsum(-1) <= (1 - top_p) * (1 + ROUNDING)
    unneeded[..., -1] = False
    return logits.masked_fill(unneeded.scatter(-1, index, unneeded), -torch.inf)


def keep_min_p(logits: Tensor, min_p: float) -> Tensor:
    """Keep tokens at least `min_p` times as probable as the most probable one; 0 keeps all. `[B, V]` -> same."""
    probabilities = logits.softmax(-1)
    return logits.masked_fill(probabilities < min_p * probabilities.amax(-1, keepdim=True), -torch.inf)


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. The default is greedy.

    The steps come in this order: repetition penalty, temperature, top-k, top-p, min-p, one draw. Greedy choice uses
    the penalty only. Raises a ValueError for a value outside its range; the message names it.
    """

    do_sample: bool = False  # draw from the distribution instead of taking the most probable token
    temperature: float = 1.0  # divides the logits; below 1 sharpens the distribution, above 1 flattens it
    top_k: int | None = None  # keep only the k most probable tokens; None or 0: all
    top_p: float | None = None  # keep the most probable tokens up to this total probability; None or 1: all
    min_p: float | None = None  # keep tokens at least this fraction as probable as the most probable; None or 0: all
    repetition_penalty: float = 1.0  # above 1 makes tokens of the prompt and of the continuation less likely
    generator: torch.Generator | None = None  # source of randomness; None: torch's own

    def __post_init__(self) -> None:
        with_plain_numbers(self)
        check_flag("do_sample", self.do_sample)
        check_number("temperature", self.temperature, "above 0", "for greedy choice use do_sample=False")
        check_number("repetition_penalty", self.repetition_penalty, "above 0", "1 changes nothing")
        if self.top_k is not None:
            check_count("top_k (0: all tokens)", self.top_k, at_least=0)
        if self.top_p is not None:
            check_number("top_p", self.top_p, "above 0 and at most 1", "1 keeps all tokens")
        if self.min_p is not None:
            check_number("min_p", self.min_p, "at least 0 and at most 1", "0 keeps all tokens")
        if not isinstance(self.generator, torch.Generator | None):
            raise ValueError(f"generator must be a torch.Generator, as torch.Generator() is, got {self.generator!r}")

    def choose(self, logits: Tensor, seen: Tensor | None = None) -> Tensor:
        """The next token of each row: logits `[B, V]` -> ids `[B]`.

        `seen`, `[B, V]`, is True for tokens that have occurred in that row; only a penalty asks for it. Raises a
        ValueError if the largest logit of a row is not a number.
        """
        if not self.do_sample:
            best, token = self._penalized(logits, seen).max(-1)
            _check_best(best)
            return token
        probabilities = self.probabilities(logits, seen)
        # a CPU generator draws the same tokens for a model on any device
        device = probabilities.device if self.generator is None else self.generator.device
        drawn = torch.multinomial(probabilities.to(device), 1, generator=self.generator)  # [B, 1]
        return drawn[:, 0].to(logits.device)

    def probabilities(self, logits: Tensor, seen: Tensor | None = None) -> Tensor:
        """The distribution `[B, V]` from which `choose` draws with `do_sample`; arguments and errors as there."""
        logits = self._penalized(logits, seen)
        best = logits.amax(-1, keepdim=True)
        _check_best(best)
        # softmax ignores a constant; without subtracting it a tiny temperature would overflow
        logits = (logits.float() - best.float()) / self.temperature
        if self.top_k is not None:
            logits = keep_top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = keep_top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = keep_min_p(logits, self.min_p)
        return logits.softmax(-1)

    def _penalized(self, logits: Tensor, seen: Tensor | None) -> Tensor:
        if self.repetition_penalty == 1:
            return logits
        if seen is None:
            raise ValueError("a repetition penalty needs `seen`, the tokens that have occurred in each row")
        return penalize_repetition(logits, seen, self.repetition_penalty)


def _check_best(best: Tensor) -> None:
    """Raise a ValueError unless the largest logit of every row is a number: NaN and infinity carry over to it."""
    if not bool(best.isfinite().all()):
        raise ValueError(
            "the logits contain NaN or infinity, so no token is the most probable one; weights that are not finite, "
            "or half precision that overflowed, are the usual reasons"
        )
