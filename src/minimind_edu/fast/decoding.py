"""Two ways to read one token after another. The tokens are the same in both.

A step of decoding reads every weight once and computes little with it, so it takes as long as the weights need to
arrive, and as long as the calls take that do nothing but small sums.

    plain       the model as it is
    compiled    prompts by the model, what follows by one call of a C++ function (`step.cpp`), compiled once

Whether the C++ function computes what the model computes is asked of the numbers: the first token that it reads of a
text is read by the model, too, and where their logits differ, the model reads that text; a warning says it. So does
one where the function cannot be had. No way changes the model, nor how it lies in memory. MiniMind decodes with the
model itself.

What is promised. A text is compared
- at the first token after its prompt, or after the past that was handed over;
- at the next token once anything of what a `Snapshot` holds is another: a part, a hook, an attribute more or less, a
  tensor, or a class or function that computes the model, however it was replaced;
- after 64 tokens, and whenever it is twice as long again.
A model with hooks, or with methods of a single part, reads by itself. Values of weights that change in place are seen
by both. So what can go unnoticed is a function that stays the same and computes something else only later in a text,
and until the next comparison, whose warning then names how many tokens it may be about; and a difference below
`CLOSE` of a row's largest logit, which rounding makes, too.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from minimind_edu.device import living_threads
from minimind_edu.fast.compilable import Snapshot, why_only_plain
from minimind_edu.fast.library import NoLibraryError
from minimind_edu.fast.matrix import NUMBERS
from minimind_edu.fast.step import Table, UnreadableError
from minimind_edu.model import generation
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.model import CausalLMOutput, MiniMindForCausalLM, Past
from minimind_edu.validation import check_token_ids

WAYS = ("plain", "compiled")
MOST = 32  # so many float32 vectors are multiplied by step.cpp; for more, torch's product of two matrices is faster
CLOSE = 1e-4  # of a row's largest logit; measured: at most 5e-6, for 16 layers
AGAIN = 64  # tokens of a text after which it is compared again


def decoder(model: MiniMindForCausalLM, way: str = "compiled") -> "MiniMindForCausalLM | CompiledDecoder":
    """What to generate with: `decoder(model, way).generate(ids, 100)`, or `generation.generate(decoder(...), ids)`.

    Args:
        way: "plain": the model as it is. "compiled": a CompiledDecoder. Where and while that is impossible, the model
            reads, and a warning says why.

    Raises:
        ValueError: if there is no such way, or if a model in training mode would lose its dropout.
    """
    if way not in WAYS:
        raise ValueError(f"the way to decode must be one of {', '.join(map(repr, WAYS))}, got {way!r}")
    return model if way == "plain" else CompiledDecoder(model)


class Room(NamedTuple):
    """A cache with room for the tokens that are read."""

    past: KVCache
    keys: list[Tensor]  # of each layer, [B, capacity, K, D]
    values: list[Tensor]
    padding: Tensor | None  # [B], positions in front of each row


@dataclass
class Text:
    """How a text is read, until the model is another; all caches that continue it share one."""

    snapshot: Snapshot
    table: Table | None  # None: by the model
    plain: str | None  # why by the model
    read: int = 0  # tokens of each row that step.cpp has read
    compared: int | None = None  # how many it had read when it was compared last

    @property
    def is_due(self) -> bool:
        return self.compared is None or self.read >= max(AGAIN, 2 * self.compared)


class CompiledDecoder:
    """Called like the model, with the same arguments and defaults; with a cache, `step.cpp` reads what continues it.

    What `step.cpp` has read comes as logits and a cache, without gradients: `last_hidden_state` and `aux_loss` are
    None, `routing` is empty. For these, for `labels`, and without `use_cache`, the model itself reads.

    Args:
        model: is left as it is.
        code: what you made of the text of `step.cpp` (`library.SOURCE`), to compile instead. It may compute something
            else, so nothing is compared, and it reads short prompts, too. None: as it is.
    """

    way, most, close = "compiled", MOST, CLOSE
    generate = generation.generate
    stream = generation.stream

    def __init__(self, model: MiniMindForCausalLM, code: str | None = None):
        self.model = model
        self._code = code
        self._told: str | None = None
        self._texts: WeakKeyDictionary[KVCache, Text] = WeakKeyDictionary()
        self._look()

    @property
    def config(self) -> MiniMindConfig:
        return self.model.config

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """Those of the model, which generation looks at before it begins."""
        return self.model.named_parameters()

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Past | None = None,
        use_cache: bool = False,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
    ) -> CausalLMOutput:
        """Arguments, defaults and errors as in MiniMindForCausalLM.forward."""
        if use_cache is not True or labels is not None:
            return self._by_model(input_ids, attention_mask, past_key_values, use_cache, labels, logits_to_keep)
        past, out = self._continued(past_key_values), None
        text = None if past is None else self._texts.get(past)
        if text is None or not text.snapshot.is_true():
            text = self._look()
        with torch.no_grad():
            continues = self._code is not None or (past is not None and past.length > 0)
            if continues and _may_fit(input_ids, attention_mask, logits_to_keep):
                new = KVCache(self.config.num_hidden_layers)
                out = self._read(text, input_ids, attention_mask, past or new, logits_to_keep)
        if out is None:
            out = self._by_model(input_ids, attention_mask, past, True, None, logits_to_keep)
        if isinstance(out.past_key_values, KVCache):
            self._texts[out.past_key_values] = text
        return out

    def _by_model(self, *arguments: Any) -> CausalLMOutput:
        """What the model gives; also in a forked child, where step.cpp makes new threads, and torch does not."""
        with living_threads():
            return self.model(*arguments)

    def _continued(self, past: Past | None) -> KVCache | None:
        """What a call continues: nothing yet, a cache, or the notes' pairs."""
        if past is None or isinstance(past, KVCache):
            return past
        config = self.config
        return KVCache.from_pairs(past, config.num_hidden_layers, config.num_key_value_heads, config.head_dim)

    def _look(self) -> Text:
        """How the model, as it is now, is read."""
        reason, table, snapshot = why_only_plain(self.model), None, Snapshot(self.model)
        if reason is None:
            try:
                table = Table(self.model, self._code)
            except (UnreadableError, NoLibraryError) as error:
                reason = str(error)
        self._tell(reason)
        return Text(snapshot, table, reason)

    def _read(self, text: Text, ids: Tensor, mask: Tensor | None, past: KVCache, keep: int) -> CausalLMOutput | None:
        """What step.cpp gives, or the model beside it; None if the model is to read, which says what does not fit."""
        plain = "torch.autocast chooses other dtypes" if torch.is_autocast_enabled("cpu") else text.plain
        self._tell(plain)
        if plain is not None or text.table is None or ids.numel() > self.most:
            return None
        room = _room(text.table, ids, mask, past)
        if room is None:
            return None
        keep = keep or ids.shape[1]
        logits = text.table.read(ids, past.length, room.keys, room.values, room.padding, keep)
        if text.is_due and self._code is None:
            out = self._by_model(ids, mask, past, True, None, keep)
            if not self._agree(logits, out.logits):
                text.plain = "step.cpp and the model as it is now give different logits"
                if text.compared is not None:
                    text.plain += f"; the last {text.read - text.compared} tokens may be others than the model's"
                self._tell(text.plain)
                return out
            text.compared = text.read
        text.read += ids.shape[1]
        return CausalLMOutput(logits, cast(Tensor, None), room.past)

    @living_threads()
    def _agree(self, logits: Tensor, expected: Tensor) -> bool:
        """Whether they differ by no more than rounding, `[B, S, V]`; both let padding look at itself alone.

        What is not finite in one must not be in the other; NaN or infinity, that depends on the order of sums.
        """
        strange = ~expected.isfinite()
        largest = expected.abs().masked_fill(strange, 0).amax(-1, keepdim=True)
        near = (logits - expected).abs() <= self.close * largest  # NaN is not near
        return bool(torch.where(strange, ~logits.isfinite(), near).all())

    def _tell(self, reason: str | None) -> None:
        """Warn who called from outside the package, once as long as the reason stays the same."""
        if reason is not None and reason != self._told:
            frame, level = sys._getframe(), 1  # warn's own skip_file_prefixes came with Python 3.12
            while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("minimind_edu."):
                frame, level = frame.f_back, level + 1
            warnings.warn(f"{self.way} decoding is only plain here: {reason}", stacklevel=level)
        self._told = reason

    def __reduce__(self) -> Any:
        raise TypeError("a decoder holds addresses of this process's memory; copy or save its model, and decode anew")


def _may_fit(ids: Any, mask: Any, keep: Any) -> bool:
    """Whether these are what they should be; the model says what they should be."""
    fits = isinstance(ids, Tensor) and ids.dim() == 2 and (mask is None or isinstance(mask, Tensor))
    return fits and type(keep) is int and 0 <= keep <= ids.shape[1]


def _room(table: Table, ids: Tensor, mask: Tensor | None, past: KVCache) -> Room | None:
    """Room for these tokens after the past; None if ids, mask, past or positions do not fit."""
    config = table.config
    if ids.numel() == 0 or ids.device.type != "cpu" or len(past) != config.num_hidden_layers:
        return None
    (batch, length), end = ids.shape, past.length + ids.shape[1]
    if past.length == 0:
        past = past.fork()
        for layer in past.layers:
            layer.append(*torch.empty(2, batch, 0, config.num_key_value_heads, config.head_dim, **NUMBERS))
    if any(layer.length != past.length for layer in past.layers) or end > table.positions:
        return None
    if mask is not None and mask.shape != (batch, end):
        return None
    padding = None if mask is None else _padding(mask)
    if mask is not None and padding is None:
        return None
    past = past.fork()
    keys, values = past.reserve(length)
    shape = (batch, keys[0].shape[1], config.num_key_value_heads, config.head_dim)
    for buffer in (*keys, *values):
        fits = buffer.shape == shape and (buffer.dtype, buffer.device.type) == (torch.float32, "cpu")
        if not fits or not buffer.is_contiguous():
            return None
    check_token_ids(ids, config.vocab_size)
    return Room(past, keys, values, padding)


def _padding(mask: Tensor) -> Tensor | None:
    """How many positions in front of each row are padding, `[B]`; None if there is some elsewhere, or other numbers."""
    padding = (mask != 0).int().argmax(1)
    in_front = torch.arange(mask.shape[1], device=mask.device) >= padding[:, None]  # [B, T]
    return padding if bool((mask == in_front).all()) else None
