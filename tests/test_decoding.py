"""Choosing the way of decoding, and what each way must give: the tokens of the plain one.

Here the compiled step is replaced by the same step uncompiled, so that many cases can be tried; what compiling itself
may change is tested in test_compiled_steps.py.
"""

import copy
import pickle
from contextlib import contextmanager

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, SLOW_PROPERTY, tiny_model, token_ids

from minimind_edu import generation
from minimind_edu.fast import compiled_steps, decoding
from minimind_edu.fast.decoding import CompiledDecoder
from minimind_edu.fast.token_step import token_step
from minimind_edu.rope_frequencies import RopeScaling

YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
WAYS = ("packed", "compiled", "fixed")
CHANGES = {"post": {"norm_placement": "post"}, "yarn": YARN, "not tied": {"tie_word_embeddings": False}}
CASES = [*KINDS, *CHANGES]


def model_of(case, **changes):
    kind = case if case in KINDS else "minimind2"
    return tiny_model(kind, **CHANGES.get(case, {}), **changes)


@pytest.fixture(autouse=True)
def said_nothing_yet():
    decoding._say_once.cache_clear()


@pytest.fixture
def uncompiled(monkeypatch):
    """Every step that is asked for is `token_step` itself; the list of what was asked for."""
    asked = []

    def step(model, stacks, batch, masked, capacity):
        asked.append((batch, masked, capacity))
        return token_step

    monkeypatch.setattr(compiled_steps, "_compiled", step)
    monkeypatch.setattr(decoding, "_has_cpp_compiler", lambda: True)
    return asked


def decoded(model, way, ids, steps, **options):
    """What `way` generates, on a generator of its own if one samples."""
    if options.get("do_sample"):
        options["generator"] = torch.Generator().manual_seed(7)
    if way == "fixed":
        return generation.generate(CompiledDecoder(model, fixed=True), ids, steps, **options)
    return model.generate(ids, steps, decode=way, **options)


def padded(rows, length):
    """A mask of rows with 0, 2, 4... positions of padding in front."""
    return torch.tensor([[0] * (2 * row) + [1] * (length - 2 * row) for row in range(rows)])


OPTIONS = {
    "greedy": {},
    "end": {"eos_token_id": 20},
    "sampling": {"do_sample": True, "temperature": 1.5, "top_k": 30, "top_p": 0.95},
    "penalty": {"repetition_penalty": 1.4},
    "no cache": {"use_cache": False},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_every_way_gives_the_plain_tokens(uncompiled, case, way):
    for rows in (1,) if case.endswith("moe") and way != "packed" else (1, 3):
        model, ids = model_of(case), token_ids(rows, 7)
        for mask in (None, padded(rows, 7)):
            for options in OPTIONS.values():
                options = {"eos_token_id": None, "attention_mask": mask, **options}
                expected = decoded(model_of(case), "plain", ids, 20, **options)
                assert torch.equal(decoded(model, way, ids, 20, **options), expected)


@pytest.mark.parametrize("way", WAYS)
def test_the_first_token_and_the_last_position_can_be_reached(uncompiled, way):
    model = model_of("minimind2")
    for length, steps in ((1, 64), (63, 2), (64, 1), (1, 1)):
        ids = token_ids(1, length)
        expected = model.generate(ids, steps, eos_token_id=None)
        assert torch.equal(decoded(model, way, ids, steps, eos_token_id=None), expected)


@SLOW_PROPERTY
@given(length=st.integers(1, 6), steps=st.integers(1, 9), way=st.sampled_from(["packed", "compiled"]))
def test_streaming_yields_the_tokens_of_generate(length, steps, way):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_steps, "_compiled", lambda *_: token_step)
        model, ids = model_of("minimind3"), token_ids(2, length)
        tokens = list(model.stream(ids, steps, decode=way, eos_token_id=None))
    expected = model.generate(ids, steps, eos_token_id=None)
    assert torch.equal(torch.stack(tokens, 1), expected[:, length:])


def test_generation_takes_the_same_word():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    tokens = generation.generate(model, ids, 5, decode="packed", eos_token_id=None)
    assert model.lm_head.weight.t().is_contiguous()
    assert torch.equal(tokens, model.generate(ids, 5, eos_token_id=None))


def test_every_way_is_what_it_says_whatever_came_before(uncompiled):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    for way, rows in (("packed", False), ("plain", True), ("packed", False), ("compiled", True)):
        model.generate(ids, 2, decode=way)
        assert model.lm_head.weight.is_contiguous() == rows


def test_single_tokens_are_read_by_the_step_and_prompts_by_the_model(uncompiled, monkeypatch):
    model, read = model_of("minimind2"), []
    monkeypatch.setattr(model, "forward", lambda ids, *_, **__: read.append(ids.shape[1]) or forward(ids, *_, **__))
    forward = type(model).forward.__get__(model)
    model.generate(token_ids(1, 5), 6, decode="compiled", eos_token_id=None)
    assert read == [5]


def test_compiling_is_over_before_the_first_token(uncompiled):
    model = model_of("minimind2")
    tokens = model.stream(token_ids(2, 5), 6, decode="compiled", eos_token_id=None)
    next(tokens)
    assert uncompiled == [(2, False, None)]
    list(tokens)
    model.generate(token_ids(3, 2), 9, decode="compiled")
    assert len(uncompiled) == 1, "kept with the model"


def test_a_step_is_asked_for_anew_when_what_it_was_compiled_for_changes(uncompiled, monkeypatch):
    model = model_of("minimind2")

    def asked(rows=1, **options):
        uncompiled.clear()
        model.generate(token_ids(rows, 6), 2, decode="compiled", **options)
        return uncompiled

    assert asked() == [(1, False, None)] and asked() == []
    assert asked(2) == [(2, False, None)] and asked(3) == []
    assert asked(2, attention_mask=padded(2, 6)) == [(2, True, None)]
    model.to(torch.float32)
    assert asked() == [(1, False, None)] and asked() == []
    model.double()
    assert asked() == [], "those for the other dtype were kept"
    monkeypatch.setattr(torch, "get_num_threads", lambda: 99)
    assert asked() == [(1, False, None)]


def test_a_copy_starts_without_steps(uncompiled):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    for twin in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.generate(ids, 2, decode="compiled")
    assert len(uncompiled) == 3
    assert not [name for name in model.state_dict() if "step" in name]


def test_fixed_buffers_come_in_few_sizes(uncompiled):
    model = model_of("minimind2", max_position_embeddings=1024)
    for steps in (3, 100, 251, 252, 300):
        decoded(model, "fixed", token_ids(1, 5), steps, eos_token_id=None)
    assert uncompiled == [(1, False, 256), (1, False, 512)]


def test_two_continuations_of_one_past_do_not_disturb_each_other(uncompiled):
    model, ids = model_of("minimind2"), token_ids(1, 8)
    decoder = model.decoder("compiled")
    with torch.no_grad():
        past = decoder(ids[:, :6]).past_key_values
        first = decoder(ids[:, 6:7], None, past)
        other = decoder(ids[:, :1], None, past)
        again = decoder(ids[:, 7:], None, first.past_key_values)
        expected = model(ids).logits[:, 7:]
    assert past.length == 6 and other.past_key_values.length == 7
    torch.testing.assert_close(again.logits, expected)


# Progress, and staying eager


def test_compiling_shows_itself_and_what_is_compiled_does_not(uncompiled, capsys, monkeypatch):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)
    model, ids = model_of("minimind2"), token_ids(1, 4)
    model.generate(ids, 2, decode="compiled")
    shown = capsys.readouterr()
    assert "compiling the step for one token" in shown.out + shown.err
    model.generate(ids, 2, decode="compiled")
    assert capsys.readouterr() == ("", "")


@contextmanager
def compiler(path):
    """torch.compile looks for this C++ compiler, and has forgotten any that it found before."""
    decoding._has_cpp_compiler()  # imports what is changed here
    torch._inductor.cpp_builder.cpp_compiler_search.cache_clear()
    with torch._inductor.config.patch({"cpp.cxx": (path,)}):
        yield
    torch._inductor.cpp_builder.cpp_compiler_search.cache_clear()


def test_without_a_compiler_decoding_stays_eager_and_says_so_once(capsys):
    models = [model_of("minimind2"), model_of("minimind3")]
    ids = token_ids(1, 4)
    with compiler("no-such-compiler"), pytest.warns(UserWarning) as said:
        found = [model.generate(ids, 9, decode="compiled", eos_token_id=None) for model in models]
    assert [str(warning.message) for warning in said] == [
        "decode='compiled' is not possible here, so decoding stays eager: torch.compile finds no C++ compiler "
        "(on Debian and Ubuntu: apt install g++)"
    ]
    for model, tokens in zip(models, found, strict=True):
        assert model.lm_head.weight.t().is_contiguous(), "packed"
        assert torch.equal(tokens, model.generate(ids, 9, eos_token_id=None))
    assert "compiling" not in capsys.readouterr().err


def test_a_compiler_that_fails_is_tried_once(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)
    broken = tmp_path / "broken"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && echo broken 1.0 && exit 0\nexit 3\n')
    broken.chmod(0o755)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    model, ids = model_of("minimind2", num_hidden_layers=1), token_ids(1, 4)
    with compiler(str(broken)), pytest.warns(UserWarning) as said:
        tokens = model.generate(ids, 9, decode="compiled", eos_token_id=None)
        again = model.generate(ids, 9, decode="compiled", eos_token_id=None)
    assert len(said) == 1 and "decoding stays eager: " in str(said[0].message)
    assert "\n" not in str(said[0].message)
    assert "".join(capsys.readouterr()).count("0/1") == 1, "one bar"
    assert model.lm_head.weight.t().is_contiguous()
    expected = model.generate(ids, 9, eos_token_id=None)
    assert torch.equal(tokens, expected) and torch.equal(again, expected)


def test_a_mixture_for_several_rows_stays_eager(uncompiled):
    model, ids = model_of("minimind3_moe"), token_ids(2, 4)
    with pytest.warns(UserWarning, match="stays eager: the rows of a batch visit different exp"):
        tokens = model.generate(ids, 5, decode="compiled", eos_token_id=None)
    assert uncompiled == [] and model.lm_head.weight.t().is_contiguous()
    assert torch.equal(tokens, model.generate(ids, 5, eos_token_id=None))


class Doubled(torch.nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


STRANGE = {
    "gate_proj": lambda m: setattr(m.model.layers[0].mlp, "gate_proj", Doubled(32, 48, False).double()),
    "up_proj": lambda m: setattr(m.model.layers[1].mlp, "up_proj", torch.nn.Linear(32, 48).double()),
    "self_attn": lambda m: m.model.layers[0].self_attn.register_forward_hook(lambda *_: None),
    "model itself": lambda m: m.register_forward_pre_hook(lambda *_: None),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_model_that_somebody_changed_stays_eager(uncompiled, name):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    STRANGE[name](model)
    with pytest.warns(UserWarning, match=f"does not know what was changed at .*{name}"):
        tokens = model.generate(ids, 5, decode="compiled")
    assert uncompiled == [] and torch.equal(tokens, model.generate(ids, 5))


def test_another_device_stays_eager():
    model = model_of("minimind2").to("meta")
    with pytest.warns(UserWarning, match="made for the CPU and CUDA, and the model is on meta"):
        assert model.decoder("compiled") is model
    assert model.lm_head.weight.is_contiguous(), "packing is for the CPU"


def test_dropout_is_not_left_out_silently(uncompiled):
    model, ids = model_of("minimind2", dropout=0.1).train(), token_ids(1, 4)
    with pytest.raises(ValueError, match=r"has no dropout, .* dropout=0.1; call model.eval\(\) first"):
        model.generate(ids, 2, decode="compiled")
    model.eval().generate(ids, 2, decode="compiled")
    model_of("minimind2").train().generate(ids, 2, decode="compiled")


@pytest.mark.parametrize("way", ["generate", "stream"])
def test_rejects_a_way_that_does_not_exist(way):
    model = model_of("minimind2")
    message = "decode must be one of 'plain', 'packed', 'compiled', got 'fast'"
    with pytest.raises(ValueError, match=message):
        getattr(model, way)(token_ids(1, 4), 2, decode="fast")
    with pytest.raises(ValueError, match=message):
        getattr(generation, way)(model, token_ids(1, 4), 2, decode="fast")
