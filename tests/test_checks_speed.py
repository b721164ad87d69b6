"""checks.speed: right answers pass, and every usual wrong answer is named."""

import pytest
import torch
from check_answers import (
    assert_every_hint_is_its_own,
    assert_mistake_is_named,
    assert_told_as_not_attempted,
    usual_mistakes,
    wrong_answers,
)

from minimind_edu import MiniMindForCausalLM, checks
from minimind_edu.checks import _speed_mistakes as known
from minimind_edu.checks import speed as module
from minimind_edu.fast.packing import pack_weights

# ---- right answers, none of them written like the reference


def bytes_by_tensors(config, context, batch, itemsize):
    with torch.device("meta"):
        numbers = sum(weight.numel() for weight in MiniMindForCausalLM(config).parameters())
    kept = config.num_key_value_heads * config.head_dim
    return itemsize * (numbers + 2 * config.num_hidden_layers * batch * context * kept)


def operations_by_products(config, context, batch):
    queries, kept = (config.head_dim * heads for heads in (config.num_attention_heads, config.num_key_value_heads))
    weights = 2 * config.hidden_size * (queries + kept) + 3 * config.hidden_size * (config.intermediate_size)
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


RIGHT = [
    (checks.check_step_bytes, bytes_by_tensors),
    (checks.check_step_operations, operations_by_products),
    (checks.check_least_seconds, seconds_by_roof),
    (checks.check_attention_pairs, pairs_by_calls),
    (checks.check_pack, packed_by_columns),
    (checks.check_pack, packed_like_the_package),
]
ALL = [check for check, _ in RIGHT[:5]]


@pytest.mark.parametrize("check, answer", RIGHT, ids=lambda f: f.__name__)
def test_right_answers_pass(check, answer, capsys):
    assert check(answer) is True
    assert "not yet" not in capsys.readouterr().out


# ---- wrong answers

MISTAKES = {
    checks.check_step_bytes: known.BYTES_MISTAKES,
    checks.check_step_operations: known.OPERATIONS_MISTAKES,
    checks.check_least_seconds: known.SECONDS_MISTAKES,
    checks.check_attention_pairs: known.PAIRS_MISTAKES,
}


@pytest.mark.parametrize("check, mistake", usual_mistakes(MISTAKES))
def test_every_usual_mistake_is_named(check, mistake, capsys):
    assert_mistake_is_named(check, mistake.answer, mistake.hint, capsys)


@pytest.mark.parametrize("usual", MISTAKES.values())
def test_every_check_knows_at_least_five_mistakes(usual):
    assert_every_hint_is_its_own(usual)


def packed_in_place(weight):
    weight.data = weight.data.t().contiguous().t()
    return weight


WRONG = {
    checks.check_pack: {
        "transposed": (lambda w: w.t().contiguous(), "that is the transposed matrix"),
        "reshaped": (lambda w: w.reshape(w.shape[1], -1).t(), "transpose instead"),
        "cloned": (lambda w: w.clone(), "rows still lie together"),
        "contiguous": (lambda w: w.contiguous(), "two transpositions in a row"),
        "turned twice": (lambda w: w.t().t(), "two transpositions in a row"),
        "in place": (packed_in_place, "shares the memory"),
        "always turned": (
            lambda w: torch.empty(w.T.shape, dtype=w.dtype).copy_(w.T).T if w.is_contiguous() else w.contiguous(),
            "comes out in another order again",
        ),
    }
}


@pytest.mark.parametrize("check, answer, words", wrong_answers(WRONG))
def test_every_wrong_packing_is_told_apart(check, answer, words, capsys):
    assert_mistake_is_named(check, answer, words, capsys)


# ---- what every check does


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_nothing_yet(check, capsys):
    assert_told_as_not_attempted(check, lambda *arguments: None, capsys)


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_an_error_is_told_kindly(check, capsys):
    def broken(*arguments):
        raise IndexError("too few heads")

    assert check(broken) is False
    assert "stopped with IndexError: too few heads" in capsys.readouterr().out


@pytest.mark.parametrize("check, answer", RIGHT, ids=lambda f: f.__name__)
def test_output_is_the_same_every_time(check, answer, capsys):
    check(answer)
    first = capsys.readouterr().out
    check(answer)
    assert capsys.readouterr().out == first


def test_the_odd_model_can_be_built():
    MiniMindForCausalLM(module.ODD)
