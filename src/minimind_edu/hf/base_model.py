"""The part of the adapter that every model of transformers has, and the model without an output layer.

Our MiniMindModel is used as it is, under the name `model`, which makes the names of tensors upstream's.
"""

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast
from transformers.utils.generic import can_return_tuple

from minimind_edu.hf.caches import TransformersCache
from minimind_edu.hf.config import MiniMindEduConfig
from minimind_edu.hf.options import check_options
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.model import MiniMindModel
from minimind_edu.model.moe import MoEGate, RouterOutput

# What a config, too, may ask a model of transformers to return.
_RETURNS = ("output_attentions", "output_hidden_states", "output_router_logits")


class MiniMindEduPreTrainedModel(PreTrainedModel):
    """MiniMindModel under the name `model`, and what transformers asks of every model."""

    config_class = MiniMindEduConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = False
    _supports_sdpa = True  # our attention runs scaled_dot_product_attention, whatever is asked for
    _no_split_modules = ["MiniMindBlock"]

    def __init__(self, config: MiniMindEduConfig):
        super().__init__(config)
        self.model = MiniMindModel(config.to_minimind())

    def hidden_states(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        past_key_values: Any,
        use_cache: bool | None,
        options: Mapping[str, Any],
    ) -> tuple[Tensor, Any, tuple[RouterOutput, ...]]:
        """Hidden states `[B, S, E]`; the cache as it was given, or a new DynamicCache; what the routers decided."""
        use_cache = self.config.use_cache if use_cache is None else use_cache
        past = None if past_key_values is None and not use_cache else self._past(past_key_values)
        wanted = {name: getattr(self.config, name, None) for name in _RETURNS}
        options = wanted | {name: value for name, value in options.items() if value is not None}
        check_options(options, input_ids, attention_mask, start=0 if past is None else past.length)
        hidden, past, routing = self.model(input_ids, attention_mask, past, use_cache)
        return hidden, past.cache if isinstance(past, TransformersCache) else past, routing

    def _past(self, given: Any) -> KVCache:
        """What the model's layers continue: a cache of transformers in our layout, or a fork of the notes' pairs."""
        ours = self.model.config
        if given is None:
            given = DynamicCache()
        if isinstance(given, Cache):
            return TransformersCache(given, ours.num_hidden_layers)
        return KVCache.from_pairs(given, ours.num_hidden_layers, ours.num_key_value_heads, ours.head_dim)

    def get_input_embeddings(self) -> nn.Module:
        return self.model.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.model.embed_tokens = cast(nn.Embedding, value)

    def resize_token_embeddings(self, *args: Any, **options: Any) -> nn.Module:
        """As in PreTrainedModel; the model then also knows its new vocabulary."""
        embeddings = super().resize_token_embeddings(*args, **options)
        self.model.config = self.config.to_minimind()
        return embeddings

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, MoEGate):
            module.reset_parameters()
        else:
            super()._init_weights(module)


class MiniMindEduModel(MiniMindEduPreTrainedModel):
    """MiniMindModel alone, without an output layer: what AutoModel loads."""

    _keys_to_ignore_on_load_unexpected = ["lm_head.weight"]

    def __init__(self, config: MiniMindEduConfig):
        super().__init__(config)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        **options: Any,
    ) -> BaseModelOutputWithPast:
        """Hidden states after the final norm, `[B, S, E]`; arguments and errors as in MiniMindEduForCausalLM."""
        hidden, past, _ = self.hidden_states(input_ids, attention_mask, past_key_values, use_cache, options)
        return BaseModelOutputWithPast(last_hidden_state=hidden, past_key_values=past)
