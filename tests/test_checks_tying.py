"""checks.tying: right answers in other words pass, and what two modules or two names share is seen exactly."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from minimind_edu import checks


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


def drop_by_storage(state):
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
    (checks.check_drop_shared, drop_by_storage),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer):
    assert check(answer) is True


def tie_nothing(embedding, head):
    return head


def tie_by_copying(embedding, head):
    head.weight.data.copy_(embedding.weight.data)
    return head


def tie_by_deepcopy(embedding, head):
    head.weight = copy.deepcopy(embedding.weight)
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
    head.weight = embedding.weight.requires_grad_(False)
    return head


def tie_a_plain_tensor(embedding, head):
    del head.weight
    head.weight = embedding.weight.detach()
    return head


def tie_and_zero(embedding, head):
    head.weight = embedding.weight
    nn.init.zeros_(head.weight)
    return head


def tie_and_draw_again(embedding, head):
    head.weight = embedding.weight
    embedding.reset_parameters()
    return head


def tie_without_returning_the_head(embedding, head):
    head.weight = embedding.weight
    return head.weight


def tie_without_returning(embedding, head):
    head.weight = embedding.weight


TIES = [
    (tie_nothing, "nothing is tied"),
    (tie_by_copying, "a copy"),
    (tie_by_deepcopy, "a copy"),
    (tie_the_data, "2 Parameter objects"),
    (tie_a_new_parameter, "2 Parameter objects"),
    (tie_transposed, "do not transpose"),
    (tie_frozen, "requires_grad is off"),
    (tie_a_plain_tensor, "not an nn.Parameter any more"),
    (tie_and_zero, "lost its numbers"),
    (tie_and_draw_again, "lost its numbers"),
    (tie_without_returning_the_head, "return the head, an nn.Linear, not Parameter"),
    (tie_without_returning, "now return the head"),
]


def drop_equal_numbers(state):
    kept = {}
    for name, tensor in state.items():
        if not any(torch.equal(tensor, other) for other in kept.values()):
            kept[name] = tensor
    return kept


def drop_equal_objects(state):
    first = {}
    for name, tensor in state.items():
        first.setdefault(id(tensor), name)
    return {name: state[name] for name in first.values()}


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
    (drop_equal_objects, "id() does not help"),
    (drop_equal_numbers, "compare data_ptr"),
    (drop_the_first, "keep the first name"),
    (drop_both, "keep one of them"),
    (drop_by_name, "not at their names"),
    (drop_in_place, "build a new one"),
    (drop_one_only, "expected the names ['x', 'y']"),
    (drop_and_copy, "you copy the tensors"),
    (list, "return a dictionary, not list"),
]

WRONG = [
    *((checks.check_tie_weights, tie, words) for tie, words in TIES),
    *((checks.check_drop_shared, drop, words) for drop, words in DROPS),
]


@pytest.mark.parametrize(("check", "answer", "words"), WRONG, ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_answer_gets_the_hint_that_fits(check, answer, words, capsys):
    assert check(answer) is False
    assert words in capsys.readouterr().out.split("hint: ")[1]
