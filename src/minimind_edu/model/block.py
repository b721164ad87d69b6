"""One block: attention and feed-forward, each with a norm, each added to the residual stream.

    pre-norm     x = x + f(norm(x))      MiniMind, Llama, GPT-2: the stream itself is never normalized
    post-norm    x = norm(x + f(x))      the Transformer of 2017, for comparison

MiniMind: `model/model_minimind.py`, class MiniMindBlock.
"""

from torch import Tensor, nn

from minimind_edu.model.attention import Attention
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.feed_forward import FeedForward
from minimind_edu.model.layer_cache import LayerCache
from minimind_edu.model.moe import MoEFeedForward, RouterOutput
from minimind_edu.model.norms import RMSNorm


class MiniMindBlock(nn.Module):
    """Attention, then a feed-forward network or a mixture of experts.

    `post_attention_layernorm` keeps upstream's name. In pre-norm it normalizes the whole residual stream on its way
    into the feed-forward network, not the attention's output.

    State-dict keys: self_attn, input_layernorm, post_attention_layernorm, mlp.
    """

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        self.pre_norm = config.norm_placement == "pre"
        self.self_attn = Attention(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        if config.use_moe:
            self.mlp = MoEFeedForward(config)
        else:
            self.mlp = FeedForward(config.hidden_size, config.intermediate_size, config.dropout)

    def forward(
        self,
        x: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        cache: LayerCache | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, RouterOutput | None]:
        """The new residual stream, `[B, S, E]` in and out, and what the router decided; arguments as in Attention."""
        if self.pre_norm:
            attended, _ = self.self_attn(self.input_layernorm(x), position_embeddings, cache, mask)
            x = x + attended
            fed, routed = self._feed(self.post_attention_layernorm(x))
            return x + fed, routed
        attended, _ = self.self_attn(x, position_embeddings, cache, mask)
        x = self.input_layernorm(x + attended)
        fed, routed = self._feed(x)
        return self.post_attention_layernorm(x + fed), routed

    def _feed(self, x: Tensor) -> tuple[Tensor, RouterOutput | None]:
        if isinstance(self.mlp, MoEFeedForward):
            return self.mlp(x)
        return self.mlp(x), None
