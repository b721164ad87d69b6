"""The whole model: token ids in, a logit for every token of the vocabulary out, at every position.

    ids -> embed_tokens -> block 1 ... block L -> norm -> lm_head -> logits

MiniMindModel ends with the normalized hidden states; MiniMindForCausalLM adds lm_head, whose matrix is by default the
embedding matrix itself, and everything that concerns predicting the next token.
MiniMind: `model/model_minimind.py`, classes MiniMindModel and MiniMindForCausalLM.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from minimind_edu import generation
from minimind_edu.block import MiniMindBlock
from minimind_edu.config import MiniMindConfig
from minimind_edu.kv_cache import KVCache
from minimind_edu.layer_cache import KeyValue
from minimind_edu.loss import next_token_loss
from minimind_edu.masks import visible_keys
from minimind_edu.moe import MoEFeedForward, RouterOutput
from minimind_edu.norms import RMSNorm
from minimind_edu.rope import RopeTables
from minimind_edu.validation import check_count, check_flag, check_token_ids, values_are_known

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
        check_token_ids(input_ids, self.config.vocab_size)
        for name, given in (("input_ids", input_ids), ("attention_mask", attention_mask)):
            if isinstance(given, Tensor) and given.is_meta and not self.embed_tokens.weight.is_meta:
                raise ValueError(f"{name} must be where the model is, not on the meta device, which keeps no values")
        batch, length = input_ids.shape
        end, limit = start + length, self.config.max_position_embeddings
        if end > limit:
            raise ValueError(
                f"{start} positions in the cache and {length} new ones exceed max_position_embeddings={limit}; "
                "shorten the text, or build the model with a larger max_position_embeddings"
            )
        positions = self.freqs_cos[start:end], self.freqs_sin[start:end]  # [S, D] each
        mask = visible_keys(length, end, attention_mask, batch)

        x = self.dropout(self.embed_tokens(input_ids))  # [B, S] -> [B, S, E]
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


def _refuse_two_tables(model: "MiniMindForCausalLM", weights: Mapping[str, Any], prefix: str, *_: Any) -> None:
    """Before load_state_dict: which of two different tables a tied model would keep depends on how it loads."""
    head, table = (weights.get(f"{prefix}{name}.weight") for name in ("lm_head", "model.embed_tokens"))
    if not model.config.tie_word_embeddings or head is None or table is None or head.shape != table.shape:
        return
    if values_are_known(head) and not torch.allclose(head, table.to(head), rtol=0, atol=0, equal_nan=True):
        raise ValueError(
            "lm_head.weight and model.embed_tokens.weight differ, but tie_word_embeddings=True makes them one matrix; "
            "build the model with tie_word_embeddings=False"
        )


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
        self._tie()
        self.register_load_state_dict_pre_hook(_refuse_two_tables)
        self.register_load_state_dict_post_hook(MiniMindForCausalLM._tie)

    def _tie(self, *_: Any) -> None:
        """Make the two matrices one; again after load_state_dict(assign=True), which gives each name its own."""
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

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
        hidden, past, routing = self.model(input_ids, attention_mask, past_key_values, use_cache)
        check_count("logits_to_keep (0: all)", logits_to_keep, 0, input_ids.shape[1])
        kept = hidden[:, -logits_to_keep:] if logits_to_keep else hidden
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
