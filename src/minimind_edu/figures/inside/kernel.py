"""A model in the kernel, for the views of the page: the answers of worker.js, computed by torch on the model's device.

A text is read as a whole: on the way the streams and what the heads give are kept, and silent parts become zeros.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from minimind_edu.block import MiniMindBlock
from minimind_edu.device import device_of
from minimind_edu.feed_forward import FeedForward
from minimind_edu.masks import causal_mask
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEFeedForward, RouterOutput
from minimind_edu.sampling import Sampling

TOLD = 24  # tokens that are told of a position, as in reading.js
LATER = 3  # tokens that are told of each block
STRONGEST, LIFTED = 6, 5  # neurons, and tokens of each
Send = Callable[[dict[str, Any], list[bytes]], None]


@dataclass
class Read:
    """What is kept of a text of S tokens, from a block on: the lists have an entry for each block of those."""

    streams: list[Tensor]  # [S, E], one more: before the first and after each
    middles: list[Tensor]  # [S, E], after attention
    heads: list[Tensor]  # [S, H * D]
    weights: list[Tensor]  # [H, S, S] of bytes: 255 times the root of a weight
    routes: list[RouterOutput | None]


@torch.no_grad()
def read(model: MiniMindForCausalLM, x: Tensor, silenced: Collection[str], first: int = 0) -> Read:
    """Read a text from its streams [S, E] before block `first` on; silenced: "layer.head" and "layer.feed"."""
    body, length, found = model.model, len(x), Read([x], [], [], [], [])
    positions = body.freqs_cos[:length], body.freqs_sin[:length]
    mask = causal_mask(length, length, x.device)
    for index in range(first, len(body.layers)):
        layer = cast(MiniMindBlock, body.layers[index])

        def silence(_: Any, given: tuple[Tensor], index: int = index) -> tuple[Tensor]:
            heads = given[0].clone().unflatten(-1, (model.config.num_attention_heads, -1))  # [1, S, H, D]
            for head in range(heads.shape[2]):
                if f"{index}.{head}" in silenced:
                    heads[:, :, head] = 0
            found.heads.append(heads.flatten(2)[0])
            return (heads.flatten(2),)

        hook = layer.self_attn.o_proj.register_forward_pre_hook(silence)
        try:
            normed = layer.input_layernorm(x[None])
            attended, weights = layer.self_attn(normed, positions, mask=mask, return_weights=True)
        finally:
            hook.remove()
        middle = x + attended[0]
        fed, routed = layer._feed(layer.post_attention_layernorm(middle[None]))
        x = middle if f"{index}.feed" in silenced else middle + fed[0]
        found.streams.append(x)
        found.middles.append(middle)
        found.weights.append((cast(Tensor, weights)[0].float().sqrt() * 255).round().to(torch.uint8))
        found.routes.append(routed)
    return found


class Kernel:
    """Answers the messages that worker.js answers in a page: `hear` gets one, `send` what is told, with its bytes."""

    def __init__(self, model: MiniMindForCausalLM, send: Send):
        self.model, self.send = model, send
        self.ids: list[int] = []
        self.silenced: set[str] = set()
        self.kept: Read | None = None

    def hear(self, message: dict[str, Any]) -> None:
        """Answer a message; what fails is told, too."""
        try:
            {"read": self._read, "look": self._look, "trial": self._trial}[message["do"]](message)
        except Exception as error:  # whatever it is, the reader is at the page and not at the kernel's log
            self.send({"did": "fail", "key": message.get("key"), "message": str(error)}, [])

    def _embedded(self, ids: Sequence[int]) -> Tensor:
        with torch.no_grad():
            return self.model.model.embed_tokens(torch.tensor(ids, device=device_of(self.model)))

    @torch.no_grad()
    def _logits(self, streams: Tensor) -> Tensor:
        """Streams [..., E] after the last block -> [..., V]."""
        return self.model.lm_head(self.model.model.norm(streams)).float()

    def _read(self, message: dict[str, Any]) -> None:
        ids, silenced = message["ids"], set(message["silenced"])
        same = 0
        if silenced == self.silenced and self.kept:
            pairs = enumerate(zip(ids, self.ids, strict=False))
            same = next((at for at, (one, other) in pairs if one != other), min(len(ids), len(self.ids)))
        self.kept = read(self.model, self._embedded(ids), silenced)
        self.ids, self.silenced = ids, silenced
        changed = range(max(0, same - 1), len(ids))  # another token follows the last one that stays
        self.send({"did": "read", "run": message["run"], "told": [self._told(at) for at in changed]}, [])
        self.send({"did": "ready", "run": message["run"]}, [])

    def _told(self, at: int) -> dict[str, Any]:
        kept = cast(Read, self.kept)
        p = self._logits(kept.streams[-1][at]).softmax(-1)
        following = None
        if at + 1 < len(self.ids):
            id = self.ids[at + 1]
            following = {"id": id, "probability": p[id].item(), "rank": 1 + int((p > p[id]).sum())}
        routes = [route and _route(route, at) for route in kept.routes]
        entropy = -torch.special.xlogy(p, p).sum().item()
        return {"at": at, "top": _largest(p, TOLD), "entropy": entropy, "next": following, "routes": routes}

    def _look(self, message: dict[str, Any]) -> None:
        looks = {
            "lens": self.lens, "wrote": self.wrote, "neurons": self.neurons, "draw": self.draw, "beside": self.beside,
            "stream": self.stream, "maps": self.maps,
        }  # fmt: skip
        place = {name: value for name, value in message.items() if name not in ("do", "key", "what")}
        answer = looks[message["what"]](**place) if place.get("at", 0) < len(self.ids) else None
        buffers = []
        if isinstance(answer, Tensor):
            answer, buffers = "in bytes", [_bytes(answer)]
        self.send({"did": "look", "key": message["key"], "answer": answer}, buffers)

    def lens(self, at: int) -> list[list[list[float]]]:
        """What each block would say after a position."""
        streams = torch.stack([one[at] for one in cast(Read, self.kept).streams[1:]])
        return [_largest(p, LATER) for p in self._logits(streams).softmax(-1)]

    @torch.no_grad()
    def wrote(self, at: int, token: int, against: int | None = None) -> dict[str, Any]:
        """As in insight.js: the logit of a token as a sum over embedding, heads and feed-forward parts."""
        kept, config, matrix = cast(Read, self.kept), self.model.config, self.model.lm_head.weight.float()
        final = kept.streams[-1][at].float()
        other = matrix.mean(0) if against is None else matrix[against]
        scale = (final.pow(2).mean() + config.rms_norm_eps).rsqrt()
        direction = (matrix[token] - other) * self.model.model.norm.weight.float() * scale  # [E]
        blocks = []
        for index, (heads, middle, output) in enumerate(zip(kept.heads, kept.middles, kept.streams[1:], strict=True)):
            out = cast(MiniMindBlock, self.model.model.layers[index]).self_attn.o_proj.weight.float()
            pushes = (heads[at].float() * (out.T @ direction)).view(config.num_attention_heads, -1).sum(-1)
            feed = (output[at] - middle[at]).float() @ direction
            blocks.append({"heads": pushes.tolist(), "feed": feed.item()})
        own = (kept.streams[0][at].float() @ direction).item()
        return {"logit": (final @ direction).item(), "embedding": own, "blocks": blocks}

    @torch.no_grad()
    def neurons(self, at: int, layer: int) -> dict[str, Any]:
        """As in insight.js: the neurons that write most in a block, and the tokens that each lifts."""
        kept, part = cast(Read, self.kept), cast(MiniMindBlock, self.model.model.layers[layer])
        route, network, expert = kept.routes[layer], part.mlp, None
        if isinstance(network, MoEFeedForward):
            expert = int(cast(RouterOutput, route).experts[at, 0])
            network = cast(FeedForward, network.experts[expert])
        normed = part.post_attention_layernorm(kept.middles[layer][at])
        hidden = torch.nn.functional.silu(network.gate_proj(normed)) * network.up_proj(normed)  # [I]
        down = network.down_proj.weight  # [E, I]
        strongest = []
        for neuron in (hidden.abs() * down.norm(dim=0)).topk(min(STRONGEST, len(hidden))).indices.tolist():
            written = down[:, neuron] * self.model.model.norm.weight * hidden[neuron].sign()
            lifted = (self.model.lm_head.weight @ written).topk(LIFTED).indices.tolist()
            strongest.append({"neuron": neuron, "activation": hidden[neuron].item(), "tokens": lifted})
        return {"count": len(hidden), "expert": expert, "strongest": strongest}

    def stream(self, at: int) -> Tensor:
        """The streams [L + 1, E] and the middles [L, E] of a position, one after the other."""
        kept = cast(Read, self.kept)
        return torch.stack([one[at] for one in (*kept.streams, *kept.middles)]).float()

    def maps(self, layer: int, **place: int) -> Tensor:
        """What the heads of a block read at each position `from` one on: [H, T] bytes for T positions, joined."""
        weights = cast(Read, self.kept).weights[layer]
        return torch.cat([weights[:, at, : at + 1].flatten() for at in range(place["from"], len(self.ids))])

    def draw(self, at: int, settings: dict[str, float]) -> int:
        """A token after a position, drawn."""
        options = Sampling(
            do_sample=True,
            temperature=settings["temperature"],
            top_k=int(settings["topK"]) or None,
            top_p=settings["topP"],
        )
        return int(options.choose(self._logits(cast(Read, self.kept).streams[-1][at])[None]))

    def beside(self, ids: Sequence[int], silenced: Sequence[str]) -> list[list[float]]:
        """The likeliest tokens after another text."""
        streams = read(self.model, self._embedded(ids), set(silenced)).streams
        return _largest(self._logits(streams[-1][-1]).softmax(-1), TOLD)

    def _trial(self, message: dict[str, Any]) -> None:
        for layer, head, without in self.trial(message["at"], message["token"]):
            self.send({"did": "trial", "run": message["run"], "layer": layer, "head": head, "without": without}, [])

    def trial(self, at: int, token: int) -> Iterator[tuple[int, int, float]]:
        """(layer, head, ln p of a token after a position without this head), from the last block to the first."""
        for layer in reversed(range(len(self.model.model.layers))):
            for head in range(self.model.config.num_attention_heads):
                key = f"{layer}.{head}"
                if key not in self.silenced:
                    before = cast(Read, self.kept).streams[layer][: at + 1]
                    final = read(self.model, before, self.silenced | {key}, layer).streams[-1][-1]
                    yield layer, head, self._logits(final).log_softmax(-1)[token].item()


def _bytes(tensor: Tensor) -> bytes:
    return tensor.contiguous().cpu().numpy().tobytes()


def _largest(values: Tensor, k: int) -> list[list[float]]:
    """The k largest as [index, value], the largest first."""
    found = values.topk(min(k, len(values)))
    return [list(pair) for pair in zip(found.indices.tolist(), found.values.tolist(), strict=True)]


def _route(route: RouterOutput, at: int) -> dict[str, Any]:
    return {"probabilities": route.probabilities[at].tolist(), "chosen": route.experts[at].tolist()}
