"""checks.kv_cache: right answers in other words pass, and the watched loop tells what was fed wrongly."""

from functools import partial

import torch
from judged_answers import judged

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, checks
from minimind_edu.checks import kv_cache as module
from minimind_edu.model.for_comparison import CatCache
from minimind_edu.model.layer_cache import BufferCache
from minimind_edu.model.rope import rotate_half


def extend_with(cache_type):
    """Rotated by hand, kept by a cache of the package."""

    def extend(q, k, v, cos, sin, pair):
        cache = cache_type()
        if pair is not None:
            cache.append(*pair)
        rows = torch.arange(cache.length, cache.length + len(q[0]))
        q, k = (x * cos[rows, None] + rotate_half(x) * sin[rows, None] for x in (q, k))
        return [q, *cache.append(k, v)]

    extend.__name__ = cache_type.__name__
    return extend


def generate_from_pairs(model, input_ids, max_new_tokens, eos_token_id):
    """Pairs instead of a cache object are as welcome."""
    out = model(input_ids, use_cache=True)
    tokens = [*input_ids[0].tolist(), int(out["logits"][0, -1].argmax())]
    while len(tokens) < input_ids.shape[1] + max_new_tokens and tokens[-1] != eos_token_id:
        pairs = [(key, value) for key, value in out["past_key_values"]]
        out = model.forward(torch.tensor([tokens[-1:]]), past_key_values=pairs, use_cache=True)
        tokens.append(int(out["logits"][0, -1].argmax()))
    return torch.tensor([tokens])


def generate_with_a_prefill_token_by_token(model, input_ids, max_new_tokens, eos_token_id):
    past, ids = None, input_ids
    for token in input_ids.split(1, dim=1):
        out = model(token, past_key_values=past, use_cache=True)
        past = out.past_key_values
    for _ in range(max_new_tokens):
        token = out.logits[:, -1:].argmax(-1)
        ids = torch.cat([ids, token], dim=1)
        if int(token) == eos_token_id or ids.shape[1] == input_ids.shape[1] + max_new_tokens:
            break
        out = model(token, past_key_values=out.past_key_values, use_cache=True)
    return ids


def compares_all_cuts(reader, ids):
    """Every way to cut, none skipped after a difference, and the uncut text last."""
    found = []
    for number in range(32):
        cache, logits = None, []
        for piece in ids.tensor_split([i + 1 for i in range(5) if number >> i & 1], dim=1):
            out, cache = reader(piece, cache)
            logits.append(out)
        found.append(torch.cat(logits, dim=1))
    whole, _ = reader(ids, None)
    return all(torch.allclose(logits, whole, atol=1e-3) for logits in found)


def compares_two_pieces(reader, ids):
    whole, _ = reader(ids, None)
    first, cache = reader(ids[:, :3], None)
    second, _ = reader(ids[:, 3:], cache)
    return torch.allclose(torch.cat([first, second], 1), whole, atol=1e-3)


def longest_by_trying(config, weights, users, memory, itemsize):
    def needed(length):
        width = config.hidden_size // config.num_attention_heads * config.num_key_value_heads
        return itemsize * (weights + users * 2 * width * length * config.num_hidden_layers)

    length = 0
    while needed(length + 1) <= memory:
        length += 1
    return length


RIGHT = [
    (checks.check_extend, extend_with(CatCache)),
    (checks.check_extend, extend_with(BufferCache)),
    (checks.check_cached_generate, generate_from_pairs),
    (checks.check_cached_generate, generate_with_a_prefill_token_by_token),
    (checks.check_cache_test, compares_all_cuts),
    (checks.check_cache_test, compares_two_pieces),
    (checks.check_longest_text, longest_by_trying),
]


def longest_without_the_weights(config, weights, users, memory, itemsize):
    return longest_by_trying(config, 0, users, memory, itemsize)


def extend_without_rotating(q, k, v, cos, sin, pair):
    if pair is None:
        return q, k, v
    return q, torch.cat([pair[0], k], dim=1), torch.cat([pair[1], v], dim=1)


def second_best(logits):
    return logits[:, -1:].topk(2).indices[..., 1]


def extend_and_empty_the_cache(q, k, v, cos, sin, pair):
    extended = extend_with(CatCache)(q, k, v, cos, sin, pair)
    if pair is not None:
        pair[0].zero_()
    return extended


def looping(
    feed=lambda ids, token: token,
    past=lambda out, old: out.past_key_values,
    choose=lambda logits: logits[:, -1].argmax(-1, keepdim=True),
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
            token = choose(out.logits)
            if stop == "before" and int(token) == eos_token_id:
                break
            ids = torch.cat([ids, token.view(1, 1)], dim=1)
            if stop == "after" and int(token) == eos_token_id:
                break
            new = feed(ids, token)
        return returned(ids, input_ids)

    return generate


def feeds_the_prompts_last_token_again(model, input_ids, max_new_tokens, eos_token_id):
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


LOOPS = [
    (looping(lambda ids, _: ids, lambda out, old: None), "no call had a past"),
    (looping(lambda ids, _: ids), "read twice"),
    (looping(past=lambda out, old: None), "without a past"),
    (looping(use_cache=False), "use_cache=True"),
    (looping(past=lambda out, old: old or out.past_key_values), "the past does not grow"),
    (feeds_the_prompts_last_token_again, "prompt's own logits"),
    (looping(choose=lambda logits: logits[:, :1].argmax(-1)), "after the last position"),
    (looping(choose=second_best), "the most probable one"),
    (looping(lambda ids, _: ids, lambda out, old: None, choose=second_best), "the most probable one"),
    (looping(choose=lambda logits: logits[:, -1].argmax(-1)), "argmax(-1, keepdim=True)"),
    (looping(lambda ids, token: ids[:, 3:4]), "just chosen"),
    (looping(returned=lambda ids, prompt: ids[:, prompt.shape[1] :]), "new tokens only"),
    (looping(returned=lambda ids, prompt: prompt), "prompt only"),
    (looping(more=1), "one token per pass"),
    (looping(returned=lambda ids, prompt: ids[0]), "[1, S + new]"),
    (looping(returned=lambda ids, prompt: ids.flip(1)), "begin with the prompt"),
    (lambda model, ids, new, end: torch.cat([ids, ids[:, :1].expand(1, new)], 1), "never called"),
    (reads_the_last_token_too, "do not read the last chosen token"),
    (looping(stop="never"), "continues after"),
    (looping(stop="before"), "belongs to the text"),
    (cut_afterwards, "computed them first"),
]


near = partial(torch.allclose, atol=1e-3)


def comparing(cuts=(1, 3), equal=near, begins_again=True, part=slice(None)):
    """A test that reads a text whole and cut at these places, with one thing replaced."""

    def is_right(reader, ids):
        ids = ids[:, part]
        if not begins_again:  # what follows the first token is compared, and read twice from the same cache
            _, start = reader(ids[:, :1], None)
            return equal(reader(ids[:, 1:], start)[0], follow(reader, ids[:, 1:], start))
        return equal(reader(ids, None)[0], follow(reader, ids, None))

    def follow(reader, ids, cache):
        logits = []
        for piece in ids.tensor_split(cuts, dim=1):
            out, cache = reader(piece, cache)
            logits.append(out)
        return torch.cat(logits, dim=1)

    return is_right


def compares_likeliest_words(reader, ids):
    """All cuts in two pieces, but only the word that the model would say."""
    whole = reader(ids, None)[0].argmax(-1)
    for cut in range(1, ids.shape[1]):
        first, cache = reader(ids[:, :cut], None)
        second, _ = reader(ids[:, cut:], cache)
        if not torch.equal(torch.cat([first, second], dim=1).argmax(-1), whole):
            return False
    return True


TESTS = [
    (comparing(equal=torch.equal), "refuses a right reader"),
    (comparing(equal=torch.allclose), "with atol=1e-3"),
    (lambda reader, ids: reader(ids, None)[0].sum() < 0, "refuses a right reader"),
    (comparing(cuts=()), "hand the cache on"),
    (lambda reader, ids: True, "hand the cache on"),
    (comparing(cuts=(1,), part=slice(2)), "position 0 is rotated by the angle 0"),
    (comparing(cuts=(1, 2, 3, 4, 5)), "more than one token"),
    (comparing(begins_again=False), "a second text"),
    (compares_likeliest_words, "compare the logits themselves"),
]

WRONG = [
    (checks.check_extend, extend_and_empty_the_cache, "writes into the old tensors"),
    (checks.check_extend, lambda *given: given[-1] and extend_with(CatCache)(*given), "a return missing"),
    (checks.check_extend, lambda q, *others: q, "return 3 tensors (queries, keys, values)"),
    (checks.check_extend, extend_without_rotating, "nothing is rotated"),
    (checks.check_longest_text, lambda *sizes: longest_by_trying(*sizes) + 7, "expected 465"),
    (checks.check_longest_text, longest_without_the_weights, "the weights are in the same memory"),
    *((checks.check_cached_generate, loop, words) for loop, words in LOOPS),
    *((checks.check_cache_test, attempt, words) for attempt, words in TESTS),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_the_tiny_model_writes_a_text_in_which_mistakes_show():
    new = module._expected(6)[0, 4:].tolist()
    assert len(set(new)) >= 5
    assert new[2] not in new[:2] + module._PROMPT[0].tolist()


def test_the_longest_text_fits_into_memory_as_tensors():
    config = MiniMindConfig(hidden_size=64, num_hidden_layers=2, vocab_size=50)
    held = MiniMindForCausalLM(config)(torch.zeros(3, 7, dtype=torch.long), use_cache=True).past_key_values
    memory = 4 * 1000 + sum(part.nbytes for pair in held for part in pair)
    assert module.check_longest_text.answer(config, 1000, 3, memory, 4) == 7
    assert module.check_longest_text.answer(config, 1000, 3, memory - 1, 4) == 6


def test_the_right_reader_is_the_model():
    logits, cache = module._Reader()(module._TEXT[:, :2])
    rest, cache = module._Reader()(module._TEXT[:, 2:], cache)
    expected = module._tiny_model()(module._TEXT)
    torch.testing.assert_close(torch.cat([logits, rest], dim=1), expected.logits, atol=1e-4, rtol=0)
    assert len(cache) == 2 and cache[0][0].shape[1] == 6
