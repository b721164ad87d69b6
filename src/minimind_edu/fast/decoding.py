"""Which way `generate(..., decode=...)` reads one token after another. The tokens are the same every way.

A step of decoding reads every weight once and computes little with it, so it lasts as long as the weights take to
arrive.

    plain       the model as it is
    packed      the model, with its matrices laid out column by column (`packing.py`)
    compiled    prompts by the model, single tokens by one compiled function (`token_step.py`, `compiled_steps.py`)

Compiling takes seconds, once for a model, and is over before the first token is given out. Where it is not possible,
decoding stays eager and says so once. MiniMind decodes with the model itself.
"""

import warnings
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.attention import Attention
from minimind_edu.block import MiniMindBlock
from minimind_edu.fast.compiled_steps import Step
from minimind_edu.fast.packing import pack_weights, stack_experts, unpack_weights
from minimind_edu.feed_forward import FeedForward
from minimind_edu.kv_cache import KVCache
from minimind_edu.moe import MoEFeedForward, MoEGate
from minimind_edu.norms import RMSNorm

DECODERS = ("plain", "packed", "compiled")


def decoder_for(model: Any, decode: str) -> Any:
    """What generation calls for every token; arguments and result as the model's own.

    Raises:
        ValueError: if there is no such way, or if a model in training mode would lose its dropout.
    """
    if decode not in DECODERS:
        raise ValueError(f"decode must be one of {', '.join(map(repr, DECODERS))}, got {decode!r}")
    if decode == "compiled":
        if model.training and model.config.dropout:
            raise ValueError(
                "decode='compiled' has no dropout, but this model is in training mode with dropout="
                f"{model.config.dropout}; call model.eval() first"
            )
        obstacle = _obstacle(model)
        return CompiledDecoder(model) if obstacle is None else _stay_eager(model, obstacle)
    (pack_weights if decode == "packed" else unpack_weights)(model)
    return model


def _stay_eager(model: Any, obstacle: str) -> Any:
    _say_once(f"decode='compiled' is not possible here, so decoding stays eager: {obstacle}")
    return decoder_for(model, "packed" if model.lm_head.weight.device.type == "cpu" else "plain")


@cache
def _say_once(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=2)


def _obstacle(model: Any) -> str | None:
    """What stands in the way of compiling, as far as it can be known before; None: nothing."""
    device = model.lm_head.weight.device.type
    if device not in ("cpu", "cuda"):
        return f"the compiled step is made for the CPU and CUDA, and the model is on {device}"
    strange = _strange_part(model)
    if strange is not None:
        return f"the compiled step does not know what was changed at {strange}"
    if device == "cpu" and not _has_cpp_compiler():
        return "torch.compile finds no C++ compiler (on Debian and Ubuntu: apt install g++)"
    return model.compiled_steps.failure


def _strange_part(model: Any) -> str | None:
    """The name of a part that is not what `token_step` takes it for: another class, a bias, a hook."""
    known = {
        Attention, FeedForward, MiniMindBlock, MoEFeedForward, MoEGate, RMSNorm,
        nn.Dropout, nn.Embedding, nn.Identity, nn.Linear, nn.ModuleList,
    }  # fmt: skip
    for name, part in model.named_modules():
        if type(part) not in known and name not in ("", "model"):
            return name
        if isinstance(part, nn.Linear) and part.bias is not None:
            return name
        if part._forward_hooks or part._forward_pre_hooks:
            return name or "the model itself"
    return None


def _has_cpp_compiler() -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # when imported, torch warns of its own old parts
        from torch._inductor.cpp_builder import get_cpp_compiler
    try:
        get_cpp_compiler()
    except RuntimeError:
        return False
    return True


class Read(NamedTuple):
    """What reading one token gave; the names are CausalLMOutput's."""

    logits: Tensor  # [B, 1, V]
    past_key_values: KVCache


class CompiledDecoder:
    """Called like the model: reads prompts with the model itself, and single tokens with its compiled step.

    Without a cache there are no single tokens to read, and the model does everything.

    Args:
        model: a MiniMindForCausalLM; its weights are unpacked, and its experts stacked.
        fixed: keep shapes and addresses fixed, as CUDA graphs need it; None: on CUDA.
    """

    def __init__(self, model: Any, fixed: bool | None = None):
        unpack_weights(model)  # a compiled loop reads row by row
        self.model, self.config = model, model.config
        self.stacks = [
            stack_experts(layer.mlp.experts) if isinstance(layer.mlp, MoEFeedForward) else None
            for layer in model.model.layers
        ]
        self.fixed = model.lm_head.weight.is_cuda if fixed is None else fixed
        self.eager = False

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = True,
        logits_to_keep: int = 1,
    ) -> Any:
        """Arguments as in MiniMindForCausalLM.forward. Single tokens are not checked: generation has seen to them."""
        past = past_key_values
        if use_cache and not self.eager:
            past = self._with_room(past)
            # asked for at the prompt already, so that compiling is over before the first token
            step = self._step(len(input_ids), attention_mask is not None, past.capacity)
            if step is not None and past.length > 0 and input_ids.shape[1] == 1:
                return self._read(step, input_ids, attention_mask, past.fork())
        return self.model(input_ids, attention_mask, past, use_cache, logits_to_keep=logits_to_keep)

    def _with_room(self, past: KVCache | None) -> KVCache:
        """Fixed buffers get a power of two as their capacity: few sizes, so few to compile for."""
        layers = self.config.num_hidden_layers
        if past is None:
            past = KVCache(layers)
        if past.length or not self.fixed:
            return past
        return KVCache(layers, capacity=1 << max(8, (past.capacity - 1).bit_length()), zeroed=True)

    def _step(self, batch: int, masked: bool, capacity: int) -> Step | None:
        """The compiled step; None from when on the model reads everything."""
        step, obstacle = None, "the rows of a batch visit different experts"
        if batch == 1 or not self.config.use_moe:
            steps = self.model.compiled_steps
            fixed = capacity if self.fixed else None
            step, obstacle = steps.get(self.model, self.stacks, batch, masked, fixed), steps.failure
        if step is None:
            self.eager = True
            _stay_eager(self.model, obstacle)
        return step

    def _read(self, step: Step, token: Tensor, attention_mask: Tensor | None, past: KVCache) -> Read:
        with torch.no_grad():
            keys, values = past.reserve(1)
        end = past.length
        tables = self.model.model.freqs_cos, self.model.model.freqs_sin
        positions = tuple(table[end - 1 : end] for table in tables)  # [1, D] each
        mask = None
        if attention_mask is not None:
            mask = _laid_out(attention_mask.bool())[:, None, None, :]  # [B, T] -> [B, 1, 1, T]
        place: int | Tensor = end
        if self.fixed:
            place = torch.full((1,), end, device=token.device)
            if mask is not None:
                mask = F.pad(mask, (0, past.capacity - end), value=True)
        if token.is_cuda:
            torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            logits = step(self.model, self.stacks, _laid_out(token), positions, place, keys, values, mask)
        # a CUDA graph writes its result to the same place at the next step
        return Read(logits.clone() if token.is_cuda else logits, past)


def _laid_out(x: Tensor) -> Tensor:
    """A copy with the strides that a new tensor has. A slice keeps those of what it was cut from, and for other strides
    torch.compile would compile again."""
    return x.clone(memory_format=torch.contiguous_format)
