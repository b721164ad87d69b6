"""From a prompt to a text: read, choose a token (`sampling.py`), append it, feed it back.

`stream` yields one token for each row at a time; `generate` collects them. Both work on token ids only and know nothing
of text. Both are methods of MiniMindForCausalLM too, and of the decoders in `fast/`.
MiniMind: GenerationMixin.generate in MiniMind2, an own `generate` in MiniMind3.
"""

from collections.abc import Iterator
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor, nn

from minimind_edu.device import living_threads, one_thread
from minimind_edu.model.config import MiniMindConfig, tokens_of
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.sampling import Sampling
from minimind_edu.validation import (
    check_attention_mask,
    check_count,
    check_finite,
    check_flag,
    check_token_ids,
    checked_before,
)

Ends = int | list[int] | tuple[int, ...] | Literal["config"] | None


class LanguageModel(Protocol):
    """What generation needs: a config, and calls with MiniMindForCausalLM's arguments that return what it returns."""

    @property
    def config(self) -> MiniMindConfig: ...

    def __call__(self, *args: Any, **options: Any) -> Any: ...


def generate(model: LanguageModel, input_ids: Tensor, max_new_tokens: int = 128, **options: Any) -> Tensor:
    """The prompts with their continuations, `[B, S + new]`; it ends early when every row has ended.

    Arguments, options and errors as in `stream`.
    """
    tokens = stream(model, input_ids, max_new_tokens, **options)
    return torch.cat([input_ids, torch.stack(list(tokens), dim=1)], dim=1)


def stream(
    model: LanguageModel,
    input_ids: Tensor,
    max_new_tokens: int = 128,
    sampling: Sampling | None = None,
    *,
    attention_mask: Tensor | None = None,
    eos_token_id: Ends = "config",
    pad_token_id: int | None = None,
    use_cache: bool = True,
    **choice: Any,
) -> Iterator[Tensor]:
    """Continue the prompts, yielding `[B]` token ids at a time, until every row has ended or the number is reached.

    Arguments are checked at the call, with a ValueError that names the rule; then the model works as tokens are taken.

    Args:
        model: a MiniMindForCausalLM, or what is called like one. It is used as it is: call `.eval()` first.
        input_ids: `[B, S]` prompts; shorter ones are padded on the left.
        max_new_tokens: at most this many steps.
        sampling: the names of `choice` in one object.
        attention_mask: `[B, S]`, 0 on padding, 1 on tokens; None: no padding.
        eos_token_id: a row ends with this token, or with any of these; "config": those of the config; None: with none.
        pad_token_id: what an ended row yields while others go on; None: the (first) end-of-sequence id.
        use_cache: keep keys and values. Gives the same tokens as without, faster.
        choice: how a token is chosen, by the names of Sampling: `do_sample=True, top_k=5`. Nothing: greedily.
    """
    config = model.config
    if sampling is not None and choice:
        raise ValueError(f"a token is chosen as `sampling` says or as {', '.join(choice)} say; give one of the two")
    sampling = sampling or Sampling(**choice)
    check_flag("use_cache", use_cache)
    _check_prompt(config, input_ids, attention_mask, max_new_tokens)
    of_config = isinstance(eos_token_id, str) and eos_token_id == "config"
    ends = tokens_of(config.eos_token_id if of_config else eos_token_id)
    padding = pad_token_id if pad_token_id is not None else ends[0] if ends else 0
    for name, token in (*(("eos_token_id", end) for end in ends), ("pad_token_id", padding)):
        check_count(name, token, 0, config.vocab_size - 1)
    if hasattr(model, "named_parameters"):  # a decoder has those of its model
        with living_threads():
            check_finite(cast(nn.Module, model))
    prompt, total = input_ids.long(), input_ids.shape[1] + int(max_new_tokens)

    def steps() -> Iterator[Tensor]:
        mask = None  # [B, total], looked at here once instead of at every step
        if attention_mask is not None and not bool(attention_mask.all()):
            mask = torch.cat([attention_mask, attention_mask.new_ones(len(prompt), total - prompt.shape[1])], dim=1)
        cache = KVCache(config.num_hidden_layers, capacity=total) if use_cache else None
        penalized = sampling.repetition_penalty != 1
        seen = _seen(prompt, attention_mask, config.vocab_size) if penalized else None  # [B, V]
        end_tokens = torch.tensor(ends, dtype=torch.int64, device=prompt.device)
        ended = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)  # [B]
        text = unread = prompt  # [B, S]: all there is, and what the model has not read yet
        while text.shape[1] < total:
            with torch.no_grad(), checked_before():  # for a text once: every look at a value waits for a GPU
                out = model(
                    unread if use_cache else text,
                    None if mask is None else mask[:, : text.shape[1]],
                    past_key_values=cache,
                    use_cache=use_cache,
                    logits_to_keep=1,
                )
            cache = out.past_key_values
            with one_thread():  # torch's other threads, once woken, keep the processors of a decoder's busy
                token = sampling.choose(out.logits[:, -1], seen)  # [B, V] -> [B]
            if ends:
                token = torch.where(ended, padding, token)
                ended = ended | torch.isin(token, end_tokens)
            yield token
            if ends and bool(ended.all()):
                return
            unread = token[:, None]  # [B] -> [B, 1]
            text = torch.cat([text, unread], dim=1)
            if seen is not None:
                seen.scatter_(1, unread, True)

    return steps()


def _seen(prompt: Tensor, attention_mask: Tensor | None, vocab_size: int) -> Tensor:
    """Which tokens occur in each prompt, padding not counted: `[B, V]` boolean."""
    seen = torch.zeros(len(prompt), vocab_size, dtype=torch.bool, device=prompt.device)
    if attention_mask is None:
        return seen.scatter_(1, prompt, True)
    rows, columns = attention_mask.nonzero(as_tuple=True)
    seen[rows, prompt[rows, columns]] = True
    return seen


def _check_prompt(
    config: MiniMindConfig, input_ids: Tensor, attention_mask: Tensor | None, max_new_tokens: int
) -> None:
    check_token_ids(input_ids, config.vocab_size)
    check_count("max_new_tokens", max_new_tokens)
    # the last new token is returned but never read, so it needs no position
    needed = input_ids.shape[1] + max_new_tokens - 1
    if needed > config.max_position_embeddings:
        raise ValueError(
            f"a prompt of {input_ids.shape[1]} tokens and {max_new_tokens} new ones need {needed} positions, but "
            f"max_position_embeddings is {config.max_position_embeddings}; shorten the prompt or ask for fewer tokens"
        )
    if attention_mask is not None:
        check_attention_mask(attention_mask, input_ids.shape, " like input_ids")
        check_left_padding(attention_mask)


def check_left_padding(attention_mask: Tensor) -> None:
    """Raise a ValueError unless every row of `[B, S]` is padding, if any, and then tokens."""
    if not bool(attention_mask[:, -1].all()):
        raise ValueError(
            "prompts of different length must be padded on the left, so that every row ends with a real token: the "
            "next token continues the last position. Here attention_mask ends with 0 in row "
            f"{int((attention_mask[:, -1] == 0).nonzero()[0])}"
        )
    holes = attention_mask[:, 1:] < attention_mask[:, :-1]  # a token, then padding
    if bool(holes.any()):
        raise ValueError(
            "padding belongs in front of a row's tokens, not between them, but attention_mask goes from 1 to 0 in "
            f"row {int(holes.any(1).nonzero()[0])}"
        )
