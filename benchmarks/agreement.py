"""What must hold exactly, or nearly: the bytes of the cache, the tokens, the logits. No clock runs here."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks import notes_way
from benchmarks.bench import Bench
from benchmarks.peers import llama_twin, random_model
from benchmarks.scenarios import Scenario
from minimind_edu.measure.costs import cache_bytes_per_position
from minimind_edu.model.for_comparison import CatCache
from minimind_edu.model.kv_cache import KVCache


@dataclass(frozen=True)
class CacheBytes(Scenario):
    """Bytes of the tensors that hold keys and values, counted where they are, against 2 L B T K D itemsize."""

    kind = "cache bytes"
    batch: int = 8
    positions: int = 640

    @torch.no_grad()
    def measure(self, bench: Bench) -> dict[str, Any]:
        config = bench.models[self.size]
        model = random_model(config).to(bench.device, bench.dtype).eval()
        ids = bench.prompts(self.size, self.batch, self.positions)
        cats = [CatCache() for _ in model.model.layers]
        notes_way.next_logits(model, ids, cats)
        ours = model(ids, use_cache=True, logits_to_keep=1).past_key_values
        theirs = llama_twin(model)(ids, use_cache=True, logits_to_keep=1).past_key_values
        kept = {
            "plain": [tensor for pair in ours for tensor in pair],
            "notes": [tensor for cat in cats for tensor in (cat.key, cat.value)],
            "transformers": [tensor for layer in theirs.layers for tensor in (layer.keys, layer.values)],
        }  # fmt: skip
        per_position = cache_bytes_per_position(config, bench.dtype.itemsize)
        return {
            "formula": self.batch * self.positions * per_position,
            "bytes": {name: sum(t.numel() * t.element_size() for t in ts) for name, ts in kept.items()},
        }  # fmt: skip


@dataclass(frozen=True)
class Agreement(Scenario):
    """Whether everybody chooses the same tokens, and how far logits lie apart.

    Logits of a whole text are compared as they are, those of one token after the other relative to the largest.
    """

    kind = "agreement"
    prompt: int = 32
    new: int = 96
    batch: int = 1
    peers: tuple[str, ...] = ("transformers static", "notes", "plain", "compiled")

    @property
    def name(self) -> str:
        return f"{super().name}, batch {self.batch}"

    @torch.no_grad()
    def measure(self, bench: Bench) -> dict[str, Any]:
        ids = bench.prompts(self.size, self.batch, self.prompt)
        peers, text = bench.peers(self.size), None
        for name in tqdm(("transformers", *self.peers), desc=self.name, unit="peer", disable=None):
            tokens = peers[name].generate(ids, self.new)
            if text is None:
                text, same = tokens, {}
            else:
                same[name] = (tokens == text)[:, self.prompt :].float().mean().item()
        model = random_model(bench.models[self.size]).to(bench.device, bench.dtype).eval()
        expected = llama_twin(model).eval()(text).logits  # [B, T, V]
        largest = expected.abs().max().item()
        cached = {
            name: apart(self._one_by_one(peers[name].decoder, text), expected[:, self.prompt - 1 :])
            for name in self.peers
            if peers[name].decoder
        }
        return {
            "same_tokens": same,
            "full_logits": apart(model(text).logits, expected),
            "cached_logits": {name: difference / largest for name, difference in cached.items()},
            "largest_logit": largest,
        }  # fmt: skip

    def _one_by_one(self, decoder: Any, text: Tensor) -> Tensor:
        """Logits `[B, new + 1, V]` of the prompt's end and of every token after it, read one at a time."""
        cache, logits, start = KVCache(decoder.config.num_hidden_layers), [], 0
        for end in range(self.prompt, text.shape[1] + 1):
            out = decoder(text[:, start:end], past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache, start = out.past_key_values, end
            logits.append(out.logits)
        return torch.cat(logits, dim=1)


def apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference."""
    return (ours - theirs).abs().max().item()
