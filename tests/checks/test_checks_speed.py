"""checks.speed: right answers in other words pass, and the pretended machine is as treacherous as a real one."""

import statistics

from judged_answers import judged

from minimind_edu import checks
from minimind_edu.checks import speed as module
from minimind_edu.measure.costs import decode_cost


def operations_by_products(config, context, batch):
    queries, kept = (config.head_dim * heads for heads in (config.num_attention_heads, config.num_key_value_heads))
    weights = 2 * config.hidden_size * (queries + kept) + 3 * config.hidden_size * config.intermediate_size
    layer = weights + 2 * context * queries
    return 2 * batch * (config.num_hidden_layers * layer + config.hidden_size * config.vocab_size)


def operations_of_kept_heads(config, context, batch):
    """Attention of as many heads as there are keys."""
    lost = config.head_dim * (config.num_attention_heads - config.num_key_value_heads)
    less = 4 * batch * context * config.num_hidden_layers * lost
    return operations_by_products(config, context, batch) - less


def readers_by_division(config, context, machine, seconds):
    one = decode_cost(config, context)
    by_memory = (seconds * machine.bandwidth - one.weight_bytes) // one.cache_bytes
    return max(0, min(by_memory, seconds * machine.peak // one.operations))


def readers_from_above(config, context, machine, seconds):
    tried = range(4096, 0, -1)
    return next((n for n in tried if machine.seconds(decode_cost(config, context, n)) <= seconds), 0)


def pairs_by_calls(prompt, new_tokens, use_cache):
    pairs, held = 0, 0
    for length in range(prompt, prompt + new_tokens):
        pairs += (length - held) * length
        held = length if use_cache else 0
    return pairs


def times_with_a_round_before(calls, wait, clock, rounds):
    for call in calls.values():
        call()
    wait()
    best = {}
    for _ in range(rounds):
        for name in sorted(calls, reverse=True):
            wait()
            start = clock()
            calls[name]()
            wait()
            best[name] = min(clock() - start, best.get(name, float("inf")))
    return best


RIGHT = [
    (checks.check_step_operations, operations_by_products),
    (checks.check_readers, readers_by_division),
    (checks.check_readers, readers_from_above),
    (checks.check_attention_pairs, pairs_by_calls),
    (checks.check_fair_times, times_with_a_round_before),
]


def broken(calls, wait, clock, rounds):
    """What the exercise shows."""
    times = {}
    for name, call in calls.items():
        start = clock()
        for _ in range(rounds):
            call()
        times[name] = (clock() - start) / rounds
    return times


def medians(calls, wait, clock, rounds):
    """Fair in everything but the last step."""
    return module._shortest(calls, wait, clock, rounds, statistics.median)


def lower_medians(calls, wait, clock, rounds):
    return module._shortest(calls, wait, clock, rounds, statistics.median_low)


def last_runs(calls, wait, clock, rounds):
    return module._shortest(calls, wait, clock, rounds, lambda seconds: seconds[-1])


WRONG = [
    (checks.check_fair_times, broken, "a call only queues its work"),
    (checks.check_fair_times, medians, "that is a median"),
    (checks.check_fair_times, lower_medians, "it is 9, expected 3"),
    (checks.check_fair_times, last_runs, "it is 6, expected 2"),
    (checks.check_readers, lambda *arguments: readers_by_division(*arguments) + 1, "one too many"),
    (checks.check_step_operations, operations_of_kept_heads, "every query head meets every key"),
    (checks.check_step_operations, lambda config, context, batch: 60_030_975, "it is 60,030,975, expected 60,030,976"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)


def test_the_odd_model_has_sizes_that_hide_nothing():
    odd = module._ODD
    sizes = [odd.vocab_size, odd.hidden_size, odd.num_hidden_layers, odd.num_attention_heads, odd.num_key_value_heads]
    sizes += [odd.head_dim, odd.intermediate_size, odd.hidden_size // odd.num_attention_heads]
    assert len(set(sizes)) == len(sizes)
