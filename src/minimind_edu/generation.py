"""From logits to text: choose a token, append it, feed it back.

Greedy takes the most probable token. Sampling draws from softmax(logits / temperature), after top-k has kept the k
largest and top-p (nucleus) the smallest set that holds a probability of p. Holtzman et al. 2019, arXiv 1904.09751;
repetition penalty: Keskar et al. 2019, arXiv 1909.05858.

`stream` yields one token for each row at a time; `generate` collects them. Both work on token ids only and know
nothing of text. The model is anything that is called like MiniMindForCausalLM.
MiniMind: GenerationMixin.generate in MiniMind2, an own `generate` in MiniMind3.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from minimind_edu.kv_cache import KVCache


def penalize_repetition(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Make tokens that have occurred less likely: positive logits are divided by the penalty, negative multiplied.

    Args:
        logits: `[B, V]`.
        seen: `[B, V]` boolean, True for tokens that have occurred in that row.
        penalty: 1 changes nothing; above 1 discourages.
    """
    if penalty == 1.0:
        return logits
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def keep_top_k(logits: Tensor, top_k: int) -> Tensor:
    """All but the `top_k` largest logits of each row become -inf (ties with the last one stay). `[B, V]` -> same."""
    smallest_kept = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]  # [B, 1]
    return logits.masked_fill(logits < smallest_kept, -torch.inf)


def keep_top_p(logits: Tensor, top_p: float) -> Tensor:
    """Keep the most probable tokens until their probabilities add up to `top_p`; at least one. `[B, V]` -> same."""
    ordered, index = logits.sort(descending=True)  # [B, V]
    probabilities = ordered.softmax(-1)
    # A token stays while those before it have not yet reached top_p, so the first one always stays.
    before = probabilities.cumsum(-1) - probabilities
    ordered = ordered.masked_fill(before >= top_p, -torch.inf)
    return torch.empty_like(logits).scatter(-1, index, ordered)


def choose(
    logits: Tensor,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The next token of each row: `[B, V]` logits -> `[B]` ids. Arguments as in `stream`."""
    if not do_sample:
        return logits.argmax(-1)
    logits = logits.float()
    # softmax does not care for a constant; without it a tiny temperature would overflow
    logits = (logits - logits.max(-1, keepdim=True).values) / temperature
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    probabilities = logits.softmax(-1)
    # a CPU generator draws the same tokens for a model on any device
    where = probabilities.device if generator is None else generator.device
    drawn = torch.multinomial(probabilities.to(where), 1, generator=generator)  # [B, 1]
    return drawn[:, 0].to(logits.device)


def stream(
    model: Callable[..., Any],
    input_ids: Tensor,
    max_new_tokens: int = 128,
    *,
    attention_mask: Tensor | None = None,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
    eos_token_id: int | None = -1,
    pad_token_id: int | None = None,
    use_cache: bool = True,
    generator: torch.Generator | None = None,
    decode: str = "plain",
) -> Iterator[Tensor]:
    """Continue the prompts, yielding `[B]` token ids at a time, until every row has ended or the number is reached.

    Args:
        model: called like MiniMindForCausalLM, and having its `config`. It is used as it is: call `.eval()` first.
        input_ids: `[B, S]` prompts; shorter ones are padded on the left.
        max_new_tokens: at most so many steps.
        attention_mask: `[B, S]`, 0 on padding, 1 on tokens; None: no padding.
        do_sample: draw from the distribution instead of taking the most probable token.
        temperature: divides the logits; below 1 sharpens, above 1 flattens. Used when sampling, as top_k and top_p.
        top_k: keep the so many most probable tokens; None: all.
        top_p: keep the most probable tokens up to this total probability; None: all.
        repetition_penalty: above 1 makes tokens of the prompt and of the continuation less likely.
        eos_token_id: a row ends with this token; -1 takes the config's, None never ends a row.
        pad_token_id: what an ended row yields while others go on; None: the end-of-sequence id.
        use_cache: keep keys and values. Gives the same tokens as without, sooner.
        generator: source of randomness for sampling.
        decode: how single tokens are read. "plain": by the model as it is called here; any other way is asked of
            the model, `model.decoder(decode)`. The same tokens in every way.

    Raises:
        ValueError: for arguments outside their range, padding that is not on the left, or a text that would grow
            past max_position_embeddings; the message says which.
    """
    if decode != "plain":
        model = model.decoder(decode)
    config = model.config
    _check(config, input_ids, attention_mask, max_new_tokens, do_sample, temperature, top_k, top_p, repetition_penalty)
    if eos_token_id == -1:
        eos_token_id = config.eos_token_id
    if pad_token_id is None:
        pad_token_id = 0 if eos_token_id is None else eos_token_id
    options = (input_ids, max_new_tokens, attention_mask, repetition_penalty, eos_token_id, pad_token_id, use_cache)

    def pick(logits: Tensor) -> Tensor:
        return choose(logits, do_sample, temperature, top_k, top_p, generator)

    # The checks above run at the call; what follows runs while the caller takes tokens.
    return _steps(model, pick, *options)


def _steps(
    model: Callable[..., Any],
    pick: Callable[[Tensor], Tensor],
    input_ids: Tensor,
    max_new_tokens: int,
    attention_mask: Tensor | None,
    repetition_penalty: float,
    eos_token_id: int | None,
    pad_token_id: int,
    use_cache: bool,
) -> Iterator[Tensor]:
    batch, prompt_length = input_ids.shape
    total = prompt_length + max_new_tokens
    if attention_mask is not None and bool(attention_mask.all()):
        attention_mask = None  # no padding: found out here once, not at every step
    if attention_mask is not None:
        ones = attention_mask.new_ones(batch, max_new_tokens)
        attention_mask = torch.cat([attention_mask, ones], dim=1)  # [B, total]
    cache = KVCache(model.config.num_hidden_layers, capacity=total) if use_cache else None
    seen = _seen(input_ids, attention_mask, model.config.vocab_size)  # [B, V]
    ended = torch.zeros(batch, dtype=torch.bool, device=input_ids.device)
    text = input_ids
    new = input_ids  # what the model has not read yet
    for length in range(prompt_length, total):
        mask = None if attention_mask is None else attention_mask[:, :length]
        with torch.no_grad():
            out = model(new if use_cache else text, mask, past_key_values=cache, use_cache=use_cache, logits_to_keep=1)
        cache = out.past_key_values
        token = pick(penalize_repetition(out.logits[:, -1], seen, repetition_penalty))  # [B, V] -> [B]
        if eos_token_id is not None:
            token = torch.where(ended, pad_token_id, token)
            ended = ended | (token == eos_token_id)
        yield token
        if eos_token_id is not None and bool(ended.all()):
            return
        seen.scatter_(1, token[:, None], True)
        new = token[:, None]  # [B] -> [B, 1]
        if not use_cache:
            text = torch.cat([text, new], dim=1)


def generate(model: Callable[..., Any], input_ids: Tensor, max_new_tokens: int = 128, **options: Any) -> Tensor:
    """The prompts with their continuations, `[B, S + new]`; arguments and errors as in `stream`.

    It ends early when every row has produced its end-of-sequence token.
    """
    tokens = list(stream(model, input_ids, max_new_tokens, **options))
    return torch.cat([input_ids, torch.stack(tokens, dim=1)], dim=1)


def _seen(input_ids: Tensor, attention_mask: Tensor | None, vocab_size: int) -> Tensor:
    """Which tokens occur in each prompt, padding not counted: `[B, V]` boolean."""
    seen = torch.zeros(input_ids.shape[0], vocab_size, dtype=torch.bool, device=input_ids.device)
    if attention_mask is None:
        return seen.scatter_(1, input_ids, True)
    rows, columns = attention_mask[:, : input_ids.shape[1]].nonzero(as_tuple=True)
    seen[rows, input_ids[rows, columns]] = True
    return seen


def check_token_ids(ids: Tensor, vocab_size: int, name: str = "input_ids") -> None:
    """Raise a ValueError unless `ids` is `[B, S]` integers of the vocabulary with at least one position."""
    if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"{name} must be integers of shape [B, S], got {ids.dtype} of shape {list(ids.shape)}; "
            "torch.tensor([ids]) makes one row a batch"
        )
    if ids.numel() == 0:
        raise ValueError(
            f"{name} must hold at least one token a row, got {list(ids.shape)}; start an empty prompt with the "
            "beginning-of-sequence token"
        )
    low, high = (int(value) for value in ids.aminmax())
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"{name}: token ids must lie in [0, {vocab_size}), got ids from {low} to {high}; "
            "does the tokenizer belong to this model?"
        )


def _check(
    config: Any,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    max_new_tokens: int,
    do_sample: bool,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    repetition_penalty: float,
) -> None:
    check_token_ids(input_ids, config.vocab_size)
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    # the last new token is returned but never read, so it needs no position
    needed = input_ids.shape[1] + max_new_tokens - 1
    if needed > config.max_position_embeddings:
        raise ValueError(
            f"a prompt of {input_ids.shape[1]} tokens and {max_new_tokens} new ones need {needed} positions, but "
            f"max_position_embeddings is {config.max_position_embeddings}; shorten the prompt or ask for fewer tokens"
        )
    if do_sample and not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}; for greedy choice use do_sample=False")
    if top_k is not None and (not isinstance(top_k, int) or top_k < 1):
        raise ValueError(f"top_k must be a whole number of at least 1, got {top_k}; None keeps all tokens")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is a probability above 0 and at most 1, got {top_p}; None keeps all tokens")
    if not repetition_penalty > 0:
        raise ValueError(f"repetition_penalty must be above 0, got {repetition_penalty}; 1 changes nothing")
    if attention_mask is not None:
        _check_left_padding(input_ids, attention_mask)


def _check_left_padding(input_ids: Tensor, attention_mask: Tensor) -> None:
    if attention_mask.shape != input_ids.shape:
        raise ValueError(
            f"attention_mask must be [B, S] like input_ids, {list(input_ids.shape)}, got {list(attention_mask.shape)}"
        )
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
