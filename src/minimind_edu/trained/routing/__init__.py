"""Routing: where the tokens of a small mixture of experts go while it learns, with and without the auxiliary loss.

    __main__    `python -m minimind_edu.trained.routing` trains every variant with three seeds and stores its loads
    walk        one text on its way through eight trained mixtures, token by token
    phone_book  numbers to be learned by heart, which a mixture learns sooner than a dense model of equal active size

In the first 25 steps the tokens at block 2 get nearly one direction (mean cosine 0.8; initialized with 0.15 instead of
MiniMind's 0.02 it is 0.7), and a router that is free to do so sends nearly all of them to the same expert. By step 100
they differ again (0.1), and some of them leave; with top 2 most of the preference goes too. Four copies of one expert
have a favorite as well; if the router reads the tokens less their mean, there is none.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.moe import RouterOutput, load_balancing_loss
from minimind_edu.trained.training import Recipe

RUNS = Path(__file__).parent / "runs.json"

NUM_EXPERTS, NUM_BLOCKS = 4, 2
TOP_K = (1, 2)
SEEDS = (0, 1, 2)
STOPS = (0, 25, 50, 100, 200, 400)  # steps after which the routing is looked at
RECIPE = Recipe(steps=STOPS[-1], learning_rate=1e-3, warmup=20)
BATCH_SIZE, LENGTH = 8, 48  # stories in a batch, words in a story


def config(top_k: int, balanced: bool, renormalize: bool | None = None) -> MiniMindConfig:
    """A mixture whose tokens visit `top_k` of four experts.

    Args:
        top_k: 1 or 2.
        balanced: with the auxiliary loss.
        renormalize: whether kept probabilities are divided by their sum; None does so only where that teaches the
            router: a single weight would always be 1.
    """
    return MiniMindConfig(
        vocab_size=len(world.WORDS),
        hidden_size=48,
        num_hidden_layers=NUM_BLOCKS,
        num_attention_heads=4,
        num_key_value_heads=2,
        moe_intermediate_size=64,
        max_position_embeddings=256,
        rope_theta=1e4,
        bos_token_id=world.BOS,
        eos_token_id=None,
        use_moe=True,
        num_experts=NUM_EXPERTS,
        num_experts_per_tok=top_k,
        num_shared_experts=0,
        norm_topk_prob=top_k > 1 if renormalize is None else renormalize,
        router_aux_loss_coef=0.1 if balanced else 0.0,
        seq_aux=False,
    )


@cache
def held_out() -> Tensor:
    """Ids of 40 stories that no training here reads, [B, T]: for loads and losses."""
    return torch.from_numpy(world.stories(40, LENGTH, seed=1_000_000))


def expert_loads(routed: RouterOutput) -> Tensor:
    """The share of the choices that each expert got, [N]; they add up to 1."""
    counts = torch.bincount(routed.experts.flatten(), minlength=routed.probabilities.shape[-1])
    return counts / routed.experts.numel()


def balance(routed: RouterOutput) -> float:
    """N * sum_i f_i P_i, the auxiliary loss without its coefficient: 1 if all is even, N if one expert has all."""
    return float(load_balancing_loss(routed.probabilities, routed.experts))


@torch.no_grad()
def look(model: MiniMindForCausalLM, ids: Tensor) -> dict[str, Any]:
    """Where the tokens of ids [B, T] go now: the loss in nats a word, and for each block its loads [N] and balance.

    Args:
        model: a mixture, in eval mode.
        ids: stories that it has not read.
    """
    ids = ids.to(device_of(model))
    seen = model(ids, labels=ids)
    blocks = [{"loads": expert_loads(routed).tolist(), "balance": balance(routed)} for routed in seen.routing]
    return {"loss": float(seen.loss), "blocks": blocks}


def runs() -> list[dict[str, Any]]:
    """What is stored of every training: top_k, balanced, seed, and one look for each of STOPS; see `__main__`."""
    return json.loads(RUNS.read_text(encoding="utf-8"))


def run_of(top_k: int, balanced: bool, seed: int) -> dict[str, Any]:
    """The stored training of one variant and seed."""
    wanted = {"top_k": top_k, "balanced": balanced, "seed": seed}
    [run] = [run for run in runs() if run | wanted == run]
    return run


def busiest(run: dict[str, Any], block: int) -> list[float]:
    """The load of the busiest expert of a block (from 0) at each of STOPS."""
    return [max(look["blocks"][block]["loads"]) for look in run["looks"]]
