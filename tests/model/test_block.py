"""A block adds attention and feed-forward to the stream, in pre-norm and in post-norm."""

import pytest
import torch
from model_builders import KINDS, spread_weights, tensor, tiny_config

from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.rope import precompute_freqs_cis


def block_and_input(kind="minimind2", length=5, dtype=torch.float64, **changes):
    config = tiny_config(kind, **changes)
    block = MiniMindBlock(config)
    spread_weights(block)
    tables = precompute_freqs_cis(config.head_dim, length, dtype=torch.float64)
    x = tensor(2, length, config.hidden_size, seed=1, dtype=dtype)
    return block.to(dtype).eval(), x, tables


def fed(block, x):
    output = block.mlp(x)
    return output[0] if isinstance(output, tuple) else output


@pytest.mark.parametrize("kind", KINDS)
def test_pre_norm_adds_each_part_to_the_stream(kind):
    block, x, tables = block_and_input(kind)
    attended = x + block.self_attn(block.input_layernorm(x), tables)[0]
    expected = attended + fed(block, block.post_attention_layernorm(attended))
    torch.testing.assert_close(block(x, tables)[0], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_post_norm_normalizes_each_sum(kind):
    block, x, tables = block_and_input(kind, norm_placement="post")
    attended = block.input_layernorm(x + block.self_attn(x, tables)[0])
    expected = block.post_attention_layernorm(attended + fed(block, attended))
    torch.testing.assert_close(block(x, tables)[0], expected)


def silence(block):
    with torch.no_grad():
        block.self_attn.o_proj.weight.zero_()
        block.mlp.down_proj.weight.zero_()


def test_pre_norm_leaves_the_stream_untouched_where_its_parts_say_nothing():
    block, x, tables = block_and_input()
    silence(block)
    assert torch.equal(block(x, tables)[0], x)


def test_post_norm_normalizes_the_stream_even_then():
    block, x, tables = block_and_input(norm_placement="post")
    silence(block)
    expected = block.post_attention_layernorm(block.input_layernorm(x))
    torch.testing.assert_close(block(x, tables)[0], expected)


def test_the_input_is_not_changed_in_place():
    block, x, tables = block_and_input()
    before = x.clone()
    block(x, tables)
    assert torch.equal(x, before)


@pytest.mark.parametrize("kind, routes", list(zip(KINDS, [False, True] * 2, strict=True)))
def test_only_mixtures_report_their_routing(kind, routes):
    block, x, tables = block_and_input(kind)
    routed = block(x, tables)[1]
    assert (routed is not None) == routes
    if routes:
        assert routed.probabilities.shape == (10, 4)


def test_the_two_norms_are_two():
    block, _, _ = block_and_input()
    assert block.input_layernorm.weight is not block.post_attention_layernorm.weight
    assert block.input_layernorm.eps == 1e-5
    assert block_and_input("minimind3")[0].input_layernorm.eps == 1e-6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_half_precision(kind, dtype):
    block, x, tables = block_and_input(kind, dtype=dtype)
    assert block(x, tuple(table.float() for table in tables))[0].dtype == dtype
