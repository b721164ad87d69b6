"""ResidualStream: what norms do to the stream through depth, and to the gradient on its way back.

Every number is a run of a small MiniMind in float64, 32 blocks deep, with one of three placements of its norms, one of
three feed-forward networks and one of six factors on what its sublayers say. A model of fewer blocks is the beginning
of the deep one, so one run forward serves all depths; the way back starts anew at each depth, with and without the
final norm. The ES module chooses among these runs and draws them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from traitlets import Bool, Bunch, Dict, Enum, Int, TraitError, default, validate

from minimind_edu.device import one_thread
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite

PLACEMENTS = ("pre", "post", "none")
NETWORKS = ("swiglu", "relu", "linear")
# What they and two more, which the figure does not offer, compute of x before the last matrix of a SwiGLU network:
INNER: dict[str, Callable[[FeedForward, Tensor], Tensor]] = {
    "relu": lambda mlp, x: F.relu(mlp.up_proj(x)),
    "linear": lambda mlp, x: mlp.up_proj(x),
    "silu": lambda mlp, x: F.silu(mlp.up_proj(x)),
    "bilinear": lambda mlp, x: mlp.gate_proj(x) * mlp.up_proj(x),
}
LOUDNESS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # factor on o_proj and down_proj, hence on what is added
LOUDER = ("both", "attention", "networks")  # which sublayers get that factor
DEPTHS = (2, 4, 8, 16, 32)
VOCABULARY = 256
SEQUENCES, LENGTH = 2, 16
EMBEDDING_STD = 0.02
LARGEST = 65_504  # where float16 ends; far above it the digits of a run without norms are noise
# The gain of a matrix is its standard deviation times the root of its width: here as in MiniMind2, 768 wide at 0.02.
WEIGHT_STD = 0.02 * (768 / 64) ** 0.5


class Forward(NamedTuple):
    """One placement's run, all factors at once: a leading axis, 6 where these are LOUDNESS."""

    added: Tensor  # [6, 2L], RMS of what each sublayer adds
    total: Tensor  # [6, 2L], RMS of stream plus addition, before a post-norm takes its part
    cosine: Tensor  # [6, L+1], of the stream with the embedding: at the start, then after each block


class Backward(NamedTuple):
    """The way back from the loss of a model of `depth` blocks."""

    loss: Tensor  # [6]
    spread: Tensor  # [6], standard deviation of the logits
    gradient: Tensor  # [6, depth], RMS of the gradient after each block, relative to the last


class ResidualStream(Figure):
    """A stream that every block adds to: its size, its make-up, and the gradient at every block.

    Args:
        placement: `pre`, `post`, or `none` for blocks without a norm.
        network: the feed-forward networks, `swiglu`, `relu` or `linear`; at factor 1 they add equally much.
        final_norm: whether a norm stands before the head.
        depth: 2, 4, 8, 16 or 32 blocks.
        loudness: 1/4, 1/2, 1, 2, 4 or 8 times what the sublayers of a new MiniMind add.
        block: the block whose numbers are shown, 0 (the embedding) to depth.

    Raises:
        TraitError: if `block` is not between 0 and `depth` when it is set.
    """

    _repr_traits = ("placement", "network", "final_norm", "depth", "loudness", "block")

    placement = Enum(PLACEMENTS, default_value="pre").tag(sync=True)
    network = Enum(NETWORKS, default_value="swiglu").tag(sync=True)
    final_norm = Bool(True).tag(sync=True)
    depth = Enum(DEPTHS, default_value=32).tag(sync=True)
    loudness = Enum(LOUDNESS, default_value=1.0).tag(sync=True)
    block = Int(max(DEPTHS), min=0).tag(sync=True)
    # what the package measured
    embedding = Finite(read_only=True).tag(sync=True)  # RMS of the stream before the first block
    guess = Finite(read_only=True).tag(sync=True)  # the loss of a blind guess
    forward_runs = Dict(read_only=True).tag(sync=True)  # network -> placement -> field of Forward -> [loudness][...]
    backward_runs = Dict(read_only=True).tag(sync=True)  # the same for Backward: [final][loudness][depth]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"block": kwargs.get("depth", max(DEPTHS)), **kwargs})

    @validate("block")
    def _inside_the_model(self, proposal: Bunch) -> int:
        if proposal["value"] > self.depth:
            raise TraitError(f"block must be from 0 to depth={self.depth}, got {proposal['value']}")
        return proposal["value"]

    @default("embedding")
    def _size_of_the_embedding(self) -> float:
        return embedding_size()

    @default("guess")
    def _loss_of_a_guess(self) -> float:
        return math.log(VOCABULARY)

    @default("forward_runs")
    def _measured_forward(self) -> dict[str, Any]:
        return {network: measurements(network)["forward"] for network in NETWORKS}

    @default("backward_runs")
    def _measured_backward(self) -> dict[str, Any]:
        return {network: measurements(network)["backward"] for network in NETWORKS}

    def chosen(self, placement: str) -> dict[str, Any]:
        """The numbers of one placement, with all else as it is chosen, under the fields' names."""
        loud, depth = LOUDNESS.index(self.loudness), DEPTHS.index(self.depth)
        run = measurements(self.network)
        forward = {name: values[loud] for name, values in run["forward"][placement].items()}
        backward = {
            name: values[int(self.final_norm)][loud][depth] for name, values in run["backward"][placement].items()
        }
        return {**forward, **backward}

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for placement in PLACEMENTS:
            run = self.chosen(placement)
            size = 1.0 if placement == "post" else run["total"][2 * self.depth - 1]
            for name, value in [
                ("RMS after the last block", size),
                ("cosine with the embedding", run["cosine"][self.depth]),
                ("gradient, first block to last", run["gradient"][0]),
                ("standard deviation of the logits", run["spread"]),
                ("loss", run["loss"]),
            ]:
                rows.append((f"{placement}: {name}", "overflow" if value is None else f"{value:.3g}"))
        norm = "with" if self.final_norm else "without"
        return (
            f"{self.depth} blocks ({self.network}) that add {self.loudness:g} times what new ones do, {norm} a "
            f"final norm. A blind guess has a loss of {self.guess:.3g}.",
            rows,
        )


class Variant(nn.Module):
    """One of INNER with the matrices of a SwiGLU network, scaled to add as much as that does: `[..., E]`."""

    def __init__(self, swiglu: FeedForward, name: str):
        super().__init__()
        self.swiglu, self.inner, self.scale = swiglu, INNER[name], 1.0
        x = _arbitrary(swiglu.up_proj.in_features)
        with torch.no_grad():
            self.scale = (swiglu(x).pow(2).mean() / self(x).pow(2).mean()).sqrt().item()

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * self.swiglu.down_proj(self.inner(self.swiglu, x))


@cache
def _arbitrary(width: int) -> Tensor:
    """Vectors `[1000, E]` over which networks are compared."""
    random = torch.Generator().manual_seed(2)
    return torch.randn(1000, width, generator=random, dtype=torch.float64)


@cache
def small_model(placement: str, network: str = "swiglu", seed: int = 0) -> MiniMindForCausalLM:
    """32 blocks, 64 wide, untied, in float64; the same weights for every placement and network."""
    if placement == "none":
        return small_model("pre", network, seed)  # `step` leaves its norms out
    config = MiniMindConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        num_hidden_layers=max(DEPTHS),
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
        norm_placement="post" if placement == "post" else "pre",
        tie_word_embeddings=False,  # a tied model predicts what it reads: another story
    )
    with torch.random.fork_rng(devices=[]):  # a figure must not move a notebook's random numbers
        model = MiniMindForCausalLM(config).double().eval().requires_grad_(False)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            std = EMBEDDING_STD if "embed" in name else WEIGHT_STD
            if weight.dim() == 2:
                weight.copy_(std * torch.randn(weight.shape, generator=random, dtype=torch.float64))
    if network != "swiglu" and placement == "post":  # as before norms: to scale them again takes longer than a run
        for layer, same in zip(model.model.layers, small_model("pre", network, seed).model.layers, strict=True):
            layer.mlp = same.mlp
    elif network != "swiglu":
        for layer in model.model.layers:
            layer.mlp = Variant(cast(FeedForward, layer.mlp), network)
    return model


def embedding_size() -> float:
    """The RMS of the stream before the first block."""
    return small_model("pre").model.embed_tokens(text()[0]).pow(2).mean().sqrt().item()


def text() -> tuple[Tensor, Tensor]:
    """Random ids and, unlike a real text's, random next tokens: `[SEQUENCES, LENGTH]` each."""
    random = torch.Generator().manual_seed(1)
    both = torch.randint(0, VOCABULARY, (2, SEQUENCES, LENGTH), generator=random)
    return both[0], both[1]


def sublayers(layer: MiniMindBlock, tables: tuple[Tensor, Tensor]) -> list[tuple[Any, Any]]:
    """The two halves of a block, each as (norm, function from `[B, S, E]` to what it adds)."""
    return [
        (layer.input_layernorm, lambda x: layer.self_attn(x, tables)[0]),
        (layer.post_attention_layernorm, layer.mlp),
    ]


def step(placement: str, norm: Any, function: Any, x: Tensor, loud: Tensor) -> tuple[Tensor, ...]:
    """One half of a block: what it adds, the sum before a post-norm, the new stream."""
    added = loud * function(norm(x) if placement == "pre" else x)
    total = x + added
    return added, total, norm(total) if placement == "post" else total


def _of_each(x: Tensor) -> Tensor:
    """What belongs to one factor in a row: `[6 * B, ...]` -> `[6, rest]`."""
    return x.detach().view(len(x) // SEQUENCES, -1)


def _rms(x: Tensor) -> Tensor:
    """Over the channels of every position, then over positions and sequences: `[6 * B, S, E]` -> `[6]`."""
    return _of_each(x).pow(2).mean(-1).sqrt()


def run_forward(
    placement: str,
    network: str = "swiglu",
    seed: int = 0,
    louder: str = "both",
    silent: str | None = None,
    ids: Tensor | None = None,
    loudness: Sequence[float] = LOUDNESS,
) -> tuple[Forward, list[Tensor]]:
    """All sequences through all blocks, once for every loudness: the batch is [6 * SEQUENCES].

    Args:
        placement, network, seed: of the model, as for `small_model`.
        louder: which sublayers get the factor, one of LOUDER; the others have 1.
        silent: `attention` or `networks`, if these add nothing at all.
        ids: the sequences, `[SEQUENCES, S]` with S up to LENGTH; None for those of `text`.
        loudness: the factors; where they are fewer than LOUDNESS, so are the runs.

    Returns:
        the measurements, and the stream after every block, with its graph.
    """
    model, ids = small_model(placement, network, seed), text()[0] if ids is None else ids
    factor = torch.tensor(loudness, dtype=torch.float64).repeat_interleave(SEQUENCES)[:, None, None]
    loud = [factor if louder in ("both", half) else torch.ones_like(factor) for half in LOUDER[1:]]
    loud = [times * (half != silent) for half, times in zip(LOUDER[1:], loud, strict=True)]
    length = ids.shape[1]
    tables = model.model.freqs_cos[:length], model.model.freqs_sin[:length]
    start = model.model.embed_tokens(ids).repeat(len(loudness), 1, 1).requires_grad_()
    x, streams, measured = start, [start], []
    for layer in cast(Iterable[MiniMindBlock], model.model.layers):
        for (norm, function), times in zip(sublayers(layer, tables), loud, strict=True):
            added, total, x = step(placement, norm, function, x, times)
            measured.append((_rms(added), _rms(total)))
        streams.append(x)
    cosine = torch.stack([_cosine(stream, start) for stream in streams], dim=1)
    added, total = (torch.stack(values, dim=1) for values in zip(*measured, strict=True))
    return Forward(added, total, cosine), streams


def _cosine(stream: Tensor, start: Tensor) -> Tensor:
    return _of_each(F.cosine_similarity(stream, start, dim=-1)).mean(-1)


def run_backward(model: MiniMindForCausalLM, streams: list[Tensor], depth: int, final_norm: bool) -> Backward:
    """From the loss of the model that ends after `depth` blocks, back to the stream after each of them."""
    _, labels = text()
    end = streams[depth]
    logits = model.lm_head(model.model.norm(end) if final_norm else end)  # [6 * B, S, V]
    targets = labels.repeat(len(end) // SEQUENCES, 1)
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # [6 * B, S]
    # the runs of the batch do not meet, so the gradient of the sum is each run's own
    gradients = torch.autograd.grad(losses.sum(), streams[1 : depth + 1], retain_graph=True)
    sizes = torch.stack([_rms(gradient) for gradient in gradients], dim=1)
    reached = torch.stack([_rms(stream) for stream in streams[: depth + 1]], dim=1).amax(1)
    lost = ~(reached <= LARGEST)  # true for nan, too
    return Backward(
        loss=_of_each(losses).mean(-1).masked_fill(lost, math.nan),
        spread=_of_each(logits).std(-1).masked_fill(lost, math.nan),
        gradient=(sizes / sizes[:, -1:]).masked_fill(lost[:, None], math.nan),
    )


@cache
@one_thread()
@torch.enable_grad()
def measurements(network: str) -> dict[str, Any]:
    """Every run, as numbers that JSON can hold: three significant digits, None where float16 would overflow."""
    forward, backward = {}, {}
    for placement in PLACEMENTS:
        (run, streams), model = run_forward(placement, network), small_model(placement, network)
        forward[placement] = {name: _numbers(values.tolist()) for name, values in run._asdict().items()}
        runs = [[run_backward(model, streams, depth, final) for depth in DEPTHS] for final in (False, True)]
        backward[placement] = {
            name: [
                [[_numbers(getattr(run, name)[i].tolist()) for run in of_norm] for i in range(len(LOUDNESS))]
                for of_norm in runs
            ]
            for name in Backward._fields
        }
    return {"forward": forward, "backward": backward}


@one_thread()
@torch.enable_grad()
def first_to_last(network: str, seed: int, loudness: Sequence[float] = LOUDNESS) -> dict[float, float]:
    """The gradient after block 1 of 32 in post-norm, relative to that after the last, by what the sublayers add."""
    _, streams = run_forward("post", network, seed, loudness=loudness)
    gradient = run_backward(small_model("post", network, seed), streams, max(DEPTHS), final_norm=True).gradient
    return dict(zip(loudness, gradient[:, 0].tolist(), strict=True))


@one_thread()
@torch.enable_grad()
def first_to_last_by_depth(
    placement: str, network: str, seed: int = 0, silent: str | None = None, loudness: float = 8.0
) -> dict[int, float]:
    """The gradient after block 1 relative to that after the last, in models of DEPTHS blocks from 4 on.

    Args:
        placement, network, seed, silent: of the run, as for `run_forward`.
        loudness: the factor on what the sublayers add.
    """
    _, streams = run_forward(placement, network, seed, silent=silent, loudness=(loudness,))
    model = small_model(placement, network, seed)
    backs = {depth: run_backward(model, streams, depth, final_norm=True) for depth in DEPTHS[1:]}
    return {depth: back.gradient[0, 0].item() for depth, back in backs.items()}


def _numbers(values: Any) -> Any:
    if isinstance(values, list):
        return [_numbers(value) for value in values]
    return float(f"{round(values, 4):.3g}") if abs(values) <= LARGEST else None
