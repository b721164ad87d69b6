"""`step.cpp` for a model: the addresses of its weights, and calls that read tokens.

The file knows addresses and sizes and believes them, so whoever calls has looked at them: `decoding.py` does.
"""

import ctypes
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, cast

import torch
from torch import Tensor, nn

from minimind_edu.block import MiniMindBlock
from minimind_edu.fast.library import library
from minimind_edu.fast.matrix import NUMBERS, Matrix
from minimind_edu.feed_forward import FeedForward
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward


class Table:
    """The weights of a model as step.cpp finds them. Values that change in place are seen; other tensors are not.

    Several threads may read with one table.

    Args:
        model: all of it float32 on the CPU, in the order of memory, or matrices in `matrix.py`'s modules.
        code: what to compile instead of step.cpp.

    Raises:
        NoLibraryError: if step.cpp cannot be compiled.
    """

    def __init__(self, model: MiniMindForCausalLM, code: str | None = None):
        self._library = library(code)
        self._held: list[Any] = []  # what must live as long as its address is used
        self._rooms: list[Tensor] = []  # memory to work in, of threads that have read
        config, body = model.config, model.model
        layers = cast(Iterable[MiniMindBlock], body.layers)
        embedding, output = self._matrix(body.embed_tokens), self._matrix(model.lm_head)
        self._vocab_size = config.vocab_size
        self._address = self._words(
            [
                config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, config.head_dim,
                config.moe_intermediate_size if config.use_moe else config.intermediate_size,
                config.num_experts if config.use_moe else 0, config.num_experts_per_tok,
                config.num_shared_experts if config.use_moe else 1, config.norm_topk_prob,
                self._tensor(torch.tensor([config.rms_norm_eps], **NUMBERS)), self._tensor(body.freqs_cos),
                self._tensor(body.freqs_sin), self._tensor(body.norm.weight.data), *embedding, *output,
                self._words([word for layer in layers for word in self._layer(layer)]),
            ]
        )  # fmt: skip

    def read(
        self,
        ids: Tensor,
        start: int,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        padding: Tensor | None = None,
        wanted: int = 1,
    ) -> Tensor:
        """Read new tokens of each text; write their keys and values into the buffers, return logits.

        Args:
            ids: `[B, S]`, of the vocabulary.
            start: position of the first of them.
            keys, values: for each layer the buffer, `[B, capacity, K, D]`, with room for them.
            padding: int64 `[B]`, the positions in front of each text that nobody sees. None: none.
            wanted: how many of the last tokens get logits.

        Returns:
            `[B, wanted, V]`.
        """
        (batch, length), threads = ids.shape, torch.get_num_threads()
        ids = ids.long().contiguous()
        padding = ids.new_zeros(batch) if padding is None else padding
        logits = torch.empty(wanted, batch, self._vocab_size, **NUMBERS)
        addresses = [(ctypes.c_size_t * len(its))(*[it.data_ptr() for it in its]) for its in (keys, values)]
        texts = (ctypes.c_size_t * 10)(
            batch, length, start, keys[0].shape[1], wanted, ids.data_ptr(), padding.data_ptr(),
            *map(ctypes.addressof, addresses), logits.data_ptr(),
        )  # fmt: skip
        size = self._library.room(self._address, texts, threads)
        room = torch.empty(0, **NUMBERS)
        with suppress(IndexError):
            room = self._rooms.pop()  # nobody else has it now
        if len(room) < size:
            room = torch.empty(size, **NUMBERS)
        self._library.read_tokens(self._address, texts, room.data_ptr(), threads)
        self._rooms.append(room)
        return logits.transpose(0, 1)  # [wanted, B, V] -> [B, wanted, V]

    def _layer(self, block: MiniMindBlock) -> list[int]:
        part, mlp = block.self_attn, block.mlp
        gains = [block.input_layernorm, block.post_attention_layernorm, part.q_norm, part.k_norm]
        mixed = isinstance(mlp, MoEFeedForward)
        networks = [*mlp.experts, *mlp.shared_experts] if mixed else [mlp]
        return [
            *(0 if isinstance(it, nn.Identity) else self._tensor(cast(Tensor, it.weight).data) for it in gains),
            *(word for it in (part.q_proj, part.k_proj, part.v_proj, part.o_proj) for word in self._matrix(it)),
            *(self._matrix(mlp.gate) if mixed else [0] * 5),
            self._words([word for it in networks for word in self._network(cast(FeedForward, it))]),
        ]

    def _network(self, it: FeedForward) -> list[int]:
        return [*self._matrix(it.gate_proj), *self._matrix(it.up_proj), *self._matrix(it.down_proj)]

    def _matrix(self, part: nn.Module) -> list[int]:
        weight = cast(Tensor | Matrix, part.weight)
        matrix = weight if isinstance(weight, Matrix) else Matrix("float32", len(weight), weight.shape[1], weight.data)
        self._held.append(matrix)
        return matrix.words()

    def _tensor(self, it: Tensor) -> int:
        self._held.append(it)
        return it.data_ptr()

    def _words(self, words: list[int]) -> int:
        self._held.append((ctypes.c_size_t * len(words))(*words))
        return ctypes.addressof(self._held[-1])

    def __reduce__(self) -> Any:
        raise TypeError("a decoder holds addresses of this process's memory; copy or save its model, and decode anew")
