"""Reading one token sooner: the same numbers, another order in memory, or the whole model as one compiled function.

A step of decoding reads every weight once and computes little with it, so it is as fast as the weights arrive. Two
ways to let them arrive sooner, both chosen by `generate(..., decode=...)`:

    packed      the matrices column by column in memory: PyTorch multiplies a single vector with them sooner
    compiled    `token_step`, the model's forward written once for one token, as one graph of torch.compile

Prefill and everything else stay what they are. Nothing here changes a name, a value or a saved file.
MiniMind decodes with the model itself; the fixed-shape compiled step is known from PyTorch's gpt-fast.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from minimind_edu.attention import Attention
from minimind_edu.feed_forward import FeedForward
from minimind_edu.kv_cache import KVCache
from minimind_edu.rope import apply_rotary_pos_emb

DECODERS = ("plain", "packed", "compiled")


def pack_weights(model: nn.Module) -> None:
    """Lay every matrix of a linear map out column by column; values, shapes and names stay.

    A product with a single vector is then read along the vector's axis, which PyTorch's library for matrices does
    sooner. Doing it twice changes nothing. A tied embedding is the same matrix, so it is laid out with it.
    """
    for weight in _linear_weights(model):
        if weight.is_contiguous():
            weight.data = weight.data.t().contiguous().t()


def unpack_weights(model: nn.Module) -> None:
    """Undo `pack_weights`: row by row, as a new model is. Nothing happens to weights that already are."""
    for weight in _linear_weights(model):
        if not weight.is_contiguous():
            weight.data = weight.data.contiguous()


def _linear_weights(model: nn.Module) -> list[nn.Parameter]:
    return [module.weight for module in model.modules() if isinstance(module, nn.Linear)]


# One token, written once


def linear(weight: Tensor, x: Tensor) -> Tensor:
    """`[B, 1, in]` -> `[B, 1, out]`.

    For one row the product is written as what it is, one sum for each row of the weight: compiled, this becomes a plain
    loop over the weight in the order in which it lies in memory. Several rows share what was read, which is what a
    matrix product is for.
    """
    if x.shape[0] == 1:
        return (weight * x).sum(-1).view(1, 1, -1)  # [out, in] * [1, 1, in] -> [1, out]
    return F.linear(x, weight)


def token_step(
    model: Any,
    token: Tensor,
    positions: tuple[Tensor, Tensor],
    end: int,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    mask: Tensor | None,
) -> Tensor:
    """Read one token a row, write its keys and values into the buffers, return its logits.

    Args:
        model: a MiniMindForCausalLM.
        token: `[B, 1]` ids.
        positions: cos and sin for the token's position, `[1, D]` each.
        end: T, the positions seen once this token is read; it stands at T - 1. An integer, so that the past is a slice:
            room that is not yet filled is never read.
        keys, values: for each layer the whole buffer, `[B, capacity, K, D]`.
        mask: boolean `[B, 1, 1, T]`, False on padding; None: no padding.

    Returns:
        `[B, 1, V]`.
    """
    body = model.model
    x = F.embedding(token, body.embed_tokens.weight)  # [B, 1] -> [B, 1, E]
    for block, key, value in zip(body.layers, keys, values, strict=True):

        def attend(x: Tensor) -> Tensor:
            return _attend(block.self_attn, x, positions, end, key, value, mask)  # noqa: B023

        if block.pre_norm:
            x = x + attend(block.input_layernorm(x))
            x = x + _feed(block.mlp, block.post_attention_layernorm(x))
        else:
            x = block.input_layernorm(x + attend(x))
            x = block.post_attention_layernorm(x + _feed(block.mlp, x))
    return linear(model.lm_head.weight, body.norm(x))  # [B, 1, E] -> [B, 1, V]


def _attend(
    part: Attention,
    x: Tensor,
    positions: tuple[Tensor, Tensor],
    end: int,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> Tensor:
    batch, heads, kv_heads, head_dim = x.shape[0], part.num_heads, part.num_kv_heads, part.head_dim
    q = linear(part.q_proj.weight, x).view(batch, 1, heads, head_dim)
    k = linear(part.k_proj.weight, x).view(batch, 1, kv_heads, head_dim)
    v = linear(part.v_proj.weight, x).view(batch, 1, kv_heads, head_dim)
    q, k = apply_rotary_pos_emb(part.q_norm(q), part.k_norm(k), *positions)
    key[:, end - 1 : end], value[:, end - 1 : end] = k, v
    grouped = q.view(batch, kv_heads, heads // kv_heads, head_dim)  # [B, 1, H, D] -> [B, K, G, D]
    output = F.scaled_dot_product_attention(
        grouped, key[:, :end].transpose(1, 2), value[:, :end].transpose(1, 2), mask
    )
    return linear(part.o_proj.weight, output.reshape(batch, 1, heads * head_dim))


def _feed(part: FeedForward, x: Tensor) -> Tensor:
    gated = F.silu(linear(part.gate_proj.weight, x)) * linear(part.up_proj.weight, x)
    return linear(part.down_proj.weight, gated)


# The step, compiled


class Read(NamedTuple):
    """What one call of a decoder gives back; the names are CausalLMOutput's."""

    logits: Tensor  # [B, 1, V]
    past_key_values: KVCache


class CompiledSteps:
    """The compiled steps of one model: compiled when first needed, then kept with the model.

    A copy of the model, and one read from a file, start without.
    """

    def __init__(self) -> None:
        self._steps: dict[tuple[Any, ...], Callable[..., Tensor]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> "CompiledSteps":
        return CompiledSteps()

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledSteps, ()

    def step_for(self, model: Any, batch: int, masked: bool) -> Callable[..., Tensor]:
        """The step for one row or for several, with a mask or without; compiling shows its progress."""
        weight = model.lm_head.weight
        key = (batch == 1, masked, weight.dtype, weight.device)
        if key not in self._steps:
            label = "compiling the step for one token, once"
            with tqdm(total=1, desc=label, bar_format="{desc} [{elapsed}]") as progress:
                self._steps[key] = _compiled(model, batch == 1, masked)
                progress.update()
        return self._steps[key]


def _compiled(model: Any, one_row: bool, masked: bool) -> Callable[..., Tensor]:
    """Compile `token_step` on made-up inputs.

    dynamic=True lets one graph serve every position, every length of the buffers and every number of rows from two on.
    But sizes that happen to be equal at the first call are taken to be equal always, so the made-up ones are primes
    that no model's sizes have.
    """
    step = torch.compile(_twin(token_step), dynamic=True, fullgraph=True)
    config, weight = model.config, model.lm_head.weight
    batch, capacity, end = 1 if one_row else 13, 1009, 499
    shape = (batch, capacity, config.num_key_value_heads, config.head_dim)
    buffers = [[weight.new_zeros(shape) for _ in model.model.layers] for _ in range(2)]
    token = torch.zeros(batch, 1, dtype=torch.int64, device=weight.device)
    mask = torch.ones(batch, 1, 1, end, dtype=torch.bool, device=weight.device) if masked else None
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of its own old parts while it compiles
        step(model, token, _positions(model, 1), end, *buffers, mask)
    return step


def _positions(model: Any, end: int) -> tuple[Tensor, Tensor]:
    """The rows of the tables for the last of `end` positions."""
    return model.model.freqs_cos[end - 1 : end], model.model.freqs_sin[end - 1 : end]


def _twin(function: FunctionType) -> FunctionType:
    """The same function with a code object of its own.

    torch.compile counts what it compiled by code object and gives up at eight, however many models there are.
    """
    return FunctionType(function.__code__.replace(), function.__globals__, function.__name__)


class CompiledDecoder:
    """Called like the model: reads a prompt with the model itself, and single tokens with its compiled step."""

    def __init__(self, model: Any, steps: CompiledSteps):
        self.model, self.steps, self.config = model, steps, model.config

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = True,
        logits_to_keep: int = 1,
    ) -> Any:
        if not use_cache:
            return self.model(input_ids, attention_mask, logits_to_keep=logits_to_keep)
        step = self.steps.step_for(self.model, len(input_ids), attention_mask is not None)
        if past_key_values.length == 0 or input_ids.shape[1] != 1:
            return self.model(
                input_ids, attention_mask, past_key_values, use_cache, logits_to_keep=logits_to_keep
            )
        past = past_key_values.fork()
        keys, values = past.reserve(1)
        mask = None if attention_mask is None else attention_mask.bool()[:, None, None, :]
        with torch.no_grad():
            end = past.length
            logits = step(
                self.model, input_ids, _positions(self.model, end), end, keys, values, mask
            )
        return Read(logits, past)


# Choosing


def decoder_for(model: Any, decode: str) -> Any:
    """What generation calls for every token, arguments and result as the model's own.

    Raises:
        ValueError: if there is no such way.
    """
    if decode not in DECODERS:
        raise ValueError(f"decode must be one of {', '.join(map(repr, DECODERS))}, got {decode!r}")
    reason = _why_not_compiled(model) if decode == "compiled" else None
    if reason is not None:
        _say_once(f"decode='compiled' is not possible here, so decoding stays eager: {reason}")
        decode = "packed"
    if decode == "packed":
        pack_weights(model)
        return model
    unpack_weights(model)
    return CompiledDecoder(model, model.compiled_steps) if decode == "compiled" else model


def _why_not_compiled(model: Any) -> str | None:
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    if model.config.use_moe:
        return "a mixture of experts chooses its weights anew for every token"
    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        return "torch.compile found no C++ compiler (on Debian: apt install g++)"
    return None


@cache
def _say_once(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=2)
