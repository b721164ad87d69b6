"""Mixture of experts: a router sends every token to a few of many feed-forward networks.

The mixture takes the place of a dense block's one feed-forward network. Router probabilities are a softmax over the
experts; the k largest are kept and, if asked, renormalized to sum to 1; the output is the sum of the chosen experts'
outputs with these routing weights, plus the shared experts, which every token visits.

The auxiliary loss pushes the busiest experts down. With f_i the share of the assignments that went to expert i and P_i
its mean router probability, it is coefficient * N * sum_i f_i P_i: an even router pays exactly the coefficient,
whatever N and k (an uneven one pays less only where f and P disagree). Fedus et al. 2021, arXiv 2101.03961. (MiniMind3
sums over the k choices instead of averaging, which makes its loss k times this one; its own k is 1.)
MiniMind: `model/model_minimind.py`, classes MoEGate and MOEFeedForward.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.feed_forward import FeedForward


class RouterOutput(NamedTuple):
    """What the router decided for T tokens."""

    weights: Tensor  # [T, k] routing weights
    experts: Tensor  # [T, k] which experts, integers
    probabilities: Tensor  # [T, N] before the choice
    aux_loss: Tensor  # scalar, coefficient included


def load_balancing_loss(probabilities: Tensor, experts: Tensor) -> Tensor:
    """N * sum_i f_i P_i over each group of T tokens, 1 when both are even.

    `[..., T, N]` router probabilities and `[..., T, k]` chosen experts -> `[...]`, one value for each group.
    """
    num_experts = probabilities.shape[-1]
    chosen = F.one_hot(experts, num_experts).to(probabilities.dtype)  # [..., T, k, N]
    share = chosen.mean(dim=(-3, -2))  # [..., N], sums to 1
    return num_experts * (share * probabilities.mean(-2)).sum(-1)


class MoEGate(nn.Module):
    """The router: one linear map from a token to a logit for each expert. State-dict key: weight, `[N, E]`."""

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        self.top_k = config.num_experts_per_tok
        self.norm_topk_prob = config.norm_topk_prob
        self.aux_loss_coef = config.router_aux_loss_coef
        self.seq_aux = config.seq_aux
        self.weight = nn.Parameter(torch.empty(config.num_experts, config.hidden_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(E), as every new nn.Linear and as upstream's router."""
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)

    def forward(self, x: Tensor) -> RouterOutput:
        """Route `[B, S, E]`; the result's T is B * S."""
        logits = F.linear(x, self.weight)  # [B, S, E] -> [B, S, N]
        probabilities = logits.softmax(-1, dtype=torch.promote_types(x.dtype, torch.float32))
        weights, experts = probabilities.topk(self.top_k, dim=-1)  # [B, S, k]
        if self.norm_topk_prob:
            weights = weights / weights.sum(-1, keepdim=True)
        if self.seq_aux:
            aux_loss = load_balancing_loss(probabilities, experts).mean()
        else:
            aux_loss = load_balancing_loss(probabilities.flatten(0, 1), experts.flatten(0, 1))
        weights, experts, probabilities = (each.flatten(0, 1) for each in (weights, experts, probabilities))
        return RouterOutput(weights.to(x.dtype), experts, probabilities, self.aux_loss_coef * aux_loss)


class MoEFeedForward(nn.Module):
    """A router, its experts, and the shared experts if the config has any.

    State-dict keys: gate.weight, experts.<i>.*, shared_experts.<i>.*.
    """

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        sizes = (config.hidden_size, config.moe_intermediate_size, config.dropout)
        self.gate = MoEGate(config)
        self.experts = nn.ModuleList(FeedForward(*sizes) for _ in range(config.num_experts))
        self.shared_experts = nn.ModuleList(FeedForward(*sizes) for _ in range(config.num_shared_experts))

    def forward(self, x: Tensor) -> tuple[Tensor, RouterOutput]:
        """Each expert works once, on all the tokens that chose it. `[B, S, E]` in, the same out, and the decision."""
        routed = self.gate(x)
        tokens = x.flatten(0, 1)  # [B, S, E] -> [B*S, E]
        output = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            row, choice = (routed.experts == index).nonzero(as_tuple=True)
            # an unused expert is left out; but in training it gets a zero gradient, not none, and a compiler cannot ask
            if self.training or torch.compiler.is_compiling() or row.numel():
                weight = routed.weights[row, choice, None]  # [tokens of this expert, 1]
                output = output.index_add(0, row, weight * expert(tokens[row]))
        for expert in self.shared_experts:
            output = output + expert(tokens)
        return output.view_as(x), routed
