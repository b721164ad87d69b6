"""Exercises on the KV cache (chapter 07).

All axes have different sizes, so that a wrong axis shows. The loop is watched while it runs: which tokens it feeds,
with which past, and how many in all. Left out on purpose: sampling; the loop here is greedy.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, FindProblem, Mistake, Property, difference, numbers
from minimind_edu.config import MiniMindConfig
from minimind_edu.masks import causal_mask
from minimind_edu.model import MiniMindForCausalLM

Pair = tuple[Tensor, Tensor]
Past = list[Pair] | None

_BATCH, _LAYERS, _HEADS, _HEAD_DIM = 2, 3, 4, 6


def _pair(length: int, shift: float = 0.0) -> Pair:
    """Keys and values, `[B, length, K, D]` each."""
    shape = (_BATCH, length, _HEADS, _HEAD_DIM)
    return numbers(*shape, shift=shift), numbers(*shape, shift=shift + 4.0)


def _cached(past: Past, axis: int = 1) -> int:
    """The size of this axis of the first layer's keys, 0 without a past."""
    return 0 if past is None else past[0][0].shape[axis]


def _positions(past: Past, input_ids: Tensor) -> Tensor:
    return torch.arange(input_ids.shape[1]) + _cached(past)


def _past_and_ids(past: int, new: int) -> tuple[Past, Tensor]:
    return [_pair(past)] * _LAYERS if past else None, torch.zeros(_BATCH, new, dtype=torch.long)


POSITION_IDS = Exercise(
    "check_position_ids",
    answer=_positions,
    cases=(
        Case("a prompt of five, no past", _past_and_ids(0, 5)),
        Case("one new token after ten", _past_and_ids(10, 1)),
        Case("a chunk of three after ten", _past_and_ids(10, 3)),
        Case("a chunk of seven after one", _past_and_ids(1, 7)),
    ),
    mistakes=(
        Mistake(
            lambda past, ids: _positions(None, ids),
            "you number every call from 0; the first new position is the number of positions in the cache",
        ),
        Mistake(
            lambda past, ids: _positions(None, ids) + len(past or ()),
            "len(past_key_values) is the number of layers; the positions are axis 1 of its keys, past[0][0].shape[1]",
        ),
        Mistake(
            lambda past, ids: _positions(None, ids) + _cached(past, 2),
            "shape[2] is the number of key/value heads in MiniMind's layout [B, T, K, D]; the positions are shape[1] "
            "(the caches of transformers are [B, K, T, D], where shape[2] would be right)",
        ),
        Mistake(
            lambda past, ids: torch.arange(_cached(past) + ids.shape[1]),
            "these are all positions, old and new; only the new tokens are computed, so return only theirs",
        ),
        Mistake(
            lambda past, ids: torch.full((ids.shape[1],), _cached(past)),
            "every token of a chunk gets the same position; count on from the first one",
        ),
    ),
)


def check_position_ids(attempt: Attempt) -> bool:
    """Does `attempt(past_key_values, input_ids)` give the positions of the new tokens, `[S]`?"""
    return POSITION_IDS.check(attempt)


def _append(past: Pair | None, key: Tensor, value: Tensor) -> Pair:
    return (key, value) if past is None else (torch.cat([past[0], key], dim=1), torch.cat([past[1], value], dim=1))


APPEND = Exercise(
    "check_append",
    answer=_append,
    cases=(
        Case("no past: the new keys and values themselves", (None, *_pair(5))),
        Case("one position behind five", (_pair(5), *_pair(1, shift=1.0))),
        Case("a chunk of three behind five", (_pair(5), *_pair(3, shift=1.0))),
        Case(
            "the old tensors are left as they were",
            (_pair(5), *_pair(1, shift=1.0)),
            untouched="your function writes into the old tensors, so a second text that continues the same past reads "
            "your numbers: build new ones",
        ),
    ),
    mistakes=(
        Mistake(
            lambda past, key, value: (key, value), "you return the new positions only; put the old ones before them"
        ),
        Mistake(
            lambda past, key, value: (key, value) if past is None else _append((key, value), *past),
            "the new positions come before the old ones; time runs along axis 1, so the old ones come first",
        ),
        Mistake(
            lambda past, key, value: _append(past, key, value)[::-1],
            "keys and values have changed places: return the keys first",
        ),
        Mistake(
            lambda past, key, value: (key, value) if past is None else (_append(past, key, value)[0],) * 2,
            "the values are a second copy of the keys: append the new value to past[1]",
        ),
        Mistake(
            lambda past, key, value: (key, value) if past is None else _append(past, key[:, -1:], value[:, -1:]),
            "you append the last new position only; a chunk has several, and all of them belong in the cache",
        ),
    ),
    parts=("keys", "values"),
)


def check_append(attempt: Attempt) -> bool:
    """Does `attempt(past, key, value)` return the keys and values of all positions, `[B, T + S, K, D]` each?"""
    return APPEND.check(attempt)


def _lower(rows: int, columns: int, diagonal: int) -> Tensor:
    return torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)


def _is_boolean(attempt: Attempt) -> str | None:
    dtype = torch.as_tensor(attempt(3, 8)).dtype
    return (
        None if dtype is torch.bool else f"the mask is {dtype}; masked_fill and PyTorch's attention take bool: .bool()"
    )


RECTANGULAR_MASK = Exercise(
    "check_rectangular_mask",
    answer=causal_mask,
    cases=(
        Case("a chunk of three after five", (3, 8)),
        Case("a prompt of four: the triangle", (4, 4)),
        Case("one token after six sees everything", (1, 7)),
        Property("True and False, not numbers to add", _is_boolean),
    ),
    mistakes=(
        Mistake(lambda s, t: ~causal_mask(s, t), "the mask is inverted: True means that a query may see the key"),
        Mistake(
            lambda s, t: _lower(s, t, 0),
            "the diagonal begins in the upper left corner, as if the queries were the first positions. They are the "
            "last: shift it by key_length - query_length",
        ),
        Mistake(
            lambda s, t: _lower(s, t, s - t),
            "you shift the diagonal the wrong way: key_length - query_length, a positive number, moves it to the right",
        ),
        Mistake(
            lambda s, t: _lower(s, t, t - s - 1), "your mask hides one key too many: a query may see its own position"
        ),
        Mistake(
            lambda s, t: _lower(t, t, 0),
            "this is the mask of all T positions, [T, T]; only its last S rows belong to the queries of this call",
        ),
    ),
)


def check_rectangular_mask(attempt: Attempt) -> bool:
    """Does `attempt(query_length, key_length)` say which keys each query may see, `[S, T]`, boolean?"""
    return RECTANGULAR_MASK.check(attempt)


class _Watched:
    """A tiny MiniMind that remembers how it was called."""

    def __init__(self) -> None:
        self.model = _tiny_model()
        self.config = self.model.config
        self.calls: list[tuple[int, int]] = []  # positions in the cache, new ones
        self.fed: list[int] = []  # all tokens, in the order in which they were read

    def __call__(self, input_ids: Tensor, attention_mask: Any = None, past_key_values: Any = None, **named: Any) -> Any:
        if input_ids.dim() != 2:
            raise ValueError(f"the model takes ids [B, S], got {list(input_ids.shape)}: argmax(-1, keepdim=True)")
        self.calls.append((0 if past_key_values is None else past_key_values[0][0].shape[1], input_ids.shape[1]))
        self.fed += input_ids[0].tolist()
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
        tie_word_embeddings=False,  # a tied model likes to repeat its last token
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


def _continues(new: int) -> FindProblem:
    def find_problem(attempt: Attempt) -> str | None:
        answer, watched = _run(attempt, new)
        if answer.shape == _expected(new).shape and torch.equal(answer, _expected(new)):
            return None
        return _shape_hint(answer, new) or _call_hint(watched, answer)

    return find_problem


def _shape_hint(answer: Tensor, new: int) -> str | None:
    prompt = _PROMPT.shape[1]
    if answer.dim() != 2:
        return f"return ids [1, S + new], like input_ids; the answer has shape {list(answer.shape)}"
    length = answer.shape[1]
    if length == prompt:
        return "you return the prompt only: append every chosen token, torch.cat([ids, token], dim=1)"
    if length == new:
        return "you return the new tokens only; put the prompt before them"
    if length != prompt + new:
        return f"you chose {length - prompt} tokens, but max_new_tokens is {new}: one token per pass through the loop"
    if not torch.equal(answer[:, :prompt], _PROMPT):
        return "the answer must begin with the prompt as it was given"
    return None


def _call_hint(watched: _Watched, answer: Tensor) -> str:
    """What the calls tell about wrong tokens in an answer of the right length."""
    calls, prompt = watched.calls, _PROMPT.shape[1]
    if not calls:
        return "the model was never called"
    if calls[0][0] or watched.fed[:prompt] != _PROMPT[0].tolist():
        return "the first call reads the whole prompt, with no past"
    for (past, new), following in zip(calls, calls[1:], strict=False):
        if following == (0, 1):
            return (
                "a single token went in without a past, at position 0: the call before must have use_cache=True, and "
                "you must pass on its out.past_key_values"
            )
        if following[0] == past and past:
            return "the past does not grow: take out.past_key_values anew after every call"
        if following[0] == past + new and following[0] >= prompt and following[1] > 1:
            return (
                "you pass the past and the old tokens too, so they are read twice, at wrong positions: with a past, "
                "feed only the new token"
            )
    if watched.fed[prompt : prompt + 1] == [int(_PROMPT[0, -1])] and len(watched.fed) > answer.shape[1] - 1:
        return (
            "the prompt's own logits already choose the first new token; you discard them and feed the prompt's last "
            "token a second time"
        )
    if watched.fed == answer[0, : len(watched.fed)].tolist():
        return "the next token is the most probable one after the last position, out.logits[:, -1].argmax(-1)"
    return "the first new token is right, the others are not: feed the token just chosen, as [B, 1]"


def _reads_once(attempt: Attempt) -> str | None:
    new, prompt = 6, _PROMPT.shape[1]
    _, watched = _run(attempt, new)
    read, needed = len(watched.fed), prompt + new - 1
    if read == needed:
        return None
    hint = f"{read} tokens were read, but only {needed} are needed: "
    if read == needed + 1:
        return hint + "do not read the last chosen token, nothing follows it"
    if all(past == 0 for past, _ in watched.calls):
        return hint + "no call had a past, so every call read the whole text again"
    return hint + "the prompt once, then every new token once"


def _stops(attempt: Attempt) -> str | None:
    """The third new token is declared to end the text: it is the last one returned."""
    new, prompt = 6, _PROMPT.shape[1]
    expected = _expected(new)[:, : prompt + 3]
    answer, watched = _run(attempt, new, int(expected[0, -1]))
    if answer.shape == expected.shape and torch.equal(answer, expected):
        if len(watched.fed) == prompt + 2:
            return None
        return "you cut off the tokens after the end, but computed them first: leave the loop when the end is chosen"
    if torch.equal(answer, expected[:, :-1]):
        return "the end-of-sequence token itself belongs to the text: append it, then stop"
    if answer.shape[1] == prompt + new:
        return "your loop continues after the end-of-sequence token: compare every chosen token with eos_token_id"
    return difference(answer, expected)


def _generate(model: MiniMindForCausalLM, input_ids: Tensor, max_new_tokens: int, eos_token_id: int) -> Tensor:
    past, unread = None, input_ids
    for _ in range(max_new_tokens):
        out = model(unread, past_key_values=past, use_cache=True)
        past, unread = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
        input_ids = torch.cat([input_ids, unread], dim=1)
        if int(unread) == eos_token_id:
            break
    return input_ids


CACHED_GENERATE = Exercise(
    "check_cached_generate",
    answer=_generate,
    cases=(
        Property("one new token, from the prompt's own logits", _continues(1)),
        Property("six new tokens, as without a cache", _continues(6)),
        Property("every token is read once, the last one never", _reads_once),
        Property("it stops after the end-of-sequence token", _stops),
    ),
)


def check_cached_generate(attempt: Attempt) -> bool:
    """Does `attempt(model, input_ids, max_new_tokens, eos_token_id)` continue the prompt greedily, with a cache?"""
    return CACHED_GENERATE.check(attempt)


def _cache_bytes(config: MiniMindConfig, batch: int, length: int, itemsize: int) -> int:
    per_layer = 2 * batch * length * config.num_key_value_heads * config.head_dim
    return config.num_hidden_layers * per_layer * itemsize


KV_CACHE_BYTES = Exercise(
    "check_kv_cache_bytes",
    answer=_cache_bytes,
    cases=(
        # No two sizes are alike or multiples, so that a wrong or forgotten factor shows.
        Case(
            "7 layers, 5 of 15 heads, eleven sequences of 13, float32",
            (
                MiniMindConfig(hidden_size=90, num_hidden_layers=7, num_attention_heads=15, num_key_value_heads=5),
                11,
                13,
                4,
            ),
        ),
        Case("minimind2, one sequence of 10, float32", (MiniMindConfig(), 1, 10, 4)),
        Case("minimind3, five sequences of 100, two bytes a number", (MiniMindConfig.minimind3(), 5, 100, 2)),
        Case(
            "768 wide, 16 layers, 32,768 positions",
            (MiniMindConfig(hidden_size=768, num_hidden_layers=16), 1, 32_768, 2),
        ),
    ),
    mistakes=(
        Mistake(
            lambda c, batch, length, itemsize: _cache_bytes(c, batch, length, itemsize) * c.queries_per_kv,
            "you count query heads (num_attention_heads, hidden_size); the cache holds only key/value heads",
        ),
        Mistake(
            lambda c, batch, length, itemsize: _cache_bytes(c, batch, length, itemsize) // 2,
            "the factor 2 is missing: both keys and values are cached",
        ),
        Mistake(
            lambda c, batch, length, itemsize: _cache_bytes(c, batch, length, itemsize) // c.num_hidden_layers,
            "that is one layer; every layer has its own cache",
        ),
        Mistake(
            lambda c, batch, length, itemsize: _cache_bytes(c, batch, length, 1),
            "you count numbers, not bytes: one number takes itemsize bytes",
        ),
        Mistake(
            lambda c, batch, length, itemsize: _cache_bytes(c, 1, length, itemsize),
            "the batch is missing: every sequence has its own keys and values",
        ),
    ),
)


def check_kv_cache_bytes(attempt: Attempt) -> bool:
    """Does `attempt(config, batch, length, itemsize)` give the bytes of the keys and values of all layers?"""
    return KV_CACHE_BYTES.check(attempt)
