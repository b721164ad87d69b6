"""Prompts grow token by token: greedily and by sampling, with a cache and without, with padding, up to their ends."""

import copy
import re
import types

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, SLOW_PROPERTY, tiny_model, token_ids

from minimind_edu.measure.counting import Watch
from minimind_edu.model.generation import generate, stream
from minimind_edu.model.model import CausalLMOutput
from minimind_edu.model.sampling import Sampling
from minimind_edu.validation import check_finite

MODELS = {kind: tiny_model(kind) for kind in KINDS}
MODEL = MODELS["minimind2"]
seeds = st.integers(0, 10_000)


# Greedy generation


def greedy_without_cache(model, ids, steps, mask=None):
    """Read everything again for each token: the slow, obvious way."""
    for _ in range(steps):
        with torch.no_grad():
            logits = model(ids, mask).logits[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], dim=1)
        if mask is not None:
            mask = torch.cat([mask, mask[:, :1].new_ones(len(mask), 1)], dim=1)
    return ids


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use_cache", [True, False])
@SLOW_PROPERTY
@given(batch=st.integers(1, 3), length=st.integers(1, 6), seed=seeds)
def test_greedy_generation_is_argmax_over_and_over(kind, use_cache, batch, length, seed):
    model, ids = MODELS[kind], token_ids(batch, length, seed=seed)
    tokens = model.generate(ids, 8, eos_token_id=None, use_cache=use_cache)
    assert torch.equal(tokens, greedy_without_cache(model, ids, 8))


def test_generation_up_to_the_last_position():
    ids = token_ids(1, 4)
    tokens = MODEL.generate(ids, 61, eos_token_id=None)
    assert torch.equal(tokens, greedy_without_cache(MODEL, ids, 61))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_a_batch_with_left_padding_gives_what_each_row_gives_alone(kind, use_cache, penalty):
    model, lengths = MODELS[kind], [2, 5, 7]
    prompts = [token_ids(1, length, seed=length) for length in lengths]
    padded = torch.cat([torch.cat([torch.zeros(1, 7 - p.shape[1]).long(), p], 1) for p in prompts])
    mask = torch.tensor([[0] * (7 - length) + [1] * length for length in lengths])
    options = {"use_cache": use_cache, "eos_token_id": None, "repetition_penalty": penalty}
    together = model.generate(padded, 8, attention_mask=mask, **options)
    assert torch.equal(together[:, :7], padded)
    for row, prompt in zip(together, prompts, strict=True):
        alone = model.generate(prompt, 8, **options)
        assert torch.equal(row[7:], alone[0, prompt.shape[1] :])


def test_a_mask_of_ones_changes_nothing():
    ids = token_ids(2, 5)
    masked = MODEL.generate(ids, 6, attention_mask=torch.ones_like(ids), eos_token_id=None)
    assert torch.equal(masked, MODEL.generate(ids, 6, eos_token_id=None))


def test_a_mask_of_ones_is_not_looked_at_again_for_every_token():
    masks = []

    def watched(ids, mask, **options):
        masks.append(mask)
        return MODEL(ids, mask, **options)

    watched.config = MODEL.config
    ids = token_ids(2, 5)
    generate(watched, ids, 3, attention_mask=torch.ones_like(ids), eos_token_id=None)
    assert masks == [None] * 3


def test_a_repetition_penalty_covers_prompt_and_continuation():
    ids = token_ids(1, 5)
    tokens = MODEL.generate(ids, 30, repetition_penalty=1e9, eos_token_id=None)[0].tolist()
    continuation = tokens[5:]
    assert len(set(continuation)) == 30, "no token twice"
    assert not set(continuation) & set(tokens[:5]), "and none of the prompt"
    plain = MODEL.generate(ids, 30, eos_token_id=None)[0, 5:].tolist()
    assert len(set(plain)) < 30, "without the penalty this model repeats itself"


def test_padding_is_not_penalized():
    """The id that pads the prompt has not been said, so it stays as likely as it was."""
    ids = token_ids(1, 4)
    wanted = MODEL.generate(ids, 1, eos_token_id=None)[0, -1]
    assert wanted not in ids
    padded = torch.cat([wanted.view(1, 1), ids], dim=1)
    mask = torch.tensor([[0, 1, 1, 1, 1]])
    tokens = MODEL.generate(padded, 1, attention_mask=mask, repetition_penalty=1e9, eos_token_id=None)
    assert tokens[0, -1] == wanted


# Sampling


@pytest.mark.parametrize("kind", KINDS)
def test_a_seeded_generator_gives_the_same_sample_with_and_without_cache(kind):
    model, ids = MODELS[kind], token_ids(3, 5)

    def sample(seed, **options):
        generator = torch.Generator().manual_seed(seed)
        return model.generate(
            ids, 12, do_sample=True, temperature=1.5, top_k=30, top_p=0.95, eos_token_id=None,
            generator=generator, **options,
        )  # fmt: skip

    assert torch.equal(sample(1), sample(1))
    assert torch.equal(sample(1), sample(1, use_cache=False))
    assert not torch.equal(sample(1), sample(2))


def test_sampling_with_top_k_one_is_greedy():
    ids = token_ids(2, 5)
    sampled = MODEL.generate(ids, 8, do_sample=True, top_k=1, eos_token_id=None)
    assert torch.equal(sampled, MODEL.generate(ids, 8, eos_token_id=None))


def test_sampling_options_do_nothing_to_greedy_choice():
    ids = token_ids(2, 5)
    options = {"temperature": 0.1, "top_k": 3, "top_p": 0.2}
    greedy = MODEL.generate(ids, 8, eos_token_id=None, **options)
    assert torch.equal(greedy, MODEL.generate(ids, 8, eos_token_id=None))


# The end of a row


def scripted(rows, vocab_size=10):
    """A model that says the given tokens, one row of the script for each row of the batch, whatever it reads."""
    said = 0

    def model(input_ids, attention_mask=None, past_key_values=None, use_cache=False, **_):
        nonlocal said
        logits = torch.zeros(len(rows), 1, vocab_size)
        for row, script in enumerate(rows):
            logits[row, 0, script[min(said, len(script) - 1)]] = 1.0
        said += 1
        return CausalLMOutput(logits, logits, past_key_values)

    model.config = types.SimpleNamespace(
        vocab_size=vocab_size, max_position_embeddings=100, num_hidden_layers=1, eos_token_id=2
    )
    return model


def test_each_row_ends_by_itself_and_is_padded():
    model = scripted([[5, 2, 7, 8], [5, 6, 7, 2], [5, 6, 2, 7]])
    tokens = generate(model, torch.ones(3, 1).long(), 10, pad_token_id=0)
    assert tokens[:, 1:].tolist() == [[5, 2, 0, 0], [5, 6, 7, 2], [5, 6, 2, 0]]


def test_an_ended_row_is_padded_with_the_end_token_unless_told_otherwise():
    tokens = generate(scripted([[5, 2, 7], [5, 6, 2]]), torch.ones(2, 1).long(), 10)
    assert tokens[:, 1:].tolist() == [[5, 2, 2], [5, 6, 2]]


def test_the_end_token_of_the_prompt_ends_nothing():
    tokens = generate(scripted([[5, 6, 2]]), torch.tensor([[2, 2]]), 10)
    assert tokens[0, 2:].tolist() == [5, 6, 2]


def test_another_end_token_can_be_named_and_none_at_all():
    prompt = torch.ones(1, 1).long()
    assert generate(scripted([[5, 2, 6]]), prompt, 6, eos_token_id=6)[0, 1:].tolist() == [5, 2, 6]
    endless = generate(scripted([[5, 2, 6]]), prompt, 6, eos_token_id=None)
    assert endless[0, 1:].tolist() == [5, 2, 6, 6, 6, 6]


def test_the_config_names_the_end_token_or_several():
    prompt = torch.ones(1, 1).long()
    model = scripted([[5, 2, 6, 7]])
    for ends, expected in ((6, [5, 2, 6]), ((7, 2), [5, 2]), (None, [5, 2, 6, 7, 7, 7])):
        model = scripted([[5, 2, 6, 7]])
        model.config.eos_token_id = ends
        assert generate(model, prompt, 6)[0, 1:].tolist() == expected


def test_several_end_tokens_each_end_a_row_and_the_first_pads():
    model = scripted([[5, 6, 9, 9], [5, 7, 9, 9], [5, 4, 4, 7]])
    tokens = generate(model, torch.ones(3, 1).long(), 10, eos_token_id=[6, 7])
    assert tokens[:, 1:].tolist() == [[5, 6, 6, 6], [5, 7, 6, 6], [5, 4, 4, 7]]


@pytest.mark.parametrize("use_cache", [True, False])
def test_prompts_in_int32_give_the_same_tokens(use_cache):
    ids = token_ids(2, 5)
    tokens = MODEL.generate(ids.int(), 6, eos_token_id=None, use_cache=use_cache)
    assert torch.equal(tokens, MODEL.generate(ids, 6, eos_token_id=None))


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_row_that_ended_does_not_disturb_the_others(use_cache):
    ids = token_ids(2, 5)
    free = MODEL.generate(ids, 12, eos_token_id=None)[:, 5:]
    ending = int(free[0, 3])
    tokens = MODEL.generate(ids, 12, eos_token_id=ending, pad_token_id=0, use_cache=use_cache)
    tokens = tokens[:, 5:]
    for row, expected in zip(tokens.tolist(), free.tolist(), strict=True):
        end = expected.index(ending) + 1 if ending in expected else 12
        assert row[:end] == expected[: min(end, len(row))]
        assert set(row[end:]) <= {0}


# Streaming


def test_streaming_yields_the_tokens_of_generate_one_at_a_time():
    ids = token_ids(2, 5)
    steps = list(MODEL.stream(ids, 6, eos_token_id=None))
    assert [step.shape for step in steps] == [(2,)] * 6
    assert torch.equal(torch.stack(steps, dim=1), MODEL.generate(ids, 6, eos_token_id=None)[:, 5:])


def test_a_token_is_yielded_before_the_next_is_computed():
    calls = []

    def counting(*args, **options):
        calls.append(args[0].shape[1])
        return MODEL(*args, **options)

    counting.config = MODEL.config
    steps = stream(counting, token_ids(1, 5), 6, eos_token_id=None)
    assert calls == []
    next(steps)
    assert calls == [5], "the prompt in one call"
    next(steps)
    assert calls == [5, 1], "then only the new token"


def test_generation_builds_no_graph_and_leaves_the_prompt_alone():
    ids = token_ids(1, 5)
    before = ids.clone()
    tokens = MODEL.generate(ids, 3, eos_token_id=None)
    assert not tokens.requires_grad and torch.equal(ids, before)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("options, waits", [({"eos_token_id": None}, 1), ({}, 2)])
@pytest.mark.parametrize("padded", [False, True])
def test_a_token_waits_for_the_device_only_where_it_must(options, waits, padded):
    """Reading a value waits for all that was computed: once to see that it is a number, once to see the end."""
    ids, mask = token_ids(2, 5), torch.ones(2, 5)
    mask[0, :2] = 1 - padded
    steps = MODEL.stream(ids, 6, attention_mask=mask, **options)
    next(steps)
    with Watch() as watch:
        next(steps)
    assert sum(watch.calls[name] for name in ("_local_scalar_dense", "nonzero", "aminmax")) == waits


def test_a_token_is_chosen_by_one_thread_so_that_no_other_of_torch_is_awake_while_a_decoder_computes(monkeypatch):
    """The largest of 8 x 6,400 logits woke one: with two threads a step of eight texts took twice as long."""
    seen, choose, before = [], Sampling.choose, torch.get_num_threads()

    def watched(*arguments):
        seen.append(("choose", torch.get_num_threads()))
        return choose(*arguments)

    model = tiny_model()
    model.register_forward_pre_hook(lambda *_: seen.append(("read", torch.get_num_threads())))
    monkeypatch.setattr(Sampling, "choose", watched)
    torch.set_num_threads(2)
    try:
        generate(model, token_ids(2, 5), 2)
    finally:
        torch.set_num_threads(before)
    assert seen == [("read", 2), ("choose", 1)] * 2


def test_what_a_text_was_checked_for_is_checked_again_in_other_calls():
    next(MODEL.stream(IDS, 6))
    with pytest.raises(ValueError, match="token ids must lie in"):
        MODEL(IDS + 60)


def test_the_ends_of_the_config_have_a_name():
    prompt = torch.ones(1, 1).long()
    for options in ({}, {"eos_token_id": "config"}):
        assert generate(scripted([[5, 2, 6]]), prompt, 6, **options)[0, 1:].tolist() == [5, 2]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_in_half_precision_generate(dtype):
    model, ids = tiny_model("minimind3", dtype=dtype), token_ids(2, 5)
    with_cache = model.generate(ids, 6, do_sample=True, top_p=0.9)
    assert with_cache.dtype == torch.int64 and with_cache.max() < 61


# Bad input

IDS = token_ids(2, 5)
BAD_CALLS = [
    ({"input_ids": IDS[0]}, r"input_ids must be integers of shape \[B, S\], .* of shape \[5\]"),
    ({"input_ids": IDS.float()}, "input_ids must be integers .* got torch.float32"),
    ({"input_ids": IDS[:, :0]}, r"at least one token in each row, got \[2, 0\]; start an empty prompt with the beg"),
    ({"input_ids": IDS + 60}, r"token ids must lie in \[0, 61\), got ids from"),
    ({"input_ids": IDS - 61}, r"token ids must lie in \[0, 61\), got ids from -"),
    ({"max_new_tokens": 0}, "max_new_tokens must be a whole number of at least 1, got 0"),
    (
        {"max_new_tokens": 61},
        "a prompt of 5 tokens and 61 new ones need 65 positions, but max_position_embeddings is 64; shorten the "
        "prompt or ask for fewer tokens",
    ),
    ({"max_new_tokens": 2.5}, "max_new_tokens must be a whole number of at least 1, got 2.5"),
    ({"input_ids": [[1, 2]]}, r"input_ids must be a tensor of integers \[B, S\], got list; torch.as_tensor converts"),
    ({"pad_token_id": -1}, r"pad_token_id must be a whole number from 0 to 60, got -1"),
    ({"pad_token_id": 61}, r"pad_token_id must be a whole number from 0 to 60, got 61"),
    ({"eos_token_id": [2, 99]}, "eos_token_id must be a whole number from 0 to 60, got 99"),
    *(
        ({"eos_token_id": token}, "eos_token_id must be a whole number from 0 to 60, got ")
        for token in (-1, -1.0, True, "none", torch.tensor([2, 3]), np.array([2, 3]))
    ),
    ({"pad_token_id": [1, 2]}, r"pad_token_id must be a whole number from 0 to 60, got \[1, 2\]"),
    ({"pad_token_id": True}, "pad_token_id must be a whole number from 0 to 60, got True"),
    ({"use_cache": "no"}, "use_cache must be True or False, got 'no'"),
    ({"input_ids": IDS.to_sparse()}, "input_ids must be a dense tensor"),
    ({"attention_mask": [[1] * 5] * 2}, "attention_mask must be a tensor of ones and zeros, got list"),
    ({"attention_mask": torch.full((2, 5), -1)}, "holds 1 on tokens and 0 on padding, got -1; a mask that is added"),
    ({"attention_mask": torch.full((2, 5), torch.nan)}, "holds 1 on tokens and 0 on padding, got nan"),
    (
        {"attention_mask": torch.tensor([[1] * 5, [1, 1, 1, 1, 0]])},
        "must be padded on the left, .* attention_mask ends with 0 in row 1",
    ),
    (
        {"attention_mask": torch.tensor([[1] * 5, [0, 1, 0, 1, 1]])},
        "padding belongs in front .* goes from 1 to 0 in row 1",
    ),
    ({"attention_mask": torch.ones(2, 6)}, r"attention_mask must be \[B, T\] = \[2, 5\] like input_ids, got \[2, 6\]"),
]


@pytest.mark.parametrize("way", ["generate", "stream"])
@pytest.mark.parametrize("arguments, message", BAD_CALLS)
def test_rejects_what_it_cannot_do_at_the_call(way, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(MODEL, way)(**{"input_ids": IDS, "max_new_tokens": 4, **arguments})


# Numbers that are none

QK_NORM = {"minimind3": MODELS["minimind3"], "minimind3_moe": MODELS["minimind3_moe"]}
TENSORS = [(kind, name) for kind, model in QK_NORM.items() for name, _ in model.named_parameters()]
STRANGE = {"NaN": torch.nan, "infinity": -torch.inf}
PADDED = {"eos_token_id": None, "attention_mask": torch.tensor([[0, 1, 1, 1, 1], [1] * 5])}
WAYS = {
    "cached": lambda model: model.generate(IDS[:1], 2),
    "not cached": lambda model: model.generate(IDS[:1], 2, use_cache=False),
    "batch": lambda model: model.generate(IDS, 2, **PADDED),
    "stream": lambda model: model.stream(IDS, 2),
    "sampled": lambda model: model.generate(IDS, 2, do_sample=True),
    "bfloat16": lambda model: copy.deepcopy(model).bfloat16().generate(IDS, 2),
}


@pytest.fixture
def with_number():
    """Put a number into a tensor of a model for one test."""
    undo = []

    def put(model, name, number):
        tensor = model.get_parameter(name)
        undo.append((tensor, tensor.detach().clone()))
        tensor.data.flatten()[-1] = number

    yield put
    for tensor, before in reversed(undo):
        tensor.data.copy_(before)


@pytest.mark.parametrize("kind, name", TENSORS)
@pytest.mark.parametrize("what", STRANGE)
def test_a_weight_that_is_no_finite_number_is_refused_by_name_in_every_way(kind, name, what, with_number):
    """Also a row of the embedding that nobody reads, an expert that no token visits, and queries and keys."""
    with_number(QK_NORM[kind], name, STRANGE[what])
    for way in WAYS.values():
        with pytest.raises(ValueError, match=f"weights must be finite numbers, but {re.escape(name)} holds {what};"):
            way(QK_NORM[kind])


def test_the_first_of_several_is_named(with_number):
    for name in ("lm_head.weight", "model.norm.weight", "model.layers.1.self_attn.k_proj.weight"):
        with_number(MODEL, name, torch.nan)
    first = next(name for name, parameter in MODEL.named_parameters() if not parameter.isfinite().all())
    with pytest.raises(ValueError, match=f"but {re.escape(first)} holds NaN"):
        MODEL.generate(IDS, 2)


def test_the_largest_finite_weights_are_finite():
    """Their sum is not."""
    model = tiny_model(dtype=torch.float32)
    for parameter in model.parameters():
        parameter.data.fill_(torch.finfo(torch.float32).max)
    check_finite(model)
    check_finite(torch.nn.ParameterList([torch.nn.Parameter(torch.empty(0))]))
    check_finite(model.to("meta"))


@pytest.mark.parametrize("part", ["q_proj", "k_proj"])
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("large", [1e37, 1e20], ids=["projections overflow", "scores overflow"])
def test_what_overflows_on_the_way_is_no_token(part, use_cache, large):
    """Weights that are finite; torch's fused attention would hide it."""
    model = tiny_model(dtype=torch.float32)
    for layer in model.model.layers:
        getattr(layer.self_attn, part).weight.data.mul_(large)
        other = layer.self_attn.k_proj if part == "q_proj" else layer.self_attn.q_proj
        other.weight.data.mul_(1e20)
    for ids in (IDS, IDS[:1], IDS[:1, :1]):
        with pytest.raises(ValueError, match="the logits contain NaN or infinity"):
            model.generate(ids, 3, eos_token_id=None, use_cache=use_cache)


def test_a_weight_that_becomes_NaN_between_two_tokens_stops_the_text(with_number):
    tokens = MODEL.stream(IDS, 5, eos_token_id=None)
    next(tokens)
    with_number(MODEL, "model.layers.0.self_attn.q_proj.weight", torch.nan)
    with pytest.raises(ValueError, match="the logits contain NaN or infinity"):
        next(tokens)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["q_proj", "k_proj", "v_proj"])
def test_a_loss_shows_NaN(kind, part, with_number):
    with_number(MODELS[kind], f"model.layers.0.self_attn.{part}.weight", torch.nan)
    assert MODELS[kind](IDS, labels=IDS).loss.isnan()


def test_ids_without_values_are_refused():
    with pytest.raises(ValueError, match="input_ids must be where the model is, not on the meta device"):
        MODEL.generate(IDS.to("meta"), 4)


def test_generate_checks_how_tokens_are_chosen_too():
    with pytest.raises(ValueError, match="top_k .*at least 0, got -1"):
        MODEL.generate(IDS, 4, top_k=-1)


@pytest.mark.parametrize("way", ["generate", "stream"])
def test_rejects_an_option_that_does_not_exist(way):
    with pytest.raises(TypeError, match="num_beams"):
        getattr(MODEL, way)(IDS, 4, num_beams=3)


CHOICES = [{}, {"do_sample": True, "top_k": 5}, {"repetition_penalty": 1.3}, {"do_sample": True, "temperature": 0.5}]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_how_a_token_is_chosen_is_said_in_the_same_words_everywhere(choice):
    def written(**options):
        torch.manual_seed(0)
        return MODEL.generate(IDS, 6, eos_token_id=None, **options)

    def streamed(*sampling, **options):
        torch.manual_seed(0)
        return torch.stack(list(MODEL.stream(IDS, 6, *sampling, eos_token_id=None, **options)), dim=1)

    expected = written(**choice)
    assert torch.equal(written(sampling=Sampling(**choice)), expected)
    for new in (streamed(**choice), streamed(Sampling(**choice)), streamed(sampling=Sampling(**choice))):
        assert torch.equal(new, expected[:, 5:])


@pytest.mark.parametrize("way", ["generate", "stream"])
def test_two_choices_at_once_are_refused(way):
    with pytest.raises(ValueError, match="as `sampling` says or as do_sample, top_k say; give one of the two"):
        getattr(MODEL, way)(IDS, 4, sampling=Sampling(), do_sample=True, top_k=3)


def test_numbers_of_numpy_are_numbers():
    expected = MODEL.generate(IDS, 4, eos_token_id=3, pad_token_id=0)
    numbers = {"eos_token_id": np.int64(3), "pad_token_id": np.uint8(0)}
    assert torch.equal(MODEL.generate(IDS, np.int32(4), **numbers), expected)
