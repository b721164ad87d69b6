"""What single heads do: where they read, and what is lost without them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.block import MiniMindBlock
from minimind_edu.device import device_of
from minimind_edu.living.exam import accuracy
from minimind_edu.masks import causal_mask
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.world.words import TWIN


def block(model: MiniMindForCausalLM, layer: int) -> MiniMindBlock:
    """One block of the model."""
    return cast(MiniMindBlock, model.model.layers[layer])


@contextmanager
def silenced(model: MiniMindForCausalLM, layer: int, head: int) -> Iterator[None]:
    """Inside the block this head adds nothing to the stream: its columns of o_proj are zeros."""
    size = model.config.head_dim
    columns = block(model, layer).self_attn.o_proj.weight.data[:, head * size : (head + 1) * size]
    kept = columns.clone()
    columns.zero_()
    try:
        yield
    finally:
        columns.copy_(kept)


@torch.no_grad()
def attention_weights(model: MiniMindForCausalLM, ids: Tensor) -> Tensor:
    """The weights [L, H, S, S] with which every head reads a text, ids [1, S]."""
    body = model.model
    x, found = body.embed_tokens(ids), []
    positions = body.freqs_cos[: ids.shape[1]], body.freqs_sin[: ids.shape[1]]
    mask = causal_mask(ids.shape[1], ids.shape[1], ids.device)
    for layer in (block(model, index) for index in range(len(body.layers))):
        _, weights = layer.self_attn(layer.input_layernorm(x), positions, mask=mask, return_weights=True)
        found.append(weights[0])
        x, _ = layer(x, positions)
    return torch.stack(found)


def answer_reading(model: MiniMindForCausalLM, asked: Sequence[world.Question]) -> Tensor:
    """How much [L, H] each head looks at earlier mentions of the answer, in either language, where the answer is due.

    The mean over all questions of the attention weight from the last word of the prompt.
    """
    device = device_of(model)
    total = torch.zeros(model.config.num_hidden_layers, model.config.num_attention_heads, device=device)
    for one in asked:
        answer = int(one.answer[0])
        mentions = torch.from_numpy((one.prompt == answer) | (abs(one.prompt - answer) == TWIN))
        total += attention_weights(model, torch.from_numpy(one.prompt[None]).to(device))[:, :, -1, mentions].sum(-1)
    return total / len(asked)


def lost_without(model: MiniMindForCausalLM, asked: Sequence[world.Question]) -> Tensor:
    """How much accuracy [L, H] on these questions is lost when one head is silenced."""
    whole, config = accuracy(model, asked), model.config
    lost = torch.zeros(config.num_hidden_layers, config.num_attention_heads, device=device_of(model))
    for layer in range(config.num_hidden_layers):
        for head in range(config.num_attention_heads):
            with silenced(model, layer, head):
                lost[layer, head] = whole - accuracy(model, asked)
    return lost
