"""What single heads do: where they read, what they write, and what is lost without them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.attention import attention
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.masks import causal_mask
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living.exam import accuracy
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
def query_keys_values(
    model: MiniMindForCausalLM, layer: int, head: int, ids: Tensor, is_rotated: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """What one head reads with in a text, ids [1, S]: the last word's query [D], and keys and values of all words,
    [S, D] each.

    Args:
        is_rotated: whether query and keys are marked with their positions in this block; those before it always do so.
    """
    body, length = model.model, ids.shape[1]
    x, positions = body.embed_tokens(ids), (body.freqs_cos[:length], body.freqs_sin[:length])
    for index in range(layer):
        x, _ = block(model, index)(x, positions)
    reader = block(model, layer)
    if not is_rotated:
        positions = torch.ones_like(positions[0]), torch.zeros_like(positions[1])  # cosine and sine of no angle
    q, k, v = reader.self_attn.project(reader.input_layernorm(x), *positions)
    shared = head // (q.shape[2] // k.shape[2])  # heads share keys and values
    return q[0, -1, head], k[0, :, shared], v[0, :, shared]


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


@torch.no_grad()
def overlap(model: MiniMindForCausalLM, stories: Tensor) -> tuple[Tensor, Tensor]:
    """How alike the heads of a layer read stories [B, S], and how widely each reads, both averaged over all words.

    Returns:
        overlap: of two heads, the smaller weight at every word, added up, [L, H, H]: 1 if both read the same.
        entropy: of a head's weights in nats, [L, H]: the logarithm of how many words it reads.
    """
    weights = torch.cat([attention_weights(model, story[None]) for story in stories], dim=2)  # [L, H, B * S, S]
    alike = torch.minimum(weights[:, :, None], weights[:, None]).sum(-1)  # [L, H, H, B * S]
    return alike.mean(-1), torch.special.entr(weights).sum(-1).mean(-1)


@torch.no_grad()
def written(model: MiniMindForCausalLM, ids: Tensor) -> Tensor:
    """What adds up to the last position's stream of a text, ids [1, S]: `[1 + L * (H + 1), E]`.

    First the row of its own word, then for every block what each head adds, and what the feed-forward network adds.
    """
    body, length = model.model, ids.shape[1]
    x = body.embed_tokens(ids)
    positions = body.freqs_cos[:length], body.freqs_sin[:length]
    found = [x[0, -1:]]
    for layer in (block(model, index) for index in range(len(body.layers))):
        attend = layer.self_attn
        query_key_value = attend.project(layer.input_layernorm(x), *positions)
        mixed, _ = attention(*query_key_value, causal_mask(length, length, ids.device))  # [1, S, H, D]
        columns = attend.o_proj.weight.unflatten(1, mixed.shape[-2:])  # [E, H, D]
        x = x + attend.o_proj(mixed.flatten(2))
        network = layer.mlp(layer.post_attention_layernorm(x))
        found += [torch.einsum("hd,ehd->he", mixed[0, -1], columns), network[0, -1:]]
        x = x + network
    return torch.cat(found)


@torch.no_grad()
def shares(model: MiniMindForCausalLM, ids: Tensor) -> Tensor:
    """What each row of `written` adds to every logit of the word after a text, ids [1, S]: `[1 + L * (H + 1), V]`.

    The sum of the rows is the logits: the final norm divides all of them by the root mean square of their sum.
    """
    parts, norm = written(model, ids), model.model.norm
    rms = parts.sum(0).pow(2).mean().add(norm.eps).sqrt()
    return model.lm_head(norm.weight * parts / rms)


def answer_reading(model: MiniMindForCausalLM, asked: Sequence[world.Question]) -> Tensor:
    """How much [L, H] each head looks at earlier mentions of the answer, in either language, where the answer is due.

    The mean over all questions of the attention weight from the last word of the prompt.
    """
    device = device_of(model)
    total = torch.zeros(model.config.num_hidden_layers, model.config.num_attention_heads, device=device)
    for question in asked:
        answer = int(question.answer[0])
        mentions = torch.from_numpy((question.prompt == answer) | (abs(question.prompt - answer) == TWIN))
        total += attention_weights(model, torch.from_numpy(question.prompt[None]).to(device))[:, :, -1, mentions].sum(
            -1
        )
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
