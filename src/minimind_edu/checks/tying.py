"""Checks for the exercises on weight tying (chapter 11).

What two modules share is asked of the modules themselves: which parameter they hold, how many there are, what moves
with what. What is computed is compared with formulas, and the usual wrong ones are known by name.
"""

import torch
from torch import Tensor, nn

from minimind_edu.checks._report import Attempt, Mistake, Property, report, same_as

_VOCABULARY, _HIDDEN = 7, 4


def check_logits_from_embedding(attempt: Attempt) -> bool:
    """Does `attempt(weight, hidden)` give a logit for every token at every position, `[B, S, V]`?"""

    def asks(batch: int, length: int, scale: float = 1.0) -> Property:
        arguments = _numbers(_VOCABULARY, _HIDDEN), scale * _numbers(batch, length, _HIDDEN)
        claim = f"hidden states [{batch}, {length}, {_HIDDEN}]"
        question = same_as(_logits, *arguments, mistakes=_LOGIT_MISTAKES)
        return Property(claim if scale == 1 else f"{claim}, three times as long", question)

    return report("check_logits_from_embedding", attempt, [asks(1, 1), asks(2, 3), asks(2, 3, scale=3.0)])


def check_tie_weights(attempt: Attempt) -> bool:
    """Does `attempt(embedding, head)` leave both modules with one parameter? It returns the head."""
    return report(
        "check_tie_weights",
        attempt,
        [
            Property("both hold the same numbers, [V, E]", _same_numbers),
            Property("in the same memory", _same_memory),
            Property("as one parameter, counted once", _one_parameter),
            Property("which is trained", _is_trained),
            Property("and stays one when the model is converted", _survives_conversion),
        ],
    )


def check_saved_share(attempt: Attempt) -> bool:
    """Does `attempt(vocab_size, hidden_size, tied_total)` give the share of the untied model that tying saves?"""

    def asks(claim: str, *sizes: int) -> Property:
        return Property(claim, same_as(_saved_share, *sizes, mistakes=_SHARE_MISTAKES))

    return report(
        "check_saved_share",
        attempt,
        [
            asks("MiniMind2 small", 6400, 512, 25_829_888),
            asks("MiniMind2, 16 layers", 6400, 768, 104_030_976),
            asks("GPT-2 small", 50_257, 768, 124_439_808),
        ],
    )


def check_tied_gradient(attempt: Attempt) -> bool:
    """Does `attempt(ids, grad_embedded, hidden, grad_logits)` give the shared matrix's gradient, `[V, E]`?"""

    def asks(claim: str, ids: list[int]) -> Property:
        length = len(ids)
        hidden, grad_embedded = _numbers(length, _HIDDEN), _numbers(length, _HIDDEN) + 0.5
        arguments = torch.tensor(ids), grad_embedded, hidden, _numbers(length, _VOCABULARY)
        return Property(claim, same_as(_tied_gradient, *arguments, mistakes=_GRADIENT_MISTAKES))

    return report(
        "check_tied_gradient",
        attempt,
        [
            asks("one position", [2]),
            asks("four different tokens", [5, 0, 3, 1]),
            asks("a token that comes three times", [4, 2, 4, 6, 4]),
        ],
    )


def check_drop_shared(attempt: Attempt) -> bool:
    """Does `attempt(state_dict)` return a dictionary that holds every tensor once, under its first name?"""
    return report(
        "check_drop_shared",
        attempt,
        [
            Property("of a tied pair, the first name stays", _drops_the_second_name),
            Property("an untied head stays", _keeps_an_untied_head),
            Property("equal numbers in different memory stay", _keeps_equal_numbers),
            Property("three names of one tensor become one", _drops_every_further_name),
            Property("the tensors are not copied, the given dictionary is left", _leaves_the_rest),
        ],
    )


def _numbers(*shape: int) -> Tensor:
    """Numbers without two equal entries, the same on every machine."""
    n = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(3 * n + 1) + 0.1 * torch.sin(n * n)).view(shape)


# ---- the logit


def _logits(weight: Tensor, hidden: Tensor) -> Tensor:
    return hidden @ weight.T


def _unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


_LOGIT_MISTAKES = (
    Mistake(
        lambda w, h: _unit(h) @ _unit(w).T,
        "this is the cosine of the angle; the logit is the plain dot product, lengths included",
    ),
    Mistake(
        lambda w, h: h @ _unit(w).T, "you divide the rows by their lengths; a long row is meant to give larger logits"
    ),
    Mistake(
        lambda w, h: _unit(h) @ w.T, "you divide the hidden state by its length; the final norm has already sized it"
    ),
    Mistake(lambda w, h: (h @ w.T).softmax(-1), "these are probabilities; the logits are what goes into the softmax"),
    Mistake(
        lambda w, h: h @ w.T / w.shape[1] ** 0.5,
        "attention divides its scores by a square root, the output layer does not",
    ),
    Mistake(lambda w, h: -torch.cdist(h, w.expand(len(h), -1, -1)), "this is a distance; the logit is a dot product"),
    Mistake(lambda w, h: (h @ w.T)[:, -1], "only the last position: training needs the logits of all of them"),
    Mistake(lambda w, h: w @ h.mT, "the vocabulary belongs on the last axis: hidden @ weight.T, [B, S, V]"),
)


# ---- tying


def _modules() -> tuple[nn.Embedding, nn.Linear]:
    """Untied, with numbers of their own; the notebook's random numbers are left as they were."""
    with torch.random.fork_rng(devices=[]):
        embedding = nn.Embedding(_VOCABULARY, _HIDDEN, dtype=torch.float64)
        head = nn.Linear(_HIDDEN, _VOCABULARY, bias=False, dtype=torch.float64)
    with torch.no_grad():
        embedding.weight.copy_(_numbers(_VOCABULARY, _HIDDEN))
        head.weight.copy_(_numbers(_VOCABULARY, _HIDDEN).cos())
    return embedding, head


def _tied_by(attempt: Attempt) -> tuple[nn.Embedding, nn.Linear]:
    embedding, head = _modules()
    returned = attempt(embedding, head)
    if not isinstance(returned, nn.Linear):
        raise TypeError(f"return the head, an nn.Linear, not {type(returned).__name__}")
    return embedding, returned


def _same_numbers(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    if embedding.weight.shape != (_VOCABULARY, _HIDDEN):
        return "the embedding's matrix must stay [V, E], one row for each token"
    if head.weight.shape != (_VOCABULARY, _HIDDEN):
        return "no transposing: nn.Linear(E, V) keeps its weight as [V, E], the embedding's own shape"
    if torch.equal(head.weight, embedding.weight):
        return None
    return "the two matrices still hold different numbers: nothing was tied"


def _same_memory(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    if embedding.weight.data_ptr() == head.weight.data_ptr():
        return None
    return (
        "this is a copy: equal today, different after the first training step; assign the parameter itself instead of "
        "its numbers"
    )


def _one_parameter(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    count = len(list(nn.ModuleList([embedding, head]).parameters()))
    if embedding.weight is head.weight and count == 1:
        return None
    if count > 1:
        return (
            f"the memory is shared, but there are {count} Parameter objects: they are counted twice and gather two "
            "gradients; both modules must hold one and the same object"
        )
    return "one of the two is no nn.Parameter any more, so the module does not know it"


def _is_trained(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    if not embedding.weight.requires_grad:
        return "requires_grad is off: the shared matrix would never be trained"
    head(embedding(torch.tensor([1, 2]))).sum().backward()
    return None if embedding.weight.grad is not None else "no gradient arrives at the shared matrix"


def _survives_conversion(attempt: Attempt) -> str | None:
    embedding, head = _tied_by(attempt)
    nn.ModuleList([embedding, head]).to(torch.float32)
    if embedding.weight is head.weight:
        return None
    return "after .to(torch.float32) there are two matrices again: both modules must register the same parameter"


# ---- the share


def _saved_share(vocab_size: int, hidden_size: int, tied_total: int) -> float:
    table = vocab_size * hidden_size
    return table / (tied_total + table)


_SHARE_MISTAKES = (
    Mistake(lambda v, e, n: 0.5, "half of the two tables, but a model is more than two tables"),
    Mistake(lambda v, e, n: v * e / n, "divide by the untied model: the one that would have the second table, too"),
    Mistake(lambda v, e, n: 2 * v * e / (n + v * e), "this is the share of both tables; tying saves one of them"),
    Mistake(lambda v, e, n: 100 * v * e / (n + v * e), "a share, not a percentage: between 0 and 1"),
    Mistake(lambda v, e, n: v * e, "this is how many are saved; the question is which share"),
    Mistake(
        lambda v, e, n: v * e / (n - v * e),
        "tied_total holds one table already; the untied model has one more, not one less",
    ),
    Mistake(lambda v, e, n: v / (n + v * e), "every token has a whole row of hidden_size numbers"),
)


# ---- the gradient


def _tied_gradient(ids: Tensor, grad_embedded: Tensor, hidden: Tensor, grad_logits: Tensor) -> Tensor:
    return (grad_logits.T @ hidden).index_add(0, ids, grad_embedded)


def _rows(ids: Tensor, grad_embedded: Tensor, dense: Tensor, overwrite: bool = False) -> Tensor:
    """`dense` with rows added or overwritten by plain indexing, where of a repeated id only the last counts."""
    rows = dense.clone()
    for i, row in zip(ids.tolist(), grad_embedded, strict=True):
        rows[i] = row if overwrite else dense[i] + row
    return rows


def _only_embedding(ids: Tensor, grad_embedded: Tensor, _: Tensor, grad_logits: Tensor) -> Tensor:
    zeros = grad_embedded.new_zeros(grad_logits.shape[1], grad_embedded.shape[1])
    return zeros.index_add(0, ids, grad_embedded)


_GRADIENT_MISTAKES = (
    Mistake(lambda i, g, h, d: d.T @ h, "this is what comes from the head; the embedding's part is missing"),
    Mistake(_only_embedding, "this is what comes from the embedding; the head's part is missing"),
    Mistake(
        lambda i, g, h, d: _rows(i, g, d.T @ h),
        "rows[ids] += ... keeps only the last of a repeated token; index_add adds them all",
    ),
    Mistake(
        lambda i, g, h, d: _rows(i, g, d.T @ h, overwrite=True),
        "the rows that were read lose what came from the head: add, do not assign",
    ),
    Mistake(
        lambda i, g, h, d: _tied_gradient(i, g, h, d) / 2,
        "this is the mean of both parts; gradients that arrive at one parameter add up",
    ),
    Mistake(
        lambda i, g, h, d: (d.T @ h).index_add(0, i, h),
        "into the rows that were read goes grad_embedded, not the hidden state",
    ),
    Mistake(
        lambda i, g, h, d: _tied_gradient(i, g, h, d).T,
        "the gradient has the shape of the matrix, [V, E]: one row for each token",
    ),
)


# ---- the file

_A, _B, _OUT = "embed.weight", "norm.weight", "out.weight"


def _asked_state(attempt: Attempt, state: dict[str, Tensor]) -> dict[str, Tensor]:
    answer = attempt(state)
    if not isinstance(answer, dict):
        raise TypeError(f"return a dictionary, not {type(answer).__name__}")
    return answer


def _names(attempt: Attempt, state: dict[str, Tensor]) -> list[str]:
    return list(_asked_state(attempt, state))


def _drops_the_second_name(attempt: Attempt) -> str | None:
    table = _numbers(_VOCABULARY, _HIDDEN)
    names = _names(attempt, {_A: table, _B: torch.ones(_HIDDEN), _OUT: table})
    if names == [_A, _B]:
        return None
    if len(names) == 3:
        return "the tied tensor is still there under both names, and safetensors refuses that"
    if _A not in names and _OUT not in names:
        return "both names of the tied tensor are gone: one of them must stay"
    if names == [_B, _OUT]:
        return "the first name stays and the later one goes, as readers of such files expect"
    return f"expected the names {[_A, _B]}, got {names}"


def _keeps_an_untied_head(attempt: Attempt) -> str | None:
    state = {_A: _numbers(_VOCABULARY, _HIDDEN), "lm_head.weight": _numbers(_VOCABULARY, _HIDDEN) + 1}
    if _names(attempt, state) == list(state):
        return None
    return "an untied head is gone: ask which tensors share memory, not what they are called"


def _keeps_equal_numbers(attempt: Attempt) -> str | None:
    state = {"first_norm.weight": torch.ones(_HIDDEN), "second_norm.weight": torch.ones(_HIDDEN)}
    if _names(attempt, state) == list(state):
        return None
    return "two norms of a new model are both all ones, and yet two tensors: compare data_ptr(), not numbers"


def _drops_every_further_name(attempt: Attempt) -> str | None:
    table = _numbers(_VOCABULARY, _HIDDEN)
    names = _names(attempt, {"x": table, "y": torch.ones(2), "z": table, "a": table})
    return None if names == ["x", "y"] else f"expected the names ['x', 'y'], got {names}"


def _leaves_the_rest(attempt: Attempt) -> str | None:
    table = _numbers(_VOCABULARY, _HIDDEN)
    state = {_A: table, _OUT: table}
    answer = _asked_state(attempt, state)
    if len(state) != 2:
        return "you delete from the dictionary you were given; build a new one"
    if answer[_A].data_ptr() == table.data_ptr():
        return None
    return "the tensors are copied; keep the ones you were given, a model may not fit twice"
