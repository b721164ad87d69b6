"""checks.block_and_model: right answers in other words pass, and the references are what the package computes."""

import copy

import torch
from judged_answers import judged
from torch import nn

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, checks
from minimind_edu.checks import block_and_model as module
from minimind_edu.figures.parameter_ledger import count_by_part


def pre_as_in_llama(x, norm1, attention, norm2, feed_forward):
    residual = x
    hidden = norm1(x)
    hidden = residual + attention(hidden)
    residual = hidden
    hidden = feed_forward(norm2(hidden))
    return residual + hidden


def pre_in_a_loop(x, norm1, attention, norm2, feed_forward):
    for norm, sublayer in ((norm1, attention), (norm2, feed_forward)):
        x = sublayer(norm(x)) + x
    return x


def stack_by_appending(make, depth):
    layers = nn.ModuleList()
    while len(layers) < depth:
        layers.append(make())
    return layers


def stack_in_sequence(make, depth):
    return nn.Sequential(*[make() for _ in range(depth)])


def factor_in_tensors(target, embedding, added, depth):
    sizes = torch.tensor([target, embedding], dtype=torch.float64).pow(2)
    return (sizes[0] - sizes[1]).div(2 * depth * added**2).sqrt()


def ledger_by_counting(config):
    counts = count_by_part(config)
    return [counts[part] for part in ("embedding", "attention", "feed-forward", "norms")]


def norms_by_the_shape_of_outputs(half):
    """With random vectors, in float32, and with other sublayers than the reference's."""
    x, v = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([1.0, -2.0, 0.5, 3.0])
    read = []
    for factor in (1, 1000):
        half(factor * x, lambda z: read.append(z) or z)
    added = [half(x, lambda z, size=size: size * v + 0 * z) for size in (1, 50)]
    total = [half(factor * x, lambda z: 0 * z) for factor in (1, 1000)]
    return [torch.allclose(*pair, rtol=1e-3) for pair in (read, added, total)]


def norms_of_a_wide_half(half):
    x, v = torch.randn(64, dtype=torch.float64), torch.randn(64, dtype=torch.float64)
    read = []
    for size in (1, 100):
        half(size * x, lambda z: read.append(z) or 0 * z)
    added = [half(x, lambda z, size=size: size * v) for size in (1, 100)]
    total = [half(size * x, lambda z: 0 * z) for size in (1, 100)]
    return tuple(torch.allclose(*pair, rtol=1e-3) for pair in (read, added, total))


RIGHT = [
    (checks.check_pre_norm_block, pre_as_in_llama),
    (checks.check_pre_norm_block, pre_in_a_loop),
    (checks.check_stack, stack_by_appending),
    (checks.check_stack, stack_in_sequence),
    (checks.check_factor, factor_in_tensors),
    (checks.check_ledger, ledger_by_counting),
    (checks.check_norms_of, norms_by_the_shape_of_outputs),
    (checks.check_norms_of, norms_of_a_wide_half),
]


WRONG = [
    (checks.check_pre_norm_block, lambda x, n1, attention, n2, f: (x, None), "got tuple"),
    (checks.check_stack, lambda make, depth: nn.ModuleList([make()] * depth), "is one block used twice?"),
    (checks.check_stack, lambda make, depth: [make() for _ in range(depth)], "list is no module"),
    (checks.check_stack, lambda make, depth: nn.ModuleList(make() for _ in range(depth - 1)), "there are 2 blocks"),
    (checks.check_stack, lambda make, depth: nn.ModuleList([make] * depth), "TypeError"),
    (
        checks.check_stack,
        lambda make, depth: nn.ModuleList(map(copy.deepcopy, [make()] * depth)),
        "two blocks begin with the same numbers",
    ),
    (checks.check_ledger, lambda config: ledger_by_counting(config)[:3], "shape [3], expected [4]"),
    (
        checks.check_ledger,
        lambda config: dict(zip("eafn", ledger_by_counting(config), strict=True)),
        "got dict: return its values alone, in the order of the task",
    ),
    (checks.check_norms_of, lambda half: (True, False), "shape [2], expected [3]"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_the_reference_block_is_the_packages():
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = MiniMindConfig(num_hidden_layers=1, vocab_size=5, **sizes)
    core = MiniMindForCausalLM(config).double().model
    layer, x = core.layers[0], core.embed_tokens(torch.tensor([[1, 4, 2]]))
    tables = core.freqs_cos[:3], core.freqs_sin[:3]
    parts = (layer.input_layernorm, lambda h: layer.self_attn(h, tables)[0], layer.post_attention_layernorm, layer.mlp)
    torch.testing.assert_close(module.pre_norm_block(x, *parts), layer(x, tables)[0])
