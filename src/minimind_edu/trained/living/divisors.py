"""Norms that divide by fixed numbers: `python -m minimind_edu.trained.living.divisors` measures what a model then does.

Eight sublayers read the stream, each through a norm, which divides every vector by its own size, the root mean square.
Here each of the eight divides by one number instead: a percentile of the sizes that it usually meets. What changes is
that percentile; whether `<s>` has a number of its own (it stands first and reads only itself, so its stream is the same
vector in every story); whether networks answer in proportion to what they read, where trained ones answer with the
square; and whether the norms before attention go on measuring. The last norm, before the head, always divides by the
own size. At last the eight numbers are trained, and nothing else is: the best that fixed numbers can do. The program
takes two minutes of one core and writes `divisors.json`; `--into FILE` writes somewhere else than where the book looks.
"""

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.norms import RMSNorm
from minimind_edu.trained import stored
from minimind_edu.trained.living import LENGTH, STORED, living_model
from minimind_edu.trained.living.exam import distributions, divergence
from minimind_edu.trained.living.heads import block

RESULTS = Path(__file__).parent / "divisors.json"

PERCENTILES = (10, 20, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99)
STORIES, SEED = 10, 5
NETWORKS = slice(1, None, 2)  # of the eight norms, those that stand before networks
STEPS, RATE, PRACTICE, AT_ONCE = 150, 0.1, 64, 8  # of the training of eight numbers; stories, and how many a step
WEIGHTS_RATE = 1e-3  # where the weights learn, too
SWITCHES = ("apart", "proportional", "networks_only")
DIGITS = 4  # significant ones, of what is stored


def stories(seed: int = SEED, count: int = STORIES) -> np.ndarray:
    """The ids [count, 96] of the stories over which is measured."""
    return world.stories(count, LENGTH, seed=seed)


def stream_norms(model: MiniMindForCausalLM) -> list[RMSNorm]:
    """The norms that read the stream, in their order: two in each block, and the one before the head."""
    blocks = [block(model, layer) for layer in range(len(model.model.layers))]
    pairs = [(part.input_layernorm, part.post_attention_layernorm) for part in blocks]
    return [cast(RMSNorm, norm) for norm in (*itertools.chain(*pairs), model.model.norm)]


@contextmanager
def _heard(model: MiniMindForCausalLM) -> Iterator[list[Tensor]]:
    """The sizes [B, S] of what the norms of the stream read inside the block, one after the other."""
    found: list[Tensor] = []
    hooks = [
        norm.register_forward_pre_hook(lambda _, given: found.append(given[0].pow(2).mean(-1).sqrt()))
        for norm in stream_norms(model)
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def sizes(model: MiniMindForCausalLM, ids: Tensor) -> Tensor:
    """The size of what each norm of the stream reads, its root mean square, `[norms, B, S]` for ids `[B, S]`."""
    with _heard(model) as found:
        model(ids.to(device_of(model)))
    return torch.stack(found)


def divisors(usual: Tensor, percentile: float, apart: bool) -> Tensor:
    """What the norms before the sublayers divide by at each position, `[norms - 1, S]`.

    Args:
        usual: the sizes that they meet, `[norms, B, S]`, as `sizes` finds them.
        percentile: of these sizes, for each norm by itself, 0 to 100.
        apart: whether the first word, `<s>`, has a number of its own, the size that it always has; the percentile is
            then that of the other words.
    """
    met = usual[:-1]
    others = met[:, :, 1:] if apart else met
    by = others.flatten(1).quantile(percentile / 100, dim=1)[:, None].repeat(1, met.shape[-1])
    if apart:
        by[:, 0] = met[:, 0, 0]
    return by


@contextmanager
def fixed(model: MiniMindForCausalLM, by: Tensor, only: slice = slice(None)) -> Iterator[None]:
    """Inside the block norms before sublayers divide by their rows of `by`, `[norms - 1, S]`, not by the own sizes.

    Args:
        model: the model; its last norm stays as it is.
        by: what each norm divides by at each position.
        only: which of these norms; the odd ones stand before networks.
    """
    norms, by = stream_norms(model)[: len(by)][only], by[only]

    def dividing(norm: RMSNorm, row: Tensor):
        return lambda x: norm.weight * x / row[:, None]

    for norm, row in zip(norms, by, strict=True):
        norm.forward = dividing(norm, row)
    try:
        yield
    finally:
        for norm in norms:
            del norm.forward


@contextmanager
def answering(model: MiniMindForCausalLM, power: float) -> Iterator[None]:
    """Inside the block each network answers s times its usual input with s to this power times its usual answer.

    A norm that measures makes s 1, so only fixed numbers let the power count.

    Args:
        model: the model.
        power: at 0 networks answer as if their norms measured, at 1 in proportion, at 2 nearly as they were trained.
    """
    blocks = [block(model, layer) for layer in range(len(model.model.layers))]
    networks = [cast(FeedForward, part.mlp) for part in blocks]

    def scaled(network: FeedForward, gain: Tensor):
        answer = network.forward

        def forward(x: Tensor) -> Tensor:
            s = (x / gain).pow(2).mean(-1, keepdim=True).sqrt()
            return s**power * answer(x / s)

        return forward

    for network, part in zip(networks, blocks, strict=True):
        network.forward = scaled(network, part.post_attention_layernorm.weight)
    try:
        yield
    finally:
        for network in networks:
            del network.forward


def ends(model: MiniMindForCausalLM, texts: np.ndarray) -> dict[str, Any]:
    """What a model does with texts `[B, S]`, as it is now.

    Returns:
        nats: the distance from the true probabilities, a word. first, others: the size of the first word, and the
        median size of all others, at each norm.
    """
    with _heard(model) as heard:
        nats, _ = divergence(model, texts)  # in one pass or in several
    count = len(stream_norms(model))
    found = torch.stack([torch.cat(heard[norm::count]) for norm in range(count)])
    return {
        "nats": nats,
        "first": found[:, :, 0].quantile(0.5, dim=1).tolist(),
        "others": found[:, :, 1:].flatten(1).quantile(0.5, dim=1).tolist(),
    }


def measure(model: MiniMindForCausalLM, percentiles: Sequence[float] = PERCENTILES, seed: int = SEED) -> dict[str, Any]:
    """All settings of a model in float64.

    Returns:
        own: `ends` with the own sizes. rows: `ends` of each setting, with `percentile`, `apart`, `proportional`,
        `networks_only`, and `divisors`, those of all words but the first.
    """
    texts = stories(seed)
    usual = sizes(model, torch.from_numpy(texts))
    rows = []
    for percentile, *switches in itertools.product(percentiles, *[(False, True)] * len(SWITCHES)):
        setting: dict[str, Any] = {"percentile": percentile} | dict(zip(SWITCHES, switches, strict=True))
        by = divisors(usual, percentile, setting["apart"])
        networks = answering(model, 1) if setting["proportional"] else nullcontext()
        with fixed(model, by, NETWORKS if setting["networks_only"] else slice(None)), networks:
            found = ends(model, texts)
        rows.append(setting | found | {"divisors": by[:, 1].tolist()})
    return {"own": ends(model, texts), "rows": rows}


@torch.enable_grad()
def train(model: MiniMindForCausalLM, begin: Tensor, steps: int = STEPS, weights: bool = False) -> list[float]:
    """Numbers, one for each norm from the first on, with which a model comes nearest to the true probabilities.

    Gradient descent (Adam) on their logarithms, over other stories than those of `measure`.

    Args:
        model: stays as it is, but for its weights where they learn, too.
        begin: the numbers of the beginning, [norms].
        steps: how often the numbers are changed.
        weights: whether all weights of the model learn to live with fixed numbers.
    """
    texts = stories(SEED + 1, PRACTICE)
    exact = distributions(texts).to(begin)  # [B, S, V]
    ids, generator = torch.from_numpy(texts).to(begin.device), torch.Generator().manual_seed(0)
    logs = begin.log().detach().clone().requires_grad_()
    learning = [*model.requires_grad_(weights).parameters()] if weights else []
    adam = torch.optim.Adam([{"params": [logs], "lr": RATE}, {"params": learning, "lr": WEIGHTS_RATE}])
    rates = torch.optim.lr_scheduler.LinearLR(adam, 1, 0.02, steps)
    for _ in range(steps):
        some = torch.randperm(PRACTICE, generator=generator)[:AT_ONCE]
        with fixed(model, logs.exp()[:, None].expand(-1, LENGTH)):
            loss = -(exact[some] * model(ids[some]).logits.log_softmax(-1)).sum(-1).mean()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([logs, *learning], 1)
        adam.step()
        rates.step()
    model.requires_grad_(False)
    return logs.detach().exp().tolist()


def trained(name: str) -> dict[str, Any]:
    """`ends` of a stored model with the `divisors` that `train` finds, beginning at the 75th percentiles."""
    texts = stories()
    model = living_model(name).requires_grad_(False)
    found = train(model, divisors(sizes(model, torch.from_numpy(texts)), 75, apart=False)[:, 0])
    by = torch.tensor(found, dtype=torch.float64)[:, None].expand(-1, LENGTH)
    with fixed(model.double(), by):
        return ends(model, texts) | {"divisors": found}


@cache
def measured() -> dict[str, Any]:
    """What is stored: `measure` of the living model and of its twin, and as `trained` what `trained` finds."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def _short(value: Any) -> Any:
    """Floats to four significant digits, wherever they are."""
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into = stored.place(parser, parser.parse_args().into, RESULTS)
    found = {
        name: measure(living_model(name).double().requires_grad_(False)) | {"trained": trained(name)} for name in STORED
    }
    stored.write(json.dumps(_short(found), separators=(",", ":")) + "\n", into)


if __name__ == "__main__":
    main()
