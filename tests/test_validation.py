"""What is refused is refused with its name, its value and the rule; what is right passes."""

import runpy

import numpy as np
import pytest
import torch

from minimind_edu import validation
from minimind_edu.measure.counting import Watch


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", None])
def test_a_count_is_a_whole_number_of_at_least_one(value):
    with pytest.raises(ValueError, match=f"layers must be a whole number of at least 1, got {value!r}"):
        validation.check_count("layers", value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True])
def test_a_number_is_finite(value):
    with pytest.raises(ValueError, match=f"eps must be a finite number, got {value!r}"):
        validation.check_number("eps", value)


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_flag_is_true_or_false(value):
    with pytest.raises(ValueError, match=f"use_moe must be True or False, got {value!r}"):
        validation.check_flag("use_moe", value)


@pytest.mark.parametrize("value", [[1], np.ones(1), None])
def test_a_tensor_is_one_of_torchs(value):
    with pytest.raises(ValueError, match=f"x must be a tensor of ones, got {type(value).__name__}"):
        validation.check_tensor("x", value, "of ones")


@pytest.mark.parametrize("value", [-1, 4])
def test_a_count_may_have_a_largest_value(value):
    with pytest.raises(ValueError, match=f"keep must be a whole number from 0 to 3, got {value}"):
        validation.check_count("keep", value, 0, 3)


@pytest.mark.parametrize("value", [1e-320, -1e-50, 1e39, 10**400])
def test_a_number_is_one_that_float32_holds(value):
    with pytest.raises(ValueError, match="eps must be a finite number, .* float32"):
        validation.check_number("eps", value)


RULES = {
    "above 0": ([0, -1], [1e-3, 1e30]),
    "at least 0": ([-1e-3], [0, 1e30]),
    "above 0 and at most 1": ([0, 1.1], [0.1, 1]),
    "at least 0 and below 1.5": ([-0.1, 1.5], [0, 1.4]),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_number_may_have_to_obey_a_rule(rule):
    outside, inside = RULES[rule]
    for value in inside:
        validation.check_number("p", value, rule, "a share")
    for value in outside:
        with pytest.raises(ValueError, match=f"^p must be {rule}, got {value}; a share$"):
            validation.check_number("p", value, rule, "a share")
    with pytest.raises(ValueError, match=f"got {outside[0]}$"):
        validation.check_number("p", outside[0], rule)


def test_a_rule_in_other_words_is_none():
    with pytest.raises(KeyError, match="over"):
        validation.check_number("p", 1, "over 0")


@pytest.mark.parametrize("value", [0, 7, -2, 8.5, 2**16 + 2, 10**9])
def test_channels_of_a_head_come_in_pairs(value):
    with pytest.raises(ValueError, match=f"dim must be even, from 2 to 65536, got {value}"):
        validation.check_even("dim", value)


def test_a_tensor_is_dense():
    with pytest.raises(ValueError, match="input_ids must be a dense tensor .* got torch.sparse_coo; to_dense"):
        validation.check_token_ids(torch.tensor([[1, 2]]).to_sparse(), 10)


@pytest.mark.parametrize(
    "mask, message",
    [
        (torch.tensor([[1, 2]]), "got 2; a mask that is added"),
        (torch.tensor([[1, -torch.inf]]), "got -inf"),
        (torch.tensor([[1, torch.nan]]), "got nan"),
        (torch.ones(1, 2, dtype=torch.complex64), "got torch.complex64"),
    ],
)
def test_a_mask_holds_ones_and_zeros(mask, message):
    with pytest.raises(ValueError, match=f"attention_mask holds 1 on tokens and 0 on padding, {message}"):
        validation.check_attention_mask(mask, (1, 2))


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (None, 3), (2, None)])
def test_a_mask_has_its_shape_where_one_is_asked_for(shape):
    sizes = ", ".join("any" if size is None else str(size) for size in shape)
    with pytest.raises(ValueError, match=rf"attention_mask must be \[B, T\] = \[{sizes}\] here, got \[1, 2\]"):
        validation.check_attention_mask(torch.ones(1, 2), shape, " here")
    for rank in (1, 3):
        with pytest.raises(ValueError, match=r"attention_mask must be \[B, T\]"):
            validation.check_attention_mask(torch.ones([2] * rank), (None, None))


def test_what_is_right_passes():
    validation.check_count("layers", 3)
    validation.check_count("past", 0, at_least=0)
    for number in (1, 0.5, -2):
        validation.check_number("x", number)
    validation.check_number("x", 0)
    validation.check_count("keep", 3, 0, 3)
    validation.check_flag("x", False)
    validation.check_even("dim", 8)
    validation.check_token_ids(torch.tensor([[0, 9]]), vocab_size=10)
    for mask in (torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool), torch.tensor([[0, 1, 1], [1, 1, 1]])):
        for shape in ((2, 3), (None, 3), (None, None)):
            validation.check_attention_mask(mask, shape)


def test_values_are_unknown_while_a_compiler_or_vmap_follows():
    known = []

    def look(x):
        known.append(validation.values_are_known(x))
        return x

    look(torch.ones(2))
    torch.vmap(look)(torch.ones(2, 3))
    look(torch.ones(2, device="meta"))
    with validation.checked_before():
        look(torch.ones(2))
        with pytest.raises(ZeroDivisionError), validation.checked_before():
            1 / 0  # noqa: B018
        look(torch.ones(2))
    look(torch.ones(2))
    assert known == [True, False, False, False, False, True]


def test_what_was_checked_before_is_not_waited_for():
    """Every look at a value is a wait for the device, where that is a GPU."""
    ids, mask = torch.tensor([[0, 9]]), torch.tensor([[0, 1]])
    with Watch() as watch:
        validation.check_token_ids(ids, 10)
    assert watch.calls["_local_scalar_dense"] <= 2
    with validation.checked_before(), Watch() as watch:
        validation.check_token_ids(ids, 10)
        validation.check_attention_mask(mask, (1, 2))
    assert not watch.calls


def test_torch_need_not_have_its_private_name(monkeypatch):
    monkeypatch.delattr(torch._C._functorch, "is_batchedtensor")
    assert runpy.run_path(validation.__file__)["values_are_known"](torch.ones(2))


def test_numbers_of_numpy_are_numbers():
    validation.check_number("a share", np.float32(0.5), "above 0 and at most 1")
    validation.check_count("a count", np.uint8(3))
