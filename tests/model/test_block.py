"""A block adds attention and feed-forward to the stream, in pre-norm and in post-norm."""

import torch
from model_builders import spread_weights, tensor, tiny_config

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


def test_the_input_is_not_changed_in_place():
    block, x, tables = block_and_input()
    before = x.clone()
    block(x, tables)
    assert torch.equal(x, before)
