"""CacheStepper: fill a KV cache call by call, see what would be computed again without one, break it on purpose.

Every number is a run of a tiny MiniMind in float64: once over the whole text without a cache, and once for every way
to cut the prompt and every bug. The text is given, so that all runs read the same words and only the cache differs.
The ES module steps through these runs and draws them.
"""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate

import torch
from torch import Tensor
from traitlets import Bunch, Dict, Enum, Int, List, TraitError, Unicode, default, validate

from minimind_edu.device import one_thread
from minimind_edu.model.broken_caches import BUGS, read
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.layer_cache import KeyValue
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

WORDS: list[str] = [*"what was once read is kept so that it need not be read again".split()]
EARLIER: list[str] = [*"an earlier prompt".split()]  # what a cache that was not reset still holds
LONGEST_PROMPT = 8
IDENTICAL = 1e-9  # logits closer than this are the same numbers, summed in another order

Cut = tuple[int, int]  # words of the prompt, and of a chunk of it
CUTS: list[Cut] = [(prompt, chunk) for prompt in range(1, LONGEST_PROMPT + 1) for chunk in range(1, prompt + 1)]


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
    """Play the calls or make them one by one; with one of four bugs, or with none.

    Args:
        prompt_length: 1 to 8 of the text's words are the prompt; the others are decoded.
        chunk_size: how many words of the prompt go into one call, at most 8; more than the prompt holds is all of it.
        bug: `none`, `offset` (every call numbers its positions from 0), `again` (cached keys are rotated again),
            `stale` (an earlier prompt is still in the cache) or `square` (the mask forgets the past).
        calls: how many calls have been made.
        new_tokens: for how many new tokens the passes are counted, 1 to 500.

    Raises:
        TraitError: if a size is out of its range, or there are not so many calls when `calls` is set.
    """

    _repr_traits = ("prompt_length", "chunk_size", "bug", "calls", "new_tokens")

    prompt_length = Int(4, min=1, max=LONGEST_PROMPT).tag(sync=True)
    chunk_size = Int(2, min=1, max=LONGEST_PROMPT).tag(sync=True)
    bug = Enum(BUGS, default_value="none").tag(sync=True)
    calls = Int(3, min=0).tag(sync=True)
    new_tokens = Int(200, min=1, max=500).tag(sync=True)
    # what the package measured
    words = List(Unicode(), default_value=WORDS, read_only=True).tag(sync=True)
    earlier = List(Unicode(), default_value=EARLIER, read_only=True).tag(sync=True)
    differences = Dict(read_only=True).tag(sync=True)  # bug -> [prompt - 1][chunk - 1] -> one number for each call
    logit_spread = Finite(read_only=True).tag(sync=True)
    layer_row_bytes = Int(read_only=True).tag(sync=True)  # keys and values of one position in one layer
    num_layers = Int(read_only=True).tag(sync=True)

    @validate("calls")
    def _as_many_as_the_run_has(self, proposal: Bunch) -> int:
        number = len(call_sizes(self.prompt_length, self.chunk_size, len(WORDS)))
        if proposal["value"] > number:
            raise TraitError(f"this run has {number} calls, got calls={proposal['value']}")
        return proposal["value"]

    @default("differences")
    def _measured_differences(self) -> dict[str, list[list[list[float]]]]:
        return all_differences()

    @default("logit_spread")
    def _measured_spread(self) -> float:
        return float(uncached_logits().std())

    @default("num_layers")
    def _layers_of_the_model(self) -> int:
        return tiny_model().config.num_hidden_layers

    @default("layer_row_bytes")
    def _bytes_of_a_row(self) -> int:
        held = tiny_model()(_ids(WORDS), use_cache=True).past_key_values
        return held.num_bytes() // (len(held) * len(WORDS))

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
            ("bytes of the cache per position", f"{self.num_layers * self.layer_row_bytes:,}"),
        ]
        for bug in BUGS:
            parted = self.parting(bug)
            result = (
                "the same logits in every call" if parted is None else f"first in call {parted[0]}, by {parted[1]:.3g}"
            )
            rows.append((f"bug: {bug}" if bug != "none" else "no bug", result))
        return (
            f"A prompt of {self.prompt_length} tokens in chunks of {self.chunk_size}, then {self.new_tokens} new "
            "tokens: a right cache changes no logit, and the four bugs do not all show in the same call.",
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
        rope_theta=100.0,  # all four pairs of a head rotate visibly within the text
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
@one_thread()
@torch.no_grad()
def uncached_logits() -> Tensor:
    """The logits of the whole text in one pass: `[len(WORDS), V]`, float64."""
    return tiny_model()(_ids(WORDS)).logits[0]


@cache
@one_thread()
@torch.no_grad()
def cached_logits(bug: str) -> dict[Cut, Tensor]:
    """The same logits from a cache, call by call, with one of BUGS: of every cut `[len(WORDS), V]`, float64.

    Cuts whose next calls start at the same word and have the same size make them together, as a batch.
    """
    model = tiny_model()
    left = read(model, _ids(EARLIER))[1] if bug == "stale" else None
    kept: dict[Cut, list[KeyValue] | None] = dict.fromkeys(CUTS, left)  # a pair for each layer
    logits: dict[Cut, list[Tensor]] = {cut: [] for cut in CUTS}
    for (start, size), cuts in _calls_in_common().items():
        ids = _ids(WORDS[start : start + size]).expand(len(cuts), size)
        of_cuts, pairs = read(model, ids, _joined([kept[cut] for cut in cuts]), bug)
        for row, cut in enumerate(cuts):
            logits[cut].append(of_cuts[row])  # [S, V]
            kept[cut] = [(key[row : row + 1], value[row : row + 1]) for key, value in pairs]
    return {cut: torch.cat(parts) for cut, parts in logits.items()}


def _calls_in_common() -> dict[tuple[int, int], list[Cut]]:
    """(first word, size) of a call -> the cuts that make it, in the order of the first words."""
    calls: dict[tuple[int, int], list[Cut]] = {}
    for cut in CUTS:
        sizes = call_sizes(*cut, len(WORDS))
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False):  # the last start is the end
            calls.setdefault((start, size), []).append(cut)
    return dict(sorted(calls.items()))


def _joined(caches: Sequence[list[KeyValue] | None]) -> list[KeyValue] | None:
    """Caches of equal length and one row each, as one of many rows; None if they are empty."""
    filled = [pairs for pairs in caches if pairs is not None]
    if not filled:
        return None
    layers = zip(*filled, strict=True)
    return [(torch.cat([key for key, _ in of]), torch.cat([value for _, value in of])) for of in layers]


def _differences(cut: Cut, bug: str) -> list[float]:
    """For every call, the largest distance of its logits from the uncached ones, to three significant digits."""
    gaps = (cached_logits(bug)[cut] - uncached_logits()).abs().amax(-1)  # [positions]
    largest = [float(gap.max()) for gap in gaps.split(call_sizes(*cut, len(WORDS)))]
    return [float(f"{gap:.3g}") if gap > IDENTICAL else 0.0 for gap in largest]


@cache
def all_differences() -> dict[str, list[list[list[float]]]]:
    """Of every bug, prompt and chunk, the differences of all calls."""
    return {
        bug: [
            [_differences((prompt, chunk), bug) for chunk in range(1, prompt + 1)]
            for prompt in range(1, LONGEST_PROMPT + 1)
        ]
        for bug in BUGS
    }
