"""checks.speed: right answers in other words pass, and a matrix is packed in memory, not only in numbers."""

import pytest
import torch

from minimind_edu import MiniMindForCausalLM, checks
from minimind_edu.checks import speed as module
from minimind_edu.fast.packing import pack_weights


def bytes_by_tensors(config, context, batch, itemsize):
    with torch.device("meta"):
        numbers = sum(weight.numel() for weight in MiniMindForCausalLM(config).parameters())
    kept = config.num_key_value_heads * config.head_dim
    return itemsize * (numbers + 2 * config.num_hidden_layers * batch * context * kept)


def operations_by_products(config, context, batch):
    queries, kept = (config.head_dim * heads for heads in (config.num_attention_heads, config.num_key_value_heads))
    weights = 2 * config.hidden_size * (queries + kept) + 3 * config.hidden_size * config.intermediate_size
    layer = weights + 2 * context * queries
    return 2 * batch * (config.num_hidden_layers * layer + config.hidden_size * config.vocab_size)


def seconds_by_roof(operations, moved, bandwidth, peak):
    return operations / min(peak, bandwidth * operations / moved)


def pairs_by_calls(prompt, new_tokens, use_cache):
    pairs, held = 0, 0
    for length in range(prompt, prompt + new_tokens):
        pairs += (length - held) * length
        held = length if use_cache else 0
    return pairs


def packed_by_columns(weight):
    columns = torch.empty(weight.shape[1], weight.shape[0], dtype=weight.dtype)
    columns.copy_(weight.T)
    return columns.T


def packed_like_the_package(weight):
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight.data = weight.clone(memory_format=torch.preserve_format)
    pack_weights(linear)
    return linear.weight.data


def packed_by_numpy(weight):
    return weight.numpy().copy(order="F")


RIGHT = [
    (checks.check_step_bytes, bytes_by_tensors),
    (checks.check_step_operations, operations_by_products),
    (checks.check_least_seconds, seconds_by_roof),
    (checks.check_attention_pairs, pairs_by_calls),
    (checks.check_pack, packed_by_columns),
    (checks.check_pack, packed_like_the_package),
    (checks.check_pack, packed_by_numpy),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer):
    assert check(answer) is True


def packed_in_place(weight):
    weight.data = weight.data.t().contiguous().t()
    return weight


def packed_back_and_forth(weight):
    return packed_by_columns(weight) if weight.is_contiguous() else weight.contiguous()


def slower_than_both(operations, moved, bandwidth, peak):
    return ((moved / bandwidth) ** 2 + (operations / peak) ** 2) ** 0.5


WRONG = [
    (checks.check_least_seconds, slower_than_both, "it is 0.00502, expected 0.00500"),
    (checks.check_pack, lambda weight: weight.as_strided(weight.shape, (1, weight.shape[0])), "with new strides"),
    (checks.check_pack, lambda weight: weight.clone(), "rows are still contiguous"),
    (checks.check_pack, lambda weight: weight.contiguous(), "two transpositions in a row"),
    (checks.check_pack, lambda weight: weight.t().t(), "two transpositions in a row"),
    (checks.check_pack, packed_in_place, "shares the memory"),
    (checks.check_pack, packed_back_and_forth, "in another order again"),
]


@pytest.mark.parametrize(("check", "answer", "words"), WRONG, ids=lambda part: getattr(part, "__name__", part))
def test_a_wrong_answer_gets_the_hint_that_fits(check, answer, words, capsys):
    assert check(answer) is False
    assert words in capsys.readouterr().out.split("hint: ")[1]


def test_the_odd_model_has_sizes_that_hide_nothing():
    odd = module._ODD
    sizes = [odd.vocab_size, odd.hidden_size, odd.num_hidden_layers, odd.num_attention_heads, odd.num_key_value_heads]
    sizes += [odd.head_dim, odd.intermediate_size, odd.hidden_size // odd.num_attention_heads]
    assert len(set(sizes)) == len(sizes)
