"""checks.weight_tying: right answers in other words pass, and what two modules or two names share is seen exactly."""

import copy

import torch
import torch.nn.functional as F
from judged_answers import judged
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


def sizes_by_variance(hidden_size, logits, stream):
    std = (logits**2 / hidden_size) ** 0.5
    return torch.tensor([std, stream / std], dtype=torch.float64).tolist()


def gradient_by_autograd(ids, grad_embedded, hidden, grad_logits):
    weight = torch.zeros(grad_logits.shape[1], hidden.shape[1], dtype=hidden.dtype)
    weight.requires_grad_()
    outputs = [weight[ids], hidden @ weight.T]
    return torch.autograd.grad(outputs, weight, [grad_embedded, grad_logits])[0]


def gradient_by_one_hot(ids, grad_embedded, hidden, grad_logits):
    one_hot = F.one_hot(ids, grad_logits.shape[1]).to(hidden.dtype)
    return one_hot.T @ grad_embedded + grad_logits.T @ hidden


def fits_by_every_number(state):
    if "lm_head.weight" not in state:
        return True
    return (state["lm_head.weight"] == state["model.embed_tokens.weight"]).all()


RIGHT = [
    (checks.check_logits_from_embedding, logits_by_linear),
    (checks.check_logits_from_embedding, logits_by_einsum),
    (checks.check_tie_weights, tie_head),
    (checks.check_tie_weights, tie_embedding),
    (checks.check_two_sizes, sizes_by_variance),
    (checks.check_tied_gradient, gradient_by_autograd),
    (checks.check_tied_gradient, gradient_by_one_hot),
    (checks.check_fits_tied, fits_by_every_number),
]


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


def head_of(state):
    return state.get("lm_head.weight", state["model.embed_tokens.weight"])


def fits_by_memory(state):
    return head_of(state).data_ptr() == state["model.embed_tokens.weight"].data_ptr()


def fits_by_name(state):
    return "lm_head.weight" not in state


def fits_by_shape(state):
    return head_of(state).shape == state["model.embed_tokens.weight"].shape


def fits_by_sum(state):
    return torch.isclose(head_of(state).sum(), state["model.embed_tokens.weight"].sum())


def fits_by_closeness(state):
    return torch.allclose(head_of(state), state["model.embed_tokens.weight"])


def fits_with_both_only(state):
    return "lm_head.weight" in state and fits_by_every_number(state)


def fits_without_looking(state):
    return torch.equal(state["lm_head.weight"], state["model.embed_tokens.weight"])


def fits_in_words(state):
    return "yes"


FITS = [
    (fits_by_memory, "never shares memory"),
    (fits_by_name, "never shares memory"),
    (fits_by_shape, "would overwrite"),
    (fits_by_sum, "in another order"),
    (fits_by_closeness, "close is not equal"),
    (fits_with_both_only, "only one matrix"),
    (fits_without_looking, "KeyError: 'lm_head.weight'"),
    (fits_in_words, "return True or False"),
]

WRONG = [
    *((checks.check_tie_weights, tie, words) for tie, words in TIES),
    *((checks.check_fits_tied, fits, words) for fits, words in FITS),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)
