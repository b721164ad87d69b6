"""ModelMap: the whole model as one picture to zoom into, from the line that runs through it down to one product.

Six levels, each inside a part of the one before. Shapes and counts of weights follow from a MiniMindConfig (the tests
compare them with the model that it builds). Without one it is the living model, and the scores, the rotation and the
product are those of one of its heads, where it answers a question; a config has no weights, and its head random ones.
"""

from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any, NamedTuple

import torch
from traitlets import Bool, Bunch, Dict, Enum, Int, TraitError, Unicode, default, observe, validate

from minimind_edu import world
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis, rope_angles
from minimind_edu.trained import living
from minimind_edu.trained.living import heads
from minimind_edu.web.base import Figure
from minimind_edu.world.words import words_of

LEVELS = ("model", "block", "attention", "head", "pair", "product")
SIDES = {  # level -> what else can be pressed there
    "model": ("embedding", "stream", "norm", "logits", "generation"),
    "block": ("stream", "norm", "ffn", "experts"),
    "attention": ("rope", "cache", "groups", "output"),
    "head": ("scores", "weights", "values"),
    "pair": ("frequencies",),
    "product": (),
}
NAMES = {
    "model": "Model",
    "block": "Block",
    "attention": "Attention",
    "head": "Head",
    "pair": "Pair",
    "product": "Dot product",
    "embedding": "Embedding",
    "stream": "Residual stream",
    "norm": "RMSNorm",
    "logits": "Logits",
    "generation": "Generation",
    "ffn": "Feed-forward network",
    "experts": "Mixture of experts",
    "rope": "RoPE",
    "cache": "KV cache",
    "groups": "Grouped heads",
    "output": "Output projection",
    "scores": "Scores",
    "weights": "Weights",
    "values": "Values",
    "frequencies": "Frequencies",
}
PARTS = tuple(NAMES)
STORY = "Mia is in the hall . where is Mia ? in the"
LAYER, HEAD = 2, 1  # of the living model: this head reads "hall" where the answer is due
READER, READ = 7, 2  # the query and the key whose score is followed down to its products
SEED = 1091  # of the vectors of a head without weights
READABLE = 0.1, 1.0  # radians per position: pairs that rotate about so fast show best what a rotation is

Links = Mapping[str, Mapping[str, str]]
Pair = tuple[torch.Tensor, ...]  # queries and keys


def level_of(part: str) -> int:
    """The level at which `part` is shown: its own for a level, the block's for a norm and the stream."""
    if part in LEVELS:
        return LEVELS.index(part)
    return max(i for i, level in enumerate(LEVELS) if part in SIDES[level])


class Flow(NamedTuple):
    """What runs through a part, and what it has learned."""

    shapes: tuple[str, ...]  # in, perhaps something between, out
    weights: int


def flows_of(config: MiniMindConfig) -> dict[str, Flow]:
    """Shapes and numbers of weights of all parts, those of a block and below for one block, one head, one pair."""
    heads, kv_heads, dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    width, vocabulary, layers = config.hidden_size, config.vocab_size, config.num_hidden_layers
    inner, of_expert = config.intermediate_size, config.moe_intermediate_size
    ids, stream, logits = "[B, S]", f"[B, S, {width}]", f"[B, S, {vocabulary}]"
    queries, keys, past = f"[B, S, {heads}, {dim}]", f"[B, S, {kv_heads}, {dim}]", f"[B, T, {kv_heads}, {dim}]"
    table = vocabulary * width
    output = heads * dim * width
    attending = 2 * output + 2 * kv_heads * dim * width + (2 * dim if config.use_qk_norm else 0)
    feeding = 3 * width * inner
    experts = 3 * width * of_expert * (config.num_experts + config.num_shared_experts) + width * config.num_experts
    block = attending + (experts if config.use_moe else feeding) + 2 * width
    head = table if not config.tie_word_embeddings else 0
    return {
        "model": Flow((ids, logits), table + layers * block + width + head),
        "embedding": Flow((ids, stream), table),
        "stream": Flow((stream, stream), 0),
        "norm": Flow((stream, stream), width),
        "logits": Flow((stream, logits), head),
        "generation": Flow((logits, "[B, 1]"), 0),
        "block": Flow((stream, stream), block),
        "ffn": Flow((stream, f"[B, S, {inner}]", stream), feeding),
        "experts": Flow((stream, f"[B, S, {of_expert}]", stream), experts),
        "attention": Flow((stream, stream), attending),
        "rope": Flow((queries, queries), 0),
        "cache": Flow((keys, past), 0),
        "groups": Flow((past, f"[B, T, {heads}, {dim}]"), 0),
        "output": Flow((queries, stream), output),
        "head": Flow((f"[S, {dim}]", "[S, T]", f"[S, {dim}]"), 0),
        "scores": Flow((f"[S, {dim}]", "[S, T]"), 0),
        "weights": Flow(("[S, T]", "[S, T]"), 0),
        "values": Flow((f"[T, {dim}]", f"[S, {dim}]"), 0),
        "pair": Flow(("[2]", "[2]"), 0),
        "frequencies": Flow((f"[{dim // 2}]", f"[S, {dim // 2}]"), 0),
        "product": Flow((f"[{dim}] · [{dim}]", "[]"), 0),
    }


@cache
def trained_head() -> dict[str, Any]:
    """The living model's head as it reads `STORY`."""
    model = living.living_model()
    words = words_of(ids := world.encode(STORY))
    tables = model.model.freqs_cos[: len(ids)], model.model.freqs_sin[: len(ids)]
    unrotated = torch.ones_like(tables[0]), torch.zeros_like(tables[1])
    with torch.no_grad():
        x = model.model.embed_tokens(torch.from_numpy(ids)[None].long())
        for layer in range(LAYER):
            x, _ = heads.block(model, layer)(x, tables)
        reading = heads.block(model, LAYER)
        both = [reading.self_attn.project(reading.input_layernorm(x), *each)[:2] for each in (unrotated, tables)]
    group = HEAD // model.config.queries_per_kv
    plain, rotated = [(q[0, :, HEAD].double(), k[0, :, group].double()) for q, k in both]
    return _taken_apart(model.config, words, plain, rotated)


@cache
def example_head(config: MiniMindConfig) -> dict[str, Any]:
    """A head of a model of these sizes without weights: random vectors, rotated by the package."""
    words = words_of(ids := world.encode(STORY))
    random = torch.Generator().manual_seed(SEED)
    q, k = torch.randn(2, 1, len(ids), 1, config.head_dim, generator=random, dtype=torch.float64)
    # as long as the model's own tables: their length tells whether its scaling applies
    cos, sin = (table[: len(ids)] for table in precompute_freqs_cis(*_settings(config)))
    rotated = apply_rotary_pos_emb(q, k, cos, sin)
    return _taken_apart(config, words, (q[0, :, 0], k[0, :, 0]), tuple(part[0, :, 0] for part in rotated))


def _settings(config: MiniMindConfig) -> tuple[Any, ...]:
    """What the tables of a config's rotation are computed from."""
    return config.head_dim, config.max_position_embeddings, config.rope_theta, config.rope_scaling, torch.float64


def _taken_apart(config: MiniMindConfig, words: list[str], plain: Pair, rotated: Pair) -> dict[str, Any]:
    """A head's scores and weights of all words, and one score down to the product of one pair; q, k: `[S, D]` each."""
    dim, (q, k), (rotated_q, rotated_k) = config.head_dim, plain, rotated
    every_word = torch.ones(len(words), len(words), dtype=torch.bool)
    scores = rotated_q @ rotated_k.T / dim**0.5  # [S, T]
    weights = scores.masked_fill(~every_word.tril(), -torch.inf).softmax(-1)
    angles = rope_angles(*_settings(config))[1]  # [D/2]
    products = (rotated_q[READER] * rotated_k[READ]).view(2, dim // 2).sum(0)  # [D/2]
    readable = (angles >= READABLE[0]) & (angles <= READABLE[1])
    pair = int(products.masked_fill(~readable, -torch.inf).argmax())
    both = [pair, pair + dim // 2]
    return {
        "tokens": words,
        "reader": READER,
        "read": READ,
        "scores": [row[: i + 1].tolist() for i, row in enumerate(scores)],
        "weights": [row[: i + 1].tolist() for i, row in enumerate(weights)],
        "pair": pair,
        "angle": angles[pair].item(),
        "speeds": [angles[min(i * dim // 16, dim // 2 - 1)].item() for i in range(5)],
        "q": q[READER, both].tolist(),
        "k": k[READ, both].tolist(),
        "rotated_q": rotated_q[READER, both].tolist(),
        "rotated_k": rotated_k[READ, both].tolist(),
        "products": products.tolist(),
        "dot": products.sum().item(),
        "score": scores[READER, READ].item(),
    }


class Level(Int):
    """A level by its number or its name."""

    info_text = f"a number from 0 to {len(LEVELS) - 1} or one of {', '.join(LEVELS)}"

    def validate(self, obj: Any, value: Any) -> int:
        return super().validate(obj, LEVELS.index(value) if isinstance(value, str) and value in LEVELS else value)


class ModelMap(Figure):
    """Zoom from the whole model into a block, its attention, a head, a pair of channels, and their product.

    Args:
        config: the sizes of the model that is drawn; default the living model, with numbers of its own.
        level: 0 to 5, or `model`, `block`, `attention`, `head`, `pair`, `product`.
        part: what else is chosen at that level (one of SIDES), or nothing.
        here: the part of the model that the page is about (one of PARTS), or nothing.
        links: part -> {"href", "label"} of its chapter; a part that is missing has no chapter yet.
        in_url: whether the page's address says the level, as `#map/attention`.
        map_href: with `compact`, the page whose map each step of the way leads to.

    Raises:
        ValueError: if the config is a post-norm model's, which this picture does not show.
        TraitError: if a level, a part or a link does not exist.
    """

    _repr_traits = ("level", "part", "here", "compact")

    level = Level(0, min=0, max=len(LEVELS) - 1).tag(sync=True)
    part = Unicode("").tag(sync=True)
    here = Enum(("", *PARTS), default_value="").tag(sync=True)
    links = Dict().tag(sync=True)
    in_url = Bool(False).tag(sync=True)
    map_href = Unicode("").tag(sync=True)
    # what follows from the config
    sizes = Dict(read_only=True).tag(sync=True)
    flows = Dict(read_only=True).tag(sync=True)
    example = Dict(read_only=True).tag(sync=True)
    strip = Unicode(read_only=True).tag(sync=True)

    def __init__(self, config: MiniMindConfig | None = None, **kwargs: Any) -> None:
        self._trained = config is None
        self._config = config or living.CONFIG
        if self._config.norm_placement != "pre":
            raise ValueError(
                "the map shows a model whose norms come before the sublayers (norm_placement='pre'), got "
                f"{self._config.norm_placement!r}; give a config of MiniMind's"
            )
        super().__init__(**kwargs)

    @validate("part")
    def _at_this_level(self, proposal: Bunch) -> str:
        sides = SIDES[LEVELS[self.level]]
        if proposal["value"] and proposal["value"] not in sides:
            there = ", ".join(sides) or "nothing"
            raise TraitError(
                f"part must be at level {self.level} ({LEVELS[self.level]}), got {proposal['value']!r}; "
                f"there is {there}"
            )
        return proposal["value"]

    @observe("level")
    def _leave_the_part(self, change: Bunch) -> None:
        if self.part not in SIDES[LEVELS[change["new"]]]:
            self.part = ""

    @validate("links")
    def _of_parts(self, proposal: Bunch) -> Links:
        for part, link in proposal["value"].items():
            if part not in PARTS:
                raise TraitError(f"links must be of parts of the model, got {part!r}; there are {', '.join(PARTS)}")
            if not isinstance(link, Mapping) or set(link) != {"href", "label"}:
                raise TraitError(f"the link of {part} must have href and label, got {link!r}")
        return proposal["value"]

    @default("sizes")
    def _sizes_of_the_config(self) -> dict[str, Any]:
        config = self._config
        return {
            "vocabulary": config.vocab_size,
            "hidden": config.hidden_size,
            "layers": config.num_hidden_layers,
            "heads": config.num_attention_heads,
            "kv_heads": config.num_key_value_heads,
            "head_dim": config.head_dim,
            "inner": config.intermediate_size,
            "experts": config.num_experts,
            "chosen": config.num_experts_per_tok,
            "shared": config.num_shared_experts,
            "tied": config.tie_word_embeddings,
            "moe": config.use_moe,
            "trained": [HEAD + 1, LAYER + 1] if self._trained else [],  # its head, and the block of it
        }

    @default("flows")
    def _flows_of_the_config(self) -> dict[str, Any]:
        return {part: {"shapes": list(flow.shapes), "weights": flow.weights} for part, flow in self._flows.items()}

    @property
    def _flows(self) -> dict[str, Flow]:
        return flows_of(self._config)

    @default("example")
    def _example_of_a_head(self) -> dict[str, Any]:
        return trained_head() if self._trained else example_head(self._config)

    @default("strip")
    def _small_drawing(self) -> str:
        return strip_drawing(self.here) if self.compact else ""

    def _way(self) -> list[str]:
        """From the whole model to the part that the page is about."""
        if not self.here:
            return ["model"]
        levels: list[str] = list(LEVELS[: level_of(self.here) + 1])
        return levels if self.here in LEVELS else [*levels, self.here]

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = [(NAMES[part], " → ".join(flow.shapes)) for part, flow in self._flows.items()]
        return (
            f"The model and its parts: {self._flows['model'].weights:,} weights, {self._config.num_hidden_layers} "
            f"blocks on a residual stream of {self._config.hidden_size} numbers per token.",
            rows,
        )

    def _fallback_html(self) -> str:
        if self.compact:
            return self._strip_html()
        sentence, rows = self._summary()
        parts = {name: part for part, name in NAMES.items()}
        cells = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(shapes)}</td><td>{self._link(parts[name])}</td></tr>'
            for name, shapes in rows
        )
        return f"<p>{escape(sentence)}</p><table><tbody>{cells}</tbody></table>"

    def _link(self, part: str) -> str:
        if part not in self.links:
            return ""
        return f'<a href="{escape(self.links[part]["href"])}">{escape(self.links[part]["label"])}</a>'

    def _strip_html(self) -> str:
        """The strip as the ES module draws it, for pages without scripts and before they run."""
        steps = []
        for step in self._way():
            current = ' aria-current="location"' if step == (self.here or None) else ""
            name = escape(NAMES[step])
            if self.map_href:
                name = f'<a href="{escape(self.map_href)}#map/{step}"{current}>{name}</a>'
            else:
                name = f"<span{current}>{name}</span>"
            steps.append(f"<li>{name}</li>")
        return (
            f'<div class="mm-fig mp-strip" role="navigation" aria-label="Where this is in the model">{self.strip}'
            f"<ol>{''.join(steps)}</ol></div>"
        )


def lit_in_strip(here: str) -> str:
    """The part of the strip that stands for a part of the model: all that is inside the attention is attention."""
    inside = {"rope", "cache", "groups", "output"}
    inside |= {part for level in LEVELS[2:] for part in (level, *SIDES[level])}
    return "attention" if here in inside else here


def strip_drawing(here: str) -> str:
    """The model in 300 by 44 units, without words: the stream, one block of the many, and the part that is meant lit.

    What is inside the attention lights the attention; the picture has no room for more, and the words beside it say
    the rest.
    """
    lit = lit_in_strip(here)

    def drawn(part: str, tone: str, shapes: str) -> str:
        state = " mp-lit" if lit == part or (lit == "model" and part != "generation") else ""
        return f'<g class="mp-mini{state}" data-tone="{tone}" data-part="{part}">{shapes}</g>'

    def box(x: int, y: int, width: int, height: int) -> str:
        return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="2.5"/>'

    def branch(x: int, width: int) -> str:
        return f'<path d="M{x} 33V16h{width}V33"/>'

    neighbors = "".join(box(x, 22, 11, 16) for x in (32, 47, 222, 237))
    frame = '<rect class="mp-mini-frame" x="66" y="2" width="148" height="36" rx="5"/>'
    parts = [
        drawn("generation", "stream", '<path d="M293 41.5H5" stroke-dasharray="3 3"/>'),
        drawn("stream", "stream", '<path class="mp-mini-stream" d="M14 33H284"/>'),
        drawn("embedding", "stream", box(4, 14, 9, 24)),
        drawn("block", "stream", frame + neighbors),
        drawn("attention", "v", branch(90, 38) + box(94, 6, 30, 20)),
        drawn("ffn", "ffn", branch(160, 38) + box(164, 6, 30, 20)),
        drawn("norm", "norm", box(81, 25, 5, 13) + box(151, 25, 5, 13) + box(264, 25, 5, 13)),
        drawn("logits", "stream", box(284, 14, 9, 24)),
    ]
    if lit == "experts":
        parts.append('<g class="mp-mini mp-lit" data-tone="ffn">' + box(164, 6, 30, 20) + box(168, 3, 30, 20) + "</g>")
    size = 'viewBox="0 0 300 44" width="300" height="44"'
    return f'<svg class="mp-mini-map" {size} aria-hidden="true">{"".join(parts)}</svg>'
