"""Exercises on weight tying (chapter 11).

What two modules share is read off the modules themselves: which parameter they hold, how many there are, what changes
with what.
"""

import torch
from torch import Tensor, nn

from minimind_edu.checks.exercise import Attempt, Case, Exercise, Mistake, NotAttempted, Property, numbers

_VOCABULARY, _HIDDEN = 7, 4
_TABLE = numbers(_VOCABULARY, _HIDDEN)


LOGITS_FROM_EMBEDDING = Exercise(
    "check_logits_from_embedding",
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


def check_logits_from_embedding(attempt: Attempt) -> bool:
    """Does `attempt(weight, hidden)` give a logit for every token at every position, `[B, S, V]`?"""
    return LOGITS_FROM_EMBEDDING.check(attempt)


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


TIE_WEIGHTS = Exercise(
    "check_tie_weights",
    answer=_tie_weights,
    cases=(
        Property("both hold the same numbers, [V, E]", _same_numbers),
        Property("in the same memory", _same_memory),
        Property("as one parameter, counted once", _one_parameter),
        Property("which is trained", _is_trained),
        Property("and stays one when the model is converted", _survives_conversion),
    ),
)


def check_tie_weights(attempt: Attempt) -> bool:
    """Does `attempt(embedding, head)` leave both modules with one parameter? It returns the head."""
    return TIE_WEIGHTS.check(attempt)


def _saved_share(vocab_size: int, hidden_size: int, tied_total: int) -> float:
    table = vocab_size * hidden_size
    return table / (tied_total + table)


SAVED_SHARE = Exercise(
    "check_saved_share",
    answer=_saved_share,
    cases=(
        Case("MiniMind2 small", (6400, 512, 25_829_888)),
        Case("MiniMind2, 16 layers", (6400, 768, 104_030_976)),
        Case("GPT-2 small", (50_257, 768, 124_439_808)),
    ),
    mistakes=(
        Mistake(lambda v, e, n: v * e / n, "divide by the untied model, which has the second table too"),
        Mistake(lambda v, e, n: 2 * _saved_share(v, e, n), "this is the share of both tables; tying saves one of them"),
        Mistake(lambda v, e, n: 100 * _saved_share(v, e, n), "return a share between 0 and 1, not a percentage"),
        Mistake(lambda v, e, n: v * e, "this is how many parameters are saved; return their share"),
        Mistake(lambda v, e, n: 1 - _saved_share(v, e, n), "this is the share that remains; return what is saved"),
    ),
)


def check_saved_share(attempt: Attempt) -> bool:
    """Does `attempt(vocab_size, hidden_size, tied_total)` give the share of the untied model that tying saves?"""
    return SAVED_SHARE.check(attempt)


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


TIED_GRADIENT = Exercise(
    "check_tied_gradient",
    answer=_tied_gradient,
    cases=(
        Case("one position", _one_sentence(2)),
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
    ),
)


def check_tied_gradient(attempt: Attempt) -> bool:
    """Does `attempt(ids, grad_embedded, hidden, grad_logits)` give the shared matrix's gradient, `[V, E]`?"""
    return TIED_GRADIENT.check(attempt)


_FIRST, _NORM, _SECOND = "embed.weight", "norm.weight", "out.weight"


def _result(attempt: Attempt, state: dict[str, Tensor]) -> dict[str, Tensor]:
    answer = attempt(state)
    if not isinstance(answer, dict):
        raise TypeError(f"return a dictionary, not {type(answer).__name__}")
    return answer


def _drops_the_second_name(attempt: Attempt) -> str | None:
    # As in a real state_dict(), a second name of a tensor is another object on the same memory.
    table = _TABLE.clone()
    names = list(_result(attempt, {_FIRST: table, _NORM: torch.ones(_HIDDEN), _SECOND: table.detach()}))
    if names == [_FIRST, _NORM]:
        return None
    if len(names) == 3:
        return (
            "the tied tensor is still there under both names, and safetensors refuses that (id() does not help: "
            "state_dict() makes a new object for every name)"
        )
    if _FIRST not in names and _SECOND not in names:
        return "both names of the tied tensor are gone: keep one of them"
    if names == [_NORM, _SECOND]:
        return "keep the first name and drop the later one, as readers of such files expect"
    return f"expected the names {[_FIRST, _NORM]}, got {names}"


def _keeps_an_untied_head(attempt: Attempt) -> str | None:
    state = {_FIRST: _TABLE.clone(), "lm_head.weight": _TABLE + 1}
    if list(_result(attempt, state)) == list(state):
        return None
    return "an untied head is gone: look at which tensors share memory, not at their names"


def _keeps_equal_numbers(attempt: Attempt) -> str | None:
    state = {"first_norm.weight": torch.ones(_HIDDEN), "second_norm.weight": torch.ones(_HIDDEN)}
    if list(_result(attempt, state)) == list(state):
        return None
    return "the two norms of a new model are all ones, and yet they are two tensors: compare data_ptr(), not numbers"


def _drops_every_further_name(attempt: Attempt) -> str | None:
    table = _TABLE.clone()
    names = list(_result(attempt, {"x": table, "y": torch.ones(2), "z": table.detach(), "a": table.detach()}))
    return None if names == ["x", "y"] else f"expected the names ['x', 'y'], got {names}"


def _leaves_the_rest(attempt: Attempt) -> str | None:
    table = _TABLE.clone()
    state = {_FIRST: table, _SECOND: table.detach()}
    answer = _result(attempt, state)
    if len(state) != 2:
        return "you delete from the dictionary that you were given; build a new one"
    if answer[_FIRST].data_ptr() == table.data_ptr():
        return None
    return "you copy the tensors; keep the ones that you were given, because a model may not fit in memory twice"


def _drop_shared(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    first: dict[int, str] = {}  # address -> name
    for name, tensor in state_dict.items():
        first.setdefault(tensor.data_ptr(), name)
    return {name: state_dict[name] for name in first.values()}


DROP_SHARED = Exercise(
    "check_drop_shared",
    answer=_drop_shared,
    cases=(
        Property("of a tied pair, the first name stays", _drops_the_second_name),
        Property("an untied head stays", _keeps_an_untied_head),
        Property("equal numbers in different memory stay", _keeps_equal_numbers),
        Property("three names of one tensor become one", _drops_every_further_name),
        Property("the tensors are not copied, the given dictionary is left", _leaves_the_rest),
    ),
)


def check_drop_shared(attempt: Attempt) -> bool:
    """Does `attempt(state_dict)` return a dictionary that holds every tensor once, under its first name?"""
    return DROP_SHARED.check(attempt)
