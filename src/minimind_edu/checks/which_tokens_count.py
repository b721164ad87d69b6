"""Exercises on fine-tuning: which tokens count, LoRA, DPO.

Every mistake here trains without an error, and with most of them the loss falls.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, numbers
from minimind_edu.model.chat import IGNORED, answer_labels
from minimind_edu.model.dpo import answer_log_probability, dpo_loss

_OPENS, _END, _PAD = [7, 8], 9, 0


def _answer_labels(ids: list[int]) -> Tensor:
    return answer_labels(torch.tensor([ids]), _OPENS, [_END])[0]


def _labelled(
    late: int = 0, end: bool = True, once: bool = False, to_the_end: bool = False, opened: bool = False
) -> Attempt:
    """A search for answers with its usual mistakes as switches: ids -> labels."""

    def labels(ids: list[int]) -> list[int]:
        found, place = [IGNORED] * len(ids), 0
        while place < len(ids) - 1:
            if ids[place : place + 2] != _OPENS:
                place += 1
                continue
            first = place + 2
            last = ids.index(_END, first) if _END in ids[first:] else len(ids) - 1
            if to_the_end:
                last = len(ids) - 1
            begins = place if opened else first + late
            for i in range(begins, min(last + late + end, len(ids))):
                found[i] = ids[i]
            place = len(ids) if once else last + 1
        return found

    return labels


_ONE = [7, 6, 1, 2, 3, 9, 7, 8, 4, 5, 9, _PAD, _PAD]
_TWO = [7, 6, 1, 9, 7, 8, 4, 9, 7, 6, 2, 3, 9, 7, 8, 5, 4, 9, _PAD]
_CUT = [7, 6, 1, 2, 9, 7, 8, 4, 5, 3]

check_answer_labels = Exercise(
    "Does `attempt(ids)` give the labels of a chat, -100 but at every answer and its end?",
    answer=_answer_labels,
    cases=(
        Case("one answer, padding after it", (_ONE,)),
        Case("two questions, two answers", (_TWO,)),
        Case("an answer that is cut off", (_CUT,)),
        Case("no answer: nothing counts", ([7, 6, 1, 2, 9, _PAD],)),
    ),
    mistakes=(
        Mistake(
            _labelled(late=1),
            "one too late: the first token of the answer does not count, and the model never learns to say it; the "
            "answer begins right after 7, 8",
        ),
        Mistake(
            _labelled(late=-1),
            "one too early: the last token does not count, and the model never learns to end; labels are not shifted "
            "here, the loss does that",
        ),
        Mistake(_labelled(end=False), "the 9 that ends an answer must count, or the model never learns to end"),
        Mistake(
            _labelled(to_the_end=True),
            "everything after the answer counts, its padding too: stop after the 9 that ends it",
        ),
        Mistake(_labelled(once=True), "only the first answer counts: go on searching after its end"),
        Mistake(_labelled(opened=True), "7, 8 belong to the template, which the program writes: begin after them"),
        Mistake(lambda ids: [i if i else IGNORED for i in ids], "everything but padding counts: search for 7, 8 first"),
        Mistake(
            lambda ids: [i if label == IGNORED else IGNORED for i, label in zip(ids, _labelled()(ids), strict=True)],
            "the other way round: -100 stands where a token does not count",
        ),
        Mistake(
            lambda ids: [int(label != IGNORED) for label in _labelled()(ids)],
            "this is a mask of 0 and 1: return the labels, ids where they count and -100 elsewhere",
        ),
    ),
)


def _dpo(log_p: Tensor, reference: Tensor, beta: float) -> Tensor:
    return dpo_loss(log_p, reference, beta)[0]


def _margin(log_p: Tensor, reference: Tensor) -> Tensor:
    chosen, rejected = (log_p - reference).chunk(2)
    return chosen - rejected


_PAIRS = (4 * numbers(6) - 3, 4 * numbers(6, shift=1.0) - 3, 0.3)
_SURE = (5000 * numbers(4), 5000 * numbers(4, shift=2.0), 1.0)

check_dpo_loss = Exercise(
    "Does `attempt(log_p, reference, beta)` give the mean DPO loss, chosen answers first?",
    answer=_dpo,
    cases=(
        Case("three pairs, beta 0.3", _PAIRS),
        Case("the model is its reference: ln 2", (_PAIRS[0], _PAIRS[0], 0.1)),
        Case("margins in the thousands", _SURE),
    ),
    mistakes=(
        Mistake(
            lambda p, r, beta: -torch.sigmoid(beta * _margin(p, r)).log().mean(),
            "the sigmoid rounds to 0 and its log is minus infinity: F.logsigmoid does both at once",
        ),
        Mistake(
            lambda p, r, beta: _dpo(p, torch.zeros_like(r), beta),
            "the reference is missing: what counts is how far each log-probability has moved from it",
        ),
        Mistake(
            lambda p, r, beta: _dpo(r, p, beta),
            "the margin has the wrong sign: model minus reference, and of these chosen minus rejected",
        ),
        Mistake(lambda p, r, beta: _dpo(p, r, 1.0), "beta is missing: it multiplies the margin, inside the sigmoid"),
        Mistake(
            lambda p, r, beta: beta * _dpo(p, r, 1.0), "beta multiplies the margin, inside the sigmoid, not the loss"
        ),
        Mistake(
            lambda p, r, beta: F.logsigmoid(beta * _margin(p, r)).mean(),
            "a loss is what must fall: minus the log of the sigmoid",
        ),
        Mistake(
            lambda p, r, beta: -F.logsigmoid(beta * (p - r)).mean(),
            "each answer is compared with the reference alone: the chosen ones must be compared with the rejected ones",
        ),
        Mistake(
            lambda p, r, beta: -F.logsigmoid(beta * (p - r)[::2] - beta * (p - r)[1::2]).mean(),
            "you take every other answer: the first half are chosen, the second half rejected",
        ),
        Mistake(lambda p, r, beta: len(p) / 2 * _dpo(p, r, beta), "you sum over the pairs: the mean is asked for"),
    ),
)


def _merged(weight: Tensor, a: Tensor, b: Tensor, scale: float) -> Tensor:
    return weight + scale * b @ a


_WRITES = "your function writes into the frozen matrix, so a second merge would add to it again: build a new one"


def _lora(case: tuple[int, int, int], scale: float) -> tuple[Tensor, Tensor, Tensor, float]:
    out, size, rank = case
    return numbers(out, size), numbers(rank, size, shift=1.0), numbers(out, rank, shift=2.0), scale


check_merged = Exercise(
    "Does `attempt(weight, a, b, scale)` give the one matrix that a LoRA and its matrix make?",
    answer=_merged,
    cases=(
        Case("a rank as large as a side", _lora((3, 3, 3), 1.5)),  # first: a product the other way round runs here
        Case("five rows of three, rank 2", _lora((5, 3, 2), 0.5), untouched=_WRITES),
        Case("a square, rank 1", _lora((4, 4, 1), 2.0)),
    ),
    mistakes=(
        Mistake(lambda w, a, b, s: w + b @ a, "scale is missing"),
        Mistake(lambda w, a, b, s: w + s * s * b @ a, "scale multiplies the product once"),
        Mistake(lambda w, a, b, s: w + s * a @ b, "the order: x goes through A first, so the matrix is B A"),
        Mistake(lambda w, a, b, s: w + s * (b @ a).T, "the product is transposed: B A is [out, in], as the matrix is"),
        Mistake(lambda w, a, b, s: s * b @ a, "this is the product alone: the matrix is added to it"),
        Mistake(lambda w, a, b, s: w + 2 * s * b @ a, "merged twice: B A is added once"),
    ),
)


class _Small(nn.Module):
    """A model of ten tokens that is a table, in the shape of a language model."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self.table = nn.Parameter(2 * numbers(10, 10, shift=shift))

    def forward(self, ids: Tensor) -> Tensor:
        return self.table[ids]


Step = Callable[[nn.Module, nn.Module, Tensor, Tensor, float], Tensor]
_IDS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 4, 9], [5, 6, 8, 3]])
_LABELS = torch.tensor([[-100, -100, 3, 4], [-100, -100, 7, 8], [-100, -100, 4, 9], [-100, -100, 8, 3]])


def _step_loss(model: nn.Module, reference: nn.Module, ids: Tensor, labels: Tensor, beta: float) -> Tensor:
    with torch.no_grad():
        known = answer_log_probability(reference(ids), labels)
    return dpo_loss(answer_log_probability(model(ids), labels), known, beta)[0]


def _stepped(step: Attempt) -> Attempt:
    """The loss of a step, and the gradients of model and reference, as one row of numbers."""

    def run(beta: float) -> Tensor | None:
        model, reference = _Small(0.0), _Small(1.0)
        loss = step(model, reference, _IDS.clone(), _LABELS.clone(), beta)
        if loss is None:
            return None
        if loss.requires_grad:
            loss.backward()
        gradients = [policy.table.grad for policy in (model, reference)]
        flat = [torch.zeros(100, dtype=torch.float64) if g is None else g.flatten() for g in gradients]
        return torch.cat([loss.detach().double().reshape(1), *(g.double() for g in flat)])

    return run


def _with(live: bool = False, length: bool = False, shift: bool = True, same: bool = False) -> Attempt:
    """A step with its usual mistakes as switches."""

    def log_p(model: nn.Module, ids: Tensor, labels: Tensor) -> Tensor:
        if not shift:
            labels = torch.cat([labels[:, :1], labels[:, :-1]], dim=1)
        return answer_log_probability(model(ids), labels) / (ids.shape[1] if length else 1)

    def step(model: nn.Module, reference: nn.Module, ids: Tensor, labels: Tensor, beta: float) -> Tensor:
        with torch.set_grad_enabled(live):
            known = log_p(model if same else reference, ids, labels)
        return dpo_loss(log_p(model, ids, labels), known, beta)[0]

    return step


check_dpo_step = Exercise(
    "Does `attempt(model, reference, ids, labels, beta)` give the DPO loss, with the reference frozen?",
    answer=_stepped(_step_loss),
    cases=(
        Case("loss and gradient, beta 0.1", (0.1,)),
        Case("loss and gradient, beta 2", (2.0,)),
    ),
    mistakes=(
        Mistake(
            _stepped(_with(live=True)),
            "your reference gets a gradient: it would be trained as well; compute its part in torch.no_grad()",
        ),
        Mistake(
            _stepped(torch.no_grad()(_step_loss)),
            "no gradient reaches the model: torch.no_grad() belongs around the reference alone",
        ),
        Mistake(
            _stepped(_with(same=True)),
            "the model is its own reference: every margin is 0, and the loss stands at ln 2 = 0.693 for ever",
        ),
        Mistake(
            _stepped(_with(length=True)),
            "you divide by the length of the row: margins become too small to move, and the loss stays near 0.693",
        ),
        Mistake(
            _stepped(_with(shift=False)),
            "the labels are not shifted: the logits at a position say what follows it",
        ),
    ),
    rtol=1e-5,
    atol=1e-6,
    through=_stepped,
)
