"""Choosing the way of decoding, and what each way must give: the tokens of the plain one.

Here the compiled step is replaced by the same step uncompiled, so that many cases can be tried; what compiling itself
may change is tested in test_compiled_steps.py.
"""

from contextlib import contextmanager
from functools import cache
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, SLOW_PROPERTY, tiny_model, token_ids

from minimind_edu import generation
from minimind_edu.attention import Attention
from minimind_edu.fast import compilable, compiled_steps, decoding
from minimind_edu.fast.decoding import CompiledDecoder, LeanDecoder, decoder
from minimind_edu.fast.token_step import token_step
from minimind_edu.rope_frequencies import RopeScaling

YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
WAYS = ("lean", "compiled", "fixed")
CHANGES = {"post": {"norm_placement": "post"}, "yarn": YARN, "not tied": {"tie_word_embeddings": False}}
CASES = [*KINDS, *CHANGES]


def model_of(case, **changes):
    kind = case if case in KINDS else "minimind2"
    return tiny_model(kind, **CHANGES.get(case, {}), **changes)


@pytest.fixture
def uncompiled(monkeypatch):
    """Every step that is asked for is `token_step` itself; the list of what was asked for."""
    asked = []

    def step(model, weights, batch, masked, capacity):
        asked.append((batch, masked, capacity))
        return token_step

    monkeypatch.setattr(compiled_steps, "_compiled", step)
    monkeypatch.setattr(decoding, "has_cpp_compiler", lambda: True)
    return asked


def decoded(model, way, ids, steps, **options):
    """What `way` generates, on a generator of its own if one samples."""
    if options.get("do_sample"):
        options["generator"] = torch.Generator().manual_seed(7)
    reader = CompiledDecoder(model, fixed=True) if way == "fixed" else decoder(model, way)
    return generation.generate(reader, ids, steps, **options)


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


@cache
def plain_tokens(case, rows, masked, option):
    """`[rows, 7 + 12]`; what every way must give."""
    mask = padded(rows, 7) if masked else None
    options = {"eos_token_id": None, "attention_mask": mask, **OPTIONS[option]}
    return decoded(model_of(case), "plain", token_ids(rows, 7), 12, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_every_way_gives_the_plain_tokens(uncompiled, case, way):
    """Every option meets every number of rows, with padding and without."""
    for rows in (1,) if case.endswith("moe") else (1, 3):
        model, ids = model_of(case), token_ids(rows, 7)
        for masked, mask in ((False, None), (True, padded(rows, 7))):
            for option, options in OPTIONS.items():
                options = {"eos_token_id": None, "attention_mask": mask, **options}
                expected = plain_tokens(case, rows, masked, option)
                assert torch.equal(decoded(model, way, ids, 12, **options), expected)


@pytest.mark.parametrize("way", WAYS)
def test_the_first_token_and_the_last_position_can_be_reached(uncompiled, way):
    model = model_of("minimind2")
    for length, steps in ((1, 64), (63, 2), (64, 1), (1, 1)):
        ids = token_ids(1, length)
        expected = model.generate(ids, steps, eos_token_id=None)
        assert torch.equal(decoded(model, way, ids, steps, eos_token_id=None), expected)


@SLOW_PROPERTY
@given(length=st.integers(1, 6), steps=st.integers(1, 9), way=st.sampled_from(["lean", "compiled"]))
def test_streaming_yields_the_tokens_of_generate(length, steps, way):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_steps, "_compiled", lambda *_: token_step)
        model, ids = model_of("minimind3"), token_ids(2, length)
        tokens = list(decoder(model, way).stream(ids, steps, eos_token_id=None))
    expected = model.generate(ids, steps, eos_token_id=None)
    assert torch.equal(torch.stack(tokens, 1), expected[:, length:])


def test_each_way_lays_the_weights_out_as_it_needs_them(uncompiled):
    model = model_of("minimind2")
    for way, by_rows in (("plain", True), ("lean", False), ("plain", False), ("compiled", True)):
        decoder(model, way)
        assert model.lm_head.weight.is_contiguous() == by_rows


def test_a_plain_stream_may_run_beside_a_lean_one():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    lean = decoder(model, "lean").stream(ids, 9, eos_token_id=None)
    first = [next(lean) for _ in range(3)]
    plain = list(model.stream(ids, 9, eos_token_id=None))
    assert torch.equal(torch.stack([*first, *lean]), torch.stack(plain))


def test_between_two_texts_a_model_may_change():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    lean = decoder(model, "lean")
    changes = (
        lambda: model.load_state_dict(tiny_model(seed=1).state_dict()),
        lambda: model.to(torch.float32),
        lambda: setattr(model.model.layers[1].mlp.up_proj, "weight", torch.nn.Parameter(torch.randn(48, 32))),
        lambda: setattr(model.lm_head.weight, "data", model.lm_head.weight.data.neg().contiguous()),
    )
    for change in changes:
        change()
        expected = model.generate(ids, 9, eos_token_id=None)
        assert torch.equal(lean.generate(ids, 9, eos_token_id=None), expected)


@pytest.mark.parametrize("way", ["lean", "compiled"])
def test_single_tokens_are_read_by_the_step_and_prompts_by_the_model(uncompiled, monkeypatch, way):
    model, read = model_of("minimind2"), []
    stepping = decoder(model, way)
    monkeypatch.setattr(decoding, "why_only_plain", lambda _: None)  # it would notice that forward is watched
    monkeypatch.setattr(model, "forward", lambda ids, *_, **__: read.append(ids.shape[1]) or forward(ids, *_, **__))
    forward = type(model).forward.__get__(model)
    stepping.generate(token_ids(1, 5), 6, eos_token_id=None)
    assert read == [5]


def test_compiling_is_over_before_the_first_token(uncompiled):
    compiled = decoder(model_of("minimind2"), "compiled")
    tokens = compiled.stream(token_ids(2, 5), 6, eos_token_id=None)
    next(tokens)
    assert uncompiled == [(2, False, None)]
    list(tokens)
    compiled.generate(token_ids(3, 2), 9)
    assert len(uncompiled) == 1, "kept with the decoder"


def test_a_step_is_asked_for_anew_when_what_it_was_compiled_for_changes(uncompiled, monkeypatch):
    model = model_of("minimind2")
    compiled = decoder(model, "compiled")

    def asked(rows=1, **options):
        uncompiled.clear()
        compiled.generate(token_ids(rows, 6), 2, **options)
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


def test_fixed_buffers_come_in_few_sizes(uncompiled):
    model = model_of("minimind2", max_position_embeddings=1024)
    fixed = CompiledDecoder(model, fixed=True)
    for steps in (3, 100, 251, 252, 300):
        list(islice(fixed.stream(token_ids(1, 5), steps, eos_token_id=None), 3))
    assert uncompiled == [(1, False, 256), (1, False, 512)]


@pytest.mark.parametrize("way", ["lean", "compiled"])
def test_two_continuations_of_one_past_do_not_disturb_each_other(uncompiled, way):
    model, ids = model_of("minimind2"), token_ids(1, 8)
    compiled = decoder(model, way)
    with torch.no_grad():
        past = compiled(ids[:, :6]).past_key_values
        first = compiled(ids[:, 6:7], None, past)
        other = compiled(ids[:, :1], None, past)
        again = compiled(ids[:, 7:], None, first.past_key_values)
        expected = model(ids).logits[:, 7:]
    assert past.length == 6 and other.past_key_values.length == 7
    torch.testing.assert_close(again.logits, expected)


# Progress, and the next simpler way


def test_compiling_shows_itself_and_what_is_compiled_does_not(uncompiled, capsys, monkeypatch):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)
    compiled, ids = decoder(model_of("minimind2"), "compiled"), token_ids(1, 4)
    compiled.generate(ids, 2)
    shown = capsys.readouterr()
    assert "compiling the step for one token" in shown.out + shown.err
    compiled.generate(ids, 2)
    assert capsys.readouterr() == ("", "")


@contextmanager
def compiler(path):
    """torch.compile looks for this C++ compiler, and has forgotten any that it found before."""
    compilable.has_cpp_compiler()  # imports what is changed here
    search = torch._inductor.cpp_builder.cpp_compiler_search
    search.cache_clear()
    try:
        with torch._inductor.config.patch({"cpp.cxx": (path,)}):
            yield
    finally:
        search.cache_clear()


def test_without_a_compiler_decoding_is_lean_and_says_so(capsys):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    expected = model.generate(ids, 9, eos_token_id=None)
    with compiler("no-such-compiler"), pytest.warns(UserWarning) as said:
        found = decoder(model, "compiled")
    tokens = found.generate(ids, 9, eos_token_id=None)
    assert type(found) is LeanDecoder
    assert [str(warning.message) for warning in said] == [
        "compiled decoding is not possible here, so decoding is lean: torch.compile finds no C++ compiler "
        "(on Debian and Ubuntu: apt install g++)"
    ]
    assert torch.equal(tokens, expected)
    assert "compiling" not in capsys.readouterr().err


def test_a_step_that_cannot_be_compiled_is_tried_once(monkeypatch, capsys):
    monkeypatch.delenv("MINIMIND_EDU_STATIC", raising=False)

    def fails(*_):
        raise RuntimeError("the compiler says no\nin many lines")

    monkeypatch.setattr(compiled_steps, "_compiled", fails)
    monkeypatch.setattr(decoding, "has_cpp_compiler", lambda: True)
    model, ids = model_of("minimind2", num_hidden_layers=1), token_ids(1, 4)
    compiled = decoder(model, "compiled")
    with pytest.warns(UserWarning) as said:
        tokens = compiled.generate(ids, 9, eos_token_id=None)
        again = compiled.generate(ids, 9, eos_token_id=None)
    assert [str(warning.message) for warning in said] == [
        "compiled decoding is not possible here, so decoding is lean: RuntimeError, the compiler says no"
    ]
    assert "".join(capsys.readouterr()).count("0/1") == 1, "one bar"
    assert type(compiled.instead) is LeanDecoder
    expected = model.generate(ids, 9, eos_token_id=None)
    assert torch.equal(tokens, expected) and torch.equal(again, expected)


@pytest.mark.parametrize("way", ["lean", "compiled"])
def test_a_mixture_for_several_rows_stays_plain(uncompiled, way):
    model, ids = model_of("minimind3_moe"), token_ids(2, 4)
    with pytest.warns(UserWarning, match=f"^{way} decoding .* is plain: the rows of a batch visit different exp"):
        tokens = decoder(model, way).generate(ids, 5, eos_token_id=None)
    assert uncompiled == []
    assert torch.equal(tokens, model.generate(ids, 5, eos_token_id=None))


class Doubled(torch.nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def forward_of(part):
    """The part's forward, replaced by one that does the same."""
    original = part.forward
    part.forward = lambda x: original(x)


CHANGED = {
    "gate_proj": lambda m: setattr(m.model.layers[0].mlp, "gate_proj", Doubled(32, 48, False).double()),
    "up_proj": lambda m: setattr(m.model.layers[1].mlp, "up_proj", torch.nn.Linear(32, 48).double()),
    "down_proj": lambda m: forward_of(m.model.layers[1].mlp.down_proj),
    "self_attn": lambda m: m.model.layers[0].self_attn.register_forward_hook(lambda *_: None),
    "model itself": lambda m: m.register_forward_pre_hook(lambda *_: None),
}


@pytest.mark.parametrize("way", ["lean", "compiled"])
@pytest.mark.parametrize("name", CHANGED)
def test_a_model_that_somebody_changed_stays_plain(uncompiled, name, way):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    CHANGED[name](model)
    with pytest.warns(UserWarning, match=f"^{way} .* is plain: .* does not know what was changed at .*{name}"):
        found = decoder(model, way)
    tokens = found.generate(ids, 5)
    assert found is model and uncompiled == [] and torch.equal(tokens, model.generate(ids, 5))


def test_a_class_that_somebody_patched_stays_plain(uncompiled, monkeypatch):
    monkeypatch.setattr(Attention, "forward", lambda self, x, *_, original=Attention.forward: original(self, -x, *_))
    model, ids = model_of("minimind2"), token_ids(1, 4)
    with pytest.warns(UserWarning, match="does not know what was changed at model.layers.0.self_attn"):
        tokens = decoder(model, "compiled").generate(ids, 5)
    assert uncompiled == [] and torch.equal(tokens, model.generate(ids, 5))


def test_a_global_hook_keeps_decoding_plain(uncompiled):
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: None)
    try:
        with pytest.warns(UserWarning, match="changed at all modules, by a global hook"):
            decoder(model_of("minimind2"), "compiled")
    finally:
        handle.remove()


def test_another_device_stays_plain():
    model = model_of("minimind2").to("meta")
    with pytest.warns(UserWarning, match="made for the CPU and CUDA, and the model is on meta"):
        assert decoder(model, "compiled") is model
    assert model.lm_head.weight.is_contiguous()


def test_dropout_is_not_left_out_silently(uncompiled):
    model, ids = model_of("minimind2", dropout=0.1).train(), token_ids(1, 4)
    for way in ("lean", "compiled"):
        with pytest.raises(ValueError, match=r"has no dropout, .* dropout=0.1; call model.eval\(\) first"):
            decoder(model, way)
    decoder(model.eval(), "compiled").generate(ids, 2)
    decoder(model_of("minimind2").train(), "compiled").generate(ids, 2)


def test_rejects_a_way_that_does_not_exist():
    with pytest.raises(ValueError, match="must be one of 'plain', 'lean', 'compiled', got 'fast'"):
        decoder(model_of("minimind2"), "fast")
