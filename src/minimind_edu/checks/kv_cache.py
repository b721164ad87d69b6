"""Exercises on the KV cache.

All axes have different sizes, so that a wrong axis shows. The loop is watched while it runs: which tokens it feeds,
with which cache, and how many in all. A test that a reader writes is tried on a right model and on four broken ones.
Left out on purpose: sampling; the loop here is greedy.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Attempt, Case, Exercise, FindProblem, Mistake, Property, difference, numbers
from minimind_edu.measure.costs import cache_bytes_per_position
from minimind_edu.model.broken_caches import BUGS, read
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis

Pair = tuple[Tensor, Tensor]

_BATCH, _HEADS, _HEAD_DIM, _ROWS = 2, 4, 6, 12


def _pair(length: int, shift: float = 0.0) -> Pair:
    """Keys and values, `[B, length, K, D]` each."""
    shape = (_BATCH, length, _HEADS, _HEAD_DIM)
    return numbers(*shape, shift=shift), numbers(*shape, shift=shift + 4.0)


def _new_after(cached: int, new: int) -> tuple:
    queries = numbers(_BATCH, new, 2 * _HEADS, _HEAD_DIM)
    tables = precompute_freqs_cis(_HEAD_DIM, _ROWS, 100.0, dtype=torch.float64)
    return queries, *_pair(new, shift=1.0), *tables, _pair(cached) if cached else None


def _extend(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor, pair: Pair | None, axis: int = 1) -> tuple:
    start = 0 if pair is None else pair[0].shape[axis]
    rows = slice(start, start + q.shape[1])
    return _joined(*apply_rotary_pos_emb(q, k, cos[rows], sin[rows]), v, pair)


def _joined(q: Tensor, k: Tensor, v: Tensor, pair: Pair | None) -> tuple:
    return (q, k, v) if pair is None else (q, torch.cat([pair[0], k], dim=1), torch.cat([pair[1], v], dim=1))


def _rotated_from_0(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return apply_rotary_pos_emb(x, x, cos[: x.shape[1]], sin[: x.shape[1]])[0]


def _rotated_again(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor, pair: Pair | None) -> tuple:
    rotated, _, _ = _extend(q, k, v, cos, sin, pair)
    _, keys, values = _joined(q, k, v, pair)
    return rotated, _rotated_from_0(keys, cos, sin), values


check_extend = Exercise(
    "Does `attempt(q, k, v, cos, sin, pair)` rotate what is new, and append keys and values to those cached?",
    answer=_extend,
    cases=(
        Case("a prompt of five, nothing cached", _new_after(0, 5)),
        Case("three new tokens after seven", _new_after(7, 3)),
        Case("one new token after five", _new_after(5, 1)),
        Case(
            "the last rows of the tables, and the old tensors are left alone",
            _new_after(8, 4),
            untouched="your function writes into the old tensors, so a second text that continues the same cache reads "
            "your numbers: build new ones",
        ),
    ),
    mistakes=(
        Mistake(
            lambda q, k, v, cos, sin, pair: _joined(q, k, v, pair),
            "nothing is rotated: rotate the new queries and keys by their rows of the tables, then join",
        ),
        Mistake(
            lambda q, k, v, cos, sin, pair: _joined(_extend(q, k, v, cos, sin, pair)[0], k, v, pair),
            "the new keys are not rotated: they are cached after RoPE",
        ),
        Mistake(
            lambda q, k, v, cos, sin, pair: _extend(q, k, _extend(q, v, v, cos, sin, None)[1], cos, sin, pair),
            "you rotate the values, too: only queries and keys carry positions",
        ),
        Mistake(
            lambda q, k, v, cos, sin, pair: _joined(
                _rotated_from_0(q, cos, sin), _rotated_from_0(k, cos, sin), v, pair
            ),
            "you number every call from 0; the first new position is the number of positions cached",
        ),
        Mistake(
            lambda *arguments: _extend(*arguments, axis=2),
            "shape[2] is the number of key/value heads in MiniMind's layout [B, T, K, D]; the positions are shape[1] "
            "(the caches of transformers are [B, K, T, D], where shape[2] would be right)",
        ),
        Mistake(_rotated_again, "you rotate the joined keys, and so the old ones once more: rotate first, then join"),
        Mistake(
            lambda *arguments: tuple(part[:, -arguments[0].shape[1] :] for part in _extend(*arguments)),
            "you return the new positions only; put the cached ones before them",
        ),
        Mistake(
            lambda *arguments: tuple(part.roll(arguments[0].shape[1], dims=1) for part in _extend(*arguments)),
            "the new positions come before the cached ones; time runs along axis 1, so the cached ones come first",
        ),
    ),
    parts=("queries", "keys", "values"),
)


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
    hint = f"{read} tokens were read, but only {needed} are needed"
    if read == needed + 1:
        return f"{hint}: do not read the last chosen token, nothing follows it"
    if all(past == 0 for past, _ in watched.calls):
        return f"{hint}: no call had a past, so every call read the whole text again"
    return f"{hint}: the prompt once, then every new token once"


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


check_cached_generate = Exercise(
    "Does `attempt(model, input_ids, max_new_tokens, eos_token_id)` continue the prompt greedily, with a cache?",
    answer=_generate,
    cases=(
        Property("one new token, from the prompt's own logits", _continues(1)),
        Property("six new tokens, as without a cache", _continues(6)),
        Property("every token is read once, the last one never", _reads_once),
        Property("it stops after the end-of-sequence token", _stops),
    ),
)


class _Reader:
    """The tiny model, written out with a cache: `reader(ids, cache)` gives logits and cache; right, or with a bug.

    Its logits are off by a hundred-thousandth that depends on the call's length, as float32's sums in another order.
    """

    def __init__(self, bug: str = "none"):
        self.bug = bug
        self.left: list[Pair] | None = None  # the cache of the very first call, which "stale" does not empty

    @torch.no_grad()
    def __call__(self, ids: Tensor, past: list[Pair] | None = None) -> tuple[Tensor, list[Pair]]:
        if past is None and self.bug == "stale":
            past = self.left
        length = 0 if past is None else past[0][0].shape[1]
        bug = self.bug if self.bug in BUGS else "none"
        logits, pairs = read(_tiny_model(), ids, past, bug)
        self.left = self.left or pairs
        error = 0.01 if self.bug == "near" and length else 0.0  # 1 %: the likeliest word stays the same
        return logits * (1 + error) + 1e-5 * ids.shape[1], pairs


_TEXT = torch.tensor([[5, 17, 30, 9, 22, 3]])


def _judges(bug: str, hint: str) -> FindProblem:
    """The attempt's verdict on a reader with this bug must be right."""
    return lambda attempt: None if bool(attempt(_Reader(bug), _TEXT.clone())) is (bug == "none") else hint


def _is_right(reader: Attempt, ids: Tensor) -> bool:
    whole, _ = reader(ids, None)
    first, cache = reader(ids[:, :3], None)
    second, _ = reader(ids[:, 3:], cache)
    return torch.allclose(torch.cat([first, second], dim=1), whole, atol=1e-3)


check_cache_test = Exercise(
    "Does `attempt(reader, ids)` tell a model that reads rightly with a cache from one with any of the four bugs?",
    answer=_is_right,
    cases=(
        Property(
            "it accepts a right reader",
            _judges(
                "none",
                "your test refuses a right reader: compare the joined logits of all pieces with those of one call, and "
                "only up to the rounding of float32, torch.allclose with atol=1e-3",
            ),
        ),
        Property(
            "it refuses positions numbered from 0 in every call",
            _judges("offset", "this bug shows in the second call: read the text in pieces, and hand the cache on"),
        ),
        Property(
            "it refuses cached keys that are rotated again",
            _judges(
                "again",
                "this bug needs two cached positions, since position 0 is rotated by the angle 0: read on after them",
            ),
        ),
        Property(
            "it refuses the square mask",
            _judges("square", "this bug needs a later piece of more than one token: cut the text in other ways, too"),
        ),
        Property(
            "it refuses a cache that is not emptied",
            _judges("stale", "this bug needs a second text: begin again with reader(ids, None), and compare that"),
        ),
        Property(
            "it refuses logits that are 1 % off",
            _judges("near", "compare the logits themselves: the likeliest words may agree where the numbers do not"),
        ),
    ),
)


def _longest(config: MiniMindConfig, weights: int, users: int, memory: int, itemsize: int) -> int:
    return max(0, _fitting(config, weights * itemsize, users, memory, itemsize))


def _fitting(config: MiniMindConfig, taken: int, users: int, memory: int, itemsize: int, share: float = 1) -> int:
    """Tokens per user in what `taken` bytes leave (or lack), for a cache `share` times as large."""
    return int((memory - taken) // (users * share * cache_bytes_per_position(config, itemsize)))


_ODD = MiniMindConfig(hidden_size=90, num_hidden_layers=7, num_attention_heads=15, num_key_value_heads=5)

check_longest_text = Exercise(
    "Does `attempt(config, weights, users, memory, itemsize)` tell how many tokens each user's text may have?",
    answer=_longest,
    cases=(
        # No two sizes are alike or multiples, so that a wrong or forgotten factor shows.
        Case("7 layers, 5 of 15 heads, 11 users, float32", (_ODD, 100_003, 11, 9_000_000, 4)),
        Case("MiniMind2 small, 10 users, float16, 1 GiB", (MiniMindConfig(), 25_829_888, 10, 2**30, 2)),
        Case("room for exactly 13 tokens, and not a byte more", (_ODD, 1_000, 3, 2_000 + 3 * 13 * 840, 2)),
        Case("not even the weights fit: 0", (MiniMindConfig(), 25_829_888, 2, 2**20, 2)),
    ),
    mistakes=(
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, weights * size, users, memory, size, share=3),
            "you count query heads (num_attention_heads, hidden_size); the cache holds only key/value heads",
        ),
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, weights * size, users, memory, size, share=1 / 2),
            "the factor 2 is missing: both keys and values are cached",
        ),
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, weights * size, users, memory, size, share=1 / 7),
            "you count one layer; every layer has keys and values of its own",
        ),
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, weights, users, memory, size),
            "`weights` is a count of numbers: each takes itemsize bytes, which you must subtract first",
        ),
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, 0, users, memory, size),
            "the weights are in the same memory: subtract their bytes first, the caches get what is left",
        ),
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, users * weights * size, users, memory, size),
            "the weights are there once, for all users; only the caches are there once per user",
        ),
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, weights * size, 1, memory, size),
            "here one user has all the memory: every user needs a cache",
        ),
        Mistake(
            lambda c, weights, users, memory, size: _fitting(c, weights * size, users, memory, size),
            "if not even the weights fit, the answer is 0, not a number below it",
        ),
    ),
)
