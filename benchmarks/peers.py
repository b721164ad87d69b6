"""What is compared with what. Every peer continues the same prompts greedily, with the same weights.

transformers          LlamaForCausalLM, DynamicCache: what `generate` does by default
transformers static   the same with StaticCache
notes                 torch.cat cache and repeat_kv: notes_way.py
plain                 this package as it is
compiled              its faster way of decoding
no cache              the whole text again at every step
transformers compiled StaticCache and torch.compile, which transformers does by itself on GPUs only
int4, int8, bfloat16  compiled, with rounded weights: not the same tokens
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import CompileConfig, DynamicCache, GenerationConfig, PreTrainedModel

from benchmarks import notes_way
from benchmarks.findings import ROUNDED
from minimind_edu import fast
from minimind_edu.hf import to_transformers
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM

Decoder = MiniMindForCausalLM | fast.CompiledDecoder


@dataclass(frozen=True)
class Peer:
    """One way to continue prompts `[B, S]`."""

    generate: Callable[[Tensor, int], Tensor]  # -> [B, S + new]
    stream: Callable[[Tensor, int], Iterator[Tensor]]  # -> [B] at a time
    compiles: bool = False  # its first call is slow, and only a whole one prepares for the next
    decoder: Decoder | None = None  # ours: what is called for every token, like the model


def build_peers(config: MiniMindConfig, device: torch.device, dtype: torch.dtype) -> dict[str, Peer]:
    """All peers, by name."""
    model = random_model(config).to(device, dtype).eval()
    llama = llama_twin(model).eval()
    return {
        "transformers": Peer(partial(_llama_generate, llama), partial(_llama_stream, llama)),
        "transformers static": Peer(
            partial(_llama_generate, llama, cache_implementation="static"),
            partial(_llama_stream, llama),
            compiles=device.type != "cpu",  # transformers compiles for this cache, but not on a CPU
        ),
        "notes": _collecting(partial(notes_way.stream, model)),
        "plain": _ours(model),
        "compiled": _ours(fast.decoder(model, "compiled"), compiles=True),
        "no cache": _ours(model, use_cache=False),
    }


def build_more(config: MiniMindConfig, device: torch.device, dtype: torch.dtype) -> dict[str, Peer]:
    """Those that are measured among the engines only."""
    model = random_model(config).to(device, dtype).eval()
    llama = _told_to_compile(llama_twin(model).eval())
    compiled = partial(_llama_generate, llama, cache_implementation="static")
    return {"transformers compiled": Peer(compiled, partial(_llama_stream, llama), compiles=True), **_rounded(model)}


def random_model(config: MiniMindConfig) -> MiniMindForCausalLM:
    """The same random weights every time."""
    torch.manual_seed(0)
    return MiniMindForCausalLM(config)


def llama_twin(model: MiniMindForCausalLM) -> PreTrainedModel:
    """The Llama of transformers with a copy of the model's weights, which never ends a text."""
    twin = to_transformers(model)
    # random weights would end a text by chance
    twin.generation_config = GenerationConfig(pad_token_id=0)
    return twin


def _told_to_compile(llama: PreTrainedModel) -> PreTrainedModel:
    """Steps with a static cache are compiled on every device; by itself transformers does so on GPUs only."""
    compiling = CompileConfig(fullgraph=True, mode=None, dynamic=None)
    compiling._compile_all_devices = True
    llama.generation_config.compile_config = compiling
    return llama


def _rounded(model: MiniMindForCausalLM) -> dict[str, Peer]:
    """This package with fewer bytes for each weight."""
    return {to: _ours(fast.rounded_decoder(model, to=to), compiles=True) for to in ROUNDED}


def _ours(decoder: Decoder, compiles: bool = False, use_cache: bool = True) -> Peer:
    # random weights would end a text by chance
    options: dict[str, Any] = {"use_cache": use_cache, "eos_token_id": None}
    return Peer(partial(_generate, decoder, options), partial(_stream, decoder, options), compiles, decoder)


def _generate(decoder: Decoder, options: dict[str, Any], ids: Tensor, new: int) -> Tensor:
    return decoder.generate(ids, new, **options)


def _stream(decoder: Decoder, options: dict[str, Any], ids: Tensor, new: int) -> Iterator[Tensor]:
    return decoder.stream(ids, new, **options)


def _collecting(stream: Callable[[Tensor, int], Iterator[Tensor]]) -> Peer:
    def generate(ids: Tensor, new: int) -> Tensor:
        return torch.cat([ids, torch.stack(list(stream(ids, new)), dim=1)], dim=1)

    return Peer(generate, stream)


def _llama_generate(llama: PreTrainedModel, ids: Tensor, new: int, **options: Any) -> Tensor:
    return llama.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, min_new_tokens=None, do_sample=False, **options
    )


@torch.no_grad()
def _llama_step(llama: PreTrainedModel, ids: Tensor, cache: DynamicCache) -> Tensor:
    """Logits of the last position, `[B, V]`."""
    return llama(ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]


def _llama_stream(llama: PreTrainedModel, ids: Tensor, new: int) -> Iterator[Tensor]:
    """Greedy steps without what `generate` adds to each: the model of transformers alone."""
    cache = DynamicCache(config=llama.config)
    for _ in range(new):
        token = _llama_step(llama, ids, cache).argmax(-1)
        yield token
        ids = token[:, None]
