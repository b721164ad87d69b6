"""checks.kv_cache: right answers pass, and every usual wrong answer is named."""

import pytest
import torch
from check_answers import (
    assert_every_hint_is_its_own,
    assert_mistake_is_named,
    assert_told_as_not_attempted,
    wrong_answers,
)

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, checks
from minimind_edu.checks import _cache_mistakes as known
from minimind_edu.checks import kv_cache as module
from minimind_edu.layer_cache import BufferCache, CatCache
from minimind_edu.masks import causal_mask

# ---- right answers, none of them written like the reference


def positions_as_in_minimind(past, input_ids):
    start_pos = past[0][0].shape[1] if past is not None else 0
    return torch.arange(input_ids.shape[1]) + start_pos


def positions_by_the_last_layer(past, input_ids):
    total = input_ids.shape[1] + (past[-1][1].size(1) if past else 0)
    return torch.tensor(range(total))[-input_ids.shape[1] :]


def append_with(cache_type):
    def append(past, key, value):
        cache = cache_type()
        if past is not None:
            cache.append(*past)
        return cache.append(key, value)

    append.__name__ = cache_type.__name__
    return append


def append_into_a_new_buffer(past, key, value):
    if past is None:
        return [key, value]
    joined = []
    for old, new in zip(past, (key, value), strict=True):
        batch, length, heads, dim = old.shape
        buffer = old.new_empty(batch, length + new.shape[1], heads, dim)
        buffer[:, :length], buffer[:, length:] = old, new
        joined.append(buffer)
    return joined


def mask_by_comparing(query_length, key_length):
    rows = torch.arange(key_length - query_length, key_length)[:, None]
    return torch.arange(key_length) <= rows


def mask_by_rows(query_length, key_length):
    return torch.ones(key_length, key_length, dtype=torch.bool).tril()[-query_length:]


def generate_with_ids(model, input_ids, max_new_tokens, eos_token_id):
    ids, new, past = input_ids, input_ids, None
    for _ in range(max_new_tokens):
        out = model(new, past_key_values=past, use_cache=True)
        past = out.past_key_values
        new = out.logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, new], dim=1)
        if int(new) == eos_token_id:
            break
    return ids


def generate_from_the_outside(model, input_ids, max_new_tokens, eos_token_id):
    """Prefill in two chunks is not asked for, but pairs instead of a cache object are as welcome."""
    out = model(input_ids, use_cache=True)
    tokens = [*input_ids[0].tolist(), int(out["logits"][0, -1].argmax())]
    while len(tokens) < input_ids.shape[1] + max_new_tokens and tokens[-1] != eos_token_id:
        pairs = [(key, value) for key, value in out["past_key_values"]]
        out = model.forward(torch.tensor([tokens[-1:]]), past_key_values=pairs, use_cache=True)
        tokens.append(int(out["logits"][0, -1].argmax()))
    return torch.tensor([tokens])


def bytes_by_one_row(config, batch, length, itemsize):
    width = config.hidden_size // config.num_attention_heads * config.num_key_value_heads
    return width * 2 * itemsize * length * batch * config.num_hidden_layers


RIGHT = [
    (checks.check_position_ids, positions_as_in_minimind),
    (checks.check_position_ids, positions_by_the_last_layer),
    (checks.check_append, append_with(CatCache)),
    (checks.check_append, append_with(BufferCache)),
    (checks.check_append, append_into_a_new_buffer),
    (checks.check_rectangular_mask, mask_by_comparing),
    (checks.check_rectangular_mask, mask_by_rows),
    (checks.check_rectangular_mask, causal_mask),
    (checks.check_cached_generate, generate_with_ids),
    (checks.check_cached_generate, generate_from_the_outside),
    (checks.check_kv_cache_bytes, bytes_by_one_row),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_a_right_answer_passes(check, answer, capsys):
    assert check(answer) is True
    assert "not yet" not in capsys.readouterr().out


@pytest.mark.parametrize(("check", "answer"), RIGHT, ids=lambda part: part.__name__)
def test_the_default_dtype_of_the_notebook_changes_nothing(check, answer, capsys):
    module._tiny_model.cache_clear()
    module._expected.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        assert check(answer) is True
    finally:
        torch.set_default_dtype(torch.float32)


# ---- wrong answers, written as a learner would, and the words that the hint must hold


def start(first, length=lambda past, ids: ids.shape[1]):
    return lambda past, ids: first(past) + torch.arange(length(past, ids))


def axis(number):
    return start(lambda past: past[0][0].shape[number] if past else 0)


def seen(past):
    return past[0][0].shape[1] if past else 0


WRONG_POSITIONS = {
    "always from 0": (start(lambda past: 0), "from 0"),
    "layers": (start(lambda past: len(past or ())), "number of layers"),
    "heads": (axis(2), "key/value heads"),
    "batch": (axis(0), "batch"),
    "head_dim": (axis(3), "head_dim"),
    "one early": (start(lambda past: max(seen(past) - 1, 0)), "too early"),
    "one late": (start(lambda past: seen(past) + 1), "too late"),
    "all": (start(lambda past: 0, lambda past, ids: seen(past) + ids.shape[1]), "all positions"),
    "same for all": (lambda past, ids: torch.tensor([seen(past)] * ids.shape[1]), "same position"),
    "the last": (lambda past, ids: torch.tensor([seen(past) + ids.shape[1] - 1]), "shape"),
    "no guard": (lambda past, ids: torch.arange(past[0][0].shape[1], 99), "TypeError"),
}


def join(make, first=lambda key, value: (key, value)):
    return lambda past, key, value: first(key, value) if past is None else make(past, key, value)


def along(dim):
    return join(lambda past, k, v: (torch.cat([past[0], k], dim), torch.cat([past[1], v], dim)))


def both(past, key, value):
    return torch.cat([past[0], key], 1), torch.cat([past[1], value], 1)


def stacked(past, key, value, dim):
    """The wrong axis, as it looks where the shapes happen to allow it."""
    fitting = [old[:, : new.shape[1]] for old, new in zip(past, (key, value), strict=True)]
    return torch.cat([fitting[0], key], dim), torch.cat([fitting[1], value], dim)


def into_the_past(past, key, value):
    joined = both(past, key, value)
    past[0].zero_()
    return joined


WRONG_APPENDS = {
    "only the new": (lambda past, k, v: (k, v), "new positions only"),
    "only the old": (lambda past, k, v: past or (k, v), "old positions only"),
    "new first": (join(lambda past, k, v: both((k, v), *past)), "in front"),
    "batch": (join(lambda past, k, v: stacked(past, k, v, 0)), "has shape"),
    "heads, one position": (join(lambda past, k, v: stacked(past, k, v, 2)), "has shape"),
    "heads": (along(2), "RuntimeError"),
    "crossed": (join(lambda past, k, v: both(past, v, k)), "went to the values"),
    "keys twice": (join(lambda past, k, v: both((past[0], past[0]), k, k)), "second copy"),
    "swapped": (lambda past, k, v: join(both)(past, k, v)[::-1], "changed places"),
    "swapped at first": (join(both, lambda k, v: (v, k)), "changed places"),
    "last of a chunk": (join(lambda past, k, v: both(past, k[:, -1:], v[:, -1:])), "last new position"),
    "added": (join(lambda past, k, v: (past[0] + k, past[1] + v)), "you add"),
    "in place": (join(into_the_past), "old tensors"),
    "one tensor": (lambda past, k, v: k, "two tensors"),
}  # fmt: skip


def additive(s, t):
    return torch.zeros(s, t).masked_fill(~causal_mask(s, t), -torch.inf)


def tril(diagonal, rows=None):
    def mask(s, t):
        return torch.ones(rows(s, t) if rows else s, t, dtype=torch.bool).tril(diagonal(s, t))

    return mask


WRONG_MASKS = {
    "inverted": (lambda s, t: torch.ones(s, t).triu(t - s + 1).bool(), "inverted"),
    "square": (tril(lambda s, t: 0), "upper left"),
    "square, inverted": (lambda s, t: torch.ones(s, t).triu(1).bool(), "inverted"),
    "without itself": (tril(lambda s, t: t - s - 1), "own position"),
    "one too many": (tril(lambda s, t: t - s + 1), "future"),
    "nothing hidden": (lambda s, t: torch.ones(s, t, dtype=torch.bool), "nothing is hidden"),
    "upside down": (lambda s, t: torch.ones(s, t).triu(t - s).bool(), "upside down"),
    "transposed": (lambda s, t: causal_mask(s, t).T, "changed places"),
    "whole": (tril(lambda s, t: 0, lambda s, t: t), "[T, T]"),
    "first rows": (lambda s, t: torch.ones(t, t).tril().bool()[:s], "upper left"),
    "integers": (lambda s, t: causal_mask(s, t).int(), "True and False"),
    "additive": (additive, "expected"),
}


def looping(
    feed=lambda ids, token, out: token,
    past=lambda out, old: out.past_key_values,
    logits=lambda out: out.logits[:, -1],
    returned=lambda ids, prompt: ids,
    more=0,
    use_cache=True,
    stop="after",
):
    """The right loop, with one part replaced."""

    def generate(model, input_ids, max_new_tokens, eos_token_id):
        ids, new, kept = input_ids, input_ids, None
        for _ in range(max_new_tokens + more):
            out = model(new, past_key_values=kept, use_cache=use_cache)
            kept = past(out, kept)
            token = logits(out).argmax(-1, keepdim=True)
            if stop == "before" and int(token) == eos_token_id:
                break
            ids = torch.cat([ids, token], dim=1)
            if stop == "after" and int(token) == eos_token_id:
                break
            new = feed(ids, token, out)
        return returned(ids, input_ids)

    return generate


def as_the_notes_have_it(model, input_ids, max_new_tokens, eos_token_id):
    out = model(input_ids, use_cache=True)
    ids, token = input_ids, input_ids[:, -1:]
    for _ in range(max_new_tokens):
        out = model(token, past_key_values=out.past_key_values, use_cache=True)
        token = out.logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, token], dim=1)
    return ids


def reads_the_last_token_too(model, input_ids, max_new_tokens, eos_token_id):
    out = model(input_ids, use_cache=True)
    ids = input_ids
    for _ in range(max_new_tokens):
        token = out.logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, token], dim=1)
        if int(token) == eos_token_id:
            break
        out = model(token, past_key_values=out.past_key_values, use_cache=True)
    return ids


def cut_afterwards(model, input_ids, max_new_tokens, eos_token_id):
    ids = looping(stop="never")(model, input_ids, max_new_tokens, eos_token_id)
    ends = (ids[0] == eos_token_id).nonzero()
    return ids[:, : int(ends[0]) + 1] if len(ends) else ids


WRONG_LOOPS = {
    "whole text every time": (looping(lambda ids, *_: ids, lambda out, old: None), "no call had a past"),
    "whole text and past": (looping(lambda ids, *_: ids), "read twice"),
    "no past": (looping(past=lambda out, old: None), "without a past"),
    "use_cache forgotten": (looping(use_cache=False), "use_cache=True"),
    "past stands still": (looping(past=lambda out, old: old or out.past_key_values), "stands still"),
    "the notes' loop": (as_the_notes_have_it, "prompt's own logits"),
    "first position": (looping(logits=lambda out: out.logits[:, 0]), "last position"),
    "same token again": (looping(lambda ids, token, out: ids[:, 3:4]), "just chosen"),
    "only the new": (looping(returned=lambda ids, prompt: ids[:, prompt.shape[1] :]), "new tokens only"),
    "only the prompt": (looping(returned=lambda ids, prompt: prompt), "prompt only"),
    "one too many": (looping(more=1), "one token for every pass"),
    "flat": (looping(returned=lambda ids, prompt: ids[0]), "[1, S + new]"),
    "reads the last one": (reads_the_last_token_too, "need not be read"),
    "never stops": (looping(stop="never"), "goes on"),
    "drops the end": (looping(stop="before"), "belongs to the text"),
    "cuts afterwards": (cut_afterwards, "were computed"),
}  # fmt: skip


def times(factor):
    """The right number of bytes, and a factor too many."""

    def answer(c, b, n, i):
        right = 2 * c.num_hidden_layers * b * n * c.num_key_value_heads * c.head_dim * i
        return right * factor(c, b, n, i)

    return answer


def with_width(width):
    return lambda c, b, n, i: 2 * c.num_hidden_layers * b * n * width(c) * i


WRONG_BYTES = {
    "query heads": (with_width(lambda c: c.num_attention_heads * c.head_dim), "query heads"),
    "hidden size": (with_width(lambda c: c.hidden_size), "hidden_size"),
    "keys only": (times(lambda c, b, n, i: 1 / 2), "factor 2"),
    "one layer": (times(lambda c, b, n, i: 1 / c.num_hidden_layers), "one layer"),
    "numbers": (times(lambda c, b, n, i: 1 / i), "not bytes"),
    "bits": (times(lambda c, b, n, i: 8), "bits"),
    "no batch": (times(lambda c, b, n, i: 1 / b), "batch"),
    "one position": (times(lambda c, b, n, i: 1 / n), "one position"),
    "one head": (with_width(lambda c: c.head_dim), "one key/value head"),
    "the saving": (with_width(lambda c: c.hidden_size - c.num_key_value_heads * c.head_dim), "save"),
    "heads twice": (times(lambda c, b, n, i: c.num_key_value_heads / c.num_attention_heads), "twice"),
    "no head_dim": (with_width(lambda c: c.num_key_value_heads), "head_dim"),
    "square": (times(lambda c, b, n, i: n), "square"),
}  # fmt: skip

WRONG = wrong_answers(
    {
        checks.check_position_ids: WRONG_POSITIONS,
        checks.check_append: WRONG_APPENDS,
        checks.check_rectangular_mask: WRONG_MASKS,
        checks.check_cached_generate: WRONG_LOOPS,
        checks.check_kv_cache_bytes: WRONG_BYTES,
    }
)


@pytest.mark.parametrize(("check", "answer", "words"), WRONG)
def test_a_usual_mistake_is_named(check, answer, words, capsys):
    assert_mistake_is_named(check, answer, words, capsys)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_position_ids,
        checks.check_append,
        checks.check_rectangular_mask,
        checks.check_cached_generate,
        checks.check_kv_cache_bytes,
    ],
)
def test_nothing_written_yet_is_no_mistake(check, capsys):
    assert_told_as_not_attempted(check, lambda *arguments: None, capsys)


@pytest.mark.parametrize(
    "mistakes", [known.POSITION_MISTAKES, known.APPEND_MISTAKES, known.MASK_MISTAKES, known.BYTES_MISTAKES]
)
def test_every_hint_is_its_own(mistakes):
    assert_every_hint_is_its_own(mistakes)


def test_the_tiny_model_writes_a_text_in_which_mistakes_show():
    new = module._expected(6)[0, 4:].tolist()
    assert len(set(new)) >= 5
    assert new[2] not in new[:2] + module._PROMPT[0].tolist()


def test_checking_leaves_the_random_numbers_alone():
    module._tiny_model.cache_clear()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    module._tiny_model()
    assert torch.equal(torch.rand(1), expected)


def test_bytes_are_those_of_a_real_cache():
    config = MiniMindConfig(hidden_size=64, num_hidden_layers=2, vocab_size=50)
    model = MiniMindForCausalLM(config)
    held = model(torch.zeros(3, 7, dtype=torch.long), use_cache=True).past_key_values
    assert held.num_bytes() == known.cache_bytes(config, 3, 7, 4)


def test_on_the_watched_prompt_the_wrong_logits_choose_other_tokens():
    model, prompt = module._tiny_model(), module._PROMPT
    first = int(module._expected(1)[0, -1])
    out = model(prompt, use_cache=True)
    again = model(prompt[:, -1:], past_key_values=out.past_key_values)
    assert first not in (int(out.logits[0, 0].argmax()), int(again.logits[0, -1].argmax()))
