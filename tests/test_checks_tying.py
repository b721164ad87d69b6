"""checks.tying: right answers pass, and every usual wrong answer is named."""

import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from minimind_edu import checks

# ---- right answers, none of them written like the reference


def logits_by_linear(weight, hidden):
    return F.linear(hidden, weight)


def logits_by_einsum(weight, hidden):
    return torch.einsum("bse,ve->bsv", hidden, weight)


def tie_head(embedding, head):
    head.weight = embedding.weight
    return head


def tie_embedding(embedding, head):
    embedding.weight = head.weight
    return head


def share_by_two_totals(vocab_size, hidden_size, tied_total):
    untied_total = tied_total + vocab_size * hidden_size
    return 1 - tied_total / untied_total


def gradient_by_autograd(ids, grad_embedded, hidden, grad_logits):
    weight = torch.zeros(grad_logits.shape[1], hidden.shape[1], dtype=hidden.dtype)
    weight.requires_grad_()
    outputs = [weight[ids], hidden @ weight.T]
    return torch.autograd.grad(outputs, weight, [grad_embedded, grad_logits])[0]


def gradient_by_one_hot(ids, grad_embedded, hidden, grad_logits):
    one_hot = F.one_hot(ids, grad_logits.shape[1]).to(hidden.dtype)
    return one_hot.T @ grad_embedded + grad_logits.T @ hidden


def drop_by_pointer(state):
    seen, kept = set(), {}
    for name, tensor in state.items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            kept[name] = tensor
    return kept


def drop_by_identity(state):
    first = {}
    for name, tensor in state.items():
        first.setdefault(tensor.untyped_storage().data_ptr(), name)
    return {name: state[name] for name in first.values()}


RIGHT = [
    (checks.check_logits_from_embedding, logits_by_linear),
    (checks.check_logits_from_embedding, logits_by_einsum),
    (checks.check_tie_weights, tie_head),
    (checks.check_tie_weights, tie_embedding),
    (checks.check_saved_share, share_by_two_totals),
    (checks.check_tied_gradient, gradient_by_autograd),
    (checks.check_tied_gradient, gradient_by_one_hot),
    (checks.check_drop_shared, drop_by_pointer),
    (checks.check_drop_shared, drop_by_identity),
]


@pytest.mark.parametrize("check, attempt", RIGHT, ids=lambda f: f.__name__)
def test_right_answers_pass(check, attempt, capsys):
    assert check(attempt) is True
    printed = capsys.readouterr().out
    assert "not yet" not in printed and "hold" in printed


# ---- wrong answers


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


LOGITS = [
    (lambda w, h: F.cosine_similarity(h[:, :, None], w, dim=-1), "cosine"),
    (lambda w, h: h @ unit(w).T, "divide the rows"),
    (lambda w, h: unit(h) @ w.T, "divide the hidden state"),
    (lambda w, h: (h @ w.T).softmax(-1), "probabilities"),
    (lambda w, h: h @ w.T / w.shape[1] ** 0.5, "square root"),
    (lambda w, h: -(h[:, :, None] - w).norm(dim=-1), "distance"),
    (lambda w, h: (h @ w.T)[:, -1], "last position"),
    (lambda w, h: w @ h.mT, "last axis"),
    (lambda w, h: h @ w, "stopped with RuntimeError"),
]


def tie_nothing(embedding, head):
    return head


def tie_by_copying(embedding, head):
    head.weight.data.copy_(embedding.weight.data)
    return head


def tie_by_cloning(embedding, head):
    head.weight = nn.Parameter(embedding.weight.detach().clone())
    return head


def tie_by_deepcopy(embedding, head):
    head.weight = copy.deepcopy(embedding.weight)
    return head


def tie_by_loading(embedding, head):
    head.load_state_dict(embedding.state_dict())
    return head


def tie_the_data(embedding, head):
    head.weight.data = embedding.weight.data
    return head


def tie_a_new_parameter(embedding, head):
    head.weight = nn.Parameter(embedding.weight)
    return head


def tie_transposed(embedding, head):
    head.weight = nn.Parameter(embedding.weight.T)
    return head


def tie_frozen(embedding, head):
    head.weight = embedding.weight
    embedding.weight.requires_grad_(False)
    return head


def tie_a_plain_tensor(embedding, head):
    del head.weight
    head.weight = embedding.weight.detach()
    return head


def tie_without_returning_the_head(embedding, head):
    head.weight = embedding.weight
    return head.weight


TIES = [
    (tie_nothing, "nothing was tied"),
    (tie_by_copying, "a copy"),
    (tie_by_cloning, "a copy"),
    (tie_by_deepcopy, "a copy"),
    (tie_by_loading, "a copy"),
    (tie_the_data, "2 Parameter objects"),
    (tie_a_new_parameter, "2 Parameter objects"),
    (tie_transposed, "no transposing"),
    (tie_frozen, "requires_grad is off"),
    (tie_a_plain_tensor, "no nn.Parameter any more"),
    (tie_without_returning_the_head, "return the head"),
]

SHARES = [
    (lambda v, e, n: 0.5, "half of the two tables"),
    (lambda v, e, n: v * e / n, "divide by the untied model"),
    (lambda v, e, n: 2 * v * e / (n + v * e), "both tables"),
    (lambda v, e, n: 100 * v * e / (n + v * e), "not a percentage"),
    (lambda v, e, n: v * e, "how many"),
    (lambda v, e, n: v * e / (n - v * e), "one more, not one less"),
    (lambda v, e, n: v / (n + v * e), "a whole row"),
]


def gradient_indexed(ids, grad_embedded, hidden, grad_logits):
    gradient = grad_logits.T @ hidden
    gradient[ids] += grad_embedded
    return gradient


def gradient_assigned(ids, grad_embedded, hidden, grad_logits):
    gradient = grad_logits.T @ hidden
    for i, row in zip(ids, grad_embedded, strict=True):
        gradient[i] = row
    return gradient


def gradient_of_the_embedding(ids, grad_embedded, hidden, grad_logits):
    return F.one_hot(ids, grad_logits.shape[1]).to(hidden.dtype).T @ grad_embedded


GRADIENTS = [
    (lambda i, g, h, d: d.T @ h, "embedding's part is missing"),
    (gradient_of_the_embedding, "head's part is missing"),
    (gradient_indexed, "repeated token"),
    (gradient_assigned, "add, do not assign"),
    (lambda *a: gradient_by_one_hot(*a) / 2, "add up"),
    (lambda i, g, h, d: gradient_by_one_hot(i, h, h, d), "not the hidden state"),
    (lambda *a: gradient_by_one_hot(*a).T, r"\[V, E\]"),
]


def drop_equal_numbers(state):
    kept = {}
    for name, tensor in state.items():
        if not any(torch.equal(tensor, other) for other in kept.values()):
            kept[name] = tensor
    return kept


def drop_the_first(state):
    last = {tensor.data_ptr(): name for name, tensor in state.items()}
    return {name: tensor for name, tensor in state.items() if last[tensor.data_ptr()] == name}


def drop_both(state):
    pointers = [tensor.data_ptr() for tensor in state.values()]
    return {n: t for n, t in state.items() if pointers.count(t.data_ptr()) == 1}


def drop_by_name(state):
    return {n: t for n, t in state.items() if n not in ("lm_head.weight", "out.weight")}


def drop_in_place(state):
    for name in set(state) - set(drop_by_pointer(state)):
        del state[name]
    return state


def drop_one_only(state):
    extra = [name for name in state if name not in drop_by_pointer(state)]
    return {name: tensor for name, tensor in state.items() if name not in extra[:1]}


def drop_and_copy(state):
    return {name: tensor.clone() for name, tensor in drop_by_pointer(state).items()}


DROPS = [
    (dict, "under both names"),
    (drop_equal_numbers, "compare data_ptr"),
    (drop_the_first, "the first name stays"),
    (drop_both, "one of them must stay"),
    (drop_by_name, "not what they are called"),
    (drop_in_place, "you were given; build a new one"),
    (drop_one_only, r"expected the names \['x', 'y'\]"),
    (drop_and_copy, "the tensors are copied"),
    (list, "return a dictionary, not list"),
]

WRONG = [
    (check, attempt, hint)
    for check, wrong in {
        checks.check_logits_from_embedding: LOGITS,
        checks.check_tie_weights: TIES,
        checks.check_saved_share: SHARES,
        checks.check_tied_gradient: GRADIENTS,
        checks.check_drop_shared: DROPS,
    }.items()
    for attempt, hint in wrong
]


@pytest.mark.parametrize("check, attempt, hint", WRONG, ids=[hint for _, _, hint in WRONG])
def test_wrong_answers_are_named(check, attempt, hint, capsys):
    assert check(attempt) is False
    printed = capsys.readouterr().out
    assert re.search(hint, printed), printed


@pytest.mark.parametrize("check", list(dict(RIGHT)), ids=lambda f: f.__name__)
def test_nothing_attempted_is_told_kindly(check, capsys):
    assert check(lambda *arguments: None) is False
    assert "not attempted yet" in capsys.readouterr().out


def test_checks_leave_the_random_numbers_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    checks.check_tie_weights(tie_head)
    assert torch.equal(torch.rand(1), expected)
