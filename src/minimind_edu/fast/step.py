"""`step.cpp` for a model: the addresses of its weights, and calls that read tokens.

The file knows addresses and sizes and believes them. So every tensor whose address is taken must have the place that
the config gives it; that ids, buffers and positions fit a call is looked at by `decoding.py`.
"""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import torch
from torch import Tensor, nn

from minimind_edu.fast.library import library
from minimind_edu.fast.matrix import NUMBERS, Matrix
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.moe import MoEFeedForward


class UnreadableError(Exception):
    """step.cpp cannot read this model; the message is a clause that says why."""


class Table:
    """The weights of a model as step.cpp finds them. Values that change in place are seen; other tensors are not.

    Several threads may read with one table.

    Args:
        model: all of it float32 on the CPU, in the order of memory, or matrices in `matrix.py`'s modules.
        code: what to compile instead of step.cpp.

    Raises:
        UnreadableError: if a tensor is not there, or not as the config says, or not float32 by rows on the CPU.
        NoLibraryError: if step.cpp cannot be compiled.
    """

    def __init__(self, model: MiniMindForCausalLM, code: str | None = None):
        self._held: list[Any] = []  # what must live as long as its address is used
        self._rooms: list[Tensor] = []  # memory to work in, of threads that have read
        self.config = config = model.config
        if not isinstance(config, MiniMindConfig) or model.model.config != config:
            raise UnreadableError("step.cpp computes what one config says, and this model has two, or another kind")
        if config.norm_placement != "pre":
            raise UnreadableError("step.cpp normalizes before each part, and norm_placement is 'post'")
        try:
            words = self._model(model, config)
        except (AttributeError, TypeError, IndexError) as error:
            raise UnreadableError(f"step.cpp does not find a part of the model: {error}") from error
        self._library = library(code)
        self._address = self._words(words)

    def _model(self, model: MiniMindForCausalLM, config: MiniMindConfig) -> list[int]:
        body, vocab, width = model.model, config.vocab_size, config.hidden_size
        if getattr(body.embed_tokens, "max_norm", None) is not None:
            raise UnreadableError("step.cpp takes embeddings as they are, and max_norm shortens them")
        self.positions = min(len(body.freqs_cos), config.max_position_embeddings)
        layers = cast(Sequence[MiniMindBlock], body.layers)
        _check_number("layers", len(layers), config.num_hidden_layers)
        return [
            config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, config.head_dim,
            config.moe_intermediate_size if config.use_moe else config.intermediate_size,
            config.num_experts if config.use_moe else 0, config.num_experts_per_tok,
            config.num_shared_experts if config.use_moe else 1, config.norm_topk_prob,
            self._tensor(torch.tensor([config.rms_norm_eps], **NUMBERS), 1),
            *(self._tensor(table, len(body.freqs_cos), config.head_dim) for table in (body.freqs_cos, body.freqs_sin)),
            self._tensor(body.norm.weight, width), *self._matrix(body.embed_tokens, vocab, width),
            *self._matrix(model.lm_head, vocab, width),
            self._words([word for layer in layers for word in self._layer(layer, config)]),
        ]  # fmt: skip

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
        logits = torch.empty(wanted, batch, self.config.vocab_size, **NUMBERS)
        addresses = [(ctypes.c_size_t * len(cache))(*[x.data_ptr() for x in cache]) for cache in (keys, values)]
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

    def _layer(self, block: MiniMindBlock, config: MiniMindConfig) -> list[int]:
        part, mlp, width = block.self_attn, block.mlp, config.hidden_size
        queries, keys = (heads * config.head_dim for heads in (config.num_attention_heads, config.num_key_value_heads))
        gains = ((block.input_layernorm, width), (block.post_attention_layernorm, width))
        optional = ((norm, config.head_dim) for norm in (part.q_norm, part.k_norm))
        networks, inner, router = [mlp], config.intermediate_size, [0] * 5
        if config.use_moe:
            mlp = cast(MoEFeedForward, mlp)
            networks, inner = [*mlp.experts, *mlp.shared_experts], config.moe_intermediate_size
            _check_number("experts", len(mlp.experts), config.num_experts)
            _check_number("shared experts", len(mlp.shared_experts), config.num_shared_experts)
            router = self._matrix(mlp.gate, config.num_experts, width)
        return [
            *(self._tensor(cast(Tensor, norm.weight), size) for norm, size in gains),
            *(0 if isinstance(norm, nn.Identity) else self._tensor(norm.weight, D) for norm, D in optional),
            *self._matrix(part.q_proj, queries, width), *self._matrix(part.k_proj, keys, width),
            *self._matrix(part.v_proj, keys, width), *self._matrix(part.o_proj, width, queries), *router,
            self._words([word for network in networks for word in self._network(network, inner, width)]),
        ]  # fmt: skip

    def _network(self, network: nn.Module, inner: int, width: int) -> list[int]:
        network = cast(FeedForward, network)
        ups = self._matrix(network.gate_proj, inner, width) + self._matrix(network.up_proj, inner, width)
        return ups + self._matrix(network.down_proj, width, inner)

    def _matrix(self, part: nn.Module, height: int, width: int) -> list[int]:
        weight = cast(Tensor | Matrix, part.weight)
        if not isinstance(weight, Matrix):
            self._tensor(weight, height, width)
            weight = Matrix("float32", height, width, weight.data)
        elif (weight.height, weight.width) != (height, width):
            raise UnreadableError(f"step.cpp expects [{height}, {width}], not [{weight.height}, {weight.width}]")
        self._held.append(weight)
        return weight.words()

    def _tensor(self, tensor: Any, *shape: int) -> int:
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            raise UnreadableError(
                f"step.cpp computes in float32 on a CPU, and the model is {tensor.dtype} on {tensor.device}"
            )
        if tensor.shape != shape:
            raise UnreadableError(f"step.cpp expects {list(shape)}, as the config says, not {list(tensor.shape)}")
        kind = type(tensor)
        if kind not in (Tensor, nn.Parameter) or tensor.layout != torch.strided:  # another kind has another memory
            raise UnreadableError(f"step.cpp reads plain tensors, and one is a {kind.__name__}, {tensor.layout}")
        if not tensor.is_contiguous() or not tensor.data_ptr():
            raise UnreadableError("step.cpp reads matrices by rows, and one does not lie so in memory")
        self._held.append(tensor.data)
        return tensor.data_ptr()

    def _words(self, words: list[int]) -> int:
        self._held.append((ctypes.c_size_t * len(words))(*words))
        return ctypes.addressof(self._held[-1])

    def __reduce__(self) -> Any:
        raise TypeError("a decoder holds addresses of this process's memory; copy or save its model, and decode anew")


def _check_number(name: str, number: int, expected: int) -> None:
    if number != expected:
        raise UnreadableError(f"step.cpp expects {expected} {name}, as the config says, not {number}")
