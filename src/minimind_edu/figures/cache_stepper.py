"""CacheStepper: fill a KV cache call by call, beside what no cache would compute again, and break it on purpose.

Every number is a run of a tiny MiniMind in float64: once over the whole text without a cache, and once for every way
to cut the prompt and every bug. The text is given, so that all runs read the same words and only the cache differs.
The ES module steps through these runs and draws them.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from traitlets import Dict, Enum, Float, Int, List, Unicode

from minimind_edu.attention import attention
from minimind_edu.block import MiniMindBlock
from minimind_edu.config import MiniMindConfig
from minimind_edu.figures._base import Figure
from minimind_edu.layer_cache import CatCache
from minimind_edu.masks import causal_mask
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.rope import apply_rotary_pos_emb

WORDS = "what was once read is kept so that it need not be read again".split()
EARLIER = "an earlier prompt".split()  # what a cache that was not reset still holds
BUGS = ("none", "offset", "again", "stale", "square")
LONGEST_PROMPT = 8
IDENTICAL = 1e-9  # logits closer than this are the same numbers, summed in another order

Tables = tuple[Tensor, Tensor]  # cos and sin, [S, D] each


def token_passes(prompt: int, new: int) -> tuple[int, int]:
    """How many times a token goes through the model to continue a prompt: without a cache, and with one.

    Without, call i reads the prompt and the i tokens chosen so far; with, every token is read once. The last token
    chosen is never read in either case.

    Raises:
        ValueError: if one of them is not at least 1.
    """
    if min(prompt, new) < 1:
        raise ValueError(f"a prompt and a continuation hold at least 1 token each, got {prompt} and {new}")
    return new * prompt + new * (new - 1) // 2, prompt + new - 1


def call_sizes(prompt: int, chunk: int, total: int) -> list[int]:
    """New positions of every call: the prompt in chunks, then the rest of `total` one by one."""
    prefill = [min(chunk, prompt - start) for start in range(0, prompt, chunk)]
    return prefill + [1] * (total - prompt)


class CacheStepper(Figure):
    """Prefill a chunk, decode one, reset; with one of four bugs, or with none.

    Args:
        prompt_length: 1 to 8 of the text's words are the prompt; the others are decoded.
        chunk_size: how many words of the prompt go into one call, at most 8; more than the prompt holds is all of it.
        bug: `none`, `offset` (every call numbers its positions from 0), `again` (cached keys are turned again),
            `stale` (an earlier prompt is still in the cache) or `square` (the mask forgets the past).
        calls: how many calls have been made.
        new_tokens: for how many new tokens the passes are counted, 1 to 500.

    Raises:
        ValueError: if a size is out of its range.
    """

    _module = "cache_stepper"
    _repr_traits = ("prompt_length", "chunk_size", "bug", "calls", "new_tokens")

    prompt_length = Int(4).tag(sync=True)
    chunk_size = Int(2).tag(sync=True)
    bug = Enum(BUGS, default_value="none").tag(sync=True)
    calls = Int(3).tag(sync=True)
    new_tokens = Int(200).tag(sync=True)
    # what the package measured; nothing below is meant to be set
    words = List(Unicode(), default_value=WORDS).tag(sync=True)
    earlier = List(Unicode(), default_value=EARLIER).tag(sync=True)
    differences = Dict().tag(sync=True)  # bug -> [prompt - 1][chunk - 1] -> one number a call
    logit_spread = Float().tag(sync=True)
    layer_row_bytes = Int().tag(sync=True)  # keys and values of one position in one layer
    num_layers = Int().tag(sync=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for name, largest in [("prompt_length", LONGEST_PROMPT), ("chunk_size", LONGEST_PROMPT), ("new_tokens", 500)]:
            if not 1 <= getattr(self, name) <= largest:
                raise ValueError(f"{name} must be from 1 to {largest}, got {getattr(self, name)}")
        number = len(call_sizes(self.prompt_length, self.chunk_size, len(WORDS)))
        if not 0 <= self.calls <= number:
            raise ValueError(f"this run has {number} calls, got calls={self.calls}")
        self.differences = _all_differences()
        self.logit_spread = float(uncached_logits().std())
        held = tiny_model()(_ids(WORDS), use_cache=True).past_key_values
        self.num_layers = len(held)
        self.layer_row_bytes = held.num_bytes() // (len(held) * len(WORDS))

    def parting(self, bug: str) -> tuple[int, float] | None:
        """The first call whose logits differ from the uncached run, counted from 1, and by how much; or None."""
        for call, difference in enumerate(self._run(bug), start=1):
            if difference > IDENTICAL:
                return call, difference
        return None

    def _run(self, bug: str) -> list[float]:
        chunk = min(self.chunk_size, self.prompt_length)
        return self.differences[bug][self.prompt_length - 1][chunk - 1]

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        without, with_cache = token_passes(self.prompt_length, self.new_tokens)
        rows = [
            ("token passes without a cache", f"{without:,}"),
            ("token passes with a cache", f"{with_cache:,}"),
            ("bytes of the cache a position", f"{self.num_layers * self.layer_row_bytes:,}"),
        ]
        for bug in BUGS:
            parted = self.parting(bug)
            told = (
                "the same logits in every call" if parted is None else f"parts in call {parted[0]}, by {parted[1]:.3g}"
            )
            rows.append((f"bug: {bug}" if bug != "none" else "no bug", told))
        return (
            f"A prompt of {self.prompt_length} tokens in chunks of {self.chunk_size}, then {self.new_tokens} new "
            "tokens: a sound cache changes no logit, each bug parts from the uncached run at a call of its own.",
            rows,
        )


@cache
def tiny_model() -> MiniMindForCausalLM:
    """Two layers, 32 wide, four query heads and two key/value heads, in float64; weights from whole numbers."""
    config = MiniMindConfig(
        vocab_size=len(_vocabulary()),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        rope_theta=100.0,  # all four pairs of a head turn visibly within the text
    )
    with torch.random.fork_rng(devices=[]):  # a figure must not move a notebook's random numbers
        model = MiniMindForCausalLM(config).double().eval()
    with torch.no_grad():
        for seed, weight in enumerate(model.parameters(), start=1):
            if weight.dim() == 2:
                weight.copy_(_scattered(seed, *weight.shape))
    return model


def _scattered(seed: int, rows: int, columns: int) -> Tensor:
    """Numbers without a random generator, the same on every machine: quadratic residues, of variance 1 / columns."""
    n = torch.arange(rows * columns).view(rows, columns)
    uniform = (n * n * (seed + 2) + n * 389 + seed * 97) % 1013 / 506 - 1.0
    return uniform.double() * (3 / columns) ** 0.5


def _vocabulary() -> list[str]:
    return list(dict.fromkeys(EARLIER + WORDS))


def _ids(words: list[str]) -> Tensor:
    vocabulary = _vocabulary()
    return torch.tensor([[vocabulary.index(word) for word in words]])  # [1, S]


@cache
def uncached_logits() -> Tensor:
    """The logits of the whole text in one pass: `[len(WORDS), V]`, float64."""
    with torch.no_grad():
        return tiny_model()(_ids(WORDS)).logits[0]


@cache
def cached_logits(prompt: int, chunk: int, bug: str) -> Tensor:
    """The same logits from a cache, call by call, with one of BUGS: `[len(WORDS), V]`, float64."""
    caches = [CatCache() for _ in tiny_model().model.layers]
    with torch.no_grad():
        if bug == "stale":
            _call(_ids(EARLIER), caches, bug)
        pieces = _ids(WORDS).split(call_sizes(prompt, chunk, len(WORDS)), dim=1)
        return torch.cat([_call(piece, caches, bug) for piece in pieces])


def _call(ids: Tensor, caches: list[CatCache], bug: str) -> Tensor:
    """One call of the model on `[1, S]` new ids: logits `[S, V]`."""
    model = tiny_model()
    start = 0 if bug == "offset" else caches[0].length
    rows = slice(start, start + ids.shape[1])
    tables = model.model.freqs_cos[rows], model.model.freqs_sin[rows]
    x = model.model.embed_tokens(ids)  # [1, S] -> [1, S, E]
    for layer, kept in zip(model.model.layers, caches, strict=True):
        if bug == "again" and kept.length:
            _turn_again(kept)
        x = _block(layer, x, tables, kept, bug)
    return model.lm_head(model.model.norm(x))[0]


def _block(layer: MiniMindBlock, x: Tensor, tables: Tables, kept: CatCache, bug: str) -> Tensor:
    """One block with the attention written out, since no module of the package would take a wrong mask."""
    q, k, v = layer.self_attn.project(layer.input_layernorm(x), *tables)
    k, v = kept.append(k, v)
    length, held = q.shape[1], k.shape[1]
    mask = causal_mask(length, held)
    if bug == "square" and length > 1:
        mask = torch.ones_like(mask).tril()  # the triangle of S x S, from the upper left corner
    output, _ = attention(q, k, v, mask)
    x = x + layer.self_attn.o_proj(output.flatten(2))
    return x + layer.mlp(layer.post_attention_layernorm(x))


def _turn_again(kept: CatCache) -> None:
    """Turn the cached keys for their positions once more, as code does that applies RoPE after joining the cache."""
    model = tiny_model().model
    tables = model.freqs_cos[: kept.length], model.freqs_sin[: kept.length]
    kept.key, _ = apply_rotary_pos_emb(kept.key, kept.key, *tables)


def _differences(prompt: int, chunk: int, bug: str) -> list[float]:
    """For every call the largest distance of its logits from the uncached ones, to three significant digits."""
    gaps = (cached_logits(prompt, chunk, bug) - uncached_logits()).abs().amax(-1)  # [positions]
    largest = [float(gap.max()) for gap in gaps.split(call_sizes(prompt, chunk, len(WORDS)))]
    return [float(f"{gap:.3g}") if gap > IDENTICAL else 0.0 for gap in largest]


@cache
def _all_differences() -> dict[str, list[list[list[float]]]]:
    return {
        bug: [
            [_differences(prompt, chunk, bug) for chunk in range(1, prompt + 1)]
            for prompt in range(1, LONGEST_PROMPT + 1)
        ]
        for bug in BUGS
    }
