"""What is refused is refused with its name, its value and the rule; what is right passes."""

import numpy as np
import pytest
import torch

from minimind_edu import validation


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


def test_what_is_right_passes():
    validation.check_count("layers", 3)
    validation.check_count("past", 0, at_least=0)
    for number in (1, 0.5, -2):
        validation.check_number("x", number)
    validation.check_flag("x", False)
    validation.check_even("dim", 8)
    validation.check_token_ids(torch.tensor([[0, 9]]), vocab_size=10)
    for mask in (torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool), torch.tensor([[0, 1, 1], [1, 1, 1]])):
        validation.check_attention_mask(mask, [2, 3], "[B, T] = [2, 3]")


def test_values_are_unknown_while_a_compiler_or_vmap_follows():
    known = []

    def look(x):
        known.append(validation.values_are_known(x))
        return x

    look(torch.ones(2))
    torch.vmap(look)(torch.ones(2, 3))
    look(torch.ones(2, device="meta"))
    assert known == [True, False, False]
