"""Numbers in the words of the page: percent, bytes, and what a KV cache takes."""

import dataclasses

import pytest
import torch
from own_models import MODELS, own_model


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("kind", MODELS)
def test_a_cache_takes_what_torch_says_it_takes(node, kind, heads):
    model = own_model(kind, num_key_value_heads=heads)
    [found] = node.each("inside/numbers", "cacheBytes", [[dataclasses.asdict(model.config), 5]])
    cache = model(torch.tensor([[1, 2, 3, 4, 5]]), use_cache=True).past_key_values
    assert found["now"] == cache.num_bytes()
    full = cache.num_bytes() / 2 / 5 * model.config.max_position_embeddings  # of 16 bits, at all positions
    assert found["full"] == full
    alone = own_model(kind, num_key_value_heads=4)(torch.tensor([[1]]), use_cache=True).past_key_values.num_bytes()
    assert found["alone"] == (None if heads == 4 else alone / 2 * model.config.max_position_embeddings)


def test_how_many_times_likelier_has_two_digits_and_below_a_tenth_is_a_fraction(node):
    logits = [0, 0.4, -0.4, 2.2, 2.26, 11.1669, -11.302, 100, -100]
    found = node.each("inside/numbers", "times", [[logit] for logit in logits])
    most = "1,000,000,000,000,000"
    assert found == ["1.0", "1.5", "0.67", "9.0", "10", "71,000", "1/81,000", most, f"1/{most}"]


def test_shares_and_sizes_have_as_many_digits_as_they_need(node):
    shares = [1, 0.5, 0.0951, 0.00951, 0.00005, 0.00004, 0]
    found = node.each("inside/numbers", "percent", [[share, " %"] for share in shares])
    assert found == ["100 %", "50 %", "9.5 %", "1.0 %", "0.01 %", "< 0.01 %", "< 0.01 %"]
    counts = [0, 1, 1023, 1024, 1536 * 1024, 3 * 2**30, 2**45]
    found = node.each("inside/numbers", "bytesOf", [[count, "bytes"] for count in counts])
    assert found == ["0 bytes", "1 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB", "3.0 GiB", "32768.0 GiB"]
