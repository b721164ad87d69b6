"""Checks for the exercises on the KV cache (chapter 07).

Shapes with five different sizes are used throughout, so that an axis taken for another shows. The loop is watched
while it runs: which tokens it feeds, with which past, and how many in all.
Left out on purpose: sampling, which has a chapter of its own; the loop here is greedy.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks._cache_mistakes import (
    APPEND_MISTAKES,
    BYTES_MISTAKES,
    MASK_MISTAKES,
    POSITION_MISTAKES,
    append,
    cache_bytes,
    position_ids,
)
from minimind_edu.checks._report import Attempt, Property, difference, given, report, same_as
from minimind_edu.config import MiniMindConfig
from minimind_edu.masks import causal_mask
from minimind_edu.model import MiniMindForCausalLM

_BATCH, _LAYERS, _HEADS, _HEAD_DIM = 2, 3, 4, 6


def check_position_ids(attempt: Attempt) -> bool:
    """Does `attempt(past_key_values, input_ids)` give the positions of the new tokens, `[S]`?"""

    def asks(past: int, new: int) -> Any:
        cached = None if past == 0 else [(_numbers(past), _numbers(past))] * _LAYERS
        ids = torch.zeros(_BATCH, new, dtype=torch.long)
        return same_as(position_ids, cached, ids, mistakes=POSITION_MISTAKES)

    return report(
        "check_position_ids",
        attempt,
        [
            Property("a prompt of five, no past", asks(0, 5)),
            Property("one new token after ten", asks(10, 1)),
            Property("a chunk of three after ten", asks(10, 3)),
            Property("a chunk of seven after one", asks(1, 7)),
        ],
    )


def check_append(attempt: Attempt) -> bool:
    """Does `attempt(past, key, value)` return the keys and values of all positions, `[B, T + S, K, D]` each?"""
    return report(
        "check_append",
        attempt,
        [
            Property("no past: the new keys and values themselves", _appends(0, 5)),
            Property("one position behind five", _appends(5, 1)),
            Property("a chunk of three behind five", _appends(5, 3)),
            Property("the old tensors are left as they were", _leaves_the_past_alone),
        ],
    )


def check_rectangular_mask(attempt: Attempt) -> bool:
    """Does `attempt(query_length, key_length)` say which keys each query may see, `[S, T]`, boolean?"""

    def asks(query_length: int, key_length: int) -> Any:
        return same_as(causal_mask, query_length, key_length, mistakes=MASK_MISTAKES)

    return report(
        "check_rectangular_mask",
        attempt,
        [
            Property("a chunk of three after five", asks(3, 8)),
            Property("a prompt of four: the triangle", asks(4, 4)),
            Property("one token after six sees everything", asks(1, 7)),
            Property("True and False, not numbers to add", _is_boolean),
        ],
    )


def check_cached_generate(attempt: Attempt) -> bool:
    """Does `attempt(model, input_ids, max_new_tokens, eos_token_id)` continue the prompt greedily, with a cache?"""
    return report(
        "check_cached_generate",
        attempt,
        [
            Property("one new token, from the prompt's own logits", _continues(1)),
            Property("six new tokens, as without a cache", _continues(6)),
            Property("every token is read once, the last one never", _reads_once),
            Property("it stops after the end-of-sequence token", _stops),
        ],
    )


def check_kv_cache_bytes(attempt: Attempt) -> bool:
    """Does `attempt(config, batch, length, itemsize)` give the bytes of the keys and values of all layers?"""

    def asks(config: MiniMindConfig, batch: int, length: int, itemsize: int) -> Any:
        arguments = config, batch, length, itemsize
        return same_as(cache_bytes, *arguments, mistakes=BYTES_MISTAKES, rtol=1e-12)

    odd = MiniMindConfig(hidden_size=90, num_hidden_layers=7, num_attention_heads=15, num_key_value_heads=5)
    return report(
        "check_kv_cache_bytes",
        attempt,
        [
            # no two sizes are alike or multiples, so that a factor taken for another shows
            Property("7 layers, 5 of 15 heads, eleven sequences of 13, float32", asks(odd, 11, 13, 4)),
            Property("minimind2, one sequence of 10, float32", asks(MiniMindConfig(), 1, 10, 4)),
            Property(
                "minimind3, five sequences of 100, two bytes a number", asks(MiniMindConfig.minimind3(), 5, 100, 2)
            ),
            Property(
                "768 wide, 16 layers, 32,768 positions",
                asks(MiniMindConfig(hidden_size=768, num_hidden_layers=16), 1, 32_768, 2),
            ),
        ],
    )


def _numbers(length: int, shift: float = 0.0) -> Tensor:
    """`[B, length, K, D]` without two equal entries."""
    n = torch.arange(_BATCH * length * _HEADS * _HEAD_DIM, dtype=torch.float64)
    return (torch.sin(3 * n) + 0.1 * torch.sin(n * n) + shift).view(_BATCH, length, _HEADS, _HEAD_DIM)


def _pair(past: int, shift: float = 0.0) -> tuple[Tensor, Tensor] | None:
    return None if past == 0 else (_numbers(past, shift + 3.0), _numbers(past, shift + 7.0))


def _appends(past: int, new: int) -> Callable[[Attempt], str | None]:
    """A question: are both tensors those of the reference? If not, both are compared with each usual mistake."""

    def question(attempt: Attempt) -> str | None:
        arguments = _pair(past), _numbers(new, 11.0), _numbers(new, 17.0)
        answer = attempt(*_copied(arguments))
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            return f"return two tensors, keys and values: your function returned {type(answer).__name__}"
        for part in answer:
            given(part)
        expected = append(*arguments)
        if (problem := _pair_difference(answer, expected)) is None:
            return None
        for mistake in APPEND_MISTAKES:
            try:
                wrong = mistake.answer(*_copied(arguments))
            except RuntimeError:  # this mistake would not even run on these shapes
                continue
            usual = _pair_difference(wrong, expected) and _pair_difference(answer, wrong) is None
            if usual:
                return mistake.hint
        return problem

    return question


def _pair_difference(answer: Any, expected: tuple[Tensor, Tensor]) -> str | None:
    for name, got, wanted in zip(("keys", "values"), answer, expected, strict=True):
        if problem := difference(got, wanted):
            return f"{name}: {problem}"
    return None


def _copied(arguments: tuple) -> tuple:
    past, key, value = arguments
    return None if past is None else tuple(t.clone() for t in past), key.clone(), value.clone()


def _leaves_the_past_alone(attempt: Attempt) -> str | None:
    past, key, value = _pair(5), _numbers(1, 11.0), _numbers(1, 17.0)
    attempt(past, key, value)
    before = _pair(5)
    if all(torch.equal(now, then) for now, then in zip(past, before, strict=True)):
        return None
    return (
        "your function writes into the old tensors; whoever continues the same past in another way would read your "
        "numbers, so build new ones"
    )


def _is_boolean(attempt: Attempt) -> str | None:
    answer = torch.as_tensor(attempt(3, 8))
    if answer.dtype == torch.bool:
        return None
    return f"the mask is {answer.dtype}; masked_fill and PyTorch's attention take True and False: .bool()"


# ---- the loop, watched


class _Watched:
    """A tiny MiniMind that remembers how it was called."""

    def __init__(self) -> None:
        self.model = _tiny_model()
        self.config = self.model.config
        self.calls: list[tuple[int, int]] = []  # positions in the cache, new ones

    def __call__(self, input_ids: Tensor, attention_mask: Any = None, past_key_values: Any = None, **named: Any) -> Any:
        past = 0 if past_key_values is None else past_key_values[0][0].shape[1]
        self.calls.append((past, input_ids.shape[1]))
        return self.model(input_ids, attention_mask, past_key_values=past_key_values, **named)

    forward = __call__

    def eval(self) -> "_Watched":
        return self


@cache
def _tiny_model() -> MiniMindForCausalLM:
    """Two layers whose greedy text does not repeat itself; the notebook's random numbers are left as they were."""
    config = MiniMindConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        tie_word_embeddings=False,  # a tied one likes to repeat its last token
    )
    with torch.random.fork_rng(devices=[]):
        model = MiniMindForCausalLM(config).double().eval()
    random = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.copy_(torch.randn(weight.shape, generator=random, dtype=weight.dtype) / 2)
    return model


_PROMPT = torch.tensor([[5, 17, 30, 9]])


@cache
def _expected(new: int) -> Tensor:
    return _tiny_model().generate(_PROMPT, new, use_cache=False, eos_token_id=None)


def _run(attempt: Attempt, new: int, eos_token_id: int = -1) -> tuple[Tensor, _Watched]:
    watched = _Watched()
    with torch.no_grad():
        return torch.as_tensor(attempt(watched, _PROMPT.clone(), new, eos_token_id)), watched


def _continues(new: int) -> Callable[[Attempt], str | None]:
    def question(attempt: Attempt) -> str | None:
        answer, watched = _run(attempt, new)
        expected = _expected(new)
        if answer.shape == expected.shape and torch.equal(answer, expected):
            return None
        return _shape_hint(answer, new) or _call_hint(watched, answer) or difference(answer, expected)

    return question


def _shape_hint(answer: Tensor, new: int) -> str | None:
    prompt = _PROMPT.shape[1]
    if answer.dim() != 2:
        return f"return [1, S + new] ids like input_ids, got a tensor of shape {list(answer.shape)}"
    length = answer.shape[1]
    if length == prompt:
        return "you return the prompt only: append every chosen token, torch.cat([ids, token], dim=1)"
    if length == new:
        return "you return the new tokens only; the prompt belongs in front of them"
    if length != prompt + new:
        return f"you chose {length - prompt} tokens, {new} were asked for: one token for every pass through the loop"
    if not torch.equal(answer[:, :prompt], _PROMPT):
        return "the answer must begin with the prompt as it was given"
    return None


def _call_hint(watched: _Watched, answer: Tensor) -> str | None:
    """What the calls say about tokens that are wrong."""
    calls, prompt = watched.calls, _PROMPT.shape[1]
    if not calls:
        return "the model was never called"
    if calls[0] != (0, prompt):
        return "the first call reads the whole prompt, with no past"
    for (past, new), following in zip(calls, calls[1:], strict=False):
        held = past + new
        if following == (0, 1):
            return (
                "a single token went in without a past, at position 0: the call before must have use_cache=True, and "
                "its out.past_key_values must be handed on"
            )
        if following[0] == past and past:
            return "the past stands still: take out.past_key_values anew after every call"
        if following[0] == held and following[1] > 1:
            return (
                "you hand over the past and the old tokens too, so they are read twice, at wrong positions: with a "
                "past, only the new token goes in"
            )
    first = int(_expected(1)[0, -1])
    if answer.shape[1] > prompt and int(answer[0, prompt]) != first:
        if calls[1:2] == [(prompt, 1)] and len(calls) > answer.shape[1] - prompt:
            return (
                "the prompt's own logits already choose the first new token; you throw them away and feed a token of "
                "the prompt a second time"
            )
        return "the next token is chosen from the logits of the last position, out.logits[:, -1]"
    return "the first new token is right, the others are not: feed the token just chosen, as [B, 1]"


def _reads_once(attempt: Attempt) -> str | None:
    new, prompt = 6, _PROMPT.shape[1]
    _, watched = _run(attempt, new)
    read = sum(length for _, length in watched.calls)
    needed = prompt + new - 1
    if read == needed:
        return None
    told = f"{read} tokens were read, {needed} are needed: "
    if read == needed + 1:
        return told + "the last chosen token need not be read, nothing follows it"
    if all(past == 0 for past, _ in watched.calls):
        return told + "no call had a past, so every call read the whole text again"
    return told + "the prompt once, then every new token once"


def _stops(attempt: Attempt) -> str | None:
    """The third new token is declared to end the text: it is the last one returned."""
    new, prompt = 6, _PROMPT.shape[1]
    expected = _expected(new)[:, : prompt + 3]
    answer, watched = _run(attempt, new, int(expected[0, -1]))
    if answer.shape == expected.shape and torch.equal(answer, expected):
        if len(watched.calls) == 3:
            return None
        return "the tokens after the end are cut off, but were computed: leave the loop when the end is chosen"
    if torch.equal(answer, expected[:, :-1]):
        return "the end-of-sequence token itself belongs to the text: append it, then stop"
    if answer.shape[1] == prompt + new:
        return "it goes on after the end-of-sequence token: compare every chosen token with eos_token_id"
    return difference(answer, expected)
