"""Ways to read one token after another. The tokens are the same in every way.

A step of decoding reads every weight once and computes little with it, so it takes as long as the weights need to
arrive, and as long as the calls take that do nothing but small sums.

    plain       the model as it is
    lean        prompts by the model, single tokens by one function with as few calls as possible (`token_step.py`),
                which reads the weights in the order it needs them in (`layout.py`)
    compiled    the same function, compiled (`compiled_steps.py`), with loops of our own for float32 products on a CPU
                (`row_products.py`)

Compiling takes seconds, once for a decoder, and is over before the first token is given out. Where it is not possible,
decoding is lean, where that would be wrong, plain; a warning says so. MiniMind decodes with the model itself.
"""

import warnings
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from minimind_edu import generation
from minimind_edu.fast.compilable import has_cpp_compiler, why_only_plain
from minimind_edu.fast.compiled_steps import CompiledSteps, Step
from minimind_edu.fast.layout import lay_out
from minimind_edu.fast.row_products import why_not_loaded
from minimind_edu.fast.rows import in_rows
from minimind_edu.fast.token_step import token_step
from minimind_edu.kv_cache import KVCache
from minimind_edu.model import CausalLMOutput, MiniMindForCausalLM

WAYS = ("plain", "lean", "compiled")


def decoder(model: MiniMindForCausalLM, way: str = "compiled") -> "MiniMindForCausalLM | LeanDecoder":
    """What to generate with: `decoder(model, way).generate(ids, 100)`, or `generation.generate(decoder(...), ids)`.

    Keep the decoder as long as you generate: what it has compiled is kept with it.

    Args:
        way: "plain": the model as it is, untouched. "lean": a LeanDecoder. "compiled": a CompiledDecoder. Both lay the
            model's matrices out anew, and the model goes on as before. Where one of them is impossible, the next
            simpler way, and a warning that says why.

    Raises:
        ValueError: if there is no such way, or if a model in training mode would lose its dropout.
    """
    if way not in WAYS:
        raise ValueError(f"the way to decode must be one of {', '.join(map(repr, WAYS))}, got {way!r}")
    if way == "plain":
        return model
    made = LeanDecoder(model) if way == "lean" else CompiledDecoder(model)
    return made if made.instead is None else made.instead


class StepOutput(NamedTuple):
    """What reading one token gave; the names are CausalLMOutput's."""

    logits: Tensor  # [B, 1, V]
    past_key_values: KVCache


class LeanDecoder:
    """Called like the model: reads prompts with the model itself, and single tokens with `token_step`.

    Without a cache there are no single tokens to read, and the model does everything.

    Args:
        model: its matrices are laid out as the step reads them.
    """

    way = "lean"
    by_columns = True  # how the step reads the weights
    fixed = False  # whether shapes and addresses stay the same from token to token
    generate = generation.generate
    stream = generation.stream

    def __init__(self, model: MiniMindForCausalLM):
        self.model, self.config = model, model.config
        self.instead: MiniMindForCausalLM | LeanDecoder | None = None  # decodes, once this way has proved impossible
        self._begin()

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
        if use_cache and self.instead is None:
            past = self._with_room(past)
            if past.length == 0:
                self._begin()
            # asked for at the prompt already, so that compiling is over before the first token
            rows, masked = len(input_ids), attention_mask is not None
            step = None if self.instead is not None else self._step(rows, masked, past.capacity)
            if step is not None and past.length > 0 and input_ids.shape[1] == 1:
                return self._read(step, input_ids, attention_mask, past.fork())
        reader = self.model if self.instead is None else self.instead
        return reader(input_ids, attention_mask, past, use_cache, logits_to_keep=logits_to_keep)

    def _begin(self) -> None:
        """A new text: since the last one the model may have been changed or converted."""
        reason = why_only_plain(self.model)
        if reason is None:
            self.weights = lay_out(self.model, self.by_columns)
        else:
            self._give_up(reason, self.model)

    def _give_up(self, reason: str, instead: "MiniMindForCausalLM | LeanDecoder") -> None:
        left = instead.way if isinstance(instead, LeanDecoder) else "plain"
        warnings.warn(f"{self.way} decoding is not possible here, so decoding is {left}: {reason}", stacklevel=4)
        self.instead = instead

    def _with_room(self, past: KVCache | None) -> KVCache:
        return KVCache(self.config.num_hidden_layers) if past is None else past

    def _step(self, batch: int, masked: bool, capacity: int) -> Step | None:
        """What reads a single token; None once this way has been given up."""
        if batch > 1 and self.config.use_moe:
            self._give_up("the rows of a batch visit different experts", self.model)
            return None
        return token_step

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
            logits = step(self.model, self.weights, _fresh_copy(token), positions, place, keys, values, mask)
        return StepOutput(logits, past)


class CompiledDecoder(LeanDecoder):
    """A LeanDecoder that compiles its step.

    Args:
        model: as in LeanDecoder.
        fixed: keep shapes and addresses fixed, as CUDA graphs need it; None: on CUDA.
    """

    way = "compiled"
    by_columns = False

    def __init__(self, model: MiniMindForCausalLM, fixed: bool | None = None):
        self.fixed = model.model.norm.weight.is_cuda if fixed is None else fixed
        self.steps = CompiledSteps(model)
        super().__init__(model)

    def _begin(self) -> None:
        super()._begin()
        gain = self.model.model.norm.weight
        if self.instead is not None or gain.is_cuda:
            return
        if not has_cpp_compiler():
            self._stay_lean("torch.compile finds no C++ compiler (on Debian and Ubuntu: apt install g++)")
        elif gain.dtype == torch.float32 and not why_not_loaded():
            self.weights = in_rows(self.weights)

    def _stay_lean(self, reason: str) -> None:
        self._give_up(reason, LeanDecoder(self.model))

    def _with_room(self, past: KVCache | None) -> KVCache:
        """Fixed buffers get a power of two as their capacity: few sizes, so few to compile for."""
        past = super()._with_room(past)
        if past.length or not self.fixed:
            return past
        capacity = 1 << max(8, (past.capacity - 1).bit_length())
        return KVCache(self.config.num_hidden_layers, capacity=capacity, zeroed=True)

    def _step(self, batch: int, masked: bool, capacity: int) -> Step | None:
        if super()._step(batch, masked, capacity) is None:
            return None
        step = self.steps.get(self.weights, batch, masked, capacity if self.fixed else None)
        if step is None:
            self._stay_lean(self.steps.failure)
        elif self.fixed and self.model.model.norm.weight.is_cuda:
            return _replayed(step)
        return step


def _replayed(step: Step) -> Step:
    """The same step, whose result a CUDA graph may not overwrite at the next one."""

    def replay(*arguments: Any) -> Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        return step(*arguments).clone()

    return replay


def _fresh_copy(x: Tensor) -> Tensor:
    """A copy with the strides that a new tensor has.

    A slice keeps those of what it was cut from, and for other strides torch.compile would compile again.
    """
    return x.clone(memory_format=torch.contiguous_format)
