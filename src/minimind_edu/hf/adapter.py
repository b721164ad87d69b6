"""Every model of this book inside transformers, unchanged: generate with all it can do, save, load, train.

    wrapped = MiniMindEduForCausalLM.from_minimind(model)      the same weights, not a copy
    wrapped.generate(ids, num_beams=4)                         GenerationMixin of transformers
    wrapped.save_pretrained(folder)
    AutoModelForCausalLM.from_pretrained(folder)               after `import minimind_edu.hf`

Names of tensors are upstream's. Positions are counted by the model itself, from the first column on, padding included:
only differences of positions matter to RoPE, so padding on the left changes nothing.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, Cache, DynamicCache, PreTrainedModel
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast, MoeCausalLMOutputWithPast
from transformers.utils.generic import can_return_tuple

from minimind_edu.hf.caches import TransformersCache, to_dynamic_cache
from minimind_edu.hf.config import MiniMindEduConfig, generation_config
from minimind_edu.kv_cache import KVCache
from minimind_edu.model import MiniMindForCausalLM, MiniMindModel
from minimind_edu.moe import MoEGate


class MiniMindEduForCausalLM(PreTrainedModel, GenerationMixin):
    """MiniMindModel and its output layer as a model of transformers."""

    config_class = MiniMindEduConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = False
    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: MiniMindEduConfig):
        super().__init__(config)
        self.model = MiniMindModel(config.to_minimind())
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()
        self.generation_config = generation_config(self.model.config)
        # on a GPU generate would compile this for a static cache; our layers read it only as far as it is filled, so
        # every step has a shape of its own
        self.generation_config.disable_compile = True

    @classmethod
    def from_minimind(cls, model: MiniMindForCausalLM) -> "MiniMindEduForCausalLM":
        """Wrap a model of ours. Nothing is copied: training one trains the other."""
        with torch.device("meta"):
            wrapped = cls(MiniMindEduConfig.from_minimind(model.config))
        wrapped.model, wrapped.lm_head = model.model, model.lm_head
        return wrapped.train(model.training)

    def to_minimind(self) -> MiniMindForCausalLM:
        """The model of ours with these weights, not a copy of them."""
        with torch.device("meta"):
            model = MiniMindForCausalLM(self.config.to_minimind())
        model.model, model.lm_head = self.model, self.lm_head
        return model.train(self.training)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int | Tensor = 0,
        **options: Any,
    ) -> CausalLMOutputWithPast:
        """Predict the next token at every position.

        Args:
            input_ids: `[B, S]`; with a past, only the positions that follow it.
            attention_mask: `[B, T]`, T = past + S; 0 on padding.
            past_key_values: a cache of transformers, which is continued in place; or the notes' pairs of
                `[B, T, K, D]`, one for each layer, which stay as they are.
            use_cache: return the cache: the one given, or a new DynamicCache. Given pairs, pairs are returned.
            labels: `[B, S]`, shifted inside; -100 is left out.
            logits_to_keep: logits for the last so many positions only (0: all), or for these indices.
            options: num_items_in_batch (what the loss is divided by), and position_ids if they say what the model
                counts anyway.

        Returns:
            the output of transformers. With experts `aux_loss` is the balancing loss, coefficient included, and
            `loss`, which is what a Trainer minimizes, contains it.

        Raises:
            ValueError: as MiniMindForCausalLM.forward, and for options that this model has no meaning for.
        """
        use_cache = self.config.use_cache if use_cache is None else use_cache
        past = self._past(past_key_values, use_cache)
        start = 0 if past is None else past.length
        _check_options(options, input_ids, attention_mask, start)
        hidden, past, routing = self.model(input_ids, attention_mask, past, use_cache)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(hidden[:, kept])  # [B, S, E] -> [B, S, V]
        loss = None
        if labels is not None:
            loss = self._loss(logits, labels, options.get("num_items_in_batch"))
        past = past.cache if isinstance(past, TransformersCache) else past
        if not routing:
            return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past)
        aux_loss = torch.stack([routed.aux_loss for routed in routing]).sum()
        return MoeCausalLMOutputWithPast(
            loss=None if loss is None else loss + aux_loss, aux_loss=aux_loss, logits=logits, past_key_values=past
        )

    def _past(self, given: Any, use_cache: bool) -> KVCache | None:
        """What the model's layers continue: a cache of transformers in our layout, or a fork of the notes' pairs."""
        ours = self.model.config
        if given is None and not use_cache:
            return None
        if given is None:
            given = DynamicCache()
        if isinstance(given, Cache):
            return TransformersCache(given, ours.num_hidden_layers)
        sizes = (ours.num_hidden_layers, ours.num_key_value_heads, ours.head_dim)
        return KVCache.from_pairs(given, *sizes)

    def _loss(self, logits: Tensor, labels: Tensor, num_items_in_batch: Any) -> Tensor:
        if labels.shape != logits.shape[:2]:
            raise ValueError(
                f"labels {list(labels.shape)} need the logits of all positions, got {list(logits.shape[:2])}; leave "
                "logits_to_keep out"
            )
        return self.loss_function(
            logits=logits, labels=labels, vocab_size=self.config.vocab_size, num_items_in_batch=num_items_in_batch
        )

    def generate(self, *inputs: Any, past_key_values: Any = None, **options: Any) -> Any:
        """As in GenerationMixin; a past may also be the notes' pairs of `[B, T, K, D]`."""
        if past_key_values is not None:
            if not isinstance(past_key_values, Cache):
                past_key_values = to_dynamic_cache(past_key_values)
            options["past_key_values"] = past_key_values
        return super().generate(*inputs, **options)

    @staticmethod
    def create_masks_for_generate(attention_mask: Tensor | None = None, **_: Any) -> Tensor | None:
        """Keep the `[B, T]` mask: transformers would unfold it for static caches, our attention does so itself."""
        return attention_mask

    def get_input_embeddings(self) -> nn.Module:
        return self.model.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.model.embed_tokens = value

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        self.lm_head = new_embeddings

    def resize_token_embeddings(self, *args: Any, **options: Any) -> nn.Module:
        """As in PreTrainedModel; the model then also knows its new vocabulary."""
        embeddings = super().resize_token_embeddings(*args, **options)
        self.model.config = self.config.to_minimind()
        return embeddings

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, MiniMindModel):
            # from_pretrained builds on the meta device and leaves empty memory where no file holds a tensor
            module.rebuild_tables()
        elif isinstance(module, MoEGate):
            nn.init.kaiming_uniform_(module.weight, a=5**0.5)
        else:
            super()._init_weights(module)


def _check_options(options: dict[str, Any], input_ids: Tensor, attention_mask: Tensor | None, start: int) -> None:
    """Nothing that would change the result may be ignored in silence."""
    for name, value in options.items():
        if name in ("num_items_in_batch", "cache_position") or value is None or value is False:
            continue
        if name != "position_ids":
            raise ValueError(
                f"this model has no {name}: it takes token ids, attends to everything before, and returns logits; "
                "minimind_edu.attention and its figures show attention weights"
            )
        _check_positions(value, input_ids, attention_mask, start)


def _check_positions(positions: Tensor, input_ids: Tensor, attention_mask: Tensor | None, start: int) -> None:
    length = input_ids.shape[1]
    if attention_mask is None:
        attention_mask = input_ids.new_ones(input_ids.shape[0], start + length)
    real = attention_mask[:, -length:].bool()  # [B, S]
    columns = torch.arange(start, start + length, device=input_ids.device)  # [S]
    without_padding = attention_mask.long().cumsum(-1)[:, -length:] - 1  # [B, S]
    if not any(bool(((positions == expected) | ~real).all()) for expected in (columns, without_padding)):
        raise ValueError(
            "position_ids say something else than one position after the other, which this model counts by itself; "
            "leave them out, and pad on the left"
        )


AutoConfig.register(MiniMindEduConfig.model_type, MiniMindEduConfig)
AutoModelForCausalLM.register(MiniMindEduConfig, MiniMindEduForCausalLM)
