"""Ways to read one token after another. The tokens are the same in every way.

A step of decoding reads every weight once and computes little with it, so it takes as long as the weights need to
arrive.

    plain       the model as it is
    packed      the model, with its matrices laid out column by column (`packing.py`)
    compiled    prompts by the model, single tokens by one compiled function (`token_step.py`, `compiled_steps.py`)

Compiling takes seconds, once for a decoder, and is over before the first token is given out. Where it is not possible,
decoding stays eager and says so. MiniMind decodes with the model itself.
"""

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu import generation
from minimind_edu.block import MiniMindBlock
from minimind_edu.fast.compilable import why_not_compiled
from minimind_edu.fast.compiled_steps import CompiledSteps, Step
from minimind_edu.fast.packing import pack_weights, stack_experts, unpack_weights
from minimind_edu.fast.token_step import Stack
from minimind_edu.feed_forward import FeedForward
from minimind_edu.kv_cache import KVCache
from minimind_edu.model import CausalLMOutput, MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward

WAYS = ("plain", "packed", "compiled")


def decoder(model: MiniMindForCausalLM, way: str = "compiled") -> "MiniMindForCausalLM | CompiledDecoder":
    """What to generate with: `decoder(model, way).generate(ids, 100)`, or `generation.generate(decoder(...), ids)`.

    Keep the decoder as long as you generate: what it has compiled is kept with it.

    Args:
        way: "plain": the model as it is, untouched. "packed": the same model, its matrices laid out column by column;
            they stay so until `unpack_weights`. "compiled": a CompiledDecoder, for which the matrices are laid out row
            by row; where compiling is impossible, the packed model (on the CPU), and a warning that says why.

    Raises:
        ValueError: if there is no such way, or if a model in training mode would lose its dropout.
    """
    if way not in WAYS:
        raise ValueError(f"the way to decode must be one of {', '.join(map(repr, WAYS))}, got {way!r}")
    if way == "packed":
        pack_weights(model)
    if way != "compiled":
        return model
    reason = why_not_compiled(model)
    if reason is not None:
        _stay_eager(model, reason)
        return model
    return CompiledDecoder(model)


def _stay_eager(model: MiniMindForCausalLM, reason: str) -> None:
    """Warn, and give the model the faster layout for eager decoding."""
    warnings.warn(f"compiled decoding is not possible here, so decoding stays eager: {reason}", stacklevel=3)
    if model.lm_head.weight.device.type == "cpu":
        pack_weights(model)


class StepOutput(NamedTuple):
    """What reading one token gave; the names are CausalLMOutput's."""

    logits: Tensor  # [B, 1, V]
    past_key_values: KVCache


class CompiledDecoder:
    """Called like the model: reads prompts with the model itself, and single tokens with its compiled step.

    Without a cache there are no single tokens to read, and the model does everything.

    Args:
        model: its weights are laid out row by row, and its experts stacked.
        fixed: keep shapes and addresses fixed, as CUDA graphs need it; None: on CUDA.
    """

    generate = generation.generate
    stream = generation.stream

    def __init__(self, model: MiniMindForCausalLM, fixed: bool | None = None):
        self.model, self.config = model, model.config
        self.fixed = model.model.norm.weight.is_cuda if fixed is None else fixed
        self.steps = CompiledSteps(model)
        self.eager = False  # True from when on the model reads everything
        self.stacks = self._lay_out()

    def _lay_out(self) -> list[Stack | None]:
        """Lay the weights out as the step reads them; where they already are, this costs next to nothing."""
        unpack_weights(self.model)  # a compiled loop reads row by row
        parts = (layer.mlp for layer in cast(Iterable[MiniMindBlock], self.model.model.layers))
        return [
            stack_experts(cast(Sequence[FeedForward], part.experts)) if isinstance(part, MoEFeedForward) else None
            for part in parts
        ]

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: KVCache | None = None,
        use_cache: bool = True,
        logits_to_keep: int = 1,
    ) -> CausalLMOutput | StepOutput:
        """Arguments as in MiniMindForCausalLM.forward. Single tokens are not checked: generation has seen to them."""
        past = past_key_values
        if use_cache and not self.eager:
            past = self._with_room(past)
            if past.length == 0:
                self._begin()
            # asked for at the prompt already, so that compiling is over before the first token
            step = self._step(len(input_ids), attention_mask is not None, past.capacity)
            if step is not None and past.length > 0 and input_ids.shape[1] == 1:
                return self._read(step, input_ids, attention_mask, past.fork())
        return self.model(input_ids, attention_mask, past, use_cache, logits_to_keep=logits_to_keep)

    def _begin(self) -> None:
        """A new text: since the last one the model may have been changed, converted or packed."""
        reason = why_not_compiled(self.model)
        if reason is None:
            self.stacks = self._lay_out()
        else:
            self._give_up(reason)

    def _give_up(self, reason: str) -> None:
        self.eager = True
        _stay_eager(self.model, reason)

    def _with_room(self, past: KVCache | None) -> KVCache:
        """Fixed buffers get a power of two as their capacity: few sizes, so few to compile for."""
        layers = self.config.num_hidden_layers
        if past is None:
            past = KVCache(layers)
        if past.length or not self.fixed:
            return past
        return KVCache(layers, capacity=1 << max(8, (past.capacity - 1).bit_length()), zeroed=True)

    def _step(self, batch: int, masked: bool, capacity: int) -> Step | None:
        """The compiled step; None if there cannot be one."""
        if self.eager:
            return None
        if batch > 1 and self.config.use_moe:
            self._give_up("the rows of a batch visit different experts")
            return None
        step = self.steps.get(self.stacks, batch, masked, capacity if self.fixed else None)
        if step is None:
            self._give_up(self.steps.failure)
        return step

    def _read(self, step: Step, token: Tensor, attention_mask: Tensor | None, past: KVCache) -> StepOutput:
        with torch.no_grad():
            keys, values = past.reserve(1)
        end = past.length
        cos, sin = self.model.model.freqs_cos, self.model.model.freqs_sin
        positions = cos[end - 1 : end], sin[end - 1 : end]  # [1, D] each
        mask = None
        if attention_mask is not None:
            mask = _fresh_copy(attention_mask.bool())[:, None, None, :]  # [B, T] -> [B, 1, 1, T]
        place: int | Tensor = end
        if self.fixed:
            place = torch.full((1,), end, device=token.device)
            if mask is not None:
                mask = F.pad(mask, (0, past.capacity - end), value=True)
        if token.is_cuda:
            torch.compiler.cudagraph_mark_step_begin()
        with torch.no_grad():
            logits = step(self.model, self.stacks, _fresh_copy(token), positions, place, keys, values, mask)
        # a CUDA graph writes its result to the same place at the next step
        return StepOutput(logits.clone() if token.is_cuda else logits, past)


def _fresh_copy(x: Tensor) -> Tensor:
    """A copy with the strides that a new tensor has.

    A slice keeps those of what it was cut from, and for other strides torch.compile would compile again.
    """
    return x.clone(memory_format=torch.contiguous_format)
