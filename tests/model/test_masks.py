"""A query sees its own position and those before, and no padding."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY

from minimind_edu.model.masks import causal_mask, padding_mask, visible_keys


@PROPERTY
@given(st.integers(1, 6), st.integers(0, 6))
def test_the_causal_mask_shows_every_position_up_to_the_querys_own(length, past):
    mask = causal_mask(length, past + length)
    for s in range(length):
        assert mask[s].tolist() == [t <= past + s for t in range(past + length)]


def test_the_causal_mask_rejects_more_queries_than_keys():
    message = r"there cannot be more queries \(3\) than keys \(2\)"
    with pytest.raises(ValueError, match=message):
        causal_mask(3, 2)


def test_the_padding_mask_reaches_all_heads_and_queries():
    mask = padding_mask(torch.tensor([[0, 1, 1], [1, 1, 1]]))
    assert mask.shape == (2, 1, 1, 3)
    assert mask.flatten().tolist() == [False, True, True, True, True, True]


@pytest.mark.parametrize("strange", [-1, 2, torch.nan, -torch.inf])
@pytest.mark.parametrize("made", [padding_mask, lambda mask: visible_keys(2, 3, mask)])
def test_rejects_a_mask_of_other_numbers(made, strange):
    with pytest.raises(ValueError, match=f"holds 1 on tokens and 0 on padding, got {strange}"):
        made(torch.tensor([[1, 1, strange]]))


def test_rejects_a_mask_of_another_shape():
    with pytest.raises(ValueError, match=r"must be \[B, T\] = \[any, any\], got \[3\]"):
        padding_mask(torch.ones(3))
    with pytest.raises(ValueError, match=r"\[any, 4\], one entry for each of the 3 cached and 1 new .* got \[2, 1\]"):
        visible_keys(1, 4, torch.ones(2, 1))
    with pytest.raises(ValueError, match=r"= \[3, 4\], .* got \[1, 4\]"):
        visible_keys(1, 4, torch.ones(1, 4), batch=3)


def test_visible_keys_are_earlier_and_real_or_the_position_itself():
    attention_mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 0, 1, 1]])
    mask = visible_keys(3, 5, attention_mask)
    assert mask.shape == (2, 1, 3, 5)
    for b in range(2):
        for s in range(3):
            expected = [t == 2 + s or (t < 2 + s and bool(attention_mask[b, t])) for t in range(5)]
            assert mask[b, 0, s].tolist() == expected


def test_without_padding_no_mask_is_needed():
    assert visible_keys(3, 5, None) is None
    assert visible_keys(3, 5, torch.ones(2, 5)) is None
