"""The adapter: our models inside transformers give what our own generate gives, and what Llama's gives."""

import threading

import pytest
import torch
from model_builders import KINDS, talkative_model, tiny_config, tiny_model, token_ids
from safetensors.torch import load_file, save_file
from tokenizer_builders import write_tokenizer
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    EncoderDecoderCache,
    LlamaConfig,
    MistralConfig,
    StaticCache,
    Trainer,
    TrainingArguments,
)
from transformers.generation.streamers import BaseStreamer

from minimind_edu import from_checkpoint, hf, save_checkpoint
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.rope_frequencies import RopeScaling

PADDED = torch.tensor([[0] * 6 + [1] * 4, [0] * 2 + [1] * 8, [1] * 10])
OLD_SCALING = RopeScaling(4.0, 16, 4.0, formula="minimind2")


def wrap(model):
    return hf.MiniMindEduForCausalLM.from_minimind(model)


def padded_ids(seed=0):
    return token_ids(3, 10, seed=seed).masked_fill(PADDED == 0, 0)


@pytest.fixture(scope="module", params=KINDS)
def pair(request):
    """Our model and the same one wrapped."""
    model = talkative_model(request.param)
    return model, wrap(model)


@pytest.fixture(scope="module", params=["minimind2", "minimind3", "minimind3_moe"])
def twins(request):
    """The wrapped model and Llama, Qwen3 or Qwen3-MoE with the same weights."""
    model = talkative_model(request.param)
    return wrap(model), hf.to_transformers(model)


# Forward


@torch.no_grad()
def test_a_call_gives_what_our_call_gives(pair):
    ours, wrapped = pair
    ids = padded_ids()
    labels = ids.masked_fill(PADDED == 0, -100)
    expected = ours(ids, PADDED, labels=labels)
    out = wrapped(ids, attention_mask=PADDED, labels=labels)
    assert torch.equal(out.logits, expected.logits)
    assert torch.equal(wrapped(ids, attention_mask=PADDED, return_dict=False)[-2], out.logits)
    aux_loss = 0 if expected.aux_loss is None else expected.aux_loss
    torch.testing.assert_close(out.loss, expected.loss + aux_loss)
    if ours.config.use_moe:
        assert out.aux_loss == expected.aux_loss > 0
    assert wrapped(ids, attention_mask=PADDED).loss is None, "without labels there is nothing to minimize"


LABELS = {
    "below 0": (
        torch.full((2, 4), -5),
        r"labels \(-100 is left out\): token ids must lie in \[0, 61\), got ids from -5",
    ),
    "above the vocabulary": (torch.full((2, 4), 99), r"labels \(-100 is left out\): token ids must lie in \[0, 61\)"),
    "no integers": (torch.ones(2, 4), r"labels \(-100 is left out\) must be integers of shape \[B, S\]"),
    "a list": ([[3, 4, 5, 6]] * 2, r"labels must be a tensor of integers \[B, S\], got list"),
    "of another shape": (
        torch.ones(2, 3, dtype=torch.int64),
        r"labels must have the shape of input_ids.* got labels \[2, 3\]",
    ),
    "all left out": (torch.full((2, 4), -100), "a loss needs a label to predict"),
}


@pytest.mark.parametrize("case", LABELS)
def test_refuses_labels_that_no_loss_is_of(case):
    labels, message = LABELS[case]
    wrapped = wrap(tiny_model(dtype=torch.float32))
    with pytest.raises(ValueError, match=message):
        wrapped(token_ids(2, 4), labels=labels)


@torch.no_grad()
def test_labels_in_int32_give_the_same_loss():
    wrapped, ids = wrap(tiny_model(dtype=torch.float32)), token_ids(2, 4)
    assert torch.equal(wrapped(ids, labels=ids.int()).loss, wrapped(ids, labels=ids).loss)


@torch.no_grad()
def test_one_small_batch_of_many_may_have_nothing_to_predict():
    wrapped, ids = wrap(tiny_model(dtype=torch.float32)), token_ids(2, 4)
    assert wrapped(ids, labels=torch.full_like(ids, -100), num_items_in_batch=60).loss == 0


@torch.no_grad()
def test_the_loss_can_be_divided_by_the_items_of_a_larger_batch():
    """What a Trainer asks for when it adds up several small batches."""
    wrapped = wrap(talkative_model())
    ids = token_ids(2, 10)
    whole, part = (wrapped(ids, labels=ids, num_items_in_batch=n).loss for n in (None, 60))
    torch.testing.assert_close(60 * part, 18 * whole)


@torch.no_grad()
def test_keeps_the_logits_that_are_asked_for(pair):
    _, wrapped = pair
    ids = token_ids(2, 9)
    whole = wrapped(ids).logits
    torch.testing.assert_close(wrapped(ids, logits_to_keep=3).logits, whole[:, -3:])
    which = torch.tensor([0, 4])
    torch.testing.assert_close(wrapped(ids, logits_to_keep=which).logits, whole[:, which])
    with pytest.raises(ValueError, match="labels .* need the logits of all positions"):
        wrapped(ids, labels=ids, logits_to_keep=3)


NO_POSITIONS = [-1, 11, True, 2.0, None, "1", [0], torch.tensor([10]), torch.tensor([-11]), torch.tensor(3),
                torch.tensor([0.0]), torch.tensor([True] * 10)]  # fmt: skip


@pytest.mark.parametrize("which", NO_POSITIONS, ids=repr)
def test_refuses_logits_of_positions_that_there_are_not(which):
    wrapped = wrap(tiny_model(dtype=torch.float32))
    with pytest.raises(ValueError, match=r"logits_to_keep must be a number of positions between 0 \(all\) and 10, or "):
        wrapped(token_ids(2, 10), logits_to_keep=which)


def test_gradients_reach_every_weight_and_are_ours():
    ours = tiny_model("minimind3_moe", dtype=torch.float32).train()
    ids = token_ids(2, 12)
    out = ours(ids, labels=ids)
    (out.loss + out.aux_loss).backward()
    expected = {name: value.grad.clone() for name, value in ours.named_parameters()}
    ours.zero_grad()
    wrapped = wrap(ours)
    assert wrapped.training
    wrapped(ids, labels=ids).loss.backward()
    for name, value in wrapped.named_parameters():
        torch.testing.assert_close(value.grad, expected[name])


def test_a_trainer_trains_it_and_saves_what_can_be_loaded(tmp_path):
    pytest.importorskip("accelerate", reason="transformers' Trainer needs it")
    wrapped = wrap(tiny_model("minimind3_moe", dtype=torch.float32))
    texts = [{"input_ids": row, "labels": row} for row in token_ids(8, 12)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=20, per_device_train_batch_size=2,
        gradient_accumulation_steps=2, learning_rate=1e-2, logging_steps=10, save_steps=20,
        report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(wrapped, arguments, train_dataset=texts)
    trainer.train()
    first, last = (entry["loss"] for entry in trainer.state.log_history if "loss" in entry)
    assert float(last) < 0.8 * float(first)
    read = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint-20")
    ids = texts[0]["input_ids"][None]
    assert torch.equal(read(ids).logits, wrapped.eval()(ids).logits)


@pytest.mark.parametrize("option", ["inputs_embeds", "output_attentions", "output_hidden_states", "token_type_ids"])
def test_refuses_options_it_has_no_meaning_for(option):
    wrapped = wrap(tiny_model(dtype=torch.float32))
    for ids in (token_ids(1, 4), None):
        with pytest.raises(ValueError, match=f"this model has no {option}"):
            wrapped(ids, **{option: torch.ones(1, 4)})
    wrapped(token_ids(1, 4), **{option: None})
    with pytest.raises(ValueError, match=r"input_ids are missing: this model takes token ids, \[B, S\]"):
        wrapped()


def test_all_unknown_options_are_named_in_order():
    wrapped = wrap(tiny_model(dtype=torch.float32))
    with pytest.raises(ValueError, match="this model has no head_mask, output_attentions, shift_labels, x: it takes"):
        wrapped(token_ids(1, 4), x=0, shift_labels=0, output_attentions=True, head_mask=0, token_type_ids=None)


@pytest.mark.parametrize("name", ["output_hidden_states", "output_router_logits"])
@torch.no_grad()
def test_what_the_config_asks_for_is_refused_as_well(name):
    wrapped, ids = wrap(tiny_model(dtype=torch.float32)), token_ids(1, 4)
    setattr(wrapped.config, name, True)
    with pytest.raises(ValueError, match=f"this model has no {name}"):
        wrapped(ids)
    wrapped(ids, **{name: False})


@pytest.mark.parametrize("told", ["no", 1])
def test_a_cache_is_wanted_or_not(told):
    wrapped, ids = wrap(tiny_model(dtype=torch.float32)), token_ids(1, 4)
    with pytest.raises(ValueError, match=f"use_cache must be True or False, got {told!r}"):
        wrapped(ids, use_cache=told)
    wrapped.config.use_cache = told
    with pytest.raises(ValueError, match=f"use_cache must be True or False, got {told!r}"):
        wrapped(ids)


@torch.no_grad()
def test_the_config_says_whether_a_cache_is_returned():
    wrapped, ids = wrap(tiny_model(dtype=torch.float32)), token_ids(1, 4)
    assert wrapped(ids).past_key_values is not None
    wrapped.config.use_cache = False
    assert wrapped(ids).past_key_values is None
    assert wrapped(ids, use_cache=True).past_key_values is not None


@torch.no_grad()
def test_takes_positions_only_if_they_are_the_ones_it_counts():
    wrapped = wrap(talkative_model())
    ids, columns = padded_ids(), torch.arange(10)[None]
    without_padding = (PADDED.cumsum(-1) - 1).clamp(min=0)
    expected = wrapped(ids, attention_mask=PADDED).logits
    for positions in (columns, columns.expand(3, -1), without_padding):
        out = wrapped(ids, attention_mask=PADDED, position_ids=positions)
        assert torch.equal(out.logits, expected)
    past = wrapped(ids[:, :6], attention_mask=PADDED[:, :6], use_cache=True).past_key_values
    rest = {"input_ids": ids[:, 6:], "attention_mask": PADDED, "past_key_values": past}
    with pytest.raises(ValueError, match="something else than one position after the other"):
        wrapped(**rest, position_ids=torch.arange(4)[None])
    wrapped(**rest, position_ids=without_padding[:, 6:])
    for positions in (columns + 1, columns.flip(1), 2 * columns, columns % 5):
        with pytest.raises(ValueError, match="something else than one position after the other"):
            wrapped(ids, position_ids=positions)
    for positions in (columns[:, :9], columns.expand(2, -1), columns[None], torch.tensor(0)):
        with pytest.raises(ValueError, match="something else than one position after the other"):
            wrapped(ids, position_ids=positions)
    with pytest.raises(ValueError, match=r"position_ids must be a tensor \[B, S\], got list"):
        wrapped(ids, position_ids=columns.tolist())


# Generate


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_cache": False},
        {"cache_implementation": "static"},
        {"past_key_values": "DynamicCache"},
        {"repetition_penalty": 1.3},
    ],
    ids=str,
)
def test_greedy_tokens_are_those_of_our_generate(pair, options):
    ours, wrapped = pair
    ids = padded_ids()
    penalty = options.get("repetition_penalty", 1.0)
    expected = ours.generate(ids, 20, attention_mask=PADDED, repetition_penalty=penalty)
    assert len(expected[:, 10:].unique()) > 10
    if "past_key_values" in options:
        options = {"past_key_values": DynamicCache()}
    tokens = wrapped.generate(ids, attention_mask=PADDED, max_new_tokens=20, do_sample=False, **options)
    if penalty == 1.0:
        assert torch.equal(tokens, expected)
    else:  # transformers also counts the padding as a token that has occurred
        assert torch.equal(tokens[2], expected[2])


def test_ended_rows_are_padded_as_in_our_generate(pair):
    ours, wrapped = pair
    ids = padded_ids()
    end = int(ours.generate(ids, 20, attention_mask=PADDED, eos_token_id=None)[1, 15])
    expected = ours.generate(ids, 20, attention_mask=PADDED, eos_token_id=end, pad_token_id=2)
    tokens = wrapped.generate(ids, attention_mask=PADDED, max_new_tokens=20, eos_token_id=end)
    assert (expected == 2).any()
    assert torch.equal(tokens, expected)


def test_a_text_ends_with_any_of_several_tokens(tmp_path):
    ids = padded_ids()
    free = talkative_model().generate(ids, 20, attention_mask=PADDED, eos_token_id=None)
    ends = free[1, 14].item(), free[2, 15].item()
    ours = talkative_model(eos_token_id=ends)
    expected = ours.generate(ids, 20, attention_mask=PADDED)
    assert not torch.equal(expected, free), "something ended"
    wrap(ours).save_pretrained(tmp_path)
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert read.config.to_minimind().eos_token_id == ends
    for model in (wrap(ours), read, hf.to_transformers(ours)):
        assert torch.equal(model.generate(ids, attention_mask=PADDED, max_new_tokens=20), expected)


def test_a_text_ends_with_a_word(tmp_path):
    """generate needs the tokenizer for that, and passes it on to the model."""
    tokenizer = AutoTokenizer.from_pretrained(write_tokenizer(tmp_path))
    wrapped, ids = wrap(talkative_model(vocab_size=300)), token_ids(1, 5)
    free = wrapped.generate(ids, max_new_tokens=20)
    written = [tokenizer.decode(token) for token in free[0]]
    word = next(text for text in written[8:] if text.isalnum() and text.isascii())
    ended = wrapped.generate(ids, max_new_tokens=20, stop_strings=[word], tokenizer=tokenizer)
    assert ended.shape[1] < free.shape[1]
    assert torch.equal(ended, free[:, : ended.shape[1]])


def test_padding_on_the_right_is_refused_where_a_text_would_go_on_behind_it():
    """In training it does no harm, and tokenizers put it there unless told otherwise."""
    wrapped, ids = wrap(talkative_model()), token_ids(3, 10)
    right = PADDED.flip(1)
    with pytest.raises(ValueError, match="prompts of different length must be padded on the left"):
        wrapped.generate(ids, attention_mask=right, max_new_tokens=3)
    logits = wrapped(ids, attention_mask=right).logits
    torch.testing.assert_close(logits[0, :4], wrapped(ids[:1, :4]).logits[0])


PROMPTS = {
    "a list": ([[3, 4]], "input_ids must be a tensor of integers"),
    "one row alone": (torch.tensor([3, 4]), r"input_ids must be integers of shape \[B, S\], got .* shape \[2\]"),
    "nothing": (torch.ones(1, 0, dtype=torch.int64), "input_ids must hold at least one token in each row"),
    "of another vocabulary": (torch.tensor([[61]]), r"token ids must lie in \[0, 61\), got ids from 61 to 61"),
}


@pytest.mark.parametrize("case", PROMPTS)
def test_a_prompt_is_checked_before_anything_is_generated(case):
    wrapped, (prompt, message) = wrap(tiny_model(dtype=torch.float32)), PROMPTS[case]
    for given in ({"input_ids": prompt}, {"inputs": prompt}):
        with pytest.raises(ValueError, match=message):
            wrapped.generate(**given, max_new_tokens=3)
    with pytest.raises(ValueError, match=message):
        wrapped.generate(prompt, max_new_tokens=3)


def test_a_mask_is_a_tensor_and_a_past_may_be_empty():
    ours = talkative_model()
    wrapped, ids = wrap(ours), token_ids(1, 4)
    with pytest.raises(ValueError, match="attention_mask must be a tensor of ones and zeros"):
        wrapped.generate(ids, attention_mask=[[1, 1, 1, 1]], max_new_tokens=3)
    with pytest.raises(ValueError, match="past_key_values must hold one pair for each of the 2 layers, got 0"):
        wrapped.generate(ids, past_key_values=[], max_new_tokens=3)
    tokens = wrapped.generate(ids, past_key_values=KVCache(2), max_new_tokens=3, eos_token_id=None)
    assert torch.equal(tokens, ours.generate(ids, 3, eos_token_id=None))


def test_guessing_ahead_gives_the_same_tokens(pair):
    """Prompt lookup reads several guesses at once behind a filled cache, and crops the cache where they were wrong."""
    ours, wrapped = pair
    ids = token_ids(1, 5).repeat(1, 3)
    tokens = wrapped.generate(ids, max_new_tokens=20, prompt_lookup_num_tokens=3)
    assert torch.equal(tokens, ours.generate(ids, 20))


@pytest.mark.parametrize(
    "options",
    [
        {"num_beams": 4},
        {"num_beams": 4, "use_cache": False},
        {"num_beams": 4, "num_return_sequences": 3, "cache_implementation": "static"},
        {"num_beams": 3, "do_sample": True},
        {"do_sample": True, "temperature": 0.8, "top_k": 20, "top_p": 0.9},
        {"do_sample": True, "min_p": 0.2},
        {"do_sample": True, "num_return_sequences": 3},
    ],
    ids=str,
)
def test_tokens_are_those_of_llama_and_qwen_with_the_same_weights(twins, options):
    wrapped, theirs = twins
    tokens = []
    for model in (wrapped, theirs):
        torch.manual_seed(3)
        inputs = {"inputs": padded_ids(seed=1), "attention_mask": PADDED, "max_new_tokens": 15}
        tokens.append(model.generate(**inputs, **options))
    assert torch.equal(*tokens)


def test_beam_search_is_not_greedy_here(twins):
    """Else the test above would pass without any cache having been reordered."""
    wrapped, _ = twins
    inputs = {"inputs": padded_ids(seed=1), "attention_mask": PADDED, "max_new_tokens": 15}
    beams = wrapped.generate(**inputs, num_beams=4)
    assert not torch.equal(beams, wrapped.generate(**inputs))


class TokensAsTheyCome(BaseStreamer):
    def __init__(self):
        self.seen, self.ended = [], False

    def put(self, value):
        self.seen.append(value.flatten().tolist())

    def end(self):
        self.ended = True


def test_tokens_are_streamed_one_by_one():
    wrapped, streamer = wrap(talkative_model()), TokensAsTheyCome()
    ids = token_ids(1, 5)
    thread = threading.Thread(
        target=wrapped.generate, kwargs={"inputs": ids, "max_new_tokens": 6, "streamer": streamer}
    )
    thread.start()
    thread.join(timeout=60)
    tokens = wrapped.generate(ids, max_new_tokens=6)[0].tolist()
    assert streamer.ended
    assert streamer.seen == [tokens[:5], *([token] for token in tokens[5:])]


# Caches


def caches_of(wrapped):
    config = wrapped.config
    return {
        "DynamicCache": DynamicCache(),
        "DynamicCache with a config": DynamicCache(config=config),
        "StaticCache": StaticCache(config=config, max_cache_len=40),
    }


@pytest.mark.parametrize("name", ["DynamicCache", "DynamicCache with a config", "StaticCache"])
@torch.no_grad()
def test_a_cache_of_transformers_is_filled_in_place_for_every_cut(pair, name):
    """E95: an empty cache is falsy and a filled one cannot be indexed, so upstream drops them."""
    ours, wrapped = pair
    ids = token_ids(2, 12)
    expected = ours(ids).logits
    assert not DynamicCache()
    for cut in (1, 5, 11):
        cache = caches_of(wrapped)[name]
        first = wrapped(ids[:, :cut], past_key_values=cache, use_cache=True)
        second = wrapped(ids[:, cut:], past_key_values=cache, use_cache=True)
        assert first.past_key_values is second.past_key_values is cache
        assert int(cache.get_seq_length()) == 12
        logits = torch.cat([first.logits, second.logits], dim=1)
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_cache_holds_what_that_of_llama_holds(twins):
    wrapped, theirs = twins
    ids = token_ids(2, 9)
    held, expected = (model(ids, use_cache=True).past_key_values for model in twins)
    assert isinstance(held, DynamicCache)
    for mine, other in zip(held.layers, expected.layers, strict=True):
        torch.testing.assert_close(mine.keys, other.keys, rtol=0, atol=1e-5)
        torch.testing.assert_close(mine.values, other.values, rtol=0, atol=1e-5)
    # and each continues the other's
    new = token_ids(2, 3, seed=5)
    logits = [a(new, past_key_values=b).logits for a, b in ((wrapped, expected), (theirs, held))]
    torch.testing.assert_close(*logits, rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_pairs_of_the_notes_work_too_and_stay_as_they_are(pair):
    ours, wrapped = pair
    ids = token_ids(2, 12)
    cache = ours(ids[:, :7], use_cache=True).past_key_values
    pairs = tuple((key.clone(), value.clone()) for key, value in cache)  # [B, T, K, D]
    expected = ours(ids).logits[:, 7:]
    for past in (cache, pairs, list(pairs)):
        out = wrapped(ids[:, 7:], past_key_values=past, use_cache=True)
        torch.testing.assert_close(out.logits, expected, rtol=0, atol=1e-5)
        assert out.past_key_values[0][0].shape == (2, 12, 2, 8)
        assert past[0][0].shape == (2, 7, 2, 8)
        tokens = wrapped.generate(ids, past_key_values=past, max_new_tokens=8)
        assert torch.equal(tokens, ours.generate(ids, 8))
    assert wrapped(ids, use_cache=False).past_key_values is None


def bad_pasts(wrapped):
    encoder = EncoderDecoderCache(DynamicCache(), DynamicCache())
    sliding = DynamicCache(config=MistralConfig(num_hidden_layers=2, sliding_window=4))
    shallow = DynamicCache(config=LlamaConfig(num_hidden_layers=1))
    return {
        "an encoder's": (encoder, "belongs to an encoder, does not fit; use DynamicCache"),
        "a forgetful one": (sliding, "forgets some"),
        "of another model": (shallow, "holds 1 layers, but the model has 2"),
        "none kept": ([None, None], r"past_key_values\[0\] is None: .* without use_cache=True"),
        "their layout": (
            wrapped(token_ids(1, 5), use_cache=True).past_key_values.layers[0].keys,
            "must be one .* pair",
        ),
    }


@pytest.mark.parametrize("case", ["an encoder's", "a forgetful one", "of another model", "none kept", "their layout"])
def test_refuses_a_past_that_it_cannot_continue(case):
    wrapped = wrap(tiny_model(dtype=torch.float32))
    past, message = bad_pasts(wrapped)[case]
    for call in (wrapped, wrapped.generate):
        with pytest.raises(ValueError, match=message):
            call(token_ids(1, 1), past_key_values=past)


# Saving and loading

SAVED = {
    **{kind: (kind, {}) for kind in KINDS},
    "untied": ("minimind2", {"tie_word_embeddings": False}),
    "MiniMind2's own scaling": ("minimind2", {"rope_scaling": OLD_SCALING}),
    "post-norm": ("minimind2", {"norm_placement": "post"}),
    "YaRN": ("minimind3", {"rope_scaling": RopeScaling(4.0, 16)}),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("case", SAVED)
@torch.no_grad()
def test_saved_and_loaded_it_is_the_same_model(case, dtype, tmp_path):
    kind, changes = SAVED[case]
    ours = tiny_model(kind, dtype=dtype, **changes)
    wrap(ours).save_pretrained(tmp_path)
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(read, hf.MiniMindEduForCausalLM)
    assert read.dtype == dtype and not read.training
    assert read.generation_config.disable_compile
    assert read.config.to_minimind() == ours.config == read.model.config
    back = read.to_minimind()
    assert back.state_dict().keys() == ours.state_dict().keys()
    for name, value in ours.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name
    # transformers builds on the meta device and fills only what is in the file: the tables are not
    assert read.model.freqs_cos.dtype == torch.float32
    assert torch.equal(read.model.freqs_cos, ours.model.freqs_cos)
    assert torch.equal(read.model.freqs_sin, ours.model.freqs_sin)
    tied = read.lm_head.weight is read.model.embed_tokens.weight
    assert tied is ours.config.tie_word_embeddings
    ids = token_ids(2, 20)
    assert torch.equal(read(ids).logits, ours(ids).logits)


def test_a_tied_matrix_is_saved_once_and_stays_one(tmp_path):
    """E112: upstream's seed version names no tied weights, so transformers refuses to save it."""
    wrap(tiny_model(dtype=torch.float32)).save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    with torch.no_grad():
        read.model.embed_tokens.weight[5] = 7
    assert (read.lm_head.weight[5] == 7).all()


def test_loads_in_another_dtype(tmp_path):
    wrap(tiny_model(dtype=torch.float32)).save_pretrained(tmp_path)
    read = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float16)
    assert read.lm_head.weight.dtype == torch.float16
    assert read.model.freqs_cos.dtype == torch.float32


def test_a_new_model_starts_like_ours():
    config = hf.MiniMindEduConfig.from_minimind(tiny_config("minimind3_moe", hidden_size=256, initializer_range=0.05))
    model = AutoModelForCausalLM.from_config(config)
    assert model.model.layers[0].mlp.experts[0].up_proj.weight.std().item() == pytest.approx(0.05, rel=0.05)
    assert (model.model.norm.weight == 1).all()
    gate = model.model.layers[0].mlp.gate.weight  # U(-1/16, 1/16)
    assert 0.055 < gate.abs().max() <= 1 / 16


@pytest.fixture
def empty_is_nan():
    """What nobody has written holds no number; otherwise it holds what lay there, which may look drawn."""
    torch.use_deterministic_algorithms(True)  # with it, PyTorch fills what is made without values
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def test_a_missing_router_is_drawn_and_not_left_empty(tmp_path, empty_is_nan):
    wrap(tiny_model("minimind3_moe", dtype=torch.float32)).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.layers.0.mlp.gate.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    gate = AutoModelForCausalLM.from_pretrained(tmp_path).model.layers[0].mlp.gate.weight
    assert 0 < gate.abs().max() <= 32**-0.5


def test_wrapping_shares_the_weights_both_ways():
    ours = tiny_model(dtype=torch.float32)
    wrapped = wrap(ours)
    back = wrapped.to_minimind()
    for name, value in ours.state_dict().items():
        assert wrapped.state_dict()[name].data_ptr() == value.data_ptr()
        assert back.state_dict()[name].data_ptr() == value.data_ptr()
    assert back.lm_head.weight is back.model.embed_tokens.weight
    assert not back.training


@pytest.mark.parametrize("tied", [True, False])
def test_the_vocabulary_can_grow_and_the_wrapped_model_grows_with_it(tied, tmp_path):
    ours = tiny_model(dtype=torch.float32, tie_word_embeddings=tied)
    wrapped = wrap(ours)
    assert wrapped.get_input_embeddings() is wrapped.model.embed_tokens
    assert wrapped.get_output_embeddings() is wrapped.lm_head
    with pytest.raises(ValueError, match="token ids must lie in"):
        wrapped(torch.tensor([[70]]))
    wrapped.resize_token_embeddings(80)
    assert (wrapped.lm_head.weight is wrapped.model.embed_tokens.weight) == tied
    logits = wrapped(torch.tensor([[70]])).logits
    assert logits.shape == (1, 1, 80)
    wrapped.save_pretrained(tmp_path / "adapter")
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "adapter").to_minimind().config.vocab_size == 80
    read = from_checkpoint(save_checkpoint(ours, tmp_path / "ours.safetensors"))
    assert read.config.vocab_size == 80
    for model in (ours, wrapped.to_minimind(), read):
        torch.testing.assert_close(model(torch.tensor([[70]])).logits, logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_auto_model_loads_it_without_its_output_layer(tied, tmp_path, caplog):
    ours, ids = tiny_model("minimind3_moe", dtype=torch.float32, tie_word_embeddings=tied), token_ids(2, 5)
    wrap(ours).save_pretrained(tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    assert isinstance(model, hf.MiniMindEduModel)
    out = model(ids)
    torch.testing.assert_close(out.last_hidden_state, ours(ids).last_hidden_state, rtol=0, atol=1e-5)
    more = model(ids[:, :1], past_key_values=out.past_key_values).last_hidden_state  # [2, 1, E]
    whole = ours(torch.cat([ids, ids[:, :1]], dim=1)).last_hidden_state  # [2, 6, E]
    torch.testing.assert_close(more, whole[:, -1:], rtol=0, atol=1e-5)
    assert "lm_head" not in caplog.text


@pytest.mark.parametrize("name", ["sdpa", "eager"])
def test_attention_may_be_asked_for_by_name(name, tmp_path):
    ours, ids = tiny_model(dtype=torch.float32), token_ids(2, 5)
    wrap(ours).save_pretrained(tmp_path)
    read = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation=name)
    torch.testing.assert_close(read(ids).logits, ours(ids).logits, rtol=0, atol=1e-5)


@pytest.mark.parametrize("device_map", ["auto", {"": "cpu"}])
@torch.no_grad()
def test_accelerate_loads_it_into_a_model_without_memory(device_map, tmp_path):
    accelerate = pytest.importorskip("accelerate")
    ours, ids = tiny_model("minimind3_moe", dtype=torch.float32), token_ids(2, 5)
    wrap(ours).save_pretrained(tmp_path)
    with accelerate.init_empty_weights():
        empty = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(tmp_path))
    empty.tie_weights()
    read = accelerate.load_checkpoint_and_dispatch(empty, f"{tmp_path}/model.safetensors", device_map)
    torch.testing.assert_close(read.eval()(ids).logits, ours(ids).logits, rtol=0, atol=1e-5)
    assert read._no_split_modules == {"MiniMindBlock"}, "a block's sums need both of their terms on one device"


def test_the_config_is_checked_and_registered():
    config = AutoConfig.for_model("minimind_edu", hidden_size=64, num_attention_heads=4)
    assert isinstance(config, hf.MiniMindEduConfig)
    assert config.to_minimind().head_dim == 16
    with pytest.raises(ValueError, match="must be a multiple of num_key_value_heads"):
        hf.MiniMindEduConfig(num_attention_heads=8, num_key_value_heads=3)


@pytest.mark.parametrize("scaling", [3, [], "yarn"])
def test_a_scaling_is_a_dictionary(scaling):
    with pytest.raises(ValueError, match="minimind_rope_scaling must be a dictionary of RopeScaling's fields or None"):
        hf.MiniMindEduConfig(minimind_rope_scaling=scaling)


def test_only_a_model_of_ours_is_wrapped():
    model = tiny_model()
    for other in (None, model.model, wrap(model), model.state_dict()):
        with pytest.raises(ValueError, match=f"MiniMindForCausalLM can be wrapped, got {type(other).__name__}"):
            wrap(other)


def test_gradient_checkpointing_is_refused():
    wrapped = wrap(tiny_model())
    newer_name = getattr(wrapped, "activation_checkpointing_enable", None)
    with pytest.raises(ValueError, match="does not support (gradient|activation) checkpointing"):
        (newer_name or wrapped.gradient_checkpointing_enable)()
