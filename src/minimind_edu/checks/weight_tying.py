"""Exercises on weight tying.

What two modules share is read off the modules themselves: which parameter they hold, how many there are, what changes
with what.
"""

import torch
from torch import Tensor, nn

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, NotAttempted, Property, numbers

_VOCABULARY, _HIDDEN = 7, 4
_TABLE = numbers(_VOCABULARY, _HIDDEN)


check_logits_from_embedding = Exercise(
    "Does `attempt(weight, hidden)` give a logit for every token at every position, `[B, S, V]`?",
    answer=lambda weight, hidden: hidden @ weight.T,
    cases=(
        Case("hidden states [1, 1, 4]", (_TABLE, numbers(1, 1, 4))),
        Case("hidden states [2, 3, 4]", (_TABLE, numbers(2, 3, 4))),
        Case("hidden states [2, 3, 4], three times as long", (_TABLE, 3 * numbers(2, 3, 4))),
    ),
    mistakes=(
        Mistake(
            lambda w, h: torch.cosine_similarity(h[:, :, None], w, dim=-1),
            "this is the cosine of the angle; the logit is the plain dot product, lengths included",
        ),
        Mistake(
            lambda w, h: (h @ w.T).softmax(-1), "these are probabilities; the logits are what goes into the softmax"
        ),
        Mistake(
            lambda w, h: (h @ w.T).log_softmax(-1),
            "these are log-probabilities; the logits are what goes into the softmax",
        ),
        Mistake(
            lambda w, h: h @ w.T / w.shape[1] ** 0.5,
            "attention divides its scores by a square root, the output layer does not",
        ),
        Mistake(
            lambda w, h: (h @ w.T)[:, -1],
            "you return the last position only: training needs the logits of all positions",
        ),
    ),
)


def _modules() -> tuple[nn.Embedding, nn.Linear]:
    """Not tied, with different numbers; the notebook's random numbers are left as they were."""
    with torch.random.fork_rng(devices=[]):
        embedding = nn.Embedding(_VOCABULARY, _HIDDEN, dtype=torch.float64)
        head = nn.Linear(_HIDDEN, _VOCABULARY, bias=False, dtype=torch.float64)
    with torch.no_grad():
        embedding.weight.copy_(_TABLE)
        head.weight.copy_(_TABLE.cos())
    return embedding, head


def _tied_by(attempt: Attempt) -> tuple[nn.Embedding, nn.Linear]:
    embedding, head = _modules()
    try:
        returned = attempt(embedding, head)
    except NotAttempted:
        if embedding.weight is head.weight:
            raise TypeError("the two are tied, now return the head") from None
        raise
    if not isinstance(returned, nn.Linear):
        raise TypeError(f"return the head, an nn.Linear, not {type(returned).__name__}")
    return embedding, returned


def _same_numbers(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    if embedding.weight.shape != _TABLE.shape:
        return "the embedding's matrix must stay [V, E], one row for each token"
    if head.weight.shape != _TABLE.shape:
        return "do not transpose: nn.Linear(E, V) keeps its weight as [V, E], like the embedding"
    if not torch.equal(head.weight, embedding.weight):
        return "the two matrices still hold different numbers: nothing is tied"
    if not any(torch.equal(head.weight, original) for original in (_TABLE, _TABLE.cos())):
        return "the shared matrix has lost its numbers: keep those of the embedding or of the head"
    return None


def _same_memory(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    if embedding.weight.data_ptr() == head.weight.data_ptr():
        return None
    return "this is a copy, equal only until the first training step: assign the parameter itself, not its numbers"


def _one_parameter(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    count = len(list(nn.ModuleList([embedding, head]).parameters()))
    if embedding.weight is head.weight and count == 1:
        return None
    if count > 1:
        return (
            f"the memory is shared, but there are {count} Parameter objects: they are counted twice and collect two "
            "gradients; both modules must hold the same object"
        )
    return "one of the two is not an nn.Parameter any more, so its module does not know it"


def _is_trained(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    if not embedding.weight.requires_grad:
        return "requires_grad is off: the shared matrix would never be trained"
    head(embedding(torch.tensor([1, 2]))).sum().backward()
    return None if embedding.weight.grad is not None else "no gradient reaches the shared matrix"


def _survives_conversion(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    nn.ModuleList([embedding, head]).to(torch.float32)
    if embedding.weight is head.weight:
        return None
    return "after .to(torch.float32) there are two matrices again: both modules must register the same parameter"


def _tie_weights(embedding: nn.Embedding, head: nn.Linear) -> nn.Linear:
    head.weight = embedding.weight
    return head


check_tie_weights = Exercise(
    "Does `attempt(embedding, head)` leave both modules with one parameter? It returns the head.",
    answer=_tie_weights,
    cases=(
        Property("both hold the same numbers, [V, E]", _same_numbers),
        Property("in the same memory", _same_memory),
        Property("as one parameter, counted once", _one_parameter),
        Property("which is trained", _is_trained),
        Property("and stays one when the model is converted", _survives_conversion),
    ),
)


def _tied_gradient(ids: Tensor, grad_embedded: Tensor, hidden: Tensor, grad_logits: Tensor) -> Tensor:
    return (grad_logits.T @ hidden).index_add(0, ids, grad_embedded)


def _last_of_each(ids: Tensor, grad_embedded: Tensor, dense: Tensor, overwrite: bool = False) -> Tensor:
    """`dense` with rows added or overwritten; of a repeated id only the last counts, as with plain indexing."""
    rows = dense.clone()
    for i, row in zip(ids.tolist(), grad_embedded, strict=True):
        rows[i] = row if overwrite else dense[i] + row
    return rows


def _one_sentence(*ids: int) -> tuple[Tensor, ...]:
    length = len(ids)
    hidden, grad_logits = numbers(length, _HIDDEN), numbers(length, _VOCABULARY)
    return torch.tensor(ids), hidden + 0.5, hidden, grad_logits


check_tied_gradient = Exercise(
    "Does `attempt(ids, grad_embedded, hidden, grad_logits)` give the shared matrix's gradient, `[V, E]`?",
    answer=_tied_gradient,
    cases=(
        Case("two different tokens", _one_sentence(2, 5)),
        Case("four different tokens", _one_sentence(5, 0, 3, 1)),
        Case("a token that comes three times", _one_sentence(4, 2, 4, 6, 4)),
    ),
    mistakes=(
        Mistake(lambda i, g, h, d: d.T @ h, "this is the head's part; the embedding's part is missing"),
        Mistake(
            lambda i, g, h, d: _tied_gradient(i, g, 0 * h, d),
            "this is the embedding's part; the head's part is missing",
        ),
        Mistake(
            lambda i, g, h, d: _last_of_each(i, g, d.T @ h),
            "rows[ids] += ... keeps only the last of a repeated token; index_add adds them all",
        ),
        Mistake(
            lambda i, g, h, d: _last_of_each(i, g, d.T @ h, overwrite=True),
            "the rows that were read lose the head's part: add, do not assign",
        ),
        Mistake(
            lambda i, g, h, d: _tied_gradient(i, g, h, d) / 2,
            "this is the mean of both parts; gradients that reach one parameter add up",
        ),
        Mistake(
            lambda i, g, h, d: (d.T @ h / len(i)).index_add(0, i, g),
            "you divide the head's part by S: grad_logits already holds the division by the number of predictions",
        ),
    ),
)


def _two_sizes(hidden_size: int, logits: float, stream: float) -> tuple[float, float]:
    std = logits / hidden_size**0.5
    return std, stream / std


check_two_sizes = Exercise(
    "Does `attempt(hidden_size, logits, stream)` give the std of the matrix and the factor for reading?",
    answer=_two_sizes,
    cases=(
        Case("E = 512, logits of 1, stream of 1", (512, 1.0, 1.0)),
        Case("E = 64, logits of 0.5, stream of 2", (64, 0.5, 2.0)),
        Case("E = 1024, logits of 0.64, stream of 0.02: the factor is 1", (1024, 0.64, 0.02)),
    ),
    mistakes=(
        Mistake(
            lambda e, a, s: (a * e**0.5, s / (a * e**0.5)),
            "such logits would be E times too large: E products add up in each",
        ),
        Mistake(
            lambda e, a, s: (a / e, s * e / a),
            "E independent products add up like their variances: divide by the square root of E",
        ),
        Mistake(
            lambda e, a, s: (a / e**0.5, e**0.5),
            "√E is the factor for logits of 1 and a stream of 1; ask what a row's RMS is before it is multiplied",
        ),
        Mistake(
            lambda e, a, s: (a / e**0.5, s),
            "a row that is read has an RMS of std, not of 1: the factor must make up for it",
        ),
        Mistake(
            lambda e, a, s: (s, 1.0),
            "this suits the reading only: the matrix is shared, and the logits need their size",
        ),
    ),
)


_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"


def _fits_tied(state_dict: dict[str, Tensor]) -> bool:
    head = state_dict.get(_HEAD)
    return head is None or torch.equal(head, state_dict[_EMBEDDING])


def _judges(claim: str, hint: str, head: Tensor | None) -> Property:
    """One file with a norm, an embedding and, if given, a head, and what to say to those who misjudge it."""

    def find_problem(attempt: Attempt) -> str | None:
        state = {_EMBEDDING: _TABLE.clone(), "model.norm.weight": torch.ones(_HIDDEN)}
        if head is not None:
            state[_HEAD] = head.clone()
        wanted = _fits_tied(state)
        answer = attempt(state)
        if isinstance(answer, str | dict):
            raise TypeError("return True or False")
        return None if bool(answer) == wanted else hint

    return Property(claim, find_problem)


def _one_number_off() -> Tensor:
    head = _TABLE.clone()
    head[-1, -1] += 1e-7
    return head


check_fits_tied = Exercise(
    "Does `attempt(state_dict)` tell whether a tied model can load these weights without losing a number?",
    answer=_fits_tied,
    cases=(
        _judges(
            "both names, equal numbers: True",
            "what comes from a file never shares memory, and MiniMind's own files have both names: compare numbers",
            _TABLE,
        ),
        _judges("no head in the file: True", "nothing can be overwritten if there is only one matrix", None),
        _judges(
            "another head: False",
            "all names and shapes match, and yet the head would overwrite the embedding",
            _TABLE.cos(),
        ),
        _judges(
            "the rows in another order: False",
            "sums, means and norms agree, but the rows are in another order: compare number by number",
            _TABLE.flip(0),
        ),
        _judges(
            "one number differs by 1e-7: False",
            "close is not equal: one of the two numbers would be lost; use torch.equal",
            _one_number_off(),
        ),
    ),
)
