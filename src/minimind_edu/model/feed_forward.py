"""The feed-forward part of a block: every position is changed by itself, through a wider layer.

    down(silu(gate(x)) * up(x))        SwiGLU, Shazeer 2020, arXiv 2002.05202

MiniMind: `model/model_minimind.py`, class FeedForward.
"""

import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    """SwiGLU: one projection is gated by another, channel by channel. `[..., E]` in, the same out.

    hidden_size is E, intermediate_size I, the wider layer; dropout acts on the output, in training.
    State-dict keys: gate_proj, up_proj, down_proj. No biases.
    """

    def __init__(self, hidden_size: int, intermediate_size: int, dropout: float = 0.0):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        gated = F.silu(self.gate_proj(x)) * self.up_proj(x)  # [..., E] -> [..., I]
        return self.dropout(self.down_proj(gated))  # [..., I] -> [..., E]
