"""One text on its way through a mixture: `python -m minimind_edu.trained.routing.walk` trains what is shown of it.

Eight mixtures, each trained as its label says: two experts for a token or one, the kept probabilities divided by their
sum or not, with the auxiliary loss or without. After each of STOPS their block 2 is asked where the tokens of SENTENCES
go. After the last stop each one without the auxiliary loss is written down in full, as a portrait. Its vectors are
letters, a for -12 and y for 12 of the largest: they are seen as colors, not as numbers.
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.moe import MoEFeedForward
from minimind_edu.trained import stored
from minimind_edu.trained.living import new_model, story_batches
from minimind_edu.trained.routing import BATCH_SIZE, LENGTH, RECIPE, STOPS, TOP_K, config, expert_loads, held_out
from minimind_edu.trained.training import Recipe, train

WALK = Path(__file__).parent / "walk.json"
SEED, BLOCK = 0, 1  # block 2, counted from 0
VARIANTS = tuple(itertools.product(TOP_K, (True, False), (False, True)))  # top_k, renormalize, balanced
PORTRAYED = STOPS[-1]  # steps
SENTENCES = "Mia is in the hall. Tom is in the garden. where is Mia? in the hall."
LEVELS = 12


def mixture_of(model: MiniMindForCausalLM) -> MoEFeedForward:
    """The mixture of block 2."""
    mixture = model.model.layers[BLOCK].mlp
    assert isinstance(mixture, MoEFeedForward)
    return mixture


@torch.no_grad()
def arrives(model: MiniMindForCausalLM) -> tuple[Tensor, MoEFeedForward]:
    """What the mixture of block 2 receives of SENTENCES, [T, E], a row for each token; and this mixture."""
    mixture, seen = mixture_of(model), []
    hook = mixture.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(torch.tensor([[world.BOS, *world.encode(SENTENCES)]], device=device_of(model)))
    hook.remove()
    return seen[0][0, 1:], mixture  # without the first token, which says nothing


@torch.no_grad()
def look(model: MiniMindForCausalLM, first: Tensor) -> dict[str, Any]:
    """Where the tokens go now.

    Args:
        model: a mixture, in eval mode.
        first: its router's rows before training, [N, E].

    Returns:
        experts: of each token, counted from 0, the largest weight first, as digits; weights: theirs, in percent;
        loads of the experts in 40 new stories, in percent; moved: the length of what training added to the router,
        in percent of the router's length before it; loss in nats a word.
    """
    tokens, mixture = arrives(model)
    routed = mixture.gate(tokens[None])
    new = held_out().to(device_of(model))
    many = model(new, labels=new)
    return {
        "experts": "".join(map(str, routed.experts.flatten().tolist())),
        "weights": (100 * routed.weights).round().int().flatten().tolist(),
        "loads": (100 * expert_loads(many.routing[BLOCK])).round().int().tolist(),
        "moved": round(100 * float((mixture.gate.weight - first).norm() / first.norm())),
        "loss": round(float(many.loss), 2),
    }


@torch.no_grad()
def portrait(model: MiniMindForCausalLM) -> dict[str, Any]:
    """What block 2 does with every token: rows of the router and vectors of tokens, logits, answers of the chosen."""
    tokens, mixture = arrives(model)
    experts = mixture.gate(tokens[None]).experts  # [T, k]
    answers = torch.stack([mixture.experts[i](x) for x, chosen in zip(tokens, experts, strict=True) for i in chosen])
    return {
        "rows": letters(mixture.gate.weight),
        "vectors": letters(tokens),
        "logits": stored.rounded((tokens @ mixture.gate.weight.T).tolist(), 2),
        "answers": letters(answers),  # in the order of the choices
    }


def letters(rows: Tensor) -> list[str]:
    """Each row of [R, E] as letters, on the scale of all of them."""
    levels = (rows / rows.abs().max() * LEVELS).round().int()
    return ["".join(chr(ord("m") + int(level)) for level in row) for row in levels]


def looks_at(variant: tuple[int, bool, bool], recipe: Recipe = RECIPE) -> Iterator[dict[str, Any]]:
    """Train one of VARIANTS; what is seen before and after each of STOPS, and at the end its portrait if it has one."""
    top_k, renormalize, balanced = variant
    model = new_model(SEED, config(top_k, balanced, renormalize)).eval()
    first = mixture_of(model).gate.weight.detach().clone()
    seen = [look(model, first)]

    def after(step: int, _: float) -> None:
        if step + 1 in STOPS:
            seen.append(look(model.eval(), first))
            model.train()

    train(model, story_batches(SEED, BATCH_SIZE, LENGTH), recipe, after)
    yield from seen
    if not balanced:
        yield portrait(model)


@cache
def walks() -> dict[str, Any]:
    """What is stored: words, stops, and of each of VARIANTS its looks, and its portrait if it has one."""
    return json.loads(WALK.read_text(encoding="utf-8"))


def variant_of(top_k: int, renormalize: bool, balanced: bool) -> dict[str, Any]:
    """The stored training of one variant."""
    wanted = {"top_k": top_k, "renormalize": renormalize, "balanced": balanced}
    [found] = [variant for variant in walks()["variants"] if variant | wanted == variant]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stored.add_into(parser)
    into, variants = stored.place(parser, parser.parse_args().into, WALK), []
    for variant in VARIANTS:
        *looks, last = looks_at(variant)
        named = dict(zip(("top_k", "renormalize", "balanced"), variant, strict=True))
        variants.append(named | ({"looks": [*looks, last]} if variant[2] else {"looks": looks, "portrait": last}))
        print(named, [look["loads"] for look in variants[-1]["looks"]], flush=True)
    words = [world.WORDS[i] for i in world.encode(SENTENCES)]
    found = {"words": words, "stops": STOPS, "variants": variants}
    stored.write(json.dumps(found, separators=(",", ":")) + "\n", into)


if __name__ == "__main__":
    main()
