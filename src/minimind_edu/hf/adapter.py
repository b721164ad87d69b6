"""Every model of this book inside transformers, unchanged: generate with all it can do, save, load, train.

    wrapped = MiniMindEduForCausalLM.from_minimind(model)      the same weights, not a copy
    wrapped.generate(ids, num_beams=4)                         GenerationMixin of transformers
    wrapped.save_pretrained(folder)
    AutoModelForCausalLM.from_pretrained(folder)               after `import minimind_edu.hf`

Names of tensors are upstream's. Positions are counted by the model itself, from the first column on, padding included:
only differences of positions matter to RoPE, so padding on the left changes nothing.
"""

from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast, MoeCausalLMOutputWithPast
from transformers.utils.generic import can_return_tuple

from minimind_edu.hf.base_model import MiniMindEduModel, MiniMindEduPreTrainedModel
from minimind_edu.hf.caches import TransformersCache, to_dynamic_cache
from minimind_edu.hf.config import MiniMindEduConfig, generation_config
from minimind_edu.model.generation import check_left_padding
from minimind_edu.model.loss import check_labels
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.validation import check_tensor, check_token_ids
from minimind_edu.weights.without_storage import without_storage


class MiniMindEduForCausalLM(MiniMindEduPreTrainedModel, GenerationMixin):
    """MiniMindModel and its output layer as a model of transformers."""

    _tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}

    def __init__(self, config: MiniMindEduConfig):
        super().__init__(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self._ours: tuple[MiniMindForCausalLM, ...] = ()  # in a tuple: as a module its weights would count twice
        self.post_init()
        self.generation_config = generation_config(self.model.config)
        # on a GPU generate would compile this for a static cache; our layers read it only as far as it is filled, so
        # every step has a shape of its own
        self.generation_config.disable_compile = True

    @classmethod
    def from_minimind(cls, model: MiniMindForCausalLM) -> "MiniMindEduForCausalLM":
        """Wrap a model of ours. Nothing is copied: training one trains the other.

        Raises a ValueError for anything else.
        """
        if not isinstance(model, MiniMindForCausalLM):
            raise ValueError(f"only a MiniMindForCausalLM can be wrapped, got {type(model).__name__}")
        with torch.device("meta"):
            wrapped = cls(MiniMindEduConfig.from_minimind(model.config))
        wrapped.model, wrapped.lm_head, wrapped._ours = model.model, model.lm_head, (model,)
        return wrapped.train(model.training)

    def to_minimind(self) -> MiniMindForCausalLM:
        """The model of ours with these weights, not a copy of them: the one that was wrapped, if there was one."""
        if not self._ours:
            model = without_storage(self.model.config)
            model.model, model.lm_head = self.model, self.lm_head
            self._ours = (model,)
        return self._ours[0].train(self.training)

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int | Tensor = 0,
        **options: Any,
    ) -> CausalLMOutputWithPast | MoeCausalLMOutputWithPast:
        """Predict the next token at every position.

        Args:
            input_ids: `[B, S]`; with a past, only the positions that follow it.
            attention_mask: `[B, T]`, T = past + S; 0 on padding.
            past_key_values: a cache of transformers, which is continued in place; or the notes' pairs of
                `[B, T, K, D]`, one for each layer, which stay as they are.
            use_cache: return the cache: the one given, or a new DynamicCache. Given pairs, pairs are returned.
            labels: `[B, S]`, shifted inside; -100 is left out.
            logits_to_keep: how many last positions get logits (0: all), or the indices of those that do.
            options: num_items_in_batch (what the loss is divided by), and position_ids if they say what the model
                counts anyway.

        Returns:
            the output of transformers. With experts `aux_loss` is the balancing loss, coefficient included, and
            `loss`, which is what a Trainer minimizes, contains it.

        Raises:
            ValueError: as MiniMindForCausalLM.forward, and for options that this model has no meaning for.
        """
        hidden, past, routing = self.hidden_states(input_ids, attention_mask, past_key_values, use_cache, options)
        kept = _kept(logits_to_keep, hidden.shape[1])
        logits = self.lm_head(hidden[:, kept])  # [B, S, E] -> [B, S, V]
        loss = None
        if labels is not None:
            items = options.get("num_items_in_batch")
            # of several small batches, one may have nothing to predict
            check_labels(labels, logits.shape, needed=items is None)
            sizes = {"vocab_size": self.config.vocab_size, "num_items_in_batch": items}
            loss = self.loss_function(logits=logits, labels=labels.long(), **sizes)
        if not routing:
            return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past)
        aux_loss = torch.stack([routed.aux_loss for routed in routing]).sum()
        return MoeCausalLMOutputWithPast(
            loss=None if loss is None else loss + aux_loss, aux_loss=aux_loss, logits=logits, past_key_values=past
        )

    def generate(
        self, *inputs: Any, attention_mask: Tensor | None = None, past_key_values: Any = None, **options: Any
    ) -> Any:
        """As in GenerationMixin; a past may also be the notes' pairs of `[B, T, K, D]`.

        Raises:
            ValueError: as in GenerationMixin, and for padding that is not on the left.
        """
        prompt = inputs[0] if inputs else options.get("input_ids", options.get("inputs"))
        if prompt is not None:
            check_token_ids(prompt, self.config.vocab_size)
        if attention_mask is not None:
            check_tensor("attention_mask", attention_mask, "of ones and zeros [B, S]")
            check_left_padding(attention_mask)
        if past_key_values is not None:
            past = self._past(past_key_values)
            options["past_key_values"] = past.cache if isinstance(past, TransformersCache) else to_dynamic_cache(past)
        generate = super().generate  # pyright: ignore[reportAttributeAccessIssue]: it narrows self to a protocol
        return generate(*inputs, attention_mask=attention_mask, **options)

    @staticmethod
    def create_masks_for_generate(attention_mask: Tensor | None = None, **_: Any) -> Tensor | None:
        """Keep the `[B, T]` mask: transformers would unfold it for static caches, our attention does so itself."""
        return attention_mask

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        self.lm_head = cast(nn.Linear, new_embeddings)

    def resize_token_embeddings(self, *args: Any, **options: Any) -> nn.Module:
        """As in PreTrainedModel; the model that was wrapped changes with this one."""
        embeddings = super().resize_token_embeddings(*args, **options)
        for ours in self._ours:
            ours.config, ours.lm_head = self.model.config, self.lm_head
        return embeddings


def _kept(logits_to_keep: Any, length: int) -> slice | Tensor:
    """Which of S positions get logits."""
    if isinstance(logits_to_keep, Tensor):
        whole = logits_to_keep.dim() == 1 and logits_to_keep.dtype in (torch.int64, torch.int32)
        if whole and bool(((logits_to_keep >= -length) & (logits_to_keep < length)).all()):
            return logits_to_keep
    elif isinstance(logits_to_keep, int) and not isinstance(logits_to_keep, bool) and 0 <= logits_to_keep <= length:
        return slice(-logits_to_keep, None)
    raise ValueError(
        f"logits_to_keep must be a number of positions between 0 (all) and {length}, or a tensor of their indices, "
        f"got {logits_to_keep!r}"
    )


AutoConfig.register(MiniMindEduConfig.model_type, MiniMindEduConfig)
AutoModel.register(MiniMindEduConfig, MiniMindEduModel)
AutoModelForCausalLM.register(MiniMindEduConfig, MiniMindEduForCausalLM)
