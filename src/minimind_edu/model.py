"""The whole model: token ids in, a logit for every token of the vocabulary out, at every position.

    ids -> embed_tokens -> block 1 ... block L -> norm -> lm_head -> logits

MiniMindModel ends with the normalized hidden states; MiniMindForCausalLM adds lm_head, whose matrix is by default the
embedding matrix itself, and everything that concerns predicting the next token.
MiniMind: `model/model_minimind.py`, classes MiniMindModel and MiniMindForCausalLM.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu import generation
from minimind_edu.attention import causal_mask, padding_mask
from minimind_edu.block import MiniMindBlock
from minimind_edu.config import MiniMindConfig
from minimind_edu.fast import decoding
from minimind_edu.fast.compiled_steps import CompiledSteps
from minimind_edu.generation import check_token_ids
from minimind_edu.kv_cache import KVCache
from minimind_edu.moe import RouterOutput
from minimind_edu.norms import RMSNorm
from minimind_edu.rope import precompute_freqs_cis


@dataclass
class CausalLMOutput:
    """What one call computed; a new object every time. Readable as `out.logits` and as `out["logits"]`."""

    logits: Tensor  # [B, S, V], or [B, logits_to_keep, V]
    last_hidden_state: Tensor  # [B, S, E], after the final norm
    past_key_values: KVCache | None = None  # with use_cache: one (key, value) of [B, T, K, D] for each layer
    loss: Tensor | None = None  # with labels: mean cross-entropy of the next token, without the auxiliary loss
    aux_loss: Tensor | None = None  # with experts: load balancing, coefficient included, summed over layers
    routing: tuple[RouterOutput, ...] = ()  # with experts: one for each layer

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise KeyError(f"{name!r}; there are {', '.join(self.__dataclass_fields__)}")
        return getattr(self, name)


class MiniMindModel(nn.Module):
    """Embedding, blocks, final norm.

    The cos and sin tables are computed, not learned: they are no part of the state dict, and they stay in float32 (or
    wider) when the model is converted to half precision.

    State-dict keys: embed_tokens, layers.<i>, norm.
    """

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(MiniMindBlock(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        cos, sin = self._tables(torch.float32)
        self.register_buffer("freqs_cos", cos, persistent=False)  # [max_position_embeddings, D]
        self.register_buffer("freqs_sin", sin, persistent=False)
        self.register_load_state_dict_post_hook(_tables_follow_weights)

    def _tables(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        config = self.config
        return precompute_freqs_cis(
            config.head_dim, config.max_position_embeddings, config.rope_theta, config.rope_scaling, dtype
        )

    def _apply(self, fn: Any, recurse: bool = True) -> "MiniMindModel":
        """Moving and converting (`.to`, `.half`, `.double`, `.to_empty`) all come through here."""
        before = self.freqs_cos
        super()._apply(fn, recurse)
        if self.freqs_cos is not before:
            # What came out may be rounded (half) or uninitialized (to_empty), so it is computed again.
            self.rebuild_tables()
        return self

    def rebuild_tables(self) -> None:
        """Compute cos and sin again, where the weights are, in float32 or as wide as they."""
        weight = self.embed_tokens.weight
        # not where a surrounding `with torch.device("meta")` says: nothing could be moved from there
        with torch.device("cpu"):
            cos, sin = self._tables(torch.promote_types(weight.dtype, torch.float32))
        self.freqs_cos, self.freqs_sin = cos.to(weight.device), sin.to(weight.device)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = False,
    ) -> tuple[Tensor, KVCache | None, tuple[RouterOutput, ...]]:
        """Hidden states after the final norm, `[B, S, E]`; the cache if asked for; what the routers decided.

        Arguments and errors as in MiniMindForCausalLM.forward.
        """
        config = self.config
        past = None
        if past_key_values is not None:
            past = KVCache.from_pairs(
                past_key_values, config.num_hidden_layers, config.num_key_value_heads, config.head_dim
            )
        elif use_cache:
            past = KVCache(config.num_hidden_layers)
        start = 0 if past is None else past.length  # the position of the first new token
        self._check(input_ids, attention_mask, start)
        end = start + input_ids.shape[1]
        positions = self.freqs_cos[start:end], self.freqs_sin[start:end]  # [S, D] each
        mask = visible_keys(input_ids.shape[1], end, attention_mask)

        x = self.dropout(self.embed_tokens(input_ids))  # [B, S] -> [B, S, E]
        routing = []
        for index, layer in enumerate(self.layers):
            x, routed = layer(x, positions, None if past is None else past.layers[index], mask)
            if routed is not None:
                routing.append(routed)
        return self.norm(x), past if use_cache else None, tuple(routing)

    def _check(self, input_ids: Tensor, attention_mask: Tensor | None, start: int) -> None:
        check_token_ids(input_ids, self.config.vocab_size)
        batch, length = input_ids.shape
        limit = self.config.max_position_embeddings
        if start + length > limit:
            raise ValueError(
                f"{start} positions in the cache and {length} new ones exceed max_position_embeddings={limit}; "
                "shorten the text, or build the model with a larger max_position_embeddings"
            )
        if attention_mask is not None and list(attention_mask.shape) != [batch, start + length]:
            raise ValueError(
                f"attention_mask must be [B, T] = {[batch, start + length]}, one entry for each of the {start} cached "
                f"and {length} new positions, got {list(attention_mask.shape)}"
            )


def _tables_follow_weights(model: MiniMindModel, _: Any) -> None:
    """After load_state_dict(assign=True) the weights may be elsewhere (no longer on meta), or in another dtype."""
    weight, cos = model.embed_tokens.weight, model.freqs_cos
    if (cos.device, cos.dtype) != (weight.device, torch.promote_types(weight.dtype, torch.float32)):
        model.rebuild_tables()


def visible_keys(query_length: int, key_length: int, attention_mask: Tensor | None) -> Tensor | None:
    """The mask of all layers: causal, and blind to padding. None where causal alone is enough.

    A padding position may look at itself, and only there: what it computes is never read, but a row of a softmax must
    hold at least one number.

    Args:
        query_length, key_length: S and T; the queries are the last S positions.
        attention_mask: `[B, T]`, 0 on padding; None: no padding.

    Returns:
        boolean `[B, 1, S, T]`, or None.
    """
    if attention_mask is None or bool(attention_mask.all()):
        return None
    causal = causal_mask(query_length, key_length, attention_mask.device)  # [S, T]
    itself = causal.triu(key_length - query_length)  # the diagonal alone
    return (causal & padding_mask(attention_mask)) | itself  # [B, 1, S, T]


class MiniMindForCausalLM(nn.Module):
    """The model with its output layer.

    Weights of linear maps and embeddings start as N(0, initializer_range²), gains as 1. With tie_word_embeddings
    lm_head and embed_tokens are one and the same parameter.

    State-dict keys: model.*, lm_head.weight.
    """

    def __init__(self, config: MiniMindConfig):
        super().__init__()
        self.config = config
        self.model = MiniMindModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and not name.endswith("mlp.gate.weight"):
                nn.init.normal_(parameter, std=config.initializer_range)
        self._tie(None)
        self.register_load_state_dict_post_hook(MiniMindForCausalLM._tie)
        self.compiled_steps = CompiledSteps()

    def _tie(self, _: Any) -> None:
        """Make the two matrices one; again after load_state_dict(assign=True), which gives each name its own."""
        if self.config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
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
            labels: `[B, S]`, usually input_ids; shifted inside, so that position s is compared with label s + 1.
                -100 is left out of the loss.
            logits_to_keep: compute logits for the last so many positions only; 0: for all.

        Raises:
            ValueError: for ids outside the vocabulary, a mask or past of the wrong shape, or more positions than
                max_position_embeddings; the message names the rule, the values and the fix.
        """
        hidden, past, routing = self.model(input_ids, attention_mask, past_key_values, use_cache)
        if not 0 <= logits_to_keep <= input_ids.shape[1]:
            raise ValueError(
                f"logits_to_keep must be between 0 (all) and the {input_ids.shape[1]} positions given, "
                f"got {logits_to_keep}"
            )
        kept = hidden[:, -logits_to_keep:] if logits_to_keep else hidden
        logits = self.lm_head(kept)  # [B, S, E] -> [B, S, V]
        loss = None if labels is None else self._loss(logits, input_ids, labels)
        aux_loss = torch.stack([routed.aux_loss for routed in routing]).sum() if routing else None
        return CausalLMOutput(logits, hidden, past, loss, aux_loss, routing)

    def _loss(self, logits: Tensor, input_ids: Tensor, labels: Tensor) -> Tensor:
        if labels.shape != input_ids.shape or logits.shape[1] != labels.shape[1]:
            raise ValueError(
                f"labels must have the shape of input_ids, {list(input_ids.shape)}, and need the logits of all "
                f"positions, got labels {list(labels.shape)} and logits for {logits.shape[1]} positions"
            )
        if labels.shape[1] < 2:
            raise ValueError("a loss needs at least two positions: the first label has nothing before it")
        read = labels.masked_fill(labels == -100, 0)
        check_token_ids(read, self.config.vocab_size, "labels (-100 is left out)")
        # The labels move, not the logits: cutting off the last position would copy all the others, and their gradient.
        following = F.pad(labels[:, 1:], (0, 1), value=-100)  # [B, S], nothing follows the last
        return F.cross_entropy(logits.flatten(0, 1).float(), following.flatten(), ignore_index=-100)

    def generate(
        self, input_ids: Tensor, max_new_tokens: int = 128, *, decode: str = "plain", **options: Any
    ) -> Tensor:
        """Continue the prompts: `[B, S]` -> `[B, S + new]`. Options and errors as in `generation.stream`.

        decode: how single tokens are read, see `decoder`; the same tokens in every way.
        """
        return generation.generate(self.decoder(decode), input_ids, max_new_tokens, **options)

    def stream(
        self, input_ids: Tensor, max_new_tokens: int = 128, *, decode: str = "plain", **options: Any
    ) -> Iterator[Tensor]:
        """Continue the prompts one step at a time, `[B]` ids each. Options and errors as in `generate`."""
        return generation.stream(self.decoder(decode), input_ids, max_new_tokens, **options)

    def decoder(self, decode: str = "plain") -> Any:
        """What generation calls for every token: this model, or something called like it.

        "plain": the model as it is. "packed": its matrices are laid out column by column first, and stay so until
        another way is asked for. "compiled": single tokens are read by a compiled step, kept with the model.
        """
        return decoding.decoder_for(self, decode)

    def num_parameters(self, active: bool = False) -> int:
        """Parameters, each counted once however often it is used.

        Args:
            active: leave out the experts that a token does not visit.
        """
        total = sum(parameter.numel() for parameter in self.parameters())  # parameters() names a tied one once
        if active and self.config.use_moe:
            idle = self.config.num_experts - self.config.num_experts_per_tok
            for layer in self.model.layers:
                expert = layer.mlp.experts[0]
                total -= idle * sum(parameter.numel() for parameter in expert.parameters())
        return total
