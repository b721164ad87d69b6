"""Ways to read one token after another. The tokens are the same in every way.

A step of decoding reads every weight once and computes little with it, so it takes as long as the weights need to
arrive, and as long as the calls take that do nothing but small sums.

    plain       the model as it is
    lean        prompts by the model, single tokens by one function with as few calls as possible (`token_step.py`),
                which reads the weights in the order in which they lie (`layout.py`); float32 on a CPU with loops of
                our own (`row_products.py`), where they can be compiled
    compiled    the same function, compiled on a CPU (`compiled_steps.py`)

Compiling takes seconds, once for a decoder, and is over before the first token is given out. Where it is not possible,
decoding is lean, where that would be wrong, plain, for as long as that is so; a warning says it. MiniMind decodes with
the model itself.
"""

import sys
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from minimind_edu import generation
from minimind_edu.config import MiniMindConfig
from minimind_edu.fast.compilable import Snapshot, why_only_plain
from minimind_edu.fast.compiled_steps import CompiledSteps, Step
from minimind_edu.fast.layout import lay_out
from minimind_edu.fast.row_products import INSTALL, cpp_compiler, why_not_loaded
from minimind_edu.fast.token_step import token_step
from minimind_edu.kv_cache import KVCache
from minimind_edu.model import CausalLMOutput, MiniMindForCausalLM, Past

WAYS = ("plain", "lean", "compiled")


def decoder(model: MiniMindForCausalLM, way: str = "compiled") -> "MiniMindForCausalLM | LeanDecoder":
    """What to generate with: `decoder(model, way).generate(ids, 100)`, or `generation.generate(decoder(...), ids)`.

    Keep the decoder as long as you generate: what it has compiled is kept with it.

    Args:
        way: "plain": the model as it is, untouched. "lean": a LeanDecoder. "compiled": a CompiledDecoder. Both join
            some of the model's matrices in memory, and the model goes on as before. Where and while one of them is
            impossible, it decodes in the next simpler way, and a warning says why.

    Raises:
        ValueError: if there is no such way, or if a model in training mode would lose its dropout.
    """
    if way not in WAYS:
        raise ValueError(f"the way to decode must be one of {', '.join(map(repr, WAYS))}, got {way!r}")
    return model if way == "plain" else LeanDecoder(model) if way == "lean" else CompiledDecoder(model)


class StepOutput(NamedTuple):
    """What reading one token gave; the names are CausalLMOutput's."""

    logits: Tensor  # [B, 1, V]
    past_key_values: KVCache


class LeanDecoder:
    """Called like the model: reads prompts with the model itself, and single tokens with `token_step`.

    Without a cache there are no single tokens to read, and the model does everything. With every text it looks at the
    model anew, which may have been changed or converted since the last one, or changed back.

    Args:
        model: some of its matrices are joined in memory.
    """

    way = "lean"
    generate = generation.generate
    stream = generation.stream

    def __init__(self, model: MiniMindForCausalLM):
        self.model = model
        self._told: str | None = None
        self._begin()

    @property
    def config(self) -> MiniMindConfig:
        return self.model.config

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Past | None = None,
        use_cache: bool = True,
        logits_to_keep: int = 1,
    ) -> CausalLMOutput | StepOutput:
        """Arguments as in MiniMindForCausalLM.forward. Single tokens are not checked: generation has seen to them."""
        past = past_key_values
        if use_cache:
            past = self._continued(past)
            if past.length == 0:
                self._begin()
            # asked for at the prompt already, so that compiling is over before the first token
            step = self._step(len(input_ids), attention_mask is not None)
            if step is not None and past.length > 0 and input_ids.shape[1:] == (1,):
                out = self._read(step, input_ids, attention_mask, past.fork())
                if out is not None:
                    return out
        return self.model(input_ids, attention_mask, past, use_cache, logits_to_keep=logits_to_keep)

    def _continued(self, past: Past | None) -> KVCache:
        """What a call continues: nothing yet, a cache, or the notes' pairs."""
        if isinstance(past, KVCache):
            return past
        config = self.config
        if past is None:
            return KVCache(config.num_hidden_layers)
        return KVCache.from_pairs(past, config.num_hidden_layers, config.num_key_value_heads, config.head_dim)

    def _begin(self) -> None:
        """A new text."""
        self._plain = self._take_weights()  # why the model itself reads this text; None: it need not
        if self._plain is not None:
            self._tell("plain", self._plain)

    def _take_weights(self) -> str | None:
        """Take what the step reads, or say why it cannot read it."""
        reason = why_only_plain(self.model)
        if reason is None:
            gain = self.model.model.norm.weight
            loops = gain.device.type == "cpu" and gain.dtype == torch.float32 and not why_not_loaded()
            self.weights = lay_out(self.model, loops)
            self._snapshot = Snapshot(self.model)
        return reason

    def _step(self, batch: int, masked: bool) -> Step | None:
        """What reads a single token; None: the model itself."""
        step, reason = self._choose(batch, masked)
        self._tell("plain" if step is None else "lean", reason)
        return step

    def _choose(self, batch: int, masked: bool) -> tuple[Step | None, str | None]:
        """What reads a single token, and why it is nothing faster."""
        if self._plain is None and not self._snapshot.is_true():
            self._plain = "the model was changed since its weights were taken"
        if self._plain is not None:
            return None, self._plain
        if torch.is_autocast_enabled(self.weights.gain.device.type):
            return None, "torch.autocast chooses other dtypes"
        if batch > 1 and self.config.use_moe:
            return None, "the rows of a batch visit different experts"
        return token_step, None

    def _tell(self, left: str, reason: str | None) -> None:
        """Warn who called from outside the package, once as long as the reason stays the same."""
        if reason is not None and reason != self._told:
            frame, level = sys._getframe(), 1
            while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("minimind_edu."):
                frame, level = frame.f_back, level + 1
            warnings.warn(f"{self.way} decoding is only {left} here: {reason}", stacklevel=level)
        self._told = reason

    def _read(self, step: Step, token: Tensor, attention_mask: Tensor | None, past: KVCache) -> StepOutput | None:
        """What the step gives; None if past, mask or position do not fit, which the model knows how to say."""
        config, gain = self.config, self.weights.gain
        cos, sin = self.model.model.freqs_cos, self.model.model.freqs_sin
        with torch.no_grad():
            keys, values = past.reserve(1)
            first, end = keys[0], past.length
            sizes = config.num_hidden_layers, token.shape[0], config.num_key_value_heads, config.head_dim
            fits = (len(keys), first.shape[0], *first.shape[2:]) == sizes and end <= cos.shape[0]
            fits = fits and (first.dtype, first.device) == (gain.dtype, gain.device)
            fits = fits and all(layer.length == end for layer in past.layers)
            if not fits or attention_mask is not None and attention_mask.shape != (token.shape[0], end):
                return None
            positions = cos[end - 1 : end], sin[end - 1 : end]  # [1, D] each
            mask = None
            if attention_mask is not None:
                mask = _fresh_copy(attention_mask.bool())[:, None, None, :]  # [B, T] -> [B, 1, 1, T]
            logits = step(self.model, self.weights, _fresh_copy(token), positions, end, keys, values, mask)
        return StepOutput(logits, past)


class CompiledDecoder(LeanDecoder):
    """A LeanDecoder that compiles its step.

    Args:
        model: as in LeanDecoder.
    """

    way = "compiled"

    def __init__(self, model: MiniMindForCausalLM):
        self.steps = CompiledSteps(model)
        super().__init__(model)

    def _begin(self) -> None:
        super()._begin()
        self._lean = self._why_lean() if self._plain is None else None
        if self._lean is not None:
            self._tell("lean", self._lean)

    def _why_lean(self) -> str | None:
        if self.weights.gain.device.type != "cpu":
            return "compiling is proven on the CPU only"
        try:
            cpp_compiler()
        except FileNotFoundError as error:
            return f"{error}; {INSTALL}"
        return None

    def _choose(self, batch: int, masked: bool) -> tuple[Step | None, str | None]:
        step, reason = super()._choose(batch, masked)
        if step is None or self._lean is not None:
            return step, reason or self._lean
        compiled = self.steps.get(self.weights, batch, masked)
        return (step, compiled) if isinstance(compiled, str) else (compiled, None)


def _fresh_copy(x: Tensor) -> Tensor:
    """A copy with the strides that a new tensor has.

    A slice keeps those of what it was cut from, and for other strides torch.compile would compile again.
    """
    return x.clone(memory_format=torch.contiguous_format)
