"""Ways to read one token after another. The tokens are the same in every way.

A step of decoding reads every weight once and computes little with it, so it takes as long as the weights need to
arrive, and as long as the calls take that do nothing but small sums.

    plain       the model as it is
    lean        prompts by the model, single tokens by one function with as few calls as possible (`token_step.py`)
    compiled    single tokens and short prompts by one call of a C++ function (`step.cpp`), compiled once on a machine

Where the C++ function cannot be had, decoding is lean, where that would be wrong, plain, for as long as that is so; a
warning says it. No way changes the model, nor how it lies in memory. MiniMind decodes with the model itself.
"""

import sys
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from minimind_edu import generation
from minimind_edu.config import MiniMindConfig
from minimind_edu.fast.compilable import Snapshot, why_only_plain
from minimind_edu.fast.library import why_no_library
from minimind_edu.fast.step import Table
from minimind_edu.fast.token_step import token_step
from minimind_edu.kv_cache import KVCache
from minimind_edu.model import CausalLMOutput, MiniMindForCausalLM, Past
from minimind_edu.validation import check_token_ids

WAYS = ("plain", "lean", "compiled")
MOST = 32  # so many float32 vectors are multiplied by step.cpp; for more, torch's product of two matrices is faster


def decoder(model: MiniMindForCausalLM, way: str = "compiled") -> "MiniMindForCausalLM | LeanDecoder":
    """What to generate with: `decoder(model, way).generate(ids, 100)`, or `generation.generate(decoder(...), ids)`.

    Args:
        way: "plain": the model as it is. "lean": a LeanDecoder. "compiled": a CompiledDecoder. Where and while one of
            them is impossible, it decodes in the next simpler way, and a warning says why.

    Raises:
        ValueError: if there is no such way, or if a model in training mode would lose its dropout.
    """
    if way not in WAYS:
        raise ValueError(f"the way to decode must be one of {', '.join(map(repr, WAYS))}, got {way!r}")
    return model if way == "plain" else LeanDecoder(model) if way == "lean" else CompiledDecoder(model)


class StepOutput(NamedTuple):
    """What reading tokens gave; the names are CausalLMOutput's."""

    logits: Tensor  # [B, 1, V], or of as many tokens as were asked for
    past_key_values: KVCache


class Room(NamedTuple):
    """A cache with room for the tokens that are read."""

    past: KVCache
    keys: list[Tensor]  # of each layer, [B, capacity, K, D]
    values: list[Tensor]
    mask: Tensor | None  # [B, T], False on padding


class LeanDecoder:
    """Called like the model: reads prompts with the model itself, and single tokens with `token_step`.

    Without a cache there are no single tokens to read, and the model does everything. With every text it looks at the
    model anew, which may have been changed or converted since the last one, or changed back.

    Args:
        model: is left as it is.
    """

    way, most = "lean", 0
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
        """Arguments as in MiniMindForCausalLM.forward."""
        past = past_key_values
        if use_cache:
            past = self._continued(past)
            if past.length == 0:
                self._begin()
            with torch.no_grad():
                out = self._read(input_ids, attention_mask, past, logits_to_keep)
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
        self._plain = self._look()  # why the model itself reads this text; None: it need not
        if self._plain is not None:
            self._tell("plain", self._plain)

    def _look(self) -> str | None:
        """Why the model itself must read; else remember how it is."""
        reason = why_only_plain(self.model)
        if reason is None:
            self._snapshot = Snapshot(self.model)
        return reason

    def _why_plain(self) -> str | None:
        """Why the model itself reads at this moment of a text; None: it need not."""
        if self._plain is None and not self._snapshot.is_true():
            self._plain = "the model was changed since its weights were taken"
        if self._plain is None and torch.is_autocast_enabled(self.model.model.norm.weight.device.type):
            return "torch.autocast chooses other dtypes"
        return self._plain

    def _choose(self, ids: Tensor) -> tuple[str, str | None]:
        """The way in which these tokens can be read, and why in none that is faster."""
        reason = self._why_plain()
        if reason is None and self.config.use_moe and len(ids) > 1:
            reason = "the rows of a batch visit different experts"
        return ("lean", None) if reason is None else ("plain", reason)

    def _read(self, ids: Tensor, mask: Tensor | None, past: KVCache, keep: int) -> StepOutput | None:
        """What a step gives; None if the model is to read, which also knows how to say what does not fit."""
        way, reason = self._choose(ids)
        self._tell(way, reason)
        single = past.length > 0 and ids.shape[1:] == (1,)
        if way == "plain" or (way == "lean" and not single) or keep not in range(ids.shape[-1] + 1):
            return None
        if way != "lean" and ids.numel() > self.most:
            return None
        room = self._room(ids, mask, past)
        logits = None if room is None else self._step(ids, room, keep)
        return None if room is None or logits is None else StepOutput(logits, room.past)

    def _step(self, ids: Tensor, room: Room, keep: int) -> Tensor | None:
        """`[B, keep, V]`, or of all if keep is 0; None if the model is to read."""
        return token_step(self.model, ids, room.past.length, room.keys, room.values, room.mask)

    def _room(self, ids: Tensor, mask: Tensor | None, past: KVCache) -> Room | None:
        """Room for these tokens after the past; None if ids, mask, past or positions do not fit."""
        config, gain = self.config, self.model.model.norm.weight
        if ids.dim() != 2 or ids.numel() == 0 or len(past) != config.num_hidden_layers:
            return None
        (batch, length), end = ids.shape, past.length + ids.shape[1]
        shape = batch, config.num_key_value_heads, config.head_dim
        if past.length == 0:
            past = past.fork()
            for layer in past.layers:
                layer.append(*gain.new_empty(2, batch, 0, *shape[1:]))
        if any(it.length != past.length for it in past.layers) or end > len(self.model.model.freqs_cos):
            return None
        past = past.fork()
        keys, values = past.reserve(length)
        size, kind = keys[0].shape, (gain.dtype, gain.device)
        fits = (size[0], *size[2:]) == shape
        fits = fits and all(it.shape == size and (it.dtype, it.device) == kind for it in (*keys, *values))
        if not fits or (mask is not None and mask.shape != (batch, end)):
            return None
        check_token_ids(ids, config.vocab_size)
        return Room(past, keys, values, None if mask is None else mask.bool())

    def _tell(self, left: str, reason: str | None) -> None:
        """Warn who called from outside the package, once as long as the reason stays the same."""
        if reason is not None and reason != self._told:
            frame, level = sys._getframe(), 1
            while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("minimind_edu."):
                frame, level = frame.f_back, level + 1
            warnings.warn(f"{self.way} decoding is only {left} here: {reason}", stacklevel=level)
        self._told = reason


class CompiledDecoder(LeanDecoder):
    """A LeanDecoder that reads single tokens and short prompts with `step.cpp`.

    Args:
        model: as in LeanDecoder.
        code: what you made of the text of `step.cpp` (`library.SOURCE`), to compile instead. None: as it is.
    """

    way, most = "compiled", MOST

    def __init__(self, model: MiniMindForCausalLM, code: str | None = None):
        self._code = code
        super().__init__(model)

    def _begin(self) -> None:
        super()._begin()
        self._lean = self._why_lean() if self._plain is None else None  # why not with step.cpp
        if self._plain is None and self._lean is None:
            self._table = Table(self.model, self._code)
        elif self._lean is not None:
            self._tell("lean", self._lean)

    def _why_lean(self) -> str | None:
        if self.config.norm_placement != "pre":
            return "step.cpp normalizes before each part, and norm_placement is 'post'"
        body = self.model.model
        for it in (*self.model.parameters(), body.freqs_cos, body.freqs_sin):
            if it.dtype != torch.float32 or it.device.type != "cpu":
                return f"step.cpp computes in float32 on a CPU, and the model is {it.dtype} on {it.device}"
            if not it.is_contiguous():
                return "step.cpp reads matrices by rows, and one does not lie so in memory"
        return why_no_library(self._code)

    def _choose(self, ids: Tensor) -> tuple[str, str | None]:
        if self._why_plain() is None and self._lean is None:
            return "compiled", None
        way, reason = super()._choose(ids)
        return way, reason or self._lean

    def _step(self, ids: Tensor, room: Room, keep: int) -> Tensor | None:
        if self._lean is not None:
            return super()._step(ids, room, keep)
        padding = None if room.mask is None else _padding(room.mask)
        if room.mask is not None and padding is None:
            return None
        start = room.past.length - ids.shape[1]
        return self._table.read(ids, start, room.keys, room.values, padding, keep or ids.shape[1])


def _padding(mask: Tensor) -> Tensor | None:
    """How many positions in front of each row are padding, `[B]`; None if there is some elsewhere."""
    padding = mask.int().argmax(1)
    in_front = torch.arange(mask.shape[1], device=mask.device) >= padding[:, None]  # [B, T]
    return padding if torch.equal(mask, in_front) else None
