"""The whole model: token ids in, a logit for every token of the vocabulary out, at every position.

    ids -> embed_tokens -> block 1 ... block L -> norm -> lm_head -> logits

MiniMindModel ends with the normalized hidden states; MiniMindForCausalLM adds lm_head, whose matrix is by default the
embedding matrix itself, and everything that concerns predicting the next token.
MiniMind: `model/model_minimind.py`, classes MiniMindModel and MiniMindForCausalLM.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from minimind_edu.model import generation
from minimind_edu.model.block import MiniMindBlock
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.layer_cache import KeyValue
from minimind_edu.model.loss import check_asked, next_token_loss
from minimind_edu.model.masks import visible_keys
from minimind_edu.model.moe import MoEFeedForward, RouterOutput
from minimind_edu.model.norms import RMSNorm
from minimind_edu.model.rope import RopeTables
from minimind_edu.model.tying import keep_tied
from minimind_edu.validation import check_call, check_flag

Past = KVCache | Sequence[KeyValue]  # what may be given as past_key_values


class CausalLMOutput(NamedTuple):
    """What one call computed; a new object every time. Readable as `out.logits` and as `out["logits"]`."""

    logits: Tensor  # [B, S, V], or [B, logits_to_keep, V]
    last_hidden_state: Tensor  # [B, S, E], after the final norm
    past_key_values: KVCache | None = None  # with use_cache: one (key, value) of [B, T, K, D] for each layer
    loss: Tensor | None = None  # with labels: mean cross-entropy of the next token, without the auxiliary loss
    aux_loss: Tensor | None = None  # with experts: load balancing, coefficient included, summed over layers
    routing: tuple[RouterOutput, ...] = ()  # with experts: one for each layer

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, str) and name not in self._fields:
            raise KeyError(f"{name!r}; there are {', '.join(self._fields)}")
        return getattr(self, name) if isinstance(name, str) else tuple.__getitem__(self, name)


class MiniMindModel(RopeTables):
    """Embedding, blocks, final norm. State-dict keys: embed_tokens, layers.<i>, norm."""

    def __init__(self, config: MiniMindConfig):
        super().__init__(config.head_dim, config.max_position_embeddings, config.rope_theta, config.rope_scaling)
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(MiniMindBlock(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Past | None = None,
        use_cache: bool = False,
    ) -> tuple[Tensor, KVCache | None, tuple[RouterOutput, ...]]:
        """Hidden states after the final norm, `[B, S, E]`; the cache if asked for; what the routers decided."""
        past = self._continued(past_key_values, use_cache)
        start = 0 if past is None else past.length  # the position of the first new token
        end = check_call(self.config, input_ids, attention_mask, start, self.embed_tokens.weight)
        positions = self.freqs_cos[start:end], self.freqs_sin[start:end]  # [S, D] each
        mask = visible_keys(end - start, end, attention_mask, len(input_ids))
        x = self.dropout(self.embed_tokens(input_ids.long()))  # [B, S] -> [B, S, E]
        routing = []
        for index, layer in enumerate(self.layers):
            x, routed = layer(x, positions, None if past is None else past.layers[index], mask)
            if routed is not None:
                routing.append(routed)
        return self.norm(x), past if use_cache else None, tuple(routing)

    def _continued(self, past_key_values: Past | None, use_cache: bool) -> KVCache | None:
        """The cache that this call appends to: a fork of the past, a new one, or none."""
        check_flag("use_cache", use_cache)
        layers, config = len(self.layers), self.config
        if past_key_values is None:
            return KVCache(layers) if use_cache else None
        return KVCache.from_pairs(past_key_values, layers, config.num_key_value_heads, config.head_dim)


class MiniMindForCausalLM(nn.Module):
    """The model with its output layer.

    Weights of linear maps and embeddings are initialized as N(0, initializer_range²), gains as 1.
    With tie_word_embeddings lm_head and embed_tokens are one and the same parameter.

    State-dict keys: model.*, lm_head.weight.
    """

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        self.config = config
        self.model = MiniMindModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.normal_(part.weight, std=config.initializer_range)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
            keep_tied(self)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Past | None = None,
        use_cache: bool = False,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
    ) -> CausalLMOutput:
        """Predict the next token at every position.

        Args:
            input_ids: `[B, S]` integers; with a past, only the positions that follow it.
            attention_mask: `[B, T]`, T = past + S; 1 on tokens, 0 on padding. None: no padding.
            past_key_values: `out.past_key_values` of an earlier call, or one `(key, value)` pair of `[B, T, K, D]`
                for each layer. It is not changed: it may be continued again, in another way.
            use_cache: return the keys and values in `out.past_key_values`.
            labels: `[B, S]`, usually input_ids; position s is compared with label s + 1, and -100 is left out.
            logits_to_keep: how many last positions get logits; 0 means all.

        Raises a ValueError for what does not fit; the message names the rule, the values and the fix.
        """
        check_asked(input_ids, labels, logits_to_keep, self.config.vocab_size)
        hidden, past, routing = self.model(input_ids, attention_mask, past_key_values, use_cache)
        kept = hidden[:, -int(logits_to_keep) :] if logits_to_keep else hidden
        logits = self.lm_head(kept)  # [B, S, E] -> [B, S, V]
        loss = None if labels is None else next_token_loss(logits, labels)
        aux_loss = torch.stack([routed.aux_loss for routed in routing]).sum() if routing else None
        return CausalLMOutput(logits, hidden, past, loss, aux_loss, routing)

    # functions of generation.py whose first argument, called this way, is the model itself
    generate = generation.generate
    stream = generation.stream

    def num_parameters(self, active: bool = False) -> int:
        """Parameters, each counted once however often it is used; `active`: without experts that a token leaves out."""
        check_flag("active", active)
        total = sum(parameter.numel() for parameter in self.parameters())  # parameters() names a tied one once
        for part in self.modules():
            if active and isinstance(part, MoEFeedForward):
                idle = len(part.experts) - part.gate.top_k
                total -= idle * sum(parameter.numel() for parameter in part.experts[0].parameters())
        return total
