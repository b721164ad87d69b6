"""A model in the kernel, for the views of the page: the answers of worker.js, computed by torch on the model's device.

Of each token that was read is kept what passes through the blocks, beside its keys and values, as reading.js does: what
is asked about a part costs no second reading, and of another text only what differs is read. Silent parts become zeros
on the way.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.layer_cache import BufferCache
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.moe import MoEFeedForward, RouterOutput
from minimind_edu.model.sampling import Sampling

TOLD = 24  # tokens that are told of a position, as in reading.js
LATER = 3  # tokens that are told of each block
STRONGEST, LIFTED = 6, 5  # neurons, and tokens of each
Send = Callable[[dict[str, Any], list[bytes]], None]


class Passed(NamedTuple):
    """What S tokens of T, the last ones, left in a block."""

    middle: Tensor  # [S, E], the stream after attention
    output: Tensor  # [S, E]
    heads: Tensor  # [S, H * D]
    weights: Tensor  # [S, H, T] of bytes: 255 times the root of a weight
    route: RouterOutput | None


@torch.no_grad()
def passing(
    model: MiniMindForCausalLM, x: Tensor, silenced: Collection[str], first: int, caches: Sequence[BufferCache]
) -> Iterator[Passed]:
    """Read tokens from their streams [S, E] before block `first` on, after those that the caches hold.

    silenced: "layer.head" and "layer.feed". caches: of each block; they grow by these tokens.
    """
    body = model.model
    for index in range(first, len(body.layers)):
        layer, start = cast(MiniMindBlock, body.layers[index]), caches[index].length
        positions = body.freqs_cos[start : start + len(x)], body.freqs_sin[start : start + len(x)]
        seen = []

        def silence(_: Any, given: tuple[Tensor], index: int = index, seen: list[Tensor] = seen) -> tuple[Tensor]:
            heads = given[0].clone().unflatten(-1, (model.config.num_attention_heads, -1))  # [1, S, H, D]
            for head in range(heads.shape[2]):
                if f"{index}.{head}" in silenced:
                    heads[:, :, head] = 0
            seen.append(heads.flatten(2)[0])
            return (heads.flatten(2),)

        hook = layer.self_attn.o_proj.register_forward_pre_hook(silence)
        try:
            attended, weights = layer.self_attn(layer.input_layernorm(x[None]), positions, caches[index], None, True)
        finally:
            hook.remove()
        middle = x + attended[0]
        fed, route = layer._feed(layer.post_attention_layernorm(middle[None]))
        x = middle if f"{index}.feed" in silenced else middle + fed[0]
        rooted = (cast(Tensor, weights)[0].float().sqrt() * 255).round().to(torch.uint8)  # [H, S, T]
        yield Passed(middle, x, seen[0], rooted.transpose(0, 1), route)


@dataclass
class Kept:
    """What is kept of a token: the lists have an entry for each block."""

    streams: list[Tensor]  # [E], one more: before the first and after each
    middles: list[Tensor] = field(default_factory=list)  # [E]
    heads: list[Tensor] = field(default_factory=list)  # [H * D]
    weights: list[Tensor] = field(default_factory=list)  # [H, T] of bytes
    routes: list[dict[str, Any] | None] = field(default_factory=list)


class Kernel:
    """Answers the messages that worker.js answers in a page: `hear` gets one, `send` what is told, with its bytes."""

    def __init__(self, model: MiniMindForCausalLM, send: Send):
        self.model, self.send = model, send
        self._forget()

    def _forget(self) -> None:
        self.ids: list[int] = []
        self.silenced: set[str] = set()
        self.kept: list[Kept] = []
        self.caches = self._new_caches()

    def _new_caches(self) -> list[BufferCache]:
        return [BufferCache() for _ in self.model.model.layers]

    def hear(self, message: dict[str, Any]) -> None:
        """Answer a message; what fails is told, too."""
        try:
            {"read": self._read, "look": self._look}[message["do"]](message)
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
        ids, known = message["ids"], message["known"]
        try:
            self._become(ids, set(message["silenced"]))
        except Exception:
            self._forget()  # it may have been read in part
            raise
        positions = [{"at": known - 1, "next": self._following(known - 1, self._next(known - 1))}] if known else []
        positions += [self._told(at) for at in range(known, len(ids))]
        self.send({"did": "read", "run": message["run"], "told": positions}, [])
        self.send({"did": "ready", "run": message["run"]}, [])

    def _become(self, ids: list[int], silenced: set[str]) -> None:
        """Read this text, and no more than that takes: as in reading.js."""
        pairs = enumerate(zip(ids, self.ids, strict=False))
        same = next((at for at, (now, before) in pairs if now != before), min(len(ids), len(self.ids)))
        first = min((int(key.partition(".")[0]) for key in silenced ^ self.silenced), default=len(self.caches))
        del self.kept[same:]
        self.ids, self.silenced = ids, silenced
        self.caches = [_of_first(cache, same) for cache in self.caches[:first]] + self._new_caches()[first:]
        if same and first < len(self.caches):
            self._keep(self.kept, torch.stack([token.streams[first] for token in self.kept]), first)
        if same < len(ids):
            x = self._embedded(ids[same:])
            new = [Kept([stream]) for stream in x]
            self._keep(new, x, 0)
            self.kept += new

    def _keep(self, tokens: list[Kept], x: Tensor, first: int) -> None:
        """Read on, and keep of these tokens what passes from block `first` on; x: their streams [S, E] before it."""
        for token in tokens:
            del token.streams[first + 1 :]
            for parts in (token.middles, token.heads, token.weights, token.routes):
                del parts[first:]
        for passed in passing(self.model, x, self.silenced, first, self.caches):
            start = passed.weights.shape[2] - len(tokens)
            for i, token in enumerate(tokens):
                token.streams.append(passed.output[i])
                token.middles.append(passed.middle[i])
                token.heads.append(passed.heads[i])
                token.weights.append(passed.weights[i, :, : start + i + 1])
                token.routes.append(passed.route and _route(passed.route, i))

    def _next(self, at: int) -> Tensor:
        """The probabilities [V] of what comes after a position."""
        return self._logits(self.kept[at].streams[-1]).softmax(-1)

    def _following(self, at: int, p: Tensor) -> dict[str, Any] | None:
        """How much the token that follows a position was expected there, by the probabilities [V] of all."""
        if at + 1 == len(self.ids):
            return None
        id = self.ids[at + 1]
        return {"id": id, "probability": p[id].item(), "rank": 1 + int((p > p[id]).sum())}

    def _told(self, at: int) -> dict[str, Any]:
        p, routes = self._next(at), self.kept[at].routes
        entropy = -torch.special.xlogy(p, p).sum().item()
        following = self._following(at, p)
        return {"at": at, "top": _largest(p, TOLD), "entropy": entropy, "next": following, "routes": routes}

    def _look(self, message: dict[str, Any]) -> None:
        looks = {
            "lens": self.lens, "wrote": self.wrote, "neurons": self.neurons, "draw": self.draw, "beside": self.beside,
            "stream": self.stream, "maps": self.maps, "without": self.without,
        }  # fmt: skip
        place = {name: value for name, value in message.items() if name not in ("do", "key", "what")}
        answer = looks[message["what"]](**place) if place.get("at", 0) < len(self.ids) else None
        buffers = []
        if isinstance(answer, Tensor):
            answer, buffers = "in bytes", [_bytes(answer)]
        self.send({"did": "look", "key": message["key"], "answer": answer}, buffers)

    def lens(self, at: int) -> list[list[list[float]]]:
        """What each block would say after a position."""
        streams = torch.stack(self.kept[at].streams[1:])
        return [_largest(p, LATER) for p in self._logits(streams).softmax(-1)]

    @torch.no_grad()
    def wrote(self, at: int, token: int, against: int | None = None) -> dict[str, Any]:
        """As in insight.js: the logit of a token as a sum over embedding, heads and feed-forward parts."""
        kept, config, matrix = self.kept[at], self.model.config, self.model.lm_head.weight.float()
        final = kept.streams[-1].float()
        other = matrix.mean(0) if against is None else matrix[against]
        scale = (final.pow(2).mean() + config.rms_norm_eps).rsqrt()
        direction = (matrix[token] - other) * self.model.model.norm.weight.float() * scale  # [E]
        blocks = []
        for index, (heads, middle, output) in enumerate(zip(kept.heads, kept.middles, kept.streams[1:], strict=True)):
            out = cast(MiniMindBlock, self.model.model.layers[index]).self_attn.o_proj.weight.float()
            pushes = (heads.float() * (out.T @ direction)).view(config.num_attention_heads, -1).sum(-1)
            feed = (output - middle).float() @ direction
            blocks.append({"heads": pushes.tolist(), "feed": feed.item()})
        embedding = (kept.streams[0].float() @ direction).item()
        return {"logit": (final @ direction).item(), "embedding": embedding, "blocks": blocks}

    @torch.no_grad()
    def neurons(self, at: int, layer: int) -> dict[str, Any]:
        """As in insight.js: the neurons that write most in a block, and the tokens that each lifts."""
        kept, part = self.kept[at], cast(MiniMindBlock, self.model.model.layers[layer])
        route, network, expert = kept.routes[layer], part.mlp, None
        if isinstance(network, MoEFeedForward):
            expert = cast(dict[str, Any], route)["chosen"][0]
            network = cast(FeedForward, network.experts[expert])
        normed = part.post_attention_layernorm(kept.middles[layer])
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
        return torch.stack([*self.kept[at].streams, *self.kept[at].middles]).float()

    def maps(self, layer: int, **place: int) -> Tensor:
        """What the heads of a block read at each position `from` one on: [H, T] bytes for T positions, joined."""
        return torch.cat([token.weights[layer].flatten() for token in self.kept[place["from"] :]])

    def draw(self, at: int, settings: dict[str, float]) -> int:
        """A token after a position, drawn."""
        options = Sampling(
            do_sample=True,
            temperature=settings["temperature"],
            top_k=int(settings["topK"]),
            top_p=settings["topP"],
        )
        return int(options.choose(self._logits(self.kept[at].streams[-1])[None]))

    def beside(self, ids: Sequence[int], silenced: Sequence[str]) -> list[list[float]]:
        """The likeliest tokens after another text, or after the beginning of this one."""
        if set(silenced) == self.silenced and ids == self.ids[: len(ids)]:
            final = self.kept[len(ids) - 1].streams[-1]
        else:
            final = self._final(self._embedded(ids), set(silenced), 0)
        return _largest(self._logits(final).softmax(-1), TOLD)

    def without(self, at: int, token: int, layer: int, head: int) -> float:
        """ln p of a token after a position, without this head: from its block on the text is read again."""
        before = torch.stack([kept.streams[layer] for kept in self.kept[: at + 1]])
        final = self._final(before, self.silenced | {f"{layer}.{head}"}, layer)
        return self._logits(final).log_softmax(-1)[token].item()

    def _final(self, x: Tensor, silenced: set[str], first: int) -> Tensor:
        """The last stream [E] of tokens that are read beside the text, from their streams before block `first` on."""
        *_, last = passing(self.model, x, silenced, first, self._new_caches())
        return last.output[-1]


def _of_first(cache: BufferCache, count: int) -> BufferCache:
    """A cache of no more than the first positions of another."""
    if cache.length <= count:
        return cache
    if not count:
        return BufferCache()
    return BufferCache.holding(cast(Tensor, cache.key)[:, :count], cast(Tensor, cache.value)[:, :count])


def _bytes(tensor: Tensor) -> bytes:
    return tensor.contiguous().cpu().numpy().tobytes()


def _largest(values: Tensor, k: int) -> list[list[float]]:
    """The k largest as [index, value], the largest first."""
    found = values.topk(min(k, len(values)))
    return [list(pair) for pair in zip(found.indices.tolist(), found.values.tolist(), strict=True)]


def _route(route: RouterOutput, at: int) -> dict[str, Any]:
    return {"probabilities": route.probabilities[at].tolist(), "chosen": route.experts[at].tolist()}
