"""verdicts.model_file: what a file of weights is, on files that are right and on such that are wrong in one way."""

import json

import pytest
import torch
from model_builders import KINDS, spread_weights, tiny_config, tiny_model
from tokenizer_builders import train_tokens, write_tokenizer

from minimind_edu import MiniMindForCausalLM, save_checkpoint
from minimind_edu.hf import export
from minimind_edu.verdicts import model_file
from minimind_edu.verdicts.data import tokenizer_of
from minimind_edu.verdicts.opened import open_weights


def opened(folder, state, name="full_sft_512.pth", config=None):
    folder.mkdir(exist_ok=True)
    torch.save(state, folder / name)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return open_weights(folder / name)


def model_of(kind="minimind2", **changes):
    """A tiny model with MiniMind2's eight heads, so that a bare file of it can be read."""
    model = MiniMindForCausalLM(tiny_config(kind, **{"num_attention_heads": 8, **changes})).eval()
    spread_weights(model)
    return model


@pytest.fixture
def state():
    return {name: tensor.clone() for name, tensor in model_of().state_dict().items() if name != "lm_head.weight"}


def verdict(verdicts, about):
    return next(verdict for verdict in verdicts if verdict.about == about)


def test_a_right_file_has_nothing_wrong(tmp_path, state):
    found = model_file.check_file(opened(tmp_path, state))
    assert {one.grade for one in found} == {"fine", "look"}
    assert [one.about for one in found if one.grade == "look"] == ["assumed"]


AGES = {
    "minimind2": "MiniMind2, of 2025-04-26 to 2026-03 (no QK-norm)",
    "minimind2_moe": "MiniMind2 with experts, of 2025-04-26 to 2026-03",
    "minimind3": "MiniMind3, of 2026-03-24 or later (it has QK-norm)",
    "minimind3_moe": "MiniMind3 with experts, of 2026-03-24 or later",
}


@pytest.mark.parametrize("kind", KINDS)
def test_family_and_age_are_told_from_names_and_shapes(tmp_path, kind):
    found = opened(tmp_path, model_of(kind).state_dict())
    told = model_file.family(found).finding
    assert told.startswith(AGES[kind]) and "told by its names and shapes alone" in told and "2 blocks 32 wide" in told


def test_other_ways_by_which_a_file_is_recognized(tmp_path):
    model = tiny_model("minimind3")
    ours = open_weights(save_checkpoint(model, tmp_path / "own.safetensors"))
    assert (ours.how, ours.family) == ("by the config that is stored in it", "this book's own form of a MiniMind")
    theirs = open_weights(export(model, tmp_path / "exported"))
    assert (theirs.how, theirs.family) == ("by the config.json in its folder", "Qwen3, as transformers writes it")
    old = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "self_attn.q_proj": "attention.wq"}
    old |= {"self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv", "self_attn.o_proj": "attention.wo"}
    old |= {"mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2", "mlp.up_proj": "feed_forward.w3"}
    old |= {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm", "model.layers": "layers"}
    state = {}
    for name, tensor in model_of(num_key_value_heads=2).state_dict().items():
        for new, before in old.items():
            name = name.replace(new, before)
        state[name.replace("lm_head", "output")] = tensor
    assert opened(tmp_path, state).family == "MiniMind of before 2025-04-26, or Llama under Meta's names"


def test_missing_and_unknown_tensors_are_named(tmp_path, state):
    assert model_file.tensors(opened(tmp_path, state)).grade == "fine"
    gone = {name: tensor for name, tensor in state.items() if name != "model.layers.1.mlp.up_proj.weight"}
    told = model_file.tensors(opened(tmp_path, gone))
    assert (
        told.grade == "wrong"
        and "1 are missing and 0 are none of this model's, of 19 in the file; the first is model.layers.1.mlp.up_proj"
        in told.finding
    )
    more = state | {"model.layers.0.extra.weight": torch.ones(3)}
    told = model_file.tensors(opened(tmp_path, more))
    assert (
        told.grade == "wrong"
        and "0 are missing and 1 are none of this model's, of 21 in the file; the first is model.layers.0.extra"
        in told.finding
    )


def test_a_config_of_another_size_is_left_aside_or_does_not_fit(tmp_path, state):
    beside = {"hidden_size": 64, "num_hidden_layers": 8, "vocab_size": 6400}
    told = model_file.assumptions(opened(tmp_path / "a", state, config=beside))
    assert told.grade == "look" and "left aside" in told.advice
    wrong = opened(tmp_path / "b", state, "pytorch_model.bin", {"model_type": "minimind", "num_hidden_layers": 16})
    found = model_file.check_file(wrong)
    told = verdict(found, "tensors")
    assert told.grade == "wrong" and "num_hidden_layers=16" in told.finding and "num_hidden_layers=2" in told.finding
    assert {one.about for one in found} == {"family", "tensors", "NaN", "precision"}


def test_nan_and_infinity_are_counted_and_end_the_check(tmp_path, state):
    assert model_file.numbers(opened(tmp_path, state)).grade == "fine"
    state["model.layers.1.self_attn.v_proj.weight"][0, :3] = torch.nan
    state["model.norm.weight"][0] = torch.inf
    found = model_file.check_file(opened(tmp_path, state))
    told = verdict(found, "NaN")
    assert told.grade == "wrong"
    assert (
        "2 of 20 tensors hold NaN or infinity; the first, model.layers.1.self_attn.v_proj.weight, in 3 of"
        in told.finding
    )
    assert "transformers" not in {one.about for one in found}


def test_precision_is_told_and_a_mixture_of_two(tmp_path, state):
    half = {name: tensor.half() for name, tensor in state.items()}
    assert model_file.precision(opened(tmp_path, half)).finding == "tensors by their dtype: float16 × 20"
    half["model.norm.weight"] = half["model.norm.weight"].float()
    assert model_file.precision(opened(tmp_path, half)).finding == "tensors by their dtype: float16 × 19, float32 × 1"
    rounded = open_weights(save_checkpoint(tiny_model("minimind3"), tmp_path / "int8.safetensors", int8=True))
    assert model_file.precision(rounded).finding == "matrices as int8 rows"


def test_tying(tmp_path, state):
    assert "stored once" in model_file.tying(opened(tmp_path, state)).finding
    twice = state | {"lm_head.weight": state["model.embed_tokens.weight"].clone()}
    assert "stored twice, equal" in model_file.tying(opened(tmp_path, twice)).finding
    two = state | {"lm_head.weight": state["model.embed_tokens.weight"] + 1}
    assert model_file.tying(opened(tmp_path, two)).grade == "look"
    three = model_of("minimind3", tie_word_embeddings=False)
    assert model_file.tying(opened(tmp_path, three.state_dict())).grade == "fine"


def test_what_is_assumed_is_listed_and_nothing_where_a_config_says_it(tmp_path, state):
    told = model_file.assumptions(opened(tmp_path, state))
    assert told.grade == "look" and "num_attention_heads=8, rope_theta=1000000.0" in told.finding
    whole = open_weights(export(tiny_model("minimind3"), tmp_path / "exported"))
    assert model_file.assumptions(whole).grade == "fine"


def test_a_model_that_no_step_has_touched(tmp_path, state):
    assert model_file.training(opened(tmp_path, state)).grade == "fine"
    new = MiniMindForCausalLM(tiny_config("minimind2", num_attention_heads=8))
    assert model_file.training(opened(tmp_path, new.state_dict())).grade == "look"


SENTENCES = ("the model reads what it wrote", "我爱编程，也爱学习语言模型。")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder of a model that knows two sentences by heart, with its tokenizer."""
    folder = write_tokenizer(tmp_path_factory.mktemp("trained") / "mine")
    model = learned(MiniMindForCausalLM(tiny_config("minimind3", vocab_size=300)), tokenizer_of(folder))
    save_checkpoint(model, folder / "model.safetensors")
    return folder


def learned(model, tokenizer):
    """The model, when it knows the sentences by heart."""
    rows = [torch.tensor([tokenizer(sentence).input_ids]) for sentence in SENTENCES]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(40):
        optimizer.zero_grad()
        model(rows[step % 2], labels=rows[step % 2]).loss.backward()
        optimizer.step()
    return model


def test_a_text_costs_less_than_a_blind_guess_with_the_right_tokenizer_only(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "SENTENCES", SENTENCES)
    found, tokenizer = open_weights(trained), tokenizer_of(trained)
    assert model_file.text(found, tokenizer).grade == "fine"
    assert model_file.text(found, None) is None
    write_tokenizer(tmp_path / "large", train_tokens(301))
    told = model_file.text(found, tokenizer_of(tmp_path / "large"))
    assert told.grade == "wrong" and "the tokenizer has 301 tokens, and the model 300" in told.finding
    with torch.no_grad():
        found.model.model.embed_tokens.weight.copy_(found.model.model.embed_tokens.weight.roll(100, 0))
    told = model_file.text(found, tokenizer)
    assert told.grade == "wrong" and "the model knows neither" in told.advice


def test_heads_that_were_assumed_wrong_show_in_a_text(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "SENTENCES", SENTENCES)
    folder = write_tokenizer(tmp_path / "mine")
    tokenizer = tokenizer_of(folder)
    for heads, grade in ((4, "wrong"), (8, "fine")):
        config = tiny_config("minimind2", vocab_size=300, num_attention_heads=heads, num_key_value_heads=heads)
        spread_weights(model := MiniMindForCausalLM(config))  # sharp heads, on which all depends
        model = learned(model, tokenizer)
        torch.save(model.state_dict(), folder / "full_sft_512.pth")
        told = model_file.text(open_weights(folder / "full_sft_512.pth"), tokenizer)
        assert told.grade == grade and ("; with num_attention_heads=4 they would cost 0." in told.finding) == (
            heads == 4
        )


def test_a_file_of_zeros_was_never_filled(tmp_path, state):
    zeros = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    told = model_file.training(opened(tmp_path, zeros))
    assert told.grade == "wrong" and "every matrix is 0" in told.finding
    assert model_file.training(opened(tmp_path, state)).grade == "fine"


def test_a_file_of_nan_does_not_tell_whether_it_is_tied(tmp_path):
    state = {name: torch.full_like(tensor, torch.nan) for name, tensor in model_of().state_dict().items()}
    assert "lm_head.weight" in state and model_file.tying(opened(tmp_path, state)).grade == "open"
